"""When the hyperparameters of a growing target are found anew."""

from __future__ import annotations

from headstart.models.auto.prequential import REFITS
from headstart.models.growth.schedule import EVERY, refit_size


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
