"""What there is to gain where a result cannot be below some value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tests.problems import generator, points, quick, tensor

from headstart import AUTO, Dataset, InputError, TransferPosterior
from headstart.data.bounds import Bounds
from headstart.data.outcomes import Goal, Limit, Outcomes
from headstart.decide.acquisition import log_improvement
from headstart.decide.suggest import suggest
from headstart.models.outcomes import OutcomePosteriors
from headstart.tuning import PLAIN_TUNING

MEAN, VAR = tensor([-1.0, 0.0, 0.2, 2.0, 5.0]), tensor([0.3, 1.0, 1e-3, 0.5, 2.0])


@pytest.mark.parametrize("noise", [0.0, 0.04])
@pytest.mark.parametrize("floor", [-0.5, 0.2])
def test_no_improvement_is_more_than_what_is_left(noise: float, floor: float) -> None:
    """E[min(max(f* − ½σ − m, 0), f* − b)], by many draws of m; far above both it is finite too."""
    best = 0.3
    values, *_ = log_improvement(
        MEAN.numpy(), VAR.numpy(), level=np.array([best]), noise_var=np.array([noise]), floor=floor
    )
    found = torch.from_numpy(values)
    e = torch.randn(400_000, 1, generator=generator(0), dtype=torch.float64)
    m = MEAN + VAR / (VAR + noise).sqrt() * e
    gain = (best - PLAIN_TUNING.improvement_margin * noise**0.5 - m).clamp_min(0.0)
    gain = gain.clamp_max(best - floor + PLAIN_TUNING.improvement_at_bound)
    error = gain.std(0) / len(e) ** 0.5
    assert bool(((found.exp() - gain.mean(0)).abs() < 5 * error + 1e-9).all())
    assert bool(found.isfinite().all())


@pytest.mark.parametrize("best", [0.3, -0.5])
@pytest.mark.parametrize("noise", [0.0, 1e-4, 0.1])
def test_slopes_with_a_floor_are_finite_differences(noise: float, best: float) -> None:
    """By the mean and by the variance, also where the best is at the floor already."""
    given: Any = {"level": np.array([best]), "noise_var": np.array([noise]), "floor": -0.5}
    mean, var = MEAN.numpy(), VAR.numpy()
    _, by_mean, by_var = log_improvement(mean, var, **given)
    h = 1e-5
    for found, (dm, dv) in ((by_mean, (h, 0.0)), (by_var, (0.0, h * var))):
        up, down = (log_improvement(mean + sign * dm, var + sign * dv, **given)[0] for sign in (1, -1))
        torch.testing.assert_close(
            torch.from_numpy(found), torch.from_numpy((up - down) / (2 * (dm + dv))), rtol=1e-4, atol=1e-4
        )


def _share(X: torch.Tensor, shift: float = 0.0) -> torch.Tensor:
    return (4 * (X - 0.4 - shift).square().sum(-1) - 0.1).clamp(0.0, 1.0)


def _posterior(n: int = 6) -> TransferPosterior:
    sources = [Dataset(points(15, seed=i), _share(points(15, seed=i), 0.1 * i)) for i in range(2)]
    X = torch.cat([tensor([[0.4, 0.41]]), points(n - 1, seed=5)])
    return quick(AUTO).learn(sources).condition(Dataset(X, _share(X)))


@pytest.mark.parametrize("q", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_a_search_goes_on_where_the_best_is_at_the_bound(q: int) -> None:
    """Nothing better can be found; points as good are, by slopes and without them, for one outcome and with limits."""
    posterior = _posterior().within_bounds(Bounds(0.0, 1.0))
    assert float(posterior.train_targets.min()) == 0.0
    X = suggest(posterior, q=q)
    assert bool((_share(X.reshape(-1, 2)) < 0.5).any())
    outcomes = Outcomes((Goal("yield", low=0, high=1),), (Limit("cost", at_most=0.5, low=0),))
    known = OutcomePosteriors(outcomes, (_posterior(), _posterior()))
    assert suggest(known, q=q).isfinite().all()


def test_a_bound_below_results_is_refused() -> None:
    """By suggest's caller, where it is given."""
    with pytest.raises(InputError, match="outside its bounds"):
        _posterior().within_bounds(Bounds(0.1))
