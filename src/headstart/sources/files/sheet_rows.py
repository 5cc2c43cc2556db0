"""Other cells and more rows in a sheet of an Excel workbook: its XML gets them, and every other byte stays as it was.

Formulas with their values, charts, styles, other sheets and whatever else a workbook can hold are copied as they are. A
new cell looks like the one above it, and one that is written over as it did before.
"""

from __future__ import annotations

import io
import posixpath
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree
from xml.sax.saxutils import escape, quoteattr
from zipfile import ZipFile

from headstart.errors import InputError, MissingExtraError
from headstart.sources.files.cells import number_text

_ROW = re.compile(r"<(?P<ns>\w+:)?row\b(?P<attributes>[^>]*?)(?:/>|>(?P<cells>.*?)</(?:\w+:)?row>)", re.DOTALL)
_CELL = re.compile(r"<(?:\w+:)?c\b(?P<attributes>[^>]*?)(?:/>|>.*?</(?:\w+:)?c>)", re.DOTALL)
_FORMULA = re.compile(r"<(?:\w+:)?f\b")
_DATA = re.compile(r"<(?P<ns>\w+:)?sheetData\b(?P<more>[^>]*?)(?:/>|>(?P<rows>.*?)</(?:\w+:)?sheetData>)", re.DOTALL)
_DIMENSION = re.compile(r'(<(?:\w+:)?dimension\b[^>]*?\bref=")([A-Z]+)(\d+)(?::([A-Z]+)(\d+))?(")')
_RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"


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


def with_rows(
    raw: bytes,
    path: Path,
    sheet: str,
    columns: Sequence[str],
    first: int,
    rows: Sequence[Mapping[str, object]],
    *,
    styled: bool,
) -> bytes:
    """The workbook with more rows in the sheet from row ``first`` on; ``columns`` are those of the sheet in order.

    Only where it is to be ``styled`` do cells get a format, which may show the number as another one.
    """
    return _rewritten(raw, path, sheet, lambda xml: _extended(xml, columns, first, rows, styled))


def with_cells(
    raw: bytes,
    path: Path,
    sheet: str,
    columns: Sequence[str],
    cells: Mapping[tuple[int, str], object],
    *,
    plain: Collection[tuple[int, str]] = (),
) -> bytes:
    """The workbook with other cells in the sheet, each named by its row's number and its column; "" empties one.

    A cell keeps its format unless it is among the ``plain`` ones. One with a formula is not written over.
    """
    return _rewritten(raw, path, sheet, lambda xml: _with_cells(xml, path, columns, cells, plain))


def _rewritten(raw: bytes, path: Path, sheet: str, change: Callable[[str], str]) -> bytes:
    """The workbook with the sheet's XML changed, and all else byte by byte."""
    if path.suffix.lower() == ".ods":
        raise InputError(f"{path}: rows are added to .xlsx and .csv files alone. Save it as one of them.")
    out = io.BytesIO()
    with ZipFile(io.BytesIO(raw)) as archive, ZipFile(out, "w") as copy:
        part = _part(archive, sheet)
        for info in archive.infolist():
            content = archive.read(info)
            if info.filename == part:
                content = change(content.decode("utf-8")).encode("utf-8")
            copy.writestr(info, content, compress_type=info.compress_type)
    return out.getvalue()


def _part(archive: ZipFile, sheet: str) -> str:
    """The name of the sheet's XML in the archive."""
    book = ElementTree.fromstring(archive.read("xl/workbook.xml"))
    relations = ElementTree.fromstring(archive.read("xl/_rels/workbook.xml.rels"))
    wanted = next(e.get(_RELATION) for e in book.iter() if e.tag.endswith("}sheet") and e.get("name") == sheet)
    target = str(next(e.get("Target") for e in relations if e.get("Id") == wanted))
    return target.lstrip("/") if target.startswith("/") else posixpath.normpath(posixpath.join("xl", target))


def _extended(xml: str, columns: Sequence[str], first: int, rows: Sequence[Mapping[str, object]], styled: bool) -> str:
    data, there = _rows_in(xml)
    ns = data["ns"] or ""
    above = there.get(first - 1)
    looks = _cells(above["cells"] or "") if above is not None and first > 2 else {}
    written: dict[int, str] = {}
    for i, row in enumerate(rows):
        number = first + i
        old = there.get(number)
        cells = _cells((old["cells"] or "") if old is not None else "")
        for k, column in enumerate(columns):
            if column in row and row[column] != "":
                letters = _letters(k)
                like = (cells.get(letters) or looks.get(letters)) if styled else None
                cells[letters] = _cell(ns, f"{letters}{number}", row[column], like)
        written[number] = _row(ns, number, old, cells)
    xml = _with_written(xml, data, there, written)
    return _DIMENSION.sub(lambda found: _grown(found, first + len(rows) - 1), xml, count=1)


def _with_cells(
    xml: str,
    path: Path,
    columns: Sequence[str],
    told: Mapping[tuple[int, str], object],
    plain: Collection[tuple[int, str]],
) -> str:
    data, there = _rows_in(xml)
    ns = data["ns"] or ""
    written: dict[int, str] = {}
    for number in sorted({row for row, _ in told}):
        old, above = there.get(number), there.get(number - 1)
        cells = _cells((old["cells"] or "") if old is not None else "")
        looks = _cells(above["cells"] or "") if above is not None and number > 2 else {}
        for k, column in enumerate(columns):
            if (number, column) not in told:
                continue
            letters, value = _letters(k), told[number, column]
            if _FORMULA.search(cells.get(letters, "")):
                raise InputError(
                    f"{path}, row {number}, column {column!r}: the cell has a formula, which would be lost. Change it "
                    "in the spreadsheet program."
                )
            like = None if (number, column) in plain else cells.get(letters) or looks.get(letters)
            cells[letters] = _cell(ns, f"{letters}{number}", value, like)
        written[number] = _row(ns, number, old, cells)
    return _with_written(xml, data, there, written)


def _rows_in(xml: str) -> tuple[re.Match[str], dict[int, re.Match[str]]]:
    """Where the rows stand, and each of them by its number."""
    data = _DATA.search(xml)
    assert data is not None, "a sheet has sheetData"
    return data, {_row_number(found): found for found in _ROW.finditer(data["rows"] or "")}


def _row(ns: str, number: int, old: re.Match[str] | None, cells: Mapping[str, str]) -> str:
    attributes = old["attributes"].rstrip() if old is not None else f' r="{number}"'
    inside = "".join(cells[letters] for letters in sorted(cells, key=lambda name: (len(name), name)))
    return f"<{ns}row{attributes}>{inside}</{ns}row>"


def _with_written(xml: str, data: re.Match[str], there: Mapping[int, re.Match[str]], written: Mapping[int, str]) -> str:
    ns = data["ns"] or ""
    every = {**{number: found[0] for number, found in there.items()}, **written}
    body = "".join(every[number] for number in sorted(every))
    return f"{xml[: data.start()]}<{ns}sheetData{data['more']}>{body}</{ns}sheetData>{xml[data.end() :]}"


def _row_number(row: re.Match[str]) -> int:
    found = re.search(r'\br="(\d+)"', row["attributes"])
    if found is None:
        raise InputError("The workbook's rows have no numbers. Open it in a spreadsheet program and save it again.")
    return int(found[1])


def _cells(xml: str) -> dict[str, str]:
    """The cells of a row by their column."""
    found = {}
    for cell in _CELL.finditer(xml):
        place = re.search(r'\br="([A-Z]+)\d+"', cell["attributes"])
        if place is not None:
            found[place[1]] = cell[0]
    return found


def _cell(ns: str, place: str, value: object, like: str | None) -> str:
    style = re.search(r'<[^>]*?\bs="(\d+)"', like.split(">", 1)[0] + ">") if like else None
    look = f" s={quoteattr(style[1])}" if style else ""
    if value == "":
        return f'<{ns}c r="{place}"{look}/>'
    if isinstance(value, int | float):
        return f'<{ns}c r="{place}"{look}><{ns}v>{number_text(value, ".")}</{ns}v></{ns}c>'
    text = f'<{ns}t xml:space="preserve">{escape(str(value))}</{ns}t>'
    return f'<{ns}c r="{place}"{look} t="inlineStr"><{ns}is>{text}</{ns}is></{ns}c>'


def _letters(column: int) -> str:
    """A, B, … Z, AA: what a spreadsheet program calls its columns, from 0."""
    letters = ""
    column += 1
    while column:
        column, rest = divmod(column - 1, 26)
        letters = chr(65 + rest) + letters
    return letters


def _grown(found: re.Match[str], last: int) -> str:
    end = found[4] or found[2]
    return f"{found[1]}{found[2]}{found[3]}:{end}{max(last, int(found[5] or found[3]))}{found[6]}"
