"""Why a head start looks as it does: a verdict on every source, from what it said about the target and about itself.

gate        does the source predict itself better than a constant? (models.gate)
gain        what the source alone added to the predictions of the target's values before they were seen, against
            a process that knows no source: nats per observation, with a 95 % interval over the observations
weight      how much of the source's shape the target has, given all data: 1 is all of it, below 0 upside down.
            With w ~ N(mean, Λ) as in STAR and L, z those of the target:

                E[w_ν | y]   = mean_ν + Λ_ν m_ν(X)ᵀ K⁻¹ r
                var[w_ν | y] = Λ_ν − Λ_ν² m_ν(X)ᵀ K⁻¹ m_ν(X)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import torch
from jaxtyping import Float
from torch import Tensor

from headstart.data.dataset import Dataset, task_name
from headstart.errors import InputError
from headstart.gp.linalg import solve_lower, solve_upper
from headstart.models.auto import CANDIDATES, AutoPrior, judged
from headstart.models.auto_posterior import AutoPosterior
from headstart.models.botorch import TransferPosterior
from headstart.models.layer import Layer
from headstart.models.mixture import Mixture
from headstart.models.prequential import REFITS, prequential
from headstart.models.star_weights import StarBeliefs

__all__ = ["Explanation", "SourceVerdict", "Verdict", "agreement", "explain", "posterior_weights"]

_HALF_WIDTH = 1.96
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
    target were predicted.
    """

    name: str
    verdict: Verdict
    reason: str
    informative: float  # nats per observation of its own, over a constant
    gain: float
    interval: tuple[float, float] | None
    weight: float
    weight_sd: float
    history: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class _Weights:
    """The sources' weights given the first n observations."""

    n: int
    mean: Float[Tensor, "s"]
    sd: Float[Tensor, "s"]


@dataclass(frozen=True, slots=True)
class Explanation:
    """A verdict per source, and how far AUTO's candidates are believed, now and after every observation."""

    sources: tuple[SourceVerdict, ...]
    candidates: dict[str, float]
    history: tuple[tuple[int, tuple[float, ...]], ...]
    n_observations: int

    def __str__(self) -> str:
        """A line per source and one for the candidates."""
        lines = [f"{s.name}: {s.verdict}. {s.reason}" for s in self.sources]
        believed = ", ".join(f"{name} {share:.0%}" for name, share in self.candidates.items())
        return "\n".join([*lines, f"believed after {self.n_observations} observations: {believed}"])


def explain(prior: AutoPrior, target: Dataset | None = None) -> Explanation:
    """The verdicts on the sources of one problem, given the target's data so far (none: before the first one)."""
    if prior.sources[0].batch_shape:
        raise InputError("An explanation is of one problem, but the sources are a batch of problems.")
    target = Dataset.empty(prior.sources[0].d) if target is None else target
    posterior = prior.condition(target)
    assert isinstance(posterior, AutoPosterior)
    judgement = posterior.judgement
    assert judgement is not None
    with torch.no_grad():
        target = prior.inward(target)
        times = [n for n in (0, *REFITS) if n < target.n] + [target.n]
        weights = [_Weights(n, *posterior_weights(prior.after(target, n)[0])) for n in times]
        verdicts = tuple(
            _verdict(prior, i, target, judgement.scores[-1], weights, source.name or task_name(source, i))
            for i, source in enumerate(prior.sources)
        )
        history = tuple(
            (n, tuple(judged(judgement.scores[..., :n], prior.gate, prior.model).weights.tolist()))
            for n in range(target.n + 1)
        )
    believed = dict(zip(CANDIDATES, judgement.weights.tolist(), strict=True))
    return Explanation(verdicts, believed, history, target.n)


def _verdict(
    prior: AutoPrior, i: int, target: Dataset, plain: Float[Tensor, "n"], history: Sequence[_Weights], name: str
) -> SourceVerdict:
    gate, error = float(prior.gate.gain[i]), float(prior.gate.error[i])
    let_in = bool(prior.gate.open[i])
    # the first observation only says where the target lies
    gains = (prequential(prior.star.only(i), target) - plain)[1:]
    gain = float(gains.mean()) if len(gains) else 0.0
    interval = None
    if len(gains) >= _FEW:
        half = _HALF_WIDTH * float(gains.std()) / math.sqrt(len(gains))
        interval = (gain - half, gain + half)
    now, before = history[-1], history[0]
    weight, sd = float(now.mean[i]), float(now.sd[i])
    verdict, reason = _judge(let_in, gate, error, gain, interval, weight, sd, float(before.mean[i]))
    steps = tuple((w.n, float(w.mean[i])) for w in history)
    return SourceVerdict(name, verdict, reason, gate, gain, interval, weight, sd, steps)


def _judge(
    let_in: bool,
    gate: float,
    error: float,
    gain: float,
    interval: tuple[float, float] | None,
    weight: float,
    sd: float,
    before: float,
) -> tuple[Verdict, str]:
    if not let_in:
        return Verdict.IGNORED, (
            f"It does not predict itself better than a constant does ({gate:+.2f} ± {error:.2f} nats per row)."
        )
    if interval is None:
        return Verdict.USED, f"It predicts itself well ({gate:+.2f} nats per row); the target has not tested it yet."
    told = f"{gain:+.2f} nats per observation, 95 % interval {interval[0]:+.2f} to {interval[1]:+.2f}"
    if interval[1] < 0:
        return Verdict.IGNORED, f"What it says about the target is worse than knowing nothing ({told})."
    if interval[0] > 0 and weight + sd < 0:
        return Verdict.USED, f"Upside down: where it is high the target is low, which helps as much ({told})."
    if interval[0] > 0:
        return Verdict.USED, f"It helps to predict the target ({told})."
    if abs(weight) < before:
        return Verdict.REDUCED, f"It has not helped to predict the target so far ({told})."
    return Verdict.USED, f"Whether it helps to predict the target is not sure yet ({told})."


def posterior_weights(star: TransferPosterior) -> tuple[Float[Tensor, "*b s"], Float[Tensor, "*b s"]]:
    """Mean and standard deviation of the sources' weights in a star, given the target's data."""
    layer = star.predictor
    if isinstance(layer, Mixture):  # at the most probable hyperparameters
        layer = layer.members[0]
    assert isinstance(layer, Layer)
    below = layer.below
    assert isinstance(below, StarBeliefs)
    mean, var, u = below.weights.mean, below.weights.var, layer.at.u
    assert u is not None  # its rows are √Λ_ν m_ν(X)
    if layer.L.shape[-1] == 0:
        return mean, var.sqrt()
    alpha = solve_upper(layer.L, layer.z.unsqueeze(-1))  # K⁻¹ r
    moved = mean + var.sqrt() * (u @ alpha).squeeze(-1)
    known = solve_lower(layer.L, u.mT).square().sum(-2)
    return moved, (var * (1 - known).clamp_min(0.0)).sqrt()


def agreement(layers: Sequence[Layer], sources: Sequence[Dataset]) -> Float[Tensor, "s s"]:
    """How source i predicts source j: the correlation of i's mean at j's inputs with j's values; 1 on the diagonal.

    Below 0 one shows the other upside down. A mean that is flat there says nothing: 0.
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
