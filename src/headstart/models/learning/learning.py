"""``Learning``: everything that is learnt from sources passes through here.

A model cuts what it has to learn into *lessons*, each with a key for every result that it gives. What the notebook
knows is not learnt again; the rest is claimed, done by the crew, and noted. Which notebook and crew there are is
settled by whoever calls ``TransferModel.learn``, and holds for all that is learnt inside (``Learning.applied``).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from headstart.models.learning.crew import Crew, InTurn, Lesson
from headstart.models.learning.device import CPU, ComputeDevice, OnDevice
from headstart.models.learning.notebook import Notebook
from headstart.models.learning.numbers import Numbers
from headstart.models.learning.progress import LearningProgress


@dataclass(frozen=True, eq=False)
class Learning:
    """What is known, who works, who is told, and where. By default: nothing, this process, nobody, the CPU."""

    notebook: Notebook = field(default_factory=Notebook)
    crew: Crew = field(default_factory=InTurn)
    progress: LearningProgress = field(default_factory=LearningProgress)
    device: ComputeDevice = CPU

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Whatever this thread learns inside is learnt this way."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)

    def numbers_of(self, lessons: Sequence[Lesson], doing: str = "", *, here: bool = False) -> list[list[Numbers]]:
        """The results of every lesson, in order; ``here`` keeps the work in this process.

        ``doing`` is what is said of them all; without it they are a part of what was announced before.
        """
        known: dict[str, Numbers] = {}
        self._look_up(lessons, known)
        open_ = [lesson for lesson in lessons if not _is_known(lesson, known)]
        if not doing:
            self.progress.did(sum(lesson.cost for lesson in lessons if _is_known(lesson, known)))
        elif open_:
            self.progress.begin(doing, sum(_without(lesson, known).cost for lesson in open_))
        crew: Crew = InTurn() if here else self.crew
        crew = crew if self.device.is_cpu else OnDevice(crew, self.device)
        claimed: set[str] = set()
        patient, latest = True, time.monotonic()
        try:
            while open_:
                before = len(known)
                ours = self._ours(open_, known, claimed, patient=patient)
                for lesson, results in crew.work(ours, sum(_without(lesson, known).cost for lesson in open_)):
                    for key, numbers in zip(lesson.keys, results, strict=True):
                        self.notebook.note(key, numbers)
                        known[key] = numbers
                    self.progress.did(lesson.cost)
                left = [lesson for lesson in open_ if not _is_known(lesson, known)]
                if len(known) > before:
                    latest = time.monotonic()
                elif left:
                    # somebody else is at it; if that takes too long it is learnt here as well
                    patient = self.notebook.wait(time.monotonic() - latest)
                self._look_up(left, known)
                open_ = [lesson for lesson in left if not _is_known(lesson, known)]
        finally:
            self.notebook.give_up([key for key in claimed if key not in known])
        return [[known[key] for key in lesson.keys] for lesson in lessons]

    def _look_up(self, lessons: Sequence[Lesson], known: dict[str, Numbers]) -> None:
        for lesson in lessons:
            for i, key in enumerate(lesson.keys):
                if key in known or (found := self.notebook.look_up(key)) is None:
                    continue
                if lesson.accepts(i, found):
                    known[key] = found
                else:
                    self.notebook.reject(key)

    def _ours(
        self, lessons: Sequence[Lesson], known: dict[str, Numbers], claimed: set[str], *, patient: bool
    ) -> Iterator[Lesson]:
        """What is left of the lessons and ours to do; each is claimed when somebody of the crew is free for it."""
        for lesson in lessons:
            self._look_up([lesson], known)
            wanted = [key for key in lesson.keys if key not in known and key not in claimed]
            ours = set(self.notebook.claim(wanted) if patient else wanted)
            claimed |= ours
            if ours:
                yield lesson.only([i for i, key in enumerate(lesson.keys) if key in ours])


_current: ContextVar[Learning] = ContextVar("learning")


def learning() -> Learning:
    """How this thread learns at the moment."""
    return _current.get(None) or Learning()


def _is_known(lesson: Lesson, known: dict[str, Numbers]) -> bool:
    return all(key in known for key in lesson.keys)


def _without(lesson: Lesson, known: dict[str, Numbers]) -> Lesson:
    return lesson.only([i for i, key in enumerate(lesson.keys) if key not in known])
