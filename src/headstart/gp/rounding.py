"""The same numbers in a batch and alone.

A problem of a batch is to be what it is alone, to the last bit: a fit makes 1e-7 of the last bit of a factorisation,
and a few steps later a run in lockstep and the same run alone are in different places. Libraries round otherwise for
one matrix than for many, so wherever a single problem could do with a plainer product, one of these is used:

    times              a matrix times a vector, for each of a batch
    row_times          a row times a matrix, for each of a batch
    round_alike        the same for MKL's own routines
"""

from __future__ import annotations

import os

from jaxtyping import Float
from torch import Tensor


def times(A: Float[Tensor, "*b n m"], x: Float[Tensor, "*#b m"]) -> Float[Tensor, "*b n"]:
    """A x for every matrix of the batch: a single one is multiplied as one of two."""
    x = x.expand(*A.shape[:-2], x.shape[-1])
    if A.shape[:-2].numel() > 1:
        return (A @ x.unsqueeze(-1)).squeeze(-1)
    pair: Tensor = (A.expand(2, *A.shape[1:]) @ x.unsqueeze(-1).expand(2, *x.shape[1:], 1)).squeeze(-1)
    return pair[:1]


def row_times(rows: Float[Tensor, "B k"], A: Float[Tensor, "#B k m"]) -> Float[Tensor, "B m"]:
    """Every row times its matrix, also where all have the same one, which one plain product would do."""
    product: Tensor = (rows.unsqueeze(1) @ A).squeeze(1)
    return product


def round_alike() -> None:
    """Have MKL round a matrix alike wherever it lies in memory.

    Otherwise the last bits of a factorisation depend on the address of the matrix, so on its place in a batch. MKL
    reads MKL_CBWR when it is used for the first time: this has an effect before the first computation of a process, and
    on processes that are started later. What the user has set stays. It costs no measurable time.
    """
    os.environ.setdefault("MKL_CBWR", "AUTO")
