"""Cells are written into a sheet of an .xlsx workbook, through openpyxl.

Formats, comments, widths, validations, conditional formats, formulas and other sheets stay. The values that formulas
had go: a spreadsheet program computes them when it next opens the workbook. What else would go is ``lost_in_writing``.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Mapping, Sequence
from copy import copy
from datetime import date
from zipfile import ZipFile

from headstart.errors import InputError, MissingExtraError

# Parts of a workbook that openpyxl writes again, or that nobody misses (the order of computing, settings of printers)
_KEPT = re.compile(
    r"\[Content_Types\]\.xml|(_rels|docProps|customXml)/.*"
    r"|xl/(_rels|theme|worksheets|comments|tables|printerSettings|persons)/.*"
    r"|xl/(workbook|styles|sharedStrings|calcChain|comments\d*)\.xml|xl/drawings/[^/]*\.vml|.*/"
)
_PARTS = {
    "xl/charts": "charts",
    "xl/media": "pictures",
    "xl/pivot": "pivot tables",
    "xl/vbaProject": "macros",
    "xl/threadedComments": "threads of comments",
    "xl/drawings": "drawings",
}


def lost_in_writing(raw: bytes, suffix: str, warned: Sequence[str]) -> str:
    """What a workbook holds that would be lost if it were written, "" if nothing.

    ``warned`` is what openpyxl said when it read the workbook: parts of a sheet that it does not know.
    """
    if suffix.lower() != ".xlsx":
        return f"what only {suffix.lower()} files hold"
    with ZipFile(io.BytesIO(raw)) as archive:
        parts = [name for name in archive.namelist() if not _KEPT.fullmatch(name)]
    found = [what for part, what in _PARTS.items() if any(name.startswith(part) for name in parts)]
    found += [*parts, *(text.split(" is not supported")[0] for text in warned if "removed" in text)]
    return found[0] if found else ""


def new_workbook(columns: Sequence[str]) -> bytes:
    """A workbook with one sheet, which has a header."""
    try:
        from openpyxl import Workbook
    except ImportError as error:
        raise MissingExtraError(
            "Writing Excel needs openpyxl. Install it with pip install 'headstart[excel]', or use a CSV file."
        ) from error
    book, out = Workbook(), io.BytesIO()
    assert book.active is not None
    book.active.title = "experiments"
    book.active.append(list(columns))
    book.save(out)
    return out.getvalue()


def with_cells(raw: bytes, sheet: str, cells: Mapping[tuple[int, int], str | float | date]) -> bytes:
    """The workbook with other cells in the sheet, each named by its row from 1 and its column from 0; "" empties one.

    A cell keeps its format, and a new one gets that of the cell above it: 8 in a cell in percent is written as 0.08. A
    day is a date of the spreadsheet program.
    """
    from openpyxl import load_workbook
    from openpyxl.cell import MergedCell
    from openpyxl.styles.numbers import is_date_format

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what openpyxl does not know was looked for when the workbook was read
        book = load_workbook(io.BytesIO(raw), rich_text=True)
    there = book[sheet]
    for (row, column), value in sorted(cells.items()):
        cell = there.cell(row, column + 1)
        if isinstance(cell, MergedCell):
            raise InputError(
                f"The cell {cell.coordinate} of the sheet {sheet!r} is part of a merged one. Split it first."
            )
        if not cell.has_style and row > 2:
            cell._style = copy(there.cell(row - 1, column + 1)._style)
        if isinstance(value, str):
            cell.value = value or None
            cell.data_type = "s" if value else "n"  # a text that begins with = is no formula
            continue
        if isinstance(value, date):
            cell.value = value  # in a format for dates if it has none
            continue
        if is_date_format(cell.number_format):
            cell.number_format = "General"
        cell.value = float(f"{value / 100:.15g}") if "%" in cell.number_format else value
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()
