"""Does a head start do no harm, and how much of it is kept? AUTO's runs against those of others, in sheets.

    harm       sources that mislead: AUTO's mean log₁₀ regret no more than 0.10 above GPBO's
    gain       related sources: at least 90 % of what the best single model gains over GPBO, on every family
    kept       that share after 5, 10 and 20 evaluations, and on average over the first 20
    tables     ADTM and mean rank of AUTO, GPBO, RGPE and GC3P; AUTO nowhere clearly worse than GPBO

The runs are those of the presets ``adversarial`` and ``compare``. Differences are paired over seeds,
with bootstrap 95 % intervals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from scipy import stats

from benchmarks.problems.adversarial import Scenario
from benchmarks.read.analysis import Array, Results
from benchmarks.read.comparison import Difference, differences, log_regret, mean_interval
from benchmarks.read.sheet import Cellular, Sheet
from benchmarks.read.styles import is_table, settings_of, style, title

_BASELINE, _OURS = "gpbo", "auto"
_TOLERATED = 0.10
_KEPT = 0.90
_LAST = 20
_PARTS = {
    "mean of 1 to 20": slice(_LAST),
    "after 5": slice(4, 5),
    "after 10": slice(9, 10),
    "after 20": slice(19, 20),
}
_RIVALS = ("gpbo", "rgpe", "gc3p", "auto")
_MISLEADING = (Scenario.NEGATED, Scenario.NOISE, Scenario.CONSTANT, Scenario.NINE_BAD)


def scenario_of(problem: str) -> Scenario:
    """How the sources of a problem mislead, from its name."""
    word = problem.partition("[")[2].partition(",")[0]
    return Scenario(word) if word in list(Scenario) else Scenario.RELATED


def safety(results: Results) -> tuple[Sheet, ...]:
    """The sheets, as far as there are runs for them."""
    sheets = (_harm(results), _gain(results), _kept(results), *_tables(results))
    return tuple(sheet for sheet in sheets if sheet.rows)


def spoilt(results: Results) -> Results:
    """Those whose sources mislead; ``compare`` publishes the others."""
    return results.among([p for p in results.problems if scenario_of(p) is not Scenario.RELATED])


def _named(problem: str) -> str:
    """The problem for people, with the number of its sources where there are several."""
    sources = settings_of(problem)[1].get("sources", "1")
    return title(problem) + (f", {sources} sources" if sources != "1" and not is_table(problem) else "")


def _harm(results: Results) -> Sheet:
    rows = []
    for scenario in Scenario:
        problems = [p for p in results.problems if scenario_of(p) is scenario and scenario is not Scenario.RELATED]
        for d in _against_baseline(results, problems, 20):
            if d.method == _OURS:
                mean = _mean_log(results, d.problem, _BASELINE, 20)
                kept = ("yes" if d.log10.value <= _TOLERATED else "no") if scenario in _MISLEADING else ""
                rows.append((scenario.value, _named(d.problem), d.pairs, f"{mean:+.2f}", f"{d.log10:+.2f}", kept))
    return Sheet(
        name="harm",
        title="Sources that mislead: AUTO against GPBO after 20 evaluations",
        columns=("scenario", "problem", "runs", "GPBO", "AUTO − GPBO", "at most 0.10"),
        rows=tuple(rows),
        note="GPBO: its mean log₁₀ regret. AUTO − GPBO: the difference with its 95 % interval; below 0 AUTO is better. "
        "Whether it is at most 0.10 is asked for sources that mislead; the others are shown for comparison.",
    )


def _gain(results: Results) -> Sheet:
    problems = [p for p in results.problems if scenario_of(p) is Scenario.RELATED and not is_table(p)]
    found = tuple(d for p in problems for d in _against_baseline(_on_common_seeds(results, p), [p], 20))
    methods = [m for m in results.methods if m != _BASELINE and any(d.method == m for d in found)]
    rows: list[tuple[Cellular, ...]] = []
    for problem in problems:
        by = {d.method: d for d in found if d.problem == problem}
        if _OURS not in by:
            continue
        best = min((m for m in methods if m in by and m != _OURS), key=lambda m: by[m].log10.value, default=None)
        # where no model gains anything, nothing can be kept: then AUTO should lose nothing either
        goal = min(by[best].log10.value if best else 0.0, 0.0)
        own = by[_OURS].log10.value
        share = f"{own / goal:.0%}" if goal < 0 else ""
        cells = [
            f"{by[m].log10:+.2f}" if m == _OURS else f"{by[m].log10.value:+.2f}" if m in by else "" for m in methods
        ]
        label = style(best).label if best else ""
        kept = "yes" if own <= _KEPT * goal else "no"
        rows.append((_named(problem), by[_OURS].pairs, *cells, label, share, kept))
    return Sheet(
        name="gain",
        title="Related sources: log₁₀ regret after 20 evaluations against GPBO",
        columns=("problem", "runs", *(style(m).label for m in methods), "best single", "kept", "at least 90 %"),
        rows=tuple(rows),
        note="Mean log₁₀ regret minus GPBO's, over the runs that all methods of a row have: −1 is a regret ten times "
        "lower. kept: AUTO's gain as a share of that of the best single model.",
    )


def _kept(results: Results) -> Sheet:
    rows: list[tuple[Cellular, ...]] = []
    for problem in (p for p in results.problems if scenario_of(p) is Scenario.RELATED and not is_table(p)):
        cells = _on_common_seeds(results, problem).on(problem)
        if {_BASELINE, _OURS} < cells.keys() and min(cell.steps for cell in cells.values()) >= _LAST:
            logs = {method: log_regret(problem, cell.regret[:, :_LAST]) for method, cell in cells.items()}
            gains = {m: logs[_BASELINE] - log for m, log in logs.items() if m != _BASELINE}
            shares = [_share({m: gain[:, n] for m, gain in gains.items()}) for n in _PARTS.values()]
            rows.append((_named(problem), len(logs[_OURS]), *shares))
    return Sheet(
        name="kept",
        title="Related sources: AUTO's gain over GPBO in log₁₀ regret, of that of the best single model",
        columns=("problem", "runs", *_PARTS),
        rows=tuple(rows),
        note=f"Bold: clearly less than {_KEPT:.0%}, by the 95 % interval of the difference to that share.",
    )


def _share(gains: Mapping[str, Array]) -> str:
    """AUTO's mean gain of the largest one among the others', which are rows of runs over evaluations."""
    each = {method: gain.mean(axis=1) for method, gain in gains.items()}
    own = each.pop(_OURS)
    best = max(each.values(), key=lambda gain: float(gain.mean()))
    ratio = f" ({own.mean() / best.mean():.0%})" if best.mean() > 0 else ""
    shown = f"{own.mean():.2f} of {best.mean():.2f}{ratio}"
    return f"**{shown}**" if mean_interval(own - _KEPT * best).high < 0 else shown


def _tables(results: Results) -> tuple[Sheet, ...]:
    problems = [p for p in results.problems if scenario_of(p) is Scenario.RELATED and is_table(p)]
    return tuple(_tables_at(results, problems, n) for n in (10, 30))


def _tables_at(results: Results, problems: Sequence[str], n: int) -> Sheet:
    pair = (_BASELINE, _OURS)
    problems = [p for p in problems if all(m in results.on(p) and results.on(p)[m].steps >= n for m in pair)]
    rivals = [m for m in _RIVALS if all(m in results.on(p) for p in problems)]
    rows: list[tuple[Cellular, ...]] = []
    all_ranks = []
    for problem in problems:
        cells = results.on(problem)
        seeds = sorted(set.intersection(*(set(cells[m].seeds) for m in rivals)))
        if not seeds or any(cells[m].steps < n for m in rivals):
            continue
        means = [float(cells[m].of(seeds)[:, n - 1].mean()) for m in rivals]
        all_ranks.append(stats.rankdata(means))
        d = next(d for d in _against_baseline(results, [problem], n) if d.method == _OURS)
        worse = "yes" if d.regret.low > 0 else "no"
        apart = f"{d.regret:+.4f} ({d.pairs})"
        rows.append((_named(problem), len(seeds), *(f"{m:.4f}" for m in means), apart, worse))
    if all_ranks:
        rows.append(("mean rank", "", *(f"{r:.2f}" for r in np.mean(all_ranks, axis=0)), "", ""))
    return Sheet(
        name=f"tables-{n}",
        title=f"Tables: ADTM after {n} evaluations",
        columns=("table", "runs", *(style(m).label for m in rivals), "AUTO − GPBO", "clearly worse"),
        rows=tuple(rows),
        note="Mean over the runs all four have. AUTO − GPBO: over all their common runs (so many), with the paired "
        "bootstrap 95 % interval; clearly worse: the whole interval is above 0.",
    )


def _on_common_seeds(results: Results, problem: str) -> Results:
    """The cells of a problem with the seeds that all of its methods have: shares of a gain need the same runs."""
    cells = results.on(problem).values()
    common = sorted(set.intersection(*(set(cell.seeds) for cell in cells)))
    rows = [[cell.seeds.index(seed) for seed in common] for cell in cells]
    return Results(
        tuple(
            replace(
                cell,
                seeds=tuple(common),
                regret=cell.regret[row],
                step_seconds=cell.step_seconds[row],
                learn_seconds=cell.learn_seconds[row],
            )
            for cell, row in zip(cells, rows, strict=True)
        )
    )


def _against_baseline(results: Results, problems: Sequence[str], n: int) -> tuple[Difference, ...]:
    chosen = results.among(problems)
    return differences(chosen, _BASELINE, at=(n,)) if _BASELINE in chosen.methods else ()


def _mean_log(results: Results, problem: str, method: str, n: int) -> float:
    return float(log_regret(problem, results.on(problem)[method].regret[:, n - 1]).mean())
