"""The log marginal likelihood of a Gaussian process and its gradient, batched.

One contract serves every model of the family:

    evaluate(θ (B, p), items (B,)) → value (B), gradient (B, p), ok (B)

with value = −log p(y | X, θ). Row b of θ belongs to problem ``items[b]``, so that the restarts of many problems are
evaluated in lockstep. With G = ½ (K⁻¹ − α αᵀ), α = K⁻¹ r, the derivative by any parameter is Σ G ∘ ∂K: every
gradient here is a contraction with G, and no n×n×d tensor is ever built. A factorisation that fails makes ``ok``
false for its own row, and for no other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headstart.gp.compiled import CompiledEvaluation, compiled_evaluation
from headstart.gp.hyperparameters import OFFSET_VAR, GPParams, Inputs, Layout, Slot, batch_slot, gp_layout
from headstart.gp.kernels import Kernel, with_slope
from headstart.gp.linalg import cholesky, times, try_cholesky
from headstart.tuning import PLAIN_TUNING

_LOG_2PI = math.log(2 * math.pi)

Evaluation = tuple[Float[Tensor, "B"], Float[Tensor, "B p"], Bool[Tensor, "B"]]


class Evidence(Protocol):
    """The negative log marginal likelihood of ``n_problems`` independent problems of ``n_observations`` each."""

    layout: Layout  # the meaning of θ
    n_problems: int
    n_observations: int
    device: torch.device

    def evaluate(self, theta: Float[Tensor, "B p"], items: Int[Tensor, "B"]) -> Evaluation:
        """−log p(y | X, θ), its gradient, and which rows could be computed."""
        ...


def gaussian(
    K: Float[Tensor, "B n n"], r: Float[Tensor, "B n"]
) -> tuple[Float[Tensor, "B"], Float[Tensor, "B n n"], Float[Tensor, "B n"], Bool[Tensor, "B"]]:
    """−log N(r; 0, K), its derivative G = ½ (K⁻¹ − α αᵀ) by K, α = K⁻¹ r, and which rows could be computed."""
    L, ok = try_cholesky(K)
    K_inverse = torch.cholesky_inverse(L).mT  # symmetric, and in row order again
    alpha = times(K_inverse, r)
    log_diagonal = L.diagonal(dim1=-2, dim2=-1).log()
    value = log_diagonal.addcmul_(r, alpha, value=0.5).sum(-1).add_(0.5 * r.shape[-1] * _LOG_2PI)
    G = K_inverse.baddbmm_(alpha.unsqueeze(-1), alpha.unsqueeze(-2), beta=0.5, alpha=-0.5)
    return value, G, alpha, ok


def lengthscale_gradient(H: Float[Tensor, "*b n n"], Z: Float[Tensor, "*b n d"]) -> Float[Tensor, "*b d"]:
    """Σ_ab H_ab (z_aj − z_bj)² for a symmetric H: the derivative by log ℓ_j when Z = X/ℓ and H = G ∘ slope."""
    # = 2 (Σ_a h_a z_a² − zᵀ H z) with h the row sums of H
    return 2 * (H.sum(-1, keepdim=True) * Z - H @ Z).mul_(Z).sum(-2)


def _of_problems(data: Tensor, items: Int[Tensor, "B"]) -> Tensor:
    """The data of these problems; a single one broadcasts, which is what indexing would do by copying."""
    return data if data.shape[0] == 1 else data[items]


@dataclass(frozen=True, slots=True)
class Coefficients:
    """Coefficients a = ω of fixed means and c = ω² of fixed covariances, ω > 0 (``slot``).

    ``modular``: a = b = ω/(1 + ω), and c = b² for the first half of the covariances, then b (1 − b) for the others.
    """

    slot: Slot
    modular: bool = False

    def values(self, omega: Float[Tensor, "B k"]) -> tuple[Float[Tensor, "B I"], Float[Tensor, "B J"]]:
        """The coefficients a and c."""
        if self.modular:
            b = omega / (1 + omega)
            return b, torch.cat([b.square(), b * (1 - b)], dim=-1)
        return omega, omega.square()

    def gradient(
        self, omega: Float[Tensor, "B k"], by_a: Float[Tensor, "B I"], by_c: Float[Tensor, "B J"]
    ) -> Float[Tensor, "B k"]:
        """The derivative by ω from those by a and c; db/dω = 1/(1 + ω)²."""
        if not self.modular:
            return by_a + 2 * omega * by_c
        b = omega / (1 + omega)
        by_Sigma, by_k = by_c.chunk(2, dim=-1)
        return (by_a + 2 * b * by_Sigma + (1 - 2 * b) * by_k) / (1 + omega).square()


@dataclass(frozen=True, slots=True, eq=False)
class WeightedTerms:
    """Fixed means m_i and covariances C_j at the observations, which enter with coefficients a(ω), c(ω)."""

    means: Float[Tensor, "P I n"]
    covs: Float[Tensor, "P J n n"]
    coefficients: Coefficients


@dataclass(frozen=True, slots=True, eq=False)
class RowCounts:
    """Observations that are means of ``counts`` rows, with ``scatter`` S = Σ (y − ȳ)² within each.

    The posterior is that of the means; the evidence of noise_var also contains the scatter (docs/models.md, pooled).
    """

    counts: Float[Tensor, "P n"]
    scatter: Float[Tensor, "P n"]


class GaussianEvidence:
    """−log p(y | θ), θ = [log lengthscale (g), log outputscale, log noise_var, log ω (k), log batch_var], where

        y ~ N(offset + Σ_i a_i m_i, Σ_j c_j C_j + outputscale · κ(X, X) + diag((noise_var + error_var)/counts)
                                    + batch_var · D)

    The covariances C_j and means m_i are fixed: a sequential model inherits one C with coefficient 1 (``C``), a star
    means and covariances with coefficients of its own (``terms``), a process on its own nothing. D says which rows have
    shifts in common (``shifts``); where there are none batch_var is no part of θ, and stays at its prior's median. The
    gradient is

        by log ℓ_j    outputscale · Σ G ∘ slope ∘ (x_j − x'_j)²/ℓ_j²
        by log s²     outputscale · Σ G ∘ κ
        by log σ²     noise_var · Σ_n G_nn/counts_n
        by a_i, c_j   −m_iᵀ α,  Σ G ∘ C_j
        by log τ²     batch_var · Σ G ∘ D

    A free offset is integrated out (see gp.hyperparameters): y and every m_i are centred, and OFFSET_VAR is added to K;
    otherwise it is 0. ``residual`` says whether the process comes on top of another task, which decides its prior;
    ``inputs`` which columns share a lengthscale (None: none do); ``error_var`` are known variances of the observations,
    and ``replicates`` says how many rows each of them stands for (None: one).
    """

    def __init__(
        self,
        X: Float[Tensor, "#P n d"],
        y: Float[Tensor, "P n"],
        C: Float[Tensor, "P n n"] | None = None,
        *,
        kernel: Kernel,
        residual: bool,
        free_offset: bool,
        inputs: Inputs | None = None,
        terms: WeightedTerms | None = None,
        error_var: Float[Tensor, "#P n"] | None = None,
        replicates: RowCounts | None = None,
        shifts: Float[Tensor, "#P n n"] | None = None,
    ) -> None:
        self._X, self._around_middle, self._kernel = X, X - 0.5, kernel
        self._inputs = Inputs.of(X.shape[-1]) if inputs is None else inputs
        self._constant = OFFSET_VAR if free_offset else 0.0
        self._C, self._error_var, self._replicates = C, error_var, replicates
        centred = free_offset and y.shape[-1] > 0
        self._centre = _mean(y, replicates) if centred else y.new_zeros(y.shape[0])
        self._y = y - self._centre.unsqueeze(-1)
        if terms is not None:
            self._levels = terms.means.mean(-1) if centred else terms.means.new_zeros(terms.means.shape[:-1])
            terms = replace(terms, means=terms.means - self._levels.unsqueeze(-1))
        self._terms = terms
        own = gp_layout(self._inputs, residual=residual)
        self._own = own.size
        further = () if terms is None else (terms.coefficients.slot,)
        self._in_batches = shifts is not None
        self._shifts = shifts if shifts is not None and bool(shifts.any()) else None
        self.layout = Layout((*own.slots, *further, *(() if self._shifts is None else (batch_slot(),))))
        self.n_problems, self.n_observations = y.shape
        self.device = y.device

    @cached_property
    def _compiled(self) -> CompiledEvaluation | None:
        """The compiled evaluation of these problems, where it is available and faster."""
        error_var, noise_weight = self._error_var, None
        if self._replicates is not None:
            noise_weight = self._replicates.counts.reciprocal()
            error_var = None if error_var is None else error_var * noise_weight
        means = None if self._terms is None else self._terms.means
        parts = [] if self._C is None else [self._C.unsqueeze(1)]
        parts += [] if self._terms is None else [self._terms.covs]
        parts += [] if self._shifts is None else [self._shifts.unsqueeze(1).expand(self.n_problems, -1, -1, -1)]
        covs = torch.cat(parts, dim=1) if len(parts) > 1 else parts[0] if parts else None
        fixed = (means, covs, self._constant, error_var, noise_weight)
        return compiled_evaluation(self._X, self._y, self._kernel, self._inputs, *fixed)

    def evaluate(self, theta: Float[Tensor, "B p"], items: Int[Tensor, "B"]) -> Evaluation:
        """−log p(y | θ), its gradient, and which rows could be computed: compiled where that is there and faster."""
        if self._compiled is None:
            return self.evaluate_by_torch(theta, items)
        if self._terms is None and self._shifts is None:
            value, gradient, _, _, ok = self._compiled(theta, items)
        else:
            a, c = self._coefficients(theta)
            value, gradient, by_a, by_c, ok = self._compiled(theta[:, : self._own], items, a, c)
            gradient = torch.cat([gradient, self._by_coefficients(theta, by_a, by_c)], dim=-1)
        return *self._with_scatter(theta, items, value, gradient), ok

    def _coefficients(self, theta: Float[Tensor, "B p"]) -> tuple[Float[Tensor, "B I"], Float[Tensor, "B J"]]:
        """The coefficients of all fixed means, and of the covariances: C, those of the terms, D."""
        a, c = theta[:, :0], [] if self._C is None else [torch.ones_like(theta[:, :1])]
        if self._terms is not None:
            a, of_terms = self._terms.coefficients.values(self.omega(theta))
            c.append(of_terms)
        c += [] if self._shifts is None else [theta[:, -1:].exp()]
        return a, torch.cat(c, dim=-1) if len(c) > 1 else c[0]

    def _by_coefficients(
        self, theta: Float[Tensor, "B p"], by_a: Float[Tensor, "B I"], by_c: Float[Tensor, "B J"]
    ) -> Float[Tensor, "B k"]:
        """The derivative by log ω and log batch_var from those by all coefficients."""
        found = []
        if self._shifts is not None:
            by_c, by_batch = by_c[:, :-1], by_c[:, -1:]
            found.append(by_batch * theta[:, -1:].exp())
        if self._terms is not None:
            omega = self.omega(theta)
            found.insert(0, self._terms.coefficients.gradient(omega, by_a, by_c).mul_(omega))  # θ = log ω
        return torch.cat(found, dim=-1) if len(found) > 1 else found[0]

    def evaluate_by_torch(self, theta: Float[Tensor, "B p"], items: Int[Tensor, "B"]) -> Evaluation:
        """The same with torch alone: the reference for the compiled way, and the way of many observations."""
        Z, kappa, slope, K, r = self._gaussian(theta, items)
        value, G, alpha, ok = gaussian(K, r.expand(len(theta), -1))
        g = self._own - 2
        scales = theta[:, g : self._own].exp()
        diagonal = G.diagonal(dim1=-2, dim2=-1)
        if self._replicates is not None:
            diagonal = diagonal / _of_problems(self._replicates.counts, items)
        by_scales = torch.stack([(G * kappa).sum((-2, -1)), diagonal.sum(-1)], dim=-1) * scales
        by_a, by_c = theta[:, :0], []
        if self._terms is not None:
            by_a = -(_of_problems(self._terms.means, items) * alpha.unsqueeze(1)).sum(-1)
            by_c.append((_of_problems(self._terms.covs, items) * G.unsqueeze(1)).sum((-2, -1)))
        if self._shifts is not None:
            by_c.append((_of_problems(self._shifts, items) * G).sum((-2, -1)).unsqueeze(-1))
        further = self._by_coefficients(theta, by_a, torch.cat(by_c, dim=-1)) if by_c else theta[:, :0]
        by_lengthscale = lengthscale_gradient(G.mul_(slope), Z) * scales[:, :1]
        if not self._inputs.all_alone:
            group = torch.tensor(self._inputs.group, device=self.device)
            by_lengthscale = by_lengthscale.new_zeros(len(Z), g).index_add_(1, group, by_lengthscale)
        gradient = torch.cat([by_lengthscale, by_scales, further], dim=-1)
        return *self._with_scatter(theta, items, value, gradient), ok

    def _gaussian(
        self, theta: Float[Tensor, "B p"], items: Int[Tensor, "B"]
    ) -> tuple[Tensor, Tensor, Tensor, Float[Tensor, "B n n"], Float[Tensor, "#B n"]]:
        """Z = X/ℓ, κ and its slope, the covariance K of y, and the residual r of its mean."""
        scale = theta[:, : self._own - 2].neg().exp()[:, self._inputs.group]
        Z = _of_problems(self._around_middle, items) * scale.unsqueeze(1)
        kappa, slope = with_slope(self._kernel, Z)
        scales = theta[:, self._own - 2 : self._own].exp()
        K, r = kappa * scales[:, :1, None], _of_problems(self._y, items)
        if self._C is not None:
            K.add_(_of_problems(self._C, items))
        if self._terms is not None:
            # sums of products round alike for one problem and for a batch of them
            a, c = self._terms.coefficients.values(self.omega(theta))
            K.add_((c[..., None, None] * _of_problems(self._terms.covs, items)).sum(1))
            r = r - (a.unsqueeze(-1) * _of_problems(self._terms.means, items)).sum(1)
        if self._shifts is not None:
            K.add_(theta[:, -1:, None].exp() * _of_problems(self._shifts, items))
        if self._constant:
            K.add_(self._constant)
        noise = self._noise(scales[:, 1:], items)
        if self._replicates is not None:
            noise = noise / _of_problems(self._replicates.counts, items)
        K.diagonal(dim1=-2, dim2=-1).add_(noise)
        return Z, kappa, slope, K, r

    def _noise(self, noise_var: Float[Tensor, "B 1"], items: Int[Tensor, "B"]) -> Float[Tensor, "B _"]:
        """The variance of a single row's noise at every observation."""
        return noise_var if self._error_var is None else noise_var + _of_problems(self._error_var, items)

    def _with_scatter(
        self, theta: Float[Tensor, "B p"], items: Int[Tensor, "B"], value: Tensor, gradient: Tensor
    ) -> tuple[Float[Tensor, "B"], Float[Tensor, "B p"]]:
        """Value and gradient of all rows from those of the means (see ``RowCounts``)."""
        if self._replicates is None:
            return value, gradient
        counts = _of_problems(self._replicates.counts, items)
        scatter = _of_problems(self._replicates.scatter, items)
        noise_var = theta[:, self._own - 1 : self._own].exp()
        noise = self._noise(noise_var, items)
        again = counts - 1  # rows beside the first of every place
        value = value + 0.5 * (again * (_LOG_2PI + noise.log()) + counts.log() + scatter / noise).sum(-1)
        by_noise = 0.5 * (again / noise - scatter / noise.square()).sum(-1)
        gradient[:, self._own - 1] += noise_var[:, 0] * by_noise
        return value, gradient

    def params(self, theta: Float[Tensor, "P p"], batch_shape: torch.Size | None = None) -> GPParams:
        """θ of every problem as named values, with the posterior mean of a free offset: centre + OFFSET_VAR · 1ᵀ α."""
        offset = self._centre
        if self._terms is not None:
            a, _ = self._terms.coefficients.values(self.omega(theta))
            offset = offset - (a * self._levels).sum(-1)
        if self._constant and self.n_observations:
            *_, K, r = self._gaussian(theta, torch.arange(self.n_problems, device=self.device))
            L = cholesky(K, of="The covariance of the observations")
            offset = offset + self._constant * torch.cholesky_solve(r.unsqueeze(-1), L).sum((-2, -1))
        return self.params_around(theta, offset, offset.shape if batch_shape is None else batch_shape)

    def params_around(
        self, theta: Float[Tensor, "P p"], offset: Float[Tensor, "P"], batch_shape: torch.Size
    ) -> GPParams:
        """θ of every problem as named values, with this offset."""
        own, b = theta[:, : self._own].exp(), batch_shape
        scalars = (value.reshape(b) for value in (own[:, -2], own[:, -1], offset))
        params = GPParams(own[:, self._inputs.group].reshape(*b, -1), *scalars)
        if not self._in_batches:
            return params
        unseen = torch.full_like(offset, PLAIN_TUNING.batch_var_median)
        return replace(params, batch_var=(unseen if self._shifts is None else theta[:, -1].exp()).reshape(b))

    def omega(self, theta: Float[Tensor, "P p"]) -> Float[Tensor, "P k"]:
        """The free parameters ω of the coefficients."""
        return theta[:, self._own : theta.shape[-1] - (self._shifts is not None)].exp()


def _mean(y: Float[Tensor, "P n"], replicates: RowCounts | None) -> Float[Tensor, "P"]:
    """The mean of all rows."""
    if replicates is None:
        return y.mean(-1)
    return (y * replicates.counts).sum(-1) / replicates.counts.sum(-1)
