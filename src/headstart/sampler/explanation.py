"""What a trial runs with and what it rests on: for ``sampler.last``, ``sampler.explain`` and a dashboard.

User attributes of a trial:

    headstart: model                 AUTO after 12 results: kin 0.85, star 0.1, plain 0.05
    headstart: sources               last year related; mislabelled upside down; 18 others with weights up to 0.02
    headstart: weight of last year   0.431     of the five sources with the largest weights
    headstart: control               1         where the trial repeats another one, to show the shift of a new batch

They take no fit of their own, and verdicts are those of ``TransferSampler.explain``. Every attribute is a transaction
of the study's database, so there are few. RGPE and TST-R have weights and no verdicts; models that do not weigh their
sources give their name alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from headstart.data.dataset import Dataset, task_name
from headstart.decide.control import is_control
from headstart.decide.stopping import Outlook
from headstart.errors import InputError
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
from headstart.models.batch_shifts import Shifts, shifts_in_words, shifts_of_posterior
from headstart.models.ensemble import RankingPrior
from headstart.models.family import model_name
from headstart.models.model import Prior, observed
from headstart.models.outcomes import OutcomePosteriors
from headstart.models.params import EnsembleParams
from headstart.models.posterior import TransferPosterior
from headstart.notebook import html_lines, html_report, html_table
from headstart.sampler.outcomes import StudyPriors
from headstart.sources.alignment import Alignment
from headstart.sources.batches import Batches

PREFIX = "headstart: "
_THIS = "this study"
_MAX_VERDICTS = 12
_MAX_WEIGHTS = 5
_DIGITS = 3
_LONG_NAME = 80  # characters; a database bounds the length of a key


@dataclass(frozen=True, slots=True)
class StudyExplanation(Explanation):
    """The verdicts on the sources of a study, and how each was brought into its search space. Print it.

    It is an ``Explanation``: its numbers (``to_frame()``) and its picture (``plot_sources``) are those of the verdicts.

    Args:
        report: A heading for each source, and a line for each decision that it took; "!" marks those that may cost
            something.
        nothing: Why there are no verdicts; "" where there are.
        look: What computes the outlook.
    """

    report: str = ""
    nothing: str = ""
    look: Callable[[], Outlook] | None = field(default=None, repr=False, compare=False)

    @property
    def outlook(self) -> Outlook:
        """Whether it pays to go on with the study as it is now; computed when asked for."""
        if self.look is None:
            raise InputError("Nothing was suggested yet, so no study is known: take the outlook of explain(study).")
        return self.look()

    def __str__(self) -> str:
        """The verdicts, what the prediction rests on, and what was done about every source."""
        return f"{self._without_verdicts or Explanation.__str__(self)}\n\n{self.report}"

    @property
    def _without_verdicts(self) -> str:
        """Why there are no verdicts, and what is known of shifts; "" where there are verdicts."""
        return "\n".join([self.nothing, *shifts_in_words(self.shifts, self.target)]) if self.nothing else ""

    def _repr_html_(self) -> str:
        """The same for a notebook: the verdicts as a table."""
        verdicts = html_lines(self._without_verdicts) if self.nothing else Explanation._repr_html_(self)
        return verdicts + html_report(self.report)


@dataclass(frozen=True, repr=False)
class Suggested:
    """A suggestion, what is expected of it, what it rests on, and whether it pays to go on. Print it."""

    trial_number: int
    params: dict[str, Any]
    x: Float[Tensor, "d"]  # the parameters in the unit cube of ``alignment.space``
    fitted: StudyPriors
    known: OutcomePosteriors
    look: Callable[[], Outlook] = field(compare=False)
    remarks: tuple[str, ...] = ()  # on the study's own results
    batch: Batches | None = None  # those of the study's results, by the numbers that its posteriors know
    drawn: dict[str, str] = field(default_factory=dict)  # parameters asked for besides: who drew them, and why

    @property
    def alignment(self) -> Alignment:
        """The sources in the space of the study."""
        return self.fitted.alignment

    @property
    def posterior(self) -> TransferPosterior:
        """The posterior of the first objective, to be minimised."""
        return self.known.posteriors[0]

    @property
    def outlook(self) -> Outlook:
        """Whether it pays to go on with the study as it is now; computed when asked for, as by printing this."""
        return self.look()

    @property
    def control(self) -> bool:
        """Whether the trial is a control: it repeats another one, to show the shift of a new batch."""
        return is_control(self.known, self.x)

    @property
    def attributes(self) -> dict[str, str | float]:
        """The user attributes of the trial."""
        found: dict[str, str | float] = {f"{PREFIX}control": 1} if self.control else {}
        if len(self.fitted.priors) == 1:
            return attributes_of(self.fitted.prior, self.posterior) | found
        for name, prior in self.fitted.priors.items():
            own = attributes_of(prior, self.known[name])
            texts = {key: value for key, value in own.items() if isinstance(value, str)}
            found |= {f"{PREFIX}{name}, {key.removeprefix(PREFIX)}": value for key, value in texts.items()}
        return found

    def __repr__(self) -> str:
        """On one screen: what is to be tried, what is expected of it, and from how much."""
        values = ", ".join(f"{name}={value!r}" for name, value in self.params.items())
        told = "a control: it repeats a trial of another batch, to show the shift of this one"
        heads = [f"Trial {self.trial_number}: {values}", *([told] if self.control else [])]
        return "\n".join([*heads, *self._expected(), *self._rests_on()])

    def __str__(self) -> str:
        """The same, and whether it pays to go on."""
        return f"{self!r}\n{self.outlook}"

    def _repr_html_(self) -> str:
        """The same for a notebook: the parameters as a table."""
        head = f"<p><b>Trial {self.trial_number}</b></p>"
        told = "\n".join([*self._expected(), *self._rests_on(), str(self.outlook)])
        return head + html_table(("parameter", "value"), self.params.items()) + html_lines(told)

    def _rests_on(self) -> list[str]:
        """How much is known, remarks on the study's results, and parameters that others drew."""
        used = zip(self.alignment.tasks, self.alignment.rows, strict=True)
        sources = ", ".join(f"{task.name} ({len(rows)} rows)" for task, rows in used) or "no sources"
        known = f"known: {self.posterior.train_targets.shape[-1]} results of this study; {sources}"
        drawn = [f"{name} was drawn by {by_whom_and_why}" for name, by_whom_and_why in self.drawn.items()]
        return [known, *self.remarks, *drawn]

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


def explained(
    fitted: StudyPriors,
    target: Dataset,
    X: Float[Tensor, "m d"],
    *,
    outcome: str,
    posterior: TransferPosterior | None,
    remarks: Sequence[str],
    look: Callable[[], Outlook],
    batches: Batches | None,
) -> StudyExplanation:
    """The verdicts on the sources of an outcome after the study's results, and how they were brought into its space.

    ``batches`` are those of the study's trials.
    """
    prior, told = fitted.priors[outcome], [f"this study: {target.n} results", *(f"  ! {one}" for one in remarks)]
    report = "\n".join([str(fitted.alignment), *(told if remarks else ())])
    every = {_THIS: batches, **{task.name: task.batch for task in fitted.alignment.tasks}}
    names = {name: own.names for name, own in every.items() if own is not None}
    sign = float(fitted.outcomes[outcome].sign)

    def named(found: Sequence[Shifts]) -> tuple[Shifts, ...]:
        return tuple(one.named(fitted.batch.name or "batch", names[one.task], sign) for one in found)

    if isinstance(prior, AutoPrior):
        found = explain(prior, replace(target, name=_THIS), X, posterior=posterior)
        own = {one.name: getattr(found, one.name) for one in fields(found)} | {"shifts": named(found.shifts)}
        return StudyExplanation(**own, report=report, look=look)
    of = f" for {outcome!r}" if len(fitted.priors) > 1 else ""
    if isinstance(prior, RankingPrior):
        why = _ranked_in_words(prior, prior.condition(target) if posterior is None else posterior)
    elif prior.sources:
        why = f'Only AUTO, model="auto", judges its sources and can say why; the model is {model_name(prior.model)}.'
    elif fitted.alignment.decisions:
        why = f"No source can be used{of}: what was found is below. Every suggestion rests on this study's own results."
    else:
        why = f"There are no sources{of}, so there is nothing to judge: the study starts from scratch."
    shifts = None
    if target.has_shifts:
        shifts = shifts_of_posterior(prior.condition(target) if posterior is None else posterior, _THIS)
    found = not_explained(why, report, n=target.n, look=look)
    return replace(found, shifts=() if shifts is None else named([shifts]))


def not_explained(why: str, report: str, *, n: int = 0, look: Callable[[], Outlook] | None = None) -> StudyExplanation:
    """No verdicts, and why."""
    return StudyExplanation((), {}, (), n, {}, {}, "", target=_THIS, report=report, nothing=why, look=look)


def attributes_of(prior: Prior, posterior: TransferPosterior) -> dict[str, str | float]:
    """The user attributes of a trial that was chosen by the posterior of one outcome; JSON can write the values."""
    model = f"{model_name(prior.model)} after {posterior.train_targets.shape[-1]} results"
    found: dict[str, str | float] = {"model": model}
    if isinstance(prior, AutoPrior) and isinstance(posterior, AutoPosterior):
        beliefs = zip(prior.model.names, posterior.weights.tolist(), strict=True)
        found["model"] = f"{model}: {', '.join(f'{name} {_rounded(share)}' for name, share in beliefs)}"
        found |= _of_sources(prior, posterior)
    if isinstance(prior, RankingPrior):
        found |= {f"weight of {name}": weight for name, weight in _rank_weights(prior, posterior)[:_MAX_WEIGHTS]}
    return {f"{PREFIX}{key}": value for key, value in found.items()}


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


def _rank_weights(prior: RankingPrior, posterior: TransferPosterior) -> list[tuple[str, float]]:
    """Names and weights of the sources that are weighted by ranks, the largest first."""
    params = posterior.hyperparameters
    assert isinstance(params, EnsembleParams)
    weights = params.weights[:-1]
    by_size, names = weights.argsort(descending=True, stable=True).tolist(), _names(prior)
    return [(names[i], _rounded(float(weights[i]))) for i in by_size]


def _ranked_in_words(prior: RankingPrior, posterior: TransferPosterior) -> str:
    """What RGPE or TST-R rests on, in place of verdicts."""
    every = _rank_weights(prior, posterior)
    told = ", ".join(f"{name} {weight:g}" for name, weight in every[:_MAX_VERDICTS])
    if rest := every[_MAX_VERDICTS:]:
        told += f", {len(rest)} others up to {rest[0][1]:g}"
    own = _rounded(1 - sum(weight for _, weight in every))
    return (
        f'{model_name(prior.model)} has no verdicts, which AUTO, model="auto", has. It weighs its sources by how they '
        f"rank this study's results: {told}; {_THIS} itself {own:g}."
    )


def _names(prior: Prior) -> list[str]:
    """The names of the sources, cut where they are long, and each only once."""
    names: list[str] = []
    for i, source in enumerate(prior.sources):
        name = source.name or task_name(source, i)
        name = name if len(name) <= _LONG_NAME else f"{name[: _LONG_NAME // 2]}…{name[1 - _LONG_NAME // 2 :]}"
        names.append(f"{name} ({i})" if name in names else name)
    return names


def _rounded(value: float) -> float:
    return round(value, _DIGITS) + 0.0  # no −0
