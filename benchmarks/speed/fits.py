"""How fast is it? Fits and predictions against BoTorch's, side by side in one process: ``make bench-speed``.

Times are CPU seconds of one thread; the engines take turns and the median over the rounds (for fits: over data sets)
is reported, so that a busy machine slows all of them alike. What counts is the ratio. Where both engines fit the same
model from the same starts, the likelihoods they reach are compared as well. Writes a JSON file next to the printed
table.
"""

from __future__ import annotations

import argparse
import json
import platform
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.speed.cases import (
    hgp_fit,
    import_time,
    lockstep,
    plain_fit,
    prediction,
    shgp_fit,
    wsgp_evaluation,
)
from benchmarks.speed.rows import Row
from benchmarks.speed.small import against_the_floor, as_they_come, compiled_evidence
from headstart.gp.threads import single_thread


def run_all(*, quick: bool, only: str, console: Console) -> list[Row]:
    """Every line of the table whose name contains ``only``, announced as it begins."""
    rounds, n_sets = (1, 1) if quick else (3, 12)
    # data sets of every size: few for the large ones, which keep BoTorch busy for most of a minute each
    sizes = {20: 1, 60: 1} if quick else {20: n_sets, 60: n_sets, 200: 5, 500: 2}
    asked = {20: 30.0, 60: 15.0, 200: 6.0, 500: 3.5}
    sources = (60,) if quick else (60, 120, 250, 500)
    jobs: list[tuple[str, Callable[[], Row | list[Row]]]] = [
        *((f"GP fit, n = {n}", partial(plain_fit, n, sets, asked[n])) for n, sets in sizes.items()),
        *((f"SHGP target, N_s = {n}", partial(shgp_fit, n, n_sets)) for n in sources),
        # minutes each for BoTorch: one round
        *((f"HGP, N_s = {n}", partial(hgp_fit, n, 1)) for n in sources),
        *((f"compiled evidence, n = {n}", partial(compiled_evidence, n, 5 * rounds)) for n in sizes),
        *((f"floor, n = {n}", partial(against_the_floor, n, n_sets)) for n in (20, 60)),
        *((f"default fit, n = {n}", partial(as_they_come, n, 3 * sets)) for n, sets in sizes.items()),
        ("WSGP evidence", lambda: wsgp_evaluation(5 * rounds)),
        ("prediction", lambda: prediction(5 * rounds)),
        ("lockstep", lambda: lockstep(rounds)),
        ("import", lambda: import_time(5)),
    ]
    rows: list[Row] = []
    for name, job in (each for each in jobs if only in each[0]):
        with console.status(f"timing {name} …"):
            result = job()
        new = result if isinstance(result, list) else [result]
        for row in new:
            ratio = "" if row.ratio is None else f"{row.ratio:.1f} ×"
            likelihood = "" if row.log_p is None else f"; {row.log_p}"
            console.print(f"{row.what}, {row.size}: {ratio}{likelihood}", highlight=False)
        rows += new
    return rows


def as_table(rows: list[Row]) -> Table:
    """The rows for people."""
    table = Table(title="CPU time, one thread, medians", title_justify="left")
    for column in ("what", "size", "milliseconds", "ratio", "asked", "", "note"):
        table.add_column(column, overflow="fold")
    marks = {True: "[green]reached[/green]", False: "[red]missed[/red]", None: ""}
    for row in rows:
        times = "\n".join(f"{name} {value:.3g}" for name, value in row.milliseconds.items())
        ratio = "" if row.ratio is None else f"{row.ratio:.1f} ×"
        asked = "" if row.required is None else f"{row.required:g} ×"
        table.add_row(row.what, row.size, times, ratio, asked, marks[row.reached], row.note)
    return table


@single_thread()
def main(arguments: list[str] | None = None) -> None:
    """Run the benchmark, print the table, write the JSON file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, one round")
    parser.add_argument("--out", type=Path, default=Path("results/speed.json"), help="where the JSON file goes")
    parser.add_argument("--only", default="", help="only what contains this word; the other rows of the file stay")
    options = parser.parse_args(arguments)
    console = Console(width=140)
    rows = run_all(quick=options.quick, only=options.only, console=console)
    console.print(as_table(rows))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    versions = {name: __import__(name).__version__ for name in ("torch", "botorch", "gpytorch", "scipy", "headstart")}
    new = {(row.what, row.size): {**asdict(row), "reached": row.reached} for row in rows}
    old = json.loads(options.out.read_text())["rows"] if options.only and options.out.exists() else []
    kept = {(row["what"], row["size"]): row for row in old}
    record = {
        "rows": list({**kept, **new}.values()),
        "versions": {**versions, "python": platform.python_version()},
        "machine": {"processor": platform.machine(), "threads": 1},
    }
    options.out.write_text(json.dumps(record, indent=1) + "\n")
    console.print(f"written to {options.out}")


if __name__ == "__main__":
    main()
