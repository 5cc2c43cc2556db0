"""The distribution of the next measurement: against SciPy, against draws, and there and back."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from tests.problems import NAMES, agree, candidate, item_of, params_for, quick, tensor, transfer_problem
from torch import Tensor

from headstart import AUTO, FAMILY, GPBO, Dataset, FitOptions, InputError, TransferPosterior
from headstart.models.auto.posterior import AutoPosterior
from headstart.models.chain.beliefs import ExactBeliefs
from headstart.models.chain.layer import Layer
from headstart.models.mixture import Mixture, components
from headstart.models.posterior import FitResult
from headstart.models.predictive import Doubt, NormalMixture, measurement
from headstart.models.star.weights import StarBeliefs

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
        TransferPosterior(m, FitResult(model.units, model.hyperparameters), model.train_targets)
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


@pytest.mark.parametrize("p", [0.0, 1.0, -0.1, 95.0, float("nan")])
def test_a_probability_is_between_0_and_1(p: float) -> None:
    """95 is not 95 %."""
    with pytest.raises(InputError, match=r"p must be between 0 and 1, such as 0\.95"):
        MIXTURE.quantile(p)
    with pytest.raises(InputError, match="level must be between 0 and 1"):
        posterior("SHGP").interval(PROBLEM.Xq, p)


# ── behind an output map ──────────────────────────────────────────────────────────────────────────────────────────


LONG_TAILED = [Dataset(s.X, (1.5 * s.y).exp()) for s in PROBLEM.sources]


@cache
def skewed(name: str, n: int, draws: int = 8) -> TransferPosterior:
    """A fitted model of tasks with a long tail, so that its map is no straight line."""
    target = Dataset(PROBLEM.target.X[:n], (1.5 * PROBLEM.target.y[:n]).exp())
    found = FAMILY[name].using(fit=FitOptions(restarts=1, draws=draws)).learn(LONG_TAILED).condition(target)
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
    """exp(log_density) integrates to 1 over the user's values, and to P(result ≤ y) up to y.

    Some 0.0003 may lie closer to the bound than values can be told from it.
    """
    model, x = skewed(name, n), PROBLEM.Xq[2:3]
    assert model.warp is not None
    low, high = (model.warp.inward(model.quantile(x, p)).item() for p in (1e-5, 1 - 1e-5))
    w = torch.linspace(low, high, 20_001, dtype=torch.float64)  # even steps in mapped units reach all of the tail
    near = torch.logspace(-12, 0, 20_001, dtype=torch.float64)  # and ever smaller ones the bound, for all are positive
    y = torch.cat([model.warp.outward(w), -near, near]).unique()
    X = x.expand(len(y), -1)
    density, cdf = model.log_density(X, y).exp(), model.cdf(X, y)
    mass = torch.cumulative_trapezoid(density, y)
    assert mass[-1].item() == pytest.approx(1 - 2e-5, abs=5e-4)
    assert float((mass - (cdf[1:] - cdf[0])).abs().max()) < 5e-4


@MAPPED
def test_behind_a_map_measurements_are_those_of_draws(name: str, n: int) -> None:
    """A member by its weight, a level, a scale, a value with that member's noise, and back through the map.

    Nine normal distributions stand for Student's: of its probabilities 0.003 are theirs. No bound is approached.
    """
    model, x = skewed(name, n)._with_facts(seen=None), PROBLEM.Xq[2:3]
    assert model.warp is not None
    rng, doubt = np.random.default_rng(1), model._outcome.doubt
    assert doubt is not None
    # ¼ for a source more, and how far the medians are apart
    levels = torch.stack([source.y.quantile(0.5) for source in LONG_TAILED])
    apart = ((levels - levels.quantile(0.5)) / model.warp.spread).square().sum()
    assert doubt.level_var.item() == pytest.approx(((apart + 0.25) / 2 / model.units.scale**2).item(), rel=1e-9)
    assert doubt.freedom == (0.5 * (n + 2) if n else 8.0)
    parts = components(model.predictor)
    weights = np.array([1.0 if w is None else w.item() for _, w in parts])
    moments = [(m, *m.predict_marginal(x)) for m, _ in parts]
    variances = [v.item() + m.noise_var.item() + kriged(m, x, doubt.level_var).item() for m, _, v in moments]
    means, sds = np.array([mean.item() for _, mean, _ in moments]), np.sqrt(variances)
    which = rng.choice(len(parts), size=100_000, p=weights / weights.sum())
    scales = np.sqrt(doubt.freedom / rng.chisquare(doubt.freedom, size=100_000))
    model_units = torch.from_numpy(rng.normal(means[which], sds[which] * scales))
    drawn = model.warp.outward(model.units.offset + model.units.scale * model_units)
    for p in (0.05, 0.5, 0.95):
        q = model.quantile(x, p).item()
        assert float((drawn <= q).double().mean()) == pytest.approx(p, abs=0.003 + 4 * (p * (1 - p) / 100_000) ** 0.5)


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
    prior = FAMILY["SHGP"].using(fit=FitOptions(restarts=1, draws=0)).learn(LONG_TAILED)
    one = Dataset(PROBLEM.target.X[:1], (1.5 * PROBLEM.target.y[:1]).exp())
    posterior = prior.condition(one)
    warp = posterior.warp
    assert warp is not None
    at = FAMILY["SHGP"].at(posterior.hyperparameters, sources=prior.sources, target=prior.inward(one).head(0))
    sure = TransferPosterior(at.predictor, FitResult(at.units, at.hyperparameters), one.y[:0], warp)
    assert posterior.log_evidence.item() == pytest.approx(sure.log_density(one.X, one.y).item(), abs=1e-9)
    stated = at._seen_through(warp, one.y[:0])  # knows neither level nor scale
    assert stated.log_density(one.X, one.y).item() != pytest.approx(sure.log_density(one.X, one.y).item(), abs=1e-3)


# ── what predictors leave out ─────────────────────────────────────────────────────────────────────────────────────


def kriged(layer: Layer, X: Tensor, before: Tensor) -> Tensor:
    """(1 − 1ᵀ K⁻¹ k(x))² / (1ᵀ K⁻¹ 1 + 1/v), with the inverse as it is written."""
    at, n = layer.below.at(X), layer.X.shape[-2]
    k, ones = layer.gain_cov(layer.at, at), torch.ones(n, dtype=torch.float64)
    inverse = torch.linalg.inv(layer.gain_cov(layer.at, layer.at) + layer.noise_var * torch.eye(n, dtype=torch.float64))
    return (1 - ones @ inverse @ k).square() / (ones @ inverse @ ones + 1 / before)


@pytest.mark.parametrize("n", [0, 1, 5])
@pytest.mark.parametrize("name", ["GPBO", "MHGP", "SHGP", "BHGP", "STAR"])
def test_an_unknown_level_is_that_of_ordinary_kriging(name: str, n: int) -> None:
    """By the dense formula, and before any data it is the variance of the level itself."""
    layer = posterior(name, n=n).predictor
    assert isinstance(layer, Layer)
    for v in (1e-3, 0.7, 1e6):
        found = layer.predict_with_level(PROBLEM.Xq, tensor(v))[2]
        assert agree(found, kriged(layer, PROBLEM.Xq, tensor(v)), rtol=1e-9)
        if n == 0:
            assert found.tolist() == pytest.approx([v] * len(PROBLEM.Xq), rel=1e-12)
    assert layer.predict_with_level(PROBLEM.Xq, tensor(0.0))[2].tolist() == [0.0] * len(PROBLEM.Xq)


@pytest.mark.parametrize("v", [0.01, 2.0])
def test_an_unknown_level_adds_what_a_constant_in_the_kernel_adds(v: float) -> None:
    """The posterior variance under K + v 1 1ᵀ less the one under K."""
    layer = posterior("GPBO").predictor
    assert isinstance(layer, Layer)
    at, one = layer.below.at(PROBLEM.Xq), torch.eye(layer.X.shape[-2], dtype=torch.float64)

    def var(constant: float) -> Tensor:
        k = layer.gain_cov(layer.at, at) + constant
        K = layer.gain_cov(layer.at, layer.at) + constant + layer.noise_var * one
        return layer.params.outputscale + constant - (k * torch.linalg.solve(K, k)).sum(-2)

    assert agree(var(0.0), layer.predict_marginal(PROBLEM.Xq)[1], rtol=1e-9)
    assert agree(layer.predict_with_level(PROBLEM.Xq, tensor(v))[2], var(v) - var(0.0), rtol=1e-8)


@pytest.mark.parametrize("n", [0, 4])
def test_unknown_levels_of_a_batch_are_those_of_its_problems(n: int) -> None:
    """Each with a variance of its own, and after fantasies, which have one factor and several values."""
    batch, before = transfer_problem(batch_shape=(3,)), tensor([0.1, 1.0, 10.0])
    layer = posterior("SHGP", (3,), n).predictor
    assert isinstance(layer, Layer)
    found = layer.predict_with_level(batch.Xq, before)[2]
    assert found.shape == (3, batch.Xq.shape[-2])
    for i in range(3):
        alone = item_of(posterior("SHGP", (3,), n).predictor, i)
        assert isinstance(alone, Layer)
        assert agree(found[i], alone.predict_with_level(batch.Xq[i], before[i])[2], rtol=1e-9)
    more = layer.observing(batch.Xq[:, :2], torch.zeros(4, 3, 2, dtype=torch.float64))
    one = layer.observing(batch.Xq[:, :2], torch.zeros(3, 2, dtype=torch.float64))
    assert agree(
        more.predict_with_level(batch.Xq, before)[2],
        one.predict_with_level(batch.Xq, before)[2].expand(4, -1, -1),
        rtol=1e-12,
    )


@pytest.mark.parametrize("freedom", [1.0, 1.5, 2.0, 3.5, 8.0, 30.0])
def test_nine_normals_stand_for_student_s_distribution(freedom: float) -> None:
    """Its probabilities to 0.003 up to a 95 % range and a tail of 0.005 that is at most 0.005 short beyond it."""
    own = NormalMixture(tensor([[2.0]]), tensor([[0.5]]), tensor([[1.0]])).with_unknown_scale(freedom)
    assert own.means.shape == own.sds.shape == own.weights.shape == (1, 9)
    assert own.weights.sum().item() == pytest.approx(1, rel=1e-12)
    for p in (0.05, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 0.95):
        y = stats.t.ppf(p, freedom, 2.0, 0.5)
        assert own.cdf(tensor([y])).item() == pytest.approx(p, abs=3e-3)
    for p in (0.025, 0.975):
        assert own.cdf(tensor([stats.t.ppf(p, freedom, 2.0, 0.5)])).item() == pytest.approx(p, abs=4e-3)
    assert own.quantile(0.5).item() == pytest.approx(2.0, abs=1e-9)
    # a scale as small as the k-th of nine equally probable ones
    expected = 0.5 * np.sqrt(freedom / stats.chi2.isf((np.arange(9) + 0.5) / 9, freedom))
    assert sorted(own.sds[0].tolist()) == pytest.approx(sorted(expected))


@pytest.mark.parametrize("noise", [False, True])
@pytest.mark.parametrize("batch_shape", [(), (3,)])
def test_a_stated_measurement_is_wider_by_level_and_scale(batch_shape: tuple[int, ...], noise: bool) -> None:
    """Every member with its level variance and its noise, then nine scales of each; without a doubt neither."""
    model, X = posterior("AUTO", batch_shape), transfer_problem(batch_shape=batch_shape).Xq
    assert isinstance(model, AutoPosterior)
    doubt = Doubt(torch.full(batch_shape, 0.3, dtype=torch.float64), 3.0)
    stated = measurement(model.predictor, X, doubt, noise=noise)
    sure = measurement(model.predictor, X, None, noise=noise)
    assert sure.means.shape[-1] == 4
    for k, member in enumerate(model.mixture.members):
        assert isinstance(member, Layer)
        mean, var = member.predict_marginal(X)
        own = var + member.noise_var.unsqueeze(-1) if noise else var
        assert agree(sure.sds[..., k], own.sqrt(), rtol=1e-12)
        wider = (own + member.predict_with_level(X, doubt.level_var)[2]).sqrt()
        student = NormalMixture(
            mean.unsqueeze(-1), wider.unsqueeze(-1), torch.ones_like(mean).unsqueeze(-1)
        ).with_unknown_scale(3.0)
        assert agree(stated.means[..., 9 * k : 9 * k + 9], student.means, rtol=1e-12)
        assert agree(stated.sds[..., 9 * k : 9 * k + 9], student.sds, rtol=1e-12)
        weights = stated.weights[..., 9 * k : 9 * k + 9].expand(student.weights.shape)
        assert agree(weights, model.weights[..., k, None, None] * student.weights, rtol=1e-12)


def test_what_auto_states_is_the_average_of_what_its_candidates_state() -> None:
    """Each as a model of its own, also in a batch: all of them know as little of level and scale."""
    problem = transfer_problem(batch_shape=(2,), sizes=(9, 6), n_target=3)
    model = AUTO.using(fit=FitOptions(restarts=1)).learn(problem.sources).condition(problem.target)
    assert isinstance(model, AutoPosterior)
    y = model.predict(problem.Xq)[0] + 0.3
    whole, second = torch.zeros_like(y), torch.zeros_like(y[1])
    for k, weight in enumerate(model.weights.unbind(-1)):
        whole = whole + weight.unsqueeze(-1) * candidate(model, k).cdf(problem.Xq, y)
        second = second + weight[1] * candidate(model, k).problem(1).cdf(problem.Xq[1], y[1])
    assert agree(whole, model.cdf(problem.Xq, y), rtol=1e-9)
    assert agree(second, model.cdf(problem.Xq, y)[1], rtol=1e-9)


def test_nothing_is_known_without_sources_and_before_two_results() -> None:
    """One result shows where a target lies and not how much it varies; a source that is let in shows both."""
    x = torch.linspace(0, 1, 20, dtype=torch.float64).unsqueeze(-1)
    past = Dataset(x, (6 * x).sin().squeeze(-1))
    for n in (0, 1, 2):
        target = past.head(n)
        assert bool(quick(GPBO).learn().condition(target).knows_nothing) is (n < 2)
        assert not bool(quick(AUTO).learn([past]).condition(target).knows_nothing)


def test_stars_of_the_same_sources_ask_them_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """AUTO's kin and star share what the sources say at a point; what is stated is what each says by itself."""
    generator = torch.Generator().manual_seed(0)
    X = torch.rand(3, 25, 2, generator=generator, dtype=torch.float64)
    sources = [Dataset(x, (x - 0.1 * i).square().sum(-1)) for i, x in enumerate(X)]
    posterior = AUTO.learn(sources).condition(Dataset(X[0, :6], X[0, :6].sum(-1)))
    points = torch.rand(7, 2, generator=generator, dtype=torch.float64)
    apart = [member.predict_marginal(points) for member, _ in components(posterior.predictor)]
    asked = []
    at = ExactBeliefs._at

    def counted(self: ExactBeliefs, X: Tensor) -> Any:
        asked.append(self)
        return at(self, X)

    monkeypatch.setattr(ExactBeliefs, "_at", counted)
    together = measurement(posterior.predictor, points, None, noise=False)
    stars = [m for m, _ in components(posterior.predictor) if isinstance(m.below, StarBeliefs)]
    assert [len(star.below.members) for star in stars] == [3, 3, 1]
    assert sum(any(one is member for member in stars[0].below.members) for one in asked) == 3
    assert agree(together.means, torch.stack([mean for mean, _ in apart], -1), rtol=1e-12)
    assert agree(together.sds, torch.stack([var.sqrt() for _, var in apart], -1), rtol=1e-9)
