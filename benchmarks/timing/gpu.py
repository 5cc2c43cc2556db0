"""How many runs of the paper's experiments a GPU makes in a second: ``python -m benchmarks time gpu``.

A cell is a problem and a method of an experiment; all its runs go in lockstep, as ``reproduce --device cuda`` has
them. Learning the sources is timed, and two of the steps: those with a quarter and three quarters of the results,
random ones, since what they are does not change the work. A run takes

    (learn + steps · (first + second)/2) / runs in lockstep

The largest problem of every method comes first, then that of every method of every experiment, then the others. A cell
that was not reached is taken to cost, step by step, what the nearest one of its method costs that is at least as large.
Several processes share the GPU (``--jobs``), as those of ``reproduce --jobs`` do; a second of one of them is then that
part of a GPU-second. Numbers of runs are the paper's, for all methods alike: 50, on the SVM table 500, in one dimension
200, 7 for the runtimes; ``order`` and ``gc3p`` are not in the paper.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

import torch

from benchmarks.methods.method import Settings
from benchmarks.methods.registry import method
from benchmarks.read.sheet import Sheet
from benchmarks.run.experiment import ProblemSpec, lockstep_on
from benchmarks.run.presets import PAPER_RUNS, PRESETS, paper_runs
from benchmarks.run.runner import evaluate
from benchmarks.store import Run
from benchmarks.timing.measurement import Figures, Timing
from headstart.data.dataset import Dataset
from headstart.errors import MissingDataError

logger = logging.getLogger(__name__)

PAPER_HOURS = 154_353  # CPU-hours, "including early debugging and evaluations" (the paper's last appendix)
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

    @property
    def what(self) -> str:
        """What tells it from others."""
        return f"{self.experiment}: {self.name}, {self.method}"


def gpu_timings(cells: Iterable[GpuCell], device: str) -> Iterator[Timing]:
    """A timing per cell."""
    return (Timing(cell.what, partial(measure_cell, cell, device)) for cell in cells)


def all_cells(device: str, names: Sequence[str] = ()) -> list[GpuCell]:
    """Those of all experiments, in the order in which they are measured."""
    cells = sorted(
        (cell for name in names or (*PAPER_RUNS, *_OTHERS) for cell in _cells_of(name, device)), key=lambda c: c.size
    )
    each_method = {(cell.method, cell.settings): cell for cell in cells}.values()
    each_experiment = {(cell.experiment, cell.method): cell for cell in cells}.values()
    ordered: dict[GpuCell, None] = {}
    for part in (each_method, each_experiment, cells):
        # joint models first: whatever is not reached in the end is cheap
        for cell in sorted(part, key=lambda cell: _COSTLY.get(cell.method, len(_COSTLY))):
            ordered.setdefault(cell)
    return list(ordered)


def _cells_of(name: str, device: str) -> Iterator[GpuCell]:
    for experiment, spec in ((e, spec) for e in PRESETS[name] for spec in e.problems):
        try:
            problem = spec.build()
            size = sum(source.n for source in problem.draw([0], experiment.steps).sources)
        except (MissingDataError, ImportError) as error:  # a table that is not here, or nothing to read it with
            logger.warning("%s: %s is left out: %s", name, spec.table, error)
            continue
        runs = paper_runs(experiment, spec)
        together = min(runs, lockstep_on(device))
        for each in experiment.methods:
            settings = experiment.settings_of.get(each, experiment.settings)
            yield GpuCell(name, problem.name, spec, each, experiment.steps, settings, runs, size, together)


def _now(device: str) -> float:
    if device.startswith("cuda"):
        torch.cuda.synchronize()
    return time.perf_counter()


@cache
def _warm_up(method_name: str, device: str) -> None:
    """What is loaded when a method is used for the first time on a device is not what a run takes."""
    spec = ProblemSpec(family="branin", points=12)
    _measure(GpuCell("", "", spec, method_name, 6, Settings(restarts=2, max_iterations=5), 2, 12, 2), device)


def measure_cell(cell: GpuCell, device: str) -> Figures:
    """Seconds of learning and of a step of its lockstep, which is halved where the memory is full."""
    _warm_up(cell.method, device)
    try:
        return _measure(cell, device)
    except torch.OutOfMemoryError:
        if cell.together == 1:
            raise
    torch.cuda.empty_cache()
    return measure_cell(replace(cell, together=cell.together // 2), device)


def _measure(cell: GpuCell, device: str) -> Figures:
    seeds, problem = range(cell.together), cell.problem.build()
    instance = problem.draw(seeds, cell.steps).to(device)
    begin = _now(device)
    search = method(cell.method).begin(instance, problem.name.partition("[")[0], seeds, cell.settings)
    learn = _now(device) - begin
    levels = () if instance.space is None else instance.space.categories
    target = Dataset.empty(instance.d, batch_shape=(len(seeds),), device=device, categories=levels)
    allowed = None if instance.candidates is None else instance.candidates.real.clone()
    seconds = 0.0
    for n in (cell.steps // 4, 3 * cell.steps // 4):
        while target.n < n:
            choice = search.at_random(target, allowed)
            result = evaluate(instance, choice, allowed) + instance.noise[:, target.n]
            target = target.with_point(choice.x, result)
        begin = _now(device)
        search.propose(target, allowed)
        seconds += (_now(device) - begin) / 2
    return {cell.method: {"learn": learn, "step": max(seconds, _LEAST), "together": float(cell.together)}}


def gpu_sheets(cells: Sequence[GpuCell], jobs: int, runs: Sequence[Run]) -> list[Sheet]:
    """Runs per GPU-second of every experiment, and the GPU-hours of the paper's study."""
    found = {run.problem: run for run in runs}
    measured = [cell for cell in cells if cell.what in found]
    rows, in_paper, unknown = [], 0.0, 0
    for name in dict.fromkeys(cell.experiment for cell in cells):
        own = [cell for cell in cells if cell.experiment == name]
        like = [(cell, found[other.what].traces) for cell in own if (other := _like(cell, measured)) is not None]
        seconds = sum(
            cell.runs * (t["learn"][0] + cell.steps * t["step"][0]) / t["together"][0] / jobs for cell, t in like
        )
        n, there = sum(cell.runs for cell, _ in like), sum(cell in measured for cell in own)
        rows.append((name, n, seconds / 3600, n / seconds if seconds else float("nan"), f"{there} of {len(own)}"))
        in_paper += seconds if name in PAPER_RUNS else 0.0
        unknown += len(own) - len(like)
    note = (
        f"The paper's own experiments take {in_paper / 3600:.3g} GPU-hours; it states {PAPER_HOURS:,} CPU-hours for "
        "all it ran, early debugging and evaluations included. Cells that were not measured are taken to cost what the "
        f"next larger one of their method does; {unknown} cells are not counted: nothing of theirs was measured."
    )
    columns = ("experiment", "runs", "GPU-hours", "runs per GPU-second", "cells measured")
    return [Sheet("gpu", "The paper's experiments at its numbers of runs", columns, tuple(rows), note)]


def _like(cell: GpuCell, measured: Sequence[GpuCell]) -> GpuCell | None:
    """The measured cell that stands for this one: its own, or the nearest of its method that is at least as large.

    Where there is no larger one, the largest there is. Other settings of the method count only if there are none else.
    """
    of_method = [other for other in measured if other.method == cell.method]
    of_method = [other for other in of_method if other.settings == cell.settings] or of_method
    if cell in of_method:
        return cell
    at_least = [other for other in of_method if other.size >= cell.size]
    if at_least:
        return min(at_least, key=lambda other: (other.size, other.experiment != cell.experiment))
    return max(of_method, key=lambda other: other.size, default=None)
