"""A CSV file as laboratories have it, cell by cell: any delimiter, either decimal mark, any encoding.

    read_table   the cells as text, with the row numbers that a spreadsheet program shows (the header is row 1)
    edited       the bytes of the file with other cells and more rows, and everything else as it is, byte by byte

Whatever cannot be read for certain is an ``InputError`` that names the file, the row, the column and the remedy.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from unicodedata import normalize

from headstart.errors import InputError, Message, Setting, UnreadableTableError
from headstart.sources.files.cells import (
    FAILED,
    MISSING,
    CellReading,
    CellRules,
    decimal_mark,
    is_date,
    is_missing,
    number_text,
    parse_cell,
)
from headstart.sources.files.names import meant_by, split_unit
from headstart.sources.files.sheet_rows import with_cells
from headstart.sources.files.text import bytes_of, decoded, delimiter_of, find_header
from headstart.sources.files.workbooks import read_sheet, split_sheet, workbook_file

_FIRST_ROW = "Its first row must name the columns, and every other row is an experiment."


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
    """The cells of a file as stripped text. ``numbers`` are the rows' numbers in a spreadsheet program.

    A typed table (``sources.columns.typed``) has the ``values`` of the columns that hold numbers, in the unit that is
    wanted, and the ``problems`` of cells that cannot be read.
    """

    path: Path
    layout: FileLayout
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: tuple[int, ...]
    raw: bytes
    remarks: tuple[str, ...] = ()
    order: tuple[str, ...] = ()  # the columns as they stand in the file, with those that are empty
    units: Mapping[str, str] = field(default_factory=dict)  # of columns whose name, or a new name, does not tell it
    sheet: str = ""  # of a workbook
    formulas: frozenset[int] = frozenset()  # the places, in ``order``, of a sheet's columns with formulas
    lost: str = ""  # what the workbook holds that would be lost if it were written
    next_row: int = 2  # the number of the next row that is added
    rules: CellRules = field(default_factory=CellRules)  # what somebody says that cells mean
    values: Mapping[str, Sequence[CellReading]] = field(default_factory=dict, compare=False)
    problems: tuple[str, ...] = ()
    _parsed: dict[int, tuple[CellReading, ...]] = field(default_factory=dict, compare=False, repr=False)

    @property
    def mark(self) -> str:
        """The decimal mark; the point where nothing shows it."""
        return self.layout.mark or "."

    @property
    def file(self) -> Path:
        """Where it is on the disk: ``path`` may name a sheet too."""
        return workbook_file(self.path)

    def cells(self, column: str) -> list[str]:
        """A column from top to bottom."""
        i = self.columns.index(column)
        return [row[i] for row in self.rows]

    def place(self, row: int, column: str) -> str:
        """How messages call a cell."""
        return f"{self.path}, row {self.numbers[row]}, column {column!r}"

    def renamed(self, names: Mapping[str, str]) -> Table:
        """The table with other column names: old → new. A name that the file does not have is no error here.

        Case and the composition of umlauts do not count. A column keeps its unit, whatever the new name says.
        """
        names = {c: names[old] for c, old in meant_by(names, self.order or self.columns).items()}
        columns = tuple(names.get(c, c) for c in self.columns)
        doubled = [name for name, n in Counter(columns).items() if n > 1]
        if doubled:
            both = " and ".join(repr(c) for c in self.columns if names.get(c, c) == doubled[0])
            raise InputError(
                f"{self.path}: {both} would both be called {doubled[0]!r}. Rename only one of them, or leave the other "
                "one out."
            )
        units = {names.get(c, c): unit for c, unit in self.units.items()}
        shown = {new: split_unit(old)[1] for old, new in names.items() if old != new}
        units = {new: unit for new, unit in shown.items() if unit} | units
        return replace(self, columns=columns, order=tuple(names.get(c, c) for c in self.order), units=units)

    def require(self, column: str, hint: str = "", *settings: Setting) -> None:
        """Raise an ``InputError`` unless the column is there."""
        if column not in self.columns:
            there = ", ".join(map(repr, self.columns))
            told = f"{self.path}: there is no column {column!r}. Its columns are {there}. {hint}".rstrip()
            raise InputError(Message(told, *settings))

    def parsed(self, column: str) -> tuple[CellReading, ...]:
        """What the cells of a column say by themselves; each is read once, when it is first asked for."""
        place = self.columns.index(column)
        if place not in self._parsed:
            mark, rules = self.layout.mark, self.rules
            self._parsed[place] = tuple(parse_cell(row[place], mark, rules) for row in self.rows)
        return self._parsed[place]

    def kind(self, column: str) -> str:
        """``number``, ``date``, ``text`` or ``empty``: what most cells of the column are.

        Forms such as '60 °C' and '<0.1' count as numbers.
        """
        pairs = list(zip(self.cells(column), self.parsed(column), strict=True))
        filled = [(cell, own) for cell, own in pairs if own.word != MISSING]
        if not filled:
            return "empty" if all(is_missing(cell, numeric=False) for cell, _ in pairs) else "text"
        if 2 * sum(own.value is not None or own.ambiguous for _, own in filled) >= len(filled):
            return "number"
        return "date" if 2 * sum(is_date(cell) for cell, _ in filled) >= len(filled) else "text"

    def lacks(self, row: int, column: str) -> bool:
        """Whether a cell of a typed table says nothing of its column."""
        if column in self.values:
            return self.values[column][row].word == MISSING
        return is_missing(self.rows[row][self.columns.index(column)], numeric=False)

    def number_at(self, row: int, column: str, *, remedy: str = "") -> float | None:
        """The number in a cell of a typed column, None where it is empty; an ``InputError`` where it says 'failed'."""
        cell = self.values[column][row]
        if cell.word == FAILED:
            text = self.rows[row][self.columns.index(column)]
            told = remedy or "Write the number alone, or delete the row."
            raise InputError(f"{self.place(row, column)}: {text!r} is not a number. {told}")
        return cell.value


def is_lock_file(path: Path) -> bool:
    """Whether the file is what Excel (~$x.csv) or LibreOffice (.~lock.x.csv#) leaves while a table is open."""
    return path.name.startswith(("~$", ".~lock."))


def read_table(path: Path | str, raw: bytes | None = None, rules: CellRules | None = None) -> Table:
    """The cells of a CSV file or of a sheet of a workbook, as ``runs.xlsx`` or ``runs.xlsx#Sheet2``.

    Empty rows, columns without a name and without cells, and a title above the header are left out. ``raw`` are the
    file's bytes, if they are not those on the disk; ``rules`` what somebody says that cells mean.
    """
    path = Path(path)
    rules = rules or CellRules()
    if split_sheet(path) is not None:
        return replace(_of_workbook(path, raw), rules=rules)
    raw = bytes_of(path) if raw is None else raw
    text, encoding, bom, remarks = decoded(raw, path)
    newline = "\r\n" if "\r\n" in text else "\n" if "\n" in text or "\r" not in text else "\r"
    delimiter, before = named_delimiter(text)
    body = text[before:]
    if not body.strip():
        raise UnreadableTableError(f"{path} is empty. {_FIRST_ROW}")
    delimiter = delimiter or delimiter_of(body)
    records = [[normalize("NFC", c.strip()) for c in record] for _, record in records_in(body, delimiter, path)]
    table = _table(path, records, raw, delimiter, remarks)
    mark = decimal_mark((cell for row in table.rows for cell in row), delimiter)
    # more rows come after empty ones, too: what is there stays as it is
    layout = FileLayout(delimiter, mark, encoding, bom, newline)
    return replace(table, layout=layout, next_row=len(records) + 1, rules=rules)


def _of_workbook(path: Path, raw: bytes | None) -> Table:
    """A sheet, in which numbers are numbers already; the decimal mark is that of texts that are numbers."""
    sheet = read_sheet(path, raw)
    mark = decimal_mark(sheet.texts, "")
    table = _table(path, sheet.records(mark), sheet.raw, "", sheet.remarks)
    return replace(table, layout=FileLayout("", mark), sheet=sheet.title, formulas=sheet.formulas, lost=sheet.lost)


def _table(path: Path, records: Sequence[Sequence[str]], raw: bytes, delimiter: str, remarks: tuple[str, ...]) -> Table:
    if not any(cell for record in records for cell in record):
        raise UnreadableTableError(f"{path} is empty. {_FIRST_ROW}")
    names, first, more = find_header(records, path, delimiter)
    kept = [i for i, name in enumerate(names) if name]
    filled = [(i + 1, r) for i, r in enumerate(records) if i >= first and any(r)]
    return Table(
        path=path,
        layout=FileLayout(),
        columns=tuple(names[i] for i in kept),
        rows=tuple(tuple(r[i] if i < len(r) else "" for i in kept) for _, r in filled),
        numbers=tuple(n for n, _ in filled),
        raw=raw,
        remarks=(*remarks, *more),
        order=names,
        next_row=filled[-1][0] + 1 if filled else first + 1,
    )


def write_rows(layout: FileLayout, rows: Sequence[Sequence[str | float | int | date]]) -> str:
    """Rows as text in that layout; numbers get its decimal mark, days are 2026-11-03."""
    mark = layout.mark or "."
    out = io.StringIO()
    writer = csv.writer(out, delimiter=layout.delimiter, lineterminator=layout.newline)
    for row in rows:
        texts = (c.isoformat() if isinstance(c, date) else c for c in row)
        writer.writerow([c if isinstance(c, str) else number_text(c, mark) for c in texts])
    return out.getvalue()


def edited(
    table: Table,
    cells: Mapping[tuple[int, str], str | float],
    mark: str,
    *,
    without: Collection[int] = (),
    more: Sequence[Mapping[str, str | float | int | date]] = (),
) -> bytes:
    """The file's bytes with other cells, each named by the row's number and the column, without some rows, and more.

    ``mark`` is the decimal mark where nothing in the file shows it. Columns that a new row lacks stay empty. In a
    workbook rows that are taken out are emptied: what refers to others stays right.
    """
    places = {name: i for i, name in enumerate(table.order)}
    rows = dict(zip(table.numbers, table.rows, strict=True))
    unknown = next((row for row in (*(number for number, _ in cells), *without) if row not in rows), None)
    if unknown is not None:
        raise InputError(f"{table.path}: there is no experiment in row {unknown}.")
    if table.sheet:
        gone = {(row, place): "" for row in without for place in places.values() if place not in table.formulas}
        written = {(row, places[column]): value for (row, column), value in cells.items()}
        numbered = enumerate(more, start=table.next_row)
        added = {(number, places[c]): value for number, row in numbered for c, value in row.items() if c in places}
        return with_cells(table.raw, table.sheet, {**written, **gone, **added})

    def in_layout(row: Sequence[str | float | date], newline: str) -> str:
        clear = table.layout.mark is None and decimal_mark([f"2{mark}326"], table.layout.delimiter) != mark
        own = table.layout.mark or mark
        texts = [c if isinstance(c, str | date) else number_text(c, own, clear=clear) for c in row]
        return write_rows(replace(table.layout, newline=newline), [texts])

    text, encoding, bom, _ = decoded(table.raw, table.path)
    _, before = named_delimiter(text)
    parts = [text[:before]]
    for number, (lines, record) in enumerate(records_in(text[before:], table.layout.delimiter, table.path), start=1):
        own = {column: value for (row, column), value in cells.items() if row == number}
        if number in without:
            continue
        if not own:
            parts.append(lines)
            continue
        whole: list[str | float] = [*record, *[""] * (len(table.order) - len(record))]
        seen = tuple(str(whole[places[name]]).strip() for name in table.columns)
        if seen != rows[number]:
            raise InputError(f"{table.path}, row {number}: it cannot be found in the file. Change it there.")
        for column, value in own.items():
            whole[places[column]] = value
        parts.append(in_layout(whole, lines[len(lines.rstrip("\r\n")) :]))
    if more and not parts[-1].endswith(("\n", "\r")):
        parts.append(table.layout.newline)
    parts += [in_layout([row.get(column, "") for column in table.order], table.layout.newline) for row in more]
    whole_text = "".join(parts)
    try:
        return bom + whole_text.encode(encoding)
    except UnicodeEncodeError as error:
        sign = whole_text[error.start]
        raise InputError(f"{table.path} is written as {encoding}, which has no {sign!r}. Save it as UTF-8.") from error


def named_delimiter(text: str) -> tuple[str, int]:
    """The delimiter that a first line such as sep=; names, Excel's own way to do so, and the length of that line."""
    first = text.split("\n", 1)[0]
    told = first.strip().strip('"')
    return (told[4], len(first) + 1) if told.lower().startswith("sep=") and len(told) == 5 else ("", 0)


def records_in(text: str, delimiter: str, path: Path) -> list[tuple[str, list[str]]]:
    """Every record with the lines that it stands in."""

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
    except csv.Error as error:
        if "unexpected end" not in str(error) and "field larger" not in str(error):
            return read(strict=False)  # such as "12" inch
        raise UnreadableTableError(
            f'{path}: a quotation mark is opened and never closed. Look for a single " in a cell.'
        ) from error
