"""Work that takes a while is done beside the server, one piece after the other, and says how far it is."""

from __future__ import annotations

import logging
import multiprocessing
import queue
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from headstart.errors import HeadstartError
from headstart.web.problems import in_words

_log = logging.getLogger(__name__)

# How far a job is, from 0 to 1, and what it is doing
Report = Callable[[float, str], None]
# What jobs leave for the next ones
WorkerMemory = dict[str, Any]
# A piece of work; it must survive pickling, as must what it returns
Job = Callable[[Report, WorkerMemory], Any]

_DIED = "The process that does the work has ended, perhaps for want of memory. Nothing was changed. Try again."


@dataclass
class DeskWork:
    """A job on its way. ``error`` is what went wrong, in words; ``then`` the page to go to when it is done.

    Whoever asks for work of the same ``name`` meanwhile gets this one.
    """

    id: str
    name: str
    what: str
    job: Job
    then: str = "/"
    share: float = 0.0
    doing: str = "waiting for its turn"
    began: float = field(default_factory=time.monotonic)
    result: Any = None
    error: str = ""
    done: bool = False  # well or not

    @property
    def seconds(self) -> float:
        """How long ago it began."""
        return time.monotonic() - self.began

    def report(self, share: float, doing: str) -> None:
        """Note how far it is."""
        self.share, self.doing = share, doing


class Worker:
    """Does one job at a time in a process of its own, or (``apart=False``) in a thread of this one.

    The process is started with the first job and again if it dies; it ends with this one, however that ends, for then
    its pipe is closed (which the workers of an executor do not notice).
    """

    def __init__(self, *, apart: bool = True) -> None:
        self._apart = apart
        self._waiting: queue.Queue[tuple[DeskWork, Callable[[DeskWork], None]] | None] = queue.Queue()
        self._memory: WorkerMemory = {}
        self._process: Any = None
        self._line: Connection | None = None
        self._thread = threading.Thread(target=self._serve, daemon=True, name="headstart worker")
        self._thread.start()

    def submit(self, work: DeskWork, on_end: Callable[[DeskWork], None]) -> None:
        """Do it when its turn comes; ``on_end`` is called before anybody can see that it is done."""
        self._waiting.put((work, on_end))

    def stop(self) -> None:
        """End the process; work that waits is left undone."""
        self._waiting.put(None)
        if self._process is not None:
            self._process.terminate()
            self._process.join(timeout=5)
        self._thread.join(timeout=5)

    def _serve(self) -> None:
        while (item := self._waiting.get()) is not None:
            work, on_end = item
            try:
                work.result = self._result(work)
                on_end(work)
            except Exception as error:
                work.error = _told(error)
            work.done = True

    def _result(self, work: DeskWork) -> Any:
        if not self._apart:
            return work.job(work.report, self._memory)
        try:
            line = self._connected()
            line.send(work.job)
            while True:
                kind, content = line.recv()
                if kind == "result":
                    return content
                if kind == "error":
                    raise HeadstartError(content)
                work.report(*content)
        except (EOFError, ConnectionError) as error:
            self._line = None
            raise HeadstartError(_DIED) from error

    def _connected(self) -> Connection:
        if self._line is None or self._process is None or not self._process.is_alive():
            context = multiprocessing.get_context("spawn")
            self._line, other = context.Pipe()
            self._process = context.Process(target=_work, args=(other,), daemon=True, name="headstart worker")
            self._process.start()
            other.close()
        return self._line


def _told(error: Exception) -> str:
    """What went wrong, in words; what nobody can mend goes into the log as well."""
    if not isinstance(error, HeadstartError | OSError):
        _log.error("a job failed", exc_info=error)
    return str(in_words(error))


def _work(line: Connection) -> None:
    """The process: jobs come in, reports and results go out, until the line is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever stops the server stops this too
    memory: WorkerMemory = {}
    while True:
        try:
            job: Job = line.recv()
            try:
                answer = ("result", job(lambda share, doing: line.send(("report", (share, doing))), memory))
            except Exception as error:
                answer = ("error", _told(error))
            line.send(answer)
        except (EOFError, OSError):
            return
