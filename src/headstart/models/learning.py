"""``LearnContext``: where fits of sources are computed and kept, and who is told how far learning is.

A model cuts what it learns into ``FitJob``s, which need nothing of each other, and hands them to ``LearnContext.run``:
in this process one after the other, by ``n_jobs`` processes through joblib, on a Ray cluster through Ray's backend of
joblib, or (large ones) on a GPU. A job gives the same numbers to the last bit in any process of one machine: it has its
own starting points, works on one thread, and MKL is told to round alike everywhere (gp.threads).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import torch

from headstart.data.dataset import Dataset
from headstart.errors import InputError, MissingExtraError
from headstart.gp.fit import Seed, generator_from
from headstart.gp.threads import round_alike, single_thread
from headstart.models.device import CPU, ComputeDevice, moved
from headstart.models.fitcache import FitCache

R = TypeVar("R")

_log = logging.getLogger(__name__)

# Processes take about three seconds to start; they are started where they save at least twice that
MIN_SECONDS_SAVED = 6.0
RAY = "ray"


@dataclass(frozen=True, slots=True)
class FitJob(Generic[R]):
    """``work(*arguments)``, which can be sent to another process.

    ``rows`` is the size of its largest matrix, ``seconds`` how long it probably takes on an ordinary processor.
    """

    work: Callable[..., R]
    arguments: tuple[Any, ...]
    rows: int
    seconds: float

    def __call__(self, device: str = "cpu") -> R:
        """The result, computed on one thread; it is on the CPU if the arguments are."""
        with single_thread(), torch.no_grad():
            if device == "cpu":
                return self.work(*self.arguments)
            return moved(self.work(*moved(self.arguments, device)), "cpu")


def expected_seconds(source: Dataset) -> float:
    """About how long a source of this size takes to be fitted on an ordinary processor.

    Up to some hundred rows all of them are in every evaluation; beyond that their number matters less.
    """
    n, problems = source.n, source.batch_shape.numel()
    return float(problems * (0.004 + min((n / 500) ** 2.3, 4 * (n / 2000) ** 1.2)))


def integer_seed(seed: Seed) -> int:
    """The seed of all jobs: an integer as it is, otherwise one that is drawn."""
    return seed if isinstance(seed, int) else int(torch.randint(1 << 31, (), generator=generator_from(seed)))


def seed_of_level(seed: int, level: int) -> int:
    """The seed of a level of a chain; the first one is that of a source on its own."""
    return seed if level == 0 else int(np.random.SeedSequence([seed % (1 << 64), level]).generate_state(1)[0])


def count_in_words(sources: Sequence[Dataset]) -> str:
    """How many sources and rows."""
    rows = sum(source.n for source in sources)
    return f"{len(sources)} source{'' if len(sources) == 1 else 's'} ({rows} rows)"


@dataclass(frozen=True, slots=True)
class LearningProgress:
    """What is being done, the share of it that is done (0 to 1), and the seconds so far and probably left."""

    doing: str
    share: float
    seconds: float
    left: float

    def __str__(self) -> str:
        """As a line of a log has it."""
        so_far, left = format_seconds(self.seconds), format_seconds(self.left)
        return f"{self.doing}: {self.share:.0%} after {so_far}, about {left} to go"


OnProgress = Callable[[LearningProgress], None]


def format_seconds(seconds: float) -> str:
    """3 s, 2 min or 1.5 h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


@dataclass(frozen=True, slots=True)
class LearnContext:
    """How sources are learnt: the cache of fits, the processes (or "ray"), who is told, and the device.

    By default: no cache, this process, nobody, the CPU.
    """

    cache: FitCache | None = None
    n_jobs: int | str = 1
    on_progress: OnProgress | None = None
    device: ComputeDevice = CPU

    def meter(self, doing: str, total: float, clock: Callable[[], float] = time.monotonic) -> Callable[[float], None]:
        """A function that takes the expected seconds of every job that is done, of ``total``, and reports progress."""
        began, done = clock(), 0.0

        def add(seconds: float) -> None:
            nonlocal done
            done += seconds
            if self.on_progress is not None:
                so_far = clock() - began
                rate = so_far / done if done > 0 else 1.0  # before anything is done: as expected
                share = min(done / total, 1.0) if total > 0 else 1.0
                self.on_progress(LearningProgress(doing, share, so_far, max((total - done) * rate, 0.0)))

        add(0.0)
        return add

    def run(self, jobs: Sequence[FitJob[R]]) -> Iterator[tuple[int, R]]:
        """The results of the jobs as they are done, each with the position of its job.

        Large jobs run on the device, if there is one. A single job, and what would save too little, runs in this
        process, and so does what is left where a process dies.
        """
        gpu = self.device.name != "cpu"
        on_device = {i for i, job in enumerate(jobs) if gpu and job.rows >= self.device.fit_rows}
        left = {i: job for i, job in enumerate(jobs) if i not in on_device}
        n = self.n_jobs
        if n == -1:
            from joblib import cpu_count

            n = cpu_count()
        seconds = sum(job.seconds for job in left.values())
        if len(left) > 1 and n != 1 and (n == RAY or seconds * (1 - 1 / int(n)) >= MIN_SECONDS_SAVED):
            try:
                for i, result in _in_parallel(list(left.items()), n):
                    del left[i]
                    yield i, result
            except BrokenProcessPool:  # of which joblib's error is one
                _log.warning("A process that learnt from sources died. What it was doing is done in this one.")
        for i, job in left.items():
            yield i, job()
        for i in sorted(on_device):
            yield i, self.device.run(jobs[i])


def require_n_jobs(n_jobs: int | str, name: str = "n_jobs") -> int | str:
    """The number of processes, −1 for as many as there are processors, or "ray"; an ``InputError`` for others."""
    if isinstance(n_jobs, str) and n_jobs != RAY:
        raise InputError(f'{name} is a number of processes, or "ray", but it is {n_jobs!r}.')
    if n_jobs != RAY and (isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or (n_jobs < 1 and n_jobs != -1)):
        raise InputError(
            f"{name} is how many processes learn at once, from 1 on, or -1 for as many as there are processors, but "
            f"it is {n_jobs!r}."
        )
    round_alike()
    return n_jobs


def _numbered(i: int, job: FitJob[R]) -> tuple[int, R]:
    return i, job()


def _in_parallel(jobs: Sequence[tuple[int, FitJob[R]]], n_jobs: int | str) -> Iterator[tuple[int, R]]:
    import joblib

    on_ray = n_jobs == RAY
    with _ray_backend(joblib) if on_ray else joblib.parallel_config("loky", inner_max_num_threads=1):
        pool = joblib.Parallel(
            n_jobs=-1 if on_ray else n_jobs,
            pre_dispatch="n_jobs",
            batch_size=1,
            return_as="list" if on_ray else "generator_unordered",  # Ray's backend has no generators
        )
        yield from pool(joblib.delayed(_numbered)(i, job) for i, job in jobs)


def _ray_backend(joblib: Any) -> AbstractContextManager[Any]:
    """joblib on the Ray cluster that the program is connected to, on the one that RAY_ADDRESS names, or a local one."""
    try:
        import ray
        from ray.util.joblib import register_ray
    except ImportError as error:
        raise MissingExtraError("Learning on Ray needs Ray: pip install 'headstart[ray]'.") from error
    if not ray.is_initialized():
        ray.init(log_to_driver=False)
    register_ray()  # type: ignore[no-untyped-call]
    found: AbstractContextManager[Any] = joblib.parallel_config("ray")
    return found
