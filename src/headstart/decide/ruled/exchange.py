"""Neighbours of points under rules, where something is not continuous; and all points, where they are few."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headstart.data.rules.rule import FixedValue
from headstart.decide.domain import Mixed
from headstart.decide.ruled.keeping import Reading
from headstart.decide.ruled.numbers import Number
from headstart.decide.ruled.pieces import Pieces

_FEW_VALUES = 20  # of a grid are all tried
_MOST_TIED = 256  # neighbours along grids that rules tie together
_MOST_LISTED = 50_000  # combinations of values before the rules are asked


def exchanges_of(
    mixed: Mixed, pieces: Pieces, X: Float[Tensor, "*b k d"], read: Callable[[Tensor], Reading]
) -> Float[Tensor, "*b k m d"] | None:
    """Points that differ from each of X in one discrete parameter, or in several that are tied; rules may be broken."""
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
        moves.append(_tied(pieces, X, read))
    return torch.cat(moves, dim=-2) if moves else None


def _along(number: Number, X: Float[Tensor, "*b k d"]) -> Float[Tensor, "*b k m d"]:
    """Every other value of the grid that rules have left, or steps of 1, 2, 4 … along it."""
    grid, column = number.grid, number.column
    assert grid is not None
    assert column is not None
    if grid.count <= _FEW_VALUES:
        index = np.broadcast_to(np.arange(grid.count, dtype=np.float64), (*X.shape[:-1], grid.count))
    else:
        jumps = 2.0 ** np.arange((grid.count - 1).bit_length())
        here = np.round(grid.index(number.values(X[..., column].cpu().numpy().ravel()))).reshape(*X.shape[:-1], 1)
        index = (here + np.concatenate([jumps, -jumps])).clip(0, grid.count - 1)
    moved = X.unsqueeze(-2).expand(*index.shape, -1).clone()
    u = number.coordinates(grid.values(index.ravel())).reshape(index.shape)
    moved[..., column] = torch.from_numpy(u).to(X)
    return moved


def _tied(pieces: Pieces, X: Float[Tensor, "*b k d"], read: Callable[[Tensor], Reading]) -> Float[Tensor, "*b k m d"]:
    """Steps of grids that linear rules tie together, which keep those; a point that has fewer is repeated."""
    flat = X.reshape(-1, X.shape[-1]).cpu()
    own = read(flat)
    found: list[Tensor] = [row.unsqueeze(0) for row in flat]
    for levels, rows in own.combinations():
        for row in rows:
            for piece in pieces.of(levels):
                if (
                    piece.block is None
                    or not len(piece.block.grids)
                    or pieces.excess(piece, own.Z[row][None])[0] > 1e-6
                ):
                    continue
                Y = piece.block.around(piece.block.shares(own.Z[row : row + 1, piece.tied])[0])
                if len(Y) > _MOST_TIED:
                    Y = Y[np.linspace(0, len(Y) - 1, _MOST_TIED).astype(np.intp)]
                moved, Z = flat[row].repeat(len(Y), 1), piece.block.values(Y)
                for j, tied in enumerate(piece.tied):
                    number = pieces.numbers[tied]
                    moved[:, number.column] = torch.from_numpy(number.coordinates(Z[:, j]))
                found[row] = torch.cat([found[row], moved])
                break
    most = max(len(moves) for moves in found)
    filled = [torch.cat([moves, moves[:1].expand(most - len(moves), -1)]) for moves in found]
    return torch.stack(filled).to(X).reshape(*X.shape[:-1], most, X.shape[-1])


def listing_of(pieces: Pieces) -> Float[Tensor, "m d"] | None:
    """All combinations of values, before the linear rules are asked; None if there are too many."""
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
