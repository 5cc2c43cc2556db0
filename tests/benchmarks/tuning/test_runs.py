"""Tuning runs: the past that belongs to a target, what is tried first, and the report."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.queue import work_off
from benchmarks.read.analysis import series
from benchmarks.store import Run, Store
from benchmarks.tuning.problems import tuning_problem
from benchmarks.tuning.report import CAP, task_scales, tuning_results, tuning_sheets
from benchmarks.tuning.runs import POOL, RIVALS, Evaluations, past_studies, tuning_units
from headstart.errors import NotComparableError

NAME = "kernel-ridge"


@pytest.mark.slow
@pytest.mark.usefixtures("quiet_optuna")
def test_the_past_is_every_other_task_and_its_bests_come_first(tmp_path: Path) -> None:
    """From the oldest to the most recent; the most recent one's best is enqueued first, and training is kept."""
    problem, evaluations = tuning_problem(NAME), Evaluations(tmp_path)
    target = problem.tasks[1]
    past = past_studies(problem, target, 0, evaluations)
    assert [study.study_name for study in past] == [*problem.tasks[2:], problem.tasks[0]]
    assert all(30 <= len(study.trials) <= 60 for study in past)
    assert RIVALS["tpe-bests"].enqueued(past)[0] == past[-1].best_params
    assert RIVALS["tpe"].enqueued(past) == []
    spent = evaluations.seconds
    assert evaluations.curve(problem, problem.tasks[0], past[-1].best_params) == [past[-1].best_value]
    assert evaluations.seconds == spent


@pytest.mark.slow
def test_units_are_run_once_and_reported(tmp_path: Path) -> None:
    """Pools, then every target with every method; a rerun has nothing to do."""
    store, started = Store(tmp_path / "store"), list[int]()
    for _ in range(2):
        units = tuning_units([NAME], ["random", "tpe"], seeds=1, trials=3, pool=10, cache=tmp_path / "cache")
        assert work_off(units, store, on_start=started.append) == []
    assert started == [15, 0]
    found = tuning_results(store.read().runs, trials=3)
    assert {cell.method for cell in found.results.cells} == {"tpe", "random"}
    assert [sheet.name for sheet in tuning_sheets(found)][:3] == ["tuning", "differences", "regret"]
    assert len(list(series(found.results))) == 10


def _run(method: str, values: list[float | None], task: str = "diabetes", seed: int = 0) -> Run:
    settings = {"task": task, "steps": len(values), "revision": 1}
    return Run(NAME, method, seed, settings, label=task, acquisition_seconds=[0.1], traces={"value": values})


def test_regrets_are_between_the_best_known_and_the_median_of_the_pool() -> None:
    """(lowest so far − 1)/(3 − 1) where the best of all runs is 1 and the median 3; pruned trials gain nothing."""
    pool = _run(POOL, [2.0, 3.0, 4.0])
    ours, theirs = _run("headstart", [3.0, None, 1.0]), _run("tpe", [100.0, 2.0, 2.0])
    found = tuning_results([pool, ours, theirs], trials=3)
    cells = found.results.on(NAME)
    assert task_scales([pool, ours, theirs])[NAME, "diabetes"].best == 1.0
    assert cells["headstart"].regret.tolist() == [[1.0, 1.0, 0.0]]
    assert cells["tpe"].regret.tolist() == [[CAP, 0.5, 0.5]]
    overall = tuning_sheets(found)[0]
    assert [row[0] for row in overall.rows] == ["headstart", "tpe"]
    with pytest.raises(NotComparableError, match="No target and seed has runs of 4 trials"):
        tuning_results([pool, ours], trials=4)
