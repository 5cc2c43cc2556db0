"""Choices that are numbers, as ordered discrete numbers."""

from __future__ import annotations

import math
from typing import Any

import optuna
import pandas as pd
import pytest
from optuna.distributions import CategoricalDistribution, IntDistribution

from headstart import InputError, TransferSampler
from headstart.data.ranges import DiscreteNumbers
from headstart.sampler.space import OrderedChoices, clip_value

SIZES = [128, 16, 64, 32]


def _best_at_32(trial: optuna.Trial) -> float:
    size = trial.suggest_categorical("size", SIZES)
    assert any(size is own for own in SIZES)
    return (math.log2(size) - 5) ** 2 + (trial.suggest_float("x", 0, 1) - 0.3) ** 2


def _study(sampler: TransferSampler, n: int, objective: Any = _best_at_32) -> optuna.Study:
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=n)
    return study


@pytest.mark.parametrize(
    ("choices", "ordered"),
    [
        (SIZES, True),
        ([0.1, 1, 2.5], True),
        ([16, 32], False),
        ([0, 1, True], False),
        ([1, 2, None], False),
        (["16", "32", "64"], False),
        ([1, 2, math.inf], False),
        ([1, 1.0, 2], False),
    ],
)
def test_three_different_numbers_are_ordered(choices: list[Any], ordered: bool) -> None:
    """Truth values, texts, None and infinity are names, and so are numbers that somebody says are."""
    asked = CategoricalDistribution(choices)
    found = OrderedChoices.of("size", asked, ())
    assert isinstance(found, DiscreteNumbers) is ordered
    assert OrderedChoices.of("size", asked, ("size",)) is asked
    assert OrderedChoices.of("n", IntDistribution(1, 3), ()) == IntDistribution(1, 3)


def test_a_study_runs_with_the_choices_as_they_were_given() -> None:
    """The very objects, and the report says how they are taken; told otherwise they are categories."""
    sampler = TransferSampler(seed=0)
    study = _study(sampler, 10)
    assert study.best_params["size"] == 32
    assert "size: ordered numbers, 16, 32, 64, 128, on a log scale" in str(sampler.explain())
    assert sampler.last is not None
    assert sampler.last.fitted.alignment.space.by_name["size"].width == 1
    sampler = TransferSampler(seed=0, categories=["size"])
    _study(sampler, 4)
    assert sampler.last is not None
    assert sampler.last.fitted.alignment.space.by_name["size"].width == 4
    assert "ordered" not in str(sampler.explain())


def test_past_studies_with_other_values_stay_evidence() -> None:
    """Those of a range, and of other choices, have their place between the choices, and the report counts them."""

    def before(trial: optuna.Trial) -> float:
        return (math.log2(trial.suggest_int("size", 8, 300, log=True)) - 5) ** 2

    def other(trial: optuna.Trial) -> float:
        return (math.log2(trial.suggest_categorical("size", [8, 24, 48, 256])) - 5) ** 2

    past = [_study(TransferSampler(seed=i), 12, objective) for i, objective in enumerate((before, other))]
    sampler = TransferSampler(past, seed=0)
    study = _study(sampler, 4)
    assert study.trials[0].params["size"] == 32
    assert "rows lie outside the present range 16 … 128 and stay as evidence" in str(sampler.explain())
    assert "unknown here" not in str(sampler.explain())


def test_a_table_with_the_numbers_gives_the_first_choice() -> None:
    """Though the table alone looks like a range: what is near the best of it is offered."""
    rows = pd.DataFrame({"size": [16, 24, 30, 40, 90, 128] * 3, "x": [0.1 * i for i in range(18)]})
    rows["value"] = [(math.log2(size) - 5) ** 2 for size in rows["size"]]
    study = _study(TransferSampler([rows], objective="value", seed=0), 3)
    assert study.trials[0].params["size"] == 32


def test_rules_and_candidates_know_the_numbers() -> None:
    """A sum that a category could not be in; a list whose cells are text; a trial that is enqueued between them."""
    space = {"size": CategoricalDistribution(SIZES), "x": optuna.distributions.FloatDistribution(0, 100)}

    def objective(trial: optuna.Trial) -> float:
        return trial.suggest_categorical("size", SIZES) + trial.suggest_float("x", 0, 100)

    study = _study(TransferSampler(space=space, rules=["size + x >= 100", "size <= 64"], seed=0), 6, objective)
    assert all(t.params["size"] + t.params["x"] >= 100 - 1e-6 and t.params["size"] <= 64 for t in study.trials)
    listed = pd.DataFrame({"size": ["16", "64", "128.0"], "x": [1.0, 2.0, 3.0]})
    study = _study(TransferSampler(candidates=listed, seed=0), 3, objective)
    assert sorted(t.params["size"] for t in study.trials) == [16, 64, 128]


def test_choices_that_change_are_followed() -> None:
    """A value that is not offered any more is replaced by the nearest that is; Optuna asks trial by trial."""
    nearest = OrderedChoices.of("size", CategoricalDistribution([10, 40, 100]), ())
    assert [clip_value(v, "size", nearest) for v in (16, 32, 60, 128)] == [10, 40, 40, 100]
    exact = OrderedChoices.of("rate", CategoricalDistribution([0.1, 0.3, 0.7]), ())
    assert clip_value(0.1 + 0.2, "rate", exact) == 0.3


def test_categories_are_a_list() -> None:
    """One name alone would be taken letter by letter."""
    with pytest.raises(InputError, match="put it in brackets"):
        TransferSampler(categories="size")
