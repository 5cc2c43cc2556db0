"""What the runs of problems with several outcomes say: their measures as regrets, for the sheets of all experiments.

Of a share of a volume, and of whether anything was found, the regret is what is missing to 1. Besides, where there are
limits, the evaluations until a result is within them; a run without one counts as one more than it has.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.outcomes.runs import outcome_problem
from benchmarks.read.analysis import Array, Cell, Results, table
from benchmarks.read.comparison import mean_interval, ratio_interval
from benchmarks.read.report import compare, seconds_sheet
from benchmarks.read.sheet import Sheet
from benchmarks.store import Run
from headstart.errors import NotComparableError

OURS = "headstart"
_MEASURES = {
    "regret": "regret",
    "volume": "1 − volume (from the worst values of the table)",
    "nadir": "1 − volume (from a tenth beyond the front's own worst values)",
    "agreed": "1 − volume (from the agreed reference)",
    "plain": "1 − volume (from the worst values of the domain)",
    "worse": "share of the evaluations worse than the agreed reference",
    "found": "runs without a result within the limits",
}


def outcome_results(runs: Sequence[Run], *, steps: int) -> Results:
    """A cell per problem, measure and method, of runs with so many evaluations."""
    groups: dict[tuple[str, str, str], list[Run]] = {}
    for run in sorted(runs, key=lambda run: run.seed):
        for measure in _MEASURES if run.settings.get("steps") == steps else ():
            if measure in run.traces:
                groups.setdefault((run.problem, measure, run.method), []).append(run)
    if not groups:
        raise NotComparableError(f"There are no runs of {steps} evaluations.")
    cells = []
    for (problem, measure, method), own in groups.items():
        values = np.array([run.traces[measure] for run in own])
        cells.append(
            Cell(
                problem=f"{problem}: {_MEASURES[measure]}",
                method=method,
                seeds=tuple(run.seed for run in own),
                regret=values if measure in ("regret", "worse") else 1.0 - values,
                step_seconds=np.array([np.mean(run.acquisition_seconds) for run in own]),
                learn_seconds=np.array([run.learn_seconds for run in own]),
            )
        )
    return Results(tuple(cells))


def outcome_sheets(results: Results) -> list[Sheet]:
    """Every method, how soon it is within the limits, the differences to ours, seconds, and what the problems are."""
    limited = [problem for problem in results.problems if problem.endswith(_MEASURES["found"])]
    sheets = [*table(results), *(_first_sheet(results, problem) for problem in limited)]
    if OURS in results.methods and len(results.methods) > 1:
        sheets += compare(results, OURS)
    asked = [outcome_problem(name) for name in dict.fromkeys(p.partition(":")[0] for p in results.problems)]
    problems = Sheet("problems", "The problems", ("problem", "what is asked"), tuple((p.name, p.title) for p in asked))
    return [*sheets, seconds_sheet(results), problems]


def first_found(missing: Array) -> Array:
    """The number of evaluations of every run to the first 0; one more than there are where there is none."""
    n = missing.shape[-1]
    return np.asarray(np.where(missing.min(-1) > 0, n + 1, missing.argmin(-1) + 1), dtype=np.float64)


def _first_sheet(results: Results, problem: str) -> Sheet:
    cells, rows = results.on(problem), []
    for method, cell in cells.items():
        ratio = ""
        if OURS in cells and method != OURS:
            seeds = sorted(set(cell.seeds) & set(cells[OURS].seeds))
            ours, theirs = (first_found(c.of(seeds)) for c in (cells[OURS], cell))
            ratio = f"{ratio_interval(ours, theirs):.2f}" if seeds else ""
        rows.append((method, len(cell.seeds), f"{mean_interval(first_found(cell.regret)):.3f}", ratio))
    return Sheet(
        name="first",
        title=f"{problem.partition(':')[0]}: evaluations to the first result within the limits",
        columns=("method", "runs", "evaluations", f"{OURS}'s share"),
        rows=tuple(rows),
        note="A run without one counts as one evaluation more than it has. "
        f"{OURS}'s share: its evaluations over those of the method, in the runs that both have.",
    )
