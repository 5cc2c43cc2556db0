"""``Space``: named parameters side by side in the unit cube; see ``Axis``.

A parameter is described by one of Optuna's distributions, or by one of ``data.ranges``, for which Optuna is not needed.
One that is not always there has a ``Condition``: rows that lack it have it at rest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headstart.data.axis import Axis, distinct, has_single_value, same_category
from headstart.data.conditions import Condition
from headstart.data.descriptors import Descriptors
from headstart.data.ranges import Choices, Distribution, FloatRange, IntRange
from headstart.errors import InputError, NoPlaceError


@dataclass(frozen=True)
class Space:
    """The parameters of a search, in order; X has their columns side by side. Built with ``Space.of``."""

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
        """The space of these parameters; ``extra_levels`` are categories that only sources know, never suggested.

        ``conditions`` are those of the parameters that are not always there; one on a parameter that is no part of the
        space is none. ``descriptors`` are numbers that describe the categories of a parameter, all of them.

        Fails on an infinite range, on a distribution Optuna does not offer any more, and where nothing is to be
        chosen.
        """
        extra, described = extra_levels or {}, descriptors or {}
        _require_distributions(distributions, {**extra, **dict.fromkeys(described, ())})
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

    @cached_property
    def size(self) -> int | None:
        """How many points there are; None if a parameter is continuous."""
        counts = [axis.count for axis in self.axes]
        return None if None in counts else math.prod(count for count in counts if count is not None)

    def encode(self, rows: Sequence[Mapping[str, Any]]) -> Float[Tensor, "n d"]:
        """The coordinates of the rows; other keys are ignored, and so are the values of single-valued parameters.

        Fails, naming row and parameter, on a missing value, on one that is no number, and on an unknown category.
        """
        blocks = []
        for axis in self.axes:
            if axis.width == 0:
                continue
            there = [i for i, row in enumerate(rows) if axis.name in row]
            if len(there) < len(rows) and axis.name not in self._condition_of:
                i = next(i for i, row in enumerate(rows) if axis.name not in row)
                raise NoPlaceError(
                    f"Row {i} has no value for parameter {axis.name!r}: give every parameter of the space "
                    f"({', '.join(self.names)})."
                )
            if len(there) == len(rows):
                blocks.append(axis.place([row[axis.name] for row in rows]))
            else:
                block = axis.at_rest.repeat(len(rows), 1)
                block[there] = axis.place([rows[i][axis.name] for i in there])
                blocks.append(block)
        return torch.cat(blocks, dim=-1)

    def decode(self, X: Float[Tensor, "n d"]) -> list[dict[str, Any]]:
        """The points nearest to the rows of X, as values of the parameters; always inside the space.

        Parameters that are not there have no value.
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
        """The coordinates of the nearest points of the space: encode(decode(X)) without leaving torch."""
        self._require(X)
        return self.rested(torch.cat([axis.snap(X[..., axis.columns]) for axis in self.axes], dim=-1))

    # ── parameters that are not always there ──────────────────────────────────────────────────────────────────────

    @cached_property
    def _condition_of(self) -> dict[str, Condition]:
        return dict(self.conditions)

    def present(self, X: Float[Tensor, "*b n d"]) -> Bool[Tensor, "*b n p"]:
        """Which parameters are there at points of the space."""
        found: dict[str, Tensor] = {}
        axes = {axis.name: axis for axis in self.axes}

        def there(name: str) -> Tensor:
            if name not in found:
                condition = self._condition_of.get(name, Condition())
                if condition.parent is None:
                    found[name] = torch.ones(X.shape[:-1], dtype=torch.bool, device=X.device)
                else:
                    parent = axes[condition.parent]
                    found[name] = there(parent.name) & condition.met(parent, X[..., parent.columns])
            return found[name]

        return torch.stack([there(name) for name in self.names], dim=-1)

    def resting(self, X: Float[Tensor, "*b n d"]) -> Bool[Tensor, "*b n d"] | None:
        """Which coordinates belong to parameters that are not there; None if all parameters always are."""
        if not any(condition.parent for _, condition in self.conditions):
            return None
        widths = torch.tensor([axis.width for axis in self.axes], device=X.device)
        return ~self.present(X).repeat_interleave(widths, dim=-1)

    def rested(self, X: Float[Tensor, "*b n d"]) -> Float[Tensor, "*b n d"]:
        """X with the parameters that are not there at rest."""
        absent = self.resting(X)
        return X if absent is None else torch.where(absent, self._at_rest.to(X), X)

    @cached_property
    def _at_rest(self) -> Float[Tensor, "d"]:
        return torch.cat([axis.at_rest for axis in self.axes])

    def _require(self, X: Tensor) -> None:
        if X.shape[-1] != self.d:
            raise InputError(f"X must have the {self.d} columns of the space, but it has {X.shape[-1]}.")
        if bool(X.isnan().any()):
            raise InputError("X has NaN entries, which are nowhere near any point of the space.")


def _require_distributions(distributions: Mapping[str, Distribution], extra: Mapping[str, Sequence[Any]]) -> None:
    """Raise an ``InputError`` unless the distributions can be placed in the unit cube."""
    if not distributions:
        raise InputError("The space has no parameters: give at least one, as in {'x': FloatRange(0, 1)}.")
    for name, distribution in distributions.items():
        if _kind(name, distribution) is Choices:
            continue
        low, high = distribution.low, distribution.high  # type: ignore[union-attr]
        if not (low <= high and math.isfinite(float(high) - float(low))):
            raise InputError(f"Parameter {name!r} must have a finite range with low ≤ high, but it is {low} … {high}.")
    for name in extra:
        if name not in distributions or _kind(name, distributions[name]) is not Choices:
            raise InputError(
                f"Extra levels or descriptors are given for {name!r}, which is no categorical parameter of the space."
            )


def _kind(name: str, distribution: Distribution) -> type:
    """Which of our own descriptions it is, or stands for; Optuna is asked only about what is none of them."""
    if isinstance(distribution, FloatRange | IntRange | Choices):
        return type(distribution)
    with suppress(ImportError):
        from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

        alike = ((CategoricalDistribution, Choices), (FloatDistribution, FloatRange), (IntDistribution, IntRange))
        for theirs, ours in alike:
            if isinstance(distribution, theirs):
                return ours
    raise InputError(
        f"Parameter {name!r} must have one of Optuna's FloatDistribution, IntDistribution and "
        f"CategoricalDistribution, or a FloatRange, an IntRange or Choices, but it has a {type(distribution).__name__}."
    )
