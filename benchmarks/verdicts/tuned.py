"""Pasts of tuning problems: studies of the other tasks, of which it is known what they are worth to the target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import optuna
from numpy.typing import NDArray
from optuna import Study, Trial
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import RandomSampler
from optuna.trial import FrozenTrial, TrialState

from benchmarks.tuning.problems import Params, TuningProblem, tuning_problem
from benchmarks.tuning.runs import default_cache, evaluations_in, new_study, objective_of, past_studies, stream
from benchmarks.verdicts.pasts import Truth, generator, spoilt, ways
from headstart.sampler.sampler import TransferSampler

_POOL = 80  # random configurations at which tasks are compared


@dataclass(frozen=True, eq=False)
class TunedPast:
    """Past studies of which it is known what they are, and the study of the target."""

    problem: TuningProblem
    studies: tuple[Study, ...]
    truths: tuple[Truth, ...]
    objective: Callable[[Trial], float]
    seed: int

    def sampler(self) -> TransferSampler:
        """The sampler with its default settings."""
        return TransferSampler(list(self.studies), seed=self.seed)

    def study(self, trials: Sequence[FrozenTrial] = ()) -> Study:
        """A study of the target with these trials, which nobody prunes."""
        study = new_study(self.problem, "target", self.sampler(), prune=False)
        for trial in trials:
            study.add_trial(trial)
        return study


def _coordinates(problem: TuningProblem, params: Params) -> list[float]:
    """Of a number its place in its range, of a category a column per level; 0.5 where it was not asked for."""
    found: list[float] = []
    for name, own in problem.space.items():
        if isinstance(own, CategoricalDistribution):
            found += [0.5 if name not in params else float(params[name] == choice) for choice in own.choices]
        elif name not in params:
            found.append(0.5)
        else:
            assert isinstance(own, FloatDistribution | IntDistribution)
            low, high, value = (np.log(v) if own.log else v for v in (own.low, own.high, params[name]))
            found.append(float((value - low) / (high - low)))
    return found


@cache
def _pool(name: str) -> tuple[NDArray[np.float64], dict[str, NDArray[np.float64]]]:
    """Random configurations of a problem, and the values of all of its tasks there, to be minimised."""
    problem, evaluations = tuning_problem(name), evaluations_in(default_cache())
    sign = -1.0 if problem.maximize else 1.0
    rows, values = [], {}
    for task in problem.tasks:
        study = new_study(problem, task, RandomSampler(seed=stream(name, "verdicts")), prune=False)
        study.optimize(objective_of(problem, task, evaluations), n_trials=_POOL)
        rows = [_coordinates(problem, trial.params) for trial in study.trials]
        values[task] = sign * np.array([trial.value for trial in study.trials])
    return np.array(rows), values


def tuned_past(name: str, seed: int) -> TunedPast:
    """The studies of the other tasks of a problem, in their usual order; the target is another one with every seed."""
    problem, random = tuning_problem(name), generator("verdicts", name, seed)
    evaluations, target = evaluations_in(default_cache()), problem.tasks[seed % len(problem.tasks)]
    points, pool = _pool(name)
    sign = -1.0 if problem.maximize else 1.0
    past = past_studies(problem, target, seed, evaluations)
    studies, truths = [], []
    for study, way in zip(past, ways(len(past), random), strict=True):
        done = [trial for trial in study.trials if trial.state == TrialState.COMPLETE]
        y = sign * np.array([trial.value for trial in done])
        X = np.array([_coordinates(problem, trial.params) for trial in done])
        y, truth = spoilt(y, X, way, (points, pool[study.study_name], pool[target]), random)
        other = new_study(problem, study.study_name, RandomSampler(), prune=False)
        for trial, value in zip(done, y, strict=True):
            own: dict[str, Any] = {"params": trial.params, "distributions": trial.distributions}
            other.add_trial(optuna.trial.create_trial(**own, value=float(sign * value)))
        studies.append(other)
        truths.append(truth)
    return TunedPast(
        problem, tuple(studies), tuple(truths), objective_of(problem, target, evaluations), stream(name, seed)
    )
