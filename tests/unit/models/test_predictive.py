"""The distribution of the next measurement: against SciPy, against draws, and there and back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats
from tests.problems import NAMES, agree, params_for, tensor, transfer_problem
from torch import Tensor

from headstart import AUTO, FAMILY, InputError, TransferPosterior
from headstart.models.auto_posterior import AutoPosterior
from headstart.models.botorch import Outcome
from headstart.models.mixture import Mixture
from headstart.models.predictive import NormalMixture

PROBLEM = transfer_problem()
MIXTURE = NormalMixture(tensor([[-1.0, 0.5, 4.0]]), tensor([[0.3, 1.0, 0.1]]), tensor([[0.5, 0.3, 0.2]]))


def posterior(name: str, batch_shape: tuple[int, ...] = (), n: int = 5) -> TransferPosterior:
    """In units that are not the model's: offset 3, scale 2."""
    problem = transfer_problem(batch_shape=batch_shape)
    found = FAMILY[name].at(params_for(name, batch_shape=batch_shape), sources=problem.sources, target=problem.head(n))
    units = type(found.units)(found.units.offset + 3.0, 2.0 * found.units.scale)
    outcome = found._outcome
    predictor = found.predictor
    if isinstance(predictor, Mixture):  # whose members shall differ in their noise
        params = [replace(m.params, noise_var=(k + 1) * m.noise_var) for k, m in enumerate(predictor.members)]
        members = [replace(m, params=p) for m, p in zip(predictor.members, params, strict=True)]
        predictor = replace(predictor, members=tuple(members))
    return type(found)(predictor, type(outcome)(units, outcome.hyperparameters), found.train_targets)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "AUTO"])
@pytest.mark.parametrize("batch_shape", [(), (3,)])
def test_a_measurement_of_a_single_model_is_normal(name: str, batch_shape: tuple[int, ...]) -> None:
    """With the mean and the variance, noise included, that the model has as a BoTorch model."""
    model, X = posterior(name, batch_shape), transfer_problem(batch_shape=batch_shape).Xq
    y = 3.0 + torch.linspace(-2.0, 2.0, X.shape[-2], dtype=torch.float64).expand(X.shape[:-1])
    predicted = [model.posterior(X[..., i : i + 1, :], observation_noise=True) for i in range(X.shape[-2])]
    mean = torch.cat([p.mean for p in predicted], dim=-2).squeeze(-1).numpy()
    sd = torch.cat([p.variance for p in predicted], dim=-2).squeeze(-1).sqrt().numpy()
    assert agree(model.cdf(X, y), torch.from_numpy(stats.norm.cdf(y, mean, sd)), rtol=1e-9)
    assert agree(model.log_density(X, y), torch.from_numpy(stats.norm.logpdf(y, mean, sd)), rtol=1e-9)
    assert agree(model.quantile(X, 0.1), torch.from_numpy(stats.norm.ppf(0.1, mean, sd)), rtol=1e-9)
    low, high = model.interval(X, 0.95)
    assert agree(low, torch.from_numpy(stats.norm.ppf(0.025, mean, sd)), rtol=1e-9)
    assert agree(high, torch.from_numpy(stats.norm.ppf(0.975, mean, sd)), rtol=1e-9)


@pytest.mark.parametrize("batch_shape", [(), (3,), (2, 3)])
@pytest.mark.parametrize("n", [0, 5])
def test_a_measurement_of_auto_is_a_mixture_of_its_candidates(batch_shape: tuple[int, ...], n: int) -> None:
    """Σ w_k P_k(result ≤ y), each candidate with its own noise: not the normal distribution of the same moments."""
    model, X = posterior("AUTO", batch_shape, n), transfer_problem(batch_shape=batch_shape).Xq
    assert isinstance(model, AutoPosterior)
    y = torch.linspace(0.0, 6.0, X.shape[-2], dtype=torch.float64).expand(X.shape[:-1])
    members = [
        TransferPosterior(m, Outcome(model.units, model.hyperparameters), model.train_targets)
        for m in model.mixture.members
    ]
    weights = model.weights.unbind(-1)
    cdf = sum(w.unsqueeze(-1) * m.cdf(X, y) for w, m in zip(weights, members, strict=True))
    density = sum(w.unsqueeze(-1) * m.log_density(X, y).exp() for w, m in zip(weights, members, strict=True))
    assert isinstance(cdf, Tensor)
    assert isinstance(density, Tensor)
    assert agree(model.cdf(X, y), cdf, rtol=1e-9)
    assert agree(model.log_density(X, y), density.log(), rtol=1e-9)
    moments = stats.norm.cdf(y, *(v.numpy() for v in _moments(model, X)))
    assert np.abs(cdf.numpy() - moments).max() > 1e-3


def _moments(model: TransferPosterior, X: Tensor) -> tuple[Tensor, Tensor]:
    mean, var = model.predict(X)
    return mean, (var + (model.predictor.noise_var * model.units.scale**2).unsqueeze(-1)).sqrt()


def test_a_mixture_is_that_of_draws() -> None:
    """A member by its weight, then a value from it: a million of them, to four standard errors."""
    draw, n = np.random.default_rng(0), 1_000_000
    means, sds, weights = (v[0].numpy() for v in (MIXTURE.means, MIXTURE.sds, MIXTURE.weights))
    member = draw.choice(3, size=n, p=weights)
    drawn = draw.normal(means[member], sds[member])
    for y in (-1.5, -1.0, 0.0, 2.0, 3.95, 4.1):
        p = float(MIXTURE.cdf(tensor([y])))
        assert (drawn <= y).mean() == pytest.approx(p, abs=4 * np.sqrt(p * (1 - p) / n))
        share = float(np.mean(np.abs(drawn - y) < 0.01))
        density = float(MIXTURE.log_density(tensor([y])).exp())
        assert share / 0.02 == pytest.approx(density, abs=4 * np.sqrt(density / 0.02 / n) + 0.01 * density)


@pytest.mark.parametrize("p", [1e-6, 0.025, 0.5, 0.75, 0.799, 0.9, 0.975, 1 - 1e-6])
def test_a_quantile_undoes_the_distribution_function(p: float) -> None:
    """For a mixture with gaps between its peaks, and for AUTO in batches."""
    assert float(MIXTURE.cdf(MIXTURE.quantile(p))) == pytest.approx(p, rel=1e-9)
    model, X = posterior("AUTO", (3,)), transfer_problem(batch_shape=(3,)).Xq
    found = model.quantile(X, p)
    assert found.shape == X.shape[:-1]
    assert agree(model.cdf(X, found), torch.full_like(found, p), rtol=1e-9)


def test_a_member_without_weight_leaves_no_trace() -> None:
    """Neither in the density, whose logarithm stays finite, nor in the bracket of a quantile."""
    alone = NormalMixture(tensor([[0.0, 1e30]]), tensor([[1.0, 1.0]]), tensor([[1.0, 0.0]]))
    y = tensor([0.7])
    assert float(alone.cdf(y)) == pytest.approx(stats.norm.cdf(0.7), rel=1e-12)
    assert float(alone.log_density(y)) == pytest.approx(stats.norm.logpdf(0.7), rel=1e-12)
    assert float(alone.quantile(0.9)) == pytest.approx(stats.norm.ppf(0.9), rel=1e-12)


def test_a_density_far_out_has_a_logarithm() -> None:
    """A thousand standard deviations away, where the density itself is 0 in any floating-point number."""
    far = NormalMixture(tensor([[0.0, 1.0]]), tensor([[1.0, 1.0]]), tensor([[0.5, 0.5]]))
    expected = np.log(0.5) + stats.norm.logpdf(1000.0, 1.0, 1.0)
    assert float(far.log_density(tensor([1000.0]))) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", ["SHGP", "AUTO"])
def test_located_points_give_the_same(name: str) -> None:
    """What ``Prior.locate`` keeps of the points is enough."""
    model = (AUTO if name == "AUTO" else FAMILY[name]).using(fit=FAMILY[name].fit.__class__(restarts=1))
    prior = model.learn(PROBLEM.sources)
    found, at = prior.condition(PROBLEM.target), prior.locate(PROBLEM.Xq)
    y = torch.zeros(PROBLEM.Xq.shape[0], dtype=torch.float64)
    assert agree(found.cdf(at, y), found.cdf(PROBLEM.Xq, y), rtol=1e-7)
    assert agree(found.log_density(at, y), found.log_density(PROBLEM.Xq, y), rtol=1e-7)
    assert agree(found.quantile(at, 0.3), found.quantile(PROBLEM.Xq, 0.3), rtol=1e-7)


@pytest.mark.parametrize("p", [0.0, 1.0, -0.1, 95.0, float("nan")])
def test_a_probability_is_between_0_and_1(p: float) -> None:
    """95 is not 95 %."""
    with pytest.raises(InputError, match=r"p must be between 0 and 1, such as 0\.95"):
        MIXTURE.quantile(p)
    with pytest.raises(InputError, match="level must be between 0 and 1"):
        posterior("SHGP").interval(PROBLEM.Xq, p)
