"""The span of a column's values: whether it is one of ratios, and round ends for it."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

# A positive column is on a log scale if it spans so much and its median lies in the lowest part of the range
_DECADES, _LOW_PART = 2.0, 0.2


def spans_log(values: NDArray[np.float64]) -> bool:
    """Whether values look as if chosen on a log scale: positive, over two decades, and half of them in the low fifth.

    Values that are spread evenly over 0.01 … 10 span as much, but half of them lie above the middle.
    """
    low, high = float(values.min()), float(values.max())
    if low <= 0 or low == high or math.log10(high / low) < _DECADES:
        return False
    return (float(np.median(values)) - low) / (high - low) < _LOW_PART


def outward(low: float, high: float, *, log: bool) -> tuple[float, float]:
    """The range rounded outward: to 1, 2 or 5 times a power of ten on a log scale, else by an eighth at most."""
    if log:
        ends = []
        for value, up in ((low, False), (high, True)):
            power = 10.0 ** math.floor(math.log10(value) + 1e-12)
            steps = [
                m
                for m in (1, 2, 5, 10)
                if (m * power >= value * (1 - 1e-12) if up else m * power <= value * (1 + 1e-12))
            ]
            ends.append(_clean((min if up else max)(steps) * power))
        return ends[0], ends[1]
    span = high - low
    power = 10.0 ** math.floor(math.log10(span))
    step = next(s for s in (power / 10, power / 5, power / 2, power) if span / s <= 20)
    bottom, top = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    if low > 0 >= bottom:  # nobody stirs for 0 minutes
        digit = 10.0 ** math.floor(math.log10(low))
        bottom = math.floor(low / digit + 1e-9) * digit
    return _clean(bottom), _clean(top)


def _clean(value: float) -> float:
    """Without the dust of arithmetic: 0.3, not 0.30000000000000004."""
    return float(f"{value:.12g}")
