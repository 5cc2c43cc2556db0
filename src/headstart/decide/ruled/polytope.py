"""``Polytope``: {x : A x ≤ b, E x = e}, sampled and projected onto.

    nearest    projection of a point: least distance programming by non-negative least squares
    slide      one step of hit-and-run: a random place on a random line through a point

Many points are moved at once, each with right sides b, e of its own: they depend on the grids, A and E do not. Rows of
A and E have length 1, so that the slack of an inequality is a distance.

BoTorch 0.18 has both for one right side, without log axes, and slower: ``HitAndRunPolytopeSampler`` 80 times and
``project_to_feasible_space_via_slsqp`` 12 times for ten parts that sum to 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from scipy.optimize import linprog, nnls

Array = NDArray[np.float64]

_NONE = 1e-12  # what is no more than rounding, for directions and their products
ROUNDING = 1e-10  # of a distance
_CELLS = 32  # of a line, in each of which a density is constant


@dataclass(frozen=True, eq=False)
class Polytope:
    """The left sides A of the inequalities and E of the equalities."""

    A: Float[Array, "m p"]
    E: Float[Array, "q p"]

    @cached_property
    def along(self) -> Float[Array, "p f"]:
        """An orthonormal basis of the null space of E."""
        if len(self.E) == 0:
            return np.eye(self.E.shape[1])
        _, sizes, Vt = np.linalg.svd(self.E)
        rank = int((sizes > 1e-9 * max(1.0, sizes.max(initial=0.0))).sum())
        return np.ascontiguousarray(Vt[rank:].T)

    @cached_property
    def _across(self) -> Float[Array, "m f"]:
        """The inequalities in that basis."""
        return np.asarray(self.A @ self.along)

    @cached_property
    def back(self) -> Float[Array, "p q"]:
        """The pseudo-inverse of E."""
        return np.asarray(np.linalg.pinv(self.E, rcond=1e-9), dtype=np.float64)

    def onto(self, X: Float[Array, "n p"], e: Float[Array, "n q"]) -> Float[Array, "n p"]:
        """Projection onto E x = e; least squares where the equations contradict each other."""
        return X - (X @ self.E.T - e) @ self.back.T if len(self.E) else X

    def nearest(
        self, X: Float[Array, "n p"], b: Float[Array, "n m"], e: Float[Array, "n q"]
    ) -> tuple[Float[Array, "n p"], Bool[NDArray[np.bool_], "n"]]:
        """Projection of X onto the polytope, and for which of X it was found."""
        Y = self.onto(X, e)
        ok = np.abs(Y @ self.E.T - e).max(-1, initial=-np.inf) <= ROUNDING
        left = b - Y @ self.A.T
        for i in np.flatnonzero(ok & (left.min(-1, initial=np.inf) < 0)):
            t = _shortest(-self._across, -left[i])
            if t is not None:
                Y[i] += self.along @ t
            ok[i] = (self.A @ Y[i] - b[i]).max() <= ROUNDING
        return Y, ok

    def centre(self, b: Float[Array, "m"], e: Float[Array, "q"]) -> tuple[Float[Array, "p"], float] | None:
        """The Chebyshev centre and its distance to the inequalities within E x = e; None if the polytope is empty."""
        p = self.A.shape[1]
        found = linprog(
            np.r_[np.zeros(p), -1.0],
            A_ub=np.c_[self.A, np.linalg.norm(self._across, axis=-1)],
            b_ub=b + ROUNDING / 10,  # a polytope may be a point
            A_eq=np.c_[self.E, np.zeros(len(self.E))],
            b_eq=e,
            bounds=[(None, None)] * p + [(0.0, 1.0)],
        )
        return None if found.x is None or found.status != 0 else (found.x[:p], float(found.x[p]))

    def slide(
        self,
        X: Float[Array, "n p"],
        b: Float[Array, "n m"],
        rng: np.random.Generator,
        *,
        reach: float | None = None,
        weigh: tuple[Float[Array, "p"], Float[Array, "p"]] | None = None,
    ) -> Float[Array, "n p"]:
        """Each of X after one step of hit-and-run: uniform on the line, or a normal step of the given ``reach``.

        ``weigh`` are the offsets o and scales s of inputs with density 1 / (o + s x), which is uniform in the log; s is
        0 for the others.
        """
        D = self._directions(X, rng, as_others=reach is None)
        pace, left = D @ self.A.T, (b - X @ self.A.T).clip(0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            ahead = np.where(pace > _NONE, left / pace, np.inf).min(-1, initial=np.inf)
            behind = np.where(pace < -_NONE, left / pace, -np.inf).max(-1, initial=-np.inf)
        still = ~(np.isfinite(ahead) & np.isfinite(behind))
        ahead, behind = np.where(still, 0.0, ahead), np.where(still, 0.0, behind)
        if reach is not None:
            length = np.sqrt(self.along.shape[1])  # of a normal vector, where every coordinate has the reach
            t = (reach * length * rng.standard_normal(len(X))).clip(behind, ahead)
        elif weigh is None:
            t = behind + rng.random(len(X)) * (ahead - behind)
        else:
            t = _weighted(X, D, behind, ahead, weigh, rng)
        return np.asarray(X + t[:, None] * D)

    def _directions(self, X: Float[Array, "n p"], rng: np.random.Generator, *, as_others: bool) -> Float[Array, "n p"]:
        """Random unit vectors in the null space of E; half the time along differences of points, for thin polytopes."""
        N = self.along
        D = rng.standard_normal((len(X), N.shape[1]))
        if as_others and len(X) > 2 and rng.random() < 0.5:
            others = (X[rng.integers(len(X), size=len(X))] - X[rng.integers(len(X), size=len(X))]) @ N
            D = np.where(np.abs(others).max(-1, keepdims=True, initial=0.0) > 1e-9, others, D)
        return np.asarray((D / np.linalg.norm(D, axis=-1, keepdims=True).clip(1e-300)) @ N.T)


def _weighted(
    X: Float[Array, "n p"],
    D: Float[Array, "n p"],
    behind: Float[Array, "n"],
    ahead: Float[Array, "n"],
    weigh: tuple[Float[Array, "p"], Float[Array, "p"]],
    rng: np.random.Generator,
) -> Float[Array, "n"]:
    """Places on the lines with density Π 1 / (o + s x)."""
    offset, scale = weigh
    own = scale > 0
    # cells that shrink towards both ends, where the density may be highest
    share = 0.5 - 0.5 * np.cos(np.linspace(0.0, np.pi, _CELLS + 1))
    edges = behind[:, None] + share * (ahead - behind)[:, None]
    middle = (edges[:, 1:] + edges[:, :-1]) / 2
    z = offset[own] + scale[own] * (X[:, None, own] + middle[:, :, None] * D[:, None, own])
    log = -np.log(z.clip(1e-300)).sum(-1) + np.log(np.diff(edges, axis=-1).clip(1e-300))
    picked = (log + rng.gumbel(size=log.shape)).argmax(-1)
    rows = np.arange(len(X))
    return np.asarray(edges[rows, picked] + rng.random(len(X)) * (edges[rows, picked + 1] - edges[rows, picked]))


def _shortest(G: Float[Array, "m f"], h: Float[Array, "m"]) -> Float[Array, "f"] | None:
    """The shortest t with G t ≥ h; None if there is none. Lawson and Hanson, Solving Least Squares Problems, ch. 23."""
    if G.shape[1] == 0:
        return None
    scale = max(1.0, float(np.abs(h).max()))
    F = np.vstack([G.T, h / scale])
    f = np.zeros(len(F))
    f[-1] = 1.0
    try:
        u, _ = nnls(F, f)
    except RuntimeError:  # too many iterations: there is hardly a point inside
        return None
    r = F @ u - f
    if -r[-1] < 1e-14:
        return None
    rough = -r[:-1] / r[-1] * scale
    # the sides that hold it, as equations: what the squares have lost is found again
    exact = np.linalg.lstsq(G[u > 0], h[u > 0], rcond=1e-10)[0]
    return np.asarray(exact if (h - G @ exact).max() <= max(_NONE, (h - G @ rough).max()) else rough)
