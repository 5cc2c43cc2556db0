"""The rows of ``current.csv``.

a row …                              is
with a number for every result       finished
with 'n/a' for some results          finished, and counts for the others
with an empty result                 pending: it was suggested, or somebody plans it, or a result is still awaited; what
                                     it has already counts
with 'n/a' or 'failed' for all       failed: nothing is learnt from it, and it is not suggested again
without inputs and results           none: it is left alone, whatever else stands in it
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from headstart.campaign.file import TOML, CampaignFile
from headstart.campaign.measured import copies_in, errors_in, results_in
from headstart.data.ranges import numbers_in_words
from headstart.errors import InputError, nearest
from headstart.sources.files.cells import is_missing
from headstart.sources.files.tables import Table
from headstart.sources.parameters import Kind, Parameter


class State(StrEnum):
    """What is known about an experiment."""

    FINISHED = "finished"
    PENDING = "pending"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Experiment:
    """One row of ``current.csv``. ``number`` is the row's number in a spreadsheet program.

    ``results`` has every result that is there, by its column, and ``errors`` the standard errors that are known.
    ``batch`` is the day, lot or operator that it belongs to, None where nobody said.
    """

    number: int
    values: Mapping[str, Any]
    state: State
    results: Mapping[str, float] = field(default_factory=dict)
    errors: Mapping[str, float] = field(default_factory=dict)
    batch: Any = None


def experiments_in(
    table: Table, file: CampaignFile, remarks: list[str], batches: Sequence[Any] = ()
) -> tuple[Experiment, ...]:
    """All experiments of the file, in its order; what is noticed is added to the remarks.

    ``batches`` are the labels of its rows, if any are known.
    """
    free = [p for p in file.parameters if p.kind is not Kind.FIXED]
    for p in free:
        table.require(p.name, f"Add it to the header, or delete [parameters.{p.name}] in {TOML}.")
    for column in file.results:
        table.require(column.name, f"Add it to the header, or correct the name in {TOML}.")
    results = {column.name: results_in(table, column) for column in file.results}
    errors = {column.name: errors_in(table, column, results[column.name]) for column in file.results}
    measured = [any(own[row] is not None for own in results.values()) for row in range(len(table.rows))]
    copies = copies_in(table, measured, file, remarks)
    found = []
    for i, row in enumerate(table.rows):
        cells = dict(zip(table.columns, row, strict=True))
        told = [cells[column.name] for column in file.results]
        if i in copies or (not any(told) and all(is_missing(cells[p.name], numeric=True) for p in free)):
            continue
        gone = {name: bool(cells[name]) and bool(table.values[name][i].word) for name in results}  # 'failed', 'n/a'
        values = {p.name: _value(table, i, p, remarks) for p in file.parameters}
        own = {name: result for name, each in results.items() if (result := each[i]) is not None}
        own_errors = {name: each[i] for name, each in errors.items() if each is not None and each[i] == each[i]}
        done = all(name in own or gone[name] for name in results)
        state = State.FAILED if all(gone.values()) else State.FINISHED if done else State.PENDING
        batch = batches[i] if batches else None
        found.append(Experiment(table.numbers[i], values, state, own, own_errors, batch))
    return tuple(found)


def _value(table: Table, row: int, p: Parameter, remarks: list[str]) -> Any:
    """What the row was run with; where that was not written down, the value before, or the fixed one it has now."""
    if (p.name not in table.columns or table.lacks(row, p.name)) and (p.before is not None or p.kind is Kind.FIXED):
        return p.value if p.before is None else p.before
    value = setting_at(table, row, p, missing="Fill it in, or delete the row: an experiment needs all of its inputs.")
    if p.kind is not Kind.FIXED and not isinstance(value, str) and (why := unusual(p, value)):
        told = f"{table.place(row, p.name)}: {table.cells(p.name)[row]} {why}."
        remarks.append(f"{told} It counts, but look whether it is a slip.")
    return value


def unusual(p: Parameter, value: float) -> str:
    """Why a number would not be suggested, "" if it could be; steps are not asked for in what was run."""
    if p.values:
        return "" if p.on_step(value) else f"is none of the values {numbers_in_words(p.values)}"
    return "" if p.low <= value <= p.high else f"lies outside {p.low:g} … {p.high:g}"


def setting_at(table: Table, row: int, p: Parameter, *, missing: str, offered: bool = False) -> str | float:
    """What a cell says of a parameter (``as_setting``); else an ``InputError``, with what to do if it is empty."""
    place, cell = table.place(row, p.name), table.rows[row][table.columns.index(p.name)]
    if table.lacks(row, p.name):
        raise InputError(f"{place}: {repr(cell) if cell else 'an empty cell'} is not a value. {missing}")
    remedy = "Write the number alone; the unit belongs into the header."
    value = cell if p.is_text else table.number_at(row, p.name, remedy=remedy)
    assert value is not None
    return as_setting(p, value, f"{place}: ", offered=offered)


def as_setting(p: Parameter, value: str | float, place: str = "", *, offered: bool = False) -> str | float:
    """The value that an experiment was run with, or an ``InputError``; of those ``offered`` none may be withdrawn."""
    if isinstance(value, str):
        if p.kind is Kind.CATEGORY and value not in (p.choices if offered else (*p.choices, *p.withdrawn)):
            more = "" if offered else ", or to withdrawn if it is not to be suggested any more"
            raise InputError(
                f"{place}{value!r} is none of the choices. {nearest(value, p.choices)} Correct it, or add it to "
                f"choices in [parameters.{p.name}] in {TOML}{more}."
            )
        return value
    if p.log and value <= 0:
        raise InputError(f"{place}{value:g} is not above 0, as a log scale needs. Correct it, or delete the row.")
    return int(value) if p.kind is Kind.INT and value == int(value) else value
