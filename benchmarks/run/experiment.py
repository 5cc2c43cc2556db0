"""An experiment: problems × methods × seeds, and the pieces of work it is made of."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache

import torch

from benchmarks.methods.method import Settings
from benchmarks.methods.model_method import ModelMethod
from benchmarks.methods.registry import method
from benchmarks.problems.adversarial import Scenario, SpoiltProblem
from benchmarks.problems.problem import Problem
from benchmarks.problems.shared_tables import table_problem
from benchmarks.problems.transfer import SyntheticProblem
from benchmarks.queue import Failure, Unit, work_off
from benchmarks.run.runner import run_batch
from benchmarks.store import Run, RunKey, Store, settings_key
from headstart.errors import InputError
from headstart.models.joint.joint import Joint

logger = logging.getLogger(__name__)

# How many runs go in lockstep: a processor gains nothing by more, a GPU has room for more matrices
_ON_CPU, _ON_GPU = 25, 50
# Fits of joint models are faster on a GPU from so many source rows on: of fifty runs of HGP with 120 by six times
_GPU_ROWS = 100


@dataclass(frozen=True, slots=True)
class ProblemSpec:
    """How a problem is made, in words that can be sent to another process.

    Either a ``family`` of functions (problems.synthetic, .laboratory, .plateaus; sources, points, noise, reverse), or a
    ``table`` by name (problems.shared_tables; sources, rows, in_turn, repeats). Rows are those of every source, None
    for all. ``spoilt`` says how the sources mislead, if they do (problems.adversarial).
    """

    family: str | None = None
    table: str | None = None
    sources: int | None = None
    points: int | None = None
    noise: float | None = None
    rows: int | None = 60
    in_turn: bool = False
    repeats: bool = False
    reverse: bool = False
    spoilt: str = Scenario.RELATED.value

    def build(self) -> Problem:
        """The problem that is described, its sources spoilt if that is asked for."""
        if (self.family is None) == (self.table is None):
            raise InputError("A problem needs either a family or a table.")
        problem: Problem
        if self.family is not None:
            problem = SyntheticProblem(
                self.family,
                n_sources=1 if self.sources is None else self.sources,
                source_points=self.points,
                noise=self.noise,
                reverse=self.reverse,
            )
        else:
            problem = table_problem(
                self.table or "", sources=self.sources, rows=self.rows, in_turn=self.in_turn, repeats=self.repeats
            )
        return problem if self.spoilt == Scenario.RELATED else SpoiltProblem(problem, Scenario(self.spoilt))


@dataclass(frozen=True, slots=True)
class BenchExperiment:
    """Problems × methods × seeds. ``runs_of`` overrides the number of runs of single methods."""

    name: str
    problems: tuple[ProblemSpec, ...]
    methods: tuple[str, ...]
    runs: int = 50
    steps: int = 30
    settings: Settings = field(default_factory=Settings)
    runs_of: dict[str, int] = field(default_factory=dict)
    settings_of: dict[str, Settings] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check names and numbers before anything runs."""
        for name in (*self.methods, *self.runs_of):
            method(name)
        if self.runs < 1 or self.steps < 1:
            raise InputError(f"runs and steps must be at least 1, but are {self.runs} and {self.steps}.")

    def units(self, chunk: int | None = None, device: str = "cpu") -> Iterator[LockstepUnit]:
        """The pieces of work: a problem, a method and at most ``chunk`` seeds, None for what suits the device."""
        for problem in self.problems:
            for name in self.methods:
                runs = min(self.runs_of.get(name, self.runs), self.runs)
                settings = self.settings_of.get(name, self.settings)
                most = lockstep_on(device_of(problem, name, device)) if chunk is None else chunk
                for start in range(0, runs, most):
                    seeds = tuple(range(start, min(start + most, runs)))
                    yield LockstepUnit(problem, name, seeds, self.steps, settings)


@dataclass(frozen=True, slots=True)
class LockstepUnit(Unit):
    """Some seeds of a problem and a method, which run in lockstep."""

    problem: ProblemSpec
    method: str
    seeds: tuple[int, ...]
    steps: int
    settings: Settings

    def run(self, device: str) -> list[Run]:
        """The records of all its seeds, in lockstep on ``device_of``, in two halves where its memory is full."""
        device = device_of(self.problem, self.method, device)
        try:
            return run_batch(
                self.problem.build(), self.method, self.seeds, steps=self.steps, settings=self.settings, device=device
            )
        except torch.OutOfMemoryError:
            if len(self.seeds) == 1:
                raise
            logger.warning("%s: %d runs at once do not fit into its memory; half of them.", device, len(self.seeds))
        torch.cuda.empty_cache()  # when the traceback, and all that it holds, is gone
        half = len(self.seeds) // 2
        return [
            run for seeds in (self.seeds[:half], self.seeds[half:]) for run in replace(self, seeds=seeds).run(device)
        ]

    def left(self, done: set[RunKey]) -> LockstepUnit | None:
        """The seeds without a run."""
        name = self.problem.build().name
        key = settings_key({**asdict(self.settings), "steps": self.steps})
        seeds = tuple(seed for seed in self.seeds if (name, self.method, seed, key) not in done)
        return replace(self, seeds=seeds) if seeds else None

    def __str__(self) -> str:
        return f"{self.problem.family or self.problem.table}, {self.method}, seeds {self.seeds[0]} to {self.seeds[-1]}"


@cache
def _source_rows(problem: ProblemSpec) -> int:
    return sum(source.n for source in problem.build().draw([0], 1).sources)


def device_of(problem: ProblemSpec, name: str, device: str) -> str:
    """Where a problem and a method are run, given a GPU: there if the matrices of a joint model are large.

    All else is bookkeeping between small matrices, in which a core of the processor is faster.
    """
    known = method(name)
    joint = isinstance(known, ModelMethod) and isinstance(known.model, Joint)
    return device if joint and _source_rows(problem) >= _GPU_ROWS else "cpu"


def lockstep_on(device: str) -> int:
    """How many runs go in lockstep on such a device."""
    return _ON_GPU if device.startswith("cuda") else _ON_CPU


def execute(
    experiments: Sequence[BenchExperiment],
    store: Store,
    *,
    device: str = "cpu",
    jobs: int = 1,
    engine: str = "process",
    chunk: int | None = None,
    seconds: float = float("inf"),
    on_start: Callable[[int], None] = lambda _: None,
    on_unit: Callable[[Unit, Exception | None], None] = lambda _unit, _error: None,
) -> list[Failure]:
    """Run what the store does not hold yet (``queue.work_off``), in units of at most ``chunk`` runs in lockstep.

    What cannot be run at all is refused before anything runs.
    """
    if chunk is not None and chunk < 1:
        raise InputError(f"chunk must be at least 1, but it is {chunk}.")
    stored = {run.problem: run.provenance["data"] for run in store.read().runs if "data" in run.provenance}
    for problem in (spec.build() for experiment in experiments for spec in experiment.problems):
        if problem.fingerprint is not None and stored.get(problem.name, problem.fingerprint) != problem.fingerprint:
            raise InputError(
                f"{store.folder} has runs of {problem.name}, but on other data. Take another folder for the results."
            )
    units = [unit for experiment in experiments for unit in experiment.units(chunk, device)]
    if device != "cpu":  # the longest first, and those of the GPU are long
        units.sort(key=lambda unit: _source_rows(unit.problem), reverse=True)
        units.sort(key=lambda unit: device_of(unit.problem, unit.method, device) == "cpu")
    return work_off(
        units, store, device=device, jobs=jobs, engine=engine, seconds=seconds, on_start=on_start, on_unit=on_unit
    )
