"""Fact 5 and Proposition 2's meaning: BHGP is the average of target posteriors over draws of the source."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from tests.reference import dense
from tests.reference.answers import answer, tensor
from tests.reference.dense import Array, Gaussian
from tests.theorems.strategies import Problem, assert_same, fixed_problem, gp_params, transfer_problems

from headstart import BHGP, GPBO, Dataset, Kernel
from headstart.models.params import ChainParams


def target_posteriors(problem: Problem, f_s: Array) -> tuple[Array, Array]:
    """Means (S, m) and covariance of the target's own process around each of S given source functions.

    ``f_s`` (S, n + m) holds a source function's values at the target's points and at the queries.
    """
    task, n, S = problem.tasks[-1], len(problem.tasks[-1].y), len(f_s)
    around = Dataset(tensor(task.X).expand(S, -1, -1), tensor(task.y - f_s[:, :n]))
    own = ChainParams((gp_params(problem.levels[-1]),))
    model = GPBO.using(kernel=problem.kernel).at(own, target=around)
    mvn = model.posterior(tensor(problem.Xq).expand(S, -1, -1)).distribution
    covs: Array = mvn.covariance_matrix.numpy()
    return f_s[:, n:] + mvn.mean.numpy(), covs


@given(problem=transfer_problems())
def test_one_evaluation_per_column_of_the_source_root(problem: Problem) -> None:
    """The target's posterior mean is linear in the source draw: one evaluation per column of L_s averages exactly."""
    X = np.concatenate([problem.tasks[-1].X, problem.Xq])
    source = problem.first(len(problem.tasks) - 1)
    below = answer(source.posterior(BHGP), X)
    values, vectors = np.linalg.eigh(below.cov)
    L_s = vectors * np.sqrt(np.maximum(values, 0.0))  # any root of the source's covariance
    means, covs = target_posteriors(problem, below.mean + np.concatenate([np.zeros((1, len(X))), L_s.T]))
    spread = means[1:] - means[0]
    assert_same(problem.ask(BHGP), Gaussian(means[0], covs[0] + spread.T @ spread), 1e-8)


def drawn_through_the_levels(problem: Problem, n_draws: int, rng: np.random.Generator) -> Gaussian:
    """The average of the target's posteriors when every level is drawn from its posterior around a draw from below.

    The last level is not drawn: its posteriors are averaged, mean by mean.
    """
    Z = dense.stacked(problem.tasks, problem.Xq)
    f = np.zeros((n_draws, len(Z)))
    for task, level, rows in zip(problem.tasks, problem.levels, dense.blocks(problem.tasks), strict=True):
        prior = Gaussian(np.zeros(len(Z)), dense.kernel(problem.kind, Z, Z, level))
        own = dense.condition(prior, rows, np.zeros(len(task.y)), level.noise_var).cov
        G = dense.gain(prior.cov, rows, level.noise_var)
        f = f + level.offset
        f = f + (task.y - f[:, rows]) @ G.T
        if task is not problem.tasks[-1]:
            values, vectors = np.linalg.eigh(own)
            f = f + rng.normal(size=f.shape) @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
    m = len(problem.Xq)
    return Gaussian(f[:, -m:].mean(0), np.cov(f[:, -m:].T, bias=True) + own[-m:, -m:])


def assert_within_the_error_of(n_draws: int, average: Gaussian, exact: Gaussian) -> None:
    """Within five standard errors.

    What varies between draws is normal with a covariance C ⪯ cov(BHGP), so that the mean of n draws has the variance
    C_ii/n, and an entry of their covariance (C_ii C_jj + C_ij²)/n ≤ 2 C_ii C_jj/n.
    """
    var = np.diag(exact.cov)
    assert (np.abs(average.mean - exact.mean) < 5 * np.sqrt(var / n_draws)).all()
    assert (np.abs(average.cov - exact.cov) < 5 * np.sqrt(2 * np.outer(var, var) / n_draws)).all()


@pytest.mark.parametrize("kernel", Kernel)
@pytest.mark.parametrize("sizes", [(5, 4), (3, 5, 2, 4), (4, 2, 0)])
def test_bhgp_is_the_average_over_sampled_sources(sizes: tuple[int, ...], kernel: Kernel) -> None:
    """Drawing source functions and averaging the target's posteriors gives BHGP, within the error of the draws."""
    problem = fixed_problem(sizes, kernel=kernel)
    S = 200_000
    assert_within_the_error_of(S, drawn_through_the_levels(problem, S, np.random.default_rng(1)), problem.ask(BHGP))


def test_bhgp_averages_the_package_s_own_posteriors() -> None:
    """The same average, with every target posterior computed by the package around draws of its source posterior."""
    problem, S = fixed_problem((5, 4)), 20_000
    X = np.concatenate([problem.tasks[-1].X, problem.Xq])
    torch.manual_seed(0)
    draws = problem.first(1).posterior(BHGP).posterior(tensor(X)).rsample(torch.Size([S])).squeeze(-1).numpy()
    means, covs = target_posteriors(problem, draws)
    average = Gaussian(means.mean(0), np.cov(means.T, bias=True) + covs.mean(0))
    assert_within_the_error_of(S, average, problem.ask(BHGP))
