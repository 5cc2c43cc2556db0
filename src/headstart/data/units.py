"""Affine output units: y in the user's units = offset + scale · y in model units.

Data enter model units once and predictions leave them once; no model rescales in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Self

import torch
from jaxtyping import Float
from torch import Tensor

from headstart.data.dataset import Dataset
from headstart.tuning import PLAIN_TUNING

FEW = 5  # fewer values have no quartiles to speak of
ROUNDING = 1e-13  # relative: values that differ by less are equal, and a spread below it is that of constant values
LARGEST = 1e300  # what overflows becomes this
_QUARTILES = (0.25, 0.5, 0.75)
_TO_NORMAL = 1.349  # the quartiles of a normal distribution are this many standard deviations apart


class OutputUnits(Enum):
    """Where the model units come from.

        SHARED      one affine map for all tasks, from the sources; every task's offset is a parameter of the model
        PER_LEVEL   the paper: every level standardises its own residual

    With SHARED, predictions follow any change of units exactly. With PER_LEVEL and one target point, whose spread is
    unknown, they depend on the units of y.
    """

    SHARED = "shared"
    PER_LEVEL = "per level"


class OutputMap(Enum):
    """Whether outputs go through a monotone map before they meet a model (data.warp).

        LEARNT    one that makes the tasks' values more like normal ones, every task in its own units
        NONE      the paper: values as they are

    A learnt map also pulls in outliers.
    """

    LEARNT = "learnt"
    NONE = "none"


def spread_of(y: Float[Tensor, "*b n"], mean: Float[Tensor, "*b"]) -> Float[Tensor, "*b"]:
    """The standard deviation around ``mean``, and 0 where y is constant up to rounding."""
    if y.shape[-1] == 0:
        return torch.zeros_like(mean)
    size = y.abs().amax(-1)
    safe = torch.where(size > 0, size, torch.ones_like(size))  # squares of 1e-200 would vanish
    spread = ((y - mean.unsqueeze(-1)) / safe.unsqueeze(-1)).square().mean(-1).sqrt() * safe
    return torch.where(spread > ROUNDING * size, spread, torch.zeros_like(spread))


def weighted_quantile(y: Float[Tensor, "*b n"], counts: Float[Tensor, "*b n"], q: float) -> Float[Tensor, "*b"]:
    """The value below which the share q of the counts lies; a value's own count lies half below it."""
    ordered, index = y.sort(-1)
    c = counts.gather(-1, index)
    below = (c.cumsum(-1) - 0.5 * c) / c.sum(-1, keepdim=True)
    first = (below < q).sum(-1, keepdim=True).clamp_max(y.shape[-1] - 1)
    return ordered.gather(-1, first).squeeze(-1)


def robust_spread(
    y: Float[Tensor, "*b n"],
    *,
    rounding: Float[Tensor, "*b"] | None = None,
    counts: Float[Tensor, "*b n"] | None = None,
) -> Float[Tensor, "*b"]:
    """Standard deviation from the quartiles; from all values where those are equal, or values are few.

    It is at most ``max_spread_ratio`` times that of the lower half, and at least what it is when a plateau, a value
    that a quarter of all or more have, counts once: a score that is 0 nearly everywhere has the spread of its
    successes, and not that of a slip among them. ``counts`` are weights of the values, by default equal. Quartiles that
    differ by no more than ``rounding`` are equal; by default it is that of the quartiles.
    """
    every = spread_of(y, y.mean(-1))
    if y.shape[-1] < FEW:
        return every
    if counts is None:
        quartiles = [y.quantile(q, dim=-1) for q in _QUARTILES]
    else:
        quartiles = [weighted_quantile(y, counts, q) for q in _QUARTILES]
    rounding = ROUNDING * torch.maximum(quartiles[0].abs(), quartiles[2].abs()) if rounding is None else rounding
    once, between = _plateaus_once(y, rounding), _between(quartiles, rounding)
    flat = (once < 1).any(-1) & (once.sum(-1) >= FEW)
    weights = once if counts is None else once * counts
    without = _between([weighted_quantile(y, weights, q) for q in _QUARTILES], rounding)
    between = torch.where(flat, torch.maximum(between, without), between)
    return torch.where(between > rounding, between, every)


def _between(quartiles: Sequence[Float[Tensor, "*b"]], rounding: Float[Tensor, "*b"]) -> Float[Tensor, "*b"]:
    """The standard deviation of a normal distribution with these quartiles, limited by that of its lower half."""
    low, middle, high = quartiles
    between = high / _TO_NORMAL - low / _TO_NORMAL
    good = (middle - low) / (_TO_NORMAL / 2)
    return torch.where(good > rounding, torch.minimum(between, PLAIN_TUNING.max_spread_ratio * good), between)


def _plateaus_once(y: Float[Tensor, "*b n"], rounding: Float[Tensor, "*b"]) -> Float[Tensor, "*b n"]:
    """Weights of the values: 1/k each where k values, a quarter of all or more, are equal; 1 of all others."""
    ordered, index = y.sort(-1)
    run = torch.cat([torch.zeros_like(index[..., :1]), (ordered.diff() > rounding.unsqueeze(-1)).cumsum(-1)], dim=-1)
    size = torch.zeros_like(y).scatter_add(-1, run, torch.ones_like(y)).gather(-1, run)
    weight = torch.where(4 * size >= y.shape[-1], 1 / size, torch.ones_like(y))
    return torch.zeros_like(y).scatter(-1, index, weight)


@dataclass(frozen=True, slots=True)
class Units:
    """Affine output units, y = offset + scale · (y in model units).

    Args:
        offset: One per problem.
        scale: One per problem; 0 where it is not known yet, for all values were equal.
    """

    offset: Float[Tensor, "*b"]
    scale: Float[Tensor, "*b"]

    @classmethod
    def identity(cls, like: Dataset) -> Self:
        """Units in which model units are the user's.

        Args:
            like: A data set of the problems.

        Returns:
            Offset 0 and scale 1.
        """
        zero = like.X.new_zeros(like.batch_shape)
        return cls(zero, torch.ones_like(zero))

    @classmethod
    def of(cls, tasks: Sequence[Dataset]) -> Self:
        """Mean of all values, and root mean square of the tasks' own spreads: their levels do not widen the scale.

        Args:
            tasks: The tasks, at least one.

        Returns:
            The units; where every task is constant the scale is the spread between the tasks, 0 if there is none.
        """
        total = sum(task.n for task in tasks)
        if total == 0:
            zero = tasks[0].X.new_zeros(tasks[0].batch_shape)
            return cls(zero, zero)
        together = cls.pooled(tasks)
        spreads = torch.stack([spread_of(t.y, t.y.mean(-1)) * (t.n / total) ** 0.5 for t in tasks if t.n > 0])
        within = torch.linalg.vector_norm(spreads, dim=0)
        return cls(together.offset, torch.where(within > 0, within, together.scale))

    @classmethod
    def pooled(cls, tasks: Sequence[Dataset]) -> Self:
        """Mean and standard deviation of all values together: the paper's normalisation of a joint model.

        Args:
            tasks: The tasks, at least one with results.

        Returns:
            The units.
        """
        everything = torch.cat([task.y for task in tasks], dim=-1)
        offset = everything.mean(-1)
        return cls(offset, spread_of(everything, offset))

    def completed(self, target: Dataset) -> Units:
        """Replace an unknown scale by the target's spread, or by 1 where that is unknown too.

        While the scale is unknown all source values equal the offset, so they are 0 in any units.

        Args:
            target: The target's results.

        Returns:
            Units of positive scale.
        """
        if bool((self.scale > 0).all()):
            return self
        own = spread_of(target.y, target.y.mean(-1)) if target.n > 1 else torch.zeros_like(self.scale)
        scale = torch.where(self.scale > 0, self.scale, own)
        return Units(self.offset, torch.where(scale > 0, scale, torch.ones_like(scale)))

    def inward(self, task: Dataset) -> Dataset:
        """Convert a task to model units.

        Args:
            task: Results and their known variances in the user's units.

        Returns:
            The task with (y − offset)/scale, and variances divided by scale².
        """
        scale = torch.where(self.scale > 0, self.scale, torch.ones_like(self.scale)).unsqueeze(-1)
        y = (task.y - self.offset.unsqueeze(-1)) / scale
        # divided twice, for the square of a small scale may underflow
        error_var = None if task.error_var is None else (task.error_var / scale / scale).clamp_max(LARGEST)
        return replace(task, y=y, error_var=error_var)
