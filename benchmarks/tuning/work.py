"""What is run, and in which order; what a store holds already is not run again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import optuna

from benchmarks.queue import run_all
from benchmarks.tuning.evaluations import Evaluations
from benchmarks.tuning.problems.catalogue import tuning_problem
from benchmarks.tuning.rivals import POOL
from benchmarks.tuning.runs import TuningCell, TuningRun, append_runs, read_runs, tune


def cells(
    problems: Sequence[str], methods: Sequence[str], *, seeds: int, trials: int, pool: int, label: str = ""
) -> list[TuningCell]:
    """All pools, then the pairs (target, seed) of all problems in turn, each with all methods.

    Whoever stops early has equally many pairs of every problem, and of every pair all methods.
    """
    found = [TuningCell(p, task, 0, POOL, pool) for p in problems for task in tuning_problem(p).tasks]
    for seed in range(seeds):
        for i in range(max(len(tuning_problem(p).tasks) for p in problems)):
            for p in problems:
                tasks = tuning_problem(p).tasks
                if i < len(tasks):
                    found += [TuningCell(p, tasks[i], seed, method, trials, label) for method in methods]
    return found


def work_off(
    wanted: Sequence[TuningCell],
    store: Path,
    cache_folder: Path,
    *,
    jobs: int = 1,
    seconds: float = float("inf"),
    provenance: dict[str, Any] | None = None,
    on_run: Callable[[int, TuningCell, Exception | None], None] = lambda _left, _cell, _error: None,
) -> list[tuple[TuningCell, Exception]]:
    """Run what the store does not hold, and write every run as soon as it is done; those that failed are returned.

    After ``seconds`` nothing new is begun.
    """
    done = {run.key for run in read_runs(store)}
    return run_all(
        [cell for cell in wanted if cell.key not in done],
        partial(_run, cache_folder, provenance or {}),
        lambda run: append_runs(store, [run]),
        jobs=jobs,
        seconds=seconds,
        on_run=on_run,
    )


@cache
def _evaluations(folder: Path) -> Evaluations:
    return Evaluations(folder)


def _run(folder: Path, provenance: dict[str, Any], cell: TuningCell) -> TuningRun:
    """One run; what samplers have to say about single trials is not wanted here."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        return tune(cell, _evaluations(folder), provenance)
    finally:
        optuna.logging.set_verbosity(before)
