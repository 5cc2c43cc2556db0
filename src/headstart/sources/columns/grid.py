"""Steps that all values of a column lie on: 0.4, 0.8, 1.2, 1.6; multiples of 5."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

# Values that happen to lie on every k-th place do so with a chance of k^(1 − n); this must be rarer than 1 in so many
_CHANCE = 50
_MOST_DIGITS = 9


def common_step(values: Iterable[float]) -> float | None:
    """The step between all values, counted from the lowest, if they have one that is more than their last digit.

    0.1, 0.2, 0.4 have none: all numbers with one decimal lie on tenths.
    """
    exact = sorted({Fraction(f"{value:.12g}") for value in values})
    if len(exact) < 3:
        return None
    digits = max(_decimals(value) for value in exact)
    if digits > _MOST_DIGITS:
        return None
    places = [int((value - exact[0]) * 10**digits) for value in exact]
    step = math.gcd(*places)
    if step < 2 or float(step) ** (len(exact) - 1) < _CHANCE:
        return None
    return float(Fraction(step, 10**digits))


def _decimals(value: Fraction) -> int:
    digits = 0
    while value.denominator != 1 and digits <= _MOST_DIGITS:
        value, digits = value * 10, digits + 1
    return digits
