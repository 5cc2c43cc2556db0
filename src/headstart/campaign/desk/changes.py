"""What people change in ``current.csv``: results, failures, rows of their own, and suggestions that are asked for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from headstart.campaign.campaign import Campaign, open_campaign, require_closed
from headstart.campaign.desk.cells import edited
from headstart.campaign.desk.history import Step, digest, make_step
from headstart.campaign.experiments import State, experiments_in
from headstart.campaign.file import CampaignFile
from headstart.errors import ChangedMeanwhileError, HeadstartError, InputError, UnusableCellsError
from headstart.sources.files.cells import is_failure, number
from headstart.sources.files.safe import alone_in
from headstart.sources.files.tables import Table, appended, read_table
from headstart.sources.parameters import Kind, Parameter

__all__ = ["FAILED", "Opening", "OwnRow", "add_row", "add_suggestions", "remove_row", "save_results"]

FAILED = "failed"
# How a folder is opened: whoever has read its past files before need not read them again
Opening = Callable[[Path], Campaign]
_OWN = 0  # the number of a row that is not in the file yet


@dataclass(frozen=True, slots=True)
class OwnRow:
    """An experiment that somebody plans or has done: cells as they were typed, by column."""

    cells: Mapping[str, str]


def save_results(
    folder: Path,
    seen: str,
    typed: Mapping[tuple[int, str], str],
    *,
    failed: Collection[int] = (),
    opening: Opening = open_campaign,
) -> Step | None:
    """Write results into their cells, each by its row's number and its column; ``failed`` are rows without any.

    ``seen`` is the digest of the file that whoever typed them looked at. None if nothing is new. Where a cell cannot
    be used nothing is written, and the error has all such cells.
    """

    def change(campaign: Campaign) -> tuple[str, bytes] | None:
        table, file = campaign.table, campaign.file
        cells: dict[tuple[int, str], str | float] = {}
        wrong: dict[tuple[int, str], str] = {}
        for (row, column), text in typed.items():
            if row not in failed:
                _understand(campaign, row, column, text, cells, wrong)
        if wrong:
            raise UnusableCellsError(wrong)
        cells |= {(row, column.name): FAILED for row in failed for column in file.results}
        now = _texts(table)
        cells = {place: value for place, value in cells.items() if now.get(place) != value}
        if not cells:
            return None
        rows = sorted({row for row, _ in cells})
        return _told(rows, failed), edited(table, cells, campaign.mark)

    return _changed(folder, seen, change, opening)


def add_row(folder: Path, seen: str, row: OwnRow, *, opening: Opening = open_campaign) -> Step | None:
    """Add an experiment of one's own; its results may be there already, or come later."""

    def change(campaign: Campaign) -> tuple[str, bytes]:
        values: dict[str, Any] = {}
        wrong: dict[tuple[int, str], str] = {}
        for p in campaign.file.parameters:
            if p.kind is Kind.FIXED:
                values[p.name] = p.value
                continue
            try:
                values[p.name] = _setting(campaign, p, row.cells.get(p.name, ""))
            except HeadstartError as error:
                wrong[_OWN, p.name] = str(error)
        for column in campaign.file.measured_columns:
            text = row.cells.get(column, "").strip()
            found: dict[tuple[int, str], str | float] = {}
            _understand(campaign, _OWN, column, text, found, wrong)
            values |= {column: value for (_, column), value in found.items()}
        if wrong:
            raise UnusableCellsError(wrong)
        return "an own experiment was added", appended(campaign.table, [values], campaign.mark)

    return _changed(folder, seen, change, opening)


def remove_row(folder: Path, seen: str, number: int, *, opening: Opening = open_campaign) -> Step | None:
    """Take a row out that has no result yet: nobody is going to do it."""

    def change(campaign: Campaign) -> tuple[str, bytes]:
        if number not in [e.number for e in campaign.those(State.PENDING) if not e.results]:
            raise InputError(f"{campaign.table.path}, row {number}: only a row without any result can be taken out.")
        return f"row {number} was taken out", edited(campaign.table, {}, campaign.mark, without=(number,))

    return _changed(folder, seen, change, opening)


def add_suggestions(folder: Path, seen: str, rows: Sequence[Mapping[str, Any]]) -> tuple[int, ...]:
    """Append rows that were suggested for the file with this digest; the numbers that they get."""
    told = "1 suggestion was" if len(rows) == 1 else f"{len(rows)} suggestions were"
    paths: list[Path] = []

    def change(campaign: Campaign) -> tuple[str, bytes]:
        paths.append(campaign.table.path)
        return f"{told} added", appended(campaign.table, rows, campaign.mark)

    _changed(folder, seen, change, open_campaign)
    return read_table(paths[0]).numbers[-len(rows) :]


def _changed(
    folder: Path, seen: str, change: Callable[[Campaign], tuple[str, bytes] | None], opening: Opening
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
        path = campaign.file.current
        return make_step(folder, what, {path: (campaign.table.raw, content)})


# ── what was typed ────────────────────────────────────────────────────────────────────────────────────────────────


def _understand(
    campaign: Campaign,
    row: int,
    column: str,
    text: str,
    cells: dict[tuple[int, str], str | float],
    wrong: dict[tuple[int, str], str],
) -> None:
    """A result as typed: a number with either decimal mark, nothing, or that it failed; else what is wrong with it."""
    text = text.strip()
    try:
        if column not in campaign.file.measured_columns:
            raise InputError(f"{column!r} is no column of results.")
        if row != _OWN and row not in campaign.table.numbers:
            raise InputError(f"{campaign.table.path}: there is no experiment in row {row}.")
        value: str | float = text if not text or is_failure(text) else _typed_number(text)
        if isinstance(value, float):
            _require_possible(campaign.file, column, value)
        cells[row, column] = value
    except HeadstartError as error:
        wrong[row, column] = str(error)


def _typed_number(text: str) -> float:
    """A number that somebody typed; either decimal mark, where it can only be one."""
    value = number(text, ".")
    if value is not None:
        return value
    if number(text, ",") is not None:
        raise InputError(
            f"{text!r} can be read as {text.replace(',', '')} or as {text.replace(',', '.')}. Write the one that is "
            "meant, with a point or without."
        )
    raise InputError(f"{text!r} is not a number. Write the number alone; leave it empty while it is awaited.")


def _require_possible(file: CampaignFile, column: str, value: float) -> None:
    result = next((r for r in file.results if r.name == column), None)
    if result is None:
        if value <= 0:
            raise InputError(f"A standard error must be above 0, but it is {value:g}.")
        return
    low, high = result.outcome.low, result.outcome.high
    if (low is not None and value < low) or (high is not None and value > high):
        below = low is not None and value < low
        raise InputError(
            f"{value:g} lies {'below' if below else 'above'} {low if below else high:g}, where no {column} can be."
        )


def _setting(campaign: Campaign, p: Parameter, text: str) -> Any:
    text = text.strip()
    if not text:
        raise InputError("An experiment needs all of its settings.")
    value = text if p.is_text else _typed_number(text)
    told = str(value) if p.is_text else repr(value)
    # the same checks that reading the file makes, on a table of this cell alone
    alone = CampaignFile(campaign.file.results, (), (p,))
    columns = (p.name, *(result.name for result in campaign.file.results))
    row = (told, *("" for _ in campaign.file.results))
    layout = replace(campaign.table.layout, mark=".")
    table = Table(campaign.table.path, layout, columns, (row,), (_OWN,), b"", order=columns)
    place = f"{table.place(0, p.name)}: "
    try:
        return experiments_in(table, alone, [])[0].values[p.name]
    except HeadstartError as error:
        raise InputError(str(error).removeprefix(place)) from error


def _texts(table: Table) -> dict[tuple[int, str], str | float]:
    """What the cells hold, numbers as numbers: a result that is typed again is no change."""
    found: dict[tuple[int, str], str | float] = {}
    for row, cells in zip(table.numbers, table.rows, strict=True):
        for column, cell in zip(table.columns, cells, strict=True):
            value = number(cell, table.mark)
            found[row, column] = cell if value is None else value
    return found


def _told(rows: Sequence[int], failed: Collection[int]) -> str:
    bad = sorted(failed)
    good = [row for row in rows if row not in bad]
    words = []
    for numbers, what in ((good, "results were written into"), (bad, "marked as failed:")):
        if numbers:
            shown = ", ".join(map(str, numbers[:6])) + (" …" if len(numbers) > 6 else "")
            words.append(f"{what} row{'s' if len(numbers) > 1 else ''} {shown}")
    return "; ".join(words)
