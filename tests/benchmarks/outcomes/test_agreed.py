"""Problems with an agreed reference point, and how it is said to a method."""

from __future__ import annotations

import pytest
import torch

from benchmarks.outcomes.agreed import AGREED
from benchmarks.outcomes.measures import AgreedVolume, volume_of
from benchmarks.outcomes.methods import _limited, _unsaid
from benchmarks.outcomes.runs import fits, outcome_problem
from headstart.data.outcomes import Goal, Limit, Outcomes
from headstart.errors import InputError


@pytest.mark.parametrize("name", [problem.name for problem in AGREED])
def test_some_points_are_better_than_the_agreed_reference_and_the_front_reaches_beyond_it(name: str) -> None:
    """In every run, and equal seeds give equal tasks; sources are measured with noise at random rows."""
    for seed in range(6):
        instance = outcome_problem(name).draw(seed, 5)
        yardstick = instance.yardstick
        assert isinstance(yardstick, AgreedVolume)
        X = torch.rand(4000, instance.space.d, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        Y = instance.inward(instance.evaluate(X))
        share = float((yardstick.reference > Y).all(-1).double().mean())
        assert 0.005 < share < 0.6
        assert bool((Y.amin(0) < yardstick.reference).all())
        assert volume_of(Y, yardstick.reference) <= 1.05 * yardstick.volumes[0]
        again = outcome_problem(name).draw(seed, 5)
        for outcome in instance.outcomes.names:
            assert len(instance.sources[outcome]) == 3
            assert torch.equal(instance.sources[outcome][0].y, again.sources[outcome][0].y)


def test_the_agreed_measures_are_shares_of_volumes_and_of_evaluations() -> None:
    """Of three points one is better than the reference in both, and adds its rectangle."""
    Y = torch.tensor([[0.0, 3.0], [1.0, 1.0], [3.0, 0.0]], dtype=torch.float64)
    yardstick = AgreedVolume.of(Y, torch.tensor([2.0, 2.0], dtype=torch.float64))
    curves = yardstick.curves(Y.flip(0))
    assert curves["agreed"] == [0.0, 1.0, 1.0]
    assert curves["worse"] == pytest.approx([1.0, 0.5, 2 / 3])
    assert curves["plain"][-1] == pytest.approx(1.0)
    with pytest.raises(InputError, match="better than the agreed reference"):
        AgreedVolume.of(Y, torch.tensor([-1.0, 2.0], dtype=torch.float64))


def test_the_reference_is_said_as_thresholds_as_limits_or_not_at_all() -> None:
    """Limits are on copies of the objectives, on the side of each."""
    goals = (Goal("strength", maximize=True, threshold=40), Goal("cost", threshold=95))
    free = (Goal("strength", maximize=True), Goal("cost"))
    assert _unsaid(Outcomes(goals)) == (Outcomes(free), {})
    outcomes, copies = _limited(Outcomes(goals))
    limits = (Limit("strength of interest", at_least=40), Limit("cost of interest", at_most=95))
    assert outcomes == Outcomes(free, limits)
    assert copies == {"strength of interest": "strength", "cost of interest": "cost"}


def test_methods_run_where_they_differ() -> None:
    """Sources that are spoilt need a past that can be, and thresholds that there are some."""
    assert fits("concrete", "headstart-limited")
    assert not fits("concrete", "headstart-noise")
    assert fits("lcbench-two", "headstart-noise")
    assert not fits("lcbench-two", "headstart-unsaid")
    with pytest.raises(InputError, match="no spoilt sources"):
        AGREED[0].draw(0, 5, {"cost": None})  # type: ignore[dict-item]
