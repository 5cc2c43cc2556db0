"""Many L-BFGS-B minimisations in lockstep: one batched evaluation serves one step of all of them.

The step itself is SciPy's own routine, driven by reverse communication. That entry point is private, so it is
probed once on a known problem; where the probe fails, the public ``scipy.optimize.minimize`` does the same work one
by one.

Restarts of one problem often end in the same optimum. With ``Joining`` a run that comes close to a better run of its
problem, in every coordinate, stops there and takes over the end of that run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import cache

import numpy as np
import scipy.optimize
from numpy.typing import NDArray

Array = NDArray[np.float64]
BatchObjective = Callable[[Array, NDArray[np.intp]], tuple[Array, Array]]

_MEMORY = 10  # correction pairs, SciPy's default
_LINE_SEARCH_STEPS = 20
_JOIN_FROM = 10  # steps: runs that begin at one point need a while to part
# The task codes of SciPy's L-BFGS-B in C
_NEW_ITERATE, _EVALUATE, _CONVERGED = 1, 3, 4


@dataclass(frozen=True, slots=True)
class Joining:
    """When restarts that meet go on as one.

    Every ``restarts`` consecutive runs belong to one problem. They are compared every ``every`` steps, in these
    ``coordinates`` (a row per run); runs ``within`` this distance of a better one in each of them join it.
    """

    restarts: int
    every: int = 10
    within: float = 0.1  # in the logarithm of a parameter: ten per cent
    coordinates: Callable[[Array], Array] = np.asarray

    def better_neighbours(self, x: Array, value: Array, active: list[int]) -> NDArray[np.int64]:
        """For every active run the best of its problem within reach, if better (or equal and earlier); else −1."""
        x, runs = self.coordinates(x), np.array(active, dtype=np.int64)
        rows = (runs // self.restarts * self.restarts)[:, None] + np.arange(self.restarts)  # of its problem
        near = (np.abs(x[rows] - x[runs, None]) < self.within).all(-1)
        values, own = value[rows], value[runs, None]
        better = (values < own) | ((values == own) & (rows < runs[:, None]))
        candidates = np.where(near & better, values, np.inf)
        every, best = np.arange(len(runs)), candidates.argmin(-1)
        return np.where(candidates[every, best] < np.inf, rows[every, best], -1)


@dataclass(frozen=True, slots=True)
class LockstepResult:
    """The end of every run: its best point, value, evaluations, whether it converged, which run it joined (or −1)."""

    x: Array
    value: Array
    evaluations: NDArray[np.int64]
    converged: NDArray[np.bool_]
    joined: NDArray[np.int64]


class _Run:
    """One minimisation: SciPy's workspace and its state."""

    __slots__ = ("_after", "_before", "_step", "converged", "iterations", "task", "value")

    def __init__(self, x: Array, gradient: Array, problem: Minimization) -> None:
        """x and gradient are views into the arrays of all runs; SciPy moves x in place."""
        from scipy.optimize import _lbfgsb

        n, m = x.size, _MEMORY
        self.value = 0.0
        self.iterations = 0
        self.converged = False
        self.task = np.zeros(2, dtype=np.int32)
        self._step: Callable[..., None] = _lbfgsb.setulb
        bounded = np.full(n, 2, dtype=np.int32)  # every variable is bounded on both sides
        # the arguments of SciPy's routine before and after the value
        self._before = (m, x, problem.lower, problem.upper, bounded)
        self._after = (
            gradient,
            problem.ftol / np.finfo(float).eps,
            problem.gtol,
            np.zeros(2 * m * n + 5 * n + 11 * m * m + 8 * m),
            np.zeros(3 * n, dtype=np.int32),
            self.task,
            np.zeros(4, dtype=np.int32),
            np.zeros(44, dtype=np.int32),
            np.zeros(29),
            _LINE_SEARCH_STEPS,
            np.zeros(2, dtype=np.int32),
        )

    def advance(self, max_iterations: int) -> bool:
        """Go on until a value is asked for (true) or the run has ended (false)."""
        while True:
            self._step(*self._before, self.value, *self._after)
            task = self.task.item(0)
            if task == _EVALUATE:
                return True
            if task == _NEW_ITERATE:
                self.iterations += 1
                if self.iterations < max_iterations:
                    continue
            self.converged = task == _CONVERGED
            return False


@dataclass(frozen=True, slots=True)
class Minimization:
    """Minimise from every row of ``starts`` inside the bounds; ``objective(points, which)`` evaluates a batch.

    Restarts join each other where ``joining`` says how. ``ftol`` and ``gtol`` are those of SciPy's L-BFGS-B.
    """

    objective: BatchObjective
    starts: Array
    lower: Array
    upper: Array
    _: KW_ONLY
    max_iterations: int
    ftol: float
    gtol: float
    joining: Joining | None = None

    def in_lockstep(self) -> LockstepResult:
        """All runs together, by SciPy's private routine."""
        best_x = np.array(self.starts, dtype=np.float64, order="C")
        points, slopes = best_x.copy(), np.zeros_like(best_x)
        runs = [_Run(points[i], slopes[i], self) for i in range(len(points))]
        best_value = np.full(len(points), np.inf)
        evaluations = np.zeros(len(points), dtype=np.int64)
        joined = np.full(len(points), -1, dtype=np.int64)
        active = [i for i, run in enumerate(runs) if run.advance(self.max_iterations)]
        step = 0
        while active:
            step += 1
            joining = self.joining
            if joining is not None and joining.restarts > 1 and step >= _JOIN_FROM and step % joining.every == 0:
                joined[active] = joining.better_neighbours(best_x, best_value, active)
                active = [i for i in active if joined[i] < 0]
                if not active:
                    break
            index = np.array(active, dtype=np.intp)
            x = points[index]
            values, slopes[index] = self.objective(x, index)
            better = values < best_value[index]
            improved = index[better]
            best_value[improved], best_x[improved] = values[better], x[better]
            evaluations[index] += 1
            for i, value in zip(active, values.tolist(), strict=True):
                runs[i].value = value
            active = [i for i in active if runs[i].advance(self.max_iterations)]
        end = np.arange(len(joined))  # the run at the end of every chain of joins
        while (onward := joined[end] >= 0).any():
            end = np.where(onward, joined[end], end)
        return LockstepResult(
            x=best_x[end],
            value=best_value[end],
            evaluations=evaluations,
            converged=np.array([run.converged for run in runs], dtype=np.bool_)[end],
            joined=joined,
        )

    def one_by_one(self) -> LockstepResult:
        """The same runs through SciPy's public interface, one after the other: none can join another."""
        options = {"maxiter": self.max_iterations, "ftol": self.ftol, "gtol": self.gtol, "maxcor": _MEMORY}
        bounds = scipy.optimize.Bounds(self.lower, self.upper)

        def single(point: Array, i: int) -> tuple[float, Array]:
            values, gradients = self.objective(point[None, :], np.array([i], dtype=np.intp))
            return float(values[0]), gradients[0]

        results = [
            scipy.optimize.minimize(single, start, i, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
            for i, start in enumerate(self.starts)
        ]
        return LockstepResult(
            x=np.stack([r.x for r in results]),
            value=np.array([float(r.fun) for r in results]),
            evaluations=np.array([r.nfev for r in results], dtype=np.int64),
            converged=np.array([bool(r.success) for r in results], dtype=np.bool_),
            joined=np.full(len(results), -1, dtype=np.int64),
        )

    def run(self) -> LockstepResult:
        """In lockstep where SciPy's private routine is available, one by one elsewhere."""
        return self.in_lockstep() if lockstep_is_available() else self.one_by_one()


@cache
def lockstep_is_available() -> bool:
    """Whether SciPy's private routine still behaves as this module expects: it is tried on a bounded quadratic."""

    def quadratic(x: Array, _: NDArray[np.intp]) -> tuple[Array, Array]:
        return ((x - 2.0) ** 2).sum(-1), 2.0 * (x - 2.0)

    upper = np.array([1.0, 3.0])
    probe = Minimization(quadratic, np.zeros((2, 2)), np.zeros(2), upper, max_iterations=50, ftol=0.0, gtol=1e-9)
    try:
        result = probe.in_lockstep()
    except (ImportError, AttributeError, TypeError, ValueError):
        return False
    return bool(result.converged.all() and np.allclose(result.x, [[1.0, 2.0]] * 2))
