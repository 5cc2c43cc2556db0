"""A posterior after more results, at the hyperparameters that it has: rows appended to its factor."""

from __future__ import annotations

from headstart.data.dataset import Dataset
from headstart.models.botorch import TransferPosterior
from headstart.models.chain.beliefs import At
from headstart.models.chain.layer import Layer

__all__ = ["grown"]


def grown(posterior: TransferPosterior, target: Dataset, at: At | None = None) -> TransferPosterior:
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
