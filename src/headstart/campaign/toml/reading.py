"""``headstart.toml`` is read: every key is known and every value fits, or an error names the line and the remedy.

What it holds is written, with comments, by ``campaign.toml.writing``, and told in docs/folder.md and docs/files.md.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from headstart.campaign.file import CampaignFile, ResultColumn
from headstart.data.outcomes import MOST_GOALS, Goal, Limit
from headstart.data.ranges import even_in_ratio
from headstart.data.requirements import parse_requirement, required
from headstart.errors import InputError, Message, Setting, nearest
from headstart.sources.files.cells import wrong_meaning
from headstart.sources.parameters import Kind, Parameter

# What a value must be, as a message says it
TEXT, WHOLE, TEXTS, TABLE = "a text in quotation marks", "a whole number", "a list of texts", "a table"
NUMBER, SWITCH, VALUE, LIST = "a finite number", "true or false", "a number or a text", "a list"
NUMBERS = "a list of finite numbers"
TEXT_OR_TEXTS, TABLE_OR_TEXTS = (
    "a text in quotation marks or a list of texts",
    "tables [limits.NAME] or a list of texts",
)


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

    def is_number(one: Any) -> bool:
        return isinstance(one, int | float) and not isinstance(one, bool) and math.isfinite(one)

    fits = {
        TEXT: isinstance(value, str),
        WHOLE: isinstance(value, int) and not isinstance(value, bool),
        NUMBER: is_number(value),
        NUMBERS: isinstance(value, list) and all(map(is_number, value)),
        VALUE: is_number(value) or isinstance(value, str),
        SWITCH: isinstance(value, bool),
        TABLE: isinstance(value, dict),
        TEXTS: texts,
        TEXT_OR_TEXTS: texts or isinstance(value, str),
        TABLE_OR_TEXTS: texts or isinstance(value, dict),
        LIST: isinstance(value, list),
    }
    return fits[what]


_PARAMETER_KEYS = {
    "kind": TEXT, "low": NUMBER, "high": NUMBER, "log": SWITCH, "step": NUMBER, "values": NUMBERS, "choices": LIST,
    "value": VALUE, "unit": TEXT, "descriptors": TEXT_OR_TEXTS, "withdrawn": LIST, "before": VALUE,
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
    range_ = ("values",) if "values" in data else ("low", "high")
    needed = {Kind.CATEGORY: ("choices",), Kind.FIXED: ("value",)}.get(kind, range_)
    more = {("values",): ("log",), ("low", "high"): ("log", "step")}.get(needed, ())
    allowed = {"kind", "unit", "before", *needed, *more}
    allowed |= {"descriptors", "withdrawn"} if kind is Kind.CATEGORY else set()
    for key in needed:
        if key not in data:
            raise wrong(key, f"is missing: kind {kind.value!r} needs {' and '.join(needed)}.")
    for key in data:
        if key not in allowed and range_ == needed and key in ("low", "high", "step"):
            raise wrong(key, "does not go with values, which are all that is suggested. Delete one of the two.")
        if key not in allowed:
            raise wrong(key, f"does not go with kind {kind.value!r}. Delete it, or change the kind.")
    given: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in data.items() if key != "kind"
    }
    if kind is Kind.CATEGORY:
        given |= {key: tuple(map(_category, given[key])) for key in ("choices", "withdrawn") if key in given}
        given |= {"before": _category(given["before"])} if "before" in given else {}
    if "values" in needed:
        if not data["values"]:
            raise wrong("values", "must be two or more different numbers, but there are none.")
        given = {"log": even_in_ratio(sorted(set(data["values"]))), **given}
    p = Parameter(name, kind, **given)
    if kind is Kind.CATEGORY:
        if len(set(p.choices)) < max(2, len(p.choices)):
            raise wrong("choices", f"must be two or more different values, but they are {list(p.choices)}.")
        if both := [choice for choice in p.withdrawn if choice in p.choices]:
            raise wrong("withdrawn", f"has {both[0]!r}, which is one of the choices too. Delete one of the two.")
        if p.before is not None and p.before not in (*p.choices, *p.withdrawn):
            raise wrong("before", f"is {p.before!r}, which is none of the choices. Correct it, or add it to withdrawn.")
    elif p.before is not None and isinstance(p.before, str) != p.is_text:
        raise wrong("before", f"must be a {'text' if p.is_text else 'number'}, but it is {p.before!r}.")
    if p.wrong:
        key, why = p.wrong
        raise toml.fail(f"{key} in [{table}]: {why}", key, table)
    return p


def _category(value: Any) -> str:
    """A category as it stands in a CSV file: text."""
    return value if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else str(value)


DIRECTIONS = {"maximize": True, "maximise": True, "minimize": False, "minimise": False}
_EVERY_KEYS = {"unit": TEXT, "error": TEXT, "low": NUMBER, "high": NUMBER}
_RESULT_KEYS = {
    "objectives": {"direction": TEXT, "threshold": NUMBER, "target": NUMBER, **_EVERY_KEYS},
    "limits": {"at_most": NUMBER, "at_least": NUMBER, **_EVERY_KEYS},
}
_RULE_KEYS = ("rule", "why")


def results_of(toml: TomlText, data: Mapping[str, Any]) -> tuple[ResultColumn, ...]:
    """The columns with results, objectives first."""
    written = data.get("limits", {})
    tables = {"objectives": data.get("objectives", {}), "limits": written if isinstance(written, dict) else {}}
    goals, limits = ([_result(toml, part, name, table) for name, table in own.items()] for part, own in tables.items())
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
            f"{twice!r} is an objective and has a limit too. The worst value of an objective that is still of interest "
            f"is its threshold: write threshold = … in [objectives.{twice}] instead.",
            twice,
            "limits",
        )
    baseline = data.get("baseline", {})
    wrong = next((name for name, value in baseline.items() if not _fits(value, NUMBER)), None)
    if wrong is not None:
        raise toml.fail(f"{wrong} in [baseline] must be {NUMBER}, but it is {baseline[wrong]!r}.", wrong, "baseline")
    try:
        told = [parse_requirement(text, "limits") for text in written] if isinstance(written, list) else []
        every = [column.outcome for column in goals if isinstance(column.outcome, Goal)]
        aimed, more = required(every, told, baseline.get)
    except InputError as error:
        raise toml.fail(str(error), "limits") from error
    with_aims = (replace(column, outcome=goal) for column, goal in zip(goals, aimed, strict=True))
    return (*with_aims, *limits, *map(ResultColumn, more))


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
    make: Callable[[], Goal | Limit]
    if part == "objectives":
        direction, aims = data.get("direction", "").lower(), {key: data.get(key) for key in ("threshold", "target")}
        if "target" in data and direction:
            raise toml.fail(f"[{table}] has a target and a direction. Delete one of the two.", "direction", table)
        if "target" not in data and direction not in DIRECTIONS:
            told = f", but it is {direction!r}." if direction else ": it is missing."
            raise toml.fail(f"direction in [{table}] must be 'maximize' or 'minimize'{told}", "direction", table)
        make = partial(Goal, name, DIRECTIONS.get(direction, False), low, high, **aims)
    else:
        bounds = {key: data[key] for key in ("at_most", "at_least") if key in data}
        if not bounds:
            raise toml.fail(f"[{table}] needs at_most, at_least or both, as in at_most = 0.5.", name, "limits")
        for key, value in bounds.items():
            if (low is not None and value < low) or (high is not None and value > high):
                raise toml.fail(f"{key} in [{table}] lies outside low and high. Correct one of them.", key, table)
        make = partial(Limit, name, **bounds, low=low, high=high)
    try:
        outcome: Goal | Limit = make()
    except InputError as error:
        raise toml.fail(str(error), "", table) from error
    return ResultColumn(outcome, data.get("unit", ""), data.get("error", ""))


def rules_of(toml: TomlText, data: list[Any]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The rules about the settings, and their lines; no lines where the file writes rules in another way."""
    lines = toml.lines_of("rules")
    lines = lines if len(lines) == len(data) else []
    for i, rule in enumerate(data):
        place = f"{toml.path}, {f'line {lines[i]}' if lines else f'rule {i + 1}'}"
        if not isinstance(rule, dict) or "rule" not in rule:
            raise InputError(f'{place}: a rule is a table [[rules]] with rule = "A + B <= 100".')
        for key, value in rule.items():
            if key not in _RULE_KEYS:
                raise InputError(f"{place}: unknown key {key!r} in [[rules]]. {nearest(key, _RULE_KEYS)}")
            if not isinstance(value, str):
                raise InputError(f"{place}: {key} must be a text in quotation marks, but it is {value!r}.")
    return tuple(rule["rule"] for rule in data), tuple(lines)


_EQUAL_ROWS = {"copies": False, "repeats": True}
_KEYS = {
    "past": TEXTS, "current": TEXT, "candidates": TEXT, "model": TEXT, "jobs": WHOLE, "device": TEXT, "ignore": TEXTS,
    "max_rows": WHOLE, "equal_rows": TEXT, "rename": TABLE, "fill": TABLE, "objectives": TABLE,
    "limits": TABLE_OR_TEXTS, "baseline": TABLE, "least_probability": NUMBER, "rules": LIST, "parameters": TABLE,
    "cells": TABLE, "batch": TEXT, "drift": NUMBER,
}  # fmt: skip
_AS_WRITTEN = (
    "current", "candidates", "model", "jobs", "device", "max_rows", "rename", "fill", "cells", "least_probability",
    "batch", "drift",
)  # fmt: skip


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


def wrong_at(path: Path, key: str, message: str) -> InputError:
    """The error with the line of a key that can be read, but does not go with other files or settings."""
    return TomlText(path, path.read_text(encoding="utf-8-sig")).fail(message, key)


def campaign_file_in(text: str, path: Path) -> CampaignFile:
    """The campaign that a text describes, which stands, or is going to stand, at that path."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(
            f"{path} is not valid TOML: {str(error).rstrip('.')}. Texts need quotation marks, numbers a decimal point."
        ) from error
    toml = TomlText(path, text)
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
    rules, rule_lines = rules_of(toml, data.get("rules", []))
    found = CampaignFile(
        results=results,
        past=tuple(data.get("past", ())),
        parameters=parameters,
        rules=rules,
        rule_lines=rule_lines,
        ignore=tuple(data.get("ignore", ())),
        equal_rows_are_repeats=_EQUAL_ROWS[equal_rows],
        **{key: data[key] for key in _AS_WRITTEN if key in data},
    )
    if found.least_probability is not None and not 0 <= found.least_probability < 1:
        what = f"must be from 0 to below 1, but it is {found.least_probability}."
        raise toml.fail(f"least_probability {what}", "least_probability")
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
    if found.drift is not None and not (found.batch and found.drift > 0):
        wrong = f"must be above 0, but it is {found.drift:g}." if found.batch else 'needs the column: batch = "COLUMN".'
        raise toml.fail(f"drift {wrong}", "drift")
    _require_one_meaning(toml, found)
    return found


def _require_one_meaning(toml: TomlText, file: CampaignFile) -> None:
    """A column is a parameter, a result, an error, the batch, or ignored: one of them."""
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
    others = {"a parameter": names, "a result": file.measured_columns, "in ignore": file.ignore}
    others |= {"a column of descriptors": file.describing}
    if what := next((what for what, own in others.items() if file.batch in own), ""):
        raise toml.fail(f"{file.batch!r} is {what} and cannot be the batch too. Delete one of the two.", "batch")
