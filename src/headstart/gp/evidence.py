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
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headstart.gp.fused.loading import compiled
from headstart.gp.geometry import FEW, Geometry, geometry_of, of_problems
from headstart.gp.hyperparameters import OFFSET_VAR, GPParams, Inputs, Layout, gp_layout
from headstart.gp.kernels import Kernel
from headstart.gp.linalg import cholesky, inverse_from_factor, try_cholesky
from headstart.gp.restarts import Joining
from headstart.gp.rounding import times

_LOG_2PI = math.log(2 * math.pi)
# How often restarts are compared, and how close they must be, where distances are measured by their effect
_COMPARE_EVERY, _COMPARE_WITHIN = 5, 0.2
# On top of what is inherited a search in natural parameters is short, and restarts may be as far apart: the optimum is
# the same one as with longer and closer looks (0.2 and to the end), for two thirds of the evaluations
_NATURAL_STEPS, _COMPARE_WITHIN_ON_TOP = 20, 0.4
_RACE_FROM = 30  # there, too: ten steps after the last change of parameters

Evaluation = tuple[Float[Tensor, "B"], Float[Tensor, "B p"], Bool[Tensor, "B"]]


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """How an evidence wants to be searched.

    ``natural_too``: a second time from every start, in natural parameters, for ``natural_steps`` steps (None: to the
    end). ``joining``: how restarts that meet go on as one; None for the optimiser's own way.
    """

    natural_too: bool = False
    natural_steps: int | None = None
    joining: Joining | None = None


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

    def search_plan(self, *, natural_too: bool, priors: bool) -> SearchPlan:
        """How it is searched, with priors or without, if a second search in natural parameters is asked for or not."""
        ...


def gaussian(
    K: Float[Tensor, "B n n"], r: Float[Tensor, "B n"]
) -> tuple[Float[Tensor, "B"], Float[Tensor, "B n n"], Float[Tensor, "B n"], Bool[Tensor, "B"]]:
    """−log N(r; 0, K), its derivative G = ½ (K⁻¹ − α αᵀ) by K, α = K⁻¹ r, and which rows could be computed."""
    L, ok = try_cholesky(K)
    K_inverse = inverse_from_factor(L).mT  # symmetric, and in row order again
    few = r.shape[-1] <= FEW
    alpha = (K_inverse * r.unsqueeze(-2)).sum(-1) if few else times(K_inverse, r)
    log_diagonal = L.diagonal(dim1=-2, dim2=-1).log()
    value = log_diagonal.addcmul_(r, alpha, value=0.5).sum(-1).add_(0.5 * r.shape[-1] * _LOG_2PI)
    column, row = alpha.unsqueeze(-1), alpha.unsqueeze(-2)
    if few:
        G = K_inverse.mul_(0.5).addcmul_(column, row, value=-0.5)
    else:
        G = K_inverse.baddbmm_(column, row, beta=0.5, alpha=-0.5)
    return value, G, alpha, ok


class PlainEvidence:
    """r ~ N(offset, outputscale · κ(X, X) + C + noise_var · I + diag(error_var)), with C a fixed covariance.

    C is what a sequential model inherits from the tasks below (SHGP), and nothing for the others. With a free offset
    r is centred and OFFSET_VAR is added to C: the offset is integrated out (see gp.hyperparameters). ``inherits`` says
    whether a C was given. ``inputs`` says which columns share a lengthscale; by default each has its own.
    ``error_var`` is the known variance of every value, None where nothing is known.
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
        inputs: Inputs | None = None,
        error_var: Float[Tensor, "P n"] | None = None,
    ) -> None:
        self._inputs = Inputs.of(X.shape[-1]) if inputs is None else inputs
        self.inherits = C is not None
        self._centre = r.mean(-1) if free_offset and r.shape[-1] else r.new_zeros(r.shape[0])
        if free_offset:
            C = OFFSET_VAR * torch.ones_like(r.unsqueeze(-1) @ r.unsqueeze(-2)) + (0.0 if C is None else C)
        if error_var is not None:
            C = torch.diag_embed(error_var) + (0.0 if C is None else C)
        self._r, self._C = r - self._centre.unsqueeze(-1), C
        self._X, self._kernel = X, kernel
        covs = None if C is None else C.unsqueeze(1)
        self._compiled = compiled(X, self._r, kernel, self._inputs, covs=covs)
        self._free_offset = free_offset
        self.layout = gp_layout(self._inputs, residual=residual)

    @property
    def n_problems(self) -> int:
        """How many independent problems there are."""
        return self._r.shape[0]

    @property
    def n_observations(self) -> int:
        """Observations of one problem."""
        return self._r.shape[1]

    @property
    def device(self) -> torch.device:
        """Where the data are."""
        return self._r.device

    @cached_property
    def _geometry(self) -> Geometry:
        return geometry_of(self._X, self._kernel, self._inputs)

    def _covariance(self, theta: Float[Tensor, "B p"], kappa: Tensor, items: Int[Tensor, "B"]) -> Tensor:
        scales = theta[:, -2:].exp()
        outputscale = scales[:, :1, None]
        K = kappa * outputscale if self._C is None else torch.addcmul(of_problems(self._C, items), kappa, outputscale)
        K.diagonal(dim1=-2, dim2=-1).add_(scales[:, 1:])
        return K

    def evaluate(self, theta: Float[Tensor, "B p"], items: Int[Tensor, "B"]) -> Evaluation:
        """−log p(r | X, θ), its gradient, and which rows could be computed: compiled where that is there and faster."""
        if self._compiled is None:
            return self.evaluate_by_torch(theta, items)
        value, gradient, _, _, ok = self._compiled.evaluate(theta, items)
        return value, gradient, ok

    def evaluate_by_torch(self, theta: Float[Tensor, "B p"], items: Int[Tensor, "B"]) -> Evaluation:
        """The same with torch alone, which is what the compiled way must equal."""
        kappa, slope, kept = self._geometry.evaluate(theta, items)
        K = self._covariance(theta, kappa, items)
        value, G, _, ok = gaussian(K, of_problems(self._r, items).expand(len(theta), -1))
        return value, self._geometry.gradient(G, kappa, slope, kept), ok

    def search_plan(self, *, natural_too: bool, priors: bool) -> SearchPlan:
        """Both ways, if asked; without priors, restarts join by what their parameters effect.

        A process that inherits a covariance goes in natural parameters for a few steps and then on in logarithms, and
        restarts too slow to catch up are given up.
        """
        on_top = natural_too and self.inherits
        within, race = (_COMPARE_WITHIN_ON_TOP, (_RACE_FROM,)) if on_top else (_COMPARE_WITHIN, ())
        joining = None if priors else Joining(_COMPARE_EVERY, within, self.layout.by_effect, *race)
        return SearchPlan(natural_too, _NATURAL_STEPS if self.inherits else None, joining)

    def params(self, theta: Float[Tensor, "P p"]) -> GPParams:
        """θ of every problem as named values, with the posterior mean of a free offset: centre + OFFSET_VAR · 1ᵀ α."""
        offset = self._centre
        if self._free_offset and self.n_observations:
            items = torch.arange(self.n_problems, device=self.device)
            K = self._covariance(theta, self._geometry.evaluate(theta, items)[0], items)
            L = cholesky(K, of="The covariance of the observations")
            offset = offset + OFFSET_VAR * torch.cholesky_solve(self._r.unsqueeze(-1), L).sum((-2, -1))
        return GPParams(theta[:, self._inputs.group].exp(), theta[:, -2].exp(), theta[:, -1].exp(), offset)
