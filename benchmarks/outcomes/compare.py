"""Is a head start worth it where more than one thing is measured, or rules must be kept?

    python -m benchmarks.outcomes.compare                                     run what is missing, report
    python -m benchmarks.outcomes.compare --methods headstart,alone --jobs 8  only these
    python -m benchmarks.outcomes.compare --report-only                       read the store, write the tables

Runs go to a store, one line each: whatever is killed goes on where it was. All JSONL files in the folder of the store
are read, so that runs made elsewhere are put beside the others. Writes outcomes.md and CSV files.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rich.console import Console

from benchmarks.outcomes.methods.registry import METHODS_COMPARED, method_compared
from benchmarks.outcomes.problems.catalogue import OUTCOME_PROBLEMS, outcome_problem
from benchmarks.outcomes.reading import curves_of
from benchmarks.outcomes.report import outcome_sheets, write_outcomes
from benchmarks.outcomes.runs import OutcomeCell, read_outcomes
from benchmarks.outcomes.work import outcome_cells, work_through
from benchmarks.run.runner import provenance
from headstart.errors import HeadstartError, InputError


def main(arguments: list[str] | None = None) -> int:
    """Run, read, print, write; the exit status says whether every run was a success."""
    parser = argparse.ArgumentParser(description="Several outcomes, limits and rules, with a past and without.")
    parser.add_argument("--problems", default=",".join(OUTCOME_PROBLEMS), help="names, with commas (default: all)")
    parser.add_argument("--methods", default=",".join(METHODS_COMPARED), help="names, with commas (default: all)")
    parser.add_argument("--label", default="", help="a name for the runs of the one method, to tell versions apart")
    parser.add_argument("--runs", type=int, default=60, help="seeds of every problem and method")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--steps", type=int, default=20, help="evaluations of a run")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin nothing new after so long")
    parser.add_argument("--store", type=Path, default=Path("out/outcomes"), help="the folder of the runs")
    parser.add_argument("--out", type=Path, default=Path("results/outcomes"), help="the folder of the tables")
    parser.add_argument("--report-only", action="store_true", help="run nothing")
    parser.add_argument("--quiet", action="store_true", help="print no tables")
    options = parser.parse_args(arguments)
    console = Console(width=180)
    try:
        return _compare(options, console)
    except HeadstartError as error:
        console.print(f"[red]{error}[/red]")
        return 2


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def _compare(options: argparse.Namespace, console: Console) -> int:
    problems, methods = _names(options.problems), _names(options.methods)
    for name in problems:
        outcome_problem(name)
    for name in methods:
        method_compared(name)
    if options.label and len(methods) != 1:
        raise InputError(f"--label names the runs of one method, but --methods has {len(methods)}.")
    if min(options.runs, options.steps, options.jobs) < 1 or options.first < 0:
        raise InputError("--runs, --steps and --jobs must be at least 1, and --first at least 0.")
    failed: list[tuple[OutcomeCell, Exception]] = []
    if not options.report_only:

        def said(left: int, cell: OutcomeCell, error: Exception | None) -> None:
            wrong = f": {type(error).__name__}: {error}" if error else ""
            name = cell.label or cell.method
            console.print(f"{left:5d} left  {cell.problem}, seed {cell.seed}, {name}{wrong}", markup=False)

        wanted = outcome_cells(
            problems, methods, runs=options.runs, steps=options.steps, first=options.first, label=options.label
        )
        failed = work_through(
            wanted,
            options.store,
            jobs=options.jobs,
            seconds=options.seconds,
            provenance=provenance("cpu"),
            on_run=said,
        )
    found = curves_of([run for run in read_outcomes(options.store) if run.problem in problems], steps=options.steps)
    if not options.quiet:
        for sheet in outcome_sheets(found):
            console.print(sheet.markdown(), markup=False, highlight=False)
    for path in write_outcomes(found, options.out):
        console.print(f"written to {path}")
    if failed:
        console.print(f"{len(failed)} runs failed; the first: {failed[0][0]}: {failed[0][1]}", markup=False)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
