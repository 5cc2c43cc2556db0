"""Experiments: problems, cut into units, run to the end through failures and kills."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.methods.method import Settings
from benchmarks.problems.shared_tables import OWN, SHARED
from benchmarks.queue import Unit
from benchmarks.run.experiment import (
    BenchExperiment,
    LockstepUnit,
    ProblemSpec,
    device_of,
    execute,
    lockstep_on,
)
from benchmarks.run.presets import JOINT, PRESETS, preset, requested
from benchmarks.store import Run, Store
from headstart import InputError, MissingExtraError

CHEAP = BenchExperiment("cheap", (ProblemSpec(family="forrester", points=5),), ("random",), runs=4, steps=2)


# ── problems ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({}, "either a family or a table"),
        ({"family": "alpine", "table": "svm"}, "either a family or a table"),
        ({"family": "rosenbrock"}, r"no function family 'rosenbrock'\. Known are: forrester"),
        ({"table": "svmm"}, r"no table 'svmm'\. Known are: svm, switches, random_forest, "),
        ({"family": "alpine", "points": 0}, "0 points"),
    ],
)
def test_an_unknown_problem_is_refused_before_anything_runs(spec: dict[str, Any], message: str) -> None:
    """And the message lists the known ones."""
    with pytest.raises(InputError, match=message):
        ProblemSpec(**spec).build()


# ── units ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_units_are_problems_times_methods_times_chunks_of_seeds() -> None:
    """``runs_of`` lowers the runs of a method, and never raises them."""
    specs = (ProblemSpec(family="forrester"), ProblemSpec(family="alpine"))
    experiment = BenchExperiment("e", specs, ("gpbo", "hgp"), runs=5, runs_of={"hgp": 2, "gpbo": 9})
    units = list(experiment.units(chunk=3))
    assert [(u.problem.family, u.method, u.seeds) for u in units[:3]] == [
        ("forrester", "gpbo", (0, 1, 2)),
        ("forrester", "gpbo", (3, 4)),
        ("forrester", "hgp", (0, 1)),
    ]
    assert len(units) == 6


def test_presets_keep_the_expensive_methods_at_their_number_of_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """``runs`` says how many there are, ``quick`` keeps the cheap methods; unknown names are listed."""
    (experiment,) = preset("fig2", runs=500)
    seeds = {m: sum(len(u.seeds) for u in experiment.units(25) if u.method == m) // 3 for m in experiment.methods}
    assert (seeds["shgp"], seeds["hgp"], seeds["mtgp"]) == (500, 50, 10)
    (quick,) = preset("fig2", quick=True)
    assert (quick.runs, quick.steps, "hgp" in quick.methods, "shgp" in quick.methods) == (5, 15, False, True)
    with pytest.raises(InputError, match=r"no preset 'fig9'\. The known ones are compare, .*, fig2"):
        preset("fig9")
    monkeypatch.delenv("HEADSTART_DATA", raising=False)
    here = [
        e for name in PRESETS if name not in ("gc3p", "rivals") for e in preset(name)
    ]  # these have shared tables alone
    assert all(spec.build().name for e in here for spec in e.problems)
    (quick,) = preset("gc3p", quick=True)
    assert quick.methods == ("random", "gc3p")


def test_the_full_study_has_the_papers_runs_of_every_method() -> None:
    """50, in one dimension 200, on the SVM table 500, of the timed runs 7; what is not in the paper keeps its own."""

    def seeds(name: str) -> set[int]:
        units = [unit for experiment in preset(name, full=True) for unit in experiment.units(1000)]
        return {len(unit.seeds) for unit in units}

    found = {name: seeds(name) for name in ("fig2", "one-dim", "fig4", "runtime", "ablation", "order")}
    assert found == {"fig2": {50}, "one-dim": {200}, "fig4": {50, 500}, "runtime": {7}, "ablation": {50}, "order": {50}}
    svm = {e.runs for e in preset("fig4", full=True) if e.problems[0].table == "svm"}
    assert svm == {500}


def test_timed_runs_of_joint_models_are_fewer_where_they_take_minutes() -> None:
    """Seven runs in every cell of ``runtime``, but two of a joint model with 250 points and one with 500."""
    units = [unit for experiment in preset("runtime") for unit in experiment.units(25)]
    runs = {(unit.problem.points, unit.method): len(unit.seeds) for unit in units}
    assert len(runs) == len(units) == 5 * 8
    fewer = {(points, name): n for points, n in ((250, 2), (500, 1)) for name in JOINT}
    assert {cell: n for cell, n in runs.items() if n != 7} == fewer


@pytest.mark.parametrize("name", ["compare", "adversarial"])
def test_presets_go_without_shared_tables_that_are_not_there(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """They are named in a warning; one whose file is in the folder of HEADSTART_DATA stays."""
    monkeypatch.delenv("HEADSTART_DATA", raising=False)

    def tables(experiments: Iterable[BenchExperiment]) -> set[str | None]:
        return {spec.table for experiment in experiments for spec in experiment.problems} - {None}

    assert tables(preset(name)) <= set(OWN)
    (said,) = caplog.messages
    assert said.startswith(f"{name}: left out")
    assert all(str(table) in said for table in tables(PRESETS[name]) & set(SHARED))
    caplog.clear()
    (tmp_path / SHARED["adaboost"].file).touch()
    monkeypatch.setenv("HEADSTART_DATA", str(tmp_path))
    assert tables(preset(name)) - {*OWN} == {"adaboost"}
    assert "adaboost" not in caplog.messages[0]
    for table in SHARED.values():
        (tmp_path / table.file).touch()
    caplog.clear()
    assert preset(name) == PRESETS[name]
    assert not caplog.messages


def test_misleading_and_scarce_sources_stay_with_five_tables() -> None:
    """Those that results were published for; ``compare`` has every one."""
    tables = {name: {s.table for e in PRESETS[name] for s in e.problems} - {None} for name in PRESETS}
    assert tables["compare"] == {*OWN, *SHARED}
    five = {"svm", "random_forest", "adaboost", "xgboost", "direct_arylation"}
    assert tables["adversarial"] == tables["scarce"] == five


def test_a_preset_of_nothing_but_shared_tables_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing would be left of it: building its problems says what is missing."""
    monkeypatch.delenv("HEADSTART_DATA", raising=False)
    assert preset("gc3p") == PRESETS["gc3p"]


def test_what_is_asked_for_overrides_what_is_written() -> None:
    """Methods, runs and evaluations of a preset."""
    (changed,) = requested("fig2", methods=("random",), runs=7, evaluations=9)
    assert (changed.methods, changed.runs, changed.steps) == (("random",), 7, 9)
    assert requested("runtime")[0].runs == PRESETS["runtime"][0].runs


# ── running ───────────────────────────────────────────────────────────────────────────────────────────────────────


class _Failing(ProblemSpec):
    """A problem that can be built, and not drawn for some seeds."""

    def build(self) -> Any:
        problem = super().build()
        draw = problem.draw

        def fail(seeds: Any, steps: int) -> Any:
            if 1 in seeds:
                raise InputError("seed 1 is unlucky")
            if 2 in seeds:
                raise ZeroDivisionError("and seed 2 is worse")
            return draw(seeds, steps)

        problem.draw = fail  # type: ignore[method-assign]
        return problem


def _seeds(unit: Unit) -> tuple[int, ...]:
    assert isinstance(unit, LockstepUnit)
    return unit.seeds


def test_a_unit_that_fails_is_reported_and_the_rest_goes_on(tmp_path: Path) -> None:
    """Whatever the exception is; a rerun tries it again."""
    store = Store(tmp_path)
    experiment = BenchExperiment("e", (_Failing(family="forrester", points=5),), ("random",), runs=4, steps=2)
    told: list[tuple[tuple[int, ...], str]] = []
    failed = execute([experiment], store, chunk=1, on_unit=lambda unit, error: told.append((_seeds(unit), str(error))))
    assert [(_seeds(unit), type(error)) for unit, error in failed] == [
        ((1,), InputError),
        ((2,), ZeroDivisionError),
    ]
    assert told == [((0,), "None"), ((1,), "seed 1 is unlucky"), ((2,), "and seed 2 is worse"), ((3,), "None")]
    assert [run.seed for run in store.read().runs] == [0, 3]
    assert len(execute([experiment], store, chunk=1)) == 2


@pytest.mark.slow
def test_processes_give_what_one_process_gives(tmp_path: Path) -> None:
    """Two at once: the same runs, in any order."""
    one, two = Store(tmp_path / "one"), Store(tmp_path / "two")
    assert execute([CHEAP], one, chunk=2) == execute([CHEAP], two, chunk=2, jobs=2) == []
    regrets = [{run.key: run.regret for run in store.read().runs} for store in (one, two)]
    assert regrets[0] == regrets[1]
    assert len(regrets[0]) == 4


def test_engines_devices_and_numbers_that_do_not_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Are refused before anything runs; Ray that is not installed is named with its extra."""
    store = Store(tmp_path)
    with pytest.raises(InputError, match=r"no engine 'slurm'\. The known ones are process, ray"):
        execute([CHEAP], store, engine="slurm")
    with pytest.raises(InputError, match=r"no device 'tpu'\. The known ones are cpu and cuda"):
        execute([CHEAP], store, device="tpu")
    with pytest.raises(InputError, match="jobs must be at least 1, but it is 0"):
        execute([CHEAP], store, jobs=0)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"headstart\[ray\]"):
        execute([CHEAP], store, engine="ray")
    assert not store.path.exists()


def test_a_table_that_was_changed_is_not_mixed_with_its_earlier_runs(tmp_path: Path) -> None:
    """The store knows which data its runs were made on."""
    table = BenchExperiment("e", (ProblemSpec(table="svm", sources=1, rows=2),), ("random",), runs=1, steps=2)
    store = Store(tmp_path)
    assert execute([table], store) == []
    (run,) = store.read().runs
    store.append([replace(run, provenance={**run.provenance, "data": "other"})])
    with pytest.raises(InputError, match=r"has runs of svm_sklearn\[.*, but on other data. Take another folder"):
        execute([table], store)


_PROGRAM = """
import sys
from pathlib import Path
from benchmarks.run.experiment import BenchExperiment, ProblemSpec, execute
from benchmarks.methods.method import Settings
from benchmarks.store import Store

experiment = BenchExperiment(
    "killed",
    (ProblemSpec(family="forrester", points=8),),
    ("gpbo", "shgp"),
    runs=4,
    steps=3,
    settings=Settings(restarts=2, max_iterations=20),
)
execute([experiment], Store(Path(sys.argv[1])), chunk=1, on_unit=lambda unit, error: print(unit.seeds, flush=True))
"""


@pytest.mark.slow
def test_a_killed_program_loses_the_unit_in_flight_and_no_more(tmp_path: Path) -> None:
    """``kill -9`` after three of eight units, and half a line as a full disk leaves it: the rerun does the rest."""
    killed = subprocess.Popen([sys.executable, "-c", _PROGRAM, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert killed.stdout is not None
    with killed.stdout:
        for _ in range(3):
            assert killed.stdout.readline()
        os.kill(killed.pid, signal.SIGKILL)
    assert killed.wait(30) == -signal.SIGKILL
    store = Store(tmp_path)
    saved = store.read()
    assert 3 <= len(saved.runs) < 8
    assert saved.remarks == ()
    with store.path.open("a") as file:
        file.write('{"schema": 1, "problem": "forr')
    again = subprocess.run([sys.executable, "-c", _PROGRAM, str(tmp_path)], capture_output=True, text=True, check=True)
    assert len(again.stdout.splitlines()) == 8 - len(saved.runs)
    after = store.read()
    assert {run.key for run in saved.runs} <= {run.key for run in after.runs}
    assert sorted((run.method, run.seed) for run in after.runs) == [(m, s) for m in ("gpbo", "shgp") for s in range(4)]
    kept: dict[Any, Run] = {run.key: run for run in after.runs}
    assert all(kept[run.key] == run for run in saved.runs)
    assert len(after.remarks) == 1


def test_a_unit_that_does_not_fit_into_the_gpu_runs_in_halves(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The runs come in their order, and it is said; one run that does not fit is an error."""
    tried: list[tuple[int, ...]] = []

    def full(_: object, method: str, seeds: tuple[int, ...], **__: object) -> list[Run]:
        tried.append(seeds)
        if len(seeds) > fits:
            raise torch.OutOfMemoryError("full")
        return [Run("p", method, seed, {}, "", [], [], [], [], [], [], 0.0) for seed in seeds]

    monkeypatch.setattr("benchmarks.run.experiment.run_batch", full)
    unit = LockstepUnit(ProblemSpec(family="branin", points=300), "hgp", (0, 1, 2, 3, 4), 3, Settings())
    fits = 2
    assert [run.seed for run in unit.run("cuda")] == [0, 1, 2, 3, 4]
    assert tried == [(0, 1, 2, 3, 4), (0, 1), (2, 3, 4), (2,), (3, 4)]
    assert "cuda: 5 runs at once do not fit into its memory; half of them." in caplog.text
    fits = 0
    with pytest.raises(torch.OutOfMemoryError):
        unit.run("cuda")


def test_on_a_gpu_are_run_joint_models_of_many_rows() -> None:
    """All else goes to the processor, in smaller lockstep; without a GPU everything does."""
    large, small = (ProblemSpec(family="hartmann6", points=points) for points in (100, 99))
    several = ProblemSpec(family="hartmann6", sources=3, points=40)
    assert device_of(large, "hgp", "cuda:1") == device_of(several, "wsgp", "cuda:1") == "cuda:1"
    for problem, name, device in ((small, "hgp", "cuda"), (large, "shgp", "cuda"), (large, "hgp", "cpu")):
        assert device_of(problem, name, device) == "cpu"
    experiment = BenchExperiment("e", (large,), ("hgp", "shgp"), runs=50)
    assert [(u.method, len(u.seeds)) for u in experiment.units(device="cuda")] == [("hgp", 50), *[("shgp", 25)] * 2]


def test_a_gpu_takes_more_runs_at_once() -> None:
    """25 runs in lockstep on a processor, 50 on a GPU, whichever one it is."""
    assert [lockstep_on(device) for device in ("cpu", "cuda", "cuda:1")] == [25, 50, 50]
