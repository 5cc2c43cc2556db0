"""Cells of a table are written anew, and everything else in its file stays as it is, byte by byte."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Mapping
from dataclasses import replace

from headstart.errors import InputError
from headstart.sources.files.cells import CellRules, parse_cell
from headstart.sources.files.cells import number as number_in
from headstart.sources.files.sheet_rows import with_cells
from headstart.sources.files.tables import Table, read_table, write_rows
from headstart.sources.files.text import decoded


def edited(
    table: Table,
    cells: Mapping[tuple[int, str], str | float],
    mark: str,
    *,
    without: Collection[int] = (),
) -> bytes:
    """The file's bytes with other cells, each named by the row's number and the column, and without some rows.

    In a workbook rows that are taken out are emptied: what refers to others stays right.
    """
    rows = dict(zip(table.numbers, table.rows, strict=True))
    unknown = next((row for row in (*(number for number, _ in cells), *without) if row not in rows), None)
    if unknown is not None:
        raise InputError(f"{table.path}: there is no experiment in row {unknown}.")
    if table.sheet:
        return _edited_sheet(table, {**cells, **{(row, c): "" for row in without for c in table.columns}})
    text, encoding, bom, _ = decoded(table.raw, table.path)
    first = text.split("\n", 1)[0]
    told = first.strip().strip('"')
    before = len(first) + 1 if told.lower().startswith("sep=") and len(told) == 5 else 0
    layout = replace(table.layout, mark=table.layout.mark or mark)
    parts = [text[:before]]
    for number, (lines, record) in enumerate(_records(text[before:], layout.delimiter), start=1):
        own = {column: value for (row, column), value in cells.items() if row == number}
        if number in without:
            continue
        if not own:
            parts.append(lines)
            continue
        places = {name: i for i, name in enumerate(table.order)}
        whole: list[str | float] = [*record, *[""] * (len(table.order) - len(record))]
        seen = tuple(str(whole[places[name]]).strip() for name in table.columns)
        if seen != rows[number]:
            raise InputError(f"{table.path}, row {number}: it cannot be found in the file. Change it there.")
        for column, value in own.items():
            whole[places[column]] = value
        end = lines[len(lines.rstrip("\r\n")) :]
        parts.append(write_rows(replace(layout, newline=end), [whole]))
    try:
        return bom + "".join(parts).encode(encoding)
    except UnicodeEncodeError as error:
        raise InputError(f"{table.path} is written as {encoding}, which has no such sign. Save it as UTF-8.") from error


def _edited_sheet(table: Table, cells: Mapping[tuple[int, str], str | float]) -> bytes:
    """The workbook with other cells, in which they read as what they are: one in percent would show 8 as 800 %."""
    plain: set[tuple[int, str]] = set()
    written = dict(cells)
    wrong: set[tuple[int, str]] = set()
    for _ in range(3):
        content = with_cells(table.raw, table.file, table.sheet, table.order, written, plain=plain)
        now = read_table(table.path, content)
        names = dict(zip(now.order, table.order, strict=True))  # the campaign may call a column otherwise
        texts = {
            (row, names[column]): cell
            for row, found in zip(now.numbers, now.rows, strict=True)
            for column, cell in zip(now.columns, found, strict=True)
        }
        mark = now.layout.mark
        wrong = {place for place, value in cells.items() if not _reads_as(texts.get(place, ""), value, mark)}
        if not wrong:
            return content
        for place in wrong:
            value = cells[place]
            if isinstance(value, float) and written[place] == value and texts.get(place, "").endswith("%"):
                written[place] = value / 100
            else:
                written[place] = value
                plain.add(place)
    row, column = min(wrong)
    raise InputError(f"{table.path}, row {row}, column {column!r}: the cell cannot be written. Change it in the file.")


def _reads_as(text: str, value: str | float, mark: str | None) -> bool:
    if isinstance(value, str):
        return text == value.strip()
    found = number_in(text, mark or ".")
    return value == (found if found is not None else parse_cell(text, mark, CellRules()).value)


def _records(text: str, delimiter: str) -> list[tuple[str, list[str]]]:
    """Every record with the lines that it stands in; lenient with quotation marks, as reading is."""

    def read(strict: bool) -> list[tuple[str, list[str]]]:
        lines = list(io.StringIO(text, newline=""))
        reader = csv.reader(iter(lines), delimiter=delimiter, skipinitialspace=True, strict=strict)
        found, at = [], 0
        for record in reader:
            found.append(("".join(lines[at : reader.line_num]), record))
            at = reader.line_num
        return found

    try:
        return read(strict=True)
    except csv.Error:
        return read(strict=False)
