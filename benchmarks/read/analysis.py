"""What the runs of a store say: the regrets of every method on every problem, their means and medians.

A regret is (best value so far − minimum) / scale, after 1, 2, … evaluations. On tables the scale is max − min of the
whole target table, so that the mean over runs is the ADTM, the average distance to the minimum. Comparisons between
methods are in ``comparison``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.read.sheet import Series, Sheet, compact, read_series
from benchmarks.read.styles import in_order, is_table, problem_order, style
from benchmarks.store import Run, Store, StoreContents, settings_key
from headstart.errors import InputError

# After how many evaluations regrets are reported, as far as they were reached
MARKS = (1, 5, 10, 20, 30)

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """The runs of one method on one problem: ``regret[i, n − 1]`` is that of ``seeds[i]`` after n evaluations.

    ``labels[i]`` names the target, the task that the run is about; seeds of a table with few tasks share them. Without
    them every seed is a task of its own.
    ``step_seconds[i]`` is the mean CPU time of a step (fit and choice), ``learn_seconds[i]`` that of learning the
    sources, which is done once.
    """

    problem: str
    method: str
    seeds: tuple[int, ...]
    regret: Array
    step_seconds: Array
    learn_seconds: Array
    labels: tuple[str, ...] = ()

    @property
    def steps(self) -> int:
        """How many evaluations were made."""
        return int(self.regret.shape[1])

    def of(self, seeds: Sequence[int]) -> Array:
        """The regrets of these seeds, in this order."""
        row = {seed: i for i, seed in enumerate(self.seeds)}
        return self.regret[[row[seed] for seed in seeds]]

    def tasks(self, seeds: Sequence[int]) -> tuple[str, ...]:
        """The targets of these seeds, in this order."""
        label = dict(zip(self.seeds, self.labels or map(str, self.seeds), strict=True))
        return tuple(label[seed] for seed in seeds)


@dataclass(frozen=True, slots=True, eq=False)
class Results:
    """All cells, and sentences about runs that were left out."""

    cells: tuple[Cell, ...]
    remarks: tuple[str, ...] = ()

    @property
    def problems(self) -> tuple[str, ...]:
        """By family and by the numbers in their names."""
        return tuple(sorted({cell.problem for cell in self.cells}, key=problem_order))

    @property
    def methods(self) -> tuple[str, ...]:
        """In the order of every table and legend."""
        return in_order(cell.method for cell in self.cells)

    def on(self, problem: str) -> dict[str, Cell]:
        """The cells of a problem by method."""
        found = {cell.method: cell for cell in self.cells if cell.problem == problem}
        return {method: found[method] for method in self.methods if method in found}

    def only(self, methods: Sequence[str]) -> Results:
        """With these methods alone."""
        for name in methods:
            if name not in self.methods:
                raise InputError(f"There are no runs of {name!r}. There are runs of {', '.join(self.methods)}.")
        return Results(tuple(cell for cell in self.cells if cell.method in methods), self.remarks)

    def among(self, problems: Sequence[str]) -> Results:
        """With these problems alone, as far as there are runs of them."""
        return Results(tuple(cell for cell in self.cells if cell.problem in problems), self.remarks)


def by_kind(results: Results) -> dict[str, Results]:
    """The results on tables and on functions by what begins the titles of their sheets; all where one kind is alone.

    Regrets on tables are shares of the target's range, those on functions are in units of their own.
    """
    tables = [is_table(problem) for problem in results.problems]
    if min(sum(tables), len(tables) - sum(tables)) < 2:
        return {"": results}
    kinds = {"Tables: ": True, "Functions: ": False}
    return {kind: results.among([p for p in results.problems if is_table(p) is which]) for kind, which in kinds.items()}


def collect(runs: Iterable[Run]) -> Results:
    """The runs that count as cells; what does not is said in ``remarks``."""
    groups, remarks = runs_that_count(runs)
    return Results(tuple(_cell(group[0].problem, group[0].method, group) for group in groups), remarks)


def runs_that_count(runs: Iterable[Run]) -> tuple[tuple[list[Run], ...], tuple[str, ...]]:
    """The runs that count, by problem and method, and sentences about the others.

    Where a method was run with several settings on a problem, those with the most evaluations count; a run whose
    regrets are not finite or not as many as its steps does not.
    """
    groups: dict[tuple[str, str], dict[str, list[Run]]] = {}
    remarks = []
    for run in runs:
        steps = run.settings.get("steps", len(run.regret))
        if len(run.regret) != steps or not np.isfinite(run.regret).all():
            remarks.append(
                f"{run.problem}, {run.method}, seed {run.seed}: {len(run.regret)} regrets in {steps} steps, or one "
                "that is not finite; left out."
            )
            continue
        of_cell = groups.setdefault((run.problem, run.method), {})
        of_cell.setdefault(settings_key(run.settings), []).append(run)
    found = []
    for (problem, method), by_settings in groups.items():
        chosen = max(by_settings.values(), key=lambda group: (len(group) * len(group[0].regret), len(group)))
        found.append(chosen)
        for group in by_settings.values():
            if group is not chosen:
                differing = _differing(group[0], chosen[0])
                remarks.append(f"{problem}, {method}: {len(group)} runs with other settings ({differing}); left out.")
    return tuple(found), tuple(remarks)


def load(folder: Path) -> Results:
    """The results in a store; an ``InputError`` where there are none."""
    contents = stored(folder)
    results = collect(contents.runs)
    if not results.cells:
        where = Store(folder).path
        raise InputError(f"{where}: there is no run that can be read. {' '.join(contents.remarks[:3])}".rstrip())
    return replace(results, remarks=(*contents.remarks, *results.remarks))


def published(path: Path) -> Results:
    """The regrets in a ``runs.csv.gz``, which ``series`` gave: four digits, without seconds and names of tasks."""
    cells: dict[tuple[str, str], dict[int, Sequence[float | None]]] = {}
    for problem, method, seed, what, values in read_series(path):
        if what == "regret":
            cells.setdefault((problem, method), {})[seed] = values
    found = []
    for (problem, method), runs in cells.items():
        unknown = np.full(len(runs), np.nan)
        regret = np.array([runs[seed] for seed in sorted(runs)], dtype=np.float64)
        found.append(Cell(problem, method, tuple(sorted(runs)), regret, unknown, unknown))
    return Results(tuple(found))


def stored(folder: Path) -> StoreContents:
    """What a store holds; an ``InputError`` where there is none."""
    store = Store(folder)
    if not store.path.is_file():
        raise InputError(f"{folder}: there are no results, for there is no {store.path.name} in it.")
    return store.read()


def _cell(problem: str, method: str, runs: Sequence[Run]) -> Cell:
    ordered = sorted(runs, key=lambda run: run.seed)
    seconds = [np.add(run.fit_seconds, run.acquisition_seconds).mean() for run in ordered]
    return Cell(
        problem=problem,
        method=method,
        seeds=tuple(run.seed for run in ordered),
        labels=tuple(run.label for run in ordered),
        regret=np.array([run.regret for run in ordered], dtype=np.float64),
        step_seconds=np.array(seconds, dtype=np.float64),
        learn_seconds=np.array([run.learn_seconds for run in ordered], dtype=np.float64),
    )


def _differing(run: Run, other: Run) -> str:
    keys = [key for key in run.settings if run.settings[key] != other.settings.get(key)]
    return ", ".join(f"{key} = {run.settings[key]}" for key in keys) or "fewer of them"


def marks(steps: int) -> tuple[int, ...]:
    """1, 5, 10, 20, 30 as far as they were reached, and the last."""
    return (*(mark for mark in MARKS if mark < steps), steps)


def require_marks(at: Sequence[int] | None) -> Sequence[int] | None:
    """The marks in order; none are those of ``marks``. An ``InputError`` where one is not a number of evaluations."""
    if wrong := [n for n in at or () if n < 1]:
        raise InputError(f"Evaluations are counted from 1, but {wrong[0]} was asked for.")
    return sorted(set(at)) if at else None


def mean_and_error(values: Array) -> tuple[Array, Array]:
    """Mean and standard error of the mean, s/√n with s² of n − 1 degrees of freedom, over the first axis.

    One run has no standard error: it is not a number.
    """
    n = len(values)
    if n < 2:
        return values.mean(0), np.full_like(values.mean(0), np.nan)
    return values.mean(0), values.std(0, ddof=1) / np.sqrt(n)


def table(results: Results, at: Sequence[int] | None = None) -> tuple[Sheet, ...]:
    """A sheet per problem: mean ± standard error (median) of the regret at ``at``, or those of ``marks``."""
    sheets = []
    for problem in results.problems:
        cells = results.on(problem)
        columns = sorted({n for cell in cells.values() for n in at or marks(cell.steps) if n <= cell.steps})
        what = "ADTM" if is_table(problem) else "simple regret"
        sheets.append(
            Sheet(
                name="regret",
                title=problem,
                columns=("method", "runs", *map(str, columns)),
                rows=tuple(
                    (style(method).label, len(cell.seeds), *(_shown(cell, n) for n in columns))
                    for method, cell in cells.items()
                ),
                note=f"{what} after so many evaluations: mean ± standard error (median); lower is better.",
            )
        )
    return tuple(sheets)


def _shown(cell: Cell, n: int) -> str:
    if n > cell.steps:
        return ""
    mean, error = mean_and_error(cell.regret[:, n - 1])
    within = "" if np.isnan(error) else f" ± {error:.2g}"
    return f"{mean:.3g}{within} ({compact(float(np.median(cell.regret[:, n - 1])))})"


def series(results: Results) -> Iterator[Series]:
    """The regrets of every run, for ``write_series``."""
    for problem in results.problems:
        for method, cell in results.on(problem).items():
            for seed, regret in zip(cell.seeds, cell.regret, strict=True):
                yield problem, method, seed, "regret", regret.tolist()
