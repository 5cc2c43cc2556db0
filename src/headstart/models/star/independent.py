"""Every source fitted on its own: where all models whose sources are independent begin."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import itemgetter
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from headstart.data.dataset import Dataset, task_name
from headstart.data.thinning import representative
from headstart.data.units import OutputUnits, Units, spread_of
from headstart.gp.fit import FitReport, Seed
from headstart.gp.hyperparameters import OFFSET_VAR, GPParams, Layout, ThetaPrior, batch_slot
from headstart.models.chain.beliefs import BeliefsAt, ExactBeliefs, NoBeliefs, sources_at
from headstart.models.chain.condensed import LevelSpec, exact_rows, source_layer
from headstart.models.chain.fitting import fit_level
from headstart.models.chain.layer import Layer
from headstart.models.fitcache import fit_as_arrays, fit_from_arrays, fit_key, options_in_key
from headstart.models.learning import FitJob, LearnContext, count_in_words, expected_seconds, integer_seed
from headstart.models.model import TransferModel
from headstart.models.posterior import map_tensors
from headstart.tuning import AUTO_TUNING, PLAIN_TUNING

# Elements of all covariance matrices that are worked on in lockstep: more of them gain nothing
_TOGETHER = 1 << 19
_LEAST_TRUST = 1e-6
_INDEPENDENT = 100.0  # exp(−100) is no correlation


@dataclass(frozen=True)
class IndependentSources:
    """Every source learnt on its own: a layer each, in common model units, and how far it is trusted, from 0 to 1."""

    sources: tuple[Dataset, ...]
    units: Units
    layers: tuple[Layer, ...]
    reports: tuple[FitReport, ...]
    trust: Float[Tensor, "*b s"]
    index: tuple[int, ...]  # their positions among all, of which these may be ``some``
    doubt: Float[Tensor, "*b _"] | None = None  # of the sources that are pooled into one

    @property
    def known(self) -> Units:
        """The units, with the scale set to 1 where it can only come from the target."""
        return self.units.completed(self.sources[0].head(0))

    @cached_property
    def members(self) -> tuple[ExactBeliefs, ...]:
        """Every source's own posterior, which the weighted sum is made of."""
        return tuple(exact_beliefs(layer) for layer in self.layers)

    @cached_property
    def spread(self) -> Float[Tensor, "*b s"]:
        """The spread of every source's values in model units."""
        return torch.stack([spread_of(s.y, s.y.mean(-1)) / self.known.scale for s in self.sources], dim=-1)

    @property
    def expected_shifts(self) -> ThetaPrior:
        """log batch_var of a further task: what the sources with shifts say of it, on the general prior N(c, s²).

        At its fitted value m a source has the information I on log batch_var (``Layer.shift_information``), so that by
        its results alone it is m + (m − c)/(s² I) with the variance 1/I, at most half the number of differences between
        batches, which is what many rows show; tasks differ by d besides:

            precision    Σ trust/(1/I + d²) + 1/s²        spread²    1/precision + d²
        """
        general = Layout((batch_slot(),)).prior(self.sources[0].batch_shape.numel())
        c, s2 = general.centre.to(self.trust), general.spread.to(self.trust).square()
        d2 = PLAIN_TUNING.batch_var_between_tasks**2
        total, weighted = 1 / s2, c / s2
        for source, layer, trust in zip(self.sources, self.layers, self.trust.unbind(-1), strict=True):
            if source.has_shifts and layer.params.batch_var is not None:
                assert source.batch is not None
                known, m = layer.shift_information, layer.params.batch_var.log().reshape(-1, 1)
                if layer.shifts is None:
                    known = 0.5 * source.batch.sort(-1).values.diff(dim=-1).ne(0).sum(-1).to(m)
                known = known.reshape(-1, 1)
                share = trust.reshape(-1, 1) / (1 + d2 * known)
                total = total + share * known
                weighted = weighted + share * (known * m + (m - c) / s2)
        return ThetaPrior(weighted / total, (1 / total + d2).sqrt())

    def some(self, index: Sequence[int], trust: Float[Tensor, "*b k"] | None = None) -> IndependentSources:
        """Some of the sources, in the common units of all; ``trust`` in each, if it is to be another than in all."""
        return replace(
            self,
            sources=tuple(self.sources[i] for i in index),
            layers=tuple(self.layers[i] for i in index),
            reports=tuple(self.reports[i] for i in index),
            trust=self.trust[..., list(index)] if trust is None else trust,
            index=tuple(index),
        )

    def locate(self, X: Float[Tensor, "*b m d"]) -> BeliefsAt:
        """Every source's posterior at X; the weights come with the target."""
        with torch.no_grad():
            return sources_at(self.members, X)


def fit_independently(
    sources: tuple[Dataset, ...], model: TransferModel, seed: Seed, context: LearnContext
) -> IndependentSources:
    """A Gaussian process for every source, those of equal size in lockstep, fitted in their own units.

    The layers speak common units. A source whose values are small next to the others' is not fitted with bounds that
    are made for unit variance; one that is constant has no units but the common ones. Every source is fitted from the
    same starting points, so that it gives what it gives alone, whatever else is learnt.
    """
    shared = Units.of(sources)
    units = shared.completed(sources[0].head(0))
    layers, reports = fit_each(sources, [units] * len(sources), units.scale, model, seed, context)
    trust = torch.ones(*sources[0].batch_shape, len(sources), dtype=torch.float64, device=sources[0].X.device)
    return IndependentSources(sources, shared, layers, reports, trust, tuple(range(len(sources))))


def fit_each(
    sources: tuple[Dataset, ...],
    units: Sequence[Units],
    scale: Float[Tensor, "*b"],
    model: TransferModel,
    seed: Seed,
    context: LearnContext,
) -> tuple[tuple[Layer, ...], tuple[FitReport, ...]]:
    """Every source's layer in the units given for it, and its report; ``scale`` is the unit of a constant source."""
    exact = exact_rows([source.n for source in sources])
    spec = LevelSpec(model.kernel, model.fit, model.units, seed=integer_seed(seed), source=True, exact=exact)
    names = [task_name(source, i) for i, source in enumerate(sources)]
    cache, keys = context.cache, [] if context.cache is None else [_key(source, scale, spec) for source in sources]
    found: dict[int, tuple[GPParams, FitReport]] = {}
    for i, key in enumerate(keys):
        assert cache is not None
        known = cache.get(key, lambda arrays, i=i: fit_from_arrays(arrays, sources[i], names[i]))  # type: ignore[misc]
        if known is not None:
            found[i] = known
    groups = _lockstep_groups(sources, [i for i in range(len(sources)) if i not in found], model.fit.restarts)
    jobs = []
    for group in groups:
        some = tuple(sources[i] for i in group)
        seconds = sum(map(expected_seconds, some))
        jobs.append(FitJob(_fit_group, (some, scale, replace(spec, name=names[group[0]])), some[0].n, seconds))
    if jobs:
        done = context.meter(f"Learning from {count_in_words(sources)}", sum(job.seconds for job in jobs))
        for j, fits in context.run(jobs):
            for i, (params, report) in zip(groups[j], fits, strict=True):
                found[i] = params, replace(report, task=names[i])
                if cache is not None:
                    cache.put(keys[i], fit_as_arrays(params, report))
            done(jobs[j].seconds)
    layers = []
    for i, (source, unit) in enumerate(zip(sources, units, strict=True)):
        # of many rows the offset is determined with the layer: this is its variance before any data
        var = OFFSET_VAR * _own_units(source, scale).scale.square() / unit.scale.square()
        free = model.units is OutputUnits.SHARED and source.n > PLAIN_TUNING.every_row_up_to
        own, below = found[i][0].scaled(1 / unit.scale, -unit.offset / unit.scale), NoBeliefs(source.batch_shape)
        layers.append(source_layer(below, own, unit.inward(source), spec, var if free else None))
    return tuple(layers), tuple(found[i][1] for i in range(len(sources)))


def _own_units(source: Dataset, scale: Float[Tensor, "*b"]) -> Units:
    own = Units.of([source])
    return Units(own.offset, torch.where(own.scale > 0, own.scale, scale))


def _key(source: Dataset, scale: Float[Tensor, "*b"], spec: LevelSpec) -> str:
    """The key of a source's fit; of the others it has a constant source's scale, and how many rows are exact."""
    constant = bool((Units.of([source]).scale <= 0).any())
    lent = (scale.tolist() if constant else None, spec.exact if spec.exact and source.n > spec.exact else None)
    return fit_key("source", [source], spec.kernel, options_in_key(spec.fit), spec.units, spec.seed, lent)


def _lockstep_groups(sources: Sequence[Dataset], which: Sequence[int], restarts: int) -> list[list[int]]:
    """Sources of one size in groups, no larger than gains anything; a source of many rows is alone."""
    alike: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for i in which:
        known = sources[i].error_var is None, sources[i].batch is None, sources[i].has_shifts, sources[i].drift
        alike[sources[i].n, sources[i].unseen, *known].append(i)
    groups = []
    for (n, *_), members in alike.items():
        most = max(1, _TOGETHER // (restarts * n * n * sources[0].batch_shape.numel()))
        most = 1 if n > PLAIN_TUNING.every_row_up_to else most
        groups += [members[i : i + most] for i in range(0, len(members), most)]
    return groups


def _fit_group(
    sources: tuple[Dataset, ...], scale: Float[Tensor, "*b"], spec: LevelSpec
) -> list[tuple[GPParams, FitReport]]:
    """Hyperparameters and reports of sources of one size, in the units of their values."""
    large = sources[0].n > PLAIN_TUNING.every_row_up_to
    together = sources[0] if large else _stacked(sources)
    own = _own_units(together, scale)
    found = fit_level(NoBeliefs(together.batch_shape), own.inward(together), spec)
    fits = found.params.scaled(own.scale, own.offset), found.report
    return [fits] if large else [map_tensors(fits, itemgetter(row)) for row in range(len(sources))]


def _stacked(sources: tuple[Dataset, ...]) -> Dataset:
    """Sources of one size as a batch of problems."""
    together: dict[str, Any] = {}
    for what in ("X", "y", "error_var", "batch", "present"):
        values = [getattr(source, what) for source in sources]
        together[what] = None if values[0] is None else torch.stack(values)
    return replace(sources[0], **together)


def pooled(sources: Sequence[Dataset], doubt: Float[Tensor, "*b s"] | None = None) -> Dataset:
    """All sources as one task: representative rows of each (``rows_pooled``), around the mean of all its values.

    Columns that some source did not record are not seen. ``doubt`` is further noise variance of each source's rows.
    """
    parts = [representative(source, rows) for source, rows in zip(sources, rows_pooled(sources), strict=True)]
    y = torch.cat([p.y - source.y.mean(-1, keepdim=True) for p, source in zip(parts, sources, strict=True)], dim=-1)
    error_var = None
    if doubt is not None or any(part.error_var is not None for part in parts):
        extra = y.new_zeros(*y.shape[:-1], len(sources)) if doubt is None else doubt
        known = (torch.zeros_like(part.y) if part.error_var is None else part.error_var for part in parts)
        error_var = torch.cat([one + extra[..., i, None] for i, one in enumerate(known)], dim=-1)
    unseen = sorted({column for source in sources for column in source.unseen})
    X, categories = torch.cat([part.X for part in parts], dim=-2), sources[0].categories
    slowly = any(part.drift is not None for part in parts)
    return Dataset(X, y, "all sources", unseen, categories, error_var, _apart(parts), drift=1.0 if slowly else None)


def _apart(parts: Sequence[Dataset]) -> Float[Tensor, "*b n"] | None:
    """Batches of all tasks, numbered so that those of different tasks differ; None where each task has one of them.

    Where shifts drift slowly they are times in units of the drift, as far apart as makes independent what is.
    """
    if not any(part.has_shifts for part in parts):
        return None
    slowly = any(part.drift is not None for part in parts)
    found, n = [], 0.0
    for part in parts:
        labels = torch.zeros_like(part.y) if part.batch is None else part.batch
        numbers = labels.unique(return_inverse=True)[1].to(part.y) * (_INDEPENDENT if slowly else 1.0)
        if part.drift is not None:
            numbers = (labels - labels.min()) / part.drift
        found.append(n + numbers)
        n += float(numbers.max()) + (_INDEPENDENT if slowly else 1.0)
    return torch.cat(found, dim=-1)


def rows_pooled(sources: Sequence[Dataset]) -> list[int]:
    """How many rows of each source are pooled: all of the small ones, and the same number of each of the others."""
    left, found = AUTO_TUNING.pooled_rows, [0] * len(sources)
    by_size = sorted(range(len(sources)), key=lambda i: sources[i].n)
    for place, i in enumerate(by_size):
        found[i] = min(sources[i].n, max(2, left // (len(sources) - place)))
        left -= found[i]
    return found


def fit_pooled(
    alone: IndependentSources, model: TransferModel, seed: Seed, context: LearnContext
) -> IndependentSources:
    """The sources pooled into one, and its Gaussian process, in their common units.

    The rows of a source that is trusted by τ have noise of (1/τ − 1) times the variance of all rows besides.
    """
    doubt = None
    if bool((alone.trust < 1).any()):
        doubt = alone.known.scale.square().unsqueeze(-1) * (1 / alone.trust.clamp_min(_LEAST_TRUST) - 1)
    together = pooled(alone.sources, doubt)
    layers, reports = fit_each((together,), [alone.known], alone.known.scale, model, seed, context)
    certain = torch.ones_like(alone.trust[..., :1])
    return IndependentSources((together,), alone.units, layers, reports, certain, (0,), doubt)


def exact_beliefs(layer: Layer) -> ExactBeliefs:
    """What a source on its own says: all of its covariance."""
    beliefs = layer.as_beliefs()
    assert isinstance(beliefs, ExactBeliefs)
    return beliefs
