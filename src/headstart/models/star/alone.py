"""Every source learnt on its own: where all models whose sources are independent begin."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

from headstart.data.dataset import Dataset, task_name
from headstart.data.units import Units, spread_of
from headstart.gp.fit import Seed, generator_from
from headstart.gp.hyperparameters import GPParams
from headstart.gp.restarts import FitReport
from headstart.models.chain.beliefs import At, ExactBeliefs, NoBeliefs
from headstart.models.chain.fitting import fit_layer
from headstart.models.chain.layer import Layer, Propagation
from headstart.models.model import TransferModel
from headstart.models.star.weighting import SourceFacts

__all__ = ["Alone", "exact_beliefs", "learn_alone"]


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
        return tuple(exact_beliefs(layer) for layer in self.layers)

    @property
    def facts(self) -> SourceFacts:
        """The sources' spreads in model units; every source counts."""
        spread = torch.stack([spread_of(s.y, s.y.mean(-1)) / self.known.scale for s in self.sources], dim=-1)
        return SourceFacts(spread, torch.ones_like(spread))

    def only(self, i: int) -> Alone:
        """Source i as the only one."""
        return self.some((i,))

    def some(self, index: Sequence[int]) -> Alone:
        """Some of the sources, in the common units of all."""
        sources = tuple(self.sources[i] for i in index)
        layers = tuple(self.layers[i] for i in index)
        return replace(self, sources=sources, layers=layers, reports=tuple(self.reports[i] for i in index))

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
    layers: dict[int, Layer] = {}
    reports: dict[int, FitReport] = {}
    for members in _alike(sources):
        for i, (params, report) in zip(members, _fit_together(sources, members, units, model, generator), strict=True):
            inward = units.inward(sources[i])
            layers[i] = Layer.observe(
                NoBeliefs(inward.batch_shape),
                params,
                inward.X,
                inward.y,
                kernel=model.kernel,
                propagation=Propagation.EXACT,
                error_var=inward.error_var,
            )
            reports[i] = report
    n = range(len(sources))
    return Alone(sources, shared, tuple(layers[i] for i in n), tuple(reports[i] for i in n))


def _alike(sources: tuple[Dataset, ...]) -> list[list[int]]:
    """Which sources can be learnt in lockstep."""
    alike: dict[tuple[int, tuple[int, ...], bool], list[int]] = defaultdict(list)
    for i, source in enumerate(sources):
        alike[source.n, source.unseen, source.error_var is None].append(i)
    return list(alike.values())


def _fit_together(
    sources: tuple[Dataset, ...], members: list[int], units: Units, model: TransferModel, generator: torch.Generator
) -> list[tuple[GPParams, FitReport]]:
    """Hyperparameters of these sources, in the common units, and the report of each."""
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
    return [(params.at_row(row), report.at_row(row, task_name(sources[i], i))) for row, i in enumerate(members)]


def exact_beliefs(layer: Layer) -> ExactBeliefs:
    """What a source on its own says: all of its covariance."""
    beliefs = layer.as_beliefs()
    assert isinstance(beliefs, ExactBeliefs)
    return beliefs
