"""Which points may be suggested, and how a search moves among them.

domain          its points                                   searched by
Cube(d)         the unit cube                                Sobol points, polished
Mixed(space)    the encoded points of a ``Space``, some      the same, and exchanging one discrete value at a time;
                values of which may be pinned                comparing all of them if they are few
Ruled(space, …) those that keep rules about the settings     the same, inside the rules (decide.ruled)
Candidates(X)   the rows of X                                comparing all of them
"""

from __future__ import annotations

import math
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

FEW_POINTS = 2000  # spaces with no more points are compared point by point
FEW_VALUES = 20  # grids with more values are polished as if they were continuous, and stepped along afterwards
NEAR = 0.05  # the spread of near points, in shares of a range
_OTHER_CATEGORY = 0.25  # how often near points have another category


class Domain(ABC):
    """The points that may be suggested. A kind of domain implements ``d``, ``snap`` and ``_at`` at least."""

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

    @property
    def listing(self) -> Float[Tensor, "m d"] | None:
        """All points, where they are few enough to be compared one by one; else None."""
        return None

    def spread(self, n: int, generator: torch.Generator) -> Float[Tensor, "n d"]:
        """Points all over the domain, from a scrambled Sobol set.

        Args:
            n: Their number.
            generator: The source of randomness.

        Returns:
            n points of the domain.
        """
        engine = SobolEngine(self._shares, scramble=True, seed=int(torch.randint(1 << 31, (), generator=generator)))
        return self._at(engine.draw(n, dtype=torch.float64), generator)

    def uniform(self, n: int, generator: torch.Generator) -> Float[Tensor, "n d"]:
        """Independent points, every value of a parameter as likely as the others.

        Args:
            n: Their number.
            generator: The source of randomness.

        Returns:
            n points of the domain.
        """
        return self._at(torch.rand(n, self._shares, generator=generator, dtype=torch.float64), generator)

    def near(self, anchors: Float[Tensor, "k d"], n: int, generator: torch.Generator) -> Float[Tensor, "k*{n} d"]:
        """Points near others, after normal steps.

        Args:
            anchors: The points to start from.
            n: How many points near each of them; the steps are the same from all.
            generator: The source of randomness.

        Returns:
            k·n points of the domain.
        """
        steps = NEAR * torch.randn(n, 1, self.d, generator=generator, dtype=torch.float64)
        return self.snap((anchors + steps.to(anchors.device)).flatten(0, 1))

    @abstractmethod
    def snap(self, X: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
        """The nearest points of the domain.

        Args:
            X: Coordinates.

        Returns:
            A point of the domain for each row of X.
        """

    def exchanges(self, X: Float[Tensor, "k d"]) -> Float[Tensor, "k m d"] | None:  # noqa: ARG002
        """The points that differ from others in one discrete parameter, or in several that rules tie together.

        Args:
            X: Points of the domain.

        Returns:
            m neighbours of each; None if nothing is discrete.
        """
        return None

    @property
    def free(self) -> Int[Tensor, "f"]:
        """The columns in which a point may be polished, the others staying as they are."""
        return torch.empty(0, dtype=torch.int64)

    def region(self, X: Float[Tensor, "n d"]) -> Region | None:  # noqa: ARG002
        """Where each of X may be polished to, in the free columns; None if that is the unit cube.

        Args:
            X: Points of the domain.

        Returns:
            A region for each of them, or None.
        """
        return None

    def resting(self, X: Float[Tensor, "k d"]) -> Bool[Tensor, "k d"] | None:  # noqa: ARG002
        """The coordinates that are not to be polished at each of X in particular; None if there are none anywhere.

        Args:
            X: Points of the domain.

        Returns:
            One flag per coordinate, or None.
        """
        return None

    @property
    def _shares(self) -> int:
        """How many numbers in [0, 1] make a point."""
        return self.d

    @abstractmethod
    def _at(self, u: Float[Tensor, "n p"], generator: torch.Generator) -> Float[Tensor, "n d"]:
        """The points of the domain that these shares of the parameters' ranges stand for."""


@dataclass(frozen=True)
class Cube(Domain):
    """The unit cube of continuous inputs.

    Args:
        dimension: The number of inputs.
    """

    dimension: int

    @property
    def d(self) -> int:
        """How many columns a point has."""
        return self.dimension

    def _at(self, u: Float[Tensor, "n p"], generator: torch.Generator) -> Float[Tensor, "n d"]:  # noqa: ARG002
        return u

    def snap(self, X: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
        """The nearest points of the cube."""
        return X.clamp(0.0, 1.0)

    @cached_property
    def free(self) -> Int[Tensor, "f"]:
        """The columns that may be polished: all of them."""
        return torch.arange(self.d)


@dataclass(frozen=True)
class Mixed(Domain):
    """The points of a space of named parameters: continuous ones, grids and categories.

    Args:
        space: The space.
        pinned: Parameters that have a value already, which need not be one that would be suggested.
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

    @cached_property
    def listing(self) -> Float[Tensor, "m d"] | None:
        """Every combination of values, if nothing is continuous and they are few; else None."""
        X = self._combinations(FEW_POINTS)
        return X if X is None or not (self.space.conditions or self.pinned) else self._in_space(X).unique(dim=0)

    def _combinations(self, most: int) -> Float[Tensor, "m d"] | None:
        """Every combination of a value of each parameter; None if there are more, or a parameter is continuous."""
        blocks = [grid for axis in self._axes if (grid := self._grid(axis, most)) is not None]
        if len(blocks) < len(self._axes) or math.prod(map(len, blocks)) > most:
            return None
        rows = torch.cartesian_prod(*(torch.arange(len(block)) for block in blocks)).reshape(-1, len(blocks))
        return torch.cat([block[rows[:, i]] for i, block in enumerate(blocks)], dim=-1)

    def _grid(self, axis: Axis, most: int) -> Float[Tensor, "k w"] | None:
        """All categories, or the numbers of a grid of no more than ``most``; else None."""
        return axis.grid() if axis.categorical or (axis.count or math.inf) <= most else None

    @property
    def _shares(self) -> int:
        return len(self._axes)

    def _at(self, u: Float[Tensor, "n p"], generator: torch.Generator) -> Float[Tensor, "n d"]:  # noqa: ARG002
        """A share of a category, or of a list, is one of its values: all of them are met equally often."""
        blocks = []
        for i, axis in enumerate(self._axes):
            k, listed = axis.count or 1, axis.categorical or axis.listed
            blocks.append(axis.grid()[(u[:, i] * k).long().clamp(max=k - 1)] if listed else u[:, i : i + 1])
        return self._in_space(torch.cat(blocks, dim=-1))

    def near(self, anchors: Float[Tensor, "k d"], n: int, generator: torch.Generator) -> Float[Tensor, "k*{n} d"]:
        """Points after normal steps, on grids of about one value at least; a category changes now and then."""
        blocks = []
        for axis in self._axes:
            block = anchors[None, :, axis.columns]
            if axis.categorical:
                other = torch.rand(n, 1, axis.width, generator=generator, dtype=torch.float64)
                change = torch.rand(n, 1, 1, generator=generator, dtype=torch.float64) < _OTHER_CATEGORY
                blocks.append(torch.where(change.to(block.device), other.to(block.device), block))
            else:
                step = NEAR if axis.count is None else max(NEAR, 1 / axis.count)
                steps = step * torch.randn(n, 1, 1, generator=generator, dtype=torch.float64)
                blocks.append(block + steps.to(block.device))
        return self._in_space(torch.cat(blocks, dim=-1).flatten(0, 1))

    def snap(self, X: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
        """The nearest values of every parameter."""
        return self._in_space(X)

    def _in_space(self, X: Float[Tensor, "*b n d"]) -> Float[Tensor, "*b n d"]:
        """The nearest values of every parameter, but those that are pinned; rules are not asked."""
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
        fine = [axis.columns.start for axis in numbers if axis.count is None or axis.count > FEW_VALUES]
        return torch.tensor(fine, dtype=torch.int64)

    def resting(self, X: Float[Tensor, "k d"]) -> Bool[Tensor, "k d"] | None:
        """The coordinates of parameters that are not active."""
        return self.space.resting(X)

    def exchanges(self, X: Float[Tensor, "k d"]) -> Float[Tensor, "k m d"] | None:
        """The points with another value of one discrete parameter."""
        moves = [self._other_values(axis, X) for axis in self._axes if axis.count and axis.name not in self.pinned]
        return torch.cat(moves, dim=-2) if moves else None

    def _other_values(self, axis: Axis, X: Float[Tensor, "k d"]) -> Float[Tensor, "k m d"]:
        """Every other value of a category or a short grid, and steps of 1, 2, 4 … along a long one."""
        grid = self._grid(axis, FEW_VALUES)
        others = self._stepped(axis, X).unsqueeze(-1) if grid is None else grid.expand(len(X), -1, -1)
        moved = X.unsqueeze(-2).repeat(1, others.shape[1], 1)
        moved[..., axis.columns] = others.to(X)  # what was not there before has to begin at one of its values
        return self._in_space(moved) if self.space.conditions or self.pinned else moved

    def _stepped(self, axis: Axis, X: Float[Tensor, "k d"]) -> Float[Tensor, "k m"]:
        return axis.stepped(X[:, axis.columns], jumps(axis.count or 1).to(X.device))


def jumps(count: int) -> Float[Tensor, "k"]:
    """Steps of 1, 2, 4 … both ways along a grid of so many values."""
    ahead = 2.0 ** torch.arange((count - 1).bit_length(), dtype=torch.float64)
    return torch.cat([ahead, -ahead])


@dataclass(frozen=True, eq=False)
class Candidates(Domain):
    """A given list of points: one of them is suggested as it stands.

    Args:
        X: The points (m, d), float64.
        levels: Groups of columns that are the levels of one category each, or describe them.
        described: Those of the groups that describe categories.
    """

    X: Float[Tensor, "m d"]
    levels: tuple[tuple[int, ...], ...] = ()
    described: tuple[tuple[int, ...], ...] = ()

    @classmethod
    def of(cls, space: Space, rows: Sequence[Mapping[str, Any]], rules: Sequence[SettingRule | str] = ()) -> Candidates:
        """The list of those rows of values that satisfy the rules.

        Args:
            space: The space of the parameters.
            rows: Values by parameter name, each a point of the space.
            rules: The rules, as data or as text that ``parse_rule`` reads.

        Returns:
            The list.

        Raises:
            InputError: There are no rows, or a text is no rule.
            NoPlaceError: A row is no point of the space.
            NoSettingError: No row satisfies the rules.
        """
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

    @property
    def listing(self) -> Float[Tensor, "m d"]:
        """All points of the domain: the rows themselves."""
        return self.X

    @property
    def _shares(self) -> int:
        return 1

    def _at(self, u: Float[Tensor, "n p"], generator: torch.Generator) -> Float[Tensor, "n d"]:  # noqa: ARG002
        return self.X[(u[:, 0] * len(self.X)).long()]

    def snap(self, X: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
        """The nearest rows of the list."""
        return self.X[torch.cdist(X, self.X).argmin(-1)]
