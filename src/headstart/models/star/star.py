"""Stars: every source is learnt on its own, then the target on top of their weighted sum (models.star.weights)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from jaxtyping import Float
from torch import Tensor

from headstart.data.dataset import Dataset
from headstart.data.thinning import representative
from headstart.data.units import Units
from headstart.errors import InputError
from headstart.gp.fit import Seed, fit
from headstart.gp.hyperparameters import ThetaPrior
from headstart.models.chain.beliefs import Beliefs, BeliefsAt, NoBeliefs
from headstart.models.chain.condensed import LevelSpec, source_layer
from headstart.models.chain.layer import Layer
from headstart.models.learning import LearnContext
from headstart.models.model import Prior, TransferModel
from headstart.models.params import ModelParams, StarParams, rescaled
from headstart.models.posterior import FitResult, TransferPosterior
from headstart.models.refits import fit_of_long
from headstart.models.sequential import expanded_levels
from headstart.models.star.independent import IndependentSources, exact_beliefs, fit_independently, fit_pooled, pooled
from headstart.models.star.weights import (
    SourceFacts,
    StarBeliefs,
    StarWeights,
    Weighting,
    expecting,
    star_evidence,
    target_prior,
)
from headstart.tuning import PLAIN_TUNING


@dataclass(frozen=True, kw_only=True)
class StarPrior(Prior):
    """The sources' posteriors, learnt once. A new target data set costs O(N_t Σ N_ν² + s N_t² + N_t³)."""

    model: Star
    alone: IndependentSources
    # As learnt from the sources (models.auto.likeness): the target's own share, and its other hyperparameters
    own: Float[Tensor, "*b 1"] | None = None
    expected: ThetaPrior | None = None

    def _fitted(self, target: Dataset, seed: Seed) -> TransferPosterior:
        return self.found(target, seed, self.alone, self.alone.locate(target.X))[0]

    def found(
        self,
        target: Dataset,
        seed: Seed,
        selected: IndependentSources,
        at: BeliefsAt,
        begin: Float[Tensor, "P p"] | None = None,
    ) -> tuple[TransferPosterior, Float[Tensor, "P p"]]:
        """The posterior of a target behind its map, fitted to all of it, and θ, at which a later fit may ``begin``.

        ``selected`` are the sources that are used, ``at`` these at the target's inputs. Of a long target θ is found
        from typical rows.
        """
        if not target.categories:
            target = replace(target, categories=self.sources[0].categories)
        units = self.alone.units.completed(target)
        inward, facts = units.inward(target), SourceFacts(selected.spread, selected.trust, self.own)
        fitted_on = representative(inward, PLAIN_TUNING.refit_rows)
        located = at if fitted_on is inward else selected.locate(fitted_on.X)
        b, options = target.batch_shape, self.model.fit
        terms = self.model.weighting.terms(selected.members, facts, located, b)
        evidence = star_evidence(fitted_on, self.model.kernel, terms)
        options = options if begin is None else fit_of_long(options)
        layout, shifts = evidence.layout, self.alone.expected_shifts
        prior = target_prior(layout, fitted_on, shifts, self.expected)
        begin = None if begin is None else layout.completed(begin)  # shifts may be new
        theta, report = fit(evidence, options, seed=seed, task="target", batch_shape=b, prior=prior, warm_start=begin)
        theta = theta.reshape(b.numel(), -1)
        own, omega = expecting(shifts, evidence.params(theta, b), fitted_on), evidence.omega(theta)
        weights = self.model.weighting.weights(omega.reshape(*b, -1), facts)
        below = StarBeliefs(selected.members, weights)
        if len(selected.index) < len(self.sources):
            below = replace(below, index=selected.index, n_sources=len(self.sources))
        layer = Layer.observe(below, own, inward, kernel=self.model.kernel, at=below.weigh(at))
        layer = layer if fitted_on is inward else layer.with_its_offset()
        layer = replace(layer, shift_log_sd=shifts.spread.reshape(b))
        levels = (*(source.params for source in self.alone.layers), layer.params)
        sums = (below.of_all(weights.mean), below.of_all(weights.var), below.of_all(weights.own))
        params = rescaled(StarParams(levels, *sums, weights.balance), units.scale, units.offset)
        assert isinstance(params, StarParams)
        params = replace(params, doubt=selected.doubt)  # which is in the units of the data already
        return TransferPosterior(layer, FitResult(units, params, (*self.fit_reports, report)), target.y), theta


@dataclass(frozen=True, kw_only=True)
class Star(TransferModel):
    """Independent sources below the target.

    Args:
        weighting: How the sources add up.
        pooled: Whether their rows are pooled into one source first.
        kernel: Of all tasks.
        fit: How hyperparameters are found.
        units: Where the model's output units come from.
        output_map: Whether outputs go through a monotone map first.
    """

    weighting: Weighting
    pooled: bool = False

    def _learn(self, sources: tuple[Dataset, ...], seed: Seed, context: LearnContext) -> StarPrior:
        alone = fit_independently(sources, self, seed, context)
        return self.upon(fit_pooled(alone, self, seed, context) if self.pooled else alone)

    def upon(self, alone: IndependentSources) -> StarPrior:
        """The prior from sources that were fitted already."""
        return StarPrior(model=self, sources=alone.sources, fit_reports=alone.reports, alone=alone)

    def _at(self, params: ModelParams, sources: tuple[Dataset, ...], target: Dataset) -> TransferPosterior:
        if not isinstance(params, StarParams):
            raise InputError(f"A star model takes StarParams, but got {type(params).__name__}.")
        params.require()
        if self.pooled and sources:
            sources = (pooled(sources, None if params.doubt is None else params.doubt.to(target.X.device)),)
        levels = expanded_levels(params.levels, len(sources) + 1, target)
        b = target.batch_shape
        own = (params.weights, params.weight_var, params.own, params.balance)
        doubt = None if params.doubt is None else params.doubt.expand(*b, -1)
        params = replace(StarParams(levels, *(w.expand(*b, -1) for w in own)), doubt=doubt)
        spec = LevelSpec(self.kernel, self.fit, self.units, source=True)
        each = (source_layer(NoBeliefs(b), *pair, spec) for pair in zip(levels, sources, strict=False))
        members = tuple(map(exact_beliefs, each))
        weights = StarWeights(params.weights, params.weight_var, params.own, params.balance)
        below: Beliefs = StarBeliefs(members, weights) if members else NoBeliefs(b)
        layer = Layer.observe(below, levels[-1], target, kernel=self.kernel)
        return TransferPosterior(layer, FitResult(Units.identity(target), params), target.y)
