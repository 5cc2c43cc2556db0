"""Why a head start looks as it does: a verdict on every source, from what it said about the target and about itself.

trust       does the source predict itself better than a constant? (models.auto.gate)
gain        what the source alone added to the predictions of the target's values before they were seen, against
            a process that knows no source: nats per observation, with a 95 % interval over the observations
weight      how much of the source's shape the target has, given all data: 1 is all of it, below 0 upside down.
            (models.star.learnt)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import torch
from jaxtyping import Float
from scipy.special import stdtrit
from torch import Tensor

from headstart.data.dataset import Dataset, task_name
from headstart.errors import InputError
from headstart.models.auto.auto import AutoPrior
from headstart.models.auto.posterior import AutoPosterior, Judgement
from headstart.models.auto.prequential import REFITS, scores_alone
from headstart.models.auto.unusable import WhyUnusable, says_little, why_unusable
from headstart.models.mixture import Predictor
from headstart.models.model import Prior
from headstart.models.posterior import TransferPosterior
from headstart.models.star.star import StarPrior
from headstart.models.star.weight_posterior import posterior_weights

_UPPER = 0.975
_NOTHING = 1e-12
_MUCH_LESS = 0.5  # of the weight it began with: then a source counts as down-weighted
_SURELY = 2  # standard deviations below 0: then a source is upside down, whatever it has gained so far
_FULLY = 0.9  # what is trusted more is trusted
_FEW = 3  # scored observations below which an interval says nothing


class Verdict(StrEnum):
    """What becomes of a source."""

    USED = "used"
    REDUCED = "down-weighted"
    IGNORED = "ignored"


@dataclass(frozen=True, slots=True)
class SourceVerdict:
    """One source: the verdict, a sentence that gives the reason, and the numbers behind it.

    ``history`` are pairs of (number of target observations, weight). ``interval`` is None while too few values of the
    target were predicted; ``gain`` is NaN where others stand for the source (models.auto.study.kept).
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
    """The sources' weights given the first n observations."""

    n: int
    mean: Float[Tensor, "s"]
    sd: Float[Tensor, "s"]


@dataclass(frozen=True, slots=True)
class Explanation:
    """A verdict per source, and how far AUTO's candidates are believed, now and after every observation.

    ``meanings`` says of every candidate what the target is if it is right, ``labels`` in a few words; ``plain`` is the
    one without sources.
    """

    sources: tuple[SourceVerdict, ...]
    candidates: dict[str, float]
    history: tuple[tuple[int, tuple[float, ...]], ...]
    n_observations: int
    meanings: dict[str, str]
    labels: dict[str, str]
    plain: str

    def __str__(self) -> str:
        """A line per source and one for the candidates, with what is not known yet."""
        lines = [f"{s.name}: {s.verdict}. {s.reason}" for s in self.sources]
        believed = ", ".join(f"{name} {share:.0%}" for name, share in self.candidates.items())
        return "\n".join([*lines, f"believed after {self.n_observations} observations: {believed}{self._unknown()}"])

    def _unknown(self) -> str:
        if self.n_observations == 0:
            return " (from the sources alone: no observation has tested anything yet)"
        if self.n_observations <= _FEW:
            return f" (what each source adds is not known before {_FEW + 1} observations)"
        return ""


def auto_only(prior: Prior) -> AutoPrior:
    """The prior, which must be AUTO's: an ``InputError`` otherwise."""
    if not isinstance(prior, AutoPrior):
        raise InputError(
            f"Only AUTO weighs its sources and can say why, but the model is {type(prior.model).__name__}. Use "
            'model = "auto".'
        )
    return prior


def explain(prior: Prior, target: Dataset | None = None, *, posterior: TransferPosterior | None = None) -> Explanation:
    """The verdicts on the sources of one problem, given the target's data so far (none: before the first one).

    ``posterior``, what the prior became with the target's data, spares conditioning again. What takes time besides are
    the gains: at every refit a star of each source alone, all of them in lockstep.
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
        asked = prior.informed.kept(target).index
        alone = scores_alone(prior.alone.some(asked), prior.model, target)
        gains = dict(zip(asked, (alone - judgement.scores[prior.model.plain])[:, 1:], strict=True))
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
    if not stars:  # nobody has weights: each source as it is on its own
        alone = [prior.star_of(i).condition(target.head(n), seed=n).predictor for i in range(len(prior.sources))]
        each = [posterior_weights(predictor) for predictor in alone]
        return SourceWeights(n, torch.cat([mean for mean, _ in each]), torch.cat([sd for _, sd in each]))
    believed = prior.judged(judgement.scores[..., :n]).weights[stars]
    return source_weights(n, believed, [prior.after(target, n, k).predictor for k in stars])


def stars_of(prior: AutoPrior) -> list[int]:
    """Which candidates are stars, and so have weights."""
    return [k for k, one in enumerate(prior.priors) if isinstance(one, StarPrior)]


def source_weights(n: int, believed: Float[Tensor, "k"], stars: Sequence[Predictor]) -> SourceWeights:
    """The weights in several stars after n observations, as far as each of them is believed."""
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
    if gains is not None and len(gains) >= _FEW:
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
    """What becomes of a source as far as its weight shows; ``explain`` also asks what it said about the target."""
    if trust == 0:
        return Verdict.IGNORED
    if weight + sd < 0:  # upside down
        return Verdict.USED
    return Verdict.REDUCED if trust < _FULLY or abs(weight) <= _MUCH_LESS * before else Verdict.USED


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
    if interval is None and trust < _FULLY:
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
    if weight + _SURELY * sd < 0:  # one surprise makes the interval wide, and the weight none the less sure
        reverse = "where it is high the target is low"
        return Verdict.USED, f"Upside down: {reverse}; whether that helps to predict it is not sure yet ({told})."
    if abs(weight) < _MUCH_LESS * before:
        return Verdict.REDUCED, f"It has not helped to predict the target so far ({told})."
    return Verdict.USED, f"Whether it helps to predict the target is not sure yet ({told})."
