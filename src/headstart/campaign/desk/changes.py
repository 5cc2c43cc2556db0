"""What people change in a folder: results, settings, failures, rows of their own, suggestions, rules and ranges."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from headstart.campaign.campaign import Campaign, lost_by_writing, open_campaign, require_closed, with_rows
from headstart.campaign.desk.history import Step, digest, make_step
from headstart.campaign.experiments import State, as_setting, unusual
from headstart.campaign.file import TOML, CampaignFile
from headstart.campaign.measured import SlippedResultsError, impossible
from headstart.campaign.settings import read_settings
from headstart.campaign.toml.writing import with_ranges, with_rules, with_told_cells, without_batch
from headstart.data.rules.text import parse_rule
from headstart.data.space import Space
from headstart.errors import (
    ChangedMeanwhileError,
    HeadstartError,
    InputError,
    UnlistedSettingsError,
    UnusableCellsError,
)
from headstart.sources.files.cells import is_failure, number
from headstart.sources.files.safe import alone_in
from headstart.sources.files.tables import edited
from headstart.sources.parameters import Kind, Parameter

# A cell by its row's number and its column
CellPlace = tuple[int, str]
OWN_ROW = 0  # the number of a row that is not in the file yet


def _typed(campaign: Campaign, typed: Mapping[CellPlace, str], right: Collection[CellPlace]) -> dict[CellPlace, Any]:
    """Settings and results as typed; all cells that cannot be used are one ``UnusableCellsError``.

    Settings that are none of a list of values are asked about, unless somebody says that they are ``right``.
    """
    cells: dict[CellPlace, Any] = {}
    wrong: dict[CellPlace, str] = {}
    for (row, column), text in typed.items():
        try:
            if row != OWN_ROW and row not in campaign.table.numbers:
                raise InputError(f"{campaign.table.path}: there is no experiment in row {row}.")
            cells[row, column] = _typed_cell(campaign, column, text.strip())
        except HeadstartError as error:
            wrong[row, column] = str(error)
    if wrong:
        raise UnusableCellsError(wrong)
    listed = {p.name: p for p in campaign.file.parameters if p.values}
    own = {place: value for place, value in cells.items() if place[1] in listed and place not in right}
    asked = {place: f"{value:g} {why}." for place, value in own.items() if (why := unusual(listed[place[1]], value))}
    if asked:
        near = {place: min(listed[place[1]].values, key=lambda v: abs(v - own[place])) for place in asked}
        raise UnlistedSettingsError(asked, near)
    return cells


def _typed_cell(campaign: Campaign, column: str, text: str) -> Any:
    """A setting; a batch; or a result: a number with either decimal mark, nothing, or that it failed."""
    p = next((p for p in campaign.file.parameters if p.name == column), None)
    if p is not None:
        if p.kind is Kind.FIXED or p.name not in campaign.table.columns:
            raise InputError(f"{p.name} is fixed at {p.value}. Change that in {TOML}, or the cell in its file.")
        if not text:
            raise InputError("An experiment needs all of its settings.")
        return as_setting(p, text if p.is_text else _typed_number(text, ""))
    if column == campaign.file.batch and column in campaign.table.columns:
        return text
    if column not in campaign.file.measured_columns:
        raise InputError(f"{column!r} is no column of results.")
    if not text or is_failure(text):
        return text
    value = _typed_number(text, "; leave it empty while it is awaited")
    result = next((r for r in campaign.file.results if r.name == column), None)
    error = f"A standard error must be above 0, but it is {value:g}." if value <= 0 else ""
    if why := error if result is None else impossible(result, value):
        raise InputError(why)
    return value


def _typed_number(text: str, more: str) -> float:
    """A number that somebody typed; either decimal mark, where it can only be one. ``more`` is to do otherwise."""
    value = number(text, ".")
    if value is not None:
        return value
    if number(text, ",") is not None:
        raise InputError(
            f"{text!r} can be read as {text.replace(',', '')} or as {text.replace(',', '.')}. Write the one that is "
            "meant, with a point or without."
        )
    raise InputError(f"{text!r} is not a number. Write the number alone{more}.")


FAILED = "failed"
# How a folder is opened, as ``open_campaign`` does: whoever has read its past files before need not read them again
Opening = Callable[..., Campaign]


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
        settings = [*(p.name for p in file.parameters), *filter(None, [file.batch])]
        wanted = {(row, c): text for (row, c), text in typed.items() if c in settings or row not in failed}
        cells = _typed(campaign, wanted, right)
        cells |= {(row, column.name): FAILED for row in failed for column in file.results}
        # numbers as numbers: a result that is typed again is no change
        now = {
            (row, column): cell.value if cell.plain and cell.value is not None else text
            for column in table.columns
            for row, text, cell in zip(table.numbers, table.cells(column), table.parsed(column), strict=True)
        }
        cells = {place: value for place, value in cells.items() if now.get(place) != value}
        if not cells:
            return None
        told = {
            "results were written into": {row for row, column in cells if column not in settings and row not in failed},
            "settings were corrected in": {row for row, column in cells if column in settings},
            "marked as failed:": set(failed),
        }
        words = [f"{what} {_rows(sorted(rows))}" for what, rows in told.items() if rows]
        return "; ".join(words), edited(table, cells, campaign.mark)

    return _changed(folder, seen, change, opening, right)


def add_row(
    folder: Path, seen: str, row: Mapping[str, str], *, right: Collection[str] = (), opening: Opening = open_campaign
) -> Step | None:
    """Add an experiment of one's own, as it was typed; its results may be there already, or come later.

    It is of the present batch unless the row says another one.

    ``right`` are columns whose cell somebody says is right: a result far outside anything seen, a value of no list.
    """

    def change(campaign: Campaign) -> tuple[str, bytes]:
        file = campaign.file
        names = [*(p.name for p in file.parameters if p.kind is not Kind.FIXED), *file.measured_columns]
        told = [(OWN_ROW, column) for column in right]
        found = _typed(campaign, {(OWN_ROW, name): row.get(name, "") for name in names}, told)
        values = {p.name: p.value for p in file.parameters if p.kind is Kind.FIXED}
        values |= {name: value for (_, name), value in found.items()}
        values |= {file.batch: told_batch} if (told_batch := row.get(file.batch, "").strip()) else {}
        return "an own experiment was added", edited(
            campaign.table, {}, campaign.mark, more=[campaign.with_batch(values)]
        )

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
    """Append rows that were suggested for the file with this digest; the numbers that they get.

    There are none where a workbook is only read, and the rows are in a file beside it.
    """
    with alone_in(folder):
        campaign = _opened(folder, seen, opening)
        path, before, after = with_rows(campaign, rows)
        added = opening(folder, content=after).table.numbers[-len(rows) :] if path == campaign.table.file else ()
        told = "1 suggestion was" if len(rows) == 1 else f"{len(rows)} suggestions were"
        make_step(folder, f"{told} added", {path.relative_to(folder).as_posix(): (before, after)})
        return added


def say_right(folder: Path, told: Mapping[str, float]) -> Step:
    """Note in ``headstart.toml`` that cells with these texts are the numbers that they say, far out as they are."""
    with alone_in(folder):
        old, new = _toml_with(folder, told)
        return make_step(folder, f"{' and '.join(told)} was said to be right", {TOML: (old, new)})


def _opened(folder: Path, seen: str, opening: Opening) -> Campaign:
    """The campaign, if its table is still the one with this digest and no program has it open."""
    campaign = opening(folder)
    if digest(campaign.table.raw) != seen:
        raise ChangedMeanwhileError(
            f"{campaign.table.path} was changed by somebody else meanwhile; nothing was written. Look at what is "
            "new, and save again."
        )
    require_closed(campaign)
    return campaign


def _changed(
    folder: Path,
    seen: str,
    change: Callable[[Campaign], tuple[str, bytes] | None],
    opening: Opening,
    right: Collection[CellPlace] = (),
) -> Step | None:
    with alone_in(folder):
        campaign = _opened(folder, seen, opening)
        if lost := lost_by_writing(campaign.table, campaign.file):
            raise InputError(
                f"{campaign.table.path} is only read, for writing into it would lose {lost}. Type it into the table in "
                "the spreadsheet program."
            )
        found = change(campaign)
        if found is None:
            return None
        what, content = found
        files: dict[str, tuple[bytes | None, bytes | None]] = {}
        if told := _said_right(folder, campaign, content, opening, right):
            files[TOML] = _toml_with(folder, told)
        path = campaign.table.file.relative_to(folder).as_posix()
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


def _rows(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:6])) + (" …" if len(numbers) > 6 else "")
    return f"row{'s' if len(numbers) > 1 else ''} {shown}"


def save_rules(folder: Path, seen: str, rules: Sequence[str], *, opening: Opening = open_campaign) -> Step | None:
    """Write the rules instead of those that are there, "" for one that is taken out; None if nothing is new.

    ``seen`` is the digest of the ``headstart.toml`` that whoever typed them looked at. Rules that cannot be used are an
    ``UnusableCellsError`` by their places.
    """

    def change(campaign: Campaign, old: bytes) -> tuple[str, CampaignFile, bytes]:
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
        kept = tuple(filter(None, rules))
        words = f"rules were changed: {len(kept)} now"
        return words, replace(file, rules=kept, rule_lines=()), with_rules(old, folder / TOML, rules)

    return _said_otherwise(folder, seen, change, opening)


def save_ranges(
    folder: Path, seen: str, parameters: Sequence[Parameter], *, opening: Opening = open_campaign
) -> Step | None:
    """Write other ranges, steps and choices of the parameters; None if nothing is new.

    A choice that is taken out is withdrawn: rows that were run with it stay as evidence.
    """

    def change(campaign: Campaign, old: bytes) -> tuple[str, CampaignFile, bytes]:
        file = campaign.file
        now = {p.name: p for p in file.parameters}
        run = {p.name: {e.values[p.name] for e in campaign.experiments} for p in file.parameters}
        new = tuple(_with_withdrawn(now[p.name], p, run[p.name]) for p in parameters)
        words = f"ranges were changed: {', '.join(p.label for p in new if p != now[p.name])}"
        return words, replace(file, parameters=new), with_ranges(old, folder / TOML, new)

    return _said_otherwise(folder, seen, change, opening)


def drop_batch(folder: Path, seen: str, *, opening: Opening = open_campaign) -> Step | None:
    """Say that results are not shifted: the column of batches is one that is ignored."""

    def change(campaign: Campaign, old: bytes) -> tuple[str, CampaignFile, bytes]:
        what, file = f"{campaign.file.batch} is no batch any more", replace(campaign.file, batch="", drift=None)
        return what, file, without_batch(old, folder / TOML)

    return _said_otherwise(folder, seen, change, opening)


def _with_withdrawn(old: Parameter, new: Parameter, run: Collection[Any]) -> Parameter:
    """The parameter with the choices withdrawn that rows were run with and that it has no more."""
    known = {choice.casefold(): choice for choice in (*old.choices, *old.withdrawn)}
    choices = tuple(dict.fromkeys(known.get(choice.casefold(), choice) for choice in new.choices))
    gone = (*old.withdrawn, *(choice for choice in old.choices if choice in run))
    return replace(new, choices=choices, withdrawn=tuple(c for c in dict.fromkeys(gone) if c not in choices))


def _said_otherwise(
    folder: Path, seen: str, change: Callable[[Campaign, bytes], tuple[str, CampaignFile, bytes]], opening: Opening
) -> Step | None:
    """Change ``headstart.toml`` where some setting keeps all that it says then; None if nothing is new."""
    path = folder / TOML
    with alone_in(folder):
        campaign = opening(folder)
        old = path.read_bytes()
        if digest(old) != seen:
            raise ChangedMeanwhileError(f"{path} was changed by somebody else meanwhile; nothing was written.")
        what, file, new = change(campaign, old)
        if new == old:
            return None
        read_settings(folder, file, campaign.past, place="What was typed")
        return make_step(folder, what, {TOML: (old, new)})
