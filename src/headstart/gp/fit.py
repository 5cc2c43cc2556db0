"""Hyperparameters by multi-start L-BFGS-B, many problems and restarts at once, with a report on every restart."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import Any, Self

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from headstart.errors import InputError, NumericalError
from headstart.gp.evidence import Evidence
from headstart.gp.hyperparameters import Layout, Starts, ThetaPrior
from headstart.gp.lbfgs import Joining, Minimization
from headstart.gp.threads import single_thread
from headstart.tuning import PLAIN_TUNING

Array = NDArray[np.float64]
Seed = int | torch.Generator | None

# The objective where the factorisation failed, times the largest value met so far: larger than any real value, yet a
# line search can step back.
_PENALTY = 1e10
# Restarts closer than this (per observation) ended in the same optimum; the first of them is taken, so that
# rounding does not choose.
_SAME_OPTIMUM = 1e-7
# Without priors a long lengthscale or a small noise may go on for ever at no gain: restarts are compared by effect
_COMPARE_EVERY, _COMPARE_WITHIN = 5, 0.2
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

    Args:
        objective: Maximum a posteriori, or maximum likelihood.
        starts: The distribution of the starting points.
        restarts: The number of starting points.
        max_iterations: The largest number of L-BFGS-B iterations of a restart.
        ftol: Relative change of the objective per observation at which a restart has converged.
        gtol: Largest entry of the projected gradient per observation at which a restart has converged.
        unit_cube: Whether inputs must lie in the unit cube.
        draws: How many further hyperparameters of a process on its own (GPBO, also as a candidate of AUTO) are drawn
            around the most probable ones while it has few observations (gp.draws); even. 0 is the mode alone.

    Raises:
        InputError: For a number out of its range, or a value that is not of the enum.
    """

    objective: Objective = Objective.POSTERIOR
    starts: Starts = Starts.PRIOR
    restarts: int = 5
    max_iterations: int = 200
    ftol: float = 1e-8
    gtol: float = 3e-5
    unit_cube: bool = True
    draws: int = PLAIN_TUNING.draws

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
        """The settings of the paper's appendix.

        Returns:
            Maximum likelihood, 10 restarts, starts softplus(N(0, 1)), no draws.
        """
        return cls(objective=Objective.LIKELIHOOD, starts=Starts.SOFTPLUS, restarts=10, draws=0)


@dataclass(frozen=True, slots=True)
class FitReport:
    """What every restart of one fit did. ``objective`` is what was minimised, per observation; lower is better.

    Leading dimensions are those of the batch of problems; the last one counts the restarts.

    Args:
        task: The name of the task.
        objective: What was minimised, per observation, by restart.
        evaluations: Evaluations of the objective.
        converged: Whether the search ended by itself.
        failures: Factorisations that failed on the way.
        joined: The restart whose path this one met and whose end it shares, or −1.
        best: The restart that was taken.
        n_observations: Observations of the task.
        note: How a task of very many rows was fitted, in words.
    """

    task: str
    objective: Float[Tensor, "*b R"]
    evaluations: Int[Tensor, "*b R"]
    converged: Bool[Tensor, "*b R"]
    failures: Int[Tensor, "*b R"]
    joined: Int[Tensor, "*b R"]
    best: Int[Tensor, "*b"]
    n_observations: int = 0
    note: str = ""

    def __str__(self) -> str:
        """A line for the fit and, for a single problem, a line per restart."""
        head = (
            f"{self.task}: {self.n_observations} observations, {self.objective.shape[-1]} restarts, "
            f"{int(self.converged.sum())} of {self.converged.numel()} converged, "
            f"{int(self.evaluations.sum())} evaluations, {int(self.failures.sum())} failed factorisations"
        )
        head += f"; {self.note}" if self.note else ""
        if self.objective.dim() > 1 or self.objective.numel() == 0:
            return head
        rows = [
            f"  {i:>3} {'*' if i == int(self.best) else ' '} objective {self.objective[i].item():+.6f}  "
            f"evaluations {int(self.evaluations[i]):>4}  {'converged' if self.converged[i] else 'stopped early'}"
            f"{f', with restart {int(self.joined[i])}' if self.joined[i] >= 0 else ''}"
            f"{f'  failures {int(self.failures[i])}' if self.failures[i] else ''}"
            for i in range(len(self.objective))
        ]
        return "\n".join([head, *rows])


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


class _Objective:
    """−log p(y | θ), or −log p(θ | y) with a ``prior``, per observation and with its gradient, of runs in lockstep.

    Run i is restart i mod ``restarts`` of problem i // ``restarts``. A point that cannot be computed costs more than
    any other met so far.
    """

    def __init__(self, evidence: Evidence, restarts: int, prior: ThetaPrior, objective: Objective) -> None:
        self._evidence, self._restarts = evidence, restarts
        self._centre, self._precision = prior.centre.cpu().numpy(), prior.spread.cpu().pow(-2).numpy()
        if objective is Objective.LIKELIHOOD:
            self._precision = np.zeros_like(self._precision)
        runs = evidence.n_problems * restarts
        self.failures = np.zeros(runs, dtype=np.int64)
        self.evaluated = np.zeros(runs, dtype=np.bool_)  # at least once without failure
        self._largest = 1.0
        on_cpu = evidence.device.type == "cpu"
        self._chunk = max(1, (_CPU_CHUNK if on_cpu else _GPU_CHUNK) // evidence.n_observations**2)

    def _evidence_at(self, points: Array, problem: NDArray[np.intp]) -> tuple[Array, Array, NDArray[np.bool_]]:
        """The evidence of every point, in chunks that fit into the cache."""
        evidence = self._evidence
        theta, items = (torch.from_numpy(part).to(evidence.device) for part in (points, problem))
        if len(points) <= self._chunk:
            value, gradient, ok = evidence.evaluate(theta, items)
        else:
            parts = map(evidence.evaluate, theta.split(self._chunk), items.split(self._chunk))
            value, gradient, ok = (torch.cat(column) for column in zip(*parts, strict=True))
        return value.numpy(force=True), gradient.numpy(force=True), ok.numpy(force=True)

    def __call__(self, points: Array, which: NDArray[np.intp]) -> tuple[Array, Array]:
        """Values and gradients at the points of these runs."""
        problem, n = which // self._restarts, self._evidence.n_observations
        value, gradient, ok = self._evidence_at(points, problem)
        away = points - self._centre[problem]
        pull = away * self._precision[problem]
        value, gradient = (value + 0.5 * (pull * away).sum(-1)) / n, (gradient + pull) / n
        if ok.all() and math.isfinite(value.sum() + gradient.sum()):
            self._largest = max(self._largest, float(np.abs(value).max()))
            self.evaluated[which] = True
        else:
            bad = ~(ok & np.isfinite(value + gradient.sum(-1)))
            self.failures[which[bad]] += 1
            self.evaluated[which[~bad]] = True
            self._largest = max(self._largest, np.abs(value[~bad]).max(initial=0.0))
            value[bad], gradient[bad] = _PENALTY * self._largest, 0.0
        return value, gradient


def _starting_points(
    layout: Layout, options: FitOptions, generator: torch.Generator, prior: ThetaPrior, warm_start: Tensor | None
) -> Array:
    """The starts of all problems (row = problem · R + restart): the same ones, relative to the prior of each."""
    R, P = options.restarts, len(prior.centre)
    centre = prior.centre.cpu()
    starts = layout.starts(options.starts, R, generator).repeat(P, 1)
    starts = starts + (centre - layout.centre()).repeat_interleave(R, dim=0)
    if warm_start is not None:
        starts[R - 1 :: R] = warm_start.cpu()
    lower, upper = layout.bounds()
    return starts.clamp(lower, upper).numpy()


def fit(
    evidence: Evidence,
    options: FitOptions,
    *,
    seed: Seed,
    task: str,
    batch_shape: torch.Size,
    prior: ThetaPrior | None = None,
    warm_start: Float[Tensor, "P p"] | None = None,
) -> tuple[Float[Tensor, "*b p"], FitReport]:
    """The best θ of every problem, and the report.

    All problems of a batch share their starting points, relative to the prior of each (the layout's, if None), so each
    gives what it gives alone. Without observations θ is the prior's median. ``task`` is a name for the report,
    ``batch_shape`` the leading dimensions of the result, ``warm_start`` a θ of every problem for the last start.
    """
    layout, n, P, R = evidence.layout, evidence.n_observations, evidence.n_problems, options.restarts
    generator = generator_from(seed)
    prior = layout.prior(P) if prior is None else prior
    if n == 0:
        theta = prior.centre.reshape(*batch_shape, -1).to(evidence.device)
        nothing = torch.empty(*batch_shape, 0, dtype=torch.int64)
        best = torch.zeros(batch_shape, dtype=torch.int64)
        return theta, FitReport(task, nothing.double(), nothing, nothing.bool(), nothing, nothing, best)
    map_ = options.objective is Objective.POSTERIOR
    objective = _Objective(evidence, R, prior, options.objective)
    lower, upper = (bound.numpy() for bound in layout.bounds())
    with torch.inference_mode(), single_thread():
        result = Minimization(
            objective,
            _starting_points(layout, options, generator, prior, warm_start),
            lower,
            upper,
            max_iterations=options.max_iterations,
            ftol=options.ftol,
            gtol=options.gtol,
            joining=Joining(R) if map_ else Joining(R, _COMPARE_EVERY, _COMPARE_WITHIN, layout.saturating),
        ).run()
    hopeless = ~objective.evaluated.reshape(P, R).any(-1)
    if hopeless.any():
        raise NumericalError(
            f"{task}: the covariance matrix could not be factorised from any of {R} starting "
            f"points ({int(hopeless.sum())} of {P} problems, {n} observations). Look for many repeated inputs; "
            "more restarts (FitOptions.restarts) or merging repeated rows can help."
        )
    value = result.value.reshape(P, R)
    best = (value <= value.min(-1, keepdims=True) + _SAME_OPTIMUM).argmax(-1)
    theta = torch.from_numpy(result.x.reshape(P, R, -1)[np.arange(P), best]).to(evidence.device)

    def by_restart(column: NDArray[Any]) -> Tensor:
        return torch.from_numpy(column).reshape(*batch_shape, R)

    report = FitReport(
        task=task,
        objective=by_restart(result.value),
        evaluations=by_restart(result.evaluations),
        converged=by_restart(result.converged & objective.evaluated),
        failures=by_restart(objective.failures),
        joined=by_restart(np.where(result.joined < 0, -1, result.joined % R)),
        best=torch.from_numpy(best).reshape(batch_shape),
        n_observations=n,
    )
    return theta.reshape(*batch_shape, -1), report
