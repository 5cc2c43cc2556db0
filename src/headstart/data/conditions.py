"""Conditional parameters, which are active in some rows only: ``gamma`` for one kernel, ``units_2`` from two layers on.

A search space that asks for some parameters in some branches only is one space all the same. A row that was run without
a parameter has it *at rest*, in one place for all such rows: two of them do not differ in it, so it is absent from any
comparison between them. When a parameter is active is learnt from the rows:

    active where                                         learnt from
    the parent has some of its categories                no category has rows with it and rows without it
    the parent, an integer, is at least, at most …       all rows with it lie on one side of all rows without it
    not known (a parameter that was added later)         rows of all kinds with it and without it

A parent is active itself wherever the parameter is, and also in some rows that lack it. So no two parameters are each
other's parents, and the parent of a parent is looked up in its turn.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headstart.data.axis import Axis
from headstart.data.ranges import distinct, same_category

_FEW_LEVELS = 12  # integers with no more different values may stand for categories
_LEAST_ROWS = 2  # with and without a parameter, for a threshold to be more than a coincidence


@dataclass(frozen=True)
class Condition:
    """When a parameter is active: its parent is, with a value not in ``without``, from ``least`` to ``most``.

    Without a parent it is not known when; the parameter then counts as active in any new row.
    """

    parent: str | None = None
    without: tuple[Any, ...] = ()
    least: float = -math.inf
    most: float = math.inf

    def allows(self, value: Any) -> bool:
        """Whether the parameter is active for this value of the parent."""
        if any(same_category(value, other) for other in self.without):
            return False
        bounded = math.isfinite(self.least) or math.isfinite(self.most)
        return not bounded or self.least <= value <= self.most

    def met(self, parent: Axis, block: Float[Tensor, "*b n w"]) -> Bool[Tensor, "*b n"]:
        """Where the parameter is active, the parent having these coordinates."""
        if parent.width == 0:
            return torch.full(block.shape[:-1], self.allows(parent.first), device=block.device)
        if parent.categorical:
            allowed = torch.tensor([self.allows(level) for level in parent.levels], device=block.device)
            return allowed[parent.level_at(block)]
        u = block.squeeze(-1)
        there = torch.ones_like(u, dtype=torch.bool)
        if math.isfinite(self.least):
            there &= u >= parent.place([self.least]).item()
        if math.isfinite(self.most):
            there &= u <= parent.place([self.most]).item()
        if excluded := [float(value) for value in self.without if isinstance(value, Real)]:
            there &= ~torch.isin(parent.numbers(u), u.new_tensor(excluded))
        return there


def learn_conditions(tasks: Sequence[Sequence[Mapping[str, Any]]]) -> dict[str, Condition]:
    """The condition of every parameter that some rows of a task lack, while others of that task have it."""
    found: dict[str, Condition] = {}
    counted = [(rows, Counter(name for row in rows for name in row)) for rows in tasks if rows]
    names = dict.fromkeys(name for _, counts in counted for name in counts)
    for name in names:
        knowing = [rows for rows, counts in counted if name in counts]
        if any(counts.get(name, len(rows)) < len(rows) for rows, counts in counted):
            found[name] = _condition(name, knowing, names)
    return found


def _condition(name: str, tasks: Sequence[Sequence[Mapping[str, Any]]], names: Mapping[str, Any]) -> Condition:
    """The condition on the parent that most rows have, categories before numbers; without a parent if none fits."""
    best: tuple[int, int, Condition] | None = None
    for parent in names:
        if parent == name:
            continue
        rows = [row for task in tasks if any(parent in row for row in task) for row in task]
        if any(name in row and parent not in row for row in rows):
            continue
        present = _distinct([row[parent] for row in rows if name in row])
        absent = _distinct([row[parent] for row in rows if parent in row and name not in row])
        if not present or not absent:
            continue
        fitting = _fitting(parent, name, rows, present, absent)
        if fitting is not None:
            merit = (sum(parent in row for row in rows), fitting[0])
            if best is None or merit > best[:2]:
                best = (*merit, fitting[1])
    return Condition() if best is None else best[2]


def _fitting(
    parent: str, name: str, rows: Sequence[Mapping[str, Any]], present: Sequence[Any], absent: Sequence[Any]
) -> tuple[int, Condition] | None:
    """The condition on this parent that all rows satisfy, with its preference."""
    whole = [isinstance(value, int) and not isinstance(value, bool) for value in (*present, *absent)]
    if all(whole):
        with_it = sum(name in row for row in rows)
        if min(with_it, sum(parent in row for row in rows) - with_it) < _LEAST_ROWS:
            return None
        if max(absent) < min(present):
            return 1, Condition(parent, least=(max(absent) + min(present)) / 2)
        if max(present) < min(absent):
            return 1, Condition(parent, most=(max(present) + min(absent)) / 2)
        if len(present) + len(absent) > _FEW_LEVELS:
            return None
    elif any(isinstance(value, float) for value in (*present, *absent)):
        return None
    if any(same_category(value, other) for value in present for other in absent):
        return None
    return 0 if all(whole) else 2, Condition(parent, without=tuple(absent))


def _distinct(values: Sequence[Any]) -> list[Any]:
    """The values without repetitions; a value that has no hash is compared."""
    try:
        return list(dict.fromkeys(values))
    except TypeError:
        return list(distinct(values))
