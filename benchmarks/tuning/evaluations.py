"""Scores that were computed before, on the disk: a rerun, and every method that asks for the same, finds them there."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

from benchmarks.store import append_lines, read_lines
from benchmarks.tuning.problem import Params, TuningProblem
from benchmarks.tuning.tasks import tuning_task
from headstart.gp.threads import single_thread

_SCHEMA = 1


def default_cache() -> Path:
    """Where scores are kept if nobody says otherwise: below XDG_CACHE_HOME, or ~/.cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headstart" / "tuning"


class Evaluations:
    """Training runs by content: problem, its revision, the data, the parameters and scikit-learn's version.

    A file per problem, to which several processes may append; what one of them computes meanwhile, another may compute
    again. ``seconds`` is the CPU time that training has taken in this process.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.seconds = 0.0
        self._known: dict[str, dict[str, list[float]]] = {}

    def curve(self, problem: TuningProblem, task: str, params: Params) -> list[float]:
        """The scores after every step of training."""
        import sklearn

        path = self.folder / f"{problem.name}.jsonl"
        if problem.name not in self._known:
            self._known[problem.name] = {r["key"]: r["curve"] for _, r in read_lines(path, _SCHEMA)[0]}
        known, data = self._known[problem.name], tuning_task(task)
        content = f"{sklearn.__version__} {problem.key(data, params)}"
        key = hashlib.sha256(content.encode()).hexdigest()[:24]
        if key not in known:
            begin = time.process_time()
            with single_thread():
                known[key] = problem.train(data, params)
            self.seconds += time.process_time() - begin
            append_lines(path, [{"schema": _SCHEMA, "key": key, "curve": known[key]}])
        return known[key]
