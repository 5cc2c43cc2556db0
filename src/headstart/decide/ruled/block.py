"""The parameters that linear rules tie together, and the points that they leave: a polytope, some axes of it on grids.

Inputs are shares x of the parameters' ranges, in their own units: x = (z − low) / (high − low). A point is moved in two
ways, neither of which leaves the block:

    slide     what is continuous, by hit-and-run, the grids staying where they are
    jump      the grids, by steps that keep the equalities, what is continuous making up for the rest

Steps are those of one parameter, those of two that keep the sum of an equality, and the differences of points that a
mixed-integer linear program has found. On a log axis ratios count, so there small values are as likely as large ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from scipy.optimize import linprog

from headstart.decide.ruled.lattice import farthest, pair_steps
from headstart.decide.ruled.numbers import Number
from headstart.decide.ruled.polytope import Polytope, deepest

Array = NDArray[np.float64]

_ROUNDING = 1e-10
_POOL, _PROGRAMS = 128, 8
_MIXING = 10  # steps for each input, until a point no longer knows where it came from
_LONGEST = 12  # steps are doubled so often at most
_MOST_MOVES = 96
_NEAR_PASSES = 60


@dataclass(frozen=True, eq=False)
class Block:
    """Numbers tied by the rows of A z ≤ b and E z = e, each between its ``low`` and ``high``, in their own units."""

    numbers: tuple[Number, ...]
    low: Float[Array, "p"]
    high: Float[Array, "p"]
    A: Float[Array, "m p"]
    b: Float[Array, "m"]
    E: Float[Array, "q p"]
    e: Float[Array, "q"]

    # ── shares of the ranges ──────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def _range(self) -> Float[Array, "p"]:
        return self.high - self.low

    def shares(self, Z: Float[Array, "n p"]) -> Float[Array, "n p"]:
        """x of values."""
        return (Z - self.low) / self._range

    def values(self, X: Float[Array, "n p"]) -> Float[Array, "n p"]:
        """The values at shares, on their grids and in their ranges exactly."""
        Z = self.low + X * self._range
        for j, number in enumerate(self.numbers):
            Z[:, j] = number.nearest(Z[:, j], self.low[j], self.high[j])
        return Z

    @cached_property
    def _sides(self) -> tuple[Array, Array, Array, Array]:
        """A, b with the bounds, and E, e, of shares; rows of length 1, those always kept left out."""
        p = len(self.numbers)
        A, b = self.A * self._range, self.b - self.A @ self.low
        E, e = self.E * self._range, self.e - self.E @ self.low
        a, c = np.linalg.norm(A, axis=-1), np.linalg.norm(E, axis=-1)
        A = np.vstack([A / a[:, None], np.eye(p), -np.eye(p)])
        return A, np.r_[b / a, np.ones(p), np.zeros(p)], E / c[:, None], e / c

    @cached_property
    def grids(self) -> NDArray[np.intp]:
        """Which of the inputs are on a grid."""
        return np.array([j for j, number in enumerate(self.numbers) if number.grid is not None], dtype=np.intp)

    @cached_property
    def smooth(self) -> NDArray[np.intp]:
        """Which of them are continuous."""
        return np.array([j for j, number in enumerate(self.numbers) if number.grid is None], dtype=np.intp)

    @cached_property
    def _pitch(self) -> Float[Array, "g"]:
        """The steps of the grids, as shares."""
        steps = [float(grid.step) for number in self.numbers if (grid := number.grid) is not None]
        return np.array(steps) / self._range[self.grids]

    @cached_property
    def polytope(self) -> Polytope:
        """Of the continuous inputs, the others being given."""
        A, _, E, _ = self._tight
        return Polytope(A[:, self.smooth], E[:, self.smooth])

    def left_over(self, X: Float[Array, "n p"]) -> tuple[Float[Array, "n m"], Float[Array, "n q"]]:
        """The right sides of the polytope of the continuous inputs, at the points' places on the grids."""
        A, b, E, e = self._tight
        return b - X[:, self.grids] @ A[:, self.grids].T, e - X[:, self.grids] @ E[:, self.grids].T

    @cached_property
    def _tight(self) -> tuple[Array, Array, Array, Array]:
        """The sides, with inequalities that can only hold as equalities among those: else no line has any length."""
        A, b, E, e = self._sides
        if len(self.grids) or self._centre is None or self._centre[1] > 1e-7:
            return A, b, E, e
        loose = np.zeros(len(A), dtype=bool)
        for i in range(len(A)):
            if not loose[i]:
                found = linprog(
                    A[i], A_ub=A, b_ub=b, A_eq=E if len(E) else None, b_eq=e if len(E) else None, bounds=(None, None)
                )
                if found.x is not None:
                    loose |= b - A @ found.x > 1e-7
        E, e = np.vstack([E, A[~loose]]), np.r_[e, b[~loose]]
        return A[loose], b[loose], E, e

    # ── points inside ─────────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def _centre(self) -> tuple[Array, float] | None:
        return deepest(*self._sides)

    @cached_property
    def feasible(self) -> bool:
        """Whether there is a point."""
        return len(self._found) > 0

    @cached_property
    def _found(self) -> Float[Array, "k p"]:
        """Points to start from: the centre, or what mixed-integer linear programs find in several directions."""
        p = len(self.numbers)
        if self._centre is None:
            return np.empty((0, p))
        if len(self.grids) == 0:
            return self._kept(self.polytope.onto(self._centre[0][None], self._tight[3][None]))
        rng = np.random.default_rng(0)
        found: list[Array] = []
        for i in range(_PROGRAMS):
            x = self._program(rng.standard_normal(p) if i else np.zeros(p))
            if x is None:
                break
            X, ok = self._settled(x[None])
            found.extend(X[ok])
        return self._kept(np.array(found).reshape(-1, p))

    def _program(self, direction: Float[Array, "p"]) -> Float[Array, "p"] | None:
        """A point of the block that is far in a direction, up to the program's tolerances."""
        first = np.array([number.grid.first for number in self.numbers if number.grid is not None], dtype=float)
        start = (first - self.low[self.grids]) / self._range[self.grids]
        return farthest(direction, self._sides, self.grids, start, self._pitch)

    def _kept(self, X: Float[Array, "n p"]) -> Float[Array, "k p"]:
        return X[self.holds(X)]

    def holds(self, X: Float[Array, "n p"], room: float = _ROUNDING) -> Bool[NDArray[np.bool_], "n"]:
        """Which points are inside, the grids aside."""
        A, b, E, e = self._sides
        over = (X @ A.T - b).max(-1, initial=-np.inf)
        off = np.abs(X @ E.T - e).max(-1, initial=-np.inf)
        return np.asarray((over <= room) & (off <= room))

    def excess(self, X: Float[Array, "n p"]) -> Float[Array, "n"]:
        """How far points are outside: the sum over all sides."""
        A, b, E, e = self._sides
        return np.asarray((X @ A.T - b).clip(0.0).sum(-1) + np.abs(X @ E.T - e).sum(-1))

    @cached_property
    def pool(self) -> Float[Array, "k p"]:
        """Points all over the block, always the same ones."""
        rng = np.random.default_rng(0)
        starts = self._found[np.arange(_POOL) % len(self._found)]
        return np.vstack([self._found, self.walk(starts, 2 * _MIXING * len(self.numbers), rng)])

    # ── moving ────────────────────────────────────────────────────────────────────────────────────────────────────

    def draw(self, n: int, rng: np.random.Generator) -> Float[Array, "n p"]:
        """Points all over the block: those of the pool, having gone on from there."""
        starts = self.pool[rng.integers(len(self.pool), size=n)]
        return self.walk(starts, _MIXING * len(self.numbers), rng)

    def walk(
        self, X: Float[Array, "n p"], steps: int, rng: np.random.Generator, *, reach: float | None = None
    ) -> Float[Array, "n p"]:
        """Points inside after so many steps, of the given reach if there is one; those that go wrong stay."""
        Y = X.copy()
        for _ in range(steps):
            if len(self.grids) and len(self.moves[0]):
                Y = self._jump(Y, rng, reach)
            if self.polytope.along.shape[1]:
                b, e = self.left_over(Y)
                Y[:, self.smooth] = self.polytope.slide(Y[:, self.smooth], b, rng, reach=reach, weigh=self._weigh)
                Y[:, self.smooth] = self.polytope.onto(Y[:, self.smooth], e)
        return np.where(self.holds(Y)[:, None], Y, X)

    @cached_property
    def _weigh(self) -> tuple[Array, Array] | None:
        log = np.array([self.numbers[j].axis.log for j in self.smooth], dtype=bool)
        return (self.low[self.smooth], np.where(log, self._range[self.smooth], 0.0)) if log.any() else None

    @cached_property
    def moves(self) -> tuple[Float[Array, "k p"], Float[Array, "k"]]:
        """Steps that keep the equalities, as differences of shares, and how long each may become, in multiples."""
        _, _, E, _ = self._sides
        G = E[:, self.grids] * self._pitch
        whole = [*np.eye(len(self.grids)), *pair_steps(G)]
        own = np.round((self._found - self._found[:1])[:, self.grids] / self._pitch)
        whole += [row / np.gcd.reduce(row.astype(np.int64)) for row in own if row.any()]
        M = np.unique(np.array(whole).round(), axis=0)
        M = M[np.abs(M).max(-1) <= 1 / self._pitch.min()]
        X = np.zeros((len(M), len(self.numbers)))
        X[:, self.grids] = M * self._pitch
        short = -X @ E.T
        X[:, self.smooth] = short @ self.polytope.back[:, : len(E)].T if len(E) else 0.0
        fine = np.abs(X @ E.T).max(-1, initial=0.0) < 1e-12
        X = X[fine][:_MOST_MOVES]
        return X, np.floor(1 / np.abs(X[:, self.grids]).max(-1)).clip(1)

    def _jump(self, X: Float[Array, "n p"], rng: np.random.Generator, reach: float | None) -> Float[Array, "n p"]:
        moves, most = self.moves
        index = rng.integers(len(moves), size=len(X))
        limit = most[index] if reach is None else (reach * most[index]).clip(1)
        times = np.floor(np.exp(rng.random(len(X)) * np.log(limit + 1))).clip(1) * rng.choice([-1.0, 1.0], size=len(X))
        Y = X + times[:, None] * moves[index]
        may = self.holds(Y)
        if reach is None and any(number.axis.log for number in self.numbers):
            log = np.array([number.axis.log for number in self.numbers])
            size = [np.log((self.low + P * self._range)[:, log].clip(1e-300)).sum(-1) for P in (X, Y)]
            may &= np.log(rng.random(len(X))) < size[0] - size[1]
        return np.where(may[:, None], Y, X)

    def around(self, x: Float[Array, "p"]) -> Float[Array, "k p"]:
        """The points inside that differ from x by one step or a power of two of them."""
        moves, most = self.moves
        if len(moves) == 0:
            return np.empty((0, len(x)))
        times = 2.0 ** np.arange(_LONGEST)
        times = times[times <= most.max()]
        Y = (x + np.concatenate([times, -times])[:, None, None] * moves).reshape(-1, len(x))
        grids = Y[:, self.grids]
        Y = Y[((grids > -_ROUNDING) & (grids < 1 + _ROUNDING)).all(-1)]
        if len(self.smooth):
            out = ~self.holds(Y)
            Y[np.ix_(out, self.smooth)], _ = self.polytope.nearest(Y[np.ix_(out, self.smooth)], *self.left_over(Y[out]))
        return self._kept(Y)

    # ── the nearest point ─────────────────────────────────────────────────────────────────────────────────────────

    def nearest(self, X: Float[Array, "n p"]) -> Float[Array, "n p"]:
        """Points inside near X: the nearest ones, where no grid is involved."""
        A, b, E, e = self._sides
        every = Polytope(A, E)
        Y, ok = every.nearest(X, np.tile(b, (len(X), 1)), np.tile(e, (len(X), 1)))
        if len(self.grids):
            Y, ok = self._settled(np.where(ok[:, None], Y, X))
        for i in np.flatnonzero(~ok):
            Y[i] = self._stepped_to(X[i])
        return Y

    def _settled(self, X: Float[Array, "n p"]) -> tuple[Float[Array, "n p"], Bool[NDArray[np.bool_], "n"]]:
        """X with the grids on their nearest values, the rest moved as little as that takes; and which are inside."""
        Y = self.shares(self.values(X))
        if len(self.smooth):
            Y[:, self.smooth], ok = self.polytope.nearest(X[:, self.smooth], *self.left_over(Y))
            return Y, ok & self.holds(Y)
        return Y, self.holds(Y)

    def _stepped_to(self, x: Float[Array, "p"]) -> Float[Array, "p"]:
        """From the nearest point of the pool in ever better steps towards x."""
        apart = np.square(self.pool - x).sum(-1)
        best, distance = self.pool[apart.argmin()], float(apart.min())
        for _ in range(_NEAR_PASSES if len(self.grids) else 0):
            Y = self.around(best)
            apart = np.square(Y - x).sum(-1)
            if not len(Y) or apart.min() >= distance - 1e-12:
                break
            best, distance = Y[apart.argmin()], float(apart.min())
        if len(self.smooth) and len(self.grids):
            Y, ok = self._settled(np.where(np.isin(np.arange(len(x)), self.grids), best, x)[None])
            best = Y[0] if ok[0] else best
        return np.asarray(best)
