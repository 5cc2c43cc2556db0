"""Many processes on one study: SQLite, PostgreSQL, a worker that is killed, threads, and Ray Tune."""

from __future__ import annotations

import itertools
import logging
import shutil
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.trial import FrozenTrial, TrialState
from tests.integration.sampler_workers import (
    QUICK,
    STUDY,
    load,
    objective,
    past,
    start,
    storage,
    work,
    work_and_get_stuck,
)

from headstart.sampler.sampler import TransferSampler

WORKERS = 8

pytestmark = pytest.mark.usefixtures("quiet_optuna")


@pytest.fixture
def postgresql(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of a real server with an empty database."""
    pgserver = pytest.importorskip("pgserver", reason="no PostgreSQL server to start: pip install pgserver")
    pytest.importorskip("psycopg2", reason="no driver for PostgreSQL: pip install psycopg2-binary")
    folder = tempfile.mkdtemp(prefix="pg")  # short, for it holds the server's socket
    monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
    server = pgserver.get_server(Path(folder) / "data", cleanup_mode="stop")
    yield server.get_uri().replace("postgresql:", "postgresql+psycopg2:", 1)
    server.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


def _run_workers(url: str, n_trials: int) -> optuna.Study:
    optuna.create_study(study_name=STUDY, storage=storage(url))
    processes = [start(work, url, n_trials) for _ in range(WORKERS)]
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0] * WORKERS
    return optuna.load_study(study_name=STUDY, storage=storage(url))


def _chosen(trial: FrozenTrial) -> datetime:
    return datetime.fromisoformat(trial.user_attrs["chosen"])


def _told(trial: FrozenTrial) -> datetime:
    assert trial.datetime_complete is not None
    return trial.datetime_complete


def _require_done_and_distinct(study: optuna.Study, count: int) -> int:
    """How many pairs were awaited together."""
    assert [trial.state for trial in study.trials] == [TrialState.COMPLETE] * count
    pairs = itertools.combinations(study.trials, 2)
    # a slow starter may ask after a trial was finished, and is free to come close to it
    together = [(a, b) for a, b in pairs if _chosen(a) < _told(b) and _chosen(b) < _told(a)]
    for a, b in together:
        assert abs(a.params["x"] - b.params["x"]) > 1e-3 or a.params["n"] != b.params["n"], (a, b)
    first = study.trials[0]
    assert first.value is not None
    assert first.value < 0.1  # a random first trial is worse four times out of five
    return len(together)


@pytest.mark.slow
def test_eight_processes_share_one_sqlite_file(tmp_path: Path) -> None:
    """All trials finish, none repeats a pending one although all seeds are equal, and the first is informed."""
    study = _run_workers(f"sqlite:///{tmp_path / 'study.db'}", 1)
    assert _require_done_and_distinct(study, 2 * WORKERS) >= WORKERS  # every worker holds a trial during its other one


def test_eight_processes_share_one_postgresql_server(postgresql: str) -> None:
    """The same on a real PostgreSQL server, which then also serves as a source."""
    study = _run_workers(postgresql, 1)
    assert _require_done_and_distinct(study, 2 * WORKERS) >= WORKERS
    again = optuna.create_study(sampler=TransferSampler([(postgresql, STUDY)], model=QUICK, seed=0))
    again.optimize(objective, n_trials=1)
    assert again.best_value < 0.1


def test_a_killed_worker_loses_no_finished_trial_and_blocks_nobody(tmp_path: Path) -> None:
    """After SIGKILL in the middle of a trial its finished trials are there, and others go on, not where it was."""
    url, marker = f"sqlite:///{tmp_path / 'study.db'}", tmp_path / "marker"
    optuna.create_study(study_name=STUDY, storage=storage(url))
    victim = start(work_and_get_stuck, url, marker)
    deadline = time.monotonic() + 120
    while not marker.exists():
        assert time.monotonic() < deadline
        assert victim.is_alive()
        time.sleep(0.05)
    victim.kill()
    victim.join()
    assert victim.exitcode == -9

    study = load(url)
    assert [trial.state for trial in study.trials] == [TrialState.COMPLETE, TrialState.RUNNING]
    before = study.trials
    study.optimize(objective, n_trials=3)
    after = study.trials
    assert [trial.state for trial in after[2:]] == [TrialState.COMPLETE] * 3
    assert after[0].value == before[0].value
    dead = before[1].params
    assert all(abs(trial.params["x"] - dead["x"]) > 1e-6 or trial.params["n"] != dead["n"] for trial in after[2:])


def test_threads_of_one_process_take_turns() -> None:
    """With n_jobs = 4 every trial finishes, and the first is informed."""
    study = optuna.create_study(sampler=TransferSampler([past()], objective="loss", model=QUICK, seed=0))
    study.optimize(objective, n_trials=12, n_jobs=4)
    _require_done_and_distinct(study, 12)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::ResourceWarning")
def test_ray_tune_searches_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray Tune's OptunaSearch takes the sampler; its parallel trials differ, and the first is informed."""
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    tune = pytest.importorskip("ray.tune", reason="Ray Tune is not installed: pip install 'ray[tune]'")
    from ray.tune.search.optuna import OptunaSearch

    monkeypatch.setenv("RAY_AIR_NEW_OUTPUT", "0")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    try:
        search = OptunaSearch(
            metric="loss", mode="min", sampler=TransferSampler([past()], objective="loss", model=QUICK, seed=0)
        )

        def train(config: dict[str, Any]) -> dict[str, float]:
            return {"loss": (config["x"] - 0.3) ** 2 + 0.01 * (config["n"] - 5) ** 2}

        results = tune.Tuner(
            train,
            param_space={"x": tune.uniform(-1, 1), "n": tune.randint(1, 9)},
            tune_config=tune.TuneConfig(search_alg=search, num_samples=6, max_concurrent_trials=2),
            run_config=tune.RunConfig(storage_path=str(tmp_path), verbose=0),
        ).fit()
    finally:
        ray.shutdown()
    frame = results.get_dataframe()
    assert len(frame) == 6
    assert not frame["loss"].isna().any()
    points = set(zip(frame["config/x"].round(4), frame["config/n"], strict=True))
    assert len(points) == 6
    assert frame["loss"].min() < 0.02
