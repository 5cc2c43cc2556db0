"""``headstart.toml`` is read: every key is known and every value fits, or an error names the line and the remedy.

objective = "yield"            one objective, as files have had it from the beginning
direction = "maximize"

[objectives.yield]             or any number of them up to three,
direction = "maximize"
error = "yield_sd"             with the column of their standard errors, and the values that there can be at all
low = 0
high = 100

[limits.impurity]              what must stay within a limit
at_most = 0.5

[[rules]]                      what must hold for the settings (data.rules.text)
rule = "A + B + C = 1"

[parameters.temperature]       what may be set

[cells]                        what cells of the files mean, if not what is usual (sources.files.readings)
"n.d." = "failed"
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from headstart.campaign.file import DEFAULT_MODEL, CampaignFile
from headstart.campaign.toml.keys import LIST, TABLE, TEXT, TEXTS, WHOLE, TomlText
from headstart.campaign.toml.parameters import parameter_of
from headstart.campaign.toml.results import results_of, rules_of
from headstart.data.outcomes import Goal
from headstart.errors import InputError
from headstart.sources.files.readings import wrong_meaning
from headstart.sources.parameters import MOST_USED, Kind, nearest

_EQUAL_ROWS = {"copies": False, "repeats": True}
_KEYS = {
    "objective": TEXT, "unit": TEXT, "direction": TEXT, "error": TEXT, "past": TEXTS, "current": TEXT,
    "candidates": TEXT, "model": TEXT, "jobs": WHOLE, "device": TEXT, "ignore": TEXTS, "max_rows": WHOLE,
    "equal_rows": TEXT, "rename": TABLE, "fill": TABLE, "objectives": TABLE, "limits": TABLE, "rules": LIST,
    "parameters": TABLE, "cells": TABLE,
}  # fmt: skip


def read_campaign_file(path: Path) -> CampaignFile:
    """The campaign that the file describes; an ``InputError`` names the line, the key and the remedy."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError as error:
        raise InputError(
            f"{path}: there is no such file. Make one with 'headstart init PAST.csv ... --objective COLUMN --maximize'."
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text. Save it as UTF-8.") from error
    return campaign_file_in(text, path)


def campaign_file_in(text: str, path: Path) -> CampaignFile:
    """The campaign that a text describes, which stands, or is going to stand, at that path."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(
            f"{path} is not valid TOML: {str(error).rstrip('.')}. Texts need quotation marks, numbers a decimal point."
        ) from error
    return _campaign(TomlText(path, text), data)


def _campaign(toml: TomlText, data: dict[str, Any]) -> CampaignFile:
    """The whole file, checked."""
    toml.check(data, _KEYS, "")
    results = results_of(toml, data)
    if "parameters" not in data:
        raise InputError(f"{toml.path}: there is no [parameters.NAME] table. Add at least one.")
    parameters = tuple(parameter_of(toml, name, table) for name, table in data["parameters"].items())
    names = [p.name for p in parameters]
    if not any(p.kind is not Kind.FIXED for p in parameters):
        raise InputError(f"{toml.path}: there is nothing to choose. Add a [parameters.NAME] table with a range.")
    for name in data.get("fill", {}):
        if name not in names:
            raise toml.fail(
                f"fill gives a value for {name!r}, which is no parameter. {nearest(name, names)}", name, "fill"
            )
    for old, new in data.get("rename", {}).items():
        if not isinstance(new, str):
            raise toml.fail(f'rename must be old = "new", but {old!r} gets {new!r}.', old, "rename")
    rows = data.get("max_rows", MOST_USED)
    if rows < 1:
        raise toml.fail(f"max_rows must be at least 1, but it is {rows}.", "max_rows")
    current = data.get("current", "current.csv")
    if current in data.get("past", ()):
        raise toml.fail("the current file cannot be a past one too. Take it out of past.", "past")
    twice = next((path for path in data.get("past", ()) if data["past"].count(path) > 1), None)
    if twice is not None:
        raise toml.fail(f"the past file {twice!r} is there twice and would count twice. Delete one of the two.", "past")
    if current == data.get("candidates"):
        raise toml.fail("the current file cannot be the list of candidates too. Name another file.", "candidates")
    equal_rows = data.get("equal_rows", "copies")
    if equal_rows not in _EQUAL_ROWS:
        raise toml.fail(f"equal_rows must be 'copies' or 'repeats', but it is {equal_rows!r}.", "equal_rows")
    found = CampaignFile(
        results=results,
        past=tuple(data.get("past", ())),
        parameters=parameters,
        rules=rules_of(toml, data.get("rules", ())),
        candidates=data.get("candidates", ""),
        current=current,
        model=data.get("model", DEFAULT_MODEL),
        jobs=data.get("jobs", 1),
        device=data.get("device", "cpu"),
        ignore=tuple(data.get("ignore", ())),
        max_rows=rows,
        equal_rows_are_repeats=_EQUAL_ROWS[equal_rows],
        rename=data.get("rename", {}),
        fill=data.get("fill", {}),
        cells=_cells(toml, data.get("cells", {})),
    )
    _require_one_meaning(toml, found)
    return found


def _cells(toml: TomlText, data: dict[str, Any]) -> dict[str, Any]:
    """What cells mean: missing, failed, or a number."""
    for text, meaning in data.items():
        if why := wrong_meaning(text, meaning):
            raise toml.fail(why, text, "cells")
    return data


def _require_one_meaning(toml: TomlText, file: CampaignFile) -> None:
    """A column is a parameter, a result, an error, or ignored: one of them."""
    names = [p.name for p in file.parameters]
    for column in file.results:
        part = "objectives" if isinstance(column.outcome, Goal) else "limits"
        what = "the objective" if isinstance(column.outcome, Goal) else "a result"
        key, table = (column.name, part) if toml.line("", f"{part}.{column.name}") else ("objective", "")
        if column.name in names:
            raise toml.fail(f"{column.name!r} is {what} and cannot be a parameter too.", key, table)
        if column.error in (*names, *(other.name for other in file.results)):
            raise toml.fail(
                f"{column.error!r} cannot be the error of {column.name!r} and a parameter or a result too.",
                "error",
                f"{table}.{column.name}" if table else "",
            )
    both = [name for name in (*names, *file.measured_columns) if name in file.ignore]
    if both:
        what = "a parameter" if both[0] in names else "a result"
        raise toml.fail(f"{both[0]!r} is {what} and cannot be ignored too. Delete one of the two.", "ignore")
