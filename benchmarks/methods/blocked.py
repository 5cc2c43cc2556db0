"""Factorisations of many matrices on a GPU by blocks, for the joint models of a study in lockstep.

``torch.linalg.cholesky_ex`` goes through a batch column by column, which leaves a GPU waiting. By blocks nearly all of
the work is products of large matrices, and the library factorises only the blocks on the diagonal, those of the whole
batch at once. With block rows i ≥ k and j < k:

    L         S_ik = K_ik − Σ_j L_ij L_kjᵀ,   L_kk L_kkᵀ = S_kk,   L_ik = S_ik L_kk⁻ᵀ
    M = L⁻¹   [[A, 0], [B, C]]⁻¹ = [[A⁻¹, 0], [−C⁻¹ B A⁻¹, C⁻¹]], halves of halves
    K⁻¹       Σ_k M_kᵀ M_k over the block rows of M

Only diagonal blocks are divided by, by substitution, so that a factor is as accurate as the library's.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.overrides import TorchFunctionMode

# From so many rows, and so many numbers in a batch, blocks are faster than the library on an H200
_LEAST_ROWS, _LEAST_NUMBERS = 128, 4_000_000
_BLOCK = 64


class BlockedOnGPU(TorchFunctionMode):
    """Within it, torch factorises and inverts large batches on a GPU by blocks; everything else is torch's own."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Torch's function, or the one by blocks."""
        if func is torch.linalg.cholesky_ex and blocks_pay(args[0]):
            L, ok = blocked_cholesky(args[0])
            return L, (~ok).int()
        if func is torch.cholesky_inverse and blocks_pay(args[0]):
            return blocked_inverse(args[0])
        return func(*args, **(kwargs or {}))


def blocks_pay(K: Float[Tensor, "*b n n"]) -> bool:
    """Whether blocks are faster for this batch: on a GPU, with many matrices of many rows."""
    return K.is_cuda and K.dim() > 2 and K.shape[-1] >= _LEAST_ROWS and K.numel() >= _LEAST_NUMBERS


def blocked_cholesky(
    K: Float[Tensor, "*b n n"], block: int = _BLOCK
) -> tuple[Float[Tensor, "*b n n"], Bool[Tensor, "*b"]]:
    """L with L Lᵀ = K, of whose lower triangle alone is read, and which matrices could be factorised."""
    n, batch = K.shape[-1], K.shape[:-2]
    A = K.reshape(-1, n, n)
    L = A.new_zeros(A.shape)
    ok = torch.ones(len(A), dtype=torch.bool, device=K.device)
    for begin in range(0, n, block):
        end = min(begin + block, n)
        S = A[:, begin:, begin:end]
        if begin:
            S = torch.baddbmm(S, L[:, begin:, :begin], L[:, begin:end, :begin].mT, alpha=-1)
        corner, info = torch.linalg.cholesky_ex(S[:, : end - begin])
        L[:, begin:end, begin:end] = corner
        ok &= (info == 0) & corner.diagonal(dim1=-2, dim2=-1).isfinite().all(-1)  # not every library notices a NaN
        if end < n:
            L[:, end:, begin:end] = S[:, end - begin :] @ _inverse(corner).mT
    return L.reshape(K.shape), ok.reshape(batch)


def blocked_inverse(L: Float[Tensor, "*b n n"], block: int = _BLOCK) -> Float[Tensor, "*b n n"]:
    """(L Lᵀ)⁻¹ for a lower triangular L, symmetric to the last bit."""
    n = L.shape[-1]
    factors = L.reshape(-1, n, n)
    M = factors.new_zeros(factors.shape)
    _invert(factors, M, 0, n, block)
    inverse = torch.empty_like(M)
    for begin in range(0, n, block):
        end = min(begin + block, n)
        inverse[:, begin:end, :end] = M[:, begin:, begin:end].mT @ M[:, begin:, :end]
        corner = inverse[:, begin:end, begin:end]
        inverse[:, begin:end, begin:end] = 0.5 * (corner + corner.mT)
        inverse[:, :begin, begin:end] = inverse[:, begin:end, :begin].mT
    return inverse.reshape(L.shape)


def _inverse(L: Float[Tensor, "B k k"]) -> Float[Tensor, "B k k"]:
    one = torch.eye(L.shape[-1], dtype=L.dtype, device=L.device).expand_as(L)
    inverse: Tensor = torch.linalg.solve_triangular(L, one, upper=False)
    return inverse


def _invert(L: Float[Tensor, "B n n"], M: Float[Tensor, "B n n"], begin: int, end: int, block: int) -> None:
    """Write the inverse of rows and columns ``begin`` to ``end`` of L into those of M."""
    if end - begin <= block:
        M[:, begin:end, begin:end] = _inverse(L[:, begin:end, begin:end])
        return
    middle = begin + block * ((end - begin + 2 * block - 1) // (2 * block))  # about half, at the edge of a block
    _invert(L, M, begin, middle, block)
    _invert(L, M, middle, end, block)
    B_A = L[:, middle:end, begin:middle] @ M[:, begin:middle, begin:middle]
    M[:, middle:end, begin:middle] = -(M[:, middle:end, middle:end] @ B_A)
