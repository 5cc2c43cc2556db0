"""The comparison for people (tuning.md) and for programs (tuning.json)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.read.comparison import Interval
from benchmarks.read.sheet import Sheet
from benchmarks.tuning.problems.catalogue import tuning_problem
from benchmarks.tuning.reading import MARKS, Regrets, TaskScale, interval, regrets, task_scales
from benchmarks.tuning.runs import TuningRun

_RIVALS = ("tpe-bests", "gp-bests")
_EARLY, _CHOICE = 0.10, 0.06  # asked for
_CHOICE_PROBLEM, _PRUNED_PROBLEM = "classifier-choice", "pruned-network"


@dataclass(frozen=True, eq=False)
class TuningSummary:
    """The regrets of every problem, the scales behind them, and the methods, of which the first is ours."""

    problems: tuple[Regrets, ...]
    scales: dict[tuple[str, str], TaskScale]
    methods: tuple[str, ...]
    trials: int

    @property
    def ours(self) -> str:
        """Whom the others are compared with."""
        return self.methods[0]

    @property
    def marks(self) -> tuple[int, ...]:
        """After how many trials we look."""
        return tuple(mark for mark in MARKS if mark <= self.trials)

    def regret(self, method: str, mark: int, problems: Sequence[Regrets] | None = None) -> Interval:
        """The mean regret over some problems, or over all."""
        return interval([p.at(method, mark) for p in problems or self.problems])

    def difference(self, other: str, mark: int, problems: Sequence[Regrets] | None = None) -> Interval:
        """Our regret − the other's, paired: below 0 ours is better."""
        return interval([p.at(self.ours, mark) - p.at(other, mark) for p in problems or self.problems])

    def early(self, method: str, problems: Sequence[Regrets] | None = None) -> Interval:
        """The share of trials 2 to 5 that are worse than the median of random ones."""
        return interval([p.early[method] for p in problems or self.problems])

    def seconds(self, method: str) -> float:
        """CPU seconds of a run without training: the mean over all."""
        return float(np.mean(np.concatenate([p.seconds[method] for p in self.problems])))

    def clearly_worse(self, other: str) -> list[str]:
        """Problems and marks at which the whole interval of the difference is above 0."""
        return [
            f"{p.problem} after {mark}"
            for p in self.problems
            for mark in self.marks
            if self.difference(other, mark, [p]).low > 0
        ]


def summary(runs: Sequence[TuningRun], *, trials: int, show: Sequence[str] = ()) -> TuningSummary:
    """What there is to say about the runs."""
    found = regrets(runs, trials=trials, show=show)
    current = [run for run in runs if run.revision == tuning_problem(run.problem).revision]
    return TuningSummary(tuple(found), task_scales(current), tuple(found[0].regret), trials)


# ── the sheets ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _shown(i: Interval, sign: str = "") -> str:
    return f"{i.value:{sign}.3f} [{i.low:{sign}.3f}, {i.high:{sign}.3f}]"


def _verdict(i: Interval) -> str:
    return " **worse**" if i.low > 0 else " better" if i.high < 0 else ""


def tables(found: TuningSummary) -> list[Sheet]:
    """Over all problems, what is asked for, and problem by problem."""
    pairs = sum(len(p.pairs) for p in found.problems)
    overall = Sheet(
        name="tuning",
        title=f"Mean normalised regret over {len(found.problems)} problems, {pairs} pairs of target and seed",
        columns=("method", *(f"after {m}" for m in found.marks), "trials 2 to 5 worse than random", "CPU s per run"),
        rows=tuple(
            (
                method,
                *(_shown(found.regret(method, mark)) for mark in found.marks),
                f"{found.early(method).value:.0%}",
                f"{found.seconds(method):.2f}",
            )
            for method in found.methods
        ),
        note="0 is the best that any run found, 1 the median of random trials. Intervals: 95 %, resampling the pairs "
        "of every problem. The CPU seconds of a run are those of the sampler, without training.",
    )
    return [overall, _asked(found), *_by_problem(found), *_differences(found), _tuned(found)]


def _asked(found: TuningSummary) -> Sheet:
    """The figures that issue 14 asks for, as far as there are runs for them."""
    rows: list[tuple[str, str, str, str]] = []

    def add(figure: str, asked: str, measured: str, reached: bool) -> None:
        rows.append((figure, asked, measured, "reached" if reached else "missed"))

    rivals = [name for name in _RIVALS if name in found.methods and name != found.ours]
    for other in rivals:
        gaps = [found.difference(other, mark) for mark in found.marks]
        marks = "/".join(map(str, found.marks))
        add(f"mean regret after {marks} − {other}'s", "below 0", ", ".join(_shown(g, "+") for g in gaps),
            all(g.value < 0 for g in gaps))  # fmt: skip
    for other in rivals:
        worse = found.clearly_worse(other)
        add(f"problems clearly worse than {other}", "none", ", ".join(worse) or "none", not worse)
    early = found.early(found.ours)
    add("trials 2 to 5 worse than a random median", f"≤ {_EARLY:.0%}", f"{early.value:.1%}", early.value <= _EARLY)
    named = {p.problem: p for p in found.problems}
    last = found.marks[-1]
    if _CHOICE_PROBLEM in named:
        choice = found.regret(found.ours, last, [named[_CHOICE_PROBLEM]])
        add(f"choice of classifier after {last}", f"≤ {_CHOICE:g}", _shown(choice), choice.value <= _CHOICE)
    if _PRUNED_PROBLEM in named and _RIVALS[0] in rivals:
        gap = found.difference(_RIVALS[0], last, [named[_PRUNED_PROBLEM]])
        add(f"pruned network after {last} − {_RIVALS[0]}'s", "not above 0", _shown(gap, "+"), gap.low <= 0)
    note = (
        "Clearly worse: the whole interval of the paired difference is above 0. Of 100 comparisons of equals, some "
        "three to five look so by chance."
    )
    return Sheet(
        "asked", f"What is asked for, of {found.ours}", ("figure", "asked for", "measured", ""), tuple(rows), note
    )


def _by_problem(found: TuningSummary) -> list[Sheet]:
    return [
        Sheet(
            name=f"after-{mark}",
            title=f"Normalised regret after {mark}",
            columns=("problem", "pairs", *found.methods),
            rows=tuple(
                (p.problem, len(p.pairs), *(_shown(found.regret(m, mark, [p])) for m in found.methods))
                for p in found.problems
            ),
        )
        for mark in found.marks
    ] + [
        Sheet(
            name="early",
            title="Share of trials 2 to 5 that are worse than the median of random ones",
            columns=("problem", *found.methods),
            rows=tuple(
                (p.problem, *(f"{found.early(m, [p]).value:.0%}" for m in found.methods)) for p in found.problems
            ),
        )
    ]


def _differences(found: TuningSummary) -> list[Sheet]:
    def cells(other: str, problems: Sequence[Regrets] | None) -> list[str]:
        gaps = [found.difference(other, mark, problems) for mark in found.marks]
        return [_shown(gap, "+") + _verdict(gap) for gap in gaps]

    return [
        Sheet(
            name="differences",
            title=f"{found.ours} − {other}: paired differences of regret",
            columns=("problem", *(f"after {mark}" for mark in found.marks)),
            rows=(*((p.problem, *cells(other, [p])) for p in found.problems), ("all", *cells(other, None))),
        )
        for other in found.methods[1:]
    ]


def _tuned(found: TuningSummary) -> Sheet:
    """What the problems are."""
    problems = [tuning_problem(p.problem) for p in found.problems]
    return Sheet(
        name="problems",
        title="The problems",
        columns=("problem", "what is tuned", "parameters", "of them conditional", "tasks"),
        rows=tuple((p.name, p.title, len(p.space), len(p.only), ", ".join(p.tasks)) for p in problems),
    )


# ── the files ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _record(found: TuningSummary, versions: dict[str, Any]) -> dict[str, Any]:
    def of(problems: Sequence[Regrets] | None) -> dict[str, Any]:
        return {
            method: {
                "regret": {mark: asdict(found.regret(method, mark, problems)) for mark in found.marks},
                "early": asdict(found.early(method, problems)),
                "difference": {mark: asdict(found.difference(method, mark, problems)) for mark in found.marks},
            }
            for method in found.methods
        }

    return {
        "trials": found.trials,
        "ours": found.ours,
        "seconds": {method: found.seconds(method) for method in found.methods},
        "all": of(None),
        "problems": {
            p.problem: {
                "title": tuning_problem(p.problem).title,
                "parameters": list(tuning_problem(p.problem).space),
                "pairs": len(p.pairs),
                "tasks": {task: asdict(found.scales[p.problem, task]) for task in sorted({t for t, _ in p.pairs})},
                "methods": of([p]),
            }
            for p in found.problems
        },
        "versions": versions,
    }


def write_report(found: TuningSummary, folder: Path, versions: dict[str, Any]) -> list[Path]:
    """tuning.json and tuning.md; digits beyond the sixth are noise."""
    folder.mkdir(parents=True, exist_ok=True)
    data, text = folder / "tuning.json", folder / "tuning.md"
    record = json.loads(json.dumps(_record(found, versions)), parse_float=lambda digits: float(f"{float(digits):.6g}"))
    data.write_text(json.dumps(record, indent=1) + "\n")
    text.write_text("\n".join(["## Tuning with a past", "", *(sheet.markdown() for sheet in tables(found))]))
    return [data, text]
