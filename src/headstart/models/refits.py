"""Refits of a growing target: when its hyperparameters are found anew, and how results in between are added.

Up to ``refit_every_result_up_to`` results (headstart.tuning) that is with each of them. From then on hyperparameters
are those of the first ``refit_size(n)`` results, four sizes in every doubling, and later results are rows that are
appended to the factor, O(n²): docs/models.md, long targets.

Of a long target hyperparameters are found from representative rows, for an evaluation costs their cube, and the layer
then observes all rows, with the offset of a fit to all of them (``Layer.with_its_offset``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from headstart.data.dataset import Dataset
from headstart.data.thinning import representative
from headstart.gp.fit import FitOptions, Seed
from headstart.models.chain.beliefs import BeliefsAt
from headstart.models.chain.layer import Layer
from headstart.models.posterior import TransferPosterior
from headstart.tuning import PLAIN_TUNING

V = TypeVar("V")

_CACHED = 64  # more than there are refits (models.auto.scores)


class TargetCache:
    """Bounded cache keyed by what is cached and the bytes of a target; evicts the oldest entry of its kind."""

    def __init__(self) -> None:
        self._kinds: dict[str, dict[bytes, Any]] = {}

    def get(self, kind: str, target: Dataset, make: Callable[[], V], keep: int = _CACHED) -> V:
        """The value of this kind for these data, made where it is missing; the latest ``keep`` of its kind are kept."""
        parts = (target.X, target.y, target.error_var, target.batch, target.present)
        key = b"|".join(b"" if part is None else part.cpu().numpy().tobytes() for part in parts)
        key += repr(target.drift).encode()
        entries: dict[bytes, V] = self._kinds.setdefault(kind, {})
        if key not in entries:
            value = make()
            while len(entries) >= keep:
                entries.pop(next(iter(entries)))
            entries[key] = value
        return entries[key]


def refit_size(n: int) -> int:
    """The number of first results, of n, that hyperparameters are found from: all at first, later at least 4/5."""
    if n <= PLAIN_TUNING.refit_every_result_up_to:
        return n
    octave = 1 << (n.bit_length() - 1)
    return n - (n - octave) % (octave // PLAIN_TUNING.refits_per_doubling)


def is_long(n: int) -> bool:
    """Whether a target of n results is refitted only now and then."""
    return n > PLAIN_TUNING.refit_every_result_up_to


def fit_of_long(options: FitOptions) -> FitOptions:
    """The fit options for a long target: fewer restarts."""
    return replace(options, restarts=min(options.restarts, PLAIN_TUNING.refit_restarts))


def at_last_refit(
    fit: Callable[[Dataset, Seed], TransferPosterior], target: Dataset, seed: Seed, cache: TargetCache
) -> TransferPosterior:
    """The posterior with the hyperparameters that ``fit`` found at the last refit, later results appended."""
    if not is_long(target.n):
        return fit(target, seed)
    seen = target.head(refit_size(target.n))
    return with_appended_rows(cache.get("refit", seen, lambda: fit(seen, seen.n), keep=2), target)


def with_appended_rows(posterior: TransferPosterior, target: Dataset, at: BeliefsAt | None = None) -> TransferPosterior:
    """The posterior of a layer that has observed the first rows of the target, given all of them, in its own units.

    ``target`` is behind its output map, as the rows that the layer has observed were. ``at`` are the sources of a star
    at the new rows, if they are at hand. New rows are always appended in one block, so that the result depends on the
    data alone. Where rows are in batches all are observed anew, for the present batch may be another one.
    """
    layer = posterior.predictor
    assert isinstance(layer, Layer)
    seen = layer.z.shape[-1]
    if seen == target.n:
        return posterior
    inward = posterior.units.inward(target)
    new = inward.rows(slice(seen, None))
    if target.has_shifts:
        further = layer.below.at(new.X) if at is None else layer.below.weigh(at)
        again = layer.with_observations(inward, at=layer.at.joined(further)).with_its_offset()
        return TransferPosterior(again, posterior._outcome, target.y, posterior.warp)
    noise = None if new.error_var is None else layer.params.noise_var.unsqueeze(-1) + new.error_var
    located = None if at is None else layer.below.weigh(at)
    return TransferPosterior(
        layer.observing(new.X, new.y, at=located, noise_var=noise), posterior._outcome, target.y, posterior.warp
    )


def fitted_on_representative_rows(fit: Callable[[Dataset], TransferPosterior], target: Dataset) -> TransferPosterior:
    """The posterior of a layer given all of the target, hyperparameters found by ``fit`` from representative rows."""
    few = representative(target, PLAIN_TUNING.refit_rows)
    posterior = fit(few)
    if few is target:
        return posterior
    layer = posterior.predictor
    assert isinstance(layer, Layer)
    all_rows = layer.with_observations(posterior.units.inward(target))
    return TransferPosterior(all_rows.with_its_offset(), posterior._outcome, target.y, posterior.warp)
