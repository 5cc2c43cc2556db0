"""Bayesian optimisation of a whole batch of problems in lockstep: fitting and choosing for all seeds at once."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import asdict, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from benchmarks.methods.method import Choice, Method, Settings
from benchmarks.methods.model_method import ModelMethod
from benchmarks.methods.registry import method
from benchmarks.problems.problem import Instance, Problem
from benchmarks.store import Run, provenance, rounded
from headstart.data.dataset import Dataset
from headstart.data.units import Units
from headstart.gp.threads import single_thread


def run_batch(
    problem: Problem,
    method_or_name: Method | str,
    seeds: Sequence[int],
    *,
    steps: int,
    settings: Settings,
    device: str = "cpu",
) -> list[Run]:
    """``steps`` evaluations of every seed's target, all seeds in lockstep; one record per seed.

    Seconds are CPU seconds of the batch divided by the number of its problems. A model is fitted on ``device``.
    """
    chosen = method(method_or_name) if isinstance(method_or_name, str) else method_or_name
    if isinstance(chosen, ModelMethod):
        chosen = replace(chosen, device=device)
    with single_thread():
        return _run_batch(problem, chosen, seeds, steps, settings, device)


def _run_batch(
    problem: Problem, chosen: Method, seeds: Sequence[int], steps: int, settings: Settings, device: str
) -> list[Run]:
    began, instance = time.time(), problem.draw(seeds, steps)
    P, d = len(seeds), instance.d
    begin = time.process_time()
    # random points are those of the family or table: an ablation over its settings meets the same ones
    search = chosen.begin(instance, problem.name.partition("[")[0], seeds, settings)
    learn_seconds = (time.process_time() - begin) / P
    levels = () if instance.space is None else instance.space.categories
    target = Dataset.empty(d, batch_shape=(P,), categories=levels)
    allowed = None if instance.candidates is None else instance.candidates.real.clone()
    values = instance.minimum.new_empty(P, 0)
    seconds: list[tuple[float, float]] = []
    predictions: list[tuple[list[float | None], list[float | None]]] = []
    scale = _scale_of_results(instance)
    for step in range(steps):
        choice = search.propose(target, allowed)
        value = evaluate(instance, choice, allowed)
        result = value + instance.noise[:, step]
        predictions.append(_predictions(choice, result, scale))
        target = target.with_point(choice.x, result)
        values = torch.cat([values, value.unsqueeze(-1)], dim=-1)
        seconds.append((choice.fit_seconds / P, choice.acquisition_seconds / P))
    best = values.cummin(-1).values
    regret = (best - instance.minimum.unsqueeze(-1)) / instance.scale.unsqueeze(-1)
    fit_seconds, acquisition_seconds = (rounded(s[i] for s in seconds) for i in (0, 1))
    origin = provenance(device) | {"began": round(began, 1), "ended": round(time.time(), 1)}
    origin |= {} if problem.fingerprint is None else {"data": problem.fingerprint}
    return [
        Run(
            problem=problem.name,
            method=chosen.name,
            seed=seed,
            settings={**asdict(settings), "steps": steps},
            label=instance.labels[i],
            x=[rounded(row) for row in target.X[i].tolist()],
            y=rounded(target.y[i].tolist()),
            value=rounded(values[i].tolist()),
            regret=rounded(regret[i].tolist()),
            fit_seconds=fit_seconds,
            acquisition_seconds=acquisition_seconds,
            learn_seconds=rounded([learn_seconds])[0],
            provenance=origin,
            pit=[pit[i] for pit, _ in predictions],
            log_density=[log_density[i] for _, log_density in predictions],
        )
        for i, seed in enumerate(seeds)
    ]


def evaluate(instance: Instance, choice: Choice, allowed: Bool[Tensor, "P M"] | None) -> Float[Tensor, "P"]:
    """The noiseless value of every choice; a row that may not be evaluated twice is struck off those ``allowed``."""
    if choice.row is None:
        assert instance.function is not None
        return instance.function(choice.x.unsqueeze(-2)).squeeze(-1)
    assert instance.candidates is not None
    assert allowed is not None
    value = instance.candidates.values.gather(-1, choice.row.unsqueeze(-1)).squeeze(-1)
    if not instance.candidates.repeats:
        allowed.scatter_(-1, choice.row.unsqueeze(-1), False)
    return value


def _scale_of_results(instance: Instance) -> Float[Tensor, "P"]:
    """What y is divided by before densities are compared: the table's scale, or the spread of y within the sources.

    Functions have scale 1 whatever their range. Where all sources are constant as well it is left at 1.
    """
    if instance.function is None:
        return instance.scale
    within = Units.of(instance.sources).scale
    return torch.where(within > 0, within, torch.ones_like(within))


def _predictions(
    choice: Choice, result: Float[Tensor, "P"], scale: Float[Tensor, "P"]
) -> tuple[list[float | None], list[float | None]]:
    """P(result ≤ y) and log p(y/scale) of every problem, as far as a model was asked before."""
    if choice.predicted is None:
        nothing: list[float | None] = [None] * len(result)
        return nothing, nothing
    pit, log_density = choice.predicted(result)
    return _known(pit), _known(log_density + scale.log())  # dy = scale · d(y/scale)


def _known(values: Float[Tensor, "P"]) -> list[float | None]:
    return [None if math.isnan(value) else value for value in rounded(values.tolist())]
