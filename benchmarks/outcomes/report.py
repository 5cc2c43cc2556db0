"""The comparison for people (outcomes.md) and for programs (a CSV file per table)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.outcomes.problems.catalogue import outcome_problem
from benchmarks.outcomes.reading import FIRST, ProblemCurves
from benchmarks.read.comparison import Interval
from benchmarks.read.sheet import Cellular, Sheet, write_sheets

_OURS, _ALONE = "headstart", "alone"
_SPOILT = ("headstart-noise", "headstart-negated", "headstart-negated-1", "headstart-negated-2")
_BEATEN_BY_LIMITS = ("alone", "optuna-gp")
_BEATEN_BY_FRONTS = ("optuna-gp", "optuna-tpe", "optuna-nsga2", "botorch")
_HALF, _COST = 0.5, 0.05  # asked for
_MORE_IS_BETTER = ("volume", "nadir", "found")


def _shown(i: Interval, sign: str = "") -> str:
    return f"{i.value:{sign}.3f} [{i.low:{sign}.3f}, {i.high:{sign}.3f}]"


def _better(measure: str, gap: Interval) -> bool:
    """Clearly: the whole interval is on the right side."""
    return gap.low > 0 if measure in _MORE_IS_BETTER else gap.high < 0


def _verdict(measure: str, gap: Interval) -> str:
    worse = gap.high < 0 if measure in _MORE_IS_BETTER else gap.low > 0
    return " better" if _better(measure, gap) else " **worse**" if worse else ""


def outcome_sheets(found: Sequence[ProblemCurves]) -> list[Sheet]:
    """What is asked for, then problem by problem every method, the differences, and what the problems are."""
    sheets = [_asked(found)]
    for problem in found:
        sheets += [_means(problem, measure) for measure in problem.measures if measure != "found"]
        if "found" in problem.measures:
            sheets.append(_first(problem))
        if _OURS in problem.methods and len(problem.methods) > 1:
            sheets.append(_differences(problem))
    return [*sheets, _seconds(found), _problems(found)]


def _asked(found: Sequence[ProblemCurves]) -> Sheet:
    rows: list[tuple[Cellular, ...]] = []

    def add(problem: ProblemCurves, figure: str, asked: str, value: tuple[Interval, int], reached: bool) -> None:
        interval, pairs = value
        sign = "" if "ratio" in figure else "+"
        rows.append((problem.problem, figure, asked, _shown(interval, sign), pairs, "reached" if reached else "missed"))

    for problem in found:
        if _OURS not in problem.methods:
            continue
        main = outcome_problem(problem.problem).main
        limited, volume = "found" in problem.measures, main == "volume"
        for other in _BEATEN_BY_LIMITS if limited else _BEATEN_BY_FRONTS if volume else (_ALONE,):
            if other not in problem.methods:
                continue
            for mark in (10,) if limited else (10, 20):
                if mark > problem.steps:
                    continue
                gap = problem.difference(_OURS, other, main, mark)
                asked = "interval above 0" if volume else "interval below 0"
                add(problem, f"{main} after {mark} − {other}'s", asked, gap, _better(main, gap[0]))
            if limited:
                ratio = problem.ratio(_OURS, other)
                figure = f"evaluations to the first within the limits, ratio to {other}'s"
                add(problem, figure, f"≤ {_HALF:g}", ratio, ratio[0].value <= _HALF)
        for spoilt in _SPOILT if volume and _ALONE in problem.methods and problem.steps >= 20 else ():
            if spoilt in problem.methods:
                cost = problem.cost(spoilt, _ALONE, main, 20)
                figure = f"{main} after 20 that {spoilt} costs, as a share"
                add(problem, figure, f"≤ {_COST:.0%}", cost, cost[0].value <= _COST)
    note = "Paired over the seeds that both have. Intervals: 95 %, resampling the pairs. Of rules no figure is asked."
    columns = ("problem", "figure", "asked for", "measured", "pairs", "")
    return Sheet("asked", "What is asked for", columns, tuple(rows), note)


def _means(problem: ProblemCurves, measure: str) -> Sheet:
    every = {(m, k): problem.mean(m, measure, k) for m in problem.methods for k in problem.marks}
    notes = {
        "volume": "The share of the volume of the table's front, from the worst values of the table: more is better.",
        "nadir": "The share of the volume of the table's front, from a tenth beyond its own worst values.",
        "regret": "0 is the best there is; 1 the worst within the limits, or the median of what keeps the rules.",
    }
    return Sheet(
        name="means",
        title=f"{problem.problem}: {measure} after some evaluations",
        columns=("problem", "measure", "method", "runs", "evaluations", "mean", "low", "high"),
        rows=tuple(
            (problem.problem, measure, m, problem.runs(m), k, i.value, i.low, i.high) for (m, k), i in every.items()
        ),
        note=notes.get(measure, ""),
        shown_columns=("method", "runs", *(f"after {k}" for k in problem.marks)),
        shown=tuple((m, str(problem.runs(m)), *(_shown(every[m, k]) for k in problem.marks)) for m in problem.methods),
    )


def _first(problem: ProblemCurves) -> Sheet:
    """How soon a result is within the limits."""
    rows = [(m, problem.runs(m), problem.mean(m, FIRST)) for m in problem.methods]
    return Sheet(
        name="first",
        title=f"{problem.problem}: evaluations to the first result within the limits",
        columns=("problem", "method", "runs", "mean", "low", "high"),
        rows=tuple((problem.problem, m, n, i.value, i.low, i.high) for m, n, i in rows),
        note="A run without one counts as one evaluation more than it has.",
        shown_columns=("method", "runs", "evaluations", *(f"found after {k}" for k in problem.marks)),
        shown=tuple(
            (m, str(n), _shown(i), *(f"{problem.mean(m, 'found', k).value:.0%}" for k in problem.marks))
            for m, n, i in rows
        ),
    )


def _differences(problem: ProblemCurves) -> Sheet:
    measure = outcome_problem(problem.problem).main
    others = [m for m in problem.methods if m != _OURS]
    every = {(m, k): problem.difference(_OURS, m, measure, k) for m in others for k in problem.marks}
    return Sheet(
        name="differences",
        title=f"{problem.problem}: {measure} of {_OURS} − that of others, paired",
        columns=("problem", "measure", "other", "evaluations", "pairs", "difference", "low", "high"),
        rows=tuple(
            (problem.problem, measure, m, k, pairs, i.value, i.low, i.high) for (m, k), (i, pairs) in every.items()
        ),
        shown_columns=("other", "pairs", *(f"after {k}" for k in problem.marks)),
        shown=tuple(
            (
                m,
                str(every[m, problem.marks[0]][1]),
                *(_shown(every[m, k][0], "+") + _verdict(measure, every[m, k][0]) for k in problem.marks),
            )
            for m in others
        ),
    )


def _seconds(found: Sequence[ProblemCurves]) -> Sheet:
    methods = list(dict.fromkeys(m for problem in found for m in problem.methods))
    return Sheet(
        name="seconds",
        title="CPU seconds of a run, learning included",
        columns=("method", *(problem.problem for problem in found)),
        rows=tuple(
            (m, *(float(p.seconds[m].mean()) if m in p.seconds else float("nan") for p in found)) for m in methods
        ),
        note="On whatever machine the runs were made; of one method and problem they may be from several.",
    )


def _problems(found: Sequence[ProblemCurves]) -> Sheet:
    every = [outcome_problem(problem.problem) for problem in found]
    return Sheet("problems", "The problems", ("problem", "what is asked"), tuple((p.name, p.title) for p in every))


def write_outcomes(found: Sequence[ProblemCurves], folder: Path) -> list[Path]:
    """All tables in outcomes.md, and a CSV file of each kind."""
    return write_sheets(outcome_sheets(found), folder, name="outcomes", heading="Several outcomes, limits and rules")
