"""One case in a process of its own: ``python -m benchmarks.scale.work PART SIZE MODEL LIMIT``.

Every measure is a JSON object on a line of its own, written as soon as it is known: what was measured before the time
was up, or the memory was full, is not lost.
"""

from __future__ import annotations

import json
import logging
import resource
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import torch

from benchmarks.scale.accuracy import errors, regrets
from benchmarks.scale.plan import ScaleCase
from benchmarks.scale.tasks import draw_task
from headstart.data.dataset import Dataset
from headstart.decide.suggest import suggest
from headstart.errors import MissingExtraError
from headstart.gp.threads import single_thread
from headstart.models.family import model_named
from headstart.models.model import Prior

_RESULTS = 20  # of the target when a suggestion is timed
_NEW = 40  # results that a long target is given one after the other
_PATIENCE = 120.0  # CPU seconds after which it is given no more
_ROWS = 100  # of the one source that a long target has
_MOST_DATA = 8 << 30  # bytes: more is taken for too much, before it is the machine that has too little
_T = TypeVar("_T")
Measures = Iterator[dict[str, Any]]


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
        from benchmarks.speed.rivals import fit_default

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
        yield {"mean": sum(seconds) / len(seconds), "most": max(seconds), "new_results": len(seconds)}
        if sum(seconds) > _PATIENCE:
            break
    yield {"suggest": _timed(lambda: _next(prior, target.head(before + len(seconds))))[0]}


def _resumed(model: str, _: int, trials: int) -> Measures:
    try:
        import optuna

        from benchmarks.speed.routes import draw_history, space, transfer_sampler
    except ImportError as error:
        raise MissingExtraError("A study is resumed with Optuna: pip install optuna.") from error
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    history = draw_history(0, sources=1, points=_ROWS, trials=trials)
    sampler, asked = transfer_sampler(history, model), space(history.target.d)
    optuna.create_study(sampler=sampler).ask(asked)  # learns from the source
    study = optuna.create_study(sampler=sampler)
    for x, y in zip(history.target.X.tolist(), history.target.y.tolist(), strict=True):
        params = dict(zip(asked, x, strict=True))
        study.add_trial(optuna.trial.create_trial(params=params, distributions=asked, value=y))
    seconds, trial = _timed(lambda: study.ask(asked))
    yield {"first": seconds}
    later: list[float] = []
    while len(later) < 5 and sum(later) < _PATIENCE:
        x = torch.tensor([list(trial.params.values())], dtype=torch.float64)
        study.tell(trial, float(history.measure(x)))
        seconds, trial = _timed(lambda: study.ask(asked))
        later.append(seconds)
        yield {"mean": sum(later) / len(later), "most": max(later), "new_results": len(later)}


def measures_of(case: ScaleCase) -> Measures:
    """What is measured of a case, measure by measure; a later one of the same name replaces an earlier one."""
    works: dict[str, Callable[[str, int, int], Measures]] = {
        "learn": _learn,
        "many": _learn,
        "target": _long_target,
        "resume": _resumed,
        "exact": errors,
        "regret": regrets,
    }
    # a small one first: what is loaded or compiled on first use is not what grows
    for _ in works[case.part](case.model, 2 if case.part == "many" else 1, 40):
        pass
    loaded = _most_memory()
    for found in works[case.part](case.model, *case.numbers):
        yield found | {"memory": _most_memory(), "over": _most_memory() - loaded}


@single_thread()
def main(arguments: list[str]) -> None:
    """Write the measures of one case to the standard output."""
    part, size, model, limit = arguments
    warnings.simplefilter("ignore")
    logging.getLogger("headstart").setLevel(logging.ERROR)
    seconds = int(limit) + int(time.process_time()) + 1
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    resource.setrlimit(resource.RLIMIT_DATA, (_MOST_DATA, _MOST_DATA))
    for found in measures_of(ScaleCase(part, size, model, int(limit))):
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
