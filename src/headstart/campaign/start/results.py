"""Which columns of the past files are results, and which are the same under other names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from headstart.campaign.file import ResultColumn
from headstart.data.outcomes import Goal, Limit
from headstart.errors import InputError, refuse
from headstart.sources.column_guess import find_result
from headstart.sources.columns.cleaning import column_unit
from headstart.sources.files.readings import CellRules, read_cell
from headstart.sources.files.tables import Table
from headstart.sources.files.unit_names import plain, split_unit
from headstart.sources.files.units import converts
from headstart.sources.parameters import nearest


def find_results(
    tables: Sequence[Table], every: Sequence[Goal | Limit], errors: Mapping[str, str], rules: CellRules
) -> tuple[tuple[ResultColumn, ...], list[Table], dict[str, str]]:
    """The columns of results, the tables with one name for each, and how they are spelled elsewhere."""
    spelled: dict[str, str] = {}
    found, renamed = [], list(tables)
    for outcome in every:
        name, own = find_result(renamed, outcome.name, everywhere=len(every) == 1) if tables else (outcome.name, {})
        renamed = [table.renamed(own) for table in renamed]
        spelled |= own
        unit = split_unit(name)[1]
        error = errors.get(outcome.name, "")
        if error and tables and not any(error in table.columns for table in renamed):
            columns = list(dict.fromkeys(column for table in renamed for column in table.columns))
            raise InputError(f"--error names {error!r}, but no file has such a column. {nearest(error, columns)}")
        found.append(ResultColumn(_bounded(replace(outcome, name=name), unit, renamed, rules), unit, error))
    unknown = [name for name in errors if name not in [outcome.name for outcome in every]]
    if unknown:
        raise InputError(f"--error names {unknown[0]!r}, which is no result. {nearest(unknown[0], spelled)}")
    return tuple(found), renamed, spelled


def _bounded(outcome: Goal | Limit, unit: str, tables: Sequence[Table], rules: CellRules) -> Goal | Limit:
    """With 0 and 100 as bounds where a result is a percentage and none was ever outside; nor is any where none is."""
    if unit != "%" or (isinstance(outcome, Limit) and not 0 <= outcome.sign * outcome.bound < 100):
        return outcome
    readings = [
        read_cell(cell, table.layout.mark, rules, unit=unit)
        for table in tables
        if outcome.name in table.columns
        for cell in table.cells(outcome.name)
    ]
    values = [reading.value for reading in readings if reading.value is not None]
    unknown = not any(outcome.name in table.columns for table in tables)
    inside = bool(values) and min(values) >= 0 and max(values) <= 100
    return replace(outcome, low=0, high=100) if unknown or inside else outcome


def same_columns(tables: Sequence[Table], apart: Sequence[str]) -> tuple[list[Table], dict[str, str], list[str]]:
    """The tables with one name for columns that are called alike in files of their own, the new names, and remarks.

    Alike are names that agree in all but case, separators and unit, if units are equal or can be converted. Units that
    cannot be are refused: nobody renames grams into percent. A unit that one of the names lacks is left to the user.
    """
    columns = [c for c in dict.fromkeys(c for t in tables for c in t.columns) if c not in apart and plain(c)]
    spelled: dict[str, str] = {}
    remarks, problems = [], []
    for i, one in enumerate(columns):
        for other in columns[i + 1 :]:
            together = any(one in t.columns and other in t.columns for t in tables)
            if plain(one) != plain(other) or together or other in spelled or one in spelled:
                continue
            files = [next(t for t in tables if c in t.columns) for c in (one, other)]
            units = [column_unit(t, c) for t, c in zip(files, (one, other), strict=True)]
            if bool(units[0]) != bool(units[1]):
                continue
            place = f"{files[1].path}: {other!r}"
            if not converts(units[1], units[0]):
                problems.append(
                    f"{place} and {one!r} in {files[0].path} are called alike, but {units[1]} cannot be converted to "
                    f"{units[0]}. Give one of them another name with --rename, or leave one out with --ignore."
                )
                continue
            spelled[other] = one
            how = "case, spaces and separators do not matter" if units[0] == units[1] else "its values are converted"
            remarks.append(f"{place} is taken for {one!r} in {files[0].path}: {how}.")
    refuse(problems)
    return [table.renamed(spelled) for table in tables], spelled, remarks
