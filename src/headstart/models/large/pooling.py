"""Rows at one place as their mean: with the noise they have, nothing is lost (``gp.evidence.RowCounts``).

Unlike ``data.replicates``, which estimates the scatter before a model is there, noise_var stays a hyperparameter of the
model. Rows whose inputs differ by less than NEAR count as one place: no kernel tells them apart, whose shortest
lengthscale is 0.05.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from headstart.data.dataset import Dataset

NEAR = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class PooledRows:
    """``data`` has a row for every place, ``counts`` how many there were, ``scatter`` the S of each."""

    data: Dataset
    counts: Float[Tensor, "*b g"]
    scatter: Float[Tensor, "*b g"]

    def rows(self, which: Int[Tensor, "k"]) -> PooledRows:
        """Some of the places."""
        return PooledRows(self.data.rows(which), self.counts[..., which], self.scatter[..., which])

    def noise(self, noise_var: Float[Tensor, "*b"]) -> Float[Tensor, "*b g"]:
        """The variance of the noise of every mean."""
        every = noise_var.unsqueeze(-1)
        return (every if self.data.error_var is None else every + self.data.error_var) / self.counts


def pooled_rows(task: Dataset) -> PooledRows | None:
    """The task with a row for every place and known error; None where every row has its own, and for a batch."""
    if task.batch_shape.numel() != 1 or task.n < 2:
        return None
    X, y = task.X.reshape(task.n, task.d), task.y.reshape(-1)
    known = None if task.error_var is None else task.error_var.reshape(-1)
    place = _places(X, known)
    g = int(place.max()) + 1
    if g == task.n:
        return None
    counts = y.new_zeros(g).index_add_(0, place, torch.ones_like(y))
    first = torch.full((g,), task.n, dtype=torch.int64, device=y.device)
    first = first.scatter_reduce_(0, place, torch.arange(task.n, device=y.device), "amin")
    centre = y[first]  # results far from 0 would lose digits
    mean = centre + y.new_zeros(g).index_add_(0, place, y - centre[place]) / counts
    scatter = y.new_zeros(g).index_add_(0, place, (y - mean[place]).square())
    b = task.batch_shape
    error_var = None if known is None else known[first].reshape(*b, g)
    data = replace(task, X=X[first].reshape(*b, g, task.d), y=mean.reshape(*b, g), error_var=error_var)
    return PooledRows(data, counts.reshape(*b, g), scatter.reshape(*b, g))


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
