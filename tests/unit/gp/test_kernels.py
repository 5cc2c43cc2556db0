"""The two kernels against their formulas."""

from __future__ import annotations

import pytest
import torch
from tests.problems import agree, tensor
from torch import Tensor

from headstart import Kernel
from headstart.gp.kernels import squared_distance, with_slope

KERNELS = list(Kernel)


def _random(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def _squared_distance(A: Tensor, B: Tensor, lengthscale: Tensor) -> Tensor:
    difference = (A.unsqueeze(-2) - B.unsqueeze(-3)) / lengthscale[..., None, None, :]
    return difference.square().sum(-1)


def _kappa(kernel: Kernel, D: Tensor) -> Tensor:
    if kernel is Kernel.RBF:
        return torch.exp(-D / 2)
    a = torch.sqrt(5 * D)
    return (1 + a + a**2 / 3) * torch.exp(-a)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    ("of_A", "of_B", "of_ell"),
    [((), (), ()), ((3,), (3,), (3,)), ((3,), (), ()), ((), (3,), ()), ((), (), (3,)), ((5, 3), (3,), (3,))],
)
def test_a_kernel_is_its_formula(
    kernel: Kernel, of_A: tuple[int, ...], of_B: tuple[int, ...], of_ell: tuple[int, ...]
) -> None:
    """κ between rows of A and B follows the formula at the scaled distance, over all layouts."""
    A, B, ell = _random(*of_A, 4, 3), _random(*of_B, 5, 3, seed=1), 0.2 + _random(*of_ell, 3, seed=2)
    K = kernel(A, B, ell)
    assert K.shape == (*torch.broadcast_shapes(of_A, of_B, of_ell), 4, 5)
    assert agree(K, _kappa(kernel, _squared_distance(A, B, ell)).expand(K.shape), rtol=1e-13)


def test_known_values() -> None:
    """At scaled distance 1: RBF e^(−1/2), Matérn-5/2 (1 + √5 + 5/3) e^(−√5)."""
    A, B, ell = tensor([[0.0]]), tensor([[0.5]]), tensor([0.5])
    assert Kernel.RBF(A, B, ell).item() == pytest.approx(0.6065306597126334, rel=1e-14)
    assert Kernel.MATERN52(A, B, ell).item() == pytest.approx(0.5239941088318203, rel=1e-14)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_point_correlates_with_itself_by_one(kernel: Kernel) -> None:
    """κ(x, x) is 1 to rounding, also at the shortest lengthscale and away from the origin."""
    X = 1 - 0.01 * _random(20, 4)
    K = kernel(X, X, torch.full((4,), 0.05, dtype=torch.float64))
    assert torch.allclose(K.diagonal(), torch.ones(20, dtype=torch.float64), rtol=0, atol=1e-11)


@pytest.mark.parametrize("kernel", KERNELS)
def test_short_lengthscales_do_not_drown_the_distances(kernel: Kernel) -> None:
    """At the shortest lengthscale of a fit the product form loses no more than twelve digits leave."""
    X, ell = _random(30, 6), torch.full((6,), 0.05, dtype=torch.float64)
    X[1] = X[0] + 1e-3
    D = _squared_distance(X, X, ell)
    assert torch.allclose(squared_distance(X, X, ell), D, rtol=0, atol=1e-11)
    assert torch.allclose(kernel(X, X, ell), _kappa(kernel, D), rtol=0, atol=1e-11)


@pytest.mark.parametrize("kernel", KERNELS)
def test_no_points_give_an_empty_matrix(kernel: Kernel) -> None:
    """Between no points and some there is a matrix without rows, with the batch in front."""
    none, some, ell = _random(3, 0, 2), _random(4, 2), _random(3, 2) + 0.1
    assert kernel(none, some, ell).shape == (3, 0, 4)
    assert kernel(some, none, ell).shape == (3, 4, 0)


@pytest.mark.parametrize("kernel", KERNELS)
def test_value_and_slope_follow_the_formula(kernel: Kernel) -> None:
    """``with_slope`` gives κ and −2 dκ/dD; autograd of the formula agrees."""
    Z = 2 * _random(2, 6, 3)
    D = _squared_distance(Z, Z, torch.ones(3, dtype=torch.float64))
    apart = D > 0
    D.requires_grad_()
    kappa = _kappa(kernel, D)
    (derivative,) = torch.autograd.grad(kappa[apart].sum(), D)
    value, slope = with_slope(kernel, Z.clone())
    assert agree(value[apart], kappa.detach()[apart], rtol=1e-13)
    assert agree(slope[apart], -2 * derivative[apart], rtol=1e-13)


@pytest.mark.parametrize(("kernel", "limit"), [(Kernel.RBF, 1.0), (Kernel.MATERN52, 5 / 3)])
def test_the_slope_has_a_limit_at_distance_zero(kernel: Kernel, limit: float) -> None:
    """Where points coincide κ is 1 and the slope is 1 for RBF and 5/3 for Matérn-5/2."""
    Z = _random(1, 2).expand(4, 2).contiguous()
    value, slope = with_slope(kernel, Z)
    assert torch.allclose(value, torch.ones(4, 4, dtype=torch.float64), rtol=1e-12, atol=0)
    assert torch.allclose(slope, torch.full((4, 4), limit, dtype=torch.float64), rtol=1e-6, atol=0)


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_gradient_by_the_inputs_is_that_of_the_formula(kernel: Kernel) -> None:
    """Autograd through the product form agrees with finite differences."""
    A, B, ell = _random(3, 2).requires_grad_(), _random(4, 2, seed=1), tensor([0.4, 0.7])
    assert torch.autograd.gradcheck(lambda A: kernel(A, B, ell), (A,))


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_gradient_is_finite_where_points_coincide(kernel: Kernel) -> None:
    """At a point that is also a row of B the gradient of κ exists, and is 0 for that pair."""
    B, ell = _random(4, 2), tensor([0.4, 0.7])
    A = B[1:2].clone().requires_grad_()
    K = kernel(A, B, ell)
    assert bool(torch.autograd.grad(K.sum(), A, retain_graph=True)[0].isfinite().all())
    assert torch.autograd.grad(K[0, 1], A)[0].abs().max().item() < 1e-7
