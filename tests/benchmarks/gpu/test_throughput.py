"""Runs per GPU-second: what is measured, and what it amounts to for cells that were not reached."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from benchmarks.gpu import throughput
from benchmarks.gpu.throughput import CellSpeed, GpuCell, all_cells, main, measure_cell, summary
from benchmarks.methods.method import Settings
from benchmarks.run.experiment import ProblemSpec

FAST = Settings(restarts=1, max_iterations=3)


def cell(name: str, method: str = "shgp", *, experiment: str = "fig2", size: int = 10, steps: int = 20) -> GpuCell:
    """A cell of a hundred runs, ten at a time."""
    spec = ProblemSpec(family="branin", points=10)
    return GpuCell(experiment, name, spec, method, steps, FAST, 100, size, 10, "cpu")


def test_the_cells_are_those_of_the_paper_at_its_numbers_of_runs() -> None:
    """50 runs of every method, joint ones as well, 500 on the SVM table, 200 in one dimension, 7 for the runtimes."""
    cells = all_cells("cuda", names=["fig2", "fig4", "one-dim", "runtime"])
    runs = {(c.experiment, c.problem.table): set[int]() for c in cells}
    for each in cells:
        runs[each.experiment, each.problem.table].add(each.runs)
    assert runs == {
        ("fig2", None): {50},
        ("fig4", None): {50},
        ("fig4", "svm"): {500},
        ("one-dim", None): {200},
        ("runtime", None): {7},
    }
    assert {c.together for c in cells if c.problem.table} == {200}
    assert {c.together for c in all_cells("cpu", names=["fig2"])} == {25}
    assert len({c.key for c in cells}) == len(cells)


def test_the_largest_cell_of_every_method_comes_first() -> None:
    """So that no method is unknown when the time is up."""
    cells = all_cells("cpu", names=["fig3"])
    methods = {c.method for c in cells}
    first = cells[: len(methods)]
    assert {c.method for c in first} == methods
    assert {c.size for c in first} == {max(c.size for c in cells)}


@pytest.mark.parametrize("method", ["gpbo", "shgp", "hgp", "random"])
@pytest.mark.parametrize(
    "spec", [ProblemSpec(family="branin", points=10), ProblemSpec(table="svm", sources=2, rows=10)]
)
def test_a_cell_is_measured(method: str, spec: ProblemSpec) -> None:
    """Learning and steps take time, on functions and on tables."""
    found = measure_cell(replace(cell("x", method), problem=spec, steps=6, together=2))
    assert found.step > 0
    assert found.learn >= 0
    assert found.run_seconds == (found.learn + 6 * found.step) / 2


def test_a_lockstep_that_does_not_fit_into_the_memory_is_halved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the runs, and half again, until they fit; one that does not is an error."""
    tried: list[int] = []

    def full(of: GpuCell) -> CellSpeed:
        tried.append(of.together)
        if of.together > fits:
            raise torch.OutOfMemoryError("full")
        return CellSpeed(of, 1.0, 1.0, 0.0)

    monkeypatch.setattr(throughput, "_measure", full)
    monkeypatch.setattr(throughput, "_warm_up", lambda *_: None)
    fits = 3
    assert measure_cell(cell("x")).cell.together == 2
    assert tried == [10, 5, 2]
    fits = 0
    with pytest.raises(torch.OutOfMemoryError):
        measure_cell(cell("x"))


def test_a_cell_that_was_not_reached_costs_what_the_next_larger_one_does() -> None:
    """Its own steps, the other's seconds; of the same settings where there are some; unknown without any."""
    small, middle, large = (cell(name, size=size) for name, size in (("a", 10), ("b", 20), ("c", 40)))
    long = replace(small, name="d", steps=40)
    other = replace(cell("short", size=20), settings=Settings(restarts=2))
    unknown = cell("a", "hgp")
    found = [
        CellSpeed(middle, learn=2.0, step=0.1, memory=0.0),
        CellSpeed(large, learn=4.0, step=0.2, memory=0.0),
        CellSpeed(other, learn=0.0, step=0.0001, memory=0.0),
    ]
    result = summary([small, middle, large, long, unknown], found, jobs=4)
    own = result["experiments"]["fig2"]
    # ten locksteps of ten runs each, on a quarter of the GPU
    seconds = [
        10 * (2.0 + 20 * 0.1) / 4,
        10 * (2.0 + 20 * 0.1) / 4,
        10 * (4.0 + 20 * 0.2) / 4,
        10 * (2.0 + 40 * 0.1) / 4,
    ]
    assert own["gpu_seconds"] == pytest.approx(sum(seconds))
    assert own["runs"] == 400
    assert own["runs_per_gpu_second"] == pytest.approx(400 / sum(seconds))
    assert (own["cells"], own["measured"], own["unknown"]) == (5, 2, ["a, hgp"])
    paper = result["paper"]
    assert paper["gpu_hours"] == pytest.approx(sum(seconds) / 3600)
    assert paper["share_measured"] == pytest.approx(sum(seconds[1:3]) / sum(seconds))
    assert paper["cells_unknown"] == 1
    assert not paper["complete"]
    assert paper["cpu_hours_per_gpu_hour"] is None


def test_hours_are_compared_only_where_all_of_the_paper_is_there() -> None:
    """Every experiment, the SVM table among them, and no cell of which nothing is known."""
    names = [name for name in throughput.PAPER_RUNS if name != "fig4"]
    svm = replace(cell("svm", experiment="fig4"), problem=ProblemSpec(table="svm"))
    cells = [*(cell(name, experiment=name) for name in names), svm]
    found = [CellSpeed(each, 0.0, 0.18, 0.0) for each in cells]
    paper = summary(cells, found, jobs=1)["paper"]
    assert paper["gpu_hours"] == pytest.approx(6 * 10 * 20 * 0.18 / 3600)
    assert paper["cpu_hours_per_gpu_hour"] == pytest.approx(154_353 / paper["gpu_hours"])
    assert not summary(cells[:-1], found, jobs=1)["paper"]["complete"]


def test_what_is_not_in_the_paper_does_not_count_for_its_study() -> None:
    """``order`` has its runs per second, and adds no hours."""
    own = cell("a", experiment="order")
    result = summary([own], [CellSpeed(own, 1.0, 1.0, 0.0)], jobs=1)
    assert result["experiments"]["order"]["runs_per_gpu_second"] > 0
    assert result["paper"]["gpu_hours"] == 0


def test_the_program_stops_in_time_and_writes_what_it_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file after every cell; what was not reached is extrapolated or unknown."""
    out = tmp_path / "folder" / "gpu.json"
    main(["--device", "cpu", "--seconds", "0.01", "--together", "2", "--only", "one-dim", "--out", str(out)])
    record = json.loads(out.read_text())
    assert len(record["cells"]) == 1
    assert record["cells"][0]["together"] == 2
    assert record["failed"] == []
    assert record["experiments"]["one-dim"]["measured"] == 1
    assert record["provenance"]["device"] == "cpu"
    assert "21 left" in capsys.readouterr().out
