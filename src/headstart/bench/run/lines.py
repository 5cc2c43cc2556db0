"""A file of JSON objects, one per line: appended in one piece, and read whatever happened to the writer."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def append_lines(path: Path, records: Iterable[dict[str, Any]]) -> None:
    """Write the records under a lock, so that several processes can share the file, and flush them to the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(record) + "\n" for record in records)
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        # a line that an earlier process could not finish must not swallow ours
        if file.tell() and not _ends_with_newline(path):
            lines = "\n" + lines
        os.write(file.fileno(), lines.encode())
        os.fsync(file.fileno())


def _ends_with_newline(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


def read_lines(path: Path, schema: int) -> tuple[list[tuple[int, dict[str, Any]]], list[str]]:
    """The records of the schema with the numbers of their lines, and a sentence about every other line."""
    records, remarks = [], []
    for number, line in enumerate(path.read_bytes().split(b"\n") if path.exists() else (), start=1):
        if not line:
            continue
        try:
            record = json.loads(line)
        except ValueError:
            remarks.append(f"{path}, line {number}: cut off in the middle, left out.")
            continue
        found = record.pop("schema", None) if isinstance(record, dict) else None
        if found != schema:
            remarks.append(f"{path}, line {number}: written in format {found}, this is {schema}; left out.")
            continue
        records.append((number, record))
    return records, remarks
