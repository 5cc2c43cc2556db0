"""Fact 8: normalising a residual changes nothing but the names of the hyperparameters, and units must not matter."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.problems import REPRESENTATIVES, behind_the_map, in_turn, plainly
from tests.reference import dense
from tests.reference.answers import answer
from tests.reference.dense import Array, Gaussian, Level, Task
from tests.theorems.strategies import Problem, assert_same, fixed_problem, transfer_problems

from headstart import BHGP, FAMILY, HGP, MHGP, SHGP, ChainParams, FitOptions, TransferModel

CHAINS = [pytest.param(model, id=name) for name, model in FAMILY.items() if model in (MHGP, SHGP, BHGP)]
# Every step of a fit follows the units, but rounding grows with the number of steps: a short fit shows it as well.
SHORT = FitOptions(restarts=2, max_iterations=25, draws=0)


def fitted(model: TransferModel, n_target: int, *, scale: float = 1.0, shift: float = 0.0) -> Gaussian:
    """Predictions, back in the first units, of a model that was fitted to scale · y + shift of all tasks."""
    problem = fixed_problem((7, 4, 5), d=2, seed=2)
    tasks = [Task(task.X, scale * (np.sin(4 * task.X).sum(-1) + 0.1 * task.y) + shift) for task in problem.tasks]
    target = Task(tasks[-1].X[:n_target], tasks[-1].y[:n_target])
    changed = replace(problem, tasks=(*tasks[:-1], target))
    prediction = answer(model.learn(changed.sources).condition(changed.target), problem.Xq)
    return Gaussian((prediction.mean - shift) / scale, prediction.cov / scale**2)


@cache
def in_first_units(name: str, n_target: int) -> Gaussian:
    return fitted(plainly(FAMILY[name]).using(fit=SHORT), n_target)


@pytest.mark.parametrize(("name", "n_target"), in_turn([0, 1, 2, 5], REPRESENTATIVES[1:]))
@settings(max_examples=2)
@given(log_scale=st.floats(-6, 6), shift=st.floats(-50, 50))
def test_predictions_follow_a_change_of_units(name: str, n_target: int, log_scale: float, shift: float) -> None:
    """y → a·y + b on all tasks changes the predictions by exactly that map, at any number of target points."""
    scale = 10**log_scale
    changed = fitted(plainly(FAMILY[name]).using(fit=SHORT), n_target, scale=scale, shift=shift * scale)
    first = in_first_units(name, n_target)
    sd = np.sqrt(np.diag(first.cov))
    np.testing.assert_allclose(changed.mean / sd, first.mean / sd, rtol=0, atol=1e-6)
    np.testing.assert_allclose(changed.cov / np.outer(sd, sd), first.cov / np.outer(sd, sd), rtol=0, atol=1e-6)


# ── as models are by default: Matérn kernels, an output map, draws of hyperparameters ─────────────────────────────

Said = tuple[Array, Array, Gaussian, float]


def by_default(name: str, n_target: int, *, scale: float = 1.0, shift: float = 0.0) -> Said:
    """Mean and variance back in the first units, the distribution behind the map, and λ; of tasks with a long tail."""
    problem = fixed_problem((9, 7, 6), d=2, seed=2)
    tasks = [Task(t.X, scale * np.exp(np.sin(4 * t.X).sum(-1) + 0.1 * t.y) + shift) for t in problem.tasks]
    target = Task(tasks[-1].X[:n_target], tasks[-1].y[:n_target])
    changed = replace(problem, tasks=(*tasks[:-1], target))
    model = FAMILY[name].using(fit=replace(SHORT, draws=4))
    posterior = model.learn(changed.sources).condition(changed.target)
    assert posterior.warp is not None
    mean, var = (part.numpy() for part in posterior.predict(torch.from_numpy(problem.Xq)))
    behind = answer(behind_the_map(posterior), problem.Xq)
    return (mean - shift) / scale, var / scale**2, behind, posterior.warp.power.item()


@cache
def by_default_in_first_units(name: str, n_target: int) -> Said:
    return by_default(name, n_target)


@pytest.mark.parametrize(("name", "n_target"), in_turn([0, 1, 2, 6], REPRESENTATIVES[1:]))
@settings(max_examples=2)
@given(log_scale=st.floats(-6, 6), shift=st.floats(-50, 50))
def test_default_models_follow_a_change_of_units(name: str, n_target: int, log_scale: float, shift: float) -> None:
    """λ comes out the same, behind the map nothing changes, and in front of it all by exactly y → a·y + b."""
    scale = 10**log_scale
    mean, var, behind, power = by_default(name, n_target, scale=scale, shift=shift * scale)
    first_mean, first_var, first_behind, first_power = by_default_in_first_units(name, n_target)
    assert power == first_power
    assert power < 1
    np.testing.assert_allclose(behind.mean, first_behind.mean, rtol=0, atol=1e-5)
    np.testing.assert_allclose(behind.cov, first_behind.cov, rtol=0, atol=1e-5)
    sd = np.sqrt(first_var)
    np.testing.assert_allclose(mean / sd, first_mean / sd, rtol=0, atol=1e-5)
    np.testing.assert_allclose(var / first_var, np.ones_like(var), rtol=0, atol=1e-4)


@pytest.mark.parametrize("model", CHAINS)
def test_the_paper_s_standardised_residual_depends_on_units_with_one_point(model: TransferModel) -> None:
    """With N_t = 1 a residual has no spread, so that what the paper's option says depends on the units of y."""
    paper = model.paper().using(fit=replace(FitOptions.paper(), restarts=2))
    first, changed = fitted(paper, 1), fitted(paper, 1, scale=0.01)
    assert np.abs(changed.cov / first.cov - 1).max() > 0.1


@pytest.mark.parametrize("model", CHAINS)
def test_the_paper_s_standardised_residual_follows_units_with_more_points(model: TransferModel) -> None:
    """From N_t = 2 on the paper's option follows a change of units as well."""
    paper = model.paper().using(fit=replace(FitOptions.paper(), restarts=2, max_iterations=25))
    assert_same(fitted(paper, 4), fitted(paper, 4, scale=100.0, shift=7.0), 1e-6)


@given(problem=transfer_problems(min_target=1), mean=st.floats(-2, 2), scale=st.floats(0.2, 3))
def test_normalising_the_residual_is_a_shift_and_a_scaled_kernel(problem: Problem, mean: float, scale: float) -> None:
    """A level (k, σ²) fitted to (y − m_s − μ)/s is the level (s² k, s² σ², offset μ) of the same joint process."""
    level, target = problem.levels[-1], problem.tasks[-1]
    X = np.concatenate([target.X, problem.Xq])
    n = len(target.y)
    below = problem.first(len(problem.tasks) - 1, Xq=X).ask(SHGP)
    normalised = Gaussian(np.zeros(len(X)), dense.kernel(problem.kind, X, X, level) + below.cov / scale**2)
    residual = (target.y - below.mean[:n] - mean) / scale
    f = dense.condition(normalised, slice(0, n), residual, level.noise_var)[slice(n, None)]
    back = Gaussian(below.mean[n:] + mean + scale * f.mean, scale**2 * f.cov)

    own = Level(level.lengthscale, scale**2 * level.outputscale, scale**2 * level.noise_var, mean)
    renamed = replace(problem, levels=(*problem.levels[:-1], own))
    assert_same(renamed.ask(SHGP), back, 1e-8)
    assert_same(renamed.ask(HGP), back, 1e-8)


@pytest.mark.parametrize("n_target", [0, 1, 4])
@pytest.mark.parametrize("paper", [False, True], ids=["shared", "per level"])
def test_a_fitted_stack_is_one_joint_process_in_the_user_s_units(paper: bool, n_target: int) -> None:
    """However SHGP was normalised while it was fitted, its hyperparameters are those of one joint process of y."""
    model = SHGP.paper() if paper else plainly(SHGP)
    problem = fixed_problem((7, 4, 5), d=2, seed=2)
    tasks = tuple(Task(task.X, 40 + 10 * task.y) for task in problem.tasks)
    target = Task(tasks[-1].X[:n_target], tasks[-1].y[:n_target])
    problem = replace(problem, tasks=(*tasks[:-1], target))
    options = replace(model.fit, restarts=2, max_iterations=25)
    posterior = model.using(fit=options).learn(problem.sources).condition(problem.target)
    params = posterior.hyperparameters
    assert isinstance(params, ChainParams)
    levels = tuple(
        Level(tuple(p.lengthscale.tolist()), p.outputscale.item(), p.noise_var.item(), p.offset.item())
        for p in params.levels
    )
    joint = dense.chain(problem.kind, problem.tasks, levels)
    assert_same(answer(posterior, problem.Xq), joint.posterior(problem.Xq), 1e-6)
    expected = joint.log_evidence() - joint.log_evidence(len(problem.tasks) - 1)
    assert posterior.log_evidence.item() == pytest.approx(expected, abs=1e-6)
    assert_same(problem.ask(SHGP, params), answer(posterior, problem.Xq), 1e-8)
