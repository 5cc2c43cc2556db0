"""What is run, in which order, and by how many processes; what a store holds already is not run again."""

from __future__ import annotations

import logging
import signal
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from headstart.bench.outcomes.runs import OutcomeCell, OutcomeRun, append_outcomes, compare_one, read_outcomes
from headstart.gp.rounding import round_alike
from headstart.gp.threads import single_thread

__all__ = ["outcome_cells", "work_through"]

Ended = tuple[OutcomeCell, OutcomeRun | Exception]


def outcome_cells(
    problems: Sequence[str],
    methods: Sequence[str],
    *,
    runs: int,
    steps: int,
    first: int = 0,
    label: str = "",
) -> list[OutcomeCell]:
    """Seed by seed all problems with all methods: whoever stops early has equally many runs of each."""
    seeds = range(first, first + runs)
    return [OutcomeCell(p, seed, m, steps, label) for seed in seeds for p in problems for m in methods]


def work_through(
    wanted: Sequence[OutcomeCell],
    store: Path,
    *,
    jobs: int = 1,
    seconds: float = float("inf"),
    provenance: dict[str, Any] | None = None,
    on_run: Callable[[int, OutcomeCell, Exception | None], None] = lambda _left, _cell, _error: None,
) -> list[tuple[OutcomeCell, Exception]]:
    """Run what the store does not hold, and write every run as soon as it is done; those that failed are returned.

    After ``seconds`` nothing new is begun.
    """
    done = {run.key for run in read_outcomes(store)}
    left = [cell for cell in wanted if cell.key not in done]
    until, failed = time.monotonic() + seconds, []
    n = len(left)
    for cell, outcome in _ended(left, jobs, until, provenance or {}):
        n -= 1
        if isinstance(outcome, Exception):
            failed.append((cell, outcome))
            on_run(n, cell, outcome)
        else:
            append_outcomes(store, [outcome])
            on_run(n, cell, None)
    return failed


def _ended(left: Sequence[OutcomeCell], jobs: int, until: float, provenance: dict[str, Any]) -> Iterator[Ended]:
    if jobs <= 1:
        for cell in left:
            if time.monotonic() >= until:
                return
            yield cell, _tried(cell, provenance)
        return
    queue, running = iter(left), dict[Future[OutcomeRun | Exception], OutcomeCell]()
    # fresh interpreters: forking a process that has used torch is not safe
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_begin_worker) as workers:
        while True:
            while len(running) < jobs and time.monotonic() < until and (following := next(queue, None)) is not None:
                running[workers.submit(_tried, following, provenance)] = following
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                yield running.pop(future), future.result()


def _begin_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent


def _tried(cell: OutcomeCell, provenance: dict[str, Any]) -> OutcomeRun | Exception:
    """The run, or why there is none. What is said about single points is not wanted here."""
    logger = logging.getLogger("headstart")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), single_thread():
            warnings.simplefilter("ignore")
            round_alike()
            return compare_one(cell, provenance)
    except Exception as error:  # whatever it is, it is reported, and the others are still to be done
        return error
    finally:
        logger.setLevel(level)
