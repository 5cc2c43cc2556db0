"""What is measured of every experiment: objectives, and quantities that must stay within a limit.

    Goal("yield", maximize=True)            an objective: as high as possible
    Goal("cost")                            an objective: as low as possible
    Limit("impurity", at_most=0.5)          must not be above 0.5, and no lower is any better
    Limit("turnover", at_least=20)          must not be below 20
    Goal("yield", maximize=True, low=0, high=100)      and no yield is below 0 or above 100 (data.bounds)

Models see sign · y, with sign = −1 for what is maximised or has a lower limit and 1 otherwise: then smaller is better
and every limit is an upper one, sign · y ≤ sign · c.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from headstart.data.bounds import Bounds
from headstart.data.dataset import Dataset
from headstart.errors import InputError

MOST_GOALS = 3  # weighed against each other: with more, nearly every point is best in some way

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
    """

    name: str
    maximize: bool = False
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        """Check the name and the bounds."""
        _require_name(self.name, "An objective")
        Bounds.of(self.low, self.high, self.name)

    @property
    def sign(self) -> int:
        """−1 where it is maximised."""
        return -1 if self.maximize else 1


@dataclass(frozen=True)
class Limit(_Outcome):
    """A quantity that must be at most, or at least, some value.

    Args:
        name: Its name, as in the data.
        at_most: The upper limit, in the user's units; exactly one of the two limits is given.
        at_least: The lower limit, in the user's units.
        low: The lowest value it can have at all; None for any.
        high: The highest value it can have at all; None for any.
    """

    name: str
    at_most: float | None = None
    at_least: float | None = None
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        """Check the name, that there is one limit, and that it can be kept and broken."""
        _require_name(self.name, "A limited quantity")
        if (self.at_most is None) == (self.at_least is None):
            raise InputError(
                f"The limit on {self.name!r} must be one of at_most and at_least, but they are {self.at_most} and "
                f"{self.at_least}. For a range between two values, measure the distance to its middle and limit that."
            )
        if not isinstance(self.value, int | float) or not math.isfinite(self.value):
            raise InputError(f"The limit on {self.name!r} must be a number, but it is {self.value!r}. Leave it out.")
        signed = self.signed_bounds
        if signed is not None and not signed.low <= self.bound < signed.high:
            when = "never" if self.bound < signed.low else "always"
            raise InputError(
                f"The limit {self} {when} holds, for {self.name!r} is {self.bounds}. Correct the limit or the bounds."
            )

    @property
    def value(self) -> float:
        """The limit, in the user's units."""
        value = self.at_most if self.at_least is None else self.at_least
        assert value is not None
        return value

    @property
    def sign(self) -> int:
        """−1 where the limit is a lower one."""
        return 1 if self.at_least is None else -1

    @property
    def bound(self) -> float:
        """The limit behind the sign: what sign · y must not exceed."""
        return self.sign * self.value

    def holds(self, y: float) -> bool:
        """Whether a value is within the limit; the limit itself is.

        Args:
            y: A value in the user's units.

        Returns:
            True if it is.
        """
        return self.sign * y <= self.bound

    def __str__(self) -> str:
        """In words: impurity <= 0.5."""
        return f"{self.name} {'<=' if self.sign > 0 else '>='} {self.value:g}"


@dataclass(frozen=True)
class Outcomes:
    """All that is measured, objectives first.

    Args:
        goals: One to three objectives.
        limits: Any number of limited quantities; no name comes twice.
    """

    goals: tuple[Goal, ...]
    limits: tuple[Limit, ...] = ()

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
                    f"{outcome.name!r} is an objective and has a limit too ({outcome}). Leave one of them out: an "
                    "objective already goes as far as it can."
                )
            if outcome.name in seen:
                raise InputError(f"The outcome {outcome.name!r} is there twice: every name may come once.")
            seen.add(outcome.name)

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
