"""Models trained level by level: MHGP, SHGP and BHGP, whose sources never hear of the target, and GPBO without any."""

from __future__ import annotations

from dataclasses import dataclass, replace

from headstart.data.dataset import Dataset, task_name
from headstart.data.units import OutputUnits, Units
from headstart.errors import InputError
from headstart.gp.draws import draws_around
from headstart.gp.fit import FitReport, Seed, generator_from
from headstart.gp.hyperparameters import GPParams
from headstart.models.chain.beliefs import Beliefs, BeliefsAt, NoBeliefs
from headstart.models.chain.condensed import LevelSpec, source_layer
from headstart.models.chain.fitting import fit_layer, fit_level, level_layer
from headstart.models.chain.layer import Layer, Propagation
from headstart.models.fitcache import fit_as_arrays, fit_from_arrays, fit_key, options_in_key, values_of
from headstart.models.learning import (
    FitJob,
    LearnContext,
    count_in_words,
    expected_seconds,
    integer_seed,
    seed_of_level,
)
from headstart.models.mixture import Mixture
from headstart.models.model import Prior, TransferModel
from headstart.models.params import ChainParams, ModelParams, expanded, require_levels, rescaled
from headstart.models.posterior import FitResult, TransferPosterior
from headstart.tuning import PLAIN_TUNING


@dataclass(frozen=True, kw_only=True)
class SequentialPrior(Prior):
    """The stack of sources, factorised once; a new target data set costs O(N_t N_s² + N_t² N_s + N_t³)."""

    model: Sequential
    units: Units
    levels: tuple[GPParams, ...]
    below: Beliefs

    def _fitted(self, target: Dataset, seed: Seed) -> TransferPosterior:
        units = self.units.completed(target)
        layer, report = fit_layer(self.below, units.inward(target), replace(self.model.spec, seed=seed))
        params = rescaled(ChainParams((*self.levels, layer.params)), units.scale, units.offset)
        return TransferPosterior(layer, FitResult(units, params, (*self.fit_reports, report)), target.y)


@dataclass(frozen=True, kw_only=True)
class Sequential(TransferModel):
    """Every task is the previous one plus a residual, learnt one at a time; ``propagation`` says what is inherited."""

    propagation: Propagation

    @property
    def spec(self) -> LevelSpec:
        """How every level is fitted."""
        return LevelSpec(self.kernel, self.fit, self.units, self.propagation)

    def _learn(self, sources: tuple[Dataset, ...], seed: Seed, context: LearnContext) -> SequentialPrior:
        entropy = integer_seed(seed)
        shared = self.units is OutputUnits.SHARED
        units = Units.of(sources) if shared else Units.identity(sources[0])
        below: Beliefs = NoBeliefs(sources[0].batch_shape)
        inward = tuple(units.inward(source) for source in sources)
        levels: list[GPParams] = []
        reports: list[FitReport] = []
        done = context.meter(f"Learning a chain of {count_in_words(sources)}", sum(map(expected_seconds, sources)))
        for i, source in enumerate(sources):
            spec = replace(self.spec, seed=seed_of_level(entropy, i), name=task_name(source, i), source=True)
            layer, report = learn_level(below, inward[: i + 1], tuple(levels), spec, context)
            below = layer.as_beliefs()
            levels.append(layer.params)
            reports.append(report)
            done(expected_seconds(source))
        return SequentialPrior(
            model=self, sources=sources, units=units, levels=tuple(levels), below=below, fit_reports=tuple(reports)
        )

    def _at(self, params: ModelParams, sources: tuple[Dataset, ...], target: Dataset) -> TransferPosterior:
        if not isinstance(params, ChainParams):
            raise InputError(f"A sequential model takes ChainParams, but got {type(params).__name__}.")
        levels = expanded_levels(params.levels, len(sources) + 1, target)
        below: Beliefs = NoBeliefs(target.batch_shape)
        for level, source in zip(levels, sources, strict=False):
            below = source_layer(below, level, source, replace(self.spec, source=True)).as_beliefs()
        layer = Layer.observe(below, levels[-1], target, kernel=self.kernel, propagation=self.propagation)
        return TransferPosterior(layer, FitResult(Units.identity(target), ChainParams(levels)), target.y)


def learn_level(
    below: Beliefs, tasks: tuple[Dataset, ...], levels: tuple[GPParams, ...], spec: LevelSpec, context: LearnContext
) -> tuple[Layer, FitReport]:
    """The last of some tasks on top of the others' ``levels``, which ``below`` is made of, cached or fitted now."""
    task, cache, key, at = tasks[-1], context.cache, "", None
    found: tuple[GPParams, FitReport] | None = None
    if cache is not None:
        values = values_of(levels)
        options = (spec.kernel, options_in_key(spec.fit), spec.units, spec.propagation, spec.seed)
        key = fit_key("level", tasks, *options, values)
        found = cache.get(key, lambda arrays: fit_from_arrays(arrays, task, spec.name))
    if found is None:
        job = FitJob(_fit_level, (below, task, spec), task.n, expected_seconds(task))
        ((_, (params, report, at)),) = context.run([job])
        found = params, report
        if cache is not None:
            cache.put(key, fit_as_arrays(*found))
    return level_layer(below, found[0], task, spec, at), found[1]


def _fit_level(below: Beliefs, task: Dataset, spec: LevelSpec) -> tuple[GPParams, FitReport, BeliefsAt | None]:
    found = fit_level(below, task, spec)
    return found.params, found.report, found.at


def expanded_levels(levels: tuple[GPParams, ...], n: int, target: Dataset) -> tuple[GPParams, ...]:
    """One process per task, checked, for the target's batch of problems and on its device."""
    require_levels(levels, n, target.d)
    return tuple(expanded(level, target.batch_shape, target.X.device) for level in levels)


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
            # a mixture over what the hyperparameters may be, the most probable ones first
            points, weights = draws_around(found.evidence, found.theta, model.fit.draws, generator)
            layer = replace(layer, shift_log_sd=None)  # drawn, too
            others = (layer.with_observations(inward, found.as_params(point), layer.at) for point in points[1:])
            predictor = Mixture((layer, *others), weights.reshape(*target.batch_shape, -1))
        params = rescaled(ChainParams((layer.params,)), units.scale, units.offset)
        return TransferPosterior(predictor, FitResult(units, params, (found.report,), blind=True), target.y)


@dataclass(frozen=True, kw_only=True)
class Single(TransferModel):
    """An ordinary Gaussian process on the target data."""

    needs_sources = False

    def _learn(self, sources: tuple[Dataset, ...], seed: Seed, context: LearnContext) -> SinglePrior:  # noqa: ARG002
        return SinglePrior(model=self, sources=sources)

    def _at(self, params: ModelParams, sources: tuple[Dataset, ...], target: Dataset) -> TransferPosterior:  # noqa: ARG002
        return Sequential(kernel=self.kernel, propagation=Propagation.EXACT).at(params, target=target)
