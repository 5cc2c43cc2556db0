"""``Ruled``: the points of a space that satisfy rules about the settings.

Every point that it offers satisfies every rule: whatever is drawn, moved or polished goes to a piece of the space in
which the rules are linear (``decide.ruled.pieces``) and stays inside it; a point that rounding has taken out again is
dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from headstart.data.rules.rule import SettingRule
from headstart.data.rules.text import read_rules
from headstart.data.space import Space
from headstart.decide.domain import Mixed, Searchable
from headstart.decide.region import Region, Tie
from headstart.decide.ruled.pieces import Piece, Pieces
from headstart.decide.ruled.points import PointValues, all_points, neighbours
from headstart.errors import NumericalError

Index = NDArray[np.intp]
Array = NDArray[np.float64]
# (values of points in a piece, the numbers of the points) → their new values
Move = Callable[[Piece, Array, Index], Array]

_NEAR = 0.05  # how far near points lie, in shares of a range


@dataclass(frozen=True)
class Ruled(Searchable):
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

    space: Space
    rules: Sequence[SettingRule | str]
    pinned: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Parse the rules, and check that a point satisfies them."""
        object.__setattr__(self, "rules", read_rules(self.rules, self.space))
        self.pieces.require_feasible()

    @cached_property
    def pieces(self) -> Pieces:
        """The pieces of the space in which the rules are linear."""
        return Pieces(self.space, self.every_rule, self.pinned)

    @property
    def every_rule(self) -> tuple[SettingRule, ...]:
        """The rules, as data."""
        return tuple(rule for rule in self.rules if isinstance(rule, SettingRule))

    @cached_property
    def _mixed(self) -> Mixed:
        """The domain without rules."""
        return Mixed(self.space, self.pinned)

    @property
    def d(self) -> int:
        """How many columns a point has."""
        return self.space.d

    @property
    def categories(self) -> tuple[tuple[int, ...], ...]:
        """Groups of columns of one category each, as the space has them."""
        return self.space.categories

    @property
    def described(self) -> tuple[tuple[int, ...], ...]:
        """Those groups that hold descriptors."""
        return self.space.described

    def kept(self, X: Float[Tensor, "n d"]) -> Bool[Tensor, "n"]:
        """Which points of the space satisfy all rules.

        Args:
            X: Coordinates of points of the space.

        Returns:
            One flag per point.
        """
        return torch.from_numpy(self._read(X.cpu()).satisfy(self.every_rule)).to(X.device)

    def listing(self) -> Float[Tensor, "m d"] | None:
        """All feasible points.

        Returns:
            Their coordinates; None if something is continuous or there are too many.
        """
        return self._listing

    @cached_property
    def _listing(self) -> Float[Tensor, "m d"] | None:
        X = all_points(self.pieces)
        if X is None:
            return None
        X = self._mixed.space.rested(X) if not self.pinned else self._mixed.snap(X)
        X = X[self.kept(X)].unique(dim=0)
        return X if 0 < len(X) <= 2000 else None

    # ── points all over it, and near others ───────────────────────────────────────────────────────────────────────

    def spread(self, n: int, generator: torch.Generator) -> Float[Tensor, "n d"]:
        """Feasible points all over the domain.

        Args:
            n: Their number.
            generator: The source of randomness.

        Returns:
            Sobol points in the parameters that no linear rule ties together, a sample of hit-and-run in the others.
        """
        return self._drawn(self._mixed.spread(n, generator), generator)

    def uniform(self, n: int, generator: torch.Generator) -> Float[Tensor, "n d"]:
        """Independent feasible points.

        Args:
            n: Their number.
            generator: The source of randomness.

        Returns:
            Uniform points, a sample of hit-and-run in the parameters that linear rules tie together.
        """
        return self._drawn(self._mixed.uniform(n, generator), generator)

    def _drawn(self, X: Float[Tensor, "n d"], generator: torch.Generator) -> Float[Tensor, "n d"]:
        if bool(self.kept(X).all()):  # rules that exclude nothing change nothing
            return X
        rng = _rng(generator)

        def draw(piece: Piece, Z: Array, rows: Index) -> Array:
            for j, number in enumerate(self.pieces.numbers):
                column = number.column
                if piece.active.get(number.name) and column is not None and j not in piece.tied:
                    Z[:, j] = number.at_quantiles(X[rows, column].numpy(), piece.low[j], piece.high[j])
            if piece.block is not None:
                Z[:, piece.tied] = piece.block.values(piece.block.draw(len(Z), rng))
            return Z

        return self._moved(X, draw, rng, drawing=True)

    def near(self, anchors: Float[Tensor, "*b k d"], n: int, generator: torch.Generator) -> Float[Tensor, "*b k*{n} d"]:
        """Feasible points near others.

        Args:
            anchors: Points, which are snapped first.
            n: Points near each of them.
            generator: The source of randomness.

        Returns:
            Points after normal steps, which end where a rule would be broken; now and then in another category.
        """
        anchors = self.snap(anchors)
        X = self._mixed.near(anchors, n, generator)
        if bool(self.kept(X.reshape(-1, self.d)).all()):
            return X
        starts = anchors.unsqueeze(-3).expand(*anchors.shape[:-2], n, -1, -1).reshape(X.shape)
        flat, rng = starts.reshape(-1, self.d).cpu(), _rng(generator)
        own = self._read(flat)

        def step(piece: Piece, Z: Array, rows: Index) -> Array:
            Z = self._nearest(piece, Z)
            if piece.block is not None:
                shares = piece.block.nearest(piece.block.shares(own.Z[rows][:, piece.tied]))
                Z[:, piece.tied] = piece.block.values(piece.block.walk(shares, 1, rng, reach=_NEAR))
            return Z

        moved = self._moved(X.reshape(-1, self.d).cpu(), step, rng, instead=flat)
        return moved.to(X.device).reshape(X.shape)

    def snap(self, X: Float[Tensor, "*b n d"]) -> Float[Tensor, "*b n d"]:
        """Feasible points near X.

        Args:
            X: Coordinates, feasible or not.

        Returns:
            Feasible points: X itself where it is one, else its projection, approximate where tied grids are involved.
        """
        snapped = self._mixed.snap(X)
        flat = snapped.reshape(-1, self.d).cpu()
        broken = ~self.kept(flat)
        if not bool(broken.any()):
            return snapped
        flat = flat.clone()
        flat[broken] = self._moved(flat[broken], lambda piece, Z, _: self._nearest(piece, Z), np.random.default_rng(0))
        return flat.to(X.device).reshape(X.shape)

    def _nearest(self, piece: Piece, Z: Array) -> Array:
        for j, number in enumerate(self.pieces.numbers):
            if piece.active.get(number.name) and j not in piece.tied:
                Z[:, j] = number.nearest(Z[:, j], piece.low[j], piece.high[j])
        if piece.block is not None:
            Z[:, piece.tied] = piece.block.values(piece.block.nearest(piece.block.shares(Z[:, piece.tied])))
        return Z

    # ── what a search needs ───────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def free(self) -> Int[Tensor, "f"]:
        """The columns that are polished: continuous parameters, and fine grids that no linear rule ties to others."""
        held = {n.column for n in self.pieces.numbers if n.stepped or (n.grid and n.name in self.pieces.in_sums)}
        return torch.tensor([c for c in self._mixed.free.tolist() if c not in held], dtype=torch.int64)

    def region(self, X: Float[Tensor, "n d"]) -> Region:
        """Where points may be polished to.

        Args:
            X: Feasible points.

        Returns:
            For each point its piece in the free columns, tied grids staying where they are.
        """
        read, free, numbers = self._read(X.cpu()), self.free.tolist(), self.pieces.numbers
        at: dict[int | None, int] = {column: i for i, column in enumerate(free)}
        n, f = len(X), len(free)
        low, high = np.zeros((n, f)), np.ones((n, f))
        tied, offset, scale = np.zeros((n, f), dtype=bool), np.zeros((n, f)), np.ones((n, f))
        log, start, width = np.zeros(f, dtype=bool), np.zeros(f), np.ones(f)
        ties: list[Tie | None] = [None] * n
        boxes: dict[int, Array] = {}
        for number in numbers:
            if number.column in at:
                i, (a, b) = at[number.column], number.axis.scale
                log[i], start[i], width[i] = number.axis.log, a, b - a
        for levels, rows in read.combinations():
            options = self.pieces.of(levels)
            for row in rows:
                z = read.Z[row][None]
                if len(options) > 1:
                    piece = min(options, key=lambda option: float(self.pieces.excess(option, z)[0]))
                else:
                    (piece,) = options
                if id(piece) not in boxes:
                    boxes[id(piece)] = self._box(piece, at)
                low[row], high[row] = boxes[id(piece)]
                block = piece.block
                if block is None or not len(block.smooth):
                    continue
                own = np.array([at[int(numbers[piece.tied[j]].column or 0)] for j in block.smooth], dtype=np.intp)
                tied[row, own] = True
                offset[row, own] = block.low[block.smooth]
                scale[row, own] = (block.high - block.low)[block.smooth]
                right, equal = block.left_over(block.shares(z[:, piece.tied]))
                ties[row] = Tie(own, partial(block.polytope.nearest, b=right, e=equal))
        return Region(low, high, tuple(ties), tied, offset, scale, log, start, width)

    def _box(self, piece: Piece, at: Mapping[int | None, int]) -> Float[Array, "2 f"]:
        """The ends of a piece in the free columns, the unit interval for those that it does not bound."""
        box = np.stack([np.zeros(len(at)), np.ones(len(at))])
        for j, number in enumerate(self.pieces.numbers):
            if number.column in at and piece.active.get(number.name) and j not in piece.tied:
                box[:, at[number.column]] = number.coordinates(np.array([piece.low[j], piece.high[j]]))
        return box

    def resting(self, X: Float[Tensor, "*b k d"]) -> Bool[Tensor, "*b k d"] | None:
        """Which coordinates belong to parameters that are not active.

        Args:
            X: Points of the domain.

        Returns:
            One flag per coordinate; None if every parameter is active everywhere.
        """
        return self.space.resting(X)

    def exchanges(self, X: Float[Tensor, "*b k d"]) -> Float[Tensor, "*b k m d"] | None:
        """Discrete neighbours.

        Args:
            X: Points of the domain.

        Returns:
            For each point, feasible points with another value of one discrete parameter, or of several that linear
            rules tie together, the rest following; None if nothing is discrete.
        """
        moves = neighbours(self._mixed, self.pieces, X)
        return None if moves is None else self.snap(moves.flatten(-3, -2)).unflatten(-2, moves.shape[-3:-1])

    # ── pieces ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _read(self, X: Float[Tensor, "n d"]) -> PointValues:
        return PointValues.at(X, self.pieces)

    @cached_property
    def _sure(self) -> Float[Tensor, "d"]:
        """A feasible point."""
        return self.spread(64, torch.Generator().manual_seed(0))[0]

    def _moved(
        self,
        X: Float[Tensor, "n d"],
        move: Move,
        rng: np.random.Generator,
        *,
        instead: Tensor | None = None,
        drawing: bool = False,
    ) -> Float[Tensor, "n d"]:
        """The points after a move inside their pieces; those whose categories have no piece take others.

        ``instead`` are feasible points whose categories they take; by default the combination that differs least.
        """
        X, read = X.clone(), self._read(X)
        wrong = [rows for levels, rows in read.combinations() if not self.pieces.of(levels)]
        if wrong:
            rows = np.concatenate(wrong)
            own = self._possible(read.levels[rows], rng) if instead is None else self._read(instead[rows]).levels
            self._give_levels(X, rows, own)
            read.levels[rows] = own
        for piece, rows in self._allotted(read, rng):
            Z = move(piece, read.Z[rows].copy(), rows)
            for j, number in enumerate(self.pieces.numbers):
                if number.column is not None and piece.active.get(number.name) and number.name not in self.pinned:
                    X[rows, number.column] = torch.from_numpy(number.coordinates(Z[:, j]))
        X = self._mixed.snap(X)  # a parameter that was not active before has to begin at one of its values
        kept = self.kept(X)
        if bool(kept.all()):
            return X
        if bool(kept.any()):
            good = kept.nonzero().squeeze(-1)
            X[~kept] = X[good[torch.arange(int((~kept).sum())) % len(good)]]
        elif drawing:
            raise NumericalError(
                "No point that keeps the rules was found, though there are some: they leave hardly room. Loosen one."
            )
        else:
            X[:] = self._sure
        return X

    def _allotted(self, read: PointValues, rng: np.random.Generator) -> list[tuple[Piece, Index]]:
        """The pieces with the points that go there: each to the one whose constraints it violates least."""
        found: dict[int, tuple[Piece, list[Index]]] = {}
        for levels, rows in read.combinations():
            pieces = self.pieces.of(levels)
            if len(pieces) > 1:
                out = np.stack([self.pieces.excess(piece, read.Z[rows]) for piece in pieces], axis=-1)
                index = (out + 1e-9 * rng.random(out.shape)).argmin(-1)
            else:
                index = np.zeros(len(rows), dtype=np.intp)
            for i in np.unique(index):
                found.setdefault(id(pieces[i]), (pieces[i], []))[1].append(rows[index == i])
        return [(piece, np.concatenate(parts)) for piece, parts in found.values()]

    def _possible(self, levels: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """The combination of levels with a piece that differs from each of these in the fewest."""
        possible = np.array(self.pieces.possible)
        apart = (levels[:, None] != possible).sum(-1) + 1e-3 * rng.random((len(levels), len(possible)))
        return np.asarray(possible[apart.argmin(-1)])

    def _give_levels(self, X: Tensor, rows: Index, levels: NDArray[np.int64]) -> None:
        for c, axis in enumerate(self.pieces.categories):
            for level in range(len(axis.levels) if axis.width else 0):
                here = rows[levels[:, c] == level]
                X[here, axis.columns] = axis.place([axis.levels[level]])


def _rng(generator: torch.Generator) -> np.random.Generator:
    return np.random.default_rng(int(torch.randint(1 << 31, (), generator=generator)))
