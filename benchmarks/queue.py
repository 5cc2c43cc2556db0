"""Cells of a benchmark are run one after the other, or by several processes, and each is kept as soon as it is done."""

from __future__ import annotations

import logging
import signal
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from typing import TypeVar

from headstart.gp.threads import single_thread

_Cell = TypeVar("_Cell")
_Run = TypeVar("_Run")


def run_all(
    left: Sequence[_Cell],
    one: Callable[[_Cell], _Run],
    keep: Callable[[_Run], None],
    *,
    jobs: int,
    seconds: float,
    on_run: Callable[[int, _Cell, Exception | None], None],
) -> list[tuple[_Cell, Exception]]:
    """Run them by ``one``, which other processes must be able to import; those that failed are returned.

    After ``seconds`` nothing new is begun. ``on_run`` is told how many are left, and what came of the one that ended.
    """
    failed, n = [], len(left)
    for cell, found in _ended(left, one, jobs, time.monotonic() + seconds):
        n -= 1
        if isinstance(found, Exception):
            failed.append((cell, found))
            on_run(n, cell, found)
        else:
            keep(found)
            on_run(n, cell, None)
    return failed


def _ended(
    left: Sequence[_Cell], one: Callable[[_Cell], _Run], jobs: int, until: float
) -> Iterator[tuple[_Cell, _Run | Exception]]:
    if jobs <= 1:
        for cell in left:
            if time.monotonic() >= until:
                return
            yield cell, _tried(one, cell)
        return
    queue, running = iter(left), dict[Future[_Run | Exception], _Cell]()
    # fresh interpreters: forking a process that has used torch is not safe
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_begin_worker) as workers:
        while True:
            while len(running) < jobs and time.monotonic() < until and (following := next(queue, None)) is not None:
                running[workers.submit(_tried, one, following)] = following
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                yield running.pop(future), future.result()


def _begin_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent


def _tried(one: Callable[[_Cell], _Run], cell: _Cell) -> _Run | Exception:
    """The run, or why there is none. What is said about single points is not wanted here."""
    logger = logging.getLogger("headstart")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), single_thread():
            warnings.simplefilter("ignore")
            return one(cell)
    except Exception as error:  # whatever it is, it is reported, and the others are still to be done
        return error
    finally:
        logger.setLevel(level)
