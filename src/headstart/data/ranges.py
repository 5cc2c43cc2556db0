"""What values a parameter may have, said without Optuna; ``Space.of`` takes these and Optuna's distributions alike.

FloatRange(low, high)              every number between; with ``log`` ratios count, with ``step`` it is a grid
IntRange(low, high)                every integer between, or every ``step``-th
Choices(choices)                   categories
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias, Union

from headstart.errors import InputError

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution


@dataclass(frozen=True)
class FloatRange:
    """The numbers from ``low`` to ``high``, or of low, low + step … high; both ends belong to it."""

    low: float
    high: float
    log: bool = False
    step: float | None = None

    def __post_init__(self) -> None:
        """Check the ends, and make floats of them."""
        for name in ("low", "high"):
            object.__setattr__(self, name, float(getattr(self, name)))
        _require_range(self.low, self.high, self.log, self.step)
        if self.log and self.step is not None:
            raise InputError(f"A range cannot have both log and a step, but step is {self.step}. Leave one out.")

    def single(self) -> bool:
        """Whether there is nothing to choose."""
        return self.low == self.high


@dataclass(frozen=True)
class IntRange:
    """The integers low, low + step … high; both ends belong to it."""

    low: int
    high: int
    log: bool = False
    step: int = 1

    def __post_init__(self) -> None:
        """Raise an ``InputError`` unless the ends are in order and the grid meets both."""
        if not all(type(value) is int for value in (self.low, self.high, self.step)):
            raise InputError(f"An IntRange must have integers, but it has {self.low!r}, {self.high!r}, {self.step!r}.")
        _require_range(self.low, self.high, self.log, self.step)
        if self.log and self.step != 1:
            raise InputError(f"A range cannot have both log and a step, but step is {self.step}. Leave one out.")

    def single(self) -> bool:
        """Whether there is nothing to choose."""
        return self.low == self.high


@dataclass(frozen=True)
class Choices:
    """Categories, none of which is nearer to another than to a third."""

    choices: tuple[Any, ...]

    def __post_init__(self) -> None:
        """Check that there are some, and make a tuple of them."""
        object.__setattr__(self, "choices", tuple(self.choices))
        if not self.choices:
            raise InputError("There are no choices: give at least one category.")

    def single(self) -> bool:
        """Whether there is nothing to choose."""
        return len(self.choices) == 1


def _require_range(low: float, high: float, log: bool, step: float | None) -> None:
    if not (low <= high and math.isfinite(float(high) - float(low))):
        raise InputError(f"A range must be finite with low ≤ high, but it is {low} … {high}.")
    if log and low <= 0:
        raise InputError(f"A log range must begin above 0, but it is {low} … {high}. Raise low, or leave log out.")
    if step is not None and not (step > 0 and (Decimal(str(high)) - Decimal(str(low))) % Decimal(str(step)) == 0):
        raise InputError(f"high must be a number of positive steps from low, but it is {low} … {high} by {step}.")


Distribution: TypeAlias = Union["BaseDistribution", FloatRange, IntRange, Choices]
