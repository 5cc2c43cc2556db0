"""Points of a space under rules: the values that the parameters have there, discrete neighbours, and all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from headstart.data.rules.rule import CategoryColumn, Column, FixedValue, SettingRule
from headstart.decide.domain import Mixed
from headstart.decide.ruled.numeric import NumericRange
from headstart.decide.ruled.pieces import ABSENT, Levels, Pieces

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

_FEW_VALUES = 20  # of a grid are all tried
_MOST_TIED = 256  # neighbours along grids that rules tie together
_MOST_LISTED = 50_000  # combinations of values before the rules are asked


@dataclass(frozen=True, eq=False)
class PointValues:
    """What the parameters are at n points: values Z of numeric ones, level numbers of the categories in rules.

    ``active`` says where each parameter of the rules is active; the level of a category that is not is ``ABSENT``.
    """

    Z: Float[Array, "n p"]
    levels: Int[NDArray[np.int64], "n c"]
    active: Mapping[str, Flags]
    pieces: Pieces

    @classmethod
    def at(cls, X: Float[Tensor, "n d"], pieces: Pieces) -> PointValues:
        """The values at points of the space."""
        U, space = X.numpy(), pieces.space
        Z = [number.values(U) for number in pieces.numbers]
        everywhere = np.ones(len(U), dtype=bool)
        active = dict.fromkeys(pieces.relevant, everywhere)
        if any(condition.parent for _, condition in space.conditions):
            present = dict(zip(space.names, space.present(X).T.numpy(), strict=True))
            active = {name: present[name] for name in pieces.relevant}
        levels = []
        for axis in pieces.categories:
            level = axis.level_at(X[:, axis.columns]).numpy() if axis.width else np.zeros(len(U), dtype=np.int64)
            levels.append(np.where(active[axis.name], level, ABSENT))
        table = np.stack(levels, axis=-1) if levels else np.zeros((len(U), 0), dtype=np.int64)
        return cls(np.stack(Z, axis=-1) if Z else np.zeros((len(U), 0)), table, active, pieces)

    def combinations(self) -> list[tuple[Levels, NDArray[np.intp]]]:
        """The combinations of levels that occur, each with the points that have it."""
        if self.levels.shape[1] == 0:
            return [((), np.arange(len(self.Z)))]
        found, index = np.unique(self.levels, axis=0, return_inverse=True)
        return [(tuple(row), np.flatnonzero(index.ravel() == i)) for i, row in enumerate(found.tolist())]

    def satisfy(self, rules: Sequence[SettingRule]) -> Bool[Flags, "n"]:
        """Which of the points satisfy all rules."""
        columns: dict[str, Column] = {number.name: self.Z[:, j] for j, number in enumerate(self.pieces.numbers)}
        for c, axis in enumerate(self.pieces.categories):
            columns[axis.name] = CategoryColumn(axis.levels, self.levels[:, c])
        kept = np.ones(len(self.Z), dtype=bool)
        for rule in rules:
            bound = np.logical_and.reduce([self.active[name] for name in rule.parameters])
            kept &= rule.satisfied(columns) | ~bound
        return kept


def neighbours(mixed: Mixed, pieces: Pieces, X: Float[Tensor, "*b k d"]) -> Float[Tensor, "*b k m d"] | None:
    """Points that differ from each of X in one discrete parameter, or in several tied ones; rules may be broken."""
    numbers = {number.name: number for number in pieces.numbers}
    moves = []
    for axis in mixed.space.axes:
        number = numbers.get(axis.name)
        if axis.width == 0 or axis.name in mixed.pinned or (number is not None and number.name in pieces.in_sums):
            continue
        if number is not None and number.stepped:
            moves.append(_along(number, X))
        elif axis.count is not None:
            moves.append(mixed.exchanged(axis, X))
    if any(number.grid is not None and number.name in pieces.in_sums for number in pieces.numbers):
        moves.append(_tied(pieces, X))
    return torch.cat(moves, dim=-2) if moves else None


def _along(number: NumericRange, X: Float[Tensor, "*b k d"]) -> Float[Tensor, "*b k m d"]:
    """Every other value of the grid that rules have left, or steps of 1, 2, 4 … along a long one."""
    grid, column = number.grid, number.column
    assert grid is not None
    assert column is not None
    if grid.count <= _FEW_VALUES:
        index = np.broadcast_to(np.arange(grid.count, dtype=np.float64), (*X.shape[:-1], grid.count))
    else:
        jumps = 2.0 ** np.arange((grid.count - 1).bit_length())
        here = np.round(grid.index(number.values(X.reshape(-1, X.shape[-1]).cpu().numpy())))
        index = (here.reshape(*X.shape[:-1], 1) + np.concatenate([jumps, -jumps])).clip(0, grid.count - 1)
    moved = X.unsqueeze(-2).expand(*index.shape, -1).clone()
    u = number.coordinates(grid.values(index.ravel())).reshape(index.shape)
    moved[..., column] = torch.from_numpy(u).to(X)
    return moved


def _tied(pieces: Pieces, X: Float[Tensor, "*b k d"]) -> Float[Tensor, "*b k m d"]:
    """Steps along tied grids that satisfy the linear rules; a point that has fewer neighbours is repeated."""
    flat = X.reshape(-1, X.shape[-1]).cpu()
    own = PointValues.at(flat, pieces)
    found: list[Tensor] = [row.unsqueeze(0) for row in flat]
    for levels, rows in own.combinations():
        for row in rows:
            z = own.Z[row][None]
            for piece in pieces.of(levels):
                block = piece.block
                if block is None or not len(block.grids) or pieces.excess(piece, z)[0] > 1e-6:
                    continue
                Y = block.around(block.shares(z[:, piece.tied])[0])
                if len(Y) > _MOST_TIED:
                    Y = Y[np.linspace(0, len(Y) - 1, _MOST_TIED).astype(np.intp)]
                moved, Z = flat[row].repeat(len(Y), 1), block.values(Y)
                for j, tied in enumerate(piece.tied):
                    number = pieces.numbers[tied]
                    moved[:, number.column] = torch.from_numpy(number.coordinates(Z[:, j]))
                found[row] = torch.cat([found[row], moved])
                break
    most = max(len(moves) for moves in found)
    filled = [torch.cat([moves, moves[:1].expand(most - len(moves), -1)]) for moves in found]
    return torch.stack(filled).to(X).reshape(*X.shape[:-1], most, X.shape[-1])


def all_points(pieces: Pieces) -> Float[Tensor, "m d"] | None:
    """All combinations of values, some of which may break rules; None if there are too many."""
    fixed = {rule.parameter: rule.value for rule in pieces.rules if isinstance(rule, FixedValue)} | dict(pieces.pinned)
    numbers, blocks, size = {number.name: number for number in pieces.numbers}, [], 1
    for axis in pieces.space.axes:
        if axis.width == 0:
            continue
        number = numbers.get(axis.name)
        if axis.name in fixed:
            block = axis.place([fixed[axis.name]])
        elif number is None:
            block = axis.grid()
        elif number.grid is None or number.grid.count > _MOST_LISTED:
            return None
        else:
            u = number.coordinates(number.grid.values(np.arange(number.grid.count, dtype=np.float64)))
            block = torch.from_numpy(u).unsqueeze(-1)
        size *= len(block)
        if size > _MOST_LISTED:
            return None
        blocks.append(block)
    rows = torch.cartesian_prod(*(torch.arange(len(block)) for block in blocks)).reshape(-1, len(blocks))
    return torch.cat([block[rows[:, i]] for i, block in enumerate(blocks)], dim=-1)
