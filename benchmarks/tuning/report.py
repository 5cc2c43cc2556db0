"""What the tuning runs say.

    regret       (best so far − best known) / (median of the pool − best known), at most 10
    best known   the lowest of a task in all runs of all methods and in its pool of random trials
    pair         a target task and a seed, which all methods have; intervals resample the pairs of every problem
    early        the share of trials 2 to 5 that are worse than the median of the pool

0 is the best that anybody found, 1 what half of all random trials reach. A trial that was pruned, or that diverged to
1e25, improves nothing; the cap keeps a mean from being one such run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.read.analysis import Array
from benchmarks.read.comparison import RESAMPLES, place, resampling_weights
from benchmarks.read.sheet import Interval, Series, Sheet
from benchmarks.store import Run
from benchmarks.tuning.problems import tuning_problem
from benchmarks.tuning.runs import POOL, RIVALS
from headstart.errors import NotComparableError

MARKS = (1, 5, 10, 20)
CAP = 10.0
_EARLY = slice(1, 5)


@dataclass(frozen=True, slots=True)
class TaskScale:
    """The best that is known of a task and the median of its random trials, both as costs."""

    best: float
    median: float

    def regret(self, costs: Array) -> Array:
        """After every trial: (lowest so far − best)/(median − best), at most ``CAP``."""
        lowest = np.minimum.accumulate(costs)
        return np.minimum((lowest - self.best) / (self.median - self.best), CAP)


def costs_of(run: Run) -> Array:
    """The values as costs: the lower the better, ∞ where a trial was pruned."""
    sign = -1.0 if tuning_problem(run.problem).maximize else 1.0
    return np.array([np.inf if value is None else sign * value for value in run.traces["value"]])


def task_scales(runs: Sequence[Run]) -> dict[tuple[str, str], TaskScale]:
    """The scale of every (problem, task) that has a pool."""
    costs: dict[tuple[str, str], list[Array]] = {}
    for run in runs:
        costs.setdefault((run.problem, run.label), []).append(costs_of(run))
    found = {}
    for run in runs:
        if run.method == POOL:
            best = float(min(c.min() for c in costs[run.problem, run.label]))
            median = float(np.median(costs_of(run)))
            if not median > best:
                raise NotComparableError(f"{run.problem}: half of all random trials on {run.label} are as good as any.")
            found[run.problem, run.label] = TaskScale(best, median)
    return found


@dataclass(frozen=True, eq=False)
class Regrets:
    """Of one problem: for every method the regret after every trial, a row per pair, in the same order for all.

    ``early`` and ``seconds`` (CPU seconds of a whole run without training) have an entry per pair.
    """

    problem: str
    pairs: tuple[tuple[str, int], ...]
    regret: dict[str, Array]
    early: dict[str, Array]
    seconds: dict[str, Array]


def regrets(runs: Sequence[Run], *, trials: int, show: Sequence[str] = ()) -> list[Regrets]:
    """A ``Regrets`` per problem, of the methods to be shown, or of all, over the pairs that all of them have.

    ``runs`` of other lengths count for the best known only.
    """
    current = [run for run in runs if run.settings.get("revision") == tuning_problem(run.problem).revision]
    scales = task_scales(current)
    compared = [run for run in current if run.method != POOL and run.settings["steps"] == trials]
    there = sorted({run.method for run in compared}, key=lambda name: place(name, tuple(RIVALS)))
    unknown = sorted(set(show) - set(there))
    if unknown or not there:
        raise NotComparableError(
            f"There are no runs of {trials} trials of {', '.join(unknown) or 'any method'}. "
            f"There are runs of {', '.join(there) or 'nothing'}."
        )
    methods = list(show) or there
    found = []
    for problem in dict.fromkeys(run.problem for run in compared):
        mine = {(r.method, r.label, r.seed): r for r in compared if r.problem == problem and r.method in methods}
        pairs = sorted({(task, seed) for _, task, seed in mine if (problem, task) in scales})
        pairs = [pair for pair in pairs if all((method, *pair) in mine for method in methods)]
        if pairs:
            own = {m: [mine[m, *pair] for pair in pairs] for m in methods}
            found.append(_regrets_of(problem, tuple(pairs), own, scales))
    if not found:
        raise NotComparableError(f"No target and seed has runs of all of {', '.join(methods)}.")
    return found


def _regrets_of(
    problem: str,
    pairs: tuple[tuple[str, int], ...],
    runs: dict[str, list[Run]],
    scales: dict[tuple[str, str], TaskScale],
) -> Regrets:
    """The regrets of every method's runs, which are in the order of the pairs."""

    def early(run: Run) -> float:
        worse = costs_of(run)[_EARLY] > scales[problem, run.label].median
        return float(worse.mean()) if len(worse) else 0.0

    return Regrets(
        problem,
        pairs,
        {m: np.stack([scales[problem, r.label].regret(costs_of(r)) for r in own]) for m, own in runs.items()},
        {m: np.array([early(r) for r in own]) for m, own in runs.items()},
        {m: np.array([sum(r.acquisition_seconds) for r in own]) for m, own in runs.items()},
    )


def interval(values: Sequence[Array]) -> Interval:
    """The mean over problems of the mean over pairs, and where 95 % of its resamples lie.

    The pairs of every problem are drawn with replacement, the problems are as they are.
    """
    mean = float(np.mean([v.mean() for v in values]))
    draws = [resampling_weights(len(v), RESAMPLES, seed) @ v for seed, v in enumerate(values)]
    low, high = np.quantile(np.mean(draws, axis=0), (0.025, 0.975))
    return Interval(mean, float(low), float(high))


def series(found: Sequence[Regrets]) -> Iterator[Series]:
    """The regrets of every run, for ``write_series``."""
    for problem in found:
        for method, regret in problem.regret.items():
            for (task, seed), values in zip(problem.pairs, regret, strict=True):
                yield f"{problem.problem}[task={task}]", method, seed, "regret", values.tolist()


def tuning_sheets(found: Sequence[Regrets]) -> list[Sheet]:
    """Over all problems, problem by problem, and the differences to the first method, which is ours."""
    methods, trials = tuple(found[0].regret), next(iter(found[0].regret.values())).shape[1]
    marks = [mark for mark in MARKS if mark <= trials]
    after = tuple(f"after {mark}" for mark in marks)

    def regret(method: str, mark: int, problems: Sequence[Regrets]) -> str:
        return f"{interval([p.regret[method][:, mark - 1] for p in problems]):.3f}"

    def early(method: str, problems: Sequence[Regrets]) -> str:
        return f"{np.mean([p.early[method].mean() for p in problems]):.0%}"

    def differences(other: str, problems: Sequence[Regrets]) -> list[str]:
        gaps = [p.regret[methods[0]] - p.regret[other] for p in problems]
        every = [interval([gap[:, mark - 1] for gap in gaps]) for mark in marks]
        return [f"{gap:+.3f}" + (" **worse**" if gap.low > 0 else " better" if gap.high < 0 else "") for gap in every]

    def seconds(method: str) -> str:
        return f"{np.concatenate([p.seconds[method] for p in found]).mean():.2f}"

    overall = Sheet(
        name="tuning",
        title=f"Mean normalised regret over {len(found)} problems, {sum(len(p.pairs) for p in found)} pairs of target "
        "and seed",
        columns=("method", *after, "trials 2 to 5 worse than random", "CPU s per run"),
        rows=tuple((m, *(regret(m, mark, found) for mark in marks), early(m, found), seconds(m)) for m in methods),
        note="0 is the best that any run found, 1 the median of random trials. Intervals: 95 %, resampling the pairs "
        "of every problem. The CPU seconds of a run are those of the sampler, without training.",
    )
    by_problem = [
        Sheet(
            name=f"after-{mark}",
            title=f"Normalised regret after {mark}",
            columns=("problem", "pairs", *methods),
            rows=tuple((p.problem, len(p.pairs), *(regret(m, mark, [p]) for m in methods)) for p in found),
        )
        for mark in marks
    ]
    soon = Sheet(
        name="early",
        title="Share of trials 2 to 5 that are worse than the median of random ones",
        columns=("problem", *methods),
        rows=tuple((p.problem, *(early(m, [p]) for m in methods)) for p in found),
    )
    apart = [
        Sheet(
            name="differences",
            title=f"{methods[0]} − {other}: paired differences of regret",
            columns=("problem", *after),
            rows=(*((p.problem, *differences(other, [p])) for p in found), ("all", *differences(other, found))),
        )
        for other in methods[1:]
    ]
    problems = [tuning_problem(p.problem) for p in found]
    tuned = Sheet(
        name="problems",
        title="The problems",
        columns=("problem", "what is tuned", "parameters", "of them conditional", "tasks"),
        rows=tuple((p.name, p.title, len(p.space), len(p.only), ", ".join(p.tasks)) for p in problems),
    )
    return [overall, *by_problem, soon, *apart, tuned]
