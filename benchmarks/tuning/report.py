"""What the tuning runs say: their regrets, for the sheets of all experiments, and a mean over all problems.

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

from benchmarks.read.analysis import Array, Cell, Results, marks, table
from benchmarks.read.comparison import RESAMPLES, resampling_weights
from benchmarks.read.report import compare
from benchmarks.read.sheet import Interval, Sheet
from benchmarks.store import Run
from benchmarks.tuning.problems import tuning_problem
from benchmarks.tuning.runs import POOL, RIVALS
from headstart.errors import NotComparableError

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


@dataclass(frozen=True, eq=False)
class TuningResults:
    """The cells of every problem, with the same pairs for all methods, and ``early`` of every pair of every cell."""

    results: Results
    early: dict[tuple[str, str], Array]


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


def tuning_results(runs: Sequence[Run], *, trials: int) -> TuningResults:
    """The regrets of all methods over the pairs that all of them have.

    ``runs`` of other lengths count for the best known only.
    """
    current = [run for run in runs if run.settings.get("revision") == tuning_problem(run.problem).revision]
    scales = task_scales(current)
    compared = [run for run in current if run.method != POOL and run.settings["steps"] == trials]
    methods = [name for name in RIVALS if any(run.method == name for run in compared)]
    cells, early = [], {}
    for problem in dict.fromkeys(run.problem for run in compared):
        mine = {(r.method, r.label, r.seed): r for r in compared if r.problem == problem and r.method in methods}
        pairs = sorted({(task, seed) for _, task, seed in mine if (problem, task) in scales})
        pairs = [pair for pair in pairs if all((method, *pair) in mine for method in methods)]
        for method in methods if pairs else ():
            own = [(mine[method, *pair], scales[problem, pair[0]]) for pair in pairs]
            cells.append(
                Cell(
                    problem=problem,
                    method=method,
                    seeds=tuple(range(len(pairs))),
                    regret=np.stack([scale.regret(costs_of(run)) for run, scale in own]),
                    step_seconds=np.array([np.mean(run.acquisition_seconds) for run, _ in own]),
                    learn_seconds=np.zeros(len(pairs)),
                )
            )
            worse = [costs_of(run)[_EARLY] > scale.median for run, scale in own]
            early[problem, method] = np.array([w.mean() if len(w) else 0.0 for w in worse])
    if not cells:
        raise NotComparableError(
            f"No target and seed has runs of {trials} trials of all of {', '.join(methods) or 'the methods'}."
        )
    return TuningResults(Results(tuple(cells)), early)


def interval(values: Sequence[Array]) -> Interval:
    """The mean over problems of the mean over pairs, and where 95 % of its resamples lie.

    The pairs of every problem are drawn with replacement, the problems are as they are.
    """
    mean = float(np.mean([v.mean() for v in values]))
    draws = [resampling_weights(len(v), RESAMPLES, seed) @ v for seed, v in enumerate(values)]
    low, high = np.quantile(np.mean(draws, axis=0), (0.025, 0.975))
    return Interval(mean, float(low), float(high))


def tuning_sheets(found: TuningResults) -> list[Sheet]:
    """Over all problems, and the differences to the first method, which is ours; then problem by problem."""
    results = found.results
    problems = [results.on(problem) for problem in results.problems]
    methods, trials = [cell.method for cell in results.cells[: len(problems[0])]], results.cells[0].steps
    after, ours = marks(trials), methods[0]

    def over_all(method: str) -> list[str]:
        return [f"{interval([cells[method].regret[:, n - 1] for cells in problems]):.3f}" for n in after]

    def apart(other: str) -> list[str]:
        gaps = [cells[ours].regret - cells[other].regret for cells in problems]
        every = [interval([gap[:, n - 1] for gap in gaps]) for n in after]
        return [f"{gap:+.3f}" + (" **worse**" if gap.low > 0 else " better" if gap.high < 0 else "") for gap in every]

    def more(method: str) -> tuple[str, str]:
        worse = np.mean([found.early[p, method].mean() for p in results.problems])
        seconds = np.concatenate([cells[method].step_seconds for cells in problems]).mean() * trials
        return f"{worse:.0%}", f"{seconds:.2f}"

    n = sum(len(cells[ours].seeds) for cells in problems)
    columns = tuple(f"after {mark}" for mark in after)
    tuned = [tuning_problem(problem) for problem in results.problems]
    return [
        Sheet(
            name="tuning",
            title=f"Mean normalised regret over {len(problems)} problems, {n} pairs of target and seed",
            columns=("method", *columns, "trials 2 to 5 worse than random", "CPU s per run"),
            rows=tuple((m, *over_all(m), *more(m)) for m in methods),
            note="0 is the best that any run found, 1 the median of random trials. Intervals: 95 %, resampling the "
            "pairs of every problem. The CPU seconds of a run are those of the sampler, without training.",
        ),
        Sheet("differences", f"{ours} − others", ("method", *columns), tuple((m, *apart(m)) for m in methods[1:])),
        *table(results),
        *(compare(results, ours) if len(methods) > 1 else ()),
        Sheet(
            name="problems",
            title="The problems",
            columns=("problem", "what is tuned", "parameters", "of them conditional", "tasks"),
            rows=tuple((p.name, p.title, len(p.space), len(p.only), ", ".join(p.tasks)) for p in tuned),
        ),
    ]
