"""A posterior whose result has bounds: everything that is predicted stays within them."""

from __future__ import annotations

import math

import pytest
import torch
from botorch.acquisition.logei import qLogExpectedImprovement
from botorch.sampling.normal import SobolQMCNormalSampler
from tests.problems import generator, points, quick, tensor

from headstart import AUTO, SHGP, Dataset, InputError, TransferPosterior
from headstart.data.bounds import Bounds
from headstart.data.outcomes import Goal, Limit, Outcomes
from headstart.models.auto.posterior import AutoPosterior
from headstart.models.mixture import components
from headstart.models.outcomes import OutcomePosteriors, OutcomePriors

LOW, HIGH = 0.0, 1.0
X = points(7, seed=9)


def _share(X: torch.Tensor, shift: float = 0.0) -> torch.Tensor:
    return (4 * (X - 0.4 - shift).square().sum(-1) - 0.1).clamp(LOW, HIGH)


def _sources() -> list[Dataset]:
    return [Dataset(points(15, seed=i), _share(points(15, seed=i), 0.1 * i)) for i in range(2)]


def _free(n: int = 5, *, auto: bool = True) -> TransferPosterior:
    at = points(n, seed=5)
    return quick(AUTO if auto else SHGP).learn(_sources()).condition(Dataset(at, _share(at)) if n else None)


@pytest.mark.parametrize("auto", [False, True])
@pytest.mark.parametrize("n", [0, 5])
def test_quantiles_are_cut_off_and_nothing_else(n: int, auto: bool) -> None:
    """Exactly the ones of the posterior without bounds, put at the bound that some results were at."""
    free = _free(n, auto=auto)
    bounded = free.within_bounds(Bounds(LOW, HIGH))
    free = free._with_facts(seen=None)
    for p in (0.01, 0.3, 0.5, 0.99):
        for noise in (True, False):
            expected = free.quantile(X, p, noise=noise)
            assert torch.equal(bounded.quantile(X, p, noise=noise), expected.clamp(LOW, HIGH))
    low, high = bounded.interval(X, 0.95)
    assert bool(((low >= LOW) & (high <= HIGH)).all())
    assert bool((free.interval(X, 0.95)[0] < LOW).any()), "otherwise nothing was tested"


@pytest.mark.parametrize("mixed", [False, True])
def test_the_mean_is_that_of_the_cut_mixture(mixed: bool) -> None:
    """Of draws from every member by its weight, through the map and cut off: to five standard errors."""
    posterior = _free(auto=mixed).within_bounds(Bounds(LOW, HIGH))
    mean, var = posterior.predict(X)
    g, n = generator(0), 100_000
    parts = components(posterior.predictor)
    weights = [1.0 if w is None else float(w) for _, w in parts]
    first, second = torch.zeros(len(X)), torch.zeros(len(X))
    for (member, _), w in zip(parts, weights, strict=True):
        m, v = member.predict_marginal(X)
        y = posterior.way.outward(m + v.sqrt() * torch.randn(n, len(X), generator=g, dtype=torch.float64))
        assert float(y.min()) >= LOW
        assert float(y.max()) <= HIGH
        first, second = first + w * y.mean(0), second + w * (y - mean).square().mean(0)
    assert bool(((mean - first).abs() < 5 * (var / n).sqrt() * len(parts) + 1e-6).all())
    torch.testing.assert_close(var, second, rtol=0.02, atol=1e-6)
    assert isinstance(posterior, AutoPosterior) == mixed


def test_the_distribution_has_its_mass_at_the_bounds() -> None:
    """P(result ≤ y) is 0 below and 1 from the upper bound on; inside nothing changes; the densities add up to 1."""
    free = _free()
    bounded = free.within_bounds(Bounds(LOW, HIGH))
    at = [-0.1, LOW, 0.4, HIGH - 1e-9, HIGH, 1.2]
    cdf = torch.stack([bounded.cdf(X, tensor([y] * 7)) for y in at])
    assert bool((cdf[0] == 0).all())
    assert bool((cdf[4:] == 1).all())
    for i in (1, 2, 3):
        assert torch.equal(cdf[i], free.cdf(X, tensor([at[i]] * 7)))
    inside = torch.linspace(LOW, HIGH, 4001, dtype=torch.float64)[1:-1]
    density = bounded.log_density(X.repeat(len(inside), 1), inside.repeat_interleave(7)).view(-1, 7).exp()
    ends = [bounded.log_density(X, tensor([y] * 7)).exp() for y in (LOW, HIGH)]
    torch.testing.assert_close(
        torch.trapezoid(density, inside, dim=0) + ends[0] + ends[1], torch.ones(7).double(), rtol=0, atol=5e-3
    )
    assert bool((bounded.log_density(X, tensor([1.1] * 7)) == -torch.inf).all())
    torch.testing.assert_close(ends[0], free.cdf(X, tensor([LOW] * 7)))
    torch.testing.assert_close(ends[1], 1 - free.cdf(X, tensor([HIGH] * 7)))


def test_a_limit_at_a_bound_holds_for_all_that_lies_there() -> None:
    """An upper end at the upper bound is none, and a lower one at the lower bound."""
    free, bounded = _free(), _free().within_bounds(Bounds(LOW, HIGH))
    for interval in ((-math.inf, 0.3), (LOW, 0.3), (0.3, math.inf)):
        torch.testing.assert_close(bounded.within(X, interval), free.within(X, interval))
    assert Limit("y", at_least=0.3, at_most=HIGH, low=LOW, high=HIGH).interval == (0.3, math.inf)
    assert Limit("y", at_least=LOW, at_most=0.3, low=LOW, high=HIGH).interval == (-math.inf, 0.3)
    both = bounded.within(X, (-math.inf, 0.3)) + bounded.within(X, (0.3, math.inf))
    torch.testing.assert_close(both, torch.ones_like(both))


def test_a_botorch_posterior_draws_within_the_bounds() -> None:
    """Samples, their mean and variance, for one point and for several together; gradients and fantasies go through."""
    bounded = _free().within_bounds(Bounds(LOW, HIGH))
    seen = bounded.posterior(X)
    y = SobolQMCNormalSampler(torch.Size((8192,)), seed=0)(seen).squeeze(-1)
    assert (float(y.min()), float(y.max())) == (LOW, HIGH)
    torch.testing.assert_close(seen.mean.squeeze(-1), y.mean(0), rtol=0, atol=5e-3)
    torch.testing.assert_close(seen.variance.squeeze(-1), y.var(0), rtol=0.03, atol=1e-4)
    value = qLogExpectedImprovement(bounded, best_f=-0.2, sampler=SobolQMCNormalSampler(torch.Size((16,)), seed=0))
    at = X[:1].clone().requires_grad_()
    slope = torch.autograd.grad(value(at.unsqueeze(0)).sum(), at)[0]
    assert bool(slope.isfinite().all())
    assert float(slope.abs().max()) > 0
    fantasies = bounded.fantasize(X[:1], SobolQMCNormalSampler(torch.Size((3,)), seed=0))
    assert fantasies.bounds == bounded.bounds
    assert float(fantasies.predict(X)[0].min()) >= LOW


def test_nothing_changes_without_bounds() -> None:
    """And what is between them by far is as it is without, up to the quadrature."""
    free = _free(auto=False)
    assert free.bounds is None
    for a, b in zip(free.predict(X), free.within_bounds(Bounds(-1e3, 1e3)).predict(X), strict=True):
        torch.testing.assert_close(a, b, rtol=2e-3, atol=2e-3)
    free = _free()
    wide = free.within_bounds(Bounds(-1e3, 1e3))
    assert torch.equal(free.quantile(X, 0.2), wide.quantile(X, 0.2))


def test_a_result_outside_is_refused() -> None:
    """With its row."""
    with pytest.raises(InputError, match="the target, row"):
        _free().within_bounds(Bounds(0.2, HIGH))


@pytest.mark.parametrize("high_is_good", [False, True])
def test_outcomes_bound_their_posteriors_behind_the_sign(high_is_good: bool) -> None:
    """What is told as measured is kept as measured, and what is limited as well; sources are checked too."""
    sign = -1 if high_is_good else 1
    bounds = {"low": -HIGH, "high": LOW} if high_is_good else {"low": LOW, "high": HIGH}
    outcomes = Outcomes((Goal("a", maximize=high_is_good, **bounds),), (Limit("b", at_most=0.5, low=LOW),))
    sources = {"a": [s.with_data(s.X, sign * s.y) for s in _sources()], "b": _sources()}
    at = points(4, seed=5)
    known = OutcomePriors.learn(outcomes, sources, model=quick(AUTO)).condition(
        {"a": Dataset(at, sign * _share(at)), "b": Dataset(at, _share(at))}
    )
    assert isinstance(known, OutcomePosteriors)
    assert [posterior.bounds for posterior in known.posteriors] == [Bounds(LOW, HIGH), Bounds(LOW)]
    mean = known.predict(X)["a"][0]
    assert bool(((sign * mean >= LOW) & (sign * mean <= HIGH)).all())
    bad = [Dataset(points(3, seed=1), tensor([0.0, sign * 7.0, 0.0]), name="May")]
    with pytest.raises(InputError, match="a of May, row 1"):
        OutcomePriors.learn(outcomes, {"a": bad})
