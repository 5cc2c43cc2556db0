"""Lists of candidates as rows of values."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from headstart import Candidates, Choices, FloatRange, InputError, IntRange, Space
from headstart.data.conditions import Condition
from headstart.data.rules.text import parse_rule

SPACE = Space.of(
    {"T": FloatRange(20, 100), "n": IntRange(0, 10, step=5), "s": Choices(("x", "y")), "g": FloatRange(0, 1)},
    extra_levels={"s": ["of a source"]},
    conditions={"g": Condition("s", without=("x",))},
)
ROWS: list[dict[str, Any]] = [
    {"T": 20, "n": 0, "s": "x"},
    {"T": 60.5, "n": 5, "s": "y", "g": 0.2},
    {"T": 100, "n": 10, "s": "x", "note": "old"},
]


def test_rows_become_points() -> None:
    """In their order, with the space's categories."""
    listed = Candidates.of(SPACE, ROWS)
    torch.testing.assert_close(listed.X, SPACE.encode(ROWS), rtol=0, atol=0)
    assert listed.categories == SPACE.categories


def test_rules_leave_out_rows() -> None:
    """Those that break one are not offered."""
    for rule in ("forbid: T > 60 and s = x", parse_rule("forbid: T > 60 and s = x", SPACE)):
        listed = Candidates.of(SPACE, ROWS, [rule])
        assert [row["n"] for row in SPACE.decode(listed.X)] == [0, 5]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"T": 101}, "Row 1: parameter 'T' = 101 is outside 20 … 100"),
        ({"n": 4}, "Row 1: parameter 'n' = 4 is outside 0 … 10 by 5"),
        ({"s": "of a source"}, "Row 1: parameter 's' = 'of a source' is none of 'x', 'y'"),
        ({"s": "z"}, "Row 1: parameter 's' = 'z' is none of its categories|none of"),
        ({"s": "x"}, "Row 1 has g = 0.2, but with its other values there is none"),
        ({"T": "hot"}, "'hot' is not a number"),
    ],
)
def test_a_row_outside_the_space_is_refused(change: dict[str, Any], message: str) -> None:
    """With its number and the reason."""
    with pytest.raises(InputError, match=message):
        Candidates.of(SPACE, [ROWS[0], ROWS[1] | change])


def test_a_row_without_a_value_is_refused() -> None:
    """Even if the parameter is not always there."""
    with pytest.raises(InputError, match="Row 0 has no value for parameter 'g'"):
        Candidates.of(SPACE, [{"T": 20, "n": 0, "s": "y"}])


def test_an_empty_list_is_refused() -> None:
    """As is one of which the rules leave nothing."""
    with pytest.raises(InputError, match="no candidates"):
        Candidates.of(SPACE, [])
    with pytest.raises(InputError, match=r"None of the 3 candidates keeps all rules \(T ≤ 10"):
        Candidates.of(SPACE, ROWS, [parse_rule("T <= 10", SPACE)])
