"""Points between linear inequalities, on the subspace of linear equalities."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from headstart.decide.ruled.polytope import Polytope


def _simplex(d: int) -> tuple[Polytope, np.ndarray, np.ndarray]:
    return Polytope(-np.eye(d), np.ones((1, d)) / np.sqrt(d)), np.zeros((1, d)), np.full((1, 1), 1 / np.sqrt(d))


def test_hit_and_run_is_uniform_on_a_simplex() -> None:
    """The first two moments are those of a flat Dirichlet distribution, whose marginals are Beta(1, d − 1)."""
    d, n = 10, 4000
    simplex, b, _ = _simplex(d)
    rng = np.random.default_rng(0)
    X = np.full((n, d), 1 / d)
    for _ in range(200):
        X = simplex.slide(X, np.repeat(b, n, 0), rng)
    assert X.min() >= -1e-12
    np.testing.assert_allclose(X.sum(-1), 1, atol=1e-12)
    np.testing.assert_allclose(X.mean(0), 1 / d, atol=0.006)
    np.testing.assert_allclose(X.var(0), (d - 1) / d**2 / (d + 1), rtol=0.1)


def test_hit_and_run_with_weights_is_uniform_in_the_logs() -> None:
    """In a box the log of an input with density 1 / x is uniform."""
    low, high, n = 1e-3, 1.0, 4000
    box = Polytope(np.vstack([np.eye(2), -np.eye(2)]), np.zeros((0, 2)))
    b, rng = np.tile([1.0, 1.0, 0.0, 0.0], (n, 1)), np.random.default_rng(0)
    X = np.full((n, 2), 0.5)
    for _ in range(60):
        X = box.slide(X, b, rng, weigh=(np.array([low, 0.0]), np.array([high - low, 0.0])))
    share = (np.log(low + X[:, 0] * (high - low)) - np.log(low)) / np.log(high / low)
    np.testing.assert_allclose(np.quantile(share, [0.1, 0.25, 0.5, 0.75, 0.9]), [0.1, 0.25, 0.5, 0.75, 0.9], atol=0.04)
    np.testing.assert_allclose(np.quantile(X[:, 1], [0.25, 0.5, 0.75]), [0.25, 0.5, 0.75], atol=0.04)


@pytest.mark.parametrize("seed", range(5))
def test_the_nearest_point_is_the_nearest(seed: int) -> None:
    """As SciPy's SLSQP finds it, and inside to the last digits."""
    rng = np.random.default_rng(seed)
    d = 6
    inside = rng.random(d)
    A, E = rng.standard_normal((9, d)), rng.standard_normal((2, d))
    b, e = A @ inside + 0.1 * rng.random(9), E @ inside
    X = inside + 2 * rng.standard_normal((4, d))
    Y, ok = Polytope(A, E).nearest(X, np.tile(b, (4, 1)), np.tile(e, (4, 1)))
    assert ok.all()
    assert (Y @ A.T - b).max() < 1e-12
    np.testing.assert_allclose(Y @ E.T, np.tile(e, (4, 1)), atol=1e-12)
    for x, y in zip(X, Y, strict=True):
        rows = [{"type": "ineq", "fun": lambda z: b - A @ z}, {"type": "eq", "fun": lambda z: E @ z - e}]
        found = minimize(lambda z, x=x: ((z - x) ** 2).sum(), inside, constraints=rows, options={"ftol": 1e-14})
        np.testing.assert_allclose(((y - x) ** 2).sum(), found.fun, rtol=1e-6)


def test_where_nothing_is_inside_there_is_no_nearest_point() -> None:
    """And no centre."""
    A, E = np.array([[1.0, 0.0], [-1.0, 0.0]]), np.zeros((0, 2))
    b = np.array([0.0, -1.0])
    _, ok = Polytope(A, E).nearest(np.zeros((1, 2)), b[None], np.zeros((1, 0)))
    assert not ok.any()
    assert Polytope(A, E).centre(b, np.zeros(0)) is None


def test_the_centre_is_as_deep_as_can_be() -> None:
    """That of a simplex is its middle."""
    simplex, b, e = _simplex(4)
    found = simplex.centre(b[0], e[0])
    assert found is not None
    np.testing.assert_allclose(found[0], 0.25, atol=1e-6)
