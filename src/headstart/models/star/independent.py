"""Every source learnt on its own: where all models whose sources are independent begin."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

from headstart.data.dataset import Dataset, task_name
from headstart.data.units import Units, spread_of
from headstart.gp.fit import FitReport, Seed
from headstart.gp.hyperparameters import GPParams
from headstart.models.chain.beliefs import BeliefsAt, ExactBeliefs, NoBeliefs, sources_at
from headstart.models.chain.fitting import fit_layer
from headstart.models.chain.layer import Layer, Propagation
from headstart.models.large.condensed import ALL_ROWS, EXACT, exact_rows, source_layer
from headstart.models.learning.learning import learning
from headstart.models.learning.lessons import entropy_from, expected_seconds, in_number
from headstart.models.learning.numbers import Numbers, content_key, fit_in_numbers, fit_of_numbers, is_fit, options_of
from headstart.models.model import TransferModel
from headstart.models.star.weighting import SourceFacts

# Elements of all covariance matrices that are worked on in lockstep: more of them gain nothing
_TOGETHER = 1 << 19


@dataclass(frozen=True)
class IndependentSources:
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

    def only(self, i: int) -> IndependentSources:
        """Source i as the only one."""
        return self.some((i,))

    def some(self, index: Sequence[int]) -> IndependentSources:
        """Some of the sources, in the common units of all."""
        sources = tuple(self.sources[i] for i in index)
        layers = tuple(self.layers[i] for i in index)
        return replace(self, sources=sources, layers=layers, reports=tuple(self.reports[i] for i in index))

    def locate(self, X: Float[Tensor, "*b m d"]) -> BeliefsAt:
        """Every source's posterior at X; the weights come with the target."""
        with torch.no_grad():
            return sources_at(self.members, X)


def _known(units: Units, sources: tuple[Dataset, ...]) -> Units:
    first = sources[0]
    return units.completed(Dataset.empty(first.d, batch_shape=first.batch_shape, device=first.X.device))


def fit_independently(sources: tuple[Dataset, ...], model: TransferModel, seed: Seed) -> IndependentSources:
    """A Gaussian process for every source, those of equal size in lockstep, fitted in their own units.

    The layers speak common units. A source whose values are small next to the others' is not fitted with bounds that
    are made for unit variance; one that is constant has no units but the common ones. Every source is fitted from the
    same starting points, so that it gives what it gives alone, whatever else is learnt.
    """
    shared = Units.of(sources)
    units = _known(shared, sources)
    made: dict[int, Layer] = {}
    exact = exact_rows([source.n for source in sources])
    found = fit_each(sources, units.scale, model, seed, made)
    layers = []
    for i, (source, (params, _)) in enumerate(zip(sources, found, strict=True)):
        if i in made:
            layers.append(made[i].scaled(1 / units.scale, -units.offset / units.scale))
            continue
        known = params.scaled(1 / units.scale, -units.offset / units.scale)
        inward = units.inward(source)
        options = {"kernel": model.kernel, "propagation": Propagation.EXACT, "exact": exact}
        layers.append(source_layer(NoBeliefs(source.batch_shape), known, inward, **options))  # type: ignore[arg-type]
    return IndependentSources(sources, shared, tuple(layers), tuple(report for _, report in found))


def fit_each(
    sources: tuple[Dataset, ...],
    scale: Float[Tensor, "*b"],
    model: TransferModel,
    seed: Seed,
    made: dict[int, Layer] | None = None,
) -> list[tuple[GPParams, FitReport]]:
    """The process of every source in the units of its values, fitted in its own, and how it was found.

    ``scale`` is that of a source that is constant. The layers of large sources that are fitted in this process, in the
    same units, are put into ``made``: their factors are costly.
    """
    groups, entropy = _alike(sources, model), entropy_from(seed)
    exact, names = exact_rows([source.n for source in sources]), [task_name(s, i) for i, s in enumerate(sources)]
    lessons = [
        AloneLesson(tuple(sources[i] for i in m), tuple(names[i] for i in m), scale, model, entropy, exact)
        for m in groups
    ]
    results = learning().numbers_of(lessons, f"Learning from {in_number(sources)}")
    order = [i for members in groups for i in members]
    found = dict(zip(order, (own for each in results for own in each), strict=True))
    if made is not None:
        made |= {m[0]: lesson.made[0] for m, lesson in zip(groups, lessons, strict=True) if lesson.made}
    return [fit_of_numbers(found[i], names[i], source.X.device) for i, source in enumerate(sources)]


def _alike(sources: tuple[Dataset, ...], model: TransferModel) -> list[list[int]]:
    """Which sources are learnt in lockstep: of one size, and no more of them than gain by it."""
    alike: dict[tuple[int, tuple[int, ...], bool], list[int]] = defaultdict(list)
    for i, source in enumerate(sources):
        alike[source.n, source.unseen, source.error_var is None].append(i)
    groups = []
    for (n, _, _), members in alike.items():
        most = max(1, _TOGETHER // (model.fit.restarts * n * n * sources[0].batch_shape.numel()))
        most = 1 if n > ALL_ROWS else most
        groups += [members[i : i + most] for i in range(0, len(members), most)]
    return groups


@dataclass(frozen=True, eq=False)
class AloneLesson:
    """Sources of one size, to be fitted in lockstep; ``scale`` is that of one that is constant."""

    sources: tuple[Dataset, ...]
    names: tuple[str, ...]
    scale: Float[Tensor, "*b"]
    model: TransferModel
    entropy: int
    exact: int = EXACT  # up to so many rows a source's layer is exact
    made: list[Layer] = field(default_factory=list, repr=False)  # that of a large source, which is alone in its lesson

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """One for every source, which says nothing of the others."""
        options = options_of(self.model)
        return tuple(content_key("alone", [s], options, self.entropy, *self._lent(s)) for s in self.sources)

    def _lent(self, source: Dataset) -> tuple[object, ...]:
        """What a result has from the other sources: the scale of one that is constant, the layer of one too large."""
        constant = Units.of([source]).scale <= 0
        scale = (self.scale.tolist(),) if bool(constant.any()) else ()
        return (*scale, self.exact) if source.n > self.exact else scale

    @property
    def cost(self) -> float:
        """Seconds."""
        return sum(expected_seconds(source) for source in self.sources)

    @property
    def rows(self) -> int:
        """Of its matrix."""
        return self.sources[0].n

    def only(self, which: Sequence[int]) -> AloneLesson:
        """Some of the sources."""
        own = ((self.sources[i], self.names[i]) for i in which)
        sources, names = zip(*own, strict=True)
        return replace(self, sources=sources, names=names)

    def accepts(self, i: int, numbers: Numbers) -> bool:
        """Whether these can be the process of source i."""
        return is_fit(numbers, self.sources[i])

    def run(self) -> list[Numbers]:
        """The hyperparameters of every source, in the units of its values, and its report."""
        sources, large = self.sources, self.sources[0].n > ALL_ROWS
        together = sources[0] if large else _stacked(sources)
        own = Units.of([together])
        own = Units(own.offset, torch.where(own.scale > 0, own.scale, self.scale))
        layer, report = fit_layer(
            NoBeliefs(together.batch_shape),
            own.inward(together),
            model=self.model,
            propagation=Propagation.EXACT,
            seed=self.entropy,
            name=self.names[0],
            source=True,
            exact=self.exact,
        )
        params = layer.params.scaled(own.scale, own.offset)
        if large:
            self.made.append(layer.scaled(own.scale, own.offset))
            return [fit_in_numbers(params, report)]
        return [fit_in_numbers(params.at_row(row), report.at_row(row, "")) for row in range(len(sources))]


def _stacked(sources: tuple[Dataset, ...]) -> Dataset:
    """Sources of one size as a batch of problems."""
    X, y = (torch.stack([getattr(source, what) for source in sources]) for what in ("X", "y"))
    known = [source.error_var for source in sources if source.error_var is not None]
    return replace(sources[0], X=X, y=y, error_var=torch.stack(known) if known else None)


def exact_beliefs(layer: Layer) -> ExactBeliefs:
    """What a source on its own says: all of its covariance."""
    beliefs = layer.as_beliefs()
    assert isinstance(beliefs, ExactBeliefs)
    return beliefs
