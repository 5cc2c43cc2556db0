"""The column that says which batch every row of a file belongs to: a day, a lot, an operator, a plate.

One is proposed only where shifts can be told from noise and from the settings: most rows with results have it, some
file has two batches, most rows share theirs with another one, and rows of a batch differ in their settings.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from headstart.errors import NoBatchError
from headstart.sources.files.cells import MISSING
from headstart.sources.files.dates import DayFormat, is_day
from headstart.sources.files.tables import Table
from headstart.sources.roles import batch_rank, is_lot

_MOSTLY = 0.5  # of the rows with results so many have a batch, and so many share it with others


@dataclass(frozen=True, slots=True)
class BatchGuess:
    """A column that is taken for the batch, and why; ``also`` are its names in other files."""

    name: str
    why: str
    also: Mapping[str, str] = field(default_factory=dict)


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
        NoBatchError: A day that the calendar does not have.
    """
    days = day_format(column, table, others) if has_days(column, [table]) else None
    numeric = numbers and table.kind(column) == "number"
    found: list[Any] = []
    for row, (cell, own) in enumerate(zip(table.cells(column), table.parsed(column), strict=True)):
        try:
            day = None if days is None else days.day(cell)
        except ValueError as error:
            raise NoBatchError(
                f"{table.place(row, column)}: {cell!r} is no day of the calendar. Correct it."
            ) from error
        label = cell if day is None else day
        found.append(None if own.word == MISSING else own.value if numeric and own.value is not None else label)
    return found


def propose_batch(
    columns: Collection[str],
    tables: Sequence[Table],
    has: Sequence[Sequence[bool]],
    settings: Sequence[str],
    apart: Collection[str] = (),
) -> BatchGuess | None:
    """The column that is most likely the batch, None if none is.

    Args:
        columns: The columns that are no settings, and nothing that somebody named.
        tables: The tables.
        has: Their rows that have results.
        settings: The columns that are settings.
        apart: The columns that are not the same as any other.

    Returns:
        A lot or a plate before a day, a day before an operator, of equals the first.
    """
    ranked = {name: rank for name in columns if (rank := batch_rank(name, days=has_days(name, tables)))}
    for name, (_, what) in sorted(ranked.items(), key=lambda one: one[1][0]):
        also = {}
        if what == "day" and name not in apart:  # a file may call its days otherwise
            others = [other for other in ranked if other not in (name, *apart) and ranked[other][1] == what]
            lonely = [o for o in others if not any(o in t.columns and name in t.columns for t in tables)]
            also = {
                o: name for o in lonely if not any({o, p} <= {*t.columns} for t in tables for p in lonely if p != o)
            }
        called = [table.renamed(also) for table in tables]
        if _tells_batches(name, called, has, settings):
            names = "".join(f"; also called {other!r}" for other in also)
            return BatchGuess(name, told_of_batches(name, called, has, what) + names, also)
    return None


def told_of_batches(name: str, tables: Sequence[Table], has: Sequence[Sequence[bool]], what: str = "batch") -> str:
    """How many batches a column has, in how many files, and how many rows with results they have."""
    every = [own for own in _batches(name, tables, has) if own]
    sizes = [len(rows) for own in every for rows in own.values()]
    if not sizes:
        return "no row with a result has it"
    files = f"{len(every)} files" if len(every) > 1 else next(t.path.name for t in tables if name in t.columns)
    few, many = min(sizes), max(sizes)
    each = f"{few} to {many} rows" if few < many else f"{few} row{'s' if few > 1 else ''}"
    plural = "" if len(sizes) == 1 else "es" if what.endswith("ch") else "s"
    return f"{len(sizes)} {what}{plural} in {files}, {each} each"


def _batches(name: str, tables: Sequence[Table], has: Sequence[Sequence[bool]]) -> list[dict[Any, list[int]]]:
    """The rows with results of every batch, file by file; an empty cell is of the batch above."""
    found: list[dict[Any, list[int]]] = [{} for _ in tables]
    for own, table, there in zip(found, tables, has, strict=True):
        above = None
        for row, label in enumerate(batch_labels(name, table, tables) if name in table.columns else ()):
            above = above if label is None else label
            if there[row] and above is not None:
                own.setdefault(above, []).append(row)
    return found


def _tells_batches(name: str, tables: Sequence[Table], has: Sequence[Sequence[bool]], settings: Sequence[str]) -> bool:
    """Whether shifts between its batches could be seen, and are no effects of settings that are the same in a batch."""
    own = [(table.parsed(name), there) for table, there in zip(tables, has, strict=True) if name in table.columns]
    filled = sum(cell.word != MISSING for cells, rows in own for cell, there in zip(cells, rows, strict=True) if there)
    try:
        found = _batches(name, tables, has)
    except NoBatchError:  # a day that the calendar does not have
        return False
    several = [(t, rows) for t, each in zip(tables, found, strict=True) for rows in each.values() if len(rows) > 1]
    enough = _MOSTLY * sum(map(sum, has))
    if filled < enough or sum(len(rows) for _, rows in several) < enough or max(map(len, found)) < 2:
        return False
    differ = []
    for table, rows in several:
        places = [table.columns.index(column) for column in settings if column in table.columns]
        first, *others = [[table.rows[row][place] for place in places] for row in rows]
        differ += [other != first for other in others]
    return 2 * sum(differ) > len(differ)


def _cells(column: str, tables: Sequence[Table]) -> list[str]:
    return list(chain.from_iterable(table.cells(column) for table in tables if column in table.columns))
