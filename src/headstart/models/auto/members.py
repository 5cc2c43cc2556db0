"""A candidate as a member of AUTO's mixture: in the units of all, and as sure of itself as its place allows."""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Bool
from torch import Tensor

from headstart.data.dataset import Dataset
from headstart.data.units import Units
from headstart.models.chain.layer import Layer
from headstart.models.mixture import Mixture
from headstart.models.posterior import TransferPosterior


def with_point_estimate(plain: Layer | Mixture, where: Bool[Tensor, "*b"]) -> Layer | Mixture:
    """The plain process at its most probable hyperparameters in some of the problems.

    That these are uncertain is what keeps a search on its own from freezing. Where others are believed more, they do
    that, and what an uncertain process finds worth a look is a distraction.
    """
    if isinstance(plain, Layer):
        return plain
    mode = torch.zeros_like(plain.weights)
    mode[..., 0] = 1.0
    return replace(plain, weights=torch.where(where.unsqueeze(-1), mode, plain.weights))


def predictor_of(posterior: TransferPosterior) -> Layer | Mixture:
    """The posterior's predictor, which a mixture can have as a member."""
    predictor = posterior.predictor
    assert isinstance(predictor, Layer | Mixture)
    return predictor


def in_units(units: Units, posterior: TransferPosterior, target: Dataset) -> Layer | Mixture:
    """The candidate in these units: only the plain process speaks its own."""
    own = posterior.units
    if torch.equal(own.scale, units.scale) and torch.equal(own.offset, units.offset):
        return predictor_of(posterior)
    return _rescaled(
        predictor_of(posterior),
        own.scale / units.scale,
        (own.offset - units.offset) / units.scale,
        units.inward(target),
    )


def _rescaled(predictor: Layer | Mixture, scale: Tensor, offset: Tensor, target: Dataset) -> Layer | Mixture:
    """The predictor in units in which its values are scale · y + offset, and those of the target as given."""
    if isinstance(predictor, Mixture):
        return replace(predictor, members=tuple(_rescaled(m, scale, offset, target) for m in predictor.members))
    params = predictor.params.scaled(scale, offset)
    options = {"kernel": predictor.kernel, "propagation": predictor.propagation, "error_var": target.error_var}
    return Layer.observe(predictor.below, params, target.X, target.y, **options)  # type: ignore[arg-type]
