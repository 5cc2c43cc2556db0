"""Many L-BFGS-B minimisations in lockstep: one batched evaluation serves one step of all of them.

The step itself is SciPy's own routine, driven by reverse communication. That entry point is private, so it is
probed once on a known problem; where the probe fails, the public ``scipy.optimize.minimize`` does the same work one
by one.

Restarts of one problem often end in the same optimum. A run that comes within ``JOIN_WITHIN`` of a better run of its
problem, in every coordinate, is on the way to where that one goes: it stops there and takes over its end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import scipy.optimize
from numpy.typing import NDArray

__all__ = ["LockstepResult", "lockstep_is_available", "minimize_lockstep", "minimize_one_by_one"]

Array = NDArray[np.float64]
Objective = Callable[[Array, NDArray[np.intp]], tuple[Array, Array]]

_MEMORY = 10  # correction pairs, SciPy's default
_LINE_SEARCH_STEPS = 20
# In the logarithm of a parameter: ten per cent
JOIN_WITHIN = 0.1
_JOIN_EVERY = 10
# The task codes of SciPy's L-BFGS-B in C
_NEW_ITERATE, _EVALUATE, _CONVERGED = 1, 3, 4


@dataclass(frozen=True, slots=True)
class LockstepResult:
    """The end of every run: its best point, value, evaluations, whether it converged, which run it joined (or −1)."""

    x: Array
    value: Array
    evaluations: NDArray[np.int64]
    converged: NDArray[np.bool_]
    joined: NDArray[np.int64]


@cache
def _private_routine() -> Callable[..., None]:
    from scipy.optimize import _lbfgsb

    routine: Callable[..., None] = _lbfgsb.setulb
    return routine


class _Run:
    """One minimisation: SciPy's workspace and where it stands."""

    __slots__ = ("_work", "converged", "evaluations", "gradient", "iterations", "task", "value", "x")

    def __init__(self, x: Array, gradient: Array, lower: Array, upper: Array, ftol: float, gtol: float) -> None:
        """x and gradient are views into the arrays of all runs; SciPy moves x in place."""
        n, m = x.size, _MEMORY
        self.x, self.gradient, self.value = x, gradient, 0.0
        self.evaluations = self.iterations = 0
        self.converged = False
        self.task = np.zeros(2, dtype=np.int32)
        self._work = (
            lower,
            upper,
            np.full(n, 2, dtype=np.int32),  # every variable is bounded on both sides
            ftol / np.finfo(float).eps,
            gtol,
            np.zeros(2 * m * n + 5 * n + 11 * m * m + 8 * m),
            np.zeros(3 * n, dtype=np.int32),
            np.zeros(4, dtype=np.int32),
            np.zeros(44, dtype=np.int32),
            np.zeros(29),
            np.zeros(2, dtype=np.int32),
        )

    def advance(self, max_iterations: int) -> bool:
        """Go on until a value is asked for (true) or the run has ended (false)."""
        step = _private_routine()
        lower, upper, bounded, factr, pgtol, wa, iwa, lsave, isave, dsave, ln_task = self._work
        while True:
            step(
                _MEMORY,
                self.x,
                lower,
                upper,
                bounded,
                self.value,
                self.gradient,
                factr,
                pgtol,
                wa,
                iwa,
                self.task,
                lsave,
                isave,
                dsave,
                _LINE_SEARCH_STEPS,
                ln_task,
            )
            if self.task[0] == _EVALUATE:
                return True
            if self.task[0] == _NEW_ITERATE:
                self.iterations += 1
                if self.iterations < max_iterations:
                    continue
            self.converged = bool(self.task[0] == _CONVERGED)
            return False


def _better_neighbours(x: Array, value: Array, restarts: int) -> NDArray[np.int64]:
    """For every run the best run of its problem within reach, if it is better (or equal and earlier); else −1."""
    points, values = x.reshape(-1, restarts, x.shape[-1]), value.reshape(-1, restarts)
    near = np.abs(points[:, :, None, :] - points[:, None, :, :]).max(-1) < JOIN_WITHIN
    order = np.arange(restarts)
    earlier = order[None, :] < order[:, None]
    better = (values[:, None, :] < values[:, :, None]) | ((values[:, None, :] == values[:, :, None]) & earlier)
    candidates = np.where(near & better & np.isfinite(values[:, None, :]), values[:, None, :], np.inf)
    best = candidates.argmin(-1) + restarts * np.arange(len(points))[:, None]
    return np.where(np.isfinite(candidates.min(-1)), best, -1).ravel()


def _run_lockstep(
    objective: Objective,
    starts: Array,
    lower: Array,
    upper: Array,
    *,
    max_iterations: int,
    ftol: float,
    gtol: float,
    restarts: int = 1,
) -> LockstepResult:
    points = np.array(starts, dtype=np.float64, order="C")
    slopes = np.zeros_like(points)
    runs = [_Run(points[i], slopes[i], lower, upper, ftol, gtol) for i in range(len(points))]
    best_x, best_value = points.copy(), np.full(len(points), np.inf)
    joined = np.full(len(points), -1, dtype=np.int64)
    active = [i for i, run in enumerate(runs) if run.advance(max_iterations)]
    steps = 0
    while active:
        steps += 1
        if restarts > 1 and steps % _JOIN_EVERY == 0:
            neighbours = _better_neighbours(best_x, best_value, restarts)
            for i in active:
                joined[i] = neighbours[i]
            active = [i for i in active if joined[i] < 0]
            if not active:
                break
        index = np.array(active, dtype=np.intp)
        values, gradients = objective(points[index], index)
        going = []
        better = values < best_value[index]
        improved = index[better]
        best_value[improved], best_x[improved] = values[better], points[improved]
        slopes[index] = gradients
        for i, value in zip(active, values.tolist(), strict=True):
            run = runs[i]
            run.value, run.evaluations = value, run.evaluations + 1
            if run.advance(max_iterations):
                going.append(i)
        active = going
    end = np.arange(len(points))
    while (onward := joined[end] >= 0).any():  # to the end of every chain of joins
        end = np.where(onward, joined[end], end)
    return LockstepResult(
        x=best_x[end],
        value=best_value[end],
        evaluations=np.array([run.evaluations for run in runs], dtype=np.int64),
        converged=np.array([run.converged for run in runs], dtype=np.bool_)[end],
        joined=joined,
    )


def minimize_one_by_one(
    objective: Objective,
    starts: Array,
    lower: Array,
    upper: Array,
    *,
    max_iterations: int,
    ftol: float,
    gtol: float,
    restarts: int = 1,  # noqa: ARG001
) -> LockstepResult:
    """The same minimisations through SciPy's public interface, one after the other: none can join another."""
    results = []
    for i, start in enumerate(starts):
        index = np.array([i], dtype=np.intp)

        def single(x: Array, index: NDArray[np.intp] = index) -> tuple[float, Array]:
            values, gradients = objective(x[None, :], index)
            return float(values[0]), gradients[0]

        options = {"maxiter": max_iterations, "ftol": ftol, "gtol": gtol, "maxcor": _MEMORY}
        bounds = scipy.optimize.Bounds(lower, upper)
        results.append(
            scipy.optimize.minimize(single, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        )
    return LockstepResult(
        x=np.stack([r.x for r in results]),
        value=np.array([float(r.fun) for r in results]),
        evaluations=np.array([r.nfev for r in results], dtype=np.int64),
        converged=np.array([bool(r.success) for r in results], dtype=np.bool_),
        joined=np.full(len(results), -1, dtype=np.int64),
    )


@cache
def lockstep_is_available() -> bool:
    """Whether SciPy's private routine still behaves as this module expects: it is tried on a bounded quadratic."""

    def quadratic(x: Array, _: NDArray[np.intp]) -> tuple[Array, Array]:
        return ((x - 2.0) ** 2).sum(-1), 2.0 * (x - 2.0)

    try:
        result = _run_lockstep(
            quadratic, np.zeros((2, 2)), np.zeros(2), np.array([1.0, 3.0]), max_iterations=50, ftol=0.0, gtol=1e-9
        )
    except (ImportError, AttributeError, TypeError, ValueError):
        return False
    return bool(result.converged.all() and np.allclose(result.x, [[1.0, 2.0]] * 2))


def minimize_lockstep(
    objective: Objective,
    starts: Array,
    lower: Array,
    upper: Array,
    *,
    max_iterations: int,
    ftol: float,
    gtol: float,
    restarts: int = 1,
) -> LockstepResult:
    """Minimise from every row of ``starts`` inside the bounds; ``objective(points, which)`` evaluates a batch.

    Every ``restarts`` consecutive rows belong to one problem and may join each other.
    """
    run = _run_lockstep if lockstep_is_available() else minimize_one_by_one
    options = {"max_iterations": max_iterations, "ftol": ftol, "gtol": gtol, "restarts": restarts}
    return run(objective, starts, lower, upper, **options)  # type: ignore[arg-type]
