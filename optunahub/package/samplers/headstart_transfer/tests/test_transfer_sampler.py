"""The package as the registry loads it: python -m pytest package/samplers/headstart_transfer"""

from __future__ import annotations

from pathlib import Path

import optuna
import optunahub
import pytest


TransferSampler = optunahub.load_local_module(
    "samplers/headstart_transfer", registry_root=str(Path(__file__).resolve().parents[3])
).TransferSampler


def objective(trial: optuna.Trial, shift: float = 0.1) -> float:
    """Two tasks with different shifts resemble each other."""
    x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
    return (x - 0.3 - shift) ** 2 + (y - 0.6 + shift) ** 2


@pytest.fixture(scope="module")
def past() -> optuna.Study:
    study = optuna.create_study(
        study_name="last year", sampler=optuna.samplers.RandomSampler(seed=0)
    )
    study.optimize(lambda trial: objective(trial, shift=0.0), n_trials=30)
    return study


@pytest.mark.parametrize("model", ["auto", "rgpe", "tst-r"])
def test_the_first_trial_is_informed(model: str, past: optuna.Study) -> None:
    """It is better than nine random ones in ten, and a few trials come close to the optimum."""
    sampler = TransferSampler([past], model=model, seed=0)
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=6)
    assert study.trials[0].value is not None
    assert study.trials[0].value < 0.06
    assert study.best_value < 0.03
    assert "last year: 30 of 30 rows used" in str(sampler.explain())


def test_several_objectives_are_for_the_default_alone(past: optuna.Study) -> None:
    """RGPE and TST-R say so before the first trial runs."""
    study = optuna.create_study(
        directions=["minimize", "minimize"], sampler=TransferSampler([past], model="rgpe")
    )
    with pytest.raises(ValueError, match="RGPE is for one objective without constraints"):
        study.optimize(lambda trial: (objective(trial), 0.0), n_trials=1)
