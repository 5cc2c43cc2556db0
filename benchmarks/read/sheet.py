"""Tables for people, printed and written as Markdown, and the data behind them as one compressed CSV file.

Both are read again: ``read_sheets`` and ``read_series`` give what ``write_sheets`` and ``write_series`` wrote.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from headstart.errors import InputError
from headstart.sources.files.safe import make_folder

Cellular = str | int | float
Series = tuple[str, str, int, str, Sequence[float | None]]  # problem, method, seed, what it is a series of, values


@dataclass(frozen=True, slots=True)
class Interval:
    """A value and the 95 % interval around it; a format applies to all three: ``1.2 [0.9, 1.5]``."""

    value: float
    low: float
    high: float

    def __format__(self, digits: str) -> str:
        return f"{self.value:{digits}} [{self.low:{digits}}, {self.high:{digits}}]"


@dataclass(frozen=True, slots=True)
class Sheet:
    """A title, columns, rows, and a note on how to read them. ``name`` says which kind of table it is."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cellular, ...], ...]
    note: str = ""

    @property
    def cells(self) -> tuple[tuple[str, ...], ...]:
        """The rows as they are shown."""
        return tuple(tuple(map(compact, row)) for row in self.rows)

    def markdown(self, note: str | None = None) -> str:
        """The table in Markdown, numbers to the right, with its own note or another."""
        note = self.note if note is None else note
        return "\n".join([f"### {self.title}", "", self.table, *(["", note] if note else []), ""])

    @property
    def table(self) -> str:
        """The table in Markdown alone, numbers to the right."""
        rows = self.cells
        right = [_is_numeric(row[i] for row in rows) for i in range(len(self.columns))]
        return "\n".join([_line(self.columns), _line("---:" if r else "---" for r in right), *map(_line, rows)])


def compact(value: Cellular) -> str:
    """A value with three significant digits, or in whole numbers from 1,000 to 100,000."""
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.0f}" if 1e3 <= abs(value) < 1e5 else f"{value:.3g}"
    return str(value)


def _line(values: Iterable[str]) -> str:
    return "| " + " | ".join(value.replace("|", "\\|") for value in values) + " |"


def _is_numeric(values: Iterable[str]) -> bool:
    there = [value for value in values if value]
    return bool(there) and all(value[0] in "0123456789-+−–<>±∞" or value == "never" for value in there)


def with_notes(sheets: Sequence[Sheet]) -> Iterator[tuple[Sheet, str]]:
    """The sheets with their notes; one that the next sheet has too is left to that one."""
    for sheet, following in zip_longest(sheets, sheets[1:]):
        repeated = following is not None and following.note == sheet.note
        yield sheet, "" if repeated else sheet.note


def write_sheets(sheets: Sequence[Sheet], folder: Path, *, name: str, heading: str) -> Path:
    """All sheets in one Markdown file."""
    text = "\n".join([f"## {heading}", "", *(sheet.markdown(note) for sheet, note in with_notes(sheets))])
    return _written(make_folder(folder) / f"{name}.md", text.encode())


def read_sheets(path: Path) -> tuple[Sheet, ...]:
    """The tables of a Markdown file with the titles above them; one that has none has an empty title."""
    sheets, title, lines = list[Sheet](), "", list[tuple[str, ...]]()
    for line in [*path.read_text(encoding="utf-8").splitlines(), ""]:
        if line.startswith("|"):
            cells = re.split(r"(?<!\\)\|", line.strip()[1:-1])
            lines.append(tuple(cell.strip().replace("\\|", "|") for cell in cells))
        elif lines:
            sheets.append(Sheet(name="", title=title, columns=lines[0], rows=tuple(lines[2:])))  # 1 is the rule
            lines = []
        if line.startswith("### "):
            title = line.removeprefix("### ")
    return tuple(sheets)


def write_series(series: Iterable[Series], folder: Path) -> Path:
    """The data behind the tables, four digits of every value: one row per run and series in ``runs.csv.gz``."""
    every = list(series)
    steps = max((len(values) for *_, values in every), default=0)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["problem", "method", "seed", "series", *range(1, steps + 1)])
    for *which, values in every:
        shown = ["" if value is None else f"{value:.4g}" for value in values]
        writer.writerow([*which, *shown, *[""] * (steps - len(values))])
    return _written(make_folder(folder) / "runs.csv.gz", gzip.compress(text.getvalue().encode(), mtime=0))


def read_series(path: Path) -> Iterator[Series]:
    """What ``write_series`` wrote, without the empty cells at the end of a row."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        rows = csv.reader(file)
        next(rows)
        for problem, method, seed, what, *cells in rows:
            last = max((i for i, cell in enumerate(cells) if cell), default=-1)
            yield problem, method, int(seed), what, [float(cell) if cell else None for cell in cells[: last + 1]]


def _written(path: Path, content: bytes) -> Path:
    try:
        path.write_bytes(content)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}.") from error
    return path
