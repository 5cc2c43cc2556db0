"""Limits, thresholds and targets of a study, as people write them."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import optuna
import pandas as pd
import pytest

from headstart.data.outcomes import Goal, Limit
from headstart.errors import InputError
from headstart.gp.fit import FitOptions
from headstart.models.family import SHGP
from headstart.sampler.explanation import Suggested
from headstart.sampler.sampler import TransferSampler

QUICK = SHGP.using(fit=FitOptions(restarts=1, max_iterations=30))
SPACE = {name: optuna.distributions.FloatDistribution(0, 1) for name in "xy"}

pytestmark = [
    pytest.mark.usefixtures("quiet_optuna", "heard"),
    pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning"),  # metric names
]


def make(sources: Any = (), **options: Any) -> TransferSampler:
    defaults: dict[str, Any] = {"model": QUICK, "seed": 0, "space": SPACE}
    return TransferSampler(sources, **(defaults | options))


def measured(trial: optuna.Trial, shift: float = 0.05) -> float:
    """Best at x = 1, and the impurity is 1 at x = 0.5."""
    x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
    trial.set_user_attr("impurity", 2 * (x - shift))
    trial.set_user_attr("impurity_sd", 0.01)
    return 10 * (1 - x) + (y - 0.3) ** 2


def past(objective: Any = measured, n: int = 20, **options: Any) -> optuna.Study:
    study = optuna.create_study(study_name="past", sampler=optuna.samplers.RandomSampler(seed=0), **options)
    study.optimize(lambda trial: objective(trial, 0.0), n_trials=n)
    return study


def outcomes_of(sampler: TransferSampler) -> Any:
    assert isinstance(sampler.last, Suggested)
    return sampler.last.known.outcomes


@pytest.mark.parametrize("kind", ["study", "trials' table", "table"])
def test_a_limit_on_a_user_attribute_is_known_from_sources_in_its_own_units(kind: str) -> None:
    """The first trial already keeps it, near the limit where the objective is best; so do those that follow."""
    before = past()
    rows = [{**t.params, "cost": t.value, "impurity": t.user_attrs["impurity"]} for t in before.trials]
    sources = {"study": before, "trials' table": before.trials_dataframe(), "table": pd.DataFrame(rows)}
    sampler = make([sources[kind]], limits=["impurity <= 1"], objective=None if kind != "table" else "cost")
    study = optuna.create_study(sampler=sampler)
    study.optimize(measured, n_trials=3)
    xs = [trial.params["x"] for trial in study.trials]
    assert 0.3 < xs[0] < 0.56
    assert max(xs) < 0.6
    assert outcomes_of(sampler).limits == (Limit("impurity", at_most=1),)
    assert "all constraints hold with a probability of" in repr(sampler.last)


def test_known_errors_of_a_limited_quantity_are_read() -> None:
    """From user attributes of the study and of the source; the objective has none."""
    sampler = make([past()], limits=["impurity <= 1"], error={"impurity": "impurity_sd"})
    study = optuna.create_study(sampler=sampler)
    study.optimize(measured, n_trials=3)
    assert isinstance(sampler.last, Suggested)
    fitted, now = sampler.last.fitted, replace(sampler._adviser.fitter.read(study), trials=study.trials[:2])
    encoded = fitted.encode(now)
    variances = fitted.results(encoded, "impurity").error_var
    assert variances is not None
    assert variances.tolist() == pytest.approx([1e-4, 1e-4])
    assert fitted.results(encoded).error_var is None
    (source,) = (task for task in fitted.alignment.tasks)
    errors = source.limited["impurity"].error
    assert errors is not None
    assert errors.tolist() == pytest.approx([0.01] * 20)


def test_a_table_that_knows_a_limited_quantity_alone_is_used_for_it() -> None:
    """As one that knows a constraint alone; the first trial keeps the limit."""
    rows = [{**t.params, "impurity": t.user_attrs["impurity"]} for t in past().trials]
    sampler = make([pd.DataFrame(rows)], limits=["impurity <= 1"], objective="cost")
    optuna.create_study(sampler=sampler).optimize(measured, n_trials=1)
    assert isinstance(sampler.last, Suggested)
    assert len(sampler.last.fitted.priors["impurity"].sources) == 1
    assert not sampler.last.fitted.priors["0"].sources


def test_of_an_objective_it_is_the_threshold() -> None:
    """By its metric's name or its number, in the direction of the study."""

    def two(trial: optuna.Trial, shift: float = 0.0) -> tuple[float, float]:
        return measured(trial, shift), trial.params["x"] - trial.params["y"]

    sampler = make([past(two, directions=["minimize", "maximize"])], limits=["cost <= 6", "gain >= -0.5"])
    study = optuna.create_study(directions=["minimize", "maximize"], sampler=sampler)
    study.set_metric_names(["cost", "gain"])
    study.optimize(two, n_trials=2)
    assert outcomes_of(sampler).goals == (Goal("cost", threshold=6), Goal("gain", maximize=True, threshold=-0.5))
    sampler = make(limits=["0 <= 6"])
    optuna.create_study(sampler=sampler).optimize(measured, n_trials=1)
    assert outcomes_of(sampler).goals == (Goal("0", threshold=6),)


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_a_target_is_sought_whatever_the_direction(direction: Any) -> None:
    """The first trial is near the value that the source shows, and later ones are nearer."""
    sampler = make([past(direction=direction)], limits=["'0' = 4"])
    study = optuna.create_study(direction=direction, sampler=sampler)
    study.optimize(measured, n_trials=4)
    away = [abs(trial.values[0] - 4) for trial in study.trials]
    assert away[0] < 1
    assert min(away) < 0.1


def test_a_limit_relative_to_a_trial_counts_once_the_trial_is_finished(caplog: pytest.LogCaptureFixture) -> None:
    """Until then it is said that it does not."""
    sampler = make([past()], limits=["impurity <= 0.5 * baseline"], baseline=0)
    study = optuna.create_study(sampler=sampler)
    study.enqueue_trial({"x": 0.85, "y": 0.3})
    study.optimize(measured, n_trials=1)
    with caplog.at_level(logging.WARNING):
        study.optimize(measured, n_trials=1)
    (limit,) = outcomes_of(sampler).limits
    assert limit.at_most == pytest.approx(0.8)
    assert study.trials[1].params["x"] < 0.5
    by_value = make([past()], limits=["impurity <= 0.5 * baseline"], baseline={"impurity": 1.6})
    optuna.create_study(sampler=by_value).optimize(measured, n_trials=1)
    assert outcomes_of(by_value).limits[0].at_most == pytest.approx(0.8)


def test_a_quantity_that_no_trial_sets_is_named_at_once(caplog: pytest.LogCaptureFixture) -> None:
    """With what to write; a trial may still lack it."""
    sampler = make(limits=["colour <= 3"])
    optuna.create_study(sampler=sampler).optimize(measured, n_trials=2)
    told = [line for line in caplog.messages if "colour" in line]
    assert len(told) == 1
    assert "no finished trial has the user attribute 'colour'" in told[0]
    assert "trial.set_user_attr('colour', value)" in told[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"limits": "impurity <= 1"}, r"limits must be a list, such as \['impurity <= 2'\]"),
        ({"limits": ["impurity"]}, "limits: 'impurity' says nothing about a result"),
        ({"limits": [3]}, "limits: 3 is no text"),
        ({"limits": ["a <= 2 * baseline"]}, "Give baseline={'a': value}, or the number of a trial"),
        ({"limits": ["a <= 2 * baseline"], "baseline": {"b": 1}}, "baseline says nothing of 'a'"),
        ({"limits": ["a <= 2 * baseline"], "baseline": {"a": "1"}}, "baseline must give a number for 'a'"),
        ({"baseline": "last"}, "baseline must be the number of a trial"),
        ({"baseline": -1}, "the number of a trial, from 0 on, or {name: value}, but it is -1"),
        ({"least_probability": 1.5}, "least_probability must be from 0 to below 1"),
    ],
)
def test_what_makes_no_sense_is_refused_before_the_first_trial(options: dict[str, Any], message: str) -> None:
    """With what to write instead."""
    with pytest.raises(InputError, match=message):
        make(**options)


def test_a_limit_and_a_constraint_go_together() -> None:
    """Constraints of trials remain what they were, beside limits on user attributes."""

    def both(trial: optuna.Trial) -> float:
        value = measured(trial)
        trial.set_constraint("heat", trial.params["y"] - 0.5)
        return value

    sampler = make(limits=["impurity <= 1", Limit("impurity_sd", at_most=1)], least_probability=0.5)
    optuna.create_study(sampler=sampler).optimize(both, n_trials=2)
    found = outcomes_of(sampler)
    assert found.names == ("0", "constraint heat", "impurity", "impurity_sd")
    assert found.least_probability == 0.5
