"""``headstart.toml`` is read: every key is known and every value fits, or an error names the line and the remedy.

[objectives.yield]             one to three objectives,
direction = "maximize"
error = "yield_sd"             with the column of their standard errors, and the values that there can be at all
low = 0
high = 100

[limits.impurity]              what must stay within a limit
at_most = 0.5

[[rules]]                      what must hold for the settings (data.rules.text)
rule = "A + B + C = 1"

[parameters.temperature]       what may be set

[cells]                        what cells of the files mean, if not what is usual (sources.files.cells)
"n.d." = "failed"
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headstart.campaign.file import CampaignFile, ResultColumn, RuleLine
from headstart.data.outcomes import MOST_GOALS, Goal, Limit
from headstart.errors import InputError, Message, Setting
from headstart.sources.files.cells import wrong_meaning
from headstart.sources.files.names import nearest
from headstart.sources.parameters import Kind, Parameter

# What a value must be, as a message says it
TEXT, WHOLE, TEXTS, TABLE = "a text in quotation marks", "a whole number", "a list of texts", "a table"
NUMBER, SWITCH, VALUE, LIST = "a finite number", "true or false", "a number or a text", "a list"
TEXT_OR_TEXTS = "a text in quotation marks or a list of texts"


@dataclass(frozen=True, slots=True)
class TomlText:
    """The file as text, from which messages take the line that they name."""

    path: Path
    text: str

    def fail(self, message: str, key: str, table: str = "") -> InputError:
        """The error with the line that the key stands in."""
        line = self.line(key, table)
        return InputError(f"{self.path}{f', line {line}' if line else ''}: {message}")

    def line(self, key: str, table: str) -> int | None:
        """The line of a key in a table, or of the table itself."""
        inside = ""
        for i, line in enumerate(self.text.splitlines(), start=1):
            if header := re.match(r"\s*\[\s*(.+?)\s*\]\s*(#.*)?$", line):
                inside = header[1].replace('"', "").replace("'", "")
                if not key and inside == table:
                    return i
            elif key and inside == table and re.match(rf"""\s*["']?{re.escape(key)}["']?\s*=""", line):
                return i
        return self.line("", f"{table}.{key}" if table else key) if key else None

    def lines_of(self, array: str) -> list[int]:
        """The lines of the headers [[array]]."""
        header = re.compile(rf"\s*\[\[\s*{re.escape(array)}\s*\]\]")
        return [i for i, line in enumerate(self.text.splitlines(), start=1) if header.match(line)]

    def check(self, data: Mapping[str, Any], keys: Mapping[str, str], table: str) -> None:
        """Every key known, every value of its type, or an ``InputError``."""
        where = f" in [{table}]" if table else ""
        for key, value in data.items():
            if key not in keys:
                raise self.fail(f"unknown key {key!r}{where}. {nearest(key, keys)}", key, table)
            if not _fits(value, keys[key]):
                raise self.fail(f"{key}{where} must be {keys[key]}, but it is {value!r}.", key, table)


def _fits(value: Any, what: str) -> bool:
    texts = isinstance(value, list) and all(isinstance(v, str) for v in value)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    fits = {
        TEXT: isinstance(value, str),
        WHOLE: isinstance(value, int) and not isinstance(value, bool),
        NUMBER: number and math.isfinite(value),
        VALUE: number or isinstance(value, str),
        SWITCH: isinstance(value, bool),
        TABLE: isinstance(value, dict),
        TEXTS: texts,
        TEXT_OR_TEXTS: texts or isinstance(value, str),
        LIST: isinstance(value, list),
    }
    return fits[what]


_PARAMETER_KEYS = {
    "kind": TEXT, "low": NUMBER, "high": NUMBER, "log": SWITCH, "step": NUMBER, "choices": LIST, "value": VALUE,
    "unit": TEXT, "descriptors": TEXT_OR_TEXTS, "withdrawn": LIST, "before": VALUE,
}  # fmt: skip


def parameter_of(toml: TomlText, name: str, data: Any) -> Parameter:
    """The parameter that a table [parameters.NAME] describes."""
    table = f"parameters.{name}"
    if not isinstance(data, dict):
        raise toml.fail(f"{name} must be a table [{table}] with kind, low and high.", name, "parameters")
    toml.check(data, _PARAMETER_KEYS, table)

    def wrong(key: str, what: str) -> InputError:
        return toml.fail(f"{key} in [{table}] {what}", key, table)

    kinds = [k.value for k in Kind]
    if data.get("kind") not in kinds:
        what = f"must be one of {', '.join(kinds)}"
        raise wrong("kind", f"{what}, but it is {data['kind']!r}." if "kind" in data else f"is missing: it {what}.")
    kind = Kind(data["kind"])
    needed = {Kind.CATEGORY: ("choices",), Kind.FIXED: ("value",)}.get(kind, ("low", "high"))
    allowed = {"kind", "unit", "before", *needed, *(("log", "step") if "low" in needed else ())}
    allowed |= {"descriptors", "withdrawn"} if kind is Kind.CATEGORY else set()
    for key in needed:
        if key not in data:
            raise wrong(key, f"is missing: kind {kind.value!r} needs {' and '.join(needed)}.")
    for key in data:
        if key not in allowed:
            raise wrong(key, f"does not go with kind {kind.value!r}. Delete it, or change the kind.")
    unit, before = data.get("unit", ""), data.get("before")
    if (
        before is not None
        and kind is not Kind.CATEGORY
        and isinstance(before, str) != isinstance(data.get("value", 0.0), str)
    ):
        raise wrong("before", f"must be a number, but it is {before!r}.")
    if kind is Kind.CATEGORY:
        choices = tuple(_category(c) for c in data["choices"])
        if len(set(choices)) < 2 or len(set(choices)) < len(choices):
            raise wrong("choices", f"must be two or more different values, but they are {list(choices)}.")
        withdrawn = tuple(_category(c) for c in data.get("withdrawn", ()))
        both = next((c for c in withdrawn if c in choices), None)
        if both is not None:
            raise wrong("withdrawn", f"has {both!r}, which is one of the choices too. Delete one of the two.")
        if before is not None and _category(before) not in (*choices, *withdrawn):
            raise wrong("before", f"is {before!r}, which is none of the choices. Correct it, or add it to withdrawn.")
        told = data.get("descriptors", "")
        return Parameter(
            name,
            kind,
            choices=choices,
            unit=unit,
            descriptors=told if isinstance(told, str) else tuple(told),
            withdrawn=withdrawn,
            before=None if before is None else _category(before),
        )
    if kind is Kind.FIXED:
        return Parameter(name, kind, value=data["value"], unit=unit, before=before)
    low, high, step, log = data["low"], data["high"], data.get("step"), data.get("log", False)
    for key, value in (("low", low), ("high", high), ("step", step)):
        if value is not None and kind is Kind.INT and value != int(value):
            raise wrong(key, f'must be a whole number, but it is {value}. Or use kind = "float".')
    if low >= high:
        how = "Swap them" if low > high else 'Widen the range, or use kind = "fixed" with a value'
        raise wrong("low", f"is {low}, which is not below high = {high}. {how}.")
    if log and low <= 0:
        raise wrong("low", f"is {low}, but a log scale needs low above 0. Raise it, or delete log = true.")
    if step is not None and not 0 < step <= high - low:
        raise wrong("step", f"must be positive and no wider than the range, but it is {step}.")
    if step is not None and log:
        raise wrong("step", "does not go with log = true. Delete one of the two.")
    return Parameter(name, kind, low=low, high=high, log=log, step=step, unit=unit, before=before)


def _category(value: Any) -> str:
    """A category as it stands in a CSV file: text."""
    return value if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else str(value)


DIRECTIONS = {"maximize": True, "maximise": True, "minimize": False, "minimise": False}
_EVERY_KEYS = {"unit": TEXT, "error": TEXT, "low": NUMBER, "high": NUMBER}
_RESULT_KEYS = {
    "objectives": {"direction": TEXT, **_EVERY_KEYS},
    "limits": {"at_most": NUMBER, "at_least": NUMBER, **_EVERY_KEYS},
}
_RULE_KEYS = {"rule": TEXT, "why": TEXT}


def results_of(toml: TomlText, data: Mapping[str, Any]) -> tuple[ResultColumn, ...]:
    """The columns with results, objectives first."""
    goals, limits = (
        [_result(toml, part, name, table) for name, table in data.get(part, {}).items()] for part in _RESULT_KEYS
    )
    if not goals:
        raise InputError(f'{toml.path}: there is no objective. Add [objectives.yield] with direction = "maximize".')
    if len(goals) > MOST_GOALS:
        raise toml.fail(
            f"at most {MOST_GOALS} objectives can be weighed against each other, but there are {len(goals)}. Make "
            f"[limits.NAME] of those that only have to be good enough.",
            goals[MOST_GOALS].name,
            "objectives",
        )
    twice = next((limit.name for limit in limits if limit.name in data["objectives"]), None)
    if twice is not None:
        raise toml.fail(
            f"{twice!r} is an objective and has a limit too. Leave one of them out: an objective already goes "
            "as far as it can.",
            twice,
            "limits",
        )
    return (*goals, *limits)


def _result(toml: TomlText, part: str, name: str, data: Any) -> ResultColumn:
    """The column that a table [objectives.NAME] or [limits.NAME] describes."""
    table = f"{part}.{name}"
    if not isinstance(data, dict):
        raise toml.fail(f"{name} must be a table [{table}].", name, part)
    if not name.strip():
        raise toml.fail(f"a column in [{part}] needs a name.", name, part)
    toml.check(data, _RESULT_KEYS[part], table)
    low, high = data.get("low"), data.get("high")
    if low is not None and high is not None and low >= high:
        raise toml.fail(f"low in [{table}] is {low}, which is not below high = {high}.", "low", table)
    outcome: Goal | Limit
    if part == "objectives":
        direction = data.get("direction", "").lower()
        if direction not in DIRECTIONS:
            told = f", but it is {direction!r}." if direction else ": it is missing."
            raise toml.fail(f"direction in [{table}] must be 'maximize' or 'minimize'{told}", "direction", table)
        outcome = Goal(name, maximize=DIRECTIONS[direction], low=low, high=high)
    else:
        bounds = {key: data[key] for key in ("at_most", "at_least") if key in data}
        if len(bounds) != 1:
            raise toml.fail(f"[{table}] needs one of at_most and at_least, as in at_most = 0.5.", name, "limits")
        ((key, value),) = bounds.items()
        if (low is not None and value < low) or (high is not None and value > high):
            raise toml.fail(f"{key} in [{table}] lies outside low and high. Correct one of them.", key, table)
        outcome = Limit(name, **bounds, low=low, high=high)
    return ResultColumn(outcome, data.get("unit", ""), data.get("error", ""))


def rules_of(toml: TomlText, data: Any) -> tuple[RuleLine, ...]:
    """The rules about the settings, each with its line."""
    lines = toml.lines_of("rules")
    found = []
    for i, rule in enumerate(data):
        line = lines[i] if len(lines) == len(data) else None
        place = f"{toml.path}, line {line}" if line else f"{toml.path}, rule {i + 1}"
        if not isinstance(rule, dict) or "rule" not in rule:
            raise InputError(f'{place}: a rule is a table [[rules]] with rule = "A + B <= 100".')
        unknown = next((key for key in rule if key not in _RULE_KEYS), None)
        if unknown is not None:
            raise InputError(f"{place}: unknown key {unknown!r} in [[rules]]. {nearest(unknown, _RULE_KEYS)}")
        if not all(isinstance(value, str) for value in rule.values()):
            raise InputError(f"{place}: rule and why must be texts in quotation marks.")
        found.append(RuleLine(rule["rule"], line))
    return tuple(found)


_EQUAL_ROWS = {"copies": False, "repeats": True}
_KEYS = {
    "past": TEXTS, "current": TEXT, "candidates": TEXT, "model": TEXT, "jobs": WHOLE, "device": TEXT, "ignore": TEXTS,
    "max_rows": WHOLE, "equal_rows": TEXT, "rename": TABLE, "fill": TABLE, "objectives": TABLE, "limits": TABLE,
    "rules": LIST, "parameters": TABLE, "cells": TABLE,
}  # fmt: skip
_AS_WRITTEN = ("current", "candidates", "model", "jobs", "device", "max_rows", "rename", "fill", "cells")


def read_campaign_file(path: Path) -> CampaignFile:
    """The campaign that the file describes; an ``InputError`` names the line, the key and the remedy."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError as error:
        raise InputError(
            Message(f"{path}: there is no such file. Begin a campaign first.", Setting("begin"))
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
    equal_rows = data.get("equal_rows", "copies")
    if equal_rows not in _EQUAL_ROWS:
        raise toml.fail(f"equal_rows must be 'copies' or 'repeats', but it is {equal_rows!r}.", "equal_rows")
    found = CampaignFile(
        results=results,
        past=tuple(data.get("past", ())),
        parameters=parameters,
        rules=rules_of(toml, data.get("rules", ())),
        ignore=tuple(data.get("ignore", ())),
        equal_rows_are_repeats=_EQUAL_ROWS[equal_rows],
        **{key: data[key] for key in _AS_WRITTEN if key in data},
    )
    if found.max_rows < 1:
        raise toml.fail(f"max_rows must be at least 1, but it is {found.max_rows}.", "max_rows")
    if found.current in found.past:
        raise toml.fail("the current file cannot be a past one too. Take it out of past.", "past")
    twice = next((path for path in found.past if found.past.count(path) > 1), None)
    if twice is not None:
        raise toml.fail(f"the past file {twice!r} is there twice and would count twice. Delete one of the two.", "past")
    if found.current == found.candidates:
        raise toml.fail("the current file cannot be the list of candidates too. Name another file.", "candidates")
    for text, meaning in found.cells.items():
        if why := wrong_meaning(text, meaning):
            raise toml.fail(why, text, "cells")
    _require_one_meaning(toml, found)
    return found


def _require_one_meaning(toml: TomlText, file: CampaignFile) -> None:
    """A column is a parameter, a result, an error, or ignored: one of them."""
    names = [p.name for p in file.parameters]
    for column in file.results:
        part = "objectives" if isinstance(column.outcome, Goal) else "limits"
        what = "the objective" if isinstance(column.outcome, Goal) else "a result"
        if column.name in names:
            raise toml.fail(f"{column.name!r} is {what} and cannot be a parameter too.", column.name, part)
        if column.error in (*names, *(other.name for other in file.results)):
            raise toml.fail(
                f"{column.error!r} cannot be the error of {column.name!r} and a parameter or a result too.",
                "error",
                f"{part}.{column.name}",
            )
    both = [name for name in (*names, *file.measured_columns) if name in file.ignore]
    if both:
        what = "a parameter" if both[0] in names else "a result"
        raise toml.fail(f"{both[0]!r} is {what} and cannot be ignored too. Delete one of the two.", "ignore")
