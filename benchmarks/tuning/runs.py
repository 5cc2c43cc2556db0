"""One run: a sampler tunes a target task, with the studies of all other tasks of the problem as its past.

    name        sampler            begins with                                   uses the past
    headstart   TransferSampler    its own suggestion                            yes
    tpe-bests   TPESampler         the best trial of every past study, newest    by its bests
    gp-bests    GPSampler          first, as enqueued trials                     by its bests
    tpe-soon    the same two, whose models take over after the bests             by its bests
    gp-soon
    tpe         TPESampler         ten random trials                             no
    random      RandomSampler                                                    no

All have their default settings, by which TPE and the GP sampler draw at random until ten trials are finished; those
that take over soon do not wait.
"""

from __future__ import annotations

import hashlib
import os
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import sklearn
from optuna import Study, Trial
from optuna.samplers import BaseSampler, GPSampler, RandomSampler, TPESampler
from optuna.study import StudyDirection
from optuna.trial import TrialState

from benchmarks.methods.scratch import quietly
from benchmarks.queue import Unit
from benchmarks.store import Run, RunKey, append_lines, provenance, read_lines, rounded, settings_key
from benchmarks.tuning.problems import Params, TuningProblem, tuning_problem
from benchmarks.tuning.tasks import tuning_task
from headstart.errors import InputError
from headstart.gp.threads import single_thread

POOL = "pool"  # random trials of a task, by which regrets are scaled: no method
_SCHEMA = 1
_FEWEST, _MOST = 30, 60  # trials of a past study


# ── training, kept on the disk ────────────────────────────────────────────────────────────────────────────────────────


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


@cache
def evaluations_in(folder: Path) -> Evaluations:
    """The training runs that are kept in the folder, read once."""
    return Evaluations(folder)


# ── studies ───────────────────────────────────────────────────────────────────────────────────────────────────────────


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


def new_study(problem: TuningProblem, name: str, sampler: BaseSampler, *, prune: bool = True) -> Study:
    """A study in memory, in the problem's direction, with a pruner where the problem has one."""
    pruner = optuna.pruners.MedianPruner() if problem.prunes and prune else optuna.pruners.NopPruner()
    direction = StudyDirection.MAXIMIZE if problem.maximize else StudyDirection.MINIMIZE
    return optuna.create_study(study_name=name, sampler=sampler, pruner=pruner, direction=direction)


def past_studies(problem: TuningProblem, target: str, seed: int, evaluations: Evaluations) -> list[Study]:
    """A study per other task, from the oldest (that after the target) to the most recent; a seed is another past."""
    here = problem.tasks.index(target)
    tasks = (*problem.tasks[here + 1 :], *problem.tasks[:here])
    return [_past_study(problem, task, seed, evaluations) for task in tasks]


@lru_cache(maxsize=256)
def _past_study(problem: TuningProblem, task: str, seed: int, evaluations: Evaluations) -> Study:
    """30 to 60 trials of Optuna's default sampler or of a random one, in turn over tasks and seeds."""
    own = stream(problem.name, task, seed, "past")
    in_turn = (problem.tasks.index(task) + seed) % 2
    study = new_study(problem, task, TPESampler(seed=own) if in_turn else RandomSampler(seed=own))
    trials = int(np.random.default_rng(own).integers(_FEWEST, _MOST, endpoint=True))
    study.optimize(objective_of(problem, task, evaluations), n_trials=trials)
    return study


# ── methods ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class TuningMethod:
    """A sampler, made of past studies and a seed, and whether their bests are tried first."""

    sampler: Callable[[Sequence[Study], int], BaseSampler]
    tries_bests: bool = False

    def enqueued(self, past: Sequence[Study]) -> list[dict[str, Any]]:
        """What is tried first, the most recent study's best before the others'; nothing twice."""
        found: list[dict[str, Any]] = []
        for study in reversed(past) if self.tries_bests else ():
            if study.best_params not in found:
                found.append(study.best_params)
        return found


def _headstart(past: Sequence[Study], seed: int) -> BaseSampler:
    from headstart.sampler.sampler import TransferSampler

    return TransferSampler(list(past), seed=seed)


def _gp(trials: int, seed: int) -> BaseSampler:
    return GPSampler(seed=seed, n_startup_trials=trials, warn_independent_sampling=False)


RIVALS: dict[str, TuningMethod] = {
    "headstart": TuningMethod(_headstart),
    "tpe-bests": TuningMethod(lambda _, seed: TPESampler(seed=seed), tries_bests=True),
    "gp-bests": TuningMethod(lambda _, seed: _gp(10, seed), tries_bests=True),
    "tpe-soon": TuningMethod(lambda past, seed: TPESampler(seed=seed, n_startup_trials=len(past)), tries_bests=True),
    "gp-soon": TuningMethod(lambda past, seed: _gp(len(past), seed), tries_bests=True),
    "tpe": TuningMethod(lambda _, seed: TPESampler(seed=seed)),
    "random": TuningMethod(lambda _, seed: RandomSampler(seed=seed)),
}


def rival(name: str) -> TuningMethod:
    """The method of that name."""
    if name in RIVALS:
        return RIVALS[name]
    raise InputError(f"There is no method {name!r}. The known ones are {', '.join(RIVALS)}.")


@dataclass(frozen=True, slots=True)
class TuningUnit(Unit):
    """One run.

    The trace ``value`` is None where a trial was pruned. ``acquisition_seconds`` is the CPU time of every trial without
    training: what the sampler took.
    """

    problem: str
    task: str
    method: str
    seed: int
    trials: int
    cache: Path

    @property
    def settings(self) -> dict[str, Any]:
        """Those of the run that will come of it."""
        return {"task": self.task, "steps": self.trials, "revision": tuning_problem(self.problem).revision}

    def left(self, done: set[RunKey]) -> TuningUnit | None:
        """All of it, or nothing."""
        key = (self.problem, self.method, self.seed, settings_key(self.settings))
        return None if key in done else self

    def run(self, device: str) -> list[Run]:
        """The sampler's seed belongs to problem, task and seed; nothing is pruned in the pool."""
        with quietly():
            return [self._run(device)]

    def _run(self, device: str) -> Run:
        problem, evaluations = tuning_problem(self.problem), evaluations_in(self.cache)
        own = stream(self.problem, self.task, self.seed, "pool" if self.method == POOL else "target")
        if self.method == POOL:
            study = new_study(problem, self.task, RandomSampler(seed=own), prune=False)
        else:
            past, method = past_studies(problem, self.task, self.seed, evaluations), rival(self.method)
            study = new_study(problem, self.task, method.sampler(past, own))
            for params in method.enqueued(past):
                study.enqueue_trial(params)
        objective = objective_of(problem, self.task, evaluations)
        seconds = []
        for _ in range(self.trials):
            begin, training = time.process_time(), evaluations.seconds
            study.optimize(objective, n_trials=1)
            seconds.append(time.process_time() - begin - (evaluations.seconds - training))
        tried = study.trials[: self.trials]  # what is enqueued beyond them waits
        values = [trial.value if trial.state == TrialState.COMPLETE else None for trial in tried]
        return Run(
            problem=self.problem,
            method=self.method,
            seed=self.seed,
            settings=self.settings,
            label=self.task,
            acquisition_seconds=rounded(seconds),
            provenance=provenance(device),
            traces={"value": values, "params": [trial.params for trial in tried]},
        )

    def __str__(self) -> str:
        return f"{self.problem}, {self.task}, {self.method}, seed {self.seed}"


def tuning_units(
    problems: Sequence[str],
    methods: Sequence[str],
    *,
    seeds: int,
    trials: int,
    pool: int,
    cache: Path,
) -> Iterator[TuningUnit]:
    """All pools, then the pairs (target, seed) of all problems in turn, each with all methods.

    Whoever stops early has equally many pairs of every problem, and of every pair all methods.
    """
    for name in methods:
        rival(name)
    tasks = {problem: tuning_problem(problem).tasks for problem in problems}
    for problem, own in tasks.items():
        yield from (TuningUnit(problem, task, POOL, 0, pool, cache) for task in own)
    for seed in range(seeds):
        for i in range(max(map(len, tasks.values()))):
            for problem, own in tasks.items():
                for method in methods if i < len(own) else ():
                    yield TuningUnit(problem, own[i], method, seed, trials, cache)
