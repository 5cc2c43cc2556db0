"""Spaces that differ: what becomes of the sources, and whether every decision is told."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from headstart.errors import InputError
from headstart.sources.alignment import Alignment, align
from headstart.sources.raw import RawTask

SPACE: dict[str, BaseDistribution] = {
    "lr": FloatDistribution(1e-3, 1e-1, log=True),
    "depth": IntDistribution(1, 4),
    "kind": CategoricalDistribution(["a", "b"]),
}


def task(name: str = "old", y: Any = None, maximize: bool | None = None, **columns: Any) -> RawTask:
    rows = pd.DataFrame(columns)
    values = np.arange(len(rows), dtype=np.float64) if y is None else np.asarray(y, dtype=np.float64)
    return RawTask(name, rows, values, origin=f"{name}.csv", maximize=maximize)


def told(alignment: Alignment, parameter: str) -> str:
    """The one decision about a parameter."""
    (decision,) = [d for d in alignment.decisions if d.parameter == parameter]
    assert str(decision.what) in str(alignment)
    return decision.what


def test_a_source_of_the_same_space_needs_no_decision() -> None:
    """Its rows are encoded as the space encodes them, and the report says that everything fits."""
    found = align([task(lr=[0.01, 0.1], depth=[1, 4], kind=["a", "b"])], SPACE)
    assert found.decisions == ()
    assert "old: 2 of 2 rows used" in str(found)
    (data,) = found.datasets
    own = math.sqrt(0.5)
    expected = torch.tensor([[0.5, 0.125, own, 0.0], [1.0, 0.875, 0.0, own]], dtype=torch.float64)
    torch.testing.assert_close(data.X, expected)
    assert data.y.tolist() == [0.0, 1.0]
    assert data.unseen == ()


def test_a_parameter_that_was_not_recorded_is_unseen() -> None:
    """The source does not see its columns, all of them for a categorical parameter."""
    found = align([task(lr=[0.01, 0.1])], SPACE)
    assert found.datasets[0].unseen == (1, 2, 3)
    assert (found.datasets[0].X[:, 1:] == 0.5).all()
    assert "constant along it" in told(found, "depth")
    assert "constant along it" in told(found, "kind")
    assert found.warnings == ()


def test_fill_gives_the_value_that_was_not_recorded() -> None:
    """The value is used for the whole source, or for the rows that lack it, and may be a category of its own."""
    found = align([task(lr=[0.01, 0.1, 0.1], depth=[None, 2, 3])], SPACE, fill={"depth": 4, "kind": "c"})
    (data,) = found.datasets
    assert data.unseen == ()
    torch.testing.assert_close(data.X[:, 1], torch.tensor([0.875, 0.375, 0.625], dtype=torch.float64))
    assert data.X[:, 2:].tolist() == [[0.0, 0.0, 1 / math.sqrt(2)]] * 3
    assert "1 of 3 rows lack it: 4 is filled in" in told(found, "depth")
    for wrong in ({"depth": "deep"}, {"lr": -1.0, "depth": 1}):
        with pytest.raises(InputError, match="fill gives"):
            align([task(kind=["a"])], SPACE, fill=wrong)


def test_rows_outside_the_range_stay_as_evidence() -> None:
    """Their coordinates lie outside the unit cube, where they were measured."""
    found = align([task(lr=[1.0, 1e-5, 0.01], depth=[9, 1, 2], kind=["a", "a", "a"])], SPACE)
    torch.testing.assert_close(found.datasets[0].X[:, 0], torch.tensor([1.5, -1.0, 0.5], dtype=torch.float64))
    assert "2 rows lie outside the present range 0.001 … 0.1" in told(found, "lr")
    assert "1 rows lie outside" in told(found, "depth")


def test_an_unknown_category_gets_a_level_that_is_never_suggested() -> None:
    """It has a column of its own, shared by the sources that know it, and decoding never gives it."""
    found = align([task(kind=["a", "c"]), task("new", kind=["c", "d"])], SPACE)
    assert found.space.d == 2 + 4
    first, second = (data.X[:, 2:] for data in found.datasets)
    assert (first > 0).tolist() == [[1, 0, 0, 0], [0, 0, 1, 0]]
    assert (second > 0).tolist() == [[0, 0, 1, 0], [0, 0, 0, 1]]
    assert {row["kind"] for data in found.datasets for row in found.space.decode(data.X)} <= {"a", "b"}
    assert "'c'" in next(d.what for d in found.decisions if d.source == "old" and d.parameter == "kind")


@pytest.mark.parametrize(
    ("choices", "column", "expected"),
    [
        ([1, 2], ["2", "1.0"], [1, 0]),
        ([True, False], ["false", "True"], [1, 0]),
        ([True, False], [0.0, 1.0], [1, 0]),
        ([None, "l1"], [None, "l1"], [0, 1]),
        (["1", "2"], [2.0, 1.0], [1, 0]),
        ([1, True], [True, 1], [1, 0]),
    ],
)
def test_categories_are_recognised_after_a_trip_through_a_file(choices: Any, column: Any, expected: Any) -> None:
    """Text that reads like a category is it, 0 and 1 are truth values, and an empty cell is None where that is one."""
    found = align([task(kind=column)], {"kind": CategoricalDistribution(choices)})
    assert found.datasets[0].X.argmax(-1).tolist() == expected
    assert found.space.d == 2


def test_parameters_that_only_the_source_has_are_dropped() -> None:
    """With a warning if they varied, and quietly if the study has them elsewhere."""
    source = task(lr=[0.1, 0.1], depth=[1, 2], kind=["a", "a"], momentum=[0.1, 0.9], epochs=[3, 3], branch=[1, 2])
    found = align([source], SPACE, elsewhere={"branch"})
    assert [d.parameter for d in found.warnings] == ["momentum"]
    assert "dropped" in told(found, "momentum")
    assert "never varied" in told(found, "epochs")
    assert "no part of the common space" in told(found, "branch")


def test_a_parameter_with_a_single_value_has_no_column() -> None:
    """That it varied in the source is told."""
    space = {"lr": SPACE["lr"], "depth": IntDistribution(3, 3)}
    found = align([task(lr=[0.1, 0.1], depth=[1, 2])], space)
    assert found.space.d == 1
    assert [d.parameter for d in found.warnings] == ["depth"]


def test_rows_that_cannot_be_placed_are_left_out_and_counted() -> None:
    """No result, no value, text among numbers, or not positive on a log axis."""
    source = task(
        lr=[0.01, None, "0.02", "n/a", -1.0, 0.0, 0.05, 0.1, 0.1, 0.1],
        depth=[1, 1, "2", 1, 1, 1, 1, 1, 1, 1],
        kind=["a"] * 10,
        y=[1, 1, 1, 1, 1, 1, np.nan, np.inf, 1, 1],
    )
    found = align([source], SPACE)
    assert found.datasets[0].n == 5
    assert found.rows == ((0, 2, 7, 8, 9),)
    assert "1 of 10 rows have no result" in str(found)
    assert "1 of 10 rows have an infinite result" in str(found)
    assert "4 of 10 rows cannot be placed" in told(found, "lr")
    assert "old: 5 of 10 rows used" in str(found)


@pytest.mark.parametrize("maximize", [True, False])
def test_infinite_results_count_as_the_worst_or_best_finite_one(maximize: bool) -> None:
    """Of their own task, in either direction; with nothing finite there is no result."""
    found = align([task(lr=[0.1] * 4, y=[3.0, np.inf, -np.inf, 1.0])], SPACE, minimize=not maximize)
    assert found.datasets[0].y.tolist() == pytest.approx([-3, -3, -1, -1] if maximize else [3, 3, 1, 1])
    assert "2 of 4 rows have an infinite result" in told(found, "")
    with pytest.raises(InputError, match="none of its 2 rows has a result"):
        align([task(lr=[0.1] * 2, y=[np.inf, -np.inf])], SPACE)


def test_a_parameter_that_most_rows_lack_is_taken_as_not_recorded() -> None:
    """As in a conditional space: otherwise most of the source would be lost."""
    found = align([task(lr=[0.1, 0.1, 0.1], kind=["a", "b", "a"], depth=[None, None, 2])], SPACE)
    assert found.datasets[0].n == 3
    assert found.datasets[0].unseen == (1,)
    assert "2 of 3 rows lack it" in told(found, "depth")


def test_a_column_of_the_wrong_kind_is_taken_as_not_recorded() -> None:
    """Text where numbers are needed, numbers where categories are: told as a warning."""
    found = align([task(lr=["fast", "slow"], kind=[0.25, 0.5], depth=[1, 2])], SPACE)
    assert found.datasets[0].unseen == (0, 2, 3)
    assert {d.parameter for d in found.warnings} == {"lr", "kind"}
    assert "'fast'" in told(found, "lr")
    many = align([task(depth=range(30), kind=[f"run {i}" for i in range(30)])], SPACE)
    assert "30 different values" in told(many, "kind")


def test_nothing_in_common_is_an_error() -> None:
    """It names the file, both sets of names and the remedy; the wrong kind alone is no common ground."""
    with pytest.raises(InputError, match=r"old\.csv has nothing in common.*LR, Depth.*lr, depth, kind.*Rename"):
        align([task(LR=[0.1], Depth=[1])], SPACE)
    with pytest.raises(InputError, match="numbers are needed, but it holds 'fast'"):
        align([task(lr=["fast"])], SPACE)
    with pytest.raises(InputError, match="none of its 2 rows"):
        align([task(lr=[0.1, 0.1], y=[np.nan, np.nan])], SPACE)


def test_a_stranger_among_others_may_be_left_out() -> None:
    """With a warning, if the caller is not strict; that none is left is for the caller to judge."""
    found = align([task(LR=[0.1]), task("near", lr=[0.1])], SPACE, strict=False)
    assert [data.name for data in found.datasets] == ["near"]
    assert [d.source for d in found.warnings] == ["old"]
    with pytest.raises(InputError, match=r"old\.csv has nothing in common"):
        align([task(LR=[0.1]), task("near", lr=[0.1])], SPACE)
    assert align([task(LR=[0.1]), task("near", LR=[0.1])], SPACE, strict=False).datasets == ()


def test_a_source_of_another_branch_is_left_out() -> None:
    """If the study has its parameters elsewhere it is no mistake."""
    found = align([task(branch=[0.1]), task("near", lr=[0.1])], SPACE, elsewhere={"branch", "lr"})
    assert [data.name for data in found.datasets] == ["near"]
    assert "old: not used" in str(found)
    assert align([task(branch=[0.1])], SPACE, elsewhere={"branch"}).datasets == ()


@pytest.mark.parametrize("minimize", [True, False])
@pytest.mark.parametrize("maximize", [True, False, None])
def test_smaller_is_better_inside(minimize: bool, maximize: bool | None) -> None:
    """The best row of the source is the lowest one, and a source of the other direction is told."""
    found = align([task(lr=[0.1, 0.1], y=[1.0, 2.0], maximize=maximize)], SPACE, minimize=minimize)
    larger = (not minimize) if maximize is None else maximize
    assert found.datasets[0].y.tolist() == ([-1.0, -2.0] if larger else [1.0, 2.0])
    turned = [d for d in found.warnings if "turned round" in d.what]
    assert len(turned) == (maximize is not None and maximize == minimize)


def test_how_a_source_was_learnt_is_noted_in_the_report() -> None:
    """Of those of which there is something to say; it is no warning."""
    tasks = [RawTask(name, pd.DataFrame({"x": [0.1, 0.5, 0.9]}), np.array([1.0, 2.0, 3.0])) for name in ("a", "b")]
    plain = align(tasks, {"x": FloatDistribution(0, 1)})
    noted = plain.noting(["", "learnt from 20,000 rows, predictions through 2,000 points"])
    assert [str(d) for d in noted.decisions if d not in plain.decisions] == [
        "b: learnt from 20,000 rows, predictions through 2,000 points"
    ]
    assert noted.warnings == plain.warnings
    assert "through 2,000 points" in str(noted)
    assert plain.noting(["", ""]) is plain
