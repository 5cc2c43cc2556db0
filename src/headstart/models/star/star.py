"""Learning a star: every source on its own, then the target on top of their weighted sum (models.star.weights)."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headstart.data.dataset import Dataset, task_name
from headstart.data.units import Units, spread_of
from headstart.errors import InputError
from headstart.gp.fit import Seed, fit, generator_from
from headstart.gp.hyperparameters import Expected
from headstart.gp.restarts import FitReport
from headstart.models.botorch import TransferPosterior
from headstart.models.chain.beliefs import At, Beliefs, ExactBeliefs, NoBeliefs
from headstart.models.chain.fitting import fit_layer
from headstart.models.chain.layer import Layer, Propagation
from headstart.models.chain.sequential import expanded_levels
from headstart.models.model import Prior, TransferModel
from headstart.models.params import ModelParams, StarParams
from headstart.models.predictor import Outcome
from headstart.models.star.weighting import SourceFacts, Weighting
from headstart.models.star.weights import StarBeliefs, StarWeights

__all__ = ["Alone", "Star", "StarPrior", "learn_alone"]


@dataclass(frozen=True)
class Alone:
    """Every source learnt on its own: a layer each, in common model units. All models with sources can begin here."""

    sources: tuple[Dataset, ...]
    units: Units
    layers: tuple[Layer, ...]
    reports: tuple[FitReport, ...]

    @property
    def known(self) -> Units:
        """The units, with the scale set to 1 where it can only come from the target."""
        return _known(self.units, self.sources)

    @cached_property
    def members(self) -> tuple[ExactBeliefs, ...]:
        """Every source's own posterior, which the weighted sum is made of."""
        return tuple(_exact(layer) for layer in self.layers)

    @property
    def facts(self) -> SourceFacts:
        """The sources' spreads in model units; every source counts."""
        spread = torch.stack([spread_of(s.y, s.y.mean(-1)) / self.known.scale for s in self.sources], dim=-1)
        return SourceFacts(spread, torch.ones_like(spread))

    def only(self, i: int) -> Alone:
        """Source i as the only one."""
        one = slice(i, i + 1)
        return replace(self, sources=self.sources[one], layers=self.layers[one], reports=self.reports[one])

    def locate(self, X: Float[Tensor, "*b m d"]) -> At:
        """Every source's posterior at X; the weights come with the target."""
        with torch.no_grad():
            return At(X, 0.0 * X.sum(-1), parts=tuple(member.at(X) for member in self.members))


def _known(units: Units, sources: tuple[Dataset, ...]) -> Units:
    first = sources[0]
    return units.completed(Dataset.empty(first.d, batch_shape=first.batch_shape, device=first.X.device))


def learn_alone(sources: tuple[Dataset, ...], model: TransferModel, seed: Seed) -> Alone:
    """A Gaussian process for every source, those of equal size in lockstep, fitted in their own units.

    The layers speak common units. A source whose values are small next to the others' is not fitted with bounds that
    are made for unit variance; one that is constant has no units but the common ones.
    """
    shared = Units.of(sources)
    units = _known(shared, sources)
    generator = generator_from(seed)
    alike: dict[tuple[int, tuple[int, ...], bool], list[int]] = defaultdict(list)
    for i, source in enumerate(sources):
        alike[source.n, source.unseen, source.error_var is None].append(i)
    layers: dict[int, Layer] = {}
    reports: dict[int, FitReport] = {}
    for members in alike.values():
        first = members[0]
        X, y = (torch.stack([getattr(sources[i], what) for i in members]) for what in ("X", "y"))
        known = [error_var for i in members if (error_var := sources[i].error_var) is not None]
        name, error_var = task_name(sources[first], first), torch.stack(known) if known else None
        together = replace(sources[first], X=X, y=y, name=name, error_var=error_var)
        own = Units.of([together])
        own = Units(own.offset, torch.where(own.scale > 0, own.scale, units.scale))
        layer, report = fit_layer(
            NoBeliefs(together.batch_shape),
            own.inward(together),
            model=model,
            propagation=Propagation.EXACT,
            seed=generator,
            name=together.name,
        )
        params = layer.params.scaled(own.scale, own.offset).scaled(1 / units.scale, -units.offset / units.scale)
        for row, i in enumerate(members):
            inward = units.inward(sources[i])
            layers[i] = Layer.observe(
                NoBeliefs(inward.batch_shape),
                params.at_row(row),
                inward.X,
                inward.y,
                kernel=model.kernel,
                propagation=Propagation.EXACT,
                error_var=inward.error_var,
            )
            reports[i] = report.at_row(row, task_name(sources[i], i))
    n = range(len(sources))
    return Alone(sources, shared, tuple(layers[i] for i in n), tuple(reports[i] for i in n))


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


def _exact(layer: Layer) -> ExactBeliefs:
    beliefs = layer.as_beliefs()
    assert isinstance(beliefs, ExactBeliefs)
    return beliefs


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
            _exact(
                Layer.observe(
                    NoBeliefs(b),
                    level,
                    source.X,
                    source.y,
                    kernel=self.kernel,
                    propagation=Propagation.EXACT,
                    error_var=source.error_var,
                )
            )
            for level, source in zip(levels, sources, strict=False)
        )
        layer = _on_top(members, params, target, self)
        return TransferPosterior(layer, Outcome(Units.identity(target), params), target.y)
