"""Runs: what is enqueued, what is kept, and that a store goes on where it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest

from benchmarks.tuning import past as past_module
from benchmarks.tuning import work
from benchmarks.tuning.evaluations import Evaluations, default_cache
from benchmarks.tuning.past import objective_of, past_studies, past_tasks
from benchmarks.tuning.problems.catalogue import PROBLEMS
from benchmarks.tuning.rivals import POOL, RIVALS, rival
from benchmarks.tuning.runs import TuningCell, TuningRun, append_runs, read_runs, tune
from benchmarks.tuning.work import cells, work_off
from headstart.errors import InputError

pytestmark = pytest.mark.usefixtures("quiet_optuna")
SMALL = "diverging-sgd"  # the quickest to train
TARGET = "friedman"


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What was trained, for all tests of this file."""
    return tmp_path_factory.mktemp("cache")


def test_the_past_is_every_other_task_from_old_to_new() -> None:
    """Those after the target come first, the one before it is the most recent."""
    assert past_tasks(PROBLEMS[SMALL], TARGET) == (
        "iris-petal-width", "diabetes", "wine-alcohol", "cancer-radius",
    )  # fmt: skip


def test_past_studies_are_as_users_have_them(cache: Path) -> None:
    """30 to 60 finished trials each, and some diverged beyond 1e12."""
    studies = past_studies(PROBLEMS[SMALL], TARGET, 0, Evaluations(cache))
    assert [s.study_name for s in studies] == list(past_tasks(PROBLEMS[SMALL], TARGET))
    assert all(30 <= len(s.trials) <= 60 for s in studies)
    assert max(t.value or 0 for s in studies for t in s.trials) > 1e12


def test_the_bests_are_enqueued_newest_first(cache: Path) -> None:
    """They are the first trials, in this order; without the past nothing is enqueued."""
    evaluations = Evaluations(cache)
    past = past_studies(PROBLEMS[SMALL], TARGET, 0, evaluations)
    run = tune(TuningCell(SMALL, TARGET, 0, "tpe-bests", 5), evaluations)
    assert run.params[:4] == [study.best_params for study in reversed(past)]
    assert RIVALS["tpe"].enqueued(past) == []
    assert RIVALS["tpe-bests"].enqueued([past[0], past[0]]) == [past[0].best_params]


@pytest.mark.parametrize("name", RIVALS)
def test_every_method_runs_and_repeats_itself(name: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal seeds give equal trials, the past included; another seed gives others."""
    monkeypatch.setattr(past_module, "_FEWEST", 6)
    monkeypatch.setattr(past_module, "_MOST", 6)
    evaluations = Evaluations(cache)
    cell = TuningCell(SMALL, TARGET, 0, name, 2)
    run = tune(cell, evaluations)
    assert len(run.values) == len(run.params) == len(run.seconds) == 2
    assert run.key == cell.key
    assert tune(cell, Evaluations(cache)).params == run.params
    other = TuningCell(SMALL, TARGET, 1, name, 2)
    assert tune(other, evaluations).params != run.params


def test_a_pruned_trial_has_no_value_and_the_pool_prunes_nothing(cache: Path) -> None:
    """The median pruner ends some of the later trials."""
    evaluations = Evaluations(cache)
    run = tune(TuningCell("pruned-network", "iris-sepals", 0, POOL, 9), evaluations)
    assert None not in run.values
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0), pruner=optuna.pruners.MedianPruner())
    study.optimize(objective_of(PROBLEMS["pruned-network"], "iris-sepals", evaluations), n_trials=9)
    assert any(t.state == optuna.trial.TrialState.PRUNED for t in study.trials)


def test_what_was_trained_is_not_trained_again(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process finds the scores on the disk, bit for bit."""
    problem = PROBLEMS["neighbours"]
    params = {"neighbours": 3, "weights": "uniform", "power": 1.1, "scaled": True}
    first, second = Evaluations(cache), Evaluations(cache)
    curve = first.curve(problem, "iris-sepals", params)
    assert first.seconds > 0
    assert second.curve(problem, "iris-sepals", dict(reversed(params.items()))) == curve
    assert second.seconds == 0
    assert second.curve(problem, "iris-sepals", {**params, "power": np.nextafter(1.1, 2)}) is not None
    assert second.seconds > 0
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert default_cache() == Path("/somewhere/headstart/tuning")


def test_pairs_come_in_turn() -> None:
    """All pools first; then a pair of every problem with all methods, before the next pair of the first."""
    found = cells(["svm", SMALL], ["tpe", "random"], seeds=2, trials=20, pool=150)
    assert len(found) == 10 + 2 * 5 * 2 * 2
    assert all(cell.method == POOL and cell.trials == 150 for cell in found[:10])
    first = [(cell.problem, cell.task, cell.method) for cell in found[10:14]]
    assert first == [
        ("svm", "cancer-means", "tpe"),
        ("svm", "cancer-means", "random"),
        (SMALL, "diabetes", "tpe"),
        (SMALL, "diabetes", "random"),
    ]
    assert {cell.seed for cell in found[10:30]} == {0}


def test_a_store_goes_on_where_it_was(cache: Path, tmp_path: Path) -> None:
    """What it holds is not run again; a line cut off in the middle is; other labels and lengths are other runs."""
    wanted = cells([SMALL], ["random"], seeds=1, trials=3, pool=4)[-2:]
    done: list[TuningCell] = []

    def run(some: list[TuningCell]) -> list[TuningCell]:
        done.clear()
        assert work_off(some, tmp_path, cache, on_run=lambda _n, cell, _e: done.append(cell)) == []
        return list(done)

    assert run(wanted) == wanted
    before = read_runs(tmp_path)
    assert run(wanted) == []
    path = tmp_path / "runs.jsonl"
    path.write_bytes(path.read_bytes()[:-50])
    assert run(wanted) == wanted[1:]
    assert [r.values for r in read_runs(tmp_path)] == [r.values for r in before]
    labelled = cells([SMALL], ["random"], seeds=1, trials=3, pool=4, label="random-before")[-2:]
    assert run(labelled) == labelled
    assert {r.method for r in read_runs(tmp_path)} == {"random", "random-before"}
    append_runs(tmp_path, [before[0]])
    assert len(read_runs(tmp_path)) == 4


def test_nothing_is_begun_after_the_time_is_up(cache: Path, tmp_path: Path) -> None:
    """Not even the first run."""
    wanted = cells([SMALL], ["random"], seeds=1, trials=3, pool=4)
    assert work_off(wanted, tmp_path, cache, seconds=0) == []
    assert read_runs(tmp_path) == ()


def test_a_run_that_fails_is_reported_and_the_others_go_on(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not in the store, so that it will be tried again."""
    wanted = cells([SMALL], ["random"], seeds=1, trials=3, pool=4)[-2:]

    def fails(cell: TuningCell, evaluations: Evaluations, provenance: dict[str, Any]) -> TuningRun:
        if cell == wanted[0]:
            raise ZeroDivisionError("no")
        return tune(cell, evaluations, provenance)

    monkeypatch.setattr(work, "tune", fails)
    failed = work_off(wanted, tmp_path, cache)
    assert [(cell, type(error)) for cell, error in failed] == [(wanted[0], ZeroDivisionError)]
    assert len(read_runs(tmp_path)) == 1


def test_an_unknown_method_is_named() -> None:
    """With those that there are."""
    with pytest.raises(InputError, match=r"no method 'smac'.*headstart, tpe-bests"):
        rival("smac")
