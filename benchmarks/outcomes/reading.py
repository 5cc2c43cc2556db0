"""Runs become curves, and curves become comparisons, paired over the seeds that two methods share.

    mean          of a measure after some evaluations, over all runs of a method
    difference    headstart − another, pair by pair; where more is better, above 0 headstart is better
    first         evaluations until a result is within the limits; a run without one counts as one more than it has
    ratio         of the means of ``first``, ours over the other's
    cost          of misleading sources: (without a past − with them) / the mean without a past

All intervals are 95 %, over 10,000 resamples of the runs (bench.read.comparison).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.outcomes.measures import first_found
from benchmarks.outcomes.methods.registry import METHODS_COMPARED
from benchmarks.outcomes.runs import OutcomeRun
from benchmarks.read.comparison import Interval, mean_interval, resampling_weights
from headstart.errors import NotComparableError

OUTCOME_MARKS = (1, 3, 5, 10, 20)
_RESAMPLES = 10_000
_LEVELS = (0.025, 0.975)
FIRST = "first"

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ProblemCurves:
    """Of one problem: for every method and measure the curve of every seed; and CPU seconds of whole runs."""

    problem: str
    steps: int
    curves: dict[str, dict[str, dict[int, Floats]]]  # method, measure, seed
    seconds: dict[str, Floats]

    @property
    def methods(self) -> tuple[str, ...]:
        """In the order of the registry, others behind the method that their name begins with."""
        return tuple(sorted(self.curves, key=_place))

    @property
    def measures(self) -> tuple[str, ...]:
        """Those of the runs."""
        return tuple(next(iter(self.curves.values())))

    @property
    def marks(self) -> tuple[int, ...]:
        """After how many evaluations we look."""
        return tuple(mark for mark in OUTCOME_MARKS if mark <= self.steps)

    def runs(self, method: str) -> int:
        """How many there are."""
        return len(next(iter(self.curves[method].values())))

    def _values(self, method: str, measure: str, mark: int, seeds: Sequence[int] | None = None) -> Floats:
        if measure == FIRST:
            own = self.curves[method]["found"]
            found = np.stack([own[seed] for seed in (sorted(own) if seeds is None else seeds)])
            return np.asarray(first_found(torch.from_numpy(found)).numpy())
        own = self.curves[method][measure]
        return np.array([own[seed][mark - 1] for seed in (sorted(own) if seeds is None else seeds)])

    def _pairs(self, ours: str, other: str) -> list[int]:
        mine, theirs = (set(next(iter(self.curves[method].values()))) for method in (ours, other))
        return sorted(mine & theirs)

    def mean(self, method: str, measure: str, mark: int = 0) -> Interval:
        """The mean over all runs; ``first`` needs no mark."""
        return mean_interval(self._values(method, measure, mark))

    def difference(self, ours: str, other: str, measure: str, mark: int = 0) -> tuple[Interval, int]:
        """Ours − the other's, and over how many pairs."""
        seeds = self._require_pairs(ours, other)
        gap = self._values(ours, measure, mark, seeds) - self._values(other, measure, mark, seeds)
        return mean_interval(gap), len(seeds)

    def ratio(self, ours: str, other: str) -> tuple[Interval, int]:
        """The mean number of evaluations to the first result within the limits, ours over the other's."""
        seeds = self._require_pairs(ours, other)
        a, b = (self._values(method, FIRST, 0, seeds) for method in (ours, other))
        weights = resampling_weights(len(seeds), _RESAMPLES, 0)
        low, high = np.quantile((weights @ a) / (weights @ b), _LEVELS)
        return Interval(float(a.mean() / b.mean()), float(low), float(high)), len(seeds)

    def cost(self, spoilt: str, without: str, measure: str, mark: int) -> tuple[Interval, int]:
        """What misleading sources cost, as a share of the mean without any."""
        seeds = self._require_pairs(spoilt, without)
        a, b = (self._values(method, measure, mark, seeds) for method in (spoilt, without))
        weights = resampling_weights(len(seeds), _RESAMPLES, 0)
        low, high = np.quantile((weights @ (b - a)) / (weights @ b), _LEVELS)
        return Interval(float((b - a).mean() / b.mean()), float(low), float(high)), len(seeds)

    def _require_pairs(self, ours: str, other: str) -> list[int]:
        seeds = self._pairs(ours, other)
        if not seeds:
            raise NotComparableError(f"{self.problem}: {ours} and {other} have no seed in common.")
        return seeds


def _place(name: str) -> tuple[int, str]:
    known = list(METHODS_COMPARED)
    own = [i for i, method in enumerate(known) if name == method or name.startswith(f"{method}-")]
    return (known.index(name) if name in known else max(own, default=len(known)), name)


def curves_of(runs: Sequence[OutcomeRun], *, steps: int) -> list[ProblemCurves]:
    """The curves of every problem, of runs with so many evaluations."""
    there = [run for run in runs if run.steps == steps]
    if not there:
        raise NotComparableError(f"There are no runs of {steps} evaluations.")
    found = []
    for problem in dict.fromkeys(run.problem for run in there):
        curves: dict[str, dict[str, dict[int, Floats]]] = {}
        seconds: dict[str, list[float]] = {}
        for run in (run for run in there if run.problem == problem):
            own = curves.setdefault(run.method, {})
            for measure, curve in run.curves.items():
                own.setdefault(measure, {})[run.seed] = np.array(curve)
            seconds.setdefault(run.method, []).append(run.learn_seconds + sum(run.seconds))
        found.append(ProblemCurves(problem, steps, curves, {m: np.array(s) for m, s in seconds.items()}))
    return found
