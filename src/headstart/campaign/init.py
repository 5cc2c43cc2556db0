"""The beginning of a campaign: past files are looked at, and ``headstart.toml`` and ``current.csv`` are written."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from headstart.campaign.file import TOML, CampaignFile, ResultColumn, RuleLine
from headstart.campaign.settings import read_settings
from headstart.campaign.toml.writing import toml_text
from headstart.data.outcomes import Goal, Limit, Outcomes
from headstart.errors import InputError
from headstart.sources.column_guess import Guess, Proposal, find_result, outward, propose
from headstart.sources.described import read_descriptors
from headstart.sources.files.frames import input_column, result_column
from headstart.sources.files.safe import alone_in, write_whole
from headstart.sources.files.tables import Table, is_lock_file, read_table, write_rows
from headstart.sources.files.unit_names import split_unit
from headstart.sources.parameters import Kind, nearest

__all__ = ["CURRENT", "CampaignPlan", "Looked", "Started", "current_header", "look_at", "start_campaign"]

CURRENT = "current.csv"


@dataclass(frozen=True)
class CampaignPlan:
    """What somebody says about a new campaign; names of results may lack unit, case and separators of the columns.

    ``errors`` are the columns of standard errors by result, ``categories`` columns of numbers that are only names.
    """

    goals: tuple[Goal, ...]
    limits: tuple[Limit, ...] = ()
    errors: Mapping[str, str] = field(default_factory=dict)
    rules: tuple[str, ...] = ()
    candidates: Path | None = None
    descriptors: Mapping[str, Path] = field(default_factory=dict)
    rename: Mapping[str, str] = field(default_factory=dict)
    ignore: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Looked:
    """Past files, and what they are taken for."""

    tables: tuple[Table, ...]
    file: CampaignFile
    proposal: Proposal
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Started:
    """What was found in the past files, and what was written."""

    file: CampaignFile
    proposal: Proposal
    toml: Path
    current: Path
    kept_rows: int  # of a current.csv that was there already; 0 if it was written
    remarks: tuple[str, ...]


def start_campaign(past: Sequence[Path], folder: Path, wanted: CampaignPlan, *, force: bool = False) -> Started:
    """Look at the past files and write the two files of a campaign into the folder.

    ``force`` writes over an older ``headstart.toml``. A ``current.csv`` that has rows is never written over.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no such folder. Create it first.")
    toml, current = folder / TOML, folder / CURRENT
    if toml.exists() and not force:
        raise InputError(f"{toml} is there already. Edit it, or write it anew with --force.")
    for path in past:
        if path.resolve() == current.resolve():
            raise InputError(f"{path} is the file of the new campaign and cannot be a past one too. Rename it first.")
    looked = look_at(past, folder, wanted)
    more = read_settings(folder, looked.file, (), place="--rule").more_columns
    kept = len(read_table(current).rows) if current.exists() and current.read_bytes().strip() else 0
    with alone_in(folder):
        write_whole(toml, toml_text(looked.file, looked.proposal).encode())
        if not kept:
            write_whole(current, current_header(looked.file, looked.tables, more))
    return Started(looked.file, looked.proposal, toml, current, kept, looked.remarks)


def look_at(past: Sequence[Path], folder: Path, wanted: CampaignPlan) -> Looked:
    """The campaign that would begin with these files in the folder. Nothing is written."""
    files = [path for path in past if not is_lock_file(path)]
    remarks = [
        f"{path} is the lock file of a spreadsheet program and is left out." for path in past if path not in files
    ]
    if not files:
        raise InputError("No past file was given. Name the CSV files of earlier campaigns.")
    for i, path in enumerate(files):
        if path.resolve() in [other.resolve() for other in files[:i]]:
            raise InputError(f"{path} is named twice.")
    tables = [read_table(path) for path in files]
    _require_names(tables, wanted.rename, "rename")
    tables = [table.renamed(wanted.rename) for table in tables]
    results, tables, spelled = _results(tables, wanted)
    _require_names(tables, wanted.ignore, "ignore")
    _require_names(tables, wanted.categories, "category")
    remarks += [f"{old!r} is taken for {new!r}, which is a result." for old, new in spelled.items()]
    errors = [column.error for column in results if column.error]
    names = [column.name for column in results]
    proposal = propose(tables, names, measured=errors, ignore=wanted.ignore, categories=wanted.categories)
    if wanted.candidates is not None:
        proposal = _with_candidates(proposal, read_table(wanted.candidates))
    proposal = _with_descriptors(proposal, wanted.descriptors, folder)
    campaign = CampaignFile(
        results=results,
        past=tuple(_relative(path, folder) for path in files),
        parameters=tuple(guess.parameter for guess in proposal.guesses),
        rules=tuple(RuleLine(text) for text in wanted.rules),
        candidates="" if wanted.candidates is None else _relative(wanted.candidates, folder),
        ignore=tuple(proposal.ignored),
        rename={**wanted.rename, **spelled},
    )
    return Looked(tuple(tables), campaign, proposal, (*remarks, *proposal.remarks))


def _results(
    tables: Sequence[Table], wanted: CampaignPlan
) -> tuple[tuple[ResultColumn, ...], list[Table], dict[str, str]]:
    """The columns of results, the tables with one name for each, and how they are spelled elsewhere."""
    every: list[Goal | Limit] = [*wanted.goals, *wanted.limits]
    Outcomes(wanted.goals, wanted.limits)  # whether they go together
    spelled: dict[str, str] = {}
    found, renamed = [], list(tables)
    for outcome in every:
        name, own = find_result(renamed, outcome.name, everywhere=len(every) == 1)
        renamed = [table.renamed(own) for table in renamed]
        spelled |= own
        unit = split_unit(name)[1]
        error = wanted.errors.get(outcome.name, "")
        if error and not any(error in table.columns for table in renamed):
            columns = list(dict.fromkeys(column for table in renamed for column in table.columns))
            raise InputError(f"--error names {error!r}, but no file has such a column. {nearest(error, columns)}")
        found.append(ResultColumn(_bounded(replace(outcome, name=name), unit, renamed), unit, error))
    unknown = [name for name in wanted.errors if name not in [outcome.name for outcome in every]]
    if unknown:
        raise InputError(f"--error names {unknown[0]!r}, which is no result. {nearest(unknown[0], spelled)}")
    return tuple(found), renamed, spelled


def _bounded(outcome: Goal | Limit, unit: str, tables: Sequence[Table]) -> Goal | Limit:
    """With 0 and 100 as bounds where a result is a percentage and none was ever outside."""
    if unit != "%" or (isinstance(outcome, Limit) and not 0 <= outcome.sign * outcome.bound < 100):
        return outcome
    values = [v for t in tables if outcome.name in t.columns for v in result_column(t, outcome.name) if v is not None]
    return replace(outcome, low=0, high=100) if values and min(values) >= 0 and max(values) <= 100 else outcome


def _with_candidates(proposal: Proposal, table: Table) -> Proposal:
    """The parameters with ranges and choices that hold all candidates."""
    guesses = []
    for guess in proposal.guesses:
        p = guess.parameter
        if p.name not in table.columns:
            guesses.append(guess)
            continue
        values = input_column(table, p.name, [True] * len(table.rows), text=p.kind is Kind.CATEGORY).to_numpy()
        if p.kind is Kind.CATEGORY:
            choices = tuple(sorted({*p.choices, *values}))
            guesses.append(Guess(replace(p, choices=choices), guess.reasons))
            continue
        low, high = float(np.min(values)), float(np.max(values))
        if p.low <= low and high <= p.high:
            guesses.append(guess)
            continue
        low, high = outward(min(low, p.low), max(high, p.high), log=p.log and low > 0)
        whole = p.kind is Kind.INT and bool(np.all(values == np.round(values)))
        kind = Kind.INT if whole else Kind.FLOAT
        reasons = {**guess.reasons, "low": f"{guess.reasons.get('low', 'the data')}; and the candidates"}
        guesses.append(Guess(replace(p, low=low, high=high, kind=kind, log=p.log and low > 0), reasons))
    return replace(proposal, guesses=tuple(guesses))


def _with_descriptors(proposal: Proposal, files: Mapping[str, Path], folder: Path) -> Proposal:
    """The parameters whose categories are described, with every category that is."""
    known = [guess.parameter.name for guess in proposal.guesses if guess.parameter.kind is Kind.CATEGORY]
    for name in files:
        if name not in known:
            raise InputError(f"--descriptors names {name!r}, which has no categories. {nearest(name, known)}")
    guesses = []
    for guess in proposal.guesses:
        p = guess.parameter
        if p.name in files:
            path = files[p.name]
            described = read_descriptors(path, p.name, p.choices).categories
            choices = tuple(sorted({*p.choices, *map(str, described)}))
            p = replace(p, choices=choices, descriptors=_relative(path, folder))
        guesses.append(Guess(p, guess.reasons))
    return replace(proposal, guesses=tuple(guesses))


def _require_names(tables: Sequence[Table], names: Sequence[str] | Mapping[str, str], option: str) -> None:
    every = list(dict.fromkeys(column for table in tables for column in table.columns))
    for name in names:
        if name not in every:
            raise InputError(f"--{option} names {name!r}, but no file has such a column. {nearest(name, every)}")


def _relative(path: Path, folder: Path) -> str:
    try:
        return Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()
    except ValueError:  # another drive
        return path.resolve().as_posix()


def current_header(campaign: CampaignFile, tables: Sequence[Table], more: Sequence[str]) -> bytes:
    """A header in the layout of the first past file, with a byte-order mark where the spreadsheet program needs one."""
    first = tables[0].layout
    marked = any(t.layout.bom or t.layout.encoding != "utf-8" for t in tables)
    layout = replace(first, encoding="utf-8", bom=b"\xef\xbb\xbf" if marked else b"")
    columns = [*more, *(p.name for p in campaign.parameters), *campaign.measured_columns]
    return layout.bom + write_rows(layout, [columns]).encode()
