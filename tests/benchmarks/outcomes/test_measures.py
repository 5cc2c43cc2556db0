"""How good a run is: volumes, regrets within limits, and the first result that is within them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch import Tensor

from benchmarks.outcomes.measures import BelowOptimum, FrontVolume, WithinLimits, volume_of
from benchmarks.outcomes.report import first_found
from headstart.errors import InputError


def counted(Y: Tensor, reference: Tensor) -> float:
    """The volume cell by cell of the grid that all values make."""
    levels = [torch.cat([Y[:, m], reference[m : m + 1]]).unique() for m in range(Y.shape[-1])]
    total = 0.0
    for corner in itertools.product(*(range(len(level) - 1) for level in levels)):
        low = torch.stack([level[i] for level, i in zip(levels, corner, strict=True)])
        high = torch.stack([level[i + 1] for level, i in zip(levels, corner, strict=True)])
        if bool((high <= reference).all()) and bool((low >= Y).all(-1).any()):
            total += float((high - low).prod())
    return total


@pytest.mark.parametrize("m", [2, 3])
def test_the_volume_is_that_of_the_cells_it_has(m: int) -> None:
    """Counted cell by cell it is the same, with points beyond the reference and points that others dominate."""
    generator = torch.Generator().manual_seed(m)
    for _ in range(20):
        Y = torch.rand(6, m, generator=generator, dtype=torch.float64)
        reference = 0.5 + 0.5 * torch.rand(m, generator=generator, dtype=torch.float64)
        assert volume_of(Y, reference) == pytest.approx(counted(Y, reference), abs=1e-12)


def test_a_point_that_is_not_better_than_the_reference_has_no_volume() -> None:
    """On the reference or beyond it in one objective is not enough."""
    reference = torch.tensor([1.0, 1.0], dtype=torch.float64)
    assert volume_of(torch.tensor([[0.0, 1.0], [2.0, 0.0]], dtype=torch.float64), reference) == 0.0


def test_the_whole_table_has_all_of_the_volume() -> None:
    """The share grows to 1, from the worst values of the table and from beyond its front's."""
    Y = torch.tensor([[0.9, 0.9], [0.2, 0.8], [0.5, 0.5], [0.8, 0.1]], dtype=torch.float64)
    curves = FrontVolume.of(Y).curves(Y)
    # from (0.9, 0.9): 0.7·0.1, then 0.4·0.4 − 0.4·0.1 more, then 0.1·0.8 − 0.1·0.4 more
    assert curves["volume"] == pytest.approx([0.0, 0.07 / 0.23, 0.19 / 0.23, 1.0])
    assert curves["nadir"][-1] == pytest.approx(1.0)
    # the front goes from 0.2 to 0.8 and from 0.1 to 0.8: beyond it are 0.86 and 0.87
    assert curves["nadir"][0] == 0.0
    assert curves["nadir"][1] == pytest.approx(0.66 * 0.07 / volume_of(Y, torch.tensor([0.86, 0.87]).double()))


def test_only_what_is_within_the_limits_counts() -> None:
    """Before that the regret is 1, the limit itself is within, and a better result beyond it changes nothing."""
    table = torch.tensor([[0.0, 9.0], [1.0, 2.0], [3.0, 1.0], [5.0, 0.0]], dtype=torch.float64)
    yardstick = WithinLimits.of(table, torch.tensor([2.0], dtype=torch.float64))
    assert (yardstick.best, yardstick.worst) == (1.0, 5.0)
    curves = yardstick.curves(table[[0, 2, 0, 1]])
    assert curves["regret"] == [1.0, 0.5, 0.5, 0.0]
    assert curves["found"] == [0.0, 1.0, 1.0, 1.0]


def test_a_table_with_one_result_within_the_limits_has_no_scale() -> None:
    """There is nothing to divide by."""
    table = torch.tensor([[0.0, 9.0], [1.0, 2.0]], dtype=torch.float64)
    with pytest.raises(InputError, match="within the limits"):
        WithinLimits.of(table, torch.tensor([2.0], dtype=torch.float64))


def test_the_first_that_is_found_is_counted_from_one() -> None:
    """And a run without any has one evaluation more than it made."""
    missing = np.array([[0.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 1.0, 1.0]])
    assert first_found(missing).tolist() == [1.0, 3.0, 4.0]


def test_the_regret_under_rules_is_a_share_of_what_is_typical() -> None:
    """0 at the optimum, 1 at the median, and never rising."""
    values = torch.tensor([[3.0], [5.0], [1.0]], dtype=torch.float64)
    assert BelowOptimum(optimum=1.0, typical=3.0).curves(values) == {"regret": [1.0, 1.0, 0.0]}
