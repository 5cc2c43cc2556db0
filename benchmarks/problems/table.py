"""Tables of evaluations as discrete problems: any CSV or Parquet file with a task column, the inputs, an objective.

    a column of                  is a parameter with
    text, or true and false      Choices: its levels, in alphabetical order
    numbers                      FloatRange: from min to max over all rows that are kept
    numbers, asked for as log    the same with log

They make up a ``Space``, which places the rows in the unit cube as it does everywhere else (data.axis).
A row without a task, an objective or an input is left out, and so is a task whose objective is constant. Nothing of
this is silent: ``TaskTable.report`` has a sentence for every decision, and for what could have been meant otherwise.
Reading needs pandas; Parquet files need pyarrow too (``pip install headstart[parquet]``).
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.problems.columns import Column, column, some
from benchmarks.problems.frame import is_missing, labels, numbers, open_frame, require_columns, values
from benchmarks.problems.problem import Instance, Problem, TargetRows, stream
from headstart.data.dataset import Dataset
from headstart.data.space import Space
from headstart.errors import InputError

logger = logging.getLogger(__name__)

# A task whose objective spans no more than this share of its largest magnitude is constant.
_CONSTANT = 1e-6

Array = NDArray[Any]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class TaskTable:
    """Evaluations of several tasks with the same inputs, in the unit cube, and to be minimised.

    ``columns`` are the inputs in raw units, ``space`` is their place in the unit cube. ``tasks`` has a data set for
    every task, in the order of the table; its y is the objective, negated if that was to be maximised. ``report`` says
    in sentences what was left out and what could have been meant otherwise.
    """

    name: str
    columns: tuple[Column, ...]
    space: Space
    tasks: Mapping[str, Dataset]
    report: tuple[str, ...] = ()

    @property
    def d(self) -> int:
        """How many encoded inputs."""
        return self.space.d

    @property
    def fingerprint(self) -> str:
        """Twelve letters that are others if a value, a task or a column is another.

        Numbers count in single precision: readers of CSV files differ in the last bit from machine to machine.
        """
        digest = hashlib.sha256(repr([(c.name, c.kind.value, c.levels) for c in self.columns]).encode())
        for task, data in self.tasks.items():
            digest.update(task.encode() + data.X.float().numpy().tobytes() + data.y.float().numpy().tobytes())
        return digest.hexdigest()[:12]


def read_table(
    source: Any,
    *,
    task: str,
    objective: str,
    maximize: bool = False,
    log: Sequence[str] = (),
    columns: Sequence[str] | None = None,
    ignore: Sequence[str] = (),
    name: str | None = None,
) -> TaskTable:
    """The table in a CSV or Parquet file, gzipped or not, or in a pandas DataFrame.

    ``columns`` are the inputs: all but the task, the objective and those to ``ignore`` where not given. ``log`` names
    those with a log scale. The table has the name of the file up to its first dot, where no other is given. An
    ``InputError`` names the file, the column and the row, counted from 1 below the header.
    """
    frame, where = open_frame(source)
    own = Path(source).name.partition(".")[0] if isinstance(source, str | Path) else "table"
    log = (log,) if isinstance(log, str) else tuple(log)
    ignore = (ignore,) if isinstance(ignore, str) else tuple(ignore)
    require_columns(frame, where, ignore)
    if needed := [c for c in ignore if c in (task, objective, *log, *(columns or ()))]:
        raise InputError(f"{where}: {needed[0]} cannot be left out, for it is asked for as well.")
    inputs = _inputs(frame.drop(columns=list(ignore)), where, task, objective, log, columns)
    label, y = labels(frame[task]), numbers(frame[objective], f"{where}: {objective}")
    raw = {c: values(frame[c], f"{where}: {c}") for c in inputs}

    report = [f"Left out as asked: {', '.join(ignore)}."] if ignore else []
    report += [f"{c} is left out: it is empty." for c in inputs if is_missing(raw[c]).all()]
    raw = {c: x for c, x in raw.items() if not is_missing(x).all()}
    kept = _complete_rows({task: label, objective: y, **raw}, report)
    kept &= _rows_of_varying_tasks(where, objective, label, y, kept, report)
    found = [c for c in (column(c, x, kept, c in log, where, report) for c, x in raw.items()) if c is not None]
    if not found:
        raise InputError(
            f"{where}: all inputs ({', '.join(inputs)}) are constant or empty. There is nothing to optimise."
        )
    space = Space.of({c.name: c.values for c in found})
    X, y, label = _placed(space, {c.name: raw[c.name][kept] for c in found}), y[kept], label[kept]
    tasks = {t: Dataset(X[label == t], -y[label == t] if maximize else y[label == t], t) for t in dict.fromkeys(label)}
    repeats = sum(data.n - len(np.unique(data.X.numpy(), axis=0)) for data in tasks.values())
    if repeats:
        report.append(f"Rows with the inputs of another row of their task: {repeats}. Each is a candidate of its own.")
    return TaskTable(name or own, tuple(found), space, tasks, tuple(report))


def _placed(space: Space, columns: Mapping[str, Array]) -> Array:
    """The coordinates (n, d) of the rows; the logarithm's rounding may put an end of a range just outside the cube."""
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    return space.encode([dict(zip(columns, row, strict=True)) for row in rows]).clamp(0.0, 1.0).numpy()


def _inputs(
    frame: Any, where: str, task: str, objective: str, log: Sequence[str], columns: Sequence[str] | None
) -> tuple[str, ...]:
    """The names of the inputs, all of which are there."""
    given = (columns,) if isinstance(columns, str) else columns
    inputs = tuple(c for c in frame.columns if c not in (task, objective)) if given is None else tuple(given)
    require_columns(frame, where, (task, objective, *log, *inputs))
    if task == objective or task in inputs or objective in inputs:
        raise InputError(f"{where}: the task {task!r}, the objective {objective!r} and the inputs must be different.")
    if len(set(inputs)) < len(inputs) or not inputs:
        raise InputError(f"{where}: the inputs must be at least one column, each named once, but are {list(inputs)}.")
    if strange := [c for c in log if c not in inputs]:
        raise InputError(f"{where}: log names {', '.join(strange)}, not among the inputs {', '.join(inputs)}.")
    return inputs


def _complete_rows(columns: Mapping[str, Array], report: list[str]) -> Mask:
    missing = {name: is_missing(column) for name, column in columns.items()}
    kept = np.asarray(~np.any(list(missing.values()), axis=0))
    if not kept.all():
        counts = ", ".join(f"{int(mask.sum())} without {name}" for name, mask in missing.items() if mask.any())
        report.append(f"Rows left out because they are not complete: {int((~kept).sum())} of {len(kept)} ({counts}).")
    return kept


def _rows_of_varying_tasks(where: str, objective: str, label: Array, y: Array, kept: Mask, report: list[str]) -> Mask:
    """The rows of tasks whose objective has max − min > 1e-6 max |y|, or an ``InputError`` if there are none."""
    empty, constant, vary = [], [], []
    for t in dict.fromkeys(label[~is_missing(label)]):
        of_task = y[kept & (label == t)]
        if not len(of_task):
            empty.append(t)
        elif np.ptp(of_task) <= _CONSTANT * np.abs(of_task).max():
            constant.append(t)
        else:
            vary.append(t)
    if empty:
        report.append(f"Tasks left out because none of their rows is complete: {len(empty)} ({some(empty)}).")
    if constant:
        report.append(f"Tasks left out because their {objective} is constant: {len(constant)} ({some(constant)}).")
    if not vary:
        raise InputError(f"{where}: no task has two complete rows that differ in {objective}. {' '.join(report)}")
    return np.isin(label.astype(str), vary)


class TableProblem(Problem):
    """The paper's protocol for tables: optimise over the rows of one task, having seen some rows of others.

    Every seed draws a target, ``n_sources`` other tasks and ``rows`` random rows of each; the candidates are the
    target's own rows, the scale of the regret is max − min of all of them, and there is no noise. ``tasks`` names the
    tasks that take part: all where not given. A task with fewer rows than asked is no source, but may be the target.
    ``rows=None`` takes all rows; as the sources of a batch must be equally long, all are then cut to the length of the
    shortest task. ``notes`` says where that was so. With ``in_turn`` the tasks take turns as the target (that of seed 0
    is the first one), so that each has the same share of the runs. With ``repeats`` a row may be evaluated again.

    The draws are keyed by the table's name and the seed: fewer rows are a part of the rows that would be drawn if
    more were asked for, and fewer sources the first of them.
    """

    def __init__(
        self,
        table: TaskTable,
        n_sources: int = 10,
        rows: int | None = 60,
        tasks: Sequence[str] | None = None,
        *,
        in_turn: bool = False,
        repeats: bool = False,
    ) -> None:
        names = tuple(table.tasks) if tasks is None else tuple(dict.fromkeys(tasks))
        if unknown := [t for t in names if t not in table.tasks]:
            known = some(table.tasks, 30)
            raise InputError(f"{table.name}: there is no task {', '.join(map(str, unknown))}. There are: {known}.")
        if n_sources < 1 or (rows is not None and rows < 1):
            raise InputError(f"n_sources and rows must be at least 1, but are {n_sources} and {rows}.")
        sizes = {t: table.tasks[t].n for t in names}
        n = min(sizes.values(), default=0) if rows is None else rows
        short = [t for t in names if sizes[t] < n]
        if len(names) - len(short) <= n_sources:
            raise InputError(
                f"{table.name}: a target and {n_sources} sources of {n} rows need {n_sources + 1} such tasks, but of "
                f"{len(names)} tasks {len(names) - len(short)} have so many rows. Ask for fewer sources or rows."
            )
        self.notes: tuple[str, ...] = ()
        if short:
            self.notes = (f"Tasks with fewer than {n} rows, which are no sources: {len(short)} ({some(short)}).",)
        elif rows is None and max(sizes.values()) > n:
            self.notes = (f"All sources are cut to {n} rows: so many has the shortest task.",)
        self.table, self.n_sources, self.rows, self.d, self.space = table, n_sources, n, table.d, table.space
        more = ",targets=in turn" * in_turn + ",repeats=yes" * repeats
        self.name = f"{table.name}[sources={n_sources},rows={'all' if rows is None else rows}{more}]"
        self.fingerprint = table.fingerprint
        self._names, self._long = names, frozenset(names) - frozenset(short)
        self._in_turn, self._repeats = in_turn, repeats

    def draw(self, seeds: Sequence[int], steps: int) -> Instance:
        """The instances of these seeds; targets with fewer than ``steps`` rows are passed over, and logged."""
        if few := [t for t in self._names if self.table.tasks[t].n < steps]:
            if len(few) == len(self._names):
                raise InputError(f"{self.table.name}: no task has {steps} rows to evaluate. Ask for fewer evaluations.")
            logger.warning("%s: no targets, for they have fewer than %d rows: %s.", self.table.name, steps, some(few))
        drawn = [self._tasks(seed, steps) for seed in seeds]
        parts = [[self._part(seed, t) for t in sources] for seed, (_, sources) in zip(seeds, drawn, strict=True)]
        sources = tuple(
            Dataset(
                torch.stack([d.X for d in column]),
                torch.stack([d.y for d in column]),
                f"source {i}",
                categories=self.table.space.categories,
            )
            for i, column in enumerate(zip(*parts, strict=True))
        )
        targets = [self.table.tasks[target] for target, _ in drawn]
        lowest, highest = torch.stack([d.y.min() for d in targets]), torch.stack([d.y.max() for d in targets])
        return Instance(
            sources=sources,
            minimum=lowest,
            scale=highest - lowest,
            noise=torch.zeros(len(drawn), steps, dtype=torch.float64),
            labels=tuple(target for target, _ in drawn),
            candidates=_padded(targets, repeats=self._repeats),
            space=self.space,
        )

    def _tasks(self, seed: int, steps: int) -> tuple[str, list[str]]:
        """Target and sources: a random order of all tasks, of which the first that is long enough is the target.

        If they take turns, the sources are in that order as well.
        """
        order = torch.randperm(len(self._names), generator=stream(self.table.name, seed, "tasks")).tolist()
        names = [self._names[i] for i in order]
        enough = [t for t in (self._names if self._in_turn else names) if self.table.tasks[t].n >= steps]
        target = enough[seed % len(enough) if self._in_turn else 0]
        return target, [t for t in names if t != target and t in self._long][: self.n_sources]

    def _part(self, seed: int, task: str) -> Dataset:
        data = self.table.tasks[task]
        rows = torch.randperm(data.n, generator=stream(self.table.name, seed, "rows", task))[: self.rows]
        return Dataset(data.X[rows], data.y[rows], task)


def _padded(targets: Sequence[Dataset], *, repeats: bool) -> TargetRows:
    """The rows of all targets; what is padding has the input 0 and the value ∞, so that it is never the best."""
    most = max(data.n for data in targets)
    X = torch.zeros(len(targets), most, targets[0].d, dtype=torch.float64)
    y = torch.full((len(targets), most), torch.inf, dtype=torch.float64)
    for i, data in enumerate(targets):
        X[i, : data.n], y[i, : data.n] = data.X, data.y
    return TargetRows(X=X, values=y, real=y.isfinite(), repeats=repeats)
