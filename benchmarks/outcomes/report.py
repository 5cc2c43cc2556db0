"""What the runs of problems with several outcomes say, paired over the seeds that two methods share.

    mean          of a measure after some evaluations, over all runs of a method
    difference    headstart − another, pair by pair; where more is better, above 0 headstart is better
    first         evaluations until a result is within the limits; a run without one counts as one more than it has
    ratio         of the means of ``first``, ours over the other's
    cost          of misleading sources: (without a past − with them) / the mean without a past

All intervals are 95 %, over 10,000 resamples of the runs (read.comparison).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from benchmarks.outcomes.measures import first_found
from benchmarks.outcomes.methods import METHODS_COMPARED
from benchmarks.outcomes.runs import outcome_problem
from benchmarks.read.analysis import Array
from benchmarks.read.comparison import mean_interval, place, ratio_interval
from benchmarks.read.sheet import Interval, Series, Sheet
from benchmarks.store import Run
from headstart.errors import NotComparableError

_MARKS = (1, 3, 5, 10, 20)
_OURS, _ALONE = "headstart", "alone"
_MORE_IS_BETTER = ("volume", "nadir", "found")
_NOTES = {
    "volume": "The share of the volume of the table's front, from the worst values of the table: more is better.",
    "nadir": "The share of the volume of the table's front, from a tenth beyond its own worst values.",
    "regret": "0 is the best there is; 1 the worst within the limits, or the median of what keeps the rules.",
}


@dataclass(frozen=True, eq=False)
class ProblemCurves:
    """Of one problem: for every method and measure the curve of every seed; and CPU seconds of whole runs."""

    problem: str
    steps: int
    curves: dict[str, dict[str, dict[int, Array]]]  # method, measure, seed
    seconds: dict[str, Array]

    @property
    def methods(self) -> tuple[str, ...]:
        """In the order of the registry, others behind the method that their name begins with."""
        return tuple(sorted(self.curves, key=lambda name: place(name, tuple(METHODS_COMPARED))))

    @property
    def measures(self) -> tuple[str, ...]:
        """Those of the runs."""
        return tuple(next(iter(self.curves.values())))

    @property
    def marks(self) -> tuple[int, ...]:
        """After how many evaluations we look."""
        return tuple(mark for mark in _MARKS if mark <= self.steps)

    def values(self, method: str, measure: str, mark: int, seeds: Sequence[int] | None = None) -> Array:
        """The measure after so many evaluations, seed by seed; ``first`` needs no mark."""
        own = self.curves[method]["found" if measure == "first" else measure]
        rows = np.stack([own[seed] for seed in (sorted(own) if seeds is None else seeds)])
        if measure == "first":
            return np.asarray(first_found(torch.from_numpy(rows)).numpy())
        return rows[:, mark - 1]

    def pairs(self, ours: str, other: str, measure: str, mark: int = 0) -> tuple[Array, Array]:
        """The values of both over the seeds they share."""
        mine, theirs = (set(next(iter(self.curves[method].values()))) for method in (ours, other))
        if not mine & theirs:
            raise NotComparableError(f"{self.problem}: {ours} and {other} have no seed in common.")
        seeds = sorted(mine & theirs)
        return self.values(ours, measure, mark, seeds), self.values(other, measure, mark, seeds)

    def difference(self, ours: str, other: str, measure: str, mark: int = 0) -> tuple[Interval, int]:
        """Ours − the other's, and over how many pairs."""
        a, b = self.pairs(ours, other, measure, mark)
        return mean_interval(a - b), len(a)

    def ratio(self, ours: str, other: str) -> Interval:
        """The mean number of evaluations to the first result within the limits, ours over the other's."""
        return ratio_interval(*self.pairs(ours, other, "first"))

    def cost(self, spoilt: str, without: str, measure: str, mark: int) -> Interval:
        """What misleading sources cost, as a share of the mean without any."""
        a, b = self.pairs(spoilt, without, measure, mark)
        return ratio_interval(b - a, b)


def curves_of(runs: Sequence[Run], *, steps: int) -> list[ProblemCurves]:
    """The curves of every problem, of runs with so many evaluations."""
    there = [run for run in runs if run.settings.get("steps") == steps and run.traces]
    if not there:
        raise NotComparableError(f"There are no runs of {steps} evaluations.")
    found = []
    for problem in dict.fromkeys(run.problem for run in there):
        curves: dict[str, dict[str, dict[int, Array]]] = {}
        seconds: dict[str, list[float]] = {}
        for run in (run for run in there if run.problem == problem):
            for measure in (name for name in run.traces if not name.startswith("seen ")):
                curves.setdefault(run.method, {}).setdefault(measure, {})[run.seed] = np.array(run.traces[measure])
            seconds.setdefault(run.method, []).append(run.learn_seconds + sum(run.acquisition_seconds))
        found.append(ProblemCurves(problem, steps, curves, {m: np.array(s) for m, s in seconds.items()}))
    return found


def series(found: Sequence[ProblemCurves]) -> Iterator[Series]:
    """All curves, for ``write_series``."""
    for problem in found:
        for method in problem.methods:
            for measure, own in problem.curves[method].items():
                for seed, curve in sorted(own.items()):
                    yield problem.problem, method, seed, measure, curve.tolist()


def outcome_sheets(found: Sequence[ProblemCurves]) -> list[Sheet]:
    """Problem by problem every method and the differences; then seconds, and what the problems are."""
    sheets: list[Sheet] = []
    for problem in found:
        sheets += [_means(problem, measure) for measure in problem.measures if measure != "found"]
        if "found" in problem.measures:
            sheets.append(_first(problem))
        if _OURS in problem.methods and len(problem.methods) > 1:
            sheets.append(_differences(problem))
    return [*sheets, _seconds(found), _problems(found)]


def _means(problem: ProblemCurves, measure: str) -> Sheet:
    return Sheet(
        name="means",
        title=f"{problem.problem}: {measure} after some evaluations",
        columns=("method", "runs", *(f"after {k}" for k in problem.marks)),
        rows=tuple(
            (m, len(problem.seconds[m]), *(_mean(problem.values(m, measure, k)) for k in problem.marks))
            for m in problem.methods
        ),
        note=_NOTES.get(measure, ""),
    )


def _mean(values: Array) -> str:
    return f"{mean_interval(values):.3f}"


def _first(problem: ProblemCurves) -> Sheet:
    """How soon a result is within the limits, and how that compares with the others."""

    def row(method: str) -> tuple[str | int, ...]:
        found = (f"{problem.values(method, 'found', k).mean():.0%}" for k in problem.marks)
        with_ours = method != _OURS and _OURS in problem.methods
        ratio = f"{problem.ratio(_OURS, method):.2f}" if with_ours else ""
        return (method, len(problem.seconds[method]), _mean(problem.values(method, "first", 0)), ratio, *found)

    return Sheet(
        name="first",
        title=f"{problem.problem}: evaluations to the first result within the limits",
        columns=("method", "runs", "evaluations", f"{_OURS}'s share", *(f"found after {k}" for k in problem.marks)),
        rows=tuple(map(row, problem.methods)),
        note="A run without one counts as one evaluation more than it has. "
        f"{_OURS}'s share: its evaluations over those of the method.",
    )


def _differences(problem: ProblemCurves) -> Sheet:
    measure = outcome_problem(problem.problem).main

    def row(other: str) -> tuple[str | int, ...]:
        every = [problem.difference(_OURS, other, measure, k) for k in problem.marks]
        last = problem.marks[-1]
        spoilt = other.startswith(f"{_OURS}-") and _ALONE in problem.methods
        cost = f"{problem.cost(other, _ALONE, measure, last):.0%}" if spoilt else ""
        return (other, every[0][1], *(f"{gap:+.3f}{_verdict(measure, gap)}" for gap, _ in every), cost)

    return Sheet(
        name="differences",
        title=f"{problem.problem}: {measure} of {_OURS} − that of others, paired",
        columns=("other", "pairs", *(f"after {k}" for k in problem.marks), "cost"),
        rows=tuple(row(m) for m in problem.methods if m != _OURS),
        note=f"cost: what misleading sources cost after the last evaluation, as a share of the mean of {_ALONE}.",
    )


def _verdict(measure: str, gap: Interval) -> str:
    above, below = gap.low > 0, gap.high < 0
    better, worse = (above, below) if measure in _MORE_IS_BETTER else (below, above)
    return " better" if better else " **worse**" if worse else ""


def _seconds(found: Sequence[ProblemCurves]) -> Sheet:
    methods = list(dict.fromkeys(m for problem in found for m in problem.methods))
    return Sheet(
        name="seconds",
        title="CPU seconds of a run, learning included",
        columns=("method", *(problem.problem for problem in found)),
        rows=tuple((m, *(p.seconds[m].mean() if m in p.seconds else np.nan for p in found)) for m in methods),
        note="On whatever machine the runs were made; of one method and problem they may be from several.",
    )


def _problems(found: Sequence[ProblemCurves]) -> Sheet:
    every = [outcome_problem(problem.problem) for problem in found]
    return Sheet("problems", "The problems", ("problem", "what is asked"), tuple((p.name, p.title) for p in every))
