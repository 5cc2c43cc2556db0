"""The surface of a layer: its mean and variance as one function, with the gradient."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from tests.problems import JOINT, STARS, agree, gp_params, most_probable, params_for, quick, tensor, transfer_problem
from torch import Tensor

from headstart import FAMILY, STAR, ChainParams, Dataset, Kernel, StarParams, TransferPosterior
from headstart.decide.surface import Surface, surface_of
from headstart.gp.hyperparameters import blind_to
from headstart.models.chain.layer import Layer
from headstart.models.star.star import StarPrior

PROBLEM = transfer_problem(sizes=(9, 4, 6), n_target=5, d=3, n_queries=11)


def layer_of(posterior: TransferPosterior) -> Layer:
    assert isinstance(posterior.predictor, Layer)
    return posterior.predictor


def layer(name: str, params: Any = None, *, n: int = 5, n_sources: int = 3, kernel: Kernel = Kernel.RBF) -> Layer:
    """A layer at given hyperparameters; the sources differ in size, and their weights in sign."""
    n_sources = 0 if name == "GPBO" else n_sources
    params = params_for(name, d=3, n_sources=n_sources) if params is None else params
    model = FAMILY[name].using(kernel=kernel)
    return layer_of(model.at(params, sources=PROBLEM.sources[:n_sources], target=PROBLEM.head(n)))


def surface(of: Layer) -> Surface:
    found = surface_of(of)
    assert found is not None
    return found


def require_same(of: Layer, X: Tensor = PROBLEM.Xq, *, rtol: float = 1e-10) -> None:
    """Mean, variance, and the gradient of any mixture of both, are those of the layer."""
    found = surface(of)
    X = X.clone().requires_grad_()
    mean, var = of.predict_marginal(X)
    by_mean, by_var = torch.linspace(-1, 2, len(X)).double(), torch.linspace(3, -1, len(X)).double()
    (gradient,) = torch.autograd.grad((by_mean * mean + by_var * var).sum(), X)
    points = X.detach().numpy()
    found_mean, found_var, backward = found.at(points)
    assert agree(torch.from_numpy(found_mean[0]), mean.detach(), rtol=rtol)
    assert agree(torch.from_numpy(found_var), var.detach(), rtol=rtol)
    back = torch.from_numpy(backward(by_mean.unsqueeze(0).numpy(), by_var.numpy()))
    assert agree(back, gradient, rtol=10 * rtol)
    assert agree(torch.from_numpy(found.mean(points)[0]), mean.detach(), rtol=rtol)


@pytest.mark.parametrize("kernel", Kernel)
@pytest.mark.parametrize("n", [0, 1, 5])
@pytest.mark.parametrize("name", ["GPBO", "SHGP", *JOINT, *STARS])
def test_a_surface_is_the_layer(name: str, n: int, kernel: Kernel) -> None:
    """With and without target data, for both kernels."""
    require_same(layer(name, n=n, kernel=kernel))


@pytest.mark.parametrize("name", ["SHGP", "STAR"])
@pytest.mark.parametrize("n_sources", [1, 2])
def test_few_sources_are_no_special_case(name: str, n_sources: int) -> None:
    """One or two do as well as three."""
    require_same(layer(name, n_sources=n_sources))


@pytest.mark.parametrize("n", [0, 5])
@pytest.mark.parametrize("name", STARS)
def test_every_weighting_of_a_star_has_its_surface(name: str, n: int) -> None:
    """As fitted to data: weights that are integrated out, that are free, and that are shares."""
    require_same(layer_of(PROBLEM.posterior(most_probable(quick(FAMILY[name])), n=n)))


@pytest.mark.parametrize("name", STARS)
def test_a_source_that_is_not_let_in_does_not_count(name: str) -> None:
    """Its weight is 0, alone or with all of the others."""
    prior = most_probable(quick(FAMILY[name])).learn(PROBLEM.sources)
    assert isinstance(prior, StarPrior)
    for trust in (tensor([1.0, 0.0, 1.0]), tensor([0.0, 0.0, 0.0])):
        gated = replace(prior, alone=replace(prior.alone, trust=trust))
        require_same(layer_of(gated.condition(PROBLEM.target)))


@pytest.mark.parametrize("name", ["GPBO", "SHGP", "STAR"])
def test_a_kernel_may_be_blind_to_an_input(name: str) -> None:
    """An infinite lengthscale in a source, or in every task: then the gradient vanishes along that input."""
    params = params_for(name, d=3, n_sources=0 if name == "GPBO" else 3)
    first = (blind_to(params.levels[0], (1,)), *params.levels[1:])
    require_same(layer(name, replace(params, levels=first)))
    every = layer(name, replace(params, levels=tuple(blind_to(level, (1,)) for level in params.levels)))
    require_same(every)
    mean, _, backward = surface(every).at(PROBLEM.Xq.numpy())
    one = np.ones_like(mean)
    assert np.all(backward(one, one[0])[:, 1] == 0)


@pytest.mark.parametrize("kernel", Kernel)
@pytest.mark.parametrize("name", ["GPBO", "SHGP", "STAR"])
def test_almost_no_noise_costs_few_digits(name: str, kernel: Kernel) -> None:
    """With a noise of 1e-6, and at the data, where the variance is as small."""
    params = params_for(name, d=3, n_sources=0 if name == "GPBO" else 3)
    exact = replace(params, levels=tuple(replace(level, noise_var=tensor(1e-6)) for level in params.levels))
    of = layer(name, exact, kernel=kernel)
    require_same(of, rtol=1e-8)
    data = PROBLEM.target.X
    variance = torch.from_numpy(surface(of).at(data.numpy())[1])
    assert float((variance - of.predict_marginal(data)[1]).abs().max()) < 1e-12
    assert 0 < float(variance.min()) < 2e-6


def test_many_points_are_seen_in_parts() -> None:
    """300 points at once are what they are one by one."""
    found = surface(layer("STAR"))
    X = torch.rand(300, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64).numpy()
    mean, var = found.predict(X)
    alone = [found.at(x[None]) for x in X]
    assert np.allclose(mean, np.concatenate([a for a, _, _ in alone], axis=1), rtol=0, atol=1e-12)
    assert np.allclose(var, np.concatenate([a for _, a, _ in alone]), rtol=0, atol=1e-12)
    assert np.allclose(found.mean(X), mean, rtol=0, atol=1e-12)


def test_several_means_share_a_variance() -> None:
    """Each is that of a layer whose last observations were others; their gradients add up."""
    X, y = PROBLEM.Xq[:2], tensor([0.3, -0.4])
    start = layer("SHGP")
    seen, other = start.observing(X, y), start.observing(X, y + tensor([0.5, 0.2]))
    both = surface(seen).shifted(torch.stack([0 * y, (other.z - seen.z)[-2:]]).numpy())
    points = PROBLEM.Xq[2:].numpy()
    mean, var = both.predict(points)
    for found, of in zip(mean, (seen, other), strict=True):
        expected, expected_var = of.predict_marginal(PROBLEM.Xq[2:])
        assert agree(torch.from_numpy(found), expected, rtol=1e-10)
        assert agree(torch.from_numpy(var), expected_var, rtol=1e-10)
    weight = np.linspace(-1, 1, mean.size).reshape(mean.shape)
    apart = [surface(of) for of in (seen, other)]
    none = np.zeros(len(points))
    parts = [own.at(points)[2](w[None], none) for own, w in zip(apart, weight, strict=True)]
    assert np.allclose(both.at(points)[2](weight, none), sum(parts), rtol=0, atol=1e-10)


def test_rows_outside_the_cube_are_rows() -> None:
    """A source that was also run elsewhere has its surface."""
    far = Dataset(3 * PROBLEM.sources[0].X - 1, PROBLEM.sources[0].y)
    params = params_for("STAR", d=3, n_sources=1)
    assert isinstance(params, StarParams)
    require_same(layer_of(STAR.at(params, sources=[far], target=PROBLEM.target)))


@pytest.mark.parametrize("name", ["MHGP", "BHGP", "RGPE", "AUTO"])
def test_other_predictors_have_none(name: str) -> None:
    """Layers that forget or boost what is below, ensembles and mixtures."""
    posterior = FAMILY[name].at(params_for(name, d=3, n_sources=3), sources=PROBLEM.sources, target=PROBLEM.target)
    assert surface_of(posterior.predictor) is None


@pytest.mark.parametrize("batch_shape", [(1,), (2, 1)])
@pytest.mark.parametrize("name", ["GPBO", "SHGP", "STAR"])
def test_a_batch_has_none(name: str, batch_shape: tuple[int, ...]) -> None:
    """Not even a batch of one, and neither has a layer with fantasies."""
    problem = transfer_problem(batch_shape=batch_shape)
    n_sources = 0 if name == "GPBO" else 2
    params = params_for(name, n_sources=n_sources, batch_shape=batch_shape)
    posterior = FAMILY[name].at(params, sources=problem.sources[:n_sources], target=problem.target)
    assert surface_of(posterior.predictor) is None
    alone = layer("GPBO", ChainParams((gp_params(3),)))
    assert surface_of(alone.observing(PROBLEM.Xq[:1], tensor([[0.1], [0.2]]))) is None
