"""What worker processes of the distributed tests run: importable, so that a fresh process can be told to run it."""

from __future__ import annotations

import multiprocessing
import random
import time
from datetime import datetime
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np
import optuna
import pandas as pd
from optuna.storages import RDBStorage

from headstart.gp.fit import FitOptions
from headstart.models.family import SHGP
from headstart.sampler.sampler import TransferSampler

STUDY = "shared"
QUICK = SHGP.using(fit=FitOptions(restarts=1, max_iterations=30))


def past() -> pd.DataFrame:
    """Twenty results of a related task."""
    rng = np.random.default_rng(1)
    x, n = rng.uniform(-1, 1, 20), rng.integers(1, 9, 20)
    return pd.DataFrame({"x": x, "n": n, "loss": (x - 0.2) ** 2 + 0.01 * (n - 4) ** 2})


def storage(url: str) -> RDBStorage:
    """The storage, with patience where a file is locked by others."""
    return RDBStorage(url, engine_kwargs={"connect_args": {"timeout": 100}} if url.startswith("sqlite") else None)


def objective(trial: optuna.Trial) -> float:
    """A task related to the past one, whose trials take their time, and note when they knew their parameters."""
    x, n = trial.suggest_float("x", -1, 1), trial.suggest_int("n", 1, 8)
    trial.set_user_attr("chosen", datetime.now().isoformat())
    time.sleep(random.uniform(0.0, 0.05))
    return (x - 0.3) ** 2 + 0.01 * (n - 5) ** 2


def stuck(trial: optuna.Trial, marker: Path) -> float:
    """One finished trial, and then one that never ends."""
    value = objective(trial)
    if trial.number > 0:
        marker.write_text(str(trial.number))
        time.sleep(600)
    return value


def load(url: str, seed: int | None = 0) -> optuna.Study:
    """The shared study; all workers have the same seed, which must not make them do the same."""
    sampler = TransferSampler([past()], objective="loss", model=QUICK, seed=seed)
    return optuna.load_study(study_name=STUDY, storage=storage(url), sampler=sampler)


def work(url: str, n_trials: int) -> None:
    """A worker, whose first trial stays pending while it does the others."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = load(url)
    held = study.ask()
    value = objective(held)
    study.optimize(objective, n_trials=n_trials)
    study.tell(held, value)


def work_and_get_stuck(url: str, marker: Path) -> None:
    """A worker that will have to be killed."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    load(url).optimize(lambda trial: stuck(trial, marker), n_trials=2)


def start(target: object, *arguments: object) -> BaseProcess:
    """A process of its own, forked from one that has imported the package and done nothing else."""
    context = multiprocessing.get_context("forkserver")
    # what a worker would import at first use, by names that need no path of the tests
    context.set_forkserver_preload(
        [
            "headstart.sampler.sampler",
            "torch.fx.experimental.symbolic_shapes",
            "sqlalchemy.orm",
            "sqlalchemy.dialects.sqlite",
            "alembic.command",
            "optuna.storages._rdb.storage",
        ]
    )
    process = context.Process(target=target, args=arguments, daemon=True)  # type: ignore[arg-type]
    process.start()
    return process
