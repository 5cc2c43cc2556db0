"""What it takes with how much past: seconds, memory, and how they grow. ``python -m benchmarks time scale``.

    part       sizes                                   measures
    learn      one source of so many rows              learn; suggest: the first suggestion, with 20 results
    many       so many sources of so many rows         the same; further: the suggestion after one more result
    target     so many results, one source of 100      first: all of them at once; mean and most of new ones after that
    resume     a study of so many trials, as Optuna's  first suggestion, mean and most of those after it

Seconds are CPU seconds of one thread, and memory the most that the process held, in MB of 10⁶ bytes, torch and BoTorch
included. Every case is a process of its own with a limit of CPU time: one that is given up is an answer as well, and
what was measured before that is kept.
"""

from __future__ import annotations

import logging
import math
import resource
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.problems.problem import stream
from benchmarks.problems.synthetic import HARTMANN6
from benchmarks.read.sheet import Sheet
from benchmarks.store import Run
from benchmarks.timing.measurement import Figures, Timing, timing_sheets
from headstart.data.dataset import Dataset
from headstart.decide.suggest import suggest
from headstart.gp.threads import single_thread
from headstart.models.family import model_named
from headstart.models.model import Prior

_RESULTS = 20  # of the target when a suggestion is timed
_NEW = 40  # results that a long target is given one after the other
_PATIENCE = 120.0  # CPU seconds after which it is given no more
_ROWS = 100  # of the one source that a long target has
_MOST_DATA = 8 << 30  # bytes: more is taken for too much, before it is the machine that has too little
_ENDING = 30.0  # seconds that a process may take to end once it has sent everything
_WALL = 8  # of the limit: a machine that is shared gives a process a part of its time
_MODELS = ("auto", "shgp")
_QUICK = {"learn": ("200", "400"), "many": ("2x30", "4x30"), "target": ("40",), "resume": ("20",)}
_SIZES = {
    "learn": ("500", "1000", "2000", "5000", "20000"),
    "many": ("10x100", "30x100", "100x100", "1000x50"),
    "target": ("200", "500", "1000"),
    "resume": ("500", "800"),
}
_GROWTH = {"learn": "to 5000 rows", "many": "10 to 100 sources"}
_LIMIT = 300  # CPU seconds of a case

_T = TypeVar("_T")
Measures = Iterator[dict[str, float]]


def scale_timings(*, quick: bool, limit: int = _LIMIT) -> Iterator[Timing]:
    """A timing per part and size, with all models in turn; ``quick`` has small sizes, to see that it works."""
    for part, sizes in (_QUICK if quick else _SIZES).items():
        for size in sizes:
            models = ("auto",) if part == "resume" else _MODELS
            if part == "learn" and int(size) <= 2000:
                models = (*models, "botorch")
            yield Timing(f"{part}, {size}", partial(in_a_process, part, size, models, limit))


def in_a_process(part: str, size: str, models: Sequence[str], limit: int) -> Figures:
    """The measures of every model, each in a process of its own that is given up after so many CPU seconds."""
    found = {}
    for model in models:
        ours, theirs = get_context("spawn").Pipe(duplex=False)
        process = get_context("spawn").Process(target=_child, args=(theirs, part, size, model, limit))
        process.start()
        theirs.close()
        measures: dict[str, float] = {}
        try:
            until = time.monotonic() + _WALL * limit
            while ours.poll(max(0.0, until - time.monotonic())):
                measures |= ours.recv()
        except EOFError:  # it has come to its end, or was ended
            process.join(_ENDING)
        finally:
            process.kill()
            process.join()
        if process.exitcode:
            measures["given up after s" if process.exitcode in (-signal.SIGXCPU, -signal.SIGKILL) else "failed"] = limit
        found[model] = measures
    return found


def _child(out: Connection, part: str, size: str, model: str, limit: int) -> None:
    """Send every measure as soon as it is known."""
    warnings.simplefilter("ignore")
    logging.getLogger("headstart").setLevel(logging.ERROR)
    seconds = limit + int(time.process_time()) + 1
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    resource.setrlimit(resource.RLIMIT_DATA, (_MOST_DATA, _MOST_DATA))
    with single_thread():
        for measures in measures_of(part, size, model):
            out.send(measures)


def measures_of(part: str, size: str, model: str) -> Measures:
    """What is measured of a case, measure by measure; a later one of the same name replaces an earlier one."""
    works = {"learn": _learn, "many": _learn, "target": _long_target, "resume": _resumed}
    sources, times, rows = size.partition("x")
    # a small one first: what is loaded or compiled on first use is not what grows
    for _ in works[part](model, 2 if part == "many" else 1, 40):
        pass
    for found in works[part](model, *((int(sources), int(rows)) if times else (1, int(sources)))):
        yield found | {"memory": _most_memory()}


def draw_task(n: int, name: str, seed: int = 0) -> Dataset:
    """Random points of a random function of the Hartmann-6 family, with the paper's noise."""
    draw = stream("scale", seed, name)
    X = torch.rand(n, HARTMANN6.d, generator=draw, dtype=torch.float64)
    y = HARTMANN6.evaluate(HARTMANN6.sample(1, draw)[0], X)
    return Dataset(X, y + HARTMANN6.noise_std * torch.randn(n, generator=draw, dtype=torch.float64), name)


def _timed(work: Callable[[], _T]) -> tuple[float, _T]:
    begin = time.process_time()
    found = work()
    return time.process_time() - begin, found


def _most_memory() -> float:
    """The most that this program has held in memory, in MB. (ru_maxrss also counts the one that started it.)"""
    status = Path("/proc/self/status")
    if status.exists():
        peak = [line.split()[1] for line in status.read_text().splitlines() if line.startswith("VmHWM")]
        if peak:
            return int(peak[0]) * 1024 / 1e6
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / 1e6 if sys.platform == "darwin" else most * 1024 / 1e6


def _next(prior: Prior, target: Dataset) -> object:
    return suggest(prior.condition(target, seed=target.n), seed=target.n)


def _learn(model: str, sources: int, rows: int) -> Measures:
    tasks = [draw_task(rows, f"source {i}") for i in range(sources)]
    if model == "botorch":
        from benchmarks.timing.fits import fit_default

        data = tasks[0]
        yield {"learn": _timed(lambda: fit_default(data.X, (data.y - data.y.mean()) / data.y.std()))[0]}
        return
    seconds, prior = _timed(lambda: model_named(model.upper()).learn(tasks))
    yield {"learn": seconds}
    target = draw_task(_RESULTS + 1, "target")
    yield {"suggest": _timed(lambda: _next(prior, target.head(_RESULTS)))[0]}
    yield {"further": _timed(lambda: _next(prior, target))[0]}


def _long_target(model: str, _: int, rows: int) -> Measures:
    prior = model_named(model.upper()).learn([draw_task(_ROWS, "source 0")])
    target, before = draw_task(rows, "target"), max(1, rows - _NEW)
    yield {"first": _timed(lambda: prior.condition(target.head(before), seed=0))[0]}
    seconds: list[float] = []
    for n in range(before + 1, rows + 1):
        seconds.append(_timed(partial(prior.condition, target.head(n), seed=n))[0])
        yield {"mean": sum(seconds) / len(seconds), "most": max(seconds)}
        if sum(seconds) > _PATIENCE:
            break
    yield {"suggest": _timed(lambda: _next(prior, target.head(before + len(seconds))))[0]}


def _resumed(model: str, _: int, trials: int) -> Measures:
    import optuna

    from benchmarks.timing.sampler import draw_history, space, study_of
    from headstart.sampler.sampler import TransferSampler

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    history = draw_history(0, sources=1, points=_ROWS, trials=trials)
    asked = space(history.target.d)
    sampler = TransferSampler(history.sources, model=model, space=asked, seed=0)
    optuna.create_study(sampler=sampler).ask(asked)  # learns from the source
    study = study_of(history.target, sampler)
    seconds, trial = _timed(lambda: study.ask(asked))
    yield {"first": seconds}
    later: list[float] = []
    while len(later) < 5 and sum(later) < _PATIENCE:
        x = torch.tensor([list(trial.params.values())], dtype=torch.float64)
        study.tell(trial, float(history.measure(x)))
        seconds, trial = _timed(lambda: study.ask(asked))
        later.append(seconds)
        yield {"mean": sum(later) / len(later), "most": max(later)}


def scale_sheets(runs: Sequence[Run]) -> list[Sheet]:
    """Everything that was measured, then the slopes of log seconds of learning.

    Those in log rows go to 5000, those in log sources are of 100 rows each.
    """
    points: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for run in runs:
        part, size = run.problem.split(", ")
        rows, _, of = size.partition("x")
        if part in _GROWTH and "learn" in run.traces and int(rows) <= 5000 and of in ("", "100"):
            place = math.log(int(rows)), math.log(run.traces["learn"][0])
            points.setdefault((_GROWTH[part], run.method), []).append(place)
    slopes = [(*which, _slope(np.array(own))) for which, own in points.items() if len(own) > 1]
    return [*timing_sheets(runs), Sheet("growth", "How learning grows", ("size", "model", "exponent"), tuple(slopes))]


def _slope(points: NDArray[np.float64]) -> float:
    return float(np.polyfit(points[:, 0], points[:, 1], 1)[0])
