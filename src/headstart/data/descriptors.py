"""``Descriptors``: numbers that describe the categories of a parameter, such as the polarity of a solvent.

Categories that are only names are all equally alike. With descriptors they are points, and what was seen with some of
them says something about their neighbours, even about a category that was never run. A category's coordinates are

    its own column          1/√2 in one column of its own, 0 in those of the others: as without descriptors
    its descriptors         each by its range over the categories, all divided by the largest distance between two of
                            them, around ½

The first part shares a lengthscale, and so does the second: how much a category differs from what its descriptors say,
and how much they matter, are learnt from the data. On tables of reaction yields a lengthscale for every descriptor, or
descriptors without the first part, predicted worse than no descriptors at all.
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

_CONSTANT = 1e-12  # of the largest magnitude: a column that varies by less is constant
_LISTED = 10  # categories that a message names


@dataclass(frozen=True)
class Descriptors:
    """Numbers under their ``names``, a row of ``values`` per category. ``Descriptors.of`` makes and checks them."""

    names: tuple[str, ...]
    categories: tuple[Any, ...]
    values: tuple[tuple[float, ...], ...]
    remarks: tuple[str, ...] = ()  # on constant columns, which are left out, and on categories with equal numbers

    @classmethod
    def of(cls, table: Mapping[Any, Mapping[str, float]], parameter: str = "the parameter") -> Descriptors:
        """From {category: {name: number}}; an ``InputError`` where a number is missing or no number varies."""
        if len(table) < 2:
            raise InputError(f"Descriptors of {parameter!r} are needed for at least two categories, not {len(table)}.")
        names = list(dict.fromkeys(name for row in table.values() for name in row))
        for category, row in table.items():
            for name in names:
                value = row.get(name)
                if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
                    what = f"is {value!r}, which is not a number" if name in row else "is missing"
                    raise InputError(f"Descriptors of {parameter!r}: {name!r} of {category!r} {what}. Fill it in.")
        categories = tuple(table)
        columns = {name: [float(row[name]) for row in table.values()] for name in names}
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
        return cls(tuple(kept), categories, values, tuple(remarks))

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

    def neighbours(self, category: Any, known: Sequence[Any]) -> tuple[tuple[Any, ...], bool]:
        """The two known categories nearest to this one, and whether it lies between the two."""
        described = [other for other in known if self.row(other) is not None and not same_category(other, category)]
        own, others = self.points([category])[0], self.points(described)
        order = (others - own).square().sum(-1).argsort(stable=True)[:2].tolist()
        ends = others[order] - own
        return tuple(described[i] for i in order), len(order) == 2 and float(ends[0] @ ends[1]) < 0
