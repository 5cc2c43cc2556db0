"""Units of work are done one after the other, in processes, or on a Ray cluster; each is stored as soon as it is done.

An engine yields every unit with its runs or with the exception that ended it, in any order: one that fails does not
keep the others from being done. Whoever stops reading stops the work.
"""

from __future__ import annotations

import logging
import os
import signal
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from multiprocessing import active_children, get_context
from typing import Any, Self

import torch

from benchmarks.store import Run, RunKey, Store
from headstart.errors import HeadstartError, InputError, MissingExtraError
from headstart.gp.threads import round_alike

logger = logging.getLogger(__name__)

ENGINES = ("process", "ray")


class Unit(ABC):
    """A piece of work, which can be sent to another process. It is done as a whole or not at all."""

    @abstractmethod
    def left(self, done: set[RunKey]) -> Self | None:
        """What is left of it when some runs exist already."""

    @abstractmethod
    def run(self, device: str) -> list[Run]:
        """The runs that this unit consists of, computed on the device."""


Failure = tuple[Unit, Exception]
Outcome = tuple[Unit, list[Run] | Exception]
Outcomes = Generator[Outcome, None, None]


def work_off(
    units: Iterable[Unit],
    store: Store,
    *,
    device: str = "cpu",
    jobs: int = 1,
    engine: str = "process",
    seconds: float = float("inf"),
    on_start: Callable[[int], None] = lambda _: None,
    on_unit: Callable[[Unit, Exception | None], None] = lambda _unit, _error: None,
) -> list[Failure]:
    """Run what the store does not hold yet; a unit that fails is reported and returned, and the rest goes on.

    ``jobs`` processes work at once (``engine="ray"``: on a Ray cluster). Only this process writes to the store. After
    ``seconds`` nothing new is begun, except on Ray.
    """
    if jobs < 1:
        raise InputError(f"jobs must be at least 1, but it is {jobs}.")
    if engine not in ENGINES:
        raise InputError(f"There is no engine {engine!r}. The known ones are {', '.join(ENGINES)}.")
    require_device(device)
    done, until = {run.key for run in store.read().runs}, time.monotonic() + seconds
    wanted = [left for unit in units if (left := unit.left(done)) is not None]
    on_start(len(wanted))
    failed: list[Failure] = []
    outcomes = on_ray(wanted, device, jobs) if engine == "ray" else in_processes(wanted, device, jobs, until)
    with closing(outcomes):
        for unit, outcome in outcomes:
            if isinstance(outcome, Exception):
                failed.append((unit, outcome))
                on_unit(unit, outcome)
            else:
                store.append(outcome)
                on_unit(unit, None)
    return failed


def require_device(device: str) -> None:
    """Raise an ``InputError`` unless torch can compute there."""
    if device != "cpu" and not device.startswith("cuda"):
        raise InputError(f"There is no device {device!r}. The known ones are cpu and cuda.")
    if device != "cpu" and not torch.cuda.is_available():
        raise InputError(f"{device} was asked for, but torch finds no CUDA device here.")


def _run(unit: Unit, device: str) -> list[Run]:
    round_alike()
    return unit.run(device)


def _begin_worker() -> None:
    """Leave Ctrl-C to the parent, which ends its workers, and do not repeat what it has said about a table."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.getLogger("headstart").setLevel(logging.ERROR)


def in_processes(units: Sequence[Unit], device: str, jobs: int, until: float = float("inf")) -> Outcomes:
    """``jobs`` units at once, each in a process of its own; no process is started for one at a time.

    A process may die: somebody kills it, or the memory is full. All units that were being worked on then are done
    again one at a time. One that dies twice on its own is given up, and the others go on.
    """
    left, suspects, died_alone = deque(units), deque[Unit](), list[Unit]()
    if jobs <= 1 or len(units) <= 1:
        while left and time.monotonic() < until:
            unit = left.popleft()
            try:
                outcome: list[Run] | Exception = _run(unit, device)
            except Exception as error:  # whatever it is, it is reported, and the others are still to be done
                outcome = error
            yield unit, outcome
        return
    while (left and time.monotonic() < until) or suspects:
        alone = bool(suspects)
        lost = yield from _until_a_process_dies(suspects if alone else left, device, 1 if alone else jobs, until)
        if not alone:
            suspects.extend(lost)
        elif lost and not any(lost[0] is unit for unit in died_alone):
            died_alone += lost
            suspects.extend(lost)
        elif lost:
            reason = "its process dies every time. Is it killed, or is there too little memory?"
            yield lost[0], HeadstartError(reason)
        elif time.monotonic() >= until:
            return


def _until_a_process_dies(
    queue: deque[Unit], device: str, jobs: int, until: float
) -> Generator[Outcome, None, list[Unit]]:
    """Work off the queue; where a process dies, stop and return the units that were being worked on."""
    others = set(active_children())
    # fresh interpreters: forking a process that has used torch or CUDA is not safe
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_begin_worker)
    running: dict[Future[list[Run]], Unit] = {}
    lost: list[Unit] = []
    broken = False

    def may_begin() -> bool:
        return bool(queue) and not broken and time.monotonic() < until

    try:
        while running or may_begin():
            while len(running) < jobs and may_begin():
                try:
                    running[pool.submit(_run, queue[0], device)] = queue[0]
                    queue.popleft()
                except BrokenProcessPool:
                    broken = True
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                unit, error = running.pop(future), future.exception()
                if isinstance(error, BrokenProcessPool):
                    lost.append(unit)
                    broken = True
                elif error is None or isinstance(error, Exception):
                    yield unit, future.result() if error is None else error
                else:
                    raise error
    except BaseException:  # Ctrl-C, or the reader stopped: do not wait for what nobody will read
        pool.shutdown(wait=False, cancel_futures=True)
        for child in set(active_children()) - others:
            child.terminate()
        raise
    pool.shutdown()
    if broken:
        logger.warning("A process died; what it was doing is done again: %d units.", len(lost))
    return lost


def on_ray(units: Sequence[Unit], device: str, jobs: int) -> Outcomes:
    """On the cluster that RAY_ADDRESS names, or else on a local one of ``jobs`` processors."""
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError("--engine ray needs Ray: pip install 'headstart[ray]'.") from error
    ours = not ray.is_initialized()
    if ours:
        local: dict[str, Any] = {"num_cpus": jobs, "include_dashboard": False}
        ray.init(log_to_driver=False, **({} if os.environ.get("RAY_ADDRESS") else local))
    try:
        remote = ray.remote(num_cpus=1, num_gpus=1 if device.startswith("cuda") else 0)(_run)
        waiting = {remote.remote(unit, device): unit for unit in units}
        while waiting:
            (ready,), _ = ray.wait(list(waiting), num_returns=1)
            outcome: list[Run] | Exception
            try:
                outcome = ray.get(ready)
            except ray.exceptions.RayError as error:
                outcome = getattr(error, "cause", None) or error
            yield waiting.pop(ready), outcome
    finally:
        if ours:
            ray.shutdown()
