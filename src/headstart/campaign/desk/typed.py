"""What somebody typed into a cell: a result, a setting, or nothing that can be used, with the reason in words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from headstart.campaign.campaign import Campaign
from headstart.campaign.experiments import experiments_in
from headstart.campaign.file import TOML, CampaignFile
from headstart.errors import HeadstartError, InputError
from headstart.sources.files.cells import is_failure, number
from headstart.sources.files.tables import Table
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
    layout = replace(campaign.table.layout, mark=".")
    table = Table(campaign.table.path, layout, columns, (row,), (OWN_ROW,), b"", order=columns)
    place = f"{table.place(0, p.name)}: "
    try:
        return experiments_in(table, alone, [])[0].values[p.name]
    except HeadstartError as error:
        raise InputError(str(error).removeprefix(place)) from error
