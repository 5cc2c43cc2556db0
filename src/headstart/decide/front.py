"""Pareto fronts, their reference point, and the cells of the space that a front does not dominate.

A point is dominated by another that is no worse in any objective and better in one. The *front* are the points that
none dominates. Given a reference point r, a further result y adds to the volume between the front and r

    Σ_cells Π_m (u_m − max(l_m, y_m))₊

over the cells [l, u] into which the part of {y < r} that no point of the front dominates is divided.

The volume is measured in the user's units. A model sees results through a monotone map (data.warp);
in model units an objective whose map stretches its small values would be improved there for ever. With g the map to the
user's units, the expected volume below a level t is

    ∫₋∞^t g′(s) P(m ≤ s) ds  =  Σ_j g′_j (H(t_j) − H(t_j₋₁))        H(t) = E[max(t − m, 0)]

with g′_j the mean slope between neighbouring levels, so that cells have exactly the size that they have for the user.
Below the lowest level further ones follow g on its way down.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import torch
from botorch.utils.multi_objective.box_decompositions.non_dominated import FastNondominatedPartitioning
from botorch.utils.multi_objective.pareto import is_non_dominated
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headstart.decide.acquisition import CLOSEST
from headstart.tuning import PLAIN_TUNING

_LEVELS_BELOW = (8.0, 4.0, 2.0, 1.0, 0.5, 0.25)  # the lowest of a front, in model units: results vary by about 1


def front_of(Y: Float[Tensor, "n m"]) -> Bool[Tensor, "n"]:
    """Which rows are dominated by no other; smaller is better."""
    found: Tensor = is_non_dominated(-Y)
    return found


def reference_beyond(Y: Float[Tensor, "n m"], scale: Float[Tensor, "m"]) -> Float[Tensor, "m"]:
    """The worst values on the front of Y, and a tenth of its range further; of a point alone a tenth of ``scale``."""
    best = Y[front_of(Y)]
    span = best.amax(0) - best.amin(0)
    return best.amax(0) + PLAIN_TUNING.reference_beyond * torch.where(span > 0, span, scale)


@dataclass(frozen=True, slots=True)
class Cells:
    """Cells between levels of every objective that are not dominated by a front, for each of F fronts.

    ``levels`` (m, F, t) are the levels of every objective in model units, ascending: some below the front, those of the
    front, and the last again where another front has more; ``log_slope`` is log g′ up to each of them. ``upper`` and
    ``lower`` (m, F, C) are the positions of the levels that bound a cell; −1 is no bound at all. Where there are fewer
    cells than C, ``there`` is false.
    """

    levels: Float[Tensor, "m F t"]
    log_slope: Float[Tensor, "m F t"]
    upper: Int[Tensor, "m F C"]
    lower: Int[Tensor, "m F C"]
    there: Bool[Tensor, "F C"]

    @classmethod
    def beyond(
        cls,
        fronts: Sequence[Float[Tensor, "_ m"]],
        reference: Float[Tensor, "m"],
        outward: Sequence[Callable[[Tensor], Tensor]],
    ) -> Self:
        """The cells that no point of a front dominates and that are better than the reference.

        ``outward`` are the maps g of the objectives to the user's units, in which the volume is measured.
        """
        found = []
        for front in fronts:
            bounds = FastNondominatedPartitioning(ref_point=-reference, Y=-front).get_hypercell_bounds()
            found.append((-bounds[1], -bounds[0]))  # BoTorch's are to be maximised
        m, F, C = len(reference), len(fronts), max(len(low) for low, _ in found)
        upper, lower = torch.zeros(m, F, C, dtype=torch.int64), torch.full((m, F, C), -1)
        there, below, levels = torch.zeros(F, C, dtype=torch.bool), reference.new_tensor(_LEVELS_BELOW), []
        for f, (low, high) in enumerate(found):
            there[f, : len(low)] = True
            for i in range(m):
                own = torch.cat([low[:, i], high[:, i]])
                own = own[own.isfinite()].unique()
                own = torch.cat([own[0] - below, own])
                upper[i, f, : len(low)] = torch.searchsorted(own, high[:, i].contiguous())
                position = torch.searchsorted(own, low[:, i].contiguous())
                lower[i, f, : len(low)] = torch.where(low[:, i].isinf(), -1, position)
                levels.append(own)
        T = max(len(own) for own in levels)
        padded = torch.stack([torch.cat([own, own[-1:].expand(T - len(own))]) for own in levels])
        by_objective = padded.unflatten(0, (F, m)).movedim(1, 0)
        slopes = torch.stack([log_slopes(own, g) for own, g in zip(by_objective, outward, strict=True)])
        return cls(by_objective, slopes, upper, lower, there)

    def log_volume(self, log_h: Sequence[Float[Tensor, "F t n"]]) -> Float[Tensor, "F n"]:
        """log Σ_cells Π_m (H_m(u_m) − H_m(l_m)) in the user's units, from every objective's log H at the levels."""
        total: Float[Tensor, "F C n"] | float = 0.0
        for own, log_slope, upper, lower in zip(log_h, self.log_slope, self.upper, self.lower, strict=True):
            log_volume = log_volume_below(own, log_slope)
            part, is_open = _take(log_volume, upper), (lower < 0).unsqueeze(-1)
            if not bool(is_open.all()):
                low = _take(log_volume, lower.clamp_min(0)).masked_fill(is_open, -torch.inf)
                part = _log_difference(part, low)
            total = total + part
        assert isinstance(total, Tensor)
        return torch.logsumexp(total.masked_fill(~self.there.unsqueeze(-1), -torch.inf), dim=-2)


def log_volume_below(log_h: Float[Tensor, "F t n"], log_slope: Float[Tensor, "F t"]) -> Float[Tensor, "F t n"]:
    """The logarithm of the expected volume below every level, in the user's units, from log H at all levels."""
    steps = _log_difference(log_h[:, 1:], log_h[:, :-1])
    return torch.logcumsumexp(torch.cat([log_h[:, :1], steps], dim=1) + log_slope.unsqueeze(-1), dim=1)


def log_slopes(levels: Float[Tensor, "F t"], outward: Callable[[Tensor], Tensor]) -> Float[Tensor, "F t"]:
    """log g′ between every level and the one before it; the first as the second."""
    step, worth = levels.diff(dim=-1), outward(levels).diff(dim=-1)
    slope = torch.where(step > 0, worth / torch.where(step > 0, step, 1.0), 1.0).clamp_min(0.0)
    slope = torch.cat([slope[:, :1], slope], dim=-1)
    return slope.clamp_min(-CLOSEST * slope.amax()).log()


def _log_difference(high: Float[Tensor, "*n"], low: Float[Tensor, "*n"]) -> Float[Tensor, "*n"]:
    """log(exp(high) − exp(low)), where high ≥ low but for rounding."""
    return high + torch.log(-torch.expm1((low - high).clamp_max(CLOSEST)))


def _take(values: Float[Tensor, "F t n"], index: Int[Tensor, "F C"]) -> Float[Tensor, "F C n"]:
    return values.gather(-2, index.unsqueeze(-1).expand(-1, -1, values.shape[-1]))
