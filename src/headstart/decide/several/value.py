"""The acquisition value over several outcomes as a search wants it: for any predictors, and by surfaces with slopes.

There is one formula (decide.several.gain). By surfaces its derivatives by every mean and variance, which are few, are
left to automatic differentiation, and go from there to x in closed form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from headstart.decide.front import Cells
from headstart.decide.several.gain import Seen, log_gain, log_mean, log_within
from headstart.decide.several.members import Panel

Array = NDArray[np.float64]

_TOGETHER = 256  # points whose cells and members stay in the processor's cache


@dataclass(frozen=True, slots=True)
class SeveralValue:
    """log of what a point is expected to add, where the limits hold: the head of decide.several.gain.

    ``share`` is how much the gain counts beside the limits, as a power: 1 once a result within the limits is known.
    """

    goals: tuple[Panel, ...]
    cells: Cells
    limits: tuple[Panel, ...] = ()
    bounds: tuple[Float[Tensor, ""], ...] = ()
    share: float = 1.0

    @property
    def panels(self) -> tuple[Panel, ...]:
        """Those of the objectives, then those of the limits."""
        return (*self.goals, *self.limits)

    def of(self, seen: Sequence[Seen]) -> Float[Tensor, "n"]:
        """The value, from what every outcome's members predict."""
        m = len(self.goals)
        total = self.share * log_gain(seen[:m], self.cells)
        for own, bound in zip(seen[m:], self.bounds, strict=True):
            total = total + log_within(own, bound)
        return log_mean(total)

    def __call__(self, X: Float[Tensor, "n d"]) -> Float[Tensor, "n"]:
        """The value at every row of X, with its gradient."""
        parts = X.split(_TOGETHER, dim=-2)
        return torch.cat([self.of([panel.ask(part) for panel in self.panels]) for part in parts], dim=-1)

    def slopes(self) -> SeveralSlopes | None:
        """By surfaces, if every member of every outcome has one."""
        if any(panel.surfaces is None for panel in self.panels):
            return None
        return SeveralSlopes(self)


@dataclass(frozen=True, slots=True)
class SeveralSlopes:
    """The same value by surfaces, with its gradient."""

    value: SeveralValue

    def __call__(self, X: Float[Tensor, "n d"]) -> Float[Tensor, "n"]:
        """The value at every row of X."""
        with torch.no_grad():
            parts = [part.numpy() for part in X.split(_TOGETHER, dim=-2)]
            found = [self.value.of([panel.look(part) for panel in self.value.panels]) for part in parts]
        return torch.cat(found, dim=-1)

    def climb(self, X: Float[Array, "n d"]) -> tuple[Float[Array, "n"], Float[Array, "n d"]]:
        """The value at every row of X, and its gradient."""
        touched = [panel.touch(X) for panel in self.value.panels]
        with torch.enable_grad():
            seen = [replace(own, mean=own.mean.requires_grad_(), var=own.var.requires_grad_()) for own, _ in touched]
            values = self.value.of(seen)
            leaves = [leaf for own in seen for leaf in (own.mean, own.var)]
            slopes = [slope.numpy() for slope in torch.autograd.grad(values.sum(), leaves)]
        gradient = np.zeros_like(X)
        for i, (panel, (_, at)) in enumerate(zip(self.value.panels, touched, strict=True)):
            assert panel.surfaces is not None
            for k, surface in enumerate(panel.surfaces):
                gradient += surface.gradient(at[k], slopes[2 * i][k], slopes[2 * i + 1][k])
        return values.detach().numpy(), gradient
