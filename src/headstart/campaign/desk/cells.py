"""Cells of a table are written anew, and everything else in its file stays as it is, byte by byte."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from headstart.errors import InputError
from headstart.sources.files.sheet_rows import with_cells
from headstart.sources.files.tables import Table, named_delimiter, records_in, write_rows
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
        gone = {(row, place): "" for row in without for place in range(len(table.order)) if place not in table.formulas}
        written = {(row, table.order.index(column)): value for (row, column), value in cells.items()}
        return with_cells(table.raw, table.sheet, {**written, **gone})
    text, encoding, bom, _ = decoded(table.raw, table.path)
    _, before = named_delimiter(text)
    layout = replace(table.layout, mark=table.layout.mark or mark)
    parts = [text[:before]]
    for number, (lines, record) in enumerate(records_in(text[before:], layout.delimiter, table.path), start=1):
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
