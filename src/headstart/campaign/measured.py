"""What was measured, as a table has it: results, their standard errors, and rows that are there twice."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from headstart.campaign.file import TOML, CampaignFile, ResultColumn
from headstart.errors import InputError, Message, Setting, SeveralProblemsError
from headstart.sources.columns import result_column
from headstart.sources.files.tables import Table

# Results may be slips of the decimal mark if they are so many times all others, of which there are so many, which keep
# so close together themselves; more of them than that are no slips
_TIMES, _FEWEST, _TOGETHER, _MOST = 10, 6, 5, 3
# A good new result may be better than any before, but hardly so many times: 8840 among 60s is 88.40 rather than 8.84
_BEYOND = 2


@dataclass(frozen=True, slots=True)
class ResultSlip:
    """A result that may be a slip of the decimal mark. ``row`` is its number, ``cell`` what stands there.

    ``times`` says how far it is beyond all other results, ``meant`` what it is with the mark where it may belong.
    """

    path: Path
    row: int
    column: str
    cell: str
    times: float
    meant: float

    @property
    def value(self) -> float:
        """The number that it is if it is right."""
        return float(self.cell.replace(",", "."))

    @property
    def message(self) -> Message:
        """The question, and both ways to answer it."""
        right = self.cell.replace(",", ".")
        return Message(
            f"{self.path}, row {self.row}, column {self.column!r}: {self.cell} is {self.times:.0f} times the largest "
            f"of all other results. If the decimal mark has slipped ({self.meant:g}?), correct it; if it is right, say "
            f'so with "{self.cell}" = {right} in [cells] of {TOML}.',
            Setting("cells", f"{self.cell}={right}"),
        )


class SlippedResultsError(SeveralProblemsError):
    """Results that may be slips of the decimal mark: somebody has to say whether they are right."""

    def __init__(self, slips: Sequence[ResultSlip]) -> None:
        super().__init__(list(dict.fromkeys(slip.message for slip in slips)))
        self.slips = tuple(slips)


def results_in(table: Table, column: ResultColumn) -> list[float | None]:
    """The results of a column, None where there is none; one that cannot be is an ``InputError``."""
    found = result_column(table, column.name)
    for row, value in enumerate(found):
        if value is not None and (why := impossible(column, value)):
            raise InputError(f"{table.place(row, column.name)}: {why}")
    return found


def impossible(column: ResultColumn, value: float) -> str:
    """What is wrong with a result that lies beyond the bounds of its column; "" if it does not."""
    low, high = column.outcome.low, column.outcome.high
    if low is not None and value < low:
        where = f"below low = {low:g}"
    elif high is not None and value > high:
        where = f"above high = {high:g}"
    else:
        return ""
    slipped = next((value / 10**k for k in (1, 2, 3) if (low or 0.0) <= value / 10**k <= (high or 0.0)), None)
    meant = "" if slipped is None else f" Has the decimal mark slipped ({slipped:g}?)"
    return f"{value:g} lies {where} in {TOML}, so it cannot be.{meant} Correct it, or the bound."


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


def require_no_slips(tables: Sequence[Table], file: CampaignFile) -> None:
    """Raise an error on results such as 8840 among 60 … 95: with the mark two places on it is one of them.

    Whether it is right can be said in [cells]. A 1e9 for "failed" is no such slip, nor is anything where results
    themselves span decades.
    """
    rules, slips = file.rules_of_cells, []
    for column in file.results:
        found = [
            (abs(value), table, row)
            for table in tables
            if column.name in table.columns
            for row, value in enumerate(result_column(table, column.name))
            if value is not None
        ]
        found.sort(key=lambda one: -one[0])
        sizes = [size for size, _, _ in found]
        for count in range(_MOST, 0, -1):
            rest = sizes[count:]
            if len(rest) < _FEWEST or not 0 < _TIMES * rest[0] <= sizes[count - 1]:
                continue
            if rest[0] > _TOGETHER * rest[len(rest) // 2]:
                continue
            for size, table, row in found[:count]:
                cell = table.cells(column.name)[row]
                meant = next((size / 10**k for k in (1, 2, 3) if size / 10**k <= _BEYOND * rest[0]), None)
                if meant is None or isinstance(rules.meaning(cell), float | int):
                    continue
                number = table.numbers[row]
                slips.append(ResultSlip(table.path, number, column.name, cell, size / rest[0], meant))
            break
    if slips:
        raise SlippedResultsError(slips)


def copies_in(table: Table, has: Sequence[bool], file: CampaignFile, remarks: list[str]) -> set[int]:
    """Rows that are equal to an earlier one in every cell, results included: one measurement, or was it repeated?

    They count once, and it is asked, until the file says that they are repeats.
    """
    first: dict[tuple[str, ...], int] = {}
    copies: dict[int, list[int]] = {}
    for row, told in enumerate(table.rows):
        cells = tuple("" if cell.startswith("=") else cell for cell in told)  # a formula names its own row
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
