"""The text of a file: what it must not be, and in which encoding it is."""

from __future__ import annotations

import codecs
from pathlib import Path

from headstart.errors import UnreadableTableError

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
    except PermissionError as error:
        raise UnreadableTableError(f"{path} cannot be read. Close it if it is open in another program.") from error
    except OSError as error:
        raise UnreadableTableError(f"{path} cannot be read: {error.strerror}.") from error


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
