"""Objectives and limits, as data."""

from __future__ import annotations

import math

import pytest
from tests.problems import points, tensor

from headstart import Dataset, InputError
from headstart.data.outcomes import Goal, Limit, Outcomes

YIELD, COST = Goal("yield", maximize=True), Goal("cost")
PURE, FAST = Limit("impurity", at_most=0.5), Limit("turnover", at_least=20)


def test_outcomes_are_objectives_then_limits_in_their_order() -> None:
    """By position and by name."""
    outcomes = Outcomes((YIELD, COST), (PURE, FAST))
    assert outcomes.names == ("yield", "cost", "impurity", "turnover")
    assert list(outcomes) == [YIELD, COST, PURE, FAST]
    assert outcomes["turnover"] is FAST
    with pytest.raises(InputError, match="There is no outcome 'colour': there are yield, cost"):
        outcomes["colour"]


@pytest.mark.parametrize(("outcome", "sign"), [(YIELD, -1), (COST, 1), (PURE, 1), (FAST, -1)])
def test_what_is_to_be_high_is_turned_round(outcome: Goal | Limit, sign: int) -> None:
    """Inside, smaller is better; known errors stay what they are."""
    y = tensor([1.0, -2.0])
    assert outcome.sign == sign
    task = Dataset(points(2, seed=0), y, name="May")
    inward = outcome.signed(task)
    assert inward.y.tolist() == (sign * y).tolist()
    assert inward.name == "May"
    known = outcome.signed(Dataset(task.X, y, error_var=tensor([0.1, 0.2])))
    assert known.error_var is not None
    assert known.error_var.tolist() == [0.1, 0.2]


def test_a_limit_holds_on_one_side_and_at_the_limit_itself() -> None:
    """Before the sign and behind it alike."""
    assert PURE.holds(0.5)
    assert PURE.holds(-3.0)
    assert not PURE.holds(0.51)
    assert FAST.holds(20)
    assert FAST.holds(1e6)
    assert not FAST.holds(19.9)
    assert (PURE.bound, FAST.bound) == (0.5, -20)
    assert (str(PURE), str(FAST)) == ("impurity <= 0.5", "turnover >= 20")


def test_a_range_holds_between_its_ends_and_a_bound_takes_an_end_away() -> None:
    """Behind the sign as before it; an end that no value can be beyond is none."""
    neutral = Limit("pH", at_least=6.5, at_most=7.5)
    assert [neutral.holds(y) for y in (6.4, 6.5, 7.5, 7.6)] == [False, True, True, False]
    assert (neutral.sign, neutral.interval, str(neutral)) == (1, (6.5, 7.5), "6.5 <= pH <= 7.5")
    assert (FAST.interval, PURE.interval) == ((-math.inf, -20), (-math.inf, 0.5))
    assert Limit("share", at_least=20, at_most=100, low=0, high=100).interval == (20, math.inf)
    with pytest.raises(InputError, match="always holds"):
        Limit("share", at_least=0, at_most=100, low=0, high=100)
    with pytest.raises(InputError, match="never holds"):
        Limit("share", at_least=-20, at_most=-10, low=0, high=100)


def test_a_loss_is_what_is_to_be_small() -> None:
    """Before the sign, or as a distance to the target; a threshold is one."""
    goals = (Goal("yield", maximize=True, threshold=60), Goal("cost"), Goal("pH", target=7, threshold=6))
    assert Outcomes(goals).losses({"pH": 7.5, "yield": 80, "cost": 3, "colour": 1}).tolist() == [-80, 3, 0.5]
    assert [goal.reference for goal in goals] == [-60, None, 1]
    assert [goal.words for goal in goals] == ["maximised, at least 60", "minimised", "near 7, at most 1 away"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Outcomes(()), "at least one objective"),
        (lambda: Outcomes((), (PURE,)), "at least one objective"),
        (lambda: Outcomes((YIELD,), (Limit("yield", at_least=3),)), "'yield' is an objective and has a limit too"),
        (lambda: Outcomes((YIELD, Goal("yield"))), "'yield' is there twice"),
        (lambda: Outcomes((YIELD,), (PURE, Limit("impurity", at_least=0))), "'impurity' is there twice"),
        (lambda: Outcomes(tuple(Goal(c) for c in "abcde")), "At most 4 objectives"),
        (lambda: Outcomes((PURE,)), "Expected a Goal"),  # type: ignore[arg-type]
        (lambda: Outcomes((YIELD,), (COST,)), "Expected a Limit"),  # type: ignore[arg-type]
        (lambda: Goal(""), "must have a name"),
        (lambda: Limit("impurity"), "at_most, at_least or both, but there is neither"),
        (lambda: Limit("impurity", at_most=0, at_least=1), "from a lower to a higher value, but it is from 1 to 0"),
        (lambda: Goal("pH", maximize=True, target=7), "near 7 and maximised too"),
        (lambda: Goal("pH", target=7, threshold=7), "threshold of 'pH' is its target"),
        (lambda: Goal("cost", threshold=float("inf")), "The threshold of 'cost' must be a number, but it is inf"),
        (lambda: Goal("yield", high=100, threshold=120), "threshold of 'yield' is 120, but it is at most 100"),
        (lambda: Outcomes((YIELD,), (PURE,), least_probability=1), "from 0 to below 1"),
        (lambda: Limit("impurity", at_most=float("nan")), "must be a number, but it is nan"),
        (lambda: Limit("impurity", at_most="0.5"), "must be a number, but it is '0.5'"),  # type: ignore[arg-type]
    ],
)
def test_outcomes_that_make_no_sense_are_refused(make, message: str) -> None:
    """With what is wrong and what to do."""
    with pytest.raises(InputError, match=message):
        make()


def test_what_is_given_by_name_must_be_known() -> None:
    """Nothing is matched by position, and a misspelt name is not left out in silence."""
    outcomes = Outcomes((YIELD,), (PURE,))
    assert outcomes.in_order({"impurity": 2, "yield": 1}, 0, "sources") == (1, 2)
    assert outcomes.in_order({"impurity": 2}, 0, "sources") == (0, 2)
    with pytest.raises(InputError, match=r"sources are given by outcome \(yield, impurity\), but 'impurty' is none"):
        outcomes.in_order({"yield": 1, "impurty": 3}, 0, "sources")
