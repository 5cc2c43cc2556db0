"""Which settings may be run, as data; in the units of the parameters, never in coordinates.

    LinearRule     2·A + B ≤ 100,  A + B + C = 1,  A − B ≥ 0
    Forbidden      not (temperature > 180 and solvent = toluene)
    FixedValue     catalyst = Pd,  T = 80
    OnSteps        T in steps of 5, counted from its lowest value unless another start is given

A rule says something about rows that have all of its parameters; one that lacks a parameter keeps it. Numbers are
compared up to 10⁻⁹ of the largest term, and of 1 at least: sums of decimals are rounded.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from numbers import Real
from typing import Any

from headstart.data.axis import Axis, same_category
from headstart.data.rules.names import axis_named, shown_name
from headstart.data.space import Space
from headstart.errors import InputError

_ROUNDING = 1e-9


def rounding(*terms: float) -> float:
    """How far two sums of such terms may differ and still be equal."""
    return _ROUNDING * max(1.0, *(abs(term) for term in terms))


class Relation(StrEnum):
    """How a value lies to another one."""

    AT_MOST = "≤"
    AT_LEAST = "≥"
    EQUAL = "="
    ABOVE = ">"
    BELOW = "<"
    OTHER = "≠"

    def numbers(self, value: float, bound: float, allowance: float) -> bool:
        """Whether the value lies so, values no further apart than the allowance being equal."""
        apart = value - bound
        match self:
            case Relation.AT_MOST:
                return apart <= allowance
            case Relation.AT_LEAST:
                return apart >= -allowance
            case Relation.EQUAL:
                return abs(apart) <= allowance
            case Relation.ABOVE:
                return apart > allowance
            case Relation.BELOW:
                return apart < -allowance
            case Relation.OTHER:
                return abs(apart) > allowance


class SettingRule(ABC):
    """A rule about the values of some parameters. Its text is a sentence for people."""

    @property
    @abstractmethod
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters that it is about."""

    @abstractmethod
    def holds(self, row: Mapping[str, Any]) -> bool:
        """Whether a row keeps it; one that lacks a parameter does."""

    @abstractmethod
    def require(self, space: Space) -> None:
        """Raise an ``InputError`` unless it is about parameters of the space, and of the right kind."""

    def _all_there(self, row: Mapping[str, Any]) -> bool:
        return all(name in row for name in self.parameters)


@dataclass(frozen=True)
class LinearRule(SettingRule):
    """Σ factor · parameter ≤, ≥ or = bound, over numeric parameters."""

    terms: tuple[tuple[str, float], ...]
    relation: Relation
    bound: float

    def __post_init__(self) -> None:
        """Raise an ``InputError`` unless it has terms, finite numbers, and one of the three relations."""
        if self.relation not in (Relation.AT_MOST, Relation.AT_LEAST, Relation.EQUAL):
            raise InputError(f"A linear rule has ≤, ≥ or =, but this one has {self.relation}: {self}.")
        numbers = (self.bound, *(factor for _, factor in self.terms))
        if not self.terms or not all(math.isfinite(v) for v in numbers) or not all(factor for _, factor in self.terms):
            raise InputError(f"A linear rule needs parameters with finite factors that are not 0, but it is {self}.")
        if len(set(self.parameters)) < len(self.terms):
            raise InputError(f"A linear rule has one factor a parameter, but one comes twice: {self}. Add them up.")

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters in the sum."""
        return tuple(name for name, _ in self.terms)

    def holds(self, row: Mapping[str, Any]) -> bool:
        """Whether the sum lies as it should."""
        if not self._all_there(row):
            return True
        parts = [factor * float(row[name]) for name, factor in self.terms]
        return self.relation.numbers(math.fsum(parts), self.bound, rounding(self.bound, *parts))

    def require(self, space: Space) -> None:
        """Raise an ``InputError`` unless all of them are numeric parameters of the space."""
        for name in self.parameters:
            if axis_named(space, name, _cited(self)).categorical:
                raise InputError(
                    f"{_cited(self)}: {name!r} has categories, which cannot be added up. Use a numeric parameter, "
                    f"or forbid categories, as in 'forbid: {shown_name(name)} = …'."
                )

    def __str__(self) -> str:
        words = ""
        for name, factor in self.terms:
            sign = (" − " if factor < 0 else " + ") if words else ("−" if factor < 0 else "")
            words += sign + ("" if abs(factor) == 1 else f"{_shown(abs(factor))}·") + shown_name(name)
        return f"{words} {self.relation} {_shown(self.bound)}"


@dataclass(frozen=True)
class Clause:
    """A condition on one parameter: it is above 180, it is toluene."""

    parameter: str
    relation: Relation
    value: Any

    def met(self, value: Any) -> bool:
        """Whether this value of the parameter meets it."""
        if _is_number(self.value) and _is_number(value):
            return self.relation.numbers(float(value), float(self.value), rounding(self.value))
        return same_category(value, self.value) is (self.relation is Relation.EQUAL)

    def require(self, space: Space, rule: SettingRule) -> None:
        """Raise an ``InputError`` unless the space has the parameter, and the value is one of its kind."""
        axis = axis_named(space, self.parameter, _cited(rule))
        if not axis.categorical:
            if not _is_number(self.value) or not math.isfinite(self.value):
                raise InputError(f"{_cited(rule)}: {axis.name!r} is a number, but {self.value!r} is none.")
        elif self.relation not in (Relation.EQUAL, Relation.OTHER):
            raise InputError(f"{_cited(rule)}: {axis.name!r} has categories, which have no order. Use = or ≠.")
        else:
            _require_level(axis, self.value, rule)

    def __str__(self) -> str:
        return f"{shown_name(self.parameter)} {self.relation} {_shown(self.value)}"


@dataclass(frozen=True)
class Forbidden(SettingRule):
    """Conditions that must not all hold together."""

    clauses: tuple[Clause, ...]

    def __post_init__(self) -> None:
        """Raise an ``InputError`` unless there is something to forbid."""
        if not self.clauses:
            raise InputError("A forbidden combination needs at least one condition, such as Clause('T', '>', 180).")

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters in its conditions."""
        return tuple(dict.fromkeys(clause.parameter for clause in self.clauses))

    def holds(self, row: Mapping[str, Any]) -> bool:
        """Whether some condition is not met."""
        return not self._all_there(row) or not all(clause.met(row[clause.parameter]) for clause in self.clauses)

    def require(self, space: Space) -> None:
        """Raise an ``InputError`` unless its conditions are about parameters of the space."""
        for clause in self.clauses:
            clause.require(space, self)

    def __str__(self) -> str:
        return f"not ({' and '.join(map(str, self.clauses))})"


@dataclass(frozen=True)
class FixedValue(SettingRule):
    """A parameter that has one value only."""

    parameter: str
    value: Any

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameter's name."""
        return (self.parameter,)

    def holds(self, row: Mapping[str, Any]) -> bool:
        """Whether it has that value."""
        return not self._all_there(row) or Clause(self.parameter, Relation.EQUAL, self.value).met(row[self.parameter])

    def require(self, space: Space) -> None:
        """Raise an ``InputError`` unless the value is one that the parameter may have."""
        axis = axis_named(space, self.parameter, _cited(self))
        Clause(self.parameter, Relation.EQUAL, self.value).require(space, self)
        if not axis.categorical and not self.holds({axis.name: _nearest(axis, self.value)}):
            raise InputError(
                f"{_cited(self)}: {axis.name!r} may have {_values(axis)}, but {_shown(self.value)} is none of them."
                " Fix it to one of its values, or widen its range."
            )

    def __str__(self) -> str:
        return f"{shown_name(self.parameter)} = {_shown(self.value)}"


@dataclass(frozen=True)
class OnSteps(SettingRule):
    """A number that is one of start, start ± step, start ± 2·step …; without a start, of its lowest value."""

    parameter: str
    step: float
    start: float

    def __post_init__(self) -> None:
        """Raise an ``InputError`` unless the step is above 0."""
        if not (_is_number(self.step) and _is_number(self.start) and 0 < self.step < math.inf):
            raise InputError(f"The step of {self.parameter!r} must be a number above 0, but it is {self.step!r}.")
        if not math.isfinite(self.start):
            raise InputError(f"The steps of {self.parameter!r} must start at a number, but they do at {self.start!r}.")

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameter's name."""
        return (self.parameter,)

    def holds(self, row: Mapping[str, Any]) -> bool:
        """Whether it is a whole number of steps from the start."""
        if not self._all_there(row):
            return True
        value = float(row[self.parameter])
        nearest = self.start + round((value - self.start) / self.step) * self.step
        return Relation.EQUAL.numbers(value, nearest, rounding(value))

    def require(self, space: Space) -> None:
        """Raise an ``InputError`` unless it is a numeric parameter of the space."""
        if axis_named(space, self.parameter, _cited(self)).categorical:
            raise InputError(f"{_cited(self)}: {self.parameter!r} has categories, which have no steps.")

    def __str__(self) -> str:
        return f"{shown_name(self.parameter)} in steps of {_shown(self.step)} from {_shown(self.start)}"


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _cited(rule: SettingRule) -> str:
    return f"Rule {str(rule)!r}"


def _shown(value: Any) -> str:
    return f"{float(value):.10g}" if _is_number(value) else shown_name(str(value))


def _nearest(axis: Axis, value: float) -> Any:
    """The value that would be suggested; of a single-valued parameter, that one."""
    return axis.value(axis.place([value]))[0] if not axis.log or value > 0 else math.nan


def _values(axis: Axis) -> str:
    low, high = axis.distribution.low, axis.distribution.high  # type: ignore[union-attr]
    step = getattr(axis.distribution, "step", None)
    return f"{low:g} … {high:g}" + (f" by {step:g}" if step is not None else "")


def _require_level(axis: Axis, value: Any, rule: SettingRule) -> None:
    if not any(same_category(value, level) for level in axis.levels):
        known = ", ".join(str(level) for level in axis.choices)
        raise InputError(f"{_cited(rule)}: {axis.name!r} is one of {known}, but never {value}. Correct the value.")
