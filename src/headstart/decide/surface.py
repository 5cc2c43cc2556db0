"""Mean and variance of a layer as a function of x with its gradient in closed form, for one problem on the CPU.

    φ_f(x) = weight_f κ(x, z_f; ℓ_f)    every kernel of the model at every data point z_f that it links to x
    c_r(x) = Σ φ_f(x)                   over the features of row r: the rows of the sources first, then the target's
    v(x)   = L⁻¹ c(x)                   L = [L_s, 0; Q, L_t], with L_s block diagonal
    mean   = offset + h·v
    var    = size − Σ_i d_i v_i² + Σ_ν (e_ν·v_s)²

    layer          L_s                     Q                            h               d             e_ν
    plain          none                    none                         z               1             none
    star           a block per source      (w² + s) v_s(X)ᵀ − u(X)ᵀe    w_ν z_ν, z      w² + s, 1     √s_ν z_ν
    chain, joint   a star with one block for all sources, w = 1 and s = 0

with w and s the mean and variance of the weight of a source, and v_s, u its features at the target's inputs X, as they
are in the layer's beliefs (models.chain.beliefs). ``Layer.predict_marginal`` computes everything at every call, in a
few hundred small steps; here the distances of all features are one product, and the gradient is computed backwards
through the same steps. Compiled where numba is installed (gp.compiled), NumPy and torch otherwise, with equal results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from scipy.linalg.blas import dtrsm
from torch import Tensor

from headstart.gp.compiled import compiled_loops
from headstart.gp.kernels import Kernel, from_half
from headstart.models.chain.beliefs import ExactBeliefs, NoBeliefs
from headstart.models.chain.layer import Layer, Propagation
from headstart.models.mixture import Predictor
from headstart.models.star.weights import StarBeliefs, StarWeights

Array = NDArray[np.float64]
# From the derivatives by the means (q, n) and the variance (n) to the gradient by x (n, d)
Backward: TypeAlias = Callable[[Array, Array], Array]

_MIDDLE = 0.5  # of the unit cube: squares of coordinates around it cancel least
_POINTS_PER_CHUNK = 128  # points whose features stay in the processor's cache


@dataclass(frozen=True)
class Features:
    """Kernel features φ of a single problem; points are given around the middle of the unit cube."""

    kernel: Kernel
    form: Float[Array, "F e"]  # −D/2 = form · [x², x] + constant
    constant: Float[Array, "F"]
    weight: Float[Array, "F"]
    groups: tuple[tuple[slice, slice], ...]  # rows, and the features that belong to them, one group after the other
    n_rows: int

    @cached_property
    def _form_by_input(self) -> tuple[Float[Array, "d F"], Float[Array, "d F"]]:
        squares, lines = np.split(self.form.T, 2)
        return np.ascontiguousarray(squares), np.ascontiguousarray(lines)

    @cached_property
    def _groups(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The first row of every group, and its first feature, with the end of all."""
        rows = np.array([rows.start for rows, _ in self.groups], dtype=np.int64)
        return rows, np.array([*(features.start for _, features in self.groups), len(self.weight)], dtype=np.int64)

    def forward(self, x: Float[Array, "m d"], *, slopes: bool) -> tuple[Float[Array, "m N"], Float[Array, "m _"]]:
        """c and, for ``backward``, the derivatives of every φ by −D/2."""
        loops = compiled_loops()
        if loops is None:
            return self.forward_by_torch(x)
        c, slope = np.zeros((len(x), self.n_rows)), np.empty((len(x), len(self.weight) if slopes else 0))
        x, by_matern = np.ascontiguousarray(x), self.kernel is Kernel.MATERN52
        loops.add_features(x, *self._form_by_input, self.constant, self.weight, *self._groups, by_matern, c, slope)
        return c, slope

    def backward(
        self, x: Float[Array, "m d"], slope: Float[Array, "m F"], by_c: Float[Array, "m N"]
    ) -> Float[Array, "m d"]:
        """The gradient by x of a function with these derivatives by c."""
        loops = compiled_loops()
        if loops is None:
            return self.backward_by_numpy(x, slope, by_c)
        gradient = np.empty(x.shape)
        points, by_c = np.ascontiguousarray(x), np.ascontiguousarray(by_c)
        loops.pull_back(points, *self._form_by_input, *self._groups, slope, by_c, gradient)
        return gradient

    def forward_by_torch(self, x: Float[Array, "m d"]) -> tuple[Float[Array, "m N"], Float[Array, "m F"]]:
        """The same without compiled code."""
        half = np.concatenate([x * x, x], axis=1) @ self.form.T
        half += self.constant
        value, slope = (part.numpy() for part in from_half(self.kernel, torch.from_numpy(half)))
        value *= self.weight
        if not np.may_share_memory(value, slope):  # RBF: they are one
            slope *= self.weight
        c = np.zeros((len(x), self.n_rows))
        for rows, features in self.groups:
            c[:, rows] += value[:, features]
        return c, slope

    def backward_by_numpy(
        self, x: Float[Array, "m d"], slope: Float[Array, "m F"], by_c: Float[Array, "m N"]
    ) -> Float[Array, "m d"]:
        """The same without compiled code."""
        by_half = slope.copy()
        for rows, features in self.groups:
            by_half[:, features] *= by_c[:, rows]
        by_form, d = by_half @ self.form, x.shape[-1]
        gradient: Array = 2 * x * by_form[:, :d] + by_form[:, d:]
        return gradient


@dataclass(frozen=True, slots=True)
class Surface:
    """Mean and variance of f, in model units, of a single problem. There is a mean per row of ``h``, usually one."""

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
        """With a mean for every row of z, the shifts of the last p entries of h."""
        return replace(self, h=self.h + np.pad(z, ((0, 0), (self.h.shape[-1] - z.shape[-1], 0))))

    def predict(self, X: Float[Array, "m d"]) -> tuple[Float[Array, "q m"], Float[Array, "m"]]:
        """Means and variance at many points."""
        mean, var = np.empty((len(self.h), len(X))), np.empty(len(X))
        for part in _parts(len(X)):
            c, _ = self.features.forward(X[part] - _MIDDLE, slopes=False)
            mean[:, part], var[part] = self._moments(self._solved(c))
        return mean, var

    def mean(self, X: Float[Array, "m d"]) -> Float[Array, "q m"]:
        """The means alone: offset + a·c with a = L⁻ᵀ h."""
        a = self._solved_back(self.h)
        mean = np.empty((len(self.h), len(X)))
        for part in _parts(len(X)):
            mean[:, part] = self.offset + a @ self.features.forward(X[part] - _MIDDLE, slopes=False)[0].T
        return mean

    def at(self, X: Float[Array, "m d"]) -> tuple[Float[Array, "q m"], Float[Array, "m"], Backward]:
        """Means and variance at a few points, and the function from their derivatives to those by x."""
        x = X - _MIDDLE
        c, slope = self.features.forward(x, slopes=True)
        v = self._solved(c)

        def backward(by_mean: Float[Array, "q m"], by_var: Float[Array, "m"]) -> Float[Array, "m d"]:
            twice = 2 * by_var[:, None]
            by_v = by_mean.T @ self.h - twice * self.d * v
            if len(self.e):
                S = self.e.shape[-1]
                by_v[:, :S] += twice * (v[:, :S] @ self.e.T @ self.e)
            return self.features.backward(x, slope, self._solved_back(by_v))

        return *self._moments(v), backward

    def _moments(self, v: Float[Array, "m N"]) -> tuple[Float[Array, "q m"], Float[Array, "m"]]:
        """The means and the variance where L⁻¹ c is v."""
        var = self.size - (v * v) @ self.d
        if len(self.e):
            var += np.square(v[:, : self.e.shape[-1]] @ self.e.T).sum(-1)
        return self.offset + self.h @ v.T, var

    def _solved(self, c: Float[Array, "m N"]) -> Float[Array, "m N"]:
        """L⁻¹ c."""
        v, S = np.empty_like(c), self.Q.shape[-1]
        self._solve_blocks(c, v, transpose=False)
        v[:, S:] = _solve(self.L, c[:, S:] - v[:, :S] @ self.Q.T)
        return v

    def _solved_back(self, g: Float[Array, "m N"]) -> Float[Array, "m N"]:
        """L⁻ᵀ g."""
        a, S = np.empty_like(g), self.Q.shape[-1]
        a[:, S:] = _solve(self.L, g[:, S:], transpose=True)
        self._solve_blocks(g[:, :S] - a[:, S:] @ self.Q, a, transpose=True)
        return a

    def _solve_blocks(self, B: Float[Array, "m _"], into: Float[Array, "m N"], *, transpose: bool) -> None:
        """L_s⁻¹ b, or L_s⁻ᵀ b, for every row b of B."""
        start = 0
        for block in self.blocks:
            stop = start + len(block)
            into[:, start:stop] = _solve(block, B[:, start:stop], transpose=transpose)
            start = stop


def _parts(n: int) -> Iterator[slice]:
    return (slice(i, min(i + _POINTS_PER_CHUNK, n)) for i in range(0, n, _POINTS_PER_CHUNK))


def _solve(L: Float[Array, "n n"], B: Float[Array, "m n"], *, transpose: bool = False) -> Float[Array, "m n"]:
    """L⁻¹ b, or L⁻ᵀ b, for every row b of B: BLAS is handed L as it lies in memory."""
    if L.size == 0 or B.size == 0:
        return B
    by_columns = L.flags.f_contiguous
    A, turned = (L, transpose) if by_columns else (L.T, not transpose)
    solved: Array = dtrsm(1.0, A, B.T, lower=int(by_columns), trans_a=int(turned)).T
    return solved


def surface_of(predictor: Predictor) -> Surface | None:
    """The surface of a layer; None for a batch, on a GPU, and for predictors of another kind (MEAN, BOOSTED …)."""
    if not isinstance(predictor, Layer) or predictor.propagation is not Propagation.EXACT:
        return None
    if predictor.L.dim() > 2 or predictor.z.dim() > 1 or predictor.L.device.type != "cpu":
        return None
    below, kernel = predictor.below, predictor.kernel
    with torch.no_grad():
        match below:
            case NoBeliefs():
                return _surface(predictor, ())
            case ExactBeliefs() if below.kernel is kernel:
                return _surface(predictor, (below,))
            case StarBeliefs() if all(member.kernel is kernel for member in below.members):
                return _surface(predictor, below.members, below.weights)
    return None


class _Term(NamedTuple):
    """The features weight · κ(·, Z; lengthscale) of the rows of data from ``start`` on."""

    Z: Float[Tensor, "k d"]
    lengthscale: Float[Tensor, "d"]
    weight: Float[Tensor, "#k"]
    start: int


def _surface(layer: Layer, members: Sequence[ExactBeliefs], weights: StarWeights | None = None) -> Surface:
    """The surface of a layer on top of a weighted sum of members; without weights each of them counts in full."""
    p, at, below = layer.params, layer.at, layer.below
    one = layer.L.new_ones(len(members))
    mean, power, share = one, one, one
    if weights is not None:
        mean, power = weights.mean, weights.mean.square() + weights.marginal_var
        share = power + weights.own
    terms, start, S = [], 0, sum(len(member.z) for member in members)
    for i, member in enumerate(members):
        terms += [
            _Term(member.X[term.start : term.stop], term.lengthscale, term.weight, start + term.start)
            for term in member.terms
        ]
        terms += [_Term(layer.X, scale, (share[i] * weight).reshape(1), S) for scale, weight in member.prior]
        start += len(member.z)
    terms.append(_Term(layer.X, p.lengthscale, p.outputscale.reshape(1), S))
    d = torch.cat([*(power[i].expand(len(member.z)) for i, member in enumerate(members)), torch.ones_like(layer.z)])
    Q = layer.L.new_zeros(len(layer.z), 0) if at.v is None else at.v.mT * d[:S].sqrt()
    e = layer.L.new_zeros(0, S)
    if weights is not None and at.u is not None:
        e = weights.balanced(torch.block_diag(*(weights.var[i].sqrt() * m.z for i, m in enumerate(members))))
        Q = Q - at.u.mT @ e
    return Surface(
        features=_features(layer.kernel, terms, len(d)),
        blocks=tuple(member.L.numpy() for member in members),
        Q=Q.numpy(),
        L=layer.L.numpy(),
        offset=float(below.offset + p.offset if isinstance(below, ExactBeliefs) else p.offset),
        h=torch.cat([*(mean[i] * member.z for i, member in enumerate(members)), layer.z]).unsqueeze(0).numpy(),
        size=float(below.prior_var().squeeze(-1) + p.outputscale),
        d=d.numpy(),
        e=e.numpy(),
    )


def _features(kernel: Kernel, terms: Sequence[_Term], n_rows: int) -> Features:
    Z = torch.cat([term.Z for term in terms]) - _MIDDLE
    precision = torch.cat([term.lengthscale.reciprocal().square().expand_as(term.Z) for term in terms])
    scaled = Z * precision
    ends = accumulate(len(term.Z) for term in terms)
    return Features(
        kernel,
        form=torch.cat([-0.5 * precision, scaled], dim=-1).numpy(),
        constant=-0.5 * (Z * scaled).sum(-1).numpy(),
        weight=torch.cat([term.weight.expand(len(term.Z)) for term in terms]).numpy(),
        groups=tuple(
            (slice(term.start, term.start + len(term.Z)), slice(end - len(term.Z), end))
            for term, end in zip(terms, ends, strict=True)
        ),
        n_rows=n_rows,
    )
