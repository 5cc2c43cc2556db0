"""Fronts: which results are best in some way, and the part of space that would be better.

A point is dominated by another that is no worse in any objective and better in one. The *front* are the points that
none dominates. Given a reference point r, which nobody wants to be worse than, what a further result y would add to
the volume between the front and r is

    Σ_cells Π_m (u_m − max(l_m, y_m))₊

over the cells [l, u] into which the part of {y < r} that no point of the front dominates is divided. Of a single
objective there is one cell, below the lowest value.
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

from headstart.decide.several.worth import Worth

# How far beyond the front's worst values the reference point lies, as a share of the front's range
_BEYOND = 0.1


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
    """What would be better than each of several fronts: cells between levels of every objective.

    ``levels`` (m, F, T) are the levels of objective m for front F, ``upper`` and ``lower`` (m, F, C) which of them
    bound a cell; −1 is no bound at all. Where there are fewer cells than C, ``there`` is false. Levels are in model
    units; ``worth`` says what they are in the user's.
    """

    levels: Float[Tensor, "m F T"]
    upper: Int[Tensor, "m F C"]
    lower: Int[Tensor, "m F C"]
    there: Bool[Tensor, "F C"]
    worth: tuple[Worth, ...] | None = None  # what steps between levels count; None: as much as they are

    @classmethod
    def below(cls, values: Float[Tensor, "F"]) -> Self:
        """Of a single objective: whatever is lower than these."""
        index = torch.zeros(1, len(values), 1, dtype=torch.int64)
        return cls(values.reshape(1, -1, 1), index, index - 1, torch.ones(len(values), 1, dtype=torch.bool))

    @classmethod
    def beyond(
        cls,
        fronts: Sequence[Float[Tensor, "_ m"]],
        reference: Float[Tensor, "m"],
        outward: Sequence[Callable[[Tensor], Tensor]] | None = None,
    ) -> Self:
        """Of several objectives: what none of a front's points dominates, and is better than the reference.

        ``outward`` are the ways to the user's units, in which the volume is to be had; else it is in model units.
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
        worth = None if outward is None else tuple(Worth.of(levels[i], way) for i, way in enumerate(outward))
        return cls(levels, upper_index, lower_index, there, worth)


def _unique(lower: Float[Tensor, "c"], upper: Float[Tensor, "c"]) -> Float[Tensor, "t"]:
    """The levels that bound some cell, in order."""
    both = torch.cat([lower, upper])
    levels: Tensor = both[both.isfinite()].unique()
    return levels
