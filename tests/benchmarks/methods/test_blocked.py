"""Factorisations by blocks: equal to the library's, also where a matrix of the batch cannot be factorised."""

from __future__ import annotations

import pytest
import torch

from benchmarks.methods import blocked
from benchmarks.methods.blocked import BlockedOnGPU, blocked_cholesky, blocked_inverse
from benchmarks.methods.method import Settings
from benchmarks.methods.model_method import ModelMethod
from benchmarks.methods.registry import method
from benchmarks.run.experiment import ProblemSpec
from headstart.data.dataset import Dataset


def covariances(n: int) -> torch.Tensor:
    """2 × 3 matrices with condition numbers about a thousand."""
    factor = torch.randn(2, 3, n, n, dtype=torch.float64, generator=torch.Generator().manual_seed(n))
    return factor @ factor.mT + 0.1 * n * torch.eye(n, dtype=torch.float64)


@pytest.mark.parametrize("n", [7, 64, 65, 150])
@pytest.mark.parametrize("block", [16, 64])
def test_factors_and_inverses_are_the_librarys(n: int, block: int) -> None:
    """For sizes that fill their last block and sizes that do not; the upper triangle is not read."""
    K = covariances(n)
    L, ok = blocked_cholesky(K.tril() + 7 * torch.ones_like(K).triu(1), block)
    assert ok.all()
    torch.testing.assert_close(L, torch.linalg.cholesky(K), rtol=1e-12, atol=1e-12)
    inverse = blocked_inverse(L, block)
    torch.testing.assert_close(inverse, torch.linalg.inv(K), rtol=1e-10, atol=1e-12)
    assert torch.equal(inverse, inverse.mT)


def test_one_matrix_that_fails_is_the_only_one() -> None:
    """Neither a negative matrix nor one that is not a number spoils its neighbours."""
    K = covariances(40)
    K[0, 1] = -K[0, 1]
    K[1, 2, 30, 30] = torch.nan
    L, ok = blocked_cholesky(K, 16)
    assert ok.tolist() == [[True, False, True], [True, True, False]]
    torch.testing.assert_close(L[ok], torch.linalg.cholesky(K[ok]))


@pytest.mark.parametrize("name", ["hgp", "wsgp"])
def test_a_fit_by_blocks_on_another_device_says_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that is fitted elsewhere is asked here, and its factors went through the blocks."""
    used = []

    def pays(K: torch.Tensor) -> bool:
        used.append(K.shape[-1])
        return True

    monkeypatch.setattr(blocked, "blocks_pay", pays)
    instance = ProblemSpec(family="branin", points=12).build().draw([0, 1], 3)
    target = Dataset.empty(2, batch_shape=(2,)).with_point(torch.rand(2, 2, dtype=torch.float64), instance.noise[:, 0])
    model, quick = method(name), Settings(restarts=2, max_iterations=10)
    assert isinstance(model, ModelMethod)
    found = []
    for device in ("cpu", "cpu:0"):  # the second is another name for a test, and another device for the method
        own = ModelMethod(name, model.model, device)
        prior = quick.applied_to(own.model).learn(instance.sources, seed=0)
        found.append(own.conditioned(prior, target).posterior(target.X).mean)
        assert bool(used) == (device != "cpu")
    torch.testing.assert_close(found[0], found[1], rtol=1e-6, atol=1e-6)
    with BlockedOnGPU():
        assert torch.ones(2).sum() == 2
