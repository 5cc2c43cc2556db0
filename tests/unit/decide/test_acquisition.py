"""Acquisition functions for minimisation."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from botorch.acquisition.analytic import LogExpectedImprovement, UpperConfidenceBound
from scipy.special import log_ndtr
from scipy.stats import norm
from tests.problems import acquisition_of, params_for, plainly, points, quick, tensor, transfer_problem

from headstart import (
    GPBO,
    SHGP,
    ChainParams,
    Dataset,
    GPParams,
    TransferPosterior,
)
from headstart.decide.acquisition import Acquisition, confidence_bound, log_closeness, log_improvement, log_within

PROBLEM = transfer_problem(n_queries=20)


def _bowl(X: torch.Tensor) -> torch.Tensor:
    return (X - 0.4).square().sum(-1)


def _posterior(n: int = 6, scale: float = 1.0) -> TransferPosterior:
    source, X = points(15, seed=0), points(n, seed=1)
    prior = quick(SHGP).learn([Dataset(source, scale * _bowl(source))])
    return prior.condition(Dataset(X, scale * (_bowl(X) + 0.1 * X[:, 0])))


# ── what a measurement with noise can change ──────────────────────────────────────────────────────────────────────


def test_without_noise_a_value_is_botorchs() -> None:
    """LOG_EI with noise 0 is ``LogExpectedImprovement``, LCB ``UpperConfidenceBound`` with β²."""
    model = plainly(SHGP).at(params_for("SHGP"), sources=PROBLEM.sources, target=PROBLEM.target)
    mean, var = (part.numpy() for part in model.predict(PROBLEM.Xq))
    best = model.predict(model.train_inputs[0])[0].amin()
    value, *_ = log_improvement(mean, var, level=best.reshape(1).numpy(), noise_var=np.zeros(1))
    expected = LogExpectedImprovement(model, best_f=best, maximize=False)(PROBLEM.Xq.unsqueeze(-2))
    torch.testing.assert_close(torch.from_numpy(value), expected, rtol=1e-10, atol=1e-10)
    assert (log_improvement(mean, var, level=best.reshape(1).numpy(), noise_var=np.full(1, 0.5))[0] < value).all()
    expected = UpperConfidenceBound(model, beta=2.0**2, maximize=False)(PROBLEM.Xq.unsqueeze(-2))
    torch.testing.assert_close(torch.from_numpy(confidence_bound(mean, var, 2.0)[0]), expected, rtol=1e-10, atol=1e-10)


def test_an_improvement_is_that_of_the_mean_after_the_measurement() -> None:
    """E[max(f* − ½σ − m, 0)], m the posterior mean at x once y(x) is known, by many draws of y(x)."""
    model = plainly(SHGP).at(params_for("SHGP"), sources=PROBLEM.sources, target=PROBLEM.target)
    x = PROBLEM.Xq[:1]
    mean, var = model.predict(x)
    best_f = mean.squeeze() - 0.05
    noise_var = model.predictor.noise_var
    generator = torch.Generator().manual_seed(0)
    errors = torch.randn(200_000, generator=generator, dtype=torch.float64)
    # the update is linear in y: two fantasies are enough to know it
    low, high = (
        model.condition_on_observations(x, (mean + shift).reshape(1, 1)).predict(x)[0].item() for shift in (0.0, 1.0)
    )
    drawn = low + (high - low) * (var + noise_var).sqrt() * errors
    expected = (best_f - 0.5 * noise_var.sqrt() - drawn).clamp_min(0).mean().log()
    level, noise = best_f.reshape(1).numpy(), noise_var.reshape(1).numpy()
    found, *_ = log_improvement(mean.numpy(), var.numpy(), level=level, noise_var=noise)
    assert float(found[0]) == pytest.approx(float(expected), abs=0.02)


@pytest.mark.parametrize("noise", [0.0, 1e-4, 0.1, 3.0])
def test_slopes_are_finite_differences(noise: float) -> None:
    """By the mean and by the variance of f, of every function."""
    mean, var = tensor([-1.0, 0.0, 0.2, 2.0, 5.0]).numpy(), tensor([0.3, 1.0, 1e-3, 0.5, 2.0]).numpy()
    noise_var = np.array([noise])
    functions: list[Callable[..., Any]] = [
        partial(log_improvement, level=np.array([0.3]), noise_var=noise_var),
        partial(log_within, ends=(-np.inf, 0.3), noise_var=noise_var),
        partial(log_within, ends=(-0.4, 0.3), noise_var=noise_var),
        partial(_closeness, noise_var=noise_var),
        partial(confidence_bound, beta=2.0),
    ]
    h = 1e-6
    for function in functions:
        _, by_mean, by_var = function(mean, var)
        for found, (dm, dv) in ((by_mean, (h, 0.0)), (by_var, (0.0, h * var))):
            up, down = (function(mean + sign * dm, var + sign * dv)[0] for sign in (1, -1))
            np.testing.assert_allclose(found, (up - down) / (2 * (dm + dv)), rtol=5e-5, atol=1e-6)


def _closeness(mean: np.ndarray, var: np.ndarray, *, noise_var: np.ndarray) -> tuple[np.ndarray, ...]:
    """With a tent from −0.9 over 0.3 to 0.7, as wide as the noise leaves it."""
    ends: dict[str, Any] = {"low": np.array([-0.9]), "high": np.array([0.7]), "height": np.array([2.5])}
    return log_closeness(mean, var, at=0.3, noise_var=noise_var, **ends)


@pytest.mark.parametrize("noise", [0.0, 0.04])
def test_a_gain_towards_a_target_is_the_mean_over_draws(noise: float) -> None:
    """Of the tent, less half a measurement's error on its narrower side and as much in proportion on the other."""
    mean, var = np.array([-3.0, -0.9, 0.1, 0.3, 0.6, 1.5]), np.array([1.0, 0.3, 0.5, 0.01, 0.2, 0.4])
    draws = np.random.default_rng(0).standard_normal((400_000, 1))
    m = mean + np.sqrt(var**2 / (var + noise)) * draws
    kept = 1 - 0.5 * np.sqrt(noise) / 0.4
    gain = np.maximum(2.5 * np.minimum(kept - (0.3 - m) / 1.2, kept - (m - 0.3) / 0.4), 0.0)
    found = np.exp(_closeness(mean, var, noise_var=np.array([noise]))[0])
    assert (np.abs(found - gain.mean(0)) < 5 * gain.std(0) / 400_000**0.5).all()


def test_a_gain_towards_a_target_is_the_same_in_the_mirror_and_never_lost() -> None:
    """Where the mean is far away on either side, and where the tent is hardly wider than nothing."""
    far = np.array([-80.0, -7.0, 7.0, 80.0])
    for width in (1.0, 1e-3):
        ends: dict[str, Any] = {"at": 0.0, "height": np.array([width]), "noise_var": np.zeros(1)}
        value, slope, by_var = log_closeness(far, np.ones(4), low=np.array([-width]), high=np.array([width]), **ends)
        np.testing.assert_allclose(value, value[::-1], rtol=1e-12)
        np.testing.assert_allclose(slope, -slope[::-1], rtol=1e-9)
        assert np.isfinite(by_var).all()
        assert (np.sign(slope) == -np.sign(far)).all()
        density = width**2 * norm.pdf(7.0)  # the area of the tent times the density, as long as that hardly changes
        if width < 0.01:
            np.testing.assert_allclose(np.exp(value[1]), density, rtol=1e-4)


def test_the_probability_of_a_range_is_a_difference_that_is_exact_in_the_tails() -> None:
    """Against forty digits: near, far out on either side, and with a lower end that never matters."""
    mpmath = pytest.importorskip("mpmath")
    mean, none = np.array([0.0, -12.0, 12.0, 0.5]), np.zeros(1)
    value, *_ = log_within(mean, np.ones(4), ends=(-0.5, 1.0), noise_var=none)
    with mpmath.workdps(80):
        expected = [float(mpmath.log(mpmath.ncdf(1.0 - m) - mpmath.ncdf(-0.5 - m))) for m in mean.tolist()]
    np.testing.assert_allclose(value, expected, rtol=1e-9)
    np.testing.assert_array_equal(
        log_within(mean, np.ones(4), ends=(-np.inf, 1.0), noise_var=none)[0], log_ndtr(1.0 - mean)
    )
    wide, _, _ = log_within(mean, np.ones(4), ends=(-60.0, 1.0), noise_var=none)
    np.testing.assert_allclose(wide, log_ndtr(1.0 - mean), rtol=1e-9, atol=1e-12)


def test_a_point_that_was_measured_often_is_worth_less_than_an_unknown_one() -> None:
    """With much noise the best point is repeated after one measurement, and not after forty."""
    level = GPParams.of(lengthscale=[0.2], outputscale=1.0, noise_var=1.0)
    best, far = tensor([[0.3]]), tensor([[0.9]])

    def values(n: int) -> list[float]:
        X = torch.cat([best.expand(n, 1), tensor([[0.6]])])
        y = torch.cat([torch.full((n,), -2.0, dtype=torch.float64), tensor([2.0])])
        model = GPBO.at(ChainParams((level,)), target=Dataset(X, y))
        value = acquisition_of(model, Acquisition.LOG_EI)
        return [value(x).item() for x in (best, far)]

    once, often = values(1), values(40)
    assert once[0] > once[1]
    assert often[0] < often[1]


def test_the_logarithm_of_h_and_its_shares_are_exact_everywhere() -> None:
    """Where formulas change hands, and from far below to far above, against forty digits."""
    mpmath = pytest.importorskip("mpmath")
    u = np.array([-1e8, -1e4, -40.001, -39.999, -12.0, -1.0 - 1e-9, -1.0, -0.5, 0.0, 3.0, 50.0])
    with mpmath.workdps(40):
        phi, Phi = [mpmath.npdf(mpmath.mpf(x)) for x in u], [mpmath.ncdf(mpmath.mpf(x)) for x in u]
        h = [p + mpmath.mpf(x) * P for p, P, x in zip(phi, Phi, u, strict=True)]
        wanted = [
            [float(mpmath.log(b)), float(P / b), float(p / b)] for p, P, b in zip(phi[2:], Phi[2:], h[2:], strict=True)
        ]
    zero = np.zeros(1)
    log_ei, by_mean, by_var = log_improvement(-u, np.ones_like(u), level=zero, noise_var=zero)
    found = np.stack([log_ei, -by_mean, by_var * 2], axis=-1)
    np.testing.assert_allclose(found[2:], wanted, rtol=1e-11)
    # log h → −u²/2 − log √2π − 2 log |u|, Φ/h → |u|, φ/h → u²
    far = u[:2]
    np.testing.assert_allclose(found[:2, 0], -0.5 * far**2 - 0.5 * np.log(2 * np.pi) - 2 * np.log(-far), rtol=1e-8)
    np.testing.assert_allclose(found[:2, 1:], np.stack([-far, far**2], axis=-1), rtol=1e-7)
