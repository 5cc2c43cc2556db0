"""Several predictors of one target and how far each is believed."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.problems import (
    agree,
    auto_posterior,
    behind_the_map,
    candidate,
    item_of,
    most_probable,
    quick,
    tensors_in,
    transfer_problem,
)
from torch import Tensor

from headstart import FAMILY, GPBO, STAR
from headstart.models.auto.posterior import AutoPosterior
from headstart.models.chain.layer import Layer
from headstart.models.mixture import Mixture
from headstart.models.posterior import map_tensors
from headstart.tuning import PLAIN_TUNING

PROBLEM = transfer_problem()


def moments(mixture: Mixture, X: Tensor) -> tuple[Tensor, Tensor]:
    """E f and E f fᵀ − E f E fᵀ of a draw: first a member by its weight, then f from it."""
    first, second = X.new_zeros(()), X.new_zeros(())
    for weight, member in zip(mixture.weights.unbind(-1), mixture.members, strict=True):
        mean, cov = member.predict(X)
        first = first + weight[..., None] * mean
        second = second + weight[..., None, None] * (cov + mean.unsqueeze(-1) * mean.unsqueeze(-2))
    return first, second - first.unsqueeze(-1) * first.unsqueeze(-2)


@pytest.mark.parametrize("batch_shape", [(), (3,)])
@pytest.mark.parametrize("n", [0, 5])
def test_moments_are_those_of_a_draw_from_a_drawn_member(batch_shape: tuple[int, ...], n: int) -> None:
    """Mean and covariance of the mixture, whose diagonal is what ``predict_marginal`` gives."""
    mixture, X = auto_posterior(n=n, batch_shape=batch_shape).mixture, transfer_problem(batch_shape=batch_shape).Xq
    mean, cov = mixture.predict(X)
    expected = moments(mixture, X)
    assert agree(mean, expected[0], rtol=1e-12)
    assert agree(cov, expected[1], rtol=1e-12)
    marginal = mixture.predict_marginal(X)
    assert agree(marginal[0], mean, rtol=1e-12)
    assert agree(marginal[1], cov.diagonal(dim1=-2, dim2=-1), rtol=1e-10)


def test_a_member_that_is_believed_alone_is_the_mixture() -> None:
    """Weights of 0 leave no trace: neither in the moments nor in the evidence nor in the noise."""
    mixture, X = auto_posterior().mixture, PROBLEM.Xq
    for k, member in enumerate(mixture.members):
        alone = Mixture(mixture.members, torch.eye(4, dtype=torch.float64)[k])
        for a, b in zip(alone.predict(X), member.predict(X), strict=True):
            assert agree(a, b, rtol=1e-12)
        assert alone.log_evidence().item() == pytest.approx(member.log_evidence().item())
        assert alone.noise_var.item() == pytest.approx(member.noise_var.item())


def test_evidence_and_noise_are_averages() -> None:
    """log Σ w p(y), and Σ w σ²."""
    mixture = auto_posterior().mixture
    densities = torch.stack([member.log_evidence().exp() for member in mixture.members])
    assert mixture.log_evidence().exp().item() == pytest.approx(float(mixture.weights @ densities))
    noises = torch.stack([member.noise_var for member in mixture.members])
    assert mixture.noise_var.item() == pytest.approx(float(mixture.weights @ noises))


def test_new_observations_reach_every_member_and_leave_the_weights() -> None:
    """A mixture after more observations is the mixture of its members after them."""
    short, full = auto_posterior(n=3).mixture, auto_posterior().mixture
    more = short.observing(PROBLEM.target.X[3:], PROBLEM.target.y[3:])
    assert torch.equal(more.weights, short.weights)
    for a, b in zip(more.predict(PROBLEM.Xq), full.predict(PROBLEM.Xq), strict=True):
        assert agree(a, b, rtol=1e-9)


@pytest.mark.parametrize("batch_shape", [(3,), (2, 3)])
def test_a_problem_of_a_batch_is_this_problem_alone(batch_shape: tuple[int, ...]) -> None:
    """Each candidate for one problem, counted in order, predicts what it does in the batch and has its own numbers."""
    problem, batch = transfer_problem(batch_shape=batch_shape), auto_posterior(batch_shape=batch_shape)
    i = tuple(size - 1 for size in batch_shape)
    one = batch.problem(batch.batch_shape.numel() - 1)
    assert isinstance(one, AutoPosterior)
    models = (STAR, STAR, STAR.using(pooled=True), GPBO)
    for k, model in enumerate(models):
        alone = candidate(one, k)
        assert alone.batch_shape == ()
        together = [part[i] for part in candidate(batch, k).predict(problem.Xq)]
        for a, b in zip(alone.predict(problem.Xq[i]), together, strict=True):
            assert agree(a, b, rtol=1e-10)
        assert torch.equal(alone.train_targets, problem.target.y[i])
        # what it says of itself makes it again
        sources = [item_of(s, i) for s in problem.sources] if model.needs_sources else ()
        again = model.at(alone.hyperparameters, sources=sources, target=item_of(problem.target, i))
        for a, b in zip(again.predict(problem.Xq[i]), together, strict=True):
            assert agree(a, b, rtol=1e-9)


def test_every_tensor_and_shape_of_a_structure_is_mapped() -> None:
    """At any depth, and nothing else."""
    value: Any = (torch.arange(3), [torch.zeros(2, 3), {"a": torch.Size([3, 5])}], 7, "name")
    first, (second, shapes), number, name = map_tensors(value, lambda t: t[1], lambda size: size[1:])
    assert (first.item(), second.tolist(), shapes, number, name) == (1, [0.0] * 3, {"a": torch.Size([5])}, 7, "name")


# ── one model with different hyperparameters ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["MHGP", "SHGP", "BHGP", "STAR"])
@pytest.mark.parametrize("n", [0, 3])
def test_with_sources_the_most_probable_hyperparameters_are_taken(name: str, n: int) -> None:
    """However few observations there are, and however many draws are asked for: to the last bit."""
    problem = transfer_problem(sizes=(8,), n_target=3)
    model = quick(FAMILY[name])
    assert model.fit.draws > 0
    drawn, alone = (m.learn(problem.sources).condition(problem.head(n)) for m in (model, most_probable(model)))
    assert isinstance(drawn.predictor, Layer)
    for a, b in zip(tensors_in(drawn.predictor), tensors_in(alone.predictor), strict=True):
        assert torch.equal(a, b)


def test_a_target_of_few_observations_alone_is_a_mixture_over_its_hyperparameters() -> None:
    """Up to 24 of them, the most probable ones first, which are the ones that are told; then it is one layer."""
    problem = transfer_problem(sizes=(8,), n_target=PLAIN_TUNING.draws_up_to_results + 1)
    model = quick(FAMILY["GPBO"])
    prior, certain = model.learn(problem.sources), most_probable(model).learn(problem.sources)
    for n in (0, 3, PLAIN_TUNING.draws_up_to_results):
        drawn = prior.condition(problem.head(n), seed=n)
        predictor, alone = drawn.predictor, certain.condition(problem.head(n), seed=n)
        assert isinstance(predictor, Mixture)
        assert len(predictor.members) == predictor.weights.shape[-1] == 9
        assert predictor.weights.sum().item() == pytest.approx(1)
        for a, b in zip(predictor.members[0].predict(problem.Xq), alone.predictor.predict(problem.Xq), strict=True):
            assert agree(a, b, rtol=1e-9)
        for a, b in zip(tensors_in(drawn.hyperparameters), tensors_in(alone.hyperparameters), strict=True):
            torch.testing.assert_close(a, b)
    full = prior.condition(problem.target).predictor
    assert isinstance(full, Layer)


def test_draws_make_predictions_less_sure_where_little_is_known() -> None:
    """Between three observations the variance is larger than at the most probable hyperparameters, on average."""
    larger = []
    for seed in range(6):
        problem = transfer_problem(n_target=3, seed=seed, n_queries=50)
        drawn, alone = (
            behind_the_map(problem.posterior(model)).predict(problem.Xq)[1].mean()
            for model in (quick(FAMILY["GPBO"]), most_probable(quick(FAMILY["GPBO"])))
        )
        larger.append(float(drawn / alone))
    assert sum(larger) / 6 > 1.02
