"""The gate: how far a source is trusted, from leave-one-out predictions of its own process against a constant.

    gain = mean of log p(y_i | the other values) − log N(y_i; the mean and variance of the other values)

in nats per observation, in closed form. The hyperparameters are fitted to all points, so that a process gains a little
from noise, too: as in Akaike's criterion one nat for each of its p hyperparameters is subtracted, but at most 0.7 per
observation. Noise, and a source too small for its roughness, then gain nothing. Where errors of the values are known
the constant has them, too (``_constant``): which values are poor says nothing about the inputs. So it is with batches
(``_constant_in_batches``): that the rows of a batch are alike is no work of the inputs.

A few rows in many inputs cannot show on their own that they are not noise, but those of all sources together may: a
value is also predicted from all other values of all sources, pooled into one (``informative_together``), and what
counts is whichever of both says more for a source. Trust rises from 0 to 1 with the gain in standard
errors: sources of noise have around −1 of them, one in ten above 0.8.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headstart.data.dataset import Dataset
from headstart.data.thinning import representative
from headstart.gp.linalg import cholesky
from headstart.models.chain.layer import Layer
from headstart.tuning import AUTO_TUNING

_NO_ERROR = 1e-12
_SHIFTS = (0.0, *(4.0**k for k in range(-3, 6)))  # variances of shifts between batches, in those within


@dataclass(frozen=True, slots=True)
class Informative:
    """The gain of every source in nats per observation, its standard error, and the trust that follows."""

    gain: Float[Tensor, "*b s"]
    error: Float[Tensor, "*b s"]

    @property
    def trust(self) -> Float[Tensor, "*b s"]:
        """Φ(slope (z − midpoint)) with z = gain/error, and 0 up to the cutoff: 1 where the gain is beyond chance."""
        z = self.gain / self.error.clamp_min(_NO_ERROR)
        trust: Tensor = torch.special.ndtr(AUTO_TUNING.gate_trust_slope * (z - AUTO_TUNING.gate_trust_midpoint))
        return torch.where(trust > AUTO_TUNING.gate_trust_cutoff, trust, 0.0)

    def where(self, condition: Bool[Tensor, "*b s"], other: Informative) -> Informative:
        """These gains where the condition holds, those of ``other`` elsewhere."""
        return Informative(
            torch.where(condition, self.gain, other.gain), torch.where(condition, self.error, other.error)
        )

    @property
    def open(self) -> Bool[Tensor, "*b s"]:
        """Whether a source is trusted at all."""
        return self.trust > 0


def _log_normal(y: Tensor, mean: Tensor, var: Tensor) -> Tensor:
    return -0.5 * ((y - mean).square() / var + var.log() + math.log(2 * math.pi))


def _n_parameters(layer: Layer) -> Float[Tensor, "*b"]:
    """Hyperparameters of the process: lengthscales of the inputs it sees, one for all levels of a category."""
    seen = layer.params.lengthscale.isfinite()
    shared = seen.unsqueeze(-1) & (layer.params.lengthscale.unsqueeze(-1) == layer.params.lengthscale.unsqueeze(-2))
    alike = shared.to(layer.z.dtype).sum(-1).clamp_min(1.0)  # columns with this very lengthscale
    return (seen.to(layer.z.dtype) / alike).sum(-1) + 2


def _constant(
    y: Float[Tensor, "*b n"], error_var: Float[Tensor, "*b n"]
) -> tuple[Float[Tensor, "*b n"], Float[Tensor, "*b n"]]:
    """Mean and variance of every value as one of a constant's, y_j ~ N(c, s² + error_var_j), from the others.

    c is their weighted mean, and s² what makes them as far from it as they ought to be (Paule and Mandel 1982):
    Σ_{j≠i} (y_j − c)²/(s² + error_var_j) = n − 2, by bisection. Equal errors give the mean and the variance of all.
    """
    n = y.shape[-1]
    others = 1 - torch.eye(n, dtype=y.dtype, device=y.device)

    def weighted(s2: Float[Tensor, "*b n"]) -> tuple[Float[Tensor, "*b n n"], Float[Tensor, "*b n"]]:
        w = others / (s2.unsqueeze(-1) + error_var.unsqueeze(-2)).clamp_min(_NO_ERROR)
        return w, (w * y.unsqueeze(-2)).sum(-1) / w.sum(-1)

    low = torch.zeros_like(y)
    high = low + (y - y.mean(-1, keepdim=True)).square().sum(-1, keepdim=True)
    for _ in range(50):  # halvings
        s2 = 0.5 * (low + high)
        w, c = weighted(s2)
        too_far = (w * (y.unsqueeze(-2) - c.unsqueeze(-1)).square()).sum(-1) > n - 2
        low, high = torch.where(too_far, s2, low), torch.where(too_far, high, s2)
    w, c = weighted(low)
    return c, low + error_var + 1 / w.sum(-1)


def _constant_in_batches(source: Dataset) -> tuple[Float[Tensor, "*b n"], Float[Tensor, "*b n"]]:
    """Mean and variance of every value as one of a constant with a shift for every batch, from the others.

    y ~ N(c, s² C), C = I + ρ B with B the correlations of the shifts, c free, and ρ the most probable of ``_SHIFTS`` by
    the restricted likelihood. With P = C⁻¹ − C⁻¹ 1 1ᵀ C⁻¹/(1ᵀ C⁻¹ 1) value i is predicted from the others with

        y_i − mean = [P y]_i/P_ii        variance = s²/P_ii,  s² = (yᵀ P y − [P y]_i²/P_ii)/(n − 2)

    Known errors are in C in proportion to what the values vary by besides.
    """
    y, n, batch = source.y, source.n, source.batch
    assert batch is not None
    alike = source.shift_correlation(batch, batch)
    own = torch.ones_like(y)
    if source.error_var is not None:
        total, known = y.var(-1, keepdim=True), source.error_var
        own = own + known / torch.maximum(total - known.mean(-1, keepdim=True), 0.01 * total).clamp_min(_NO_ERROR)
    found, likely = [], []
    for rho in _SHIFTS:
        L = cholesky(torch.diag_embed(own) + rho * alike, of="The covariance of shifts between batches")
        inverse = torch.cholesky_inverse(L)
        one = inverse.sum(-1)
        information = one.sum(-1)
        P = inverse - one.unsqueeze(-1) * one.unsqueeze(-2) / information[..., None, None]
        Py, diagonal = (P @ y.unsqueeze(-1)).squeeze(-1), P.diagonal(dim1=-2, dim2=-1)
        square = (y * Py).sum(-1)
        log_det = 2 * L.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        likely.append(-0.5 * ((n - 1) * square.clamp_min(_NO_ERROR).log() + log_det + information.log()))
        var = (square.unsqueeze(-1) - Py.square() / diagonal).clamp_min(0.0) / (n - 2) / diagonal
        found.append(torch.stack([y - Py / diagonal, var]))
    best = torch.stack(likely).argmax(0)
    mean, var = torch.stack(found).gather(0, best[None, None, ..., None].expand(1, 2, *y.shape))[0]
    return mean, var.clamp_min(_NO_ERROR)


def _gain(layer: Layer, source: Dataset) -> tuple[Float[Tensor, "*b"], Float[Tensor, "*b"]]:
    """The gain of one source in nats per observation, and its standard error; of many rows from representative ones."""
    if source.n > AUTO_TUNING.gate_max_rows:
        source = representative(source, AUTO_TUNING.gate_max_rows)
        layer = layer.with_observations(source)
    return _summary(_row_gains(layer, source), _n_parameters(layer) / source.n)


def _row_gains(layer: Layer, source: Dataset) -> Float[Tensor, "*b n"]:
    """log p of every value, given the others, by the process over that by a constant."""
    y, n = source.y, source.n
    if n < 3:  # no spread without the point that is left out
        return torch.zeros_like(y)
    mean, var = layer.leave_one_out(y)
    total = y.sum(-1, keepdim=True)
    others = (total - y) / (n - 1)
    # Σ_{j≠i} (y_j − mean of the others)² = Σ_j (y_j − ȳ)² − n/(n − 1) (y_i − ȳ)²
    away = y - total / n
    spread = (away.square().sum(-1, keepdim=True) - n / (n - 1) * away.square()) / (n - 2)
    # a mean of n − 1 values is uncertain itself; a constant source has no spread to divide by
    constant = (spread * (1 + 1 / (n - 1))).clamp_min(_NO_ERROR)
    if source.has_shifts:
        others, constant = _constant_in_batches(source)
    elif source.error_var is not None:
        others, constant = _constant(y, source.error_var)
    # one outlier, a penalty for a failed run say, must not decide
    most = AUTO_TUNING.max_log_ratio
    return (_log_normal(y, mean, var) - _log_normal(y, others, constant)).clamp(-most, most)


def _summary(
    gains: Float[Tensor, "*b n"], penalty: Float[Tensor, "*b"]
) -> tuple[Float[Tensor, "*b"], Float[Tensor, "*b"]]:
    """The mean of the gains, less a penalty for what was fitted, and its standard error."""
    n = gains.shape[-1]
    if n < 3:
        return torch.zeros_like(penalty), torch.ones_like(penalty)
    return gains.mean(-1) - penalty.clamp_max(AUTO_TUNING.gate_max_complexity_penalty), gains.std(-1) / math.sqrt(n)


def informative(layers: Sequence[Layer], sources: Sequence[Dataset]) -> Informative:
    """The gains of all sources from their processes and their data, all in the same units."""
    gains, errors = zip(*map(_gain, layers, sources), strict=True)
    return Informative(torch.stack(gains, dim=-1), torch.stack(errors, dim=-1))


def informative_together(layer: Layer, pooled: Dataset, sizes: Sequence[int]) -> Informative:
    """The gains of sources that are parts, of these sizes, of one data set: every value predicted from all others.

    The constant is that of all values, too: it knows as much of their level and spread as the process does. A source is
    not trusted more than all of them together are.
    """
    every, penalty = _row_gains(layer, pooled), _n_parameters(layer) / pooled.n
    gains, errors = zip(*(_summary(part, penalty) for part in every.split(list(sizes), dim=-1)), strict=True)
    found = Informative(torch.stack(gains, dim=-1), torch.stack(errors, dim=-1))
    gain, error = (own.unsqueeze(-1).expand(found.gain.shape) for own in _summary(every, penalty))
    return found.where(Informative(gain, error).trust >= found.trust, Informative(gain, error))
