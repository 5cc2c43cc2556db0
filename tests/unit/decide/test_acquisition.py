"""Acquisition functions for minimisation."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from botorch.acquisition.analytic import LogExpectedImprovement, UpperConfidenceBound

from headstart import FAMILY, GPBO, SHGP, Dataset, FitOptions, InputError, TransferModel, TransferPosterior
from headstart.decide.acquisition import Acquisition, InModelUnits, acquisition, incumbent


def tensor(values: Any) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def quick(model: TransferModel) -> TransferModel:
    return model.using(fit=FitOptions(restarts=1))


def _points(*shape: int, seed: int) -> torch.Tensor:
    return torch.rand(*shape, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def _bowl(X: torch.Tensor) -> torch.Tensor:
    return (X - 0.4).square().sum(-1)


def _posterior(n: int = 6, scale: float = 1.0) -> TransferPosterior:
    source, X = _points(15, seed=0), _points(n, seed=1)
    prior = quick(SHGP).learn([Dataset(source, scale * _bowl(source))])
    return prior.condition(Dataset(X, scale * (_bowl(X) + 0.1 * X[:, 0])))


def test_the_confidence_bound_weighs_the_standard_deviation() -> None:
    """LCB is −(mean − β sd): β multiplies the standard deviation, although BoTorch's beta multiplies the variance."""
    posterior, X = _posterior(), _points(20, seed=2)
    mean, var = posterior.predict(X)
    for beta in (0.0, 1.0, 3.0):
        value = acquisition(posterior, Acquisition.LCB, beta=beta)
        assert isinstance(value, UpperConfidenceBound)
        torch.testing.assert_close(value(X.unsqueeze(-2)), -(mean - beta * var.sqrt()))


def test_the_default_beta_is_the_papers() -> None:
    """β = 3."""
    posterior, X = _posterior(), _points(5, 1, seed=2)
    lcb = acquisition(posterior, Acquisition.LCB)
    assert torch.equal(lcb(X), acquisition(posterior, Acquisition.LCB, beta=3.0)(X))


def test_expected_improvement_is_below_the_incumbent() -> None:
    """LOG_EI is log E[max(f* − f, 0)] in closed form."""
    posterior, X = _posterior(), _points(20, seed=2)
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
    X = _points(30, seed=3)
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
    assert bool(acquisition(posterior, Acquisition.LCB)(_points(3, 1, seed=1)).isfinite().all())
    at = _points(9, seed=1)
    assert incumbent(posterior, at).item() == pytest.approx(posterior.predict(at)[0].min().item(), abs=1e-12)


@pytest.mark.parametrize("beta", [-1.0, math.nan])
def test_a_negative_beta_is_refused(beta: float) -> None:
    """Uncertainty attracts."""
    with pytest.raises(InputError, match="beta"):
        acquisition(_posterior(), Acquisition.LCB, beta=beta)


@pytest.mark.parametrize("kind", Acquisition)
@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_in_model_units_the_users_units_do_not_matter(kind: Acquisition, scale: float) -> None:
    """Values in model units are the same for y and for 1e-9 y, where BoTorch would take the variance for zero."""
    X = _points(20, 1, seed=5)
    values = []
    for posterior in (_posterior(), _posterior(scale=scale)):
        units = InModelUnits(posterior.units)
        values.append(acquisition(posterior, kind, posterior_transform=units)(X))
    torch.testing.assert_close(values[0], values[1], rtol=1e-6, atol=1e-6)


def test_model_units_of_samples_and_of_the_posterior_agree() -> None:
    """The transform of values is the transform of the mean."""
    posterior, X = _posterior(scale=7.0), _points(3, seed=5)
    units = InModelUnits(posterior.units)
    plain, moved = posterior.posterior(X), posterior.posterior(X, posterior_transform=units)
    torch.testing.assert_close(units.evaluate(plain.mean), moved.mean.squeeze(-1))
    scale = posterior.units.scale**2
    torch.testing.assert_close(moved.distribution.covariance_matrix, plain.distribution.covariance_matrix / scale)


@pytest.mark.parametrize("kind", Acquisition)
@pytest.mark.parametrize("name", ["GPBO", "SHGP", "HGP"])
def test_a_batch_of_problems_equals_one_by_one(name: str, kind: Acquisition) -> None:
    """Every problem has its own incumbent and its own units."""
    model = quick(FAMILY[name])
    source, X, queries = _points(3, 10, seed=0), _points(3, 4, seed=1), _points(7, 1, seed=2)
    scales = tensor([1.0, 3.0, 0.2]).unsqueeze(-1)
    past, target = Dataset(source, scales * _bowl(source)), Dataset(X, scales * _bowl(X + 0.1))
    batch = model.learn([past]).condition(target)
    everywhere = queries.unsqueeze(1).expand(-1, 3, -1, -1)
    together = acquisition(batch, kind, posterior_transform=InModelUnits(batch.units))(everywhere)
    for i in range(3):
        single = model.learn([Dataset(past.X[i], past.y[i])]).condition(Dataset(target.X[i], target.y[i]))
        alone = acquisition(single, kind, posterior_transform=InModelUnits(single.units))(queries)
        torch.testing.assert_close(together[:, i], alone, rtol=1e-5, atol=1e-6)
