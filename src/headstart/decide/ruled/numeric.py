"""``NumericRange``: the values that its own rules leave to a numeric parameter.

An even grid and the steps of a rule are arithmetic progressions, and so is their intersection: 0, 5, 10 … of the
integers, or 4, 16, 28 … of 0, 4, 8 … and 1, 4, 7 … . It is computed in fractions of the decimals that were written.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray

from headstart.data.axis import Axis
from headstart.data.ranges import rounding
from headstart.data.rules.rule import OnSteps

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Grid:
    """The ``count`` values first, first + step …."""

    first: Fraction
    step: Fraction
    count: int

    @classmethod
    def between(cls, low: float, high: float, rule: OnSteps) -> Grid | None:
        """The values of the rule's steps from ``low`` to ``high``, up to rounding; None if there are none."""
        start, step, room = _fraction(rule.start), _fraction(rule.step), Fraction(rounding(low, high))
        first = math.ceil((_fraction(low) - room - start) / step)
        last = math.floor((_fraction(high) + room - start) / step)
        return cls(start + first * step, step, last - first + 1) if last >= first else None

    def values(self, index: Float[Array, "n"]) -> Float[Array, "n"]:
        """The values with these numbers."""
        return float(self.first) + index * float(self.step)

    def index(self, values: Float[Array, "n"]) -> Float[Array, "n"]:
        """The numbers of values, fractions of which lie between two of them."""
        return (values - float(self.first)) / float(self.step)

    def common(self, rule: OnSteps) -> Grid | None:
        """The values that are on the rule's steps too; None if there are none."""
        start, step = _fraction(rule.start), _fraction(rule.step)
        unit = math.lcm(*(v.denominator for v in (self.first, self.step, start, step)))
        a, s, b, t = (int(v * unit) for v in (self.first, self.step, start, step))
        # a + i s ≡ b (mod t)
        shared = math.gcd(s, t)
        if (b - a) % shared:
            return None
        period = t // shared
        first = ((b - a) // shared) * pow(s // shared, -1, period) % period if period > 1 else 0
        if first >= self.count:
            return None
        return Grid(self.first + first * self.step, self.step * period, (self.count - 1 - first) // period + 1)


@dataclass(frozen=True)
class NumericRange:
    """A numeric parameter from ``low`` to ``high`` in its own units, on a ``grid`` unless it is continuous.

    ``stepped`` says that rules leave fewer values than the axis alone has, ``empty`` that they leave none. A ``pinned``
    parameter has one value, whatever the axis.
    """

    axis: Axis
    low: float
    high: float
    grid: Grid | None
    stepped: bool = False
    empty: bool = False
    pinned: bool = False

    @classmethod
    def of(cls, axis: Axis, steps: Sequence[OnSteps], pinned: float | None = None) -> NumericRange:
        """What these rules leave of an axis, which may be pinned to a value."""
        if pinned is not None:
            return cls(axis, float(pinned), float(pinned), None, pinned=True)
        own: Any = axis.distribution  # each kind has its own attributes
        low, high = float(own.low), float(own.high)
        grid: Grid | None = None
        if axis.count == 1:
            high = low
            grid = Grid(_fraction(own.low), Fraction(1), 1) if steps else None
        elif axis.count is not None:
            grid = Grid(_fraction(own.low), _fraction(own.step), axis.count)
        for rule in steps:
            grid = Grid.between(low, high, rule) if grid is None else grid.common(rule)
            if grid is None:
                return cls(axis, low, high, None, stepped=True, empty=True)
        if steps and grid is not None:
            ends = grid.values(np.array([0.0, grid.count - 1]))
            low, high = float(ends[0]), float(ends[1])
        return cls(axis, low, high, grid, stepped=bool(steps))

    @property
    def name(self) -> str:
        """The parameter's name."""
        return self.axis.name

    @property
    def column(self) -> int | None:
        """The column of its coordinate; None if the axis has a single value and so no coordinate."""
        return int(self.axis.columns.start) if self.axis.width else None

    def values(self, X: Float[Array, "n d"]) -> Float[Array, "n"]:
        """The values at points of the space."""
        if self.column is None or self.pinned:
            return np.full(len(X), self.low)
        return self.axis.numbers(torch.from_numpy(X[:, self.column])).numpy()

    def coordinates(self, values: Float[Array, "n"]) -> Float[Array, "n"]:
        """The coordinates of values, those outside the range held at its ends."""
        return self.axis.coordinates(torch.from_numpy(values)).clamp(0.0, 1.0).numpy()

    def within(self, low: float, high: float) -> tuple[float, float] | None:
        """The lowest and the highest of its values from ``low`` to ``high``, up to rounding; None if there are none."""
        low, high = max(low, self.low), min(high, self.high)
        if self.grid is not None:
            first, last = self.grid.index(np.array([low - rounding(low), high + rounding(high)]))
            i, j = math.ceil(first), math.floor(last)
            if i > j:
                return None
            ends = self.grid.values(np.array([float(i), float(j)])).clip(self.low, self.high)
            return float(ends[0]), float(ends[1])
        if low > high + rounding(low, high):
            return None
        return (low, high) if low <= high else (high, high)

    def nearest(self, values: Float[Array, "n"], low: float, high: float) -> Float[Array, "n"]:
        """The nearest of its values between two of them."""
        values = values.clip(low, high)
        if self.grid is not None:
            values = self.grid.values(np.round(self.grid.index(values))).clip(low, high)
        return np.asarray(values)

    def at_quantiles(self, u: Float[Array, "n"], low: float, high: float) -> Float[Array, "n"]:
        """Quantiles u ∈ [0, 1] of its values between two of them, uniform on the scale of the axis."""
        if low == high:
            return np.full(len(u), low)
        if self.grid is not None and not self.axis.log:
            i, j = np.round(self.grid.index(np.array([low, high])))
            return self.grid.values(np.minimum(i + np.floor(u * (j - i + 1)), j)).clip(low, high)
        start, end = self.coordinates(np.array([low, high]))
        a, b = self.axis.scale
        values = a + (start + u * (end - start)) * (b - a)
        return self.nearest(np.exp(values) if self.axis.log else values, low, high)


def _fraction(value: float) -> Fraction:
    return Fraction(Decimal(str(value)))
