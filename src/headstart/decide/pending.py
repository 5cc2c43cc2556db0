"""Points whose result is awaited: the acquisition value of a further one, averaged over what they may turn out to be.

    LOG_EI    log E_y[ E[max(min(f*, y) − f(x), 0) | f(P) = y] ]      P the pending points, y ~ f(P)
    LCB       −(mean(x) − β sd(x | f(P)))

The first is what x adds to the expected improvement of the whole batch, so points chosen one after the other make up
a batch greedily. (With noise f(x) is what its mean will be, as in decide/acquisition.) f* is no higher than what the
mixture expects at P: a member that knows little would find much to improve on in its own idea of what P will bring, and
a batch would go where nobody expects anything. The outer mean is taken over a few draws of y, the inner one is exact.
In the second the mean of the draws' means is the mean as it is, so one draw, the mean itself, says it all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import torch
from jaxtyping import Float
from torch import Tensor

from headstart.decide.acquisition import Acquisition, acquisition_values, require_beta
from headstart.gp.linalg import LEAST_VAR, cholesky, solve_lower
from headstart.models.chain.layer import Layer
from headstart.models.mixture import Predictor

# Pairs of opposite draws of the awaited results
_PAIRS = 16
# f is taken as known at the pending points up to this share of its variance, so that they may also repeat
_SHARE = 1e-4


class Given(Protocol):
    """f given draws of its values at the pending points, in model units."""

    def __call__(self, X: Float[Tensor, "*b n d"]) -> tuple[Float[Tensor, "F *b n"], Float[Tensor, "*b n"]]:
        """Mean (of every draw) and variance at every row of X."""
        ...


@dataclass(frozen=True, slots=True)
class ByLayer:
    """A layer that observed its own mean at the pending points; a draw L e instead moves its mean by wᵀz, L e = L_P z.

    w are the last rows of L⁻¹ P(X, x), L_P is the last block of the layer's own L, which BOOSTED does not draw from.
    """

    layer: Layer
    z: Float[Tensor, "F *b p"]

    def __call__(self, X: Float[Tensor, "*b n d"]) -> tuple[Float[Tensor, "F *b n"], Float[Tensor, "*b n"]]:
        """Mean (of every draw) and variance at every row of X."""
        layer = self.layer
        mean, var = layer.predict_marginal(X)
        w = solve_lower(layer.L, layer.gain_cov(layer.at, layer.below.at(X)))[..., -self.z.shape[-1] :, :]
        return mean + (self.z.unsqueeze(-2) @ w).squeeze(-2), var


@dataclass(frozen=True, slots=True)
class ByCovariance:
    """Any other predictor, through its covariance: f(x) | f(P) = m + L e has mean m(x) + wᵀe, w = L⁻¹ cov(P, x)."""

    predictor: Predictor
    pending: Float[Tensor, "*b p d"]
    L: Float[Tensor, "*b p p"]
    draws: Float[Tensor, "F *b p"]

    def __call__(self, X: Float[Tensor, "*b n d"]) -> tuple[Float[Tensor, "F *b n"], Float[Tensor, "*b n"]]:
        """Mean (of every draw) and variance at every row of X."""
        rows = X.movedim(-2, 0).unsqueeze(-2)
        mean, cov = self.predictor.predict(torch.cat([rows, self.pending.expand(len(rows), *self.pending.shape)], -2))
        w = solve_lower(self.L, cov[..., 1:, :1].movedim(0, -1).squeeze(-2))
        var = cov[..., 0, 0].movedim(0, -1) - w.square().sum(-2)
        shift = (self.draws.unsqueeze(-2) @ w).squeeze(-2)
        return mean[..., 0].movedim(0, -1) + shift, var


def given(predictor: Predictor, pending: Float[Tensor, "p d"], y: Float[Tensor, "F p"]) -> Given:
    """f of a single problem given each of several draws y of its values at the pending points."""
    with torch.no_grad():
        mean, cov = predictor.predict(pending)
        noise = _SHARE * cov.diagonal(dim1=-2, dim2=-1).clamp_min(0.0) + LEAST_VAR
        shift = (y - mean).mT
        if isinstance(predictor, Layer):
            layer, p = predictor.observing(pending, mean, noise_var=noise), pending.shape[-2]
            return ByLayer(layer, solve_lower(layer.L[-p:, -p:], shift).mT)
        L = cholesky(cov + torch.diag_embed(noise), of="The covariance of the pending points")
        return ByCovariance(predictor, pending, L, solve_lower(L, shift).mT)


@dataclass(frozen=True, slots=True)
class PendingAcquisition:
    """The acquisition values when the results at some others are still awaited; see the head of the module."""

    given: Given
    kind: Acquisition
    best_f: Float[Tensor, "F *b"]
    noise_var: Float[Tensor, "*b"]
    beta: float
    floor: Float[Tensor, "*b"] | None = None

    @classmethod
    def of(
        cls,
        predictor: Predictor,
        kind: Acquisition,
        *,
        pending: Float[Tensor, "*b p d"],
        best_f: Float[Tensor, "*b"],
        beta: float,
        generator: torch.Generator,
        floor: Float[Tensor, "*b"] | None = None,
    ) -> PendingAcquisition:
        """In model units, which ``best_f`` and ``floor`` are in too."""
        require_beta(beta)
        with torch.no_grad():
            mean, cov = predictor.predict(pending)
            noise = _SHARE * cov.diagonal(dim1=-2, dim2=-1).clamp_min(0.0) + LEAST_VAR
            L = cholesky(cov + torch.diag_embed(noise), of="The covariance of the pending points")
            e = _standard_draws(kind, mean, generator)
            y = mean + (L @ e.unsqueeze(-1)).squeeze(-1)
            found: Given
            if isinstance(predictor, Layer):
                layer = predictor.observing(pending, mean, noise_var=noise)
                p = pending.shape[-2]
                shift = (y - mean).movedim(0, -1)
                found = ByLayer(layer, solve_lower(layer.L[..., -p:, -p:], shift).movedim(-1, 0))
            else:
                found = ByCovariance(predictor, pending, L, e)
        best_f = torch.minimum(best_f, y.amin(-1))
        if floor is not None:
            best_f = torch.maximum(best_f, floor)  # no result will be better than that
        return cls(found, kind, best_f, predictor.noise_var, beta, floor)

    def __call__(self, X: Float[Tensor, "*b n d"]) -> Float[Tensor, "*b n"]:
        """The value at every row of X."""
        mean, var = self.given(X)
        values = acquisition_values(
            self.kind,
            mean,
            var.expand(mean.shape),
            best_f=self.best_f,
            noise_var=self.noise_var,
            beta=self.beta,
            floor=self.floor,
        )
        return values.logsumexp(0) - math.log(len(values))


def _standard_draws(
    kind: Acquisition, mean: Float[Tensor, "*b p"], generator: torch.Generator
) -> Float[Tensor, "F *b p"]:
    """Standard normal draws, each with its opposite, the same ones for every problem; for LCB their mean."""
    if kind is Acquisition.LCB:
        return mean.new_zeros(1, *mean.shape)
    draws = torch.randn(_PAIRS, mean.shape[-1], generator=generator, dtype=torch.float64).to(mean.device)
    both = torch.cat([draws, -draws])
    return both.reshape(len(both), *([1] * (mean.dim() - 1)), -1).expand(-1, *mean.shape)
