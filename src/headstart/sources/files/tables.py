"""A CSV file as laboratories have it, cell by cell: any delimiter, either decimal mark, any encoding.

    read_table   the cells as text, with the row numbers that a spreadsheet program shows (the header is row 1)
    appended     the bytes of the file with more rows, written as the file itself is written

Whatever cannot be read for certain is an ``InputError`` that names the file, the row, the column and the remedy.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from headstart.errors import InputError
from headstart.sources.files.cells import decimal_mark, is_date, is_missing, number, number_text
from headstart.sources.files.text import bytes_of, decoded

__all__ = ["FileLayout", "Table", "appended", "is_lock_file", "read_table", "write_rows"]


_DELIMITERS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "|"}
_ROWS_LOOKED_AT = 200


@dataclass(frozen=True, slots=True)
class FileLayout:
    """How the file is written. ``mark`` is the decimal mark, None where no number in the file shows one."""

    delimiter: str = ","
    mark: str | None = None
    encoding: str = "utf-8"
    bom: bytes = b""
    newline: str = "\n"


@dataclass(frozen=True, slots=True)
class Table:
    """The cells of a file as stripped text. ``numbers`` are the rows' numbers in a spreadsheet program."""

    path: Path
    layout: FileLayout
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: tuple[int, ...]
    raw: bytes
    remarks: tuple[str, ...] = ()
    order: tuple[str, ...] = ()  # the columns as they stand in the file, with those that are empty
    n_records: int = 0  # rows of the file with those that are empty: the next one has the number after

    @property
    def mark(self) -> str:
        """The decimal mark; the point where nothing shows it."""
        return self.layout.mark or "."

    def cells(self, column: str) -> list[str]:
        """A column from top to bottom."""
        i = self.columns.index(column)
        return [row[i] for row in self.rows]

    def place(self, row: int, column: str) -> str:
        """How messages call a cell."""
        return f"{self.path}, row {self.numbers[row]}, column {column!r}"

    def renamed(self, names: Mapping[str, str]) -> Table:
        """The table with other column names: old → new. A name that the file does not have is no error here."""
        columns = tuple(names.get(c, c) for c in self.columns)
        doubled = [name for name, n in Counter(columns).items() if n > 1]
        if doubled:
            both = " and ".join(repr(c) for c in self.columns if names.get(c, c) == doubled[0])
            raise InputError(
                f"{self.path}: {both} would both be called {doubled[0]!r}. Rename only one of them, or leave the other "
                "one out."
            )
        return replace(self, columns=columns, order=tuple(names.get(c, c) for c in self.order))

    def require(self, column: str, hint: str = "") -> None:
        """Raise an ``InputError`` unless the column is there."""
        if column not in self.columns:
            there = ", ".join(map(repr, self.columns))
            raise InputError(f"{self.path}: there is no column {column!r}. Its columns are {there}. {hint}".rstrip())

    def kind(self, column: str) -> str:
        """``number``, ``date``, ``text`` or ``empty``: what most cells of the column are."""
        filled = [cell for cell in self.cells(column) if not is_missing(cell, numeric=True)]
        if not filled:
            return "empty" if all(is_missing(c, numeric=False) for c in self.cells(column)) else "text"
        numbers = sum(number(cell, ".") is not None or number(cell, ",") is not None for cell in filled)
        if 2 * numbers >= len(filled):
            return "number"
        return "date" if 2 * sum(map(is_date, filled)) >= len(filled) else "text"

    def number_at(self, row: int, column: str, *, remedy: str = "") -> float | None:
        """The number in a cell, None where it is empty, and an ``InputError`` where it is something else."""
        cell = self.rows[row][self.columns.index(column)]
        if is_missing(cell, numeric=True):
            return None
        value = number(cell, self.mark)
        if value is not None:
            return value
        place = self.place(row, column)
        if number(cell, ",") is not None or number(cell, ".") is not None:
            other = "," if self.mark == "." else "."
            bare = cell.replace(other, "")
            raise InputError(
                f"{place}: {cell!r} can be read as {bare} or as {cell.replace(other, self.mark)}. Decimals in this "
                f"file have a {'point' if self.mark == '.' else 'comma'}: write the one that is meant."
            )
        if is_date(cell):
            raise InputError(
                f"{place}: {cell!r} is a date, not a number. If a spreadsheet program made a date of a number, format "
                "the column as a number and type the value again."
            )
        raise InputError(f"{place}: {cell!r} is not a number. {remedy or 'Write the number alone, or delete the row.'}")


def is_lock_file(path: Path) -> bool:
    """Whether the file is what Excel (~$x.csv) or LibreOffice (.~lock.x.csv#) leaves while a table is open."""
    return path.name.startswith(("~$", ".~lock."))


def read_table(path: Path | str) -> Table:
    """The cells of a CSV file. Empty rows, and columns without a name and without cells, are left out."""
    path = Path(path)
    raw = bytes_of(path)
    text, encoding, bom, remarks = decoded(raw, path)
    newline = "\r\n" if "\r\n" in text else "\n" if "\n" in text or "\r" not in text else "\r"
    body, delimiter = text, None
    first = text.split("\n", 1)[0].strip().strip('"')
    if first.lower().startswith("sep=") and len(first) == 5:  # Excel's own way to name the delimiter
        delimiter, body = first[4], text.split("\n", 1)[-1]
    if not body.strip():
        raise InputError(f"{path} is empty. Its first row must name the columns, and every other row is an experiment.")
    delimiter = delimiter or _delimiter(body)
    records = _records(body, delimiter, path)
    header_at = next(i for i, record in enumerate(records) if any(cell for cell in record))
    header = [" ".join(cell.split()) for cell in records[header_at]]
    filled = [(i + 1, r) for i, r in enumerate(records) if i > header_at and any(cell for cell in r)]
    kept = _columns(header, filled, path, delimiter)
    rows = tuple(tuple(r[i] if i < len(r) else "" for i in kept) for _, r in filled)
    mark = decimal_mark((cell for row in rows for cell in row), delimiter)
    return Table(
        path=path,
        layout=FileLayout(delimiter, mark, encoding, bom, newline),
        columns=tuple(header[i] for i in kept),
        rows=rows,
        numbers=tuple(n for n, _ in filled),
        raw=raw,
        remarks=remarks,
        order=tuple(header),
        n_records=len(records),
    )


def write_rows(layout: FileLayout, rows: Sequence[Sequence[str | float | int]]) -> str:
    """Rows as text in that layout; numbers get its decimal mark."""
    mark = layout.mark or "."
    out = io.StringIO()
    writer = csv.writer(out, delimiter=layout.delimiter, lineterminator=layout.newline)
    for row in rows:
        writer.writerow([c if isinstance(c, str) else number_text(c, mark) for c in row])
    return out.getvalue()


def appended(table: Table, rows: Sequence[Mapping[str, str | float | int]], mark: str) -> bytes:
    """The file's bytes with more rows: what was there stays as it is, and columns that a row lacks stay empty."""
    layout = replace(table.layout, mark=table.layout.mark or mark)
    text = write_rows(layout, [[row.get(column, "") for column in table.order] for row in rows])
    ends = table.raw.endswith((b"\n", b"\r", "\n".encode("utf-16-le"), "\n".encode("utf-16-be")))
    try:
        return table.raw + ("" if ends else layout.newline).encode(layout.encoding) + text.encode(layout.encoding)
    except UnicodeEncodeError as error:
        raise InputError(
            f"{table.path} is written as {layout.encoding}, which has no {text[error.start]!r}. Save it as UTF-8."
        ) from error


def _records(text: str, delimiter: str, path: Path) -> list[list[str]]:
    def read(strict: bool) -> list[list[str]]:
        lines = io.StringIO(text, newline="")
        reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True, strict=strict)
        return [[cell.strip() for cell in record] for record in reader]

    try:
        return read(strict=True)
    except csv.Error as error:
        if "unexpected end" not in str(error) and "field larger" not in str(error):
            return read(strict=False)  # such as "12" inch
        raise InputError(
            f'{path}: a quotation mark is opened and never closed. Look for a single " in a cell.'
        ) from error


def _delimiter(text: str) -> str:
    """The delimiter whose columns are many and of equal number in most rows; a comma where there is only one column."""
    head = "\n".join(text.splitlines()[:_ROWS_LOOKED_AT])

    def fit(delimiter: str) -> tuple[float, int]:
        try:
            records = list(csv.reader(io.StringIO(head, newline=""), delimiter=delimiter, skipinitialspace=True))
        except csv.Error:
            return 0.0, 0
        widths = [len(record) for record in records if any(cell.strip() for cell in record)]
        if not widths or widths[0] < 2:
            return 0.0, 0
        return sum(width == widths[0] for width in widths) / len(widths), widths[0]

    best = max(_DELIMITERS, key=fit)
    return best if fit(best)[1] else ","


def _columns(header: list[str], rows: list[tuple[int, list[str]]], path: Path, delimiter: str) -> list[int]:
    """Where the columns with a name are; the rest must be empty."""
    if len([name for name in header if name]) < 2:
        raise InputError(
            f"{path}, row 1: only one column was found, {header[0][:60]!r}. Columns must be separated by "
            f"{', '.join(list(_DELIMITERS.values())[:3])} or |. Save the table as CSV again."
        )
    if all(number(name, ".") is not None for name in header if name):
        raise InputError(
            f"{path}, row 1: the first row must name the columns, but it holds numbers ({', '.join(header[:4])}). "
            "Put a row with names above it."
        )
    doubled = [name for name, n in Counter(header).items() if name and n > 1]
    if doubled:
        raise InputError(f"{path}, row 1: two columns are called {doubled[0]!r}. Give each its own name.")
    for n, row in rows:
        for i, cell in enumerate(row):
            if cell and i >= len(header):
                raise InputError(
                    f"{path}, row {n}: it has {len(row)} cells, but the header names {len(header)} columns. Where "
                    f"columns are separated by {_DELIMITERS.get(delimiter, delimiter)}, a number such as 12,5 or a "
                    "remark with that sign in it needs quotation marks; saving with another delimiter helps."
                )
            if cell and not header[i]:
                raise InputError(
                    f"{path}, row {n}: {cell!r} stands in column {i + 1}, which has no name. Name it in the first row, "
                    "or empty it."
                )
    return [i for i, name in enumerate(header) if name]
