"""Learning a star: every source on its own, then the target on top of their weighted sum (models.star_weights)."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headstart.data.dataset import Dataset, task_name
from headstart.data.units import Units, spread_of
from headstart.errors import InputError
from headstart.gp.fit import FitReport, Seed, fit, generator_from
from headstart.models.beliefs import At, ExactBeliefs, NoBeliefs
from headstart.models.botorch import TransferPosterior
from headstart.models.layer import Layer, Propagation
from headstart.models.model import Prior, TransferModel
from headstart.models.params import ModelParams, StarParams
from headstart.models.predictor import Outcome
from headstart.models.sequential import expanded_levels, fit_layer
from headstart.models.star_weights import SourceFacts, StarBeliefs, StarWeights, Weighting

__all__ = ["Star", "StarPrior", "learn_members"]


def learn_members(
    sources: tuple[Dataset, ...], model: TransferModel, seed: Seed, units: Units
) -> tuple[tuple[Layer, ...], tuple[FitReport, ...]]:
    """A Gaussian process for every source, those of equal size in lockstep, fitted in their own units.

    The layers speak the model's ``units``. A source whose values are small next to the others' is not fitted with
    bounds that are made for unit variance; one that is constant has no units but the model's.
    """
    generator = generator_from(seed)
    alike: dict[tuple[int, tuple[int, ...]], list[int]] = defaultdict(list)
    for i, source in enumerate(sources):
        alike[source.n, source.unseen].append(i)
    layers: dict[int, Layer] = {}
    reports: dict[int, FitReport] = {}
    for (_, unseen), members in alike.items():
        X, y = (torch.stack([getattr(sources[i], what) for i in members]) for what in ("X", "y"))
        first = members[0]
        together = Dataset(X, y, task_name(sources[first], first), unseen, sources[first].categories)
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
            )
            reports[i] = report.at_row(row, task_name(sources[i], i))
    n = len(sources)
    return tuple(layers[i] for i in range(n)), tuple(reports[i] for i in range(n))


@dataclass(frozen=True, kw_only=True)
class StarPrior(Prior):
    """The sources' posteriors, learnt once. A new target data set costs O(N_t Σ N_ν² + s N_t² + N_t³)."""

    model: Star
    units: Units
    layers: tuple[Layer, ...]
    about: SourceFacts
    reports: tuple[FitReport, ...]

    @property
    def fit_reports(self) -> tuple[FitReport, ...]:
        """One per source, in order."""
        return self.reports

    @property
    def members(self) -> tuple[ExactBeliefs, ...]:
        """The sources' posteriors."""
        return tuple(_exact(layer) for layer in self.layers)

    @property
    def known(self) -> Units:
        """The units, with the scale set to 1 where it can only come from the target."""
        first = self.sources[0]
        return self.units.completed(Dataset.empty(first.d, batch_shape=first.batch_shape, device=first.X.device))

    def gated(self, let_in: Bool[Tensor, "*b s"]) -> StarPrior:
        """The same without the sources that are not let in: their weight is 0."""
        return replace(self, about=replace(self.about, open=let_in.to(self.about.open.dtype)))

    def only(self, i: int) -> StarPrior:
        """The star of a single source."""
        alone = slice(i, i + 1)
        facts = SourceFacts(self.about.spread[..., alone], torch.ones_like(self.about.open[..., alone]))
        return replace(
            self, sources=self.sources[alone], layers=self.layers[alone], about=facts, reports=self.reports[alone]
        )

    def locate(self, X: Float[Tensor, "*b m d"]) -> At:
        """Every source's posterior at X; the weights come with the target."""
        with torch.no_grad():
            return At(X, 0.0 * X.sum(-1), parts=tuple(member.at(X) for member in self.members))

    def _condition(self, target: Dataset, seed: Seed) -> TransferPosterior:
        units = self.units.completed(target)
        inward, members = units.inward(target), self.members
        evidence = self.model.weighting.evidence(members, self.about, inward, self.model.kernel)
        b = target.batch_shape
        theta, report = fit(evidence, self.model.fit, seed=seed, task="target", batch_shape=b)
        own, omega = evidence.solution(theta.reshape(b.numel(), -1))
        weights = self.model.weighting.weights(omega.reshape(*b, -1), self.about)
        params = StarParams(
            (*(layer.params for layer in self.layers), own.reshaped(b)), weights.mean, weights.var, weights.own
        )
        layer = _on_top(members, params, inward, self.model)
        scaled = params.scaled(units.scale, units.offset)
        return TransferPosterior(layer, Outcome(units, scaled, (*self.reports, report)), target.y)


def _exact(layer: Layer) -> ExactBeliefs:
    beliefs = layer.as_beliefs()
    assert isinstance(beliefs, ExactBeliefs)
    return beliefs


def _on_top(members: tuple[ExactBeliefs, ...], params: StarParams, target: Dataset, model: TransferModel) -> Layer:
    weights = StarWeights(params.weights, params.weight_var, params.own)
    return Layer.observe(
        StarBeliefs(members, weights) if members else NoBeliefs(target.batch_shape),
        params.levels[-1],
        target.X,
        target.y,
        kernel=model.kernel,
        propagation=Propagation.EXACT,
    )


@dataclass(frozen=True, kw_only=True)
class Star(TransferModel):
    """Independent sources below the target; ``weighting`` says how they add up."""

    weighting: Weighting

    def _learn(self, sources: tuple[Dataset, ...], seed: Seed) -> StarPrior:
        units = Units.of(sources)
        known = units.completed(
            Dataset.empty(sources[0].d, batch_shape=sources[0].batch_shape, device=sources[0].X.device)
        )
        layers, reports = learn_members(sources, self, seed, known)
        return StarPrior(
            model=self, sources=sources, units=units, layers=layers, about=about(sources, known), reports=reports
        )

    def _at(self, params: ModelParams, sources: tuple[Dataset, ...], target: Dataset) -> TransferPosterior:
        if not isinstance(params, StarParams):
            raise InputError(f"A star model takes StarParams, but got {type(params).__name__}.")
        params.require()
        levels = expanded_levels(params.levels, len(sources) + 1, target)
        b = target.batch_shape
        params = StarParams(levels, *(w.expand(*b, -1) for w in (params.weights, params.weight_var, params.own)))
        members = tuple(
            _exact(
                Layer.observe(
                    NoBeliefs(b), level, source.X, source.y, kernel=self.kernel, propagation=Propagation.EXACT
                )
            )
            for level, source in zip(levels, sources, strict=False)
        )
        layer = _on_top(members, params, target, self)
        return TransferPosterior(layer, Outcome(Units.identity(target), params), target.y)


def about(sources: tuple[Dataset, ...], units: Units) -> SourceFacts:
    """The sources' spreads in model units; every source counts."""
    spread = torch.stack([spread_of(s.y, s.y.mean(-1)) / units.scale for s in sources], dim=-1)
    return SourceFacts(spread, torch.ones_like(spread))
