"""A numeric parameter under rules: its values in its own units, and the grid that it is left with.

An even grid and steps from a start are progressions, and what they have in common is one again: 0, 5, 10 … of the whole
numbers, or 4, 16, 28 … of 0, 4, 8 … and 1, 4, 7 … . They are worked out in fractions of the decimals that people wrote.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from headstart.data.axis import Axis
from headstart.data.rules.rule import OnSteps, rounding

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Grid:
    """The values first, first + step … of which there are ``count``."""

    first: Fraction
    step: Fraction
    count: int

    def values(self, index: Float[Array, "n"]) -> Float[Array, "n"]:
        """The values of these numbers."""
        return float(self.first) + index * float(self.step)

    def index(self, values: Float[Array, "n"]) -> Float[Array, "n"]:
        """Where values lie between them."""
        return (values - float(self.first)) / float(self.step)

    def common(self, other: OnSteps) -> Grid | None:
        """What it shares with the steps of a rule; None if nothing."""
        start, step = _fraction(other.start), _fraction(other.step)
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
class Number:
    """A numeric parameter, between ``low`` and ``high`` in its own units, and on a ``grid`` unless it is continuous.

    ``column`` is where its coordinate is, None if it has a single value and so no coordinate. ``stepped`` says that it
    has fewer values than the axis alone. It is ``empty`` if it has none at all.
    """

    axis: Axis
    low: float
    high: float
    grid: Grid | None
    stepped: bool = False
    empty: bool = False
    pinned: bool = False

    @classmethod
    def of(cls, axis: Axis, steps: Sequence[OnSteps], pinned: float | None = None) -> Number:
        """The number of this axis, with these rules about its steps; pinned, it has that value whatever the axis."""
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
            grid = _stepped(low, high, rule) if grid is None else grid.common(rule)
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
        """Where its coordinate is."""
        return int(self.axis.columns.start) if self.axis.width else None

    @property
    def count(self) -> int | None:
        """How many values it has; None if it is continuous."""
        return 1 if self.low == self.high else None if self.grid is None else self.grid.count

    # ── values and coordinates ────────────────────────────────────────────────────────────────────────────────────

    @property
    def ends(self) -> tuple[float, float]:
        """What the coordinates 0 and 1 stand for, as logs on a log axis."""
        own: Any = self.axis.distribution
        low, high = float(own.low), float(own.high)
        if self.axis.log:
            half = 0.5 if self.axis.integer else 0.0
            return math.log(low - half), math.log(high + half)
        if self.axis.count is None:
            return low, high
        return low - float(own.step) / 2, high + float(own.step) / 2

    def values(self, u: Float[Array, "n"]) -> Float[Array, "n"]:
        """The values at coordinates of points of the space."""
        if self.column is None or self.pinned:
            return np.full(len(u), self.low)
        own: Any = self.axis.distribution
        start, end = self.ends
        z = start + u * (end - start)
        z = np.exp(z) if self.axis.log else z
        if self.axis.integer:
            z = np.round(z)
        elif self.axis.count is not None:
            grid = Grid(_fraction(own.low), _fraction(own.step), self.axis.count)
            z = grid.values(np.round(grid.index(z)))
        return np.asarray(z.clip(float(own.low), float(own.high)))

    def coordinates(self, z: Float[Array, "n"]) -> Float[Array, "n"]:
        """The coordinates of values."""
        start, end = self.ends
        return np.asarray((((np.log(z) if self.axis.log else z) - start) / (end - start)).clip(0.0, 1.0))

    # ── what is left of it between bounds ─────────────────────────────────────────────────────────────────────────

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

    def nearest(self, z: Float[Array, "n"], low: float, high: float) -> Float[Array, "n"]:
        """The nearest of its values between these two of them."""
        z = z.clip(low, high)
        if self.grid is not None:
            z = self.grid.values(np.round(self.grid.index(z))).clip(low, high)
        return np.asarray(z)

    def shares(self, u: Float[Array, "n"], low: float, high: float) -> Float[Array, "n"]:
        """The values at these shares, in [0, 1], of what lies between two of them, as the axis measures it."""
        if low == high:
            return np.full(len(u), low)
        if self.grid is not None and not self.axis.log:
            i, j = np.round(self.grid.index(np.array([low, high])))
            return self.grid.values(np.minimum(i + np.floor(u * (j - i + 1)), j)).clip(low, high)
        start, end = self.coordinates(np.array([low, high]))
        a, b = self.ends
        z = a + (start + u * (end - start)) * (b - a)
        return self.nearest(np.exp(z) if self.axis.log else z, low, high)


def _stepped(low: float, high: float, rule: OnSteps) -> Grid | None:
    start, step = _fraction(rule.start), _fraction(rule.step)
    room = Fraction(rounding(low, high))
    first = math.ceil((_fraction(low) - room - start) / step)
    last = math.floor((_fraction(high) + room - start) / step)
    return Grid(start + first * step, step, last - first + 1) if last >= first else None


def _fraction(value: float) -> Fraction:
    return Fraction(Decimal(str(value)))
