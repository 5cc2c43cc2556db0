"""What a dashboard shows of a trial: how far the model went by which source, as user attributes.

    headstart: model                 AUTO
    headstart: results               12
    headstart: belief in kin         0.85      of every candidate of AUTO
    headstart: weight of last year   0.431     of the sources with the largest weights
    headstart: last year is          used
    headstart: other sources         18 with weights up to 0.02

They cost next to nothing: the weights are in the posterior, and a verdict is what they show. Whether a source also
helped to predict the target takes fits of its own, and is what ``TransferSampler.explain`` is for. Only AUTO weighs its
sources; any other model says its name.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch

from headstart.data.dataset import Dataset, task_name
from headstart.models.auto.auto import Auto, AutoPrior
from headstart.models.auto.explanation import (
    SourceWeights,
    Verdict,
    silence_of,
    source_weights,
    stars_of,
    verdict_by_weight,
)
from headstart.models.auto.posterior import AutoPosterior
from headstart.models.botorch import TransferPosterior
from headstart.models.family import FAMILY
from headstart.models.model import Prior, TransferModel

__all__ = ["attributes_of"]

_PREFIX = "headstart: "
_MOST = 12  # sources that are named
_DIGITS = 3
_LONG_NAME = 80  # characters; a key has its bounds in a database


def attributes_of(prior: Prior, posterior: TransferPosterior) -> dict[str, str | float]:
    """The attributes of a trial that was chosen by this posterior of one problem; values JSON can write."""
    found: dict[str, str | float] = {
        "model": _name_of(prior.model),
        "results": posterior.train_targets.shape[-1],
    }
    if isinstance(prior, AutoPrior) and isinstance(posterior, AutoPosterior):
        beliefs = zip(prior.model.names, posterior.weights.tolist(), strict=True)
        found |= {f"belief in {name}": _rounded(share) for name, share in beliefs}
        found |= _of_sources(prior, posterior)
    return {f"{_PREFIX}{key}": value for key, value in found.items()}


def _of_sources(prior: AutoPrior, posterior: AutoPosterior) -> Mapping[str, str | float]:
    """Of those with the largest weights; nothing where no candidate has weights."""
    stars = stars_of(prior)
    if not stars:
        return {}
    n = posterior.train_targets.shape[-1]
    with torch.no_grad():
        now = source_weights(n, posterior.weights[stars], [posterior.mixture.members[k] for k in stars])
        before = now if n == 0 else _before(prior, posterior, stars)
    by_size = now.mean.abs().argsort(descending=True, stable=True).tolist()
    trust, names = prior.gate.trust.tolist(), _names(prior)
    found: dict[str, str | float] = {}
    for i in by_size[:_MOST]:
        weight, first = float(now.mean[i]), float(before.mean[i])
        found[f"weight of {names[i]}"] = _rounded(weight)
        found[f"{names[i]} is"] = _in_words(prior, i, trust[i], weight, float(now.sd[i]), first)
    if rest := by_size[_MOST:]:
        found["other sources"] = f"{len(rest)} with weights up to {_rounded(abs(float(now.mean[rest[0]])))}"
    return found


def _before(prior: AutoPrior, posterior: AutoPosterior, stars: list[int]) -> SourceWeights:
    """The weights before the first result."""
    nothing, scores = Dataset.empty(prior.sources[0].d), posterior.train_targets.new_zeros(len(prior.priors), 0)
    believed = prior.judged(scores).weights[stars]
    return source_weights(0, believed, [prior.after(nothing, 0, k).predictor for k in stars])


def _in_words(prior: AutoPrior, i: int, trust: float, weight: float, sd: float, before: float) -> str:
    verdict = verdict_by_weight(trust, weight, sd, before)
    match verdict:
        case Verdict.IGNORED:
            return f"{verdict}: {silence_of(prior, i)}"
        case Verdict.USED if weight + sd < 0:
            return f"{verdict}, upside down"
        case _:
            return str(verdict)


def _names(prior: AutoPrior) -> list[str]:
    """Short, and each only once."""
    names: list[str] = []
    for i, source in enumerate(prior.sources):
        name = source.name or task_name(source, i)
        name = name if len(name) <= _LONG_NAME else f"{name[: _LONG_NAME // 2]}…{name[1 - _LONG_NAME // 2 :]}"
        names.append(f"{name} ({i})" if name in names else name)
    return names


def _name_of(model: TransferModel) -> str:
    """Its name in the family, whatever its options."""
    if isinstance(model, Auto):
        return "AUTO"
    for name, known in FAMILY.items():
        if known.using(kernel=model.kernel, fit=model.fit, units=model.units, output_map=model.output_map) == model:
            return name
    return type(model).__name__


def _rounded(value: float) -> float:
    return round(value, _DIGITS) + 0.0  # no −0
