"""Results with known errors, and tables with several outcomes, in the sampler."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import optuna
import pandas as pd
import pytest

from headstart.errors import InputError
from headstart.gp.fit import FitOptions
from headstart.models.family import SHGP
from headstart.models.model import observed
from headstart.sampler.explanation import Suggested
from headstart.sampler.sampler import TransferSampler

QUICK = SHGP.using(fit=FitOptions(restarts=1, max_iterations=30))

pytestmark = [
    pytest.mark.usefixtures("quiet_optuna", "heard"),
    pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning"),  # metric names
]


def past(n: int = 20) -> pd.DataFrame:
    """The cost is least at x = 0.2, the gain largest at x = 0.8, both at y = 0.6; the heat is above 0 from x = 0.5."""
    rng = np.random.default_rng(0)
    x, y = rng.uniform(0, 1, n), rng.uniform(0, 1, n)
    return pd.DataFrame(
        {
            "x": x,
            "y": y,
            "cost": (x - 0.2) ** 2 + (y - 0.6) ** 2,
            "gain": 1 - (x - 0.8) ** 2 - (y - 0.6) ** 2,
            "heat": x - 0.5,
            "sd": np.where(x < 0.5, 0.01, 0.1),
        }
    )


def make(sources: Any = (), **options: Any) -> TransferSampler:
    defaults: dict[str, Any] = {"model": QUICK, "seed": 0}
    return TransferSampler(sources, **(defaults | options))


def last_of(sampler: TransferSampler) -> Suggested:
    assert isinstance(sampler.last, Suggested)
    return sampler.last


def noisy(trial: optuna.Trial) -> float:
    x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
    if trial.number != 1:
        trial.set_user_attr("sd", 0.1 * (1 + trial.number))
    return (x - 0.2) ** 2 + (y - 0.6) ** 2


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_the_errors_of_sources_and_study_reach_the_model(direction: Any) -> None:
    """As variances; a trial that states none has a typical one."""
    sampler = make([past().drop(columns=["gain", "heat"])], objective="cost", error="sd")
    study = optuna.create_study(sampler=sampler, direction=direction)
    study.optimize(noisy, n_trials=5)
    last = last_of(sampler)
    (data,) = last.alignment.datasets
    assert data.error_var is not None
    np.testing.assert_allclose(sorted(set(data.error_var.tolist())), [0.0001, 0.01])
    own = observed(last.posterior)
    assert own.error_var is not None
    np.testing.assert_allclose(own.error_var.sqrt().numpy(), [0.1, 0.3, 0.3, 0.4])  # 0.3 is the median of the others


def test_a_result_with_a_large_error_counts_less() -> None:
    """One of nine results is far from the bowl of the others: it is believed if it is sure, and hardly if it is not."""
    found = {}
    for sd in (0.01, 3.0):
        sampler = make(error="sd")
        study = optuna.create_study(sampler=sampler)
        for i in range(9):
            x = (i + 0.5) / 9
            trial = optuna.trial.create_trial(
                params={"x": x},
                distributions={"x": optuna.distributions.FloatDistribution(0, 1)},
                value=1.5 if i == 4 else 4 * (x - 0.5) ** 2,
                user_attrs={"sd": sd if i == 4 else 0.01},
            )
            study.add_trial(trial)
        study.ask().suggest_float("x", 0, 1)
        last = last_of(sampler)
        found[sd] = float(last.posterior.predict(last.alignment.space.encode([{"x": 0.5}]))[0])
    assert abs(found[3.0]) < 0.15
    assert found[0.01] > found[3.0] + 0.1


def test_errors_of_several_objectives_are_told_apart() -> None:
    """By name; one name for two objectives is not clear."""

    def both(trial: optuna.Trial) -> tuple[float, float]:
        x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
        trial.set_user_attr("sd of gain", 0.2)
        return (x - 0.2) ** 2 + (y - 0.6) ** 2, 1 - (x - 0.8) ** 2 - (y - 0.6) ** 2

    table = past().drop(columns="heat").rename(columns={"sd": "sd of gain"})
    sampler = make([table], objective=["cost", "gain"], error={"gain": "sd of gain"})
    study = optuna.create_study(directions=["minimize", "maximize"], sampler=sampler)
    study.set_metric_names(["cost", "gain"])
    study.optimize(both, n_trials=3)
    known = last_of(sampler).known
    assert observed(known["cost"]).error_var is None
    errors = observed(known["gain"]).error_var
    assert errors is not None
    np.testing.assert_allclose(errors.numpy(), 0.04)
    unclear = optuna.create_study(directions=["minimize", "maximize"], sampler=make(error="sd"))
    with pytest.raises(InputError, match="The study has 2 objectives, so it is not clear of which one 'sd' is the"):
        unclear.optimize(both, n_trials=2)


def test_a_trial_with_a_wrong_error_is_named_and_the_study_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    """A trial that has ended cannot be corrected: its error is not known."""

    def wrong(trial: optuna.Trial) -> float:
        trial.set_user_attr("sd", 0.0 if trial.number == 1 else 0.3)
        return trial.suggest_float("x", 0, 1)

    sampler = make(error="sd")
    study = optuna.create_study(study_name="mine", sampler=sampler)
    study.optimize(wrong, n_trials=4)
    errors = observed(last_of(sampler).posterior).error_var
    assert errors is not None
    np.testing.assert_allclose(errors.numpy(), 0.09)
    said = [r.getMessage() for r in caplog.records if "standard error" in r.getMessage()]
    assert len(said) == 1
    assert said[0].startswith("Study 'mine', trial 1: the user attribute 'sd' = 0.0 is the standard error of a result")


def test_an_error_that_no_source_has_is_said(caplog: pytest.LogCaptureFixture) -> None:
    """It may be misspelt."""
    make([past()], objective="cost", error="yeld_sd")
    assert any("no source has a column or user attribute 'yeld_sd'" in r.getMessage() for r in caplog.records)


@pytest.mark.parametrize(
    "names",
    [["cost", "gain"], pytest.param(None, marks=pytest.mark.slow), ["a", "b"]],
    ids=["named", "unnamed", "other names"],
)
def test_a_table_with_two_objectives_informs_both(names: list[str] | None) -> None:
    """Matched by name, or in order: the first trial is on the front at y = 0.6, which no single trial could know."""
    table = past().drop(columns=["heat", "sd"])
    sampler = make([table], objective=["cost", "gain"])
    study = optuna.create_study(directions=["minimize", "maximize"], sampler=sampler)
    if names:
        study.set_metric_names(names)

    def both(trial: optuna.Trial) -> tuple[float, float]:
        x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
        return (x - 0.2) ** 2 + (y - 0.6) ** 2, 1 - (x - 0.8) ** 2 - (y - 0.6) ** 2

    study.optimize(both, n_trials=3)
    assert all(abs(trial.params["y"] - 0.6) < 0.25 for trial in study.trials)
    known = last_of(sampler).known
    X = last_of(sampler).alignment.space.encode([{"x": 0.2, "y": 0.6}, {"x": 0.8, "y": 0.6}])
    for name, expected in zip(known.outcomes.names, ([0.0, 0.36], [0.64, 1.0]), strict=True):
        np.testing.assert_allclose(known.predict(X)[name][0].numpy(), expected, atol=0.1)


def test_constraints_of_a_table_are_matched_by_key() -> None:
    """The first trial is where the table says that they hold, and its chance is printed."""
    table = past().drop(columns=["cost", "sd"])
    sampler = make([table], objective="gain", constraints={"heat": "heat"})
    study = optuna.create_study(direction="maximize", sampler=sampler)

    def limited(trial: optuna.Trial) -> float:
        x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
        trial.set_constraint("heat", x - 0.5)
        return 1 - (x - 0.8) ** 2 - (y - 0.6) ** 2

    study.optimize(limited, n_trials=3)
    assert study.trials[0].params["x"] < 0.6
    assert "all constraints hold with a probability of" in repr(last_of(sampler))


def test_a_source_without_any_outcome_of_the_study_is_named(caplog: pytest.LogCaptureFixture) -> None:
    """And the others are used."""
    old = optuna.create_study(study_name="old", directions=["minimize", "minimize"])
    old.set_metric_names(["price", "worth"])
    for i in range(4):
        old.add_trial(
            optuna.trial.create_trial(
                params={"x": i / 4},
                distributions={"x": optuna.distributions.FloatDistribution(0, 1)},
                values=[i, math.sin(i)],
            )
        )
    sampler = make([old, past().drop(columns=["heat", "sd"])], objective=["cost", "gain"])
    study = optuna.create_study(directions=["minimize", "maximize"], sampler=sampler)
    study.set_metric_names(["cost", "gain"])
    study.optimize(lambda t: (t.suggest_float("x", 0, 1), t.suggest_float("y", 0, 1)), n_trials=1)
    said = [r.getMessage() for r in caplog.records if "is left out: the study has" in r.getMessage()]
    assert len(said) == 1
    assert "'cost', 'gain', the source 'price', 'worth'" in said[0]
    assert [task.name for task in last_of(sampler).alignment.tasks] == ["source 2"]
