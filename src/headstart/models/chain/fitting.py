"""One level learnt on top of what is below: the fit that every sequential model, star and ensemble shares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from headstart.data.dataset import Dataset
from headstart.data.units import OutputUnits, spread_of
from headstart.gp.evidence import GaussianEvidence
from headstart.gp.fit import FitReport, Seed, fit
from headstart.gp.hyperparameters import GPParams, Inputs
from headstart.models.chain.beliefs import Beliefs, NoBeliefs
from headstart.models.chain.layer import Layer, Propagation
from headstart.models.large.condensed import ALL_ROWS, learnt_through, source_layer
from headstart.models.large.hyperparameters import hyperparameters_of_many
from headstart.models.model import TransferModel


@dataclass(frozen=True, slots=True)
class Fit:
    """A level that was learnt: the layer at the most probable θ, the report, and how to try another θ.

    Of a task with very many rows the evidence is that of some of them.
    """

    layer: Layer
    report: FitReport
    evidence: GaussianEvidence
    theta: Float[Tensor, "P p"]
    as_params: Callable[[Float[Tensor, "P p"]], GPParams]


def fit_layer(
    below: Beliefs,
    task: Dataset,
    *,
    model: TransferModel,
    propagation: Propagation,
    seed: Seed,
    name: str,
    source: bool = False,
    exact: int | None = None,
) -> tuple[Layer, FitReport]:
    """One level learnt on top of fixed beliefs: the paper's partial likelihood, O(n³) per evaluation.

    The layer of a ``source`` of more than ``exact`` rows stands for more rows than it has (models.large.condensed).
    """
    options = {"model": model, "propagation": propagation, "seed": seed, "name": name}
    options |= {"source": source, "exact": exact}
    found = fit_with_evidence(below, task, **options)  # type: ignore[arg-type]
    return found.layer, found.report


def fit_with_evidence(
    below: Beliefs,
    task: Dataset,
    *,
    model: TransferModel,
    propagation: Propagation,
    seed: Seed,
    name: str,
    source: bool = False,
    exact: int | None = None,
) -> Fit:
    """The same, with what was maximised.

    With ``OutputUnits.PER_LEVEL`` the residual is standardised first. In the end that is a mean shift and a kernel
    scaled by the residual's variance (ERRATA, fact 8), and the layer is given back in the units it came in. What the
    task did not record its own kernel does not see: all rows are equal there while fitting, and blind afterwards.
    """
    if task.n > ALL_ROWS:
        options = {"model": model, "propagation": propagation, "seed": seed, "name": name}
        return _fit_many(below, task, source=source, exact=exact, **options)  # type: ignore[arg-type]
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
    evidence = GaussianEvidence(
        seen.reshape(P, task.n, task.d),
        ((residual - shift.unsqueeze(-1)) / scale.unsqueeze(-1)).reshape(P, task.n),
        None if C is None else (C / scale[..., None, None] ** 2).reshape(P, task.n, task.n),
        kernel=model.kernel,
        residual=not per_level and not isinstance(below, NoBeliefs),
        free_offset=not per_level,
        inputs=Inputs.of(task.d, task.categories),
        error_var=None if task.error_var is None else (task.error_var / scale.unsqueeze(-1) ** 2).reshape(P, task.n),
    )
    theta, report = fit(evidence, model.fit, seed=seed, task=name, batch_shape=task.batch_shape)

    def as_params(theta: Float[Tensor, "P p"]) -> GPParams:
        return evidence.params(theta).reshaped(task.batch_shape).scaled(scale, shift).blind_to(task.unseen)

    theta = theta.reshape(P, -1)
    params = as_params(theta)
    options = {"kernel": model.kernel, "propagation": propagation, "at": at, "error_var": task.error_var}
    layer = Layer.observe(below, params, task.X, task.y, **options)  # type: ignore[arg-type]
    return Fit(layer, report, evidence, theta, as_params)


def _fit_many(
    below: Beliefs,
    task: Dataset,
    *,
    model: TransferModel,
    propagation: Propagation,
    seed: Seed,
    name: str,
    source: bool,
    exact: int | None,
) -> Fit:
    """A level of many rows: hyperparameters from some of them, the layer from all."""
    found = hyperparameters_of_many(below, task, model=model, propagation=propagation, seed=seed, name=name)
    layer = source_layer(
        below,
        found.params,
        task,
        kernel=model.kernel,
        propagation=propagation,
        free=model.units is OutputUnits.SHARED,
        every_row=not source,
        exact=exact,
    )
    how = learnt_through(below, task, propagation, exact) if source else f"learnt from {task.n:,} rows"
    report = replace(found.report, note=f"{how}, hyperparameters from {found.n_rows:,} of them")

    def as_params(theta: Float[Tensor, "P p"]) -> GPParams:
        inputs = Inputs.of(task.d, task.categories)
        own = GPParams(theta[:, inputs.group].exp(), theta[:, -2].exp(), theta[:, -1].exp(), 0.0 * theta[:, -1])
        scaled = own.reshaped(task.batch_shape).scaled(found.scale, found.shift).blind_to(task.unseen)
        return replace(scaled, offset=layer.params.offset)

    return Fit(layer, report, found.evidence, found.theta, as_params)
