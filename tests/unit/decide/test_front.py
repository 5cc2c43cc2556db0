"""Fronts, the cells beyond them, and their volume in the user's units."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from botorch.utils.multi_objective.hypervolume import Hypervolume
from tests.problems import auto_posterior, generator, tensor
from torch import Tensor

from headstart.decide.front import Cells, front_of, log_slopes, log_volume_below, reference_beyond
from headstart.decide.members import Members
from headstart.decide.value import log_levels

QUIET = replace(Members.of(auto_posterior([0.25] * 4).predictor), weights=np.ones(1), noise_var=np.zeros(1))


def _added(cells: Cells, y: Tensor) -> Tensor:
    """What a result that is certainly y adds to the volume of every front: H(t) = max(t − y, 0)."""
    log_h = [(own - value).clamp_min(1e-300).log().unsqueeze(-1) for own, value in zip(cells.levels, y, strict=True)]
    return cells.log_volume(log_h).exp()[:, 0]


@pytest.mark.parametrize("m", [2, 3, 4])
@pytest.mark.parametrize("n", [0, 1, 6])
def test_cells_say_what_a_result_adds_to_the_volume(m: int, n: int) -> None:
    """As much as the volume with it exceeds the volume without it; two fronts side by side are each their own."""
    g = generator(n)
    fronts = [torch.randn(n + i, m, generator=g, dtype=torch.float64) for i in range(2)]
    reference = tensor([1.0, 0.5, 0.8, 1.2][:m])
    cells = Cells.beyond(fronts, reference, [torch.clone] * m)
    volume = Hypervolume(-reference)
    for y in torch.randn(8, m, generator=g, dtype=torch.float64):
        for Y, added in zip(fronts, _added(cells, y).tolist(), strict=True):
            both = torch.cat([Y, y.unsqueeze(0)])
            before = volume.compute(-Y[front_of(Y)]) if len(Y) else 0.0
            assert added == pytest.approx(volume.compute(-both[front_of(both)]) - before, abs=1e-9)


def test_a_sure_result_adds_the_volume_that_the_user_sees() -> None:
    """Between the front and the reference point, both behind the map."""
    front = tensor([[0.1, 1.2], [0.8, 0.3], [0.5, 0.6]])
    reference = tensor([1.5, 1.5])
    cells = Cells.beyond([front], reference, [torch.exp, torch.clone])
    outward = lambda Y: torch.stack([Y[..., 0].exp(), Y[..., 1]], dim=-1)  # noqa: E731
    volume = Hypervolume(-outward(reference))
    before = volume.compute(-outward(front))
    for y in tensor([[0.5, 0.3], [0.1, 0.3], [0.8, 1.2]]):
        added = volume.compute(-outward(torch.cat([front, y.unsqueeze(0)]))) - before
        assert float(_added(cells, y)) == pytest.approx(added, abs=1e-9)


# ── volumes behind a monotone map ─────────────────────────────────────────────────────────────────────────────────


def _log_h(mean: float, sd: float, levels: Tensor) -> Tensor:
    at = torch.full((1, 1, 1), mean, dtype=torch.float64), torch.full((1, 1), sd**2, dtype=torch.float64)
    return log_levels(QUIET, *at, levels)


@pytest.mark.parametrize("way", [torch.exp, lambda y: y + y**3, lambda y: 3.0 * y - 2.0])
def test_what_is_below_a_level_is_that_of_the_users_units(way: Callable[[Tensor], Tensor]) -> None:
    """E[max(g(t) − g(z), 0)] of a normal z, against many draws, at every level."""
    levels = tensor([[-9.0, -5.0, -3.0, -2.0, -1.5, -1.25, -1.0, -0.4, 0.3, 0.9, 0.9]])
    found = log_volume_below(_log_h(0.2, 0.7, levels), log_slopes(levels, way)).exp()[0, :, 0]
    z = 0.2 + 0.7 * torch.special.ndtri((torch.arange(400_000, dtype=torch.float64) + 0.5) / 400_000)
    true = torch.stack([(way(t) - way(z)).clamp_min(0).mean() for t in levels[0]])
    # slopes are those between neighbours, so a level that is far from the next one is seen coarsely
    torch.testing.assert_close(found[6:], true[6:], rtol=0.12, atol=1e-3)


def test_without_a_map_nothing_changes() -> None:
    """The way x ↦ x weighs nothing; of 3 x every length counts three times."""
    levels = tensor([[-1.0, 0.0, 0.5]])
    plain = _log_h(0.1, 0.4, levels)
    for factor in (1.0, 3.0):
        found = log_volume_below(plain, log_slopes(levels, torch.tensor(factor).mul))
        torch.testing.assert_close(found.exp(), factor * plain.exp(), rtol=1e-9, atol=1e-12)


def test_gradients_are_finite_where_levels_meet() -> None:
    """Equal levels at the end, and a map that is flat below."""
    levels = tensor([[-4.0, -1.0, 0.0, 0.5, 0.5]])
    mean = torch.zeros(1, 1, 3, dtype=torch.float64, requires_grad=True)
    var = torch.full((1, 3), 0.3, dtype=torch.float64)
    value = log_volume_below(log_levels(QUIET, mean, var, levels), log_slopes(levels, lambda y: y.clamp_min(-0.1)))
    (slope,) = torch.autograd.grad(value.sum(), mean)
    assert bool(value.isfinite().all())
    assert bool(slope.isfinite().all())


# ── the front and its reference ───────────────────────────────────────────────────────────────────────────────────


def test_the_front_is_what_nothing_dominates() -> None:
    """Smaller is better in all objectives."""
    Y = tensor([[0.0, 3.0], [1.0, 1.0], [2.0, 2.0], [3.0, 0.0]])
    assert front_of(Y).tolist() == [True, True, False, True]


def test_the_reference_lies_a_tenth_beyond_the_worst_of_the_front() -> None:
    """Dominated points have no say in it; around a point alone the scale is what is given."""
    Y = tensor([[0.0, 3.0], [1.0, 1.0], [9.0, 9.0]])
    assert reference_beyond(Y, tensor([1.0, 1.0])).tolist() == pytest.approx([1.1, 3.2])
    assert reference_beyond(Y[1:], tensor([1.0, 5.0])).tolist() == pytest.approx([1.1, 1.5])
