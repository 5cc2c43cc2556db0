"""Are results where the models said they would be? Coverage and log density of the next result, by what was known.

    coverage       the share of results inside the central 50, 80 and 95 % interval that was predicted for them
    log density    the mean of log p(y/scale): higher is better, and both doubt and false confidence lower it

A prediction is made with all results of the run before it known, at the point that was chosen because of it, so that
what is measured is what the optimisation relies on. Predictions of a run are not independent: standard errors and
intervals are those of 2,000 resamples of the runs, (problem, seed), with replacement.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.read.analysis import Array, runs_that_count, stored
from benchmarks.read.comparison import resampling_weights
from benchmarks.read.sheet import Interval, Sheet
from benchmarks.read.styles import in_order, is_table, problem_order, style
from benchmarks.store import Run
from headstart.errors import InputError

LEVELS = (0.50, 0.80, 0.95)
# The coverage of a 95 % interval that is called good
GOOD = (0.92, 0.98)
RESAMPLES = 2_000


@dataclass(frozen=True, slots=True)
class Known:
    """How many results were known when a prediction was made: ``first`` to ``last``, or more where that is None."""

    first: int
    last: int | None

    @property
    def label(self) -> str:
        """The numbers of results in words: 0, 1–5, 21+."""
        if self.last is None:
            return f"{self.first}+"
        return str(self.first) if self.first == self.last else f"{self.first}–{self.last}"

    @property
    def columns(self) -> slice:
        """Of an array whose column n holds predictions with n results known."""
        return slice(self.first, None if self.last is None else self.last + 1)


KNOWN = (Known(0, 0), Known(1, 5), Known(6, 20), Known(21, None))


@dataclass(frozen=True, slots=True, eq=False)
class Forecasts:
    """What a method said on a problem: ``pit[i, n]`` of run i with n results known, not a number where it said nothing.

    ``pit`` is P(result ≤ y) of the result y that came, ``log_density`` log p(y/scale).
    """

    problem: str
    method: str
    pit: Array
    log_density: Array


def forecasts(runs: Iterable[Run]) -> tuple[tuple[Forecasts, ...], tuple[str, ...]]:
    """The predictions of the runs that count, by problem and method, and sentences about what was left out.

    A method that never predicts, such as random search, is left out without a word.
    """
    counted, remarks = runs_that_count(runs)
    found, more = [], []
    for group in counted:
        kept = [run for run in group if len(run.pit) == len(run.log_density) == len(run.regret)]
        if len(kept) < len(group):
            without = f"{len(group) - len(kept)} of {len(group)} runs"
            more.append(f"{group[0].problem}, {group[0].method}: {without} hold no predictions; left out.")
        if not kept:
            continue
        pit, log_density = (
            np.array([getattr(run, name) for run in kept], dtype=np.float64) for name in ("pit", "log_density")
        )
        if not np.isnan(pit).all():
            found.append(Forecasts(group[0].problem, group[0].method, pit, log_density))
    return tuple(found), (*remarks, *more)


def load_forecasts(folder: Path, methods: Sequence[str] = ()) -> tuple[tuple[Forecasts, ...], tuple[str, ...]]:
    """The predictions in a store, of these methods or of all; an ``InputError`` where there are none."""
    contents = stored(folder)
    found, remarks = forecasts(contents.runs)
    if not found:
        raise InputError(
            f"{folder}: its runs hold no predictions. Those of random search have none, nor have runs that were made "
            "before they were kept. Run the models again into another folder, for runs that are there are not "
            "repeated: python -m benchmarks run compare --out FOLDER."
        )
    there = in_order(f.method for f in found)
    for name in methods:
        if name not in there:
            raise InputError(f"There are no predictions of {name!r}. There are predictions of {', '.join(there)}.")
    chosen = tuple(f for f in found if not methods or f.method in methods)
    return chosen, (*contents.remarks, *remarks)


def groups(found: Iterable[Forecasts], *, by_problem: bool = False) -> dict[str, tuple[Forecasts, ...]]:
    """Families and tables, as far as there are any; or every problem on its own."""
    parts: dict[str, list[Forecasts]] = {}
    for f in sorted(found, key=lambda f: (is_table(f.problem), problem_order(f.problem))):
        name = f.problem if by_problem else "tables" if is_table(f.problem) else "families"
        parts.setdefault(name, []).append(f)
    return {name: tuple(part) for name, part in parts.items()}


def _means(sums: Array, count: Array) -> tuple[Array, Array]:
    """Σ sums / Σ count over all runs, and the same of every resample of the runs, (resamples, …).

    ``count`` is how many predictions a run has, at least one; ``sums`` are over them.
    """
    weights = resampling_weights(len(count), RESAMPLES, 0)
    totals = (weights @ count).reshape(-1, *[1] * (sums.ndim - 1))
    return sums.sum(0) / count.sum(), (weights @ sums) / totals


def _by_run(found: Sequence[Forecasts], known: Known, levels: Sequence[float]) -> tuple[Array, Array, Array]:
    """Of every run with predictions: how many, how many results inside (run × level), the sum of log densities."""
    counts, inside, logs = [], [], []
    for f in found:
        pit, log_density = f.pit[:, known.columns], f.log_density[:, known.columns]
        # |pit − ½| ≤ level/2: as much is left out below the interval as above it; records hold ten digits
        within = np.abs(pit - 0.5)[..., None] <= np.asarray(levels) / 2 + 1e-12
        counts.append((~np.isnan(pit)).sum(1))
        inside.append(within.sum(1))
        logs.append(np.nansum(log_density, axis=1))
    count = np.concatenate(counts).astype(np.float64)
    some = count > 0
    return count[some], np.concatenate(inside)[some].astype(np.float64), np.concatenate(logs)[some]


def coverage(found: Sequence[Forecasts], known: Known, levels: Sequence[float]) -> tuple[Array, Array]:
    """The share of results inside the central interval of every level, and its standard error.

    Both are not numbers where there are no predictions; one run has no standard error.
    """
    count, inside, _ = _by_run(found, known, levels)
    nothing = np.full(len(levels), np.nan)
    if not len(count):
        return nothing, nothing
    value, resampled = _means(inside, count)
    return value, nothing if len(count) < 2 else resampled.std(0, ddof=1).round(12)


@dataclass(frozen=True, slots=True)
class Calibration:
    """How well a method predicted: ``coverage`` and its ``standard_error`` at each of LEVELS.

    ``problems`` is families, tables, or the name of a problem. ``log_density`` is the mean with its 95 % interval; a
    few predictions can decide it, so there is the ``median`` as well.
    """

    problems: str
    method: str
    known: Known
    runs: int
    predictions: int
    coverage: tuple[float, ...]
    standard_error: tuple[float, ...]
    log_density: Interval
    median: float

    @property
    def is_good(self) -> bool:
        """Whether the coverage of the 95 % interval is within 92 and 98 %."""
        return GOOD[0] <= self.coverage[-1] <= GOOD[1]


def calibration(found: Iterable[Forecasts], *, by_problem: bool = False) -> tuple[Calibration, ...]:
    """One per group of problems, method and number of results known, as far as there are predictions."""
    measured = []
    for name, part in groups(found, by_problem=by_problem).items():
        for method in in_order(f.method for f in part):
            own = [f for f in part if f.method == method]
            for known in KNOWN:
                count, _, logs = _by_run(own, known, LEVELS)
                if not len(count):
                    continue
                share, error = coverage(own, known, LEVELS)
                mean, resampled = _means(logs, count)
                low, high = (np.nan, np.nan) if len(logs) < 2 else np.quantile(resampled, (0.025, 0.975))
                measured.append(
                    Calibration(
                        problems=name,
                        method=method,
                        known=known,
                        runs=len(count),
                        predictions=int(count.sum()),
                        coverage=tuple(map(float, share)),
                        standard_error=tuple(map(float, error)),
                        log_density=Interval(float(mean), float(low), float(high)),
                        median=float(
                            np.nanmedian(np.concatenate([f.log_density[:, known.columns].ravel() for f in own]))
                        ),
                    )
                )
    return tuple(measured)


_NOTE = (
    "known: results of the target when the prediction was made. 50, 80, 95 %: the share of next results inside the "
    "central interval, ± its standard error over runs; good: 92 to 98 % of results inside the 95 % interval. log "
    "density: mean of log p(y/scale) with its 95 % interval, and median; higher is better."
)


def sheets(found: Sequence[Forecasts], *, by_problem: bool = False) -> tuple[Sheet, ...]:
    """A sheet for families and one for tables, then one for every problem where that is asked for."""
    apart = _sheets(calibration(found, by_problem=True), "calibration-by-problem") if by_problem else ()
    return (*_sheets(calibration(found), "calibration"), *apart)


def _sheets(measured: Sequence[Calibration], name: str) -> tuple[Sheet, ...]:
    return tuple(
        Sheet(
            name=name,
            title=f"Calibration: {problems}",
            columns=(
                *("method", "known", "runs", "predictions", *(f"{100 * level:.0f} %" for level in LEVELS)),
                *("good", "log density", "median"),
            ),
            rows=tuple(
                (
                    *(style(c.method).label, c.known.label, c.runs, c.predictions),
                    *map(_share, c.coverage, c.standard_error),
                    *("yes" if c.is_good else "no", _density(c.log_density), f"{c.median:+.2f}"),
                )
                for c in measured
                if c.problems == problems
            ),
            note=_NOTE,
        )
        for problems in dict.fromkeys(c.problems for c in measured)
    )


def _share(value: float, error: float) -> str:
    return f"{100 * value:.1f}" + ("" if np.isnan(error) else f" ± {100 * error:.1f}")


def _density(logs: Interval) -> str:
    # a model that is all too sure, of a target that seemed constant, say, can lose thousands
    value, low, high = (f"{v:+.2f}" if abs(v) < 100 else f"{v:+.0f}" for v in (logs.value, logs.low, logs.high))
    return value if np.isnan(logs.low) else f"{value} [{low}, {high}]"
