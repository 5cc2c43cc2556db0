"""The beginning of a campaign: past files are looked at, and ``headstart.toml`` and ``current.csv`` are written."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from headstart.campaign.file import TOML, CampaignFile
from headstart.errors import InputError
from headstart.sources.column_guess import Guess, Proposal, find_objective, propose
from headstart.sources.files.safe import alone_in, write_whole
from headstart.sources.files.tables import FileLayout, Table, is_lock_file, read_table, write_rows
from headstart.sources.parameters import MOST_USED, Kind, nearest

__all__ = ["Looked", "Started", "look_at", "start_campaign"]

CURRENT = "current.csv"


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


def start_campaign(
    past: Sequence[Path],
    folder: Path,
    *,
    objective: str,
    maximize: bool,
    rename: Mapping[str, str] | None = None,
    ignore: Sequence[str] = (),
    categories: Sequence[str] = (),
    force: bool = False,
) -> Started:
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
    looked = look_at(
        past, folder, objective=objective, maximize=maximize, rename=rename, ignore=ignore, categories=categories
    )
    kept = len(read_table(current).rows) if current.exists() and current.read_bytes().strip() else 0
    with alone_in(folder):
        write_whole(toml, toml_text(looked.file, looked.proposal).encode())
        if not kept:
            write_whole(current, _header(looked.file, looked.tables))
    return Started(looked.file, looked.proposal, toml, current, kept, looked.remarks)


def look_at(
    past: Sequence[Path],
    folder: Path,
    *,
    objective: str,
    maximize: bool,
    rename: Mapping[str, str] | None = None,
    ignore: Sequence[str] = (),
    categories: Sequence[str] = (),
) -> Looked:
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
    _require_names(tables, rename or {}, "rename")
    tables = [table.renamed(rename or {}) for table in tables]
    column, spelled = find_objective(tables, objective)
    tables = [table.renamed(spelled) for table in tables]
    _require_names(tables, dict.fromkeys(ignore, ""), "ignore")
    _require_names(tables, dict.fromkeys(categories, ""), "category")
    remarks += [f"{old!r} is taken for {new!r}, the objective." for old, new in spelled.items()]
    proposal = propose(tables, column, ignore=ignore, categories=categories)
    campaign = CampaignFile(
        objective=column,
        maximize=maximize,
        past=tuple(_relative(path, folder) for path in files),
        parameters=tuple(guess.parameter for guess in proposal.guesses),
        unit=proposal.unit,
        ignore=tuple(proposal.ignored),
        rename={**(rename or {}), **spelled},
    )
    return Looked(tuple(tables), campaign, proposal, (*remarks, *proposal.remarks))


def _require_names(tables: Sequence[Table], names: Mapping[str, str], option: str) -> None:
    every = list(dict.fromkeys(column for table in tables for column in table.columns))
    for name in names:
        if name not in every:
            raise InputError(f"--{option} names {name!r}, but no file has such a column. {nearest(name, every)}")


def _relative(path: Path, folder: Path) -> str:
    try:
        return Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()
    except ValueError:  # another drive
        return path.resolve().as_posix()


def _header(campaign: CampaignFile, tables: Sequence[Table]) -> bytes:
    """A header in the layout of the first past file, with a byte-order mark where the spreadsheet program needs one."""
    first = tables[0].layout
    marked = any(t.layout.bom or t.layout.encoding != "utf-8" for t in tables)
    layout = replace(first, encoding="utf-8", bom=b"\xef\xbb\xbf" if marked else b"")
    return layout.bom + _line(layout, [*(p.name for p in campaign.parameters), campaign.objective]).encode()


def _line(layout: FileLayout, cells: Sequence[str]) -> str:
    return write_rows(layout, [cells])


# ── headstart.toml ────────────────────────────────────────────────────────────────────────────────────────────────


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _text(name)


def _number(value: float, kind: Kind) -> str:
    return str(int(value)) if kind is Kind.INT else repr(float(value))


def _commented(lines: Sequence[tuple[str, str]]) -> list[str]:
    """Settings with their comments in one column."""
    width = max((len(line) for line, comment in lines if comment and len(line) < 44), default=0)
    return [f"{line:<{width}}  # {comment}" if comment else line for line, comment in lines]


def toml_text(campaign: CampaignFile, proposal: Proposal) -> str:
    """The file as it is first written, with a comment at everything that was guessed."""
    past = [f"    {_text(path)}," for path in campaign.past]
    lines = [
        "# What this campaign optimises, and what it starts from. Everything below was guessed from the past files:",
        "# look through it and change what is wrong. 'headstart suggest' reads it anew every time.",
        "",
        *_commented(
            [
                (f"objective = {_text(campaign.objective)}", "the column with the result"),
                (f"unit = {_text(campaign.unit)}", "its unit, for tables and pictures"),
                (f"direction = {_text('maximize' if campaign.maximize else 'minimize')}", "or the reverse"),
                (f"current = {_text(campaign.current)}", "the experiments of this campaign; fill in results there"),
                (
                    f"model = {_text(campaign.model)}",
                    "it weighs the past campaigns by what they predict: see 'headstart check'",
                ),
                (f"max_rows = {MOST_USED}", "of a longer past file a random sample of so many rows is used"),
            ]
        ),
        "",
        '# Past campaigns, as paths from this folder. Their order matters to chains alone (model = "shgp", "bhgp",',
        '# "mhgp", "hgp"): there the one that is most like the new one stands last.',
        "past = [",
        *past,
        "]",
        "",
        "# Columns of the past files that are not parameters. To make one a parameter, delete it here and add a table.",
        "ignore = [",
        *_commented([(f"    {_text(name)},", why) for name, why in proposal.ignored.items()]),
        "]",
    ]
    if campaign.rename:
        lines += ["", "# Columns with another name in some past file: old = new.", "[rename]"]
        lines += [f"{_key(old)} = {_text(new)}" for old, new in campaign.rename.items()]
    lines += [
        "",
        "# Parameters. Suggestions stay between low and high; past results outside still count.",
        '#   kind = "float" | "int" | "category" | "fixed" (with value = ...)',
        "#   step = 0.5 keeps suggestions on a grid, log = true makes ratios count instead of differences.",
    ]
    for guess in proposal.guesses:
        lines += ["", *_parameter(guess)]
    return "\n".join(lines) + "\n"


def _parameter(guess: Guess) -> list[str]:
    p, why = guess.parameter, guess.reasons
    settings = [(f"kind = {_text(p.kind.value)}", why.get("kind", ""))]
    if p.kind is Kind.CATEGORY:
        settings.append((f"choices = [{', '.join(_text(c) for c in p.choices)}]", ""))
    else:
        settings.append((f"low = {_number(p.low, p.kind)}", why.get("low", "")))
        settings.append((f"high = {_number(p.high, p.kind)}", ""))
        settings += [("log = true", why.get("log", ""))] if p.log else []
        settings.append((f"unit = {_text(p.unit)}", why.get("unit", "")))
    return [f"[parameters.{_key(p.name)}]", *_commented(settings)]
