"""``Descriptors``: numbers that describe the categories of a parameter, such as the polarity of a solvent.

Categories that are only names are all equally alike. With descriptors they are points, and what was seen with some of
them says something about their neighbours, even about a category that was never run. A category's coordinates are

    its own column          1/√2 in one column of its own, 0 in those of the others: as without descriptors
    its descriptors         each by its range over the categories, all divided by the largest distance between two of
                            them, around ½

The first part shares a lengthscale, and so does the second: how much a category differs from what its descriptors say,
and how much they matter, are learnt from the data. Both are for the sake of descriptors that are many, correlated or
beside the point. On the yields of a coupling, with structural counts of its additives, a lengthscale for every column
predicted worse than no descriptors at all, and so did descriptors without the first part; so did principal components
of the counts for the ligands of another. With both, results with known categories were
predicted no worse, and better on one of two tables; a category that was left out was predicted better in made-up
problems whose descriptors say all or half of it, and on the two tables about as well as without.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from headstart.data.ranges import same_category
from headstart.errors import InputError

# Of the largest magnitude: a column that varies by less is constant
_CONSTANT = 1e-12
_LISTED = 10  # categories that a message names
# Nearest known categories that an explanation names
_NAMED = 2


@dataclass(frozen=True)
class Neighbours:
    """Where a category lies among others: the nearest ones in the order of their distance, and what describes it.

    ``between`` says that it lies between the two nearest, seen along the line from one to the other.
    """

    category: Any
    nearest: tuple[Any, ...]
    names: tuple[str, ...]
    between: bool = False


@dataclass(frozen=True)
class Descriptors:
    """The numbers (one row per category) under their names. Built with ``Descriptors.of``, which checks them.

    ``remarks`` say in sentences what was left out and which categories the numbers do not tell apart.
    """

    names: tuple[str, ...]
    categories: tuple[Any, ...]
    values: tuple[tuple[float, ...], ...]
    remarks: tuple[str, ...] = ()

    @classmethod
    def of(cls, table: Any, parameter: str = "the parameter") -> Descriptors:
        """From a mapping {category: {name: number}}, or from a DataFrame.

        The categories of a DataFrame are in the column that is called as the parameter, or in its first one; every
        other column must hold numbers. Fails on a category that comes twice, on a number that is missing or none, and
        where nothing varies. A constant column is left out, with a remark.
        """
        rows = _rows(table, parameter)
        if len(rows) < 2:
            raise InputError(f"Descriptors of {parameter!r} are needed for at least two categories, not {len(rows)}.")
        names = list(dict.fromkeys(name for _, row in rows for name in row))
        categories: list[Any] = []
        for category, row in rows:
            if any(same_category(category, other) for other in categories):
                raise InputError(f"Descriptors of {parameter!r}: the category {category!r} is there twice. Remove one.")
            for name in names:
                value = row.get(name)
                if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
                    what = f"is {value!r}, which is not a number" if name in row else "is missing"
                    raise InputError(f"Descriptors of {parameter!r}: {name!r} of {category!r} {what}. Fill it in.")
            categories.append(category)
        columns = {name: [float(row[name]) for _, row in rows] for name in names}
        constant = [n for n, v in columns.items() if max(v) - min(v) <= _CONSTANT * max(abs(x) for x in v)]
        kept = [name for name in names if name not in constant]
        if not kept:
            raise InputError(
                f"Descriptors of {parameter!r}: no column tells the categories apart ({', '.join(names) or 'none'} "
                "are constant). Give numbers that differ, or leave the descriptors out."
            )
        values = tuple(zip(*(columns[name] for name in kept), strict=True))
        remarks = [f"{name} of {parameter} is the same for all categories: it is left out." for name in constant]
        for i, own in enumerate(values):
            same = next((j for j in range(i) if values[j] == own), None)
            if same is not None:
                remarks.append(
                    f"{categories[same]!r} and {categories[i]!r} of {parameter} have equal descriptors: they are told "
                    "apart as names are."
                )
        return cls(tuple(kept), tuple(categories), values, tuple(remarks))

    def row(self, category: Any) -> tuple[float, ...] | None:
        """The numbers of a category; None where there are none."""
        for own, values in zip(self.categories, self.values, strict=True):
            if same_category(own, category):
                return values
        return None

    def require(self, categories: Sequence[Any], parameter: str, where: str = "") -> None:
        """Raise an ``InputError`` that names the first category that is not described; ``where`` it was met."""
        for category in categories:
            if self.row(category) is None:
                more = f" … ({len(self.categories)} in all)" if len(self.categories) > _LISTED else ""
                known = ", ".join(map(repr, self.categories[:_LISTED])) + more
                raise InputError(
                    f"{where + ': ' if where else ''}{parameter} = {category!r} has no descriptors: there are those "
                    f"of {known}. Add its {', '.join(self.names)}, or leave the category out."
                )

    def points(self, categories: Sequence[Any]) -> Float[Tensor, "n k"]:
        """Their coordinates: the scale is that of all categories that are described, whichever are asked for."""
        everything = torch.tensor(self.values, dtype=torch.float64)
        low, high = everything.amin(0), everything.amax(0)
        unit = (everything - low) / (high - low)
        largest = torch.cdist(unit, unit).amax()
        rows = torch.tensor([self.row(category) for category in categories], dtype=torch.float64)
        middle = 0.5 * (low + high)
        return 0.5 + (rows.reshape(-1, len(self.names)) - middle) / (high - low) / largest

    def neighbours(self, category: Any, known: Sequence[Any]) -> Neighbours:
        """The known categories that are nearest to this one."""
        described = [other for other in known if self.row(other) is not None and not same_category(other, category)]
        if not described:
            return Neighbours(category, (), self.names)
        own, others = self.points([category])[0], self.points(described)
        order = (others - own).square().sum(-1).argsort(stable=True)[:_NAMED].tolist()
        ends = others[order] - own
        between = len(order) == _NAMED and float(ends[0] @ ends[1]) < 0
        return Neighbours(category, tuple(described[i] for i in order), self.names, between)


def _rows(table: Any, parameter: str) -> list[tuple[Any, Mapping[str, Any]]]:
    if isinstance(table, Mapping):
        for category, row in table.items():
            if not isinstance(row, Mapping):
                raise InputError(
                    f"Descriptors of {parameter!r} must be numbers by name, as in {{'polarity': 0.3}}, but those of "
                    f"{category!r} are {row!r}."
                )
        return [(category, {str(name): value for name, value in row.items()}) for category, row in table.items()]
    if not hasattr(table, "columns") or not hasattr(table, "to_dict"):
        raise InputError(
            f"Descriptors of {parameter!r} must be a mapping of categories or a DataFrame, but they are a "
            f"{type(table).__name__}."
        )
    columns = [str(column) for column in table.columns]
    if len(columns) < 2:
        raise InputError(f"Descriptors of {parameter!r} need a column of categories and at least one of numbers.")
    own = columns.index(parameter) if parameter in columns else 0
    found: list[tuple[Any, Mapping[str, Any]]] = []
    for values in table.itertuples(index=False, name=None):
        plain = [value.item() if hasattr(value, "item") else value for value in values]
        found.append((plain[own], {c: v for i, (c, v) in enumerate(zip(columns, plain, strict=True)) if i != own}))
    return found
