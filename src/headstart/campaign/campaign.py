"""A campaign: a folder with ``headstart.toml``, the past files it names, and ``current.csv``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from headstart.campaign.batches import OwnBatches, own_batches
from headstart.campaign.experiments import Experiment, State, experiments_in
from headstart.campaign.file import TOML, CampaignFile
from headstart.campaign.measured import require_no_slips
from headstart.campaign.past import clean_tables, past_tasks, readable
from headstart.campaign.settings import CampaignSettings, read_settings
from headstart.campaign.toml.reading import read_campaign_file
from headstart.data.outcomes import Standing
from headstart.decide.front import front_of
from headstart.errors import InputError, refuse
from headstart.sources.files.safe import write_whole
from headstart.sources.files.tables import FileLayout, Table, edited, read_table, write_rows
from headstart.sources.files.workbooks import workbook_file
from headstart.sources.raw import RawTask

_ROWS_NAMED = 4  # in a sentence; more are counted


@dataclass(frozen=True, slots=True)
class Campaign:
    """Everything the folder says, in the user's own names, units and direction."""

    folder: Path
    file: CampaignFile
    settings: CampaignSettings
    past: tuple[RawTask, ...]
    table: Table
    experiments: tuple[Experiment, ...]
    remarks: tuple[str, ...]
    mark: str  # the decimal mark for a file that shows none yet
    batches: OwnBatches

    def those(self, state: State) -> tuple[Experiment, ...]:
        """The experiments in that state, in the order of the file."""
        return tuple(e for e in self.experiments if e.state is state)

    def measured(self, name: str) -> tuple[Experiment, ...]:
        """The experiments that have a result of this column."""
        return tuple(e for e in self.experiments if name in e.results)

    def with_batch(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        """A new row, in the present batch unless it says another one."""
        return row if self.batches.cell == "" else {self.file.batch: self.batches.cell, **row}

    def is_control(self, experiment: Experiment) -> bool:
        """Whether it repeats a setting that has a result of another batch, to see by how much its own is shifted."""
        others = (e for e in self.experiments if e.results and e.batch != experiment.batch)
        return experiment.batch is not None and any(e.values == experiment.values for e in others)

    def standing(self, experiment: Experiment) -> Standing:
        """Whether all limits hold there, as measured."""
        return self.file.outcomes.standing(experiment.results)

    def with_goals(self, standing: Standing) -> tuple[Experiment, ...]:
        """The experiments with a result for every objective that stand so with regard to the limits."""
        names = [goal.name for goal in self.file.outcomes.goals]
        every = (e for e in self.experiments if all(name in e.results for name in names))
        return tuple(e for e in every if self.standing(e) is standing)

    @property
    def front(self) -> tuple[Experiment, ...]:
        """Those within the limits that no other beats in every objective; of equals the first."""
        good = self.with_goals(Standing.WITHIN)
        if not good:
            return ()
        Y = torch.from_numpy(np.array([self.file.outcomes.losses(e.results) for e in good]))
        first: dict[tuple[float, ...], Experiment] = {}
        for values, experiment, on in zip(Y.tolist(), good, front_of(Y).tolist(), strict=True):
            if on:
                first.setdefault(tuple(values), experiment)
        return tuple(first.values())

    @property
    def best(self) -> Experiment | None:
        """The best experiment within the limits: the first of equals, and of several objectives the most balanced.

        That is the one on the front that is nearest to the best of every objective, in shares of the front's range.
        """
        front = self.front
        if not front:
            return None
        Y = np.array([self.file.outcomes.losses(e.results) for e in front])
        return front[int(far_from_balance(Y).argmin())]

    @property
    def why_no_best(self) -> str:
        """Why no result is the best yet, in words; "" if one is."""
        if self.best is not None:
            return ""
        limits = " and ".join(f"{column.name} {column.aim}" for column in self.file.limits)
        if not (unknown := self.with_goals(Standing.UNKNOWN)):
            beyond = self.with_goals(Standing.BEYOND)
            return f"No result is within the limits yet ({limits})." if beyond else "There is no result yet."
        return f"No result is known to be within the limits yet ({limits}): {self.unmeasured_limits(unknown)}."

    @property
    def batches_in_words(self) -> str:
        """Which column is the batch, how many batches have results, and which is the present one; "" without one."""
        name, present = self.file.batch, self.batches.present
        if not name:
            return ""
        past = sum(len(np.unique(task.batch.numbers)) for task in self.past if task.batch is not None)
        own = {e.batch for e in self.experiments if e.results and e.batch is not None}
        new = "" if present in own else ", which has no result yet"
        now = f" What is expected is a result in the present one, {present}{new}."
        if present is None:
            now = " Write the present one into its column." if name in self.table.columns else ""
        return f"Batch: {name}. {past} in the past files, {len(own)} with results in this campaign.{now}"

    def unmeasured_limits(self, experiments: Sequence[Experiment]) -> str:
        """What limited quantities were not measured, and in which of the rows: "dirt was not measured in row 4"."""
        limits = self.file.outcomes.limits
        names = [limit.name for limit in limits if any(limit.name not in e.results for e in experiments)]
        rows = [str(e.number) for e in experiments]
        listed = ", ".join(rows[:_ROWS_NAMED]) + (f" and {len(rows) - _ROWS_NAMED} more" * (len(rows) > _ROWS_NAMED))
        what = f"{' or '.join(names)} {'was' if len(names) == 1 else 'were'} not measured"
        return f"{what} in row{'s' * (len(rows) > 1)} {listed}"


def far_from_balance(Y: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far every row of a front is from the best of every objective, in shares of the front's range."""
    span = Y.max(axis=0) - Y.min(axis=0)
    return np.asarray(np.linalg.norm((Y - Y.min(axis=0)) / np.where(span > 0, span, 1.0), axis=1))


@dataclass(frozen=True, slots=True)
class PastRead:
    """What ``headstart.toml`` and the past files say, which takes longest to read and changes least."""

    file: CampaignFile
    tables: tuple[Table, ...]
    tasks: tuple[RawTask, ...]
    remarks: tuple[str, ...]


def read_past(folder: Path) -> PastRead:
    """Read ``headstart.toml`` and the past files; whatever is wrong in any of them is an ``InputError``."""
    file = read_campaign_file(folder / TOML)
    tables, problems = readable([folder / path for path in file.past], file.rules_of_cells)
    tables, more = clean_tables([table.renamed(file.rename) for table in tables], file)
    refuse([*problems, *more])
    remarks = [remark for table in tables for remark in table.remarks]
    past = past_tasks(tables, file, remarks)
    return PastRead(file, tuple(tables), past, tuple(remarks))


def open_campaign(
    folder: Path,
    read: PastRead | None = None,
    *,
    content: bytes | None = None,
    right: Mapping[str, float] | None = None,
    today: date | None = None,
) -> Campaign:
    """Read the folder; nothing is changed. Whatever is wrong in any of its files is an ``InputError``.

    ``read`` is what ``read_past`` gave, if those files have not changed since. The campaign may also be opened as it
    would be: with another ``content`` of the file of experiments, and with cells that somebody says are ``right``.
    ``today`` is the present batch where batches are days.
    """
    read = read_past(folder) if read is None else read
    file, tables, past, remarks = read.file, read.tables, read.tasks, list(read.remarks)
    file = replace(file, cells={**file.cells, **right}) if right else file
    current = folder / file.current
    if not workbook_file(current).exists():
        batch = [file.batch] if file.batch else []
        header = ",".join([*(p.name for p in file.parameters), *file.measured_columns, *batch])
        raise InputError(f"{current}: there is no such file. Make one whose first row is {header}")
    table = read_table(current, content, file.rules_of_cells)
    (plain_table,), problems = clean_tables([table], file, past=False)
    refuse(problems)
    remarks += plain_table.remarks
    if lost := lost_by_writing(plain_table, file):
        remarks.append(
            f"{current} is only read, for writing into it would lose {lost}. Suggestions are written to "
            f"{_beside(table)}: copy its rows into the table."
        )
    batches = own_batches(plain_table, file, tables, today or date.today(), folder, remarks)
    experiments = experiments_in(plain_table, file, remarks, batches.labels)
    require_no_slips([*tables, plain_table], file)
    table = replace(table, columns=plain_table.columns, order=plain_table.order)  # names as the campaign has them
    file = _with_recorded(file, past, experiments)
    settings = read_settings(folder, file, past)
    remarks += [*settings.remarks, *(remark for own in settings.descriptors.values() for remark in own.remarks)]
    alike = (t.layout.mark for t in tables if t.layout.mark and t.layout.delimiter == table.layout.delimiter)
    return Campaign(folder, file, settings, past, table, experiments, tuple(remarks), next(alike, "."), batches)


def _with_recorded(file: CampaignFile, past: Sequence[RawTask], experiments: Sequence[Experiment]) -> CampaignFile:
    """With what rows say of parameters that are fixed now: a row that was run with another value is evidence of it."""
    parameters = []
    for p in file.parameters:
        old = (value for task in past if p.name in task.rows for value in task.rows[p.name])
        parameters.append(p.with_recorded(chain(old, (e.values[p.name] for e in experiments))))
    return replace(file, parameters=tuple(parameters))


def lost_by_writing(table: Table, file: CampaignFile) -> str:
    """What writing into the file of the experiments would lose, "" if nothing: such a workbook is only read."""
    used = {*(p.name for p in file.parameters), *file.measured_columns, file.batch}
    computed = [name for place, name in enumerate(table.order) if place in table.formulas and name in used]
    return table.lost or (f"the values of the formulas in column {computed[0]!r}" if computed else "")


def require_closed(campaign: Campaign) -> None:
    """Raise an ``InputError`` if a spreadsheet program has ``current.csv`` open: its next save would undo ours."""
    if not lost_by_writing(campaign.table, campaign.file):
        require_no_program(campaign.table.file)


def require_no_program(path: Path) -> None:
    """Raise an ``InputError`` if a spreadsheet program has the file open."""
    for lock in (path.with_name(f"~${path.name}"), path.with_name(f".~lock.{path.name}#")):
        if lock.exists():
            raise InputError(
                f"{path} is open in a spreadsheet program ({lock.name} is there). Save it and close it first; if no "
                "program has it open, delete that lock file."
            )


def with_rows(campaign: Campaign, rows: Sequence[Mapping[str, Any]]) -> tuple[Path, bytes | None, bytes]:
    """The file that rows without a result go to, what it holds (None: it is not there), and what it shall hold.

    That is ``current.csv``, in which everything else stays as it is, or a CSV file beside a workbook that is only read.
    Rows that do not say otherwise are of the present batch.
    """
    table = campaign.table
    rows = [campaign.with_batch(row) for row in rows]
    if not lost_by_writing(table, campaign.file):
        return table.file, table.raw, edited(table, {}, campaign.mark, more=rows)
    path, mark = _beside(table), table.layout.mark or campaign.mark
    layout = FileLayout(";" if mark == "," else ",", mark, bom=b"\xef\xbb\xbf")
    lines = [table.order, *([row.get(column, "") for column in table.order] for row in rows)]
    content = layout.bom + write_rows(layout, lines).encode()
    return path, path.read_bytes() if path.exists() else None, content


def _beside(table: Table) -> Path:
    return table.file.with_name(f"{table.file.stem}-next.csv")


def append_experiments(campaign: Campaign, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write rows without a result into the file where they belong, and say which it is."""
    path, before, after = with_rows(campaign, rows)
    write_whole(path, after, instead_of=before)
    return path


def repeat_spread(tasks: Iterable[tuple[pd.DataFrame, NDArray[np.float64]]]) -> tuple[float, int] | None:
    """The standard deviation of repeated experiments, and how many repeats it rests on; None without any.

    √(Σ (y − ȳ)² / Σ (n − 1)) over all groups of n rows with equal inputs, each within its own task.
    """
    squares, freedom = 0.0, 0
    for rows, results in tasks:
        groups = pd.Series(results).groupby([rows[name].to_numpy() for name in rows], sort=False)
        squares += float(((results - groups.transform("mean")) ** 2).sum())
        freedom += int((groups.size() - 1).sum())
    return ((squares / freedom) ** 0.5, freedom) if freedom else None
