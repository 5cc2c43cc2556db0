"""GPBO: the target alone, the baseline that every head start is measured against."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from headstart.data.dataset import Dataset
from headstart.data.units import OutputUnits, Units
from headstart.gp.draws import draws_around
from headstart.gp.fit import Seed, generator_from
from headstart.models.chain.beliefs import NoBeliefs
from headstart.models.chain.fitting import LevelFit, LevelSpec, fit_level, level_layer
from headstart.models.chain.layer import Layer, Propagation
from headstart.models.learning import LearnContext
from headstart.models.mixture import Mixture
from headstart.models.model import Prior, TransferModel
from headstart.models.params import ChainParams, ModelParams, rescaled
from headstart.models.posterior import FitResult, TransferPosterior
from headstart.models.sequential import Sequential
from headstart.tuning import PLAIN_TUNING


@dataclass(frozen=True, kw_only=True)
class SinglePrior(Prior):
    """Nothing: the sources are not looked at. ``known`` are units to take instead of the target's own."""

    model: Single
    known: Units | None = None

    def _fitted(self, target: Dataset, seed: Seed) -> TransferPosterior:
        # Its units are the target's own. No value, or one, has no spread: with N_t < 2 the scale stays the user's, and
        # this is the one place where a prediction depends on the units of y.
        shared = self.model.units is OutputUnits.SHARED
        units = Units.of([target]).completed(target) if shared else Units.identity(target)
        units = units if self.known is None else self.known
        inward, generator = units.inward(target), generator_from(seed)
        model, below = self.model, NoBeliefs(target.batch_shape)
        spec = LevelSpec(model.kernel, model.fit, model.units, seed=generator)
        found = fit_level(below, inward, spec)
        layer = level_layer(below, found.params, inward, spec, found.at)
        predictor: Layer | Mixture = layer
        if model.fit.draws and target.n <= PLAIN_TUNING.draws_up_to_results:
            predictor = _uncertain(found, layer, inward, model.fit.draws, generator)
        params = rescaled(ChainParams((layer.params,)), units.scale, units.offset)
        return TransferPosterior(predictor, FitResult(units, params, (found.report,), blind=True), target.y)


def _uncertain(found: LevelFit, first: Layer, target: Dataset, n_draws: int, generator: torch.Generator) -> Mixture:
    """A mixture over what the hyperparameters may be, the most probable ones first."""
    points, weights = draws_around(found.evidence, found.theta, n_draws, generator)
    others = (first.with_observations(target, found.as_params(point), first.at) for point in points[1:])
    return Mixture((first, *others), weights.reshape(*target.batch_shape, -1))


@dataclass(frozen=True, kw_only=True)
class Single(TransferModel):
    """An ordinary Gaussian process on the target data."""

    needs_sources = False

    def _learn(self, sources: tuple[Dataset, ...], seed: Seed, context: LearnContext) -> SinglePrior:  # noqa: ARG002
        return SinglePrior(model=self, sources=sources)

    def _at(self, params: ModelParams, sources: tuple[Dataset, ...], target: Dataset) -> TransferPosterior:  # noqa: ARG002
        return Sequential(kernel=self.kernel, propagation=Propagation.EXACT).at(params, target=target)
