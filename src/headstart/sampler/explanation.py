"""What a trial runs with and what it rests on: for ``sampler.last``, ``sampler.explain`` and a dashboard.

User attributes of a trial:

    headstart: model                 AUTO after 12 results: kin 0.85, star 0.1, plain 0.05
    headstart: sources               last year related; mislabelled upside down; 18 others with weights up to 0.02
    headstart: weight of last year   0.431     of the five sources with the largest weights

They take no fit of their own, and verdicts are those of ``TransferSampler.explain``. Every attribute is a transaction
of the study's database, so there are few. Only AUTO weighs its sources; other models give their name alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from headstart.data.dataset import task_name
from headstart.models.auto.auto import AutoPrior
from headstart.models.auto.explanation import (
    Explanation,
    Verdict,
    explain,
    judged,
    source_weights,
    why_unusable,
)
from headstart.models.auto.posterior import AutoPosterior
from headstart.models.family import model_name
from headstart.models.model import Prior, observed
from headstart.models.outcomes import OutcomePosteriors
from headstart.models.posterior import TransferPosterior
from headstart.sampler.outcomes import StudyPriors
from headstart.sources.alignment import Alignment

_PREFIX = "headstart: "
_MAX_VERDICTS = 12
_MAX_WEIGHTS = 5
_DIGITS = 3
_LONG_NAME = 80  # characters; a database bounds the length of a key


@dataclass(frozen=True, repr=False)
class Suggested:
    """A suggestion and everything it rests on."""

    trial_number: int
    params: dict[str, Any]
    x: Float[Tensor, "d"]  # the parameters in the unit cube of ``alignment.space``
    fitted: StudyPriors
    known: OutcomePosteriors
    remarks: tuple[str, ...] = ()  # on the study's own results
    drawn: dict[str, str] = field(default_factory=dict)  # parameters asked for besides: who drew them, and why

    @property
    def alignment(self) -> Alignment:
        """The sources in the space of the study."""
        return self.fitted.alignment

    @property
    def posterior(self) -> TransferPosterior:
        """The posterior of the first objective, to be minimised."""
        return self.known.posteriors[0]

    def explain(self, outcome: str | None = None) -> Explanation:
        """Verdicts on the sources of an outcome, by default the first objective, and what the prediction rests on."""
        name = self.known.outcomes.names[0] if outcome is None else outcome
        posterior = self.known[name]
        target = replace(observed(posterior), name="this study")
        return explain(self.fitted.priors[name], target, self.x.unsqueeze(0), posterior=posterior)

    @property
    def attributes(self) -> dict[str, str | float]:
        """The user attributes of the trial."""
        if len(self.fitted.priors) == 1:
            return attributes_of(self.fitted.prior, self.posterior)
        found: dict[str, str | float] = {}
        for name, prior in self.fitted.priors.items():
            own = attributes_of(prior, self.known[name])
            texts = {key: value for key, value in own.items() if isinstance(value, str)}
            found |= {f"{_PREFIX}{name}, {key.removeprefix(_PREFIX)}": value for key, value in texts.items()}
        return found

    @property
    def report(self) -> str:
        """How the sources were brought into the space of the study, and remarks on its own results."""
        own = [f"this study: {self.posterior.train_targets.shape[-1]} results", *(f"  ! {r}" for r in self.remarks)]
        return "\n".join([str(self.alignment), *(own if self.remarks else ())])

    def __repr__(self) -> str:
        """On one screen: what is to be tried, what is expected of it, and from how much."""
        values = ", ".join(f"{name}={value!r}" for name, value in self.params.items())
        used = zip(self.alignment.tasks, self.alignment.rows, strict=True)
        sources = ", ".join(f"{task.name} ({len(rows)} rows)" for task, rows in used) or "no sources"
        known = f"known: {self.posterior.train_targets.shape[-1]} results of this study; {sources}"
        lines = [f"Trial {self.trial_number}: {values}", *self._expected(), known]
        drawn = [f"{name} was drawn by {by_whom_and_why}" for name, by_whom_and_why in self.drawn.items()]
        return "\n".join([*lines, *self.remarks, *drawn])

    def _expected(self) -> list[str]:
        """A line for every outcome, and one for the constraints."""
        outcomes, X, lines = self.known.outcomes, self.x.unsqueeze(0), []
        for own, posterior in zip(outcomes, self.known.posteriors, strict=True):
            told = "nothing is known of its result"
            if not bool(posterior.knows_nothing):
                with torch.no_grad():
                    ends = sorted(own.sign * float(posterior.quantile(X, p)) for p in (0.025, 0.5, 0.975))
                told = "expected {1:.4g}, 95 % range {0:.4g} to {2:.4g}".format(*ends)
            lines.append(f"{own.name}: {told}" if len(outcomes.names) > 1 else told)
        if outcomes.limits:
            lines.append(f"all constraints hold with a probability of {float(self.known.probability_within(X)):.0%}")
        return lines


def attributes_of(prior: Prior, posterior: TransferPosterior) -> dict[str, str | float]:
    """The user attributes of a trial that was chosen by the posterior of one outcome; JSON can write the values."""
    model = f"{model_name(prior.model)} after {posterior.train_targets.shape[-1]} results"
    found: dict[str, str | float] = {"model": model}
    if isinstance(prior, AutoPrior) and isinstance(posterior, AutoPosterior):
        beliefs = zip(prior.model.names, posterior.weights.tolist(), strict=True)
        found["model"] = f"{model}: {', '.join(f'{name} {_rounded(share)}' for name, share in beliefs)}"
        found |= _of_sources(prior, posterior)
    return {f"{_PREFIX}{key}": value for key, value in found.items()}


def _of_sources(prior: AutoPrior, posterior: AutoPosterior) -> Mapping[str, str | float]:
    """Verdicts and weights of the sources with the largest weights; nothing where no candidate has weights."""
    mean = source_weights(prior, posterior)
    if mean is None:
        return {}
    by_size = mean.abs().argsort(descending=True, stable=True).tolist()
    names, found, verdicts = _names(prior), judged(prior, observed(posterior)), []
    for i in by_size[:_MAX_VERDICTS]:
        verdict, _ = found[i]
        why = f": {why_unusable(prior, i)}" if verdict is Verdict.IGNORED else ""
        verdicts.append(f"{names[i]} {verdict}{why}")
    if rest := by_size[_MAX_VERDICTS:]:
        verdicts.append(f"{len(rest)} others with weights up to {_rounded(abs(float(mean[rest[0]])))}")
    weights = {f"weight of {names[i]}": _rounded(float(mean[i])) for i in by_size[:_MAX_WEIGHTS]}
    return {"sources": "; ".join(verdicts), **weights}


def _names(prior: AutoPrior) -> list[str]:
    """The names of the sources, cut where they are long, and each only once."""
    names: list[str] = []
    for i, source in enumerate(prior.sources):
        name = source.name or task_name(source, i)
        name = name if len(name) <= _LONG_NAME else f"{name[: _LONG_NAME // 2]}…{name[1 - _LONG_NAME // 2 :]}"
        names.append(f"{name} ({i})" if name in names else name)
    return names


def _rounded(value: float) -> float:
    return round(value, _DIGITS) + 0.0  # no −0
