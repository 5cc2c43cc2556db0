"""The distribution of the next measurement: against SciPy, against draws, and there and back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats
from tests.problems import NAMES, agree, params_for, tensor, transfer_problem
from torch import Tensor

from headstart import AUTO, FAMILY, Dataset, FitOptions, InputError, TransferPosterior
from headstart.models.auto_posterior import AutoPosterior
from headstart.models.layer import Layer
from headstart.models.mixture import Mixture, components
from headstart.models.predictive import NormalMixture
from headstart.models.predictor import Outcome

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
        layers = [m for m in predictor.members if isinstance(m, Layer)]
        params = [replace(m.params, noise_var=(k + 1) * m.noise_var) for k, m in enumerate(layers)]
        members = [replace(m, params=p) for m, p in zip(layers, params, strict=True)]
        assert len(members) == len(predictor.members)
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


# ── behind an output map ──────────────────────────────────────────────────────────────────────────────────────────


def skewed(name: str, n: int, draws: int = 8) -> TransferPosterior:
    """A fitted model of tasks with a long tail, so that its map is no straight line."""
    sources = [Dataset(s.X, (1.5 * s.y).exp()) for s in PROBLEM.sources]
    target = Dataset(PROBLEM.target.X[:n], (1.5 * PROBLEM.target.y[:n]).exp())
    found = FAMILY[name].using(fit=FitOptions(restarts=1, draws=draws)).learn(sources).condition(target)
    assert found.warp is not None
    assert found.warp.power.item() < 0.6
    return found


MAPPED = pytest.mark.parametrize(("name", "n"), [("SHGP", 0), ("SHGP", 5), ("HGP", 3), ("AUTO", 1), ("AUTO", 5)])


@MAPPED
@pytest.mark.parametrize("p", [1e-4, 0.025, 0.5, 0.9, 1 - 1e-4])
def test_behind_a_map_a_quantile_undoes_the_distribution_function(name: str, n: int, p: float) -> None:
    """In the user's units, both ways."""
    model, X = skewed(name, n), PROBLEM.Xq
    y = model.quantile(X, p)
    assert agree(model.cdf(X, y), torch.full_like(y, p), rtol=1e-8)


@MAPPED
def test_behind_a_map_a_density_adds_up_to_1(name: str, n: int) -> None:
    """exp(log_density) integrates to 1 over the user's values, and to P(result ≤ y) up to y."""
    model, x = skewed(name, n), PROBLEM.Xq[2:3]
    assert model.warp is not None
    w = torch.linspace(-40, 40, 40_001, dtype=torch.float64)  # even steps in mapped units reach all of the tail
    y = model.warp.outward(w)
    inside = y.abs() < 1e60
    y = y[inside]
    X = x.expand(len(y), -1)
    density, cdf = model.log_density(X, y).exp(), model.cdf(X, y)
    mass = torch.cumulative_trapezoid(density, y)
    assert mass[-1].item() == pytest.approx(1, abs=1e-4)
    assert float((mass - (cdf[1:] - cdf[0])).abs().max()) < 1e-4


@MAPPED
def test_behind_a_map_measurements_are_those_of_draws(name: str, n: int) -> None:
    """A member by its weight, a value from it with that member's noise, and back through the map."""
    model, x = skewed(name, n), PROBLEM.Xq[2:3]
    assert model.warp is not None
    rng = np.random.default_rng(1)
    parts = components(model.predictor, x)
    weights = np.array([1.0 if w is None else w.item() for _, w, _ in parts])
    found = [(*m.predict_marginal(x), m.noise_var) for m, _, _ in parts]
    means, sds = (np.array(v) for v in zip(*[(m.item(), (v + s).sqrt().item()) for m, v, s in found], strict=True))
    which = rng.choice(len(parts), size=100_000, p=weights / weights.sum())
    model_units = torch.from_numpy(rng.normal(means[which], sds[which]))
    drawn = model.warp.outward(model.units.offset + model.units.scale * model_units)
    for p in (0.05, 0.5, 0.95):
        q = model.quantile(x, p).item()
        assert float((drawn <= q).double().mean()) == pytest.approx(p, abs=4 * (p * (1 - p) / 100_000) ** 0.5)


@pytest.mark.parametrize("n", [0, 5])
def test_means_and_variances_behind_a_map_are_those_of_f(n: int) -> None:
    """``predict`` and ``posterior`` agree, and both are the moments of f itself, whose tail the map has made long."""
    model, X = skewed("SHGP", n, draws=0), PROBLEM.Xq
    assert model.warp is not None
    mean, var = model.predict(X)
    through = model.posterior(X)
    assert agree(through.mean.squeeze(-1), mean, rtol=1e-9)
    assert agree(through.variance.squeeze(-1), var, rtol=1e-9)
    inner, spread = model.predictor.predict_marginal(X)
    normal = torch.randn(200_000, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    f = model.warp.outward(model.units.offset + model.units.scale * (inner + spread.sqrt() * normal))
    error = f.std(0) / 200_000**0.5
    assert bool(((f.mean(0) - mean).abs() < 5 * error).all())
    assert agree(f.var(0), var, rtol=0.1)


def test_the_evidence_behind_a_map_is_that_of_the_users_values() -> None:
    """log p(y) of one value is its log density before it was seen, at the same hyperparameters."""
    sources = [Dataset(s.X, (1.5 * s.y).exp()) for s in PROBLEM.sources]
    prior = FAMILY["SHGP"].using(fit=FitOptions(restarts=1, draws=0)).learn(sources)
    one = Dataset(PROBLEM.target.X[:1], (1.5 * PROBLEM.target.y[:1]).exp())
    posterior = prior.condition(one)
    warp = posterior.warp
    assert warp is not None
    before = (
        FAMILY["SHGP"]
        .at(posterior.hyperparameters, sources=prior.sources, target=prior.inward(one).head(0))
        .seen_through(warp, one.y[:0])
    )
    assert posterior.log_evidence.item() == pytest.approx(before.log_density(one.X, one.y).item(), abs=1e-9)
