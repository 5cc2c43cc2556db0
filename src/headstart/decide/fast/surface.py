"""A layer's mean and variance as one function of x, with its gradient: for a search that asks over and over.

    φ_f(x) = weight_f κ(x, z_f; ℓ_f)    every kernel of the model at every row of data that it links to x
    c(x)                                the φ_f added up row by row: the sources' data first, then the target's
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
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from scipy.linalg.blas import dtrsm

from headstart.gp.kernels import Kernel

__all__ = ["MIDDLE", "Surface", "SurfaceValues"]

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

    kernel: Kernel
    form: Float[Array, "F e"]  # −D/2 = form · [x², x] + constant
    constant: Float[Array, "F"]
    weight: Float[Array, "F"]
    groups: tuple[tuple[slice, slice], ...]  # rows, and the features that belong to them
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

    def _features(self, x: Float[Array, "m d"]) -> tuple[Float[Array, "m F"], Float[Array, "m F"]]:
        """φ and its derivative by −D/2, at points around the middle."""
        half = np.concatenate([x * x, x], axis=1) @ self.form.T
        half += self.constant
        value, slope = (part.numpy() for part in self.kernel.from_half(torch.from_numpy(half)))
        value *= self.weight
        if not np.may_share_memory(value, slope):  # RBF: they are one
            slope *= self.weight
        return value, slope

    def at(self, X: Float[Array, "m d"]) -> SurfaceValues:
        """Means and variance at the rows of X."""
        x = X - MIDDLE
        value, slope = self._features(x)
        c = np.zeros((len(x), len(self.d)))
        for rows, features in self.groups:
            c[:, rows] += value[:, features]
        v = self._solved(c)
        var = self.size - (v * v) @ self.d
        if len(self.e):
            var += np.square(v[:, : self.e.shape[-1]] @ self.e.T).sum(-1)
        return SurfaceValues(x, slope, v, self.offset + self.h @ v.T, var)

    def predict(self, X: Float[Array, "m d"]) -> tuple[Float[Array, "q m"], Float[Array, "m"]]:
        """The same of many points."""
        mean, var = np.empty((len(self.h), len(X))), np.empty(len(X))
        for part in _parts(len(X)):
            seen = self.at(X[part])
            mean[:, part], var[part] = seen.mean, seen.var
        return mean, var

    def mean(self, X: Float[Array, "m d"]) -> Float[Array, "q m"]:
        """The means alone: offset + a·c with a = L⁻ᵀ h."""
        a = self._solved_back(self.h)
        by_feature = np.concatenate([a[:, rows] for rows, _ in self.groups], axis=-1)
        mean = np.empty((len(self.h), len(X)))
        for part in _parts(len(X)):
            mean[:, part] = self.offset + by_feature @ self._features(X[part] - MIDDLE)[0].T
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
        by_half = seen.slope.copy()
        for rows, features in self.groups:
            by_half[:, features] *= by_c[:, rows]
        by_form, d = by_half @ self.form, seen.x.shape[-1]
        gradient: Array = 2 * seen.x * by_form[:, :d] + by_form[:, d:]
        return gradient


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
