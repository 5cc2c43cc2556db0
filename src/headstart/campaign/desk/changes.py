"""What people change in the file of experiments: results, settings, failures, rows of their own, and suggestions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from headstart.campaign.campaign import Campaign, open_campaign, require_closed
from headstart.campaign.desk.cells import edited
from headstart.campaign.desk.history import Step, digest, make_step
from headstart.campaign.desk.typed import OWN_ROW, CellPlace, one_setting, result_typed, setting_typed
from headstart.campaign.experiments import State
from headstart.campaign.file import TOML
from headstart.campaign.measured import SlippedResultsError
from headstart.campaign.toml.editing import with_told_cells
from headstart.errors import ChangedMeanwhileError, HeadstartError, InputError, UnusableCellsError
from headstart.sources.files.cells import number
from headstart.sources.files.safe import alone_in
from headstart.sources.files.tables import Table, appended, read_table
from headstart.sources.parameters import Kind

FAILED = "failed"
# How a folder is opened, as ``open_campaign`` does: whoever has read its past files before need not read them again
Opening = Callable[..., Campaign]


@dataclass(frozen=True, slots=True)
class OwnRow:
    """An experiment that somebody plans or has done: cells as they were typed, by column."""

    cells: Mapping[str, str]


def save_results(
    folder: Path,
    seen: str,
    typed: Mapping[CellPlace, str],
    *,
    failed: Collection[int] = (),
    right: Collection[CellPlace] = (),
    opening: Opening = open_campaign,
) -> Step | None:
    """Write results and settings into their cells; ``failed`` are rows without any result.

    ``seen`` is the digest of the file that whoever typed them looked at. None if nothing is new. Where a cell cannot
    be used nothing is written, and the error has all such cells. A result far outside anything seen is asked about
    (``SlippedResultsError``) unless it is among those that somebody says are ``right``, which ``headstart.toml`` keeps.
    """

    def change(campaign: Campaign) -> tuple[str, bytes] | None:
        table, file = campaign.table, campaign.file
        settings = {p.name: p for p in file.parameters}
        cells: dict[CellPlace, str | float] = {}
        wrong: dict[CellPlace, str] = {}
        for (row, column), text in typed.items():
            if column in settings:
                setting_typed(campaign, row, settings[column], text, cells, wrong)
            elif row not in failed:
                result_typed(campaign, row, column, text, cells, wrong)
        if wrong:
            raise UnusableCellsError(wrong)
        cells |= {(row, column.name): FAILED for row in failed for column in file.results}
        now = _texts(table)
        cells = {place: value for place, value in cells.items() if now.get(place) != value}
        if not cells:
            return None
        set_anew = sorted({row for row, column in cells if column in settings})
        rows = sorted({row for row, column in cells if column not in settings})
        return _told(rows, failed, set_anew), edited(table, cells, campaign.mark)

    return _changed(folder, seen, change, opening, right)


def add_row(
    folder: Path,
    seen: str,
    row: OwnRow,
    *,
    right: Collection[str] = (),
    opening: Opening = open_campaign,
) -> Step | None:
    """Add an experiment of one's own; its results may be there already, or come later.

    ``right`` are columns whose result somebody says is right, far outside anything seen as it is.
    """

    def change(campaign: Campaign) -> tuple[str, bytes]:
        values: dict[str, Any] = {}
        wrong: dict[CellPlace, str] = {}
        for p in campaign.file.parameters:
            if p.kind is Kind.FIXED:
                values[p.name] = p.value
                continue
            try:
                values[p.name] = one_setting(campaign, p, row.cells.get(p.name, ""))
            except HeadstartError as error:
                wrong[OWN_ROW, p.name] = str(error)
        for column in campaign.file.measured_columns:
            text = row.cells.get(column, "").strip()
            found: dict[CellPlace, str | float] = {}
            result_typed(campaign, OWN_ROW, column, text, found, wrong)
            values |= {column: value for (_, column), value in found.items()}
        if wrong:
            raise UnusableCellsError(wrong)
        return "an own experiment was added", appended(campaign.table, [values], campaign.mark)

    return _changed(folder, seen, change, opening, [(OWN_ROW, column) for column in right])


def remove_row(folder: Path, seen: str, number: int, *, opening: Opening = open_campaign) -> Step | None:
    """Take a row out that has no result yet: nobody is going to do it."""

    def change(campaign: Campaign) -> tuple[str, bytes]:
        if number not in [e.number for e in campaign.those(State.PENDING) if not e.results]:
            raise InputError(f"{campaign.table.path}, row {number}: only a row without any result can be taken out.")
        return f"row {number} was taken out", edited(campaign.table, {}, campaign.mark, without=(number,))

    return _changed(folder, seen, change, opening)


def add_suggestions(
    folder: Path, seen: str, rows: Sequence[Mapping[str, Any]], *, opening: Opening = open_campaign
) -> tuple[int, ...]:
    """Append rows that were suggested for the file with this digest; the numbers that they get."""
    told = "1 suggestion was" if len(rows) == 1 else f"{len(rows)} suggestions were"
    paths: list[Path] = []

    def change(campaign: Campaign) -> tuple[str, bytes]:
        paths.append(campaign.table.path)
        return f"{told} added", appended(campaign.table, rows, campaign.mark)

    _changed(folder, seen, change, opening)
    return read_table(paths[0]).numbers[-len(rows) :]


def say_right(folder: Path, told: Mapping[str, float]) -> Step:
    """Note in ``headstart.toml`` that cells with these texts are the numbers that they say, far out as they are."""
    with alone_in(folder):
        old, new = _toml_with(folder, told)
        return make_step(folder, f"{' and '.join(told)} was said to be right", {TOML: (old, new)})


def _changed(
    folder: Path,
    seen: str,
    change: Callable[[Campaign], tuple[str, bytes] | None],
    opening: Opening,
    right: Collection[CellPlace] = (),
) -> Step | None:
    with alone_in(folder):
        campaign = opening(folder)
        if digest(campaign.table.raw) != seen:
            raise ChangedMeanwhileError(
                f"{campaign.table.path} was changed by somebody else meanwhile; nothing was written. Look at what is "
                "new, and save again."
            )
        require_closed(campaign)
        found = change(campaign)
        if found is None:
            return None
        what, content = found
        files: dict[str, tuple[bytes | None, bytes | None]] = {}
        if told := _said_right(folder, campaign, content, opening, right):
            files[TOML] = _toml_with(folder, told)
        path = campaign.table.file.relative_to(campaign.folder).as_posix()
        return make_step(folder, what, {path: (campaign.table.raw, content), **files})


def _said_right(
    folder: Path, campaign: Campaign, content: bytes, opening: Opening, right: Collection[CellPlace]
) -> dict[str, float]:
    """The folder is opened as it would be; what would be asked about in it and is said to be right, by the cell's text.

    A question that nobody has answered is an error, and so is everything else that would be wrong.
    """
    try:
        opening(folder, content=content)
    except SlippedResultsError as error:
        path, there = campaign.table.path, campaign.table.numbers
        own = [replace(slip, row=slip.row if slip.row in there else OWN_ROW) for slip in error.slips]
        open_ = [slip for slip in own if slip.path != path or (slip.row, slip.column) not in right]
        if open_:
            raise SlippedResultsError(open_) from error
        told = {slip.cell: slip.value for slip in own}
        opening(folder, content=content, right=told)
        return told
    return {}


def _toml_with(folder: Path, told: Mapping[str, float]) -> tuple[bytes, bytes]:
    """``headstart.toml`` as it is, and with what cells are said to mean."""
    old = (folder / TOML).read_bytes()
    return old, with_told_cells(old, folder / TOML, told)


def _texts(table: Table) -> dict[CellPlace, str | float]:
    """What the cells hold, numbers as numbers: a result that is typed again is no change."""
    found: dict[CellPlace, str | float] = {}
    for row, cells in zip(table.numbers, table.rows, strict=True):
        for column, cell in zip(table.columns, cells, strict=True):
            value = number(cell, table.mark)
            found[row, column] = cell if value is None else value
    return found


def _told(rows: Sequence[int], failed: Collection[int], set_anew: Sequence[int]) -> str:
    bad = sorted(failed)
    good = [row for row in rows if row not in bad]
    words = []
    for numbers, what in (
        (good, "results were written into"),
        (set_anew, "settings were corrected in"),
        (bad, "marked as failed:"),
    ):
        if numbers:
            shown = ", ".join(map(str, numbers[:6])) + (" …" if len(numbers) > 6 else "")
            words.append(f"{what} row{'s' if len(numbers) > 1 else ''} {shown}")
    return "; ".join(words)
