"""Fronts, and the cells beyond them."""

from __future__ import annotations

import pytest
import torch
from botorch.utils.multi_objective.hypervolume import Hypervolume
from tests.problems import generator, tensor

from headstart.decide.front import Cells, front_of, reference_beyond


def _added(cells: Cells, y: torch.Tensor, f: int = 0) -> float:
    """Σ_cells Π_m (u_m − max(l_m, y_m))₊."""
    total = 0.0
    for c in range(cells.there.shape[1]):
        part = float(cells.there[f, c])
        for m in range(len(y)):
            high = float(cells.levels[m, f, cells.upper[m, f, c]])
            index = int(cells.lower[m, f, c])
            low = -torch.inf if index < 0 else float(cells.levels[m, f, index])
            part *= max(high - max(low, float(y[m])), 0.0)
        total += part
    return total


@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize("n", [0, 1, 6])
def test_cells_say_what_a_result_adds_to_the_volume(m: int, n: int) -> None:
    """As much as the volume with it exceeds the volume without it; two fronts side by side are each their own."""
    g = generator(n)
    fronts = [torch.randn(n + i, m, generator=g, dtype=torch.float64) for i in range(2)]
    reference = tensor([1.0, 0.5, 0.8][:m])
    cells = Cells.beyond(fronts, reference)
    volume = Hypervolume(-reference)
    for y in torch.randn(8, m, generator=g, dtype=torch.float64):
        for f, Y in enumerate(fronts):
            both = torch.cat([Y, y.unsqueeze(0)])
            before = volume.compute(-Y[front_of(Y)]) if len(Y) else 0.0
            assert _added(cells, y, f) == pytest.approx(volume.compute(-both[front_of(both)]) - before, abs=1e-9)


def test_the_front_is_what_nothing_dominates() -> None:
    """Smaller is better in all objectives."""
    Y = tensor([[0.0, 3.0], [1.0, 1.0], [2.0, 2.0], [3.0, 0.0]])
    assert front_of(Y).tolist() == [True, True, False, True]


def test_the_reference_lies_a_tenth_beyond_the_worst_of_the_front() -> None:
    """Dominated points have no say in it; around a point alone the scale is what is given."""
    Y = tensor([[0.0, 3.0], [1.0, 1.0], [9.0, 9.0]])
    assert reference_beyond(Y, tensor([1.0, 1.0])).tolist() == pytest.approx([1.1, 3.2])
    assert reference_beyond(Y[1:], tensor([1.0, 5.0])).tolist() == pytest.approx([1.1, 1.5])
