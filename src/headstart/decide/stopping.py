"""Whether it pays to go on: the expected gain of the next points, and a sentence about it for people.

    gain = E[ max_i (f* − f(x_i))₊ · [all limits hold at x_i] ]

over the points x_i that would be tried, f* being the lowest posterior mean of a result within the limits, or the
threshold where that is lower; with a target it is that of |y − target|, and so is f(x_i). The
expectation is that of the mixture, in the user's units. For a single point it is exact,

    Σ_k w_k ∫₀^Φ(u_k) (f* − g(μ_k + s_k Φ⁻¹(p))) dp · P(all limits hold)        g(μ_k + s_k u_k) = f*

with g the map from model units to the user's; for several it is a mean over fixed draws. With several objectives the
gain is the volume beyond their front that the next point is expected to add, as a share of the front's own volume
(decide.value), which needs no common unit.

The advice looks at the next few points together, as far as their results will show a gain: a single point may gain
little where five gain much, and with noise some point may be better than the best without a result that shows it. The
bounds below which a gain is *small* are the ``stopping_`` numbers of ``PLAIN_TUNING``. With few results it is too
early: the model is then sure of its sources alone. Without sources it takes twice as many: a process on its own that
has seen a dozen noisy results may take a valley for noise. Before any result is within the limits it says to go on.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import torch
from botorch.sampling.normal import SobolQMCNormalSampler
from botorch.utils.multi_objective.box_decompositions.dominated import DominatedPartitioning
from jaxtyping import Float
from torch import Tensor
from torch.quasirandom import SobolEngine

from headstart.data.outcomes import Goal, Outcomes
from headstart.decide.aim import Aim
from headstart.decide.domain import Domain
from headstart.decide.suggest import suggest
from headstart.errors import InputError, NoPointLeftError
from headstart.gp.fit import Seed
from headstart.gp.linalg import LEAST_VAR, cholesky
from headstart.models.mixture import components
from headstart.models.model import observed
from headstart.models.outcomes import OutcomePosteriors
from headstart.models.posterior import TransferPosterior
from headstart.notebook import html_lines
from headstart.tuning import AUTO_TUNING, PLAIN_TUNING

_NODES = 64  # of the quadrature over one point's distribution


@dataclass(frozen=True, slots=True)
class Further:
    """Expected gain of further points.

    Attributes:
        gain: In the units of the one objective; with several, a share of the volume of their front, infinite
            where that is 0.
        noise: Standard error of a measurement near the best, in the same units; where errors of results are known, a
            typical one of them is part of it. None with several objectives.
    """

    gain: float
    noise: float | None

    @property
    def ratio(self) -> float | None:
        """The gain in standard errors of a measurement; None with several objectives."""
        if self.noise is None:
            return None
        return self.gain / self.noise if self.noise > 0 else math.inf


class Advice(StrEnum):
    """Advice about going on."""

    GO_ON = "go on"
    TOO_EARLY = "too early to say"
    UNLIKELY = "unlikely to be worth it"
    NOTHING_LEFT = "nothing is left to try"


@dataclass(frozen=True, slots=True)
class Outlook:
    """Expected gain of the next points, and the advice that follows; ``str`` of it is a sentence for people.

    Attributes:
        further: The expected gain; None before any result is within the limits.
        ahead: How many next points.
        results: How many results there are.
        spread: Distance from the best result to a typical one, the median, in the units of the one objective; None
            with several objectives, or without a result.
        several: Whether there are several objectives.
        objective: Name of the objective in the sentence.
        thing: Name of an evaluation in the sentence: an experiment, a trial.
        enough: Results that are needed before anything is said against going on.
    """

    further: Further | None
    ahead: int
    results: int
    spread: float | None = None
    several: bool = False
    objective: str = "the objective"
    thing: str = "experiment"
    enough: int = AUTO_TUNING.few_results

    @property
    def small(self) -> bool:
        """Whether the gain is below the bounds."""
        if self.further is None:
            return False
        if self.several:
            return self.further.gain < PLAIN_TUNING.stopping_volume_share
        of_noise = PLAIN_TUNING.stopping_noise_share * (self.further.noise or 0.0)
        return self.further.gain < max(of_noise, PLAIN_TUNING.stopping_spread_share * (self.spread or 0.0))

    @property
    def advice(self) -> Advice:
        """Go on, or not."""
        if self.ahead == 0:
            return Advice.NOTHING_LEFT
        if self.results < self.enough:
            return Advice.TOO_EARLY
        return Advice.UNLIKELY if self.small else Advice.GO_ON

    def __str__(self) -> str:
        """The expected gain and the advice, for people."""
        thing = self.thing
        match self.advice:
            case Advice.NOTHING_LEFT:
                return f"Every setting that may be tried has been tried: there are no further {thing}s."
            case Advice.TOO_EARLY:
                words = f"too early to say with {self.results} of at least {self.enough} results, so go on"
            case Advice.UNLIKELY:
                words = f"further {thing}s are unlikely to be worth it"
            case _:
                words = "go on"
        if self.further is None:
            why = "No result is known to be within the limits yet" if self.results else "There are no results yet"
            return f"{why}: go on."
        which = f"The next {self.ahead} {thing}s are" if self.ahead > 1 else f"The next {thing} is"
        if self.several and math.isinf(self.further.gain):
            return f"No result is better than the reference in every objective yet: {words}."
        if self.several:
            return f"{which} expected to add {100 * self.further.gain:.2g} % to the volume of the front: {words}."
        ratio = self.further.ratio
        beside = f", {ratio:.2g} times the error of one measurement" if self.further.noise else ""
        return f"{which} expected to improve {self.objective} by {self.further.gain:.2g}{beside}: {words}."

    def _repr_html_(self) -> str:
        """The same sentence for a notebook."""
        return html_lines(str(self))


def outlook(
    known: OutcomePosteriors | TransferPosterior,
    domain: Domain | None = None,
    *,
    pending: Float[Tensor, "p d"] | None = None,
    avoid: Float[Tensor, "k d"] | None = None,
    seed: Seed = 0,
) -> Outlook:
    """The expected gain of going on: the next points are chosen as ``suggest`` would choose them.

    Results that are awaited (``pending``) count neither as results nor as further points.

    Args:
        known: The posteriors of all outcomes, or one posterior to be minimised.
        domain: Where points may lie; the unit cube by default.
        pending: Points whose results are awaited.
        avoid: Points that are not suggested again.
        seed: Seed of the search for the next points.

    Returns:
        The expected gain of going on, and whether it pays.
    """
    known = _as_outcomes(known)
    several = len(known.goals) > 1
    aim = Aim.of(known)
    n = len(aim.results)
    points = _next(known, domain, 1 if several else PLAIN_TUNING.stopping_points, pending, avoid, seed)
    if points is None:
        return Outlook(None, 0, n, None, several)
    spread = None
    if n and not several:
        expected = _losses(known.outcomes.goals[0], known.goals[0].predict(aim.results)[0])
        spread = float(expected.quantile(0.5) - expected.amin())
    enough = 2 * AUTO_TUNING.few_results if aim.blind else AUTO_TUNING.few_results
    return Outlook(further_gain(known, points, shown=True), len(points), n, spread, several, enough=enough)


def _as_outcomes(known: OutcomePosteriors | TransferPosterior) -> OutcomePosteriors:
    if isinstance(known, OutcomePosteriors):
        return known
    return OutcomePosteriors(Outcomes((Goal("objective"),)), (known,))


def _next(
    known: OutcomePosteriors, domain: Domain | None, q: int, pending: Tensor | None, avoid: Tensor | None, seed: Seed
) -> Float[Tensor, "q d"] | None:
    """The next q points, or as many of them as there are left; None where none is."""
    for count in range(q, 0, -1):
        with suppress(NoPointLeftError):  # a list or a grid may be nearly used up
            return suggest(known, domain=domain, q=count, pending=pending, avoid=avoid, seed=seed).reshape(count, -1)
    return None


def further_gain(
    known: OutcomePosteriors | TransferPosterior, X: Float[Tensor, "*q d"], *, shown: bool = False
) -> Further | None:
    """The expected gain of the point X, or of the points in its rows together.

    X are usually the points that ``suggest`` gives. With ``shown`` a gain counts as far as the results will show it:
    instead of f(x_i) its mean after the results at all of X,

        mean + K (K + N)⁻¹ (y − mean) ~ N(mean, K (K + N)⁻¹ K)        K the covariance of f at X, N that of the noise

    Without noise both are the same; with noise f may be below f* at one of many points without a result that shows it.

    Args:
        known: The posteriors of all outcomes, or one posterior to be minimised.
        X: The points, (q, d) or one of (d), in the unit cube.
        shown: Whether a gain counts only as far as noisy results will show it.

    Returns:
        The expected gain, or None before any result is within the limits.

    Raises:
        InputError: Several objectives and more than one point.
    """
    known = _as_outcomes(known)
    points = X.unsqueeze(0) if X.dim() == 1 else X
    aim = Aim.of(known)
    results = aim.within(aim.results)
    if len(results) == 0:
        return None
    if len(known.goals) > 1:
        return Further(_share_of_volume(aim, results, points), None)
    posterior, goal = known.goals[0], known.outcomes.goals[0]
    with torch.no_grad():
        at = posterior.predict(results)[0]
        losses = _losses(goal, at)
        best, place = losses.amin(), at[losses.argmin()]
        slope = 0.0 if posterior.warp is None else posterior.warp.log_slope(place.reshape(1))[0]
        unit = posterior.units.scale * torch.as_tensor(-slope).exp()  # of the model, near the best
        error_var, noise_var = observed(posterior).error_var, posterior.predictor.noise_var
        stated = torch.empty(0) if error_var is None else error_var[error_var > 0]
        known_var = float(stated.median()) if len(stated) else 0.0
        noise = float((noise_var * unit.square() + known_var).sqrt())
        if goal.reference is not None and aim.thresholds(points)[0] is not None:
            best = best.clamp_max(goal.reference)
        if len(points) == 1 and not shown and goal.target is None:
            gain = _of_one(posterior, points, best) * known.probability_within(points)[0]
        else:
            gain = _of_many(known, points, best, noise_var + known_var / unit.square() if shown else None)
    return Further(float(gain), noise)


def _losses(goal: Goal, y: Float[Tensor, "*n"]) -> Float[Tensor, "*n"]:
    """What is to be small, of values behind the sign."""
    return y if goal.target is None else (y - goal.target).abs()


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
        total = total + (1.0 if share is None else share) * own
    return total


def _of_many(
    known: OutcomePosteriors, X: Float[Tensor, "q d"], best: Float[Tensor, ""], noise_var: Float[Tensor, ""] | None
) -> Float[Tensor, ""]:
    """The mean over draws of f, or of its mean after results with this noise, and of whether the limits hold."""
    posterior, q, n_draws = known.goals[0], len(X), PLAIN_TUNING.stopping_draws
    uniform = SobolEngine(q, scramble=True, seed=0).draw(n_draws, dtype=torch.float64).clamp(1e-9, 1 - 1e-9)
    e = torch.special.ndtri(uniform)
    holds = torch.ones(n_draws, q, dtype=torch.float64)
    for i, (own, limit) in enumerate(zip(known.limits, known.outcomes.limits, strict=True)):
        if bool(own.knows_nothing):
            holds = 0.5 * holds
            continue
        sampler = SobolQMCNormalSampler(torch.Size((n_draws,)), seed=i + 1)
        y, (low, high) = sampler(own.posterior(X, observation_noise=True)).squeeze(-1), limit.interval
        holds = holds * (low <= y) * (y <= high)
    total = best.new_zeros(())
    for member, share in components(posterior.predictor):
        mean, cov = member.predict(X)
        if noise_var is not None:
            after = cov @ torch.linalg.solve(cov + noise_var * torch.eye(q, dtype=cov.dtype), cov)
            cov = 0.5 * (after + after.mT)
        noise = 1e-9 * cov.diagonal().clamp_min(0.0) + LEAST_VAR
        L = cholesky(cov + torch.diag_embed(noise), of="The covariance of the next points")
        losses = _losses(known.outcomes.goals[0], posterior.way.outward(mean + e @ L.mT))
        better = (best - losses).clamp_min(0.0) * holds
        total = total + (1.0 if share is None else share) * better.amax(-1).mean()
    return total


def _share_of_volume(aim: Aim, results: Float[Tensor, "n d"], points: Float[Tensor, "q d"]) -> float:
    if len(points) > 1:
        raise InputError(
            f"What several objectives gain is worked out for one point, but there are {len(points)}: give the first."
        )
    value = aim.value(torch.cat([aim.results, points]), points[:0], torch.Generator())
    assert value.cells is not None
    added = float(value(points)[0].exp())
    outward = aim.outward
    reference = torch.cat([way(value.cells.levels[m, 0].amax().reshape(1)) for m, way in enumerate(outward)])
    losses = aim.losses(results).unbind(-1)
    expected = torch.stack([way(loss) for way, loss in zip(outward, losses, strict=True)], dim=-1)
    volume = float(DominatedPartitioning(ref_point=-reference, Y=-expected).compute_hypervolume())
    return added / volume if volume > 0 else math.inf
