"""What is run, and in which order; what a store holds already is not run again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.outcomes.runs import OutcomeCell, OutcomeRun, append_outcomes, compare_one, read_outcomes
from benchmarks.queue import run_all
from headstart.gp.threads import round_alike


def outcome_cells(
    problems: Sequence[str],
    methods: Sequence[str],
    *,
    runs: int,
    steps: int,
    first: int = 0,
    label: str = "",
) -> list[OutcomeCell]:
    """Seed by seed all problems with all methods: whoever stops early has equally many runs of each."""
    seeds = range(first, first + runs)
    return [OutcomeCell(p, seed, m, steps, label) for seed in seeds for p in problems for m in methods]


def work_through(
    wanted: Sequence[OutcomeCell],
    store: Path,
    *,
    jobs: int = 1,
    seconds: float = float("inf"),
    provenance: dict[str, Any] | None = None,
    on_run: Callable[[int, OutcomeCell, Exception | None], None] = lambda _left, _cell, _error: None,
) -> list[tuple[OutcomeCell, Exception]]:
    """Run what the store does not hold, and write every run as soon as it is done; those that failed are returned.

    After ``seconds`` nothing new is begun.
    """
    done = {run.key for run in read_outcomes(store)}
    return run_all(
        [cell for cell in wanted if cell.key not in done],
        partial(_run, provenance or {}),
        lambda run: append_outcomes(store, [run]),
        jobs=jobs,
        seconds=seconds,
        on_run=on_run,
    )


def _run(provenance: dict[str, Any], cell: OutcomeCell) -> OutcomeRun:
    round_alike()
    return compare_one(cell, provenance)
