"""Optuna's ways: attributes a dashboard shows, explanations of loaded studies, small pickles, its logger."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import optuna
import pandas as pd
import pytest

from headstart.gp.fit import FitOptions
from headstart.models.family import AUTO
from headstart.sampler.adviser import LOGGER
from headstart.sampler.explanation import Suggested
from headstart.sampler.sampler import TransferSampler

QUICK = AUTO.using(fit=FitOptions(restarts=1, max_iterations=15))

pytestmark = pytest.mark.usefixtures("quiet_optuna", "heard")


def table(n: int = 25, inputs: int = 2, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 1, (n, inputs))
    return pd.DataFrame(X, columns=[f"x{i}" for i in range(inputs)]).assign(loss=((X - 0.3) ** 2).sum(1))


def objective(trial: optuna.Trial) -> float:
    return sum((trial.suggest_float(f"x{i}", 0, 1) - 0.35) ** 2 for i in range(2))


def test_a_trial_shows_what_it_rests_on() -> None:
    """The verdicts and weights of its sources, from the first trial on."""
    study = optuna.create_study(sampler=TransferSampler([table()], objective="loss", model=QUICK, seed=0))
    study.optimize(objective, n_trials=2)
    for number, trial in enumerate(study.trials):
        shown = trial.user_attrs
        assert str(shown["headstart: model"]).startswith(f"AUTO after {number} results: kin ")
        assert shown["headstart: sources"] == "source 1 not tested yet"
        assert abs(shown["headstart: weight of source 1"]) > 0.1


def test_a_loaded_study_is_explained_without_a_suggestion(tmp_path: Path) -> None:
    """As text and as a table, from what is in its storage."""
    url = f"sqlite:///{tmp_path}/study.db"
    study = optuna.create_study(study_name="s", storage=url, sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective, n_trials=8)
    sampler = TransferSampler([table()], objective="loss", model=QUICK, seed=0)
    assert "explain(study) is about a study that was loaded" in str(sampler.explain())
    reasons = sampler.explain(optuna.load_study(study_name="s", storage=url))
    assert "believed after 8 observations" in str(reasons)
    frame = reasons.to_frame()
    assert len(frame) == 1
    assert sampler.last is None


def test_a_pickled_sampler_is_its_data() -> None:
    """What was learnt, many times larger, is learnt again."""
    sources = [table(60, 2, seed) for seed in range(3)]
    sampler = TransferSampler(sources, objective="loss", model=QUICK, seed=0)
    data = len(pickle.dumps(sources))
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=2)
    assert len(pickle.dumps(sampler)) < data + 100_000


def test_a_study_among_its_own_sources_counts_once(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    """Whatever the storage is called, and it is said."""
    url = f"sqlite:///{tmp_path}/study.db"
    study = optuna.create_study(study_name="mine", storage=url)
    study.optimize(objective, n_trials=5)
    other = optuna.create_study(study_name="other", storage=url)
    other.optimize(objective, n_trials=5)
    sampler = TransferSampler([(url, "mine"), (url, "other")], model=QUICK, seed=0)
    again = optuna.load_study(study_name="mine", storage=url, sampler=sampler)
    again.optimize(objective, n_trials=1)
    assert caplog.text.count("'mine' is one of its own sources") == 1
    assert isinstance(sampler.last, Suggested)
    assert [data.name for data in sampler.last.alignment.datasets] == ["other"]


def test_what_is_not_used_is_said_at_once_and_the_rest_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    """An empty study among others; too small ones together."""
    empty = optuna.create_study(study_name="empty")
    TransferSampler([empty, table()], objective="loss")
    assert caplog.text.count("'empty' has no finished trial") == 1
    noise = table(6).assign(loss=[1.0, -1.0, 2.0, 0.5, -2.0, 0.1])
    study = optuna.create_study(sampler=TransferSampler([noise], objective="loss", model=QUICK, seed=0))
    study.optimize(objective, n_trials=2)
    assert caplog.text.count("The source is not trusted") == 1


@pytest.mark.parametrize("verbosity", [optuna.logging.ERROR, optuna.logging.WARNING])
def test_it_speaks_with_optunas_voice(verbosity: int, caplog: pytest.LogCaptureFixture) -> None:
    """By its verbosity, which counts where the logger has no level of its own."""
    caplog.set_level(0, logger=LOGGER)
    optuna.logging.set_verbosity(verbosity)
    study = optuna.create_study(
        sampler=TransferSampler([table().assign(extra=np.arange(25))], objective="loss", model=QUICK)
    )
    study.optimize(objective, n_trials=2)
    assert ("extra" in caplog.text) is (verbosity == optuna.logging.WARNING)


def test_it_prints_what_it_is() -> None:
    """The model and the sources, ten of them at most."""
    assert repr(TransferSampler([table()], objective="loss")) == "TransferSampler(AUTO, sources: source 1)"
    many = TransferSampler([table()] * 12, objective="loss", model="shgp")
    assert repr(many).startswith("TransferSampler(SHGP, sources: source 1, ")
    assert repr(many).endswith("and 2 more)")
