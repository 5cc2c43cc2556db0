"""GPBO: the target alone, the baseline that every head start is measured against."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from headstart.data.dataset import Dataset
from headstart.data.units import OutputUnits, Units
from headstart.gp.draws import draws_around
from headstart.gp.fit import Seed, generator_from
from headstart.models.chain.beliefs import NoBeliefs
from headstart.models.chain.fitting import Fit, fit_with_evidence
from headstart.models.chain.layer import Layer, Propagation
from headstart.models.chain.sequential import Sequential
from headstart.models.growth.grown import with_appended_rows
from headstart.models.growth.memory import Memory
from headstart.models.growth.schedule import EVERY, refit_size
from headstart.models.mixture import Mixture
from headstart.models.model import Prior, TransferModel
from headstart.models.params import ChainParams, ModelParams
from headstart.models.posterior import FitResult, TransferPosterior
from headstart.tuning import PLAIN_TUNING


@dataclass(frozen=True, kw_only=True)
class SinglePrior(Prior):
    """Nothing: the sources are not looked at. ``known`` are units to take instead of the target's own.

    With many results the hyperparameters are those of the first of them (models.growth.schedule), which are kept.
    """

    model: Single
    known: Units | None = None
    _settled: Memory[TransferPosterior] = field(default_factory=lambda: Memory(most=2), repr=False, compare=False)

    def _condition(self, target: Dataset, seed: Seed) -> TransferPosterior:
        if target.n <= EVERY:
            return self.fitted(target, seed)
        seen = target.head(refit_size(target.n))
        return with_appended_rows(self._settled.of(seen, lambda: self.fitted(seen, seen.n)), target)

    def fitted(self, target: Dataset, seed: Seed) -> TransferPosterior:
        """With hyperparameters that are found from all of the target's results."""
        # Its units are the target's own. No value, or one, has no spread: with N_t < 2 the scale stays the user's, and
        # this is the one place where a prediction depends on the units of y.
        shared = self.model.units is OutputUnits.SHARED
        units = Units.of([target]).completed(target) if shared else Units.identity(target)
        units = units if self.known is None else self.known
        inward, generator = units.inward(target), generator_from(seed)
        found = fit_with_evidence(
            NoBeliefs(target.batch_shape),
            inward,
            model=self.model,
            propagation=Propagation.EXACT,
            seed=generator,
            name="target",
        )
        predictor: Layer | Mixture = found.layer
        if self.model.fit.draws and target.n <= PLAIN_TUNING.draws_up_to_results:
            predictor = _uncertain(found, inward, self.model, generator)
        params = ChainParams((found.layer.params,)).scaled(units.scale, units.offset)
        return TransferPosterior(predictor, FitResult(units, params, (found.report,), blind=True), target.y)


def _uncertain(found: Fit, target: Dataset, model: Single, generator: torch.Generator) -> Mixture:
    """A mixture over what the hyperparameters may be, the most probable ones first."""
    points, weights = draws_around(found.evidence, found.theta, model.fit.draws, generator)
    first = found.layer
    options = {"kernel": first.kernel, "propagation": first.propagation, "at": first.at, "error_var": target.error_var}
    others = (
        Layer.observe(first.below, found.as_params(point), target.X, target.y, **options)  # type: ignore[arg-type]
        for point in points[1:]
    )
    return Mixture((first, *others), weights.reshape(*target.batch_shape, -1), drawn=True)


@dataclass(frozen=True, kw_only=True)
class Single(TransferModel):
    """An ordinary Gaussian process on the target data."""

    needs_sources = False

    def _learn(self, sources: tuple[Dataset, ...], seed: Seed) -> SinglePrior:  # noqa: ARG002
        return SinglePrior(model=self, sources=sources)

    def _at(self, params: ModelParams, sources: tuple[Dataset, ...], target: Dataset) -> TransferPosterior:  # noqa: ARG002
        return Sequential(kernel=self.kernel, propagation=Propagation.EXACT).at(params, target=target)
