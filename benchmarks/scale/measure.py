"""What does it take with how much past? ``make bench-scale``: seconds, memory and how they grow.

Every case of ``bench.scale.plan`` is a process of its own with a limit of CPU time: one that is given up is an answer
as well. What was measured is kept case by case, so that an interrupted measurement goes on where it was, with the same
commit of the program; a complete one begins anew. Writes a JSON file next to the printed tables; with ``--only`` the
other cases of the file stay.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.commit import commit
from benchmarks.scale.plan import PARTS, ScaleCase, all_cases
from benchmarks.scale.report import as_tables
from benchmarks.store import append_lines, read_lines

_SCHEMA = 1
_WALL = 8  # of the limit: a machine that is shared gives a process a part of its time


def measured(case: ScaleCase) -> dict[str, Any]:
    """The measures of a case, and what ended it where it did not come to its end."""
    command = [sys.executable, "-m", "benchmarks.scale.work", case.part, case.size, case.model, str(case.limit)]
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    late = False
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **one_thread}
    ) as process:
        try:
            out, err = process.communicate(timeout=_WALL * case.limit)
        except subprocess.TimeoutExpired:
            late = True
            process.kill()
            out, err = process.communicate()
        except BaseException:  # Ctrl-C: nobody waits for it any more
            process.kill()
            raise
    found: dict[str, Any] = {}
    for line in out.splitlines():
        found |= json.loads(line)
    ended = ""
    if late or process.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        ended = f"given up after {case.limit} s" if late or process.returncode == -signal.SIGXCPU else "killed"
    elif process.returncode:
        ended = (err.strip().splitlines() or ["it died"])[-1][:200]
    return {**asdict(case), "name": case.name, "measures": found, "ended": ended, "commit": commit()}


def _run(cases: Iterable[ScaleCase], store: Path, console: Console) -> dict[str, dict[str, Any]]:
    """What the store has of this commit, and the rest as it is measured."""
    kept = {record["name"]: record for _, record in read_lines(store, _SCHEMA)[0] if record["commit"] == commit()}
    found = {}
    for case in cases:
        if case.name not in kept:
            with console.status(f"{case.name} …"):
                kept[case.name] = measured(case)
            append_lines(store, [{"schema": _SCHEMA, **kept[case.name]}])
        record = found[case.name] = kept[case.name]
        shown = ", ".join(f"{key} {value:.3g}" for key, value in record["measures"].items() if key != "regrets")
        console.print(f"{case.name}: {shown} {record['ended']}", highlight=False)
    return found


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in ("torch", "botorch", "numba", "optuna", "headstart"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def main(arguments: list[str] | None = None) -> None:
    """Run the cases that are asked for, print the tables, write the JSON file."""
    parser = argparse.ArgumentParser(description="What it takes with how much past: CPU seconds of one thread, memory.")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it works")
    parser.add_argument("--only", default="", help=f"only cases that begin with this: {', '.join(PARTS)}, learn/2000 …")
    parser.add_argument("--seconds", type=int, help="give every case up after so many CPU seconds")
    parser.add_argument("--exact-regret", action="store_true", help="also regrets with every row in every fit (hours)")
    parser.add_argument("--fresh", action="store_true", help="do not go on where an interrupted measurement was")
    parser.add_argument("--store", type=Path, default=Path("out/scale.jsonl"), help="where cases are kept meanwhile")
    parser.add_argument("--out", type=Path, default=Path("results/scale.json"), help="the JSON file")
    options = parser.parse_args(arguments)
    console = Console(width=140)
    if options.fresh:
        options.store.unlink(missing_ok=True)
    cases = [
        ScaleCase(case.part, case.size, case.model, min(case.limit, options.seconds or case.limit))
        for case in all_cases(quick=options.quick, exact_regret=options.exact_regret)
        if case.name.startswith(options.only)
    ]
    found = _run(cases, options.store, console)
    old = json.loads(options.out.read_text())["cases"] if options.only and options.out.exists() else []
    order = {case.name: i for i, case in enumerate(all_cases(quick=options.quick, exact_regret=True))}
    every = {**{record["name"]: record for record in old}, **found}
    record = {
        "cases": sorted(every.values(), key=lambda each: order.get(each["name"], len(order))),
        "versions": _versions(),
        "machine": {"processor": platform.machine(), "threads": 1},
    }
    for table in as_tables(record["cases"]):
        console.print(table)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(record, indent=1) + "\n")
    options.store.unlink(missing_ok=True)
    console.print(f"written to {options.out}")


if __name__ == "__main__":
    main()
