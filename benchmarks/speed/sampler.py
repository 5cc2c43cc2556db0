"""How fast is the sampler, and how much does it save? ``make bench-sampler``.

    part         question                                                                asked for
    suggestion   CPU seconds of a suggestion: 3 × 100 source points, 30 trials, D = 6    < 0.5, going on ≤ 1/5 of others
                 and of one with SHGP                                                    ≥ 1/3 of AUTO's
    overhead     CPU seconds of 200 trials of a trivial objective, the same sources      < 120, memory flat
    svm          trials to what GPBO has after 30, on every task of our SVM table        median ≤ 10

CPU time of one thread; routes take turns, and medians are reported, so that a busy machine slows all of them alike.
Rivals that are not installed are said to be so. Writes a JSON file next to the printed tables; with ``--only`` the
other parts of the file stay.
"""

from __future__ import annotations

import argparse
import json
import platform
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import optuna
from rich.console import Console
from rich.table import Table

from benchmarks.speed.measures import Overhead, Reach, SuggestionTimes, overhead, reach, suggestions
from benchmarks.speed.routes import SINGLE, routes
from headstart.demo.demo import default_model
from headstart.gp.threads import single_thread

# What is asked for
SECONDS, SHARE, TIMES, OVERHEAD, GROWTH, TRIALS = 0.5, 1 / 5, 3, 120.0, 0.05, 10


def _mark(reached: bool | None) -> str:
    return {True: "[green]reached[/green]", False: "[red]missed[/red]", None: ""}[reached]


def _asked(row: SuggestionTimes, median: float, going_on: float, *, is_ours: bool) -> tuple[str, bool | None]:
    """What is asked for, of ours in seconds and of the others as a multiple of ours, and whether it is so."""
    if is_ours:
        return f"< {SECONDS:g} s", median < SECONDS
    if "BoTorch" in row.route or "Ax" in row.route:
        return f"≥ {1 / SHARE:g} × going on", going_on <= SHARE * median
    if row.route == SINGLE:
        return f"≥ 1/{TIMES} × going on", going_on <= TIMES * median
    return "", None


def suggestion_table(found: Sequence[SuggestionTimes]) -> Table:
    """Ours first, going on and read at once; the others with how many times as long as either they take."""
    ours = [row.median or float("nan") for row in found[:2]]
    table = Table(title="CPU seconds of one suggestion, after learning", title_justify="left")
    for column in ("route", "uses", "when", "median", "from", "to", "× going on", "× at once", "asked for", ""):
        table.add_column(column, justify="left" if column in ("route", "uses", "when", "asked for", "") else "right")
    for i, row in enumerate(found):
        if row.median is None:
            table.add_row(row.route, row.uses, row.when, *[""] * 6, row.note)
            continue
        asked, reached = _asked(row, row.median, ours[0], is_ours=i < len(ours))
        figures = (f"{seconds:.3f}" for seconds in (row.median, min(row.seconds), max(row.seconds)))
        ratios = (f"{row.median / own:.1f}" for own in ours)
        table.add_row(row.route, row.uses, row.when, *figures, *ratios, asked, _mark(reached) or row.note)
    return table


def overhead_table(found: Overhead) -> Table:
    """The seconds, and the memory over time."""
    table = Table(title=f"{found.trials} trials of a trivial objective ({found.model.upper()})", title_justify="left")
    for column in ("what", "measured", "asked for", ""):
        table.add_column(column)
    table.add_row(
        "CPU seconds, learning included", f"{found.seconds:.1f}", f"< {OVERHEAD:g}", _mark(found.seconds < OVERHEAD)
    )
    seen = ", ".join(f"{mib:.0f}" for mib in found.memory.values())
    table.add_row(f"memory after {', '.join(map(str, found.memory))} trials, MiB", seen, "", "")
    table.add_row("its growth", f"{found.growth:+.1%}", f"< {GROWTH:.0%}", _mark(found.growth < GROWTH))
    return table


def reach_table(found: Sequence[Reach], default: str) -> Table:
    """The quartiles of the trials that each method took, beside what is asked for."""
    steps, runs = found[0].steps, len(found[0].trials)
    table = Table(title=f"SVM table, {runs} runs: trials to what GPBO has after {steps}", title_justify="left")
    for column in ("method", "25 %", "median", "75 %", "never", "asked for", ""):
        table.add_column(column, justify="left" if column in ("method", "asked for", "") else "right")
    for row in found:
        quartiles = [row.quantile(share) for share in (0.25, 0.5, 0.75)]
        shown = [f"> {steps}" if q == float("inf") else f"{q:g}" for q in quartiles]
        asked = row.method == default.lower()
        never = f"{sum(n is None for n in row.trials)} of {runs}"
        limit, mark = (f"≤ {TRIALS}", _mark(quartiles[1] <= TRIALS)) if asked else ("", "")
        table.add_row(row.method.upper(), *shown, never, limit, mark)
    return table


# ── the program ───────────────────────────────────────────────────────────────────────────────────────────────────────


@single_thread()
def main(arguments: list[str] | None = None) -> None:
    """Run the parts that are asked for, print the tables, write the JSON file."""
    parser = argparse.ArgumentParser(description="How fast the Optuna sampler is, and how many trials it saves.")
    parser.add_argument("--quick", action="store_true", help="one data set, one round, at most 40 trials, one turn")
    parser.add_argument("--only", choices=("overhead", "suggestion", "svm"), help="only this part")
    parser.add_argument("--model", default=default_model(), help="model of the sampler (default: the sampler's own)")
    parser.add_argument("--methods", default="shgp,star,auto", help="models of the SVM part, besides --model")
    parser.add_argument("--trials", type=int, default=200, help="trials of the trivial objective")
    parser.add_argument("--turns", type=int, default=4, help="how often every task of the SVM table is the target")
    parser.add_argument("--out", type=Path, default=Path("results/sampler/sampler.json"), help="the JSON file")
    options = parser.parse_args(arguments)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    console, model, quick = Console(width=140), options.model.lower(), options.quick
    record: dict[str, Any] = json.loads(options.out.read_text()) if options.only and options.out.exists() else {}

    def wanted(part: str) -> bool:
        return options.only in (None, part)

    with warnings.catch_warnings(), console.status("…") as status:
        warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
        if wanted("overhead"):  # first, so that the memory is the sampler's alone
            status.update(f"trials of a trivial objective, {model}")
            run = overhead(model, trials=min(40, options.trials) if quick else options.trials)
            console.print(overhead_table(run))
            record["overhead"] = {**asdict(run), "growth": run.growth}
        if wanted("suggestion"):
            sets, rounds = (1, 1) if quick else (3, 3)
            found = suggestions(routes(model), data_sets=sets, rounds=rounds, on_step=status.update)
            console.print(suggestion_table(found))
            record["suggestion"] = [{**asdict(row), "median": row.median} for row in found]
        if wanted("svm"):
            methods = dict.fromkeys((model, *options.methods.lower().split(",")))
            reached = reach(list(methods), turns=1 if quick else options.turns, on_step=status.update)
            console.print(reach_table(reached, model))
            record["svm"] = [asdict(row) for row in reached]
    versions = {name: __import__(name).__version__ for name in ("torch", "botorch", "optuna", "headstart")}
    record["versions"] = {**versions, "python": platform.python_version()}
    record["machine"] = {"processor": platform.machine(), "threads": 1}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(record, indent=1) + "\n")
    console.print(f"written to {options.out}")


if __name__ == "__main__":
    main()
