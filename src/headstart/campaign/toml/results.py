"""``[objectives.NAME]``, ``[limits.NAME]`` and ``[[rules]]``: what is measured, and what must hold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from headstart.campaign.file import ResultColumn, RuleLine
from headstart.campaign.toml.keys import NUMBER, TEXT, TomlText
from headstart.data.outcomes import MOST_GOALS, Goal, Limit
from headstart.errors import InputError
from headstart.sources.parameters import nearest

DIRECTIONS = {"maximize": True, "maximise": True, "minimize": False, "minimise": False}
_SINGLE = ("objective", "unit", "direction", "error")
_EVERY_KEYS = {"unit": TEXT, "error": TEXT, "low": NUMBER, "high": NUMBER}
_GOAL_KEYS = {"direction": TEXT, **_EVERY_KEYS}
_LIMIT_KEYS = {"at_most": NUMBER, "at_least": NUMBER, **_EVERY_KEYS}
_RULE_KEYS = {"rule": TEXT, "why": TEXT}


def results_of(toml: TomlText, data: Mapping[str, Any]) -> tuple[ResultColumn, ...]:
    """The columns with results, objectives first."""
    tables = data.get("objectives", {})
    single = [key for key in _SINGLE if key in data]
    if tables and single:
        raise toml.fail(f"{single[0]} does not go with [objectives.NAME] tables. Move it into one.", single[0])
    if not tables:
        for key, example in (("objective", '"yield"'), ("direction", '"maximize"')):
            if key not in data:
                raise InputError(f"{toml.path}: {key} is missing. Add {key} = {example}.")
        tables = {data["objective"]: {key: data[key] for key in _SINGLE[1:] if key in data}}
        goals = [_goal(toml, data["objective"], tables[data["objective"]], "")]
    else:
        goals = [_goal(toml, name, table, f"objectives.{name}") for name, table in tables.items()]
    if len(goals) > MOST_GOALS:
        raise toml.fail(
            f"at most {MOST_GOALS} objectives can be weighed against each other, but there are {len(goals)}. Make "
            f"[limits.NAME] of those that only have to be good enough.",
            goals[MOST_GOALS].name,
            "objectives",
        )
    limits = [_limit(toml, name, table) for name, table in data.get("limits", {}).items()]
    twice = next((limit for limit in limits if limit.name in tables), None)
    if twice is not None:
        raise toml.fail(
            f"{twice.name!r} is an objective and has a limit too. Leave one of them out: an objective already goes "
            "as far as it can.",
            twice.name,
            "limits",
        )
    return (*goals, *limits)


def _goal(toml: TomlText, name: str, data: Any, table: str) -> ResultColumn:
    _require_table(toml, name, data, "objectives", _GOAL_KEYS, table)
    direction = str(data.get("direction", "")).lower()
    if direction not in DIRECTIONS:
        where = f" in [{table}]" if table else ""
        raise toml.fail(
            f"direction{where} must be 'maximize' or 'minimize', but it is {direction!r}."
            if "direction" in data
            else f"direction{where} is missing: it must be 'maximize' or 'minimize'.",
            "direction",
            table,
        )
    _require_bounds(toml, data, table)
    outcome = Goal(name, maximize=DIRECTIONS[direction], low=data.get("low"), high=data.get("high"))
    return ResultColumn(outcome, data.get("unit", ""), data.get("error", ""))


def _limit(toml: TomlText, name: str, data: Any) -> ResultColumn:
    table = f"limits.{name}"
    _require_table(toml, name, data, "limits", _LIMIT_KEYS, table)
    if ("at_most" in data) == ("at_least" in data):
        raise toml.fail(f"[{table}] needs one of at_most and at_least, as in at_most = 0.5.", name, "limits")
    _require_bounds(toml, data, table)
    at_most, at_least = data.get("at_most"), data.get("at_least")
    value, low, high = at_most if at_least is None else at_least, data.get("low"), data.get("high")
    if (low is not None and value < low) or (high is not None and value > high):
        key = "at_most" if at_least is None else "at_least"
        raise toml.fail(f"{key} in [{table}] lies outside low and high. Correct one of them.", key, table)
    outcome = Limit(name, at_most=at_most, at_least=at_least, low=low, high=high)
    return ResultColumn(outcome, data.get("unit", ""), data.get("error", ""))


def _require_table(toml: TomlText, name: str, data: Any, part: str, keys: Mapping[str, str], table: str) -> None:
    if not isinstance(data, dict):
        raise toml.fail(f"{name} must be a table [{part}.{name}].", name, part)
    if not name.strip():
        raise toml.fail(f"a column in [{part}] needs a name.", name, part)
    toml.check(data, keys if table else {**keys, "objective": TEXT}, table)


def _require_bounds(toml: TomlText, data: Mapping[str, Any], table: str) -> None:
    for key in ("at_most", "at_least", "low", "high"):
        if key in data and not math.isfinite(data[key]):
            raise toml.fail(f"{key} in [{table}] must be a finite number, but it is {data[key]}.", key, table)
    low, high = data.get("low"), data.get("high")
    if low is not None and high is not None and low >= high:
        raise toml.fail(f"low in [{table}] is {low}, which is not below high = {high}.", "low", table)


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
