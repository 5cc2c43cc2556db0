"""Where a point may be that is worth doing: it is expected to be a good one, or at least no worse than most.

Expected improvement goes where somebody cannot exclude something good, and what the least sure member of a mixture
cannot exclude is often where everybody else knows it to be bad. So points are left out whose expected value, by the
mixture, is beyond a limit between the best and a typical one, the median over the points that are compared:

    a point alone, by AUTO, with fewer than 5 results two fifths of the way from the best to a typical one, at most
    the same, with fewer than 8                       no worse than typical
    a point of a batch                                a fifth of the way from the best to a typical one, at most;
                                                      one in four no worse than typical
    a point of a batch without sources                no worse than typical

Once the best points of a batch are awaited, what is left to gain is what nobody believes in, and the rest would go to
the corners of the box. One in four may be further out: where the sources are wrong, it is the one that finds out.

AUTO's very first point is the one with the lowest mean (``opening``). There is nothing to improve on yet but what is
expected, so that expected improvement would only ask where AUTO is least sure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headstart.decide.acquisition import Acquisition
from headstart.decide.average import Voice
from headstart.decide.fast.slopes import ROWS, means_at
from headstart.models.posterior import TransferPosterior
from headstart.tuning import AUTO_TUNING

# A point beyond the limit is worth so much less, as a logarithm
UNBELIEVED = 1e6
# Up to so many results the past is all there is; from the sixth point on the plain process has turns of its own, which
# are to find out where the past is wrong
CAREFUL, VERY_CAREFUL = 8, AUTO_TUNING.first_points
_EARLY, _GOOD, _FURTHER = 0.4, 0.2, 4


@dataclass(frozen=True, slots=True)
class Believed:
    """Which points the mixture expects to be below the limit of their problem."""

    voices: tuple[Voice, ...]
    weights: Float[Tensor, "*b k"]
    limit: Float[Tensor, "*b"]

    @classmethod
    def among(
        cls,
        posterior: TransferPosterior,
        voices: tuple[Voice, ...],
        weights: Float[Tensor, "*b k"],
        X: Float[Tensor, "*b n d"],
        awaited: Float[Tensor, "*b p d"],
    ) -> Self | None:
        """Of the points X that are compared, for the next point after those awaited; None where all may be."""
        alone = awaited.shape[-2] == 0
        if alone and (not is_careful(posterior) or bool(posterior.blind.all())):
            return None
        mean = _means(voices, weights, torch.cat([X, awaited], dim=-2))
        if alone:
            limit = limit_alone(mean, posterior.train_inputs[0].shape[-2])
            return cls(voices, weights, limit.masked_fill(posterior.blind, torch.inf))
        further = (awaited.shape[-2] + 1) % _FURTHER == 0
        share = torch.where(posterior.blind | further, 1.0, _GOOD).to(mean)
        return cls(voices, weights, _between(mean, share))

    def __call__(self, X: Float[Tensor, "*b n d"]) -> Bool[Tensor, "*b n"]:
        """Whether a point may be at each row of X."""
        return _means(self.voices, self.weights, X) <= self.limit.unsqueeze(-1)


def limit_alone(expected: Float[Tensor, "*b m"], n: int) -> Float[Tensor, "*b"]:
    """The limit of a point alone after n results, among points of which this is expected; NaN may not be chosen."""
    return _between(expected, _EARLY if n < VERY_CAREFUL else 1.0)


def _between(expected: Float[Tensor, "*b n"], share: Float[Tensor, "*#b"] | float) -> Float[Tensor, "*b"]:
    """So far from the best on the way to a typical one; all the way is that one to the last bit."""
    best, typical = expected.nan_to_num(nan=torch.inf).amin(-1), expected.nanquantile(0.5, dim=-1)
    return torch.lerp(best, typical, torch.as_tensor(share).to(best))


def is_careful(posterior: TransferPosterior) -> bool:
    """Whether a point alone has a limit."""
    return posterior.cautious and posterior.train_inputs[0].shape[-2] < CAREFUL


def opening(posterior: TransferPosterior, kind: Acquisition, beta: float) -> tuple[Acquisition, float]:
    """What is maximised for the next point, if no result is awaited: for AUTO's first one, a bound without doubts."""
    first = posterior.cautious and posterior.train_inputs[0].shape[-2] == 0
    return (Acquisition.LCB, 0.0) if first and kind is Acquisition.LOG_EI else (kind, beta)


def _means(voices: tuple[Voice, ...], weights: Float[Tensor, "*b k"], X: Float[Tensor, "*b n d"]) -> Tensor:
    return torch.cat([means_at(voices, weights, part) for part in X.split(ROWS, dim=-2)], dim=-1)
