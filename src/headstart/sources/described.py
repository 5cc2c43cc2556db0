"""Numbers that describe categories, from a CSV file or from columns of the past tasks, and categories never run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from headstart.data.dataset import Dataset
from headstart.data.descriptors import Descriptors
from headstart.data.ranges import Choices, FloatRange
from headstart.data.space import Space
from headstart.errors import InputError, refuse
from headstart.sources.columns import TableUse, input_column, typed
from headstart.sources.files.cells import CellRules
from headstart.sources.files.names import meant_by
from headstart.sources.files.tables import read_table
from headstart.sources.matching import is_missing, match
from headstart.sources.raw import RawTask


def read_descriptors(
    path: Path | str, parameter: str, choices: Sequence[Any], rules: CellRules | None = None
) -> Descriptors:
    """The descriptors of a parameter's categories in a CSV file, which may describe more categories than there are.

    The categories are in the column that is called as the parameter, or in the first one. Fails, with file, row and
    column, on a cell that is empty, on a number that is none, on a category with two values, and where one of the
    ``choices`` is not described. Cells mean what they mean in any file (``docs/files.md``), and by these ``rules``.
    """
    table = read_table(path, rules=rules)
    table = table.renamed({next(iter(meant_by([parameter], table.columns)), table.columns[0]): parameter})
    names = [column for column in table.columns if column != parameter]
    if not names:
        raise InputError(f"{path}: there is no column of numbers. Add what describes the {parameter}.")
    known = {parameter: [choice for choice in choices if isinstance(choice, str)]}
    remedy = "Descriptors are numbers: write one, or remove the column."
    table = typed(table, TableUse((), tuple(names), known, past=False, remedy=remedy))
    refuse(table.problems)
    every = [True] * len(table.rows)
    rows = pd.DataFrame({column: input_column(table, column, every) for column in table.columns})
    task = RawTask(str(path), rows, np.zeros(len(rows)), origin=str(path), numbers=table.numbers)
    made = _described([task], parameter, names, choices, str(path), "Add a row for it")
    return replace(made, remarks=(*table.remarks, *made.remarks))


def descriptors_in_tasks(
    tasks: Sequence[RawTask], parameter: str, columns: Sequence[str], choices: Sequence[Any]
) -> Descriptors:
    """The descriptors that columns of the past tasks hold: one value for every category, the same wherever it is met.

    A task may lack a column. Fails, with file and row, where a category has two values, where a value is no number,
    and where one of the ``choices`` has none in any task.
    """
    for name in columns:
        if not any(name in task.parameters for task in tasks):
            raise InputError(
                f"{name!r} is to describe {parameter}, but no past task has such a column. Correct the name."
            )
    return _described(tasks, parameter, columns, choices, "The past tasks", "Give a file of descriptors")


def _described(
    tasks: Sequence[RawTask], parameter: str, columns: Sequence[str], choices: Sequence[Any], where: str, remedy: str
) -> Descriptors:
    """The descriptors in columns of these tasks; ``remedy`` is what helps where one of the choices has none."""
    found: dict[Any, dict[str, float]] = {}
    met: dict[tuple[Any, str], str] = {}
    for task in tasks:
        there = [name for name in columns if name in task.parameters]
        if parameter not in task.parameters or not there:
            continue
        numbers = task.numbers or range(len(task.rows))
        for label, raw, *values in zip(numbers, task.rows[parameter], *(task.rows[n] for n in there), strict=True):
            if is_missing(raw):
                continue
            category, place = match([raw], Choices(tuple(choices))).values[0], f"{task.where}, row {label}"
            for name, value in zip(there, values, strict=True):
                if is_missing(value):
                    continue
                numeric = match([value], FloatRange(0.0, 1.0)).values[0]  # in any range
                if numeric is None:
                    raise InputError(
                        f"{place}, column {name!r}: {value!r} is not a number, and cannot describe anything."
                    )
                known = found.setdefault(category, {}).setdefault(name, float(numeric))
                if known != float(numeric):
                    raise InputError(
                        f"{place}, column {name!r}: {category!r} has {numeric:g}, but {known:g} in "
                        f"{met[category, name]}. What describes a category has one value: correct it, or leave the "
                        "column out of the descriptors."
                    )
                met.setdefault((category, name), place)
    lacking = [choice for choice in choices if choice not in found]
    if lacking:
        others = f", nor are {len(lacking) - 1} others" if len(lacking) > 1 else ""
        raise InputError(
            f"{where}: {parameter} = {lacking[0]!r} is not described{others}. {remedy}, or take it from the choices."
        )
    for category, row in found.items():
        if empty := [name for name in columns if name not in row]:
            raise InputError(
                f"{parameter} = {category!r} has no {empty[0]} in any past task. Fill it in, or give a file of "
                "descriptors."
            )
    return Descriptors.of({c: {name: row[name] for name in columns} for c, row in found.items()}, parameter)


def never_run(space: Space, row: Mapping[str, Any], datasets: Sequence[Dataset]) -> tuple[str, ...]:
    """A sentence for every category of the row that none of the data sets, past or present, has.

    With descriptors it says between or next to which known categories it was placed, and by what.
    """
    said = []
    for axis in space.axes:
        if not axis.categorical or axis.width == 0 or axis.name not in row:
            continue
        columns = range(*axis.columns.indices(space.d))
        own = columns[: len(axis.levels)]
        seen: set[int] = set()
        for data in datasets:
            if not set(columns) & set(data.unseen):
                block = data.X[..., list(columns)].reshape(-1, len(columns))
                there = (block[:, : len(own)] > 0).any(-1)  # at rest no level is
                seen |= set(axis.level_at(block[there]).unique().tolist())
        level = int(axis.level_at(axis.place([row[axis.name]]))[0])
        if level not in seen:
            known = [axis.levels[i] for i in sorted(seen)]
            said.append(_sentence(axis.name, axis.levels[level], known, axis.descriptors))
    return tuple(said)


def _sentence(parameter: str, category: Any, known: Sequence[Any], descriptors: Descriptors | None) -> str:
    start = f"{parameter} {category} was never run"
    if descriptors is None:
        return f"{start}: nothing is known of it but what all have in common."
    nearest, between = descriptors.neighbours(category, known)
    if not nearest:
        return f"{start}, nor was any other."
    how = "between" if between else "nearest to"
    return f"{start}: it is placed by its {' and '.join(descriptors.names)} {how} {' and '.join(map(str, nearest))}."
