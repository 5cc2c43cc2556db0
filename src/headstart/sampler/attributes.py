"""What a dashboard shows of a trial: how far the model went by which source, as user attributes.

    headstart: model                 AUTO after 12 results: kin 0.85, star 0.1, plain 0.05
    headstart: sources               last year used; mislabelled used, upside down; 18 others with weights up to 0.02
    headstart: weight of last year   0.431     of the five sources with the largest weights

They cost next to nothing to work out: the weights are in the posterior, and a verdict is what they show. Whether a
source also helped to predict the target takes fits of its own, and is what ``TransferSampler.explain`` is for. Every
attribute is a transaction of the study's database, so they are few. Only AUTO weighs its sources; any other model says
its name.
"""

from __future__ import annotations

from collections.abc import Mapping

from headstart.data.dataset import task_name
from headstart.models.auto.auto import AutoPrior
from headstart.models.auto.explanation import (
    Verdict,
    source_weights,
    verdict_by_weight,
    why_unusable,
)
from headstart.models.auto.posterior import AutoPosterior
from headstart.models.family import model_name
from headstart.models.model import Prior
from headstart.models.posterior import TransferPosterior

_PREFIX = "headstart: "
_TOLD = 12  # sources that have a verdict
_WEIGHED = 5  # and a weight
_DIGITS = 3
_LONG_NAME = 80  # characters; a key has its bounds in a database


def attributes_of(prior: Prior, posterior: TransferPosterior) -> dict[str, str | float]:
    """The attributes of a trial that was chosen by this posterior of one problem; values JSON can write."""
    model = f"{model_name(prior.model)} after {posterior.train_targets.shape[-1]} results"
    found: dict[str, str | float] = {"model": model}
    if isinstance(prior, AutoPrior) and isinstance(posterior, AutoPosterior):
        beliefs = zip(prior.model.names, posterior.weights.tolist(), strict=True)
        found["model"] = f"{model}: {', '.join(f'{name} {_rounded(share)}' for name, share in beliefs)}"
        found |= _of_sources(prior, posterior)
    return {f"{_PREFIX}{key}": value for key, value in found.items()}


def attributes_of_outcomes(
    priors: Mapping[str, Prior], posteriors: Mapping[str, TransferPosterior]
) -> dict[str, str | float]:
    """The same where several things are measured: of each, who was believed and what became of the sources."""
    found: dict[str, str | float] = {}
    for name, prior in priors.items():
        own = attributes_of(prior, posteriors[name])
        kept = {key: value for key, value in own.items() if isinstance(value, str)}
        found |= {f"{_PREFIX}{name}, {key.removeprefix(_PREFIX)}": value for key, value in kept.items()}
    return found


def _of_sources(prior: AutoPrior, posterior: AutoPosterior) -> Mapping[str, str | float]:
    """Of those with the largest weights; nothing where no candidate has weights."""
    found = source_weights(prior, posterior)
    if found is None:
        return {}
    (mean, sd), (before, _) = found
    by_size = mean.abs().argsort(descending=True, stable=True).tolist()
    trust, names = prior.gate.trust.tolist(), _names(prior)
    told = [
        f"{names[i]} {_in_words(prior, i, trust[i], float(mean[i]), float(sd[i]), float(before[i]))}"
        for i in by_size[:_TOLD]
    ]
    if rest := by_size[_TOLD:]:
        told.append(f"{len(rest)} others with weights up to {_rounded(abs(float(mean[rest[0]])))}")
    weights = {f"weight of {names[i]}": _rounded(float(mean[i])) for i in by_size[:_WEIGHED]}
    return {"sources": "; ".join(told), **weights}


def _in_words(prior: AutoPrior, i: int, trust: float, weight: float, sd: float, before: float) -> str:
    verdict = verdict_by_weight(trust, weight, sd, before)
    match verdict:
        case Verdict.IGNORED:
            return f"{verdict}: {why_unusable(prior, i)}"
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


def _rounded(value: float) -> float:
    return round(value, _DIGITS) + 0.0  # no −0
