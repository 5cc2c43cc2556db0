"""Pareto fronts, their reference point, and the cells of the space that a front does not dominate.

A point is dominated by another that is no worse in any objective and better in one. The *front* are the points that
none dominates. Given a reference point r, a further result y adds to the volume between the front and r

    Σ_cells Π_m (u_m − max(l_m, y_m))₊

over the cells [l, u] into which the part of {y < r} that no point of the front dominates is divided. Of a single
objective there is one cell, below the lowest value.

The volume is measured in the user's units (``VolumeWeights``). A model sees results through a monotone map (data.warp);
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

# Levels below the lowest of a front, in model units: results vary by about 1
_LEVELS_BELOW = (8.0, 4.0, 2.0, 1.0, 0.5, 0.25)
_LEAST_SLOPE = 1e-12  # of the largest
_CLOSEST = -1e-12  # of the logarithms of two levels: between equal ones there is nothing
# How far beyond the front's worst values the reference point lies, as a share of the front's range
_BEYOND = 0.1


@dataclass(frozen=True, slots=True)
class VolumeWeights:
    """Weights that turn expected improvement below the levels of F fronts into volume in the user's units."""

    levels: Float[Tensor, "F e"]
    log_slope: Float[Tensor, "F e"]

    @classmethod
    def of(cls, levels: Float[Tensor, "F T"], outward: Callable[[Tensor], Tensor]) -> Self:
        """Of levels in ascending order, equal ones at the end; ``outward`` is the map to the user's units."""
        below = levels[:, :1] - levels.new_tensor(_LEVELS_BELOW)
        every = torch.cat([below, levels], dim=-1)
        step, worth = every.diff(dim=-1), outward(every).diff(dim=-1)
        slope = torch.where(step > 0, worth / torch.where(step > 0, step, 1.0), 1.0)
        slope = torch.cat([slope[:, :1], slope], dim=-1).clamp_min(0.0)
        return cls(every, slope.clamp_min(_LEAST_SLOPE * slope.amax()).log())

    def weighted(self, log_h: Float[Tensor, "q e n"]) -> Float[Tensor, "q t n"]:
        """The expected volume below every level of the front, in the user's units, from log H at all levels."""
        low, high = log_h[:, :-1], log_h[:, 1:]
        steps = high + torch.log(-torch.expm1((low - high).clamp_max(_CLOSEST)))
        every = torch.cat([log_h[:, :1], steps], dim=1) + self.log_slope.unsqueeze(-1)
        return torch.logcumsumexp(every, dim=1)[:, len(_LEVELS_BELOW) :]


def front_of(Y: Float[Tensor, "n m"]) -> Bool[Tensor, "n"]:
    """Which rows are dominated by no other; smaller is better."""
    found: Tensor = is_non_dominated(-Y)
    return found


def reference_beyond(Y: Float[Tensor, "n m"], scale: Float[Tensor, "m"]) -> Float[Tensor, "m"]:
    """The worst values on the front of Y, and a tenth of its range further; of a point alone a tenth of ``scale``."""
    best = Y[front_of(Y)]
    span = best.amax(0) - best.amin(0)
    return best.amax(0) + _BEYOND * torch.where(span > 0, span, scale)


@dataclass(frozen=True, slots=True)
class Cells:
    """Cells between levels of every objective that are not dominated by a front, for each of F fronts.

    ``levels`` (m, F, T) are the levels of objective m for front F, ``upper`` and ``lower`` (m, F, C) which of them
    bound a cell; −1 is no bound at all. Where there are fewer cells than C, ``there`` is false. Levels are in model
    units; ``weights`` turn them into the user's.
    """

    levels: Float[Tensor, "m F T"]
    upper: Int[Tensor, "m F C"]
    lower: Int[Tensor, "m F C"]
    there: Bool[Tensor, "F C"]
    weights: tuple[VolumeWeights, ...] | None = None  # None: the volume is in model units

    @classmethod
    def below(cls, values: Float[Tensor, "F"]) -> Self:
        """The cell below each of these values of a single objective."""
        index = torch.zeros(1, len(values), 1, dtype=torch.int64)
        return cls(values.reshape(1, -1, 1), index, index - 1, torch.ones(len(values), 1, dtype=torch.bool))

    @classmethod
    def beyond(
        cls,
        fronts: Sequence[Float[Tensor, "_ m"]],
        reference: Float[Tensor, "m"],
        outward: Sequence[Callable[[Tensor], Tensor]] | None = None,
    ) -> Self:
        """The cells that no point of a front dominates and that are better than the reference.

        ``outward`` are the maps to the user's units, in which the volume is measured; by default it is in model units.
        """
        if len(reference) == 1:
            return cls.below(torch.stack([torch.cat([front[:, 0], reference]).amin() for front in fronts]))
        every = []
        for front in fronts:
            bounds = FastNondominatedPartitioning(ref_point=-reference, Y=-front).get_hypercell_bounds()
            every.append((-bounds[1], -bounds[0]))  # BoTorch's are to be maximised
        m, F, C = len(reference), len(fronts), max(len(lower) for lower, _ in every)
        found = [[_unique(lower[:, i], upper[:, i]) for i in range(m)] for lower, upper in every]
        T = max(len(own) for front in found for own in front)
        levels = reference.new_zeros(m, F, T)
        upper_index = torch.zeros(m, F, C, dtype=torch.int64)
        lower_index = torch.full((m, F, C), -1)
        there = torch.zeros(F, C, dtype=torch.bool)
        for f, own in enumerate(found):
            (low, high), n = every[f], len(every[f][0])
            there[f, :n] = True
            for i, values in enumerate(own):
                levels[i, f, : len(values)] = values
                levels[i, f, len(values) :] = values[-1]
                upper_index[i, f, :n] = torch.searchsorted(values, high[:, i].contiguous())
                places = torch.searchsorted(values, low[:, i].contiguous())
                lower_index[i, f, :n] = torch.where(low[:, i].isinf(), -1, places)
        weights = None if outward is None else tuple(VolumeWeights.of(levels[i], way) for i, way in enumerate(outward))
        return cls(levels, upper_index, lower_index, there, weights)


def _unique(lower: Float[Tensor, "c"], upper: Float[Tensor, "c"]) -> Float[Tensor, "t"]:
    """The levels that bound some cell, in order."""
    both = torch.cat([lower, upper])
    levels: Tensor = both[both.isfinite()].unique()
    return levels
