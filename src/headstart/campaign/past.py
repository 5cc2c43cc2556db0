"""The past files of a campaign, as tasks in its own names and units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from headstart.campaign.file import TOML, CampaignFile
from headstart.campaign.measured import copies_in, errors_in, results_in
from headstart.data.thinning import best_and_spread
from headstart.errors import InputError, UnreadableTableError, refuse
from headstart.sources.batch_column import batch_labels
from headstart.sources.batches import Batches
from headstart.sources.columns import TableUse, input_column, typed
from headstart.sources.files.cells import CellRules
from headstart.sources.files.tables import Table, read_table
from headstart.sources.parameters import Kind, Parameter
from headstart.sources.raw import RawObjective, RawTask, finite


def readable(paths: Sequence[Path], rules: CellRules) -> tuple[list[Table], list[str]]:
    """The tables in the files, and what is wrong with those that have none."""
    tables, problems = [], []
    for path in paths:
        try:
            tables.append(read_table(path, rules=rules))
        except UnreadableTableError as error:
            problems.append(str(error))
    return tables, problems


def clean_tables(tables: Sequence[Table], file: CampaignFile, *, past: bool = True) -> tuple[list[Table], list[str]]:
    """The tables with the campaign's names, in its units and with plain cells, and all that cannot be read.

    Case, outer spaces and the composition of umlauts do not matter in names.
    """
    errors = {
        column.error: f"The standard error of {column.name} is a number; leave the cell empty where it is not known."
        for column in file.results
        if column.error
    }
    remedy = f'Write the number alone, or give the parameter the kind "category" in {TOML}.'
    use = TableUse(
        tuple(column.name for column in file.results),
        tuple(p.name for p in file.parameters if not p.is_text),
        {p.name: p.choices or (str(p.value),) for p in file.parameters if p.is_text},
        {**dict.fromkeys(file.describing, ""), **errors},
        {**{p.name: p.unit for p in file.parameters}, **{c.name: c.unit for c in file.results}},
        past,
        remedy if past else "Write the number alone; the unit belongs into the header.",
        file.ignore,
        file.batch,
    )
    found = [typed(table, use) for table in tables]
    return found, [problem for table in found for problem in table.problems]


def read_candidates(path: Path, parameters: Sequence[Parameter], rules: CellRules) -> Table:
    """A list of candidates with typed columns, read by the same rules as every other file; an ``InputError`` if not."""
    table = read_table(path, rules=rules)
    free = [p for p in parameters if p.kind is not Kind.FIXED]
    use = TableUse(
        (),
        tuple(p.name for p in free if not p.is_text),
        {p.name: p.choices for p in free if p.is_text},
        units={p.name: p.unit for p in free},
        past=False,
        remedy="Write the number alone; the unit belongs into the header.",
    )
    found = typed(table, use)
    refuse(found.problems)
    return found


def past_tasks(tables: Sequence[Table], file: CampaignFile, remarks: list[str]) -> tuple[RawTask, ...]:
    """The past files of a campaign, called by the names of the files; what is noticed is added to the remarks.

    The tables are clean (``clean_tables``).
    What a file knows of every outcome is in the task's ``objectives``, and the first of these is its ``y``.
    """
    stems = [Path(path).stem for path in file.past]
    tasks = tuple(
        _past(table, stem if stems.count(stem) == 1 else path, file, _batches(table, tables, file), remarks)
        for table, stem, path in zip(tables, stems, file.past, strict=True)
    )
    remarks += [
        f"No past file knows {column.name!r}: it is learnt from this campaign alone."
        for column in file.results
        if tables and len(file.results) > 1 and not any(column.name in task.objectives for task in tasks)
    ]
    return tasks


def _batches(table: Table, tables: Sequence[Table], file: CampaignFile) -> Batches | None:
    """The batches of a file's rows; None where it does not tell them."""
    if file.batch not in table.columns:
        return None
    labels = batch_labels(file.batch, table, tables, numbers=file.drift is not None)
    return Batches.of(labels, drift=file.drift, where=f"{table.path}, column {file.batch!r}")


def _past(table: Table, name: str, file: CampaignFile, batches: Batches | None, remarks: list[str]) -> RawTask:
    outcomes = _outcomes(table, file)
    has = np.any([~np.isnan(outcome.y) for outcome in outcomes.values()], axis=0)
    filled = [c for c in table.columns if not all(table.lacks(row, c) for row in range(len(table.rows)))]
    own = [p for p in file.parameters if p.name in filled]
    if not own:
        theirs, ours = (", ".join(map(repr, names)) for names in (table.columns, [p.name for p in file.parameters]))
        raise InputError(
            f"{table.path} has nothing in common with the campaign: its columns are {theirs}, the parameters {ours}. "
            f"Say what is the same in [rename] of {TOML}, or take the file out of past."
        )
    frame = pd.DataFrame({p.name: input_column(table, p.name, has.tolist()) for p in own})
    for column in file.describing:
        if column in filled:
            frame[column] = input_column(table, column, [False] * len(table.rows))
    known = {*file.measured_columns, *file.ignore, *file.describing, file.batch, *(p.name for p in file.parameters)}
    remarks += [
        f"{table.path}: the column {column!r} is neither a parameter nor in ignore, and is left out."
        for column in table.columns
        if column not in known and len(set(table.cells(column))) > 1
    ]
    copies = copies_in(table, has.tolist(), file, remarks)
    keep = np.array([row for row in np.flatnonzero(has) if row not in copies])
    if len(keep) > file.max_rows:
        remarks.append(
            f"{table.path}: {file.max_rows} of its {len(keep)} results are used, the best tenth and an even spread of "
            f"the others (max_rows in {TOML})."
        )
        results = [(finite(own.y[keep]), own.maximize) for own in outcomes.values()]
        keep = keep[best_and_spread(results, file.max_rows)]
    elif not has.all():
        lacking = int((~has).sum())
        remarks.append(f"{table.path}: {lacking} of {len(has)} rows have no result and are left out.")
    first = next(iter(outcomes.values()))
    whole = RawTask(
        name,
        frame,
        first.y,
        origin=str(table.path),
        numbers=table.numbers,
        objectives=outcomes,
        error=first.error,
        batch=batches,
    )
    return whole.only(keep)


def _outcomes(table: Table, file: CampaignFile) -> Mapping[str, RawObjective]:
    """What the file knows of every outcome: at least one of them, in at least one row."""
    if len(file.results) == 1:
        name = file.results[0].name
        table.require(name, f'Name it in [rename] of {TOML}, as in "OLD" = "{name}".')
    found = {}
    for column in file.results:
        if column.name not in table.columns:
            continue
        results = results_in(table, column)
        if any(result is not None for result in results):
            errors = errors_in(table, column, results)
            y = np.array([np.nan if result is None else result for result in results], dtype=np.float64)
            found[column.name] = RawObjective(y, error=None if errors is None else np.array(errors))
    if not found:
        names = ", ".join(repr(column.name) for column in file.results)
        raise InputError(f"{table.path}: no row has a result in column {names}. Take it out of past in {TOML}.")
    return found
