"""``Axis``: one named parameter, and the coordinates of its values.

    parameter                       columns     coordinate of a value v
    float                           1           (v − low) / (high − low)
    float, log                      1           the same of log v
    int, or float with a step       1           (i + ½) / k for number i of the k values of the grid
    int, log                        1           log v between log(low − ½) and log(high + ½)
    k discrete numbers              1           (s + 1 / (2(k − 1))) (k − 1) / k with s = (v − low) / (high − low)
    discrete numbers, log           1           the same of log v
    categorical                     1 a level   1/√2 in its own column, 0 in the others; then those of its descriptors
    a single value                  none        nothing to choose, so nothing to model

So the values of an even grid own equal shares of [0, 1], each with its value in the middle, discrete numbers at equal
gaps lie where those of a grid do, and on a log axis an integer v owns what lies between the logs of v ± ½. Any two
levels of a category are at distance 1, as are the ends of a range.
A number outside the range, or between the values of a grid, keeps its place on the same ruler: what was measured there
stays evidence. Back from the cube every point is taken to the nearest one that is allowed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from numbers import Real
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headstart.data.descriptors import Descriptors
from headstart.data.ranges import (
    DiscreteNumbers,
    distinct,
    has_single_value,
    identical_category,
    same_category,
    scale_ends,
)
from headstart.errors import NoPlaceError

_ON_GRID = 1e-8  # how far from a grid value, in steps, a number is still that value
_OWN = 1 / math.sqrt(2)  # the coordinate of a level in its own column, which puts any two levels at distance 1


@dataclass(frozen=True)
class Axis:
    """One parameter: its name, its distribution (Optuna's or one of ``data.ranges``), and the columns of X it owns.

    ``levels`` are the categories, the ones that may be suggested first, then those only sources know; a numeric
    parameter has none. A parameter with a single value owns no column.
    """

    name: str
    distribution: Any  # a ``Distribution``, each kind of which has its own attributes
    levels: tuple[Any, ...]
    columns: slice = field(hash=False)  # Python hashes slices from 3.12 on
    descriptors: Descriptors | None = None

    @property
    def width(self) -> int:
        """How many columns it owns."""
        return int(self.columns.stop - self.columns.start)

    @property
    def categorical(self) -> bool:
        """Whether its values are levels, not numbers."""
        return bool(self.levels)

    @cached_property
    def choices(self) -> tuple[Any, ...]:
        """The categories that may be suggested."""
        return distinct(self.distribution.choices) if self.categorical else ()

    @property
    def first(self) -> Any:
        """Its first category, or its lowest number."""
        return self.levels[0] if self.categorical else self.distribution.low

    @property
    def integer(self) -> bool:
        """Whether its values are integers."""
        return not self.categorical and isinstance(self.distribution.low, int)

    @property
    def log(self) -> bool:
        """Whether ratios count, not differences."""
        return not self.categorical and bool(self.distribution.log)

    @property
    def listed(self) -> bool:
        """Whether its values are numbers of a list."""
        return isinstance(self.distribution, DiscreteNumbers)

    @cached_property
    def count(self) -> int | None:
        """How many values may be suggested; None if it is continuous."""
        if self.categorical:
            return len(self.choices)
        if has_single_value(self.distribution):
            return 1
        if self.listed:
            return len(self.distribution.values)
        if self.distribution.step is None:
            return None
        low, high, step = (
            Decimal(str(v)) for v in (self.distribution.low, self.distribution.high, self.distribution.step)
        )
        return round((high - low) / step) + 1

    @property
    def at_rest(self) -> Float[Tensor, "w"]:
        """The coordinates where the parameter is not active: the middle, equally far from all categories."""
        middle = torch.full((self.width,), 0.5, dtype=torch.float64)
        return middle.where(torch.arange(self.width) >= len(self.levels), 0.0)

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The columns that share a lengthscale: those of a category's levels, and those of its descriptors."""
        every = range(self.columns.start, self.columns.stop) if self.categorical else range(0)
        return tuple(tuple(part) for part in (every[: len(self.levels)], every[len(self.levels) :]) if part)

    @cached_property
    def _table(self) -> Float[Tensor, "k w"]:
        """The coordinates of every level."""
        own = _OWN * torch.eye(len(self.levels), dtype=torch.float64)
        return own if self.descriptors is None else torch.cat([own, self.descriptors.points(self.levels)], dim=-1)

    def place(self, values: Sequence[Any]) -> Float[Tensor, "n w"]:
        """The coordinates of the values, in this parameter's own columns."""
        if self.width == 0:
            return torch.empty(len(values), 0, dtype=torch.float64)
        if self.categorical:
            return self._table[torch.tensor(self._indices(values), dtype=torch.int64)]
        numbers = [self._number(value, i) for i, value in enumerate(values)]
        if self._even:  # differences of large integers are exact before they are floats
            low, step = self.distribution.low, self.distribution.step
            u = self._at_index(_onto_grid(torch.tensor([(v - low) / step for v in numbers], dtype=torch.float64)))
        else:
            u = self.coordinates(torch.tensor(numbers, dtype=torch.float64))
        if not bool(u.isfinite().all()):
            row = int((~u.isfinite()).nonzero()[0])
            span = f"{self.distribution.low} … {self.distribution.high}"
            raise NoPlaceError(f"{self._what(row)} = {values[row]!r} is too far outside {span} to be used.")
        return u.unsqueeze(-1)

    def _indices(self, values: Sequence[Any]) -> list[int]:
        """The number of every value's level; a value that comes again is looked up once."""
        known: dict[tuple[type, Any], int] = {}
        found = []
        for row, value in enumerate(values):
            key = (type(value), value)
            try:
                index = known.get(key)
            except TypeError:  # a value without a hash
                found.append(self._level(value, row))
                continue
            if index is None:
                index = known[key] = self._level(value, row)
            found.append(index)
        return found

    def _level(self, value: Any, row: int) -> int:
        for same in (identical_category, same_category):
            found = next((i for i, level in enumerate(self.levels) if same(level, value)), None)
            if found is not None:
                return found
        raise NoPlaceError(
            f"{self._what(row)} = {value!r} is none of its categories ({', '.join(map(repr, self.levels))}). "
            "Correct it, or add it to the extra levels if past tasks used it."
        )

    def _number(self, value: Any, row: int) -> float | int:
        if not isinstance(value, Real) or not math.isfinite(value):
            raise NoPlaceError(f"{self._what(row)} = {value!r} is not a number. Fill it in, or leave the row out.")
        if self.log and value <= 0:
            raise NoPlaceError(
                f"{self._what(row)} = {value!r} has no place on a log axis. Leave the row out, or use an axis "
                "without log."
            )
        return value if isinstance(value, int | float) else value.__float__()

    def _what(self, row: int) -> str:
        return f"Row {row}: parameter {self.name!r}"

    def value(self, block: Float[Tensor, "n w"]) -> list[Any]:
        """The nearest values that may be suggested, of the types the distribution promises."""
        if self.categorical:
            picked = self._pick(block) if self.width else torch.zeros(len(block), dtype=torch.int64)
            return [self.choices[i] for i in picked.tolist()]
        low, high = self.distribution.low, self.distribution.high
        if self.count == 1:
            return [low] * len(block)
        u = block.squeeze(-1)
        if self.count is None:
            return self.numbers(u).tolist()
        if not self._indexed:
            return [int(v) for v in self.numbers(u).tolist()]
        cells = [min(int(i), self.count - 1) for i in self._cell(u).tolist()]
        if self.listed:
            return [self.distribution.values[i] for i in cells]
        if self.integer:
            return [low + self.distribution.step * i for i in cells]
        start, step = Decimal(str(low)), Decimal(str(self.distribution.step))  # 0.3, not 3 · 0.1 = 0.30000000000000004
        return [min(max(float(start + i * step), low), high) for i in cells]

    def snap(self, block: Float[Tensor, "*b n w"]) -> Float[Tensor, "*b n w"]:
        """The coordinates of the nearest values that may be suggested."""
        if self.width == 0:
            return block
        if self.categorical:
            return self._table.to(block)[self._pick(block)]
        if self._indexed:
            return self._at_index(self._cell(block))
        return self.coordinates(self.numbers(block))

    def stepped(self, u: Float[Tensor, "*c"], by: Float[Tensor, "*e"]) -> Float[Tensor, "*out"]:
        """The coordinates of the values ``by`` places further on a grid of numbers, or its end; shapes broadcast."""
        assert self.count is not None
        if not self._indexed:
            return self.coordinates((self.numbers(u) + by).clamp(self.distribution.low, self.distribution.high))
        return self._at_index((self._cell(u) + by).clamp(0, self.count - 1))

    def grid(self) -> Float[Tensor, "k w"]:
        """The coordinates of all values that may be suggested, on an axis that is not continuous."""
        assert self.count is not None
        if self.width == 0:
            return torch.empty(self.count, 0, dtype=torch.float64)
        if self.categorical:
            return self._table[: self.count]
        index = torch.arange(self.count, dtype=torch.float64)
        own = self._at_index(index) if self._indexed else self.coordinates(self.distribution.low + index)
        return own.unsqueeze(-1)

    def level_at(self, block: Float[Tensor, "*b n w"]) -> Int[Tensor, "*b n"]:
        """The number of the level at these coordinates."""
        return block[..., : len(self.levels)].argmax(-1)

    def _pick(self, block: Float[Tensor, "*b n w"]) -> Int[Tensor, "*b n"]:
        return block[..., : len(self.choices)].argmax(-1)

    @cached_property
    def _even(self) -> bool:
        """Whether its values are an even grid of numbers: each owns an equal share of [0, 1]."""
        return self._indexed and not self.listed

    @cached_property
    def _indexed(self) -> bool:
        """Whether it has places of its own for value number 0, 1 …: an even grid, or a list."""
        return not self.categorical and self.count is not None and (self.listed or not self.log)

    @cached_property
    def _numbers(self) -> Float[Tensor, "k"]:
        """The numbers of its list."""
        return torch.tensor(self.distribution.values, dtype=torch.float64)

    @cached_property
    def _between(self) -> Float[Tensor, "e"]:
        """The coordinates in the middle between the neighbours of its list."""
        places = self.coordinates(self._numbers)
        return (places[1:] + places[:-1]) / 2

    def _cell(self, u: Float[Tensor, "*c"]) -> Float[Tensor, "*c"]:
        """The number of the nearest value, as a float."""
        assert self.count is not None
        if self.listed:
            return torch.bucketize(u.detach().contiguous(), self._between.to(u)).to(u)
        return (u.clamp(0.0, 1.0) * self.count).floor().clamp(max=self.count - 1)

    def _at_index(self, index: Float[Tensor, "*c"]) -> Float[Tensor, "*c"]:
        """(i + ½) / k for number i of the k values of an even grid; on a list the place of its number i."""
        assert self.count is not None
        if self.listed:
            return self.coordinates(self._numbers.to(index)[index.long()])
        return (index + 0.5) / self.count

    @cached_property
    def scale(self) -> tuple[float, float]:
        """What the coordinates 0 and 1 of a parameter that is no even grid stand for, as logs on a log axis."""
        return scale_ends(self.distribution)

    def coordinates(self, values: Float[Tensor, "*c"]) -> Float[Tensor, "*c"]:
        """The coordinates of numbers, also of those outside the range or between the values of a grid."""
        if self._even:
            return self._at_index(_onto_grid((values - self.distribution.low) / self.distribution.step))
        start, end = self.scale
        return ((values.log() if self.log else values) - start) / (end - start)

    def numbers(self, u: Float[Tensor, "*c"]) -> Float[Tensor, "*c"]:
        """The nearest numbers that may be suggested."""
        low, high = self.distribution.low, self.distribution.high
        if self.count == 1:
            return torch.full_like(u, low)
        if self.listed:
            return self._numbers.to(u)[self._cell(u).long()]
        if self._even:
            return torch.clamp(self._cell(u) * self.distribution.step + low, low, high)
        start, end = self.scale
        values = start + u.clamp(0.0, 1.0) * (end - start)
        values = values.exp() if self.log else values
        return (values.round() if self.integer else values).clamp(low, high)


def _onto_grid(index: Float[Tensor, "*c"]) -> Float[Tensor, "*c"]:
    """Numbers that miss an integer by rounding alone, such as 0.3 / 0.1, moved onto it."""
    nearest = index.round()
    return torch.where((index - nearest).abs() < _ON_GRID, nearest, index)
