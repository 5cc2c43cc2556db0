"""A table for people and for programs: what is printed, and what is written as CSV and Markdown."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from headstart.errors import InputError
from headstart.sources.files.safe import make_folder

Cellular = str | int | float


@dataclass(frozen=True, slots=True)
class Sheet:
    """A title, columns, rows, and a note on how to read them.

    ``rows`` hold the numbers in full, for CSV; ``shown`` the same rows as people read them, where that differs.
    Sheets of the same ``name`` have the same columns, and go to one CSV file.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cellular, ...], ...]
    note: str = ""
    shown_columns: tuple[str, ...] = ()
    shown: tuple[tuple[str, ...], ...] = ()

    @property
    def for_people(self) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
        """Columns and rows as they are printed."""
        if self.shown_columns:
            return self.shown_columns, self.shown
        return self.columns, tuple(tuple(compact(v) for v in row) for row in self.rows)

    def markdown(self, note: str | None = None) -> str:
        """The table in Markdown, numbers to the right, with its own note or another."""
        note = self.note if note is None else note
        columns, rows = self.for_people
        right = [_is_numeric(row[i] for row in rows) for i in range(len(columns))]
        lines = [
            f"### {self.title}",
            "",
            _line(columns),
            _line("---:" if r else "---" for r in right),
            *(_line(row) for row in rows),
        ]
        return "\n".join([*lines, *(["", note] if note else []), ""])


def compact(value: Cellular) -> str:
    """A value with three significant digits."""
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.3g}"
    return str(value)


def _line(values: Iterable[str]) -> str:
    return "| " + " | ".join(value.replace("|", "\\|") for value in values) + " |"


def _is_numeric(values: Iterable[str]) -> bool:
    there = [value for value in values if value]
    return bool(there) and all(value[0] in "0123456789-+−<>±∞" or value == "never" for value in there)


def with_notes(sheets: Sequence[Sheet]) -> Iterator[tuple[Sheet, str]]:
    """The sheets with their notes; one that the next sheet has too is left to that one."""
    for sheet, following in zip_longest(sheets, sheets[1:]):
        repeated = following is not None and following.note == sheet.note
        yield sheet, "" if repeated else sheet.note


def write_sheets(sheets: Sequence[Sheet], folder: Path, *, name: str, heading: str) -> list[Path]:
    """A CSV file per name of a sheet, with six digits of every number, and all sheets in one Markdown file."""
    make_folder(folder)
    path = folder / f"{name}.md"
    paths = [path]
    try:
        path.write_text("\n".join([f"## {heading}", "", *(sheet.markdown(note) for sheet, note in with_notes(sheets))]))
        for kind in dict.fromkeys(sheet.name for sheet in sheets):
            path = folder / f"{kind}.csv"
            paths.append(path)
            with path.open("w", newline="") as file:
                writer = csv.writer(file, lineterminator="\n")
                alike = [sheet for sheet in sheets if sheet.name == kind]
                writer.writerow(alike[0].columns)
                for row in (row for sheet in alike for row in sheet.rows):
                    writer.writerow([f"{v:.6g}" if isinstance(v, float) else v for v in row])
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}.") from error
    return paths


def write_lines(path: Path | None, lines: Sequence[str]) -> None:
    """Write what there is of a Markdown table so far; None is nowhere."""
    if path is not None:
        make_folder(path.parent)
        path.write_text("\n".join(lines) + "\n")
