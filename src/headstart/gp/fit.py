"""Hyperparameters by multi-start L-BFGS-B, many problems and restarts at once, with a report on every restart."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import Enum
from typing import Self

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from headstart.errors import InputError, NumericalError
from headstart.gp.evidence import Evidence
from headstart.gp.hyperparameters import Expected, Starts
from headstart.gp.lbfgs import minimize_lockstep
from headstart.gp.restarts import FitReport
from headstart.gp.threads import single_thread

Seed = int | torch.Generator | None

# What a point is worth where the factorisation failed, times the largest value met so far: larger than any real value,
# yet a line search can step back.
_PENALTY = 1e10
# Restarts closer than this (per observation) ended in the same optimum; the first of them is taken, so that
# rounding does not choose.
_SAME_OPTIMUM = 1e-7
# Share of the tolerances with which the best of them is then brought to its end
_POLISH = 0.01
# Elements of K that are worked on at once on a CPU, so that a chunk of restarts stays in the cache.
_CPU_CHUNK = 1 << 18
_GPU_CHUNK = 1 << 27


class Objective(Enum):
    """What is maximised over the hyperparameters."""

    LIKELIHOOD = "maximum likelihood"
    POSTERIOR = "maximum a posteriori"  # with the weak priors of gp.hyperparameters


@dataclass(frozen=True, slots=True)
class FitOptions:
    """How hyperparameters are found. The default is MAP, which is well behaved with no, one or two observations.

    The optimiser works on θ, the logarithms of the parameters. With ``natural_too`` it goes a second time from every
    start, on the parameters themselves, as far as the evidence asks for that (gp.evidence). A likelihood of few
    observations has many optima, and the two ways lead from one start to different ones: a first step on the noise
    itself often takes it to its bound, where the process interpolates; the logarithm gets there in many steps, if at
    all.

    ``draws`` is how many further hyperparameters of a process on its own (GPBO, also as a candidate of AUTO) are drawn
    around the most probable ones while it has few observations (gp.draws); 0 is the mode alone.
    """

    objective: Objective = Objective.POSTERIOR
    starts: Starts = Starts.PRIOR
    restarts: int = 5
    max_iterations: int = 200
    ftol: float = 1e-8
    gtol: float = 3e-5
    unit_cube: bool = True
    natural_too: bool = False
    draws: int = 8

    def __post_init__(self) -> None:
        """Check the numbers."""
        for name in ("restarts", "max_iterations"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise InputError(f"{name} must be a whole number of at least 1, but it is {value!r}.")
        if not isinstance(self.draws, int) or self.draws < 0 or self.draws % 2:
            raise InputError(f"draws come in pairs and must be an even number of at least 0, but it is {self.draws!r}.")
        for name in ("ftol", "gtol"):
            if not getattr(self, name) >= 0:
                raise InputError(f"{name} must not be negative, but it is {getattr(self, name)!r}.")
        for name, kind in (("objective", Objective), ("starts", Starts)):
            if not isinstance(getattr(self, name), kind):
                choices = ", ".join(f"{kind.__name__}.{member.name}" for member in kind)
                raise InputError(f"{name} must be one of {choices}, but it is {getattr(self, name)!r}.")

    @classmethod
    def paper(cls) -> Self:
        """The paper's appendix: maximum likelihood, 10 restarts, starts softplus(N(0, 1))."""
        return cls(objective=Objective.LIKELIHOOD, starts=Starts.SOFTPLUS, restarts=10, draws=0)

    @classmethod
    def thorough(cls) -> Self:
        """The same, both ways from every start: for the highest likelihood, at up to twice the cost."""
        return replace(cls.paper(), natural_too=True)


def generator_from(seed: Seed) -> torch.Generator:
    """A CPU generator: the one given, one seeded with an integer, or a freshly seeded one."""
    if isinstance(seed, torch.Generator):
        return seed
    generator = torch.Generator()
    if seed is None:
        generator.seed()
    else:
        generator.manual_seed(seed)
    return generator


def fit(
    evidence: Evidence,
    options: FitOptions,
    *,
    seed: Seed,
    task: str,
    batch_shape: torch.Size,
    expected: Expected | None = None,
    start: Float[Tensor, "P p"] | None = None,
    begin: Float[Tensor, "P p"] | None = None,
) -> tuple[Float[Tensor, "*b p"], FitReport]:
    """The best θ of every problem, and the report.

    ``begin`` is a θ of every problem to begin at, in place of the last of the starts that are drawn.

    All problems of a batch share their starting points, relative to what is ``expected`` of each, so each gives what it
    gives alone. Without observations θ is the prior's median. With ``start`` there is a single run, which begins there.
    """
    layout, n, P = evidence.layout, evidence.n_observations, evidence.n_problems
    options = options if start is None else replace(options, restarts=1, natural_too=False)
    generator = generator_from(seed)
    common = layout.centre()
    if n == 0:
        theta = common.expand(*batch_shape, -1).to(evidence.device)
        theta = theta if expected is None else expected.centre.reshape(*batch_shape, -1)
        nothing = torch.empty(*batch_shape, 0, dtype=torch.int64)
        best = torch.zeros(batch_shape, dtype=torch.int64)
        return theta, FitReport(task, nothing.double(), nothing, nothing.bool(), nothing, nothing, best)
    starts, natural = layout.starts(options.starts, options.restarts, generator), np.zeros(options.restarts, dtype=bool)
    plan = evidence.search_plan(natural_too=options.natural_too, priors=options.objective is Objective.POSTERIOR)
    if plan.natural_too:
        starts, natural = starts.repeat(2, 1), np.repeat([False, True], options.restarts)
    R = len(starts)
    centre, precision = common.expand(P, -1).numpy(), layout.precision().expand(P, -1).numpy()
    first = starts.repeat(P, 1).numpy()  # problem-major: row = problem · R + restart
    if expected is not None:
        centre, precision = expected.centre.cpu().numpy(), expected.spread.cpu().pow(-2).numpy()
        first = first + (centre - common.numpy()).repeat(R, axis=0)
    first = first if start is None else start.cpu().numpy()
    if begin is not None:
        first[R - 1 :: R] = begin.cpu().numpy()
    maximum_a_posteriori = options.objective is Objective.POSTERIOR
    failures = np.zeros(P * R, dtype=np.int64)
    lowest_found = np.full(P * R, np.inf)  # of those that could be evaluated
    largest = 1.0
    budget = _CPU_CHUNK if evidence.device.type == "cpu" else _GPU_CHUNK
    chunk = max(1, budget // (n * n))

    on_cpu = evidence.device.type == "cpu"
    one_problem = torch.zeros(R, dtype=torch.int64, device=evidence.device)

    def objective(
        points: NDArray[np.float64], which: NDArray[np.intp]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        theta = torch.from_numpy(points) if on_cpu else torch.from_numpy(points).to(evidence.device)
        items = one_problem[: len(points)] if P == 1 else torch.from_numpy(which // R).to(evidence.device)
        if len(points) <= chunk:
            value_, gradient_, ok_ = evidence.evaluate(theta, items)
        else:
            parts = [evidence.evaluate(t, i) for t, i in zip(theta.split(chunk), items.split(chunk), strict=True)]
            value_, gradient_, ok_ = (torch.cat(column) for column in zip(*parts, strict=True))
        if not on_cpu:
            value_, gradient_, ok_ = value_.cpu(), gradient_.cpu(), ok_.cpu()
        value, gradient, ok = value_.numpy(), gradient_.numpy(), ok_.numpy()
        if maximum_a_posteriori:
            away = points - centre[which // R]
            pull = away * precision[which // R]
            value = value + 0.5 * (pull * away).sum(-1)
            gradient = gradient + pull
        nonlocal largest
        value, gradient = value / n, gradient / n
        if not (ok.all() and math.isfinite(value.sum() + gradient.sum())):
            bad = ~(ok & np.isfinite(value + gradient.sum(-1)))
            failures[which[bad]] += 1
            largest = max(largest, np.abs(value[~bad]).max(initial=0.0))
            value[bad], gradient[bad] = _PENALTY * largest, 0.0
            which = which[~bad]
            np.minimum.at(lowest_found, which, value[~bad])
        else:
            largest = max(largest, float(np.abs(value).max()))
            np.minimum.at(lowest_found, which, value)
        return value, gradient

    lower, upper = (bound.numpy() for bound in layout.bounds())
    with torch.inference_mode(), single_thread():
        result = minimize_lockstep(
            objective,
            np.clip(first, lower, upper),
            lower,
            upper,
            max_iterations=options.max_iterations,
            ftol=options.ftol,
            gtol=options.gtol,
            restarts=R,
            joining=plan.joining,
            natural=np.tile(natural, P),
            natural_steps=plan.natural_steps,
        )
        value, ends = result.value, np.clip(result.x, lower, upper)  # exp and log may step over a bound by a rounding
        lowest = value.reshape(P, R).min(-1, keepdims=True)
        failed = np.isinf(lowest_found)
        if (hopeless := failed.reshape(P, R).all(-1)).any():
            raise NumericalError(
                f"{task}: the covariance matrix could not be factorised from any of {options.restarts} starting "
                f"points ({int(hopeless.sum())} of {P} problems, {n} observations). Look for many repeated inputs; "
                "more restarts (FitOptions.restarts) or merging repeated rows can help."
            )
        best = (value.reshape(P, R) <= lowest + _SAME_OPTIMUM).argmax(-1)
        if plan.joining is not None:
            # the best may have ended where a long lengthscale hardly matters any more, and others have joined it
            rows = np.arange(P) * R + best
            polished = minimize_lockstep(
                lambda points, which: objective(points, rows[which]),
                ends[rows],
                lower,
                upper,
                max_iterations=options.max_iterations,
                ftol=_POLISH * options.ftol,
                gtol=_POLISH * options.gtol,
            )
            value[rows], ends[rows] = polished.value, polished.x
            result.evaluations[rows] += polished.evaluations
    theta = torch.from_numpy(ends.reshape(P, R, -1)[np.arange(P), best]).to(evidence.device)
    shape = (*batch_shape, R)
    report = FitReport(
        task=task,
        objective=torch.from_numpy(value).reshape(shape),
        evaluations=torch.from_numpy(result.evaluations).reshape(shape),
        converged=torch.from_numpy(result.converged & ~failed).reshape(shape),
        failures=torch.from_numpy(failures).reshape(shape),
        joined=torch.from_numpy(np.where(result.joined < 0, -1, result.joined % R)).reshape(shape),
        best=torch.from_numpy(best).reshape(batch_shape),
        n_observations=n,
        n_natural=int(natural.sum()),
    )
    return theta.reshape(*batch_shape, -1), report
