"""The text of a file: its encoding, its delimiter, and where its table begins.

Rows with a title may stand above the header, and a row with units below it.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from headstart.errors import UnreadableTableError
from headstart.sources.files.cells import number
from headstart.sources.files.names import folded, split_unit
from headstart.sources.files.units import canonical_unit

MOST_BYTES = 200 * 1024 * 1024
MOST_ROWS = 1_000_000
_BINARY = {
    b"PK\x03\x04": "an Excel or LibreOffice workbook",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
    b"\x1f\x8b": "a compressed file",
}


def raw_bytes(path: Path) -> bytes:
    """What the file holds; an ``UnreadableTableError`` where it is too large or cannot be read."""
    try:
        size = path.stat().st_size
        if path.is_dir():
            raise UnreadableTableError(f"{path} is a folder, not a file.")
        if size > MOST_BYTES:
            raise UnreadableTableError(
                f"{path} has {size / 1024**2:.0f} MB; at most {MOST_BYTES // 1024**2} MB are read. A model learns all "
                "it can from some hundred rows: keep a random sample of about 500 rows."
            )
        return path.read_bytes()
    except FileNotFoundError as error:
        raise UnreadableTableError(f"{path}: there is no such file. Look at the spelling and at the folder.") from error
    except OSError as error:
        told = f"{path} cannot be read: {error.strerror}. Close it if it is open in another program."
        raise UnreadableTableError(told) from error


def bytes_of(path: Path) -> bytes:
    """What a file of text holds; an ``UnreadableTableError`` also where it is no text."""
    raw = raw_bytes(path)
    for magic, what in _BINARY.items():
        if raw.startswith(magic):
            raise UnreadableTableError(f"{path} is {what}, not a CSV file. Open it and save the sheet as CSV (UTF-8).")
    rows = raw.count(b"\n")
    if rows > MOST_ROWS:
        raise UnreadableTableError(
            f"{path} has about {rows:,} rows; at most {MOST_ROWS:,} are read. A model learns all it can from some "
            f"hundred rows: keep a random sample of about 500, or every {rows // 500:,}th row."
        )
    return raw


def decoded(raw: bytes, path: Path) -> tuple[str, str, bytes, tuple[str, ...]]:
    """The text, its encoding, the byte-order mark, and what is doubtful about it."""
    for bom, encoding in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ):
        if raw.startswith(bom):
            try:
                return raw[len(bom) :].decode(encoding), encoding, bom, ()
            except UnicodeDecodeError as error:
                raise UnreadableTableError(
                    f"{path} is not {encoding.upper()} text as it says. Save it as CSV (UTF-8)."
                ) from error
    if b"\x00" in raw:
        raise UnreadableTableError(f"{path} is not a text file. Save the table as CSV (UTF-8).")
    try:
        return raw.decode("utf-8"), "utf-8", b"", ()
    except UnicodeDecodeError:
        try:
            encoding, text = "cp1252", raw.decode("cp1252")
        except UnicodeDecodeError:
            encoding, text = "latin-1", raw.decode("latin-1")
    line = next(i for i, part in enumerate(raw.splitlines(), start=1) if not part.isascii())
    remark = f"{path}, row {line}: the file is not UTF-8 and was read as {encoding}; look whether °, µ and ü are right."
    return text, encoding, b"", (remark,)


_DELIMITERS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "|"}
_ROWS_LOOKED_AT, _MOST_TITLES = 200, 20
_WIDE_ENOUGH = 0.6  # a header names at least so much of the columns that rows have; a title has one cell or two


def delimiter_of(text: str) -> str:
    """The delimiter whose columns are many and of equal number in most rows; a comma where there is only one column."""
    head = "\n".join(text.splitlines()[:_ROWS_LOOKED_AT])

    def fit(delimiter: str) -> tuple[float, int]:
        try:
            records = list(csv.reader(io.StringIO(head, newline=""), delimiter=delimiter, skipinitialspace=True))
        except csv.Error:
            return 0.0, 0
        widths = [len(record) for record in records if any(cell.strip() for cell in record)]
        if not widths or max(widths) < 2:
            return 0.0, 0
        width, times = Counter(w for w in widths if w > 1).most_common(1)[0]
        return times / len(widths), width

    best = max(_DELIMITERS, key=lambda delimiter: (*fit(delimiter), delimiter != ","))  # which may be a decimal mark
    return best if fit(best)[1] else ","


def find_header(
    records: Sequence[Sequence[str]], path: Path, delimiter: str
) -> tuple[tuple[str, ...], int, tuple[str, ...]]:
    """The names of the columns, "" where there is none, the place of the first row below, and remarks.

    Rows above the header that name hardly any of the columns are a title. An ``UnreadableTableError`` if there is none.
    """
    filled = [i for i, record in enumerate(records) if any(record)]
    at = _header_row(records, filled)
    names = [folded(cell, case=True) for cell in records[at]]
    remarks = []
    if titles := [i for i in filled if i < at]:
        first = next(cell for cell in records[titles[0]] if cell)
        rows = f"row {titles[0] + 1} ({first[:40]!r}) is" if len(titles) == 1 else f"{len(titles)} rows are"
        remarks.append(f"{path}: {rows} above the header in row {at + 1} and left out.")
    below = next((i for i in filled if i > at), at)
    start = at + 1
    if below > at and _are_units(records[below], names, [records[i] for i in filled if i > below]):
        start = below + 1
        for i, cell in enumerate(records[below][: len(names)]):
            unit = canonical_unit(cell.strip("[]() "))
            if unit and names[i] and not split_unit(names[i])[1]:
                names[i] = f"{names[i]} [{unit}]"
        remarks.append(f"{path}: row {below + 1} has the units of the columns.")
    _require_names(names, path, at + 1, delimiter)
    _require_named(names, [(i + 1, records[i]) for i in filled if i >= start], path, delimiter)
    return tuple(names), start, tuple(remarks)


def _header_row(records: Sequence[Sequence[str]], filled: Sequence[int]) -> int:
    """The first row that names most of the columns; the first one at all where none does."""
    counts = {i: sum(1 for cell in records[i] if cell) for i in filled[:_ROWS_LOOKED_AT]}
    for k, i in enumerate(filled[:_MOST_TITLES]):
        later = sorted(counts[j] for j in filled[k + 1 : _ROWS_LOOKED_AT])
        usual = later[len(later) // 2] if later else 2
        if counts[i] >= max(2, _WIDE_ENOUGH * usual) and not _all_numbers(records[i]):
            return i
        if _all_numbers(records[i]):
            break
    return filled[0]


def _all_numbers(cells: Sequence[str]) -> bool:
    return all(number(cell, ".") is not None for cell in cells if cell)


def _are_units(cells: Sequence[str], names: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Whether a row names nothing but units, of columns that have names above and numbers below.

    A category may be called M or V.
    """
    texts = {i: text for i, cell in enumerate(cells) if (text := cell.strip("[]() "))}
    known = [i for i, text in texts.items() if canonical_unit(text)]
    if not known or not all(i in known or text in ("-", "–", "—", "/") for i, text in texts.items()):
        return False
    columns = [[row[i] for row in below[:_ROWS_LOOKED_AT] if i < len(row) and row[i]] for i in known]
    named = all(i < len(names) and names[i] for i in known)
    return named and all(any(number(c, ",") is not None or number(c, ".") is not None for c in own) for own in columns)


def _require_names(names: Sequence[str], path: Path, row: int, delimiter: str) -> None:
    if len([name for name in names if name]) < 2:
        raise UnreadableTableError(
            f"{path}, row {row}: only one column was found, {next(filter(None, names), '')[:60]!r}. Columns must be "
            f"separated by {', '.join(list(_DELIMITERS.values())[:3])} or |. Save the table as CSV again."
            if delimiter
            else f"{path}, row {row}: only one column was found. A table has a column for every setting and result."
        )
    if all(number(name, ".") is not None for name in names if name):
        raise UnreadableTableError(
            f"{path}, row {row}: the first row must name the columns, but it holds numbers ({', '.join(names[:4])}). "
            "Put a row with names above it."
        )
    doubled = [name for name, n in Counter(names).items() if name and n > 1]
    if doubled:
        raise UnreadableTableError(f"{path}, row {row}: two columns are called {doubled[0]!r}. Give each its own name.")


def _require_named(names: Sequence[str], rows: Sequence[tuple[int, Sequence[str]]], path: Path, delimiter: str) -> None:
    """Every cell must stand below a name."""
    wide = [(n, row) for n, row in rows if any(row[len(names) :])]
    if wide:
        n, row = wide[0]
        raise UnreadableTableError(
            f"{path}, row {n}: it has {len(row)} cells, but the header names {len(names)} columns"
            f"{_more([n for n, _ in wide[1:]])}. Where columns are separated by "
            f"{_DELIMITERS.get(delimiter, delimiter)}, a number such as 12,5 or a remark "
            "with that sign in it needs quotation marks; saving with another delimiter helps."
        )
    nameless = [(n, i, cell) for n, row in rows for i, cell in enumerate(row[: len(names)]) if cell and not names[i]]
    if nameless:
        n, i, cell = nameless[0]
        raise UnreadableTableError(
            f"{path}, row {n}: {cell!r} stands in column {i + 1}, which has no name"
            f"{_more([n for n, _, _ in nameless[1:]])}. Name it in the first row, or empty it."
        )


def _more(rows: Sequence[int]) -> str:
    if not rows:
        return ""
    listed = ", ".join(map(str, rows[:5])) + (f" and {len(rows) - 5} more" if len(rows) > 5 else "")
    return f" (so {'does row' if len(rows) == 1 else 'do rows'} {listed})"
