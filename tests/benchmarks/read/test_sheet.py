"""How sheets show numbers."""

from __future__ import annotations

import math

import pytest

from benchmarks.read.sheet import compact


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        *[(0.01234, "0.0123"), (-998.7, "-999"), (2100.4, "2100"), (-35500.0, "-35500"), (2.5e6, "2.5e+06")],
        *[(math.nan, ""), (7, "7"), ("text", "text")],
    ],
)
def test_thousands_are_whole_numbers(value: float | str, shown: str) -> None:
    """Three digits elsewhere; not a number is nothing, whole numbers and words are themselves."""
    assert compact(value) == shown
