"""Typed columns of a table, in the names of its use: numbers in the unit that is wanted, categories in one spelling.

Every cell that is not plainly what its column holds is either read in a way that is remarked on, or a problem; a row
of a past file that lacks an input is left out. All of it is told with rows and columns, nothing is raised.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headstart.errors import InputError, Message, Setting, UnusableSourceError, refuse
from headstart.sources.files.cells import (
    FAILED,
    MARK_KEY,
    MISSING,
    CellReading,
    ambiguity,
    in_unit,
    is_ambiguous,
    is_missing,
    number_text,
)
from headstart.sources.files.names import folded, meant_by, split_unit
from headstart.sources.files.tables import Table, read_table
from headstart.sources.files.units import canonical_unit, converts, spelled_plainly

if TYPE_CHECKING:
    import pandas as pd

_LISTED, _MOST_PROBLEMS = 3, 30
_MARK = Setting("cells", f"{MARK_KEY}=,")
_RESULT_REMEDY = (
    "Write the number alone, with the unit in the header. Leave the cell empty while the result is awaited, and write "
    "n/a if the experiment failed."
)


@dataclass(frozen=True)
class TableUse:
    """What the columns of a table are to be. ``texts`` have the categories that are known, if any.

    ``units`` are those that numbers are wanted in, where the columns' names do not tell them. Of a ``past`` file rows
    without an input are left out. Columns may be spelled otherwise, those of ``other`` names too.
    """

    results: tuple[str, ...]
    numbers: tuple[str, ...] = ()
    texts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    measured: Mapping[str, str] = field(default_factory=dict)  # numbers that may be missing, each with a remedy
    units: Mapping[str, str] = field(default_factory=dict)
    past: bool = True
    remedy: str = "Write the number alone, or delete the row."
    other: tuple[str, ...] = ()
    batch: str = ""  # a column of batches, in which an empty cell says what the one above it does


def column_unit(table: Table, column: str) -> str:
    """The unit that the cells of a column are in by its name, or by the name it had."""
    unit = table.units.get(column) or split_unit(column)[1]
    return canonical_unit(unit) or spelled_plainly(unit)


def cell_unit(table: Table, column: str) -> str:
    """The unit that most of those cells have that have one; "" where they may be slips among cells without any.

    One '353.15 K' among 60 and 80 makes no column in K; '70 °C' among them says what they are in.
    """
    cells = [cell for cell in table.parsed(column) if cell.value is not None]
    units = [cell.unit for cell in cells if cell.unit]
    unit = max(dict.fromkeys(units), key=units.count, default="")
    bare = [cell.value or 0.0 for cell in cells if not cell.unit]
    inside = all(min(bare) <= (c.value or 0.0) <= max(bare) for c in cells if c.unit == unit) if bare else True
    return unit if inside or len(units) >= len(bare) else ""


def typed(table: Table, use: TableUse) -> Table:
    """The table as it is to be used, with plain cells. Cells of rows without a result may hold anything."""
    names = [*use.results, *use.numbers, *use.texts, *use.measured, *use.other, *filter(None, [use.batch])]
    renamed = {c: name for c, name in meant_by(names, table.columns).items() if c != name}
    table = table.renamed(renamed)
    work, there, every = _Typing(table, use), set(table.columns), [True] * len(table.rows)
    readings = [work.read(name, every, _RESULT_REMEDY) for name in use.results if name in there]
    has = [any(own[row].value is not None for own in readings) for row in range(len(table.rows))]
    inputs = [name for name in (*use.numbers, *use.texts) if name in there]
    for name, remedy in use.measured.items():
        if name in there:
            work.read(name, has, remedy or "Write the number alone, or empty the cell.")
    for name in inputs:
        if name in use.texts:
            work.spell(name, use.texts[name])
        else:
            work.read(name, has if use.past else every, use.remedy)
    if use.batch in there:
        work.fill_down(use.batch, has)
    if use.past:
        work.leave_out(inputs, has)
    return work.done([f"{table.path}: {old!r} is taken for {new!r}." for old, new in renamed.items()])


class _Typing:
    """The cells of a table while they are typed."""

    def __init__(self, table: Table, use: TableUse) -> None:
        self.table, self.use = table, use
        self.columns = {name: table.cells(name) for name in table.columns}
        self.values: dict[str, list[CellReading]] = {}
        self.how: dict[tuple[str, str], list[tuple[int, str]]] = {}
        self.problems: list[str] = []
        self.remarks: list[str] = []
        self.dropped: set[int] = set()

    def read(self, name: str, needed: Sequence[bool], remedy: str) -> list[CellReading]:
        """The cells of a column with their numbers in the unit that is wanted, None for those that have none."""
        table, use = self.table, self.use
        told = use.units.get(name) or split_unit(name)[1]
        unit = canonical_unit(told) or spelled_plainly(told) or cell_unit(table, name)
        own = column_unit(table, name) if name in table.units else unit
        if own and unit and not converts(own, unit):
            self.problems.append(
                f"{table.path}, column {name!r}: its values are in {own}, which cannot be converted to {unit}. Leave "
                "the column out of this file, or convert it there."
            )
            self.values[name] = [CellReading(word=MISSING)] * len(table.rows)
            return self.values[name]
        found = self.values[name] = []
        unclear: list[tuple[int, str]] = []
        whole_column = 0
        for row, (cell, parsed) in enumerate(zip(self.columns[name], table.parsed(name), strict=True)):
            reading = in_unit(parsed, own or unit, unit)
            if reading.problem and needed[row]:
                more = f" {remedy}" if reading.problem.endswith("is not a number") else ""
                if reading.ambiguous:
                    unclear.append((row, reading.problem))
                else:
                    self.problems.append(f"{table.place(row, name)}: {reading.problem}.{more}")
            elif reading.problem:
                reading = CellReading(word=MISSING)
            elif reading.how:
                value = reading.value
                plain = "failed" if reading.word == FAILED else "n/a"
                self.columns[name][row] = plain if value is None else number_text(value, table.mark, clear=True)
                if own != unit and parsed.plain:
                    whole_column += 1
                else:
                    self.how.setdefault((name, reading.how), []).append((row, cell))
            elif reading.word and cell and name in use.results:
                self.how.setdefault((name, f"counts as {reading.word}"), []).append((row, cell))
            found.append(reading)
        if whole_column:
            self.remarks.append(
                f"{table.path}, column {name!r}: {whole_column} values are converted from {own} to {unit}."
            )
        self._ask_which(name, unclear, *([] if table.layout.mark else [_MARK]))
        self._ask_about_thousands(name, needed)
        self._ask_about_units(name, unit, needed)
        self._ask_about_percent(name, unit, found, needed)
        return found

    def _ask_about_thousands(self, name: str, needed: Sequence[bool]) -> None:
        """'1.200' among 800 and 950 is hardly 1.2, even if other columns have decimal points."""
        cells, mark = self.table.cells(name), self.table.layout.mark
        if self.table.rules.decimal_mark is not None or mark != ".":
            return
        odd = [row for row, cell in enumerate(cells) if is_ambiguous(cell, None) and not is_ambiguous(cell, mark)]
        if not odd:
            return
        parsed = zip(cells, self.table.parsed(name), strict=True)
        others = [own for cell, own in parsed if not is_ambiguous(cell, None) and own.word != MISSING]
        plain = [abs(own.value) for own in others if own.plain and own.value is not None]
        whole = all(v == int(v) and v >= 100 for v in plain)
        if len(plain) < max(len(others), len(odd)) or not whole:
            return
        unclear = []
        for row in odd:
            if needed[row] and self.table.rules.meaning(cells[row]) is None:
                told = ambiguity(cells[row], None)
                unclear.append((row, told.replace("nothing else in the file shows", "no other in the column shows")))
        self._ask_which(name, unclear, _MARK)

    def _ask_which(self, name: str, unclear: Sequence[tuple[int, str]], *settings: Setting) -> None:
        """One question on all cells of a column that could be two numbers, with the first of them."""
        if not unclear:
            return
        (row, told), *others = unclear
        n = len(others)
        rows = ", ".join(str(self.table.numbers[other]) for other, _ in others[:_LISTED]) + (
            " …" if n > _LISTED else ""
        )
        more = f" It is so in {n} more cell{'s' if n > 1 else ''} of the column (row{'s' if n > 1 else ''} {rows})."
        leave = [Setting("ignore", name)] if self.use.past and name in self.use.numbers else []
        told = f"{self.table.place(row, name)}: {told}.{more if others else ''}"
        self.problems.append(Message(told, *settings, *leave) if settings or leave else told)

    def _ask_about_units(self, name: str, unit: str, needed: Sequence[bool]) -> None:
        """'353.15 K' among 60 and 80, where nobody says what these are in."""
        parsed = self.table.parsed(name)
        if unit or not any(cell.plain for cell in parsed):
            return
        for row, cell in enumerate(parsed):
            if needed[row] and cell.value is not None and cell.unit:
                self.problems.append(
                    Message(
                        f"{self.table.place(row, name)}: {self.table.cells(name)[row]!r} is in {cell.unit}, but other "
                        "cells of the column do not say what they are in. Write the unit into the column's name, or "
                        "the number alone.",
                        Setting("rename", f"{name}={name} [UNIT]"),
                    )
                )

    def _ask_about_percent(self, name: str, unit: str, found: Sequence[CellReading], needed: Sequence[bool]) -> None:
        """Where some cells have a % and others are below 1, the latter may be shares of 1."""
        named = column_unit(self.table, name)
        if named or unit != "%" or not any(reading.unit == "%" for reading in found):
            return
        for row, reading in enumerate(found):
            bare = reading.value is not None and not reading.unit and not reading.how
            if bare and needed[row] and 0 < abs(reading.value or 0) <= 1:
                cell = self.table.cells(name)[row]
                self.problems.append(
                    f"{self.table.place(row, name)}: {cell!r} has no %, but other cells of the column do: it may be "
                    f"{cell} % or {100 * (reading.value or 0):g} %. Write the one that is meant."
                )

    def spell(self, name: str, choices: Sequence[str]) -> None:
        """Categories as they are known, whatever their case; cells that are told to be missing are."""
        known = {folded(choice): choice for choice in reversed(choices)}
        for row, cell in enumerate(self.columns[name]):
            if self.table.rules.meaning(cell) == MISSING:
                self.columns[name][row] = "n/a"
                self.how.setdefault((name, "counts as missing, as [cells] says"), []).append((row, cell))
            elif cell and cell not in choices and (choice := known.get(folded(cell))) is not None:
                self.columns[name][row] = choice
                self.how.setdefault((name, f"is taken for {choice!r}: case does not matter"), []).append((row, cell))

    def fill_down(self, name: str, has: Sequence[bool]) -> None:
        """Cells that say nothing as the one above them, as cells that were merged."""
        cells = self.columns[name]
        for row, own in enumerate(self.table.parsed(name)):
            if own.word != MISSING:
                continue
            if has[row] and row and cells[row - 1]:
                self.how.setdefault((name, "counts as the batch of the row above"), []).append((row, cells[row]))
            cells[row] = cells[row - 1] if row else ""

    def leave_out(self, names: Sequence[str], has: Sequence[bool]) -> None:
        """Rows with a result that lack an input."""
        for name in names:
            cells = self.columns[name]
            if name in self.values:
                missing = [own.word == MISSING for own in self.table.parsed(name)]
            else:
                missing = [is_missing(cell, numeric=False) for cell in cells]
            if all(missing):
                continue  # the file does not have the parameter
            rows = [row for row, lacks in enumerate(missing) if has[row] and lacks]
            if rows:
                self.how.setdefault((name, "is no value: the row is left out"), []).extend((r, cells[r]) for r in rows)
                self.dropped |= set(rows)

    def done(self, more_remarks: Sequence[str]) -> Table:
        """The typed table."""
        table = self.table
        for (name, how), cells in self.how.items():
            listed = ", ".join(f"row {table.numbers[row]}: {cell!r}" for row, cell in cells[:_LISTED])
            more = f" and {len(cells) - _LISTED} more" if len(cells) > _LISTED else ""
            self.remarks.append(f"{table.path}, column {name!r} ({listed}{more}) {how}.")
        keep = [row for row in range(len(table.rows)) if row not in self.dropped]
        rows = list(zip(*(self.columns[name] for name in table.columns), strict=True))
        problems = self.problems[:_MOST_PROBLEMS]
        if more_problems := self.problems[_MOST_PROBLEMS:]:
            problems.append(f"{table.path}: and {len(more_problems)} more cells that cannot be read.")
        return replace(
            table,
            rows=tuple(rows[row] for row in keep),
            numbers=tuple(table.numbers[row] for row in keep),
            remarks=(*table.remarks, *self.remarks, *more_remarks),
            values={name: [own[row] for row in keep] for name, own in self.values.items()},
            problems=tuple(problems),
            _parsed={},
        )


def read_frame(path: Path | str, *, measured: Sequence[str] = (), text: str | None = None) -> pd.DataFrame:
    """The table as a DataFrame: float64 where a column holds numbers (NaN: no cell), else text (None: no cell).

    Cells mean what they mean in any file: '60 °C' is 60, and a date is text. In columns of what was ``measured`` there
    are numbers alone, NaN for a result that failed, and the column ``text`` is text. The remarks on how cells were read
    are in ``attrs["remarks"]``; all that cannot be read is told together.
    """
    import pandas as pd

    table = read_table(path)
    if not table.rows:
        raise UnusableSourceError(f"{path} has a header but no rows: nothing was measured there. Leave it out.")
    results = tuple(meant_by(measured, table.columns))
    kinds = {column: "result" if column in results else table.kind(column) for column in table.columns}
    kinds |= {column: "text" for column in meant_by([text] if text else [], table.columns) if kinds[column] == "number"}
    table = typed(table, TableUse(results, tuple(c for c in kinds if kinds[c] == "number"), past=False))
    refuse(table.problems)
    any_value = [False] * len(table.rows)  # none is needed
    found = pd.DataFrame({c: input_column(table, c, any_value) for c in kinds if kinds[c] != "empty"})
    found.attrs["remarks"] = list(table.remarks)
    return found


def result_column(table: Table, column: str) -> list[float | None]:
    """The results of a typed table, None where there is none: empty, 'n/a', 'failed'."""
    return [cell.value for cell in table.values[column]]


def input_column(table: Table, column: str, needed: Sequence[bool]) -> Any:
    """A column of inputs of a typed table as a Series: numbers, or text. Rows that are ``needed`` must have a value."""
    import pandas as pd

    lacking = [table.lacks(i, column) for i in range(len(table.rows))]
    for i, cell in enumerate(table.cells(column)):
        if needed[i] and lacking[i]:
            told = repr(cell) if cell else "an empty cell"
            raise InputError(f"{table.place(i, column)}: {told} is not a value. Fill it in, or delete the row.")
    if column in table.values:
        own = enumerate(table.values[column])
        return pd.Series([table.number_at(i, column) if needed[i] else c.value for i, c in own], dtype="float64")
    own_texts = zip(table.cells(column), lacking, strict=True)
    return pd.Series([None if lacks else cell for cell, lacks in own_texts], dtype=object)
