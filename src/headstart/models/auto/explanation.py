"""Explanations: a verdict on every source, from its predictions of the target and of itself, and why.

trust       how far the source is predicted better than by a constant, from its own or all past rows (models.auto.gate)
gain        log score of the target's values under a star of this source alone, minus that of a process without
            sources: nats per observation, with a 95 % interval over the observations
weight      how much of the source's shape the target has, given all data: 1 is all of it, below 0 upside down
share       how far the data of each task move the prediction at a point (models.auto.shares)

Before the first result, ``check_past`` compares the sources with each other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from scipy.special import stdtrit
from torch import Tensor

from headstart.data.dataset import Dataset, task_name
from headstart.data.units import spread_of
from headstart.errors import InputError
from headstart.gp.linalg import solve_lower, solve_upper
from headstart.models.auto.auto import AutoPrior
from headstart.models.auto.candidates import candidate_weights
from headstart.models.auto.posterior import AutoPosterior
from headstart.models.auto.scores import REFITS, scores_alone
from headstart.models.auto.shares import shares
from headstart.models.chain.layer import Layer
from headstart.models.mixture import Mixture, Predictor
from headstart.models.model import Prior
from headstart.models.posterior import TransferPosterior
from headstart.models.star.weights import StarBeliefs

if TYPE_CHECKING:
    import pandas as pd

_REDUCED_BELOW = 0.5  # of the weight it began with: then a source counts as down-weighted
_FULL_TRUST = 0.9  # with more trust a source counts fully
_MIN_SCORED = 3  # scored observations below which an interval says nothing
_ROWS_PER_INPUT = 5  # with less a source that is not noise often looks like it
_MIN_ROWS = 3  # with less, nothing can be left out and predicted from the others
# A correlation below this is no agreement, however many rows it comes from; with few rows twice chance (1/√n) counts
_WEAK_CORRELATION = 0.3

_Weights = tuple[Float[Tensor, "s"], Float[Tensor, "s"]]  # mean and standard deviation of every source's weight


class Verdict(StrEnum):
    """How AUTO uses a source."""

    USED = "used"
    REDUCED = "down-weighted"
    IGNORED = "ignored"


class WhyUnusable(StrEnum):
    """Why a source is not trusted."""

    NOISE = "noise"
    LITTLE = "says little"
    CONSTANT = "constant"
    TOO_FEW = "too few rows"


@dataclass(frozen=True, slots=True)
class SourceVerdict:
    """The verdict on one source, a sentence that gives the reason, and the numbers behind it.

    ``history`` are pairs of (number of target observations, weight). ``interval`` is None while too few values of the
    target were predicted; ``gain`` is NaN where the source is not selected (models.auto.source_selection), ``weight``
    where no candidate of AUTO is a star.
    """

    name: str
    rows: int
    verdict: Verdict
    reason: str
    figures: str  # behind the reason, in nats
    informative: float  # nats per observation of its own, over a constant
    informative_error: float  # standard error of it
    unusable: WhyUnusable | None  # why it is not trusted, where it is not
    gain: float
    interval: tuple[float, float] | None
    weight: float
    weight_sd: float
    history: tuple[tuple[int, float], ...]

    @property
    def explained(self) -> str:
        """The reason, with the figures behind it."""
        return f"{self.reason[:-1]} ({self.figures})." if self.figures else self.reason

    @property
    def upside_down(self) -> bool:
        """Whether the target is high where the source is low."""
        return self.weight + self.weight_sd < 0


@dataclass(frozen=True, slots=True)
class Explanation:
    """A verdict per source, and the weights of AUTO's candidates, now and after every observation.

    Print it, take its numbers (``to_frame``), or draw it (``plot_sources``).

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

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the sources, in order."""
        return tuple(source.name for source in self.sources)

    def __str__(self) -> str:
        """A line per source, one for the candidates, which says what is not known yet, and one per point."""
        lines = [f"{s.name}: {s.verdict}. {s.explained}" for s in self.sources]
        believed = ", ".join(f"{name} {share:.0%}" for name, share in self.candidates.items())
        unknown = ""
        if self.n_observations == 0:
            unknown = " (from the sources alone: no observation has tested anything yet)"
        elif self.n_observations <= _MIN_SCORED:
            unknown = f" (what each source adds is not known before {_MIN_SCORED + 1} observations)"
        lines.append(f"believed after {self.n_observations} observations: {believed}{unknown}")
        if self.shares is None:
            return "\n".join(lines)
        if len(self.shares) == 0:
            lines.append("rests on: not known yet, for no point was suggested or asked about")
        for row in self.shares.tolist():
            each = zip((*self.names, self.target), row, strict=True)
            lines.append(f"rests on: {', '.join(f'{name} {share:.0%}' for name, share in each if share >= 0.005)}")
        return "\n".join(lines)

    def to_frame(self) -> pd.DataFrame:
        """The numbers behind the verdicts, a row per source; NaN where one is not known yet.

        Returns:
            Columns ``weight`` ± ``weight_sd``: how much of the source's shape the target has; ``gain``: what the source
            alone adds to the predictions of the target, between ``gain_low`` and ``gain_high`` with 95 %;
            ``informative``: what it knows of itself (nats per observation, and per row); ``share``: its part in the
            latest of the predictions. ``attrs`` has the number of observations and the weights of the candidates.
        """
        import pandas as pd

        asked = [] if self.shares is None else self.shares.tolist()
        latest = asked[-1] if asked else [math.nan] * len(self.sources)
        rows = [
            {
                "source": source.name,
                "rows": source.rows,
                "verdict": str(source.verdict),
                "reason": source.explained,
                "weight": source.weight,
                "weight_sd": source.weight_sd,
                "gain": source.gain if self.n_observations > 1 else math.nan,
                "gain_low": math.nan if source.interval is None else source.interval[0],
                "gain_high": math.nan if source.interval is None else source.interval[1],
                "informative": source.informative,
                "share": share,
            }
            for source, share in zip(self.sources, latest, strict=False)
        ]
        frame = pd.DataFrame(rows)
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
    """Explain how AUTO uses its sources, given the target's data so far.

    What takes time are the gains: at every refit a star of each source alone is fitted, all of them in lockstep.

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
        target = prior.inward(target)
        times = [n for n in (0, *REFITS) if n < target.n] + [target.n]
        believed = candidate_weights(scores, prior.believed)
        weights = {n: _weights(prior, target, n, believed[..., n]) for n in times}
        # the first observation only says where the target lies
        selected = prior.selected(target)
        gains = (scores_alone(selected, model, target) - scores[model.plain])[:, 1:]
        of_source = dict(zip(selected.index, gains, strict=True))
        verdicts = tuple(_verdict(prior, i, of_source.get(i), weights, target.name) for i in range(len(prior.sources)))
        history = tuple(enumerate(map(tuple, believed.mT.tolist())))
        each = None if X is None else shares(prior, posterior, X)
    return Explanation(
        verdicts,
        dict(zip(model.names, posterior.weights.tolist(), strict=True)),
        history,
        target.n,
        {candidate.name: candidate.meaning for candidate in model.candidates},
        {candidate.name: candidate.label or candidate.name for candidate in model.candidates},
        model.names[model.plain],
        told,
        each,
    )


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


def source_weights(prior: AutoPrior, posterior: AutoPosterior) -> tuple[_Weights, _Weights] | None:
    """The sources' weights now and before the first result; None where no candidate has weights."""
    if not (stars := prior.stars):
        return None
    with torch.no_grad():
        now = _averaged(posterior.weights[stars], [posterior.mixture.members[k] for k in stars])
        if posterior.train_targets.shape[-1] == 0:
            return now, now
        return now, _weights(prior, Dataset.empty(prior.sources[0].d), 0, prior.believed)


def _verdict(
    prior: AutoPrior, i: int, gains: Float[Tensor, "n"] | None, weights: dict[int, _Weights], target: str
) -> SourceVerdict:
    """The verdict on source i; ``gains`` per observation are None where it is not selected."""
    source, history = prior.sources[i], tuple((n, float(mean[i])) for n, (mean, _) in weights.items())
    gain, interval = math.nan, None
    if gains is not None:
        gain, n = float(gains.mean()) if len(gains) else 0.0, len(gains)
        if n >= _MIN_SCORED:  # of a few values the standard deviation is hardly known, hence Student's distribution
            half = float(stdtrit(n - 1, 0.975)) * float(gains.std()) / math.sqrt(n)
            interval = gain - half, gain + half
    found = SourceVerdict(
        name=source.name or task_name(source, i),
        rows=source.n,
        verdict=Verdict.REDUCED,
        reason=f"Of {len(prior.sources)} sources others stand for it at the moment.",
        figures="",
        informative=float(prior.gate.gain[i]),
        informative_error=float(prior.gate.error[i]),
        unusable=why_unusable(prior, i),
        gain=gain,
        interval=interval,
        weight=history[-1][1],
        weight_sd=float(next(reversed(weights.values()))[1][i]),
        history=history,
    )
    trust = float(prior.gate.trust[i])
    if gains is None and trust > 0:
        return found
    verdict, reason, figures = _judge(found, trust, target or "the target", little=says_little(source))
    return replace(found, verdict=verdict, reason=reason, figures=figures)


def verdict_by_weight(trust: float, weight: float, sd: float, before: float) -> Verdict:
    """The verdict as far as the weight shows it; ``explain`` also asks how well the source predicted the target."""
    if trust == 0:
        return Verdict.IGNORED
    if weight + sd < 0:  # upside down
        return Verdict.USED
    return Verdict.REDUCED if trust < _FULL_TRUST or abs(weight) <= _REDUCED_BELOW * before else Verdict.USED


def _judge(found: SourceVerdict, trust: float, target: str, *, little: bool) -> tuple[Verdict, str, str]:
    """The verdict, its reason and the figures behind it; ``little``: the source has few rows for its inputs."""
    itself = f"{found.informative:+.2f} ± {found.informative_error:.2f} nats per row"
    small = f"{found.rows} rows say little on their own" if little else ""
    if found.unusable is WhyUnusable.TOO_FEW:
        rows = f"{found.rows} row{'s'[: found.rows - 1]}"
        return Verdict.IGNORED, f"It has {rows}: too few to see whether it predicts itself.", ""
    if found.unusable is WhyUnusable.CONSTANT:
        return Verdict.IGNORED, "All its results are the same: nothing shows what matters.", ""
    if trust == 0 and small:
        return Verdict.IGNORED, f"Its {small}: its best point is tried, and nothing else is learnt from it.", itself
    if trust == 0:
        return Verdict.IGNORED, "It does not predict itself better than a constant does.", itself
    if found.interval is None and trust < _FULL_TRUST:
        why = f"its {small}" if small else "it hardly predicts itself"
        return Verdict.REDUCED, f"It counts for {trust:.0%}, for {why}; no result has tested it yet.", itself
    if found.interval is None:
        return Verdict.USED, "It predicts itself well; no result has tested it yet.", itself
    low, high = found.interval
    told = f"{found.gain:+.2f} nats per observation, 95 % interval {low:+.2f} to {high:+.2f}"
    if high < 0:
        return Verdict.IGNORED, f"What it says about {target} is worse than knowing nothing.", told
    if low > 0 and found.upside_down:
        return Verdict.USED, f"Upside down: where it is high {target} is low, which helps as much.", told
    if low > 0:
        return Verdict.USED, f"It helps to predict {target}.", told
    if found.weight + 2 * found.weight_sd < 0:  # one surprise makes the interval wide, the weight none the less sure
        reverse = f"where it is high {target} is low"
        return Verdict.USED, f"Upside down: {reverse}; whether that helps to predict it is not sure yet.", told
    if abs(found.weight) < _REDUCED_BELOW * found.history[0][1]:
        return Verdict.REDUCED, f"It has not helped to predict {target} so far.", told
    return Verdict.USED, f"Whether it helps to predict {target} is not sure yet.", told


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
    with torch.no_grad():
        between = agreement(auto.alone.layers, auto.sources).numpy().copy()
    unusable = [source.unusable for source in found.sources]
    between[[why is not None for why in unusable]] = math.nan
    between[:, [why in (WhyUnusable.CONSTANT, WhyUnusable.TOO_FEW) for why in unusable]] = math.nan
    return replace(found, agreement=between)


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
