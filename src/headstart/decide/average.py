"""The acquisition value for several predictors that are believed to different degrees: the members of a mixture.

    LOG_EI    log Σ_k w_k EI_k      an improvement is averaged before its logarithm is taken
    LCB       Σ_k w_k LCB_k

All members speak the same units and are to improve on the same value: the lowest mean of the mixture.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from headstart.decide.acquisition import Acquisition, AcquisitionValue, acquisition_values
from headstart.decide.surface import Surface, surface_of
from headstart.models.chain.beliefs import BeliefsAt
from headstart.models.mixture import Predictor, components

# A member with less weight is not asked: it takes as long as one that counts
_NEGLIGIBLE = 1e-3


@dataclass(frozen=True)
class Voice:
    """A member that counts, and what it needs to know of the points that are compared."""

    predictor: Predictor
    X: Any

    @cached_property
    def surface(self) -> Surface | None:
        """The member as a function that is quick to ask over and over, if it has that form."""
        return surface_of(self.predictor)


def voices(
    predictor: Predictor, X: Float[Tensor, "*b m d"] | BeliefsAt | None = None
) -> tuple[tuple[Voice, ...], Float[Tensor, "*b k"]]:
    """The members that have a weight worth mentioning in any of the problems, and their weights: 0 in the others.

    Of a predictor that is no mixture that is the predictor itself.
    """
    parts = components(predictor, X)
    if parts[0][1] is None:
        return (Voice(predictor, X),), predictor.X.new_ones(*predictor.batch_shape, 1)
    weights = torch.stack([weight for _, weight, _ in parts if weight is not None], dim=-1)
    weights = torch.where(weights > _NEGLIGIBLE, weights, 0.0)
    every = [k for k, w in enumerate(weights.unbind(-1)) if bool(w.any())]
    kept = weights[..., every]
    return tuple(Voice(parts[k][0], parts[k][2]) for k in every), kept / kept.sum(-1, keepdim=True)


def mean_of(means: list[Float[Tensor, "*b n"]], weights: Float[Tensor, "*b k"]) -> Float[Tensor, "*b n"]:
    """The mean of the mixture."""
    return (torch.stack(means, dim=-1) * weights.unsqueeze(-2)).sum(-1)


def averaged(
    kind: Acquisition, values: Float[Tensor, "*b n k"], weights: Float[Tensor, "*b k"]
) -> Float[Tensor, "*b n"]:
    """The members' common value."""
    w = weights.unsqueeze(-2)
    match kind:
        case Acquisition.LOG_EI:
            return torch.logsumexp(values + w.log(), dim=-1)
        case Acquisition.LCB:
            return (w * values).sum(-1)


@dataclass(frozen=True, slots=True)
class PlainAcquisition:
    """The acquisition values of one member, in model units, when no result is awaited."""

    voice: Voice
    kind: Acquisition
    best_f: Float[Tensor, "*b"]
    beta: float
    floor: Float[Tensor, "*b"] | None = None

    def __call__(self, X: Float[Tensor, "*b n d"]) -> Float[Tensor, "*b n"]:
        """The value at every row of X."""
        predictor = self.voice.predictor
        mean, var = predictor.predict_marginal(X)
        noise_var = predictor.noise_var
        return acquisition_values(
            self.kind, mean, var, best_f=self.best_f, noise_var=noise_var, beta=self.beta, floor=self.floor
        )


@dataclass(frozen=True, slots=True)
class AveragedAcquisition:
    """The acquisition values of all members together."""

    kind: Acquisition
    parts: tuple[AcquisitionValue, ...]
    weights: Float[Tensor, "*b k"]

    def __call__(self, X: Float[Tensor, "*b n d"]) -> Float[Tensor, "*b n"]:
        """The value at every row of X."""
        return averaged(self.kind, torch.stack([part(X) for part in self.parts], dim=-1), self.weights)
