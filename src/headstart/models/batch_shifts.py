"""Shifts between batches: how large they are, beside noise and settings, what each of them is, and which is odd.

With the other hyperparameters at their fitted values, all that the results say of shifts is in one level per batch. Z
has a column for every batch, K₀ is the covariance of the results without shifts and r are they, less what was expected:

    β = V Zᵀ K₀⁻¹ r      V = (Zᵀ K₀⁻¹ Z)⁻¹      β ~ N(μ 1, M),  M = V + τ² C

with a free μ and the correlations C of the shifts (``Dataset.shift_correlation``). So, against the mean of all batches,

    E[g | y] = τ² C Q β      cov[g | y] = τ² C − τ⁴ C Q C      Q = M⁻¹ − M⁻¹ 1 1ᵀ M⁻¹/(1ᵀ M⁻¹ 1)

A batch is odd if its level is improbable given those of the others. These predict it with the error [Qβ]_b/Q_bb and the
variance 1/Q_bb; τ is integrated over what the others say of it and the prior 1/(τ² + σ²) of τ², σ² the noise (Tiao and
Tan 1965). Of B batches one is odd at a two-sided probability below 0.05/B: of 100 tasks whose shifts are all drawn from
one normal distribution about 5 have a batch that is called odd, and fewer where shifts are small.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from headstart.data.dataset import Dataset
from headstart.data.thinning import representative
from headstart.data.units import Units
from headstart.data.warp import Warp
from headstart.gp.linalg import cholesky, solve_lower
from headstart.models.chain.layer import Layer
from headstart.models.mixture import components
from headstart.models.model import observed
from headstart.models.posterior import TransferPosterior
from headstart.models.predictive import NormalMixture
from headstart.tuning import AUTO_TUNING, PLAIN_TUNING

_FALSE_ALARM = 0.05  # how probable it is at most that some batch is called odd where none is
_LEAST_BATCHES = 4  # with less than three others nothing is known of how large shifts are
_KNOWN = 1e-9  # standard deviation of a log size that is not in doubt
_SIZES = torch.linspace(-8.0, 8.0, 65, dtype=torch.float64)  # log τ over the noise, where τ is integrated


@dataclass(frozen=True, slots=True)
class BatchShift:
    """The shift of one batch against the mean of all, ± ``sd``, and how probable one as far out is (``chance``)."""

    label: str
    shift: float
    sd: float
    chance: float  # of a level at least as far from what the other batches predict; NaN where there are too few
    odd: bool


@dataclass(frozen=True, slots=True)
class Shifts:
    """The shifts between the batches of a task, in its units; behind an output map those in the middle of its results.

    Args:
        task: The name of the task.
        size: The standard deviation of shifts, τ.
        low: The lower end of its 95 % range.
        high: The upper end.
        noise: The standard deviation of results of one batch at equal settings.
        settings: The standard deviation of what is predicted for the settings that were measured.
        batches: The shift of every batch.
        drifts: Whether shifts change slowly with time.
        noun: What a batch is called.
    """

    task: str
    size: float
    low: float
    high: float
    noise: float
    settings: float
    batches: tuple[BatchShift, ...]
    drifts: bool = False
    noun: str = "batch"

    @property
    def odd(self) -> tuple[BatchShift, ...]:
        """The batches that are odd."""
        return tuple(one for one in self.batches if one.odd)

    @property
    def clear(self) -> bool:
        """Whether shifts are larger than the noise with 97.5 % probability, or a batch is odd."""
        return self.low > self.noise or bool(self.odd)

    def named(self, noun: str, names: Mapping[float, str], sign: float = 1.0) -> Shifts:
        """The same in the user's words.

        Args:
            noun: What a batch is called: the name of its column.
            names: What every batch is called, by its number.
            sign: −1 where results are larger as the model's values are smaller.

        Returns:
            Shifts whose batches have these labels.
        """
        labels = {_label(number): name for number, name in names.items()}
        batches = tuple(
            replace(one, label=labels.get(one.label, one.label), shift=sign * one.shift) for one in self.batches
        )
        return replace(self, noun=noun, batches=batches)

    def sentences(self, unit: str = "") -> tuple[str, ...]:
        """How large shifts are, and one sentence on every odd batch.

        Args:
            unit: That of the results.

        Returns:
            Sentences without the name of the task.
        """

        def told(value: float) -> str:
            return f"{value:.2g} {unit}".rstrip()

        between = "over time" if self.drifts else f"from one {self.noun} to another"
        size = f"± {told(self.size)} {between} (95 %: {self.low:.2g} to {told(self.high)})"
        verb = "drift" if self.drifts else "differ"
        first = f"Results {verb} by {size}, by ± {told(self.noise)} within one {self.noun}"
        found = [f"{first}; settings move them by ± {told(self.settings)}."]
        n = len(self.batches)
        for one in self.odd:
            away, sd = (value * n / (n - 1) for value in (one.shift, one.sd))  # against the mean of the others
            side = "above" if away > 0 else "below"
            subject = one.label if one.label.startswith(f"{self.noun} ") else f"{self.noun} {one.label}"
            lie = f"its results lie {told(abs(away))} (± {sd:.2g}) {side} those of the others"
            found.append(f"{subject[0].upper()}{subject[1:]} is odd: {lie}.")
        return tuple(found)


def shifts_in_words(every: Sequence[Shifts], target: str, unit: str = "") -> list[str]:
    """Sentences on the target, on each source with clear shifts, and one on all others.

    Args:
        every: The shifts of some tasks.
        target: The name of the target.
        unit: That of the results.

    Returns:
        A line each.
    """
    told = [one for one in every if one.clear or one.task == target]
    lines = [f"{one.task}: {' '.join(one.sentences(unit))}" for one in told]
    if others := [one for one in every if one not in told]:
        sizes, noises = ([getattr(one, what) for one in others] for what in ("size", "noise"))
        lines.append(
            f"{', '.join(one.task for one in others)}: shifts from one {others[0].noun} to another are not clearly "
            f"larger than the noise, {_span(sizes, unit)} beside {_span(noises, unit)}."
        )
    return lines


def _span(values: Sequence[float], unit: str) -> str:
    low, high = f"{min(values):.2g}", f"{max(values):.2g}"
    return f"± {low if low == high else f'{low} to {high}'} {unit}".rstrip()


def shifts_of_posterior(posterior: TransferPosterior, task: str = "target") -> Shifts | None:
    """The shifts between the batches of the target of one problem, over all members of a mixture.

    Args:
        posterior: The target's posterior.
        task: The name of the target.

    Returns:
        Its shifts; None where it has not results of two batches.
    """
    if posterior.batch_shape or not posterior.train_targets.numel():
        return None
    data = observed(posterior)
    if data.batch is None:
        return None
    found = [(one, w) for one, w in components(posterior.predictor) if isinstance(one, Layer)]
    unit = posterior.units.scale / _slope(posterior.warp, data.y)
    return _summary(found, data, unit, task)


def shifts_of_source(layer: Layer, source: Dataset, units: Units, warp: Warp | None, task: str) -> Shifts | None:
    """The shifts between the batches of a source that was learnt on its own; of many rows from representative ones.

    Args:
        layer: The source's own layer.
        source: Its data behind the output map.
        units: Those of the layer.
        warp: The output map.
        task: The name of the source.

    Returns:
        Its shifts; None where it has not results of two batches.
    """
    if source.batch is None or source.batch_shape:
        return None
    data = representative(source, AUTO_TUNING.gate_max_rows)
    doubt = torch.full_like(layer.params.offset, PLAIN_TUNING.batch_var_spread)
    own = replace(layer, shift_log_sd=doubt).with_observations(units.inward(data))
    y = source.y if warp is None else warp.outward(source.y)
    return _summary([(own, None)], data, units.scale / _slope(warp, y), task)


def _slope(warp: Warp | None, y: Float[Tensor, "n"]) -> Float[Tensor, ""]:
    """That of the output map at the median result."""
    return y.new_ones(()) if warp is None else warp.log_slope(y.median().unsqueeze(-1)).exp().squeeze(-1)


def _summary(
    members: Sequence[tuple[Layer, Tensor | None]], data: Dataset, unit: Float[Tensor, ""], task: str
) -> Shifts | None:
    """The shifts that layers of the same rows find, with weights; ``unit`` is that of the layers in the user's."""
    assert data.batch is not None
    batches, of_row = data.batch.unique(return_inverse=True)
    shifted = [(one, w) for one, w in members if one.shifts is not None and one.params.batch_var is not None]
    if len(batches) < 2 or not shifted:
        return None
    C = data.shift_correlation(batches, batches)
    weights = torch.stack([unit.new_ones(()) if w is None else w for _, w in shifted])
    weights = weights / weights.sum()
    logs, doubts, parts = [], [], []
    for layer, weight in shifted:
        assert layer.params.batch_var is not None
        var, doubt = layer.params.batch_var, layer.shift_doubt
        if doubt is None and weight is not None:  # drawn, and a few draws hardly show how far from them it may be
            doubt = replace(layer, shift_log_sd=torch.full_like(var, PLAIN_TUNING.batch_var_spread)).shift_doubt
        logs.append(0.5 * var.log() + unit.log())
        doubts.append(torch.full_like(var, _KNOWN) if doubt is None else 0.5 * doubt)
        mean, cov = shift_estimates(layer, of_row, C)
        above, below = tails(*levels(layer, of_row), C, layer.noise.mean())
        fitted = layer.fitted_values
        parts.append([mean, cov.diagonal(), above, below, layer.noise.mean(), fitted])
    means, variances, above, below, noise, fitted = (torch.stack(one) for one in zip(*parts, strict=True))

    def average(values: Tensor) -> Tensor:
        return torch.einsum("k,k...->...", weights, values)

    size = NormalMixture(torch.stack(logs).unsqueeze(0), torch.stack(doubts).unsqueeze(0), weights.unsqueeze(0))
    median, low, high = (float(size.quantile(p).exp()) for p in (0.5, 0.025, 0.975))
    shift = average(means)
    sd = average(variances + (means - shift).square()).sqrt()
    chance = 2 * torch.minimum(average(above), average(below)).clamp_max(0.5)
    tested = len(batches) >= _LEAST_BATCHES
    each = zip(*((own * unit).tolist() for own in (shift, sd)), chance.tolist(), strict=True)
    return Shifts(
        task,
        median,
        low,
        high,
        float(unit * average(noise).sqrt()),
        float(unit * average(fitted).std()),
        tuple(
            BatchShift(_label(b), g, s, p if tested else math.nan, tested and p < _FALSE_ALARM / len(batches))
            for b, (g, s, p) in zip(batches.tolist(), each, strict=True)
        ),
        drifts=data.drift is not None,
    )


def _label(number: float) -> str:
    return f"{number:g}" if number == float(f"{number:g}") else repr(number)


def levels(layer: Layer, of_row: Tensor) -> tuple[Float[Tensor, "B"], Float[Tensor, "B B"]]:
    """β and V: what the results of a single problem say of the level of every batch, without a prior of it."""
    K = layer.gain_cov(layer.at, layer.at) + torch.diag_embed(layer.noise)
    L = cholesky(K, of="The covariance of the observations without shifts")
    r = layer.L @ layer.z
    Z = torch.nn.functional.one_hot(of_row).to(r)
    w = solve_lower(L, torch.cat([Z, r.unsqueeze(-1)], dim=-1))
    W, u = w[:, :-1], w[:, -1]
    V = torch.cholesky_inverse(cholesky(W.mT @ W, of="What the results say of the levels of batches"))
    return V @ (W.mT @ u), V


def shift_estimates(
    layer: Layer, of_row: Tensor, C: Float[Tensor, "B B"]
) -> tuple[Float[Tensor, "B"], Float[Tensor, "B B"]]:
    """E[g | y] and cov[g | y] of the shifts of all batches against their mean."""
    assert layer.params.batch_var is not None
    beta, V = levels(layer, of_row)
    prior = layer.params.batch_var * C
    Q, _ = _contrasts(V + prior)
    A = torch.eye(len(C), dtype=C.dtype) - 1 / len(C)
    mean, cov = prior @ Q @ beta, prior - prior @ Q @ prior
    return A @ mean, A @ cov @ A


def _contrasts(M: Float[Tensor, "*k B B"]) -> tuple[Float[Tensor, "*k B B"], Float[Tensor, "*k"]]:
    """Q = M⁻¹ − M⁻¹ 1 1ᵀ M⁻¹/(1ᵀ M⁻¹ 1), and −½ log det M − ½ log 1ᵀ M⁻¹ 1."""
    L = cholesky(M, of="The covariance of the levels of batches")
    inverse = torch.cholesky_inverse(L)
    one = inverse.sum(-1)
    known = one.sum(-1)
    Q = inverse - one.unsqueeze(-1) * one.unsqueeze(-2) / known[..., None, None]
    return Q, -L.diagonal(dim1=-2, dim2=-1).log().sum(-1) - 0.5 * known.log()


def tails(
    beta: Float[Tensor, "B"], V: Float[Tensor, "B B"], C: Float[Tensor, "B B"], noise_var: Float[Tensor, ""]
) -> tuple[Float[Tensor, "B"], Float[Tensor, "B"]]:
    """P(level of a batch ≥ and ≤ the one found | those of the others), τ integrated."""
    Q, normalised = _contrasts(V + (2 * _SIZES).exp()[:, None, None] * noise_var * C)
    Qb, diagonal = Q @ beta, Q.diagonal(dim1=-2, dim2=-1)
    z = Qb / diagonal.sqrt()
    # log p(all levels | τ), less that of the one level given the others
    others = (normalised - 0.5 * Qb @ beta).unsqueeze(-1) - (0.5 * diagonal.log() - 0.5 * z.square())
    prior = -(1 + (-2 * _SIZES).exp()).log()  # of log τ: τ²/(τ² + σ²)
    weights = (others + prior.unsqueeze(-1)).softmax(0)
    return (weights * torch.special.ndtr(-z)).sum(0), (weights * torch.special.ndtr(z)).sum(0)
