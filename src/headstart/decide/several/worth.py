"""How much it counts that an objective falls from one level to the next: as much as in the user's units.

A model sees results through a monotone map (data.warp), on whose other side they are alike in size. A volume beyond a
front is to be had in the units that were measured: an objective whose map draws its small values apart would otherwise
be improved there for ever. What is expected below a level t is, with g the way to the user's units,

    ∫₋∞^t g′(s) P(m ≤ s) ds  =  Σ_j g′_j (H(t_j) − H(t_j₋₁))        H(t) = E[max(t − m, 0)]

with g′_j the mean slope between neighbouring levels, so that cells have exactly the size that they have for the user.
Below the lowest level further ones follow g on its way down.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import torch
from jaxtyping import Float
from torch import Tensor

# Levels below the lowest of a front, in model units: results vary by about 1
_BELOW = (8.0, 4.0, 2.0, 1.0, 0.5, 0.25)
_LEAST_SLOPE = 1e-12  # of the largest
_CLOSEST = -1e-12  # of the logarithms of two levels: between equal ones there is nothing


@dataclass(frozen=True, slots=True)
class Worth:
    """The levels of an objective for F fronts, with some below them, and the slopes between neighbours."""

    levels: Float[Tensor, "F e"]
    log_slope: Float[Tensor, "F e"]

    @classmethod
    def of(cls, levels: Float[Tensor, "F T"], outward: Callable[[Tensor], Tensor]) -> Self:
        """Of levels in ascending order, equal ones at the end; ``outward`` is the way to the user's units."""
        below = levels[:, :1] - levels.new_tensor(_BELOW)
        every = torch.cat([below, levels], dim=-1)
        step, worth = every.diff(dim=-1), outward(every).diff(dim=-1)
        slope = torch.where(step > 0, worth / torch.where(step > 0, step, 1.0), 1.0)
        slope = torch.cat([slope[:, :1], slope], dim=-1).clamp_min(0.0)
        return cls(every, slope.clamp_min(_LEAST_SLOPE * slope.amax()).log())

    def weighed(self, log_h: Float[Tensor, "q e n"]) -> Float[Tensor, "q t n"]:
        """What is expected below every level of the front, in the user's units, from log H at all of them."""
        low, high = log_h[:, :-1], log_h[:, 1:]
        steps = high + torch.log(-torch.expm1((low - high).clamp_max(_CLOSEST)))
        every = torch.cat([log_h[:, :1], steps], dim=1) + self.log_slope.unsqueeze(-1)
        return torch.logcumsumexp(every, dim=1)[:, len(_BELOW) :]
