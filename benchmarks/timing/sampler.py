"""The Optuna sampler: seconds of a suggestion beside those of others, and of learning.

    part         what is timed                                                                   data
    suggestion   everything between a finished trial and the next                                3 × 100 rows, 30 trials
                   TransferSampler         study.ask(); the sources were learnt before, once for all trials
                   Optuna's GPSampler      study.ask(), without the sources
                   BoTorch's MultiTaskGP   fit_gpytorch_mll and optimize_acqf over all tasks, as in its own tutorials
    learning     the first suggestion: with nothing cached, everything, or all but one source    30 × 100 rows
                 sampler.explain() after it

``python -m benchmarks time sampler``.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import Any

import optuna
import torch
from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.samplers import BaseSampler, GPSampler
from optuna.trial import create_trial

from benchmarks.methods.scratch import quietly
from benchmarks.problems.problem import stream
from benchmarks.problems.synthetic import HARTMANN6
from benchmarks.timing.measurement import Figures, Timing
from headstart.data.dataset import Dataset
from headstart.sampler.sampler import TransferSampler

_RESTARTS, _RAW_SAMPLES = 10, 512  # of Optuna's BoTorchSampler, and here of MultiTaskGP


def sampler_timings(*, quick: bool) -> Iterator[Timing]:
    """Everything that is timed; ``quick`` has one data set, one round and three sources."""
    yield Timing("suggestion", partial(suggestions, *((1, 1) if quick else (3, 3))))
    yield Timing("learning", partial(learning, 3 if quick else 30))


@dataclass(frozen=True, slots=True)
class History:
    """What is known when the next trial is asked for, in the unit cube; ``measure`` is the target's function."""

    sources: tuple[Dataset, ...]
    target: Dataset
    measure: Callable[[torch.Tensor], torch.Tensor] = field(repr=False, compare=False)


def draw_history(seed: int, *, sources: int = 3, points: int = 100, trials: int = 30) -> History:
    """Random points of random tasks of the Hartmann family, with the paper's noise."""

    def task(name: str, n: int) -> tuple[Dataset, Callable[[torch.Tensor], torch.Tensor]]:
        draw = stream("sampler", seed, name)
        X = torch.rand(n, HARTMANN6.d, generator=draw, dtype=torch.float64)
        error = HARTMANN6.noise_std * torch.randn(n, generator=draw, dtype=torch.float64)
        function = partial(HARTMANN6.evaluate, HARTMANN6.sample(1, draw)[0])
        return Dataset(X, function(X) + error, name), function

    return History(tuple(task(f"source {i}", points)[0] for i in range(sources)), *task("target", trials))


def space(d: int) -> dict[str, BaseDistribution]:
    """The unit cube for Optuna."""
    return {f"x{i}": FloatDistribution(0.0, 1.0) for i in range(d)}


def study_of(data: Dataset, sampler: BaseSampler) -> optuna.Study:
    """A study in which all rows are finished trials."""
    study, asked = optuna.create_study(sampler=sampler), space(data.d)
    for x, y in zip(data.X.tolist(), data.y.tolist(), strict=True):
        study.add_trial(create_trial(params=dict(zip(asked, x, strict=True)), distributions=asked, value=y))
    return study


def suggestions(data_sets: int, rounds: int, **size: int) -> Figures:
    """CPU seconds of one suggestion by all routes on the same data sets, taking turns. ``size`` is of the histories."""
    seconds: dict[str, list[float]] = {}
    for seed in range(data_sets):
        history = draw_history(seed, **size)
        asked = space(history.target.d)
        samplers: dict[str, BaseSampler] = {
            f"TransferSampler ({model})": TransferSampler(history.sources, model=model, space=asked, seed=0)
            for model in ("AUTO", "SHGP")
        }
        with quietly():
            samplers["Optuna's GPSampler"] = GPSampler(seed=0)
            routes: dict[str, Callable[[], Callable[[], object]]] = {
                **{name: partial(_begun, history, sampler) for name, sampler in samplers.items()},
                "BoTorch's MultiTaskGP": partial(partial, _multi_task, history),
            }
            for sampler in samplers.values():
                optuna.create_study(sampler=sampler).ask(asked)  # learns from the sources
            for name, begin in ((name, begin) for _ in range(rounds) for name, begin in routes.items()):
                next_trial = begin()
                started = time.process_time()
                next_trial()
                seconds.setdefault(name, []).append(time.process_time() - started)
    return {
        name: {"s": median(own), "least s": min(own), "most s": max(own), "times": float(len(own))}
        for name, own in seconds.items()
    }


def _begun(history: History, sampler: BaseSampler) -> Callable[[], object]:
    """The next trial of a study to whose last one the result has just been told.

    The sampler is a copy, which knows what it knew then and nothing of other trials that are timed.
    """
    study, asked = study_of(history.target.head(history.target.n - 1), deepcopy(sampler)), space(history.target.d)
    trial = study.ask(asked)
    study.tell(trial, float(history.measure(torch.tensor([list(trial.params.values())]).double())))
    return lambda: study.ask(asked).params


def _multi_task(history: History) -> torch.Tensor:
    """BoTorch's own multi-task process over all tasks, each standardised, and the logarithmic EI of the target."""
    from botorch.acquisition.analytic import LogExpectedImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models.multitask import MultiTaskGP
    from botorch.optim.optimize import optimize_acqf
    from gpytorch.mlls import ExactMarginalLogLikelihood

    tasks = (*history.sources, history.target)
    number = torch.cat([torch.full((data.n, 1), float(i), dtype=torch.float64) for i, data in enumerate(tasks)])
    X = torch.cat([torch.cat([data.X for data in tasks]), number], dim=-1)
    Y = torch.cat([(data.y.mean() - data.y) / data.y.std() for data in tasks]).unsqueeze(-1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # line searches that end early are BoTorch's business
        model = MultiTaskGP(X, Y, task_feature=-1, output_tasks=[len(tasks) - 1])
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        acquisition = LogExpectedImprovement(model, best_f=Y[-history.target.n :].max())
        bounds = torch.tensor([[0.0], [1.0]], dtype=torch.float64).expand(2, history.target.d)
        x: Any = optimize_acqf(acquisition, bounds=bounds, q=1, num_restarts=_RESTARTS, raw_samples=_RAW_SAMPLES)[0]
    point: torch.Tensor = x
    return point


def learning(sources: int = 30, points: int = 100) -> Figures:
    """CPU seconds until the first suggestion with so many sources, and of an explanation after it."""
    history, found = draw_history(0, sources=sources + 1, points=points), {}
    with quietly(), tempfile.TemporaryDirectory() as folder:
        for what, past in (
            ("nothing cached", history.sources[:-1]),
            ("all sources cached", history.sources[:-1]),
            ("all but one cached", history.sources),
        ):
            sampler = TransferSampler(past, space=space(history.target.d), seed=0, cache_dir=folder)
            study = study_of(history.target.head(5), sampler)
            started = time.process_time()
            study.ask(space(history.target.d))
            found[what] = {"s": time.process_time() - started}
        started = time.process_time()
        sampler.explain(study)
        return {**found, "explain()": {"s": time.process_time() - started}}
