"""Explanations: a verdict on every source, why, and what leaving the source out would have changed.

verdict     related, upside down or unrelated, once one of them is 90 % sure, given all results (models.auto.relation);
            ignored is a source that does not predict itself (models.auto.gate)
gain        how much worse results would have been predicted without the source, and how many trials later the best of
            them would have come (models.auto.left_out)
weight      how much of the source's shape the target has, given all data: 1 is all of it, below 0 upside down
share       how far the data of each task move the prediction at a point (models.auto.shares)
shifts      how far results of different batches differ, and which batch is odd (models.batch_shifts)

Before the first result, ``check_past`` compares the sources with each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from headstart.data.dataset import Dataset, task_name
from headstart.data.units import spread_of
from headstart.errors import InputError
from headstart.gp.linalg import solve_lower, solve_upper
from headstart.models.auto.auto import AutoPrior
from headstart.models.auto.candidates import candidate_weights
from headstart.models.auto.left_out import left_out
from headstart.models.auto.posterior import AutoPosterior
from headstart.models.auto.relation import SourceRelation, agreement_of, relations
from headstart.models.auto.scores import REFITS
from headstart.models.auto.shares import shares
from headstart.models.batch_shifts import Shifts, shifts_in_words, shifts_of_posterior, shifts_of_source
from headstart.models.chain.layer import Layer
from headstart.models.mixture import Mixture, Predictor
from headstart.models.model import Prior
from headstart.models.posterior import TransferPosterior
from headstart.models.star.weights import StarBeliefs
from headstart.notebook import html_lines, html_table

if TYPE_CHECKING:
    import pandas as pd

_SURE = 0.9  # how probable a relation is before it is a verdict
_LEAST_RESULTS = 2  # one has no contrast
_FULL_TRUST = 0.9  # with more trust a source counts fully
_ROWS_PER_INPUT = 5  # with less a source that is not noise often looks like it
_MIN_ROWS = 3  # with less, nothing can be left out and predicted from the others
# A correlation below this is no agreement, however many rows it comes from; with few rows twice chance (1/√n) counts
_WEAK_CORRELATION = 0.3

_Weights = tuple[Float[Tensor, "s"], Float[Tensor, "s"]]  # mean and standard deviation of every source's weight


class Verdict(StrEnum):
    """What a source is to the target."""

    RELATED = "related"
    REVERSED = "upside down"
    UNRELATED = "unrelated"
    UNKNOWN = "not known yet"
    UNTESTED = "not tested yet"  # there are no two results
    IGNORED = "ignored"  # it says nothing about itself


class WhyUnusable(StrEnum):
    """Why a source is not trusted."""

    NOISE = "noise"
    LITTLE = "says little"
    CONSTANT = "constant"
    TOO_FEW = "too few rows"


@dataclass(frozen=True, slots=True)
class SourceVerdict:
    """The verdict on one source, a sentence that gives the reason, and the numbers behind it.

    ``history`` are pairs of (number of target observations, weight). ``gain`` is in the target's units; it and
    ``trials`` are NaN before the second result, and ``weight`` is where no candidate of AUTO is a star.
    """

    name: str
    rows: int
    verdict: Verdict
    reason: str
    informative: float  # nats per observation of its own, over a constant
    informative_error: float  # standard error of it
    unusable: WhyUnusable | None  # why it is not trusted, where it is not
    relation: SourceRelation
    gain: float
    trials: float
    weight: float
    weight_sd: float
    history: tuple[tuple[int, float], ...]

    @property
    def explained(self) -> str:
        """The reason, and what leaving the source out would have changed."""
        if self.verdict is Verdict.IGNORED or math.isnan(self.gain):
            return self.reason
        return f"{self.reason} {self.without}"

    @property
    def without(self) -> str:
        """What leaving the source out would have changed."""
        predicted = f"predicted {abs(self.gain):.2g} {'worse' if self.gain > 0 else 'better'} (median)"
        trials = f"{abs(self.trials):.0f} result{'' if abs(self.trials) == 1 else 's'}"
        come = f"{trials} {'later' if self.trials > 0 else 'sooner'}" if self.trials else "no later"
        if self.gain == 0 and self.trials == 0:
            return "Left out, nothing would have changed."
        told = f"Left out, results would have been {predicted if self.gain else 'predicted as well'}"
        return f"{told}, and the best found {come}."


@dataclass(frozen=True, slots=True)
class Explanation:
    """A verdict per source, and the weights of AUTO's candidates, now and after every observation.

    Print it, let a notebook show it, take its numbers (``to_frame``), or draw it (``plot_sources``).

    Args:
        sources: A verdict per source, in order.
        candidates: The weight of every candidate, by name.
        history: Pairs of (number of target observations, weights of the candidates then).
        n_observations: The number of target observations.
        meanings: What the target is if a candidate is right, by name.
        labels: The same in a few words.
        plain: The name of the candidate without sources.
        target: The name of the target.
        shares: The share of every source and, last, of the target's own data in the predictions at the points that
            were asked about, a row each, which sums to 1; None where no points were given.
        agreement: Correlations of the predictions of source i with the results of j, of ``check_past``; NaN where i is
            not trusted, or j is constant or too small.
        shifts: Between the batches of the target, first, and of every source; of those that have several.
    """

    sources: tuple[SourceVerdict, ...]
    candidates: dict[str, float]
    history: tuple[tuple[int, tuple[float, ...]], ...]
    n_observations: int
    meanings: dict[str, str]
    labels: dict[str, str]
    plain: str
    target: str = "target"
    shares: Float[Tensor, "m k"] | None = None
    agreement: NDArray[np.float64] | None = None
    shifts: tuple[Shifts, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the sources, in order."""
        return tuple(source.name for source in self.sources)

    def named(self, verdict: Verdict) -> tuple[str, ...]:
        """The names of the sources with this verdict.

        Args:
            verdict: What they are to the target.

        Returns:
            Their names, in order.
        """
        return tuple(source.name for source in self.sources if source.verdict is verdict)

    def _closing(self) -> list[str]:
        """Shifts, what to do about the past, what the candidates are believed, and what each point rests on."""
        lines = shifts_in_words(self.shifts, self.target)
        if drop := self.named(Verdict.UNRELATED):
            lines.append(f"to drop: {', '.join(drop)}")
        if turned := self.named(Verdict.REVERSED):
            lines.append(f"is the direction right? {', '.join(turned)}")
        believed = ", ".join(f"{name} {share:.0%}" for name, share in self.candidates.items())
        nothing = " (from the sources alone: no observation has tested anything yet)" if not self.n_observations else ""
        lines.append(f"believed after {self.n_observations} observations: {believed}{nothing}")
        if self.shares is not None and len(self.shares) == 0:
            lines.append("rests on: not known yet, for no point was suggested or asked about")
        for row in [] if self.shares is None else self.shares.tolist():
            each = zip((*self.names, self.target), row, strict=True)
            lines.append(f"rests on: {', '.join(f'{name} {share:.0%}' for name, share in each if share >= 0.005)}")
        return lines

    def __str__(self) -> str:
        """A line per source, on shifts, one for what to do about the past and for the candidates, and one per point."""
        return "\n".join([*(f"{s.name}: {s.verdict}. {s.explained}" for s in self.sources), *self._closing()])

    def _repr_html_(self) -> str:
        """The same as a table, for notebooks."""
        rows = [(s.name, s.rows, s.verdict, s.explained) for s in self.sources]
        return html_table(("source", "rows", "verdict", "why"), rows) + html_lines("\n".join(self._closing()))

    def to_frame(self) -> pd.DataFrame:
        """The numbers behind the verdicts, a row per source; NaN where one is not known yet.

        Returns:
            Columns ``related``, ``unrelated`` and ``upside_down``: how probable each is; ``gain`` and ``trials``: how
            much worse results would have been predicted without the source, in their units, and how many trials later
            the best of them would have come; ``weight`` ± ``weight_sd``: how much of the source's shape the target
            has; ``informative``: what it knows of itself (nats per observation, and per row); ``share``: its part in
            the latest of the predictions. ``attrs`` has the number of observations and the weights of the candidates.
        """
        import pandas as pd

        asked = [] if self.shares is None else self.shares.tolist()
        latest = asked[-1] if asked else [math.nan] * len(self.sources)
        columns: dict[str, Callable[[SourceVerdict], Any]] = {
            "source": lambda own: own.name,
            "rows": lambda own: own.rows,
            "verdict": lambda own: str(own.verdict),
            "reason": lambda own: own.explained,
            "related": lambda own: own.relation.same,
            "unrelated": lambda own: own.relation.unrelated,
            "upside_down": lambda own: own.relation.reversed,
            "gain": lambda own: own.gain,
            "trials": lambda own: own.trials,
            "weight": lambda own: own.weight,
            "weight_sd": lambda own: own.weight_sd,
            "informative": lambda own: own.informative,
        }
        found = {name: [of(source) for source in self.sources] for name, of in columns.items()}
        frame = pd.DataFrame(found | {"share": latest[: len(self.sources)]})
        frame.attrs["observations"] = self.n_observations
        frame.attrs["believed"] = dict(self.candidates)
        return frame

    def related(self, i: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The sources that show the same as source i, and those that show the reverse, both beyond chance.

        Args:
            i: A source of ``check_past``, by its position.

        Returns:
            The names of those that agree with it, and of those that contradict it.
        """
        assert self.agreement is not None
        agree: list[str] = []
        contradict: list[str] = []
        for j, other in enumerate(self.sources):
            if j == i:
                continue
            both = float(self.agreement[i, j] + self.agreement[j, i]) / 2  # the mean of both directions
            chance = max(_WEAK_CORRELATION, 2 / math.sqrt(min(self.sources[i].rows, other.rows)))
            if abs(both) > chance:
                (agree if both > 0 else contradict).append(other.name)
        return tuple(agree), tuple(contradict)


def auto_only(prior: Prior) -> AutoPrior:
    """The prior if it is AUTO's; an ``InputError`` otherwise."""
    if not isinstance(prior, AutoPrior):
        raise InputError(
            f"Only AUTO weighs its sources and can say why, but the model is {type(prior.model).__name__}. Use "
            'model = "auto".'
        )
    return prior


def explain(
    prior: Prior,
    target: Dataset | None = None,
    X: Float[Tensor, "m d"] | None = None,
    *,
    posterior: TransferPosterior | None = None,
) -> Explanation:
    """Explain how AUTO uses its sources, given the target's data so far. Nothing is fitted that ``posterior`` has not.

    Args:
        prior: What AUTO learnt from the sources of one problem.
        target: The target's data; None or an empty set before the first result.
        X: Points, (m, d): the explanation then has the tasks' shares in the predictions there.
        posterior: ``prior.condition(target)``, if it is at hand, which spares conditioning again.

    Returns:
        A verdict per source and the weights of the candidates.

    Raises:
        InputError: If the model is not AUTO, or the sources are a batch of problems.
    """
    prior = auto_only(prior)
    if prior.sources[0].batch_shape:
        raise InputError("An explanation is of one problem, but the sources are a batch of problems.")
    target = Dataset.empty(prior.sources[0].d) if target is None else target
    posterior = prior.condition(target) if posterior is None else posterior
    assert isinstance(posterior, AutoPosterior)
    scores, model, told = posterior.scores, prior.model, target.name or "target"
    with torch.no_grad():
        inward = prior.inward(target)
        times = [n for n in (0, *REFITS) if n < target.n] + [target.n]
        believed = candidate_weights(scores, prior.believed)
        weights = {n: _weights(prior, inward, n, believed[..., n]) for n in times}
        without = left_out(prior, posterior)
        each = None if X is None else shares(prior, posterior, X)
    verdicts, names = [], [source.name or task_name(source, i) for i, source in enumerate(prior.sources)]
    for i, (source, (verdict, relation)) in enumerate(zip(prior.sources, judged(prior, target), strict=True)):
        gain, trials = (math.nan, math.nan) if without is None else (float(part[i]) for part in without)
        found = SourceVerdict(
            name=names[i],
            rows=source.n,
            verdict=verdict,
            reason="",
            informative=float(prior.gate.gain[i]),
            informative_error=float(prior.gate.error[i]),
            unusable=why_unusable(prior, i),
            relation=relation,
            gain=gain,
            trials=trials,
            weight=float(weights[target.n][0][i]),
            weight_sd=float(weights[target.n][1][i]),
            history=tuple((n, float(mean[i])) for n, (mean, _) in weights.items()),
        )
        own = float(prior.gate.trust[i]), says_little(source)
        reason = _reason(found, *own, target.name or "the target", target.n)
        verdicts.append(replace(found, reason=reason))
    return Explanation(
        tuple(verdicts),
        dict(zip(model.names, posterior.weights.tolist(), strict=True)),
        tuple(enumerate(map(tuple, believed.mT.tolist()))),
        target.n,
        {candidate.name: candidate.meaning for candidate in model.candidates},
        {candidate.name: candidate.label or candidate.name for candidate in model.candidates},
        model.names[model.plain],
        told,
        each,
        shifts=_shifts(prior, posterior, told, names),
    )


def _shifts(prior: AutoPrior, posterior: AutoPosterior, target: str, names: Sequence[str]) -> tuple[Shifts, ...]:
    """The shifts between batches of the target and of the sources, of those that have several."""
    alone, own = prior.alone, shifts_of_posterior(posterior, target)
    each = zip(alone.layers, prior.sources, names, strict=True)
    found = (own, *(shifts_of_source(layer, source, alone.known, prior.warp, name) for layer, source, name in each))
    return tuple(one for one in found if one is not None)


def _weights(prior: AutoPrior, target: Dataset, n: int, believed: Float[Tensor, "k"]) -> _Weights:
    """The sources' weights after the first n observations of a target behind its output map, of these candidates."""
    if not (stars := prior.stars):  # no candidate has weights
        return (unknown := torch.full((len(prior.sources),), torch.nan, dtype=torch.float64)), unknown
    return _averaged(believed[stars], [prior.after(target, n, k).predictor for k in stars])


def posterior_weights(star: Predictor) -> tuple[Float[Tensor, "*b s"], Float[Tensor, "*b s"]]:
    """Mean and standard deviation of the sources' weights in a star given the target's data; 0 if not selected.

    With w ~ N(mean, R Rᵀ) (models.star.weights), M the sources' shapes at X, and K, r those of the target:

        E[w | y]   = mean + R (Rᵀ M) K⁻¹ r
        cov[w | y] = R (I − (Rᵀ M) K⁻¹ (Rᵀ M)ᵀ) Rᵀ
    """
    layer = star.members[0] if isinstance(star, Mixture) else star  # at the most probable hyperparameters
    assert isinstance(layer, Layer)
    below = layer.below
    assert isinstance(below, StarBeliefs)
    weights, u = below.weights, layer.at.u
    assert u is not None  # Rᵀ M
    if layer.L.shape[-1] == 0:
        return below.of_all(weights.mean), below.of_all(weights.marginal_var.sqrt())
    sd = weights.var.sqrt()
    alpha = solve_upper(layer.L, layer.z.unsqueeze(-1))  # K⁻¹ r
    moved = weights.mean + sd * weights.balanced(u @ alpha).squeeze(-1)
    known = solve_lower(layer.L, weights.balanced(u).mT).square().sum(-2)
    left = (weights.marginal_var - weights.var * known).clamp_min(0.0).sqrt()
    return below.of_all(moved), below.of_all(left)


def _averaged(believed: Float[Tensor, "k"], stars: Sequence[Predictor]) -> _Weights:
    """The sources' weights, averaged over several stars by the weights of these, ``believed``."""
    shares = (believed / believed.sum().clamp_min(1e-12)).unsqueeze(-1)
    means, sds = (torch.stack(parts) for parts in zip(*map(posterior_weights, stars), strict=True))
    mean = (shares * means).sum(0)
    return mean, (shares * (sds.square() + (means - mean).square())).sum(0).sqrt()


def source_weights(prior: AutoPrior, posterior: AutoPosterior) -> Float[Tensor, "s"] | None:
    """The sources' weights given all results; None where no candidate has weights."""
    if not (stars := prior.stars):
        return None
    with torch.no_grad():
        return _averaged(posterior.weights[stars], [posterior.mixture.members[k] for k in stars])[0]


def judged(prior: AutoPrior, target: Dataset) -> list[tuple[Verdict, SourceRelation]]:
    """The verdict on every source given these results, and what it rests on: the relation that is sure."""
    kinds, found = (Verdict.RELATED, Verdict.UNRELATED, Verdict.REVERSED), []
    with torch.no_grad():
        related = relations(prior.alone, prior.inward(target), prior.agreement if target.n >= _LEAST_RESULTS else None)
    for trust, relation in zip(prior.gate.trust.tolist(), related, strict=True):
        sure = (kind for kind, probability in zip(kinds, relation, strict=True) if probability > _SURE)
        verdict = Verdict.UNTESTED if target.n < _LEAST_RESULTS else next(sure, Verdict.UNKNOWN)
        found.append((verdict if trust > 0 else Verdict.IGNORED, relation))
    return found


def _reason(found: SourceVerdict, trust: float, little: bool, target: str, results: int) -> str:
    """The reason for a verdict; ``little``: the source has few rows for its inputs."""
    small, same = f"{found.rows} rows say little on their own", found.relation
    match found.verdict:
        case Verdict.IGNORED if found.unusable is WhyUnusable.TOO_FEW:
            return f"It has {found.rows} row{'s'[: found.rows - 1]}: too few to see whether it predicts itself."
        case Verdict.IGNORED if found.unusable is WhyUnusable.CONSTANT:
            return "All its results are the same: nothing shows what matters."
        case Verdict.IGNORED:
            itself = f"({found.informative:+.2f} ± {found.informative_error:.2f} nats per row)"
            if little:
                return f"Its {small}: its best point is tried, and nothing else is learnt from it {itself}."
            return f"It does not predict itself better than a constant does {itself}."
        case Verdict.RELATED:
            others = "" if found.gain > 0 or found.trials > 0 else ", and so do others" if results > 1 else ""
            return f"It shows what {target} shows ({_sure(same.same)}){others}."
        case Verdict.REVERSED:
            turned = "Is one of them minimised and the other maximised? It is used turned round."
            return f"Where it is high {target} is low ({_sure(same.reversed)}). {turned}"
        case Verdict.UNRELATED:
            of_use = found.gain > 0 or found.trials > 0
            drop = "; what it helped may be chance, and dropping it costs little" if of_use else ": drop it"
            return f"What it shows is not found in {target} ({_sure(same.unrelated)}){drop}."
        case Verdict.UNTESTED if trust >= _FULL_TRUST:
            return "It predicts itself well."
        case Verdict.UNTESTED:
            return f"It counts for {trust:.0%}, for {f'its {small}' if little else 'it hardly predicts itself'}."
    each = f"{same.same:.0%} related, {same.unrelated:.0%} unrelated, {same.reversed:.0%} upside down"
    return f"After {results} results it is {each}."


def _sure(probability: float) -> str:
    return "more than 99 % sure" if probability > 0.99 else f"{probability:.0%} sure".replace("%", " %")


def why_unusable(prior: AutoPrior, i: int) -> WhyUnusable | None:
    """Why source i is not trusted; None where it is."""
    source = prior.sources[i]
    if bool(prior.gate.open[i]):
        return None
    if source.n < _MIN_ROWS:
        return WhyUnusable.TOO_FEW
    if float(spread_of(source.y, source.y.mean(-1))) == 0:
        return WhyUnusable.CONSTANT
    return WhyUnusable.LITTLE if says_little(source) else WhyUnusable.NOISE


def says_little(source: Dataset) -> bool:
    """Whether a source has too few rows for its inputs to show that it is more than noise, even if it is."""
    return source.n < _ROWS_PER_INPUT * (_count_inputs(source) + 1)


def _count_inputs(source: Dataset) -> int:
    """The number of parameters that a source recorded: a category with its descriptors is one.

    Descriptors stand right behind the levels that they describe; levels are several, and a row has one at most.
    """
    groups = [group for group in source.categories if not set(group) <= set(source.unseen)]
    grouped = {column for group in source.categories for column in group}
    ends = {group[-1] for group in groups}
    single = [len(g) > 1 and bool((source.X[..., list(g)] != 0).sum(-1).le(1).all()) for g in groups]
    levels = [g for g, one in zip(groups, single, strict=True) if one or g[0] - 1 not in ends]
    return source.d - len(grouped | set(source.unseen)) + len(levels)


def check_past(prior: Prior) -> Explanation:
    """The explanation before the first result, with the ``agreement`` of the sources with each other."""
    auto = auto_only(prior)
    found = explain(auto)
    between = agreement_of(auto.alone).numpy()
    unusable = [source.unusable for source in found.sources]
    between[[why is not None for why in unusable]] = math.nan
    between[:, [why in (WhyUnusable.CONSTANT, WhyUnusable.TOO_FEW) for why in unusable]] = math.nan
    return replace(found, agreement=between)
