"""Fitting one level on top of fixed beliefs: the fit that every sequential model, star and ensemble shares.

``fit_level`` searches for the hyperparameters, ``level_layer`` factorises the level at them. The two are apart because
hyperparameters can be kept (models.fitcache) and sent from process to process, and a factor is large.
Tasks of many rows: docs/models.md, sources of thousands of rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headstart.data.dataset import Dataset
from headstart.data.replicates import pooled_rows
from headstart.data.thinning import representative_rows, take_rows
from headstart.data.units import OutputUnits, spread_of
from headstart.gp.evidence import GaussianEvidence, RowCounts
from headstart.gp.fit import FitReport, fit
from headstart.gp.hyperparameters import OFFSET_VAR, GPParams, Inputs, blind_to
from headstart.models.chain.beliefs import Beliefs, BeliefsAt, NoBeliefs
from headstart.models.chain.condensed import LevelSpec, learnt_through, source_layer
from headstart.models.chain.layer import Layer, Propagation
from headstart.tuning import PLAIN_TUNING

# A run that follows need not be exact to the last digit: per observation, of which there are hundreds
_FTOL, _GTOL = 1e-6, 1e-3


@dataclass(frozen=True, slots=True)
class LevelFit:
    """The most probable hyperparameters of a level, the report, and the evidence, with which others can be tried."""

    params: GPParams  # of many rows with the offset before any data: it is determined with the layer, which sees all
    report: FitReport
    evidence: GaussianEvidence  # of many rows that of some of them
    theta: Float[Tensor, "P p"]
    as_params: Callable[[Float[Tensor, "P p"]], GPParams]
    at: BeliefsAt | None = None  # the beliefs at the rows


def fit_layer(below: Beliefs, task: Dataset, spec: LevelSpec) -> tuple[Layer, FitReport]:
    """One level learnt on top of fixed beliefs: the paper's partial likelihood, O(n³) per evaluation."""
    found = fit_level(below, task, spec)
    return level_layer(below, found.params, task, spec, found.at), found.report


def level_layer(below: Beliefs, params: GPParams, task: Dataset, spec: LevelSpec, at: BeliefsAt | None = None) -> Layer:
    """The layer of a task at the hyperparameters that ``fit_level`` found; ``at`` are the beliefs at its rows."""
    if task.n <= PLAIN_TUNING.every_row_up_to:
        layer = Layer.observe(below, params, task, kernel=spec.kernel, propagation=spec.propagation, at=at)
        return replace(layer, shift_log_sd=torch.full_like(params.offset, PLAIN_TUNING.batch_var_spread))
    offset_var = torch.full_like(params.offset, OFFSET_VAR) if spec.units is OutputUnits.SHARED else None
    return source_layer(below, params, task, spec, offset_var)


def fit_level(below: Beliefs, task: Dataset, spec: LevelSpec) -> LevelFit:
    """The most probable hyperparameters of a level, in the units the task came in.

    With ``OutputUnits.PER_LEVEL`` the residual is standardised first. In the end that is a mean shift and a kernel
    scaled by the residual's variance (ERRATA, fact 8). What the task did not record its own kernel does not see: all
    rows are equal there while fitting, and blind afterwards.
    """
    if task.n > PLAIN_TUNING.every_row_up_to:
        return _fit_many(below, task, spec)
    at = below.at(task.X)
    shift, scale = torch.zeros_like(at.mean.sum(-1)), torch.ones_like(at.mean.sum(-1))
    if spec.units is OutputUnits.PER_LEVEL and task.n > 0:
        shift, scale = _level_units(task.y - at.mean, spec)
    evidence = _evidence(below, task, at, (shift, scale), spec)
    theta, report = fit(evidence, spec.fit, seed=spec.seed, task=spec.name, batch_shape=task.batch_shape)

    def as_params(theta: Float[Tensor, "P p"]) -> GPParams:
        return blind_to(evidence.params(theta, task.batch_shape).scaled(scale, shift), task.unseen)

    theta = theta.reshape(evidence.n_problems, -1)
    return LevelFit(as_params(theta), report, evidence, theta, as_params, at)


def _level_units(residual: Float[Tensor, "*b n"], spec: LevelSpec) -> tuple[Float[Tensor, "*b"], Float[Tensor, "*b"]]:
    """Where the residual lies, and its spread where every level has units of its own."""
    shift, scale = residual.mean(-1), torch.ones_like(residual[..., 0])
    if spec.units is OutputUnits.PER_LEVEL:
        spread = spread_of(residual, shift)
        scale = torch.where(spread > 0, spread, scale)
    return shift, scale


def _evidence(
    below: Beliefs,
    task: Dataset,
    at: BeliefsAt,
    units: tuple[Float[Tensor, "*b"], Float[Tensor, "*b"]],
    spec: LevelSpec,
    replicates: tuple[Float[Tensor, "*b n"], Float[Tensor, "*b n"]] | None = None,
) -> GaussianEvidence:
    """The evidence of the residual in ``units`` (shift, scale); ``replicates``: counts and scatter of pooled rows."""
    (shift, scale), P, n = units, task.batch_shape.numel(), task.n
    first, per_level = isinstance(below, NoBeliefs), spec.units is OutputUnits.PER_LEVEL
    inherits = spec.propagation is Propagation.EXACT and not first
    var = scale.unsqueeze(-1) ** 2
    seen = task.X.index_fill(-1, torch.tensor(task.unseen, device=task.X.device), 0.0) if task.unseen else task.X
    return GaussianEvidence(
        seen.reshape(P, n, task.d),
        ((task.y - at.mean - shift.unsqueeze(-1)) / scale.unsqueeze(-1)).reshape(P, n),
        (below.cov(at, at) / var.unsqueeze(-1)).reshape(P, n, n) if inherits else None,
        kernel=spec.kernel,
        residual=not per_level and not first,
        free_offset=not per_level,
        inputs=Inputs.of(task.d, task.categories),
        error_var=None if task.error_var is None else (task.error_var / var).reshape(P, n),
        shifts=None if (D := task.shift_pattern) is None else D.reshape(P, n, n),
        replicates=None
        if replicates is None
        else RowCounts(replicates[0].reshape(P, n), (replicates[1] / var).reshape(P, n)),
    )


def most_rows(n: int) -> int:
    """With how many of n rows, at most, a run goes on: all up to 1,200; 1,800 of 5,000; never more than 2,400."""
    share = int(PLAIN_TUNING.last_fit_share * n)
    return min(n, PLAIN_TUNING.last_fit_max_rows, max(PLAIN_TUNING.last_fit_rows, share))


def _fit_many(below: Beliefs, task: Dataset, spec: LevelSpec) -> LevelFit:
    b, P = task.batch_shape, task.batch_shape.numel()
    pooled = pooled_rows(task)
    data = task if pooled is None else pooled.data

    def some(n: int) -> tuple[Dataset, BeliefsAt, tuple[Tensor, Tensor] | None]:
        """Representative rows, the beliefs there, and the replicates they stand for."""
        which = representative_rows(data.X, data.y, n)
        few = take_rows(data, which)
        counts = None if pooled is None else (pooled.counts.gather(-1, which), pooled.scatter.gather(-1, which))
        return few, below.at(few.X), counts

    residual = data.y
    if not isinstance(below, NoBeliefs):  # known at some rows: to predict all of them takes long
        few, at, _ = some(PLAIN_TUNING.last_fit_rows)
        residual = few.y - at.mean
    shift, scale = _level_units(residual, spec)

    def evidence_of(n: int) -> GaussianEvidence:
        few, at, counts = some(n)
        return _evidence(below, few, at, (shift, scale), spec, counts)

    n = min(PLAIN_TUNING.first_fit_rows, data.n)
    evidence = evidence_of(n)
    theta, report = fit(evidence, spec.fit, seed=spec.seed, task=spec.name, batch_shape=b)
    theta = theta.reshape(P, -1)
    looser = replace(spec.fit, restarts=1, ftol=max(_FTOL, spec.fit.ftol), gtol=max(_GTOL, spec.fit.gtol))
    while n < (most := most_rows(data.n)):
        n = min(2 * n, most)
        evidence = evidence_of(n)
        further, _ = fit(evidence, looser, seed=spec.seed, task=spec.name, batch_shape=b, warm_start=theta)
        further = further.reshape(P, -1)
        after, before = (evidence.layout.saturating(t.cpu().numpy()) for t in (further, theta))
        theta = further
        if np.abs(after - before).max() < PLAIN_TUNING.fit_settled_within:
            break

    def as_params(theta: Float[Tensor, "P p"]) -> GPParams:
        own = evidence.params_around(theta, torch.zeros_like(shift).reshape(P), b)
        return blind_to(own.scaled(scale, shift), task.unseen)

    how = learnt_through(below, task, spec) if spec.source else f"learnt from {task.n:,} rows"
    report = replace(report, n_observations=task.n, note=f"{how}, hyperparameters from {n:,} of them")
    return LevelFit(as_params(theta), report, evidence, theta, as_params)
