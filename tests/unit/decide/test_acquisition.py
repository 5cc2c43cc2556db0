"""Acquisition functions for minimisation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from botorch.acquisition.analytic import LogExpectedImprovement, UpperConfidenceBound
from tests.problems import params_for, plainly, points, quick, tensor, transfer_problem

from headstart import (
    FAMILY,
    GPBO,
    SHGP,
    ChainParams,
    Dataset,
    GPParams,
    InputError,
    TransferPosterior,
)
from headstart.decide.acquisition import (
    Acquisition,
    acquisition,
    acquisition_values,
    acquisition_values_and_slopes,
    incumbent,
)
from headstart.decide.average import PlainAcquisition, Voice

PROBLEM = transfer_problem(n_queries=20)


def _bowl(X: torch.Tensor) -> torch.Tensor:
    return (X - 0.4).square().sum(-1)


def _posterior(n: int = 6, scale: float = 1.0) -> TransferPosterior:
    source, X = points(15, seed=0), points(n, seed=1)
    prior = quick(SHGP).learn([Dataset(source, scale * _bowl(source))])
    return prior.condition(Dataset(X, scale * (_bowl(X) + 0.1 * X[:, 0])))


def test_the_confidence_bound_weighs_the_standard_deviation() -> None:
    """LCB is −(mean − β sd): β multiplies the standard deviation, although BoTorch's beta multiplies the variance."""
    posterior, X = _posterior(), points(20, seed=2)
    mean, var = posterior.predict(X)
    for beta in (0.0, 1.0, 3.0):
        value = acquisition(posterior, Acquisition.LCB, beta=beta)
        assert isinstance(value, UpperConfidenceBound)
        torch.testing.assert_close(value(X.unsqueeze(-2)), -(mean - beta * var.sqrt()))


def test_the_default_beta_is_the_papers() -> None:
    """β = 3."""
    posterior, X = _posterior(), points(5, 1, seed=2)
    lcb = acquisition(posterior, Acquisition.LCB)
    assert torch.equal(lcb(X), acquisition(posterior, Acquisition.LCB, beta=3.0)(X))


def test_expected_improvement_is_below_the_incumbent() -> None:
    """LOG_EI is log E[max(f* − f, 0)] in closed form."""
    posterior, X = _posterior(), points(20, seed=2)
    mean, var = posterior.predict(X)
    sd = var.sqrt()
    u = (0.5 - mean) / sd
    normal = torch.distributions.Normal(tensor(0.0), tensor(1.0))
    expected = sd * (u * normal.cdf(u) + normal.log_prob(u).exp())
    value = acquisition(posterior, Acquisition.LOG_EI, best_f=0.5)
    assert isinstance(value, LogExpectedImprovement)
    torch.testing.assert_close(value(X.unsqueeze(-2)), expected.log())


def test_the_incumbent_is_the_lowest_posterior_mean_at_the_observed_points() -> None:
    """Not the lowest observation, which under noise is too low."""
    X = points(30, seed=3)
    noise = 0.5 * torch.randn(30, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    posterior = quick(GPBO).learn().condition(Dataset(X, _bowl(X) + noise))
    mean, _ = posterior.predict(X)
    assert incumbent(posterior).item() == pytest.approx(mean.min().item(), abs=1e-12)
    assert incumbent(posterior).item() > posterior.train_targets.min().item() + 0.2
    default, given = acquisition(posterior, Acquisition.LOG_EI), incumbent(posterior)
    torch.testing.assert_close(
        default(X.unsqueeze(-2)), acquisition(posterior, Acquisition.LOG_EI, best_f=given)(X.unsqueeze(-2))
    )


def test_without_an_observation_there_is_no_incumbent() -> None:
    """LOG_EI asks for best_f then; LCB needs none."""
    posterior = _posterior(0)
    with pytest.raises(InputError, match="no observation yet"):
        acquisition(posterior, Acquisition.LOG_EI)
    assert bool(acquisition(posterior, Acquisition.LCB)(points(3, 1, seed=1)).isfinite().all())
    at = points(9, seed=1)
    assert incumbent(posterior, at).item() == pytest.approx(posterior.predict(at)[0].min().item(), abs=1e-12)


@pytest.mark.parametrize("beta", [-1.0, math.nan])
def test_a_negative_beta_is_refused(beta: float) -> None:
    """Uncertainty attracts."""
    with pytest.raises(InputError, match="beta"):
        acquisition(_posterior(), Acquisition.LCB, beta=beta)


@pytest.mark.parametrize("kind", Acquisition)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e9])
def test_values_in_the_users_units_follow_them(kind: Acquisition, scale: float) -> None:
    """In units a times as large a bound is a times as large, and the log of an improvement is higher by log a."""
    X = points(20, 1, seed=5)
    first, changed = (acquisition(posterior, kind)(X) for posterior in (_posterior(), _posterior(scale=scale)))
    back = changed / scale if kind is Acquisition.LCB else changed - math.log(scale)
    torch.testing.assert_close(back, first, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", Acquisition)
@pytest.mark.parametrize("name", ["GPBO", "SHGP", "HGP"])
def test_a_batch_of_problems_equals_one_by_one(name: str, kind: Acquisition) -> None:
    """Every problem has its own incumbent and its own units."""
    model = quick(FAMILY[name])
    source, X, queries = points(3, 10, seed=0), points(3, 4, seed=1), points(7, 1, seed=2)
    scales = tensor([1.0, 3.0, 0.2]).unsqueeze(-1)
    past, target = Dataset(source, scales * _bowl(source)), Dataset(X, scales * _bowl(X + 0.1))
    batch = model.learn([past]).condition(target)
    everywhere = queries.unsqueeze(1).expand(-1, 3, -1, -1)
    together = acquisition(batch, kind)(everywhere)
    for i in range(3):
        single = model.learn([Dataset(past.X[i], past.y[i])]).condition(Dataset(target.X[i], target.y[i]))
        alone = acquisition(single, kind)(queries)
        torch.testing.assert_close(together[:, i], alone, rtol=1e-5, atol=1e-6)


# ── what a measurement with noise can change ──────────────────────────────────────────────────────────────────────


def _at(model: TransferPosterior, X: torch.Tensor, kind: Acquisition, noise_var: float) -> torch.Tensor:
    mean, var = model.predict(X)
    return acquisition_values(kind, mean, var, best_f=incumbent(model), noise_var=tensor(noise_var))


@pytest.mark.parametrize("kind", Acquisition)
def test_without_noise_a_value_is_botorchs(kind: Acquisition) -> None:
    """LOG_EI with noise 0 is ``LogExpectedImprovement``; noise does not enter a bound."""
    model = plainly(SHGP).at(params_for("SHGP"), sources=PROBLEM.sources, target=PROBLEM.target)
    expected = acquisition(model, kind)(PROBLEM.Xq.unsqueeze(-2))
    torch.testing.assert_close(_at(model, PROBLEM.Xq, kind, 0.0), expected, rtol=1e-10, atol=1e-10)
    with_noise = _at(model, PROBLEM.Xq, kind, 0.5)
    if kind is Acquisition.LCB:
        torch.testing.assert_close(with_noise, expected, rtol=1e-10, atol=1e-10)
    else:
        assert bool((with_noise < expected).all())


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
    found = acquisition_values(Acquisition.LOG_EI, mean, var, best_f=best_f, noise_var=noise_var)
    torch.testing.assert_close(found.squeeze(), expected, rtol=0, atol=0.02)


@pytest.mark.parametrize("noise", [0.0, 1e-4, 0.1, 3.0])
def test_slopes_with_noise_are_finite_differences(noise: float) -> None:
    """By the mean and by the variance of f."""
    mean, var = tensor([-1.0, 0.0, 0.2, 2.0, 5.0]).numpy(), tensor([0.3, 1.0, 1e-3, 0.5, 2.0]).numpy()
    given: Any = {"best_f": tensor(0.3).numpy(), "noise_var": tensor(noise).numpy()}
    _, by_mean, by_var = acquisition_values_and_slopes(Acquisition.LOG_EI, mean, var, **given)
    h = 1e-6
    for found, (dm, dv) in ((by_mean, (h, 0.0)), (by_var, (0.0, h * var))):
        up, down = (
            acquisition_values_and_slopes(Acquisition.LOG_EI, mean + sign * dm, var + sign * dv, **given)[0]
            for sign in (1, -1)
        )
        torch.testing.assert_close(
            torch.from_numpy(found), torch.from_numpy((up - down) / (2 * (dm + dv))), rtol=1e-5, atol=1e-6
        )


def test_a_point_that_was_measured_often_is_worth_less_than_an_unknown_one() -> None:
    """With much noise the best point is repeated after one measurement, and not after forty."""
    level = GPParams.of(lengthscale=[0.2], outputscale=1.0, noise_var=1.0)
    best, far = tensor([[0.3]]), tensor([[0.9]])

    def values(n: int) -> list[float]:
        X = torch.cat([best.expand(n, 1), tensor([[0.6]])])
        y = torch.cat([torch.full((n,), -2.0, dtype=torch.float64), tensor([2.0])])
        model = GPBO.at(ChainParams((level,)), target=Dataset(X, y))
        value = PlainAcquisition(Voice(model.predictor, None), Acquisition.LOG_EI, incumbent(model), 3.0)
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
    zero = np.zeros(())
    log_ei, by_mean, by_var = acquisition_values_and_slopes(
        Acquisition.LOG_EI, -u, np.ones_like(u), best_f=zero, noise_var=zero
    )
    found = np.stack([log_ei, -by_mean, by_var * 2], axis=-1)
    np.testing.assert_allclose(found[2:], wanted, rtol=1e-11)
    # log h → −u²/2 − log √2π − 2 log |u|, Φ/h → |u|, φ/h → u²
    far = u[:2]
    np.testing.assert_allclose(found[:2, 0], -0.5 * far**2 - 0.5 * np.log(2 * np.pi) - 2 * np.log(-far), rtol=1e-8)
    np.testing.assert_allclose(found[:2, 1:], np.stack([-far, far**2], axis=-1), rtol=1e-7)
