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
from typing import Protocol

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headstart.gp.hyperparameters import OFFSET_VAR, GPParams, Layout, gp_layout
from headstart.gp.kernels import Kernel
from headstart.gp.linalg import cholesky, try_cholesky

__all__ = ["Evaluation", "Evidence", "PlainEvidence", "gaussian", "lengthscale_gradient"]

_LOG_2PI = math.log(2 * math.pi)

Evaluation = tuple[Float[Tensor, "B"], Float[Tensor, "B p"], Bool[Tensor, "B"]]


class Evidence(Protocol):
    """The negative log marginal likelihood of ``n_problems`` independent problems of equal shape."""

    @property
    def layout(self) -> Layout:
        """What θ means."""
        ...

    @property
    def n_problems(self) -> int:
        """How many independent problems there are."""
        ...

    @property
    def n_observations(self) -> int:
        """Observations of one problem."""
        ...

    @property
    def device(self) -> torch.device:
        """Where the data are."""
        ...

    def evaluate(self, theta: Float[Tensor, "B p"], items: Int[Tensor, "B"]) -> Evaluation:
        """−log p(y | X, θ), its gradient, and which rows could be computed."""
        ...


def gaussian(
    K: Float[Tensor, "B n n"], r: Float[Tensor, "B n"]
) -> tuple[Float[Tensor, "B"], Float[Tensor, "B n n"], Float[Tensor, "B n"], Bool[Tensor, "B"]]:
    """−log N(r; 0, K), its derivative G = ½ (K⁻¹ − α αᵀ) by K, α = K⁻¹ r, and which rows could be computed."""
    L, ok = try_cholesky(K)
    K_inverse = torch.cholesky_inverse(L).mT  # symmetric, and in row order again
    alpha = K_inverse @ r.unsqueeze(-1)
    log_diagonal = L.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    value = (r.unsqueeze(-2) @ alpha).view(-1).mul_(0.5).add_(log_diagonal).add_(0.5 * r.shape[-1] * _LOG_2PI)
    G = K_inverse.baddbmm_(alpha, alpha.mT, beta=0.5, alpha=-0.5)
    return value, G, alpha.squeeze(-1), ok


def lengthscale_gradient(H: Float[Tensor, "*b n n"], Z: Float[Tensor, "*b n d"]) -> Float[Tensor, "*b d"]:
    """Σ_ab H_ab (z_aj − z_bj)² for a symmetric H: the derivative by log ℓ_j when Z = X/ℓ and H = G ∘ slope.

    By Σ H (z_a − z_b)² = 2 (Σ_a h_a z_a² − zᵀ H z) with h the row sums of H.
    """
    return 2 * (H.sum(-1, keepdim=True) * Z - H @ Z).mul_(Z).sum(-2)


class PlainEvidence:
    """r ~ N(offset, outputscale · κ(X, X) + C + noise_var · I), with C a fixed covariance.

    C is what a sequential model inherits from the tasks below (SHGP), and nothing for the others. With a free offset
    r is centred and OFFSET_VAR is added to C: the offset is integrated out (see gp.hyperparameters).
    """

    def __init__(
        self,
        X: Float[Tensor, "P n d"],
        r: Float[Tensor, "P n"],
        C: Float[Tensor, "P n n"] | None,
        *,
        kernel: Kernel,
        residual: bool,
        free_offset: bool,
    ) -> None:
        self._centre = r.mean(-1) if free_offset and r.shape[-1] else r.new_zeros(r.shape[0])
        if free_offset:
            C = OFFSET_VAR * torch.ones_like(r.unsqueeze(-1) @ r.unsqueeze(-2)) + (0.0 if C is None else C)
        self._X, self._r, self._C, self._kernel = X - 0.5, r - self._centre.unsqueeze(-1), C, kernel
        self._free_offset = free_offset
        self.layout = gp_layout(X.shape[-1], residual=residual)

    @property
    def n_problems(self) -> int:
        """How many independent problems there are."""
        return self._X.shape[0]

    @property
    def n_observations(self) -> int:
        """Observations of one problem."""
        return self._X.shape[1]

    @property
    def device(self) -> torch.device:
        """Where the data are."""
        return self._X.device

    def _covariance(self, theta: Float[Tensor, "B p"], X: Tensor, C: Tensor | None) -> tuple[Tensor, ...]:
        d = X.shape[-1]
        values = theta.exp()
        lengthscale, outputscale, noise_var = values[:, :d], values[:, d : d + 1], values[:, d + 1 :]
        Z = X / lengthscale.unsqueeze(-2)
        kappa, slope = self._kernel.with_slope(Z)
        scale = outputscale.unsqueeze(-1)
        K = kappa * scale if C is None else torch.addcmul(C, kappa, scale)
        K.diagonal(dim1=-2, dim2=-1).add_(noise_var)
        return K, kappa, slope, Z, outputscale, noise_var

    def evaluate(self, theta: Float[Tensor, "B p"], items: Int[Tensor, "B"]) -> Evaluation:
        """−log p(r | X, θ), its gradient, and which rows could be computed."""
        if self.n_problems == 1:  # broadcasting does what indexing would do by copying
            X, r, C = self._X, self._r, self._C
        else:
            X, r, C = self._X[items], self._r[items], None if self._C is None else self._C[items]
        K, kappa, slope, Z, outputscale, noise_var = self._covariance(theta, X, C)
        value, G, _, ok = gaussian(K, r.expand(len(theta), -1))

        by_noise = G.diagonal(dim1=-2, dim2=-1).sum(-1, keepdim=True).mul_(noise_var)
        H = G * kappa
        by_outputscale = H.sum((-2, -1)).unsqueeze(-1)
        if slope is not kappa:
            H = G.mul_(slope)
        gradient = torch.cat([lengthscale_gradient(H, Z), by_outputscale], dim=-1).mul_(outputscale)
        return value, torch.cat([gradient, by_noise], dim=-1), ok

    def params(self, theta: Float[Tensor, "P p"]) -> GPParams:
        """θ of every problem as named values, with the posterior mean of a free offset: centre + OFFSET_VAR · 1ᵀ α."""
        d = self._X.shape[-1]
        offset = self._centre
        if self._free_offset and self.n_observations:
            K, *_ = self._covariance(theta, self._X, self._C)
            L = cholesky(K, of="The covariance of the observations")
            offset = offset + OFFSET_VAR * torch.cholesky_solve(self._r.unsqueeze(-1), L).sum((-2, -1))
        return GPParams(theta[:, :d].exp(), theta[:, d].exp(), theta[:, d + 1].exp(), offset)
