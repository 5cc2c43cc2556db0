"""Acquisition functions for minimisation."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from botorch.acquisition.analytic import LogExpectedImprovement, UpperConfidenceBound
from tests.problems import acquisition_of, params_for, plainly, points, quick, tensor, transfer_problem

from headstart import (
    GPBO,
    SHGP,
    ChainParams,
    Dataset,
    GPParams,
    TransferPosterior,
)
from headstart.decide.acquisition import Acquisition, confidence_bound, log_improvement, log_within

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
        partial(log_within, bound=0.3, noise_var=noise_var),
        partial(confidence_bound, beta=2.0),
    ]
    h = 1e-6
    for function in functions:
        _, by_mean, by_var = function(mean, var)
        for found, (dm, dv) in ((by_mean, (h, 0.0)), (by_var, (0.0, h * var))):
            up, down = (function(mean + sign * dm, var + sign * dv)[0] for sign in (1, -1))
            np.testing.assert_allclose(found, (up - down) / (2 * (dm + dv)), rtol=1e-5, atol=1e-6)


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
