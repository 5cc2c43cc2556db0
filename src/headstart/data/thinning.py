"""Thinning: a subset of the rows where all of them would take too long to read or to fit.

    best_and_spread       to read: the best tenth by every result, and an even spread of the others in their order; it
                          needs no inputs
    representative_rows   to fit: rows sorted by result and cut into strata of equal size; of each stratum the row that
                          is farthest from those chosen before
    inducing_rows         to predict through: half of them the best results, the others always the row farthest from
                          all chosen before. Strata instead cost a tenth of the accuracy away from the optimum

All depend on the data alone, not on a seed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from headstart.data.dataset import Dataset

_Choose = Callable[[Tensor, Tensor, int], Tensor]

_COMPARED = 16  # rows of a stratum that are compared: the farthest of these is nearly the farthest of all
_BLOCK = 1024  # rows whose distances are worked out at once


def best_and_spread(results: Sequence[tuple[NDArray[np.float64], bool | None]], m: int) -> NDArray[np.int64]:
    """At most m rows that have a result, in ascending order: the best tenth, and an even spread of the others.

    ``results`` are the values of every row (NaN where there is none) and whether they are maximised; of several results
    each has its part of the tenth, and of one with direction None both ends are among the best.
    """
    known = np.flatnonzero(~np.all([np.isnan(y) for y, _ in results], axis=0))
    if len(known) <= m:
        return known
    share = m // 10 // len(results)
    best = np.unique(np.concatenate([_best(y, maximize, share) for y, maximize in results]))
    rest = np.setdiff1d(known, best)
    return np.sort(np.concatenate([best, rest[_evenly(len(rest), m - len(best))]]))


def _best(y: NDArray[np.float64], maximize: bool | None, n: int) -> NDArray[np.int64]:
    known = np.flatnonzero(~np.isnan(y))
    ranked = known[np.argsort(y[known], kind="stable")]
    n_low = {False: n, True: 0, None: n // 2}[maximize]
    return np.concatenate([ranked[:n_low], ranked[max(0, len(ranked) - (n - n_low)) :]])


def _evenly(n: int, m: int) -> NDArray[np.int64]:
    """m of the numbers 0 … n − 1, evenly spread, the first and the last among them."""
    return np.linspace(0, n - 1, m).round().astype(np.int64)


def representative(task: Dataset, m: int) -> Dataset:
    """The task with at most m representative rows; each problem of a batch has its own."""
    return task if task.n <= m else take_rows(task, representative_rows(task.X, task.y, m))


def take_rows(task: Dataset, which: Int[Tensor, "*b k"]) -> Dataset:
    """Rows of every problem of a batch, each with numbers of its own."""
    X = task.X.gather(-2, which.unsqueeze(-1).expand(*which.shape, task.d))
    error_var, batch = (None if own is None else own.gather(-1, which) for own in (task.error_var, task.batch))
    return task.with_data(X, task.y.gather(-1, which), error_var, batch)


def _of_every_problem(choose: _Choose) -> _Choose:
    """The same for a batch: m rows of every problem, in ascending order, or all of them."""

    def chosen(X: Float[Tensor, "*b n d"], y: Float[Tensor, "*b n"], m: int) -> Int[Tensor, "*b k"]:
        *batch, n = y.shape
        if m >= n:
            return torch.arange(n, device=y.device).expand(y.shape)
        found = [choose(X_i, y_i, m) for X_i, y_i in zip(X.reshape(-1, n, X.shape[-1]), y.reshape(-1, n), strict=True)]
        return torch.stack(found).sort().values.reshape(*batch, m)

    return chosen


@_of_every_problem
def representative_rows(X_: Float[Tensor, "n d"], y_: Float[Tensor, "n"], m: int) -> Int[Tensor, "m"]:
    """Rows of all strata of the results; the lowest and the highest result are among them."""
    X, y = X_.cpu().numpy(), y_.cpu().numpy()
    order = np.argsort(y, kind="stable")
    chosen = np.empty(m, dtype=np.int64)
    chosen[:2] = order[[0, -1]][:m]
    if m <= 2:
        return torch.from_numpy(chosen).to(y_.device)
    edges = np.linspace(1, len(y) - 1, m - 1).round().astype(int)  # strata of what is left
    strata = [order[low:high] for low, high in pairwise(edges)]
    strata = [rows if len(rows) <= _COMPARED else rows[_evenly(len(rows), _COMPARED)] for rows in strata]
    ends, pool = np.cumsum([0, *map(len, strata)]), X[np.concatenate(strata)]  # no more than that is looked at
    # the squared distance to the nearest row chosen so far
    near = np.minimum(*(np.square(pool - X[row]).sum(-1) for row in chosen[:2]))
    # from stratum to stratum in strides, so that neighbours in y are not chosen one after the other
    for k, stratum in enumerate(_strided(m - 2)):
        best = ends[stratum] + near[ends[stratum] : ends[stratum + 1]].argmax()
        chosen[k + 2] = strata[stratum][best - ends[stratum]]
        near = np.minimum(near, np.square(pool - pool[best]).sum(-1))
    return torch.from_numpy(chosen).to(y_.device)


def _strided(n: int) -> NDArray[np.int64]:
    """0 … n − 1, each once, neighbours far apart: in bit-reversed order."""
    bits = max(1, int(n - 1).bit_length())
    numbers = np.arange(2**bits)
    backwards = sum(((numbers >> b) & 1) << (bits - 1 - b) for b in range(bits))
    return np.asarray(backwards)[backwards < n]


@_of_every_problem
def inducing_rows(X: Float[Tensor, "n d"], y: Float[Tensor, "n"], m: int) -> Int[Tensor, "m"]:
    """The m/2 lowest results, then always the row farthest from all; X is as the kernel sees it, in lengthscales."""
    best = y.argsort(stable=True)[: max(1, m // 2)]
    near = torch.cat([torch.cdist(part, X[best]).amin(-1).square() for part in X.split(_BLOCK)])
    near[best] = -1.0  # not chosen again
    chosen = torch.empty(m - len(best), dtype=torch.int64, device=y.device)
    for k in range(len(chosen)):
        row = near.argmax()
        chosen[k] = row
        near = torch.minimum(near, (X - X[row]).square().sum(-1))
        near[row] = -1.0
    return torch.cat([best, chosen])
