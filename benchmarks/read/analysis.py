"""What the runs of a store say: the regrets of every method on every problem, their means and medians.

A regret is (best value so far − minimum) / scale, after 1, 2, … evaluations. On tables the scale is max − min of the
whole target table, so that the mean over runs is the ADTM, the average distance to the minimum. Comparisons between
methods are in ``comparison``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.read.sheet import Sheet, compact
from benchmarks.read.styles import in_order, is_table, problem_order, style
from benchmarks.store import Run, Store, StoreContents, settings_key
from headstart.errors import InputError

# After how many evaluations regrets are reported, as far as they were reached
MARKS = (1, 5, 10, 20, 30)

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """The runs of one method on one problem: ``regret[i, n − 1]`` is that of ``seeds[i]`` after n evaluations.

    ``step_seconds[i]`` is the mean CPU time of a step (fit and choice), ``learn_seconds[i]`` that of learning the
    sources, which is done once.
    """

    problem: str
    method: str
    seeds: tuple[int, ...]
    regret: Array
    step_seconds: Array
    learn_seconds: Array

    @property
    def steps(self) -> int:
        """How many evaluations were made."""
        return int(self.regret.shape[1])

    def of(self, seeds: Sequence[int]) -> Array:
        """The regrets of these seeds, in this order."""
        row = {seed: i for i, seed in enumerate(self.seeds)}
        return self.regret[[row[seed] for seed in seeds]]


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


@dataclass(frozen=True, slots=True)
class Summary:
    """The regret of a method on a problem after some evaluations, over the runs."""

    problem: str
    method: str
    evaluations: int
    runs: int
    mean: float
    standard_error: float
    median: float


def summaries(results: Results, at: Sequence[int] | None = None) -> tuple[Summary, ...]:
    """One per problem, method and mark (``at``, or those of ``marks``) that the method reached."""
    found = []
    for problem in results.problems:
        for method, cell in results.on(problem).items():
            mean, error = mean_and_error(cell.regret)
            median = np.median(cell.regret, axis=0)
            for n in marks(cell.steps) if at is None else at:
                if n <= cell.steps:
                    numbers = (float(mean[n - 1]), float(error[n - 1]), float(median[n - 1]))
                    found.append(Summary(problem, method, n, len(cell.seeds), *numbers))
    return tuple(found)


def table(results: Results, at: Sequence[int] | None = None) -> tuple[Sheet, ...]:
    """A sheet per problem: mean ± standard error (median) of the regret after 1, 5, 10, 20, 30 evaluations."""
    sheets = []
    everything = summaries(results, at)
    for problem in results.problems:
        rows = [s for s in everything if s.problem == problem]
        columns = sorted({s.evaluations for s in rows})
        shown = []
        for method in results.on(problem):
            of_method = {s.evaluations: s for s in rows if s.method == method}
            runs = next((s.runs for s in of_method.values()), 0)
            cells = (_shown(of_method.get(n)) for n in columns)
            shown.append((style(method).label, str(runs), *cells))
        what = "ADTM" if is_table(problem) else "simple regret"
        sheets.append(
            Sheet(
                name="regret",
                title=problem,
                columns=("problem", "method", "evaluations", "runs", "mean", "standard_error", "median"),
                rows=tuple(
                    (s.problem, s.method, s.evaluations, s.runs, s.mean, s.standard_error, s.median) for s in rows
                ),
                note=f"{what} after so many evaluations: mean ± standard error (median); lower is better.",
                shown_columns=("method", "runs", *map(str, columns)),
                shown=tuple(shown),
            )
        )
    return tuple(sheets)


def _shown(summary: Summary | None) -> str:
    if summary is None:
        return ""
    error = "" if np.isnan(summary.standard_error) else f" ± {summary.standard_error:.2g}"
    return f"{summary.mean:.3g}{error} ({compact(summary.median)})"
