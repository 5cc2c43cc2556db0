"""Factorisations in blocks are those of LAPACK."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from headstart.gp.blocked import blocked_cholesky, blocked_inverse, blocks_pay
from headstart.gp.kernels import Kernel
from headstart.gp.linalg import inverse_from_factor, try_cholesky

SIZES = [(1, 4), (3, 4), (4, 4), (5, 4), (17, 4), (64, 16), (65, 16), (127, 32), (150, 64), (200, 256), (33, 1)]


def covariances(*shape: int, noise: float = 1e-2) -> Tensor:
    """Covariances of noisy observations: condition numbers of about n/noise."""
    X = torch.rand(*shape, 3, generator=torch.Generator().manual_seed(sum(shape)), dtype=torch.float64)
    K = Kernel.MATERN52(X, X, torch.full((3,), 0.4, dtype=torch.float64))
    return K + noise * torch.eye(shape[-1], dtype=torch.float64)


def apart(ours: Tensor, theirs: Tensor) -> float:
    """The largest difference in units of the largest entry of the same batch item."""
    scale = theirs.abs().amax((-2, -1), keepdim=True)
    return float(((ours - theirs).abs() / scale).max())


@pytest.mark.parametrize(("n", "block"), SIZES)
@pytest.mark.parametrize("batch", [(), (1,), (3,), (2, 3)])
def test_a_blocked_factor_is_that_of_lapack(n: int, block: int, batch: tuple[int, ...]) -> None:
    """Sizes that blocks divide and others, one matrix and several: equal to 1e-12, and zero above the diagonal."""
    K = covariances(*batch, n)
    L, ok = blocked_cholesky(K, block=block)
    assert ok.shape == batch
    assert bool(ok.all())
    assert torch.equal(L, L.tril())
    assert apart(L, torch.linalg.cholesky(K)) < 1e-12


@pytest.mark.parametrize(("n", "block"), SIZES)
@pytest.mark.parametrize("batch", [(), (3,), (2, 3)])
def test_a_blocked_inverse_is_that_of_lapack(n: int, block: int, batch: tuple[int, ...]) -> None:
    """K⁻¹ from a factor is symmetric and LAPACK's, as far as the condition of K lets two ways of computing it agree."""
    K = covariances(*batch, n)
    L = torch.linalg.cholesky(K)
    inverse = blocked_inverse(L, block=block)
    assert torch.equal(inverse, inverse.mT)
    assert apart(inverse, torch.cholesky_inverse(L)) < 1e-12
    assert apart(inverse @ K, torch.eye(n, dtype=torch.float64).expand_as(K)) < 1e-10


def test_an_ill_conditioned_matrix_is_factorised_as_well_as_by_lapack() -> None:
    """At the least noise that fits allow, 1e-6, L Lᵀ gives K back to rounding."""
    K = covariances(2, 300, noise=1e-6)
    L, ok = blocked_cholesky(K, block=32)
    assert bool(ok.all())
    assert apart(L @ L.mT, K) < 1e-13
    theirs = torch.linalg.cholesky(K)
    assert apart(L, theirs) < 1e-10
    residual, lapack = (apart(f(theirs) @ K, torch.eye(300, dtype=torch.float64).expand_as(K)) for f in INVERSES)
    assert residual < 10 * lapack


INVERSES = (lambda L: blocked_inverse(L, block=32), torch.cholesky_inverse)


@pytest.mark.parametrize("where", [0, 5, 20, 39])
def test_only_the_items_that_cannot_be_factorised_are_marked(where: int) -> None:
    """A pivot that is negative, in whichever block, fails its own item as it does for the library, and no other."""
    K = covariances(4, 40)
    K[1, where, where] = -1.0
    K[3, where, :] = K[3, :, where] = torch.nan
    L, ok = blocked_cholesky(K, block=8)
    assert ok.tolist() == try_cholesky(K)[1].tolist() == [True, False, True, False]
    assert apart(L[[0, 2]], torch.linalg.cholesky(K[[0, 2]])) < 1e-12


def test_the_upper_triangle_is_not_read() -> None:
    """As LAPACK's, the factor is that of the lower triangle."""
    K = covariances(2, 30)
    spoilt = K + torch.ones_like(K).triu(1)
    assert torch.equal(blocked_cholesky(K, block=8)[0], blocked_cholesky(spoilt, block=8)[0])


def test_a_matrix_that_is_laid_out_by_columns_is_the_same_matrix() -> None:
    """Neither the factor nor the inverse depends on the layout in memory, and what came is not overwritten."""
    K = covariances(2, 30)
    before = K.clone()
    turned = K.mT.contiguous().mT
    L = blocked_cholesky(turned, block=8)[0]
    assert torch.equal(L, blocked_cholesky(K, block=8)[0])
    assert apart(blocked_inverse(L.mT.contiguous().mT, block=8), blocked_inverse(L, block=8)) < 1e-14
    assert torch.equal(K, before)


def test_a_cpu_keeps_to_lapack() -> None:
    """Blocks never pay there, whatever the size, and the inverse is LAPACK's own."""
    K = covariances(2, 150)
    assert not blocks_pay(K)
    L, _ = try_cholesky(K)
    assert torch.equal(inverse_from_factor(L), torch.cholesky_inverse(L))


def test_the_evidence_is_the_same_by_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Value and gradient of a fit do not notice which way its matrices were factorised."""
    from headstart.gp import linalg
    from headstart.gp.evidence import GaussianEvidence

    X = torch.rand(2, 90, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    y = torch.sin(5 * X).sum(-1)
    evidence = GaussianEvidence(X, y, None, kernel=Kernel.RBF, residual=False, free_offset=True)
    theta = torch.tensor([[-0.5, -0.3, 0.1, 0.2, -4.0], [0.1, -0.3, -0.8, 0.5, -3.0]], dtype=torch.float64)
    items = torch.arange(2)
    plain = evidence.evaluate(theta, items)
    monkeypatch.setattr(linalg, "blocks_pay", lambda _: True)
    monkeypatch.setattr(linalg, "blocked_cholesky", lambda K: blocked_cholesky(K, block=32))
    monkeypatch.setattr(linalg, "blocked_inverse", lambda L: blocked_inverse(L, block=32))
    blocks = evidence.evaluate(theta, items)
    assert torch.allclose(plain[0], blocks[0], rtol=1e-12)
    assert torch.allclose(plain[1], blocks[1], rtol=1e-9)
    assert bool(blocks[2].all())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
def test_a_gpu_gives_what_lapack_gives() -> None:
    """Factors, inverses and the items that fail, for sizes on both sides of where blocks begin."""
    for batch, n in ((3, 40), (3, 300), (1, 700)):
        K = covariances(batch, n)
        L, ok = try_cholesky(K.cuda())
        assert bool(ok.all())
        assert apart(L.cpu(), torch.linalg.cholesky(K)) < 1e-12
        theirs = torch.cholesky_inverse(torch.linalg.cholesky(K))
        assert apart(inverse_from_factor(L).cpu(), theirs) < 1e-11
        K[0, -1, -1] = -1.0
        assert try_cholesky(K.cuda())[1].tolist() == [False] + [True] * (batch - 1)
