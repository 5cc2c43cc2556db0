"""Why a model predicts what it predicts: a verdict on every past task, and its share of the prediction.

``explanation_of`` is what the sampler, the folder and Python say with one voice.

The share of a task is how far its data move the prediction at a point, in nats, at the same hyperparameters:

    KL(N(μ', σ'²) ‖ N(μ, σ²)) = ½ ((σ'² + (μ' − μ)²)/σ² − 1 − log σ'²/σ²)

from without to with the data; half of it as the only task that has any, half as the last one to come, when the others
have said all they can. So two sources that say the same share it, and one that says nothing has none. Of a mixture
such as AUTO it is the mean over the candidates, each counting as far as it is believed. A smaller variance alone would
not do: where a source shows high or low values, a weight that is uncertain makes the target uncertain, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from headstart.data.dataset import Dataset
from headstart.errors import InputError
from headstart.models.auto.explanation import Explanation, auto_only, explain
from headstart.models.auto.posterior import AutoPosterior
from headstart.models.botorch import TransferPosterior
from headstart.models.model import Prior

__all__ = ["Reasons", "explanation_of", "gained", "shares"]

_FAR = 1e3  # a coordinate so far off that nothing there is related to the unit cube
_LEAST = 1e-12  # of a variance is rounding


@dataclass(frozen=True, slots=True)
class Reasons:
    """Why a model predicts what it predicts: a verdict per source, and the shares of the tasks at given points.

    ``names`` are those of the sources in order, and of the target; ``shares`` has a row per point, which sums to 1.
    """

    explanation: Explanation
    names: tuple[str, ...]
    shares: Float[Tensor, "m k"]

    def __str__(self) -> str:
        """The explanation, and a line per point."""
        lines = [str(self.explanation)]
        for row in self.shares.tolist():
            parts = (f"{name} {share:.0%}" for name, share in zip(self.names, row, strict=True) if share >= 0.005)
            lines.append(f"rests on: {', '.join(parts)}")
        return "\n".join(lines)


def explanation_of(
    prior: Prior,
    target: Dataset,
    X: Float[Tensor, "m d"] | None = None,
    *,
    names: Sequence[str] = (),
    posterior: TransferPosterior | None = None,
) -> Reasons:
    """The verdicts on AUTO's sources given the target's data, and what the predictions at X rest on.

    ``names`` are what the sources, and last the target, are to be called. ``posterior`` spares conditioning again.
    """
    auto = auto_only(prior)
    explanation = explain(auto, target)
    names = tuple(names) or (*(s.name for s in explanation.sources), target.name or "target")
    if len(names) != len(auto.sources) + 1:
        raise InputError(
            f"names must be those of the {len(auto.sources)} sources and of the target, but there are {len(names)}."
        )
    called = tuple(replace(s, name=name) for s, name in zip(explanation.sources, names, strict=False))
    each = torch.zeros(0, len(names), dtype=torch.float64)
    if X is not None:
        each = shares(auto, prior.condition(target) if posterior is None else posterior, X)
    return Reasons(replace(explanation, sources=called), names, each)


def shares(prior: Prior, posterior: TransferPosterior, X: Float[Tensor, "m d"]) -> Float[Tensor, "m k"]:
    """How much of what is predicted at X comes from every source and (last) the target's own data; rows sum to 1.

    ``posterior`` is what the prior became with the target's data. Where nobody has anything to say, all is the
    target's own.
    """
    target = prior.inward(Dataset(posterior.train_inputs[0], posterior.train_targets))
    tasks = [*prior.sources, target]
    nobody = [_silenced(task) for task in tasks]
    gains = torch.zeros(len(X), len(tasks), dtype=torch.float64)
    if len(tasks) > 1:
        at = _At(prior, posterior, X)
        nothing, everything = at.given(nobody), at.given(tasks)
        for i, task in enumerate(tasks):
            if task.n > 0:
                alone = [t if j == i else silent for j, (t, silent) in enumerate(zip(tasks, nobody, strict=True))]
                others = [silent if j == i else t for j, (t, silent) in enumerate(zip(tasks, nobody, strict=True))]
                gains[:, i] = 0.5 * (at.given(alone).over(nothing) + everything.over(at.given(others)))
    total = gains.sum(-1, keepdim=True)
    own = torch.zeros_like(gains)
    own[:, -1] = 1.0
    return torch.where(total > 0, gains / torch.where(total > 0, total, 1.0), own)


def gained(
    mean: Float[Tensor, "*k m"], var: Float[Tensor, "*k m"], mean_0: Float[Tensor, "*k m"], var_0: Float[Tensor, "*k m"]
) -> Float[Tensor, "*k m"]:
    """KL(N(mean, var) ‖ N(mean_0, var_0)): what was learnt on the way from the second to the first, in nats."""
    var = torch.maximum(var, _LEAST * var_0)
    kl = 0.5 * ((var + (mean - mean_0).square()) / var_0 - 1 - (var / var_0).log())
    return torch.where(kl > _LEAST, kl, 0.0)


@dataclass(frozen=True, slots=True)
class _Predicted:
    """Mean and variance of every candidate, and how far each is believed."""

    mean: Float[Tensor, "c m"]
    var: Float[Tensor, "c m"]
    believed: Float[Tensor, "c"]

    def over(self, before: _Predicted) -> Float[Tensor, "m"]:
        """What was learnt since, in nats."""
        return self.believed @ gained(self.mean, self.var, before.mean, before.var)


@dataclass(frozen=True, slots=True)
class _At:
    """Predictions at X, had the tasks other data."""

    prior: Prior
    posterior: TransferPosterior
    X: Float[Tensor, "m d"]

    def given(self, tasks: Sequence[Dataset]) -> _Predicted:
        """From these data, at the posterior's hyperparameters."""
        found = self.prior.model.at(self.posterior.hyperparameters, sources=tasks[:-1], target=tasks[-1])
        with torch.no_grad():
            if isinstance(found, AutoPosterior):
                pairs = [member.predict_marginal(self.X) for member in found.mixture.members]
                believed = found.weights
            else:
                pairs = [found.predict(self.X)]
                believed = torch.ones(1, dtype=torch.float64)
        mean, var = (torch.stack(part) for part in zip(*pairs, strict=True))
        return _Predicted(mean, var, believed)


def _silenced(task: Dataset) -> Dataset:
    """The task with a single observation, so far away that it says nothing here."""
    X = torch.full((1, task.d), _FAR, dtype=torch.float64)
    return Dataset(X, torch.zeros(1, dtype=torch.float64), task.name, unseen=task.unseen)
