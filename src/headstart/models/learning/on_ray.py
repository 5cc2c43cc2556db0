"""Learning on a Ray cluster: every lesson is a task of Ray's, which finds a free processor for it.

What is sent is a few arrays, and what comes back are numbers: the cluster needs headstart installed, and no shared
disk. The result is the same as here to rounding, for other machines round differently.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from headstart.data.dataset import Dataset
from headstart.errors import InputError, MissingExtraError
from headstart.gp.fit import Seed
from headstart.models.learning.crew import Crew, Lesson, do_lesson, jobs_from
from headstart.models.learning.learning import learning
from headstart.models.learning.numbers import Numbers
from headstart.models.model import Prior, TransferModel

_AHEAD = 2  # so many lessons for every processor are with Ray at a time


def learn_on_ray(model: TransferModel, sources: Sequence[Dataset] = (), *, seed: Seed = 0) -> Prior:
    """As ``model.learn``, the sources being learnt on the Ray cluster that this program is connected to.

    Without one it connects as ``ray.init()`` does: to the cluster that RAY_ADDRESS names, or to this machine alone.
    Models whose sources rest on each other (the chains) have nothing to distribute, and are learnt here.
    """
    with replace(learning(), crew=OnRay()).applied():
        return model.learn(sources, seed=seed)


def crew_from(n_jobs: int | str) -> Crew:
    """The crew of so many processes, or that of Ray where ``n_jobs`` is "ray"."""
    if n_jobs == "ray":
        return OnRay()
    if isinstance(n_jobs, str):
        raise InputError(f'n_jobs is a number of processes, or "ray", but it is {n_jobs!r}.')
    return jobs_from(n_jobs)


@dataclass(frozen=True, slots=True)
class OnRay:
    """The Ray cluster that is there; a task of its own for every lesson, each on one processor."""

    def work(
        self,
        lessons: Iterable[Lesson],
        cost: float = 0.0,  # noqa: ARG002
    ) -> Iterator[tuple[Lesson, list[Numbers]]]:
        """Every lesson with its results."""
        waiting = iter(lessons)
        first = list(islice(waiting, 1))
        if not first:
            return  # and Ray is not asked for
        ray = _connected()
        remote = ray.remote(num_cpus=1)(do_lesson)
        at_once = _AHEAD * max(1, int(ray.cluster_resources().get("CPU", 1)))
        running: dict[Any, Lesson] = {}
        while True:
            for lesson in (*first, *islice(waiting, at_once - len(running) - len(first))):
                running[remote.remote(lesson)] = lesson
            first = []
            if not running:
                return
            (ready,), _ = ray.wait(list(running), num_returns=1)
            try:
                results = ray.get(ready)
            except ray.exceptions.RayTaskError as error:
                raise getattr(error, "cause", None) or error from error
            yield running.pop(ready), results


def _connected() -> Any:
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError("Learning on Ray needs Ray: pip install 'headstart[ray]'.") from error
    if not ray.is_initialized():
        ray.init(log_to_driver=False)
    return ray
