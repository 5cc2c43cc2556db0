"""Explanations: a verdict on every source, from its predictions of the target and of itself, and why.

trust       how far the source predicts itself better than a constant (models.auto.gate)
gain        log score of the target's values under a star of this source alone, minus that of a process without
            sources: nats per observation, with a 95 % interval over the observations
weight      how much of the source's shape the target has, given all data: 1 is all of it, below 0 upside down
            (models.star.attribution)

Before the first result, ``check_past`` compares the sources with each other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from scipy.special import stdtrit
from torch import Tensor

from headstart.data.dataset import Dataset, task_name
from headstart.data.units import spread_of
from headstart.errors import InputError
from headstart.models.auto.auto import AutoPrior
from headstart.models.auto.posterior import AutoPosterior, Judgement
from headstart.models.auto.scores import REFITS, scores_alone
from headstart.models.chain.layer import Layer
from headstart.models.mixture import Predictor
from headstart.models.model import Prior
from headstart.models.posterior import TransferPosterior
from headstart.models.star.attribution import posterior_weights
from headstart.models.star.star import StarPrior

_UPPER = 0.975  # quantile of a 95 % interval
_NOTHING = 1e-12
_REDUCED_BELOW = 0.5  # of the weight it began with: then a source counts as down-weighted
_SURE_SDS = 2  # standard deviations below 0: then a source is upside down, whatever it has gained so far
_FULL_TRUST = 0.9  # with more trust a source counts fully
_MIN_SCORED = 3  # scored observations below which an interval says nothing
_ROWS_PER_INPUT = 5  # with less a source that is not noise often looks like it
_MIN_ROWS = 3  # with less, nothing can be left out and predicted from the others
# A correlation below this is no agreement, however many rows it comes from; with few rows twice chance (1/√n) counts
_WEAK_CORRELATION = 0.3


class Verdict(StrEnum):
    """How AUTO uses a source."""

    USED = "used"
    REDUCED = "down-weighted"
    IGNORED = "ignored"


@dataclass(frozen=True, slots=True)
class SourceVerdict:
    """The verdict on one source, a sentence that gives the reason, and the numbers behind it.

    ``history`` are pairs of (number of target observations, weight). ``interval`` is None while too few values of the
    target were predicted; ``gain`` is NaN where the source is not selected (models.auto.source_selection).
    """

    name: str
    rows: int
    verdict: Verdict
    reason: str
    informative: float  # nats per observation of its own, over a constant
    gain: float
    interval: tuple[float, float] | None
    weight: float
    weight_sd: float
    history: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class SourceWeights:
    """Mean and standard deviation of the sources' weights given the first n observations."""

    n: int
    mean: Float[Tensor, "s"]
    sd: Float[Tensor, "s"]


@dataclass(frozen=True, slots=True)
class Explanation:
    """A verdict per source, and the weights of AUTO's candidates, now and after every observation.

    Args:
        sources: A verdict per source, in order.
        candidates: The weight of every candidate, by name.
        history: Pairs of (number of target observations, weights of the candidates then).
        n_observations: The number of target observations.
        meanings: What the target is if a candidate is right, by name.
        labels: The same in a few words.
        plain: The name of the candidate without sources.
    """

    sources: tuple[SourceVerdict, ...]
    candidates: dict[str, float]
    history: tuple[tuple[int, tuple[float, ...]], ...]
    n_observations: int
    meanings: dict[str, str]
    labels: dict[str, str]
    plain: str

    def __str__(self) -> str:
        """A line per source and one for the candidates, which says what is not known yet."""
        lines = [f"{s.name}: {s.verdict}. {s.reason}" for s in self.sources]
        believed = ", ".join(f"{name} {share:.0%}" for name, share in self.candidates.items())
        return "\n".join([*lines, f"believed after {self.n_observations} observations: {believed}{self._unknown()}"])

    def _unknown(self) -> str:
        if self.n_observations == 0:
            return " (from the sources alone: no observation has tested anything yet)"
        if self.n_observations <= _MIN_SCORED:
            return f" (what each source adds is not known before {_MIN_SCORED + 1} observations)"
        return ""


class WhyUnusable(StrEnum):
    """Why a source is not trusted."""

    NOISE = "noise"
    LITTLE = "says little"
    CONSTANT = "constant"
    TOO_FEW = "too few rows"


def auto_only(prior: Prior) -> AutoPrior:
    """The prior if it is AUTO's; an ``InputError`` otherwise."""
    if not isinstance(prior, AutoPrior):
        raise InputError(
            f"Only AUTO weighs its sources and can say why, but the model is {type(prior.model).__name__}. Use "
            'model = "auto".'
        )
    return prior


def explain(prior: Prior, target: Dataset | None = None, *, posterior: TransferPosterior | None = None) -> Explanation:
    """Explain how AUTO uses its sources, given the target's data so far.

    What takes time are the gains: at every refit a star of each source alone is fitted, all of them in lockstep.

    Args:
        prior: What AUTO learnt from the sources of one problem.
        target: The target's data; None or an empty set before the first result.
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
    judgement = posterior.judgement
    assert judgement is not None
    with torch.no_grad():
        target = prior.inward(target)
        times = [n for n in (0, *REFITS) if n < target.n] + [target.n]
        weights = [_weights(prior, target, n, judgement) for n in times]
        # the first observation only says where the target lies
        selected = prior.selected(target).index
        alone = scores_alone(prior.alone.some(selected), prior.model, target)
        gains = dict(zip(selected, (alone - judgement.scores[prior.model.plain])[:, 1:], strict=True))
        verdicts = tuple(
            _verdict(prior, i, gains.get(i), weights, source.name or task_name(source, i))
            for i, source in enumerate(prior.sources)
        )
        history = tuple(
            (n, tuple(prior.judged(judgement.scores[..., :n]).weights.tolist())) for n in range(target.n + 1)
        )
    believed = dict(zip(judgement.candidates, judgement.weights.tolist(), strict=True))
    meanings = {candidate.name: candidate.meaning for candidate in prior.model.candidates}
    labels = {candidate.name: candidate.label or candidate.name for candidate in prior.model.candidates}
    plain = prior.model.names[prior.model.plain]
    return Explanation(verdicts, believed, history, target.n, meanings, labels, plain)


def _weights(prior: AutoPrior, target: Dataset, n: int, judgement: Judgement) -> SourceWeights:
    stars = stars_of(prior)
    if not stars:  # no candidate has weights: a star of each source alone
        alone = [prior.star_of(i).condition(target.head(n), seed=n).predictor for i in range(len(prior.sources))]
        each = [posterior_weights(predictor) for predictor in alone]
        return SourceWeights(n, torch.cat([mean for mean, _ in each]), torch.cat([sd for _, sd in each]))
    believed = prior.judged(judgement.scores[..., :n]).weights[stars]
    return source_weights(n, believed, [prior.after(target, n, k).predictor for k in stars])


def stars_of(prior: AutoPrior) -> list[int]:
    """The indices of the candidates that are stars, and so have weights of sources."""
    return [k for k, one in enumerate(prior.priors) if isinstance(one, StarPrior)]


def source_weights(n: int, believed: Float[Tensor, "k"], stars: Sequence[Predictor]) -> SourceWeights:
    """The sources' weights after n observations, averaged over several stars by their weights, ``believed``."""
    shares = believed / believed.sum().clamp_min(_NOTHING)
    means, sds = (torch.stack(parts) for parts in zip(*(posterior_weights(star) for star in stars), strict=True))
    mean = (shares.unsqueeze(-1) * means).sum(0)
    var = (shares.unsqueeze(-1) * (sds.square() + (means - mean).square())).sum(0)
    return SourceWeights(n, mean, var.sqrt())


def _verdict(
    prior: AutoPrior, i: int, gains: Float[Tensor, "n"] | None, history: Sequence[SourceWeights], name: str
) -> SourceVerdict:
    gate, error = float(prior.gate.gain[i]), float(prior.gate.error[i])
    trust, source = float(prior.gate.trust[i]), prior.sources[i]
    small = f"{source.n} rows say little on their own" if says_little(source) else ""
    gain, interval = (0.0 if gains is not None else math.nan), None
    if gains is not None and len(gains):
        gain = float(gains.mean())
    if gains is not None and len(gains) >= _MIN_SCORED:
        # of a few values the standard deviation is hardly known either: Student's distribution
        half = float(stdtrit(len(gains) - 1, _UPPER)) * float(gains.std()) / math.sqrt(len(gains))
        interval = (gain - half, gain + half)
    now, before = history[-1], history[0]
    weight, sd = float(now.mean[i]), float(now.sd[i])
    verdict, reason = _judge(trust, small, gate, error, gain, interval, weight, sd, float(before.mean[i]))
    if gains is None and trust > 0:
        verdict, reason = Verdict.REDUCED, f"Of {len(prior.sources)} sources others stand for it at the moment."
    match why_unusable(prior, i):  # a plainer reason
        case WhyUnusable.TOO_FEW:
            reason = f"It has {source.n} row{'s'[: source.n - 1]}: too few to see whether it predicts itself."
        case WhyUnusable.CONSTANT:
            reason = "All its results are the same: nothing shows what matters."
    steps = tuple((w.n, float(w.mean[i])) for w in history)
    return SourceVerdict(name, source.n, verdict, reason, gate, gain, interval, weight, sd, steps)


def verdict_by_weight(trust: float, weight: float, sd: float, before: float) -> Verdict:
    """The verdict as far as the weight shows it; ``explain`` also asks how well the source predicted the target."""
    if trust == 0:
        return Verdict.IGNORED
    if weight + sd < 0:  # upside down
        return Verdict.USED
    return Verdict.REDUCED if trust < _FULL_TRUST or abs(weight) <= _REDUCED_BELOW * before else Verdict.USED


def _judge(
    trust: float,
    small: str,
    gate: float,
    error: float,
    gain: float,
    interval: tuple[float, float] | None,
    weight: float,
    sd: float,
    before: float,
) -> tuple[Verdict, str]:
    itself = f"{gate:+.2f} ± {error:.2f} nats per row"
    if trust == 0 and small:
        return Verdict.IGNORED, f"Its {small} ({itself}): its best point is tried, and nothing else is learnt from it."
    if trust == 0:
        return Verdict.IGNORED, f"It does not predict itself better than a constant does ({itself})."
    if interval is None and trust < _FULL_TRUST:
        why = f"its {small}" if small else "it hardly predicts itself"
        return Verdict.REDUCED, f"It counts for {trust:.0%}, for {why} ({itself}); the target has not tested it yet."
    if interval is None:
        return Verdict.USED, f"It predicts itself well ({gate:+.2f} nats per row); the target has not tested it yet."
    told = f"{gain:+.2f} nats per observation, 95 % interval {interval[0]:+.2f} to {interval[1]:+.2f}"
    if interval[1] < 0:
        return Verdict.IGNORED, f"What it says about the target is worse than knowing nothing ({told})."
    if interval[0] > 0 and weight + sd < 0:
        return Verdict.USED, f"Upside down: where it is high the target is low, which helps as much ({told})."
    if interval[0] > 0:
        return Verdict.USED, f"It helps to predict the target ({told})."
    if weight + _SURE_SDS * sd < 0:  # one surprise makes the interval wide, and the weight none the less sure
        reverse = "where it is high the target is low"
        return Verdict.USED, f"Upside down: {reverse}; whether that helps to predict it is not sure yet ({told})."
    if abs(weight) < _REDUCED_BELOW * before:
        return Verdict.REDUCED, f"It has not helped to predict the target so far ({told})."
    return Verdict.USED, f"Whether it helps to predict the target is not sure yet ({told})."


# ── sources that are not trusted ──────────────────────────────────────────────────────────────────────────────────


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


# ── the past, before the first result ─────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class PastCheck:
    """How past campaigns predict themselves (``gains`` ± ``errors``, nats per row) and each other.

    ``silent`` says why a campaign is not trusted; None where it is. ``agreement[i, j]`` is the correlation of the
    predictions of i with the results of j; NaN where i is not trusted, or j is constant or too small.
    """

    verdicts: tuple[SourceVerdict, ...]
    rows: tuple[int, ...]
    gains: tuple[float, ...]
    errors: tuple[float, ...]
    silent: tuple[WhyUnusable | None, ...]
    agreement: NDArray[np.float64]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the campaigns, in order."""
        return tuple(v.name for v in self.verdicts)

    def relation(self, i: int, j: int) -> float | None:
        """The correlation of two campaigns, the mean of both directions; None where it may be chance."""
        both = float(self.agreement[i, j] + self.agreement[j, i]) / 2
        chance = max(_WEAK_CORRELATION, 2 / math.sqrt(min(self.rows[i], self.rows[j])))
        return both if abs(both) > chance else None

    def agrees(self, i: int) -> tuple[str, ...]:
        """The campaigns that show what this one shows."""
        return self._related(i, 1.0)

    def contradicts(self, i: int) -> tuple[str, ...]:
        """The campaigns that show the reverse."""
        return self._related(i, -1.0)

    def _related(self, i: int, sign: float) -> tuple[str, ...]:
        others = ((name, self.relation(i, j)) for j, name in enumerate(self.names) if j != i)
        return tuple(name for name, r in others if r is not None and sign * r > 0)


def check_past(prior: Prior) -> PastCheck:
    """Check how the sources predict themselves and each other, before the first result."""
    auto = auto_only(prior)
    with torch.no_grad():
        between = agreement(auto.alone.layers, auto.sources).numpy().copy()
    silent = tuple(why_unusable(auto, i) for i in range(len(auto.sources)))
    between[[why is not None for why in silent]] = math.nan
    between[:, [why in (WhyUnusable.CONSTANT, WhyUnusable.TOO_FEW) for why in silent]] = math.nan
    return PastCheck(
        verdicts=explain(auto).sources,
        rows=tuple(source.n for source in auto.sources),
        gains=tuple(auto.gate.gain.tolist()),
        errors=tuple(auto.gate.error.tolist()),
        silent=silent,
        agreement=between,
    )


def agreement(layers: Sequence[Layer], sources: Sequence[Dataset]) -> Float[Tensor, "s s"]:
    """The correlation of source i's mean at source j's inputs with j's values; 1 on the diagonal, 0 of a flat mean.

    Below 0 one source is the other upside down.
    """
    result = torch.eye(len(sources), dtype=torch.float64)
    for i, layer in enumerate(layers):
        for j, source in enumerate(sources):
            if i != j:
                mean, _ = layer.predict_marginal(source.X)
                a, b = mean - mean.mean(), source.y - source.y.mean()
                size = a.norm() * b.norm()
                result[i, j] = a @ b / size if size > 0 else 0.0
    return result
