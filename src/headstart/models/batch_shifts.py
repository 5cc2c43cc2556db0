"""Shifts between batches: how large they are, beside noise and settings, what each of them is, and which is odd.

With the other hyperparameters at their fitted values, all that the results say of shifts is in one level per batch. Z
has a column for every batch, K₀ is the covariance of the results without shifts and r are they, less what was expected:

    β = V Zᵀ K₀⁻¹ r      V = (Zᵀ K₀⁻¹ Z)⁻¹      β ~ N(μ 1, M),  M = V + τ² C

with a free μ and the correlations C of the shifts (``Dataset.shift_correlation``). So, against the mean of all batches,

    E[g | y] = τ² C Q β      cov[g | y] = τ² C − τ⁴ C Q C      Q = M⁻¹ − M⁻¹ 1 1ᵀ M⁻¹/(1ᵀ M⁻¹ 1)
    log p(y | τ) = −½ log det M − ½ log 1ᵀ M⁻¹ 1 − ½ βᵀ Q β + constant

The size that is told is that of the results alone, under a half-Cauchy prior of τ (Gelman 2006) with the spread of all
results as its scale, 1 in model units: with the noise, or a third of the spread, the ranges of large shifts were too
low. It does not vanish at 0: a range begins at 0 where no shifts are as likely as the largest ones in it.
A batch is odd if its level is improbable given those of the others. These predict it with the error [Qβ]_b/Q_bb and the
variance 1/Q_bb; τ is integrated over what the others say of it and the prior 1/(τ² + σ²) of τ², σ² the noise (Tiao and
Tan 1965). Of B batches one is odd at a two-sided probability below 0.05/B: of 100 tasks whose shifts are all drawn from
one normal distribution about 5 have a batch that is called odd, and fewer where shifts are small.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
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
from headstart.tuning import AUTO_TUNING

_FALSE_ALARM = 0.05  # how probable it is at most that some batch is called odd where none is
_TINY = 1e-300
_LEAST_BATCHES = 4  # with less than three others nothing is known of how large shifts are
_SIZES = torch.linspace(-8.0, 8.0, 257, dtype=torch.float64)  # log τ over the noise, where τ is integrated


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
        size: The standard deviation of shifts, τ, by these results: the median.
        low: The lower end of its 95 % range, 0 where there may be none.
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
        """Whether the 95 % range of the size of shifts is above the noise, or a batch is odd."""
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
        verb = "drift" if self.drifts else "differ"
        if self.low:
            size = f"{verb} by ± {told(self.size)} {between} (95 %: {self.low:.2g} to {told(self.high)})"
        else:
            size = f"may {verb} by up to ± {told(self.high)} {between} (95 %), or not at all"
        first = f"Results {size}; by ± {told(self.noise)} within one {self.noun}"
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
    own = layer.with_observations(units.inward(data))
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

    def average(values: Tensor) -> Tensor:
        return torch.einsum("k,k...->...", weights, values)

    noise_var = average(torch.stack([layer.noise.mean() for layer, _ in shifted]))
    sizes, parts = [], []
    for layer, _ in shifted:
        mean, cov = shift_estimates(layer, of_row, C)
        at_sizes = Levels.at_sizes(*levels(layer, of_row), C, noise_var)
        sizes.append(at_sizes.size_weights(noise_var))
        parts.append([mean, cov.diagonal(), *at_sizes.tails(), layer.fitted_values])
    means, variances, above, below, fitted = (torch.stack(one) for one in zip(*parts, strict=True))
    noise = float(unit * noise_var.sqrt())
    median, low, high = (noise * size for size in size_range(average(torch.stack(sizes))))
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
        noise,
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


@dataclass(frozen=True, slots=True)
class Levels:
    """The levels of B batches at every size of shifts in ``_SIZES``: Q β, the diagonal of Q and log p(y | τ)."""

    Qb: Float[Tensor, "k B"]
    diagonal: Float[Tensor, "k B"]
    log_p: Float[Tensor, "k"]

    @classmethod
    def at_sizes(
        cls, beta: Float[Tensor, "B"], V: Float[Tensor, "B B"], C: Float[Tensor, "B B"], noise_var: Float[Tensor, ""]
    ) -> Levels:
        """From what the results say of them (``levels``)."""
        Q, normalised = _contrasts(V + (2 * _SIZES).exp()[:, None, None] * noise_var * C)
        Qb = Q @ beta
        return cls(Qb, Q.diagonal(dim1=-2, dim2=-1), normalised - 0.5 * Qb @ beta)

    def size_weights(self, noise_var: Float[Tensor, ""]) -> Float[Tensor, "k"]:
        """The posterior of log τ under the half-Cauchy prior 1/(1 + τ²) of τ in model units."""
        prior = _SIZES - torch.log1p((2 * _SIZES).exp() * noise_var)  # of log τ: τ/(1 + τ²)
        return (self.log_p + prior).softmax(0)

    def tails(self) -> tuple[Float[Tensor, "B"], Float[Tensor, "B"]]:
        """P(level of a batch ≥ and ≤ the one found | those of the others), τ integrated."""
        z = self.Qb / self.diagonal.sqrt()
        # log p(all levels | τ), less that of the one level given the others
        others = self.log_p.unsqueeze(-1) - (0.5 * self.diagonal.log() - 0.5 * z.square())
        prior = -(1 + (-2 * _SIZES).exp()).log()  # of log τ: τ²/(τ² + σ²)
        weights = (others + prior.unsqueeze(-1)).softmax(0)
        return (weights * torch.special.ndtr(-z)).sum(0), (weights * torch.special.ndtr(z)).sum(0)


def size_range(weights: Float[Tensor, "k"]) -> tuple[float, float, float]:
    """Median and 95 % range of τ over the noise from its posterior on ``_SIZES``.

    The range is that between the quantiles of 2.5 and 97.5 %, or from 0 to that of 95 % where the density of τ is no
    lower at 0 than there.
    """
    grid, share = _SIZES.numpy(), weights.numpy()
    total = np.cumsum(share) - 0.5 * share

    def quantile(p: float) -> float:
        return float(np.interp(p, total, grid))

    def log_density(at: float) -> float:
        return float(np.interp(at, grid, np.log(share + _TINY) - grid))

    from_zero = log_density(grid[0]) >= log_density(quantile(0.95))
    ends = (-math.inf, quantile(0.95)) if from_zero else (quantile(0.025), quantile(0.975))
    return math.exp(quantile(0.5)), math.exp(ends[0]), math.exp(ends[1])
