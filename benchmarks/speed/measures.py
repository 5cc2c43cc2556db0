"""What is measured of the sampler: seconds of a suggestion, the overhead of many trials, and trials saved."""

from __future__ import annotations

import ctypes
import ctypes.util
import gc
import math
import resource
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import optuna

from benchmarks.methods.method import Settings
from benchmarks.problems.svm_table import svm_sklearn
from benchmarks.problems.table import TableProblem
from benchmarks.run.runner import run_batch
from benchmarks.speed.routes import Route, draw_history, space, transfer_sampler
from headstart.errors import MissingExtraError

_SLOW = 5.0  # seconds


@dataclass(frozen=True, slots=True)
class SuggestionTimes:
    """CPU seconds of one suggestion by one route; none where the route cannot be taken, and ``note`` says why."""

    route: str
    uses: str
    when: str
    seconds: tuple[float, ...]
    note: str = ""

    @property
    def median(self) -> float | None:
        """The median over data sets and rounds."""
        return statistics.median(self.seconds) if self.seconds else None


def suggestions(
    every: Sequence[Route], *, data_sets: int, rounds: int, on_step: Callable[[str], None] = lambda _: None, **size: int
) -> list[SuggestionTimes]:
    """All routes on the same data sets, taking turns. ``size`` is that of the histories.

    Of a data set's rounds, a route that takes more than 5 s has the first only.
    """
    seconds: dict[Route, list[float]] = {route: [] for route in every}
    notes = {route: route.note for route in every}
    for seed in range(data_sets):
        history = draw_history(seed, **size)
        ready = {}
        for route in every:
            try:
                ready[route] = route.begin(history)
            except MissingExtraError as error:
                notes[route] = str(error)
        for round_ in range(rounds):
            for route, arrange in ready.items():
                if round_ > 0 and seconds[route][-1] > _SLOW:
                    continue
                on_step(f"{route.name}, {route.when.value}, data set {seed + 1}, round {round_ + 1}")
                next_trial = arrange()
                begin = time.process_time()
                next_trial()
                seconds[route].append(time.process_time() - begin)
    return [SuggestionTimes(r.name, r.uses, r.when.value, tuple(seconds[r]), notes[r]) for r in every]


@dataclass(frozen=True, slots=True)
class Overhead:
    """CPU seconds of a whole study, and the memory of the process after every so many trials, in MiB."""

    model: str
    trials: int
    seconds: float
    memory: dict[int, float]

    @property
    def growth(self) -> float:
        """By what share the memory grew from the first to the last time it was looked at."""
        seen = list(self.memory.values())
        return seen[-1] / seen[0] - 1


def overhead(model: str, *, trials: int = 200, points: int = 100) -> Overhead:
    """A study of a trivial objective, learning from the sources included; memory is looked at ten times."""
    history = draw_history(0, points=points, trials=1)
    asked = space(history.target.d)
    memory, every = {}, max(1, trials // 10)
    begin = time.process_time()
    study = optuna.create_study(sampler=transfer_sampler(history, model))
    for done in range(1, trials + 1):
        trial = study.ask(asked)
        study.tell(trial, sum((x - 0.3) ** 2 for x in trial.params.values()))
        if done % every == 0:
            memory[done] = _resident()
    return Overhead(model, trials, time.process_time() - begin, memory)


def _resident() -> float:
    """The memory the process needs now, where the system says; otherwise the most that it has held.

    What was freed but is kept in reserve by the allocator does not count: how much that is depends on chance.
    """
    gc.collect()
    with suppress(OSError, AttributeError, TypeError):  # not the GNU C library
        ctypes.CDLL(ctypes.util.find_library("c")).malloc_trim(0)
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * resource.getpagesize() / 2**20
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / 2**20 if sys.platform == "darwin" else most / 2**10


@dataclass(frozen=True, slots=True)
class Reach:
    """In how many trials a method gets to what GPBO has at the end, run by run; None where it does not."""

    method: str
    steps: int
    trials: tuple[int | None, ...]

    def quantile(self, share: float) -> float:
        """The least number of trials that this share of all runs needs at most; ∞ where too few get there."""
        ordered = sorted(float("inf") if n is None else n for n in self.trials)
        return float(ordered[max(1, math.ceil(share * len(ordered))) - 1])


def reach(
    methods: Sequence[str],
    *,
    turns: int,
    steps: int = 30,
    sources: int = 10,
    rows: int = 60,
    on_step: Callable[[str], None] = lambda _: None,
) -> list[Reach]:
    """Every task of the SVM table is the target ``turns`` times; GPBO meets the same targets at the same seeds.

    The sources are random rows of other tasks, of which some come from the same data set as the target.
    """
    table = svm_sklearn()
    problem = TableProblem(table, n_sources=sources, rows=rows, in_turn=True)
    settings = Settings(paper=False, acquisition="log_ei")
    regret: dict[str, list[list[float]]] = {name: [] for name in ("gpbo", *methods)}
    n = len(table.tasks)
    for turn in range(turns):
        for name in regret:
            on_step(f"{name}, turn {turn + 1} of {turns}")
            runs = run_batch(problem, name, range(turn * n, turn * n + n), steps=steps, settings=settings)
            regret[name] += [run.regret for run in runs]
    goals = [run[-1] for run in regret["gpbo"]]
    return [
        Reach(name, steps, tuple(first(run, goal) for run, goal in zip(runs, goals, strict=True)))
        for name, runs in regret.items()
    ]


def first(regret: Sequence[float], goal: float) -> int | None:
    """After how many trials the regret is at the goal; None if it never is."""
    return next((k for k, value in enumerate(regret, 1) if value <= goal), None)


# ── the tables ────────────────────────────────────────────────────────────────────────────────────────────────────────
