"""Many minimisations in lockstep are the minimisations one by one."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.optimize
from numpy.typing import NDArray

from headstart.gp import lbfgs
from headstart.gp.lbfgs import Joining, LockstepResult, Minimization, lockstep_is_available

Array = NDArray[np.float64]

LOWER, UPPER = np.array([-1.5, -1.0, -2.0]), np.array([2.0, 0.8, 2.0])
STARTS = np.random.default_rng(0).uniform(LOWER, UPPER, (8, 3))
OPTIONS: dict[str, Any] = {"max_iterations": 200, "ftol": 1e-9, "gtol": 1e-5}


def _rosenbrock(x: Array, tilt: float) -> tuple[float, Array]:
    value = scipy.optimize.rosen(x) + tilt * x.sum()
    return float(value), scipy.optimize.rosen_der(x) + tilt


class Recorder:
    """A different valley for every run, and the points at which it was looked at."""

    def __init__(self) -> None:
        self.points: list[list[Array]] = [[] for _ in STARTS]
        self.calls = 0

    def __call__(self, points: Array, which: NDArray[np.intp]) -> tuple[Array, Array]:
        self.calls += 1
        assert points.shape == (len(which), 3)
        parts = []
        for x, i in zip(points, which, strict=True):
            self.points[i].append(x.copy())
            parts.append(_rosenbrock(x, 0.5 * float(i)))
        return np.array([v for v, _ in parts]), np.stack([g for _, g in parts])


def _by_scipy(i: int, **options: Any) -> tuple[Any, list[Array]]:
    seen: list[Array] = []

    def single(x: Array) -> tuple[float, Array]:
        seen.append(x.copy())
        return _rosenbrock(x, 0.5 * i)

    bounds = scipy.optimize.Bounds(LOWER, UPPER)
    return scipy.optimize.minimize(single, STARTS[i], jac=True, method="L-BFGS-B", bounds=bounds, options=options), seen


def _forget() -> None:
    """What the module remembers of SciPy's routine."""
    for value in vars(lbfgs).values():
        if hasattr(value, "cache_clear"):
            value.cache_clear()


@pytest.fixture
def fresh_probe() -> Iterator[None]:
    """The probe of SciPy's routine runs again in this test, and again after it."""
    _forget()
    yield
    _forget()


def test_the_private_routine_is_there() -> None:
    """With the SciPy of this installation the lockstep is used, not its fallback."""
    assert lockstep_is_available()


@pytest.mark.parametrize("max_iterations", [200, 4])
def test_every_run_is_scipys_own(max_iterations: int) -> None:
    """Each run visits the points that ``scipy.optimize.minimize`` visits, and ends as it ends."""
    recorder = Recorder()
    result = Minimization(recorder, STARTS, LOWER, UPPER, **(OPTIONS | {"max_iterations": max_iterations})).run()
    for i in range(len(STARTS)):
        alone, seen = _by_scipy(i, maxiter=max_iterations, ftol=1e-9, gtol=1e-5)
        assert len(recorder.points[i]) == len(seen) == alone.nfev == result.evaluations[i]
        np.testing.assert_allclose(recorder.points[i], seen, rtol=0, atol=1e-13)
        np.testing.assert_allclose(result.x[i], alone.x, rtol=0, atol=1e-13)
        assert result.value[i] == pytest.approx(alone.fun, rel=1e-13)
        assert result.converged[i] == alone.success


def test_some_runs_converge_and_some_are_stopped() -> None:
    """The limit on the iterations is reported run by run."""
    few = Minimization(Recorder(), STARTS, LOWER, UPPER, max_iterations=12, ftol=1e-9, gtol=1e-5).run()
    assert 0 < few.converged.sum() < len(STARTS)
    assert Minimization(Recorder(), STARTS, LOWER, UPPER, **OPTIONS).run().converged.all()


def test_one_call_serves_a_step_of_all_runs() -> None:
    """The objective is called as often as the longest run needs, not once per run and step."""
    recorder = Recorder()
    result = Minimization(recorder, STARTS, LOWER, UPPER, **OPTIONS).run()
    assert recorder.calls == result.evaluations.max()


def _assert_equal(a: LockstepResult, b: LockstepResult) -> None:
    np.testing.assert_allclose(a.x, b.x, rtol=0, atol=1e-13)
    np.testing.assert_allclose(a.value, b.value, rtol=1e-13)
    np.testing.assert_array_equal(a.evaluations, b.evaluations)
    np.testing.assert_array_equal(a.converged, b.converged)


def test_lockstep_equals_one_by_one() -> None:
    """The fallback gives the same results."""
    lockstep = Minimization(Recorder(), STARTS, LOWER, UPPER, **OPTIONS).run()
    _assert_equal(lockstep, Minimization(Recorder(), STARTS, LOWER, UPPER, **OPTIONS).one_by_one())


def test_a_run_does_not_depend_on_the_others() -> None:
    """Leaving runs out changes nothing for those that stay."""
    together = Minimization(Recorder(), STARTS, LOWER, UPPER, **OPTIONS).run()
    half = Minimization(lambda x, i: Recorder()(x, 2 * i), STARTS[::2], LOWER, UPPER, **OPTIONS).run()
    np.testing.assert_array_equal(half.x, together.x[::2])


def test_the_starts_are_left_alone() -> None:
    """The caller's array of starting points is not written to."""
    before = STARTS.copy()
    Minimization(Recorder(), STARTS, LOWER, UPPER, **OPTIONS).run()
    np.testing.assert_array_equal(STARTS, before)


def test_bounds_are_respected_at_every_evaluation() -> None:
    """No run ever looks beyond a bound, and runs end on one where the minimum lies behind it."""
    recorder = Recorder()
    result = Minimization(recorder, STARTS, LOWER, UPPER, **OPTIONS).run()
    points = np.concatenate([np.stack(points) for points in recorder.points])
    assert (points >= LOWER).all()
    assert (points <= UPPER).all()
    assert ((result.x == LOWER) | (result.x == UPPER)).any()


# ── joining ───────────────────────────────────────────────────────────────────────────────────────────────────────


HILL_BOUND = np.full(2, 2.0)
HILL_STARTS = np.random.default_rng(1).uniform(-2, 2, (40, 2))


def _hills(points: Array, which: NDArray[np.intp]) -> tuple[Array, Array]:
    """Σ cos(3x) + x²/9: the same few minima for every run."""
    return (np.cos(3 * points) + points**2 / 9).sum(-1), -3 * np.sin(3 * points) + 2 * points / 9


@pytest.fixture(scope="module")
def met() -> LockstepResult:
    """Two problems of twenty restarts each, with two minima per coordinate."""
    return Minimization(_hills, HILL_STARTS, -HILL_BOUND, HILL_BOUND, joining=Joining(20), **OPTIONS).run()


def test_a_run_that_meets_a_better_one_shares_its_end(met: LockstepResult) -> None:
    """It stops, and its point, value and convergence are those of the run that it joined."""
    joined = np.flatnonzero(met.joined >= 0)
    assert len(joined) > 10
    for i in joined:
        host = met.joined[i]
        assert host != i
        np.testing.assert_array_equal(met.x[i], met.x[host])
        assert met.value[i] == met.value[host]
        assert met.converged[i] == met.converged[host]


def test_nobody_asks_about_no_points() -> None:
    """When the last runs join others, the objective is not called once more with nothing."""
    sizes: list[int] = []

    def counting(points: Array, which: NDArray[np.intp]) -> tuple[Array, Array]:
        sizes.append(len(points))
        return _hills(points, which)

    Minimization(counting, HILL_STARTS, -HILL_BOUND, HILL_BOUND, joining=Joining(20), **OPTIONS).run()
    assert min(sizes) > 0


def test_runs_join_only_within_their_problem(met: LockstepResult) -> None:
    """Consecutive rows are the restarts of one problem; another problem's runs are none of their business."""
    joined = np.flatnonzero(met.joined >= 0)
    np.testing.assert_array_equal(met.joined[joined] // 20, joined // 20)


def test_joining_finds_the_same_optima_with_fewer_evaluations(met: LockstepResult) -> None:
    """Runs that go on by themselves end no better anywhere, and need more."""
    alone = Minimization(_hills, HILL_STARTS, -HILL_BOUND, HILL_BOUND, **OPTIONS).run()
    assert (alone.joined == -1).all()
    assert met.evaluations.sum() < alone.evaluations.sum()
    np.testing.assert_allclose(met.value, alone.value, atol=1e-4)
    np.testing.assert_allclose(met.x, alone.x, atol=Joining(20).within)


def test_runs_are_compared_in_the_coordinates_of_the_caller() -> None:
    """Where a coordinate hardly matters, runs far apart in it may still be the same."""

    def valley(points: Array, which: NDArray[np.intp]) -> tuple[Array, Array]:
        slope = np.stack([40 * points[:, 0] ** 3, 1e-3 * points[:, 1]], -1)
        return 10 * points[:, 0] ** 4 + 5e-4 * points[:, 1] ** 2, slope

    starts = np.array([[1.5, -2.0], [1.4, 2.0], [-1.8, 0.0]])
    options = OPTIONS | {"ftol": 0.0, "gtol": 1e-12}
    bounds = -HILL_BOUND, HILL_BOUND
    by_all = Minimization(valley, starts, *bounds, joining=Joining(3, 5, 0.5), **options).run()
    by_first = Minimization(valley, starts, *bounds, joining=Joining(3, 5, 0.5, lambda x: x[:, :1]), **options).run()
    assert by_first.evaluations.sum() < by_all.evaluations.sum()
    assert (by_first.joined >= 0).any()
    np.testing.assert_allclose(by_first.value, by_all.value, atol=2e-3)


def _raises(*_: Any) -> None:
    raise TypeError("setulb() takes 3 positional arguments")


def _claims_to_be_done(*args: Any) -> None:
    args[11][0] = 4


@pytest.mark.usefixtures("fresh_probe")
@pytest.mark.parametrize(
    "private",
    [
        pytest.param(SimpleNamespace(setulb=_raises), id="another signature"),
        pytest.param(SimpleNamespace(), id="another name"),
        pytest.param(SimpleNamespace(setulb=_claims_to_be_done), id="other task codes"),
    ],
)
def test_the_fallback_is_used_where_the_private_routine_is_broken(
    monkeypatch: pytest.MonkeyPatch, private: SimpleNamespace
) -> None:
    """A private routine that is gone, or behaves differently, is noticed; the results are the same without it."""
    expected = Minimization(Recorder(), STARTS, LOWER, UPPER, **OPTIONS).run()
    _forget()
    monkeypatch.setattr(scipy.optimize, "_lbfgsb", private)
    assert not lockstep_is_available()
    recorder = Recorder()
    result = Minimization(recorder, STARTS, LOWER, UPPER, **OPTIONS).run()
    _assert_equal(result, expected)
    assert recorder.calls == result.evaluations.sum()  # one by one
