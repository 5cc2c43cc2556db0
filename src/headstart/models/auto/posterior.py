"""AUTO's posterior: the mixture of its candidates as a BoTorch model."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headstart.data.dataset import Dataset
from headstart.data.units import Units
from headstart.models.chain.layer import Layer
from headstart.models.mixture import Mixture
from headstart.models.posterior import FitResult, TransferPosterior


@dataclass(frozen=True, slots=True)
class AutoFitResult(FitResult):
    """Also log p of every value of the target before it was seen, by candidate; None where the weights were given."""

    scores: Float[Tensor, "*b k n"] | None = None  # in mapped units


class AutoPosterior(TransferPosterior):
    """The mixture of AUTO's candidates. As a BoTorch model it has their common mean and covariance.

    ``suggest`` averages the acquisition values of the candidates (decide.value): the expected improvement of a
    mixture is not that of a normal distribution with its moments.
    """

    _predictor: Mixture
    _outcome: AutoFitResult

    @property
    def mixture(self) -> Mixture:
        """The candidates and their weights, in model units."""
        return self._predictor

    @property
    def scores(self) -> Float[Tensor, "*b k n"]:
        """log p of every value of the target before it was seen, by candidate, in mapped units."""
        assert self._outcome.scores is not None
        return self._outcome.scores

    @property
    def weights(self) -> Float[Tensor, "*b k"]:
        """The weight of every candidate."""
        return self.mixture.weights

    @property
    def cautious(self) -> bool:
        """True: the least certain candidate alone would explore where all others expect bad values."""
        return True


def with_point_estimate(plain: Layer | Mixture, where: Bool[Tensor, "*b"]) -> Layer | Mixture:
    """The plain process at its most probable hyperparameters ``where`` (its weight is small), else as it is.

    Uncertain hyperparameters keep a search without sources exploring. With sources the other candidates do that.
    """
    if isinstance(plain, Layer):
        return plain
    mode = torch.zeros_like(plain.weights)
    mode[..., 0] = 1.0
    return replace(plain, weights=torch.where(where.unsqueeze(-1), mode, plain.weights))


def in_units(units: Units, posterior: TransferPosterior, target: Dataset) -> Layer | Mixture:
    """The predictor of a candidate in these units; only the plain process has units of its own."""
    own, predictor = posterior.units, posterior.predictor
    assert isinstance(predictor, Layer | Mixture)
    if torch.equal(own.scale, units.scale) and torch.equal(own.offset, units.offset):
        return predictor
    scale, offset, inward = own.scale / units.scale, (own.offset - units.offset) / units.scale, units.inward(target)

    def rescaled(part: Layer | Mixture) -> Layer | Mixture:
        if isinstance(part, Mixture):
            return replace(part, members=tuple(map(rescaled, part.members)))
        return part.with_observations(inward, part.params.scaled(scale, offset))

    return rescaled(predictor)
