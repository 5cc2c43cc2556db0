"""Hyperparameters of a task with many rows: searched for on some of them, then followed to more.

The search with all its restarts sees FIRST rows, well chosen (data.thinning). From the best place found there a
single run goes on with twice as many rows, and again, until that changes nothing any more, or there are ``most_rows``:
a likelihood of a thousand rows has one optimum worth the name, and it lies near that of some hundred.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from headstart.data.dataset import Dataset
from headstart.data.thinning import representative_rows
from headstart.data.units import OutputUnits, spread_of
from headstart.gp.evidence import GaussianEvidence, RowCounts
from headstart.gp.fit import FitReport, Seed, fit
from headstart.gp.hyperparameters import GPParams, Inputs
from headstart.models.chain.beliefs import Beliefs, NoBeliefs
from headstart.models.chain.layer import Propagation
from headstart.models.large.pooling import PooledRows, pooled_rows
from headstart.models.model import TransferModel

FIRST = 300
_MOST, _ALWAYS, _SHARE = 2400, 1200, 0.36  # what takes as long as the layer of all rows, or less
# Twice as many rows change nothing if no parameter changes its effect by more than that, in logarithms
_SETTLED = 0.1
# A run that follows need not be exact to the last digit: per observation, of which there are hundreds
_FTOL, _GTOL = 1e-6, 1e-3


@dataclass(frozen=True, slots=True)
class FromSome:
    """θ in the units of the evidence, how it becomes parameters, the report, and how many rows it was found with."""

    theta: Float[Tensor, "P p"]
    params: GPParams
    report: FitReport
    evidence: GaussianEvidence
    scale: Float[Tensor, "*b"]
    shift: Float[Tensor, "*b"]
    n_rows: int


def most_rows(n: int) -> int:
    """With how many of n rows, at most, a run goes on: all up to 1,200; 1,800 of 5,000; never more than 2,400."""
    return min(n, _MOST, max(_ALWAYS, int(_SHARE * n)))


def hyperparameters_of_many(
    below: Beliefs, task: Dataset, *, model: TransferModel, propagation: Propagation, seed: Seed, name: str
) -> FromSome:
    """The most probable hyperparameters of one level; the offset is the one before any data, in the task's units."""
    b, P = task.batch_shape, task.batch_shape.numel()
    pooled = pooled_rows(task)
    data = task if pooled is None else pooled.data
    per_level = model.units is OutputUnits.PER_LEVEL
    shift, scale = _units(below, data, per_level=per_level)
    inputs = Inputs.of(task.d, task.categories)

    def evidence_of(n: int) -> GaussianEvidence:
        which = representative_rows(data.X.reshape(P, data.n, data.d), data.y.reshape(P, data.n), n)
        return _evidence(below, data, pooled, which, shift, scale, inputs, model=model, propagation=propagation)

    n = min(FIRST, data.n)
    evidence = evidence_of(n)
    theta, report = fit(evidence, model.fit, seed=seed, task=name, batch_shape=b)
    theta = theta.reshape(P, -1)
    looser = replace(model.fit, restarts=1, ftol=max(_FTOL, model.fit.ftol), gtol=max(_GTOL, model.fit.gtol))
    while n < (most := most_rows(data.n)):
        n = min(2 * n, most)
        evidence = evidence_of(n)
        further, _ = fit(evidence, looser, seed=seed, task=name, batch_shape=b, warm_start=theta)
        further = further.reshape(P, -1)
        effects = [evidence.layout.by_effect(t.cpu().numpy()) for t in (further, theta)]
        theta = further
        if np.abs(effects[0] - effects[1]).max() < _SETTLED:
            break
    zero = torch.zeros_like(theta[:, -1])
    own = GPParams(theta[:, inputs.group].exp(), theta[:, -2].exp(), theta[:, -1].exp(), zero)
    params = own.reshaped(b).scaled(scale, shift).blind_to(task.unseen)
    return FromSome(theta, params, replace(report, n_observations=task.n), evidence, scale, shift, n)


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


def _evidence(
    below: Beliefs,
    data: Dataset,
    pooled: PooledRows | None,
    which: Int[Tensor, "P k"],
    shift: Float[Tensor, "*b"],
    scale: Float[Tensor, "*b"],
    inputs: Inputs,
    *,
    model: TransferModel,
    propagation: Propagation,
) -> GaussianEvidence:
    """Of these rows alone."""
    P, k = which.shape
    b, per_level = data.batch_shape, model.units is OutputUnits.PER_LEVEL
    X, y = _at_rows(data, which)
    at = below.at(X.reshape(*b, k, data.d))
    r = (y - at.mean.reshape(P, k) - shift.reshape(P, 1)) / scale.reshape(P, 1)
    C = None
    if propagation is Propagation.EXACT and not isinstance(below, NoBeliefs):
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
        kernel=model.kernel,
        residual=not per_level and not isinstance(below, NoBeliefs),
        free_offset=not per_level,
        inputs=inputs,
        error_var=error_var,
        replicates=replicates,
    )
