"""Which of many rows to learn from: all over the inputs, all over the outputs, and always the best ones.

    representative_rows   for hyperparameters: rows in order of their results, cut into strata of equal size, and of
                          each stratum the row that is farthest from those chosen before. What is rare among the results
                          (the best ones) is there in its share, and no two rows are needlessly alike
    leading_rows          for predictions: half of them the best, for near the optimum a source is asked most closely,
                          the others as far from these and from each other as can be

Both are the same for the same data, whatever the seed.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from headstart.data.dataset import Dataset

# Rows of a stratum that are compared: the farthest of so many is nearly the farthest of all
_COMPARED = 16
_TOGETHER = 1024  # rows whose distances are worked out at once


def representative_rows(X: Float[Tensor, "P n d"], y: Float[Tensor, "P n"], m: int) -> Int[Tensor, "P m"]:
    """m rows of every problem, in ascending order; the lowest and the highest result are among them."""
    if m >= y.shape[-1]:
        return torch.arange(y.shape[-1], device=y.device).expand(y.shape[0], -1)
    chosen = [_representative(X_i.cpu().numpy(), y_i.cpu().numpy(), m) for X_i, y_i in zip(X, y, strict=True)]
    return torch.from_numpy(np.stack(chosen)).to(y.device)


def representative(data: Dataset, m: int) -> Dataset:
    """The task with m such rows, where it has more."""
    if data.n <= m:
        return data
    b = data.batch_shape
    which = representative_rows(data.X.reshape(-1, data.n, data.d), data.y.reshape(-1, data.n), m).reshape(*b, m)
    return rows_of(data, which)


def rows_of(data: Dataset, which: Int[Tensor, "*b k"]) -> Dataset:
    """Rows of every problem of a batch, each with numbers of its own."""
    X = data.X.gather(-2, which.unsqueeze(-1).expand(*which.shape, data.d))
    error_var = None if data.error_var is None else data.error_var.gather(-1, which)
    return data.with_data(X, data.y.gather(-1, which), error_var)


def _representative(X: np.ndarray, y: np.ndarray, m: int) -> np.ndarray:
    n = len(y)
    order = np.argsort(y, kind="stable")
    chosen = np.empty(m, dtype=np.int64)
    chosen[0] = order[0]
    if m == 1:
        return chosen
    chosen[1] = order[-1]
    if m == 2:
        return np.sort(chosen)
    edges = np.linspace(1, n - 1, m - 1).round().astype(int)  # strata of what is left
    strata = [order[low:high] for low, high in pairwise(edges)]
    strata = [rows if len(rows) <= _COMPARED else rows[_even(len(rows), _COMPARED)] for rows in strata]
    ends, pool = np.cumsum([0, *map(len, strata)]), X[np.concatenate(strata)]  # no more than that is looked at
    # the squared distance to the nearest row chosen so far
    near = np.minimum(*(np.square(pool - X[row]).sum(-1) for row in chosen[:2]))
    # from stratum to stratum in strides, so that neighbours in y are not chosen one after the other
    for k, stratum in enumerate(_strided(m - 2)):
        best = ends[stratum] + near[ends[stratum] : ends[stratum + 1]].argmax()
        chosen[k + 2] = strata[stratum][best - ends[stratum]]
        near = np.minimum(near, np.square(pool - pool[best]).sum(-1))
    return np.sort(chosen)


def _even(n: int, m: int) -> np.ndarray:
    """m of the numbers 0 … n − 1, all over them."""
    return np.linspace(0, n - 1, m).round().astype(int)


def _strided(n: int) -> np.ndarray:
    """0 … n − 1, each once, neighbours far apart: in the order of their digits read backwards."""
    bits = max(1, int(n - 1).bit_length())
    numbers = np.arange(2**bits)
    backwards = sum(((numbers >> b) & 1) << (bits - 1 - b) for b in range(bits))
    return np.asarray(backwards)[backwards < n]


def every_so_many(data: Dataset, m: int) -> Dataset:
    """An even spread of m rows, as they come."""
    return data.rows(
        torch.linspace(0, data.n - 1, min(m, data.n), dtype=torch.float64).round().long().to(data.X.device)
    )


def leading_rows(X: Float[Tensor, "P n d"], y: Float[Tensor, "P n"], m: int) -> Int[Tensor, "P m"]:
    """m rows of every problem, in ascending order: the m/2 lowest results, and then always the row farthest from all.

    X is as the kernel sees it, in lengthscales.
    """
    if m >= y.shape[-1]:
        return torch.arange(y.shape[-1], device=y.device).expand(y.shape[0], -1)
    return torch.stack([_leading(X_i, y_i, m) for X_i, y_i in zip(X, y, strict=True)])


def _leading(X: Float[Tensor, "n d"], y: Float[Tensor, "n"], m: int) -> Int[Tensor, "m"]:
    best = y.argsort(stable=True)[: max(1, m // 2)]
    near = torch.cat([torch.cdist(part, X[best]).amin(-1).square() for part in X.split(_TOGETHER)])
    near[best] = -1.0  # never again
    chosen = torch.empty(m - len(best), dtype=torch.int64, device=y.device)
    for k in range(len(chosen)):
        row = near.argmax()
        chosen[k] = row
        near = torch.minimum(near, (X - X[row]).square().sum(-1))
        near[row] = -1.0
    return torch.cat([best, chosen]).sort().values
