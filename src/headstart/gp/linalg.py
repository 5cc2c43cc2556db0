"""Triangular linear algebra over leading batch dimensions.

Everything goes through Cholesky factors; variances are computed from L⁻¹k, never from K⁻¹, which loses
the sign of a small variance to rounding.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headstart.errors import NumericalError

# The least variance of f, in model units: what is smaller is rounding
LEAST_VAR = 1e-10


def broadcast_shapes(*shapes: Sequence[int]) -> torch.Size:
    """The shape that tensors of these shapes have together; torch's own loads a symbolic algebra package to say so."""
    return torch.Size(np.broadcast_shapes(*map(tuple, shapes)))


def try_cholesky(K: Float[Tensor, "*b n n"]) -> tuple[Float[Tensor, "*b n n"], Bool[Tensor, "*b"]]:
    """L with L Lᵀ = K, and which batch items could be factorised (the others hold no meaning)."""
    L, info = torch.linalg.cholesky_ex(K.mT)  # symmetric, and already in the column order LAPACK works in
    return L, info == 0


def cholesky(K: Float[Tensor, "*b n n"], *, of: str) -> Float[Tensor, "*b n n"]:
    """L with L Lᵀ = K; raises a ``NumericalError`` that names the matrix where K is not positive definite."""
    L, ok = try_cholesky(K)
    if not bool(ok.all()):
        raise NumericalError(
            f"{of} is not positive definite ({int((~ok).sum())} of {ok.numel()} batch items). Repeated or nearly "
            "repeated inputs need observation noise: use a larger noise_var, or merge the repeated rows."
        )
    return L


def times(A: Float[Tensor, "*b n m"], x: Float[Tensor, "*#b m"]) -> Float[Tensor, "*b n"]:
    """A x for every matrix of the batch, with the same rounding in a batch and alone.

    Libraries round otherwise for one matrix than for many, and a fit amplifies the last bit: a problem of a batch and
    the same problem alone would end in different places. So a single matrix is multiplied as one of two.
    """
    x = x.expand(*A.shape[:-2], x.shape[-1])
    if A.shape[:-2].numel() > 1:
        return (A @ x.unsqueeze(-1)).squeeze(-1)
    pair: Tensor = (A.expand(2, *A.shape[1:]) @ x.unsqueeze(-1).expand(2, *x.shape[1:], 1)).squeeze(-1)
    return pair[:1]


def fold(X: Float[Tensor, "*c n d"], batch_shape: torch.Size) -> tuple[Float[Tensor, "*b N d"], torch.Size]:
    """X broadcast to ``batch_shape`` with its further leading dimensions moved into the rows, and those dimensions.

    One triangular solve with many right-hand sides then serves a whole batch of queries.
    """
    X = X.expand(*broadcast_shapes(X.shape[:-2], batch_shape), *X.shape[-2:])
    extra = X.shape[: X.dim() - 2 - len(batch_shape)]
    rows = X.movedim(tuple(range(len(extra))), tuple(range(len(batch_shape), len(batch_shape) + len(extra))))
    return rows.reshape(*batch_shape, extra.numel() * X.shape[-2], X.shape[-1]), extra


def unfold(columns: Float[Tensor, "*b r N"], extra: torch.Size) -> Float[Tensor, "*c r m"]:
    """The inverse of ``fold`` for a result with a column per folded row: (*b, r, e·m) → (*e, *b, r, m)."""
    if not extra:
        return columns
    split = columns.unflatten(-1, (*extra, columns.shape[-1] // extra.numel()))
    source = tuple(range(split.dim() - 1 - len(extra), split.dim() - 1))
    moved: Tensor = split.movedim(source, tuple(range(len(extra))))
    return moved


def _solve(L: Float[Tensor, "*b n n"], B: Float[Tensor, "*c n m"], *, transpose: bool) -> Float[Tensor, "*out n m"]:
    full = broadcast_shapes(L.shape[:-2], B.shape[:-2])
    while L.dim() > 2 and L.shape[0] == 1:
        L = L.squeeze(0)
    lead = len(full) - (L.dim() - 2)
    A = L.mT if transpose else L
    if lead and full[lead:] == L.shape[:-2]:
        # dimensions that L does not have become columns: L is never copied per query
        columns = B.expand(*full, *B.shape[-2:]).movedim(tuple(range(lead)), tuple(range(-1 - lead, -1)))
        return unfold(torch.linalg.solve_triangular(A, columns.flatten(-1 - lead), upper=transpose), full[:lead])
    solved: Tensor = torch.linalg.solve_triangular(A, B, upper=transpose)
    return solved


def solve_lower(L: Float[Tensor, "*b n n"], B: Float[Tensor, "*c n m"]) -> Float[Tensor, "*out n m"]:
    """L⁻¹ B for a lower triangular L."""
    return _solve(L, B, transpose=False)


def solve_upper(L: Float[Tensor, "*b n n"], B: Float[Tensor, "*c n m"]) -> Float[Tensor, "*out n m"]:
    """L⁻ᵀ B for a lower triangular L."""
    return _solve(L, B, transpose=True)


def append_rows(
    L: Float[Tensor, "*b n n"], below: Float[Tensor, "*c k n"], corner: Float[Tensor, "*c k k"]
) -> Float[Tensor, "*out n+k n+k"]:
    """The block lower triangular [[L, 0], [below, corner]]."""
    shape = broadcast_shapes(L.shape[:-2], below.shape[:-2], corner.shape[:-2])
    n, k = L.shape[-1], corner.shape[-1]
    grown = L.new_zeros(*shape, n + k, n + k)  # written once: with many rows copies are what takes time
    grown[..., :n, :n] = L
    grown[..., n:, :n] = below
    grown[..., n:, n:] = corner
    return grown
