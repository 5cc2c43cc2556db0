"""How many runs of the paper's experiments a GPU makes in a second: ``python -m benchmarks.gpu.throughput``.

A cell is a problem and a method of an experiment; all its runs go in lockstep, as ``reproduce --device cuda`` has
them. Of every cell that there is time for, learning the sources is timed, and two of the steps: those with a
quarter and three quarters of the results, random ones, since what they are does not change the work. A run takes

    learn + steps · (first + second)/2

The largest problem of every method comes first, then that of every method of every experiment, then the smallest ones
there, then the others. A cell that
was not reached is taken to cost, step by step, what the nearest one of its method costs that is at least as large.
Several processes share the GPU (``--jobs``), as those of ``reproduce --jobs`` do; a second of one of them is
then that part of a GPU-second.

Numbers of runs are the paper's, for all methods alike: 50, on the SVM table 500, in one dimension 200, 7 for the
runtimes; ``order`` and ``gc3p`` are not in the paper, and do not count for what its study takes.
"""

from __future__ import annotations

import argparse
import json
import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import torch

from benchmarks.methods.method import Settings
from benchmarks.methods.registry import method
from benchmarks.queue import run_all
from benchmarks.run.execution import lockstep_on
from benchmarks.run.experiment import BenchExperiment, ProblemSpec
from benchmarks.run.presets import PRESETS
from benchmarks.run.runner import evaluate, provenance
from headstart.data.dataset import Dataset
from headstart.errors import MissingDataError

logger = logging.getLogger(__name__)

PAPER_HOURS = 154_353  # CPU-hours, "including early debugging and evaluations" (the paper's last appendix)
PAPER_RUNS = {"fig2": 50, "fig3": 50, "fig4": 50, "one-dim": 200, "runtime": 7, "ablation": 50}
_SVM_RUNS = 500
_OTHERS = ("order", "gc3p")
_COSTLY = {name: i for i, name in enumerate(("mtgp", "mtkgp", "hgp", "wsgp"))}
_LEAST = 1e-6  # seconds: random search takes no time worth measuring


@dataclass(frozen=True, slots=True)
class GpuCell:
    """A problem and a method of an experiment. ``size`` is how many source points there are, ``runs`` the paper's."""

    experiment: str
    name: str
    problem: ProblemSpec
    method: str
    steps: int
    settings: Settings
    runs: int
    size: int
    together: int  # runs in lockstep
    device: str

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells it from others."""
        return self.experiment, self.name, self.method


@dataclass(frozen=True, slots=True)
class CellSpeed:
    """Seconds of the lockstep of a cell: learning, and a step on average; and the most memory of the GPU, in MB."""

    cell: GpuCell
    learn: float
    step: float
    memory: float

    @property
    def run_seconds(self) -> float:
        """Seconds of one run, of a process that has the device."""
        return (self.learn + self.cell.steps * self.step) / self.cell.together


def all_cells(device: str, together: int | None = None, names: Sequence[str] = ()) -> list[GpuCell]:
    """Those of all experiments, in the order in which they are measured."""
    cells = []
    for name in names or (*PAPER_RUNS, *_OTHERS):
        for experiment in PRESETS[name]:
            cells += list(_cells_of(name, experiment, device, together))
    ordered: dict[GpuCell, None] = {}
    by_size = sorted(cells, key=lambda cell: cell.size)
    each_method, each_experiment = ({key(cell): cell for cell in by_size}.values() for key in (_method, _place))
    smallest = {_place(cell): cell for cell in reversed(by_size)}.values()
    for part in (each_method, each_experiment, smallest, cells):
        # joint models first: whatever is not reached in the end is cheap
        for cell in sorted(part, key=lambda cell: _COSTLY.get(cell.method, len(_COSTLY))):
            ordered.setdefault(cell)
    return list(ordered)


def _method(cell: GpuCell) -> tuple[str, Settings]:
    return cell.method, cell.settings


def _place(cell: GpuCell) -> tuple[str, str]:
    return cell.experiment, cell.method


def _cells_of(name: str, experiment: BenchExperiment, device: str, together: int | None) -> Iterator[GpuCell]:
    for spec in experiment.problems:
        try:
            problem = spec.build()
            instance = problem.draw([0], experiment.steps)
        except (MissingDataError, ImportError) as error:  # a table that is not here, or nothing to read it with
            logger.warning("%s: %s is left out: %s", name, spec.table, error)
            continue
        runs = _SVM_RUNS if spec.table == "svm" else PAPER_RUNS.get(name, experiment.runs)
        for each in experiment.methods:
            yield GpuCell(
                experiment=name,
                name=problem.name,
                problem=spec,
                method=each,
                steps=experiment.steps,
                settings=experiment.settings_of.get(each, experiment.settings),
                runs=runs,
                size=sum(source.n for source in instance.sources),
                together=min(runs, together or lockstep_on(device)),
                device=device,
            )


def _wait_for(device: str) -> float:
    if device.startswith("cuda"):
        torch.cuda.synchronize()
    return time.perf_counter()


@cache
def _warm_up(method_name: str, device: str) -> None:
    """What is loaded when a method is used for the first time on a device is not what a run takes."""
    spec = ProblemSpec(family="branin", points=12)
    _measure(GpuCell("", "", spec, method_name, 6, Settings(restarts=2, max_iterations=5), 2, 12, 2, device))


def measure_cell(cell: GpuCell) -> CellSpeed:
    """Time the learning and two steps of its lockstep, which is halved where the memory is full."""
    _warm_up(cell.method, cell.device)
    try:
        return _measure(cell)
    except torch.OutOfMemoryError:
        if cell.together == 1:
            raise
    torch.cuda.empty_cache()
    return measure_cell(replace(cell, together=cell.together // 2))


def _measure(cell: GpuCell) -> CellSpeed:
    seeds, device = range(cell.together), cell.device
    problem = cell.problem.build()
    instance = problem.draw(seeds, cell.steps).to(device)
    if device.startswith("cuda"):
        torch.cuda.reset_peak_memory_stats()
    begin = _wait_for(device)
    search = method(cell.method).begin(instance, problem.name.partition("[")[0], seeds, cell.settings)
    learn = _wait_for(device) - begin
    levels = () if instance.space is None else instance.space.categories
    target = Dataset.empty(instance.d, batch_shape=(len(seeds),), device=device, categories=levels)
    allowed = None if instance.candidates is None else instance.candidates.real.clone()
    seconds = []
    for n in (cell.steps // 4, 3 * cell.steps // 4):
        while target.n < n:
            choice = search.at_random(target, allowed)
            result = evaluate(instance, choice, allowed) + instance.noise[:, target.n]
            target = target.with_point(choice.x, result)
        begin = _wait_for(device)
        search.propose(target, allowed)
        seconds.append(_wait_for(device) - begin)
    memory = torch.cuda.max_memory_allocated() / 1e6 if device.startswith("cuda") else 0.0
    return CellSpeed(cell, max(learn, 0.0), max(sum(seconds) / 2, _LEAST), memory)


# ── what it amounts to ────────────────────────────────────────────────────────────────────────────────────────────────


def _like(cell: GpuCell, found: Iterable[CellSpeed]) -> CellSpeed | None:
    """The measured cell that stands for this one: its own, or the nearest of its method that is at least as large.

    Where there is no larger one, the largest there is. Other settings of the method count only if there are none else.
    """
    of_method = [speed for speed in found if speed.cell.method == cell.method]
    of_method = [speed for speed in of_method if speed.cell.settings == cell.settings] or of_method
    for speed in of_method:
        if speed.cell.key == cell.key:
            return speed
    at_least = [speed for speed in of_method if speed.cell.size >= cell.size]
    if at_least:
        return min(at_least, key=lambda s: (s.cell.size, s.cell.experiment != cell.experiment))
    return max(of_method, key=lambda s: s.cell.size, default=None)


def summary(cells: Sequence[GpuCell], found: Sequence[CellSpeed], jobs: int) -> dict[str, Any]:
    """Runs per GPU-second of every experiment, and the GPU-hours of the paper's study."""
    experiments: dict[str, dict[str, Any]] = {}
    total = measured = 0.0
    runs_in_paper = 0
    for cell in cells:
        own = experiments.setdefault(
            cell.experiment, {"cells": 0, "measured": 0, "runs": 0, "gpu_seconds": 0.0, "unknown": [], "methods": {}}
        )
        own["cells"] += 1
        speed = _like(cell, found)
        if speed is None:
            own["unknown"].append(f"{cell.name}, {cell.method}")
            continue
        here = speed.cell.key == cell.key
        # of another cell the learning of one run, and as many of its steps as this one has
        a_run = (speed.learn + cell.steps * speed.step) / speed.cell.together
        seconds = cell.runs * a_run / jobs
        own["measured"] += here
        own["runs"] += cell.runs
        own["gpu_seconds"] += seconds
        of_method = own["methods"].setdefault(cell.method, {"runs": 0, "gpu_seconds": 0.0})
        of_method["runs"] += cell.runs
        of_method["gpu_seconds"] += seconds
        if cell.experiment in PAPER_RUNS:
            total += seconds
            measured += seconds if here else 0.0
            runs_in_paper += cell.runs
    for own in experiments.values():
        for part in (own, *own["methods"].values()):
            part["runs_per_gpu_second"] = part["runs"] / part["gpu_seconds"] if part["gpu_seconds"] else None
    unknown = sum(len(own["unknown"]) for name, own in experiments.items() if name in PAPER_RUNS)
    complete = not unknown and set(PAPER_RUNS) <= set(experiments) and any(c.problem.table == "svm" for c in cells)
    paper = {
        "cpu_hours": PAPER_HOURS,
        "runs": runs_in_paper,
        "gpu_hours": total / 3600,
        "share_measured": measured / total if total else 0.0,
        "cells_unknown": unknown,
        "complete": complete,
        "cpu_hours_per_gpu_hour": PAPER_HOURS * 3600 / total if complete else None,
    }
    return {"paper": paper, "experiments": experiments}


def main(arguments: list[str] | None = None) -> None:
    """Measure for so many seconds, and write what it amounts to."""
    parser = argparse.ArgumentParser(description="How many runs of the paper's experiments a GPU makes in a second.")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=240.0, help="nothing new is begun after these")
    parser.add_argument("--jobs", type=int, default=1, help="processes that share the GPU")
    parser.add_argument("--together", type=int, help="runs in lockstep (default: as reproduce has them)")
    parser.add_argument("--only", default="", help="experiments, with commas between them")
    parser.add_argument("--out", type=Path, default=Path("results/gpu.json"))
    options = parser.parse_args(arguments)
    cells = all_cells(options.device, options.together, [name for name in options.only.split(",") if name])
    found: list[CellSpeed] = []

    def on_cell(left: int, cell: GpuCell, error: Exception | None) -> None:
        what = f"{type(error).__name__}: {error}"[:150] if error else f"{found[-1].run_seconds:.4f} s a run"
        print(f"{left:4d} left: {' '.join(cell.key)}: {what}", flush=True)
        write()

    def write() -> None:
        record = {
            **summary(cells, found, options.jobs),
            "jobs": options.jobs,
            "provenance": provenance(options.device),
            "cells": [
                {**_plain(speed.cell), "learn": speed.learn, "step": speed.step, "memory": speed.memory}
                for speed in found
            ],
            "failed": [{**_plain(cell), "error": str(error)[:300]} for cell, error in failed],
        }
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(record, indent=1) + "\n")

    failed: list[tuple[GpuCell, Exception]] = []
    failed = run_all(cells, measure_cell, found.append, jobs=options.jobs, seconds=options.seconds, on_run=on_cell)
    write()
    print(json.dumps(summary(cells, found, options.jobs)["paper"]), f"written to {options.out}", flush=True)


def _plain(cell: GpuCell) -> dict[str, Any]:
    """The cell for a file."""
    kept = {"experiment", "name", "method", "steps", "runs", "size", "together"}
    return {key: value for key, value in asdict(cell).items() if key in kept}


if __name__ == "__main__":
    main()
