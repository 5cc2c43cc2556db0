"""Constraints on the settings that are known before an experiment, in the units of the parameters.

    LinearRule     2·A + B ≤ 100,  A + B + C = 1,  A − B ≥ 0
    Forbidden      not (temperature > 180 and solvent = toluene)
    FixedValue     catalyst = Pd,  T = 80
    OnSteps        T in steps of 5, counted from its lowest value unless another start is given

A rule constrains rows that have all of its parameters; a row that lacks one satisfies it. Numbers are compared up to
10⁻⁹ of the largest term, and of 1 at least: sums of decimals are rounded. Rules are evaluated on whole columns of
values; a row is a column of length one.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray

from headstart.data.axis import Axis
from headstart.data.ranges import ROUNDING, same_category, span_in_words
from headstart.data.space import Space
from headstart.errors import InputError, NoSettingError, UnknownParameterError, nearest

Numbers = NDArray[np.float64]
Flags = NDArray[np.bool_]

_PLAIN = re.compile(r"[^\W\d]\w*")
_WORDS = ("and", "forbid", "from", "in", "not", "of", "or", "steps")


class Relation(StrEnum):
    """How a value compares with another one."""

    AT_MOST = "≤"
    AT_LEAST = "≥"
    EQUAL = "="
    ABOVE = ">"
    BELOW = "<"
    OTHER = "≠"

    @property
    def opposite(self) -> Relation:
        """The relation that holds where this one does not."""
        pairs = [("≤", ">"), ("≥", "<"), ("=", "≠")]
        return Relation(dict([*pairs, *((b, a) for a, b in pairs)])[self])

    def _holds(self, difference: Float[Numbers, "n"], tolerance: Float[Numbers, "n"] | float) -> Bool[Flags, "n"]:
        """Whether value − bound compares so with 0; differences up to the tolerance count as 0."""
        match self:
            case Relation.AT_MOST:
                return np.asarray(difference <= tolerance)
            case Relation.AT_LEAST:
                return np.asarray(difference >= -tolerance)
            case Relation.EQUAL:
                return np.asarray(np.abs(difference) <= tolerance)
        return ~self.opposite._holds(difference, tolerance)


@dataclass(frozen=True, eq=False)
class CategoryColumn:
    """The values of a categorical parameter in n rows: row i has the category ``levels[index[i]]``."""

    levels: Sequence[Any]
    index: Int[NDArray[np.int64], "n"]


Column: TypeAlias = Numbers | CategoryColumn


def _column_of(values: Sequence[Any]) -> Column:
    """Values of one parameter as a column."""
    if all(_is_number(value) for value in values):
        return np.array(values, dtype=np.float64)
    return CategoryColumn(values, np.arange(len(values)))


class SettingRule(ABC):
    """A constraint on the values of some parameters. ``str`` of it is a sentence that ``parse_rule`` reads."""

    @property
    @abstractmethod
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters that it constrains."""

    @abstractmethod
    def satisfied(self, columns: Mapping[str, Column]) -> Bool[Flags, "n"]:
        """Which of n rows satisfy the rule.

        Args:
            columns: The values of at least the rule's parameters, by name.

        Returns:
            One flag per row.
        """

    def holds(self, row: Mapping[str, Any]) -> bool:
        """Whether a row of values satisfies the rule.

        Args:
            row: Values by parameter name.

        Returns:
            True if the row satisfies it, or lacks one of its parameters.
        """
        if not all(name in row for name in self.parameters):
            return True
        return bool(self.satisfied({name: _column_of([row[name]]) for name in self.parameters})[0])


@dataclass(frozen=True)
class LinearRule(SettingRule):
    """A linear constraint on numeric parameters: Σ factor · parameter ≤, ≥ or = bound.

    Args:
        terms: (parameter, factor) of every term; each parameter once, no factor 0.
        relation: ``Relation.AT_MOST``, ``AT_LEAST`` or ``EQUAL``.
        bound: The right side.

    Raises:
        InputError: There are no terms, a number is not finite, or the relation is another one.
    """

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

    def satisfied(self, columns: Mapping[str, Column]) -> Bool[Flags, "n"]:
        """Where the sum compares so with the bound."""
        parts = np.stack([factor * _numbers(columns[name]) for name, factor in self.terms])
        largest = np.abs(parts).max(0).clip(max(1.0, abs(self.bound)))
        return self.relation._holds(parts.sum(0) - self.bound, ROUNDING * largest)

    def __str__(self) -> str:
        words = ""
        for name, factor in self.terms:
            sign = (" − " if factor < 0 else " + ") if words else ("−" if factor < 0 else "")
            words += sign + ("" if abs(factor) == 1 else f"{_shown(abs(factor))}·") + shown_name(name)
        return f"{words} {self.relation} {_shown(self.bound)}"


@dataclass(frozen=True)
class Clause:
    """A condition on one parameter, such as temperature > 180 or solvent = toluene.

    Args:
        parameter: The parameter's name.
        relation: How its value compares with ``value``; categories are equal or not.
        value: A number, or a category.
    """

    parameter: str
    relation: Relation
    value: Any

    def _met(self, column: Column) -> Bool[Flags, "n"]:
        """Which values of the parameter meet the condition."""
        if isinstance(column, CategoryColumn):
            return np.array([self._met_by(level) for level in column.levels], dtype=bool)[column.index]
        if not _is_number(self.value):
            return np.full(len(column), self.relation is not Relation.EQUAL)
        bound = float(self.value)
        return self.relation._holds(column - bound, ROUNDING * max(1.0, abs(bound)))

    def _met_by(self, level: Any) -> bool:
        if _is_number(level) and _is_number(self.value):
            return bool(self._met(np.array([float(level)]))[0])
        return same_category(level, self.value) is (self.relation is Relation.EQUAL)

    def __str__(self) -> str:
        return f"{shown_name(self.parameter)} {self.relation} {_shown(self.value)}"


@dataclass(frozen=True)
class Forbidden(SettingRule):
    """A forbidden combination: conditions that must not all be met in one row.

    Args:
        clauses: The conditions, at least one.

    Raises:
        InputError: There is no condition.
    """

    clauses: tuple[Clause, ...]

    def __post_init__(self) -> None:
        """Raise an ``InputError`` unless there is something to forbid."""
        if not self.clauses:
            raise InputError("A forbidden combination needs at least one condition, such as Clause('T', '>', 180).")

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters in its conditions."""
        return tuple(dict.fromkeys(clause.parameter for clause in self.clauses))

    def satisfied(self, columns: Mapping[str, Column]) -> Bool[Flags, "n"]:
        """Where some condition is not met."""
        met = [clause._met(columns[clause.parameter]) for clause in self.clauses]
        return np.asarray(~np.logical_and.reduce(met))

    def __str__(self) -> str:
        return f"not ({' and '.join(map(str, self.clauses))})"


@dataclass(frozen=True)
class FixedValue(SettingRule):
    """A parameter that is held at one value.

    Args:
        parameter: The parameter's name.
        value: The value, a number or a category.
    """

    parameter: str
    value: Any

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameter's name."""
        return (self.parameter,)

    def satisfied(self, columns: Mapping[str, Column]) -> Bool[Flags, "n"]:
        """Where the parameter has the value."""
        return Clause(self.parameter, Relation.EQUAL, self.value)._met(columns[self.parameter])

    def __str__(self) -> str:
        return f"{shown_name(self.parameter)} = {_shown(self.value)}"


@dataclass(frozen=True)
class OnSteps(SettingRule):
    """A numeric parameter on a grid: start, start ± step, start ± 2·step ….

    Args:
        parameter: The parameter's name.
        step: The distance between the values of the grid, above 0.
        start: One value of the grid.

    Raises:
        InputError: The step is not above 0, or a number is not finite.
    """

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

    def satisfied(self, columns: Mapping[str, Column]) -> Bool[Flags, "n"]:
        """Where the value is on the grid."""
        values = _numbers(columns[self.parameter])
        nearest = self.start + np.round((values - self.start) / self.step) * self.step
        return Relation.EQUAL._holds(values - nearest, ROUNDING * np.abs(values).clip(1.0))

    def __str__(self) -> str:
        return f"{shown_name(self.parameter)} in steps of {_shown(self.step)} from {_shown(self.start)}"


def feasible_rows(rows: Sequence[Mapping[str, Any]], rules: Sequence[SettingRule]) -> list[int]:
    """The numbers of the rows that satisfy all rules; fails if none does."""
    kept = np.ones(len(rows), dtype=bool)
    for rule in rules:
        bound = [i for i, row in enumerate(rows) if all(name in row for name in rule.parameters)]
        columns = {name: _column_of([rows[i][name] for i in bound]) for name in rule.parameters}
        kept[bound] &= rule.satisfied(columns)
    if not kept.any():
        every = "; ".join(map(str, rules))
        raise NoSettingError(f"None of the {len(rows)} candidates keeps all rules ({every}). Remove one, or add rows.")
    return [int(i) for i in np.flatnonzero(kept)]


def require_rule(rule: SettingRule, space: Space, cited: str = "") -> SettingRule:
    """The rule; an ``InputError`` unless it is about parameters of the space, each of the kind that it needs."""
    cited = cited or f"Rule {str(rule)!r}"
    axes = {name: axis_named(space, name, cited) for name in rule.parameters}
    match rule:
        case LinearRule():
            for axis in axes.values():
                if axis.categorical:
                    raise InputError(
                        f"{cited}: {axis.name!r} has categories, which cannot be added up. Use a numeric parameter, "
                        f"or forbid categories, as in forbid: {shown_name(axis.name)} = …"
                    )
        case OnSteps(parameter=name):
            if axes[name].categorical:
                raise InputError(f"{cited}: {name!r} has categories, which have no steps. Use a numeric parameter.")
        case Forbidden(clauses=clauses):
            for clause in clauses:
                _require_clause(clause, axes[clause.parameter], cited)
        case FixedValue(parameter=name, value=value):
            axis = axes[name]
            _require_clause(Clause(name, Relation.EQUAL, value), axis, cited)
            if (axis.log and value <= 0) or not (
                axis.categorical or rule.holds({name: axis.value(axis.place([value]))[0]})
            ):
                raise InputError(
                    f"{cited}: {name!r} may have {span_in_words(axis.distribution)}, but {_shown(value)} is none of "
                    "them. Fix it to one of its values, or widen its range."
                )
    return rule


def _require_clause(clause: Clause, axis: Axis, cited: str) -> None:
    if not axis.categorical:
        if not _is_number(clause.value) or not math.isfinite(clause.value):
            raise InputError(f"{cited}: {axis.name!r} is a number, but {clause.value!r} is none.")
    elif clause.relation not in (Relation.EQUAL, Relation.OTHER):
        raise InputError(f"{cited}: {axis.name!r} has categories, which have no order. Use = or ≠.")
    elif not any(same_category(clause.value, level) for level in axis.levels):
        known = ", ".join(str(level) for level in axis.choices)
        raise InputError(f"{cited}: {axis.name!r} is one of {known}, but never {clause.value}. Correct the value.")


def axis_named(space: Space, name: str, where: object) -> Axis:
    """The parameter of this name; an ``UnknownParameterError`` that says where it was named, and what may be meant."""
    if name in space.by_name:
        return space.by_name[name]
    alike = [own for own in space.names if name.casefold() in (own.casefold(), *_without_unit(own))]
    if len(alike) == 1:
        return space.by_name[alike[0]]
    hint = nearest(name, space.names, shown_name)
    raise UnknownParameterError(f"{where}: there is no parameter {name!r}. {hint}")


def _without_unit(name: str) -> tuple[str, ...]:
    """How a name is said without its unit: temperature for 'Temperature [°C]', 'temperature / °C', temperature_C."""
    found = re.fullmatch(r"(.*?\S)\s*(?:[\[(][^\[\]()]*[\])]|\s/\s.*|\sin\s\S+|_[^\W_]+)", name)
    return (found[1].casefold(),) if found else ()


def shown_name(name: str) -> str:
    """The name as a rule has to be written: in quotes unless it is a plain word. No quotes that a shell executes."""
    if _PLAIN.fullmatch(name) and name not in _WORDS:
        return name
    return f'"{name}"' if "'" in name else f"'{name}'"


def _shown(value: Any) -> str:
    return f"{float(value):.10g}" if _is_number(value) else shown_name(str(value))


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _numbers(column: Column) -> Numbers:
    if isinstance(column, CategoryColumn):  # a row may hold a number as another type does, such as '3'
        return np.array([float(level) for level in column.levels])[column.index]
    return column
