"""``Ruled``: the points of a space that keep rules about the settings.

Every point that it offers keeps every rule: whatever is drawn, moved or polished goes to a piece of the space in which
the rules are linear (decide.ruled.pieces) and stays inside it, and what rounding has taken out again is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from headstart.data.rules.rule import SettingRule
from headstart.data.rules.text import parse_rule
from headstart.data.space import Space
from headstart.decide.domain import Mixed, Searchable
from headstart.decide.ruled.conflict import require_possible
from headstart.decide.ruled.exchange import exchanges_of, listing_of
from headstart.decide.ruled.keeping import Reading
from headstart.decide.ruled.parts import Piece
from headstart.decide.ruled.pieces import Pieces
from headstart.decide.ruled.region import Region, region_of
from headstart.errors import NumericalError

Index = NDArray[np.intp]
Array = NDArray[np.float64]
# (the values of points in a piece, which points they are) → their new values
Move = Callable[[Piece, Array, Index], Array]

_NEAR = 0.05  # how far near points lie, in shares of a range


@dataclass(frozen=True)
class Ruled(Searchable):
    """The points of a space of named parameters that keep all of the rules, which may be given as text.

    Past rows that break a rule stay evidence; none is suggested. ``pinned`` are parameters that have a value already.
    Fails if no point keeps all rules, naming some that contradict each other.
    """

    space: Space
    rules: Sequence[SettingRule | str]
    pinned: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Read the rules, and raise an ``InputError`` if one is no rule of the space, or nothing keeps all of them."""
        read = tuple(parse_rule(rule, self.space) if isinstance(rule, str) else rule for rule in self.rules)
        for rule in read:
            rule.require(self.space)
        object.__setattr__(self, "rules", read)
        require_possible(self.pieces)

    @cached_property
    def pieces(self) -> Pieces:
        """The parts in which the rules are linear."""
        return Pieces(self.space, self.every_rule, self.pinned)

    @property
    def every_rule(self) -> tuple[SettingRule, ...]:
        """The rules, as data."""
        return tuple(rule for rule in self.rules if isinstance(rule, SettingRule))

    @cached_property
    def _mixed(self) -> Mixed:
        """The same without rules."""
        return Mixed(self.space, self.pinned)

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

    def kept(self, X: Float[Tensor, "n d"]) -> Bool[Tensor, "n"]:
        """Which points of the space keep all rules."""
        return torch.from_numpy(self._read(X.cpu()).keeps(self.every_rule)).to(X.device)

    def listing(self) -> Float[Tensor, "m d"] | None:
        """Every combination of values that keeps the rules, if nothing is continuous and they are few."""
        return self._listing

    @cached_property
    def _listing(self) -> Float[Tensor, "m d"] | None:
        X = listing_of(self.pieces)
        if X is None:
            return None
        X = self._mixed.space.rested(X) if not self.pinned else self._mixed.snap(X)
        X = X[self.kept(X)].unique(dim=0)
        return X if 0 < len(X) <= 2000 else None

    # ── points all over it, and near others ───────────────────────────────────────────────────────────────────────

    def spread(self, n: int, generator: torch.Generator) -> Float[Tensor, "n d"]:
        """Sobol points in what no linear rule ties together, and independent points of hit-and-run in the rest."""
        return self._drawn(self._mixed.spread(n, generator), generator)

    def uniform(self, n: int, generator: torch.Generator) -> Float[Tensor, "n d"]:
        """Independent points, those of hit-and-run where linear rules tie parameters together."""
        return self._drawn(self._mixed.uniform(n, generator), generator)

    def _drawn(self, X: Float[Tensor, "n d"], generator: torch.Generator) -> Float[Tensor, "n d"]:
        if bool(self.kept(X).all()):  # rules that exclude nothing change nothing
            return X
        rng = _rng(generator)

        def draw(piece: Piece, Z: Array, rows: Index) -> Array:
            for j, number in enumerate(self.pieces.numbers):
                column = number.column
                if piece.there.get(number.name) and column is not None and j not in piece.tied:
                    Z[:, j] = number.shares(X[rows, column].numpy(), piece.low[j], piece.high[j])
            if piece.block is not None:
                Z[:, piece.tied] = piece.block.values(piece.block.draw(len(Z), rng))
            return Z

        return self._moved(X, draw, rng, drawing=True)

    def near(self, anchors: Float[Tensor, "*b k d"], n: int, generator: torch.Generator) -> Float[Tensor, "*b k*{n} d"]:
        """Normal steps that end where a rule would be broken; a categorical parameter changes now and then."""
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
        """Points of the domain near X, those in it staying where they are; where no grid is tied, the nearest ones."""
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
            if piece.there.get(number.name) and j not in piece.tied:
                Z[:, j] = number.nearest(Z[:, j], piece.low[j], piece.high[j])
        if piece.block is not None:
            Z[:, piece.tied] = piece.block.values(piece.block.nearest(piece.block.shares(Z[:, piece.tied])))
        return Z

    # ── what a search needs ───────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def free(self) -> Int[Tensor, "f"]:
        """The continuous parameters, and fine grids that no linear rule ties to others."""
        held = {n.column for n in self.pieces.numbers if n.stepped or (n.grid and n.name in self.pieces.in_sums)}
        return torch.tensor([c for c in self._mixed.free.tolist() if c not in held], dtype=torch.int64)

    def region(self, X: Float[Tensor, "n d"]) -> Region:
        """The pieces that the points are in, grids that are tied to others staying where they are."""
        flat = X.cpu()
        return region_of(self.pieces, self._read(flat), self.free.numpy())

    def resting(self, X: Float[Tensor, "*b k d"]) -> Bool[Tensor, "*b k d"] | None:
        """Those of parameters that are not there."""
        return self.space.resting(X)

    def exchanges(self, X: Float[Tensor, "*b k d"]) -> Float[Tensor, "*b k m d"] | None:
        """Other values of one discrete parameter, or of several that linear rules tie together, the rest following."""
        moves = exchanges_of(self._mixed, self.pieces, X, self._read)
        return None if moves is None else self.snap(moves.flatten(-3, -2)).unflatten(-2, moves.shape[-3:-1])

    # ── pieces ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _read(self, X: Float[Tensor, "n d"]) -> Reading:
        return Reading.of(X, self.space, self.pieces)

    @cached_property
    def _sure(self) -> Float[Tensor, "d"]:
        """A point that keeps the rules."""
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
        """The points after a move inside their pieces; those with categories that have none take others.

        ``instead`` are points of the domain whose categories they take; by default the nearest ones that there are.
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
                if number.column is not None and piece.there.get(number.name) and number.name not in self.pinned:
                    X[rows, number.column] = torch.from_numpy(number.coordinates(Z[:, j]))
        X = self._mixed.snap(X)  # what was not there before has to begin at one of its values
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

    def _allotted(self, read: Reading, rng: np.random.Generator) -> list[tuple[Piece, Index]]:
        """The pieces with the points that go there: each to the one that it is least far out of."""
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
        """Levels that have pieces and differ from these in the fewest."""
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
