"""Replicates: rows at one place as one row, their mean, with the variance that the mean still has.

With c rows at x, each with noise of variance v = σ² + error_var, ȳ their mean and S = Σ (y − ȳ)²,

    Π N(y; f(x), v) = N(ȳ; f(x), v/c) · (2πv)^(−(c − 1)/2) · c^(−1/2) · exp(−S/(2v))

so posterior and evidence are those of all rows. ``pooled_rows`` keeps c and S, and σ² is what a model makes of them.
Rows whose inputs differ by less than NEAR are at one place: no kernel tells them apart, whose shortest lengthscale is
0.05.

``pool_replicates`` estimates the scatter before there is a model. With c_g results at place g

    s² = Σ_g S_g/Σ_g (c_g − 1)        error_var_g = (POOLED s² + S_g)/(POOLED + c_g − 1)/c_g

so a group of many counts with the scatter of its own. The noise that a model finds besides is what repeating does not
average out, one value per point. Results whose errors are known are averaged by their precisions instead.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from headstart.data.dataset import Dataset
from headstart.errors import InputError

NEAR = 1e-6
POOLED = 4.0


@dataclass(frozen=True, slots=True, eq=False)
class PooledRows:
    """``data`` has a row for every place, ``counts`` how many there were, ``scatter`` the S of each."""

    data: Dataset
    counts: Float[Tensor, "*b g"]
    scatter: Float[Tensor, "*b g"]

    def noise(self, noise_var: Float[Tensor, "*b"]) -> Float[Tensor, "*b g"]:
        """The variance of the noise of every mean."""
        every = noise_var.unsqueeze(-1)
        return (every if self.data.error_var is None else every + self.data.error_var) / self.counts


@dataclass(frozen=True, slots=True, eq=False)
class PooledReplicates:
    """The pooled rows, in the order in which their places came first.

    ``groups`` are the numbers of the rows behind each of them; ``within_var`` is s², None where no place shows any.
    """

    data: Dataset
    groups: tuple[tuple[int, ...], ...]
    within_var: float | None


def pooled_rows(task: Dataset) -> PooledRows | None:
    """The task with a row for every place and known error; None where every row has its own, and for a batch."""
    if task.batch_shape.numel() != 1 or task.n < 2:
        return None
    X, known = task.X.reshape(task.n, task.d), None if task.error_var is None else task.error_var.reshape(-1)
    place = _places(X, known)
    if int(place.max()) + 1 == task.n:
        return None
    first, counts, mean, scatter = _pooled(task.y.reshape(-1), place)
    b = task.batch_shape
    error_var = None if known is None else known[first].reshape(*b, -1)
    data = replace(task, X=X[first].reshape(*b, -1, task.d), y=mean.reshape(*b, -1), error_var=error_var)
    return PooledRows(data, counts.reshape(*b, -1), scatter.reshape(*b, -1))


def pool_replicates(data: Dataset) -> PooledReplicates:
    """Rows at one place as their mean, with the error that the scatter of all groups, or the known errors, give it.

    Where nothing shows a scatter the result has no ``error_var``.
    """
    if data.batch_shape:
        raise InputError(f"Replicates are those of one task, but this is a batch of shape {tuple(data.batch_shape)}.")
    place = _places(data.X, None)
    first, counts, mean, scatter = _pooled(data.y, place)
    groups = tuple(tuple(rows.tolist()) for rows in place.argsort(stable=True).split([int(c) for c in counts]))
    pooled = replace(data, X=data.X[first], y=mean, error_var=None)
    if data.error_var is not None:
        _require_errors(data.error_var, groups)
        precision = torch.where((counts > 1)[place], 1 / data.error_var, torch.ones_like(data.y))
        total = torch.zeros_like(mean).index_add_(0, place, precision)
        shift = torch.zeros_like(mean).index_add_(0, place, precision * (data.y - mean[place])) / total
        error_var = torch.where(counts > 1, 1 / total, data.error_var[first])
        return PooledReplicates(replace(pooled, y=mean + shift, error_var=error_var), groups, None)
    if not bool(scatter.sum() > 0):
        return PooledReplicates(pooled, groups, None)
    within_var = float(scatter.sum() / (counts - 1).sum())
    error_var = (POOLED * within_var + scatter) / (POOLED + counts - 1) / counts
    return PooledReplicates(replace(pooled, error_var=error_var), groups, within_var)


def _require_errors(error_var: Float[Tensor, "n"], groups: tuple[tuple[int, ...], ...]) -> None:
    for rows in groups:
        unknown = [row for row in rows if not error_var[row] > 0]
        if len(rows) > 1 and unknown:
            row = unknown[0]
            raise InputError(
                f"Row {row} is a replicate of row {rows[0] if row != rows[0] else rows[1]}, but its error is not known "
                "(error_var is 0), so that it cannot be weighed against the others. Give the errors of all of them, or "
                "of none."
            )


def _pooled(y: Float[Tensor, "n"], place: Int[Tensor, "n"]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Of every place its first row, the number of its rows, their mean and their scatter."""
    g = int(place.max()) + 1 if len(y) else 0
    counts = y.new_zeros(g).index_add_(0, place, torch.ones_like(y))
    first = torch.full((g,), len(y), dtype=torch.int64, device=y.device)
    first = first.scatter_reduce_(0, place, torch.arange(len(y), device=y.device), "amin")
    centre = y[first]  # results far from 0 would lose digits
    mean = centre + y.new_zeros(g).index_add_(0, place, y - centre[place]) / counts
    return first, counts, mean, y.new_zeros(g).index_add_(0, place, (y - mean[place]).square())


def _places(X: Float[Tensor, "n d"], error_var: Float[Tensor, "n"] | None) -> Int[Tensor, "n"]:
    """The number of every row's place, in the order in which they came first; rows of one place have equal errors."""
    cells = np.rint(X.cpu().numpy() / NEAR).astype(np.int64)
    if error_var is not None:
        cells = np.concatenate([cells, error_var.cpu().numpy().view(np.int64)[:, None]], axis=1)
    # rows are told apart by a number made of them; sorting numbers takes a fraction of sorting rows
    odd = np.random.default_rng(0).integers(1, 2**62, size=cells.shape[1]) * 2 + 1
    with np.errstate(over="ignore"):
        key = (cells * odd).sum(-1)
    _, first, place = np.unique(key, return_index=True, return_inverse=True)
    if not np.array_equal(cells[first][place], cells):  # two places with one number
        _, first, place = np.unique(cells, axis=0, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return torch.from_numpy(rank[place.reshape(-1)]).to(X.device)
