"""``Block``: numeric parameters that linear rules tie together, a polytope some axes of which are on grids.

Inputs are shares x of the parameters' ranges, in their own units: x = (z − low) / (high − low). Points are sampled by a
Markov chain with two kinds of steps, neither of which leaves the block:

    slide     hit-and-run in the continuous inputs, the grids staying where they are
    jump      a step of the grids that satisfies the equalities, with the continuous inputs making up for the rest

Jumps are steps of one parameter, of two that leave the sum of an equality as it is, and differences of points that a
mixed-integer linear program has found. Points are uniform on the axes' scales: in the logs on a log axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations

import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

from headstart.decide.domain import jumps
from headstart.decide.ruled.numeric import NumericRange
from headstart.decide.ruled.polytope import ROUNDING, Polytope

Array = NDArray[np.float64]

_POOL = 128  # points that chains start from
_PROGRAMS = 8  # mixed-integer linear programs that the pool starts from
_SOLVER_SECONDS = 2.0  # for each of them
_MIXING = 10  # steps of the chain for each input, until a point does not depend on its start
_MOST_MOVES = 96
_NEAR_PASSES = 60  # of the local search for the nearest point


@dataclass(frozen=True, eq=False)
class Block:
    """Parameters z with A z ≤ b, E z = e and ``low`` ≤ z ≤ ``high``, in their own units."""

    numbers: tuple[NumericRange, ...]
    low: Float[Array, "p"]
    high: Float[Array, "p"]
    A: Float[Array, "m p"]
    b: Float[Array, "m"]
    E: Float[Array, "q p"]
    e: Float[Array, "q"]

    @cached_property
    def _range(self) -> Float[Array, "p"]:
        return self.high - self.low

    def shares(self, Z: Float[Array, "n p"]) -> Float[Array, "n p"]:
        """The shares of values."""
        return (Z - self.low) / self._range

    def values(self, X: Float[Array, "n p"]) -> Float[Array, "n p"]:
        """The values at shares, moved onto the grids and into the ranges exactly."""
        Z = self.low + X * self._range
        for j, number in enumerate(self.numbers):
            Z[:, j] = number.nearest(Z[:, j], self.low[j], self.high[j])
        return Z

    @cached_property
    def _sides(self) -> tuple[Array, Array, Array, Array]:
        """A, b (with the bounds) and E, e of the shares, in rows of length 1."""
        p = len(self.numbers)
        A, b = self.A * self._range, self.b - self.A @ self.low
        E, e = self.E * self._range, self.e - self.E @ self.low
        a, c = np.linalg.norm(A, axis=-1), np.linalg.norm(E, axis=-1)
        A = np.vstack([A / a[:, None], np.eye(p), -np.eye(p)])
        return A, np.r_[b / a, np.ones(p), np.zeros(p)], E / c[:, None], e / c

    @cached_property
    def grids(self) -> NDArray[np.intp]:
        """Which of the inputs are on a grid."""
        return np.flatnonzero([number.count is not None for number in self.numbers])

    @cached_property
    def smooth(self) -> NDArray[np.intp]:
        """Which of them are continuous."""
        return np.flatnonzero([number.count is None for number in self.numbers])

    @cached_property
    def _pitch(self) -> Float[Array, "g"]:
        """The steps of the grids, as shares."""
        return np.array([self.numbers[j].step for j in self.grids]) / self._range[self.grids]

    @cached_property
    def polytope(self) -> Polytope:
        """The polytope of the continuous inputs, the grids being given."""
        A, _, E, _ = self._tight
        return Polytope(A[:, self.smooth], E[:, self.smooth])

    def left_over(self, X: Float[Array, "n p"]) -> tuple[Float[Array, "n m"], Float[Array, "n q"]]:
        """The right sides of the polytope of the continuous inputs, at the points' places on the grids."""
        A, b, E, e = self._tight
        return b - X[:, self.grids] @ A[:, self.grids].T, e - X[:, self.grids] @ E[:, self.grids].T

    @cached_property
    def _tight(self) -> tuple[Array, Array, Array, Array]:
        """The constraints, with implied equalities moved to E: a polytope without interior has no lines to sample."""
        A, b, E, e = self._sides
        if len(self.grids) or self._centre is None or self._centre[1] > 1e-7:
            return A, b, E, e
        loose = np.zeros(len(A), dtype=bool)
        for i in range(len(A)):
            if not loose[i]:
                found = linprog(A[i], A_ub=A, b_ub=b, A_eq=E, b_eq=e, bounds=(None, None))
                if found.x is not None:
                    loose |= b - A @ found.x > 1e-7
        E, e = np.vstack([E, A[~loose]]), np.r_[e, b[~loose]]
        return A[loose], b[loose], E, e

    @cached_property
    def _every(self) -> Polytope:
        """The polytope of all inputs, the grids taken as continuous."""
        return Polytope(self._sides[0], self._sides[2])

    @cached_property
    def _centre(self) -> tuple[Array, float] | None:
        return self._every.centre(self._sides[1], self._sides[3])

    @cached_property
    def found(self) -> Float[Array, "k p"]:
        """Points to start from, none if it is empty: the Chebyshev centre, or points in random directions."""
        p = len(self.numbers)
        if self._centre is None:
            return np.empty((0, p))
        if len(self.grids) == 0:
            X = self.polytope.onto(self._centre[0][None], self._tight[3][None])
            return X[self.contains(X)]
        rng = np.random.default_rng(0)
        found: list[Array] = []
        for i in range(_PROGRAMS):
            x = self._farthest(rng.standard_normal(p) if i else np.zeros(p))
            if x is None:
                break
            X, ok = self._rounded(x[None])
            found.extend(X[ok])
        return np.array(found).reshape(-1, p)

    def _farthest(self, direction: Float[Array, "p"]) -> Float[Array, "p"] | None:
        """The point that minimises direction · x, by a mixed-integer linear program; None if none is found in time."""
        A, b, E, e = self._sides
        # x = offset + scale y, y whole on the grids
        offset, scale, whole = np.zeros(len(direction)), np.ones(len(direction)), np.zeros(len(direction))
        first = np.array([self.numbers[j].first for j in self.grids])
        offset[self.grids] = (first - self.low[self.grids]) / self._range[self.grids]
        scale[self.grids], whole[self.grids] = self._pitch, 1
        upper, equal = b - A @ offset + 1e-11, e - E @ offset
        rows = LinearConstraint(np.vstack([A, E]) * scale, np.r_[np.full(len(A), -np.inf), equal], np.r_[upper, equal])
        bounds, limit = Bounds(-np.inf, np.inf), {"time_limit": _SOLVER_SECONDS}
        found = milp(direction * scale, constraints=rows, integrality=whole, bounds=bounds, options=limit)
        return None if found.x is None else offset + scale * np.where(whole > 0, np.round(found.x), found.x)

    def contains(self, X: Float[Array, "n p"]) -> Bool[NDArray[np.bool_], "n"]:
        """Which points satisfy the constraints up to rounding, whether on the grids or not."""
        A, b, E, e = self._sides
        over = (X @ A.T - b).max(-1, initial=-np.inf)
        off = np.abs(X @ E.T - e).max(-1, initial=-np.inf)
        return np.asarray((over <= ROUNDING) & (off <= ROUNDING))

    def excess(self, X: Float[Array, "n p"]) -> Float[Array, "n"]:
        """The sum of all constraint violations."""
        A, b, E, e = self._sides
        return np.asarray((X @ A.T - b).clip(0.0).sum(-1) + np.abs(X @ E.T - e).sum(-1))

    @cached_property
    def pool(self) -> Float[Array, "k p"]:
        """A fixed sample of the block."""
        rng = np.random.default_rng(0)
        starts = self.found[np.arange(_POOL) % len(self.found)]
        return np.vstack([self.found, self.walk(starts, 2 * _MIXING * len(self.numbers), rng)])

    def draw(self, n: int, rng: np.random.Generator) -> Float[Array, "n p"]:
        """A sample of the block: chains that start from the pool."""
        starts = self.pool[rng.integers(len(self.pool), size=n)]
        return self.walk(starts, _MIXING * len(self.numbers), rng)

    def walk(
        self, X: Float[Array, "n p"], steps: int, rng: np.random.Generator, *, reach: float | None = None
    ) -> Float[Array, "n p"]:
        """Points after ``steps`` of the chain, local ones if a ``reach`` is given; rounding takes none outside."""
        Y = X.copy()
        for _ in range(steps):
            if len(self.grids) and len(self.moves[0]):
                Y = self._jump(Y, rng, reach)
            if self.polytope.along.shape[1]:
                b, e = self.left_over(Y)
                Y[:, self.smooth] = self.polytope.slide(Y[:, self.smooth], b, rng, reach=reach, weigh=self._weigh)
                Y[:, self.smooth] = self.polytope.onto(Y[:, self.smooth], e)
        return np.where(self.contains(Y)[:, None], Y, X)

    @cached_property
    def _weigh(self) -> tuple[Array, Array] | None:
        log = np.array([self.numbers[j].axis.log for j in self.smooth], dtype=bool)
        return (self.low[self.smooth], np.where(log, self._range[self.smooth], 0.0)) if log.any() else None

    @cached_property
    def moves(self) -> tuple[Float[Array, "k p"], Float[Array, "k"]]:
        """Jumps that satisfy the equalities, as differences of shares, and the largest multiple of each."""
        _, _, E, _ = self._sides
        G = E[:, self.grids] * self._pitch
        whole = [*np.eye(len(self.grids)), *_pair_steps(G)]
        own = np.round((self.found - self.found[:1])[:, self.grids] / self._pitch)
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
        may = self.contains(Y)
        if reach is None and any(number.axis.log for number in self.numbers):
            log = np.array([number.axis.log for number in self.numbers])
            size = [np.log((self.low + P * self._range)[:, log].clip(1e-300)).sum(-1) for P in (X, Y)]
            may &= np.log(rng.random(len(X))) < size[0] - size[1]
        return np.where(may[:, None], Y, X)

    def around(self, x: Float[Array, "p"]) -> Float[Array, "k p"]:
        """The points inside that differ from x by one jump or by a power of two of it."""
        moves, most = self.moves
        if len(moves) == 0:
            return np.empty((0, len(x)))
        times = jumps(int(most.max()) + 1).numpy()
        Y = (x + times[:, None, None] * moves).reshape(-1, len(x))
        grids = Y[:, self.grids]
        Y = Y[((grids > -ROUNDING) & (grids < 1 + ROUNDING)).all(-1)]
        if len(self.smooth):
            out = ~self.contains(Y)
            Y[np.ix_(out, self.smooth)], _ = self.polytope.nearest(Y[np.ix_(out, self.smooth)], *self.left_over(Y[out]))
        return Y[self.contains(Y)]

    def nearest(self, X: Float[Array, "n p"]) -> Float[Array, "n p"]:
        """Projection onto the block: exact without grids, by local search with them."""
        _, b, _, e = self._sides
        Y, ok = self._every.nearest(X, np.tile(b, (len(X), 1)), np.tile(e, (len(X), 1)))
        if len(self.grids):
            Y, ok = self._rounded(np.where(ok[:, None], Y, X))
        for i in np.flatnonzero(~ok):
            Y[i] = self._searched_for(X[i])
        return Y

    def _rounded(self, X: Float[Array, "n p"]) -> tuple[Float[Array, "n p"], Bool[NDArray[np.bool_], "n"]]:
        """X with the grids rounded and the continuous inputs projected; and which of them are inside."""
        Y = self.shares(self.values(X))
        if len(self.smooth):
            Y[:, self.smooth], ok = self.polytope.nearest(X[:, self.smooth], *self.left_over(Y))
            return Y, ok & self.contains(Y)
        return Y, self.contains(Y)

    def _searched_for(self, x: Float[Array, "p"]) -> Float[Array, "p"]:
        """Local search for the point nearest to x, from the nearest one of the pool."""
        apart = np.square(self.pool - x).sum(-1)
        best, distance = self.pool[apart.argmin()], float(apart.min())
        for _ in range(_NEAR_PASSES if len(self.grids) else 0):
            Y = self.around(best)
            apart = np.square(Y - x).sum(-1)
            if not len(Y) or apart.min() >= distance - 1e-12:
                break
            best, distance = Y[apart.argmin()], float(apart.min())
        if len(self.smooth) and len(self.grids):
            Y, ok = self._rounded(np.where(np.isin(np.arange(len(x)), self.grids), best, x)[None])
            best = Y[0] if ok[0] else best
        return np.asarray(best)


def _pair_steps(G: Float[Array, "q g"]) -> Sequence[Float[Array, "g"]]:
    """The shortest steps of two grids at once that leave the sum of an equality as it is."""
    found = []
    for row in G:
        for j, k in combinations(np.flatnonzero(np.abs(row) > 1e-12), 2):
            ratio = Fraction(float(row[j] / row[k])).limit_denominator(1000)
            step = np.zeros(len(row))
            step[j], step[k] = ratio.denominator, -ratio.numerator
            found.append(step)
    return found
