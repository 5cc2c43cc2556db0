"""Results that were never beyond 0, or a given bound, are not expected beyond it."""

from __future__ import annotations

import math
from functools import cache

import pytest
import torch
from tests.problems import points, quick, tensor
from torch import Tensor

from headstart import AUTO, GPBO, Dataset, TransferPosterior
from headstart.data.bounds import Bounds
from headstart.data.outcomes import Goal, Outcomes
from headstart.decide.suggest import suggest
from headstart.models.outcomes import OutcomePosteriors, OutcomePriors
from headstart.tuning import PLAIN_TUNING

X = points(40, seed=9)
DOUBT = PLAIN_TUNING.bound_doubt


def _cost(X: Tensor, task: int) -> Tensor:
    """In euros, from some to many hundreds: never below zero."""
    return 20 * (4 * (X - 0.45 - 0.05 * task).square().sum(-1) * (1 + 0.3 * task) + 0.3 * (task - 1)).exp()


def _sources(factor: float = 1.0, shift: float = 0.0) -> list[Dataset]:
    return [Dataset(points(15, seed=i), factor * _cost(points(15, seed=i), i) + shift) for i in range(3)]


@cache
def _posterior(n: int = 0, factor: float = 1.0, shift: float = 0.0) -> TransferPosterior:
    at = points(n, seed=5)
    target = Dataset(at, factor * _cost(at, 1) + shift) if n else None
    return quick(AUTO).learn(_sources(factor, shift)).condition(target)


def _free(posterior: TransferPosterior) -> TransferPosterior:
    return posterior._with_facts(seen=None)


@pytest.mark.parametrize("n", [0, 1])
def test_costs_that_were_never_negative_are_not_expected_to_be(n: int) -> None:
    """Neither 95 % ranges nor medians, of measurements and of f; without what was seen they reach below zero."""
    posterior = _posterior(n)
    assert float(_free(posterior).quantile(X, 0.025).min()) < -10, "otherwise nothing was tested"
    for noise in (True, False):
        low, median, high = posterior.quantiles(X, (0.025, 0.5, 0.975), noise=noise)
        assert float(low.min()) > 0
        assert bool((low < median).all())
        assert bool((median < high).all())
    if n == 0:
        assert float(_free(posterior).quantile(X, 0.5).min()) < 0 < float(posterior.quantile(X, 0.5).min())


@pytest.mark.parametrize("n", [0, 5])
def test_what_is_maximised_keeps_its_sign_as_well(n: int) -> None:
    """Behind the sign the bound is an upper one: −1 times all values mirrors what is stated of the same model."""
    posterior = _posterior(n, -1.0)
    high = posterior.quantile(X, 0.975)
    assert float(high.max()) < 0
    assert float(_free(posterior).quantile(X, 0.975).max()) > 0, "otherwise nothing was tested"


@pytest.mark.parametrize("factor", [1e-6, 1e5])
@pytest.mark.parametrize("n", [0, 3])
def test_another_unit_gives_the_same_answer(n: int, factor: float) -> None:
    """Quantiles are multiplied by the factor and probabilities stay."""
    one, other = _posterior(n), _posterior(n, factor)
    for p in (0.025, 0.5, 0.975):
        torch.testing.assert_close(other.quantile(X, p), factor * one.quantile(X, p), rtol=1e-6, atol=0)
    y = _cost(X, 1)
    torch.testing.assert_close(other.cdf(X, factor * y), one.cdf(X, y), rtol=1e-6, atol=1e-9)
    torch.testing.assert_close(
        other.log_density(X, factor * y), one.log_density(X, y) - math.log(factor), rtol=1e-6, atol=1e-6
    )


def test_far_from_zero_nothing_changes() -> None:
    """Thousands of spreads away the bound is as good as none."""
    posterior = _posterior(3, 1.0, 1e6)
    for p in (0.025, 0.5, 0.975):
        assert torch.equal(posterior.quantile(X, p), _free(posterior).quantile(X, p))
    torch.testing.assert_close(
        posterior.log_density(X, 1e6 + _cost(X, 1)), _free(posterior).log_density(X, 1e6 + _cost(X, 1))
    )


@pytest.mark.parametrize("bounds", [None, Bounds(0.0), Bounds(0.0, 2000.0), Bounds(high=900.0)], ids=str)
@pytest.mark.parametrize("n", [0, 4])
def test_stated_probabilities_fit_together(n: int, bounds: Bounds | None) -> None:
    """The distribution function undoes the quantile, and is the integral of the density, with what lies at a bound."""
    sources = [s.with_data(s.X, s.y.clamp_max(800.0)) for s in _sources()]
    at = points(n, seed=5)
    posterior = quick(AUTO).learn(sources).condition(Dataset(at, _cost(at, 1).clamp_max(800.0)) if n else None)
    posterior = posterior if bounds is None else posterior.within_bounds(bounds)
    for p in (0.001, 0.025, 0.3, 0.5, 0.975):
        y = posterior.quantile(X, p)
        inside = (y > (-math.inf if bounds is None else bounds.low)) & (
            y < (math.inf if bounds is None else bounds.high)
        )
        found = posterior.cdf(X, y)
        torch.testing.assert_close(found[inside], torch.full_like(found[inside], p), rtol=1e-6, atol=1e-9)
    x = X[4:5]
    near = torch.logspace(-9, 5.2, 40_001, dtype=torch.float64)
    ends = [0.0, 900.0, 2000.0]
    grid = torch.cat([sign * near + end for sign in (1, -1) for end in ends]).unique()
    if bounds is not None:
        grid = grid[(grid > bounds.low) & (grid < bounds.high)]
    mass = torch.trapezoid(posterior.log_density(x.expand(len(grid), -1), grid).exp(), grid).item()
    for end in () if bounds is None else (bounds.low, bounds.high):
        if math.isfinite(end):
            mass += posterior.log_density(x, tensor([end])).exp().item()
    assert mass == pytest.approx(1, abs=5e-3)


def test_one_percent_is_left_for_what_never_was() -> None:
    """At 0 and beyond it: a hundredth of what there is without the bound, which is no result's surprise of −∞ nats."""
    posterior, y = _posterior(), torch.zeros_like(X[:, 0])
    free = _free(posterior)
    for at in (y, y - 30.0):
        torch.testing.assert_close(posterior.cdf(X, at), DOUBT * free.cdf(X, at), rtol=1e-6, atol=1e-12)
        torch.testing.assert_close(posterior.log_density(X, at), free.log_density(X, at) + math.log(DOUBT))


def test_a_result_of_the_other_sign_ends_the_belief() -> None:
    """From then on all is as it is without."""
    sources, at = _sources(), points(3, seed=5)
    target = Dataset(at, tensor([40.0, -2.0, 90.0]))
    posterior = quick(AUTO).learn(sources).condition(target)
    assert torch.equal(posterior.quantile(X, 0.025), _free(posterior).quantile(X, 0.025))


@pytest.mark.parametrize("given", [False, True])
def test_zeros_are_values_that_can_be(given: bool) -> None:
    """With a zero among the past results, what is predicted beyond it lies at it, whether 0 is a given bound or not."""
    sources = [s.with_data(s.X, (s.y - 40.0).clamp_min(0.0)) for s in _sources()]
    known = quick(AUTO).learn(sources).condition()
    posterior = known.within_bounds(Bounds(0.0)) if given else known
    assert torch.equal(posterior.quantile(X, 0.025), _free(known).quantile(X, 0.025).clamp_min(0.0))
    assert float(posterior.quantile(X, 0.025).min()) == 0.0
    zero = torch.zeros(len(X), dtype=torch.float64)
    torch.testing.assert_close(posterior.cdf(X, zero), _free(known).cdf(X, zero))
    torch.testing.assert_close(posterior.log_density(X, zero).exp(), _free(known).cdf(X, zero))
    assert bool((posterior.cdf(X, zero - 1e-9) == 0).all())


@pytest.mark.parametrize("n", [0, 6])
def test_suggestions_stay_as_they_are(n: int) -> None:
    """Bit for bit: the search goes by the model, which knows no bounds of its own."""
    assert torch.equal(suggest(_posterior(n)), suggest(_free(_posterior(n))))
    assert torch.equal(_posterior(n).predict(X)[0], _free(_posterior(n)).predict(X)[0])


@pytest.mark.parametrize("maximize", [False, True])
def test_outcomes_approach_bounds_as_measured(maximize: bool) -> None:
    """A percentage near its upper bound, minimised and maximised: all ranges are between 0 and 100."""
    sources = [s.with_data(s.X, 100 - 0.05 * s.y.clamp_max(1900.0)) for s in _sources()]
    outcomes = Outcomes((Goal("yield", maximize=maximize, low=0, high=100),))
    known = OutcomePriors.learn(outcomes, {"yield": sources}, model=quick(AUTO)).condition()
    assert isinstance(known, OutcomePosteriors)
    (posterior,) = known.posteriors
    ends = sorted(outcomes.goals[0].sign * float(posterior.quantile(X, p)[0]) for p in (0.025, 0.5, 0.975))
    every = torch.cat([outcomes.goals[0].sign * posterior.quantile(X, p) for p in (0.025, 0.5, 0.975)])
    assert 0 < ends[0] < ends[1] < ends[2] < 100
    assert 0 < float(every.min()) < float(every.max()) < 100
    beyond = torch.cat([_free(posterior).within_bounds(Bounds()).quantile(X, p) for p in (0.025, 0.975)])
    assert float(beyond.abs().max()) > 100, "otherwise nothing was tested"


def test_a_target_alone_believes_its_own_results() -> None:
    """From the fifth on."""
    at = points(6, seed=2)
    for n, believes in ((4, False), (6, True)):
        posterior = quick(GPBO).learn().condition(Dataset(at[:n], _cost(at[:n], 1)))
        assert (float(posterior.quantile(X, 0.025).min()) > 0) == believes


def test_every_problem_of_a_batch_has_its_own_bounds() -> None:
    """One of costs and one of values of both signs, each as it is alone."""
    costs, others = _sources(), _sources(1.0, -60.0)
    both = [Dataset(torch.stack([a.X, b.X]), torch.stack([a.y, b.y])) for a, b in zip(costs, others, strict=True)]
    posterior = quick(AUTO).learn(both).condition()
    together = posterior.quantile(X.expand(2, *X.shape), 0.025)
    for i, own in enumerate((costs, others)):
        alone = quick(AUTO).learn(own).condition().quantile(X, 0.025)
        torch.testing.assert_close(together[i], alone, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(posterior.problem(i).quantile(X, 0.025), together[i], rtol=1e-9, atol=1e-9)
