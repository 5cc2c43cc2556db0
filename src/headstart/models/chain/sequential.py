"""Models trained level by level: MHGP, SHGP and BHGP. A source never hears of the target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from headstart.data.dataset import Dataset, task_name
from headstart.data.units import OutputUnits, Units, spread_of
from headstart.errors import InputError
from headstart.gp.evidence import PlainEvidence
from headstart.gp.fit import Seed, fit, generator_from
from headstart.gp.hyperparameters import GPParams, Inputs
from headstart.gp.report import FitReport
from headstart.models.botorch import TransferPosterior
from headstart.models.chain.beliefs import At, Beliefs, NoBeliefs
from headstart.models.chain.layer import Layer, Propagation
from headstart.models.model import Prior, TransferModel
from headstart.models.params import ChainParams, ModelParams
from headstart.models.predictor import Outcome

__all__ = ["Fit", "Sequential", "SequentialPrior", "expanded_levels", "fit_layer", "fit_with_evidence"]


@dataclass(frozen=True, slots=True)
class Fit:
    """A level that was learnt: the layer at the most probable θ, the report, and how to try another θ."""

    layer: Layer
    report: FitReport
    evidence: PlainEvidence
    theta: Float[Tensor, "P p"]
    as_params: Callable[[Float[Tensor, "P p"]], GPParams]


def fit_layer(
    below: Beliefs, task: Dataset, *, model: TransferModel, propagation: Propagation, seed: Seed, name: str
) -> tuple[Layer, FitReport]:
    """One level learnt on top of fixed beliefs: the paper's partial likelihood, O(n³) per evaluation."""
    found = fit_with_evidence(below, task, model=model, propagation=propagation, seed=seed, name=name)
    return found.layer, found.report


def fit_with_evidence(
    below: Beliefs, task: Dataset, *, model: TransferModel, propagation: Propagation, seed: Seed, name: str
) -> Fit:
    """The same, with what was maximised.

    With ``OutputUnits.PER_LEVEL`` the residual is standardised first. In the end that is a mean shift and a kernel
    scaled by the residual's variance (ERRATA, fact 8), and the layer is given back in the units it came in. What the
    task did not record its own kernel does not see: all rows are equal there while fitting, and blind afterwards.
    """
    at = below.at(task.X)
    residual = task.y - at.mean
    C = below.cov(at, at) if propagation is Propagation.EXACT and not isinstance(below, NoBeliefs) else None
    per_level = model.units is OutputUnits.PER_LEVEL
    shift, scale = torch.zeros_like(residual.sum(-1)), torch.ones_like(residual.sum(-1))
    if per_level and task.n > 0:
        shift = residual.mean(-1)
        spread = spread_of(residual, shift)
        scale = torch.where(spread > 0, spread, scale)
    P = task.batch_shape.numel()
    seen = task.X.index_fill(-1, torch.tensor(task.unseen, device=task.X.device), 0.0) if task.unseen else task.X
    evidence = PlainEvidence(
        seen.reshape(P, task.n, task.d),
        ((residual - shift.unsqueeze(-1)) / scale.unsqueeze(-1)).reshape(P, task.n),
        None if C is None else (C / scale[..., None, None] ** 2).reshape(P, task.n, task.n),
        kernel=model.kernel,
        residual=not per_level and not isinstance(below, NoBeliefs),
        free_offset=not per_level,
        inputs=Inputs.of(task.d, task.categories),
    )
    theta, report = fit(evidence, model.fit, seed=seed, task=name, batch_shape=task.batch_shape)

    def as_params(theta: Float[Tensor, "P p"]) -> GPParams:
        return evidence.params(theta).reshaped(task.batch_shape).scaled(scale, shift).blind_to(task.unseen)

    theta = theta.reshape(P, -1)
    params = as_params(theta)
    layer = Layer.observe(below, params, task.X, task.y, kernel=model.kernel, propagation=propagation, at=at)
    return Fit(layer, report, evidence, theta, as_params)


@dataclass(frozen=True, kw_only=True)
class SequentialPrior(Prior):
    """The stack of sources, factorised once; a new target data set costs O(N_t N_s² + N_t² N_s + N_t³)."""

    model: Sequential
    units: Units
    levels: tuple[GPParams, ...]
    below: Beliefs
    reports: tuple[FitReport, ...]

    @property
    def fit_reports(self) -> tuple[FitReport, ...]:
        """One per source, in order."""
        return self.reports

    def locate(self, X: Float[Tensor, "*b m d"]) -> At:
        """The sources' beliefs at X."""
        with torch.no_grad():
            return self.below.at(X)

    def _condition(self, target: Dataset, seed: Seed) -> TransferPosterior:
        units = self.units.completed(target)
        layer, report = fit_layer(
            self.below,
            units.inward(target),
            model=self.model,
            propagation=self.model.propagation,
            seed=seed,
            name="target",
        )
        params = ChainParams((*self.levels, layer.params)).scaled(units.scale, units.offset)
        return TransferPosterior(layer, Outcome(units, params, (*self.reports, report)), target.y)


@dataclass(frozen=True, kw_only=True)
class Sequential(TransferModel):
    """Every task is the previous one plus a residual, learnt one at a time; ``propagation`` says what is inherited."""

    propagation: Propagation

    def _learn(self, sources: tuple[Dataset, ...], seed: Seed) -> SequentialPrior:
        return self.upon(sources, seed)

    def upon(
        self, sources: tuple[Dataset, ...], seed: Seed, first: tuple[Layer, FitReport] | None = None
    ) -> SequentialPrior:
        """The chain of the sources. ``first`` is the first of them, where that was learnt already, in shared units."""
        generator = generator_from(seed)
        shared = self.units is OutputUnits.SHARED
        units = Units.of(sources) if shared else Units.identity(sources[0])
        below: Beliefs = NoBeliefs(sources[0].batch_shape)
        levels, reports = [], []
        for i, source in enumerate(sources):
            if i == 0 and first is not None:
                layer, report = first
            else:
                layer, report = fit_layer(
                    below,
                    units.inward(source),
                    model=self,
                    propagation=self.propagation,
                    seed=generator,
                    name=task_name(source, i),
                )
            below = layer.as_beliefs()
            levels.append(layer.params)
            reports.append(report)
        return SequentialPrior(
            model=self, sources=sources, units=units, levels=tuple(levels), below=below, reports=tuple(reports)
        )

    def _at(self, params: ModelParams, sources: tuple[Dataset, ...], target: Dataset) -> TransferPosterior:
        levels = _levels_for(params, len(sources) + 1, target)
        below: Beliefs = NoBeliefs(target.batch_shape)
        options = {"kernel": self.kernel, "propagation": self.propagation}
        for level, source in zip(levels, sources, strict=False):
            below = Layer.observe(below, level, source.X, source.y, **options).as_beliefs()  # type: ignore[arg-type]
        layer = Layer.observe(below, levels[-1], target.X, target.y, **options)  # type: ignore[arg-type]
        return TransferPosterior(layer, Outcome(Units.identity(target), ChainParams(levels)), target.y)


def _levels_for(params: ModelParams, n: int, target: Dataset) -> tuple[GPParams, ...]:
    if not isinstance(params, ChainParams):
        raise InputError(f"A sequential model takes ChainParams, but got {type(params).__name__}.")
    return expanded_levels(params.levels, n, target)


def expanded_levels(levels: tuple[GPParams, ...], n: int, target: Dataset) -> tuple[GPParams, ...]:
    """One process per task, checked, for the target's batch of problems and on its device."""
    if len(levels) != n:
        raise InputError(f"{n} tasks need {n} levels of hyperparameters, but there are {len(levels)}.")
    for i, level in enumerate(levels):
        level.require(f"level {i}", target.d)
    expanded = (p.to(target.X) for p in levels)
    b = target.batch_shape
    return tuple(
        replace(
            p,
            lengthscale=p.lengthscale.expand(*b, -1),
            outputscale=p.outputscale.expand(b),
            noise_var=p.noise_var.expand(b),
            offset=p.offset.expand(b),
        )
        for p in expanded
    )
