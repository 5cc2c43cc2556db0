"""Bounds of a result: what is cut off, and what its mean and variance are then."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats
from tests.problems import points, tensor

from headstart import Dataset, InputError
from headstart.data.bounds import Bounds, Seen, SoftBounds, Support
from headstart.data.outcomes import Goal, Limit, Outcomes
from headstart.data.warp import Warp

WARP = Warp(tensor(40.0), tensor(12.0), tensor(0.3), tensor(0.0), tensor(0.0), tensor(0.0))


def _by_quadrature(mean: float, sd: float, bounds: Bounds, warp: Warp | None) -> tuple[float, float]:
    """E and variance of what is cut off, by Gauss-Legendre on 2,000 panels."""
    nodes, weights = np.polynomial.legendre.leggauss(8)
    ends = np.linspace(-9, 9, 2001)
    u = (ends[:-1, None] + np.diff(ends)[:, None] * (nodes + 1) / 2).ravel()
    p = np.tile(weights, 2000) * (ends[1] - ends[0]) / 2 * stats.norm.pdf(u)
    w = tensor(mean + sd * u)
    value = bounds.clip(w if warp is None else warp.outward(w)).numpy()
    first = float(value @ p)
    return first, float((value - first) ** 2 @ p)


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("bounds", [Bounds(0.0, 100.0), Bounds(low=0.0), Bounds(high=45.0)], ids=str)
def test_moments_are_those_of_what_is_cut_off(mapped: bool, bounds: Bounds) -> None:
    """Inside, across a bound, across both, and far beyond one, with an output map and without."""
    warp = WARP if mapped else None
    cases = [(0.1, 0.2), (-2.0, 1.5), (1.0, 6.0), (9.0, 1.0)] if mapped else [(50.0, 3.0), (4.0, 9.0), (60.0, 80.0)]
    mean, sd = (tensor([case[i] for case in cases]) for i in (0, 1))
    first, second = bounds.moments(mean, sd.square(), warp)
    expected = [_by_quadrature(m, s, bounds, warp) for m, s in cases]
    torch.testing.assert_close(first, tensor([e[0] for e in expected]), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(second, tensor([e[1] for e in expected]), rtol=1e-4, atol=1e-4)


def test_the_mean_of_a_cut_normal_is_the_known_formula() -> None:
    """l Φ(α) + h (1 − Φ(β)) + μ (Φ(β) − Φ(α)) + s (φ(α) − φ(β)), and a point far beyond a bound lies at it."""
    low, high = -1.0, 2.0
    mean, sd = np.array([-30.0, -1.5, 0.0, 2.2, 50.0]), np.array([0.5, 1.0, 4.0, 0.3, 2.0])
    a, b = (low - mean) / sd, (high - mean) / sd
    expected = low * stats.norm.cdf(a) + high * stats.norm.sf(b) + mean * (stats.norm.cdf(b) - stats.norm.cdf(a))
    expected += sd * (stats.norm.pdf(a) - stats.norm.pdf(b))
    first, second = Bounds(low, high).moments(tensor(mean), tensor(sd**2), None)
    np.testing.assert_allclose(first.numpy(), expected, atol=1e-8)
    assert (float(first[0]), float(first[-1])) == (low, high)
    assert float(second[0]) == float(second[-1]) == 0.0
    still = Bounds(low, high).moments(tensor([0.5]), tensor([0.0]), None)
    assert float(still[0]) == pytest.approx(0.5)
    assert float(still[1]) == pytest.approx(0.0)


def test_moments_have_gradients() -> None:
    """Also far beyond a bound and without any variance."""
    mean, var = tensor([0.3, 9.0, 0.5]).requires_grad_(), tensor([0.4, 0.1, 0.0]).requires_grad_()
    first, second = Bounds(0.0, 1.0).moments(mean, var, None)
    slopes = torch.autograd.grad((first + second).sum(), (mean, var))
    assert all(bool(slope.isfinite().all()) for slope in slopes)
    inside = stats.norm.cdf(0.7 / 0.4**0.5) - stats.norm.cdf(-0.3 / 0.4**0.5)
    by_mean = torch.autograd.grad(Bounds(0.0, 1.0).moments(mean[:1], var[:1], None)[0].sum(), mean)[0]
    assert float(by_mean[0]) == pytest.approx(inside, abs=1e-7)


def test_a_sign_turns_bounds_round() -> None:
    """What was highest is lowest."""
    assert Bounds(0.0, 100.0).signed(-1) == Bounds(-100.0, 0.0)
    assert Bounds(low=3.0).signed(-1) == Bounds(high=-3.0)
    assert Bounds(0.0, 100.0).signed(1) == Bounds(0.0, 100.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Goal("yield", low=100, high=0), "must be a lower and a higher one, but they are 100 and 0"),
        (lambda: Goal("yield", low=3, high=3), "a lower and a higher one"),
        (lambda: Goal("yield", low=math.nan), "A bound of 'yield' must be a number, but it is nan"),
        (lambda: Goal("yield", high=math.inf), "must be a number, but it is inf"),
        (lambda: Goal("yield", high="100"), "must be a number, but it is '100'"),  # type: ignore[arg-type]
        (lambda: Limit("impurity", at_most=-1, low=0), "impurity <= -1 never holds, for 'impurity' is at least 0"),
        (lambda: Limit("impurity", at_most=100, low=0, high=100), "always holds, for 'impurity' is between 0 and 100"),
        (lambda: Limit("purity", at_least=0, low=0, high=100), "purity >= 0 always holds"),
        (lambda: Limit("purity", at_least=101, low=0, high=100), "purity >= 101 never holds"),
    ],
)
def test_bounds_that_make_no_sense_are_refused(make: object, message: str) -> None:
    """By name, with what is wrong."""
    assert callable(make)
    with pytest.raises(InputError, match=message):
        make()


def test_a_limit_may_be_at_a_bound_that_can_be_broken() -> None:
    """At most 0 of what is never negative."""
    assert Limit("impurity", at_most=0, low=0).bounds == Bounds(low=0.0)
    assert Limit("purity", at_least=100, low=0, high=100).bounds == Bounds(0.0, 100.0)
    assert Goal("yield").bounds is None


def test_a_value_outside_is_named_by_its_row() -> None:
    """As measured, before the sign; rounding is no reason."""
    outcomes = Outcomes((Goal("yield", maximize=True, low=0, high=100),))
    task = Dataset(points(3, seed=0), tensor([3.0, 104.0, 100.0]), name="May")
    with pytest.raises(
        InputError, match=r"yield of May, row 1 \(counted from 0\): the value 104 is outside its bounds"
    ):
        outcomes["yield"].signed(task)
    fine = Dataset(points(2, seed=0), tensor([-1e-9, 100 + 1e-9]))
    assert outcomes["yield"].signed(fine).y.tolist() == [1e-9, -100 - 1e-9]


# ── bounds that are approached ────────────────────────────────────────────────────────────────────────────────────

SOFT = {
    "below": SoftBounds.between(tensor([0.0]), tensor([math.inf]), tensor([2.0])),
    "above": SoftBounds.between(tensor([-math.inf]), tensor([3.0]), tensor([0.5])),
    "both": SoftBounds.between(tensor([-1.0]), tensor([3.0]), tensor([1.5])),
    "both, close": SoftBounds.between(tensor([-1.0]), tensor([3.0]), tensor([40.0])),
}
each_soft = pytest.mark.parametrize("soft", SOFT.values(), ids=SOFT.keys())


@each_soft
def test_soft_bounds_map_there_and_back(soft: SoftBounds) -> None:
    """Onto what is between the bounds, in order."""
    u = torch.linspace(-30, 30, 2001, dtype=torch.float64)
    v = soft.outward(u)
    assert bool(((v >= soft.low) & (v <= soft.high)).all())
    assert bool((v.diff() >= 0).all())
    inside = (v - soft.low > 1e-3) & (soft.high - v > 1e-3)
    assert int(inside.sum()) > 100
    torch.testing.assert_close(soft.inward(v)[0][inside], u[inside], rtol=1e-9, atol=1e-9)


@each_soft
def test_soft_bounds_change_nothing_out_of_their_reach_and_join_smoothly(soft: SoftBounds) -> None:
    """Value and slope are those of the identity where the reach ends."""
    u = torch.linspace(-5, 5, 1001, dtype=torch.float64)
    far = (u >= soft.low + soft.reach) & (u <= soft.high - soft.reach)
    assert torch.equal(soft.outward(u)[far], u[far])
    h = 1e-6
    for end, there in ((soft.low + soft.reach, soft.low), (soft.high - soft.reach, soft.high)):
        if float(there.abs()) > 1e9:
            continue
        steps = soft.outward(torch.cat([end - h, end, end + h])).diff() / h
        torch.testing.assert_close(steps, torch.ones_like(steps), rtol=0, atol=1e-5)


@each_soft
def test_the_slope_of_soft_bounds_is_the_derivative(soft: SoftBounds) -> None:
    """log du/dv by automatic differentiation; there is no density at a bound or beyond it."""
    v = torch.linspace(-0.97, 2.97, 41, dtype=torch.float64)
    v = v[(v > soft.low) & (v < soft.high)].requires_grad_()
    u, log_slope = soft.inward(v)
    (slope,) = torch.autograd.grad(u.sum(), v)
    torch.testing.assert_close(log_slope.detach(), slope.log(), rtol=1e-9, atol=1e-12)
    ends = torch.cat([soft.low, soft.low - 1, soft.high, soft.high + 1])
    at = ends[(ends.abs() < 1e9) & ((ends <= soft.low) | (ends >= soft.high))]
    assert bool((soft.inward(at)[1] == -torch.inf).all())


def _seen(*values: float) -> Seen:
    found = Seen.of([Dataset(points(len(values), seed=0), tensor(values))])
    assert found is not None
    return found


NONE = math.inf


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    ("values", "bounds", "cut_off", "approached"),
    [
        ((3.0, 1.0, 2.0, 9.0, 5.0), None, (-NONE, NONE), (0.0, NONE)),
        ((3.0, 0.0, 2.0, 9.0, 5.0), None, (0.0, NONE), (-NONE, NONE)),
        ((3.0, -1.0, 2.0, 9.0, 5.0), None, (-NONE, NONE), (-NONE, NONE)),
        ((0.0, 0.0, 0.0, 0.0, 0.0), None, (-NONE, NONE), (-NONE, NONE)),
        ((3.0, 1.0, 2.0, 9.0), None, (-NONE, NONE), (-NONE, NONE)),
        ((3.0,), Bounds(0.0, 100.0), (0.0, 100.0), (0.0, 100.0)),
        ((0.0, 50.0), Bounds(0.0, 100.0), (0.0, 100.0), (-NONE, 100.0)),
        ((1e-9, 100.0), Bounds(0.0, 100.0), (0.0, 100.0), (-NONE, NONE)),
        ((3.0, 1.0, 2.0, 9.0, 5.0), Bounds(high=9.5), (-NONE, 9.5), (0.0, 9.5)),
        ((3.0, 0.0, 2.0, 9.0, 5.0), Bounds(high=9.5), (0.0, 9.5), (-NONE, 9.5)),
        ((3.0, 1.0, 2.0, 9.0, 5.0), Bounds(low=-1.0), (-1.0, NONE), (-1.0, NONE)),
    ],
)
def test_a_bound_is_approached_where_no_result_was(
    values: tuple[float, ...],
    bounds: Bounds | None,
    cut_off: tuple[float, float],
    approached: tuple[float, float],
    sign: int,
) -> None:
    """0 too, by five results of one sign and more; results at a bound, up to rounding, are cut off there."""
    given = None if bounds is None else bounds.signed(sign)
    found = Support.of(given, _seen(*(sign * v for v in values)), tensor(0.0))
    ends = ((found.low, found.high), (found.low_approached, found.high_approached))
    for pair, expected in zip(ends, (cut_off, approached), strict=True):
        assert sorted(sign * end.item() for end in pair) == list(expected)


def test_what_was_seen_adds_up() -> None:
    """Of sources and target; an empty task adds nothing."""
    sources = [Dataset(points(3, seed=i), tensor(y)) for i, y in enumerate(([1.0, 4.0, 2.0], [7.0, 3.0, 5.0]))]
    before = Seen.of(sources)
    assert before is not None
    assert (before.lowest.item(), before.highest.item(), before.n) == (1.0, 7.0, 6)
    assert Seen.of([Dataset.empty(2)], before) is before
    after = Seen.of([Dataset(points(2, seed=5), tensor([0.5, 6.0]))], before)
    assert after is not None
    assert (after.lowest.item(), after.highest.item(), after.n) == (0.5, 7.0, 8)
    assert Seen.of([]) is None
