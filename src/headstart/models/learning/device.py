"""``ComputeDevice``: where large matrices are worked on. A GPU is used where that pays, and never needed.

What is small stays on the CPU, on which a suggestion has less to wait for than to compute. What runs out of the GPU's
memory is done again on the CPU, and that is said once.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

from headstart.errors import InputError
from headstart.models.learning.crew import Crew, Lesson, do_lesson
from headstart.models.learning.numbers import Numbers
from headstart.models.posterior import TransferPosterior

T = TypeVar("T")

_log = logging.getLogger(__name__)

# From so many rows on a source is fitted faster on a GPU (an H200: three times at 200 rows, ten at 500, twice at 5,000)
_FIT_ROWS = 300
# From so many elements of all matrices on (that of one source of 3,000 rows) a GPU looks for the next point faster:
# then in a third of the time, with 5,000 rows in an eighth; with 2,000 rows it was still slower
_SEARCH_ELEMENTS = 3000**2


@dataclass(frozen=True, eq=False)
class ComputeDevice:
    """A device of torch's, from which size on it is used, and who is told that it does not do."""

    name: str = "cpu"
    say: Callable[[str], None] = field(default=_log.warning)
    fit_rows: int = _FIT_ROWS
    search_elements: int = _SEARCH_ELEMENTS
    _said: set[str] = field(default_factory=set)

    @property
    def is_cpu(self) -> bool:
        """Whether it is no device of its own."""
        return self.name == "cpu"

    def run(self, work: Callable[[str], T]) -> T:
        """What the work gives on the device; on the CPU where the device has too little memory."""
        try:
            return work(self.name)
        except torch.OutOfMemoryError:
            if self.is_cpu:
                raise
        if not self._said:
            self._said.add(self.name)
            self.say(f"{self.name} has too little memory for the largest sources: the CPU does that part.")
        return work("cpu")

    def searching(self, known: Any, search: Callable[[Any, str], T]) -> T:
        """What the search gives that is handed a posterior, or several, and the device that it is on."""
        if self.is_cpu or elements_in(known) < self.search_elements:
            return search(known, "cpu")
        return self.run(lambda device: search(known if device == "cpu" else moved(known, device), device))


CPU = ComputeDevice()


@dataclass(frozen=True, slots=True)
class OnDevice:
    """A crew with a device: it does the large lessons, in this process, and the crew all others."""

    crew: Crew
    device: ComputeDevice

    def work(self, lessons: Iterable[Lesson], cost: float = 0.0) -> Iterator[tuple[Lesson, list[Numbers]]]:
        """Every lesson with its results."""
        large: list[Lesson] = []
        yield from self.crew.work(self._small(lessons, large), cost)
        for lesson in large:
            yield lesson, self.device.run(lambda device, own=lesson: do_lesson(moved(own, device)))  # type: ignore[misc]

    def _small(self, lessons: Iterable[Lesson], large: list[Lesson]) -> Iterator[Lesson]:
        for lesson in lessons:
            if lesson.rows >= self.device.fit_rows:
                large.append(lesson)
            else:
                yield lesson


def device_from(name: str, say: Callable[[str], None] | None = None) -> ComputeDevice:
    """The device of that name; where this machine has none, the CPU, and ``say`` is told so."""
    say = _log.warning if say is None else say
    try:
        kind = torch.device(name).type
    except (RuntimeError, TypeError) as error:
        raise InputError(f'device must be "cpu", "cuda" or one of several, as "cuda:1", but it is {name!r}.') from error
    if kind not in ("cpu", "cuda"):
        raise InputError(f'device must be "cpu" or "cuda", but it is {name!r}.')
    if kind == "cpu":
        return ComputeDevice(say=say)
    if not torch.cuda.is_available() or (torch.device(name).index or 0) >= torch.cuda.device_count():
        say(f"There is no {name} here, or this PyTorch was built without CUDA: the CPU does all the work.")
        return ComputeDevice(say=say)
    return ComputeDevice(name, say)


def moved(value: T, device: str) -> T:
    """A copy of whatever it is made of, every tensor in it on the device: a lesson, a posterior, a prior."""
    found: Any = value
    if isinstance(value, Tensor):
        found = value.to(device)
    elif isinstance(value, TransferPosterior):
        inner, outcome = moved(value._predictor, device), moved(value._outcome, device)
        found = type(value)(inner, outcome, moved(value._y, device), moved(value._warp, device))
    elif isinstance(value, tuple | list):
        found = type(value)(moved(part, device) for part in value)
    elif isinstance(value, dict):
        found = {key: moved(part, device) for key, part in value.items()}
    elif is_dataclass(value) and not isinstance(value, type):
        found = copy.copy(value)
        for f in fields(value):
            object.__setattr__(found, f.name, moved(getattr(value, f.name), device))
        for name in getattr(found, "__dict__", {}).keys() - {f.name for f in fields(value)}:
            del found.__dict__[name]  # what was worked out from the fields and kept
    return found  # type: ignore[no-any-return]


def elements_in(value: Any) -> int:
    """How many numbers the matrices in it have, each counted once."""
    seen: dict[int, int] = {}
    _count(value, seen, set())
    return sum(seen.values())


def _count(value: Any, seen: dict[int, int], visited: set[int]) -> None:
    if isinstance(value, Tensor):
        if value.dim() >= 2:
            seen[value.data_ptr()] = max(seen.get(value.data_ptr(), 0), value.numel())
        return
    if id(value) in visited:
        return
    visited.add(id(value))
    if isinstance(value, TransferPosterior):
        _count(value._predictor, seen, visited)
    elif isinstance(value, tuple | list):
        for part in value:
            _count(part, seen, visited)
    elif is_dataclass(value) and not isinstance(value, type):
        for f in fields(value):
            _count(getattr(value, f.name), seen, visited)
