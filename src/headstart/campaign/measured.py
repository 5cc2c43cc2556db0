"""What was measured, as a table has it: results, their standard errors, and rows that are there twice."""

from __future__ import annotations

import math
from collections.abc import Sequence

from headstart.campaign.file import TOML, CampaignFile, ResultColumn
from headstart.errors import InputError
from headstart.sources.files.frames import result_column
from headstart.sources.files.tables import Table

__all__ = ["copies_in", "errors_in", "results_in"]


def results_in(table: Table, column: ResultColumn) -> list[float | None]:
    """The results of a column, None where there is none; one that cannot be is an ``InputError``."""
    found = result_column(table, column.name)
    low, high = column.outcome.low, column.outcome.high
    for row, value in enumerate(found):
        below = value is not None and low is not None and value < low
        above = value is not None and high is not None and value > high
        if below or above:
            bound = f"low = {low:g}" if below else f"high = {high:g}"
            raise InputError(
                f"{table.place(row, column.name)}: {value:g} lies {'below' if below else 'above'} {bound} in {TOML}, "
                "so it cannot be. Correct it, or the bound."
            )
    return found


def errors_in(table: Table, column: ResultColumn, results: Sequence[float | None]) -> list[float] | None:
    """The standard errors of a column's results, NaN where one is not known; None if the table has no such column."""
    if not column.error or column.error not in table.columns:
        return None
    found = []
    for row, result in enumerate(results):
        value = None
        if result is not None:
            remedy = f"The standard error of {column.name} is a number; leave the cell empty where it is not known."
            value = table.number_at(row, column.error, remedy=remedy)
        if value is not None and value <= 0:
            raise InputError(
                f"{table.place(row, column.error)}: the standard error of {column.name} must be above 0, but it is "
                f"{value:g}. Correct it, or leave the cell empty where it is not known."
            )
        found.append(math.nan if value is None else value)
    return found


def copies_in(table: Table, has: Sequence[bool], file: CampaignFile, remarks: list[str]) -> set[int]:
    """Rows that are equal to an earlier one in every cell, results included: one measurement, or was it repeated?

    They count once, and it is asked, until the file says that they are repeats.
    """
    first: dict[tuple[str, ...], int] = {}
    copies: dict[int, list[int]] = {}
    for row, cells in enumerate(table.rows):
        if has[row] and first.setdefault(cells, row) != row:
            copies.setdefault(first[cells], []).append(row)
    if not copies or file.equal_rows_are_repeats:
        return set()
    groups = [" and ".join(str(table.numbers[row]) for row in (one, *others)) for one, others in copies.items()]
    listed = "; ".join(groups[:3]) + (f"; and {len(groups) - 3} more" if len(groups) > 3 else "")
    remarks.append(
        f"{table.path}: equal in every cell are rows {listed}. They count once, as copies of one measurement. If the "
        f'experiment was repeated, say so with equal_rows = "repeats" in {TOML}.'
    )
    return {row for others in copies.values() for row in others}
