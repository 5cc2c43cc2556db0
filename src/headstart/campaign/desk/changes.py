"""What people change in a folder: results, settings, failures, rows of their own, suggestions, and the rules."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from headstart.campaign.campaign import Campaign, open_campaign, require_closed
from headstart.campaign.desk.cells import edited
from headstart.campaign.desk.history import Step, digest, make_step
from headstart.campaign.experiments import State, experiments_in
from headstart.campaign.file import TOML, CampaignFile, RuleLine
from headstart.campaign.measured import SlippedResultsError
from headstart.campaign.settings import read_settings
from headstart.campaign.toml.writing import with_rules, with_told_cells
from headstart.data.rules.text import parse_rule
from headstart.data.space import Space
from headstart.errors import ChangedMeanwhileError, HeadstartError, InputError, UnusableCellsError
from headstart.sources.files.cells import MISSING, CellReading, is_failure, number
from headstart.sources.files.safe import alone_in
from headstart.sources.files.tables import Table, appended, read_table
from headstart.sources.parameters import Kind, Parameter

# A cell by its row's number and its column
CellPlace = tuple[int, str]
OWN_ROW = 0  # the number of a row that is not in the file yet


def result_typed(
    campaign: Campaign,
    row: int,
    column: str,
    text: str,
    cells: dict[CellPlace, str | float],
    wrong: dict[CellPlace, str],
) -> None:
    """A result as typed: a number with either decimal mark, nothing, or that it failed; else what is wrong with it."""
    text = text.strip()
    try:
        if column not in campaign.file.measured_columns:
            raise InputError(f"{column!r} is no column of results.")
        if row != OWN_ROW and row not in campaign.table.numbers:
            raise InputError(f"{campaign.table.path}: there is no experiment in row {row}.")
        value: str | float = text if not text or is_failure(text) else _typed_number(text)
        if isinstance(value, float):
            _require_possible(campaign.file, column, value)
        cells[row, column] = value
    except HeadstartError as error:
        wrong[row, column] = str(error)


def setting_typed(
    campaign: Campaign,
    row: int,
    p: Parameter,
    text: str,
    cells: dict[CellPlace, str | float],
    wrong: dict[CellPlace, str],
) -> None:
    """What an experiment was set to, as typed; else what is wrong with it."""
    try:
        if p.kind is Kind.FIXED or p.name not in campaign.table.columns:
            raise InputError(f"{p.name} is fixed at {p.value}. Change that in {TOML}, or the cell in its file.")
        if row not in campaign.table.numbers:
            raise InputError(f"{campaign.table.path}: there is no experiment in row {row}.")
        value = one_setting(campaign, p, text)
        cells[row, p.name] = value if isinstance(value, str) else float(value)
    except HeadstartError as error:
        wrong[row, p.name] = str(error)


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
        slipped = next((value / 10**k for k in (1, 2, 3) if (low or 0.0) <= value / 10**k <= (high or 0.0)), None)
        meant = "" if slipped is None else f" Has the decimal mark slipped ({slipped:g}?)"
        where = f"below {low:g}" if below else f"above {high:g}"
        raise InputError(f"{value:g} lies {where}, where no {column} can be.{meant}")


def one_setting(campaign: Campaign, p: Parameter, text: str) -> Any:
    """What a parameter was set to, as typed; an ``InputError`` where that cannot be."""
    text = text.strip()
    if not text:
        raise InputError("An experiment needs all of its settings.")
    value = text if p.is_text else _typed_number(text)
    told = str(value) if p.is_text else repr(value)
    # the same checks that reading the file makes, on a table of this cell alone
    alone = CampaignFile(campaign.file.results, (), (p,))
    columns = (p.name, *(result.name for result in campaign.file.results))
    row = (told, *("" for _ in campaign.file.results))
    values = {name: [CellReading(word=MISSING)] for name in columns[1:]}
    values |= {} if isinstance(value, str) else {p.name: [CellReading(value)]}
    table = Table(campaign.table.path, campaign.table.layout, columns, (row,), (OWN_ROW,), b"", values=values)
    place = f"{table.place(0, p.name)}: "
    try:
        return experiments_in(table, alone, [])[0].values[p.name]
    except HeadstartError as error:
        raise InputError(str(error).removeprefix(place)) from error


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
    for column in table.columns:
        for row, text, cell in zip(table.numbers, table.cells(column), table.parsed(column), strict=True):
            found[row, column] = cell.value if cell.plain and cell.value is not None else text
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


def save_rules(folder: Path, seen: str, rules: Sequence[str], *, opening: Opening = open_campaign) -> Step | None:
    """Write the rules instead of those that are there, "" for one that is taken out; None if nothing is new.

    ``seen`` is the digest of the ``headstart.toml`` that whoever typed them looked at. Rules that cannot be used are an
    ``UnusableCellsError`` by their places.
    """
    path = folder / TOML
    with alone_in(folder):
        campaign = opening(folder)
        old = path.read_bytes()
        if digest(old) != seen:
            raise ChangedMeanwhileError(f"{path} was changed by somebody else meanwhile; nothing was written.")
        file, described = campaign.file, campaign.settings.descriptors
        space = Space.of({p.name: p.distribution() for p in file.parameters}, descriptors=described)
        wrong: dict[tuple[int, str], str] = {}
        for i, rule in enumerate(rules):
            try:
                if rule:
                    parse_rule(rule, space)
            except HeadstartError as error:
                wrong[i, "rule"] = str(error)
        if wrong:
            raise UnusableCellsError(wrong)
        kept = tuple(RuleLine(rule) for rule in rules if rule)
        if kept == file.rules:
            return None
        read_settings(
            folder, replace(file, rules=kept), campaign.past, place="The rules"
        )  # whether any setting keeps all
        return make_step(folder, f"rules were changed: {len(kept)} now", {TOML: (old, with_rules(old, path, rules))})
