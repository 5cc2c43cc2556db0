"""Factorisations made of matrix products, for batches on a GPU.

The libraries' own batched factorisations go column by column, which keeps a GPU waiting. In blocks of ``block`` rows
nearly all of the work is products of large matrices, and only the blocks on the diagonal, all of a batch at once, are
factorised by the library. With rows i ≥ k below block k, and j < k the blocks before it:

    factor       S_k = K_ik − Σ_j L_ij L_kjᵀ,   L_kk L_kkᵀ = S_kk,   L_ik = S_ik L_kk⁻ᵀ          n³/3 operations
    its inverse  [[A, 0], [B, C]]⁻¹ = [[A⁻¹, 0], [−C⁻¹ B A⁻¹, C⁻¹]], halves of halves            n³/3, of which
                 some are with zeros
    K⁻¹          Σ_k M_kᵀ M_k for the block rows M_k of M = L⁻¹, columns up to k alone            n³/3, doubled

Only blocks of ``block`` rows are ever divided by: their inverses are computed by substitution, so that a factor is as
accurate as the library's (a test compares them). Everything is plain torch, and runs on any device.
"""

from __future__ import annotations

from typing import Final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

# As measured by scripts/factorisation.py (results/factorisation.json): from so many rows, and from
# so many numbers in a batch, blocks are faster, four to six times in the end; one matrix alone is left to the library
_FROM, _FROM_NUMBERS = 128, 10_000_000
# Many matrices fill a GPU with small blocks, few need large ones: (from so many matrices, rows of a block)
_BLOCKS: Final = ((300, 64), (50, 128), (2, 256))


def block_for(batch: int, n: int) -> int | None:
    """The rows of a block with which a batch of n × n matrices is factorised on a GPU; None: better by the library."""
    if batch < 2 or n < _FROM or batch * n * n < _FROM_NUMBERS:
        return None
    return next(rows for least, rows in _BLOCKS if batch >= least)


def blocks_pay(K: Float[Tensor, "*b n n"]) -> bool:
    """Whether blocks are the faster way for such a batch where it lies: never on a CPU, which has LAPACK.

    Nor where automatic differentiation looks on: blocks are written in place.
    """
    if not K.is_cuda or (K.requires_grad and torch.is_grad_enabled()):
        return False
    return block_for(K.shape[:-2].numel(), K.shape[-1]) is not None


def _rows_of_block(K: Float[Tensor, "*b n n"], block: int | None) -> int:
    return block or block_for(K.shape[:-2].numel(), K.shape[-1]) or _BLOCKS[-1][1]


def blocked_cholesky(
    K: Float[Tensor, "*b n n"], *, block: int | None = None
) -> tuple[Float[Tensor, "*b n n"], Bool[Tensor, "*b"]]:
    """L with L Lᵀ = K, and which batch items could be factorised (the others hold no meaning).

    Only the lower triangle of K is read.
    """
    n, batch, block = K.shape[-1], K.shape[:-2], _rows_of_block(K, block)
    A = K.reshape(-1, n, n)
    L = torch.zeros_like(A, memory_format=torch.contiguous_format)
    ok = torch.ones(len(A), dtype=torch.bool, device=K.device)
    for begin in range(0, n, block):
        end = min(begin + block, n)
        S = A[:, begin:, begin:end]
        if begin:
            S = torch.baddbmm(S, L[:, begin:, :begin], L[:, begin:end, :begin].mT, alpha=-1)
        corner, info = torch.linalg.cholesky_ex(S[:, : end - begin])
        L[:, begin:end, begin:end] = corner
        # a NaN is no failure for every library
        ok &= (info == 0) & corner.diagonal(dim1=-2, dim2=-1).isfinite().all(-1)
        if end < n:
            torch.bmm(S[:, end - begin :], _inverse_of_corner(corner).mT, out=L[:, end:, begin:end])
    return L.reshape(K.shape), ok.reshape(batch)


def blocked_inverse(L: Float[Tensor, "*b n n"], *, block: int | None = None) -> Float[Tensor, "*b n n"]:
    """(L Lᵀ)⁻¹ for a lower triangular L, symmetric to the last bit."""
    n, block = L.shape[-1], _rows_of_block(L, block)
    factors = L.reshape(-1, n, n)
    M = torch.zeros_like(factors, memory_format=torch.contiguous_format)
    _invert(factors, M, 0, n, block)
    inverse = torch.empty_like(M)
    for begin in range(0, n, block):
        end = min(begin + block, n)
        # (L Lᵀ)⁻¹ = Mᵀ M, and M is zero above its diagonal: rows from ``begin`` on say all of these columns up to there
        torch.bmm(M[:, begin:, begin:end].mT, M[:, begin:, :end], out=inverse[:, begin:end, :end])
        corner = inverse[:, begin:end, begin:end]
        inverse[:, begin:end, begin:end] = 0.5 * (corner + corner.mT)
        inverse[:, :begin, begin:end] = inverse[:, begin:end, :begin].mT
    return inverse.reshape(L.shape)


def _inverse_of_corner(L: Float[Tensor, "B k k"]) -> Float[Tensor, "B k k"]:
    one = torch.eye(L.shape[-1], dtype=L.dtype, device=L.device).expand_as(L)
    inverse: Tensor = torch.linalg.solve_triangular(L, one, upper=False)
    return inverse


def _invert(L: Float[Tensor, "B n n"], M: Float[Tensor, "B n n"], begin: int, end: int, block: int) -> None:
    """Write the inverse of rows and columns ``begin`` to ``end`` of L into those of M."""
    if end - begin <= block:
        M[:, begin:end, begin:end] = _inverse_of_corner(L[:, begin:end, begin:end])
        return
    middle = begin + block * ((end - begin + 2 * block - 1) // (2 * block))  # about half, at the edge of a block
    _invert(L, M, begin, middle, block)
    _invert(L, M, middle, end, block)
    B_A = L[:, middle:end, begin:middle] @ M[:, begin:middle, begin:middle]
    torch.bmm(M[:, middle:end, middle:end], B_A.neg_(), out=M[:, middle:end, begin:middle])
