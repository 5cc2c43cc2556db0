"""Boosting at every level (BHGP): the mean of MHGP, and the error of that mean under the exact model."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from headstart.gp.hyperparameters import GPParams
from headstart.gp.linalg import append_rows, solve_lower
from headstart.models.chain.beliefs import Beliefs, BeliefsAt, ExactBeliefs, MeanBeliefs


@dataclass(frozen=True, slots=True)
class BoostedBeliefs(Beliefs):
    """Recursive boosting (BHGP): the mean of MHGP with the covariance of its error under the exact model.

    With D the block diagonal of k_i(X_i, X_i) + σ_i² I and F the blocks k_i(X_j, X_i), i < j, below it,
    γ(x) = k_own(x) (D + F)⁻¹. Writing D = E Eᵀ and D + F = T Eᵀ with T lower triangular,

        Lᵀ γ(x)ᵀ = R E⁻¹ k_own(x)ᵀ    with R = Lᵀ T⁻ᵀ computed once,

    so a query costs two triangular solves and one product, O(N²). The first level alone has T = L: u = 0.
    """

    mean: MeanBeliefs
    exact: ExactBeliefs
    E: tuple[Float[Tensor, "*b _ _"], ...]  # Cholesky factors of the blocks of D
    T: Float[Tensor, "*b N N"]
    R: Float[Tensor, "*b N N"]

    @property
    def batch_shape(self) -> torch.Size:  # type: ignore[override]
        """The independent problems."""
        return self.exact.batch_shape

    def _at(self, X: Float[Tensor, "*b m d"]) -> BeliefsAt:
        own = self.mean.own_rows(X)
        v = solve_lower(self.exact.L, self.exact.cross_cov(X))
        whitened = torch.cat([solve_lower(E, k) for E, k in zip(self.E, own, strict=True)], dim=-2)
        return BeliefsAt(X, self.mean.mean_from(own), v, self.R @ whitened - v)

    def prior_cov(self, A: Float[Tensor, "*b n d"], B: Float[Tensor, "*c m d"]) -> Float[Tensor, "*out n m"]:
        """The prior covariance of the exact stack."""
        return self.exact.prior_cov(A, B)

    def prior_var(self) -> Float[Tensor, "*b 1"]:
        """The prior variance of the exact stack."""
        return self.exact.prior_var()

    def extended(
        self,
        params: GPParams,
        at: BeliefsAt,
        own: Float[Tensor, "*b n n"],
        beta: Float[Tensor, "*b n"],
        corner: Float[Tensor, "*b n n"],
    ) -> BoostedBeliefs:
        """With one more level: ``own`` is the factor of k_new(X, X) + σ² I, ``corner`` the exact model's factor."""
        below = [solve_lower(E, k).mT for E, k in zip(self.E, self.mean.own_rows(at.X), strict=True)]  # F E⁻ᵀ
        T = append_rows(self.T, torch.cat(below, dim=-1), own)
        exact = self.exact.extended(params, at, corner, torch.zeros_like(beta))  # its mean is not used: no z
        mean = self.mean.extended(at.X, params, beta)
        return BoostedBeliefs(mean, exact, (*self.E, own), T, solve_lower(T, exact.L).mT)

    @classmethod
    def first(cls, mean: MeanBeliefs, exact: ExactBeliefs) -> BoostedBeliefs:
        """A single level: an ordinary posterior."""
        identity = torch.eye(exact.L.shape[-1], dtype=exact.L.dtype, device=exact.L.device).expand_as(exact.L)
        return cls(mean, exact, (exact.L,), exact.L, identity)
