"""A posterior after more results, at the hyperparameters that it has: rows appended to its factor.

Of a long target hyperparameters are found from some typical rows, for an evaluation costs their cube, and the layer
then sees all of them. The offset is theirs, too, as a fit to all rows would have it: offset ~ N(c, OFFSET_VAR) with c
the mean of what the means below leave, so that with z = L⁻¹ (y − m − c) and e = L⁻¹ 1

    offset = c + e·z / (e·e + 1/OFFSET_VAR)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch

from headstart.data.dataset import Dataset
from headstart.data.thinning import representative
from headstart.gp.hyperparameters import OFFSET_VAR
from headstart.gp.linalg import solve_lower
from headstart.models.chain.beliefs import BeliefsAt
from headstart.models.chain.layer import Layer
from headstart.models.growth.schedule import FITTED_ON
from headstart.models.posterior import TransferPosterior


def with_appended_rows(posterior: TransferPosterior, target: Dataset, at: BeliefsAt | None = None) -> TransferPosterior:
    """The posterior of a layer that has seen the first rows of the target, given all of them, in its own units.

    ``target`` is behind its output map, as what the layer has seen was. ``at`` spares a star evaluating its sources at
    the new rows. The new rows are always appended in one block, so that the result depends on the data alone.
    """
    layer = posterior.predictor
    assert isinstance(layer, Layer)
    seen = layer.z.shape[-1]
    if seen == target.n:
        return posterior
    new = posterior.units.inward(target).rows(slice(seen, None))
    noise = None if new.error_var is None else layer.params.noise_var.unsqueeze(-1) + new.error_var
    located = None if at is None else layer.below.weigh(at)
    return TransferPosterior(
        layer.observing(new.X, new.y, at=located, noise_var=noise), posterior._outcome, target.y, posterior.warp
    )


def fitted_on_some(fit: Callable[[Dataset], TransferPosterior], target: Dataset) -> TransferPosterior:
    """The posterior of a layer given all of the target, its hyperparameters found by ``fit`` from some typical rows."""
    few = representative(target, FITTED_ON)
    posterior = fit(few)
    if few is target:
        return posterior
    layer, inward = posterior.predictor, posterior.units.inward(target)
    assert isinstance(layer, Layer)
    options = {"kernel": layer.kernel, "propagation": layer.propagation, "error_var": inward.error_var}
    all_rows = Layer.observe(layer.below, layer.params, inward.X, inward.y, **options)  # type: ignore[arg-type]
    return TransferPosterior(with_its_offset(all_rows), posterior._outcome, target.y, posterior.warp)


def with_its_offset(layer: Layer) -> Layer:
    """The layer with the posterior mean of its offset, given all that it has observed."""
    e = solve_lower(layer.L, torch.ones_like(layer.L[..., :1])).squeeze(-1)
    left = (layer.L @ layer.z.unsqueeze(-1)).squeeze(-1).mean(-1)  # c − offset
    z = layer.z - left.unsqueeze(-1) * e
    moved = left + (e * z).sum(-1) / (e.square().sum(-1) + 1 / OFFSET_VAR)
    params = replace(layer.params, offset=layer.params.offset + moved)
    return replace(layer, params=params, z=layer.z - moved.unsqueeze(-1) * e)
