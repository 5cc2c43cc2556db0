"""Sheets of workbooks: .xlsx and .xlsm through openpyxl, an extra, and .ods as the XML that it is.

a cell is            it is read as
a number             that number; with a format in percent, 0.885 is '88.5 %', as it is shown
a date or a time     text of it: no number; without a time of day where none was written
a formula            its value when the workbook was saved
"""

from __future__ import annotations

import datetime
import io
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from unicodedata import normalize
from xml.etree import ElementTree
from zipfile import ZipFile

from headstart.errors import HeadstartError, MissingExtraError, UnreadableTableError
from headstart.sources.files.cells import number_text
from headstart.sources.files.sheet_rows import lost_in_writing
from headstart.sources.files.text import MOST_BYTES, MOST_ROWS, raw_bytes

WORKBOOKS = (".xlsx", ".xlsm", ".ods")
_MOST_COLUMNS = 2000
_NAMED = re.compile(r"(?P<file>.*\.(?:xlsx|xlsm|ods))#(?P<sheet>[^/\\]+)", re.IGNORECASE)
_OFFICE, _TABLE, _TEXT = (
    f"{{urn:oasis:names:tc:opendocument:xmlns:{part}:1.0}}" for part in ("office", "table", "text")
)

CellValue = str | float


@dataclass(frozen=True, slots=True)
class WorkbookSheet:
    """The cells of a sheet from its first row on; numbers are numbers, all else is text."""

    title: str
    cells: tuple[tuple[CellValue, ...], ...]
    raw: bytes
    remarks: tuple[str, ...] = ()
    formulas: frozenset[int] = frozenset()  # the places of columns that have formulas
    lost: str = ""  # what the workbook holds that would be lost if it were written

    @property
    def texts(self) -> Iterator[str]:
        """The cells that are text."""
        return (cell for row in self.cells for cell in row if isinstance(cell, str))

    def records(self, mark: str | None) -> list[list[str]]:
        """All cells as text; numbers are clear where no text shows the decimal ``mark``."""
        return [
            [
                normalize("NFC", c.strip()) if isinstance(c, str) else number_text(c, mark or ".", clear=mark is None)
                for c in row
            ]
            for row in self.cells
        ]


def split_sheet(path: Path) -> tuple[Path, str] | None:
    """The workbook and the sheet that a path such as ``runs.xlsx#Sheet2`` names; None if it is no workbook's."""
    if path.suffix.lower() in WORKBOOKS:
        return path, ""
    named = _NAMED.fullmatch(str(path))
    return None if named is None else (Path(named["file"]), named["sheet"])


def workbook_file(path: Path) -> Path:
    """The file that holds what a path names: the workbook of a sheet, or the path itself."""
    return (split_sheet(path) or (path,))[0]


def read_sheet(path: Path, raw: bytes | None = None) -> WorkbookSheet:
    """The sheet that the path names, or the first one that has cells; others that have some are remarked on.

    ``raw`` are the workbook's bytes, if they are not those of the file.
    """
    named = split_sheet(path)
    assert named is not None
    file, wanted = named
    raw = raw_bytes(file) if raw is None else raw
    try:
        with ZipFile(io.BytesIO(raw)) as archive:
            if sum(part.file_size for part in archive.infolist()) > 3 * MOST_BYTES:
                raise UnreadableTableError(f"{file} is too large when it is unpacked. Keep a sample of about 500 rows.")
            ods = file.suffix.lower() == ".ods"
            sheets, formulas, warned = (_ods(archive), {}, []) if ods else _xlsx(raw, file)
            lost = lost_in_writing(raw, file.suffix, warned)
    except HeadstartError:
        raise
    except Exception as error:  # whatever openpyxl, zipfile and the parser of XML make of damaged bytes
        why = " ".join(str(error).split()) or type(error).__name__
        raise UnreadableTableError(
            f"{file}: the file is damaged, cut off, or not the workbook that its name says ({why[:200]}). Save it anew "
            "in the spreadsheet program, or leave it out."
        ) from error
    filled = [name for name, cells in sheets.items() if cells]
    if wanted:
        alike = [name for name in sheets if name.casefold() == wanted.casefold()]
        if not alike:
            raise UnreadableTableError(
                f"{file}: there is no sheet {wanted!r}. Its sheets are {', '.join(map(repr, sheets))}."
            )
        title = wanted if wanted in sheets else alike[0]
    else:
        title = next(iter(filled or sheets), "")
    if not title or len(sheets[title]) > MOST_ROWS:
        raise UnreadableTableError(f"{file} has {'too many rows' if title else 'no sheet'}.")
    remarks: tuple[str, ...] = ()
    if not wanted and len(filled) > 1:
        others = ", ".join(map(repr, filled[1:]))
        remarks = (f"{file}: the sheet {title!r} is read. For another one ({others}) write {file}#{filled[1]}.",)
    cells = tuple(tuple(row) for row in sheets[title])
    return WorkbookSheet(title, cells, raw, remarks, frozenset(formulas.get(title, ())), lost)


def _trimmed(rows: Sequence[Sequence[CellValue]]) -> list[list[CellValue]]:
    """Without the empty cells at the right and the bottom that a spreadsheet program keeps."""
    found = [list(row) for row in rows]
    for row in found:
        while row and row[-1] == "":
            row.pop()
    while found and not found[-1]:
        found.pop()
    return found


def _xlsx(raw: bytes, path: Path) -> tuple[dict[str, list[list[CellValue]]], dict[str, set[int]], list[str]]:
    """The cells of every sheet, the places of the columns that have formulas, and what openpyxl does not know."""
    try:
        from openpyxl import load_workbook
    except ImportError as error:
        raise MissingExtraError(
            f"{path}: reading Excel needs openpyxl. Install it with pip install 'headstart[excel]', or save the sheet "
            "as CSV."
        ) from error
    with warnings.catch_warnings(record=True) as warned:  # of styles and validations that it does not know
        warnings.simplefilter("always")
        values, formulas = (load_workbook(io.BytesIO(raw), data_only=only) for only in (True, False))
    computed = {
        sheet.title: [cell for row in sheet.iter_rows() for cell in row if cell.data_type == "f"]
        for sheet in formulas.worksheets
    }
    calculated = any(
        values[title].cell(cell.row, cell.column).value is not None
        for title, cells in computed.items()
        for cell in cells
    )
    found = {}
    for sheet in values.worksheets:
        rows: list[list[CellValue]] = []
        for row in sheet.iter_rows(min_row=1, min_col=1):
            texts = [_value(cell.value, str(cell.number_format)) for cell in row]
            if not calculated:  # nobody knows what its formulas are worth
                for i, own in enumerate(formulas[sheet.title][row[0].row]):
                    if i < len(texts) and own.data_type == "f":
                        texts[i] = str(own.value)
            rows.append(texts)
        found[sheet.title] = _trimmed(rows)
    columns = {title: {cell.column - 1 for cell in cells} for title, cells in computed.items()}
    return found, columns, [str(warning.message) for warning in warned]


def _value(value: object, shown: str) -> CellValue:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int | float):
        return f"{number_text(float(f'{value * 100:.12g}'), '.')} %" if "%" in shown else float(value)
    if isinstance(value, datetime.datetime):
        midnight = value.time() == datetime.time()
        return value.date().isoformat() if midnight and "h" not in shown.lower() else value.isoformat(" ", "minutes")
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return str(value)


def _ods(archive: ZipFile) -> dict[str, list[list[CellValue]]]:
    content = archive.read("content.xml")
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:  # none is needed, and one can be made to explode
        raise ValueError("it has a document type of its own")
    found = {}
    for table in ElementTree.fromstring(content).iter(f"{_TABLE}table"):
        rows: list[list[CellValue]] = []
        for row in table.iter(f"{_TABLE}table-row"):
            cells: list[CellValue] = []
            for cell in row:
                if cell.tag in (f"{_TABLE}table-cell", f"{_TABLE}covered-table-cell"):
                    times = min(int(cell.get(f"{_TABLE}number-columns-repeated", "1")), _MOST_COLUMNS)
                    cells += [_ods_value(cell)] * times
            cells = next(iter(_trimmed([cells])), [])
            times = int(row.get(f"{_TABLE}number-rows-repeated", "1"))
            rows += [cells] * (times if cells else min(times, 1000))
            if len(rows) > MOST_ROWS:
                raise ValueError("it has too many rows")
        found[str(table.get(f"{_TABLE}name"))] = _trimmed(rows)
    return found


def _ods_value(cell: ElementTree.Element) -> CellValue:
    kind, value = cell.get(f"{_OFFICE}value-type"), cell.get(f"{_OFFICE}value")
    if kind == "percentage" and value is not None:
        return f"{number_text(float(f'{float(value) * 100:.12g}'), '.')} %"
    if kind in ("float", "currency") and value is not None:
        return float(value)
    if kind == "date":
        return (cell.get(f"{_OFFICE}date-value") or "").removesuffix("T00:00:00").replace("T", " ")
    return "\n".join("".join(line.itertext()) for line in cell.iter(f"{_TEXT}p"))
