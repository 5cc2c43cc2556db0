"""Whether to go on with a study, in a sentence."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.trial import TrialState, create_trial

from headstart.decide.stopping import Advice
from headstart.gp.fit import FitOptions
from headstart.models.family import SHGP
from headstart.sampler.sampler import TransferSampler

QUICK = SHGP.using(fit=FitOptions(restarts=1, max_iterations=30))

pytestmark = [
    pytest.mark.usefixtures("quiet_optuna"),
    pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning"),  # metric names
]


SPACE: dict[str, BaseDistribution] = {"x": FloatDistribution(0, 1, step=0.02)}


def bowl(x: float) -> float:
    return 10 - (x - 0.3) ** 2


def tell(study: optuna.Study, xs: Iterable[float], value: Any = bowl) -> None:
    """Trials that have ended."""
    for x in xs:
        found = np.atleast_1d(value(x)).tolist()
        study.add_trial(create_trial(params={"x": x}, distributions=SPACE, values=found))


def make(**options: Any) -> TransferSampler:
    return TransferSampler(model=QUICK, seed=0, **options)


def test_a_study_that_has_found_its_best_is_told_so() -> None:
    """Before there are results one goes on; the objective has its name, and nothing is written down."""
    sampler = make()
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.set_metric_names(["yield"])
    assert str(sampler.explain(study).outlook) == "There are no results yet: go on."
    tell(study, (0.0, 0.5, 0.76, 1.0, 0.06, 0.1, 0.2, 0.24, 0.28, 0.3, 0.32, 0.34, 0.4, 0.6, 0.7, 0.9))
    late = sampler.explain(study).outlook
    assert late.advice is Advice.UNLIKELY
    assert str(late).startswith("The next 5 trials are expected to improve yield by ")
    assert str(late).endswith("further trials are unlikely to be worth it.")
    assert late.further is not None
    assert 0 <= late.further.gain < 0.01
    assert len(study.trials) == 16


def test_a_list_that_is_used_up_leaves_nothing_to_try() -> None:
    """And one that is not is looked at as far as it goes."""
    sampler = make(candidates=[{"x": i / 10} for i in range(10)])
    study = optuna.create_study(direction="maximize", sampler=sampler)
    tell(study, (i / 10 for i in range(8)))
    assert sampler.explain(study).outlook.ahead == 2
    tell(study, (0.8, 0.9))
    assert sampler.explain(study).outlook.advice is Advice.NOTHING_LEFT


def test_trials_that_run_are_no_further_ones() -> None:
    """Of a list whose last setting is being tried nothing is left."""
    sampler = make(candidates=[{"x": i / 10} for i in range(4)])
    study = optuna.create_study(direction="maximize", sampler=sampler)
    tell(study, (0.0, 0.1, 0.2))
    assert sampler.explain(study).outlook.ahead == 1
    study.add_trial(create_trial(state=TrialState.RUNNING, params={"x": 0.3}, distributions=SPACE))
    assert sampler.explain(study).outlook.advice is Advice.NOTHING_LEFT


def test_several_objectives_and_constraints_have_an_outlook() -> None:
    """A share of the volume; before anything is within the constraints, one goes on."""
    sampler = make()
    study = optuna.create_study(directions=["minimize", "minimize"], sampler=sampler)
    tell(study, (0.1, 0.5, 0.8), lambda x: (x, 1 - x))
    assert "% to the volume of the front" in str(sampler.explain(study).outlook)

    def never(trial: optuna.Trial) -> float:
        trial.set_constraint("heat", 1.0 + trial.suggest_float("x", 0, 1, step=0.02))
        return trial.params["x"]

    limited = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    limited.optimize(never, n_trials=3)
    assert str(make().explain(limited).outlook) == "No result is known to be within the limits yet: go on."


def test_rules_bind_what_is_looked_at() -> None:
    """The best point is forbidden: what is allowed has been found."""
    sampler = make(rules=["x >= 0.6"], space=SPACE, deterministic_objective=True)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    tell(study, (0.6 + 0.02 * i for i in range(16)))
    assert sampler.explain(study).outlook.advice is Advice.UNLIKELY
