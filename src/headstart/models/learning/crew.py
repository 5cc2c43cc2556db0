"""Who does the work: this process, one lesson after the other, or several processes at once (``n_jobs``).

A lesson gives the same numbers to the last bit wherever it is done: it has its own starting points, works on one
thread, and MKL is told to round alike everywhere (gp.threads).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from itertools import chain, islice
from typing import Protocol

from headstart.errors import InputError, MissingExtraError
from headstart.gp.threads import round_alike, single_thread
from headstart.models.learning.numbers import Numbers

_log = logging.getLogger(__name__)

# Seconds that it takes until processes work (their imports); they are started for so many times that
_START, _PAYS = 3.0, 2.0


class Lesson(Protocol):
    """Something to learn that can be sent to another process: ``keys`` name its results.

    ``cost`` is how many seconds it probably takes on an ordinary processor.
    """

    @property
    def keys(self) -> Sequence[str]:
        """One for each result."""
        ...

    @property
    def cost(self) -> float:
        """Seconds."""
        ...

    @property
    def rows(self) -> int:
        """Of its largest matrix."""
        ...

    def only(self, which: Sequence[int]) -> Lesson:
        """The part with these results."""
        ...

    def accepts(self, i: int, numbers: Numbers) -> bool:
        """Whether these can be result i: they come from a file that anybody may have written."""
        ...

    def run(self) -> list[Numbers]:
        """Learn it."""
        ...


class Crew(Protocol):
    """Does lessons, in any order; takes the next one from the iterator when somebody is free."""

    def work(self, lessons: Iterable[Lesson], cost: float = 0.0) -> Iterator[tuple[Lesson, list[Numbers]]]:
        """Every lesson with its results; ``cost`` is how many seconds all of them probably take."""
        ...


def do_lesson(lesson: Lesson) -> list[Numbers]:
    """The results of a lesson, on one thread."""
    with single_thread():
        return lesson.run()


@dataclass(frozen=True, slots=True)
class InTurn:
    """This process does one after the other."""

    def work(
        self,
        lessons: Iterable[Lesson],
        cost: float = 0.0,  # noqa: ARG002
    ) -> Iterator[tuple[Lesson, list[Numbers]]]:
        """Every lesson with its results."""
        for lesson in lessons:
            yield lesson, do_lesson(lesson)


@dataclass(frozen=True, slots=True)
class Processes:
    """``jobs`` processes at once, started only where that pays: not for what takes less than some seconds.

    ``always`` starts them for anything. Where a process dies, killed or for want of memory, what is left is done here.
    They stay for some minutes, for whatever is learnt next, and end with this process.
    """

    jobs: int
    always: bool = False

    def work(self, lessons: Iterable[Lesson], cost: float = 0.0) -> Iterator[tuple[Lesson, list[Numbers]]]:
        """Every lesson with its results."""
        waiting = iter(lessons)
        first = list(islice(waiting, 2))
        saved = max(cost, sum(lesson.cost for lesson in first)) * (1 - 1 / self.jobs)
        every = chain(first, waiting)
        if len(first) < 2 or (saved < _PAYS * _START and not self.always):
            yield from InTurn().work(every)
            return
        running: dict[int, Lesson] = {}
        try:
            for i, results in _in_processes(self.jobs, _noted(every, running)):
                yield running.pop(i), results
        except BrokenProcessPool:  # of which joblib's error is one
            _log.warning("A process that learnt from sources died. What it was doing is done in this one.")
        yield from InTurn().work(chain(list(running.values()), every))


def _noted(lessons: Iterable[Lesson], running: dict[int, Lesson]) -> Iterator[tuple[int, Lesson]]:
    """The lessons with their numbers, under which they are noted as being done."""
    for i, lesson in enumerate(lessons):
        running[i] = lesson
        yield i, lesson


def _numbered(i: int, lesson: Lesson) -> tuple[int, list[Numbers]]:
    return i, do_lesson(lesson)


def _in_processes(jobs: int, lessons: Iterable[tuple[int, Lesson]]) -> Iterator[tuple[int, list[Numbers]]]:
    # not multiprocessing: its processes run the user's script again, which need not be written for that
    try:
        import joblib
    except ImportError as error:
        raise MissingExtraError("n_jobs needs joblib: pip install joblib.") from error
    with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
        pool = joblib.Parallel(n_jobs=jobs, pre_dispatch="n_jobs", batch_size=1, return_as="generator_unordered")
        yield from pool(joblib.delayed(_numbered)(i, lesson) for i, lesson in lessons)


def jobs_from(n_jobs: int, name: str = "n_jobs") -> Crew:
    """The crew of so many processes; −1 is as many as there are processors."""
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or (n_jobs < 1 and n_jobs != -1):
        raise InputError(
            f"{name} is how many processes learn at once, from 1 on, or -1 for as many as there are processors, but "
            f"it is {n_jobs!r}."
        )
    round_alike()
    jobs = processors() if n_jobs == -1 else n_jobs
    return InTurn() if jobs == 1 else Processes(jobs)


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
