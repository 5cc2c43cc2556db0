"""The acquisition value together with its gradient, in closed form: how a search climbs.

A search asks about a few points, many times. Automatic differentiation through a posterior answers in hundreds of small
steps; here mean and variance come from surfaces (decide.fast.surface), and how the acquisition value changes with them
from a formula:

    log Σ_k w_k mean_q EI_kq      k the members of a mixture, q draws of awaited results

Not every acquisition value has such a form. A batch of problems has none, so that none of them depends on the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from headstart.decide.acquisition import Acquisition, AcquisitionValue, acquisition_values_and_slopes
from headstart.decide.average import AveragedAcquisition, PlainAcquisition, Voice, mean_of
from headstart.decide.pending import ByLayer, PendingAcquisition
from headstart.decide.surface import Surface, surface_of
from headstart.gp.linalg import LEAST_VAR
from headstart.gp.threads import single_thread

# So many rows of a long list are looked at together
ROWS = 4096

Array = NDArray[np.float64]


class Slopes(Protocol):
    """An acquisition value at the points of a single problem, with its gradient: how a search climbs."""

    def __call__(self, X: Float[Tensor, "n d"]) -> Float[Tensor, "n"]:
        """The value at every row of X."""
        ...

    def climb(self, X: Float[Array, "n d"]) -> tuple[Float[Array, "n"], Float[Array, "n d"]]:
        """The value at every row of X, and its gradient."""
        ...


@dataclass(frozen=True, slots=True)
class AverageSlopes:
    """The value of one outcome, averaged over the members of a mixture and the draws of awaited results."""

    kind: Acquisition
    surfaces: tuple[Surface, ...]
    weights: Float[Array, "k"]
    best_f: Float[Array, "k q"]
    noise_var: Float[Array, "k 1"]
    beta: float
    floor: float | None = None

    @classmethod
    def of(cls, value: AcquisitionValue) -> AverageSlopes | None:
        """Those of an acquisition value, if it has this form."""
        if not isinstance(value, AveragedAcquisition):
            return cls._of_one(value)
        every = [cls._of_one(part) for part in value.parts]
        parts = [part for part in every if part is not None]
        if len(parts) < len(every):
            return None
        surfaces = tuple(surface for part in parts for surface in part.surfaces)
        best_f, noise_var = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("best_f", "noise_var")
        )
        return cls(value.kind, surfaces, value.weights.numpy(), best_f, noise_var, parts[0].beta, parts[0].floor)

    @classmethod
    def _of_one(cls, value: AcquisitionValue) -> AverageSlopes | None:
        match value:
            case PlainAcquisition(voice=voice):
                surface, noise_var = voice.surface, voice.predictor.noise_var
            case PendingAcquisition(given=ByLayer(layer=layer, z=z), noise_var=noise_var):
                surface = surface_of(layer)
                surface = None if surface is None else surface.shifted(z.numpy())
            case _:
                return None
        if surface is None:
            return None
        best_f, noise = value.best_f.reshape(1, -1).numpy(), noise_var.reshape(1, 1).numpy()
        floor = None if value.floor is None else float(value.floor)
        return cls(value.kind, (surface,), np.ones(1), best_f, noise, value.beta, floor)

    def __call__(self, X: Float[Tensor, "n d"]) -> Float[Tensor, "n"]:
        """The value at every row of X."""
        found = [surface.predict(X.numpy()) for surface in self.surfaces]
        values, *_ = self._slopes(found)
        return torch.from_numpy(self._combined(values)[0])

    def climb(self, X: Float[Array, "n d"]) -> tuple[Float[Array, "n"], Float[Array, "n d"]]:
        """The value at every row of X, and its gradient."""
        seen = [surface.at(X) for surface in self.surfaces]
        values, by_mean, by_var = self._slopes([(at.mean, at.var) for at in seen])
        value, share = self._combined(values)
        by_mean, by_var = share * by_mean, (share * by_var).sum(1)
        gradient = np.zeros_like(X)
        for k, (surface, at) in enumerate(zip(self.surfaces, seen, strict=True)):
            gradient += surface.gradient(at, by_mean[k], np.where(at.var > LEAST_VAR, by_var[k], 0.0))
        return value, gradient

    def _slopes(self, found: Sequence[tuple[Array, Array]]) -> tuple[Array, Array, Array]:
        """The values of all candidates and draws, (k, q, n), and their derivatives by mean and variance."""
        mean = np.stack([mean for mean, _ in found])
        var = np.maximum(np.stack([var for _, var in found]), LEAST_VAR)[:, None, :]
        return acquisition_values_and_slopes(
            self.kind,
            mean,
            np.broadcast_to(var, mean.shape),
            best_f=self.best_f,
            noise_var=self.noise_var,
            beta=self.beta,
            floor=self.floor,
        )

    def _combined(self, values: Float[Array, "k q n"]) -> tuple[Float[Array, "n"], Float[Array, "k q n"]]:
        """The value over all candidates and draws, and its derivative by each of theirs."""
        w = np.broadcast_to((self.weights / values.shape[1])[:, None, None], values.shape)
        match self.kind:
            case Acquisition.LOG_EI:
                top = values.max((0, 1))
                parts = w * np.exp(values - top)
                total = parts.sum((0, 1))
                return top + np.log(total), parts / total
            case Acquisition.LCB:
                return (w * values).sum((0, 1)), w


def means_at(
    voices: Sequence[Voice], weights: Float[Tensor, "*b k"], X: Float[Tensor, "*b n d"]
) -> Float[Tensor, "*b n"]:
    """The mean of a mixture at X, in model units; by surfaces where all members have one."""
    surfaces = [voice.surface for voice in voices if voice.surface is not None]
    if len(surfaces) < len(voices):
        with torch.no_grad():
            return mean_of([voice.predictor.predict_marginal(X)[0] for voice in voices], weights)
    with single_thread():
        return mean_of([torch.from_numpy(surface.mean(X.numpy()))[0] for surface in surfaces], weights)
