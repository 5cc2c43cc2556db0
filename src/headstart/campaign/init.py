"""The beginning of a campaign: past files are looked at, and ``headstart.toml`` and ``current.csv`` are written."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from headstart.campaign.file import DEFAULT_MODEL, TOML, CampaignFile, ResultColumn
from headstart.campaign.measured import require_no_slips
from headstart.campaign.past import clean_tables, read_candidates, readable
from headstart.campaign.settings import read_settings
from headstart.campaign.toml.reading import campaign_file_in
from headstart.campaign.toml.writing import toml_text
from headstart.data.outcomes import Goal, Limit, Outcomes
from headstart.data.requirements import Requirement, required
from headstart.errors import InputError, Message, Setting, nearest, refuse
from headstart.models.family import model_named
from headstart.sources.column_guess import Guess, Proposal, find_result, outward, propose
from headstart.sources.columns import input_column
from headstart.sources.described import read_descriptors
from headstart.sources.files.cells import CellRules, in_unit, number
from headstart.sources.files.names import meant_by, plain, split_unit
from headstart.sources.files.safe import alone_in, write_whole
from headstart.sources.files.sheet_rows import new_workbook
from headstart.sources.files.tables import FileLayout, Table, is_lock_file, read_table, write_rows
from headstart.sources.files.workbooks import split_sheet, workbook_file
from headstart.sources.parameters import Kind, Parameter, parameter_of_text
from headstart.sources.roles import Counting, what_counts
from headstart.sources.same import SameColumn, same_columns

CURRENT, NO_BATCH = "current.csv", "none"


@dataclass(frozen=True)
class CampaignPlan:
    """What somebody says about a new campaign; names of results may lack unit, case and separators of the columns.

    ``errors`` are the columns of standard errors by result, ``categories`` columns of numbers that are only names.
    """

    goals: tuple[Goal, ...] = ()  # none: what counts is proposed
    limits: tuple[Limit | Requirement, ...] = ()  # of an objective its threshold or target
    errors: Mapping[str, str] = field(default_factory=dict)
    rules: tuple[str, ...] = ()
    candidates: Path | None = None
    descriptors: Mapping[str, Path] = field(default_factory=dict)
    rename: Mapping[str, str] = field(default_factory=dict)
    apart: tuple[str, ...] = ()  # columns that are not the same as any other
    ignore: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()  # as in T=20..120, or a column that is one whatever it looks like
    cells: Mapping[str, str | float] = field(default_factory=dict)
    current: str = CURRENT
    model: str = ""
    batch: str = ""  # a column; "": one is proposed, NO_BATCH: there is none
    baseline: tuple[str, ...] = ()  # what limits are relative to: FILE:ROW, or COLUMN=VALUE


@dataclass(frozen=True)
class ColumnsTaken:
    """Past files with one name for every column: those that are taken for the same, and what is proposed to count."""

    tables: tuple[Table, ...]
    goals: tuple[Goal, ...]
    rename: Mapping[str, str]
    same: tuple[SameColumn, ...] = ()
    counting: Counting | None = None  # None where somebody has said what counts
    conflicts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Looked:
    """Past files, and what they are taken for."""

    tables: tuple[Table, ...]
    file: CampaignFile
    proposal: Proposal
    remarks: tuple[str, ...]
    taken: ColumnsTaken
    kept_rows: int = 0  # of a current.csv that was there already


def start_campaign(past: Sequence[Path], folder: Path, wanted: CampaignPlan, *, force: bool = False) -> Looked:
    """Look at the past files and write the two files of a campaign into the folder.

    ``force`` writes over an older ``headstart.toml``. A ``current.csv`` that has rows is never written over.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no such folder. Create it first.")
    toml, current = folder / TOML, folder / wanted.current
    if split_sheet(current) is not None and current.suffix.lower() != ".xlsx":
        raise InputError(f"current = {wanted.current}: a new table is a .csv or an .xlsx file.")
    if toml.exists() and not force:
        raise InputError(Message(f"{toml} is there already. Edit it, or write it anew.", Setting("force")))
    for path in past:
        if path.resolve() == current.resolve():
            raise InputError(f"{path} is the file of the new campaign and cannot be a past one too. Rename it first.")
    looked = look_at(past, folder, wanted)
    model_named(looked.file.model, where="model")
    text, header, kept = first_files(folder, looked)
    with alone_in(folder):
        write_whole(toml, text)
        if header is not None:
            write_whole(current, header)
    return replace(looked, kept_rows=kept)


def first_files(folder: Path, looked: Looked) -> tuple[bytes, bytes | None, int]:
    """What ``headstart.toml`` and the file of the experiments shall hold; None, and how many, where that has rows."""
    text = toml_text(looked.file, looked.proposal)
    campaign_file_in(text, folder / TOML)  # whether it can be read again
    more = read_settings(folder, looked.file, (), place="rules").more_columns
    current = folder / looked.file.current
    file = workbook_file(current)
    rows = len(read_table(current).rows) if file.exists() and file.read_bytes().strip() else 0
    return text.encode(), None if rows else current_header(looked.file, looked.tables, more), rows


def look_at(past: Sequence[Path], folder: Path, wanted: CampaignPlan) -> Looked:
    """The campaign that would begin with these files in the folder. Nothing is written.

    All that is wrong with the files is told at once.
    """
    told, columns = told_parameters(wanted.parameters)
    files = _require_files(past, described=bool(told))
    remarks = [
        f"{path} is the lock file of a spreadsheet program and is left out." for path in past if path not in files
    ]
    rules = CellRules.of(wanted.cells)
    tables, problems = readable(files, rules)
    refuse(problems)
    taken = take_columns(tables, wanted)
    refuse(taken.conflicts)
    same = taken.rename
    Outcomes(taken.goals)  # whether they go together
    goals, limits = required(
        taken.goals, [_spelled_as(taken.goals, one) for one in wanted.limits], partial(_baseline, taken.tables, wanted)
    )
    Outcomes(goals, limits)
    told_errors = {name: same.get(error, error) for name, error in wanted.errors.items()}
    results, tables, spelled = find_results(taken.tables, [*goals, *limits], told_errors)
    remarks += [f"{old!r} is taken for {new!r}, which is a result." for old, new in spelled.items()]
    remarks += [
        f"{c.name!r} is a percentage: no result below 0 or above 100 will be taken. If one can be, delete low and high "
        f"in [{'objectives' if isinstance(c.outcome, Goal) else 'limits'}.{c.name}] of {TOML}."
        for c in results
        if c.outcome.high is not None and not any(c.name in table.columns for table in tables)
    ]
    errors = [column.error for column in results if column.error]
    names = [column.name for column in results]
    ignore = _require_names(tables, [same.get(name, name) for name in wanted.ignore], "ignore")
    ignored = next((name for name in (*names, *errors) if name in ignore), None)
    if ignored is not None:
        raise InputError(
            Message(f"ignore names {ignored!r}, which is a result. Leave one of the two out.", Setting("ignore"))
        )
    categories = _require_names(tables, [same.get(name, name) for name in wanted.categories], "category")
    forced = _require_names(tables, [same.get(name, name) for name in columns], "parameter")
    if twice := [name for name in (*forced, *told) if name in (*names, *errors, *ignore)]:
        raise InputError(f"{twice[0]!r} cannot be a parameter and a result, an error or ignored too.")
    batch = _batch(tables, wanted, same)
    if batch in (*names, *errors, *ignore, *categories, *forced, *told):
        both = f"batch names {batch!r}, which is a result, a parameter or ignored. Leave one of the two out."
        raise InputError(Message(both, Setting("batch")))
    proposal = Proposal((), {}, ())
    if tables:
        proposal = propose(
            tables,
            names,
            measured=errors,
            ignore=ignore,
            categories=[*categories, *(p.name for p in told.values() if p.is_text)],
            parameters=[*forced, *told],
            batch=batch,
            apart=wanted.apart,
        )
        if proposal.batch is not None:
            tables = [table.renamed(proposal.batch.also) for table in tables]
            spelled |= proposal.batch.also
    proposal = with_told(proposal, told)
    if wanted.candidates is not None:
        table = read_candidates(wanted.candidates, [guess.parameter for guess in proposal.guesses], rules)
        remarks += table.remarks
        proposal = replace(proposal, guesses=tuple(_with_candidates(guess, table) for guess in proposal.guesses))
    proposal = with_descriptors(proposal, wanted.descriptors, folder, rules)
    campaign = CampaignFile(
        results=results,
        past=tuple(_relative(path, folder) for path in files),
        parameters=tuple(guess.parameter for guess in proposal.guesses),
        rules=wanted.rules,
        candidates="" if wanted.candidates is None else _relative(wanted.candidates, folder),
        model=wanted.model or DEFAULT_MODEL,
        current=wanted.current,
        ignore=tuple(proposal.ignored),
        batch="" if proposal.batch is None else proposal.batch.name,
        rename={**same, **spelled},
        cells=wanted.cells,
    )
    tables, problems = clean_tables(tables, campaign)
    refuse(problems)
    require_no_slips(tables, campaign)
    remarks = [*_taken_for(taken), *remarks, *(r for table in tables for r in table.remarks), *proposal.remarks]
    return Looked(tuple(tables), campaign, proposal, tuple(remarks), taken)


def _batch(tables: Sequence[Table], wanted: CampaignPlan, same: Mapping[str, str]) -> str | None:
    """The column of batches as told; "" where one is to be proposed, None where there is none."""
    if not tables or (not wanted.batch and model_named(wanted.model or DEFAULT_MODEL, where="model").no_shifts):
        return None
    names = [column for table in tables for column in table.columns]
    if not wanted.batch or (wanted.batch == NO_BATCH and NO_BATCH not in names):
        return None if wanted.batch else ""
    return _require_names(tables, [same.get(wanted.batch, wanted.batch)], "batch")[0]


def take_columns(tables: Sequence[Table], wanted: CampaignPlan) -> ColumnsTaken:
    """One name for every column, and what counts: as somebody said, and as is proposed where nobody did."""
    old = _require_names(tables, wanted.rename, "rename")
    rename = dict(zip(old, wanted.rename.values(), strict=True))
    tables = [table.renamed(rename) for table in tables]
    every = list(dict.fromkeys(c for table in tables for c in table.columns))
    told = [goal.name for goal in (*wanted.goals, *wanted.limits)]
    apart = [*rename.values(), *meant_by([*wanted.apart, *wanted.ignore], every)]
    same, conflicts = same_columns(tables, apart=apart, prefer=list(meant_by(told, every, alike=plain)))
    taken = {other: one.name for one in same for other in one.others}
    tables = [table.renamed(taken) for table in tables]
    goals, counting = wanted.goals, None
    if not goals:
        counting = what_counts(tables, no=[taken.get(name, name) for name in (*wanted.ignore, *_told_names(wanted))])
        if counting is None:
            raise InputError(Message("Say which column is the result to maximise or minimise.", Setting("objective")))
        goals = (Goal(counting.name, maximize=counting.maximize is not False),)
    return ColumnsTaken(tuple(tables), goals, {**rename, **taken}, tuple(same), counting, tuple(conflicts))


def _spelled_as(goals: Sequence[Goal], one: Limit | Requirement) -> Limit | Requirement:
    """The statement under the name of the objective that it is about, if it is about one."""
    alike = [goal.name for goal in goals if plain(goal.name) == plain(one.name)]
    return replace(one, name=alike[0]) if len(alike) == 1 else one


def _baseline(tables: Sequence[Table], wanted: CampaignPlan, name: str) -> float | None:
    """The baseline's result of a column: as told, or of the row that was named."""
    for text in wanted.baseline:
        column, equals, value = (part.strip() for part in text.partition("="))
        place, colon, row = text.rpartition(":")
        if equals:
            told = number(value)
            if told is None:
                raise InputError(f"baseline: {text!r} gives {value!r}, which is no number. Write COLUMN=VALUE.")
            if plain(column) == plain(name):
                return told
            continue
        table = next((t for t in tables if colon and t.path.name == Path(place).name), None)
        if table is None or not row.strip().isdecimal() or int(row) not in table.numbers:
            files = ", ".join(str(t.path) for t in tables) or "none"
            raise InputError(
                f"baseline: {text!r} is no row of a past file. Write FILE:ROW with the number that a spreadsheet "
                f"program shows, or COLUMN=VALUE. The files are {files}."
            )
        alike = list(meant_by([name], table.columns, alike=plain))
        if len(alike) == 1:
            unit = split_unit(alike[0])[1]
            return in_unit(table.parsed(alike[0])[list(table.numbers).index(int(row))], unit, unit).value
    return None


def _told_names(wanted: CampaignPlan) -> list[str]:
    """What somebody says is no objective: parameters, categories, limits, errors and the batch."""
    names = [text.partition("=")[0].strip() for text in wanted.parameters]
    return [*names, *wanted.categories, *(limit.name for limit in wanted.limits), *wanted.errors.values(), wanted.batch]


def _taken_for(taken: ColumnsTaken) -> list[str]:
    """What was taken for the same, the doubtful first; each can be told otherwise."""
    ordered = sorted(taken.same, key=lambda one: not one.doubtful)
    return [
        Message(
            f"{'Look at it: ' if other in one.in_doubt else ''}{other!r} is taken for {one.name!r}: "
            f"{one.reason(other)}.",
            *((Setting("rename", f"{other}=NEW"),) if other in one.in_doubt else ()),
        )
        for one in ordered
        for other in one.others
    ]


def _require_files(past: Sequence[Path], *, described: bool) -> list[Path]:
    """The files without locks of spreadsheet programs, each once; there may be none if parameters are ``described``."""
    files = [path for path in past if not is_lock_file(path)]
    if not files and (past or not described):
        raise InputError(
            Message(
                "No past file was given. Name the files of earlier campaigns, or say what can be set.",
                Setting("parameter", "T=20..120"),
                Setting("parameter", "solvent=DMF|THF"),
            )
        )
    for i, path in enumerate(files):
        if path.resolve() in [other.resolve() for other in files[:i]]:
            raise InputError(f"{path} is named twice.")
    return files


def _require_names(tables: Sequence[Table], names: Sequence[str] | Mapping[str, str], option: str) -> list[str]:
    """The names as the files spell them; case and the composition of umlauts do not matter."""
    every = list(dict.fromkeys(column for table in tables for column in table.columns))
    found = {name: column for column, name in reversed(meant_by(names, every).items())}
    for name in names:
        if name not in found:
            told = f"{option} names {name!r}, but no file has such a column. {nearest(name, every)}"
            raise InputError(Message(told, Setting(option)))
    return [found[name] for name in names]


def _relative(path: Path, folder: Path) -> str:
    try:
        return Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()
    except ValueError:  # another drive
        return path.resolve().as_posix()


def current_header(campaign: CampaignFile, tables: Sequence[Table], more: Sequence[str]) -> bytes:
    """A header in the layout of the first past file, with a byte-order mark where the spreadsheet program needs one."""
    columns = [*more, *(p.name for p in campaign.parameters), *campaign.measured_columns]
    if campaign.batch and campaign.batch not in columns:
        first = any(table.order[:1] == (campaign.batch,) for table in tables)
        columns.insert(0 if first else len(columns) - len(campaign.measured_columns), campaign.batch)
    if split_sheet(Path(campaign.current)) is not None:
        return new_workbook(columns)
    texts = [table.layout for table in tables if not table.sheet] or [FileLayout()]
    marked = any(layout.bom or layout.encoding != "utf-8" for layout in texts)
    layout = replace(texts[0], encoding="utf-8", bom=b"\xef\xbb\xbf" if marked else b"")
    return layout.bom + write_rows(layout, [columns]).encode()


def find_results(
    tables: Sequence[Table], every: Sequence[Goal | Limit], errors: Mapping[str, str]
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
        if error and tables:
            (error,) = _require_names(renamed, [error], "error")
        found.append(ResultColumn(_bounded(replace(outcome, name=name), unit, renamed), unit, error))
    results = [outcome.name for outcome in every]
    unknown = [name for name in errors if name not in results]
    if unknown:
        told = f"error names {unknown[0]!r}, which is no result. {nearest(unknown[0], results)}"
        raise InputError(Message(told, Setting("error")))
    return tuple(found), renamed, spelled


def _bounded(outcome: Goal | Limit, unit: str, tables: Sequence[Table]) -> Goal | Limit:
    """With 0 and 100 as bounds where a result is a percentage and none was ever outside; nor is any where none is."""
    if unit != "%" or (isinstance(outcome, Limit) and not _between(outcome, 0, 100)):
        return outcome
    cells = [c for table in tables if outcome.name in table.columns for c in table.parsed(outcome.name)]
    values = [value for cell in cells if (value := in_unit(cell, unit, unit).value) is not None]
    unknown = not any(outcome.name in table.columns for table in tables)
    inside = bool(values) and min(values) >= 0 and max(values) <= 100
    return replace(outcome, low=0, high=100) if unknown or inside else outcome


def _between(limit: Limit, low: float, high: float) -> bool:
    """Whether the limit could be kept and broken by values between these."""
    return all(low <= end <= high for end in limit.ends) and limit.at_most != high and limit.at_least != low


def told_parameters(texts: Sequence[str]) -> tuple[dict[str, Parameter], tuple[str, ...]]:
    """Parameters that somebody describes, as in ``T=20..120``, and columns that are only said to be some."""
    told = [parameter_of_text(text) for text in texts if "=" in text]
    names = [p.name for p in told] + [text.strip() for text in texts if "=" not in text]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"parameter names {name!r} twice.")
    return {p.name: p for p in told}, tuple(text.strip() for text in texts if "=" not in text)


def with_told(proposal: Proposal, told: Mapping[str, Parameter]) -> Proposal:
    """The parameters as they are described; those that no file knows come last."""
    reason = {"kind": "as told"}
    guesses = [Guess(told[g.parameter.name], reason) if g.parameter.name in told else g for g in proposal.guesses]
    known = [g.parameter.name for g in guesses]
    guesses += [Guess(p, reason) for name, p in told.items() if name not in known]
    return replace(
        proposal,
        guesses=tuple(guesses),
        ignored={name: why for name, why in proposal.ignored.items() if name not in told},
    )


def _with_candidates(guess: Guess, table: Table) -> Guess:
    """A parameter with a range or choices that hold all candidates."""
    p = guess.parameter
    if p.name not in table.columns:
        return guess
    values = input_column(table, p.name, [True] * len(table.rows)).to_numpy()
    if p.kind is Kind.CATEGORY:
        return replace(guess, parameter=replace(p, choices=tuple(sorted({*p.choices, *values}))))
    if p.values:
        return replace(guess, parameter=replace(p, values=(*p.values, *map(float, values))))
    low, high = float(np.min(values)), float(np.max(values))
    on_step = p.step is None or all(p.on_step(value) for value in values)
    if p.low <= low and high <= p.high and on_step:
        return guess
    low, high = outward(min(low, p.low), max(high, p.high), log=p.log and low > 0)
    whole = p.kind is Kind.INT and bool(np.all(values == np.round(values)))
    kind = Kind.INT if whole else Kind.FLOAT
    reasons = {**guess.reasons, "low": f"{guess.reasons.get('low', 'the data')}; and the candidates"}
    return Guess(replace(p, low=low, high=high, kind=kind, log=p.log and low > 0, step=None), reasons, guess.run)


def with_descriptors(proposal: Proposal, files: Mapping[str, Path], folder: Path, rules: CellRules) -> Proposal:
    """The parameters whose categories are described by files, with every category that is."""
    guesses = {guess.parameter.name: guess for guess in proposal.guesses}
    known = [name for name, guess in guesses.items() if guess.parameter.kind is Kind.CATEGORY]
    for name, path in files.items():
        if name not in known:
            told = f"descriptors names {name!r}, which has no categories. {nearest(name, known)}"
            raise InputError(Message(told, Setting("descriptors")))
        p = guesses[name].parameter
        choices = {*p.choices, *map(str, read_descriptors(path, name, p.choices, rules).categories)}
        p = replace(p, choices=tuple(sorted(choices)), descriptors=_relative(path, folder))
        guesses[name] = replace(guesses[name], parameter=p)
    return replace(proposal, guesses=tuple(guesses.values()))
