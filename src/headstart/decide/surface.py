"""A layer's mean and variance as one function of x with its gradient in closed form, for one problem on the CPU.

    φ_f(x) = weight_f κ(x, z_f; ℓ_f)    every kernel of the model at every data point z_f that it links to x
    c_r(x) = Σ φ_f(x)                   over the features of row r: the rows of the sources first, then the target's
    v(x)   = L⁻¹ c(x)                   L = [L_s, 0; Q, L_t], with L_s block diagonal
    mean   = offset + h·v
    var    = size − Σ_i d_i v_i² + Σ_ν (e_ν·v_s)²

    layer          L_s                     Q                            h               d             e_ν
    plain          none                    none                         z               1             none
    chain, joint   that of all sources     v_s(X)ᵀ                      z_s, z          1             none
    star           a block per source      (w² + s) v_s(X)ᵀ − u(X)ᵀe    w_ν z_ν, z      w² + s, 1     √s_ν z_ν

with w and s the mean and variance of the weight of a source, and v_s, u its features at the target's inputs X, as they
are in the layer's beliefs (models.chain.beliefs). ``Layer.predict_marginal`` computes everything at every call, in a
few hundred small steps; here the distances of all features are one product, and the gradient is computed backwards
through the same steps. Compiled where numba is installed (gp.compiled), NumPy and torch otherwise, with equal results.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from scipy.linalg.blas import dtrsm
from torch import Tensor

from headstart.gp.compiled import compiled_loops
from headstart.gp.kernels import Kernel
from headstart.models.chain.beliefs import ExactBeliefs, NoBeliefs
from headstart.models.chain.layer import Layer, Propagation
from headstart.models.mixture import Predictor
from headstart.models.star.weights import StarBeliefs

Array = NDArray[np.float64]

# Squares are taken of coordinates around the middle of the unit cube, where they cancel least
MIDDLE = 0.5
_POINTS_PER_CHUNK = 128  # points whose features stay in the processor's cache


@dataclass(frozen=True)
class Features:
    """The features of a single problem; points are given around the middle of the unit cube."""

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

    @cached_property
    def _by_matern(self) -> bool:
        return self.kernel is Kernel.MATERN52

    def there(self, x: Float[Array, "m d"], *, back: bool) -> tuple[Float[Array, "m N"], Float[Array, "m _"]]:
        """c and, for the way back, the derivatives of every φ by −D/2."""
        loops = compiled_loops()
        if loops is None:
            return self.there_by_torch(x)
        c, slope = np.zeros((len(x), self.n_rows)), np.empty((len(x), len(self.weight) if back else 0))
        x = np.ascontiguousarray(x)
        loops.add_features(
            x, *self._form_by_input, self.constant, self.weight, *self._groups, self._by_matern, c, slope
        )
        return c, slope

    def back(
        self, x: Float[Array, "m d"], slope: Float[Array, "m F"], by_c: Float[Array, "m N"]
    ) -> Float[Array, "m d"]:
        """The gradient by x of what has these derivatives by c."""
        loops = compiled_loops()
        if loops is None:
            return self.back_by_numpy(x, slope, by_c)
        gradient = np.empty(x.shape)
        points, by_c = np.ascontiguousarray(x), np.ascontiguousarray(by_c)
        loops.pull_back(points, *self._form_by_input, *self._groups, slope, by_c, gradient)
        return gradient

    def there_by_torch(self, x: Float[Array, "m d"]) -> tuple[Float[Array, "m N"], Float[Array, "m F"]]:
        """The same without compiled code."""
        half = np.concatenate([x * x, x], axis=1) @ self.form.T
        half += self.constant
        value, slope = (part.numpy() for part in self.kernel.from_half(torch.from_numpy(half)))
        value *= self.weight
        if not np.may_share_memory(value, slope):  # RBF: they are one
            slope *= self.weight
        c = np.zeros((len(x), self.n_rows))
        for rows, features in self.groups:
            c[:, rows] += value[:, features]
        return c, slope

    def back_by_numpy(
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
    with torch.no_grad():
        match predictor.below:
            case NoBeliefs():
                return _plain(predictor)
            case ExactBeliefs() as below if below.kernel is predictor.kernel:
                return _chain(predictor, below)
            case StarBeliefs() as below if all(m.kernel is predictor.kernel for m in below.members):
                return _star(predictor, below)
    return None


@dataclass(frozen=True, slots=True)
class _Features:
    """weight · κ(·, Z; lengthscale), which belong to the rows of data from ``start`` on."""

    Z: Float[Tensor, "k d"]
    lengthscale: Float[Tensor, "d"]
    weight: Float[Tensor, "#k"]
    start: int


def _own_features(layer: Layer, start: int) -> _Features:
    return _Features(layer.X, layer.params.lengthscale, layer.params.outputscale.reshape(1), start)


def _plain(layer: Layer) -> Surface:
    p, n = layer.params, layer.L.shape[-1]
    return _surface(
        layer,
        [_own_features(layer, 0)],
        blocks=(),
        Q=layer.L.new_zeros(n, 0),
        offset=p.offset,
        h=layer.z,
        size=p.outputscale,
        d=torch.ones_like(layer.z),
        e=layer.L.new_zeros(0, 0),
    )


def _links(beliefs: ExactBeliefs, start: int) -> list[_Features]:
    """What links x to the data of the sources, whose rows are those from ``start`` on."""
    return [
        _Features(beliefs.X[term.start : term.stop], term.lengthscale, term.weight, start + term.start)
        for term in beliefs.terms
    ]


def _prior(beliefs: ExactBeliefs, X: Tensor, start: int, share: Tensor) -> list[_Features]:
    """What links x to the target's data at X before any other data."""
    return [_Features(X, lengthscale, (share * weight).reshape(1), start) for lengthscale, weight in beliefs.prior]


def _chain(layer: Layer, below: ExactBeliefs) -> Surface:
    p, at, S = layer.params, layer.at, below.z.shape[-1]
    assert at.v is not None
    return _surface(
        layer,
        [*_links(below, 0), *_prior(below, layer.X, S, torch.ones_like(p.outputscale)), _own_features(layer, S)],
        blocks=(below.L,),
        Q=at.v.mT,
        offset=below.offset + p.offset,
        h=torch.cat([below.z, layer.z]),
        size=below.prior_var().squeeze(-1) + p.outputscale,
        d=torch.ones(S + len(layer.z), dtype=layer.z.dtype),
        e=layer.L.new_zeros(0, S),
    )


def _star(layer: Layer, below: StarBeliefs) -> Surface:
    p, at, weights = layer.params, layer.at, below.weights
    assert at.v is not None
    assert at.u is not None
    z = [member.z for member in below.members]
    S = sum(len(part) for part in z)
    power = weights.mean.square() + weights.marginal_var
    features, start = [], 0
    for i, member in enumerate(below.members):
        share = power[i] + weights.own[i]
        features += [*_links(member, start), *_prior(member, layer.X, S, share)]
        start += len(z[i])
    spread = torch.cat([power[i].expand(len(part)) for i, part in enumerate(z)])
    e = weights.balanced(torch.block_diag(*(weights.var[i].sqrt() * part for i, part in enumerate(z))))
    return _surface(
        layer,
        [*features, _own_features(layer, S)],
        blocks=tuple(member.L for member in below.members),
        Q=at.v.mT * spread.sqrt() - at.u.mT @ e,
        offset=p.offset,
        h=torch.cat([*(weights.mean[i] * part for i, part in enumerate(z)), layer.z]),
        size=below.prior_var().squeeze(-1) + p.outputscale,
        d=torch.cat([spread, torch.ones_like(layer.z)]),
        e=e,
    )


def _surface(
    layer: Layer,
    features: Sequence[_Features],
    *,
    blocks: tuple[Tensor, ...],
    Q: Float[Tensor, "n S"],
    offset: Float[Tensor, ""],
    h: Float[Tensor, "N"],
    size: Float[Tensor, ""],
    d: Float[Tensor, "N"],
    e: Float[Tensor, "s S"],
) -> Surface:
    Z = torch.cat([f.Z for f in features]) - MIDDLE
    precision = torch.cat([f.lengthscale.reciprocal().square().expand_as(f.Z) for f in features])
    weight = torch.cat([f.weight.expand(len(f.Z)) for f in features])
    scaled = Z * precision
    ends = accumulate(len(f.Z) for f in features)
    groups = (
        (slice(f.start, f.start + len(f.Z)), slice(end - len(f.Z), end)) for f, end in zip(features, ends, strict=True)
    )
    return Surface(
        features=Features(
            layer.kernel,
            form=torch.cat([-0.5 * precision, scaled], dim=-1).numpy(),
            constant=-0.5 * (Z * scaled).sum(-1).numpy(),
            weight=weight.numpy(),
            groups=tuple(groups),
            n_rows=len(d),
        ),
        blocks=tuple(block.numpy() for block in blocks),
        Q=Q.numpy(),
        L=layer.L.numpy(),
        offset=float(offset),
        h=h.unsqueeze(0).numpy(),
        size=float(size),
        d=d.numpy(),
        e=e.numpy(),
    )
