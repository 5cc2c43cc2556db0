"""The demonstration: Bayesian optimisation of one task, with the data of another and from scratch."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from headstart.bench.problems.synthetic import Family, family
from headstart.data.dataset import Dataset
from headstart.decide.suggest import suggest
from headstart.errors import InputError
from headstart.models.family import FAMILY, GPBO
from headstart.models.model import Prior, TransferModel

__all__ = ["MARKS", "Demo", "DemoResult", "run_demo"]

# After how many evaluations the regrets are compared
MARKS = (1, 5, 10, 20)


@dataclass(frozen=True, slots=True)
class Demo:
    """What is run: ``runs`` random pairs of tasks of a family, ``steps`` evaluations of the target in each.

    The source is known at ``source_points`` random points. ``noise`` is the standard deviation of the error of every
    measurement, source and target; None is the paper's for the family. ``model`` is the one that gets the source data.
    """

    family: str = "hartmann6"
    steps: int = 20
    runs: int = 3
    source_points: int = 60
    noise: float | None = None
    model: str = "SHGP"
    seed: int = 0

    def __post_init__(self) -> None:
        """Check every setting, before any computation."""
        family(self.family)
        _ = self.transfer_model
        for name in ("steps", "runs", "source_points"):
            value = getattr(self, name)
            if value < 1:
                raise InputError(f"{name} must be at least 1, but it is {value}.")
        if self.noise is not None and not 0 <= self.noise < math.inf:
            raise InputError(f"noise is a standard deviation and must not be negative, but it is {self.noise:g}.")
        if self.seed < 0:
            raise InputError(f"seed must not be negative, but it is {self.seed}.")

    @property
    def problem(self) -> Family:
        """The function family."""
        return family(self.family)

    @property
    def noise_std(self) -> float:
        """The standard deviation of the error of a measurement."""
        return self.problem.noise_std if self.noise is None else self.noise

    @property
    def transfer_model(self) -> TransferModel:
        """The model that learns from the source."""
        able = [name for name, model in FAMILY.items() if model.needs_sources]
        if self.model.upper() not in able:
            what = "uses no source data" if self.model.upper() in FAMILY else "is not known"
            raise InputError(f"The model {self.model!r} {what}. The demo can use: {', '.join(able)}.")
        return FAMILY[self.model.upper()]

    @property
    def evaluations(self) -> int:
        """How many evaluations all runs of both methods make."""
        return 2 * self.runs * self.steps


@dataclass(frozen=True, slots=True)
class DemoResult:
    """Simple regret of both methods: lowest noiseless value among the points evaluated − true minimum."""

    demo: Demo
    scratch: Float[Tensor, "runs steps"]
    head_start: Float[Tensor, "runs steps"]

    @property
    def marks(self) -> tuple[int, ...]:
        """After how many evaluations to compare: 1, 5, 10, 20 as far as they were reached, and the last."""
        return (*(mark for mark in MARKS if mark < self.demo.steps), self.demo.steps)

    @property
    def medians(self) -> tuple[Float[Tensor, "steps"], Float[Tensor, "steps"]]:
        """The median regret over runs, from scratch and with a head start."""
        return self.scratch.quantile(0.5, dim=0), self.head_start.quantile(0.5, dim=0)

    def evaluations_to_match(self) -> tuple[int, int | None]:
        """How many evaluations scratch and head start need for the median regret that scratch has at the end.

        None where the head start does not get there.
        """
        scratch, head_start = self.medians
        there = head_start <= scratch[-1]
        matched = int(there.int().argmax()) + 1 if bool(there.any()) else None
        return int((scratch <= scratch[-1]).int().argmax()) + 1, matched


@dataclass(frozen=True, slots=True)
class _Task:
    """One pair of tasks. Its random numbers depend on the family and the seed, never on the method that meets it."""

    problem: Family
    seed: int
    noise_std: float
    params: Float[Tensor, "k"]
    source: Dataset
    errors: Float[Tensor, "steps"] = field(repr=False)
    first: Float[Tensor, "d"]

    @classmethod
    def draw(cls, demo: Demo, seed: int) -> _Task:
        problem = demo.problem

        def stream(purpose: str) -> torch.Generator:
            digest = hashlib.sha256(f"{problem.name}/{seed}/{purpose}".encode()).digest()
            return torch.Generator().manual_seed(int.from_bytes(digest[:7], "big"))

        tasks, points, noise = stream("tasks"), stream("source inputs"), stream("source noise")
        source_params = problem.sample(1, tasks)[0]
        X = torch.rand(demo.source_points, problem.d, generator=points, dtype=torch.float64)
        error = torch.randn(demo.source_points, generator=noise, dtype=torch.float64)
        return cls(
            problem=problem,
            seed=seed,
            noise_std=demo.noise_std,
            params=problem.sample_target(1, tasks)[0],
            source=Dataset(X, problem.evaluate(source_params, X) + demo.noise_std * error, "past"),
            errors=torch.randn(demo.steps, generator=stream("target noise"), dtype=torch.float64),
            first=torch.rand(problem.d, generator=stream("first point"), dtype=torch.float64),
        )

    def regret(self, prior: Prior, on_step: Callable[[], None]) -> Float[Tensor, "steps"]:
        """Optimise the target; a model without a source begins at the random ``first`` point, others zero-shot."""
        target = Dataset.empty(self.problem.d, name="target")
        values = []
        for step, error in enumerate(self.errors):
            if step == 0 and not prior.model.needs_sources:
                x = self.first
            else:
                x = suggest(prior.condition(target, seed=self.seed), seed=self.seed + step)
            value = self.problem.evaluate(self.params, x.unsqueeze(0)).squeeze(0)
            target = target.with_point(x, value + self.noise_std * error)
            values.append(value)
            on_step()
        return torch.stack(values).cummin(0).values - self.problem.minimum(self.params)


def run_demo(demo: Demo, on_step: Callable[[], None] = lambda: None) -> DemoResult:
    """Run it; ``on_step`` is called after every evaluation."""
    scratch, head_start = [], []
    for run in range(demo.runs):
        task = _Task.draw(demo, demo.seed + run)
        scratch.append(task.regret(GPBO.learn(), on_step))
        head_start.append(task.regret(demo.transfer_model.learn([task.source], seed=task.seed), on_step))
    return DemoResult(demo, torch.stack(scratch), torch.stack(head_start))
