"""Many problems at once: each gives what it gives alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from tests.problems import (
    REPRESENTATIVES,
    VARIANTS,
    agree,
    behind_the_map,
    in_turn,
    item_of,
    most_probable,
    params_for,
    predictions,
    quick,
    transfer_problem,
)

from headstart import FAMILY, Dataset


def _sources(name: str, problem_sources: tuple[Dataset, ...]) -> tuple[Dataset, ...]:
    return () if name == "GPBO" else problem_sources


@pytest.mark.parametrize(("name", "n"), in_turn([0, 1, 4]))
def test_a_batch_at_given_hyperparameters_is_its_problems(name: str, n: int) -> None:
    """At equal hyperparameters mean, covariance and evidence of a batch are those of each problem, to 1e-10."""
    problem = transfer_problem(batch_shape=(3,), n_target=4)
    params = params_for(name, batch_shape=(3,))
    model, sources, target = FAMILY[name], _sources(name, problem.sources), problem.head(n)
    batch = model.at(params, sources=sources, target=target)
    together = batch.posterior(problem.Xq).distribution
    assert batch.batch_shape == (3,)
    for i in range(3):
        one = model.at(item_of(params, i), sources=item_of(sources, i), target=item_of(target, i))
        alone = one.posterior(problem.Xq[i]).distribution
        assert agree(together.mean[i], alone.mean, rtol=1e-10)
        assert agree(together.covariance_matrix[i], alone.covariance_matrix, rtol=1e-10)
        assert agree(batch.predict(problem.Xq)[1][i], one.predict(problem.Xq[i])[1], rtol=1e-10)
        assert agree(batch.log_evidence[i], one.log_evidence, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("name", "variant"), in_turn(VARIANTS))
def test_a_fitted_batch_is_its_problems(name: str, variant: str) -> None:
    """Learnt and conditioned together, every problem predicts what it predicts alone."""
    problem = transfer_problem(batch_shape=(2,), sizes=(6, 4), n_target=4)
    model = VARIANTS[variant](FAMILY[name])
    if variant == "paper":  # likelihood alone leaves flat valleys, where rounding would decide in the end
        model = model.using(fit=replace(model.fit, max_iterations=20))
    prior = model.learn(problem.sources)
    together = predictions(prior.condition(problem.target), problem.Xq)
    assert together.shape == (2, 2, 7)
    for i in range(2):
        alone = predictions(item_of(problem, i).posterior(model), problem.Xq[i])
        assert agree(together[0, i], alone[0], rtol=1e-5)
        assert agree(together[1, i], alone[1], rtol=1e-5)


@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_two_leading_dimensions_are_a_batch_too(name: str) -> None:
    """batch_shape (2, 3) works as (6,) does; reports have the same shape in front."""
    problem = transfer_problem(batch_shape=(2, 3), sizes=(5, 3), n_target=3)
    flat = [Dataset(s.X.flatten(0, 1), s.y.flatten(0, 1)) for s in (*problem.sources, problem.target)]
    model = quick(FAMILY[name])
    posterior = problem.posterior(model)
    other = model.learn(flat[:-1]).condition(flat[-1])
    assert posterior.batch_shape == (2, 3)
    assert posterior.fit_reports[-1].objective.shape == (2, 3, 1)
    assert posterior.fit_reports[-1].best.shape == (2, 3)
    one, two = predictions(posterior, problem.Xq), predictions(other, problem.Xq.flatten(0, 1))
    assert torch.equal(one.flatten(1, 2), two)


@pytest.mark.parametrize(("name", "n"), in_turn([0, 1, 2]))
def test_a_batch_works_with_few_observations(name: str, n: int) -> None:
    """N_t = 0, 1 and 2 work in a batch, and read back."""
    problem = transfer_problem(batch_shape=(2,), sizes=(5, 3), n_target=2)
    model = most_probable(quick(FAMILY[name]))
    prior = model.learn(problem.sources)
    posterior = prior.condition(problem.head(n))
    mean, var = posterior.predict(problem.Xq)
    assert mean.shape == var.shape == (2, 7)
    assert bool((var > 0).all())
    again = model.at(
        posterior.hyperparameters, sources=_sources(name, prior.sources), target=prior.inward(problem.head(n))
    )
    assert agree(predictions(again, problem.Xq), predictions(behind_the_map(posterior), problem.Xq), rtol=1e-9)


@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_a_batch_of_one_is_a_batch(name: str) -> None:
    """A leading dimension of 1 stays where it is."""
    problem = transfer_problem(batch_shape=(1,), sizes=(5, 3), n_target=3)
    posterior = problem.posterior(quick(FAMILY[name]))
    alone = item_of(problem, 0).posterior(quick(FAMILY[name]))
    assert posterior.batch_shape == (1,)
    together = predictions(posterior, problem.Xq)
    assert together.shape == (2, 1, 7)
    assert agree(together[:, 0], predictions(alone, problem.Xq[0]), rtol=1e-6)
    assert posterior.posterior(problem.Xq).mean.shape == (1, 7, 1)


@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_one_set_of_hyperparameters_serves_all_problems(name: str) -> None:
    """Hyperparameters without a batch are the same for every problem."""
    problem = transfer_problem(batch_shape=(3,))
    params, sources = params_for(name), _sources(name, problem.sources)
    together = predictions(FAMILY[name].at(params, sources=sources, target=problem.target), problem.Xq)
    for i in range(3):
        one = FAMILY[name].at(params, sources=item_of(sources, i), target=item_of(problem.target, i))
        assert agree(together[:, i], predictions(one, problem.Xq[i]), rtol=1e-10)


@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_all_problems_can_be_asked_at_the_same_points(name: str) -> None:
    """Queries without the batch dimension are put to every problem."""
    problem = transfer_problem(batch_shape=(3,))
    sources, shared = _sources(name, problem.sources), problem.Xq[0]
    posterior = FAMILY[name].at(params_for(name, batch_shape=(3,)), sources=sources, target=problem.target)
    assert agree(predictions(posterior, shared), predictions(posterior, shared.expand(3, -1, -1)), rtol=1e-13)
    cov = posterior.posterior(shared).distribution.covariance_matrix
    assert cov.shape == (3, 7, 7)
