"""Stationary kernels with one lengthscale per input (ARD).

A kernel is a function κ of the squared scaled distance D = Σ_j (x_j − x'_j)²/ℓ_j², with κ(0) = 1; the
outputscale multiplies it elsewhere. Every gradient the evidence needs follows from κ and its slope −2 dκ/dD.
"""

from __future__ import annotations

from enum import Enum

import torch
from jaxtyping import Float
from torch import Tensor

from headstart.gp.linalg import broadcast_shapes

# Below this a distance is zero. It keeps the derivative of the square root finite; κ itself does not notice.
_TINY = 1e-30


class Kernel(Enum):
    """RBF is the paper's kernel. MATERN52 is rougher, and BoTorch's former default."""

    RBF = "rbf"
    MATERN52 = "matern52"

    def __call__(
        self, A: Float[Tensor, "*b n d"], B: Float[Tensor, "*c m d"], lengthscale: Float[Tensor, "*p d"]
    ) -> Float[Tensor, "*out n m"]:
        """κ(D) between the rows of A and those of B: RBF exp(−D/2); Matérn-5/2 (1 + a + a²/3) exp(−a), a = √(5 D)."""
        D = squared_distance(A, B, lengthscale)
        if self is Kernel.RBF:
            return torch.exp(-0.5 * D)
        a = (5 * D).clamp_min(_TINY).sqrt()
        return (1 + a + a.square() / 3) * torch.exp(-a)


def from_half(kernel: Kernel, half: Float[Tensor, "*b n m"]) -> tuple[Float[Tensor, "*b n m"], Float[Tensor, "*b n m"]]:
    """κ and −2 dκ/dD from −D/2, which is overwritten: RBF exp(−D/2) twice; Matérn-5/2 also (5/3)(1 + a) exp(−a)."""
    if kernel is Kernel.RBF:
        value = half.exp_()
        return value, value
    a = half.mul_(-10).clamp_min_(_TINY).sqrt_()
    decay = torch.exp(-a)
    slope = (1 + a).mul_(decay)
    value = a.square_().mul_(decay).mul_(1 / 3).add_(slope)  # (1 + a) e + a²/3 e
    return value, slope.mul_(5 / 3)


def squared_distance(
    A: Float[Tensor, "*b n d"], B: Float[Tensor, "*c m d"], lengthscale: Float[Tensor, "*p d"]
) -> Float[Tensor, "*out n m"]:
    """Σ_j (a_j − b_j)²/ℓ_j² by ‖a‖² + ‖b‖² − 2 a·b, never building an n×m×d tensor.

    Both are centred on B first: the cancellation then costs at most (range/ℓ)² units in the last place.
    """
    if A.shape[-2] == 0 or B.shape[-2] == 0:
        shape = broadcast_shapes(A.shape[:-2], B.shape[:-2], lengthscale.shape[:-1])
        return A.new_zeros(*shape, A.shape[-2], B.shape[-2])
    centre = B.detach().mean(dim=-2, keepdim=True)
    inverse = lengthscale.reciprocal().unsqueeze(-2)
    a, b = (A - centre) * inverse, (B - centre) * inverse
    return a.square().sum(-1, keepdim=True) + b.square().sum(-1).unsqueeze(-2) - 2 * a @ b.mT


def with_slope(kernel: Kernel, Z: Float[Tensor, "*b n d"]) -> tuple[Float[Tensor, "*b n n"], Float[Tensor, "*b n n"]]:
    """κ and −2 dκ/dD between all rows of Z = X/ℓ.

    −D/2 = z·z' − ‖z‖²/2 − ‖z'‖²/2, with the norms read off the diagonal of the products: in the fitting loop every
    operation counts.
    """
    half = Z @ Z.mT
    norm = 0.5 * half.diagonal(dim1=-2, dim2=-1)
    return from_half(kernel, half.sub_(norm.unsqueeze(-1)).sub_(norm.unsqueeze(-2)))
