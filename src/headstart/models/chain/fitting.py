"""Fitting one level on top of fixed beliefs: the fit that every sequential model, star and ensemble shares.

``fit_level`` searches for the hyperparameters, ``level_layer`` factorises the level at them. The two are apart because
hyperparameters can be kept (models.fitcache) and sent from process to process, and a factor is large.

With many rows the search with all its restarts sees FIRST of them, well chosen (data.thinning). From the best place
found there a single run goes on with twice as many rows, and again, until that changes nothing any more, or there are
``most_rows``: a likelihood of a thousand rows has one optimum worth the name, and it lies near that of some hundred.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from headstart.data.dataset import Dataset
from headstart.data.replicates import PooledRows, pooled_rows
from headstart.data.thinning import representative_rows
from headstart.data.units import OutputUnits, spread_of
from headstart.gp.evidence import GaussianEvidence, RowCounts
from headstart.gp.fit import FitOptions, FitReport, Seed, fit
from headstart.gp.hyperparameters import OFFSET_VAR, GPParams, Inputs
from headstart.gp.kernels import Kernel
from headstart.models.chain.beliefs import Beliefs, BeliefsAt, NoBeliefs
from headstart.models.chain.condensed import ALL_ROWS, learnt_through, source_layer
from headstart.models.chain.layer import Layer, Propagation

FIRST = 300
_MOST, _ALWAYS, _SHARE = 2400, 1200, 0.36  # what takes as long as the layer of all rows, or less
# Twice as many rows change nothing if no parameter changes its effect by more than that, in logarithms
_SETTLED = 0.1
# A run that follows need not be exact to the last digit: per observation, of which there are hundreds
_FTOL, _GTOL = 1e-6, 1e-3


@dataclass(frozen=True, slots=True)
class LevelSpec:
    """How a level is fitted: the model's kernel, search options and units, what it inherits, seed, name in the report.

    The layer of a ``source`` of more than ``exact`` rows stands for more rows than it has (models.chain.condensed).
    """

    kernel: Kernel
    fit: FitOptions
    units: OutputUnits
    propagation: Propagation = Propagation.EXACT
    seed: Seed = 0
    name: str = "target"
    source: bool = False
    exact: int | None = None


@dataclass(frozen=True, slots=True)
class LevelFit:
    """The most probable hyperparameters of a level, the report, and the evidence, with which others can be tried.

    Of a task of more than ALL_ROWS rows the evidence is that of some of them, and the offset the one before any data:
    it is determined with the layer, which sees all rows.
    """

    params: GPParams
    report: FitReport
    evidence: GaussianEvidence
    theta: Float[Tensor, "P p"]
    as_params: Callable[[Float[Tensor, "P p"]], GPParams]
    at: BeliefsAt | None = None  # the beliefs at the rows


def fit_layer(below: Beliefs, task: Dataset, spec: LevelSpec) -> tuple[Layer, FitReport]:
    """One level learnt on top of fixed beliefs: the paper's partial likelihood, O(n³) per evaluation."""
    found = fit_level(below, task, spec)
    return level_layer(below, found.params, task, spec, found.at), found.report


def level_layer(below: Beliefs, params: GPParams, task: Dataset, spec: LevelSpec, at: BeliefsAt | None = None) -> Layer:
    """The layer of a task at the hyperparameters that ``fit_level`` found; ``at`` are the beliefs at its rows."""
    if task.n <= ALL_ROWS:
        return Layer.observe(
            below,
            params,
            task.X,
            task.y,
            kernel=spec.kernel,
            propagation=spec.propagation,
            at=at,
            error_var=task.error_var,
        )
    return source_layer(
        below,
        params,
        task,
        kernel=spec.kernel,
        propagation=spec.propagation,
        offset_var=torch.full_like(params.offset, OFFSET_VAR) if spec.units is OutputUnits.SHARED else None,
        every_row=not spec.source,
        exact=spec.exact,
    )


def fit_level(below: Beliefs, task: Dataset, spec: LevelSpec) -> LevelFit:
    """The most probable hyperparameters of a level, in the units the task came in.

    With ``OutputUnits.PER_LEVEL`` the residual is standardised first. In the end that is a mean shift and a kernel
    scaled by the residual's variance (ERRATA, fact 8). What the task did not record its own kernel does not see: all
    rows are equal there while fitting, and blind afterwards.
    """
    if task.n > ALL_ROWS:
        return _fit_many(below, task, spec)
    at = below.at(task.X)
    residual = task.y - at.mean
    C = below.cov(at, at) if spec.propagation is Propagation.EXACT and not isinstance(below, NoBeliefs) else None
    per_level = spec.units is OutputUnits.PER_LEVEL
    shift, scale = torch.zeros_like(residual.sum(-1)), torch.ones_like(residual.sum(-1))
    if per_level and task.n > 0:
        shift = residual.mean(-1)
        spread = spread_of(residual, shift)
        scale = torch.where(spread > 0, spread, scale)
    P = task.batch_shape.numel()
    seen = task.X.index_fill(-1, torch.tensor(task.unseen, device=task.X.device), 0.0) if task.unseen else task.X
    evidence = GaussianEvidence(
        seen.reshape(P, task.n, task.d),
        ((residual - shift.unsqueeze(-1)) / scale.unsqueeze(-1)).reshape(P, task.n),
        None if C is None else (C / scale[..., None, None] ** 2).reshape(P, task.n, task.n),
        kernel=spec.kernel,
        residual=not per_level and not isinstance(below, NoBeliefs),
        free_offset=not per_level,
        inputs=Inputs.of(task.d, task.categories),
        error_var=None if task.error_var is None else (task.error_var / scale.unsqueeze(-1) ** 2).reshape(P, task.n),
    )
    theta, report = fit(evidence, spec.fit, seed=spec.seed, task=spec.name, batch_shape=task.batch_shape)

    def as_params(theta: Float[Tensor, "P p"]) -> GPParams:
        return evidence.params(theta).reshaped(task.batch_shape).scaled(scale, shift).blind_to(task.unseen)

    theta = theta.reshape(P, -1)
    return LevelFit(as_params(theta), report, evidence, theta, as_params, at)


# ── many rows ─────────────────────────────────────────────────────────────────────────────────────────────────────


def most_rows(n: int) -> int:
    """With how many of n rows, at most, a run goes on: all up to 1,200; 1,800 of 5,000; never more than 2,400."""
    return min(n, _MOST, max(_ALWAYS, int(_SHARE * n)))


def _fit_many(below: Beliefs, task: Dataset, spec: LevelSpec) -> LevelFit:
    b, P = task.batch_shape, task.batch_shape.numel()
    pooled = pooled_rows(task)
    data = task if pooled is None else pooled.data
    shift, scale = _units(below, data, per_level=spec.units is OutputUnits.PER_LEVEL)
    inputs = Inputs.of(task.d, task.categories)

    def evidence_of(n: int) -> GaussianEvidence:
        which = representative_rows(data.X.reshape(P, data.n, data.d), data.y.reshape(P, data.n), n)
        return _evidence_of_rows(below, data, pooled, which, (shift, scale), spec)

    n = min(FIRST, data.n)
    evidence = evidence_of(n)
    theta, report = fit(evidence, spec.fit, seed=spec.seed, task=spec.name, batch_shape=b)
    theta = theta.reshape(P, -1)
    looser = replace(spec.fit, restarts=1, ftol=max(_FTOL, spec.fit.ftol), gtol=max(_GTOL, spec.fit.gtol))
    while n < (most := most_rows(data.n)):
        n = min(2 * n, most)
        evidence = evidence_of(n)
        further, _ = fit(evidence, looser, seed=spec.seed, task=spec.name, batch_shape=b, warm_start=theta)
        further = further.reshape(P, -1)
        effects = [evidence.layout.by_effect(t.cpu().numpy()) for t in (further, theta)]
        theta = further
        if np.abs(effects[0] - effects[1]).max() < _SETTLED:
            break

    def as_params(theta: Float[Tensor, "P p"]) -> GPParams:
        own = GPParams(theta[:, inputs.group].exp(), theta[:, -2].exp(), theta[:, -1].exp(), 0.0 * theta[:, -1])
        return own.reshaped(b).scaled(scale, shift).blind_to(task.unseen)

    how = f"learnt from {task.n:,} rows"
    how = learnt_through(below, task, spec.propagation, spec.exact) if spec.source else how
    report = replace(report, n_observations=task.n, note=f"{how}, hyperparameters from {n:,} of them")
    return LevelFit(as_params(theta), report, evidence, theta, as_params)


def _units(below: Beliefs, data: Dataset, *, per_level: bool) -> tuple[Float[Tensor, "*b"], Float[Tensor, "*b"]]:
    """Where the residual lies, and its spread where every level has units of its own.

    On top of other tasks that is known at some rows, which are representative: to predict all of them takes long.
    """
    residual = data.y
    if not isinstance(below, NoBeliefs):
        P = data.batch_shape.numel()
        which = representative_rows(data.X.reshape(P, data.n, data.d), data.y.reshape(P, data.n), _ALWAYS)
        X, y = _at_rows(data, which)
        b = data.batch_shape
        residual = y.reshape(*b, -1) - below.at(X.reshape(*b, -1, data.d)).mean
    shift, scale = residual.mean(-1), torch.ones_like(residual[..., 0])
    if per_level:
        spread = spread_of(residual, shift)
        scale = torch.where(spread > 0, spread, scale)
    return shift, scale


def _at_rows(data: Dataset, which: Int[Tensor, "P k"]) -> tuple[Float[Tensor, "P k d"], Float[Tensor, "P k"]]:
    P = len(which)
    X = data.X.reshape(P, data.n, data.d).gather(1, which.unsqueeze(-1).expand(-1, -1, data.d))
    return X, data.y.reshape(P, data.n).gather(1, which)


def _evidence_of_rows(
    below: Beliefs,
    data: Dataset,
    pooled: PooledRows | None,
    which: Int[Tensor, "P k"],
    units: tuple[Float[Tensor, "*b"], Float[Tensor, "*b"]],
    spec: LevelSpec,
) -> GaussianEvidence:
    """The evidence of these rows alone; ``units`` are where the residual lies, and its scale."""
    P, k = which.shape
    shift, scale = units
    b, per_level = data.batch_shape, spec.units is OutputUnits.PER_LEVEL
    X, y = _at_rows(data, which)
    at = below.at(X.reshape(*b, k, data.d))
    r = (y - at.mean.reshape(P, k) - shift.reshape(P, 1)) / scale.reshape(P, 1)
    C = None
    if spec.propagation is Propagation.EXACT and not isinstance(below, NoBeliefs):
        C = below.cov(at, at).reshape(P, k, k) / scale.reshape(P, 1, 1) ** 2
    error_var = None
    if data.error_var is not None:
        error_var = data.error_var.reshape(P, data.n).gather(1, which) / scale.reshape(P, 1) ** 2
    seen = X.index_fill(-1, torch.tensor(data.unseen, device=X.device), 0.0) if data.unseen else X
    replicates = None
    if pooled is not None:
        counts = pooled.counts.reshape(P, -1).gather(1, which)
        replicates = RowCounts(counts, pooled.scatter.reshape(P, -1).gather(1, which) / scale.reshape(P, 1) ** 2)
    return GaussianEvidence(
        seen,
        r,
        C,
        kernel=spec.kernel,
        residual=not per_level and not isinstance(below, NoBeliefs),
        free_offset=not per_level,
        inputs=Inputs.of(data.d, data.categories),
        error_var=error_var,
        replicates=replicates,
    )
