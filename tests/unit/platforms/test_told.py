"""A study that another program keeps: what it is told, and what it is asked."""

from __future__ import annotations

import sys

import pandas as pd
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState

from headstart import Limit, MissingExtraError
from headstart.data.rules.rule import LinearRule, Relation
from headstart.platforms.told import ToldProblem, ToldStudy, ToldTrial, table_of

pytestmark = pytest.mark.usefixtures("quiet_optuna")

SPACE = {
    "x": FloatDistribution(0.0, 1.0),
    "n": IntDistribution(1, 9),
    "c": CategoricalDistribution(("u", "v")),
}


def value(x: float, n: int, c: str) -> float:
    """Lowest, 0, at x = 0.3, n = 5 with u."""
    return (x - 0.3) ** 2 + 0.01 * (n - 5) ** 2 + (0.3 if c == "v" else 0.0)


def past() -> pd.DataFrame:
    rows = [((i * 7 % 20) / 20, 1 + i * 5 % 9, "uv"[i % 2]) for i in range(20)]
    table = pd.DataFrame(rows, columns=["x", "n", "c"])
    return table.assign(loss=[value(*row) for row in rows])


def test_the_first_suggestion_is_informed_and_no_two_awaited_ones_are_alike() -> None:
    """What was asked for is awaited, what was told replaces what was told before."""
    study = ToldStudy([past()], ToldProblem(SPACE, {"loss": False}), {"seed": 0})
    study.tell([])
    first, second = study.ask(), study.ask()
    assert value(**first) < 0.05
    assert first != second
    study.tell([ToldTrial(first, {"loss": value(**first)}), ToldTrial(second, failed=True)])
    study.wait_for({"x": 0.9, "n": 1, "c": "v"})
    states = [trial.state for trial in study.study.get_trials()]
    assert states == [TrialState.COMPLETE, TrialState.FAIL, TrialState.RUNNING]
    assert study.ask() not in (first, second)


def test_the_direction_is_the_goals() -> None:
    """The same numbers to be maximised lead elsewhere."""
    study = ToldStudy([past()], ToldProblem(SPACE, {"loss": True}), {"seed": 0})
    study.tell([])
    assert value(**study.ask()) > 0.5


def test_numbers_outside_the_space_count_and_categories_that_it_does_not_have_do_not() -> None:
    """A range that became narrower keeps its results."""
    study = ToldStudy([past()], ToldProblem(SPACE, {"loss": False}), {"seed": 0})
    study.tell(
        [
            ToldTrial({"x": 1.5, "n": 12, "c": "u"}, {"loss": 2.0}),
            ToldTrial({"x": 0.5, "n": 2, "c": "w"}, {"loss": 0.0}),
            ToldTrial({"x": 0.5, "n": 2, "c": "v"}, {"loss": float("nan")}),
        ]
    )
    told = study.study.get_trials()
    assert [trial.params["x"] for trial in told] == [1.5, 0.5]
    assert [trial.state for trial in told] == [TrialState.COMPLETE, TrialState.RUNNING]
    assert 0 <= study.ask()["x"] <= 1


def test_limits_rules_and_candidates_hold() -> None:
    """A rule binds every suggestion, a limit is learnt from what was measured, and candidates are rows."""
    rules = (LinearRule((("x", 10.0), ("n", 1.0)), Relation.AT_MOST, 6.0),)
    lowest = []
    for limits in ((), (Limit("heat", at_most=0.1),)):
        problem = ToldProblem(SPACE, {"loss": False}, limits=limits, rules=rules)
        study = ToldStudy([past().assign(heat=lambda own: own.x)], problem, {"seed": 0})
        study.tell([ToldTrial({"x": 0.05, "n": 3, "c": "u"}, {"loss": 0.1, "heat": 0.05}, {"loss": 0.01})])
        asked = [study.ask() for _ in range(3)]
        assert all(10 * found["x"] + found["n"] <= 6 for found in asked)
        lowest.append(asked[0]["x"])
    assert lowest[0] > 0.15
    assert lowest[1] < 0.15
    rows = ((0.25, 5, "u"), (0.35, 4, "v"), (0.9, 9, "u"))
    study = ToldStudy([past()], ToldProblem(SPACE, {"loss": False}, candidates=rows), {"seed": 0})
    study.tell([])
    chosen = [tuple(found[name] for name in SPACE) for found in (study.ask() for _ in range(3))]
    assert chosen[0] == rows[0]
    assert sorted(chosen) == sorted(rows)


def test_finished_trials_are_a_source_with_their_errors() -> None:
    """Those that failed or are awaited are none of its rows."""
    trials = [
        ToldTrial({"x": 0.5}, {"loss": 1.0}, {"loss": 0.1}),
        ToldTrial({"x": 0.6}),
        ToldTrial({"x": 0.7}, {"loss": 2.0}, failed=True),
    ]
    table = table_of(trials, "last year")
    assert table.to_dict("records") == [{"x": 0.5, "loss": 1.0, "loss error": 0.1}]
    assert table.attrs["name"] == "last year"


def test_without_ax_it_says_which_extra_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the node is imported."""
    monkeypatch.setitem(sys.modules, "ax.core.data", None)
    monkeypatch.delitem(sys.modules, "headstart.platforms.ax", raising=False)
    with pytest.raises(MissingExtraError, match=r"pip install 'headstart\[ax\]'"):
        __import__("headstart.platforms.ax")
