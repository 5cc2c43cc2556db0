"""Which of many rows to learn from: all over the inputs, all over the outputs, and always the best ones.

    representative_rows   for hyperparameters: rows in order of their results, cut into strata of equal size, and of
                          each stratum the row that is farthest from those chosen before. What is rare among the results
                          (the best ones) is there in its share, and no two rows are needlessly alike
    leading_rows          for predictions: half of them the best, for near the optimum a source is asked most closely,
                          the others an even spread of the rest

Both are the same for the same data, whatever the seed.
"""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

__all__ = ["leading_rows", "representative_rows"]

# Rows of a stratum that are compared: the farthest of so many is nearly the farthest of all
_COMPARED = 16


def representative_rows(X: Float[Tensor, "P n d"], y: Float[Tensor, "P n"], m: int) -> Int[Tensor, "P m"]:
    """m rows of every problem, in ascending order; the lowest and the highest result are among them."""
    if m >= y.shape[-1]:
        return torch.arange(y.shape[-1], device=y.device).expand(y.shape[0], -1)
    chosen = [_representative(X_i.cpu().numpy(), y_i.cpu().numpy(), m) for X_i, y_i in zip(X, y, strict=True)]
    return torch.from_numpy(np.stack(chosen)).to(y.device)


def _representative(X: np.ndarray, y: np.ndarray, m: int) -> np.ndarray:
    n = len(y)
    order = np.argsort(y, kind="stable")
    chosen = np.empty(m, dtype=np.int64)
    chosen[0] = order[0]
    if m == 1:
        return chosen
    chosen[1] = order[-1]
    edges = np.linspace(1, n - 1, m - 1).round().astype(int)  # strata of what is left
    near = np.full(n, np.inf)  # the squared distance to the nearest row chosen so far
    for done in (0, 1):
        near = np.minimum(near, np.square(X - X[chosen[done]]).sum(-1))
    # from stratum to stratum in strides, so that neighbours in y are not chosen one after the other
    for k, stratum in enumerate(_strided(m - 2)):
        members = order[edges[stratum] : edges[stratum + 1]]
        if len(members) > _COMPARED:
            members = members[np.linspace(0, len(members) - 1, _COMPARED).round().astype(int)]
        row = members[near[members].argmax()]
        chosen[k + 2] = row
        near = np.minimum(near, np.square(X - X[row]).sum(-1))
    return np.sort(chosen)


def _strided(n: int) -> np.ndarray:
    """0 … n − 1, each once, neighbours far apart: in the order of their digits read backwards."""
    bits = max(1, int(n - 1).bit_length())
    numbers = np.arange(2**bits)
    backwards = sum(((numbers >> b) & 1) << (bits - 1 - b) for b in range(bits))
    return np.asarray(backwards)[backwards < n]


def leading_rows(y: Float[Tensor, "P n"], m: int) -> Int[Tensor, "P m"]:
    """m rows of every problem, in ascending order: the m/2 lowest results, and an even spread of the other rows."""
    P, n = y.shape
    if m >= n:
        return torch.arange(n, device=y.device).expand(P, -1)
    ranked = y.argsort(-1, stable=True)
    n_best = m // 2
    rest = ranked[:, n_best:].sort(-1).values
    even = torch.linspace(0, n - n_best - 1, m - n_best, dtype=y.dtype, device=y.device).round().long()
    return torch.cat([ranked[:, :n_best], rest[:, even]], dim=-1).sort(-1).values
