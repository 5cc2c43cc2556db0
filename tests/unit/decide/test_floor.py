"""What there is to gain where a result cannot be below some value."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from tests.problems import generator, points, quick, tensor

from headstart import AUTO, Dataset, InputError, TransferPosterior, suggest
from headstart.data.bounds import Bounds
from headstart.data.outcomes import Goal, Limit, Outcomes
from headstart.decide.acquisition import LEFT, MARGIN, Acquisition, acquisition_values, acquisition_values_and_slopes
from headstart.decide.front import Cells
from headstart.decide.several.gain import Seen, log_gain
from headstart.decide.several.suggest import suggest_several
from headstart.decide.suggest import OneOutcome
from headstart.models.outcomes import OutcomePosteriors

MEAN, VAR = tensor([-1.0, 0.0, 0.2, 2.0, 5.0]), tensor([0.3, 1.0, 1e-3, 0.5, 2.0])


@pytest.mark.parametrize("noise", [0.0, 0.04])
@pytest.mark.parametrize("floor", [-0.5, 0.2])
def test_no_improvement_is_more_than_what_is_left(noise: float, floor: float) -> None:
    """E[min(max(f* − ½σ − m, 0), f* − b)], by many draws of m; far above both it is finite too."""
    best = 0.3
    found = acquisition_values(
        Acquisition.LOG_EI, MEAN, VAR, best_f=tensor(best), noise_var=tensor(noise), floor=tensor(floor)
    )
    e = torch.randn(400_000, 1, generator=generator(0), dtype=torch.float64)
    m = MEAN + VAR / (VAR + noise).sqrt() * e
    gain = (best - MARGIN * noise**0.5 - m).clamp_min(0.0).clamp_max(best - floor + LEFT)
    error = gain.std(0) / len(e) ** 0.5
    assert bool(((found.exp() - gain.mean(0)).abs() < 5 * error + 1e-9).all())
    assert bool(found.isfinite().all())


@pytest.mark.parametrize("best", [0.3, -0.5])
@pytest.mark.parametrize("noise", [0.0, 1e-4, 0.1])
def test_slopes_with_a_floor_are_finite_differences(noise: float, best: float) -> None:
    """By the mean and by the variance, also where the best is at the floor already; the values are the same."""
    given: Any = {"best_f": tensor(best).numpy(), "noise_var": tensor(noise).numpy(), "floor": -0.5}
    mean, var = MEAN.numpy(), VAR.numpy()
    values, by_mean, by_var = acquisition_values_and_slopes(Acquisition.LOG_EI, mean, var, **given)
    same = acquisition_values(
        Acquisition.LOG_EI, MEAN, VAR, best_f=tensor(best), noise_var=tensor(noise), floor=tensor(-0.5)
    )
    torch.testing.assert_close(torch.from_numpy(values), same, rtol=1e-10, atol=1e-10)
    h = 1e-5
    for found, (dm, dv) in ((by_mean, (h, 0.0)), (by_var, (0.0, h * var))):
        up, down = (
            acquisition_values_and_slopes(Acquisition.LOG_EI, mean + sign * dm, var + sign * dv, **given)[0]
            for sign in (1, -1)
        )
        torch.testing.assert_close(
            torch.from_numpy(found), torch.from_numpy((up - down) / (2 * (dm + dv))), rtol=1e-4, atol=1e-4
        )


def _seen(seed: int) -> Seen:
    g = generator(seed)
    mean = torch.randn(2, 1, 4, generator=g, dtype=torch.float64)
    return Seen(
        mean, 0.1 + torch.rand(2, 4, generator=g, dtype=torch.float64), tensor([0.04] * 2), tensor([0.5] * 2).log()
    )


def test_with_several_objectives_the_volume_ends_at_the_floor() -> None:
    """Against draws, one objective with a floor and one without."""
    goals = [replace(_seen(0), floor=tensor(-0.6)), _seen(1)]
    front, reference = tensor([[0.2, -0.3], [-0.4, 0.3]]), tensor([1.0, 1.2])
    cells = Cells.beyond([front], reference)
    n, draws = 200_000, []
    for i, own in enumerate(goals):
        g = generator(10 + i)
        which = torch.multinomial(own.log_weights.exp(), n, replacement=True, generator=g)
        sd = (own.var / (own.var + 0.04).sqrt())[which]
        y = own.mean[which, 0] + MARGIN * 0.2 + sd * torch.randn(n, 4, generator=g, dtype=torch.float64)
        draws.append(y if own.floor is None else y.clamp_min(float(own.floor) - LEFT))
    added = torch.zeros(n, 4, dtype=torch.float64)
    for c in range(cells.there.shape[1]):
        part = torch.ones(n, 4, dtype=torch.float64)
        for i, y in enumerate(draws):
            low = cells.levels[i, 0, cells.lower[i, 0, c]] if cells.lower[i, 0, c] >= 0 else tensor(-torch.inf)
            part = part * (cells.levels[i, 0, cells.upper[i, 0, c]] - torch.maximum(y, low)).clamp_min(0.0)
        added += part
    found = log_gain(goals, cells)[0].exp()
    assert bool(((found - added.mean(0)).abs() < 5 * added.std(0) / n**0.5 + 1e-12).all())
    free = log_gain([_seen(0), goals[1]], cells)[0].exp()
    assert bool((found < free).all())


def _share(X: torch.Tensor, shift: float = 0.0) -> torch.Tensor:
    return (4 * (X - 0.4 - shift).square().sum(-1) - 0.1).clamp(0.0, 1.0)


def _posterior(n: int = 6) -> TransferPosterior:
    sources = [Dataset(points(15, seed=i), _share(points(15, seed=i), 0.1 * i)) for i in range(2)]
    X = torch.cat([tensor([[0.4, 0.41]]), points(n - 1, seed=5)])
    return quick(AUTO).learn(sources).condition(Dataset(X, _share(X)))


@pytest.mark.parametrize("q", [1, 3])
def test_a_search_goes_on_where_the_best_is_at_the_bound(q: int) -> None:
    """Nothing better can be found; points as good are, by slopes and without them, for one outcome and with limits."""
    posterior = _posterior().within_bounds(Bounds(0.0, 1.0))
    assert float(posterior.train_targets.min()) == 0.0
    X = suggest(posterior, q=q)
    assert bool((_share(X.reshape(-1, 2)) < 0.5).any())
    quest = OneOutcome.of(posterior, Acquisition.LOG_EI, 3.0)
    at = points(40, seed=8)
    for awaited in (at[:0], at[:2]):
        value = quest.value(at, awaited, generator(0))
        slopes = quest.slopes(value)
        assert slopes is not None
        torch.testing.assert_close(slopes(at), value(at).detach(), rtol=1e-6, atol=1e-6)
    outcomes = Outcomes((Goal("yield", low=0, high=1),), (Limit("cost", at_most=0.5, low=0),))
    known = OutcomePosteriors(outcomes, (_posterior(), _posterior()))
    assert suggest_several(known, q=q).isfinite().all()


def test_a_bound_below_results_is_refused() -> None:
    """By suggest's caller, where it is given."""
    with pytest.raises(InputError, match="outside its bounds"):
        _posterior().within_bounds(Bounds(0.1))
