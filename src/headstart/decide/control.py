"""Controls: whether a new batch begins with a setting that was run before, which shows the shift of the batch.

The next points S will be run in the present batch. What their results are worth is the knowledge gradient: by how much
the point that will be thought best is expected to be better than x₀, which is thought best now,

    V(S) = E[ max_x μ′(x₀) − μ′(x) ],   x in S or where there are results,   μ′ the posterior mean after those at S

with f that of the present batch and its level unknown (``Layer.predict_at_unknown_level``): while nobody knows the
shift of a new batch a result hardly says whether its point is better than those of other batches. Differences between
points do not depend on the level, so no point is worth anything for the level alone. With C the covariance of f and N
that of the noise,

    μ′ = μ + C(·, S) (C(S, S) + N)^(−½) z,    z ~ N(0, I)

A control c takes the place of the last of m planned points if V({c} ∪ S without it) exceeds V(S), by more than it would
with the shift known: that much any repetition is worth, which is for the search to decide.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.quasirandom import SobolEngine

from headstart.decide.aim import Aim
from headstart.decide.design import are_among
from headstart.decide.domain import Domain
from headstart.gp.hyperparameters import OFFSET_VAR
from headstart.gp.linalg import cholesky, solve_lower
from headstart.models.chain.layer import Layer
from headstart.models.mixture import components
from headstart.models.posterior import TransferPosterior
from headstart.tuning import PLAIN_TUNING

_BY_CHANCE = 0.01  # of what a plan is worth: so much the draws leave uncertain


def may_begin_with_control(aim: Aim) -> bool:
    """Whether a new batch begins, and of one objective, without a target, some results are within the limits."""
    goal = aim.goals[0]
    single = len(aim.goals) == 1 and aim.wanted[0].target is None and aim.beta is None
    return single and bool(goal.begins_batch) and len(aim.within(aim.results)) > 0


def control_for(aim: Aim, planned: Float[Tensor, "m d"], domain: Domain) -> Float[Tensor, "d"] | None:
    """The setting that is worth more than the last of the planned points, to be run first in the new batch.

    Args:
        aim: The aim of a single problem, of one objective.
        planned: The points that would be run in the batch, in their order.
        domain: The points that may be suggested.

    Returns:
        A setting that has a result, or None where no control is worth its place.
    """
    posterior, results = aim.goals[0], aim.within(aim.results).unique(dim=0)
    order = posterior.predict(results)[0].argsort()[: PLAIN_TUNING.control_candidates]
    controls = results[order]
    controls = controls[_allowed(domain, controls) & ~are_among(controls, planned)]
    if len(planned) < 2 or not len(controls):
        return None
    plans = torch.cat([controls.unsqueeze(1), planned[:-1].expand(len(controls), -1, -1)], dim=1)
    worth, known = (
        knowledge(posterior, results, torch.cat([planned.unsqueeze(0), plans]), shift_known=known)
        for known in (False, True)
    )
    gain = worth[1:] - worth[0] - (known[1:] - known[0]).clamp_min(0.0)
    return controls[gain.argmax()] if bool(gain.amax() > _BY_CHANCE * worth.amax()) else None


def knowledge(
    posterior: TransferPosterior,
    results: Float[Tensor, "n d"],
    plans: Float[Tensor, "k m d"],
    *,
    shift_known: bool = False,
) -> Float[Tensor, "k"]:
    """V of several plans of m points each, in model units, averaged over the members of a mixture.

    Args:
        posterior: The posterior of one objective, of a single problem.
        results: Where there are results that may be the best.
        plans: Points whose results will come from the present batch.
        shift_known: Whether they will instead come from the batch of the best result.

    Returns:
        By how much the best point known is expected to improve with these results.
    """
    k, m, _ = plans.shape
    uniform = SobolEngine(m, scramble=True, seed=0).draw(PLAIN_TUNING.stopping_draws, dtype=torch.float64)
    z = torch.special.ndtri(uniform.clamp(1e-9, 1 - 1e-9)).to(plans.device)
    before = plans.new_tensor(OFFSET_VAR) if posterior.doubt is None else posterior.doubt.level_var
    total = plans.new_zeros(k)
    with torch.no_grad():
        best = results[posterior.predict(results)[0].argmin()]
        row = int((posterior.train_inputs[0] == best).all(-1).nonzero()[0])
        # x₀ first, then the other results, then the points of the plan
        X = torch.cat([best.unsqueeze(0), results]).expand(k, -1, -1)
        X = torch.cat([X, plans], dim=1)
        for member, weight in components(posterior.predictor):
            for layer, share in member.over_sizes_of_shifts() if isinstance(member, Layer) else []:
                here = layer.in_batch_of(row) if shift_known else layer
                mean, cov = here.predict_at_unknown_level(X, before)
                at_plan = cov[:, -m:, -m:] + layer.noise_var * torch.eye(m, dtype=cov.dtype, device=cov.device)
                L = cholesky(at_plan, of="The covariance of the results of a plan")
                moves = z @ solve_lower(L, cov[:, -m:, :])  # (k, draws, X)
                after = mean.unsqueeze(-2) + moves
                better = (after[..., :1] - after).amax(-1).mean(-1)
                total = total + (share if weight is None else share * float(weight)) * better
    return total


def _allowed(domain: Domain, X: Float[Tensor, "n d"]) -> Bool[Tensor, "n"]:
    """Which points of an earlier batch may be suggested still."""
    listing = domain.listing
    if listing is not None:
        return are_among(X, listing.to(X))
    return torch.isclose(domain.snap(X), X, rtol=0.0, atol=1e-9).all(-1)
