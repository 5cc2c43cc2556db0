"""A layer's mean and variance as one function of x, with its gradient: for a search that asks over and over.

    c(x)                                every kernel of the model at every row of data that it links to x, added up
                                        row by row (decide.fast.features): the sources' data first, then the target's
    v(x)   = L⁻¹ c(x)                   L = [L_s, 0; Q, L_t], with L_s block diagonal
    mean   = offset + h·v
    var    = size − Σ_i d_i v_i² + Σ_ν (e_ν·v_s)²

Which layers are such a function, and with what numbers, says ``decide.fast.layers``. ``Layer.predict_marginal`` works
everything out at every call, in a few hundred small steps. Here the distances of all features are one product, and the
gradient takes the same way back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray
from scipy.linalg.blas import dtrsm

from headstart.decide.fast.features import Features

Array = NDArray[np.float64]

# Squares are taken of coordinates around the middle of the unit cube, where they cancel least
MIDDLE = 0.5
_TOGETHER = 128  # points whose features stay in the processor's cache


@dataclass(frozen=True, slots=True)
class SurfaceValues:
    """What a surface found at some points: the means and the variance, and what the way back needs."""

    x: Float[Array, "m d"]
    slope: Float[Array, "m F"]
    v: Float[Array, "m N"]
    mean: Float[Array, "q m"]
    var: Float[Array, "m"]


@dataclass(frozen=True, slots=True)
class Surface:
    """Mean and variance of f, in model units, of a single problem. There is a mean per row of ``h``, usually one.

    In NumPy, whose small steps take a fraction of torch's.
    """

    features: Features
    blocks: tuple[Float[Array, "_ _"], ...]  # of L_s
    Q: Float[Array, "n S"]
    L: Float[Array, "n n"]  # L_t
    offset: float
    h: Float[Array, "q N"]
    size: float
    d: Float[Array, "N"]
    e: Float[Array, "s S"]

    def shifted(self, z: Float[Array, "q p"]) -> Surface:
        """With a mean for every row of z, which is what the last p rows of the data say in addition."""
        return replace(self, h=self.h + np.pad(z, ((0, 0), (self.h.shape[-1] - z.shape[-1], 0))))

    # ── there ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def at(self, X: Float[Array, "m d"]) -> SurfaceValues:
        """Means and variance at the rows of X."""
        x = X - MIDDLE
        c, slope = self.features.there(x, back=True)
        v = self._solved(c)
        return SurfaceValues(x, slope, v, *self._moments(v))

    def _moments(self, v: Float[Array, "m N"]) -> tuple[Float[Array, "q m"], Float[Array, "m"]]:
        """The means and the variance where L⁻¹ c is v."""
        var = self.size - (v * v) @ self.d
        if len(self.e):
            var += np.square(v[:, : self.e.shape[-1]] @ self.e.T).sum(-1)
        return self.offset + self.h @ v.T, var

    def predict(self, X: Float[Array, "m d"]) -> tuple[Float[Array, "q m"], Float[Array, "m"]]:
        """The same of many points."""
        mean, var = np.empty((len(self.h), len(X))), np.empty(len(X))
        for part in _parts(len(X)):
            c, _ = self.features.there(X[part] - MIDDLE, back=False)
            mean[:, part], var[part] = self._moments(self._solved(c))
        return mean, var

    def mean(self, X: Float[Array, "m d"]) -> Float[Array, "q m"]:
        """The means alone: offset + a·c with a = L⁻ᵀ h."""
        a = self._solved_back(self.h)
        mean = np.empty((len(self.h), len(X)))
        for part in _parts(len(X)):
            mean[:, part] = self.offset + a @ self.features.there(X[part] - MIDDLE, back=False)[0].T
        return mean

    def _solved(self, c: Float[Array, "m N"]) -> Float[Array, "m N"]:
        """L⁻¹ c."""
        v, start, S = np.empty_like(c), 0, self.Q.shape[-1]
        for block in self.blocks:
            stop = start + len(block)
            v[:, start:stop] = _solve(block, c[:, start:stop])
            start = stop
        v[:, S:] = _solve(self.L, c[:, S:] - v[:, :S] @ self.Q.T)
        return v

    # ── and back ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _solved_back(self, g: Float[Array, "m N"]) -> Float[Array, "m N"]:
        """L⁻ᵀ g."""
        a, start, S = np.empty_like(g), 0, self.Q.shape[-1]
        a[:, S:] = _solve(self.L, g[:, S:], transpose=True)
        below = g[:, :S] - a[:, S:] @ self.Q
        for block in self.blocks:
            stop = start + len(block)
            a[:, start:stop] = _solve(block, below[:, start:stop], transpose=True)
            start = stop
        return a

    def gradient(
        self, seen: SurfaceValues, by_mean: Float[Array, "q m"], by_var: Float[Array, "m"]
    ) -> Float[Array, "m d"]:
        """By x, of what has these derivatives by the means and the variance at the points seen."""
        v, twice = seen.v, 2 * by_var[:, None]
        by_v = by_mean.T @ self.h - twice * self.d * v
        if len(self.e):
            S = self.e.shape[-1]
            by_v[:, :S] += twice * (v[:, :S] @ self.e.T @ self.e)
        by_c = self._solved_back(by_v)
        return self.features.back(seen.x, seen.slope, by_c)


def _parts(n: int) -> Iterator[slice]:
    return (slice(i, min(i + _TOGETHER, n)) for i in range(0, n, _TOGETHER))


def _solve(L: Float[Array, "n n"], B: Float[Array, "m n"], *, transpose: bool = False) -> Float[Array, "m n"]:
    """L⁻¹ b, or L⁻ᵀ b, for every row b of B: BLAS is handed L as it lies in memory."""
    if L.size == 0 or B.size == 0:
        return B
    by_columns = L.flags.f_contiguous
    A, turned = (L, transpose) if by_columns else (L.T, not transpose)
    solved: Array = dtrsm(1.0, A, B.T, lower=int(by_columns), trans_a=int(turned)).T
    return solved
