"""One run: a method on an instance, evaluation by evaluation; and the file that keeps the runs."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from benchmarks.outcomes.methods.registry import method_compared
from benchmarks.outcomes.problems.catalogue import outcome_problem
from benchmarks.store import append_lines, read_lines

_SCHEMA = 1
_DIGITS = 8


@dataclass(frozen=True, slots=True)
class OutcomeCell:
    """What is to be run. ``label`` is the name that the run goes by, where it is not the method's own."""

    problem: str
    seed: int
    method: str
    steps: int
    label: str = ""

    @property
    def key(self) -> tuple[str, int, str, int]:
        """As of the run that will come of it."""
        return (self.problem, self.seed, self.label or self.method, self.steps)


@dataclass(frozen=True, slots=True)
class OutcomeRun:
    """Everything that was evaluated, in order.

    ``y`` is what was seen of every outcome, as measured; ``curves`` are the measures (bench.outcomes.measures) after
    every evaluation; ``seconds`` the CPU time of choosing each point, and ``learn_seconds`` that of learning the
    sources.
    """

    problem: str
    seed: int
    method: str
    steps: int
    target: str
    x: list[list[float]]
    y: dict[str, list[float]]
    curves: dict[str, list[float]]
    seconds: list[float]
    learn_seconds: float
    provenance: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, int, str, int]:
        """What makes a run the same as another one."""
        return (self.problem, self.seed, self.method, self.steps)


def compare_one(cell: OutcomeCell, provenance: dict[str, Any] | None = None) -> OutcomeRun:
    """Run it. Draws belong to problem and seed; spoilt sources change nothing else."""
    problem, method = outcome_problem(cell.problem), method_compared(cell.method)
    instance = problem.draw(cell.seed, cell.steps, method.spoils(problem))
    begun = time.process_time()
    searcher = method.begin(instance, (cell.problem, cell.seed))
    learnt = time.process_time() - begun
    X = torch.empty(0, instance.space.d, dtype=torch.float64)
    seen = {name: torch.empty(0, dtype=torch.float64) for name in instance.outcomes.names}
    seconds = []
    for step in range(cell.steps):
        begun = time.process_time()
        x = searcher.next(X, seen)
        seconds.append(round(time.process_time() - begun, 4))
        X = torch.cat([X, instance.nearest(x, X).unsqueeze(0)])
        found = instance.evaluate(X[-1:])
        seen = {name: torch.cat([y, found[name] + instance.noise[name][step]]) for name, y in seen.items()}
    curves = instance.yardstick.curves(instance.inward(instance.evaluate(X)))
    data = {} if problem.fingerprint is None else {"data": problem.fingerprint}
    return OutcomeRun(
        problem=cell.problem,
        seed=cell.seed,
        method=cell.label or cell.method,
        steps=cell.steps,
        target=instance.label,
        x=[_rounded(row) for row in X.tolist()],
        y={name: _rounded(y.tolist()) for name, y in seen.items()},
        curves={name: _rounded(curve) for name, curve in curves.items()},
        seconds=seconds,
        learn_seconds=round(learnt, 4),
        provenance={**(provenance or {}), **data},
    )


def _rounded(values: Iterable[float]) -> list[float]:
    return [float(f"{value:.{_DIGITS}g}") for value in values]


def append_outcomes(folder: Path, runs: Iterable[OutcomeRun]) -> None:
    """Write the runs, all or none of each."""
    append_lines(folder / "runs.jsonl", ({"schema": _SCHEMA, **asdict(run)} for run in runs))


def read_outcomes(folder: Path) -> tuple[OutcomeRun, ...]:
    """All runs of the folder's JSONL files; of equal ones the last, and none that a killed program left unfinished."""
    found = {}
    for path in sorted(folder.glob("*.jsonl")):
        records, _ = read_lines(path, _SCHEMA)
        for _, record in records:
            run = OutcomeRun(**record)
            found[run.key] = run
    return tuple(found.values())
