"""``NumericRange``: the values that its own rules leave to a numeric parameter.

An even grid and the steps of a rule are arithmetic progressions, and so is their intersection: 0, 5, 10 … of the
integers, or 4, 16, 28 … of 0, 4, 8 … and 1, 4, 7 … . It is computed in fractions of the decimals that were written.
Of a list of numbers those are left that are on the steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray

from headstart.data.axis import Axis
from headstart.data.ranges import rounding
from headstart.data.rules.rule import OnSteps

Array = NDArray[np.float64]
_Progression = tuple[Fraction, Fraction, int]  # the first value, the step and the number of values


@dataclass(frozen=True)
class NumericRange:
    """A numeric parameter from ``low`` to ``high`` in its own units.

    On a grid it has the ``count`` values ``first``, ``first`` + ``step`` …, no value if that is 0; a continuous one has
    a ``count`` of None. Discrete numbers have the values ``listed`` instead. ``stepped`` says that rules leave fewer
    values than the axis alone has. A ``pinned`` parameter has one value, whatever the axis.
    """

    axis: Axis
    low: float
    high: float
    first: float = 0.0
    step: float = 1.0
    count: int | None = None
    stepped: bool = False
    pinned: bool = False
    listed: tuple[float, ...] = ()

    @classmethod
    def of(cls, axis: Axis, steps: Sequence[OnSteps], pinned: float | None = None) -> NumericRange:
        """What these rules leave of an axis, which may be pinned to a value."""
        if pinned is not None:
            return cls(axis, float(pinned), float(pinned), pinned=True)
        own = axis.distribution
        if axis.listed:
            values = np.array(own.values, dtype=np.float64)
            for rule in steps:
                values = values[rule.satisfied({axis.name: values})]
            ends = (float(own.low), float(own.high)) if not len(values) else (float(values[0]), float(values[-1]))
            return cls(axis, *ends, count=len(values), stepped=bool(steps), listed=tuple(values.tolist()))
        low, high = float(own.low), float(own.low if axis.count == 1 else own.high)
        grid: _Progression | None = None
        if axis.count == 1 and steps:
            grid = _fraction(own.low), Fraction(1), 1
        elif axis.count is not None and axis.count > 1:
            grid = _fraction(own.low), _fraction(own.step), axis.count
        for rule in steps:
            grid = _between(low, high, rule) if grid is None else _common(*grid, rule)
            if grid is None:
                return cls(axis, low, high, count=0, stepped=True)
        if grid is None:
            return cls(axis, low, high)
        first, step, count = float(grid[0]), float(grid[1]), grid[2]
        if steps:
            low, high = first, first + (count - 1) * step
        return cls(axis, low, high, first, step, count, stepped=bool(steps))

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

    def coordinates(self, values: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """The coordinates of values, those outside the range held at its ends."""
        return self.axis.coordinates(torch.from_numpy(values)).clamp(0.0, 1.0).numpy()

    def on_grid(self, index: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """The values of the grid with these numbers."""
        if self.listed:
            return np.asarray(np.array(self.listed)[index.astype(np.int64)])
        return self.first + index * self.step

    def index(self, values: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """The numbers of values on the grid, fractions of which lie between two of them."""
        if self.listed:
            k = len(self.listed)
            return np.asarray(np.interp(values, self.listed, np.arange(float(k)), left=-0.5, right=k - 0.5))
        return (values - self.first) / self.step

    def within(self, low: float, high: float) -> tuple[float, float] | None:
        """The lowest and the highest of its values from ``low`` to ``high``, up to rounding; None if there are none."""
        low, high = max(low, self.low), min(high, self.high)
        if self.count is not None:
            first, last = self.index(np.array([low - rounding(low), high + rounding(high)]))
            i, j = math.ceil(first), math.floor(last)
            if i > j:
                return None
            ends = self.on_grid(np.array([float(i), float(j)])).clip(self.low, self.high)
            return float(ends[0]), float(ends[1])
        if low > high + rounding(low, high):
            return None
        return min(low, high), high

    def nearest(self, values: Float[Array, "n"], low: float, high: float) -> Float[Array, "n"]:
        """The nearest of its values between two of them."""
        values = values.clip(low, high)
        if self.count is not None:
            values = self.on_grid(np.round(self.index(values))).clip(low, high)
        return np.asarray(values)

    def at_quantiles(self, u: Float[Array, "n"], low: float, high: float) -> Float[Array, "n"]:
        """Quantiles u ∈ [0, 1] of its values between two of them, uniform on the scale of the axis."""
        if low == high:
            return np.full(len(u), low)
        if self.listed:  # a coordinate is a share of the scale, and not of the values
            own = self.axis.distribution.values
            u = (np.searchsorted(own, self.axis.numbers(torch.from_numpy(u)).numpy()) + 0.5) / len(own)
        if self.listed or (self.count is not None and not self.axis.log):
            i, j = np.round(self.index(np.array([low, high])))
            return self.on_grid(np.minimum(i + np.floor(u * (j - i + 1)), j)).clip(low, high)
        start, end = self.coordinates(np.array([low, high]))
        a, b = self.axis.scale
        values = a + (start + u * (end - start)) * (b - a)
        return self.nearest(np.exp(values) if self.axis.log else values, low, high)


def _between(low: float, high: float, rule: OnSteps) -> _Progression | None:
    """The values of the rule's steps from ``low`` to ``high``, up to rounding; None if there are none."""
    start, step, room = _fraction(rule.start), _fraction(rule.step), Fraction(rounding(low, high))
    first = math.ceil((_fraction(low) - room - start) / step)
    last = math.floor((_fraction(high) + room - start) / step)
    return (start + first * step, step, last - first + 1) if last >= first else None


def _common(first: Fraction, step: Fraction, count: int, rule: OnSteps) -> _Progression | None:
    """Those of the ``count`` values first, first + step … that are on the rule's steps too; None if there are none."""
    start, pace = _fraction(rule.start), _fraction(rule.step)
    unit = math.lcm(*(v.denominator for v in (first, step, start, pace)))
    a, s, b, t = (int(v * unit) for v in (first, step, start, pace))
    # a + i s ≡ b (mod t)
    shared = math.gcd(s, t)
    if (b - a) % shared:
        return None
    period = t // shared
    i = ((b - a) // shared) * pow(s // shared, -1, period) % period if period > 1 else 0
    return (first + i * step, step * period, (count - 1 - i) // period + 1) if i < count else None


def _fraction(value: float) -> Fraction:
    return Fraction(Decimal(str(value)))
