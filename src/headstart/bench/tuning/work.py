"""What is run, in which order, and by how many processes; what a store holds already is not run again."""

from __future__ import annotations

import logging
import signal
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import optuna

from headstart.bench.tuning.evaluations import Evaluations
from headstart.bench.tuning.problems.catalogue import tuning_problem
from headstart.bench.tuning.rivals import POOL
from headstart.bench.tuning.runs import TuningCell, TuningRun, append_runs, read_runs, tune
from headstart.gp.threads import single_thread

__all__ = ["cells", "work_off"]

Outcome = tuple[TuningCell, TuningRun | Exception]


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
    left = [cell for cell in wanted if cell.key not in done]
    until = time.monotonic() + seconds
    failed = []
    n = len(left)
    for cell, outcome in _outcomes(left, cache_folder, jobs, until, provenance or {}):
        n -= 1
        if isinstance(outcome, Exception):
            failed.append((cell, outcome))
            on_run(n, cell, outcome)
        else:
            append_runs(store, [outcome])
            on_run(n, cell, None)
    return failed


def _outcomes(
    left: Sequence[TuningCell], folder: Path, jobs: int, until: float, provenance: dict[str, Any]
) -> Iterator[Outcome]:
    if jobs <= 1:
        for cell in left:
            if time.monotonic() >= until:
                return
            yield cell, _tried(cell, folder, provenance)
        return
    queue, running = iter(left), dict[Future[TuningRun | Exception], TuningCell]()
    # fresh interpreters: forking a process that has used torch is not safe
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_begin_worker) as workers:
        while True:
            while len(running) < jobs and time.monotonic() < until and (following := next(queue, None)) is not None:
                running[workers.submit(_tried, following, folder, provenance)] = following
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                yield running.pop(future), future.result()


def _begin_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent


@cache
def _evaluations(folder: Path) -> Evaluations:
    return Evaluations(folder)


def _tried(cell: TuningCell, folder: Path, provenance: dict[str, Any]) -> TuningRun | Exception:
    """The run, or why there is none. What samplers have to say about single trials is not wanted here."""
    logger, before = logging.getLogger("headstart"), optuna.logging.get_verbosity()
    level = logger.level
    logger.setLevel(logging.ERROR)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings(), single_thread():
            warnings.simplefilter("ignore")
            return tune(cell, _evaluations(folder), provenance)
    except Exception as error:  # whatever it is, it is reported, and the others are still to be done
        return error
    finally:
        logger.setLevel(level)
        optuna.logging.set_verbosity(before)
