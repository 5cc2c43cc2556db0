"""Triangular linear algebra over any layout of leading dimensions."""

from __future__ import annotations

import math

import pytest
import torch
from tests.problems import agree
from torch import Tensor

from headstart import NumericalError
from headstart.gp.linalg import (
    append_rows,
    cholesky,
    fold,
    solve_lower,
    solve_upper,
    times,
    try_cholesky,
    unfold,
)

LAYOUTS = [  # the leading dimensions of L and of B
    ((), ()),
    ((3,), (3,)),
    ((3,), ()),
    ((), (3,)),
    ((), (4, 3)),
    ((3,), (5, 3)),
    ((3,), (5, 1)),
    ((3,), (5, 1, 3)),
    ((5, 1), (3,)),
    ((5, 1), (5, 3)),
    ((1, 3), (5, 3)),
    ((2, 3), (4, 2, 3)),
    ((2, 1), (4, 2, 3)),
    ((2, 3), (4, 1, 3)),
    ((1,), (4,)),
    ((1,), ()),
    ((1,), (1,)),
    ((1, 1), (4, 5)),
]


def _random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def _lower(*shape: int, seed: int = 0) -> Tensor:
    """Lower triangular factors of well-conditioned matrices."""
    return 0.3 * _random(*shape, shape[-1], seed=seed).tril(-1) + torch.diag_embed(1 + _random(*shape, seed=seed).abs())


# ── factors ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_factor_gives_its_matrix_back() -> None:
    """L is lower triangular with L Lᵀ = K, for every item of a batch."""
    K = _lower(2, 3, 4) @ _lower(2, 3, 4).mT
    L = cholesky(K, of="K")
    assert torch.equal(L, L.tril())
    assert agree(L @ L.mT, K, rtol=1e-14)


def test_only_the_items_that_fail_are_marked() -> None:
    """A matrix that is not positive definite does not touch the others of its batch."""
    K = torch.eye(3, dtype=torch.float64).repeat(4, 1, 1)
    K[2, 1, 1] = -1.0
    L, ok = try_cholesky(K)
    assert ok.tolist() == [True, True, False, True]
    assert torch.equal(L[ok], K[ok])


def test_a_matrix_that_cannot_be_factorised_is_named() -> None:
    """The error names the matrix, counts the items that failed and says what to do."""
    K = torch.eye(2, dtype=torch.float64).repeat(3, 1, 1)
    K[1] = 1.0  # two equal rows without noise
    K[1, 1, 1] -= 1e-9
    with pytest.raises(
        NumericalError, match=r"The covariance of y is not positive definite \(1 of 3 .*noise_var.*merge"
    ):
        cholesky(K, of="The covariance of y")


def test_nothing_is_repaired() -> None:
    """A matrix with an eigenvalue just below zero is refused, not nudged."""
    K = torch.diag(torch.tensor([1.0, -1e-14], dtype=torch.float64))
    with pytest.raises(NumericalError):
        cholesky(K, of="K")


# ── solves ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("of_L", "of_B"), LAYOUTS)
@pytest.mark.parametrize("m", [1, 4])
def test_a_triangular_solve_broadcasts(of_L: tuple[int, ...], of_B: tuple[int, ...], m: int) -> None:
    """L⁻¹B and L⁻ᵀB are what a general solver gives after broadcasting, in value and in shape."""
    L, B = _lower(*of_L, 5), _random(*of_B, 5, m, seed=1)
    batch = torch.broadcast_shapes(of_L, of_B)
    dense, B_all = L.expand(*batch, 5, 5), B.expand(*batch, 5, m)
    assert agree(solve_lower(L, B), torch.linalg.solve(dense, B_all), rtol=1e-13)
    assert agree(solve_upper(L, B), torch.linalg.solve(dense.mT, B_all), rtol=1e-13)


@pytest.mark.parametrize(("of_L", "of_B"), LAYOUTS)
def test_a_triangular_solve_without_rows_has_the_shape_of_the_others(
    of_L: tuple[int, ...], of_B: tuple[int, ...]
) -> None:
    """A factor of no observations is solved like any other: the result has no rows, and the batch is there."""
    L, B = _random(*of_L, 0, 0), _random(*of_B, 0, 4)
    batch = torch.broadcast_shapes(of_L, of_B)
    assert solve_lower(L, B).shape == (*batch, 0, 4)
    assert solve_upper(L, B).shape == (*batch, 0, 4)


def test_gradients_pass_through_a_solve() -> None:
    """The derivative of L⁻¹B by B, and by L, is that of the definition, with folded dimensions too."""
    L = _lower(2, 3).requires_grad_()
    B = _random(4, 2, 3, 2, seed=1).requires_grad_()
    assert torch.autograd.gradcheck(solve_lower, (L, B))
    assert torch.autograd.gradcheck(solve_upper, (L, B))


# ── layouts ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("extra", [(), (4,), (4, 5)])
@pytest.mark.parametrize("batch", [(), (3,), (2, 3)])
@pytest.mark.parametrize("m", [1, 6])
def test_unfold_is_the_inverse_of_fold(extra: tuple[int, ...], batch: tuple[int, ...], m: int) -> None:
    """What fold moves into the rows, unfold moves back."""
    X = _random(*extra, *batch, m, 2)
    rows, moved = fold(X, torch.Size(batch))
    assert moved == extra
    assert rows.shape == (*batch, math.prod(extra) * m, 2)
    assert torch.equal(unfold(rows.mT, moved).mT, X)


def test_fold_repeats_what_the_batch_shares() -> None:
    """Queries with fewer leading dimensions than the batch are the same for all its problems."""
    X = _random(6, 2)
    rows, extra = fold(X, torch.Size((3,)))
    assert extra == ()
    assert torch.equal(rows, X.expand(3, 6, 2))
    X = _random(5, 1, 6, 2)
    rows, extra = fold(X, torch.Size((3,)))
    assert list(extra) == [5]
    assert torch.equal(unfold(rows.mT, extra).mT, X.expand(5, 3, 6, 2))


@pytest.mark.parametrize(
    ("of_L", "of_below", "of_corner"), [((), (), ()), ((3,), (3,), (3,)), ((), (4,), (4,)), ((3,), (4, 3), (4, 3))]
)
def test_appended_rows_extend_a_factor(
    of_L: tuple[int, ...], of_below: tuple[int, ...], of_corner: tuple[int, ...]
) -> None:
    """[[L, 0], [below, corner]] is the factor of the longer matrix, over all layouts."""
    L, below, corner = _lower(*of_L, 3), _random(*of_below, 2, 3, seed=1), _lower(*of_corner, 2, seed=2)
    batch = torch.broadcast_shapes(of_L, of_below, of_corner)
    longer = append_rows(L, below, corner)
    assert longer.shape == (*batch, 5, 5)
    assert torch.equal(longer, longer.tril())
    assert torch.equal(longer[..., :3, :3], L.expand(*batch, 3, 3))
    assert torch.equal(longer[..., 3:, :3], below.expand(*batch, 2, 3))
    assert torch.equal(longer[..., 3:, 3:], corner.expand(*batch, 2, 2))
    K = longer @ longer.mT
    assert agree(cholesky(K, of="K"), longer, rtol=1e-13)


def test_a_matrix_alone_is_multiplied_as_in_a_batch() -> None:
    """To the last bit, whatever the size; the value is that of the plain product."""
    generator = torch.Generator().manual_seed(0)
    for n in (3, 17, 60):
        A = torch.randn(5, n, n, generator=generator, dtype=torch.float64)
        x = torch.randn(5, n, generator=generator, dtype=torch.float64)
        together = times(A, x)
        torch.testing.assert_close(together, torch.einsum("bij,bj->bi", A, x))
        for i in range(5):
            assert torch.equal(times(A[i : i + 1], x[i : i + 1])[0], together[i])
