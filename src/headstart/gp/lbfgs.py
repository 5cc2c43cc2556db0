"""Many L-BFGS-B minimisations in lockstep: one batched evaluation serves one step of all of them.

The step itself is SciPy's own routine, driven by reverse communication. That entry point is private, so it is
probed once on a known problem; where the probe fails, the public ``scipy.optimize.minimize`` does the same work one
by one.

Restarts of one problem often end in the same optimum, or fall behind: which of them need not go on says gp.restarts.

A run may search exp x instead of x (``natural``): another path from the same start, which can end elsewhere. It is the
slower one, so where all runs of the problem in x have ended in one place, or after as many steps as the caller grants
(``natural_steps``), it goes on in x.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import scipy.optimize
from numpy.typing import NDArray

from headstart.gp.restarts import PACE, Array, Joining, agree, better_neighbours, ends, too_slow

BatchObjective = Callable[[Array, NDArray[np.intp]], tuple[Array, Array]]

_MEMORY = 10  # correction pairs, SciPy's default
_LINE_SEARCH_STEPS = 20
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

    __slots__ = ("_after", "_before", "_step", "converged", "iterations", "task", "value")

    def __init__(self, x: Array, gradient: Array, lower: Array, upper: Array, ftol: float, gtol: float) -> None:
        """x and gradient are views into the arrays of all runs; SciPy moves x in place."""
        n, m = x.size, _MEMORY
        self.value = 0.0
        self.iterations = 0
        self.converged = False
        self.task = np.zeros(2, dtype=np.int32)
        self._step = _private_routine()
        bounded = np.full(n, 2, dtype=np.int32)  # every variable is bounded on both sides
        # the arguments of SciPy's routine before and after the value
        self._before = (m, x, lower, upper, bounded)
        self._after = (
            gradient,
            ftol / np.finfo(float).eps,
            gtol,
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


def _run_lockstep(
    objective: BatchObjective,
    starts: Array,
    lower: Array,
    upper: Array,
    *,
    max_iterations: int,
    ftol: float,
    gtol: float,
    restarts: int = 1,
    joining: Joining | None = None,
    natural: NDArray[np.bool_] | None = None,
    natural_steps: int | None = None,
) -> LockstepResult:
    joining = joining or Joining()
    best_x = np.array(starts, dtype=np.float64, order="C")
    natural = np.zeros(len(best_x), dtype=bool) if natural is None else natural.copy()
    by_x = ~natural.reshape(-1, restarts)
    points = _outward(best_x, natural[:, None])
    slopes = np.zeros_like(points)
    low, high = (_outward(np.broadcast_to(bound, points.shape), natural[:, None]) for bound in (lower, upper))
    runs = [_Run(points[i], slopes[i], low[i], high[i], ftol, gtol) for i in range(len(points))]
    mixed = bool(natural.any())
    best_value = np.full(len(points), np.inf)
    evaluations = np.zeros(len(points), dtype=np.int64)
    joined = np.full(len(points), -1, dtype=np.int64)
    active = [i for i, run in enumerate(runs) if run.advance(max_iterations)]
    steps, earlier = 0, None
    while active:
        steps += 1
        back: list[int] = []  # from exp x to x
        if restarts > 1 and joining.is_due(steps):
            compared = joining.coordinates(best_x)
            joined[active] = better_neighbours(compared, best_value, active, restarts, joining.within)
            active = [i for i in active if joined[i] < 0]
            if not active:
                break
            if mixed:
                agreed = agree(compared, joined, active, by_x, joining.within)
                back = [i for i in active if natural[i] and agreed[i // restarts]]
        if mixed and natural_steps is not None and steps > natural_steps:
            back = [i for i in active if natural[i]]
        for i in back:
            natural[i], points[i] = False, best_x[i]
            runs[i] = _Run(points[i], slopes[i], lower, upper, ftol, gtol)
            runs[i].advance(max_iterations)
        mixed = mixed and bool(natural[active].any())
        if joining.is_race(steps):
            if earlier is not None:
                left = max(max_iterations - steps, PACE)  # some steps are no iterations, so there may be more
                slow = too_slow(best_value, earlier, restarts, left / PACE)
                active = [i for i in active if not slow[i]]
                if not active:
                    break
            earlier = best_value.copy()
        index = np.array(active, dtype=np.intp)
        x = points[index]
        if mixed:
            at, here = x, natural[index, None]
            x = _inward(at, here)
        values, gradients = objective(x, index)
        going = []
        better = values < best_value[index]
        improved = index[better]
        best_value[improved], best_x[improved] = values[better], x[better]
        evaluations[index] += 1
        # ∂f/∂p = ∂f/∂x / p for p = exp x
        slopes[index] = np.divide(gradients, at, out=gradients.copy(), where=here) if mixed else gradients
        for i, value in zip(active, values.tolist(), strict=True):
            run = runs[i]
            run.value = value
            if run.advance(max_iterations):
                going.append(i)
        active = going
    end = ends(joined)
    return LockstepResult(
        x=best_x[end],
        value=best_value[end],
        evaluations=evaluations,
        converged=np.array([run.converged for run in runs], dtype=np.bool_)[end],
        joined=joined,
    )


def _outward(x: Array, natural: NDArray[np.bool_]) -> Array:
    """exp x in the rows that are searched so."""
    return np.exp(x, out=np.array(x, order="C"), where=natural)


def _inward(points: Array, natural: NDArray[np.bool_]) -> Array:
    """x of the rows that hold exp x, and of the others."""
    return np.log(points, out=points.copy(), where=natural)


def minimize_one_by_one(
    objective: BatchObjective,
    starts: Array,
    lower: Array,
    upper: Array,
    *,
    max_iterations: int,
    ftol: float,
    gtol: float,
    restarts: int = 1,  # noqa: ARG001
    joining: Joining | None = None,  # noqa: ARG001
    natural: NDArray[np.bool_] | None = None,
    natural_steps: int | None = None,  # noqa: ARG001
) -> LockstepResult:
    """The same minimisations through SciPy's public interface, one after the other: none can join another.

    Rows that are ``natural`` stay so to their end.
    """
    options = {"maxiter": max_iterations, "ftol": ftol, "gtol": gtol, "maxcor": _MEMORY}
    results = []
    for i, start in enumerate(starts):
        index, by_exp = np.array([i], dtype=np.intp), natural is not None and bool(natural[i])
        here = np.array([[by_exp]])

        def single(
            point: Array, index: NDArray[np.intp] = index, here: NDArray[np.bool_] = here
        ) -> tuple[float, Array]:
            values, gradients = objective(_inward(point[None, :], here), index)
            return float(values[0]), gradients[0] / point if here.any() else gradients[0]

        bounds = scipy.optimize.Bounds(*((np.exp(lower), np.exp(upper)) if by_exp else (lower, upper)))
        begin = _outward(start[None], here)[0]
        result = scipy.optimize.minimize(single, begin, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        result.x = _inward(result.x[None], here)[0]
        results.append(result)
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
    objective: BatchObjective,
    starts: Array,
    lower: Array,
    upper: Array,
    *,
    max_iterations: int,
    ftol: float,
    gtol: float,
    restarts: int = 1,
    joining: Joining | None = None,
    natural: NDArray[np.bool_] | None = None,
    natural_steps: int | None = None,
) -> LockstepResult:
    """Minimise from every row of ``starts`` inside the bounds; ``objective(points, which)`` evaluates a batch.

    Every ``restarts`` consecutive rows belong to one problem and may join each other. Rows that are ``natural`` are
    searched in exp x, for at most ``natural_steps`` steps; starts, bounds, evaluations and results are x all the same.
    """
    run = _run_lockstep if lockstep_is_available() else minimize_one_by_one
    return run(
        objective,
        starts,
        lower,
        upper,
        max_iterations=max_iterations,
        ftol=ftol,
        gtol=gtol,
        restarts=restarts,
        joining=joining,
        natural=natural,
        natural_steps=natural_steps,
    )
