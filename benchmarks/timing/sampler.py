"""The Optuna sampler: seconds of a suggestion, overhead of many trials, trials saved.

    part         question                                                               data
    suggestion   CPU seconds of a suggestion by every route (timing.routes)             3 × 100 source points, 30 trials
    overhead     CPU seconds and memory of 200 trials of a trivial objective            the same sources
    svm          trials to what GPBO has after 30, with every task of the table in turn our SVM table

``python -m benchmarks time sampler``. Rivals that are not installed are left out.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import gc
import math
import resource
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import optuna

from benchmarks.methods.method import Settings
from benchmarks.methods.scratch import quietly
from benchmarks.problems.shared_tables import svm_sklearn
from benchmarks.problems.table import TableProblem
from benchmarks.run.runner import run_batch
from benchmarks.timing.measurement import Figures, Timing
from benchmarks.timing.routes import draw_history, routes, space, transfer_sampler
from headstart.errors import MissingExtraError

_SLOW = 5.0  # seconds: a route that takes longer has one round per data set
_METHODS = ("auto", "shgp", "star")


def sampler_timings(*, quick: bool) -> Iterator[Timing]:
    """Everything that is timed; ``quick`` has one data set, one round, 40 trials and one turn."""
    yield Timing("overhead", partial(overhead, 40 if quick else 200))  # first: the memory is the sampler's alone
    yield Timing("suggestion", partial(suggestions, *((1, 1) if quick else (3, 3))))
    yield Timing("svm", partial(reach, _METHODS, 1 if quick else 4))


def suggestions(data_sets: int, rounds: int, **size: int) -> Figures:
    """CPU seconds of one suggestion by all routes on the same data sets, taking turns. ``size`` is of the histories."""
    every = routes("auto")
    seconds: dict[str, list[float]] = {}
    for seed in range(data_sets):
        history, ready = draw_history(seed, **size), {}
        for route in every:
            with suppress(MissingExtraError), quietly():
                ready[f"{route.name}, {route.when.value}"] = route.begin(history)
        for round_ in range(rounds):
            for name, arrange in ready.items():
                if round_ > 0 and seconds[name][-1] > _SLOW:
                    continue
                with quietly():
                    next_trial = arrange()
                    begin = time.process_time()
                    next_trial()
                    seconds.setdefault(name, []).append(time.process_time() - begin)
    return {
        name: {"s": statistics.median(own), "least s": min(own), "most s": max(own)} for name, own in seconds.items()
    }


def overhead(trials: int = 200, points: int = 100) -> Figures:
    """A study of a trivial objective, learning from the sources included; memory after a tenth, and at the end."""
    history = draw_history(0, points=points, trials=1)
    asked, memory = space(history.target.d), {}
    begin = time.process_time()
    with quietly():
        study = optuna.create_study(sampler=transfer_sampler(history, "auto"))
        for done in range(1, trials + 1):
            trial = study.ask(asked)
            study.tell(trial, sum((x - 0.3) ** 2 for x in trial.params.values()))
            if done in (max(1, trials // 10), trials):
                memory[f"MiB after {done} trials"] = _resident()
    return {"auto": {"s": time.process_time() - begin, **memory}}


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


def reach(methods: Sequence[str], turns: int, *, steps: int = 30, sources: int = 10, rows: int = 60) -> Figures:
    """In how many trials a method gets to what GPBO has at the end; quartiles over the runs, ∞ where too few do.

    Every task of the SVM table is the target ``turns`` times; GPBO meets the same targets at the same seeds. The
    sources are random rows of other tasks, of which some come from the same data set as the target.
    """
    table = svm_sklearn()
    problem = TableProblem(table, n_sources=sources, rows=rows, in_turn=True)
    settings, seeds = Settings(paper=False, acquisition="log_ei"), range(turns * len(table.tasks))
    regret = {
        name: [run.regret for run in run_batch(problem, name, seeds, steps=steps, settings=settings)]
        for name in ("gpbo", *methods)
    }
    goals = [run[-1] for run in regret["gpbo"]]
    found = {}
    for name, runs in regret.items():
        trials = sorted(first(run, goal) for run, goal in zip(runs, goals, strict=True))
        shares = {"median trials": 0.5, "25 %": 0.25, "75 %": 0.75}
        quantiles = {word: trials[max(1, math.ceil(share * len(trials))) - 1] for word, share in shares.items()}
        found[name] = {**quantiles, "never": float(sum(map(math.isinf, trials)))}
    return found


def first(regret: Sequence[float], goal: float) -> float:
    """After how many trials the regret is at the goal; ∞ if it never is."""
    return next((float(k) for k, value in enumerate(regret, 1) if value <= goal), math.inf)
