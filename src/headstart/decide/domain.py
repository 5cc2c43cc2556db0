"""Which points may be suggested, and how a search moves among them.

domain          its points                                   searched by
Cube(d)         the unit cube                                Sobol points, polished
Mixed(space)    the encoded points of a ``Space``, some      the same, and exchanging one discrete value at a time;
                values of which may be pinned                comparing all of them if they are few
Ruled(space, …) those that keep rules about the settings     the same, inside the rules (decide.ruled)
Candidates(X)   the rows of X                                comparing all of them
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.quasirandom import SobolEngine

from headstart.data.axis import Axis
from headstart.data.rules.rule import SettingRule, feasible_rows
from headstart.data.rules.text import read_rules
from headstart.data.space import Space
from headstart.decide.region import Region
from headstart.errors import InputError

# Spaces with no more points than this are compared point by point
_FEW_POINTS = 2000
# Grids with more values than this are polished as if they were continuous, and stepped along afterwards
_FEW_VALUES = 20
# How far near points lie (of the unit cube), and how often they have another category
_NEAR = 0.05
_OTHER_CATEGORY = 0.25


class Domain(ABC):
    """The points that may be suggested."""

    @property
    @abstractmethod
    def d(self) -> int:
        """How many columns a point has."""

    @property
    def inputs(self) -> int:
        """How many parameters there are to choose: a category is one, however many columns it has."""
        return self.d - sum(len(columns) - 1 for columns in self.categories) - len(self.described)

    @property
    def categories(self) -> tuple[tuple[int, ...], ...]:
        """Groups of columns that are the levels of one category each, or describe them."""
        return ()

    @property
    def described(self) -> tuple[tuple[int, ...], ...]:
        """Those of the groups that describe categories."""
        return ()

    @abstractmethod
    def listing(self) -> Float[Tensor, "m d"] | None:
        """All points, where they are few enough to be compared one by one."""


class Searchable(Domain):
    """A domain with too many points to compare them all (unless it has a ``listing``)."""

    def listing(self) -> Float[Tensor, "m d"] | None:
        """There are too many."""
        return None

    @abstractmethod
    def spread(self, n: int, generator: torch.Generator) -> Float[Tensor, "n d"]:
        """Points all over the domain."""

    @abstractmethod
    def uniform(self, n: int, generator: torch.Generator) -> Float[Tensor, "n d"]:
        """Independent points, every value of a parameter as likely as the others."""

    @abstractmethod
    def near(self, anchors: Float[Tensor, "*b k d"], n: int, generator: torch.Generator) -> Float[Tensor, "*b k*{n} d"]:
        """``n`` points of the domain near each of the anchors, the same steps from all of them."""

    @abstractmethod
    def snap(self, X: Float[Tensor, "*b n d"]) -> Float[Tensor, "*b n d"]:
        """The nearest points of the domain."""

    @property
    @abstractmethod
    def free(self) -> Int[Tensor, "f"]:
        """The columns in which a point may be polished, the others staying as they are."""

    def region(self, X: Float[Tensor, "n d"]) -> Region | None:  # noqa: ARG002
        """Where each of X may be polished to, in the free columns; None if that is the unit cube."""
        return None

    def resting(self, X: Float[Tensor, "*b k d"]) -> Bool[Tensor, "*b k d"] | None:  # noqa: ARG002
        """The coordinates that are not to be polished at each of X in particular; None if there are none anywhere."""
        return None

    def exchanges(self, X: Float[Tensor, "*b k d"]) -> Float[Tensor, "*b k m d"] | None:  # noqa: ARG002
        """The points that differ from each of X in one discrete parameter; None if there is no such parameter."""
        return None


def _sobol(d: int, n: int, generator: torch.Generator) -> Float[Tensor, "n d"]:
    engine = SobolEngine(d, scramble=True, seed=int(torch.randint(1 << 31, (), generator=generator)))
    return engine.draw(n, dtype=torch.float64)


@dataclass(frozen=True)
class Cube(Searchable):
    """The unit cube of ``dimension`` continuous inputs."""

    dimension: int

    @property
    def d(self) -> int:
        """How many columns a point has."""
        return self.dimension

    def spread(self, n: int, generator: torch.Generator) -> Float[Tensor, "n d"]:
        """A scrambled Sobol set, which leaves no part of the cube out."""
        return _sobol(self.d, n, generator)

    def uniform(self, n: int, generator: torch.Generator) -> Float[Tensor, "n d"]:
        """Independent points, uniform in the cube."""
        return torch.rand(n, self.d, generator=generator, dtype=torch.float64)

    def near(self, anchors: Float[Tensor, "*b k d"], n: int, generator: torch.Generator) -> Float[Tensor, "*b k*{n} d"]:
        """Normal steps, held inside."""
        steps = _NEAR * torch.randn(n, 1, self.d, generator=generator, dtype=torch.float64)
        return self.snap(anchors.unsqueeze(-3) + steps.to(anchors.device)).flatten(-3, -2)

    def snap(self, X: Float[Tensor, "*b n d"]) -> Float[Tensor, "*b n d"]:
        """Onto the boundary from outside."""
        return X.clamp(0.0, 1.0)

    @cached_property
    def free(self) -> Int[Tensor, "f"]:
        """The columns that may be polished: all of them."""
        return torch.arange(self.d)


@dataclass(frozen=True)
class Mixed(Searchable):
    """The points of a space of named parameters: continuous ones, grids and categories.

    ``pinned`` are parameters that have a value already, which need not be one that would be suggested.
    """

    space: Space
    pinned: Mapping[str, Any] = field(default_factory=dict)

    @property
    def d(self) -> int:
        """How many columns a point has."""
        return self.space.d

    @property
    def categories(self) -> tuple[tuple[int, ...], ...]:
        """Those of the space."""
        return self.space.categories

    @property
    def described(self) -> tuple[tuple[int, ...], ...]:
        """Those of the space."""
        return self.space.described

    @cached_property
    def _axes(self) -> tuple[Axis, ...]:
        return tuple(axis for axis in self.space.axes if axis.width)

    def listing(self) -> Float[Tensor, "m d"] | None:
        """Every combination of values, if nothing is continuous and they are few."""
        if self.space.size is None or self.space.size > _FEW_POINTS:
            return None
        grids = [axis.grid() for axis in self._axes]
        rows = torch.cartesian_prod(*(torch.arange(len(grid)) for grid in grids)).reshape(-1, len(grids))
        X = torch.cat([grid[rows[:, i]] for i, grid in enumerate(grids)], dim=-1)
        return self.snap(X).unique(dim=0) if self.space.conditions or self.pinned else X

    def spread(self, n: int, generator: torch.Generator) -> Float[Tensor, "n d"]:
        """Sobol points of the parameters, so that every category is met equally often."""
        return self._at(_sobol(len(self._axes), n, generator))

    def uniform(self, n: int, generator: torch.Generator) -> Float[Tensor, "n d"]:
        """Uniform values of numbers, and every category as likely as the others."""
        return self._at(torch.rand(n, len(self._axes), generator=generator, dtype=torch.float64))

    def _at(self, u: Float[Tensor, "n p"]) -> Float[Tensor, "n d"]:
        """The points of the domain at these shares of the parameters' ranges."""
        return self.snap(torch.cat([self._spread(axis, u[:, i]) for i, axis in enumerate(self._axes)], dim=-1))

    @staticmethod
    def _spread(axis: Axis, u: Float[Tensor, "n"]) -> Float[Tensor, "n w"]:
        k = len(axis.choices)
        return axis.grid()[(u * k).long().clamp(max=k - 1)] if axis.categorical else u.unsqueeze(-1)

    def near(self, anchors: Float[Tensor, "*b k d"], n: int, generator: torch.Generator) -> Float[Tensor, "*b k*{n} d"]:
        """Normal steps, on grids of about one value at least; a categorical parameter changes now and then."""
        blocks = []
        for axis in self._axes:
            block = anchors[..., axis.columns].unsqueeze(-3)
            if axis.categorical:
                other = torch.rand(n, 1, axis.width, generator=generator, dtype=torch.float64)
                change = torch.rand(n, 1, 1, generator=generator, dtype=torch.float64) < _OTHER_CATEGORY
                blocks.append(torch.where(change.to(block.device), other.to(block.device), block))
            else:
                step = _NEAR if axis.count is None else max(_NEAR, 1 / axis.count)
                steps = step * torch.randn(n, 1, 1, generator=generator, dtype=torch.float64)
                blocks.append(block + steps.to(block.device))
        return self.snap(torch.cat(blocks, dim=-1)).flatten(-3, -2)

    def snap(self, X: Float[Tensor, "*b n d"]) -> Float[Tensor, "*b n d"]:
        """The nearest values of every parameter, but those that are pinned."""
        if not self.pinned:
            return self.space.snap(X)
        columns, values = self._pins
        there = X.clone()
        there[..., columns] = values.to(X)
        there = self.space.snap(there)
        there[..., columns] = values.to(X)
        return there

    @cached_property
    def _pins(self) -> tuple[list[int], Float[Tensor, "k"]]:
        """The columns of the pinned parameters, and what they hold."""
        axes = [axis for axis in self._axes if axis.name in self.pinned]
        columns = [c for axis in axes for c in range(axis.columns.start, axis.columns.stop)]
        return columns, torch.cat([axis.place([self.pinned[axis.name]])[0] for axis in axes] or [torch.empty(0)])

    @cached_property
    def free(self) -> Int[Tensor, "f"]:
        """The continuous parameters, and the grids so fine that they nearly are."""
        numbers = [axis for axis in self._axes if not axis.categorical and axis.name not in self.pinned]
        fine = [axis.columns.start for axis in numbers if axis.count is None or axis.count > _FEW_VALUES]
        return torch.tensor(fine, dtype=torch.int64)

    def resting(self, X: Float[Tensor, "*b k d"]) -> Bool[Tensor, "*b k d"] | None:
        """Those of parameters that are not there."""
        return self.space.resting(X)

    def exchanges(self, X: Float[Tensor, "*b k d"]) -> Float[Tensor, "*b k m d"] | None:
        """Every other value of a category or a short grid, and steps of 1, 2, 4 … along a long one."""
        moves = [self.exchanged(axis, X) for axis in self._axes if axis.count and axis.name not in self.pinned]
        return torch.cat(moves, dim=-2) if moves else None

    def exchanged(self, axis: Axis, X: Float[Tensor, "*b k d"]) -> Float[Tensor, "*b k m d"]:
        """The points that differ from each of X in this discrete parameter."""
        own, count = X[..., axis.columns].unsqueeze(-2), axis.count or 1
        if count <= _FEW_VALUES or axis.categorical:
            others = axis.grid().to(X.device).expand(*X.shape[:-1], -1, -1)
        else:
            jumps = 2.0 ** torch.arange((count - 1).bit_length(), dtype=torch.float64, device=X.device)
            others = axis.stepped(own.squeeze(-1), torch.cat([jumps, -jumps])).unsqueeze(-1)
        moved = X.unsqueeze(-2).expand(*others.shape[:-1], -1).clone()
        moved[..., axis.columns] = others  # what was not there before has to begin at one of its values
        return self.snap(moved) if self.space.conditions or self.pinned else moved


@dataclass(frozen=True, eq=False)
class Candidates(Domain):
    """A given list of points (m, d), float64: one of them is suggested as it stands."""

    X: Float[Tensor, "m d"]
    levels: tuple[tuple[int, ...], ...] = ()
    described: tuple[tuple[int, ...], ...] = ()

    @classmethod
    def of(cls, space: Space, rows: Sequence[Mapping[str, Any]], rules: Sequence[SettingRule | str] = ()) -> Candidates:
        """Those of the rows of values that keep the rules; fails on a row outside the space, and if none keeps them."""
        if not rows:
            raise InputError("There are no candidates: give at least one row.")
        read = read_rules(rules, space)
        return cls(space.encode_exactly(rows)[feasible_rows(rows, read)], space.categories, space.described)

    def __post_init__(self) -> None:
        """Raise an ``InputError`` unless it is a list of finite points."""
        if self.X.dim() != 2 or self.X.shape[0] == 0 or self.X.dtype != torch.float64:
            what = f"{self.X.dtype} of shape {tuple(self.X.shape)}"
            raise InputError(f"Candidates must be a float64 tensor of at least one row, (m, d), but it is {what}.")
        if not bool(self.X.isfinite().all()):
            raise InputError("Candidates must be finite, but some entries are NaN or infinite: remove those rows.")

    @property
    def d(self) -> int:
        """How many columns a point has."""
        return self.X.shape[-1]

    @property
    def categories(self) -> tuple[tuple[int, ...], ...]:
        """As given in ``levels``."""
        return self.levels

    def listing(self) -> Float[Tensor, "m d"]:
        """All points of the domain: the rows themselves."""
        return self.X
