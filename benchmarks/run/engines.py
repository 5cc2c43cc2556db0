"""Where pieces of work are done: one after the other, in processes of this machine, or on a Ray cluster.

An engine yields every piece with its result or with the exception that ended it, in any order: one that fails does
not keep the others from being done. Whoever stops reading stops the work.
"""

from __future__ import annotations

import logging
import os
import signal
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import active_children, get_context
from typing import Any, Protocol, TypeVar

from benchmarks.store import Run
from headstart.errors import HeadstartError, InputError, MissingExtraError
from headstart.gp.threads import round_alike

logger = logging.getLogger(__name__)


class Work(Protocol):
    """A piece of work, which can be sent to another process."""

    def run(self, device: str) -> list[Run]:
        """The records of the runs that this piece consists of, computed on the device."""
        ...


W = TypeVar("W", bound=Work)
WorkOutcome = tuple[W, list[Run] | Exception]
WorkOutcomes = Generator[WorkOutcome[W], None, None]
Engine = Callable[[Sequence[W], str, int], WorkOutcomes[W]]


def _run(work: Work, device: str) -> list[Run]:
    round_alike()
    return work.run(device)


def _in_turn(pieces: Sequence[W], device: str) -> WorkOutcomes[W]:
    for work in pieces:
        outcome: list[Run] | Exception
        try:
            outcome = _run(work, device)
        except Exception as error:  # whatever it is, it is reported, and the others are still to be done
            outcome = error
        yield work, outcome


def _begin_worker() -> None:
    """Ctrl-C is for the parent, which ends its workers; and what it has said about a table need not be said again."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.getLogger("headstart").setLevel(logging.ERROR)


def in_processes(pieces: Sequence[W], device: str, jobs: int) -> WorkOutcomes[W]:
    """``jobs`` pieces at once, each in a process of its own; no process is started for one at a time.

    A process may die: somebody kills it, or the memory is full. All pieces that were being worked on then are done
    again one at a time. One that dies twice on its own is given up, and the others go on.
    """
    if jobs <= 1 or len(pieces) <= 1:
        yield from _in_turn(pieces, device)
        return
    left, suspects, died_alone = deque(pieces), deque[W](), list[W]()
    while left or suspects:
        alone = bool(suspects)
        lost = yield from _until_a_process_dies(suspects if alone else left, device, 1 if alone else jobs)
        if not alone:
            suspects.extend(lost)
        elif lost and not any(lost[0] is piece for piece in died_alone):
            died_alone += lost
            suspects.extend(lost)
        elif lost:
            reason = "its process dies every time. Is it killed, or is there too little memory?"
            yield lost[0], HeadstartError(reason)


def _until_a_process_dies(queue: deque[W], device: str, jobs: int) -> Generator[WorkOutcome[W], None, list[W]]:
    """Work off the queue; where a process dies, stop and return the pieces that were being worked on."""
    others = set(active_children())
    # fresh interpreters: forking a process that has used torch or CUDA is not safe
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_begin_worker)
    running: dict[Future[list[Run]], W] = {}
    lost: list[W] = []
    broken = False
    try:
        while running or (queue and not broken):
            while queue and len(running) < jobs and not broken:
                try:
                    running[pool.submit(_run, queue[0], device)] = queue[0]
                    queue.popleft()
                except BrokenProcessPool:
                    broken = True
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                work, error = running.pop(future), future.exception()
                if isinstance(error, BrokenProcessPool):
                    lost.append(work)
                    broken = True
                elif error is None or isinstance(error, Exception):
                    yield work, future.result() if error is None else error
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


def on_ray(pieces: Sequence[W], device: str, jobs: int) -> WorkOutcomes[W]:
    """On the cluster that RAY_ADDRESS names, or else on a local one of ``jobs`` processors."""
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError("--engine ray needs Ray: pip install 'headstart[ray]'.") from error
    ours = not ray.is_initialized()
    if ours:
        local: dict[str, Any] = {"num_cpus": jobs, "include_dashboard": False}
        own = {} if os.environ.get("RAY_ADDRESS") else local
        ray.init(log_to_driver=False, **own)
    try:
        remote = ray.remote(num_cpus=1, num_gpus=1 if device.startswith("cuda") else 0)(_run)
        waiting = {remote.remote(work, device): work for work in pieces}
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


ENGINES = ("process", "ray")


def engine_named(name: str) -> Engine[W]:
    """The engine of that name."""
    if name == "process":
        return in_processes
    if name == "ray":
        return on_ray
    raise InputError(f"There is no engine {name!r}. The known ones are {', '.join(ENGINES)}.")
