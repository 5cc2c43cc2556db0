"""Controls: whether a new batch begins with a setting that was run before, which shows the shift of the batch.

The next points S will be run in the present batch. What their results are worth is the knowledge gradient: by how much
the point that will be thought best is expected to be better than x₀, which is thought best now,

    V(S) = E[ max_x μ′(x₀) − μ′(x) ],   x a result or a planned point,   μ′ the posterior mean after the results at S

with f that of the present batch and its level unknown (``Layer.predict_at_unknown_level``): while nobody knows the
shift of a new batch a result hardly says whether its point is better than those of other batches. Differences between
points do not depend on the level, so no point is worth anything for the level alone. With C the covariance of f and N
that of the noise,

    μ′ = μ + C(·, S) (C(S, S) + N)^(−½) z,    z ~ N(0, I)

A control c takes the place of the last of m planned points if V({c} ∪ S without it) exceeds V(S), by more than it would
with the shift known: that much any repetition is worth, which is for the search to decide. Beside a single planned
point it must be worth more than each of other points of the domain.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.quasirandom import SobolEngine

from headstart.decide.aim import Aim
from headstart.decide.design import are_among
from headstart.decide.domain import Domain
from headstart.gp.fit import generator_from
from headstart.gp.hyperparameters import OFFSET_VAR
from headstart.gp.linalg import cholesky, solve_lower
from headstart.models.chain.layer import Layer
from headstart.models.mixture import components
from headstart.models.outcomes import OutcomePosteriors
from headstart.models.posterior import TransferPosterior
from headstart.tuning import PLAIN_TUNING

_BY_CHANCE = 0.01  # of what a plan is worth: so much the draws leave uncertain


def may_begin_with_control(aim: Aim) -> bool:
    """Whether a new batch begins, and of one objective, without a target, some results are within the limits."""
    goal = aim.goals[0]
    single = len(aim.goals) == 1 and aim.wanted[0].target is None and aim.beta is None
    return single and bool(goal.begins_batch) and len(aim.within(aim.results)) > 0


def is_control(known: TransferPosterior | OutcomePosteriors, x: Float[Tensor, "d"]) -> bool:
    """Whether a suggested point is a control: the present batch has no result, and the point has one of another.

    Args:
        known: What it was suggested from.
        x: The point.

    Returns:
        False also where controls are not thought of, as with several objectives.
    """
    aim = Aim.of(known)
    return may_begin_with_control(aim) and bool(are_among(x.unsqueeze(0), aim.results.to(x)))


def control_for(
    aim: Aim, awaited: Float[Tensor, "p d"], planned: Float[Tensor, "m d"], taken: Float[Tensor, "k d"], domain: Domain
) -> Float[Tensor, "d"] | None:
    """The setting that is worth more than the last of the planned points, to be run first in the new batch.

    Args:
        aim: The aim of a single problem, of one objective.
        awaited: Points that are run in the batch anyway.
        planned: The points that would be run besides, in their order. Where it is one alone, a control is compared
            with other points beside it.
        taken: Points that are not suggested for what they say of themselves.
        domain: The points that may be suggested.

    Returns:
        A setting that has a result, or None where no control is worth its place.
    """
    posterior, results = aim.goals[0], aim.within(aim.results).unique(dim=0)
    order = aim.expected[0].means(results).argsort()
    results = results[order]
    controls = results[: PLAIN_TUNING.control_candidates]
    controls = controls[_allowed(domain, controls) & ~are_among(controls, planned)]
    if len(planned) + len(awaited) > 1:
        beside, rivals = torch.cat([awaited, planned[:-1]]), planned[-1:]
    else:
        beside, rivals = planned, _others(domain, torch.cat([taken, results, planned]))
    if not len(controls) or not len(rivals):
        return None
    worth = knowledge(posterior, results, beside, torch.cat([rivals, controls]))
    n = len(rivals)
    gain, least = worth[n:] - worth[:n].amax(), _BY_CHANCE * worth.amax()
    if bool(gain.amax() <= least):
        return None
    known = knowledge(posterior, results, beside, torch.cat([rivals, controls]), shift_known=True)
    gain = gain - (known[n:] - known[:n].amax()).clamp_min(0.0)
    return controls[gain.argmax()] if bool(gain.amax() > least) else None


def knowledge(
    posterior: TransferPosterior,
    results: Float[Tensor, "n d"],
    planned: Float[Tensor, "m d"],
    last: Float[Tensor, "k d"],
    *,
    shift_known: bool = False,
) -> Float[Tensor, "k"]:
    """V of plans that differ in their last point, in model units, averaged over the members of a mixture.

    Args:
        posterior: The posterior of one objective, of a single problem.
        results: Where there are results that may be the best, the one with the lowest mean first.
        planned: The points that every plan begins with, whose results will come from the present batch.
        last: The last point of every plan.
        shift_known: Whether the results will instead come from the batch of the best result.

    Returns:
        By how much the best point known is expected to improve with the results of each plan.
    """
    n, m, k = len(results), len(planned), len(last)
    uniform = SobolEngine(m + 1, scramble=True, seed=0).draw(PLAIN_TUNING.control_draws, dtype=torch.float64)
    z = torch.special.ndtri(uniform.clamp(1e-9, 1 - 1e-9)).to(planned.device)
    before = planned.new_tensor(OFFSET_VAR) if posterior.doubt is None else posterior.doubt.level_var
    total, X = planned.new_zeros(k), torch.cat([results, planned, last])
    # rows of X: the results and the points of every plan, which come last
    known = torch.cat([torch.arange(n + m).expand(k, -1), torch.arange(n + m, n + m + k).unsqueeze(-1)], dim=-1)
    known = known.to(planned.device)
    with torch.no_grad():
        row = int((posterior.train_inputs[0] == results[0]).all(-1).nonzero()[0])
        for layer, weight in components(posterior.predictor):
            share = 1.0 if weight is None else float(weight)
            if not isinstance(layer, Layer) or share < PLAIN_TUNING.member_min_weight:
                continue
            here = layer.in_batch_of(row) if shift_known else layer
            mean, cov = here.predict_at_unknown_level(X, before)
            of_plan = cov[known[:, n:, None], known[:, None, :]]  # (k, p, known)
            noise = layer.noise_var * torch.eye(m + 1, dtype=cov.dtype, device=cov.device)
            L = cholesky(of_plan[..., n:] + noise, of="The covariance of the results of a plan")
            after = mean[known].unsqueeze(-2) + z @ solve_lower(L, of_plan)  # (k, draws, known)
            total = total + share * (after[..., 0] - after.amin(-1)).mean(-1)
    return total


def _others(domain: Domain, taken: Float[Tensor, "k d"]) -> Float[Tensor, "r d"]:
    """Points all over the domain that are not taken."""
    generator = generator_from(0)
    listing = domain.listing
    if listing is None:
        X = domain.spread(PLAIN_TUNING.control_candidates, generator).to(taken)
        return X[~are_among(X, taken)]
    free = listing[~are_among(listing, taken.to(listing))].to(taken)
    return free[torch.randperm(len(free), generator=generator)[: PLAIN_TUNING.control_candidates]]


def _allowed(domain: Domain, X: Float[Tensor, "n d"]) -> Bool[Tensor, "n"]:
    """Which points of an earlier batch may be suggested still."""
    listing = domain.listing
    if listing is not None:
        return are_among(X, listing.to(X))
    return torch.isclose(domain.snap(X), X, rtol=0.0, atol=1e-9).all(-1)
