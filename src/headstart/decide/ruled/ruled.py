"""``Ruled``: the points of a space that satisfy rules about the settings.

Every point that it offers satisfies every rule: whatever is drawn, moved or polished goes to a piece of the space in
which the rules are linear (``decide.ruled.pieces``) and stays inside it; a point that rounding has taken out again is
dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from headstart.data.axis import Axis
from headstart.data.rules.rule import CategoryColumn, Column, FixedValue, SettingRule
from headstart.data.rules.text import read_rules
from headstart.data.space import Space
from headstart.decide.domain import FEW_POINTS, NEAR, Mixed, jumps
from headstart.decide.region import Region
from headstart.decide.ruled.numeric import NumericRange
from headstart.decide.ruled.pieces import ABSENT, Piece, Pieces
from headstart.errors import NumericalError

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Index = NDArray[np.intp]
# (piece, values of points in it, the numbers of the points) → their new values
_Move = Callable[[Piece, Array, Index], Array]

_MOST_TIED = 256  # neighbours along grids that rules tie together
_MOST_LISTED = 50_000  # combinations of values before the rules are asked


@dataclass(frozen=True, eq=False)
class _Values:
    """What the parameters are at n points: values Z of numeric ones, level numbers of the categories in rules."""

    Z: Float[Array, "n p"]
    levels: Int[NDArray[np.int64], "n c"]  # ``ABSENT`` where the category is not active
    active: Mapping[str, Flags]  # where each parameter is


@dataclass(frozen=True, init=False)
class Ruled(Mixed):
    """The feasible points of a space of named parameters: those that satisfy all rules.

    Past rows that break a rule stay evidence; none is suggested.

    Args:
        space: The space.
        rules: The rules, as data or as text that ``parse_rule`` reads.
        pinned: Values of parameters that are decided already, in or outside their ranges.

    Raises:
        InputError: A text is no rule, or a rule is not about the space.
        NoSettingError: No point satisfies all rules; the message names a minimal set of contradicting ones.
    """

    rules: tuple[SettingRule, ...] = ()

    def __init__(
        self, space: Space, rules: Sequence[SettingRule | str], pinned: Mapping[str, Any] | None = None
    ) -> None:
        for name, value in (("space", space), ("rules", read_rules(rules, space)), ("pinned", pinned or {})):
            object.__setattr__(self, name, value)
        self._pieces.require_feasible()

    @cached_property
    def _pieces(self) -> Pieces:
        return Pieces(self.space, self.rules, self.pinned)

    @property
    def _numbers(self) -> tuple[NumericRange, ...]:
        return self._pieces.numbers

    @cached_property
    def _on_steps(self) -> dict[str, NumericRange]:
        return {number.name: number for number in self._numbers if number.stepped}

    def _kept(self, X: Float[Tensor, "n d"]) -> Bool[Tensor, "n"]:
        """Which points of the space satisfy all rules."""
        own = self._values(X.cpu())
        columns: dict[str, Column] = {number.name: own.Z[:, j] for j, number in enumerate(self._numbers)}
        for c, axis in enumerate(self._pieces.categories):
            columns[axis.name] = CategoryColumn(axis.levels, own.levels[:, c])
        kept = np.ones(len(X), dtype=bool)
        for rule in self.rules:
            bound = np.logical_and.reduce([own.active[name] for name in rule.parameters])
            kept &= rule.satisfied(columns) | ~bound
        return torch.from_numpy(kept).to(X.device)

    @cached_property
    def listing(self) -> Float[Tensor, "m d"] | None:
        """Every combination of values that satisfies the rules, if they can be listed and are few; else None."""
        X = self._combinations(_MOST_LISTED)
        if X is None:
            return None
        X = self._in_space(X)
        X = X[self._kept(X)].unique(dim=0)
        return X if 0 < len(X) <= FEW_POINTS else None

    def _grid(self, axis: Axis, most: int) -> Float[Tensor, "k w"] | None:
        fixed = {rule.parameter: rule.value for rule in self.rules if isinstance(rule, FixedValue)} | dict(self.pinned)
        if axis.name in fixed:
            return axis.place([fixed[axis.name]])
        number = self._on_steps.get(axis.name)
        if number is None or (number.count or 0) > most:
            return super()._grid(axis, most)
        return torch.from_numpy(number.coordinates(number.on_grid(np.arange(float(number.count or 0))))).unsqueeze(-1)

    def _stepped(self, axis: Axis, X: Float[Tensor, "k d"]) -> Float[Tensor, "k m"]:
        number = self._on_steps.get(axis.name)
        if number is None:
            return super()._stepped(axis, X)
        count, here = number.count or 1, np.round(number.index(number.values(X.cpu().numpy())))
        index = (here[:, None] + jumps(count).numpy()).clip(0, count - 1)
        return torch.from_numpy(number.coordinates(number.on_grid(index)))

    def _at(self, u: Float[Tensor, "n p"], generator: torch.Generator) -> Float[Tensor, "n d"]:
        """Quantiles of what the rules leave; of parameters that linear rules tie together a sample of hit-and-run."""
        X = super()._at(u, generator)
        if bool(self._kept(X).all()):  # rules that exclude nothing change nothing
            return X
        rng = _rng(generator)

        def draw(piece: Piece, Z: Array, rows: Index) -> Array:
            for j, number in piece.loose:
                if number.column is not None:
                    Z[:, j] = number.at_quantiles(X[rows, number.column].numpy(), piece.low[j], piece.high[j])
            if piece.block is not None:
                Z[:, piece.tied] = piece.block.values(piece.block.draw(len(Z), rng))
            return Z

        return self._moved(X, draw, rng, drawing=True)

    def near(self, anchors: Float[Tensor, "k d"], n: int, generator: torch.Generator) -> Float[Tensor, "k*{n} d"]:
        """Points after normal steps, which end where a rule would be broken; now and then in another category."""
        anchors = self.snap(anchors)
        X = super().near(anchors, n, generator)
        if bool(self._kept(X).all()):
            return X
        starts = anchors.repeat(n, 1).cpu()
        rng, Z = _rng(generator), self._values(starts).Z

        def step(piece: Piece, there: Array, rows: Index) -> Array:
            there = piece.clipped(there)
            if piece.block is not None:
                shares = piece.block.nearest(piece.block.shares(Z[rows][:, piece.tied]))
                there[:, piece.tied] = piece.block.values(piece.block.walk(shares, 1, rng, reach=NEAR))
            return there

        return self._moved(X.cpu(), step, rng, instead=starts).to(X.device)

    def snap(self, X: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
        """X itself where it is feasible, else its projection, approximate where tied grids are involved."""
        snapped = self._in_space(X)
        broken = ~self._kept(snapped)
        if bool(broken.any()):
            snapped = snapped.clone()
            there, rng = snapped[broken].cpu(), np.random.default_rng(0)
            snapped[broken] = self._moved(there, lambda piece, Z, _: piece.nearest(Z), rng).to(X.device)
        return snapped

    @cached_property
    def free(self) -> Int[Tensor, "f"]:
        """The columns that are polished: continuous parameters, and fine grids that no linear rule ties to others."""
        summed = self._pieces.in_sums
        held = {n.column for n in self._numbers if n.stepped or (n.count is not None and n.name in summed)}
        return torch.tensor([c for c in super().free.tolist() if c not in held], dtype=torch.int64)

    def region(self, X: Float[Tensor, "n d"]) -> Region:
        """For each point its piece in the free columns, tied grids staying where they are."""
        own, free = self._values(X.cpu()), self.free.tolist()
        region = Region.cube(len(X), len(free))
        for piece, rows in self._allotted(own):
            for j, number in piece.loose:
                if number.column in free:
                    ends = number.coordinates(np.array([piece.low[j], piece.high[j]]))
                    region.low[rows, free.index(number.column)], region.high[rows, free.index(number.column)] = ends
            block = piece.block
            if block is None or not len(block.smooth):
                continue
            tied = [self._numbers[piece.tied[j]] for j in block.smooth]
            at = np.array([free.index(number.column) for number in tied], dtype=np.intp)
            here = np.ix_(rows, at)
            region.offset[here], region.scale[here] = block.low[block.smooth], (block.high - block.low)[block.smooth]
            region.log[here] = [number.axis.log for number in tied]
            region.start[here] = [number.axis.scale[0] for number in tied]
            region.width[here] = [number.axis.scale[1] - number.axis.scale[0] for number in tied]
            for row in rows:
                right, equal = block.left_over(block.shares(own.Z[row][None, piece.tied]))
                region.ties[row] = at, partial(block.polytope.nearest, b=right, e=equal)
        return region

    def exchanges(self, X: Float[Tensor, "k d"]) -> Float[Tensor, "k m d"] | None:
        """The points with another value of one discrete parameter, or of several that rules tie together."""
        summed = self._pieces.in_sums
        discrete = [axis for axis in self._axes if axis.count is not None or axis.name in self._on_steps]
        own = [axis for axis in discrete if axis.listed or axis.name not in summed]
        alone = [axis for axis in own if axis.name not in self.pinned]
        moves = [self._other_values(axis, X) for axis in alone]
        if any(number.count is not None and not number.listed and number.name in summed for number in self._numbers):
            moves.append(self._along_tied(X))
        if not moves:
            return None
        found = torch.cat(moves, dim=-2)
        return self.snap(found.flatten(0, 1)).reshape(found.shape)

    def _along_tied(self, X: Float[Tensor, "k d"]) -> Float[Tensor, "k m d"]:
        """Steps along tied grids that satisfy the linear rules; a point that has fewer neighbours is repeated."""
        flat = X.cpu()
        own = self._values(flat)
        found: list[Tensor] = [row.unsqueeze(0) for row in flat]
        for piece, rows in self._allotted(own):
            block = piece.block
            if block is None or not len(block.grids):
                continue
            for row in rows:
                Y = block.around(block.shares(own.Z[row][None, piece.tied])[0])
                if len(Y) > _MOST_TIED:
                    Y = Y[np.linspace(0, len(Y) - 1, _MOST_TIED).astype(np.intp)]
                moved, Z = flat[row].repeat(len(Y), 1), block.values(Y)
                for j, number in enumerate(block.numbers):
                    moved[:, number.column] = torch.from_numpy(number.coordinates(Z[:, j]))
                found[row] = torch.cat([found[row], moved])
        most = max(len(moves) for moves in found)
        filled = [torch.cat([moves, moves[:1].expand(most - len(moves), -1)]) for moves in found]
        return torch.stack(filled).to(X)

    def _values(self, X: Float[Tensor, "n d"]) -> _Values:
        """The values at points of the space."""
        U, pieces = X.numpy(), self._pieces
        active = dict(zip(self.space.names, self.space.present(X).T.numpy(), strict=True))
        Z = np.empty((len(U), len(self._numbers)))
        for j, number in enumerate(self._numbers):
            Z[:, j] = number.values(U)
        levels = np.zeros((len(U), len(pieces.categories)), dtype=np.int64)
        for c, axis in enumerate(pieces.categories):
            level = axis.level_at(X[:, axis.columns]).numpy() if axis.width else 0
            levels[:, c] = np.where(active[axis.name], level, ABSENT)
        return _Values(Z, levels, active)

    def _moved(
        self,
        X: Float[Tensor, "n d"],
        move: _Move,
        rng: np.random.Generator,
        *,
        instead: Tensor | None = None,
        drawing: bool = False,
    ) -> Float[Tensor, "n d"]:
        """The points after a move inside their pieces; those whose categories have no piece take others.

        ``instead`` are feasible points whose categories they take; by default the combination that differs least.
        """
        X, own = X.clone(), self._values(X)
        wrong = [rows for levels, rows in _groups(own.levels) if not self._pieces.of(levels)]
        if wrong:
            rows = np.concatenate(wrong)
            if instead is None:  # the combination with a piece that differs in the fewest levels
                possible = np.array(self._pieces.possible)
                apart = (own.levels[rows][:, None] != possible).sum(-1) + 1e-3 * rng.random((len(rows), len(possible)))
                given = possible[apart.argmin(-1)]
            else:
                given = self._values(instead[rows]).levels
            for c, axis in enumerate(self._pieces.categories):
                for level in range(len(axis.levels) if axis.width else 0):
                    X[rows[given[:, c] == level], axis.columns] = axis.place([axis.levels[level]])
            own.levels[rows] = given
        for piece, rows in self._allotted(own, rng):
            Z = move(piece, own.Z[rows], rows)
            for j, number in enumerate(self._numbers):
                if number.column is not None and number.name in piece.active and number.name not in self.pinned:
                    X[rows, number.column] = torch.from_numpy(number.coordinates(Z[:, j]))
        X = self._in_space(X)  # a parameter that was not active before has to begin at one of its values
        kept = self._kept(X)
        if bool(kept.any()):
            good = kept.nonzero().squeeze(-1)
            X[~kept] = X[good[torch.arange(int((~kept).sum())) % len(good)]]
        elif drawing:
            raise NumericalError(
                "No point that keeps the rules was found, though there are some: they leave hardly room. Loosen one."
            )
        else:
            X[:] = self.spread(64, torch.Generator().manual_seed(0))[0]
        return X

    def _allotted(self, own: _Values, rng: np.random.Generator | None = None) -> list[tuple[Piece, Index]]:
        """The pieces with the points that go there: each to the one whose constraints it violates least."""
        found: dict[Piece, list[Index]] = {}
        for levels, rows in _groups(own.levels):
            pieces = self._pieces.of(levels)
            index = np.zeros(len(rows), dtype=np.intp)
            if len(pieces) > 1:
                out = np.stack([piece.excess(own.Z[rows]) for piece in pieces], axis=-1)
                index = (out if rng is None else out + 1e-9 * rng.random(out.shape)).argmin(-1)
            for i in np.unique(index):
                found.setdefault(pieces[i], []).append(rows[index == i])
        return [(piece, np.concatenate(parts)) for piece, parts in found.items()]


def _groups(levels: NDArray[np.int64]) -> list[tuple[tuple[int, ...], Index]]:
    """The combinations of levels that occur, each with the points that have it."""
    if levels.shape[1] == 0:
        return [((), np.arange(len(levels)))]
    found, index = np.unique(levels, axis=0, return_inverse=True)
    return [(tuple(row), np.flatnonzero(index.ravel() == i)) for i, row in enumerate(found.tolist())]


def _rng(generator: torch.Generator) -> np.random.Generator:
    return np.random.default_rng(int(torch.randint(1 << 31, (), generator=generator)))
