"""What the runs with batches say: regret with batches named over regret with them ignored, ranges, sizes of shifts.

    regret    that of the point with the lowest posterior mean among those measured, after the last result, in f
    ratio     of the mean regrets of two methods over the seeds that both have; over problems the geometric mean
    known     the method without shifts, which it would be if the shifts were known and taken away

Intervals are percentiles of 10,000 resamples of the seeds of every problem.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.batches.problems import FUNCTIONS, Drift
from benchmarks.read.comparison import RESAMPLES, resampling_weights
from benchmarks.read.sheet import Interval, Series, Sheet
from benchmarks.store import Run
from benchmarks.verdicts.report import share

_LEVELS = (0.025, 0.975)
_FLOOR = 1e-4  # a mean regret of a table counts as at least this share of its range
_FUNCTION_FLOOR = 1e-6
Cell = tuple[str, str, str, float]  # problem, method, drift, size


@dataclass(frozen=True, eq=False)
class BatchRuns:
    """Runs by cell and seed. A model without shifts is one cell, whatever the drift: that with batches ignored."""

    cells: dict[Cell, dict[int, Run]]

    @classmethod
    def of(cls, runs: Sequence[Run], *, steps: int) -> BatchRuns:
        """Those of that length."""
        cells: dict[Cell, dict[int, Run]] = {}
        for run in runs:
            if run.settings.get("steps") == steps:
                key = (run.problem, run.method, str(run.settings["drift"]), float(run.settings["size"]))
                cells.setdefault(key, {})[run.seed] = run
        return cls(cells)

    @property
    def problems(self) -> tuple[str, ...]:
        """In the order in which they were first met."""
        return tuple(dict.fromkeys(problem for problem, *_ in self.cells))

    @property
    def models(self) -> tuple[str, ...]:
        """AUTO, GPBO … as far as there are runs."""
        return tuple(dict.fromkeys(method.partition("-")[0] for _, method, *_ in self.cells))

    def get(self, problem: str, model: str, treatment: str, drift: str, size: float) -> dict[int, Run]:
        """The runs of a cell by seed; ``known`` is what is done without shifts."""
        if treatment == "known" or (treatment == "ignored" and size == 0):
            treatment, drift, size = "ignored", "", 0.0
        return self.cells.get((problem, f"{model}-{treatment}", drift, size), {})

    def shown(self) -> Iterator[tuple[str, str, float]]:
        """Model, drift and size of every row of a table: where something else than ``ignored`` was done."""
        found = {
            (method.partition("-")[0], drift, size)
            for _, method, drift, size in self.cells
            if drift  # what is done without shifts is in all rows
        }
        order = [str(drift) for drift in Drift]
        yield from sorted(found, key=lambda cell: (self.models.index(cell[0]), order.index(cell[1]), cell[2]))

    def pairs(
        self, model: str, drift: str, size: float, treatment: str, over: str, problems: Sequence[str]
    ) -> list[tuple[str, list[tuple[Run, Run]]]]:
        """For every problem the runs of two treatments with the same seeds, where there are any."""
        found = []
        for problem in problems:
            one, other = (self.get(problem, model, t, drift, size) for t in (treatment, over))
            if both := sorted(one.keys() & other.keys()):
                found.append((problem, [(one[seed], other[seed]) for seed in both]))
        return found


def final(run: Run) -> float:
    """The regret of the recommended point after the last result."""
    return float(run.traces["recommended"][-1])


def best(run: Run) -> float:
    """The regret of the best point after the last result."""
    return float(run.regret[-1])


def ratio(
    paired: Sequence[tuple[str, list[tuple[Run, Run]]]], value: Callable[[Run], float] = final
) -> Interval | None:
    """The geometric mean over problems of the ratio of mean regrets, and its bootstrap interval."""
    if not paired:
        return None
    logs, resampled = [], []
    for i, (problem, runs) in enumerate(paired):
        floor = _FUNCTION_FLOOR if problem in FUNCTIONS else _FLOOR
        weights = resampling_weights(len(runs), RESAMPLES, i)
        values = np.array([[value(a), value(b)] for a, b in runs])
        both, drawn = np.maximum(values.mean(0), floor), np.maximum(weights @ values, floor)
        logs.append(math.log(both[0] / both[1]))
        resampled.append(np.log(drawn[:, 0] / drawn[:, 1]))
    low, high = np.exp(np.quantile(np.mean(resampled, axis=0), _LEVELS))
    return Interval(math.exp(float(np.mean(logs))), float(low), float(high))


def held(runs: Sequence[Run], *, first: bool | None = None) -> Interval:
    """The share in % of results within their 95 % ranges; ``first``: of those that began a batch, or of the others."""
    which = [
        bool(ok)
        for run in runs
        for ok, begins in zip(run.traces["held"], run.traces["first"], strict=True)
        if ok is not None and (first is None or begins is first)
    ]
    return share(which)


def recovered(found: Sequence[Sequence[float]], size: float) -> Interval:
    """The share in % of sizes of shifts whose 95 % ranges hold the one put in."""
    return share([low <= size <= high for _, low, high in found])


def controls(runs: Sequence[Run]) -> Interval:
    """The share in % of new batches that began with a control."""
    each = (zip(run.traces["first"], run.traces["control"], strict=True) for run in runs)
    return share([control for own in each for first, control in own if first])


def seconds(run: Run) -> float:
    """CPU seconds of a suggestion."""
    return (sum(run.fit_seconds) + sum(run.acquisition_seconds)) / len(run.fit_seconds)


def _shown(found: Interval | None, digits: str = ".2f") -> str:
    return "" if found is None or math.isnan(found.value) else f"{found:{digits}}"


def batch_sheets(found: BatchRuns) -> list[Sheet]:
    """Over all problems, ranges, the size of shifts, and problem by problem."""
    cells = list(found.shown())
    return [
        _regret_sheet(found, cells),
        _range_sheet(found, cells),
        _size_sheet(found, cells),
        *_by_problem(found, cells),
    ]


def _regret_sheet(found: BatchRuns, cells: Sequence[tuple[str, str, float]]) -> Sheet:
    rows: list[tuple[str | int | float, ...]] = []
    for cell in cells:
        named = found.pairs(*cell, "named", "ignored", found.problems)
        ratios = [found.pairs(*cell, *pair, found.problems) for pair in (("known", "ignored"), ("centred", "ignored"))]
        runs = [pair for _, own in named for pair in own]
        took = sum(seconds(a) for a, _ in runs) / sum(seconds(b) for _, b in runs) if runs else math.nan
        rows.append(
            (
                *(cell[0], cell[1], f"{cell[2]:g}", len(runs), _shown(ratio(named)), _shown(ratio(named, best))),
                *(_shown(ratio(each)) for each in ratios),
                took,
            )
        )
    return Sheet(
        name="regret",
        title=f"Regret over that with batches ignored, {len(found.problems)} problems",
        columns=(
            *("model", "what drifts", "shifts", "pairs", "named", "named, best point"),
            *("shifts known", "centred", "time, named"),
        ),
        rows=tuple(rows),
        note="Regret of the point with the lowest predicted value among those measured, after the last result; of the "
        "best point measured in the sixth column. Ratios of mean regrets, geometric mean over problems, in brackets "
        "95 % of resampled seeds. Shifts are in standard deviations of the noise. The time of a suggestion is over "
        "that with batches ignored.",
    )


def _all(found: BatchRuns, treatment: str, cell: tuple[str, str, float]) -> list[Run]:
    model, drift, size = cell
    return [run for p in found.problems for run in found.get(p, model, treatment, drift, size).values()]


def _range_sheet(found: BatchRuns, cells: Sequence[tuple[str, str, float]]) -> Sheet:
    rows: list[tuple[str | int | float, ...]] = []
    for cell in cells:
        each = [_all(found, treatment, cell) for treatment in ("named", "ignored")]
        parts = (None, False, True) if cell[1] != Drift.PAST else (None,)  # else the target is one batch
        widths = [[w for run in runs for w in run.traces["width"] if w is not None] for runs in each]
        rows.append(
            (
                *(cell[0], cell[1], f"{cell[2]:g}"),
                *(_shown(held(runs, first=first), ".0f") for first in parts for runs in each),
                *[""] * (2 * (3 - len(parts))),
                *(float(np.median(own)) if own else math.nan for own in widths),
            )
        )
    return Sheet(
        name="ranges",
        title="Results within their 95 % ranges, in %",
        columns=(
            *("model", "what drifts", "shifts", "all: named", "all: ignored", "not first: named", "not first: ignored"),
            *("first: named", "first: ignored", "width: named", "width: ignored"),
        ),
        rows=tuple(rows),
        note="The range that was stated before the result came; first: of the results that began another batch. "
        "Widths are medians in standard deviations of the noise. In brackets Wilson's 95 % interval, as if all results "
        "were independent.",
    )


def _size_sheet(found: BatchRuns, cells: Sequence[tuple[str, str, float]]) -> Sheet:
    rows: list[tuple[str | int | float, ...]] = []
    for cell in cells:
        runs = _all(found, "named", cell)
        target = [run.traces["tau"][-1] for run in runs if run.traces["tau"][-1] is not None]
        sources = [size for run in runs for size in run.traces["sources"] if size is not None]
        if target or sources:
            rows.append(
                (
                    *(cell[0], cell[1], f"{cell[2]:g}"),
                    *(_spread([size for size, *_ in target]) if cell[1] != Drift.PAST else ("", "")),
                    _shown(recovered(target, cell[2]), ".0f") if cell[1] != Drift.PAST else "",
                    _shown(controls(runs), ".0f") if cell[1] != Drift.PAST else "",
                    _spread([size for size, *_ in sources])[0],
                    _shown(recovered(sources, cell[2]), ".0f") if sources else "",
                )
            )
    return Sheet(
        name="sizes",
        title="The size of shifts that is told, in standard deviations of the noise",
        columns=(
            *("model", "what drifts", "put in", "target", "runs", "target in its range, %", "controls, %", "sources"),
            "sources in their ranges, %",
        ),
        rows=tuple(rows),
        note="Medians over runs after the last result, in brackets the middle half. The 95 % range is what explain "
        "tells. Controls are the share of new batches that begin with one.",
    )


def _spread(values: Sequence[float]) -> tuple[str, str]:
    if not values:
        return "", ""
    low, middle, high = np.quantile(np.array(values), (0.25, 0.5, 0.75))
    return f"{middle:.2f} [{low:.2f}, {high:.2f}]", str(len(values))


def _by_problem(found: BatchRuns, cells: Sequence[tuple[str, str, float]]) -> Iterator[Sheet]:
    for problem in found.problems:
        rows: list[tuple[str | int | float, ...]] = []
        for cell in cells:
            own = {t: found.pairs(*cell, t, "ignored", [problem]) for t in ("named", "known", "centred")}
            if any(own.values()):
                runs = found.get(problem, cell[0], "ignored", cell[1], cell[2]).values()
                regret = float(np.mean([final(run) for run in runs])) if runs else math.nan
                pairs = sum(len(each) for _, each in own["named"])
                rows.append(
                    (cell[0], cell[1], f"{cell[2]:g}", pairs, regret, *(_shown(ratio(each)) for each in own.values()))
                )
        yield Sheet(
            name=problem,
            title=problem,
            columns=("model", "what drifts", "shifts", "pairs", "regret, ignored", "named", "shifts known", "centred"),
            rows=tuple(rows),
        )


def batch_series(found: BatchRuns) -> list[Series]:
    """The regret after the last result of every seed: a row per cell, whose columns are the seeds in order."""
    last = {cell: [final(run) for _, run in sorted(runs.items())] for cell, runs in found.cells.items()}
    return [
        (
            problem,
            method,
            min(found.cells[problem, method, drift, size]),
            f"{drift or 'no'} drift, shifts {size:g}",
            values,
        )
        for (problem, method, drift, size), values in last.items()
    ]
