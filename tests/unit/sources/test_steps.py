"""Steps that values lie on."""

from __future__ import annotations

import pytest

from headstart.sources.column_guess import common_step


@pytest.mark.parametrize(
    ("values", "step"),
    [
        ([0.4, 0.8, 1.2, 1.6], 0.4),
        ([40, 45, 60, 90, 120], 5.0),
        ([15, 30, 45, 60], 15.0),
        ([3, 13, 43], 10.0),
        ([0.1, 0.2, 0.4, 0.7], None),  # every number with one decimal
        ([1, 2, 4, 7, 8], None),
        ([10, 12, 16], None),  # too few to say that it is no chance
        ([20, 80], None),
        ([0.123456789012, 0.5, 0.7, 0.9], None),
        ([5.0, 5.0, 5.0], None),
    ],
)
def test_a_step_is_said_where_chance_would_hardly_make_one(values: list[float], step: float | None) -> None:
    """In exact decimals."""
    assert common_step(values) == step
