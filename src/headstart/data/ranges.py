"""What values a parameter may have, said without Optuna; ``Space.of`` takes these and Optuna's distributions alike.

FloatRange(low, high)              every number between; with ``log`` ratios count, with ``step`` it is a grid
IntRange(low, high)                every integer between, or every ``step``-th
DiscreteNumbers(values)            these numbers and none between; in their order, as far apart as they are
Choices(choices)                   categories
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeAlias, Union

from headstart.errors import InputError

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

_LISTED = 12  # numbers that a message names
ROUNDING = 1e-9  # of the largest term of a sum, and of 1 at least: numbers that differ by less count as equal


@dataclass(frozen=True)
class FloatRange:
    """A numeric parameter: all numbers from ``low`` to ``high``, or the grid low, low + step … high.

    Args:
        low: The lowest value, which belongs to the range.
        high: The highest value, which belongs to the range too.
        log: Whether the parameter is searched on a log scale; ``low`` must then be above 0, and there is no ``step``.
        step: The distance between the values of a grid; None if the parameter is continuous.

    Raises:
        InputError: The range is empty, infinite, or no whole number of steps long.
    """

    low: float
    high: float
    log: bool = False
    step: float | None = None

    def __post_init__(self) -> None:
        """Check the ends, and make floats of them."""
        for name in ("low", "high"):
            object.__setattr__(self, name, float(getattr(self, name)))
        _require_range(self)


@dataclass(frozen=True)
class IntRange:
    """An integer parameter: low, low + step … high.

    Args:
        low: The lowest value, which belongs to the range.
        high: The highest value, which belongs to the range too.
        log: Whether the parameter is searched on a log scale; ``low`` must then be above 0, and ``step`` 1.
        step: The distance between neighbouring values.

    Raises:
        InputError: An argument is no integer, or the range is empty or no whole number of steps long.
    """

    low: int
    high: int
    log: bool = False
    step: int = 1

    def __post_init__(self) -> None:
        """Raise an ``InputError`` unless the ends are in order and the grid meets both."""
        if not all(type(value) is int for value in (self.low, self.high, self.step)):
            raise InputError(f"An IntRange must have integers, but it has {self.low!r}, {self.high!r}, {self.step!r}.")
        _require_range(self)


@dataclass(frozen=True)
class DiscreteNumbers:
    """An ordered discrete parameter: one of some numbers and none between, such as the radii 0.2, 0.4, 0.8 and 1.6.

    Args:
        values: The numbers, at least one. They are sorted, and each is kept once and as it was given.
        log: Whether ratios count, not differences. By default they do where the values are more even in ratio:
            16, 32, 64, 128.

    Raises:
        InputError: There are no values, one is no finite number, or with ``log`` one is not above 0.
    """

    values: tuple[float, ...]
    log: bool | None = None

    def __post_init__(self) -> None:
        """Check and sort the values, and find the scale where none is given."""
        for value in self.values:
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise InputError(f"DiscreteNumbers must be finite numbers, but one is {value!r}. Take categories.")
        values = tuple({value: value for value in sorted(self.values)})
        if not values:
            raise InputError("There are no values: give at least one number.")
        if self.log and values[0] <= 0:
            raise InputError(f"A log scale needs values above 0, but one is {values[0]}. Leave one of the two out.")
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "log", even_in_ratio(values) if self.log is None else bool(self.log))

    @property
    def low(self) -> float:
        """The lowest value, an integer if all are."""
        return self._end(0)

    @property
    def high(self) -> float:
        """The highest value, an integer if all are."""
        return self._end(-1)

    def _end(self, which: int) -> float:
        whole = all(isinstance(value, int) for value in self.values)
        return self.values[which] if whole else float(self.values[which])


@dataclass(frozen=True)
class Choices:
    """A categorical parameter, any two categories of which are equally far apart.

    Args:
        choices: The categories, at least one; values of any type.

    Raises:
        InputError: There are no choices.
    """

    choices: tuple[Any, ...]

    def __post_init__(self) -> None:
        """Check that there are some, and make a tuple of them."""
        object.__setattr__(self, "choices", tuple(self.choices))
        if not self.choices:
            raise InputError("There are no choices: give at least one category.")


Distribution: TypeAlias = Union["BaseDistribution", FloatRange, IntRange, DiscreteNumbers, Choices]


def _require_range(own: FloatRange | IntRange) -> None:
    low, high, step = own.low, own.high, own.step
    if not (low <= high and math.isfinite(float(high) - float(low))):
        raise InputError(f"A range must be finite with low ≤ high, but it is {low} … {high}.")
    if own.log and low <= 0:
        raise InputError(f"A log range must begin above 0, but it is {low} … {high}. Raise low, or leave log out.")
    if step is not None and not (step > 0 and (Decimal(str(high)) - Decimal(str(low))) % Decimal(str(step)) == 0):
        raise InputError(f"high must be a number of positive steps from low, but it is {low} … {high} by {step}.")
    if own.log and step != (1 if isinstance(own, IntRange) else None):
        raise InputError(f"A range cannot have both log and a step, but step is {step}. Leave one out.")


def even_in_ratio(values: Sequence[float]) -> bool:
    """Whether sorted numbers are more even in ratio than in difference: the largest gap by the smallest is less."""
    if len(values) < 3 or values[0] <= 0:
        return False
    ratios, gaps = ([b - a for a, b in pairwise(own)] for own in (list(map(math.log, values)), values))
    return max(ratios) * min(gaps) < max(gaps) * min(ratios) * (1 - ROUNDING)


def has_single_value(distribution: Any) -> bool:
    """Whether there is nothing to choose, also where the ends of a log range are equal up to rounding."""
    if hasattr(distribution, "choices"):
        return len(distinct(distribution.choices)) == 1
    start, end = scale_ends(distribution)
    return start == end or distribution.low == distribution.high


def scale_ends(distribution: Any) -> tuple[float, float]:
    """Both ends of a numeric range as it is searched: logs on a log scale, half an integer further for integers.

    Those of discrete numbers are half their mean gap further: values at equal gaps are where those of a grid are.
    """
    low, high = distribution.low, distribution.high
    if isinstance(distribution, DiscreteNumbers) and low < high:
        start, end = (math.log(low), math.log(high)) if distribution.log else (low, high)
        beyond = 0.5 * (end - start) / (len(distribution.values) - 1)
        return start - beyond, end + beyond
    if not distribution.log:
        return low, high
    half = 0.5 if isinstance(low, int) else 0.0
    return math.log(low - half), math.log(high + half)


def span_in_words(distribution: Any) -> str:
    """The values of a numeric parameter in a message."""
    if isinstance(distribution, DiscreteNumbers):
        return numbers_in_words(distribution.values)
    step = getattr(distribution, "step", None)
    return f"{distribution.low:g} … {distribution.high:g}" + ("" if step is None else f" by {step:g}")


def numbers_in_words(values: Sequence[float]) -> str:
    """Numbers in a message; of many the first ones and the last."""
    shown = [f"{value:.12g}" for value in values]
    return ", ".join(shown if len(shown) <= _LISTED else [*shown[: _LISTED - 1], "…", shown[-1]])


def rounding(*terms: float) -> float:
    """How far two sums of such terms may differ and still count as equal."""
    return ROUNDING * max(1.0, *(abs(term) for term in terms))


def distinct(categories: Sequence[Any]) -> tuple[Any, ...]:
    """The categories without repetitions, True and 1 being two."""
    found: list[Any] = []
    for category in categories:
        if not any(identical_category(category, other) for other in found):
            found.append(category)
    return tuple(found)


def identical_category(a: Any, b: Any) -> bool:
    """Whether two categories are equal and of one type: True and 1 are not."""
    return type(a) is type(b) and same_category(a, b)


def same_category(a: Any, b: Any) -> bool:
    """Whether two categories count as equal: 1 and 1.0 do, and so do two NaN."""
    both_nan = all(isinstance(v, Real) and math.isnan(v) for v in (a, b))
    try:
        return both_nan or bool(a == b)
    except (TypeError, ValueError):  # a value whose comparisons are not a truth value, such as pandas.NA
        return a is b
