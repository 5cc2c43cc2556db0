"""What is said of shifts is Bayes' rule: the shift of every batch, and how improbable one is given the others."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import norm
from tests.problems import tensor
from tests.reference import dense
from tests.reference.dense import Array
from tests.theorems.test_shifts_of_batches import Batched, batched

from headstart.models.batch_shifts import Levels, levels, shift_estimates, size_range
from headstart.models.chain.layer import Layer


def contrasts(n: int) -> Array:
    """Differences of n values from the first of them."""
    return np.eye(n)[1:] - np.eye(n)[:1]


def shifts_by_bayes(one: Batched) -> tuple[Array, Array]:
    """Mean and covariance of g against its mean, from the joint Gaussian of g and of all differences of results."""
    task, level = one.problem.tasks[-1], one.problem.levels[-1]
    names = np.unique(one.batches[-1])
    Z = (np.array(one.batches[-1])[:, None] == names).astype(float)
    n, B = Z.shape
    K = dense.kernel(one.problem.kind, task.X, task.X, level) + level.noise_var * np.eye(n)
    centred, D = np.eye(B) - 1 / B, contrasts(n)
    of_g, of_y = one.batch_var * centred @ Z.T @ D.T, D @ (K + one.batch_var * Z @ Z.T) @ D.T
    gain = of_g @ np.linalg.inv(of_y)
    return gain @ D @ task.y, one.batch_var * centred - gain @ of_g.T


def found_in(one: Batched) -> tuple[Layer, torch.Tensor, torch.Tensor]:
    """The layer, the place of every row's batch among all, and the correlations of their shifts."""
    batches, of_row = one.target.batch.unique(return_inverse=True)  # type: ignore[union-attr]
    return one.layer(), of_row, torch.eye(len(batches), dtype=torch.float64)


@given(one=batched(min_target=3))
def test_the_shift_of_a_batch_is_bayes_rule_under_a_free_offset(one: Batched) -> None:
    """E[g | y] and cov[g | y] against the mean of all batches, whichever batch is the present one."""
    assume(len(set(one.batches[-1])) > 1)
    expected, found = shifts_by_bayes(one), shift_estimates(*found_in(one))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a.numpy(), b, rtol=1e-5, atol=1e-7)


@given(one=batched(min_target=3))
def test_levels_are_all_that_results_say_of_the_size_of_shifts(one: Batched) -> None:
    """The likelihood of τ by the levels of the batches is that by all differences of results, up to a factor."""
    assume(len(set(one.batches[-1])) > 1)
    task, level = one.problem.tasks[-1], one.problem.levels[-1]
    Z = (np.array(one.batches[-1])[:, None] == np.unique(one.batches[-1])).astype(float)
    n, B = Z.shape
    layer, of_row, _ = found_in(one)
    beta, V = (part.numpy() for part in levels(layer, of_row))
    K = dense.kernel(one.problem.kind, task.X, task.X, level) + level.noise_var * np.eye(n)
    by_levels, by_results = [], []
    for tau2 in (0.01, 0.3, 5.0):
        D, d = contrasts(n), contrasts(B)
        by_results.append(dense.Gaussian(np.zeros(n - 1), D @ (K + tau2 * Z @ Z.T) @ D.T).log_density(D @ task.y))
        by_levels.append(dense.Gaussian(np.zeros(B - 1), d @ (V + tau2 * np.eye(B)) @ d.T).log_density(d @ beta))
    np.testing.assert_allclose(np.diff(by_levels), np.diff(by_results), rtol=1e-5, atol=1e-6)


@given(
    beta=st.lists(st.floats(-3, 3), min_size=4, max_size=6),
    own=st.floats(0.1, 1.0),
    common=st.floats(0.0, 0.5),
    drift=st.sampled_from([0.0, 0.6]),
)
def test_how_improbable_a_batch_is_follows_from_the_others(
    beta: list[float], own: float, common: float, drift: float
) -> None:
    """P(a level as high or higher | those of the others), by an integral over all sizes of shifts."""
    B, noise_var = len(beta), 0.7
    b, V = np.array(beta), own * np.eye(B) + common * np.eye(B)[0] * np.eye(B)[:, :1]
    C = drift ** np.abs(np.arange(B)[:, None] - np.arange(B)) if drift else np.eye(B)
    found, below = Levels.at_sizes(tensor(beta), tensor(V), tensor(C), tensor(noise_var)).tails()
    assert (found + below).numpy() == pytest.approx(1.0)
    last = np.ones(B - 1)

    def given_others(tau2: float) -> tuple[float, float]:
        M = V + tau2 * C
        inverse, with_last = np.linalg.inv(M[:-1, :-1]), M[:-1, -1]
        known = last @ inverse @ last
        mu = last @ inverse @ b[:-1] / known
        mean = mu + with_last @ inverse @ (b[:-1] - mu)
        left = 1 - last @ inverse @ with_last
        var = M[-1, -1] - with_last @ inverse @ with_last + left**2 / known
        D = contrasts(B - 1)
        likely = dense.Gaussian(np.zeros(B - 2), D @ M[:-1, :-1] @ D.T).log_density(D @ b[:-1])
        return np.exp(likely) / (tau2 + noise_var), norm.sf((b[-1] - mean) / np.sqrt(var))

    def over_sizes(part: int) -> float:
        def at(log: float) -> float:
            tau2 = np.exp(2 * log)
            weight, above = given_others(tau2)
            return float(2 * tau2 * weight * (above if part else 1.0))

        return float(quad(at, -8, 8, limit=200)[0])

    assert float(found[-1]) == pytest.approx(over_sizes(1) / over_sizes(0), rel=1e-3, abs=1e-5)


@given(
    beta=st.lists(st.floats(-3, 3), min_size=2, max_size=6),
    own=st.floats(0.1, 1.0),
    drift=st.sampled_from([0.0, 0.6]),
)
def test_the_size_that_is_told_is_bayes_rule_under_a_half_cauchy_prior(
    beta: list[float], own: float, drift: float
) -> None:
    """The median and both ends by integrals over τ; the range begins at 0 where the density is no lower there."""
    B, noise_var = len(beta), 0.7
    b, V = np.array(beta), own * np.eye(B)
    C = drift ** np.abs(np.arange(B)[:, None] - np.arange(B)) if drift else np.eye(B)
    weights = Levels.at_sizes(tensor(beta), tensor(V), tensor(C), tensor(noise_var)).size_weights(tensor(noise_var))
    median, low, high = size_range(weights)
    D = contrasts(B)

    def density(tau: float) -> float:
        """Of τ in noise levels."""
        M = D @ (V + tau**2 * noise_var * C) @ D.T
        return float(np.exp(dense.Gaussian(np.zeros(B - 1), M).log_density(D @ b)) / (1 + tau**2 * noise_var))

    def below(end: float) -> float:
        return float(quad(lambda log: np.exp(log) * density(np.exp(log)), -8, np.log(end), limit=200)[0])

    whole = below(np.exp(8))
    assert below(median) / whole == pytest.approx(0.5, abs=0.01)
    assert below(high) / whole == pytest.approx(0.95 if low == 0 else 0.975, abs=0.005)
    if low == 0:
        assert density(0.0) >= 0.95 * density(high)
    else:
        assert below(low) / whole == pytest.approx(0.025, abs=0.005)
        at_95 = float(brentq(lambda end: below(end) / whole - 0.95, low, high))
        assert density(0.0) <= 1.05 * density(at_95)
