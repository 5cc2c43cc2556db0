"""What is measured of every experiment: objectives, and quantities that must stay within a limit.

    Goal("yield", maximize=True)            an objective: as high as possible
    Goal("cost")                            an objective: as low as possible
    Goal("cost", threshold=10)              the same, and above 10 no cost is of interest
    Goal("pH", target=7)                    an objective: as near to 7 as possible
    Limit("impurity", at_most=0.5)          must not be above 0.5, and no lower is any better
    Limit("turnover", at_least=20)          must not be below 20
    Limit("pH", at_least=6.5, at_most=7.5)  must be in this range
    Goal("yield", maximize=True, low=0, high=100)      and no yield is below 0 or above 100 (data.bounds)

Models see sign · y, with sign = −1 for what is maximised or has a lower limit alone, and 1 otherwise. Smaller is better
then, but for a target, whose *loss* is |y − target|; every limit is an interval l ≤ sign · y ≤ u, mostly with l = −∞.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from headstart.data.bounds import Bounds
from headstart.data.dataset import Dataset
from headstart.errors import InputError

MOST_GOALS = 4  # weighed against each other: with five, a front of 40 results has 1,800 cells, which take seconds

_T = TypeVar("_T")


class _Outcome:
    """What objectives and limited quantities have in common: a name, a sign, and bounds in the user's units."""

    name: str
    low: float | None
    high: float | None

    @property
    def sign(self) -> int:
        """The factor of values and limit behind which smaller is better, and a limit an upper one."""
        raise NotImplementedError

    def loss(self, y: float) -> float:
        """What is to be small: sign · y, or the distance to the target.

        Args:
            y: A value in the user's units.

        Returns:
            The loss.
        """
        return self.sign * y

    @property
    def bounds(self) -> Bounds | None:
        """The values it can have, in the user's units; None for any."""
        return Bounds.of(self.low, self.high, self.name)

    @property
    def signed_bounds(self) -> Bounds | None:
        """The bounds of sign · y."""
        return None if self.bounds is None else self.bounds.signed(self.sign)

    def signed(self, task: Dataset) -> Dataset:
        """Multiply measured values by the sign.

        Args:
            task: A data set of this outcome, as measured.

        Returns:
            The data set with sign · y.

        Raises:
            InputError: A value lies outside the bounds.
        """
        if self.bounds is not None:
            self.bounds.require(task.y, f"{self.name} of {task.name}" if task.name else self.name)
        return task if self.sign > 0 else replace(task, y=-task.y)


@dataclass(frozen=True)
class Goal(_Outcome):
    """An objective.

    Args:
        name: Its name, as in the data.
        maximize: Whether it is to be high; it is minimised otherwise.
        low: The lowest value it can have at all; None for any.
        high: The highest value it can have at all; None for any.
        threshold: The worst value that is still of interest, None for any: the reference point of the volume that
            several objectives gain, and of one objective what there is to improve on.
        target: The value that it is to be near to, instead of high or low.
    """

    name: str
    maximize: bool = False
    low: float | None = None
    high: float | None = None
    threshold: float | None = None
    target: float | None = None

    def __post_init__(self) -> None:
        """Check the name, the bounds, the threshold and the target."""
        _require_name(self.name, "An objective")
        Bounds.of(self.low, self.high, self.name)
        for value, what in ((self.threshold, "threshold"), (self.target, "target")):
            if value is not None:
                _require_finite(value, f"The {what} of {self.name!r}")
                _require_possible(self, value, what)
        if self.target is not None and self.maximize:
            raise InputError(f"{self.name!r} is to be near {self.target:g} and maximised too. Leave one of them out.")
        if self.target is not None and self.threshold == self.target:
            raise InputError(
                f"The threshold of {self.name!r} is its target, {self.target:g}, so that nothing else is of interest. "
                "Give a value further away, the worst that is still good enough."
            )

    @property
    def sign(self) -> int:
        """−1 where it is maximised."""
        return -1 if self.maximize else 1

    def loss(self, y: float) -> float:
        """What is to be small: ±y, or the distance to the target.

        Args:
            y: A value in the user's units.

        Returns:
            The loss.
        """
        return super().loss(y) if self.target is None else abs(y - self.target)

    @property
    def reference(self) -> float | None:
        """The loss of the threshold; None where there is none."""
        return None if self.threshold is None else self.loss(self.threshold)

    @property
    def words(self) -> str:
        """What it is to be: minimised, at most 10."""
        if self.target is not None:
            limit = "" if self.threshold is None else f", at most {self.loss(self.threshold):g} away"
            return f"near {self.target:g}{limit}"
        limit = "" if self.threshold is None else f", at {'least' if self.maximize else 'most'} {self.threshold:g}"
        return f"{'maximised' if self.maximize else 'minimised'}{limit}"


@dataclass(frozen=True)
class Limit(_Outcome):
    """A quantity that must be at most, or at least, some value, or between two.

    Args:
        name: Its name, as in the data.
        at_most: The upper limit, in the user's units; None for none.
        at_least: The lower limit, in the user's units; None for none. One of the two is given, or both.
        low: The lowest value it can have at all; None for any.
        high: The highest value it can have at all; None for any.
    """

    name: str
    at_most: float | None = None
    at_least: float | None = None
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        """Check the name, that there is a limit, and that it can be kept and broken."""
        _require_name(self.name, "A limited quantity")
        if self.at_most is None and self.at_least is None:
            raise InputError(f"The limit on {self.name!r} must be at_most, at_least or both, but there is neither.")
        for value in (self.at_most, self.at_least):
            if value is not None:
                _require_finite(value, f"The limit on {self.name!r}")
        if self.at_most is not None and self.at_least is not None and not self.at_least < self.at_most:
            raise InputError(
                f"The limit on {self.name!r} must be from a lower to a higher value, but it is from {self.at_least:g} "
                f"to {self.at_most:g}. Exchange them."
            )
        signed = self.signed_bounds
        if signed is not None:
            lowest, highest = self.interval
            never = highest < signed.low or lowest > signed.high
            if never or (math.isinf(lowest) and math.isinf(highest)):
                raise InputError(
                    f"The limit {self} {'never' if never else 'always'} holds, for {self.name!r} is {self.bounds}. "
                    "Correct the limit or the bounds."
                )

    @property
    def sign(self) -> int:
        """−1 where there is a lower limit alone."""
        return -1 if self.at_most is None else 1

    @property
    def ends(self) -> tuple[float, ...]:
        """The lower and the upper limit in the user's units, those that there are."""
        return tuple(float(end) for end in (self.at_least, self.at_most) if end is not None)

    @property
    def interval(self) -> tuple[float, float]:
        """The limit behind the sign: what sign · y must be between; infinite where no value can be beyond."""
        low = -math.inf if self.at_least is None else float(self.at_least)
        low, high = (-math.inf, -low) if self.at_most is None else (low, float(self.at_most))
        ends = self.signed_bounds or Bounds()
        return low if low > ends.low else -math.inf, high if high < ends.high else math.inf

    @property
    def bound(self) -> float:
        """The upper end of the interval."""
        return self.interval[1]

    def holds(self, y: float) -> bool:
        """Whether a value is within the limit; the limit itself is.

        Args:
            y: A value in the user's units.

        Returns:
            True if it is.
        """
        low, high = self.interval
        return low <= self.sign * y <= high

    @property
    def words(self) -> str:
        """What it must be: at most 0.5, or between 6.5 and 7.5."""
        if self.at_least is None:
            return f"at most {self.at_most:g}"
        return (
            f"at least {self.at_least:g}" if self.at_most is None else f"between {self.at_least:g} and {self.at_most:g}"
        )

    def __str__(self) -> str:
        """In signs: impurity <= 0.5."""
        if self.at_least is None:
            return f"{self.name} <= {self.at_most:g}"
        if self.at_most is None:
            return f"{self.name} >= {self.at_least:g}"
        return f"{self.at_least:g} <= {self.name} <= {self.at_most:g}"


class Standing(StrEnum):
    """Where a result lies with regard to the limits."""

    WITHIN = "within the limits"
    UNKNOWN = "limits not measured"
    BEYOND = "beyond the limits"


@dataclass(frozen=True)
class Outcomes:
    """All that is measured, objectives first.

    Args:
        goals: One to four objectives.
        limits: Any number of limited quantities; no name comes twice.
        least_probability: A point at which the limits hold together with less than this probability is suggested only
            where no better one exists. None for the usual one (``PLAIN_TUNING.least_probability``).
    """

    goals: tuple[Goal, ...]
    limits: tuple[Limit, ...] = ()
    least_probability: float | None = None

    def __post_init__(self) -> None:
        """Check how many there are, and the names."""
        object.__setattr__(self, "goals", tuple(self.goals))
        object.__setattr__(self, "limits", tuple(self.limits))
        for part, kind in ((self.goals, Goal), (self.limits, Limit)):
            wrong = next((outcome for outcome in part if not isinstance(outcome, kind)), None)
            if wrong is not None:
                raise InputError(f"Expected a {kind.__name__}, but got {wrong!r}: goals come first, then limits.")
        if not self.goals:
            raise InputError("There must be at least one objective, but there is none: add a Goal.")
        if len(self.goals) > MOST_GOALS:
            raise InputError(
                f"At most {MOST_GOALS} objectives can be weighed against each other, but there are "
                f"{len(self.goals)}: make a Limit of those that only have to be good enough."
            )
        goals = {goal.name for goal in self.goals}
        seen: set[str] = set()
        for outcome in self:
            if isinstance(outcome, Limit) and outcome.name in goals:
                raise InputError(
                    f"{outcome.name!r} is an objective and has a limit too ({outcome}). The worst value of an "
                    "objective that is still of interest is its threshold: leave out the limit, and give "
                    "Goal(..., threshold=…)."
                )
            if outcome.name in seen:
                raise InputError(f"The outcome {outcome.name!r} is there twice: every name may come once.")
            seen.add(outcome.name)
        p = self.least_probability
        if p is not None and not (isinstance(p, int | float) and not isinstance(p, bool) and 0 <= p < 1):
            raise InputError(f"least_probability must be from 0 to below 1, such as 0.5, but it is {p!r}.")

    def __iter__(self) -> Iterator[Goal | Limit]:
        """Objectives, then limits, in their order."""
        return iter((*self.goals, *self.limits))

    @property
    def names(self) -> tuple[str, ...]:
        """All names, in order."""
        return tuple(outcome.name for outcome in self)

    def __getitem__(self, name: str) -> Goal | Limit:
        """The outcome of this name."""
        for outcome in self:
            if outcome.name == name:
                return outcome
        raise InputError(f"There is no outcome {name!r}: there are {', '.join(self.names)}.")

    def standing(self, results: Mapping[str, float]) -> Standing:
        """Where results lie with regard to all limits: what was not measured is not known to be within.

        Args:
            results: What was measured, by outcome, in the user's units.

        Returns:
            Beyond if any limit is broken, else within if all limited quantities were measured; unknown otherwise.
        """
        known = [limit.holds(results[limit.name]) for limit in self.limits if limit.name in results]
        if not all(known):
            return Standing.BEYOND
        return Standing.WITHIN if len(known) == len(self.limits) else Standing.UNKNOWN

    def losses(self, measured: Mapping[str, float]) -> NDArray[np.float64]:
        """What is to be small of every objective, in their order.

        Args:
            measured: Values in the user's units, of every objective at least.

        Returns:
            The losses.
        """
        return np.array([goal.loss(measured[goal.name]) for goal in self.goals])

    def in_order(self, given: Mapping[str, _T], default: _T, what: str) -> tuple[_T, ...]:
        """Put what is given by name into the order of the outcomes.

        Args:
            given: A value for some of the outcomes, by name.
            default: The value of those that are left out.
            what: What an error message calls the values.

        Returns:
            A value for every outcome.

        Raises:
            InputError: A name is that of no outcome.
        """
        unknown = [name for name in given if name not in self.names]
        if unknown:
            raise InputError(f"{what} are given by outcome ({', '.join(self.names)}), but {unknown[0]!r} is none.")
        return tuple(given.get(name, default) for name in self.names)


def _require_name(name: object, what: str) -> None:
    if not isinstance(name, str) or not name.strip():
        raise InputError(f"{what} must have a name, but it is {name!r}.")


def _require_finite(value: object, what: str) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        raise InputError(f"{what} must be a number, but it is {value!r}. Leave it out.")


def _require_possible(goal: Goal, value: float, what: str) -> None:
    bounds = goal.bounds
    if bounds is not None and not bounds.low <= value <= bounds.high:
        raise InputError(
            f"The {what} of {goal.name!r} is {value:g}, but it is {bounds}. Correct the {what} or the bounds."
        )
