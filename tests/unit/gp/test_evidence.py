"""Gradients of the evidence, with and without categories, compiled and by torch."""

from __future__ import annotations

import pytest
import torch

from headstart.gp.evidence import GaussianEvidence
from headstart.gp.hyperparameters import Inputs
from headstart.gp.kernels import Kernel

# a number, the three levels of one category around another number, and two levels of a second one
GROUPED = Inputs.of(7, [(1, 2, 4), (5, 6)])


def _mixed(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(n)
    X = torch.rand(2, n, 7, generator=generator, dtype=torch.float64)
    return X, torch.randn(2, n, generator=generator, dtype=torch.float64)


def _theta(p: int) -> torch.Tensor:
    return 0.4 * torch.randn(2, p, generator=torch.Generator().manual_seed(3), dtype=torch.float64)


def test_inputs_number_the_categories_after_the_numbers() -> None:
    """Two numbers and two categories are four lengthscales; without categories every column has its own."""
    assert GROUPED.group == (0, 2, 2, 1, 2, 3, 3)
    assert (GROUPED.n_numbers, GROUPED.n_groups, GROUPED.all_alone) == (2, 4, False)
    alone = Inputs.of(3)
    assert (alone.group, alone.n_groups, alone.all_alone) == ((0, 1, 2), 3, True)


@pytest.mark.parametrize("kernel", Kernel)
def test_a_category_is_columns_with_tied_lengthscales(kernel: Kernel) -> None:
    """The value is that of one lengthscale per column with equal ones, the gradient the sum of theirs."""
    X, r = _mixed(9)
    options = {"kernel": kernel, "residual": False, "free_offset": True}
    tied = GaussianEvidence(X, r, None, inputs=GROUPED, **options)  # type: ignore[arg-type]
    free = GaussianEvidence(X, r, None, **options)  # type: ignore[arg-type]
    theta, items = _theta(6), torch.tensor([0, 1])
    group = list(GROUPED.group)
    value, gradient, _ = tied.evaluate_by_torch(theta, items)
    expected, by_column, _ = free.evaluate(torch.cat([theta[:, group], theta[:, 4:]], dim=-1), items)
    torch.testing.assert_close(value, expected, rtol=1e-11, atol=1e-11)
    summed = torch.zeros(2, 4, dtype=torch.float64).index_add_(1, torch.tensor(group), by_column[:, :7])
    torch.testing.assert_close(gradient, torch.cat([summed, by_column[:, 7:]], dim=-1), rtol=1e-9, atol=1e-9)
    assert torch.equal(tied.params(theta).lengthscale, theta[:, group].exp())


@pytest.mark.parametrize("kernel", Kernel)
def test_gradients_with_categories_agree_with_finite_differences(kernel: Kernel) -> None:
    """Compiled, and by torch."""
    X, r = _mixed(48)
    evidence = GaussianEvidence(X, r, None, kernel=kernel, residual=False, free_offset=False, inputs=GROUPED)
    theta, items = _theta(6), torch.tensor([1, 0])
    gradients = [evaluate(theta, items)[1] for evaluate in (evidence.evaluate, evidence.evaluate_by_torch)]
    step = 1e-5
    for j in range(6):
        shift = torch.zeros(2, 6, dtype=torch.float64)
        shift[:, j] = step
        up, down = (evidence.evaluate(theta + sign * shift, items)[0] for sign in (1, -1))
        for gradient in gradients:
            torch.testing.assert_close((up - down) / (2 * step), gradient[:, j], rtol=1e-6, atol=1e-6)
