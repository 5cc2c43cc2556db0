"""Whether to go on with a study, in a sentence."""

from __future__ import annotations

from typing import Any

import optuna
import pytest

from headstart.decide.stopping import Advice
from headstart.gp.fit import FitOptions
from headstart.models.family import SHGP
from headstart.sampler.sampler import TransferSampler

QUICK = SHGP.using(fit=FitOptions(restarts=1, max_iterations=30))

pytestmark = [
    pytest.mark.usefixtures("quiet_optuna"),
    pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning"),  # metric names
]


def bowl(trial: optuna.Trial) -> float:
    return 10 - (trial.suggest_float("x", 0, 1) - 0.3) ** 2


def make(**options: Any) -> TransferSampler:
    return TransferSampler(model=QUICK, seed=0, **options)


def test_a_study_that_has_found_its_best_is_told_so() -> None:
    """Before, it is too early, whatever is expected; the objective has its name, and nothing is written down."""
    sampler = make()
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.set_metric_names(["yield"])
    assert str(sampler.outlook(study)) == "There are no results yet: go on."
    study.optimize(bowl, n_trials=4)
    early = sampler.outlook(study)
    assert early.advice is Advice.TOO_EARLY
    assert str(early).startswith("The next 5 trials are expected to improve yield by ")
    study.optimize(bowl, n_trials=14)
    late = sampler.outlook(study)
    assert late.advice is Advice.UNLIKELY
    assert str(late).endswith("further trials are unlikely to be worth it.")
    assert late.further is not None
    assert 0 <= late.further.gain < 0.01
    assert len(study.trials) == 18


def test_a_list_that_is_used_up_leaves_nothing_to_try() -> None:
    """And one that is not is looked at as far as it goes."""
    sampler = make(candidates=[{"x": i / 10} for i in range(10)])
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.optimize(bowl, n_trials=8)
    assert sampler.outlook(study).ahead == 2
    study.optimize(bowl, n_trials=2)
    assert sampler.outlook(study).advice is Advice.NOTHING_LEFT


def test_several_objectives_and_constraints_have_an_outlook() -> None:
    """A share of the volume; before anything is within the constraints, one goes on."""

    def both(trial: optuna.Trial) -> tuple[float, float]:
        x = trial.suggest_float("x", 0, 1)
        return x, 1 - x

    sampler = make()
    study = optuna.create_study(directions=["minimize", "minimize"], sampler=sampler)
    study.optimize(both, n_trials=8)
    assert "% to the volume of the front" in str(sampler.outlook(study))

    def never(trial: optuna.Trial) -> float:
        trial.set_constraint("heat", 1.0 + trial.suggest_float("x", 0, 1))
        return trial.params["x"]

    limited = optuna.create_study(sampler=make())
    limited.optimize(never, n_trials=3)
    sampler = make()
    assert str(sampler.outlook(limited)) == "No result is within the limits yet: go on."


def test_rules_bind_what_is_looked_at() -> None:
    """The best point is forbidden: what is allowed has been found."""
    sampler = make(
        rules=["x >= 0.6"], space={"x": optuna.distributions.FloatDistribution(0, 1)}, deterministic_objective=True
    )
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.optimize(bowl, n_trials=16)
    assert sampler.outlook(study).advice is Advice.UNLIKELY
