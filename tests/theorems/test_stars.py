"""The star family: independent sources, each conditioned on its own data alone, weighted and summed below a target."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.problems import star_params
from tests.reference import dense
from tests.reference.answers import answer, tensor
from tests.reference.dense import Array, Gaussian, Joint
from tests.theorems.strategies import Problem, assert_same, fixed_problem, gp_params, transfer_problems

from headstart import GPBO, MWSGP, SCAML, SHGP, STAR, WSGP, Dataset, StarParams
from headstart.models.params import rescaled

# STAR, SCAML and MWSGP differ in what is fitted; at given hyperparameters they are one rule, and STAR stands for all.
few = settings(max_examples=10)


@dataclass(frozen=True)
class Weights:
    """The sources' weights, and the share of each one's kernel that the target has on its own.

    cov(w) = D (I − balance · e eᵀ) D with D = diag(√var) and e the unit vector over the sources whose var is not 0.
    """

    mean: tuple[float, ...]
    var: tuple[float, ...]
    own: tuple[float, ...]
    balance: float = 0.0

    def cov(self, n: int) -> Array:
        """Of the weights of the first n sources."""
        sd = np.array(self.var[:n], dtype=float) ** 0.5
        counts = (sd > 0) / max(1.0, float(np.count_nonzero(sd))) ** 0.5
        return np.diag(sd) @ (np.eye(n) - self.balance * np.outer(counts, counts)) @ np.diag(sd)

    def params(self, problem: Problem) -> StarParams:
        """The package's form of them, at the problem's own levels."""
        n = len(problem.tasks) - 1
        return star_params(problem.chain.levels, self.mean[:n], self.var[:n], self.own[:n], self.balance)


def _grid(low: int, high: int) -> st.SearchStrategy[tuple[float, ...]]:
    return st.tuples(*[st.integers(low, high).map(lambda i: i / 10)] * 3)


weightings = st.builds(
    Weights, mean=_grid(-20, 20), var=_grid(0, 15), own=_grid(0, 10), balance=st.sampled_from([0.0, 0.3, 0.9, 1.0])
)


def source_posterior(problem: Problem, i: int, Z: Array) -> Gaussian:
    """Source i at Z, given its own data."""
    level, task = problem.levels[i], problem.tasks[i]
    n, both = len(task.y), np.concatenate([task.X, Z])
    prior = Gaussian(np.full(len(both), level.offset), dense.kernel(problem.kind, both, both, level))
    return dense.condition(prior, slice(0, n), task.y, level.noise_var)[slice(n, None)]


def target_prior(problem: Problem, w: Weights, Z: Array) -> Gaussian:
    """offset + Σ mean M and Σ [(mean² + V_νν) Σ_ν + own k_ν] + Mᵀ V M + k_t, with V = cov(w), M_ν = m_ν − offset_ν."""
    own = problem.levels[-1]
    mean, cov = np.full(len(Z), own.offset), dense.kernel(problem.kind, Z, Z, own)
    V, shapes = w.cov(len(problem.levels) - 1), []
    for i, level in enumerate(problem.levels[:-1]):
        below = source_posterior(problem, i, Z)
        shapes.append(below.mean - level.offset)
        mean = mean + w.mean[i] * shapes[-1]
        cov = cov + (w.mean[i] ** 2 + V[i, i]) * below.cov
        cov = cov + w.own[i] * dense.kernel(problem.kind, Z, Z, level)
    if shapes:
        cov = cov + np.stack(shapes).T @ V @ np.stack(shapes)
    return Gaussian(mean, cov)


def dense_star(problem: Problem, w: Weights) -> tuple[Gaussian, float]:
    """f(X_q) given everything, and log p(y_t | sources)."""
    target, level = problem.tasks[-1], problem.levels[-1]
    n = len(target.y)
    prior = target_prior(problem, w, np.concatenate([target.X, problem.Xq]))
    noisy = Gaussian(prior.mean[:n], prior.cov[:n, :n] + level.noise_var * np.eye(n))
    posterior = dense.condition(prior, slice(0, n), target.y, level.noise_var)[slice(n, None)]
    return posterior, noisy.log_density(target.y) if n else 0.0


# ── each member is its joint process ──────────────────────────────────────────────────────────────────────────────


@given(problem=transfer_problems(), weights=weightings)
def test_a_star_is_bayes_rule_on_its_prior(problem: Problem, weights: Weights) -> None:
    """Mean, covariance and evidence are those of the dense formula, for weights of either sign and any variance."""
    posterior = problem.posterior(STAR, weights.params(problem))
    expected, evidence = dense_star(problem, weights)
    assert_same(answer(posterior, problem.Xq), expected, 1e-8)
    assert posterior.log_evidence.item() == pytest.approx(evidence, abs=1e-8)
    mean, var = posterior.predict(tensor(problem.Xq))
    assert_same(Gaussian(mean.numpy(), np.diag(var.numpy())), Gaussian(expected.mean, np.diag(np.diag(expected.cov))))


@given(problem=transfer_problems(), weights=weightings)
def test_scaml_is_one_joint_process(problem: Problem, weights: Weights) -> None:
    """At given weights nothing is modular: W_ν = (e_ν + w e_t)(e_ν + w e_t)ᵀ and all data at once say the same."""
    s = len(problem.tasks) - 1
    e = np.eye(s + 1)
    arms = [e[i] + weights.mean[i] * e[-1] for i in range(s)]
    W = np.stack([*(np.outer(arm, arm) for arm in arms), np.outer(e[-1], e[-1])])
    means, noise = [level.offset for level in problem.levels], [level.noise_var for level in problem.levels]
    joint = Joint(problem.kind, problem.tasks, problem.levels, W, means, noise)
    params = star_params(problem.chain.levels, weights.mean[:s])
    posterior = problem.posterior(SCAML, params)
    assert_same(answer(posterior, problem.Xq), joint.posterior(problem.Xq), 1e-8)
    expected = joint.log_evidence() - joint.log_evidence(s)
    assert posterior.log_evidence.item() == pytest.approx(expected, abs=1e-7)


@given(problem=transfer_problems())
def test_mwsgp_is_wsgp(problem: Problem) -> None:
    """At equal hyperparameters b = w/(1 + w) and own = b (1 − b) of (1 + w) k_ν are WSGP: only training differs."""
    w = np.array(problem.weights)
    b = w / (1 + w)
    sources = [
        replace(level, outputscale=(1 + v) * level.outputscale) for level, v in zip(problem.levels, w, strict=False)
    ]
    levels = tuple(gp_params(level) for level in (*sources, problem.levels[-1]))
    modular = problem.posterior(MWSGP, star_params(levels, b, own=b * (1 - b)))
    joint = problem.posterior(WSGP, problem.star)
    assert_same(answer(modular, problem.Xq), answer(joint, problem.Xq), 1e-8)
    assert modular.log_evidence.item() == pytest.approx(joint.log_evidence.item(), abs=1e-7)


def test_integrated_weights_are_the_moments_of_a_product() -> None:
    """A million draws of weights, sources given their data, and g have the mean and covariance of STAR's prior."""
    problem = fixed_problem((5, 3, 0), d=1, seed=3)
    w = Weights((0.6, -0.4, 0.0), (0.5, 0.3, 0.0), (0.2, 0.0, 0.0))
    rng = np.random.default_rng(0)
    draws, Z = 1_000_000, problem.Xq[:2]
    f = np.full((draws, len(Z)), problem.levels[-1].offset)
    parts = [(1.0, dense.kernel(problem.kind, Z, Z, problem.levels[-1]))]
    parts += [(w.own[i], dense.kernel(problem.kind, Z, Z, problem.levels[i])) for i in range(2)]
    for size, K in parts:
        f += np.sqrt(size) * rng.normal(size=f.shape) @ np.linalg.cholesky(K + 1e-12 * np.eye(len(Z))).T
    for i in range(2):
        below = source_posterior(problem, i, Z)
        f_i = below.mean + rng.normal(size=f.shape) @ np.linalg.cholesky(below.cov + 1e-12 * np.eye(len(Z))).T
        f += (w.mean[i] + np.sqrt(w.var[i]) * rng.normal(size=(draws, 1))) * (f_i - problem.levels[i].offset)
    zero_shot = answer(problem.posterior(STAR, w.params(problem)), Z)
    sd = float(np.sqrt(zero_shot.cov.diagonal().max()))
    np.testing.assert_allclose(f.mean(0), zero_shot.mean, atol=6e-3 * sd)
    np.testing.assert_allclose(np.cov(f.T), zero_shot.cov, atol=1e-2 * sd**2)


# ── limits ────────────────────────────────────────────────────────────────────────────────────────────────────────


@few
@given(problem=transfer_problems())
def test_a_star_without_weight_is_the_target_alone(problem: Problem) -> None:
    """w = 0, var = 0, own = 0: GPBO."""
    nothing = problem.ask(STAR, star_params(problem.chain.levels, [0.0] * (len(problem.tasks) - 1)))
    assert_same(nothing, problem.last().ask(GPBO), 1e-10)


@few
@given(problem=transfer_problems(max_sources=1))
def test_a_star_of_one_source_with_weight_one_is_shgp(problem: Problem) -> None:
    """The chain counts the target's offset from the source's, the star from 0."""
    source, target = problem.chain.levels
    levels = (source, replace(target, offset=source.offset + target.offset))
    assert_same(problem.ask(STAR, star_params(levels, [1.0])), problem.ask(SHGP), 1e-9)


@few
@given(problem=transfer_problems(min_sources=2), weights=weightings, order=st.permutations(range(3)))
def test_the_order_of_the_sources_does_not_matter(problem: Problem, weights: Weights, order: list[int]) -> None:
    """Sources, their levels and their weights in another order are the same model."""
    s = len(problem.tasks) - 1
    order = [i for i in order if i < s]
    other = replace(
        problem,
        tasks=(*(problem.tasks[i] for i in order), problem.tasks[-1]),
        levels=(*(problem.levels[i] for i in order), problem.levels[-1]),
    )
    mean, var, own = (tuple(v[i] for i in order) for v in (weights.mean, weights.var, weights.own))
    # which of three numbers are meant depends on how many sources there are
    weights = replace(weights, mean=weights.mean[:s], var=weights.var[:s], own=weights.own[:s])
    moved = Weights(mean, var, own, weights.balance)
    assert_same(other.ask(STAR, moved.params(other)), problem.ask(STAR, weights.params(problem)), 1e-9)


@few
@given(problem=transfer_problems(), weights=weightings)
def test_a_weight_of_the_other_sign_is_a_negated_source(problem: Problem, weights: Weights) -> None:
    """−w on f_ν is w on −f_ν: a source with all values and its offset negated."""
    turned = replace(
        problem,
        tasks=(*(replace(task, y=-task.y) for task in problem.tasks[:-1]), problem.tasks[-1]),
        levels=(*(replace(level, offset=-level.offset) for level in problem.levels[:-1]), problem.levels[-1]),
    )
    opposite = replace(weights, mean=tuple(-w for w in weights.mean))
    assert_same(turned.ask(STAR, opposite.params(turned)), problem.ask(STAR, weights.params(problem)), 1e-9)


@few
@given(problem=transfer_problems(), weights=weightings)
def test_a_star_follows_a_change_of_units(problem: Problem, weights: Weights) -> None:
    """``scaled`` gives the hyperparameters of scale · y + offset, with the same weights."""
    scale, offset = 3.0, -7.0
    params = weights.params(problem)
    changed = replace(problem, tasks=tuple(replace(task, y=scale * task.y + offset) for task in problem.tasks))
    there = changed.ask(STAR, rescaled(params, tensor(scale), tensor(offset)))
    here = problem.ask(STAR, params)
    assert_same(there, Gaussian(scale * here.mean + offset, scale**2 * here.cov), 1e-8)


@few
@given(problem=transfer_problems(), weights=weightings)
def test_two_problems_at_once_are_each_alone(problem: Problem, weights: Weights) -> None:
    """A batch of the problem and of its mirror image in y gives the two answers."""
    params = weights.params(problem)
    tasks = [Dataset(torch.stack([t.X, t.X]), torch.stack([t.y, -t.y])) for t in (*problem.sources, problem.target)]
    batch = (
        STAR.using(kernel=problem.kernel).at(params, sources=tasks[:-1], target=tasks[-1]).predict(tensor(problem.Xq))
    )
    alone = problem.posterior(STAR, params).predict(tensor(problem.Xq))
    mirror = replace(problem, tasks=tuple(replace(task, y=-task.y) for task in problem.tasks))
    other = mirror.posterior(STAR, params).predict(tensor(problem.Xq))
    for together, one, two in zip(batch, alone, other, strict=True):
        torch.testing.assert_close(together, torch.stack([one, two]), rtol=1e-10, atol=1e-10)
