"""The distances between the observations of a plain GP, and the gradient by its θ = [log ℓ (g), log s², log σ²].

Columns that are the levels of one category share a lengthscale (``Inputs``); the sums over x_j below are over all of
them.

Both ways compute κ and its slope from θ, and contract G = ∂(−log p)/∂K with ∂K/∂θ:

    by log ℓ_j   s² Σ G ∘ slope ∘ (x_j − x'_j)²/ℓ_j²
    by log s²    s² Σ G ∘ κ
    by log σ²    σ² tr G
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headstart.gp.hyperparameters import Inputs
from headstart.gp.kernels import Kernel
from headstart.gp.rounding import row_times

Kept = tuple[Tensor, ...]  # what ``gradient`` wants back from ``evaluate``

# Up to so many observations it is the number of operations that costs, and not how much each of them does
FEW = 48


def lengthscale_gradient(H: Float[Tensor, "*b n n"], Z: Float[Tensor, "*b n d"]) -> Float[Tensor, "*b d"]:
    """Σ_ab H_ab (z_aj − z_bj)² for a symmetric H: the derivative by log ℓ_j when Z = X/ℓ and H = G ∘ slope.

    By Σ H (z_a − z_b)² = 2 (Σ_a h_a z_a² − zᵀ H z) with h the row sums of H.
    """
    return 2 * (H.sum(-1, keepdim=True) * Z - H @ Z).mul_(Z).sum(-2)


class Geometry(ABC):
    """The inputs of P problems with n observations each."""

    def __init__(self, X: Float[Tensor, "P n d"], kernel: Kernel, inputs: Inputs) -> None:
        self.n, self.g = X.shape[1], inputs.n_groups
        self.kernel = kernel

    @abstractmethod
    def evaluate(self, theta: Float[Tensor, "B p"], items: Int[Tensor, "B"]) -> tuple[Tensor, Tensor, Kept]:
        """κ, its slope, and what is kept for the gradient."""

    @abstractmethod
    def gradient(self, G: Float[Tensor, "B n n"], kappa: Tensor, slope: Tensor, kept: Kept) -> Float[Tensor, "B p"]:
        """Σ G ∘ ∂K/∂θ. G may be overwritten."""


class _Rows(Geometry):
    """Many observations: distances are products of rows, and no n×n×d tensor is ever built."""

    def __init__(self, X: Float[Tensor, "P n d"], kernel: Kernel, inputs: Inputs) -> None:
        super().__init__(X, kernel, inputs)
        self._X = X - 0.5
        self._group = None if inputs.all_alone else torch.tensor(inputs.group, device=X.device)

    def evaluate(self, theta: Float[Tensor, "B p"], items: Int[Tensor, "B"]) -> tuple[Tensor, Tensor, Kept]:
        ell = theta[:, None, : self.g].exp()
        Z = of_problems(self._X, items) / (ell if self._group is None else ell[..., self._group])
        return *self.kernel.with_slope(Z), (Z, theta[:, self.g :].exp())

    def gradient(self, G: Float[Tensor, "B n n"], kappa: Tensor, slope: Tensor, kept: Kept) -> Float[Tensor, "B p"]:
        Z, scales = kept
        trace = G.diagonal(dim1=-2, dim2=-1).sum(-1, keepdim=True)
        by_outputscale = (G * kappa).sum((-2, -1)).unsqueeze(-1)
        by_lengthscale = lengthscale_gradient(G.mul_(slope), Z)
        if self._group is not None:
            by_lengthscale = by_lengthscale.new_zeros(len(Z), self.g).index_add_(1, self._group, by_lengthscale)
        return torch.cat(
            [by_lengthscale * scales[:, :1], by_outputscale * scales[:, :1], trace * scales[:, 1:]], dim=-1
        )


class _Pairs(Geometry):
    """Few observations: everything is a product with one table of pairs.

    Its columns are the n² pairs; its rows are (x_j − x'_j)² for every lengthscale, then 1, then 1 where x and x' are
    the same observation. The first rows with weights −½/ℓ² give −D/2; all of them with G ∘ κ, since κ is 1 there, the
    gradient's sums.
    """

    def __init__(self, X: Float[Tensor, "P n d"], kernel: Kernel, inputs: Inputs) -> None:
        super().__init__(X, kernel, inputs)
        columns = X.mT
        squares = (columns.unsqueeze(-1) - columns.unsqueeze(-2)).square_().flatten(-2)
        if not inputs.all_alone:
            group = torch.tensor(inputs.group, device=X.device)
            squares = squares.new_zeros(len(X), self.g, squares.shape[-1]).index_add_(1, group, squares)
        ones = torch.ones_like(squares[:, :1])
        same = torch.eye(self.n, dtype=X.dtype, device=X.device).reshape(1, 1, -1).expand_as(ones)
        self._pairs, self._half = torch.cat([squares, ones, same], dim=1).mT, -0.5 * squares
        # log of 1/ℓ_j², then of what the sums are multiplied with: s²/ℓ_j², s², σ²
        d = self.g
        exponents = torch.zeros(d + 2, 2 * d + 2, dtype=X.dtype, device=X.device)
        exponents[:d, :d] = exponents[:d, d : 2 * d] = -2 * torch.eye(d, dtype=X.dtype, device=X.device)
        exponents[d, d : 2 * d + 1] = 1.0
        exponents[d + 1, 2 * d + 1] = 1.0
        self._exponents = exponents

    def evaluate(self, theta: Float[Tensor, "B p"], items: Int[Tensor, "B"]) -> tuple[Tensor, Tensor, Kept]:
        scales = (theta @ self._exponents).exp_()
        half = row_times(scales[:, : self.g], of_problems(self._half, items))
        return *self.kernel.from_half(half.view(-1, self.n, self.n)), (items, scales[:, self.g :])

    def gradient(self, G: Float[Tensor, "B n n"], kappa: Tensor, slope: Tensor, kept: Kept) -> Float[Tensor, "B p"]:
        items, factors = kept
        sums = row_times((G * kappa).flatten(1), of_problems(self._pairs, items))
        if slope is not kappa:
            by_lengthscale = row_times(G.mul_(slope).flatten(1), of_problems(self._pairs, items))
            sums = torch.cat([by_lengthscale[:, : self.g], sums[:, self.g :]], dim=-1)
        return sums.mul_(factors)


def of_problems(data: Tensor, items: Int[Tensor, "B"]) -> Tensor:
    """The data of these problems; a single one broadcasts, which is what indexing would do by copying."""
    return data if data.shape[0] == 1 else data[items]


def geometry_of(X: Float[Tensor, "P n d"], kernel: Kernel, inputs: Inputs) -> Geometry:
    """The faster way for so many observations."""
    return (_Pairs if X.shape[1] <= FEW else _Rows)(X, kernel, inputs)
