"""Which of many rows are learnt from."""

from __future__ import annotations

import torch

from headstart.data.dataset import Dataset
from headstart.data.thinning import inducing_rows, representative, representative_rows


def many(n: int = 3000) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    X = torch.rand(2, n, 4, generator=generator, dtype=torch.float64).square()  # crowded near 0
    return X, X.sum(-1) + torch.randn(2, n, generator=generator, dtype=torch.float64)


def test_representative_rows_are_all_over_the_results_with_both_ends() -> None:
    """Each once, in order, the same ones every time; the quantiles of the results are those of all."""
    X, y = many()
    rows = representative_rows(X, y, 300)
    assert torch.equal(rows, representative_rows(X, y, 300))
    for which, values in zip(rows, y, strict=True):
        assert len(set(which.tolist())) == 300
        assert which.tolist() == sorted(which.tolist())
        assert {int(values.argmin()), int(values.argmax())} <= set(which.tolist())
        quantiles = torch.linspace(0.02, 0.98, 25, dtype=torch.float64)
        apart = (values[which].quantile(quantiles) - values.quantile(quantiles)).abs().max()
        assert float(apart) < 0.02 * float(values.max() - values.min())


def test_representative_rows_fill_the_space_better_than_the_first_ones() -> None:
    """The two nearest of them are farther apart, and no row is as far from all of them."""
    X, y = many()
    which = representative_rows(X, y, 200)[0]
    chosen, first = X[0, which], X[0, :200]
    assert torch.pdist(chosen).min() > 2 * torch.pdist(first).min()
    assert torch.cdist(X[0], chosen).amin(-1).mean() < torch.cdist(X[0], first).amin(-1).mean()


def test_all_rows_are_chosen_where_there_are_no_more() -> None:
    """As many as there are, or fewer than two."""
    X, y = many(50)
    assert torch.equal(representative_rows(X, y, 80), torch.arange(50).expand(2, -1))
    assert torch.equal(inducing_rows(X, y, 50), torch.arange(50).expand(2, -1))
    assert representative_rows(X, y, 1).tolist() == y.argmin(-1, keepdim=True).tolist()
    for m in (2, 3, 49):
        assert all(len(set(rows.tolist())) == m for rows in representative_rows(X, y, m))


def test_inducing_rows_are_the_best_half_and_as_far_apart_as_can_be() -> None:
    """The lowest results are all there; no row is far from all that are chosen, as many are from the best ones."""
    X, y = many()
    rows = inducing_rows(X, y, 400)
    for which, inputs, values in zip(rows, X, y, strict=True):
        chosen = which.tolist()
        assert len(set(chosen)) == 400
        assert set(values.argsort()[:200].tolist()) <= set(chosen)
        by_chance = torch.cdist(inputs, inputs[::7]).amin(-1).max()
        assert torch.cdist(inputs, inputs[which]).amin(-1).max() < 0.7 * by_chance


def test_a_thinned_task_keeps_what_belongs_to_its_rows() -> None:
    """Every problem of a batch has rows of its own, with their errors; a task of few rows is itself."""
    X, y = many(101)
    task = Dataset(X, y, name="May", error_var=y.square())
    some = representative(task, 11)
    assert (some.n, some.name) == (11, "May")
    assert some.error_var is not None
    assert torch.equal(some.error_var, some.y.square())
    for i, which in enumerate(representative_rows(X, y, 11)):
        assert torch.equal(some.X[i], X[i, which])
    assert representative(task, 101) is task
