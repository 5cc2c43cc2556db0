"""Functions that are flat nearly everywhere: what is flat, and that the best value is where it is said to be."""

from __future__ import annotations

import pytest
import torch
from tests.problems import generator

from benchmarks.problems.plateaus import PLATEAUS
from benchmarks.run.presets import PRESETS

SHARES = {"flat_success": 0.84, "flat_needle": 0.94, "flat_accuracy": 0.72, "flat_yield": 0.76}


@pytest.mark.parametrize("name", SHARES)
def test_most_of_it_is_one_value(name: str) -> None:
    """As many points as the head of the module says, to within a twentieth."""
    family = PLATEAUS[name]
    params, X = family.sample(40, generator()), family.random_points(40, 2000, generator(1))
    values = family.evaluate(params, X)
    flat = values == values.amax(-1, keepdim=True)
    assert float(flat.double().mean()) == pytest.approx(SHARES[name], abs=0.05)


def test_a_reward_hardly_differs_but_in_the_valley() -> None:
    """Half of all points lie within a fiftieth of the range, and some within a fifth of the best."""
    family = PLATEAUS["flat_reward"]
    params, X = family.sample(10, generator()), family.random_points(10, 4000, generator(1))
    values, minimum = family.evaluate(params, X), family.minimum(params).unsqueeze(-1)
    share = (values - minimum) / (values.amax(-1, keepdim=True) - minimum)
    assert float(share.quantile(0.5)) > 0.98
    assert bool((share.amin(-1) < 0.2).all())
    assert bool((share >= 0).all())


def test_the_best_is_at_the_centre() -> None:
    """−1 times the task's own best value; a yield is at most 1."""
    tasks = {
        "flat_success": ([0.6, 0.3, 0.5, 0.8], -0.8),
        "flat_needle": ([0.6, 0.4, 0.9], -0.9),
        "flat_accuracy": ([0.45, 0.5, 0.5, 1.0], -0.95),
        "flat_yield": ([0.4, 0.6, 0.5, 0.6], -1.0),
    }
    for name, (params, best) in tasks.items():
        own = torch.tensor(params, dtype=torch.float64)
        assert PLATEAUS[name].minimum(own).item() == pytest.approx(best, abs=1e-6)


def test_the_preset_has_all_of_them_with_several_sources() -> None:
    """Two to four, as people have them."""
    functions = PRESETS["compare"][0].problems
    assert {spec.family for spec in functions} >= {*PLATEAUS}
    assert all(2 <= (spec.sources or 1) <= 4 for spec in functions if spec.family in PLATEAUS)
