"""The evidence of a target on top of independent sources: O(s N_t² + N_t³) per evaluation, whatever the sources' sizes.

Every source was conditioned on its own data once. At the target's inputs that leaves fixed means m_i and fixed
covariances C_j; what is searched for are the target's own process and the coefficients a, c of these:

    y ~ N(offset + Σ_i a_i m_i, Σ_j c_j C_j + outputscale · κ(X, X) + noise_var · I + diag(error_var))

    by a_i      −m_iᵀ α          with α = K⁻¹ r and G = ½ (K⁻¹ − α αᵀ)
    by c_j      Σ G ∘ C_j
"""

from __future__ import annotations

from functools import cached_property
from typing import Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headstart.gp.evidence import Evaluation, SearchPlan, gaussian
from headstart.gp.fused.loading import compiled
from headstart.gp.geometry import Geometry, geometry_of, of_problems
from headstart.gp.hyperparameters import OFFSET_VAR, GPParams, Inputs, Layout, Slot, gp_layout
from headstart.gp.kernels import Kernel
from headstart.gp.linalg import cholesky


class Coefficients(Protocol):
    """How the free parameters ω > 0 of the sources' weights become the coefficients a and c."""

    def slots(self) -> tuple[Slot, ...]:
        """What ω means; empty where the weights have no hyperparameters."""
        ...

    def values(self, omega: Float[Tensor, "B k"]) -> tuple[Float[Tensor, "B I"], Float[Tensor, "B J"]]:
        """The coefficients a of the sources' means and c of their covariances."""
        ...

    def gradient(
        self, omega: Float[Tensor, "B k"], by_a: Float[Tensor, "B I"], by_c: Float[Tensor, "B J"]
    ) -> Float[Tensor, "B k"]:
        """The derivative by ω from those by a and c."""
        ...


class StarEvidence:
    """−log p(y | the sources' posteriors, θ), θ = [log lengthscale (g), log outputscale, log noise_var, log ω (k)].

    The offset is integrated out as everywhere (gp.hyperparameters): y is centred, and OFFSET_VAR is added to K.
    Problems may share their inputs and ``error_var``, the known variances of y (None: nothing is known).
    """

    def __init__(
        self,
        X: Float[Tensor, "#P n d"],
        y: Float[Tensor, "P n"],
        means: Float[Tensor, "P I n"],
        covs: Float[Tensor, "P J n n"],
        coefficients: Coefficients,
        *,
        kernel: Kernel,
        inputs: Inputs,
        error_var: Float[Tensor, "#P n"] | None = None,
    ) -> None:
        self._inputs, self._error_var = inputs, error_var
        self._centre = y.mean(-1) if y.shape[-1] else y.new_zeros(y.shape[0])
        self._y = y - self._centre.unsqueeze(-1)
        # a mean's own level is the offset's business
        self._levels = means.mean(-1) if y.shape[-1] else means.new_zeros(means.shape[:-1])
        self._means = means - self._levels.unsqueeze(-1)
        self._covs, self._coefficients = covs.flatten(-2), coefficients
        self._X, self._kernel = X, kernel
        self._compiled = compiled(
            X, self._y, kernel, inputs, means=self._means, covs=covs, constant=OFFSET_VAR, error_var=error_var
        )
        own = gp_layout(inputs, residual=True)
        self._own = own.size
        self.layout = Layout((*own.slots, *coefficients.slots()))

    @property
    def n_problems(self) -> int:
        """How many independent problems there are."""
        return self._y.shape[0]

    @property
    def n_observations(self) -> int:
        """Observations of one problem."""
        return self._y.shape[1]

    @property
    def device(self) -> torch.device:
        """Where the data are."""
        return self._y.device

    @cached_property
    def _geometry(self) -> Geometry:
        return geometry_of(self._X, self._kernel, self._inputs)

    def _gaussian(
        self, theta: Float[Tensor, "B p"], kappa: Tensor, items: Int[Tensor, "B"]
    ) -> tuple[Float[Tensor, "B n n"], Float[Tensor, "B n"]]:
        """The covariance K of the target's values, and the residual r that the sources' means leave."""
        n = self.n_observations
        a, c = self._coefficients.values(theta[:, self._own :].exp())
        scales = theta[:, self._own - 2 : self._own].exp()
        # sums of products round alike for one problem and for a batch of them (gp.rounding)
        inherited = (c.unsqueeze(-1) * of_problems(self._covs, items)).sum(1).view(-1, n, n).add_(OFFSET_VAR)
        K = torch.addcmul(inherited, kappa, scales[:, :1, None])
        K.diagonal(dim1=-2, dim2=-1).add_(scales[:, 1:])
        if self._error_var is not None:
            K.diagonal(dim1=-2, dim2=-1).add_(of_problems(self._error_var, items))
        r = of_problems(self._y, items) - (a.unsqueeze(-1) * of_problems(self._means, items)).sum(1)
        return K, r

    def search_plan(self, *, natural_too: bool, priors: bool) -> SearchPlan:  # noqa: ARG002
        """In logarithms only: what is inherited leaves little to find."""
        return SearchPlan()

    def evaluate(self, theta: Float[Tensor, "B p"], items: Int[Tensor, "B"]) -> Evaluation:
        """−log p(y | θ), its gradient, and which rows could be computed: compiled where that is there and faster."""
        if self._compiled is None:
            return self.evaluate_by_torch(theta, items)
        omega = theta[:, self._own :].exp()
        a, c = self._coefficients.values(omega)
        free = bool(omega.shape[-1])
        value, gradient, by_a, by_c, ok = self._compiled.evaluate(theta[:, : self._own], items, a, c, by_both=free)
        if free:
            gradient = torch.cat([gradient, self._coefficients.gradient(omega, by_a, by_c).mul_(omega)], dim=-1)
        return value, gradient, ok

    def evaluate_by_torch(self, theta: Float[Tensor, "B p"], items: Int[Tensor, "B"]) -> Evaluation:
        """The same with torch alone, which is what the compiled way must equal."""
        own = theta[:, : self._own].contiguous()
        kappa, slope, kept = self._geometry.evaluate(own, items)
        K, r = self._gaussian(theta, kappa, items)
        value, G, alpha, ok = gaussian(K, r)
        omega = theta[:, self._own :].exp()
        if omega.shape[-1]:
            by_a = -(of_problems(self._means, items) * alpha.unsqueeze(1)).sum(-1)
            by_c = (of_problems(self._covs, items) * G.flatten(1).unsqueeze(1)).sum(-1)
            by_omega = self._coefficients.gradient(omega, by_a, by_c) * omega  # θ = log ω
        else:
            by_omega = omega
        return value, torch.cat([self._geometry.gradient(G, kappa, slope, kept), by_omega], dim=-1), ok

    def solution(self, theta: Float[Tensor, "P p"]) -> tuple[GPParams, Float[Tensor, "P k"]]:
        """The target's own process with the posterior mean of its offset, and ω."""
        own, omega = theta[:, : self._own], theta[:, self._own :].exp()
        a, _ = self._coefficients.values(omega)
        offset = self._centre - (a * self._levels).sum(-1)
        if self.n_observations:
            items = torch.arange(self.n_problems, device=self.device)
            K, r = self._gaussian(theta, self._geometry.evaluate(own.contiguous(), items)[0], items)
            L = cholesky(K, of="The covariance of the observations")
            offset = offset + OFFSET_VAR * torch.cholesky_solve(r.unsqueeze(-1), L).sum((-2, -1))
        return GPParams(own[:, self._inputs.group].exp(), own[:, -2].exp(), own[:, -1].exp(), offset), omega
