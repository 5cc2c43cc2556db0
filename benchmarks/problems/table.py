"""Tables of evaluations as discrete problems: a CSV file with a task column, the inputs and an objective.

    a column of                  is a parameter with
    text, or true and false      Choices: its levels, in alphabetical order
    numbers                      FloatRange: from min to max over all rows that are kept
    numbers, asked for as log    the same with log

They make up a ``Space``, which places the rows in the unit cube as it does everywhere else (data.axis).
A row without a task, an objective or an input is left out, and so are a task whose objective is constant and a constant
input. Reading needs pandas.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks.problems.problem import Instance, Problem, TargetRows, stream
from headstart.data.dataset import Dataset
from headstart.data.ranges import Choices, FloatRange
from headstart.data.space import Space
from headstart.errors import InputError

logger = logging.getLogger(__name__)

# A task whose objective spans no more than this share of its largest magnitude is constant.
_CONSTANT = 1e-6
# What pandas takes as missing, less "None" and "none": these are often a level of a hyperparameter.
_MISSING = ("", "NA", "<NA>", "N/A", "n/a", "#N/A", "NaN", "nan", "-NaN", "-nan", "NULL", "null")


@dataclass(frozen=True, slots=True, eq=False)
class TaskTable:
    """Evaluations of several tasks with the same inputs, in the unit cube, and to be minimised.

    ``space`` is the place of the inputs in the unit cube. ``tasks`` has a data set for every task, in the order of the
    table; its y is the objective, negated if that was to be maximised.
    """

    name: str
    space: Space
    tasks: Mapping[str, Dataset]

    @property
    def d(self) -> int:
        """How many encoded inputs."""
        return self.space.d

    @property
    def fingerprint(self) -> str:
        """Twelve letters that are others if a value, a task or a column is another.

        Numbers count in single precision: readers of CSV files differ in the last bit from machine to machine.
        """
        columns = []
        for name, values in self.space.distributions.items():
            levels = values.choices if isinstance(values, Choices) else ()
            kind = "log" if isinstance(values, FloatRange) and values.log else "numeric"
            columns.append((name, "categorical" if levels else kind, levels))
        digest = hashlib.sha256(repr(columns).encode())
        for task, data in self.tasks.items():
            digest.update(task.encode() + data.X.float().numpy().tobytes() + data.y.float().numpy().tobytes())
        return digest.hexdigest()[:12]


def read_table(
    source: Any, *, name: str, objective: str, inputs: Sequence[str], log: Sequence[str] = (), maximize: bool = False
) -> TaskTable:
    """The table in a CSV file, gzipped or not, or in a pandas DataFrame; its tasks are named in the column ``task``."""
    import numpy as np
    import pandas as pd

    frame = source
    if isinstance(source, str | Path):
        frame = pd.read_csv(source, keep_default_na=False, na_values=_MISSING, low_memory=False)
    needed = ["task", objective, *inputs]
    if absent := [column for column in needed if column not in frame.columns]:
        there = ", ".join(map(str, frame.columns))
        raise InputError(f"{name}: there is no column {', '.join(absent)} in the table. There are: {there}.")
    frame = frame[needed].replace([np.inf, -np.inf], np.nan).dropna()
    y = frame[objective].groupby(frame["task"], sort=False)
    spread, size = y.transform("max") - y.transform("min"), y.transform(lambda own: own.abs().max())
    frame = frame[spread > _CONSTANT * size]
    columns: dict[str, list[Any]] = {}
    ranges: dict[str, Choices | FloatRange] = {}
    for column in (c for c in inputs if frame[c].nunique() > 1):
        own = frame[column]
        if pd.api.types.is_numeric_dtype(own) and not pd.api.types.is_bool_dtype(own):
            columns[column] = own.astype(float).tolist()
            ranges[column] = FloatRange(min(columns[column]), max(columns[column]), log=column in log)
        else:
            columns[column] = own.astype(str).tolist()
            ranges[column] = Choices(tuple(sorted(set(columns[column]))))
    if not ranges:
        raise InputError(f"{name}: no task has two complete rows that differ in {objective} and in an input.")
    space = Space.of(ranges)
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    # the logarithm's rounding may put an end of a range just outside the cube
    X = space.encode(rows).clamp(0.0, 1.0)
    values = torch.tensor(frame[objective].astype(float).tolist(), dtype=torch.float64)
    labels = frame["task"].astype(str).to_numpy()
    tasks = {}
    for task in dict.fromkeys(labels):
        own_rows = torch.from_numpy(labels == task)
        tasks[task] = Dataset(X[own_rows], -values[own_rows] if maximize else values[own_rows], task)
    return TaskTable(name, space, tasks)


class TableProblem(Problem):
    """The paper's protocol for tables: optimise over the rows of one task, having seen some rows of others.

    Every seed draws a target, ``n_sources`` other tasks and ``rows`` random rows of each; the candidates are the
    target's own rows, the scale of the regret is max − min of all of them, and there is no noise. ``tasks`` names the
    tasks that take part: all where not given. A task with fewer rows than asked is no source, but may be the target.
    ``rows=None`` takes all rows; as the sources of a batch must be equally long, all are then cut to the length of the
    shortest task. With ``in_turn`` the tasks take turns as the target (that of seed 0 is the first one), so that each
    has the same share of the runs. With ``repeats`` a row may be evaluated again.

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
        names = tuple(table.tasks) if tasks is None else tuple(tasks)
        if n_sources < 1 or (rows is not None and rows < 1):
            raise InputError(f"n_sources and rows must be at least 1, but are {n_sources} and {rows}.")
        sizes = {t: table.tasks[t].n for t in names}
        n = min(sizes.values(), default=0) if rows is None else rows
        long = frozenset(t for t in names if sizes[t] >= n)
        if len(long) <= n_sources:
            raise InputError(
                f"{table.name}: a target and {n_sources} sources of {n} rows need {n_sources + 1} such tasks, but of "
                f"{len(names)} tasks {len(long)} have so many rows. Ask for fewer sources or rows."
            )
        self.table, self.n_sources, self.rows, self.d, self.space = table, n_sources, n, table.d, table.space
        more = ",targets=in turn" * in_turn + ",repeats=yes" * repeats
        self.name = f"{table.name}[sources={n_sources},rows={'all' if rows is None else rows}{more}]"
        self.fingerprint = table.fingerprint
        self._names, self._long = names, long
        self._in_turn, self._repeats = in_turn, repeats

    def draw(self, seeds: Sequence[int], steps: int) -> Instance:
        """The instances of these seeds; targets with fewer than ``steps`` rows are passed over, and logged."""
        if few := [t for t in self._names if self.table.tasks[t].n < steps]:
            if len(few) == len(self._names):
                raise InputError(f"{self.table.name}: no task has {steps} rows to evaluate. Ask for fewer evaluations.")
            logger.warning(
                "%s: no targets, for they have fewer than %d rows: %s.", self.table.name, steps, ", ".join(few)
            )
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
