"""Two ways to the same distances and gradients."""

from __future__ import annotations

import pytest
import torch

from headstart.gp import geometry
from headstart.gp.evidence import PlainEvidence
from headstart.gp.kernels import Kernel

FEW, MANY = 48, 49


def _problem(n: int, P: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(n)
    X = torch.rand(P, n, 3, generator=generator, dtype=torch.float64)
    root = 0.2 * torch.randn(P, n, 4, generator=generator, dtype=torch.float64)
    return X, torch.randn(P, n, generator=generator, dtype=torch.float64), root @ root.mT


@pytest.mark.parametrize("kernel", Kernel)
@pytest.mark.parametrize("P", [1, 2])
def test_tables_of_pairs_and_products_of_rows_agree(kernel: Kernel, P: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The value and the gradient of the evidence do not depend on how distances are computed."""
    X, r, C = _problem(12, P)
    theta = 0.5 * torch.randn(4, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    items = torch.tensor([0, P - 1, P - 1, 0])
    results = []
    for most in (FEW, 0):
        monkeypatch.setattr(geometry, "FEW", most)
        evidence = PlainEvidence(X, r, C, kernel=kernel, residual=False, free_offset=True)
        results.append(evidence.evaluate(theta, items))
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("kernel", Kernel)
@pytest.mark.parametrize("n", [FEW, MANY])
def test_gradients_agree_with_finite_differences_on_both_sides_of_the_switch(kernel: Kernel, n: int) -> None:
    """With one observation more another way is taken, and it is right as well."""
    X, r, C = _problem(n, 1)
    evidence = PlainEvidence(X, r, C, kernel=kernel, residual=False, free_offset=False)
    theta = 0.3 * torch.randn(1, 5, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    items = torch.zeros(1, dtype=torch.int64)
    _, gradient, _ = evidence.evaluate(theta, items)
    step = 1e-5
    for j in range(5):
        shift = torch.zeros(1, 5, dtype=torch.float64)
        shift[0, j] = step
        up, down = (evidence.evaluate(theta + sign * shift, items)[0] for sign in (1, -1))
        torch.testing.assert_close((up - down) / (2 * step), gradient[:, j], rtol=1e-6, atol=1e-6)
