"""A timing as a unit of the queue and as rows of a table.

CPU time of one thread, unless a figure says otherwise. Engines take turns in one process and medians are kept, so that
a busy machine slows all of them alike: what counts is the ratio. A measurement holds for one commit of the program.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from benchmarks.queue import Unit
from benchmarks.read.sheet import Cellular, Sheet
from benchmarks.store import Run, RunKey, Store, commit, provenance, settings_key
from headstart.gp.threads import single_thread

Figures = Mapping[str, Mapping[str, float]]  # by method, then by what was measured


@dataclass(frozen=True)
class Timing(Unit):
    """What is timed, and the function that does it, which other processes must be able to import."""

    what: str
    measure: Callable[[], Figures]

    def left(self, done: set[RunKey]) -> Timing | None:
        """All of it, unless it was measured with this commit."""
        settings = settings_key({"commit": commit()})
        return None if any(key[0] == self.what and key[3] == settings for key in done) else self

    def run(self, device: str) -> list[Run]:
        """One record per method; the figures are its traces."""
        with single_thread(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = self.measure()
        return [
            Run(
                problem=self.what,
                method=method,
                seed=0,
                settings={"commit": commit()},
                provenance=provenance(device),
                traces={name: [value] for name, value in figures.items()},
            )
            for method, figures in found.items()
        ]

    def __str__(self) -> str:
        return self.what


def measured(store: Store) -> list[Run]:
    """The measurements of this commit."""
    return [run for run in store.read().runs if run.settings == {"commit": commit()}]


def timing_sheets(runs: Sequence[Run]) -> list[Sheet]:
    """A sheet per kind of thing that was timed (up to the first comma of its name), a row per thing and method.

    × is the first figure as a multiple of that of the first method.
    """
    kinds: dict[str, list[Run]] = {}
    for run in runs:
        kinds.setdefault(run.problem.partition(",")[0], []).append(run)
    sheets = []
    for kind, own in kinds.items():
        columns = list(dict.fromkeys(figure for run in own for figure in run.traces))
        rows: list[tuple[Cellular, ...]] = []
        firsts: dict[str, Run] = {}
        for run in own:
            first = firsts.setdefault(run.problem, run)
            figures = [run.traces.get(column, [float("nan")])[0] for column in columns]
            reference = first.traces.get(columns[0], [float("nan")])[0]
            times = figures[0] / reference if run is not first and reference else float("nan")
            rows.append((run.problem, run.method, times, *figures))
        sheets.append(Sheet(kind, kind, ("what", "method", "×", *columns), tuple(rows)))
    return sheets


def take_turns(engines: Mapping[str, Callable[[], Any]], rounds: int) -> tuple[dict[str, float], dict[str, Any]]:
    """Median CPU milliseconds of every engine over the rounds, one after the other in each, and the last results."""
    times: dict[str, list[float]] = {name: [] for name in engines}
    results: dict[str, Any] = {}
    for _ in range(rounds):
        for name, run in engines.items():
            begin = time.process_time()
            results[name] = run()
            times[name].append(time.process_time() - begin)
    return {name: 1e3 * median(values) for name, values in times.items()}, results
