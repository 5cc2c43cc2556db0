"""An experiment: problems × methods × seeds, from a preset or a TOML file, run in pieces that survive interruption.

name = "mine"
runs = 50
steps = 30
methods = ["gpbo", "shgp"]

[settings]                 # optional, see methods.Settings
paper = true

[[problems]]
family = "hartmann6"       # or: table = "past.csv", with task, objective, maximize, log, rows
sources = 1
points = 120
noise = 0.1
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field, fields, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from headstart.bench.methods import Settings, method
from headstart.bench.problems.problem import Problem
from headstart.bench.problems.transfer import SyntheticProblem
from headstart.bench.runner import run_batch
from headstart.bench.store import Run, Store, settings_key
from headstart.errors import HeadstartError, InputError, MissingExtraError

__all__ = ["Experiment", "ProblemSpec", "Unit", "execute", "read_experiment"]


@dataclass(frozen=True, slots=True)
class ProblemSpec:
    """How a problem is made, in words that can be written to a file and sent to another process.

    Either a synthetic ``family`` (sources, points, noise), or a ``table``: a file, ``svm`` for the one that comes with
    headstart, or one of the shared tables by name (sources, rows; task, objective, maximize, log for a file).
    """

    family: str | None = None
    table: str | None = None
    sources: int | None = None
    points: int | None = None
    noise: float | None = None
    rows: int | None = 60
    task: str = "task"
    objective: str = "objective"
    maximize: bool = False
    log: tuple[str, ...] = ()

    def build(self) -> Problem:
        """The problem itself."""
        if (self.family is None) == (self.table is None):
            raise InputError("A problem needs either a family or a table.")
        if self.family is not None:
            n_sources = 1 if self.sources is None else self.sources
            return SyntheticProblem(self.family, n_sources=n_sources, source_points=self.points, noise=self.noise)
        from headstart.bench.problems.tables import table_problem

        return table_problem(
            self.table or "",
            sources=self.sources,
            rows=self.rows,
            task=self.task,
            objective=self.objective,
            maximize=self.maximize,
            log=self.log,
        )


@dataclass(frozen=True, slots=True)
class Experiment:
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

    def units(self, chunk: int) -> Iterator[Unit]:
        """The pieces of work: a problem, a method and at most ``chunk`` seeds."""
        for problem in self.problems:
            for name in self.methods:
                runs = min(self.runs_of.get(name, self.runs), self.runs)
                settings = self.settings_of.get(name, self.settings)
                for start in range(0, runs, chunk):
                    seeds = tuple(range(start, min(start + chunk, runs)))
                    yield Unit(problem, name, seeds, self.steps, settings)

    def quick(self, runs: int, steps: int | None = None) -> Experiment:
        """The same with at most so many runs (and steps)."""
        return replace(self, runs=min(runs, self.runs), steps=self.steps if steps is None else min(steps, self.steps))


@dataclass(frozen=True, slots=True)
class Unit:
    """One piece of work: it is done as a whole or not at all."""

    problem: ProblemSpec
    method: str
    seeds: tuple[int, ...]
    steps: int
    settings: Settings

    def run(self, device: str) -> list[Run]:
        """Do it."""
        return run_batch(
            self.problem.build(), self.method, self.seeds, steps=self.steps, settings=self.settings, device=device
        )

    def without(self, done: set[tuple[str, str, int, str]]) -> Unit | None:
        """What is left of it when some runs exist already."""
        name = self.problem.build().name
        key = settings_key({**asdict(self.settings), "steps": self.steps})
        seeds = tuple(seed for seed in self.seeds if (name, self.method, seed, key) not in done)
        return replace(self, seeds=seeds) if seeds else None


def _run_unit(unit: Unit, device: str) -> list[Run]:
    return unit.run(device)


Progress = Callable[[Unit, Exception | None], None]


def execute(
    experiment: Experiment,
    store: Store,
    *,
    device: str = "cpu",
    jobs: int = 1,
    engine: str = "process",
    chunk: int = 25,
    on_start: Callable[[int], None] = lambda _: None,
    on_unit: Progress = lambda _unit, _error: None,
) -> list[tuple[Unit, Exception]]:
    """Run what the store does not hold yet; a unit that fails is reported, and the rest goes on.

    ``jobs`` processes work at once (``engine="ray"``: on a Ray cluster). Only this process writes to the store.
    """
    done = {run.key for run in store.read().runs}
    units = [left for unit in experiment.units(chunk) if (left := unit.without(done)) is not None]
    on_start(len(units))
    failed: list[tuple[Unit, Exception]] = []
    for unit, outcome in _ENGINES[_known_engine(engine)](units, device, jobs):
        if isinstance(outcome, Exception):
            failed.append((unit, outcome))
            on_unit(unit, outcome)
        else:
            store.append(outcome)
            on_unit(unit, None)
    return failed


Outcome = tuple[Unit, list[Run] | Exception]


def _in_turn(units: Sequence[Unit], device: str) -> Iterator[Outcome]:
    for unit in units:
        try:
            yield unit, unit.run(device)
        except HeadstartError as error:
            yield unit, error


def _in_processes(units: Sequence[Unit], device: str, jobs: int) -> Iterator[Outcome]:
    if jobs <= 1 or len(units) <= 1:
        yield from _in_turn(units, device)
        return
    # fresh interpreters: forking a process that has used torch or CUDA is not safe
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        futures = {pool.submit(_run_unit, unit, device): unit for unit in units}
        for future in as_completed(futures):
            error = future.exception()
            if error is not None and not isinstance(error, HeadstartError):
                raise error
            yield futures[future], error if isinstance(error, HeadstartError) else future.result()


def _on_ray(units: Sequence[Unit], device: str, jobs: int) -> Iterator[Outcome]:
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError("--engine ray needs Ray: pip install 'headstart[ray]'.") from error
    if not ray.is_initialized():
        ray.init(num_cpus=jobs, include_dashboard=False, log_to_driver=False)
    remote = ray.remote(num_cpus=1, num_gpus=1 if device.startswith("cuda") else 0)(_run_unit)
    waiting = {remote.remote(unit, device): unit for unit in units}
    while waiting:
        (ready,), _ = ray.wait(list(waiting), num_returns=1)
        unit = waiting.pop(ready)
        try:
            yield unit, ray.get(ready)
        except ray.exceptions.RayTaskError as error:
            if not isinstance(error.cause, HeadstartError):
                raise
            yield unit, error.cause


_ENGINES: dict[str, Callable[[Sequence[Unit], str, int], Iterator[Outcome]]] = {
    "process": _in_processes,
    "ray": _on_ray,
}


def _known_engine(name: str) -> str:
    if name not in _ENGINES:
        raise InputError(f"There is no engine {name!r}. The known ones are {', '.join(_ENGINES)}.")
    return name


def read_experiment(path: Path) -> Experiment:
    """An experiment from a TOML file; an unknown key is an error that lists the known ones."""
    try:
        data = tomllib.loads(path.read_text())
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}).") from error
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: is not valid TOML: {error}.") from error
    problems = tuple(_checked(ProblemSpec, p, f"{path}, problem {i}") for i, p in enumerate(data.pop("problems", [])))
    settings = _checked(Settings, data.pop("settings", {}), f"{path}, settings")
    if not problems:
        raise InputError(f"{path}: there is no [[problems]] section.")
    data.setdefault("name", path.stem)
    known = {"name", "methods", "runs", "steps", "runs_of"}
    _require_known(data, known, str(path))
    if "methods" not in data:
        raise InputError(f"{path}: methods is missing, such as methods = ['gpbo', 'shgp'].")
    data["methods"] = tuple(data["methods"])
    return Experiment(problems=problems, settings=settings, **data)


def _checked(kind: type, values: dict[str, Any], where: str) -> Any:
    _require_known(values, {f.name for f in fields(kind)}, where)
    return kind(**{key: tuple(v) if isinstance(v, list) else v for key, v in values.items()})


def _require_known(values: dict[str, Any], known: set[str], where: str) -> None:
    unknown = sorted(set(values) - known)
    if unknown:
        raise InputError(f"{where}: unknown key {unknown[0]!r}. The known ones are {', '.join(sorted(known))}.")
