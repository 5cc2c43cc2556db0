"""Rules as data."""

from __future__ import annotations

import math
from typing import Any

import pytest

from headstart import Choices, FloatRange, InputError, IntRange, Space
from headstart.data.rules.rule import (
    Clause,
    FixedValue,
    Forbidden,
    LinearRule,
    OnSteps,
    Relation,
    SettingRule,
    require_rule,
)

SPACE = Space.of({"A": FloatRange(0, 1), "B": FloatRange(0, 1), "n": IntRange(0, 9), "s": Choices(("x", "y"))})
SUM = LinearRule((("A", 1.0), ("B", 1.0)), Relation.EQUAL, 1.0)
HOT = Forbidden((Clause("A", Relation.ABOVE, 0.5), Clause("s", Relation.EQUAL, "x")))


@pytest.mark.parametrize(
    ("rule", "row", "kept"),
    [
        (SUM, {"A": 0.1, "B": 0.9}, True),
        (SUM, {"A": 0.1 + 0.2, "B": 0.7}, True),  # 0.30000000000000004
        (SUM, {"A": 0.1, "B": 0.9 + 1e-7}, False),
        (SUM, {"A": 0.1}, True),
        (LinearRule((("A", 2.0),), Relation.AT_MOST, 1.0), {"A": 0.5}, True),
        (LinearRule((("A", 2.0),), Relation.AT_LEAST, 1.0), {"A": 0.49}, False),
        (HOT, {"A": 0.6, "s": "x"}, False),
        (HOT, {"A": 0.5, "s": "x"}, True),
        (HOT, {"A": 0.6, "s": "y"}, True),
        (HOT, {"A": 0.6}, True),
        (Forbidden((Clause("A", Relation.AT_LEAST, 0.5),)), {"A": 0.5}, False),
        (Forbidden((Clause("A", Relation.BELOW, 0.5),)), {"A": 0.4}, False),
        (Forbidden((Clause("A", Relation.AT_MOST, 0.5),)), {"A": 0.6}, True),
        (Forbidden((Clause("n", Relation.OTHER, 3),)), {"n": 3}, True),
        (Forbidden((Clause("s", Relation.OTHER, "x"),)), {"s": "y"}, False),
        (FixedValue("n", 3), {"n": 3.0}, True),
        (FixedValue("s", "x"), {"s": "y"}, False),
        (OnSteps("A", 0.1, 0.0), {"A": 0.30000000000000004}, True),
        (OnSteps("A", 0.1, 0.05), {"A": 0.3}, False),
    ],
)
def test_a_row_keeps_a_rule_or_breaks_it(rule: SettingRule, row: dict[str, Any], kept: bool) -> None:
    """Up to the rounding of decimals; a row that lacks a parameter keeps it."""
    assert rule.holds(row) is kept


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LinearRule((), Relation.EQUAL, 1.0), "needs parameters"),
        (lambda: LinearRule((("A", 0.0),), Relation.EQUAL, 1.0), "factors that are not 0"),
        (lambda: LinearRule((("A", 1.0),), Relation.EQUAL, math.nan), "finite"),
        (lambda: LinearRule((("A", 1.0),), Relation.ABOVE, 1.0), "has ≤, ≥ or ="),
        (lambda: LinearRule((("A", 1.0), ("A", 2.0)), Relation.EQUAL, 1.0), "comes twice"),
        (lambda: Forbidden(()), "at least one condition"),
        (lambda: OnSteps("A", -1.0, 0.0), "above 0, but it is -1"),
        (lambda: OnSteps("A", 1.0, math.inf), "start at a number"),
        (lambda: require_rule(FixedValue("A", "x"), SPACE), "'A' is a number, but 'x' is none"),
        (lambda: require_rule(FixedValue("s", "z"), SPACE), "'s' is one of x, y, but never z"),
        (lambda: require_rule(LinearRule((("s", 1.0),), Relation.EQUAL, 1.0), SPACE), "cannot be added up"),
        (lambda: require_rule(Forbidden((Clause("s", Relation.ABOVE, "x"),)), SPACE), "no order"),
        (lambda: require_rule(OnSteps("s", 1.0, 0.0), SPACE), "no steps"),
        (lambda: require_rule(OnSteps("Aa", 1.0, 0.0), SPACE), "no parameter 'Aa'. Did you mean A"),
    ],
)
def test_what_cannot_be_a_rule_is_refused(make: Any, message: str) -> None:
    """When it is made, or when it meets a space that it is not about."""
    with pytest.raises(InputError, match=message):
        make()
