"""An experiment: problems × methods × seeds, from a preset or a TOML file, and the pieces of work it is made of.

name = "mine"
runs = 50
steps = 30
methods = ["gpbo", "shgp"]

[settings]                 # optional, see methods.Settings
paper = true

[[problems]]
family = "hartmann6"       # or: table = "past.csv", with task, objective, maximize, log, ignore, rows (0: all)
sources = 1
points = 120
noise = 0.1
"""

from __future__ import annotations

import copy
import logging
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import torch

from benchmarks.methods.method import Settings
from benchmarks.methods.registry import method
from benchmarks.problems.adversarial import Scenario, SpoiltProblem
from benchmarks.problems.columns import Column, ColumnKind, some
from benchmarks.problems.problem import Problem
from benchmarks.problems.table import TableProblem
from benchmarks.problems.transfer import SyntheticProblem
from benchmarks.queue import Failure, Unit, work_off
from benchmarks.run.runner import run_batch
from benchmarks.store import Run, RunKey, Store, settings_key
from headstart.decide.acquisition import Acquisition
from headstart.errors import InputError

logger = logging.getLogger(__name__)

# How many runs go in lockstep: a processor gains nothing by more, a GPU has room for all runs of a cell
_ON_CPU, _ON_GPU = 25, 200


@dataclass(frozen=True, slots=True)
class ProblemSpec:
    """How a problem is made, in words that can be written to a file and sent to another process.

    Either a ``family`` of functions (problems.synthetic, problems.laboratory; sources, points, noise, reverse), or a
    ``table``: a file, ``svm`` for the one that comes with headstart, or one of the shared tables by name (sources,
    rows, in_turn, repeats; task, objective, maximize, log, ignore for a file). Rows are those of every source, 0 or
    None for all. ``spoilt`` says how the sources mislead, if they do (problems.adversarial).
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
    ignore: tuple[str, ...] = ()
    in_turn: bool = False
    repeats: bool = False
    reverse: bool = False
    spoilt: str = Scenario.RELATED.value

    def build(self) -> Problem:
        """The problem that is described, its sources spoilt if that is asked for."""
        if self.spoilt not in list(Scenario):
            raise InputError(f"Sources cannot be {self.spoilt!r}. The known ways are {', '.join(Scenario)}.")
        problem, scenario = self._unspoilt(), Scenario(self.spoilt)
        return problem if scenario is Scenario.RELATED else SpoiltProblem(problem, scenario)

    def _unspoilt(self) -> Problem:
        if (self.family is None) == (self.table is None):
            raise InputError("A problem needs either a family or a table.")
        if self.family is not None:
            return SyntheticProblem(
                self.family,
                n_sources=1 if self.sources is None else self.sources,
                source_points=self.points,
                noise=self.noise,
                reverse=self.reverse,
            )
        from benchmarks.problems.shared_tables import SHARED, table_problem

        name = self.table or ""
        if not Path(name).suffix and name not in ("svm", *SHARED):
            raise InputError(f"There is no table {name!r}. The known ones are svm, {', '.join(SHARED)}, and files.")
        problem = table_problem(
            name,
            sources=self.sources,
            rows=self.rows or None,
            task=self.task,
            objective=self.objective,
            maximize=self.maximize,
            log=self.log,
            ignore=self.ignore,
            in_turn=self.in_turn,
            repeats=self.repeats,
        )
        if name in ("svm", *SHARED):
            return problem
        # the same file with another objective is another problem, and its runs are not to be taken for these
        named = copy.copy(problem)
        read = [
            self.objective,
            *(["maximize"] if self.maximize else []),
            *(["log " + " ".join(self.log)] * bool(self.log)),
            *(["without " + " ".join(self.ignore)] * bool(self.ignore)),
        ]
        named.name = problem.name.replace("[", f"[{','.join(read)},", 1)
        return named


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

    def units(self, chunk: int) -> Iterator[LockstepUnit]:
        """The pieces of work: a problem, a method and at most ``chunk`` seeds."""
        for problem in self.problems:
            for name in self.methods:
                runs = min(self.runs_of.get(name, self.runs), self.runs)
                settings = self.settings_of.get(name, self.settings)
                for start in range(0, runs, chunk):
                    seeds = tuple(range(start, min(start + chunk, runs)))
                    yield LockstepUnit(problem, name, seeds, self.steps, settings)

    def quick(self, runs: int, steps: int | None = None) -> BenchExperiment:
        """The same with at most so many runs (and steps)."""
        return replace(self, runs=min(runs, self.runs), steps=self.steps if steps is None else min(steps, self.steps))


@dataclass(frozen=True, slots=True)
class LockstepUnit(Unit):
    """Some seeds of a problem and a method, which run in lockstep."""

    problem: ProblemSpec
    method: str
    seeds: tuple[int, ...]
    steps: int
    settings: Settings

    def run(self, device: str) -> list[Run]:
        """The records of all its seeds, computed in lockstep on the device; in two halves where its memory is full."""
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
        problem = self.problem.family or Path(self.problem.table or "").name
        return f"{problem}, {self.method}, seeds {self.seeds[0]} to {self.seeds[-1]}"


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
    on_start: Callable[[int], None] = lambda _: None,
    on_unit: Callable[[Unit, Exception | None], None] = lambda _unit, _error: None,
) -> list[Failure]:
    """Run what the store does not hold yet (``queue.work_off``), in units of at most ``chunk`` runs in lockstep.

    What cannot be run at all is refused before anything runs.
    """
    chunk = lockstep_on(device) if chunk is None else chunk
    if chunk < 1:
        raise InputError(f"chunk must be at least 1, but it is {chunk}.")
    _require_the_same_data([spec for experiment in experiments for spec in experiment.problems], store)
    units = [unit for experiment in experiments for unit in experiment.units(chunk)]
    return work_off(units, store, device=device, jobs=jobs, engine=engine, on_start=on_start, on_unit=on_unit)


def _require_the_same_data(specs: Iterable[ProblemSpec], store: Store) -> None:
    """Raise an ``InputError`` where a problem has the name of another one, here or in the store, but other data."""
    stored = {run.problem: run.provenance["data"] for run in store.read().runs if "data" in run.provenance}
    tables: dict[str, tuple[str, str]] = {}
    for spec in specs:
        problem = spec.build()
        if problem.fingerprint is None:
            continue
        table, own = str(spec.table), problem.fingerprint
        other, its = tables.setdefault(problem.name, (table, own))
        if its != own:
            raise InputError(
                f"{other} and {table} are both called {problem.name}, and have other data. Rename one of the files."
            )
        if stored.get(problem.name, own) != own:
            raise InputError(
                f"{table}: {store.folder} has runs of {problem.name}, but on other data: of a file with the same name, "
                "or of this one before it was changed. Take another folder for the results, or rename the file."
            )


def read_experiment(path: Path) -> BenchExperiment:
    """An experiment from a TOML file; an unknown key is an error that lists the known ones."""
    try:
        data = tomllib.loads(path.read_text())
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}).") from error
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: is not valid TOML: {error}.") from error
    sections = data.pop("problems", [])
    if not isinstance(sections, list) or not all(isinstance(section, dict) for section in sections):
        raise InputError(f"{path}: problems must be sections that begin with [[problems]].")
    if not sections:
        raise InputError(f"{path}: there is no [[problems]] section.")
    problems = tuple(_checked(ProblemSpec, p, f"{path}, problem {i}") for i, p in enumerate(sections, start=1))
    own = data.pop("settings", {})
    if not isinstance(own, dict):
        raise InputError(f"{path}: settings must be a section that begins with [settings].")
    settings = _checked(Settings, own, f"{path}, settings")
    acquisitions = [kind.value for kind in Acquisition]
    if settings.acquisition not in acquisitions:
        known = ", ".join(acquisitions)
        raise InputError(f"{path}: there is no acquisition {settings.acquisition!r}. The known ones are {known}.")
    data.setdefault("name", path.stem)
    _require_known(BenchExperiment, data, {"name", "methods", "runs", "steps", "runs_of"}, str(path))
    if "methods" not in data:
        raise InputError(f"{path}: methods is missing, such as methods = ['gpbo', 'shgp'].")
    data["methods"] = tuple(data["methods"])
    return BenchExperiment(problems=problems, settings=settings, **data)


def _checked(kind: type, values: dict[str, Any], where: str) -> Any:
    _require_known(kind, values, {f.name for f in fields(kind)}, where)
    return kind(**{key: tuple(v) if isinstance(v, list) else v for key, v in values.items()})


def _require_known(kind: type, values: dict[str, Any], known: set[str], where: str) -> None:
    """Raise an ``InputError`` unless every key is known and every value of the type that ``kind`` has for it."""
    unknown = sorted(set(values) - known)
    if unknown:
        raise InputError(f"{where}: unknown key {unknown[0]!r}. The known ones are {', '.join(sorted(known))}.")
    hints = get_type_hints(kind)
    for key, value in values.items():
        if not _fits(value, hints[key]):
            raise InputError(f"{where}: {key} must be {_in_words(hints[key])}, but it is {value!r}.")


def _fits(value: object, hint: Any) -> bool:
    """Whether a value read from TOML is of that type; a whole number will do where any number does."""
    arguments = get_args(hint)
    if isinstance(hint, UnionType):
        return any(_fits(value, argument) for argument in arguments)
    if get_origin(hint) is tuple:
        return isinstance(value, list) and all(_fits(item, arguments[0]) for item in value)
    if get_origin(hint) is dict:
        return isinstance(value, dict) and all(_fits(item, arguments[1]) for item in value.values())
    if isinstance(value, bool):
        return hint is bool
    return isinstance(value, (int, float) if hint is float else hint)


def _in_words(hint: Any) -> str:
    words = {bool: "true or false", int: "a whole number", float: "a number", str: "a string"}
    arguments = get_args(hint)
    if isinstance(hint, UnionType):
        return _in_words(arguments[0])
    if get_origin(hint) is tuple:
        return f"a list, each {_in_words(arguments[0])}"
    return f"a section, each {_in_words(arguments[1])}" if get_origin(hint) is dict else words[hint]


def decisions(experiment: BenchExperiment) -> list[str]:
    """Sentences about every table of the experiment: how its columns are read, what is left out, what is ambiguous."""
    lines: list[str] = []
    for spec in experiment.problems:
        problem = spec.build()
        if not isinstance(problem, TableProblem):
            continue
        table = problem.table
        sizes = sorted(data.n for data in table.tasks.values())
        rows = str(sizes[0]) if sizes[0] == sizes[-1] else f"{sizes[0]} to {sizes[-1]}"
        lines.append(f"{problem.name}: {len(sizes)} tasks of {rows} rows.")
        lines.append(f"Inputs: {', '.join(map(_described, table.columns))}.")
        if Path(spec.table or "").suffix:  # a file of the user's
            lines.append(f"{spec.objective} is {'maximised' if spec.maximize else 'minimised'}.")
        lines += [*table.report, *problem.notes]
        short = [name for name, data in table.tasks.items() if data.n < experiment.steps]
        if len(short) == len(sizes):
            raise InputError(
                f"{problem.name}: no task has the {experiment.steps} rows to evaluate; the longest has {sizes[-1]}. "
                "Ask for fewer evaluations."
            )
        if short:
            lines.append(
                f"Tasks that are no targets, for they have fewer than {experiment.steps} rows: "
                f"{len(short)} ({some(short)})."
            )
    return lines


def _described(column: Column) -> str:
    if column.kind is ColumnKind.CATEGORICAL:
        return f"{column.name} (categorical, {len(column.levels)} levels)"
    scale = "log" if column.kind is ColumnKind.LOG else "numeric"
    return f"{column.name} ({scale}, {column.low:g} to {column.high:g})"
