"""Fact 2: how sure the three sequential models are, and of what BHGP's covariance is the error."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from tests.reference import dense
from tests.reference.answers import tensor
from tests.reference.dense import Array
from tests.theorems.strategies import Problem, fixed_problem, transfer_problems

from headstart import BHGP, MHGP, SHGP, Dataset


def smallest_eigenvalue(cov: Array) -> float:
    return float(np.linalg.eigvalsh(cov).min())


def weights_of_mhgp(problem: Problem) -> Array:
    """The weight of every observation in the mean of MHGP: its answers to y = e_1, e_2, … less that to y = 0."""
    sizes = [len(task.y) for task in problem.tasks]
    N = sum(sizes)
    y = torch.cat([torch.zeros(1, N, dtype=torch.float64), torch.eye(N, dtype=torch.float64)]).split(sizes, dim=-1)
    tasks = [Dataset(tensor(task.X).expand(N + 1, -1, -1), y_i) for task, y_i in zip(problem.tasks, y, strict=True)]
    model = MHGP.using(kernel=problem.kernel).at(problem.chain, sources=tasks[:-1], target=tasks[-1])
    mean, _ = model.predict(tensor(problem.Xq))
    weights: Array = (mean[1:] - mean[0]).T.numpy()
    return weights


@given(problem=transfer_problems())
def test_boosting_is_cautious_and_the_mean_alone_is_bold(problem: Problem) -> None:
    """cov(MHGP) ⪯ cov(SHGP) ⪯ cov(BHGP) in the Loewner order."""
    bold, bayes, cautious = (problem.ask(model).cov for model in (MHGP, SHGP, BHGP))
    assert smallest_eigenvalue(bayes - bold) > -1e-10
    assert smallest_eigenvalue(cautious - bayes) > -1e-10


@pytest.mark.parametrize("sizes", [(4, 3), (3, 5, 2, 4)])
def test_the_order_is_strict(sizes: tuple[int, ...]) -> None:
    """The three covariances differ visibly: the order does not hold because they were one."""
    problem = fixed_problem(sizes)
    bold, bayes, cautious = (problem.ask(model).cov for model in (MHGP, SHGP, BHGP))
    assert np.trace(bayes - bold) > 1e-3
    assert np.trace(cautious - bayes) > 1e-3


@given(problem=transfer_problems())
def test_the_covariance_of_bhgp_is_the_error_of_mhgp(problem: Problem) -> None:
    """cov(BHGP) is the mean squared error of the MHGP predictor under the SHGP model, at any depth."""
    weights = weights_of_mhgp(problem)
    prior = dense.chain(*problem.dense).prior(problem.Xq).cov  # of all observations and f(X_q)
    error = np.concatenate([-weights, np.eye(len(problem.Xq))], axis=-1)  # f − f̂ = [−γ, I] (y, f)
    np.testing.assert_allclose(problem.ask(BHGP).cov, error @ prior @ error.T, atol=1e-9)
