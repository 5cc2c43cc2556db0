"""A campaign: a folder with ``headstart.toml``, the past files it names, and ``current.csv``.

a row of current.csv …            is
with a number as its result       finished
with an empty result              pending: it was suggested, or somebody plans it, and the result is awaited
with 'n/a' or 'failed' there      failed: nothing is learnt from it, and it is not suggested again
without inputs and result         none: it is left alone, whatever else stands in it
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from headstart.campaign.file import TOML, CampaignFile, read_campaign_file
from headstart.errors import InputError
from headstart.sources.files.cells import is_failure, is_missing
from headstart.sources.files.frames import input_column, result_column
from headstart.sources.files.safe import write_whole
from headstart.sources.files.tables import Table, appended, read_table
from headstart.sources.parameters import Kind, Parameter, nearest
from headstart.sources.raw import RawTask

__all__ = [
    "Campaign",
    "Experiment",
    "State",
    "append_experiments",
    "open_campaign",
    "past_tasks",
    "repeat_spread",
    "require_closed",
]

_SAMPLE_SEED = 0


class State(StrEnum):
    """What is known about an experiment."""

    FINISHED = "finished"
    PENDING = "pending"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Experiment:
    """One row of ``current.csv``. ``number`` is the row's number in a spreadsheet program."""

    number: int
    values: Mapping[str, Any]
    state: State
    result: float = float("nan")


@dataclass(frozen=True, slots=True)
class Campaign:
    """Everything the folder says, in the user's own names, units and direction."""

    folder: Path
    file: CampaignFile
    past: tuple[RawTask, ...]
    table: Table
    experiments: tuple[Experiment, ...]
    remarks: tuple[str, ...]
    mark: str  # the decimal mark for a file that shows none yet

    def those(self, state: State) -> tuple[Experiment, ...]:
        """The experiments in that state, in the order of the file."""
        return tuple(e for e in self.experiments if e.state is state)

    @property
    def best(self) -> Experiment | None:
        """The finished experiment with the best result; the first of equals."""
        finished = self.those(State.FINISHED)
        pick = max if self.file.maximize else min
        return pick(finished, key=lambda e: e.result) if finished else None


def open_campaign(folder: Path) -> Campaign:
    """Read the folder; nothing is changed. Whatever is wrong in any of its files is an ``InputError``."""
    file = read_campaign_file(folder / TOML)
    tables = [read_table(folder / path).renamed(file.rename) for path in file.past]
    remarks = [remark for table in tables for remark in table.remarks]
    past = past_tasks(tables, file, remarks)
    current = folder / file.current
    if not current.exists():
        header = ",".join([*(p.name for p in file.parameters), file.objective])
        raise InputError(f"{current}: there is no such file. Make one whose first row is {header}")
    table = read_table(current)
    remarks += table.remarks
    experiments = tuple(_experiments(table, file, remarks))
    alike = (t.layout.mark for t in tables if t.layout.mark and t.layout.delimiter == table.layout.delimiter)
    return Campaign(folder, file, past, table, experiments, tuple(remarks), next(alike, "."))


def require_closed(campaign: Campaign) -> None:
    """Raise an ``InputError`` if a spreadsheet program has ``current.csv`` open: its next save would undo ours."""
    path = campaign.table.path
    for lock in (path.with_name(f"~${path.name}"), path.with_name(f".~lock.{path.name}#")):
        if lock.exists():
            raise InputError(
                f"{path} is open in a spreadsheet program ({lock.name} is there). Save it and close it first; if no "
                "program has it open, delete that lock file."
            )


def append_experiments(campaign: Campaign, rows: Sequence[Mapping[str, Any]]) -> None:
    """Add rows without a result to ``current.csv``. What is there stays as it is, byte by byte."""
    content = appended(campaign.table, rows, campaign.mark)
    write_whole(campaign.table.path, content, instead_of=campaign.table.raw)


def repeat_spread(tasks: Sequence[tuple[Sequence[Mapping[str, Any]], Sequence[float]]]) -> tuple[float, int] | None:
    """The standard deviation of repeated experiments, and how many repeats it rests on; None without any.

    √(Σ (y − ȳ)² / Σ (n − 1)) over all groups of n rows with equal inputs, each within its own task.
    """
    squares, freedom = 0.0, 0
    for rows, results in tasks:
        groups: dict[tuple[tuple[str, Any], ...], list[float]] = {}
        for row, result in zip(rows, results, strict=True):
            groups.setdefault(tuple(sorted(row.items())), []).append(result)
        for group in groups.values():
            squares += float(np.sum((np.array(group) - np.mean(group)) ** 2))
            freedom += len(group) - 1
    return ((squares / freedom) ** 0.5, freedom) if freedom else None


# ── past files ────────────────────────────────────────────────────────────────────────────────────────────────────


def past_tasks(tables: Sequence[Table], file: CampaignFile, remarks: list[str]) -> tuple[RawTask, ...]:
    """The past files of a campaign, called by the names of the files; what is noticed is added to the remarks."""
    stems = [Path(path).stem for path in file.past]
    return tuple(
        _past(table, stem if stems.count(stem) == 1 else path, file, remarks)
        for table, stem, path in zip(tables, stems, file.past, strict=True)
    )


def _past(table: Table, name: str, file: CampaignFile, remarks: list[str]) -> RawTask:
    table.require(file.objective, f'Name it in [rename] of {TOML}, as in "OLD" = "{file.objective}".')
    results = result_column(table, file.objective)
    has = np.array([value is not None for value in results], dtype=bool)
    if not has.any():
        raise InputError(
            f"{table.path}: no row has a result in column {file.objective!r}. Take it out of past in {TOML}."
        )
    own = [p for p in file.parameters if p.name in table.columns and table.kind(p.name) != "empty"]
    if not own:
        theirs, ours = (", ".join(map(repr, names)) for names in (table.columns, [p.name for p in file.parameters]))
        raise InputError(
            f"{table.path} has nothing in common with the campaign: its columns are {theirs}, the parameters {ours}. "
            f"Say what is the same in [rename] of {TOML}, or take the file out of past."
        )
    frame = pd.DataFrame({p.name: _column(table, p, has.tolist()) for p in own})
    known = {file.objective, *file.ignore, *(p.name for p in file.parameters)}
    remarks += [
        f"{table.path}: the column {column!r} is neither a parameter nor in ignore, and is left out."
        for column in table.columns
        if column not in known and len(set(table.cells(column))) > 1
    ]
    keep = np.flatnonzero(has)
    if len(keep) > file.max_rows:
        remarks.append(
            f"{table.path}: a random {file.max_rows} of its {len(keep)} results are used (max_rows in {TOML})."
        )
        keep = np.sort(np.random.default_rng(_SAMPLE_SEED).choice(keep, file.max_rows, replace=False))
    elif len(keep) < len(has):
        remarks.append(f"{table.path}: {len(has) - len(keep)} of {len(has)} rows have no result and are left out.")
    y = np.array([results[i] for i in keep], dtype=np.float64)
    numbers = tuple(table.numbers[i] for i in keep)
    return RawTask(name, frame.iloc[keep].reset_index(drop=True), y, origin=str(table.path), numbers=numbers)


def _column(table: Table, p: Parameter, has: list[bool]) -> Any:
    """The inputs of a parameter, as the kind that it is."""
    if p.is_text:
        return input_column(table, p.name, has, text=True)
    for row, needed in enumerate(has):
        if needed:
            table.number_at(row, p.name, remedy=_no_number(p))
    return input_column(table, p.name, has, text=False)


def _no_number(p: Parameter) -> str:
    return f'Write the number alone, or give [parameters.{p.name}] the kind "category" in {TOML}.'


# ── current.csv ───────────────────────────────────────────────────────────────────────────────────────────────────


def _experiments(table: Table, file: CampaignFile, remarks: list[str]) -> list[Experiment]:
    free = [p for p in file.parameters if p.kind is not Kind.FIXED]
    for p in free:
        table.require(p.name, f"Add it to the header, or delete [parameters.{p.name}] in {TOML}.")
    table.require(file.objective, f"Add it to the header, or correct objective in {TOML}.")
    results = result_column(table, file.objective)
    found = []
    for i, row in enumerate(table.rows):
        cells = dict(zip(table.columns, row, strict=True))
        outcome = cells[file.objective]
        if not outcome and all(is_missing(cells[p.name], numeric=True) for p in free):
            continue
        values = {p.name: _value(table, i, p, remarks) for p in free}
        values |= {p.name: p.value for p in file.parameters if p.kind is Kind.FIXED}
        result = results[i]
        if result is not None:
            found.append(Experiment(table.numbers[i], values, State.FINISHED, result))
        else:
            state = State.FAILED if is_failure(outcome) else State.PENDING
            found.append(Experiment(table.numbers[i], values, state))
    return found


def _value(table: Table, row: int, p: Parameter, remarks: list[str]) -> Any:
    place = table.place(row, p.name)
    cell = table.rows[row][table.columns.index(p.name)]
    if is_missing(cell, numeric=not p.is_text):
        raise InputError(
            f"{place}: {repr(cell) if cell else 'an empty cell'} is not a value. Fill it in, or delete the row: an "
            "experiment needs all of its inputs."
        )
    if p.is_text:
        if cell not in p.choices:
            raise InputError(
                f"{place}: {cell!r} is none of the choices. {nearest(cell, p.choices)} Correct it, or add it to "
                f"choices in [parameters.{p.name}] in {TOML}."
            )
        return cell
    value = table.number_at(row, p.name, remedy="Write the number alone; the unit belongs into the header.")
    assert value is not None
    if p.log and value <= 0:
        raise InputError(f"{place}: {cell!r} is not above 0, as a log scale needs. Correct it, or delete the row.")
    if not p.low <= value <= p.high:
        remarks.append(
            f"{place}: {cell} lies outside {p.low:g} … {p.high:g}. It counts, but look whether it is a slip."
        )
    return int(value) if p.kind is Kind.INT and value == int(value) else value
