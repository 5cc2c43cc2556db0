"""Two ways to the same distances and gradients."""

from __future__ import annotations

import pytest
import torch

from headstart.gp import geometry
from headstart.gp.evidence import PlainEvidence
from headstart.gp.hyperparameters import Inputs
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


# ── levels of a category share a lengthscale ──────────────────────────────────────────────────────────────────────

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
@pytest.mark.parametrize("n", [9, MANY])
def test_a_category_is_columns_with_tied_lengthscales(kernel: Kernel, n: int) -> None:
    """The value is that of one lengthscale per column with equal ones, the gradient the sum of theirs; both ways."""
    X, r = _mixed(n)
    options = {"kernel": kernel, "residual": False, "free_offset": True}
    tied = PlainEvidence(X, r, None, inputs=GROUPED, **options)  # type: ignore[arg-type]
    free = PlainEvidence(X, r, None, **options)  # type: ignore[arg-type]
    theta, items = _theta(6), torch.tensor([0, 1])
    group = list(GROUPED.group)
    value, gradient, _ = tied.evaluate(theta, items)
    expected, by_column, _ = free.evaluate(torch.cat([theta[:, group], theta[:, 4:]], dim=-1), items)
    torch.testing.assert_close(value, expected, rtol=1e-11, atol=1e-11)
    summed = torch.zeros(2, 4, dtype=torch.float64).index_add_(1, torch.tensor(group), by_column[:, :7])
    torch.testing.assert_close(gradient, torch.cat([summed, by_column[:, 7:]], dim=-1), rtol=1e-9, atol=1e-9)
    assert torch.equal(tied.params(theta).lengthscale, theta[:, group].exp())


@pytest.mark.parametrize("kernel", Kernel)
@pytest.mark.parametrize("n", [FEW, MANY])
def test_gradients_with_categories_agree_with_finite_differences(kernel: Kernel, n: int) -> None:
    """On both sides of the switch."""
    X, r = _mixed(n)
    evidence = PlainEvidence(X, r, None, kernel=kernel, residual=False, free_offset=False, inputs=GROUPED)
    theta, items = _theta(6), torch.tensor([1, 0])
    _, gradient, _ = evidence.evaluate(theta, items)
    assert gradient.shape == (2, 6)
    step = 1e-5
    for j in range(6):
        shift = torch.zeros(2, 6, dtype=torch.float64)
        shift[:, j] = step
        up, down = (evidence.evaluate(theta + sign * shift, items)[0] for sign in (1, -1))
        torch.testing.assert_close((up - down) / (2 * step), gradient[:, j], rtol=1e-6, atol=1e-6)
