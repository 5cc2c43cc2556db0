"""Where the numbers that describe categories come from, and what they say of a category that was never run.

read_descriptors       a CSV file: a row per category, a column with its name, the others are numbers
descriptors_in_tasks   columns of the past tasks themselves, which have one value for every category
never_run              the sentences about those values of a suggestion that nobody has tried yet
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from headstart.data.dataset import Dataset
from headstart.data.descriptors import Descriptors
from headstart.data.ranges import Choices, FloatRange
from headstart.data.space import Space
from headstart.errors import InputError, refuse
from headstart.sources.columns import TableUse, cleaned
from headstart.sources.files.cells import CellRules
from headstart.sources.files.cells import is_missing as is_empty
from headstart.sources.files.tables import Table, read_table
from headstart.sources.files.units import folded
from headstart.sources.matching import is_missing, match
from headstart.sources.raw import RawTask

_REMEDY = "Descriptors are numbers: write one, or remove the column."


def read_descriptors(
    path: Path | str, parameter: str, choices: Sequence[Any], rules: CellRules | None = None
) -> Descriptors:
    """The descriptors of a parameter's categories in a CSV file, which may describe more categories than there are.

    The categories are in the column that is called as the parameter, or in the first one. Fails, with file, row and
    column, on a category that comes twice or has no name, on a number that is missing or none, and where one of the
    ``choices`` is not described. Cells mean what they mean in any file (``docs/files.md``), and by these ``rules``.
    """
    table = read_table(path, rules=rules)
    own = next((c for c in table.columns if folded(c) == folded(parameter)), table.columns[0])
    names = [column for column in table.columns if column != own]
    if not names:
        raise InputError(f"{path}: there is no column of numbers beside {own!r}. Add what describes the {parameter}.")
    use = TableUse((), tuple(names), past=False, remedy=_REMEDY)
    plain = cleaned(table, use)
    refuse(plain.problems)
    table = plain.table
    found: dict[Any, dict[str, float]] = {}
    rows: dict[Any, int] = {}
    for i, cell in enumerate(table.cells(own)):
        if is_empty(cell, numeric=False):
            raise InputError(f"{table.place(i, own)}: there is no category. Fill it in, or delete the row.")
        category = _category(cell, choices)
        if category in found:
            raise InputError(
                f"{table.place(i, own)}: {cell!r} is there twice, in row {table.numbers[rows[category]]} before. "
                "Remove one of the rows."
            )
        found[category], rows[category] = {name: _number(table, i, name) for name in names}, i
    _require_choices(found, choices, parameter, f"{path}", "Add a row for it")
    made = Descriptors.of(found, parameter)
    return replace(made, remarks=(*table.remarks, *made.remarks))


def descriptors_in_tasks(
    tasks: Sequence[RawTask], parameter: str, columns: Sequence[str], choices: Sequence[Any]
) -> Descriptors:
    """The descriptors that columns of the past tasks hold: one value for every category, the same wherever it is met.

    A task may lack a column. Fails, with file and row, where a category has two values, where a value is no number,
    and where one of the ``choices`` has none in any task.
    """
    found: dict[Any, dict[str, float]] = {}
    met: dict[tuple[Any, str], str] = {}
    for name in columns:
        if not any(name in task.parameters for task in tasks):
            raise InputError(
                f"{name!r} is to describe {parameter}, but no past task has such a column. Correct the name."
            )
    for task in tasks:
        there = [name for name in columns if name in task.parameters]
        if parameter not in task.parameters or not there:
            continue
        numbers = task.numbers or range(len(task.rows))
        for label, raw, *values in zip(numbers, task.rows[parameter], *(task.rows[n] for n in there), strict=True):
            if is_missing(raw):
                continue
            category, where = _category(raw, choices), f"{task.where}, row {label}"
            for name, value in zip(there, values, strict=True):
                if is_missing(value):
                    continue
                numeric = match([value], FloatRange(0.0, 1.0)).values[0]  # in any range
                if numeric is None:
                    raise InputError(
                        f"{where}, column {name!r}: {value!r} is not a number, and cannot describe anything."
                    )
                known = found.setdefault(category, {}).setdefault(name, float(numeric))
                if known != float(numeric):
                    raise InputError(
                        f"{where}, column {name!r}: {category!r} has {numeric:g}, but {known:g} in "
                        f"{met[category, name]}. What describes a category has one value: correct it, or leave the "
                        "column out of the descriptors."
                    )
                met.setdefault((category, name), where)
    _require_choices(found, choices, parameter, "The past tasks", "Give a file of descriptors")
    for category, row in found.items():
        lacking = [name for name in columns if name not in row]
        if lacking:
            raise InputError(
                f"{parameter} = {category!r} has no {lacking[0]} in any past task. Fill it in, or give a file of "
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
    return f"{start}: it is placed by its {_listed(descriptors.names)} {how} {_listed([str(c) for c in nearest])}."


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _category(value: Any, choices: Sequence[Any]) -> Any:
    """The choice that a cell stands for, or the cell itself."""
    return match([value], Choices(tuple(choices))).values[0]


def _number(table: Table, row: int, column: str) -> float:
    value = table.number_at(row, column, remedy=_REMEDY)
    if value is None:
        raise InputError(f"{table.place(row, column)}: the cell is empty. Fill it in, or remove the row or the column.")
    return float(value)


def _require_choices(found: Mapping[Any, Any], choices: Sequence[Any], parameter: str, where: str, remedy: str) -> None:
    lacking = [choice for choice in choices if choice not in found]
    if lacking:
        raise InputError(
            f"{where}: {parameter} = {lacking[0]!r} is not described"
            f"{f', nor are {len(lacking) - 1} others' if len(lacking) > 1 else ''}. {remedy}, or take it from the "
            "choices."
        )
