"""Careful limits: the points that are suggested first are expected to be good, or at least no worse than most.

Expected improvement goes where something good cannot be excluded, and what the least sure member of a mixture cannot
exclude is often where all others know it to be bad. So points are left out whose expected value, by the mixture, is
beyond a limit between the best and a typical one, the median over the points that are compared:

    a point alone, by AUTO, with fewer than 5 results two fifths of the way from the best to a typical one, at most
    the same, with fewer than 8                       no worse than typical
    a point of a batch                                a fifth of the way from the best to a typical one, at most;
                                                      one in four no worse than typical
    a point of a batch without sources                no worse than typical

Once the best points of a batch are awaited, the improvement that is left is one that no member expects, and the rest
of the batch would go to the corners of the box. One in four may be further out: where the sources are wrong, that one
finds out. With several objectives a point has to be good enough in one of them; where outcomes are limited, the points
that are compared are those where the limits are likely to hold.

AUTO's very first point is the one with the lowest mean (``opening``). There is nothing to improve on yet but what is
expected, so that expected improvement would only ask where AUTO is least sure.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headstart.decide.acquisition import Acquisition
from headstart.decide.members import Members
from headstart.models.posterior import TransferPosterior
from headstart.tuning import AUTO_TUNING, PLAIN_TUNING

# A point beyond the limit loses this much of its value, a logarithm
PENALTY = 1e6


@dataclass(frozen=True, slots=True)
class MeanLimit:
    """The points that are expected to be below the limit of at least one objective."""

    goals: tuple[Members, ...]
    limits: tuple[Float[Tensor, ""], ...]

    def __call__(self, X: Float[Tensor, "n d"]) -> Bool[Tensor, "n"]:
        """Whether each row of X may be suggested."""
        below = [own.means(X) <= limit for own, limit in zip(self.goals, self.limits, strict=True)]
        return torch.stack(below).any(0)


def mean_limit(
    posteriors: tuple[TransferPosterior, ...],
    goals: tuple[Members, ...],
    X: Float[Tensor, "n d"],
    awaited: Float[Tensor, "p d"],
) -> MeanLimit | None:
    """The limit among the points X that are compared, for the next point after those awaited; None for no limit."""
    every = [_share(posterior, len(awaited)) for posterior in posteriors]
    shares = [share for share in every if share is not None]
    if len(shares) < len(every):
        return None
    compared = torch.cat([X, awaited], dim=-2)
    limits = []
    for own, share in zip(goals, shares, strict=True):
        mean = own.means(compared)
        # all the way is the median to the last bit
        limits.append(torch.lerp(mean.amin(), mean.quantile(0.5), mean.new_tensor(share)))
    return MeanLimit(goals, tuple(limits))


def _share(posterior: TransferPosterior, awaited: int) -> float | None:
    """How far from the best to a typical value the next point may be, by one objective; None for any distance."""
    n, blind = posterior.train_inputs[0].shape[-2], bool(posterior.blind)
    if awaited:
        explores = (awaited + 1) % PLAIN_TUNING.batch_explores_every == 0
        return 1.0 if blind or explores else PLAIN_TUNING.batch_reach
    if blind or not posterior.cautious or n >= AUTO_TUNING.few_results:
        return None
    return AUTO_TUNING.first_points_reach if n < AUTO_TUNING.first_points else 1.0


def opening(posterior: TransferPosterior, kind: Acquisition, beta: float) -> tuple[Acquisition, float]:
    """The acquisition function of the next point, if no result is awaited: for AUTO's first one, the mean alone."""
    first = posterior.cautious and posterior.train_inputs[0].shape[-2] == 0
    return (Acquisition.LCB, 0.0) if first and kind is Acquisition.LOG_EI else (kind, beta)
