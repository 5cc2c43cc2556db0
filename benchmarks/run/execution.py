"""Running experiments: what a store does not hold yet, in pieces that survive interruption."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing

from benchmarks.run.engines import Engine, engine_named
from benchmarks.run.experiment import BenchExperiment, ProblemSpec, Unit
from benchmarks.store import Run, Store
from headstart.errors import InputError

# How many runs go in lockstep: a processor gains nothing by more, a GPU has room for all runs of a cell
_ON_CPU, _ON_GPU = 25, 200

Progress = Callable[[Unit, Exception | None], None]


def execute(
    experiments: Sequence[BenchExperiment],
    store: Store,
    *,
    device: str = "cpu",
    jobs: int = 1,
    engine: str = "process",
    chunk: int | None = None,
    on_start: Callable[[int], None] = lambda _: None,
    on_unit: Progress = lambda _unit, _error: None,
) -> list[tuple[Unit, Exception]]:
    """Run what the store does not hold yet; a unit that fails is reported, and the rest goes on.

    A unit is at most ``chunk`` runs in lockstep, by default as many as the device is good for (``lockstep_on``).
    ``jobs`` processes work at once (``engine="ray"``: on a Ray cluster). Only this process writes to the store. What
    cannot be run at all is refused before anything runs.
    """
    chunk = lockstep_on(device) if chunk is None else chunk
    if jobs < 1 or chunk < 1:
        raise InputError(f"jobs and chunk must be at least 1, but are {jobs} and {chunk}.")
    _require_device(device)
    run_all: Engine[Unit] = engine_named(engine)
    runs = store.read().runs
    _require_the_same_data([spec for experiment in experiments for spec in experiment.problems], runs, store)
    done = {run.key for run in runs}
    units = [
        left
        for experiment in experiments
        for unit in experiment.units(chunk)
        if (left := unit.without(done)) is not None
    ]
    on_start(len(units))
    failed: list[tuple[Unit, Exception]] = []
    with closing(run_all(units, device, jobs)) as outcomes:
        for unit, outcome in outcomes:
            if isinstance(outcome, Exception):
                failed.append((unit, outcome))
                on_unit(unit, outcome)
            else:
                store.append(outcome)
                on_unit(unit, None)
    return failed


def lockstep_on(device: str) -> int:
    """How many runs go in lockstep on such a device."""
    return _ON_GPU if device.startswith("cuda") else _ON_CPU


def _require_the_same_data(specs: Iterable[ProblemSpec], runs: Iterable[Run], store: Store) -> None:
    """Raise an ``InputError`` where a problem has the name of another one, here or in the store, but other data."""
    stored = {run.problem: run.provenance["data"] for run in runs if "data" in run.provenance}
    tables: dict[str, tuple[str, str]] = {}
    for spec in specs:
        problem = spec.build()
        if problem.fingerprint is None:
            continue
        table, own = str(spec.table), problem.fingerprint
        other, its = tables.setdefault(problem.name, (table, own))
        if its != own:
            raise InputError(
                f"{other} and {table} are both called {problem.name}, and have other data. Rename one of the files."
            )
        if stored.get(problem.name, own) != own:
            raise InputError(
                f"{table}: {store.folder} has runs of {problem.name}, but on other data: of a file with the same name, "
                "or of this one before it was changed. Take another folder for the results, or rename the file."
            )


def _require_device(device: str) -> None:
    if device == "cpu":
        return
    if not device.startswith("cuda"):
        raise InputError(f"There is no device {device!r}. The known ones are cpu and cuda.")
    import torch

    if not torch.cuda.is_available():
        raise InputError(f"{device} was asked for, but torch finds no CUDA device here. Use --device cpu.")
