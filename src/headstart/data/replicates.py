"""Replicates: rows at one place, of one batch, as one row, their mean, with the variance that the mean still has.

With c rows at x, each with noise of variance v = σ² + error_var, ȳ their mean and S = Σ (y − ȳ)²,

    Π N(y; f(x), v) = N(ȳ; f(x), v/c) · (2πv)^(−(c − 1)/2) · c^(−1/2) · exp(−S/(2v))

so posterior and evidence are those of all rows. ``pooled_rows`` keeps c and S, for a model that finds σ² itself.

``pool_replicates`` estimates the scatter before there is a model. With c_g results at place g, ν degrees of freedom
(``replicate_freedom``) of the common scatter s²,

    s² = Σ_g S_g/Σ_g (c_g − 1)        error_var_g = (ν s² + S_g)/(ν + c_g − 1)/c_g

The noise that a model finds besides is what repeating does not average out, one value per point. Results whose errors
are known are averaged by their precisions instead.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from headstart.data.dataset import Dataset
from headstart.errors import InputError
from headstart.tuning import PLAIN_TUNING

NEAR = 1e-6  # rows whose inputs differ by less are at one place: the shortest lengthscale of a kernel is 0.05


@dataclass(frozen=True, slots=True, eq=False)
class PooledRows:
    """Means of rows at one place: ``data`` has a row for every place, with its ``counts`` c and ``scatter`` S."""

    data: Dataset
    counts: Float[Tensor, "*b g"]
    scatter: Float[Tensor, "*b g"]

    def noise(self, noise_var: Float[Tensor, "*b"]) -> Float[Tensor, "*b g"]:
        """The variance of the noise of every mean."""
        every = noise_var.unsqueeze(-1)
        return (every if self.data.error_var is None else every + self.data.error_var) / self.counts


def pooled_rows(task: Dataset) -> PooledRows | None:
    """Pool rows of equal inputs, errors and batches; None where no two rows are, and for a batch of problems."""
    if task.batch_shape.numel() != 1 or task.n < 2:
        return None
    place = _places(task, task.error_var)
    if int(place.max()) + 1 == task.n:
        return None
    first, counts, mean, scatter = _pooled(task.y.reshape(-1), place)
    b = task.batch_shape
    every = task.rows(first)
    return PooledRows(replace(every, y=mean.reshape(*b, -1)), counts.reshape(*b, -1), scatter.reshape(*b, -1))


def pool_replicates(data: Dataset) -> tuple[Dataset, tuple[tuple[int, ...], ...]]:
    """Replicates as their means, with the errors that the scatter of all groups, or the known errors, give them.

    Returns the pooled data, without ``error_var`` where nothing shows a scatter, and the rows behind each of its rows.
    """
    if data.batch_shape:
        raise InputError(f"Replicates are those of one task, but this is a batch of shape {tuple(data.batch_shape)}.")
    place = _places(data, None)
    first, counts, mean, scatter = _pooled(data.y, place)
    groups = tuple(tuple(rows.tolist()) for rows in place.argsort(stable=True).split([int(c) for c in counts]))
    error_var = None
    if data.error_var is not None:
        for rows in groups:
            unknown = [row for row in rows if not data.error_var[row] > 0]
            if len(rows) > 1 and unknown:
                other = rows[1] if unknown[0] == rows[0] else rows[0]
                raise InputError(
                    f"Row {unknown[0]} is a replicate of row {other}, but its error is not known (error_var is 0), so "
                    "that it cannot be weighed against the others. Give the errors of all of them, or of none."
                )
        precision = torch.where((counts > 1)[place], 1 / data.error_var, torch.ones_like(data.y))
        total = torch.zeros_like(mean).index_add_(0, place, precision)
        mean = mean + torch.zeros_like(mean).index_add_(0, place, precision * (data.y - mean[place])) / total
        error_var = torch.where(counts > 1, 1 / total, data.error_var[first])
    elif bool(scatter.sum() > 0):
        common, freedom = scatter.sum() / (counts - 1).sum(), PLAIN_TUNING.replicate_freedom
        error_var = (freedom * common + scatter) / (freedom + counts - 1) / counts
    batch = None if data.batch is None else data.batch[first]
    return replace(data, X=data.X[first], y=mean, error_var=error_var, batch=batch), groups


def _pooled(y: Float[Tensor, "n"], place: Int[Tensor, "n"]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Of every place its first row, the number of its rows, their mean and their scatter."""
    g = int(place.max()) + 1 if len(y) else 0
    counts = y.new_zeros(g).index_add_(0, place, torch.ones_like(y))
    first = torch.full((g,), len(y), dtype=torch.int64, device=y.device)
    first = first.scatter_reduce_(0, place, torch.arange(len(y), device=y.device), "amin")
    centre = y[first]  # results far from 0 would lose digits
    mean = centre + y.new_zeros(g).index_add_(0, place, y - centre[place]) / counts
    return first, counts, mean, y.new_zeros(g).index_add_(0, place, (y - mean[place]).square())


def _places(task: Dataset, error_var: Float[Tensor, "*b n"] | None) -> Int[Tensor, "n"]:
    """The number of every row's place, as they came first; rows of a place have one batch, and equal errors."""
    cells = np.rint(task.X.reshape(task.n, task.d).cpu().numpy() / NEAR).astype(np.int64)
    for also in (error_var, task.batch):
        if also is not None:
            cells = np.concatenate([cells, also.reshape(-1, 1).cpu().numpy().view(np.int64)], axis=1)
    _, first, which = np.unique(cells, axis=0, return_index=True, return_inverse=True)
    return torch.from_numpy(np.argsort(np.argsort(first))[which.reshape(-1)]).to(task.X.device)
