"""GPBO: the target alone, the baseline that every head start is measured against."""

from __future__ import annotations

from dataclasses import dataclass

from headstart.data.dataset import Dataset
from headstart.data.units import OutputUnits, Units
from headstart.gp.fit import Seed
from headstart.models.beliefs import NoBeliefs
from headstart.models.botorch import Outcome, TransferPosterior
from headstart.models.layer import Propagation
from headstart.models.model import Prior, TransferModel
from headstart.models.params import ChainParams, ModelParams
from headstart.models.sequential import Sequential, fit_target

__all__ = ["Single", "SinglePrior"]


@dataclass(frozen=True, kw_only=True)
class SinglePrior(Prior):
    """Nothing: the sources are not looked at. ``known`` are units to take instead of the target's own."""

    model: Single
    known: Units | None = None

    def _condition(self, target: Dataset, seed: Seed) -> TransferPosterior:
        # Its units are the target's own. No value, or one, has no spread: with N_t < 2 the scale stays the user's, and
        # this is the one place where a prediction depends on the units of y.
        shared = self.model.units is OutputUnits.SHARED
        units = Units.of([target]).completed(target) if shared else Units.identity(target)
        units = units if self.known is None else self.known
        nothing = NoBeliefs(target.batch_shape)
        layer, own, report = fit_target(
            nothing, units.inward(target), model=self.model, propagation=Propagation.EXACT, seed=seed
        )
        params = ChainParams((own,)).scaled(units.scale, units.offset)
        return TransferPosterior(layer, Outcome(units, params, (report,), blind=True), target.y)


@dataclass(frozen=True, kw_only=True)
class Single(TransferModel):
    """An ordinary Gaussian process on the target data."""

    needs_sources = False

    def _learn(self, sources: tuple[Dataset, ...], seed: Seed) -> SinglePrior:  # noqa: ARG002
        return SinglePrior(model=self, sources=sources)

    def _at(self, params: ModelParams, sources: tuple[Dataset, ...], target: Dataset) -> TransferPosterior:  # noqa: ARG002
        return Sequential(kernel=self.kernel, propagation=Propagation.EXACT).at(params, target=target)
