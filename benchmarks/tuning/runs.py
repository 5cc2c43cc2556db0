"""One run: a method tunes a target task, with the past that belongs to it; and the file that keeps the runs."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from optuna.samplers import RandomSampler
from optuna.trial import TrialState

from benchmarks.store import append_lines, read_lines
from benchmarks.tuning.evaluations import Evaluations
from benchmarks.tuning.past import new_study, objective_of, past_studies, stream
from benchmarks.tuning.problems.catalogue import tuning_problem
from benchmarks.tuning.rivals import POOL, rival

_SCHEMA = 1


@dataclass(frozen=True, slots=True)
class TuningCell:
    """What is to be run. ``label`` is the name that the run goes by, where it is not the method's own."""

    problem: str
    task: str
    seed: int
    method: str
    trials: int
    label: str = ""

    @property
    def key(self) -> tuple[str, int, str, int, str, int]:
        """As of the run that will come of it."""
        revision = tuning_problem(self.problem).revision
        return (self.problem, revision, self.task, self.seed, self.label or self.method, self.trials)


@dataclass(frozen=True, slots=True)
class TuningRun:
    """Everything that was tried, in order.

    A value is None where the trial was pruned. ``seconds`` is the CPU time of every trial without training: what the
    sampler took.
    """

    problem: str
    revision: int
    task: str
    seed: int
    method: str
    trials: int
    params: list[dict[str, Any]]
    values: list[float | None]
    seconds: list[float]
    provenance: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, int, str, int, str, int]:
        """What makes a run the same as another one."""
        return (self.problem, self.revision, self.task, self.seed, self.method, self.trials)


def tune(cell: TuningCell, evaluations: Evaluations, provenance: dict[str, Any] | None = None) -> TuningRun:
    """Run it. The sampler's seed belongs to problem, task and seed; nothing is pruned in the pool."""
    problem = tuning_problem(cell.problem)
    own = stream(cell.problem, cell.task, cell.seed, "pool" if cell.method == POOL else "target")
    if cell.method == POOL:
        study = new_study(problem, cell.task, RandomSampler(seed=own), prune=False)
    else:
        past, method = past_studies(problem, cell.task, cell.seed, evaluations), rival(cell.method)
        study = new_study(problem, cell.task, method.sampler(past, own))
        for params in method.enqueued(past):
            study.enqueue_trial(params)
    objective = objective_of(problem, cell.task, evaluations)
    seconds = []
    for _ in range(cell.trials):
        begin, training = time.process_time(), evaluations.seconds
        study.optimize(objective, n_trials=1)
        seconds.append(round(time.process_time() - begin - (evaluations.seconds - training), 4))
    tried = study.trials[: cell.trials]  # what is enqueued beyond them waits
    return TuningRun(
        problem=cell.problem,
        revision=problem.revision,
        task=cell.task,
        seed=cell.seed,
        method=cell.label or cell.method,
        trials=cell.trials,
        params=[trial.params for trial in tried],
        values=[trial.value if trial.state == TrialState.COMPLETE else None for trial in tried],
        seconds=seconds,
        provenance=provenance or {},
    )


def append_runs(folder: Path, runs: Iterable[TuningRun]) -> None:
    """Write the runs, all or none of each."""
    append_lines(folder / "runs.jsonl", ({"schema": _SCHEMA, **asdict(run)} for run in runs))


def read_runs(folder: Path) -> tuple[TuningRun, ...]:
    """All runs of the folder; of equal ones the last, and none that a killed program left unfinished."""
    records, _ = read_lines(folder / "runs.jsonl", _SCHEMA)
    runs = (TuningRun(**record) for _, record in records)
    return tuple({run.key: run for run in runs}.values())
