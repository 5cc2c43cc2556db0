"""When the hyperparameters of a growing target are found anew."""

from __future__ import annotations

import pytest
import torch
from tests.problems import points

from headstart import Dataset
from headstart.models.auto.prequential import REFITS
from headstart.models.growth.schedule import EVERY, refit_size, typical_rows


def test_a_short_target_is_fitted_with_every_result() -> None:
    """Up to EVERY results each is part of the next fit."""
    assert [refit_size(n) for n in range(EVERY + 1)] == list(range(EVERY + 1))


def test_refits_of_a_long_target_become_ever_rarer_and_never_old() -> None:
    """There are four in every doubling; at least four fifths of the results are always behind the hyperparameters."""
    found = [refit_size(n) for n in range(EVERY, 5000)]
    assert sorted(set(found))[:9] == [128, 160, 192, 224, 256, 320, 384, 448, 512]
    assert found == sorted(found)
    assert all(0.8 * n < r <= n for n, r in enumerate(found, start=EVERY))
    assert all(refit_size(r) == r for r in found)


def test_scores_are_refitted_where_hyperparameters_are() -> None:
    """A refit of the scores is a number at which a long target is fitted anyway."""
    assert list(REFITS[:16]) == [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256]
    assert all(refit_size(refit) == refit for refit in REFITS)


def test_typical_rows_are_spread_over_the_results() -> None:
    """The least and the largest result are among them, what lies between evenly, and rows stay in their order."""
    y = torch.randn(200, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    rows = typical_rows(Dataset(points(200, seed=1), y, error_var=y.square()), 50)
    assert rows.n == 50
    assert rows.y.min() == y.min()
    assert rows.y.max() == y.max()
    ranks = torch.tensor([int((y < value).sum()) for value in rows.y.sort().values])
    assert set(ranks.diff().tolist()) == {4, 5}
    places = [int((y == value).nonzero()) for value in rows.y]
    assert places == sorted(places)
    torch.testing.assert_close(rows.error_var, rows.y.square(), rtol=0, atol=0)


def test_typical_rows_of_a_batch_are_those_of_every_problem() -> None:
    """Problems choose each its own rows."""
    X, y = points(2, 30, seed=1), torch.randn(2, 30, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    rows = typical_rows(Dataset(X, y), 10)
    for i in range(2):
        alone = typical_rows(Dataset(X[i], y[i]), 10)
        assert torch.equal(rows.X[i], alone.X)
        assert torch.equal(rows.y[i], alone.y)


@pytest.mark.parametrize("most", [30, 31])
def test_few_rows_are_all_typical(most: int) -> None:
    """Then nothing is changed."""
    task = Dataset(points(30, seed=1), points(30, seed=2)[:, 0])
    assert typical_rows(task, most) is task
