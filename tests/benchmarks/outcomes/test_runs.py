"""Runs of problems with several outcomes, and what is read from them."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.outcomes.report import outcome_results, outcome_sheets
from benchmarks.outcomes.runs import OutcomeUnit
from benchmarks.queue import work_off
from benchmarks.store import Run, Store
from headstart.errors import InputError, NotComparableError


@pytest.mark.parametrize("method", ["headstart", "botorch", "optuna-tpe", "random"])
def test_a_run_is_made_once_and_its_regret_falls(tmp_path: Path, method: str) -> None:
    """On mixtures, whose rule every point keeps; a rerun has nothing to do."""
    store, started = Store(tmp_path), list[int]()
    for _ in range(2):
        assert work_off([OutcomeUnit("mixture", method, 0, 3)], store, on_start=started.append) == []
    assert started == [1, 0]
    (run,) = store.read().runs
    assert all(sum(x) == pytest.approx(1.0, abs=1e-6) for x in run.x)
    assert run.traces["regret"] == sorted(run.traces["regret"], reverse=True)
    assert len(run.traces["seen value"]) == len(run.acquisition_seconds) == 3


def test_unknown_names_are_refused() -> None:
    """Before anything runs."""
    with pytest.raises(InputError, match=r"no problem 'mixtures'.*mixture"):
        OutcomeUnit("mixtures", "random", 0, 3)
    with pytest.raises(InputError, match=r"no method 'rand'.*random"):
        OutcomeUnit("mixture", "rand", 0, 3)


def _run(method: str, seed: int, found: list[float]) -> Run:
    traces: dict[str, list[float]] = {"regret": [1.0 - 0.5 * f for f in found], "found": found, "seen yield": found}
    return Run(
        "suzuki-limit", method, seed, {"steps": 3}, acquisition_seconds=[0.5] * 3, learn_seconds=1.0, traces=traces
    )


def test_methods_are_compared_over_the_seeds_they_share() -> None:
    """Ours finds a result at once, the other at the second evaluation or never: 1 against (2 + 4)/2."""
    runs = [_run("headstart", s, [1.0, 1.0, 1.0]) for s in range(3)]
    runs += [_run("alone", 0, [0.0, 1.0, 1.0]), _run("alone", 1, [0.0, 0.0, 0.0])]
    results = outcome_results(runs, steps=3)
    assert results.methods == ("alone", "headstart")
    sheets = {sheet.name: sheet for sheet in outcome_sheets(results)}
    compared = {"differences", "speed-up", "targets", "profile", "ranks", "overall", "tasks", "verdicts"}
    assert set(sheets) == {"regret", "first", *compared, "seconds", "problems"}
    (row,) = (row for row in sheets["first"].rows if row[0] == "alone")
    assert row == ("alone", 2, "3.000 [2.000, 4.000]", "0.33 [0.25, 0.50]")
    (row,) = (row for row in sheets["differences"].rows if row[1] == 3)
    assert row[:3] == ("alone", 3, 2)
    with pytest.raises(NotComparableError, match="no runs of 20"):
        outcome_results(runs, steps=20)
