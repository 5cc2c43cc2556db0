"""Whether it pays to go on: what the next points are expected to gain, in the objective's own units and beside the
noise.

    gain = E[ max_i (f* − f(x_i))₊ · [all limits hold at x_i] ]

over the points x_i that would be tried, f* being the lowest posterior mean of a result within the limits. The
expectation is that of the mixture itself, seen through the output map. For a single point it is exact,

    Σ_k w_k ∫₀^Φ(u_k) (f* − g(μ_k + s_k Φ⁻¹(p))) dp · P(all limits hold)        g(μ_k + s_k u_k) = f*

with g the way from model units to the user's; for several it is a mean over fixed draws. A gain that is small beside
the standard error of one measurement would hardly be noticed.

Of several objectives it is the volume beyond their front that the next point is expected to add, as a share of the
volume that the front has (decide.value), which needs no common unit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from botorch.sampling.normal import SobolQMCNormalSampler
from botorch.utils.multi_objective.box_decompositions.dominated import DominatedPartitioning
from jaxtyping import Float
from torch import Tensor
from torch.quasirandom import SobolEngine

from headstart.data.outcomes import Goal, Outcomes
from headstart.decide.aim import Aim
from headstart.errors import InputError
from headstart.gp.linalg import LEAST_VAR, cholesky
from headstart.models.mixture import components
from headstart.models.model import observed
from headstart.models.outcomes import OutcomePosteriors
from headstart.models.posterior import TransferPosterior

_NODES = 64
_DRAWS = 1024


@dataclass(frozen=True, slots=True)
class Further:
    """What further points are expected to gain.

    Of one objective ``gain`` and ``noise``, the standard error of a measurement near the best, are in its units; where
    errors of results are known, a typical one of them is part of the noise. Of several objectives ``gain`` is a share
    of the front's volume, and there is no noise to compare it with.
    """

    gain: float
    noise: float | None

    @property
    def ratio(self) -> float | None:
        """The gain in standard errors of a measurement."""
        if self.noise is None:
            return None
        return self.gain / self.noise if self.noise > 0 else math.inf


def further_gain(
    known: OutcomePosteriors | TransferPosterior, X: Float[Tensor, "*q d"], *, shown: bool = False
) -> Further | None:
    """What the point X, or the points in its rows, will gain; None before any result is within the limits.

    X is what was suggested: the gain of the best next points is what there is to expect of going on. With ``shown`` a
    gain counts as far as the results will show it: instead of f(x_i) its mean after the results at all of X,

        mean + K (K + N)⁻¹ (y − mean) ~ N(mean, K (K + N)⁻¹ K)        K the covariance of f at X, N that of the noise

    which is what somebody can act on. Without noise both are the same; with noise f may be lower than f* at one of many
    points without anybody being able to tell.

    Args:
        known: The posteriors of all outcomes, or one posterior to be minimised.
        X: The points, (q, d) or one of (d), in the unit cube.
        shown: Whether a gain counts only as far as noisy results will show it.

    Returns:
        The expected gain, or None before any result is within the limits.
    """
    if isinstance(known, TransferPosterior):
        known = OutcomePosteriors(Outcomes((Goal("objective"),)), (known,))
    points = X.unsqueeze(0) if X.dim() == 1 else X
    aim = Aim.of(known)
    results = aim.within(aim.results)
    if len(results) == 0:
        return None
    if len(known.goals) > 1:
        return Further(_share_of_volume(aim, points), None)
    posterior = known.goals[0]
    with torch.no_grad():
        best = posterior.predict(results)[0].amin()
        sd = posterior.predictor.noise_var.sqrt() * posterior.units.scale
        slope = 0.0 if posterior.warp is None else posterior.warp.log_slope(best.reshape(1))[0]
        known_var = _known_error_var(posterior)
        unit = posterior.units.scale * torch.as_tensor(-slope).exp()  # of the model, near the best
        noise = float(((sd * torch.as_tensor(-slope).exp()).square() + known_var).sqrt())
        if shown:
            gain = float(_of_many(known, points, best, posterior.predictor.noise_var + known_var / unit.square()))
        elif len(points) == 1:
            gain = float(_of_one(posterior, points, best) * known.probability_within(points)[0])
        else:
            gain = float(_of_many(known, points, best))
    return Further(gain, noise)


def _known_error_var(posterior: TransferPosterior) -> float:
    """The median of the variances that are known; 0 where none is."""
    error_var = observed(posterior).error_var
    stated = error_var[error_var > 0] if error_var is not None else torch.empty(0)
    return float(stated.median()) if len(stated) else 0.0


def _of_one(posterior: TransferPosterior, x: Float[Tensor, "1 d"], best: Float[Tensor, ""]) -> Float[Tensor, ""]:
    """E[(f* − f(x))₊], by quadrature over the part of every member's distribution that lies below f*."""
    nodes, weights = (torch.from_numpy(a) for a in np.polynomial.legendre.leggauss(_NODES))
    # p = Φ(u) v³ with v in (0, 1): the nodes crowd where the distribution has its tail
    v, dv = 0.5 * (nodes + 1), 0.5 * weights
    inner = posterior.way.inward(best.reshape(1))[0]
    total = best.new_zeros(())
    for member, share in components(posterior.predictor):
        mean, var = (part[0] for part in member.predict_marginal(x))
        sd = var.clamp_min(LEAST_VAR).sqrt()
        below = torch.special.ndtr((inner - mean) / sd)
        values = posterior.way.outward(mean + sd * torch.special.ndtri(below * v**3))
        own = below * (3 * v**2 * dv * (best - values).clamp_min(0.0).nan_to_num(nan=0.0)).sum()
        total = total + (own if share is None else share * own)
    return total


def _of_many(
    known: OutcomePosteriors,
    X: Float[Tensor, "q d"],
    best: Float[Tensor, ""],
    noise_var: Float[Tensor, ""] | None = None,
) -> Float[Tensor, ""]:
    """The mean over draws of f at all points together, and of whether the limits hold there.

    With a ``noise_var`` the draws are of the mean of f after results with that noise.
    """
    posterior, q = known.goals[0], len(X)
    uniform = SobolEngine(q, scramble=True, seed=0).draw(_DRAWS, dtype=torch.float64).clamp(1e-9, 1 - 1e-9)
    e = torch.special.ndtri(uniform)
    holds = torch.ones(_DRAWS, q, dtype=torch.float64)
    for i, (own, limit) in enumerate(zip(known.limits, known.outcomes.limits, strict=True)):
        if bool(own.knows_nothing):
            holds = 0.5 * holds
            continue
        sampler = SobolQMCNormalSampler(torch.Size((_DRAWS,)), seed=i + 1)
        holds = holds * (sampler(own.posterior(X, observation_noise=True)).squeeze(-1) <= limit.bound)
    total = best.new_zeros(())
    for member, share in components(posterior.predictor):
        mean, cov = member.predict(X)
        if noise_var is not None:
            after = cov @ torch.linalg.solve(cov + noise_var * torch.eye(q, dtype=cov.dtype), cov)
            cov = 0.5 * (after + after.mT)
        noise = 1e-9 * cov.diagonal().clamp_min(0.0) + LEAST_VAR
        L = cholesky(cov + torch.diag_embed(noise), of="The covariance of the next points")
        better = (best - posterior.way.outward(mean + e @ L.mT)).clamp_min(0.0) * holds
        own_gain = better.amax(-1).mean()
        total = total + (own_gain if share is None else share * own_gain)
    return total


def _share_of_volume(aim: Aim, points: Float[Tensor, "q d"]) -> float:
    if len(points) > 1:
        raise InputError(
            f"What several objectives gain is worked out for one point, but there are {len(points)}: give the first."
        )
    value = aim.value(torch.cat([aim.results, points]), points[:0], torch.Generator())
    assert value.cells is not None
    added = float(value(points)[0].exp())
    results = aim.within(aim.results)
    outward = [goal.way.outward for goal in aim.goals]
    reference = torch.cat([way(value.cells.levels[m, 0].amax().reshape(1)) for m, way in enumerate(outward)])
    means = [own.means(results) for own in aim.expected]
    expected = torch.stack([way(mean) for way, mean in zip(outward, means, strict=True)], dim=-1)
    volume = float(DominatedPartitioning(ref_point=-reference, Y=-expected).compute_hypervolume())
    return added / volume if volume > 0 else math.inf
