"""Runs become regrets, and regrets become comparisons.

    regret       (best so far − best known) / (median of the pool − best known), at most 10
    best known   the lowest of a task in all runs of all methods and in its pool of random trials
    pair         a target task and a seed, which all methods have; intervals resample the pairs of every problem
    early        the share of trials 2 to 5 that are worse than the median of the pool

0 is the best that anybody found, 1 what half of all random trials reach. A trial that was pruned, or that diverged to
1e25, improves nothing; the cap keeps a mean from being one such run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.read.comparison import Interval, resampling_weights
from benchmarks.tuning.problems.catalogue import tuning_problem
from benchmarks.tuning.rivals import POOL, RIVALS
from benchmarks.tuning.runs import TuningRun
from headstart.errors import NotComparableError

MARKS = (1, 5, 10, 20)
CAP = 10.0
_EARLY = slice(1, 5)
_RESAMPLES = 10_000

_Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TaskScale:
    """The best that is known of a task and the median of its random trials, both as costs."""

    best: float
    median: float

    def regret(self, costs: _Floats) -> _Floats:
        """After every trial: (lowest so far − best)/(median − best), at most ``CAP``."""
        lowest = np.minimum.accumulate(costs)
        return np.minimum((lowest - self.best) / (self.median - self.best), CAP)


def costs_of(run: TuningRun) -> _Floats:
    """The values as costs: the lower the better, ∞ where a trial was pruned."""
    sign = -1.0 if tuning_problem(run.problem).maximize else 1.0
    return np.array([np.inf if value is None else sign * value for value in run.values])


def task_scales(runs: Sequence[TuningRun]) -> dict[tuple[str, str], TaskScale]:
    """The scale of every (problem, task) that has a pool."""
    costs: dict[tuple[str, str], list[_Floats]] = {}
    for run in runs:
        costs.setdefault((run.problem, run.task), []).append(costs_of(run))
    found = {}
    for run in runs:
        if run.method == POOL:
            best = float(min(c.min() for c in costs[run.problem, run.task]))
            median = float(np.median(costs_of(run)))
            if not median > best:
                raise NotComparableError(f"{run.problem}: half of all random trials on {run.task} are as good as any.")
            found[run.problem, run.task] = TaskScale(best, median)
    return found


@dataclass(frozen=True, eq=False)
class Regrets:
    """Of one problem: for every method the regret after every trial, a row per pair, in the same order for all.

    ``early`` and ``seconds`` (CPU seconds of a whole run without training) have an entry per pair.
    """

    problem: str
    pairs: tuple[tuple[str, int], ...]
    regret: dict[str, _Floats]
    early: dict[str, _Floats]
    seconds: dict[str, _Floats]

    def at(self, method: str, mark: int) -> _Floats:
        """The regret after so many trials, pair by pair."""
        return self.regret[method][:, mark - 1]


def regrets(runs: Sequence[TuningRun], *, trials: int, show: Sequence[str] = ()) -> list[Regrets]:
    """A ``Regrets`` per problem, of the methods to be shown, or of all, over the pairs that all of them have.

    ``runs`` of other lengths count for the best known only.
    """
    current = [run for run in runs if run.revision == tuning_problem(run.problem).revision]
    scales = task_scales(current)
    there = {run.method for run in current if run.method != POOL and run.trials == trials}
    unknown = sorted(set(show) - there)
    if unknown or not there:
        raise NotComparableError(
            f"There are no runs of {trials} trials of {', '.join(unknown) or 'any method'}. "
            f"There are runs of {', '.join(_ordered(there)) or 'nothing'}."
        )
    methods = list(show) or _ordered(there)
    found = []
    for problem in dict.fromkeys(run.problem for run in current):
        mine = {
            (run.method, run.task, run.seed): run
            for run in current
            if run.problem == problem and run.trials == trials and run.method in methods
        }
        pairs = sorted({(task, seed) for _, task, seed in mine if (problem, task) in scales})
        pairs = [pair for pair in pairs if all((method, *pair) in mine for method in methods)]
        if pairs:
            found.append(regrets_of(problem, pairs, {m: [mine[m, *pair] for pair in pairs] for m in methods}, scales))
    if not found:
        raise NotComparableError(f"No target and seed has runs of all of {', '.join(methods)}.")
    return found


def _ordered(methods: set[str]) -> list[str]:
    """Ours first, then the others as ``RIVALS`` has them, each followed by its other versions."""

    def place(name: str) -> tuple[int, str]:
        own = [i for i, rival in enumerate(RIVALS) if name == rival or name.startswith(f"{rival}-")]
        return (list(RIVALS).index(name) if name in RIVALS else max(own, default=len(RIVALS)), name)

    return sorted(methods, key=place)


def regrets_of(
    problem: str,
    pairs: Sequence[tuple[str, int]],
    runs: dict[str, list[TuningRun]],
    scales: dict[tuple[str, str], TaskScale],
) -> Regrets:
    """The regrets of every method's runs, which are in the order of the pairs."""

    def early(run: TuningRun) -> float:
        worse = costs_of(run)[_EARLY] > scales[problem, run.task].median
        return float(worse.mean()) if len(worse) else 0.0

    return Regrets(
        problem,
        tuple(pairs),
        {m: np.stack([scales[problem, r.task].regret(costs_of(r)) for r in own]) for m, own in runs.items()},
        {m: np.array([early(r) for r in own]) for m, own in runs.items()},
        {m: np.array([sum(r.seconds) for r in own]) for m, own in runs.items()},
    )


def interval(values: Sequence[_Floats]) -> Interval:
    """The mean over problems of the mean over pairs, and where 95 % of its resamples lie.

    The pairs of every problem are drawn with replacement, the problems are as they are.
    """
    mean = float(np.mean([v.mean() for v in values]))
    draws = [resampling_weights(len(v), _RESAMPLES, seed) @ v for seed, v in enumerate(values)]
    low, high = np.quantile(np.mean(draws, axis=0), (0.025, 0.975))
    return Interval(mean, float(low), float(high))
