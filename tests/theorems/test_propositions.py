"""The paper's propositions for one source, in the corrected reading of ERRATA's first table.

Every test compares the package with the formula as it should read; the last ones show that the formula as it is
printed is another one, so that none of the tests would pass on the slip.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from tests.reference import dense
from tests.reference.dense import Array, Gaussian
from tests.theorems.strategies import Problem, assert_same, fixed_problem, transfer_problems

from headstart import BHGP, HGP, SHGP, TransferModel

ONE_SOURCE = transfer_problems(max_sources=1, min_target=1)


@dataclass(frozen=True)
class Ingredients:
    """The source's posterior at [X_t, X_q] and the target's own process there."""

    f_s: Gaussian
    K_t: Array
    alpha: Array  # k_t(X_q, X_t)(k_t(X_t, X_t) + σ_t² I)⁻¹
    t: slice
    q: slice

    @classmethod
    def of(cls, problem: Problem) -> Ingredients:
        """By the textbook: k_s(·, X_s)[k_s(X_s, X_s) + σ_s² I]⁻¹, with the noise, and minus in the covariance."""
        source, target = problem.tasks
        k_s, k_t = problem.levels
        n = len(target.y)
        X = np.concatenate([target.X, problem.Xq])
        K_s = dense.kernel(problem.kind, source.X, source.X, k_s) + k_s.noise_var * np.eye(len(source.y))
        cross = dense.kernel(problem.kind, X, source.X, k_s) @ np.linalg.inv(K_s)
        mean = k_s.offset + cross @ (source.y - k_s.offset)
        cov = dense.kernel(problem.kind, X, X, k_s) - cross @ dense.kernel(problem.kind, source.X, X, k_s)
        K_t = dense.kernel(problem.kind, X, X, k_t)
        alpha = K_t[n:, :n] @ np.linalg.inv(K_t[:n, :n] + k_t.noise_var * np.eye(n))
        return cls(Gaussian(mean, cov), K_t, alpha, slice(0, n), slice(n, None))

    def boost(self) -> Array:
        """Σ^boost = Σ_** + α Σ_tt αᵀ − α Σ_t* − Σ_*t αᵀ."""
        S, a, t, q = self.f_s.cov, self.alpha, self.t, self.q
        boost: Array = S[q, q] + a @ S[t, t] @ a.T - a @ S[t, q] - S[q, t] @ a.T
        return boost


@given(problem=transfer_problems(max_sources=1, max_target=0))
def test_averaging_priors_over_the_source_gives_the_prior_of_the_target(problem: Problem) -> None:
    """Corollary: before its own data the target is GP(E[f_s | D_s], k_t + cov[f_s | D_s])."""
    parts = Ingredients.of(problem)
    offset = problem.levels[-1].offset
    assert_same(problem.ask(SHGP), Gaussian(parts.f_s.mean + offset, parts.f_s.cov + parts.K_t))


@pytest.mark.parametrize("model", [pytest.param(HGP, id="HGP"), pytest.param(SHGP, id="SHGP")])
@given(problem=ONE_SOURCE)
def test_bayesian_model_averaging_is_the_hierarchical_model(problem: Problem, model: TransferModel) -> None:
    """Proposition 1: conditioning the averaged prior on the target's data is the joint model given all data."""
    parts, level = Ingredients.of(problem), problem.levels[-1]
    prior = Gaussian(parts.f_s.mean + level.offset, parts.f_s.cov + parts.K_t)
    averaged = dense.condition(prior, parts.t, problem.tasks[-1].y, level.noise_var)[parts.q]
    assert_same(problem.ask(model), averaged)


@given(problem=ONE_SOURCE)
def test_boosting_adds_the_gain_times_the_residual(problem: Problem) -> None:
    """Proposition 2: the mean is E[f_s(x*)] + α (y_t − E[f_s(X_t)]), with a plus; the covariance gains Σ^boost."""
    parts, offset = Ingredients.of(problem), problem.levels[-1].offset
    m, K, a, t, q = parts.f_s.mean + offset, parts.K_t, parts.alpha, parts.t, parts.q
    own = K[q, q] - a @ K[t, q]
    assert_same(problem.ask(BHGP), Gaussian(m[q] + a @ (problem.tasks[-1].y - m[t]), own + parts.boost()))


@given(problem=ONE_SOURCE)
def test_the_root_of_the_boost_subtracts(problem: Problem) -> None:
    """L^boost = L_* − α L_t: then L^boost L^boostᵀ is what BHGP's covariance has beyond the target's own."""
    parts = Ingredients.of(problem)
    values, vectors = np.linalg.eigh(parts.f_s.cov)
    L = vectors * np.sqrt(np.maximum(values, 0.0))
    root = L[parts.q] - parts.alpha @ L[parts.t]
    own = parts.K_t[parts.q, parts.q] - parts.alpha @ parts.K_t[parts.t, parts.q]
    np.testing.assert_allclose(problem.ask(BHGP).cov - own, root @ root.T, atol=1e-8)


@given(problem=ONE_SOURCE)
def test_boosting_conditions_a_prior_whose_queries_alone_carry_the_boost(problem: Problem) -> None:
    """Eq. 8 as the proof reads it: k_t links queries and data, Σ^boost is added on the queries only."""
    parts, level = Ingredients.of(problem), problem.levels[-1]
    cov = parts.K_t.copy()
    cov[parts.q, parts.q] += parts.boost()
    prior = Gaussian(parts.f_s.mean + level.offset, cov)
    assert_same(problem.ask(BHGP), dense.condition(prior, parts.t, problem.tasks[-1].y, level.noise_var)[parts.q])


def test_the_printed_formulas_are_others() -> None:
    """Every slip that ERRATA corrects changes the answer visibly: sign of α, sign in L^boost, noise of the source."""
    problem = fixed_problem((4, 3))
    parts, bhgp = Ingredients.of(problem), problem.ask(BHGP)
    offset = problem.levels[-1].offset
    m, K, a, t, q = parts.f_s.mean + offset, parts.K_t, parts.alpha, parts.t, parts.q
    minus = m[q] - a @ (problem.tasks[-1].y - m[t])
    assert np.abs(minus - bhgp.mean).max() > 0.1
    S = parts.f_s.cov
    plus = K[q, q] - a @ K[t, q] + S[q, q] + a @ S[t, t] @ a.T + a @ S[t, q] + S[q, t] @ a.T
    assert np.abs(plus - bhgp.cov).max() > 0.1
    source = problem.tasks[0]
    k = dense.kernel(problem.kind, source.X, source.X, problem.levels[0])
    noiseless = dense.kernel(problem.kind, problem.Xq, source.X, problem.levels[0]) @ np.linalg.inv(k)
    mean = problem.levels[0].offset + noiseless @ (source.y - problem.levels[0].offset)
    assert np.abs(mean + offset - m[q]).max() > 0.1
