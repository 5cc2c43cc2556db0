"""What a user has tuned before: an Optuna study of every other task of the problem."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import optuna
from optuna import Study, Trial
from optuna.study import StudyDirection

from benchmarks.tuning.evaluations import Evaluations
from benchmarks.tuning.problem import TuningProblem

_FEWEST, _MOST = 30, 60  # trials of a past study


def stream(*words: object) -> int:
    """A seed that belongs to these words."""
    return zlib.crc32("/".join(map(str, words)).encode())


def objective_of(problem: TuningProblem, task: str, evaluations: Evaluations) -> Callable[[Trial], float]:
    """The objective as its user writes it; where the problem prunes, it reports every step and asks whether to stop."""

    def objective(trial: Trial) -> float:
        curve = evaluations.curve(problem, task, problem.ask(trial))
        if problem.prunes:
            for step, score in enumerate(curve):
                trial.report(score, step)
                if trial.should_prune():
                    raise optuna.TrialPruned
        return curve[-1]

    return objective


def new_study(problem: TuningProblem, name: str, sampler: optuna.samplers.BaseSampler, *, prune: bool = True) -> Study:
    """A study in memory, in the problem's direction, with a pruner where the problem has one."""
    pruner = optuna.pruners.MedianPruner() if problem.prunes and prune else optuna.pruners.NopPruner()
    direction = StudyDirection.MAXIMIZE if problem.maximize else StudyDirection.MINIMIZE
    return optuna.create_study(study_name=name, sampler=sampler, pruner=pruner, direction=direction)


def past_tasks(problem: TuningProblem, target: str) -> tuple[str, ...]:
    """The other tasks, from the oldest to the most recent: those after the target, then those before it."""
    here = problem.tasks.index(target)
    return (*problem.tasks[here + 1 :], *problem.tasks[:here])


def past_studies(problem: TuningProblem, target: str, seed: int, evaluations: Evaluations) -> list[Study]:
    """A study per other task, from the oldest to the most recent; a seed is another past."""
    return [_past_study(problem, task, seed, evaluations) for task in past_tasks(problem, target)]


@lru_cache(maxsize=256)
def _past_study(problem: TuningProblem, task: str, seed: int, evaluations: Evaluations) -> Study:
    """30 to 60 trials of Optuna's default sampler or of a random one, in turn over tasks and seeds."""
    own = stream(problem.name, task, seed, "past")
    in_turn = (problem.tasks.index(task) + seed) % 2
    sampler = optuna.samplers.TPESampler(seed=own) if in_turn else optuna.samplers.RandomSampler(seed=own)
    study = new_study(problem, task, sampler)
    trials = int(np.random.default_rng(own).integers(_FEWEST, _MOST, endpoint=True))
    study.optimize(objective_of(problem, task, evaluations), n_trials=trials)
    return study
