"""Hyperparameters that stay uncertain while data are few: weighted draws around the most probable ones.

A handful of observations hardly determines lengthscales and noise: predictions with the most probable values alone are
overconfident, and a search with them stops exploring. So the posterior of θ is approximated around its mode θ̂
(Laplace), and a few draws from there, the mode among them, are weighted by the posterior itself (importance sampling):

    H   = ∂²(−log p(θ | y)) at θ̂      by central differences of the gradient, all of them in one batch
    θ_j = θ̂ + H^(−½) z_j              z_j ~ N(0, I), each with its opposite; z_0 = 0
    w_j ∝ p(θ_j | y) exp(½ ‖z_j‖²)

The more the draws' weights differ, the less the approximation fits; then the weights are flattened until the draws
count as at least ``draws_effective`` of them (``headstart.tuning``). All problems of a batch share the z_j, so each
gives what it gives alone.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from headstart.gp.evidence import Evidence
from headstart.gp.threads import single_thread
from headstart.tuning import PLAIN_TUNING

_STEP = 0.05  # of a logarithm, for the differences


def draws_around(
    evidence: Evidence, theta: Float[Tensor, "P p"], n: int, generator: torch.Generator
) -> tuple[Float[Tensor, "k P p"], Float[Tensor, "P k"]]:
    """The mode and n draws (n even), and their weights, which add up to 1 for every problem."""
    layout = evidence.layout
    device = theta.device
    centre, precision = layout.centre().to(device), layout.precision().to(device)
    lower, upper = (bound.to(device) for bound in layout.bounds())
    P, p = theta.shape

    def negative_log_posterior(points: Float[Tensor, "P r p"]) -> tuple[Float[Tensor, "P r"], Float[Tensor, "P r p"]]:
        flat = points.reshape(-1, p)
        away = flat - centre
        value, gradient = 0.5 * (away.square() * precision).sum(-1), away * precision
        if evidence.n_observations:
            items = torch.arange(P, device=device).repeat_interleave(points.shape[1])
            own, slope, ok = evidence.evaluate(flat.contiguous(), items)
            value = torch.where(ok, value + own, torch.inf)
            gradient = torch.where(ok.unsqueeze(-1), gradient + slope, 0.0)
        return value.reshape(P, -1), gradient.reshape(P, -1, p)

    half = torch.randn(n // 2, p, generator=generator, dtype=torch.float64).to(device)
    z = torch.cat([torch.zeros(1, p, dtype=torch.float64, device=device), half, -half])
    with torch.inference_mode(), single_thread():
        steps = _STEP * torch.eye(p, dtype=torch.float64, device=device)
        around = theta.unsqueeze(1) + torch.cat([steps, -steps])
        gradient = negative_log_posterior(around)[1]
        H = (gradient[:, :p] - gradient[:, p:]) / (2 * _STEP)
        curvature, directions = torch.linalg.eigh(0.5 * (H + H.mT))
        sd = curvature.clamp_min(PLAIN_TUNING.draws_widest**-2).rsqrt()
        root = (directions * sd.unsqueeze(-2)) @ directions.mT  # symmetric, so that it does not depend on signs
        points = (theta.unsqueeze(1) + z @ root).clamp(lower, upper)
        log_weights = 0.5 * z.square().sum(-1) - negative_log_posterior(points)[0]
        weights = _flattened(log_weights)
    return points.movedim(1, 0).clone(), weights.clone()


def _flattened(log_weights: Float[Tensor, "P k"]) -> Float[Tensor, "P k"]:
    """Softmax, of halved logarithms where otherwise one of the draws would be everything."""
    log_weights = log_weights.nan_to_num(nan=-torch.inf)
    log_weights = log_weights - log_weights.amax(-1, keepdim=True)
    weights = log_weights.softmax(-1)
    for _ in range(12):
        few = 1 / weights.square().sum(-1, keepdim=True) < PLAIN_TUNING.draws_effective
        if not bool(few.any()):
            break
        log_weights = torch.where(few, 0.5 * log_weights, log_weights)
        weights = log_weights.softmax(-1)
    return weights
