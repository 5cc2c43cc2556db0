"""``ax-rule``: before every trial the multi-task or the single-task model, whichever ranks the target's results better.

What Ax's transfer learning does: both models are fitted, every result of the target is predicted from the others (and,
by the multi-task model, from the sources), and the model whose predictions have the higher rank correlation with what
was measured chooses the point. With fewer than three results there is nothing to correlate, and the multi-task model
chooses. The models are ours, MTKGP (one kernel, a matrix of task covariances) and GPBO, so that rule is compared with
rule: Ax's own models differ in their priors.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from scipy import stats
from torch import Tensor

from benchmarks.methods.method import Choice, Proposer, Settings
from benchmarks.methods.model_method import ModelProposer
from benchmarks.problems.problem import Instance
from headstart.data.dataset import Dataset
from headstart.models.chain.layer import Layer
from headstart.models.family import GPBO, MTKGP
from headstart.models.mixture import Mixture
from headstart.models.posterior import TransferPosterior

_FEW = 3  # results below which nothing can be ranked


def begin(instance: Instance, problem: str, seeds: Sequence[int], settings: Settings) -> Proposer:
    """Both models learn what they can from the sources."""
    return _CrossValidated(instance, problem, seeds, settings)


def rank_correlation(posterior: TransferPosterior) -> Float[Tensor, "P"]:
    """Spearman's correlation of the target's values with the prediction of each from the others; 0 if constant."""
    layer = posterior.predictor
    if isinstance(layer, Mixture):  # at the most probable hyperparameters
        layer = layer.members[0]
    assert isinstance(layer, Layer)
    # any increasing function of the values will do: y = L z up to a mean that both share
    values = (layer.L @ layer.z.unsqueeze(-1)).squeeze(-1) + layer.at.mean
    predicted, _ = layer.leave_one_out(values)
    found = []
    for a, b in zip(predicted.reshape(-1, values.shape[-1]), values.reshape(-1, values.shape[-1]), strict=True):
        flat = float(a.max() - a.min()) == 0 or float(b.max() - b.min()) == 0
        found.append(0.0 if flat else float(stats.spearmanr(a.numpy(), b.numpy()).statistic))
    return torch.tensor(found, dtype=torch.float64)


class _CrossValidated(Proposer):
    def __init__(self, instance: Instance, problem: str, seeds: Sequence[int], settings: Settings) -> None:
        super().__init__(instance, problem, seeds)
        priors = (settings.applied_to(model).learn(instance.sources, seed=0) for model in (MTKGP, GPBO))
        self._several, self._single = (ModelProposer(p, settings, instance, problem, seeds) for p in priors)

    def propose(self, target: Dataset, allowed: Bool[Tensor, "P M"] | None) -> Choice:
        """The point of the model that ranks better, problem by problem."""
        several, by_several = self._several.ask(target, allowed)
        if target.n < _FEW:
            return by_several
        single, by_single = self._single.ask(target, allowed)
        better = rank_correlation(single) > rank_correlation(several)
        x = torch.where(better.unsqueeze(-1), by_single.x, by_several.x)
        row = None
        if by_single.row is not None and by_several.row is not None:
            row = torch.where(better, by_single.row, by_several.row)
        return Choice(
            x,
            row,
            by_single.fit_seconds + by_several.fit_seconds,
            by_single.acquisition_seconds + by_several.acquisition_seconds,
        )
