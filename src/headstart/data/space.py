"""``Space``: named parameters side by side in the unit cube; see ``Axis``.

A parameter is described by one of Optuna's distributions, or by one of ``data.ranges``, for which Optuna is not needed.
A conditional parameter has a ``Condition``: it is active in some rows only, and the others have it *at rest*.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headstart.data.axis import Axis
from headstart.data.conditions import Condition
from headstart.data.descriptors import Descriptors
from headstart.data.ranges import (
    Choices,
    DiscreteNumbers,
    Distribution,
    FloatRange,
    IntRange,
    distinct,
    has_single_value,
    rounding,
    same_category,
    span_in_words,
)
from headstart.errors import InputError, NoPlaceError

_OPTUNAS = ("FloatDistribution", "IntDistribution", "CategoricalDistribution")  # known by name: Optuna is not imported


@dataclass(frozen=True)
class Space:
    """The search space: named parameters in order, whose columns stand side by side in X. Built with ``Space.of``.

    Args:
        axes: The parameters with their columns.
        conditions: The condition of every conditional parameter, by its name.
    """

    axes: tuple[Axis, ...]
    conditions: tuple[tuple[str, Condition], ...] = ()

    @classmethod
    def of(
        cls,
        distributions: Mapping[str, Distribution],
        *,
        extra_levels: Mapping[str, Sequence[Any]] | None = None,
        conditions: Mapping[str, Condition] | None = None,
        descriptors: Mapping[str, Descriptors] | None = None,
    ) -> Space:
        """The space of these parameters.

        Args:
            distributions: Optuna distributions, or ``FloatRange``, ``IntRange``, ``DiscreteNumbers`` and ``Choices``,
                by parameter name.
            extra_levels: Further categories of categorical parameters, which sources have and which are never
                suggested.
            conditions: When each conditional parameter is active. A condition on a parameter that is not in the space
                is dropped: nobody knows then when the parameter is active.
            descriptors: Numbers that describe all categories of a categorical parameter.

        Returns:
            The space.

        Raises:
            InputError: A range is infinite, a distribution is of no known kind, or nothing is to be chosen.
        """
        extra, described = extra_levels or {}, descriptors or {}
        _require_distributions(distributions, [*extra, *described])
        axes, start = [], 0
        for name, distribution in distributions.items():
            choices = distinct(getattr(distribution, "choices", ()))
            levels = distinct(
                [*choices, *(e for e in extra.get(name, ()) if not any(same_category(e, c) for c in choices))]
            )
            own = described.get(name)
            if own is not None:
                own.require(levels, name)
            wide = len(levels) + (0 if own is None else len(own.names))
            width = (wide if len(levels) > 1 else 0) if levels else 1 - has_single_value(distribution)
            axes.append(Axis(name, distribution, levels, slice(start, start + width), own))
            start += width
        if start == 0:
            raise InputError(
                f"There is nothing to choose: every parameter has a single value ({', '.join(distributions)}). "
                "Widen a range, or add a parameter."
            )
        known = {
            name: condition if condition.parent in distributions else Condition()
            for name, condition in (conditions or {}).items()
            if name in distributions
        }
        return cls(tuple(axes), tuple(known.items()))

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters' names, in order."""
        return tuple(axis.name for axis in self.axes)

    @property
    def distributions(self) -> dict[str, Distribution]:
        """The parameters' distributions by name."""
        return {axis.name: axis.distribution for axis in self.axes}

    @cached_property
    def by_name(self) -> dict[str, Axis]:
        """The parameters by name."""
        return {axis.name: axis for axis in self.axes}

    @property
    def d(self) -> int:
        """How many columns X has."""
        return int(self.axes[-1].columns.stop)

    @cached_property
    def categories(self) -> tuple[tuple[int, ...], ...]:
        """The columns of every categorical parameter that has any: those of its levels, then of its descriptors."""
        return tuple(group for axis in self.axes for group in axis.groups)

    @cached_property
    def described(self) -> tuple[tuple[int, ...], ...]:
        """Those of the categories' columns that hold descriptors."""
        return tuple(axis.groups[-1] for axis in self.axes if axis.descriptors is not None and axis.width)

    def encode(self, rows: Sequence[Mapping[str, Any]]) -> Float[Tensor, "n d"]:
        """Coordinates of rows of values.

        Args:
            rows: Values by parameter name. Other keys are ignored, and so are the values of single-valued parameters.

        Returns:
            The coordinates, one row each; numbers outside their range keep their place on the same scale.

        Raises:
            NoPlaceError: A value, named with its row, is missing, no number, or an unknown category.
        """
        blocks = []
        for axis in self.axes:
            if axis.width == 0:
                continue
            absent = [i for i, row in enumerate(rows) if axis.name not in row]
            if absent and axis.name not in self._condition_of:
                raise NoPlaceError(
                    f"Row {absent[0]} has no value for parameter {axis.name!r}: give every parameter of the space "
                    f"({', '.join(self.names)})."
                )
            block = axis.place([row.get(axis.name, axis.first) for row in rows])
            block[absent] = axis.at_rest
            blocks.append(block)
        return torch.cat(blocks, dim=-1)

    def encode_exactly(self, rows: Sequence[Mapping[str, Any]]) -> Float[Tensor, "n d"]:
        """Coordinates of rows that are to be run as they stand.

        Args:
            rows: Values by parameter name, of each parameter that is active in the row.

        Returns:
            The coordinates, one row each.

        Raises:
            NoPlaceError: A row, named with the parameter, could not be suggested: a value is missing, outside the range
                or the grid, or belongs to a parameter that is not active with the other values.
        """
        X = self.encode(rows)
        for i, (row, nearest) in enumerate(zip(rows, self.decode(X), strict=True)):
            for axis in self.axes:
                name = axis.name
                if name in row and name in nearest:
                    _require_same(axis, i, row[name], nearest[name])
                elif name in nearest:
                    raise NoPlaceError(f"Row {i} has no value for parameter {name!r}. Fill it in, or remove the row.")
                elif name in row:
                    raise NoPlaceError(
                        f"Row {i} has {name} = {row[name]!r}, but with its other values there is none. "
                        "Leave it out, or remove the row."
                    )
        return X

    def decode(self, X: Float[Tensor, "n d"]) -> list[dict[str, Any]]:
        """Values at the points of the space that are nearest to the rows of X.

        Args:
            X: Coordinates.

        Returns:
            Values by parameter name, one mapping per row, without those of parameters that are not active.
        """
        self._require(X)
        columns = [axis.value(X[..., axis.columns].detach().cpu()) for axis in self.axes]
        rows = [dict(zip(self.names, values, strict=True)) for values in zip(*columns, strict=True)]
        if not self.conditions:
            return rows
        there = self.present(self.snap(X)).tolist()
        return [
            {name: value for (name, value), here in zip(row.items(), flags, strict=True) if here}
            for row, flags in zip(rows, there, strict=True)
        ]

    def snap(self, X: Float[Tensor, "*b n d"]) -> Float[Tensor, "*b n d"]:
        """Coordinates of the nearest points of the space: encode(decode(X)) without leaving torch.

        Args:
            X: Coordinates.

        Returns:
            Coordinates of points that may be suggested.
        """
        self._require(X)
        return self.rested(torch.cat([axis.snap(X[..., axis.columns]) for axis in self.axes], dim=-1))

    @cached_property
    def _condition_of(self) -> dict[str, Condition]:
        return dict(self.conditions)

    def present(self, X: Float[Tensor, "*b n d"]) -> Bool[Tensor, "*b n p"]:
        """Which parameters are active at points of the space.

        Args:
            X: Coordinates of points of the space.

        Returns:
            One flag per parameter.
        """
        found: dict[str, Tensor] = {}

        def there(name: str) -> Tensor:
            if name not in found:
                condition = self._condition_of.get(name, Condition())
                if condition.parent is None:
                    found[name] = torch.ones(X.shape[:-1], dtype=torch.bool, device=X.device)
                else:
                    parent = self.by_name[condition.parent]
                    found[name] = there(parent.name) & condition.met(parent, X[..., parent.columns])
            return found[name]

        return torch.stack([there(name) for name in self.names], dim=-1)

    def resting(self, X: Float[Tensor, "*b n d"]) -> Bool[Tensor, "*b n d"] | None:
        """Which coordinates belong to parameters that are not active.

        Args:
            X: Coordinates of points of the space.

        Returns:
            One flag per coordinate; None if every parameter is active everywhere.
        """
        if not any(condition.parent for _, condition in self.conditions):
            return None
        widths = torch.tensor([axis.width for axis in self.axes], device=X.device)
        return ~self.present(X).repeat_interleave(widths, dim=-1)

    def rested(self, X: Float[Tensor, "*b n d"]) -> Float[Tensor, "*b n d"]:
        """X with the parameters that are not active at rest.

        Args:
            X: Coordinates of points of the space.

        Returns:
            Their coordinates, equal in all parameters that are not active.
        """
        absent = self.resting(X)
        if absent is None:
            return X
        return torch.where(absent, torch.cat([axis.at_rest for axis in self.axes]).to(X), X)

    def _require(self, X: Tensor) -> None:
        if X.shape[-1] != self.d:
            raise InputError(f"X must have the {self.d} columns of the space, but it has {X.shape[-1]}.")
        if bool(X.isnan().any()):
            raise InputError("X has NaN entries, which are nowhere near any point of the space.")


def _require_same(axis: Axis, row: int, value: Any, nearest: Any) -> None:
    """Raise a ``NoPlaceError`` unless a value is the one that would be suggested in its place."""
    if axis.categorical:
        if not any(same_category(value, choice) for choice in axis.choices):
            why = f"none of {', '.join(map(repr, axis.choices))}. Correct it"
            raise NoPlaceError(f"Row {row}: parameter {axis.name!r} = {value!r} is {why}, or remove the row.")
    elif not isinstance(value, Real) or abs(value - nearest) > rounding(nearest):
        why = f"{'none of' if axis.listed else 'outside'} {span_in_words(axis.distribution)}. "
        why += "Add it to the values" if axis.listed else "Widen its range"
        raise NoPlaceError(f"Row {row}: parameter {axis.name!r} = {value!r} is {why}, or remove the row.")


def _require_distributions(distributions: Mapping[str, Distribution], extra: Sequence[str]) -> None:
    """Raise an ``InputError`` unless the distributions can be placed in the unit cube."""
    if not distributions:
        raise InputError("The space has no parameters: give at least one, as in {'x': FloatRange(0, 1)}.")
    for name, distribution in distributions.items():
        optunas = {kind.__name__ for kind in type(distribution).__mro__ if kind.__module__ == "optuna.distributions"}
        ours = isinstance(distribution, FloatRange | IntRange | DiscreteNumbers | Choices)
        if not ours and not optunas & {*_OPTUNAS}:
            raise InputError(
                f"Parameter {name!r} must have one of Optuna's {', '.join(_OPTUNAS)}, or a FloatRange, an IntRange, "
                f"DiscreteNumbers or Choices, but it has a {type(distribution).__name__}."
            )
        low, high = getattr(distribution, "low", 0.0), getattr(distribution, "high", 0.0)
        if not (low <= high and math.isfinite(float(high) - float(low))):
            raise InputError(f"Parameter {name!r} must have a finite range with low ≤ high, but it is {low} … {high}.")
    for name in extra:
        if not hasattr(distributions.get(name), "choices"):
            raise InputError(
                f"Extra levels or descriptors are given for {name!r}, which is no categorical parameter of the space."
            )
