"""Rows that are to be run as they stand: each has to be a point of the space, and a message says which one is not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from headstart.data.axis import Axis, same_category
from headstart.data.rules.rule import Clause, Relation, SettingRule
from headstart.data.rules.text import parse_rule
from headstart.data.space import Space
from headstart.errors import InputError, NoPlaceError, NoSettingError


def listed(
    space: Space, rows: Sequence[Mapping[str, Any]], rules: Sequence[SettingRule | str] = ()
) -> Float[Tensor, "n d"]:
    """The coordinates of the rows that keep the rules.

    Fails, naming row and parameter, on one that could not be suggested in the space; and if no row keeps all rules.
    """
    if not rows:
        raise InputError("There are no candidates: give at least one row.")
    known = [parse_rule(rule, space) if isinstance(rule, str) else rule for rule in rules]
    for rule in known:
        rule.require(space)
    X = space.encode(rows)
    nearest = space.decode(X)
    for i, (row, there) in enumerate(zip(rows, nearest, strict=True)):
        for axis in space.axes:
            if axis.name in row and axis.name in there:
                _require_same(axis, i, row[axis.name], there[axis.name])
            elif axis.name in there:
                raise NoPlaceError(f"Row {i} has no value for parameter {axis.name!r}. Fill it in, or remove the row.")
            elif axis.name in row:
                raise NoPlaceError(
                    f"Row {i} has {axis.name} = {row[axis.name]!r}, but with its other values there is none. "
                    "Leave it out, or remove the row."
                )
    kept = torch.tensor([all(rule.holds(row) for rule in known) for row in rows])
    if not bool(kept.any()):
        every = "; ".join(map(str, known))
        raise NoSettingError(f"None of the {len(rows)} candidates keeps all rules ({every}). Remove one, or add rows.")
    return X[kept]


def _require_same(axis: Axis, row: int, value: Any, nearest: Any) -> None:
    """Raise unless a value is the one that would be suggested in its place."""
    if axis.categorical:
        if not any(same_category(value, choice) for choice in axis.choices):
            known = ", ".join(map(repr, axis.choices))
            raise NoPlaceError(
                f"Row {row}: parameter {axis.name!r} = {value!r} is none of {known}. Correct it, or remove the row."
            )
    elif not Clause(axis.name, Relation.EQUAL, nearest).met(value):
        low, high = axis.distribution.low, axis.distribution.high  # type: ignore[union-attr]
        step = getattr(axis.distribution, "step", None)
        grid = "" if step is None else f" by {step:g}"
        raise NoPlaceError(
            f"Row {row}: parameter {axis.name!r} = {value!r} is outside {low:g} … {high:g}{grid}. Widen its range, or "
            "remove the row."
        )
