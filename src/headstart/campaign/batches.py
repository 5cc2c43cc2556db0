"""The batches of a campaign's own rows: which each of them belongs to, and which one is the present."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from headstart.campaign.file import TOML, CampaignFile
from headstart.campaign.toml.reading import wrong_at
from headstart.errors import nearest
from headstart.sources.batch_column import batch_labels, day_format, has_days
from headstart.sources.files.cells import number
from headstart.sources.files.dates import DayFormat
from headstart.sources.files.tables import Table
from headstart.sources.roles import called_a_date


@dataclass(frozen=True, slots=True)
class OwnBatches:
    """A label for every row of ``current.csv``, that of the present batch, and how a new row has it in its cell.

    Labels are days, numbers or texts; None where nobody said. The present batch is today, or that of the last row.
    """

    labels: tuple[Any, ...] = ()
    present: Any = None
    cell: str | float | date = ""


def own_batches(
    table: Table, file: CampaignFile, past: Sequence[Table], today: date, folder: Path, remarks: list[str]
) -> OwnBatches:
    """The batches of the experiments, whose table is typed; what is noticed is added to the remarks."""
    column, tables = file.batch, [*past, table]
    if not column:
        return OwnBatches()
    lacking = [one for one in tables if column not in one.columns]
    if len(lacking) == len(tables):
        every = list(dict.fromkeys(c for one in tables for c in one.columns))
        why = f"batch names {column!r}, but no file has such a column. {nearest(column, every)}"
        raise wrong_at(folder / TOML, "batch", why)
    if lacking:
        names = ", ".join(str(one.path) for one in lacking)
        remarks.append(f"Without a column {column!r} all results of a file count as one batch: {names}.")
    if column not in table.columns:
        return OwnBatches()
    labels = batch_labels(column, table, past, numbers=file.drift is not None)
    known = [label for label in labels if label is not None]
    shown = [table] if known else [one for one in past if column in one.columns and any(one.cells(column))]
    if not (has_days(column, shown) if shown else called_a_date(column)):
        present = known[-1] if known else None
        cell = next((cell for cell in reversed(table.cells(column)) if cell), "")
        value = number(cell, table.mark) if table.sheet else None
        return OwnBatches(tuple(labels), present, cell if value is None else value)
    days = day_format(column, table, past[::-1])  # a new table is written as the first past file
    measured = [column for column in file.results if column.name in table.columns]
    for row, (cell, label) in enumerate(zip(table.cells(column), labels, strict=True)):
        done = any(table.values[one.name][row].value is not None for one in measured)
        if done and isinstance(label, date) and label > today:
            told = f"{table.place(row, column)}: {cell!r} lies in the future: today is {today}."
            remarks.append(f"{told} It counts, but look whether it is a slip.")
    unclear = next((cell for cell in table.cells(column) if days.undecided(cell)), "")
    if unclear:
        remarks.append(
            f"{table.path}, column {column!r}: {unclear!r} is taken for {days.day(unclear)}, the day first, as no cell "
            "shows which of the two is the day. Days written as 2026-11-03 are always clear."
        )
    in_texts = not table.sheet or DayFormat.of(table.cells(column)).text(today) != today.isoformat()
    return OwnBatches(tuple(labels), today, days.text(today) if in_texts else today)
