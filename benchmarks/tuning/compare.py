"""Is a head start worth it to those who tune with Optuna? ``make bench-sampler`` asks, on fifteen small real problems.

    python -m benchmarks.tuning.compare                                  run what is missing, report
    python -m benchmarks.tuning.compare --methods headstart --minutes 20 only these, and stop in time
    python -m benchmarks.tuning.compare --report-only                    read the store, write the tables

Every task of a problem is the target in turn; the others are past studies. Runs go to a store, one line each, and
training to a cache: whatever is killed goes on where it was. Writes tuning.json and tuning.md.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.run.runner import provenance
from benchmarks.tuning.evaluations import default_cache
from benchmarks.tuning.problems.catalogue import PROBLEMS, tuning_problem
from benchmarks.tuning.report import summary, tables, write_report
from benchmarks.tuning.rivals import RIVALS, rival
from benchmarks.tuning.runs import TuningCell, read_runs
from benchmarks.tuning.work import cells, work_off
from headstart.errors import HeadstartError, InputError


def main(arguments: list[str] | None = None) -> int:
    """Run, read, print, write; the exit status says whether every run was a success."""
    parser = argparse.ArgumentParser(description="TransferSampler and its rivals on small real tuning problems.")
    parser.add_argument("--problems", default=",".join(PROBLEMS), help="names, with commas (default: all)")
    parser.add_argument("--methods", default=",".join(RIVALS), help="names, with commas (default: all)")
    parser.add_argument("--label", default="", help="a name for the runs of the one method, to tell versions apart")
    parser.add_argument("--seeds", type=int, default=2, help="how often every task is the target, each with its past")
    parser.add_argument("--trials", type=int, default=20, help="trials of a run")
    parser.add_argument("--pool", type=int, default=150, help="random trials per task, by which regrets are scaled")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin nothing new after so long")
    parser.add_argument("--store", type=Path, default=Path("out/tuning"), help="the folder of the runs")
    parser.add_argument("--cache", type=Path, default=default_cache(), help="the folder of what was trained")
    parser.add_argument("--out", type=Path, default=Path("results/sampler"), help="the folder of the tables")
    parser.add_argument("--report-only", action="store_true", help="run nothing")
    parser.add_argument("--show", default="", help="methods of the report, ours first (default: all in the store)")
    options = parser.parse_args(arguments)
    console = Console(width=160)
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
        tuning_problem(name)
    for name in methods:
        rival(name)
    if options.label and len(methods) != 1:
        raise InputError(f"--label names the runs of one method, but --methods has {len(methods)}.")
    if min(options.seeds, options.trials, options.pool, options.jobs) < 1:
        raise InputError("--seeds, --trials, --pool and --jobs must be at least 1.")
    failed: list[tuple[TuningCell, Exception]] = []
    if not options.report_only:
        wanted = cells(
            problems, methods, seeds=options.seeds, trials=options.trials, pool=options.pool, label=options.label
        )

        def said(left: int, cell: TuningCell, error: Exception | None) -> None:
            wrong = f": {type(error).__name__}: {error}" if error else ""
            name = cell.label or cell.method
            console.print(f"{left:5d} left  {cell.problem}, {cell.task}, seed {cell.seed}, {name}{wrong}", markup=False)

        failed = work_off(
            wanted,
            options.store,
            options.cache,
            jobs=options.jobs,
            seconds=options.minutes * 60,
            provenance=_versions(),
            on_run=said,
        )
    runs = [run for run in read_runs(options.store) if run.problem in problems]
    found = summary(runs, trials=options.trials, show=_names(options.show))
    for sheet in tables(found):
        console.print(sheet.markdown(), markup=False, highlight=False)
    for path in write_report(found, options.out, _versions()):
        console.print(f"written to {path}")
    if failed:
        console.print(f"{len(failed)} runs failed; the first: {failed[0][0]}: {failed[0][1]}", markup=False)
    return 1 if failed else 0


def _versions() -> dict[str, Any]:
    import optuna
    import sklearn

    return {**provenance("cpu"), "optuna": optuna.__version__, "scikit-learn": sklearn.__version__}


if __name__ == "__main__":
    sys.exit(main())
