"""The column that says which batch every row of a file belongs to: a day, a lot, an operator, a plate."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

from headstart.errors import InputError
from headstart.sources.files.cells import MISSING
from headstart.sources.files.dates import DayFormat, is_day
from headstart.sources.files.tables import Table
from headstart.sources.roles import is_lot


def has_days(column: str, tables: Sequence[Table]) -> bool:
    """Whether most cells of a column are days, as those of lots that are numbered like days are not."""
    filled = [cell for cell in _cells(column, tables) if cell]
    return not is_lot(column) and 2 * sum(map(is_day, filled)) > len(filled)


def day_format(column: str, table: Table, others: Sequence[Table] = ()) -> DayFormat:
    """How a file writes days; what it does not show, as other files do."""
    return DayFormat.of(_cells(column, [table]), _cells(column, others))


def batch_labels(column: str, table: Table, others: Sequence[Table] = (), *, numbers: bool = False) -> list[Any]:
    """The batch of every row: a day, a number if these are wanted, else a text; None where nothing is said.

    Args:
        column: The column.
        table: A typed table that has it.
        others: Other tables, which show the order of day and month where this one does not.
        numbers: Whether numbers are wanted as such, to tell how far batches lie apart.

    Returns:
        A label for every row.

    Raises:
        InputError: A day that the calendar does not have.
    """
    days = day_format(column, table, others) if has_days(column, [table]) else None
    numeric = numbers and table.kind(column) == "number"
    found: list[Any] = []
    for row, (cell, own) in enumerate(zip(table.cells(column), table.parsed(column), strict=True)):
        try:
            day = None if days is None else days.day(cell)
        except ValueError as error:
            raise InputError(f"{table.place(row, column)}: {cell!r} is no day of the calendar. Correct it.") from error
        label = cell if day is None else day
        found.append(None if own.word == MISSING else own.value if numeric and own.value is not None else label)
    return found


def _cells(column: str, tables: Sequence[Table]) -> list[str]:
    return list(chain.from_iterable(table.cells(column) for table in tables if column in table.columns))
