"""The value of a point where several things are measured: what it is expected to add, where the limits will hold.

    log mean_q [ Σ_cells Π_m (H_mq(u_m) − H_mq(l_m)) · Π_c P_cq ]

    H_mq(t) = Σ_k w_k E[max(t − ½σ − m_k(x), 0)]       what objective m is expected to be below t
    P_cq    = Σ_k w_k Φ((c − mean_k(x))/sd_k(x))       how probable it is that a measurement is within the limit c

over the cells beyond the front (decide.several.front), the members k of every outcome's mixture and draws q of
awaited results. As in decide.acquisition m(x) is what the mean at x will be once x is measured, with variance
var²/(var + σ²), and an improvement counts by what exceeds half a measurement's error σ. sd includes the noise: a
limit is to hold for what will be measured.

Outcomes are independent, so the mean of a product is the product of the means, and that over the members of each
outcome is exact: all combinations of members are averaged at the cost of each of them once. Of several objectives H is
weighed so that the volume is that in the user's units (decide.front). Normal distributions with
the moments of the mixtures found fronts as good on small problems, in twice the time. For one objective the sum over
the cells is its expected improvement, for two and three the expected hypervolume improvement.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from botorch.acquisition.analytic import _log_ei_helper
from jaxtyping import Float
from torch import Tensor

from headstart.decide.acquisition import LEFT, MARGIN, log_less
from headstart.decide.front import Cells
from headstart.gp.linalg import LEAST_VAR

_CLOSEST = -1e-12  # of the logarithms of two levels: a cell between equal ones is empty


@dataclass(frozen=True, slots=True)
class Seen:
    """What the members of an outcome predict at n points, in model units, given each of q draws of awaited results."""

    mean: Float[Tensor, "k q n"]
    var: Float[Tensor, "k n"]
    noise_var: Float[Tensor, "k"]
    log_weights: Float[Tensor, "k"]
    floor: Float[Tensor, ""] | None = None  # the lowest value that there can be


def log_improvement(seen: Seen, levels: Float[Tensor, "q t"]) -> Float[Tensor, "q t n"]:
    """log H: how far below every level, and not below its floor, the objective is expected to be."""
    var, noise = seen.var.clamp_min(LEAST_VAR), seen.noise_var.unsqueeze(-1)
    sd = (var / (var + noise).sqrt())[:, None, None, :]
    target = levels[None, :, :, None] - MARGIN * noise.sqrt()[:, None, None, :]
    log_h: Tensor = _log_ei_helper((target - seen.mean.unsqueeze(-2)) / sd) + sd.log()
    if seen.floor is not None:
        least = seen.floor - LEFT - MARGIN * noise.sqrt()[:, None, None, :]
        log_h = log_less(log_h, _log_ei_helper((least - seen.mean.unsqueeze(-2)) / sd) + sd.log())
    return torch.logsumexp(log_h + seen.log_weights[:, None, None, None], dim=0) if len(log_h) > 1 else log_h[0]


def log_within(seen: Seen, bound: Float[Tensor, ""]) -> Float[Tensor, "q n"]:
    """log P: how probable it is that a measurement is at most ``bound``."""
    sd = (seen.var.clamp_min(LEAST_VAR) + seen.noise_var.unsqueeze(-1)).sqrt().unsqueeze(-2)
    every: Tensor = torch.special.log_ndtr((bound - seen.mean) / sd)
    return torch.logsumexp(every + seen.log_weights[:, None, None], dim=0)


def log_gain(goals: Sequence[Seen], cells: Cells) -> Float[Tensor, "q n"]:
    """log Σ_cells Π_m (H_m(u_m) − H_m(l_m)) at every point."""
    n_fronts, n_cells = cells.there.shape
    total: Tensor | None = None
    for m, seen in enumerate(goals):
        if cells.weights is None:
            log_h = log_improvement(seen, cells.levels[m])
        else:
            log_h = cells.weights[m].weighted(log_improvement(seen, cells.weights[m].levels))
        n = log_h.shape[-1]
        if n_fronts == n_cells == 1 and cells.lower[m, 0, 0] < 0:
            part = log_h[:, cells.upper[m, 0]]
        else:
            log_h = log_h.expand(max(n_fronts, len(log_h)), -1, -1)
            high = _take(log_h, cells.upper[m])
            open_below = (cells.lower[m] < 0).unsqueeze(-1).expand(-1, -1, n)
            if bool(open_below.all()):
                part = high
            else:
                low = _take(log_h, cells.lower[m].clamp_min(0))
                gap = torch.where(open_below, -1.0, low - high).clamp_max(_CLOSEST)
                part = high + torch.where(open_below, 0.0, torch.log(-torch.expm1(gap)))
        total = part if total is None else total + part
    assert total is not None
    total = total.masked_fill(~cells.there.unsqueeze(-1), -torch.inf)
    return torch.logsumexp(total, dim=-2) if total.shape[-2] > 1 else total.squeeze(-2)


def log_mean(values: Float[Tensor, "q n"]) -> Float[Tensor, "n"]:
    """The logarithm of the mean over the draws."""
    return values[0] if len(values) == 1 else torch.logsumexp(values, dim=0) - math.log(len(values))


def _take(log_h: Float[Tensor, "q t n"], index: Tensor) -> Float[Tensor, "q c n"]:
    return log_h.gather(-2, index.unsqueeze(-1).expand(-1, -1, log_h.shape[-1]))
