"""What the package works out in closed form, directly: by fitting, and factorising, for every question anew."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from headstart import Dataset, TransferPosterior
from headstart.models.auto.members import predictor_of
from headstart.models.auto.posterior import AutoPosterior
from headstart.models.auto.prequential import refits_up_to, sequential_scores
from headstart.models.auto.reasons import gained
from headstart.models.model import Prior, observed

__all__ = ["direct_shares", "prequential"]

_FAR = 1e3


def prequential(prior: Prior, target: Dataset) -> Float[Tensor, "*b n"]:
    """The scores of every value of the target under a model whose posterior is a layer, in the user's units."""
    scores = torch.zeros_like(target.y)
    for refit in refits_up_to(target.n):
        posterior = prior.condition(target.head(refit), seed=refit)
        predictor, units, warp = predictor_of(posterior), posterior.units, posterior.warp
        inward = units.inward(target if warp is None else warp.task_inward(target))
        found = sequential_scores(predictor, inward.X, inward.y, after=refit, error_var=inward.error_var)
        found = found - units.scale.log().unsqueeze(-1)
        if warp is not None:
            found = found + warp.log_slope(target.y)
        scores[..., refit:] = found[..., refit:]
    return scores


def direct_shares(prior: Prior, posterior: TransferPosterior, X: Float[Tensor, "m d"]) -> Float[Tensor, "m k"]:
    """Half of what each task adds alone, half of what it adds last, from models that were built for each case.

    A source that says nothing has a single row, far away; a target has none.
    """
    target = prior.inward(observed(posterior))
    loud = [*prior.sources, target]
    far = torch.full((1, target.d), _FAR, dtype=torch.float64)
    silent = [Dataset(far, torch.zeros(1, dtype=torch.float64), unseen=s.unseen) for s in prior.sources]
    nobody = [*silent, Dataset.empty(target.d)]

    def predicted(tasks: list[Dataset]) -> tuple[Tensor, Tensor, Tensor]:
        found = prior.model.at(posterior.hyperparameters, sources=tasks[:-1], target=tasks[-1])
        if isinstance(found, AutoPosterior):
            pairs, believed = [m.predict_marginal(X) for m in found.mixture.members], found.weights
        else:
            pairs, believed = [found.predict(X)], torch.ones(1, dtype=torch.float64)
        mean, var = (torch.stack(part) for part in zip(*pairs, strict=True))
        return mean, var, believed

    def learnt(now: list[Dataset], before: list[Dataset]) -> Tensor:
        mean, var, believed = predicted(now)
        mean_0, var_0, _ = predicted(before)
        return believed @ gained(mean, var, mean_0, var_0)

    gains = []
    for i in range(len(loud)):
        alone, others = list(nobody), list(loud)
        alone[i], others[i] = loud[i], nobody[i]
        gains.append(0.5 * (learnt(alone, nobody) + learnt(loud, others)))
    total = torch.stack(gains, dim=-1)
    return total / total.sum(-1, keepdim=True)
