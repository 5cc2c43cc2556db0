"""Learning a star: every source on its own, then the target on top of their weighted sum (models.star.weights)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from jaxtyping import Bool, Float
from torch import Tensor

from headstart.data.dataset import Dataset
from headstart.data.units import Units
from headstart.errors import InputError
from headstart.gp.fit import Seed, fit
from headstart.gp.hyperparameters import Expected
from headstart.gp.restarts import FitReport
from headstart.models.botorch import TransferPosterior
from headstart.models.chain.beliefs import At, Beliefs, ExactBeliefs, NoBeliefs
from headstart.models.chain.layer import Layer, Propagation
from headstart.models.chain.sequential import expanded_levels
from headstart.models.large.condensed import source_layer
from headstart.models.model import Prior, TransferModel
from headstart.models.params import ModelParams, StarParams
from headstart.models.predictor import Outcome
from headstart.models.star.alone import Alone, exact_beliefs, learn_alone
from headstart.models.star.weighting import SourceFacts, Weighting
from headstart.models.star.weights import StarBeliefs, StarWeights

__all__ = ["Star", "StarPrior"]


@dataclass(frozen=True, kw_only=True)
class StarPrior(Prior):
    """The sources' posteriors, learnt once. A new target data set costs O(N_t Σ N_ν² + s N_t² + N_t³)."""

    model: Star
    alone: Alone
    facts: SourceFacts
    expected: Expected | None = None  # of the target's own hyperparameters

    @property
    def fit_reports(self) -> tuple[FitReport, ...]:
        """One per source, in order."""
        return self.alone.reports

    def gated(self, let_in: Float[Tensor, "*b s"] | Bool[Tensor, "*b s"]) -> StarPrior:
        """The same with sources that count as far as they are let in: 0 is a weight of 0."""
        return replace(self, facts=replace(self.facts, open=let_in.to(self.facts.open)))

    def locate(self, X: Float[Tensor, "*b m d"]) -> At:
        """Every source's posterior at X."""
        return self.alone.locate(X)

    def _condition(self, target: Dataset, seed: Seed) -> TransferPosterior:
        return self.given(target, seed, self.alone.locate(target.X))

    def given(self, target: Dataset, seed: Seed, at: At) -> TransferPosterior:
        """As ``condition`` for a target behind its map, with the sources at its inputs at hand; nothing is checked."""
        if not target.categories:
            target = replace(target, categories=self.sources[0].categories)
        units = self.alone.units.completed(target)
        inward, members = units.inward(target), self.alone.members
        evidence = self.model.weighting.evidence(members, self.facts, inward, self.model.kernel, at)
        b = target.batch_shape
        theta, report = fit(evidence, self.model.fit, seed=seed, task="target", batch_shape=b, expected=self.expected)
        own, omega = evidence.solution(theta.reshape(b.numel(), -1))
        weights = self.model.weighting.weights(omega.reshape(*b, -1), self.facts)
        params = StarParams(
            (*(layer.params for layer in self.alone.layers), own.reshaped(b)),
            weights.mean,
            weights.var,
            weights.own,
            weights.balance,
        )
        layer = _on_top(members, params, inward, self.model, at)
        scaled = params.scaled(units.scale, units.offset)
        return TransferPosterior(layer, Outcome(units, scaled, (*self.alone.reports, report)), target.y)


def _on_top(
    members: tuple[ExactBeliefs, ...],
    params: StarParams,
    target: Dataset,
    model: TransferModel,
    at: At | None = None,
) -> Layer:
    """The target's layer; ``at`` are the sources at its inputs, if they are at hand."""
    weights = StarWeights(params.weights, params.weight_var, params.own, params.balance)
    below: Beliefs = StarBeliefs(members, weights) if members else NoBeliefs(target.batch_shape)
    return Layer.observe(
        below,
        params.levels[-1],
        target.X,
        target.y,
        kernel=model.kernel,
        propagation=Propagation.EXACT,
        at=None if at is None else below.weigh(at),
        error_var=target.error_var,
    )


@dataclass(frozen=True, kw_only=True)
class Star(TransferModel):
    """Independent sources below the target; ``weighting`` says how they add up."""

    weighting: Weighting

    def _learn(self, sources: tuple[Dataset, ...], seed: Seed) -> StarPrior:
        return self.upon(learn_alone(sources, self, seed))

    def upon(self, alone: Alone) -> StarPrior:
        """The star of sources that were learnt already."""
        return StarPrior(model=self, sources=alone.sources, alone=alone, facts=alone.facts)

    def _at(self, params: ModelParams, sources: tuple[Dataset, ...], target: Dataset) -> TransferPosterior:
        if not isinstance(params, StarParams):
            raise InputError(f"A star model takes StarParams, but got {type(params).__name__}.")
        params.require()
        levels = expanded_levels(params.levels, len(sources) + 1, target)
        b = target.batch_shape
        own = (params.weights, params.weight_var, params.own, params.balance)
        params = StarParams(levels, *(w.expand(*b, -1) for w in own))
        members = tuple(
            exact_beliefs(source_layer(NoBeliefs(b), level, source, kernel=self.kernel, propagation=Propagation.EXACT))
            for level, source in zip(levels, sources, strict=False)
        )
        layer = _on_top(members, params, target, self)
        return TransferPosterior(layer, Outcome(Units.identity(target), params), target.y)
