"""Comparisons as sheets: what ``python -m benchmarks compare`` prints and ``python -m benchmarks reproduce`` writes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy import stats

from benchmarks.read.analysis import Results, by_kind, marks, mean_and_error
from benchmarks.read.comparison import (
    ALPHA,
    ENOUGH,
    Difference,
    SpeedUp,
    differences,
    over_tasks,
    ranks,
    speed_ups,
)
from benchmarks.read.relation import relation_sheets
from benchmarks.read.sheet import Cellular, Sheet, compact
from benchmarks.read.styles import CONTROL, style
from benchmarks.read.targets import target_sheets
from benchmarks.store import Run, Store
from headstart.errors import InputError, NotComparableError

_ORIGIN = ("commit", "device", "hardware", "python", "torch", "botorch", "scipy", "numba")
_SMALLEST = 1e-4  # share of a problem's largest mean regret: a smaller regret counts as that


def compare(
    results: Results, baseline: str, *, at: Sequence[int] | None = None, level: float | None = None
) -> tuple[Sheet, ...]:
    """Every problem on its own, then what holds over all of them, and at the end every clear loss beside the wins.

    Tables and functions are summarised apart where there are several of both.
    """
    found = differences(results, baseline, at)
    speeds = speed_sheets(results, baseline, level)
    if not speeds:
        raise InputError(f"There is nothing to compare: no method has a seed in common with {baseline}.")
    of_problem = {p: [d for d in found if d.problem == p] for p in results.problems}
    summaries = []
    for kind, of_kind in by_kind(results).items():
        of_it = [d for d in found if d.problem in of_kind.problems]
        longest = sorted({d.evaluations for d in of_it})
        sheets = (
            *target_sheets(of_kind),
            *(relation_sheets(of_kind, baseline, longest) if longest else ()),
            *rank_sheet(of_kind),
            *overall_sheet(of_kind, baseline, at),
            _task_sheet(over_tasks(of_kind, baseline, at), baseline),
            *_verdict_sheets(of_it, baseline),
        )
        summaries += [replace(sheet, title=f"{kind}{sheet.title}") for sheet in sheets]
    return *(difference_sheet(p, baseline, ds) for p, ds in of_problem.items() if ds), *speeds, *summaries


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _task_sheet(found: Sequence[Difference], baseline: str) -> Sheet:
    """Over all problems, where a unit is a task."""
    name = style(baseline).label
    control = f" {style(CONTROL).label} is the baseline with other random numbers and must read 0." * any(
        d.method == CONTROL for d in found
    )
    return Sheet(
        name="tasks",
        title=f"All problems against {name}, paired by task",
        columns=("method", "after", "tasks", "log10 regret", "", "effect", "Holm p", "win/tie/loss"),
        rows=tuple(
            (
                *(style(d.method).label, d.evaluations, d.pairs, f"{d.log10:.2f}", d.verdict),
                *(f"{d.effect:.2f}", _p(d.p_value), f"{d.wins}/{d.ties}/{d.losses}"),
            )
            for d in found
        ),
        note="A unit is a task of a problem: the mean over the seeds that have it as their target. Below 0 the method "
        f"is better; the effect is the rank-biserial correlation, −1 where it is better on every task.{control}",
    )


def _verdict_sheets(found: Sequence[Difference], baseline: str) -> tuple[Sheet, ...]:
    """How often each method is clearly better or worse, and every place where it is, losses first."""
    name = style(baseline).label
    methods = list(dict.fromkeys(d.method for d in found))
    by_method = {m: [d for d in found if d.method == m and d.pairs >= ENOUGH] for m in methods}
    counts = {m: [sum(d.verdict == v for d in ds) for v in ("better", "", "worse")] for m, ds in by_method.items()}
    # a loss is listed before the correction already, a win only after it
    lost = [d for d in found if d.verdict != "better" and d.log10.low > 0 and d.pairs >= ENOUGH]
    clear = [*lost, *(d for d in found if d.verdict == "better")]
    summary = Sheet(
        name="verdicts",
        title=f"Clearly better or worse than {name}, of all comparisons (problem × evaluations)",
        columns=("method", "better", "undecided", "worse"),
        rows=tuple((style(m).label, *n) for m, n in counts.items()),
        note="By Wilcoxon's signed ranks on paired seeds, Holm-corrected over all comparisons of a method, "
        f"p < {ALPHA:g}; comparisons of fewer than {ENOUGH} pairs are left out.",
    )
    if not clear:
        return (summary,)
    listed = Sheet(
        name="clear",
        title=f"Every loss against {name}, and every clear win",
        columns=("", "method", "problem", "after", "pairs", "log10 regret", "effect", "Holm p"),
        rows=tuple(
            (
                *(d.verdict or "leans to worse", style(d.method).label, d.problem, d.evaluations, d.pairs),
                *(f"{d.log10:.2f}", f"{d.effect:.2f}", _p(d.p_value)),
            )
            for d in clear
        ),
        note="A loss that leans to worse is one by its own interval alone, which no correction has widened; wins are "
        "listed only where the corrected test says so.",
    )
    return summary, listed


def speed_sheets(results: Results, baseline: str, level: float | None = None) -> tuple[Sheet, ...]:
    """Evaluations until the mean regret reaches the level, or what the baseline has at its end, for every problem."""
    found = speed_ups(results, baseline, level)
    of_problem = {p: [s for s in found if s.problem == p] for p in results.problems}
    return tuple(_speed_sheet(p, baseline, ss, given=level is not None) for p, ss in of_problem.items() if ss)


def difference_sheet(problem: str, baseline: str, found: Sequence[Difference]) -> Sheet:
    """The differences of a problem to the baseline."""
    name = style(baseline).label
    return Sheet(
        name="differences",
        title=f"{problem} against {name}",
        columns=("method", "after", "pairs", "log10 regret", "", "effect", "Holm p", "regret", "win/tie/loss"),
        rows=tuple(
            (
                *(style(d.method).label, d.evaluations, d.pairs, f"{d.log10:.2f}", d.verdict),
                *(f"{d.effect:.2f}", _p(d.p_value), f"{d.regret:.2g}", f"{d.wins}/{d.ties}/{d.losses}"),
            )
            for d in found
        ),
        note=f"Paired differences to {name} with bootstrap 95 % intervals; below 0 the method is better, −1 in log10 "
        "is a regret ten times lower. The effect is the rank-biserial correlation; p is Wilcoxon's, Holm-corrected "
        f"over all comparisons of the method; there is a verdict where it is below {ALPHA:g} and there are at least "
        f"{ENOUGH} pairs.",
    )


def _count(n: float) -> str:
    return "never" if math.isinf(n) else f"{n:.0f}"


def _times(speed: SpeedUp) -> str:
    ratio = speed.ratio
    if math.isnan(ratio.value):
        return ""
    low, high = ("∞" if math.isinf(v) else f"{v:.2f}" for v in (ratio.low, ratio.high))
    at_least = math.isinf(ratio.value)  # the baseline was stopped before it got there
    value = f"> {speed.steps / speed.evaluations:.2f}" if at_least else f"{ratio.value:.2f}"
    return f"{value} × [{low}, {high}]"


def _speed_sheet(problem: str, baseline: str, found: Sequence[SpeedUp], *, given: bool) -> Sheet:
    name = style(baseline).label
    goal = compact(found[0].level)
    what = f"a mean regret of {goal}" if given else f"the mean regret that {name} has at its end"
    return Sheet(
        name="speed-up",
        title=f"{problem}: evaluations to {what}",
        columns=("method", "pairs", "level", "evaluations", name, "speed-up"),
        rows=tuple(
            (
                *(style(s.method).label, s.pairs, s.level),
                *(_count(s.evaluations), _count(s.baseline_evaluations), _times(s)),
            )
            for s in found
        ),
        note="The interval of the speed-up is over resamples of the seeds. It is ∞ where the baseline never gets there "
        "(then > is a lower bound), and 0 where the method does not.",
    )


def rank_sheet(results: Results) -> tuple[Sheet, ...]:
    """The mean ranks, best first; nothing where there are no blocks or no two methods on every problem."""
    try:
        found = ranks(results)
    except NotComparableError:
        return ()
    ordered = sorted(zip(found.mean_ranks, found.methods, strict=True))
    best = ordered[0][0]
    alike = {m for r, m in ordered if r - best < found.critical_difference}
    out = f" Without runs on every problem: {', '.join(style(m).label for m in found.left_out)}." * bool(found.left_out)
    return (
        Sheet(
            name="ranks",
            title=f"Mean ranks after the last evaluation, {found.blocks} blocks (problem × seed)",
            columns=("method", "mean rank", ""),
            rows=tuple(
                (style(method).label, f"{rank:.2f}", "like the best" if method in alike else "")
                for rank, method in ordered
            ),
            note=f"1 is best. Ranks that differ by less than {found.critical_difference:.2f} are not told apart "
            f"(Nemenyi, 95 %); Friedman p = {found.p_value:.2g}.{out}",
        ),
    )


def overall_sheet(results: Results, baseline: str, at: Sequence[int] | None = None) -> tuple[Sheet, ...]:
    """Mean rank of the mean regrets, and geometric mean of their ratios to the baseline's, over several problems."""
    methods = [m for m in results.methods if all({m, baseline} <= set(results.on(p)) for p in results.problems)]
    if len(results.problems) < 2 or baseline not in methods:
        return ()
    cells = [[results.on(p)[m] for m in methods] for p in results.problems]
    common = [sorted(set.intersection(*(set(cell.seeds) for cell in row))) for row in cells]
    if not all(common):
        return ()
    columns = at or marks(min(cell.steps for row in cells for cell in row))
    steps = np.array(columns) - 1
    mean = np.array([[cell.of(seeds).mean(0)[steps] for cell in row] for row, seeds in zip(cells, common, strict=True)])
    largest = mean.max(axis=(1, 2), keepdims=True)
    mean = np.maximum(mean, np.where(largest > 0, _SMALLEST * largest, 1.0))
    rank = stats.rankdata(mean, axis=1).mean(0)
    ratio = np.exp(np.log(mean / mean[:, [methods.index(baseline)]]).mean(0))
    return (
        Sheet(
            name="overall",
            title=f"All {len(cells)} problems against {style(baseline).label}, {sum(map(len, common))} common runs",
            columns=("method", *map(str, columns)),
            rows=tuple(
                (style(m).label, *(f"{r:.2f} · {q:.2f}" for r, q in zip(rank[i], ratio[i], strict=True)))
                for i, m in enumerate(methods)
            ),
            note="Mean rank of the mean regrets · geometric mean of their ratios to the baseline's, after so many "
            "evaluations; lower is better.",
        ),
    )


def origin_sheet(stores: Iterable[Path]) -> Sheet:
    """With which commit, versions and hardware the runs of some stores were made, and how many of them."""
    made: dict[tuple[str, ...], list[Run]] = {}
    for run in (run for folder in stores for run in Store(folder).read().runs):
        made.setdefault(tuple(str(run.provenance.get(name, "")) for name in _ORIGIN), []).append(run)
    rows: tuple[tuple[Cellular, ...], ...] = tuple(
        (*which, len(runs), _hours(runs)) for which, runs in sorted(made.items())
    )
    note = "Hours are those in which at least one of the runs was being made."
    return Sheet(name="origin", title="Made with", columns=(*_ORIGIN, "runs", "hours"), rows=rows, note=note)


def _hours(runs: Iterable[Run]) -> Cellular:
    """Hours of the clock in which runs were made, those of processes side by side counted once; empty if unknown."""
    spans = {(r.provenance["began"], r.provenance["ended"]) for r in runs if "ended" in r.provenance}
    until, seconds = 0.0, 0.0
    for began, ended in sorted(spans):
        seconds += max(0.0, ended - max(began, until))
        until = max(until, ended)
    return seconds / 3600 if spans else ""


def seconds_sheet(results: Results) -> Sheet:
    """CPU seconds per step and of learning the sources once, for every problem and method."""
    rows: list[tuple[Cellular, ...]] = []
    for problem in results.problems:
        for method, cell in results.on(problem).items():
            (step, error), learn = mean_and_error(cell.step_seconds), cell.learn_seconds.mean()
            rows.append((problem, method, len(cell.seeds), float(step), float(error), float(learn)))
    return Sheet(
        name="seconds",
        title="CPU seconds",
        columns=("problem", "method", "runs", "seconds per step", "standard error", "seconds to learn sources"),
        rows=tuple(rows),
        note="Per step: fitting and choosing the next point, a mean over the steps of a run. Runs in lockstep share "
        "their time equally.",
    )
