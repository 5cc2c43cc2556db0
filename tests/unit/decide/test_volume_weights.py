"""Volumes in the user's units, behind a monotone map."""

from __future__ import annotations

import pytest
import torch
from botorch.utils.multi_objective.hypervolume import Hypervolume

from headstart.decide.front import Cells, VolumeWeights
from headstart.decide.several.gain import Seen, log_gain, log_improvement


def _seen(mean: float, sd: float) -> Seen:
    one = torch.zeros(1, dtype=torch.float64)
    return Seen(
        torch.full((1, 1, 1), mean, dtype=torch.float64), torch.full((1, 1), sd**2, dtype=torch.float64), one, one
    )


@pytest.mark.parametrize("way", [torch.exp, lambda y: y + y**3, lambda y: 3.0 * y - 2.0])
def test_what_is_below_a_level_is_that_of_the_users_units(way: object) -> None:
    """E[max(g(t) − g(z), 0)] of a normal z, against many draws, at every level."""
    levels = torch.tensor([[-1.0, -0.4, 0.3, 0.9, 0.9]], dtype=torch.float64)
    seen = _seen(0.2, 0.7)
    weights = VolumeWeights.of(levels, way)  # type: ignore[arg-type]
    found = weights.weighted(log_improvement(seen, weights.levels)).exp()[0, :, 0]
    z = 0.2 + 0.7 * torch.special.ndtri((torch.arange(400_000, dtype=torch.float64) + 0.5) / 400_000)
    true = torch.stack([(way(t) - way(z)).clamp_min(0).mean() for t in levels[0]])  # type: ignore[operator]
    # slopes are those between neighbours, so a level that is far from the next one is seen coarsely
    torch.testing.assert_close(found, true, rtol=0.12, atol=1e-3)


def test_without_a_map_nothing_changes() -> None:
    """The way x ↦ x weighs nothing; of 3 x every length counts three times."""
    levels, seen = torch.tensor([[-1.0, 0.0, 0.5]], dtype=torch.float64), _seen(0.1, 0.4)
    plain = log_improvement(seen, levels)
    for factor in (1.0, 3.0):
        weights = VolumeWeights.of(levels, lambda y, f=factor: f * y)  # type: ignore[misc]
        found = weights.weighted(log_improvement(seen, weights.levels))
        torch.testing.assert_close(found.exp(), factor * plain.exp(), rtol=1e-9, atol=1e-12)


def test_a_sure_result_adds_the_volume_that_the_user_sees() -> None:
    """Between the front and the reference point, both behind the map."""
    front = torch.tensor([[0.1, 1.2], [0.8, 0.3], [0.5, 0.6]], dtype=torch.float64)
    reference = torch.tensor([1.5, 1.5], dtype=torch.float64)
    cells = Cells.beyond([front], reference, [torch.exp, lambda y: y])
    outward = lambda Y: torch.stack([Y[..., 0].exp(), Y[..., 1]], dim=-1)  # noqa: E731
    volume = Hypervolume(-outward(reference))
    before = volume.compute(-outward(front))
    for point in ([0.5, 0.3], [0.1, 0.3], [0.8, 1.2]):
        y = torch.tensor([point], dtype=torch.float64)
        added = volume.compute(-outward(torch.cat([front, y]))) - before
        found = log_gain([_seen(point[0], 1e-6), _seen(point[1], 1e-6)], cells).exp().item()
        assert found == pytest.approx(added, abs=1e-4)


def test_gradients_are_finite_where_levels_meet() -> None:
    """Equal levels at the end, and a map that is flat below."""
    levels = torch.tensor([[0.0, 0.5, 0.5]], dtype=torch.float64)
    weights = VolumeWeights.of(levels, lambda y: y.clamp_min(-0.1))
    mean = torch.zeros(1, 1, 3, dtype=torch.float64, requires_grad=True)
    var = torch.full((1, 3), 0.3, dtype=torch.float64)
    one = torch.zeros(1, dtype=torch.float64)
    value = weights.weighted(log_improvement(Seen(mean, var, one, one), weights.levels))
    (slope,) = torch.autograd.grad(value.sum(), mean)
    assert bool(value.isfinite().all())
    assert bool(slope.isfinite().all())
