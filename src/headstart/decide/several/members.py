"""The members of an outcome's mixture, ready to be asked at many points, given draws of awaited results or none.

Where results are awaited, all members are given the same draws: those of the mixture as a normal distribution. A front
that a draw belongs to is then one front, whoever predicts the next point.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from headstart.decide.average import Voice, voices
from headstart.decide.fast.slopes import ROWS, means_at
from headstart.decide.pending import ByLayer, Given, given
from headstart.decide.several.gain import Seen
from headstart.decide.surface import Surface, SurfaceValues, surface_of
from headstart.gp.linalg import LEAST_VAR, cholesky
from headstart.models.mixture import Predictor

Array = NDArray[np.float64]

# Pairs of opposite draws of the awaited results
_PAIRS = 6


@dataclass(frozen=True, slots=True)
class Heard:
    """A predictor and the members of it that count: they are kept, for what makes them quick to ask is not cheap."""

    predictor: Predictor
    voices: tuple[Voice, ...]
    weights: Float[Tensor, "k"]
    floor: Float[Tensor, ""] | None = None  # the lowest value that a result can have

    @classmethod
    def of(cls, predictor: Predictor, floor: Float[Tensor, ""] | None = None) -> Self:
        """Of a predictor of a single problem."""
        return cls(predictor, *voices(predictor), floor)

    def reachable(self, values: Float[Tensor, "*n"]) -> Float[Tensor, "*n"]:
        """The values, none of them below the lowest that a result can have."""
        return values if self.floor is None else torch.maximum(values, self.floor)

    def means(self, X: Float[Tensor, "n d"]) -> Float[Tensor, "n"]:
        """What is expected at every row of X, in model units."""
        return torch.cat([means_at(self.voices, self.weights, part) for part in X.split(ROWS, dim=-2)], dim=-1)


def draws_at(predictor: Predictor, awaited: Float[Tensor, "p d"], generator: torch.Generator) -> Float[Tensor, "q p"]:
    """What the awaited results may turn out to be: draws of the mixture's f, in model units."""
    with torch.no_grad():
        mean, cov = predictor.predict(awaited)
        noise = 1e-9 * cov.diagonal().clamp_min(0.0) + LEAST_VAR
        L = cholesky(cov + torch.diag_embed(noise), of="The covariance of the pending points")
        e = torch.randn(_PAIRS, len(mean), generator=generator, dtype=torch.float64)
        return mean + torch.cat([e, -e]) @ L.mT


@dataclass(frozen=True, slots=True)
class _Now:
    """A member as it is, nothing being awaited."""

    voice: Voice

    def __call__(self, X: Float[Tensor, "n d"]) -> tuple[Float[Tensor, "1 n"], Float[Tensor, "n"]]:
        mean, var = self.voice.predictor.predict_marginal(X)
        return mean.unsqueeze(0), var


@dataclass(frozen=True, slots=True)
class Panel:
    """The members that count, each as a function of x, and as a surface if all of them have that form."""

    members: tuple[Given, ...]
    surfaces: tuple[Surface, ...] | None
    noise_var: Float[Tensor, "k"]
    log_weights: Float[Tensor, "k"]
    floor: Float[Tensor, ""] | None = None

    @classmethod
    def of(
        cls, heard: Heard, awaited: Float[Tensor, "p d"] | None = None, y: Float[Tensor, "q p"] | None = None
    ) -> Self:
        """Of a predictor's members; with the draws y of its values at the points awaited, given each of them."""
        every, weights = heard.voices, heard.weights
        members: tuple[Given, ...]
        if awaited is None or y is None:
            members = tuple(_Now(voice) for voice in every)
            found = [voice.surface for voice in every]
        else:
            members = tuple(given(voice.predictor, awaited, y) for voice in every)
            found = [_shifted(member) for member in members]
        surfaces = tuple(surface for surface in found if surface is not None)
        noise = torch.stack([voice.predictor.noise_var for voice in every])
        return cls(members, surfaces if len(surfaces) == len(found) else None, noise, weights.log(), heard.floor)

    def ask(self, X: Float[Tensor, "n d"]) -> Seen:
        """What they predict, with gradients."""
        means, variances = zip(*(member(X) for member in self.members), strict=True)
        return Seen(torch.stack(means), torch.stack(variances), self.noise_var, self.log_weights, self.floor)

    def look(self, X: Float[Array, "n d"]) -> Seen:
        """The same by the surfaces, of many points."""
        assert self.surfaces is not None
        means, variances = zip(*(surface.predict(X) for surface in self.surfaces), strict=True)
        return self._seen(means, variances)

    def touch(self, X: Float[Array, "n d"]) -> tuple[Seen, list[SurfaceValues]]:
        """The same of a few points, and what the way back to x needs."""
        assert self.surfaces is not None
        at = [surface.at(X) for surface in self.surfaces]
        return self._seen([own.mean for own in at], [own.var for own in at]), at

    def _seen(self, means: list[Array] | tuple[Array, ...], variances: list[Array] | tuple[Array, ...]) -> Seen:
        mean, var = torch.from_numpy(np.stack(means)), torch.from_numpy(np.stack(variances))
        return Seen(mean, var, self.noise_var, self.log_weights, self.floor)


def _shifted(member: Given) -> Surface | None:
    if not isinstance(member, ByLayer):
        return None
    surface = surface_of(member.layer)
    return None if surface is None else surface.shifted(member.z.numpy())
