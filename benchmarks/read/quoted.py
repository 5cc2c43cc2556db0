"""What README and docs quote from ``results/``: every quotation stands between two comments that say where it is from.

A table, whose first comment begins a line:

    <!-- results: FILE :: SHEET :: ROW :: COLUMN
    rows: LABEL = KEY; KEY; …           a line that is indented goes on where the one before ends
    columns: HEADER; LABEL = KEY; KEY; … -->
    <!-- /results -->

is made anew: ``{row}`` and ``{column}`` in the first line stand for the keys of a row and of a column, which are their
labels where no others are given, and HEADER is above the labels. A line ``absent: TEXT`` says what is shown where there
is no such row. Numbers in a sentence, whose comment must not begin a line, have what differs in braces:

    after 1 and 5: <!-- values: FILE :: SHEET :: ROW :: after {1, 5} -->0.518 and 0.228<!-- /values -->

``results`` are whole cells, ``values`` only their first words, without intervals, errors and medians. FILE is below
``results/``. SHEET is a title in it, or what one title alone begins with; it is empty where there is no title. ROW has
the first cells of a row, in capitals or not, with & between them. In a file of runs, ``compare/runs.csv.gz`` or
``compare/runs.csv.gz without gpbo-again, switches``, the sheets are computed:

    PROBLEM                    mean ± standard error (median) of the regret
    PROBLEM against METHOD     paired differences to a method, or to the runs of the same method in another folder
    All … against METHOD       mean ranks and ratios over all problems, or ``Tables: All …`` and ``Functions: All …``
                               where there are several of both
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import zip_longest
from pathlib import Path

from benchmarks.read.analysis import Results, by_kind, published, table
from benchmarks.read.comparison import differences
from benchmarks.read.report import difference_sheet, overall_sheet
from benchmarks.read.sheet import Sheet, read_sheets
from benchmarks.read.styles import settings_of, style
from headstart.errors import InputError

PAGES = ("README.md", "docs/*.md")
_MARK = re.compile(r"<!--\s*(?:(results|values):(.*?)|/(results|values)\s*)-->", re.DOTALL)
_LISTED = re.compile(r"\{(.*?)\}")
_MINUS = re.compile(r"(?<![\w.])-(?=[\d.])")  # before a number, but not in 1e-5
_RUNS = "runs.csv.gz"
_runs = cache(published)
_AT = (1, 3, 5, 10, 15, 20, 30, 40, 50)  # computed sheets tell of so many evaluations


@dataclass(frozen=True, slots=True)
class Quotation:
    """The text between two comments, the first in this line, from ``start`` to ``end``, and what ``results/`` has."""

    line: int
    start: int
    end: int
    text: str
    found: str


def renew(root: Path, *, write: bool) -> tuple[str, ...]:
    """Where README and docs are not what ``results/`` has; with ``write`` they are made so."""
    where = []
    for page in (page for pattern in PAGES for page in sorted(root.glob(pattern))):
        text = page.read_text(encoding="utf-8")
        differing = [q for q in quotations(text, page.relative_to(root), root / "results") if q.text != q.found]
        where += [f"{page.relative_to(root)}, line {q.line}" for q in differing]
        for q in reversed(differing):
            text = text[: q.start] + q.found + text[q.end :]
        if write and differing:
            page.write_text(text, encoding="utf-8")
    return tuple(where)


def quotations(text: str, page: Path, results: Path) -> Iterator[Quotation]:
    """All quotations of a page; an ``InputError`` names the page and the line of a comment that cannot be followed."""
    marks = list(_MARK.finditer(text))
    for begun, ended in zip_longest(marks[::2], marks[1::2]):
        line = text.count("\n", 0, begun.start()) + 1
        if not begun[1] or ended is None or ended[3] != begun[1]:
            raise InputError(
                f"{page}, line {line}: {begun[0].partition(':')[0]} … is alone. <!-- results: … --> is ended by "
                "<!-- /results -->, and <!-- values: … --> by <!-- /values -->, before the next one begins."
            )
        in_line = text[: begun.start()][-1:] not in ("", "\n")
        try:
            found = _found(begun[1], begun[2], results, in_line=in_line)
        except InputError as error:
            raise InputError(f"{page}, line {line}: {error}") from error
        yield Quotation(line, begun.end(), ended.start(), text[begun.end() : ended.start()], found)


def _found(kind: str, said: str, results: Path, *, in_line: bool) -> str:
    """What stands between two comments of which the first says this."""
    whole = kind == "results"
    if in_line:
        address = " ".join(said.split())
        listed = _LISTED.search(address)
        keys = [key.strip() for key in listed[1].split(",")] if listed else [""]
        *first, last = (_cell(_LISTED.sub(key, address), results, whole=whole) for key in keys)
        return f"{', '.join(first)} and {last}" if first else last
    address, *lines = re.sub(r"\s*\n\s+", " ", said.strip()).splitlines()  # what is indented goes on
    named = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if not {"rows", "columns"} <= named.keys() <= {"rows", "columns", "absent"}:
        raise InputError(
            "a comment that begins a line is that of a table: below the first line it has rows: and columns:, and may "
            f"have absent:, but this one has {', '.join(named) or 'nothing'}."
        )
    header, _, columns = named["columns"].partition(";")
    across = _labelled(columns)
    rows = []
    for label, row in _labelled(named["rows"]).items():
        each = (address.replace("{column}", column).replace("{row}", row) for column in across.values())
        rows.append((label, *(_cell(one, results, whole=whole, absent=named.get("absent")) for one in each)))
    return f"\n{Sheet(name='', title='', columns=(header.strip(), *across), rows=tuple(rows)).table}\n"


def _labelled(items: str) -> dict[str, str]:
    """``a = b; c`` as {"a": "b", "c": "c"}."""
    parts = [item.strip().partition(" = ") for item in items.split(";")]
    found = {label.strip(): (key if equals else label).strip() for label, equals, key in parts}
    if len(found) < len(parts):
        raise InputError(f"two rows or columns of a table have the same label: {items.strip()}.")
    return found


def _cell(address: str, results: Path, *, whole: bool, absent: str | None = None) -> str:
    """What is shown of the cell with that address."""
    parts = [part.strip() for part in address.split("::")]
    if len(parts) != 4:
        raise InputError(f"a cell is FILE :: SHEET :: ROW :: COLUMN, but this is {address!r}.")
    file, title, row, column = parts
    sheet = _sheet(results, file, title)
    keys = [key.strip().lower() for key in row.split("&")]
    rows = [cells for cells in sheet.cells if [cell.lower() for cell in cells[: len(keys)]] == keys]
    if not rows and absent is not None:
        return absent
    if len(rows) != 1 or sheet.columns.count(column) != 1:
        raise InputError(
            f"{file}, {sheet.title!r}: one row must begin with {row!r} and one column be {column!r}, but there are "
            f"{len(rows)} and {sheet.columns.count(column)}. The columns are: {'; '.join(sheet.columns)}."
        )
    cell = rows[0][sheet.columns.index(column)]
    return _MINUS.sub("−", cell if whole else cell.partition(" ")[0])


@cache
def _sheet(results: Path, file: str, title: str) -> Sheet:
    """The one sheet with that title, or whose title begins so."""
    name, _, without = file.partition(" without ")
    path = results / name
    if not path.is_file():
        raise InputError(f"there is no file {name!r} in {results.name}/.")
    if path.name == _RUNS:
        return _computed(path, {item.strip() for item in without.split(",")}, title)
    sheets = read_sheets(path)
    found = [s for s in sheets if s.title == title] or [s for s in sheets if s.title.startswith(title)]
    if len(found) != 1:
        there = "; ".join(s.title for s in found or sheets)
        raise InputError(f"{name}: one title must be {title!r} or begin so, but there are: {there}.")
    return found[0]


def _computed(path: Path, without: set[str], title: str) -> Sheet:
    """The sheet that the benchmark's own functions make of published runs."""
    cells = _runs(path).cells
    results = Results(tuple(c for c in cells if not {c.method, settings_of(c.problem)[0]} & without))
    for kind, of_kind in by_kind(results).items():
        if kind and title.startswith(kind):
            results, title = of_kind, title.removeprefix(kind)
    problem, _, other = title.partition(" against ")
    baseline = {style(method).label: method for method in results.methods}.get(other)
    if baseline and problem.startswith("All "):
        steps = min(cell.steps for cell in results.cells)
        for sheet in overall_sheet(results, baseline, [n for n in _AT if n <= steps]):
            return sheet
    if problem not in results.problems:
        raise InputError(
            f"{path.parent.name}/{_RUNS}: there are runs of {', '.join(results.problems)}, not {problem!r}."
        )
    results = results.among([problem])
    if not other:
        return table(results, _AT)[0]
    if baseline:
        return difference_sheet(problem, baseline, differences(results, baseline, _AT))
    others = path.parents[1] / other / _RUNS
    if not others.is_file():
        raise InputError(f"{other!r} is neither a method with runs of {problem} nor a folder with a {_RUNS}.")
    there = _runs(others).among([problem]).on(problem)
    pairs = [Results((c, replace(there[c.method], method=other))) for c in results.cells if c.method in there]
    return difference_sheet(problem, other, [d for pair in pairs for d in differences(pair, other, _AT)])
