"""``headstart.toml``: what a campaign optimises, and what it starts from. Every key is known, or an error."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headstart.errors import InputError
from headstart.sources.parameters import MOST_USED, Kind, Parameter, nearest
from headstart.sources.unit_names import with_unit

__all__ = ["DEFAULT_MODEL", "TOML", "CampaignFile", "read_campaign_file"]

TOML = "headstart.toml"
DEFAULT_MODEL = "auto"
_DIRECTIONS = {"maximize": True, "maximise": True, "minimize": False, "minimise": False}
_TEXT, _WHOLE, _TEXTS, _TABLE = "a text in quotation marks", "a whole number", "a list of texts", "a table"
_NUMBER, _SWITCH, _VALUE = "a number", "true or false", "a number or a text"
_KEYS = {
    "objective": _TEXT, "unit": _TEXT, "direction": _TEXT, "past": _TEXTS, "current": _TEXT, "model": _TEXT,
    "ignore": _TEXTS, "max_rows": _WHOLE, "rename": _TABLE, "fill": _TABLE, "parameters": _TABLE,
}  # fmt: skip
_PARAMETER_KEYS = {
    "kind": _TEXT, "low": _NUMBER, "high": _NUMBER, "log": _SWITCH, "step": _NUMBER, "choices": "a list",
    "value": _VALUE, "unit": _TEXT,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class CampaignFile:
    """What ``headstart.toml`` says. Paths are relative to its folder."""

    objective: str
    maximize: bool
    past: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    unit: str = ""
    current: str = "current.csv"
    model: str = DEFAULT_MODEL
    ignore: tuple[str, ...] = ()
    max_rows: int = MOST_USED
    rename: Mapping[str, str] = field(default_factory=dict)
    fill: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The objective with its unit, for people."""
        return with_unit(self.objective, self.unit)


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
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(
            f"{path} is not valid TOML: {str(error).rstrip('.')}. Texts need quotation marks, numbers a decimal point."
        ) from error
    return _Reader(path, text).campaign(data)


@dataclass(frozen=True, slots=True)
class _Reader:
    path: Path
    text: str

    def fail(self, message: str, key: str, table: str = "") -> InputError:
        """The error with the line that the key stands in."""
        line = self._line(key, table)
        return InputError(f"{self.path}{f', line {line}' if line else ''}: {message}")

    def _line(self, key: str, table: str) -> int | None:
        inside = ""
        for i, line in enumerate(self.text.splitlines(), start=1):
            if header := re.match(r"\s*\[\s*(.+?)\s*\]\s*(#.*)?$", line):
                inside = header[1].replace('"', "").replace("'", "")
                if not key and inside == table:
                    return i
            elif key and inside == table and re.match(rf"""\s*["']?{re.escape(key)}["']?\s*=""", line):
                return i
        return self._line("", f"{table}.{key}" if table else key) if key else None

    def campaign(self, data: dict[str, Any]) -> CampaignFile:
        """The whole file, checked."""
        self._check(data, _KEYS, "")
        for key, example in (("objective", '"yield"'), ("direction", '"maximize"'), ("parameters", "")):
            if key not in data:
                what = "there is no [parameters.NAME] table" if key == "parameters" else f"{key} is missing"
                raise InputError(f"{self.path}: {what}. Add {f'{key} = {example}' if example else 'at least one'}.")
        direction = data["direction"].lower()
        if direction not in _DIRECTIONS:
            raise self.fail(f"direction must be 'maximize' or 'minimize', but it is {direction!r}.", "direction")
        parameters = tuple(self._parameter(name, table) for name, table in data["parameters"].items())
        names = [p.name for p in parameters]
        if not any(p.kind is not Kind.FIXED for p in parameters):
            raise InputError(f"{self.path}: there is nothing to choose. Add a [parameters.NAME] table with a range.")
        if data["objective"] in names:
            raise self.fail(f"{data['objective']!r} is the objective and cannot be a parameter too.", "objective")
        for name in data.get("fill", {}):
            if name not in names:
                raise self.fail(
                    f"fill gives a value for {name!r}, which is no parameter. {nearest(name, names)}", name, "fill"
                )
        for old, new in data.get("rename", {}).items():
            if not isinstance(new, str):
                raise self.fail(f'rename must be old = "new", but {old!r} gets {new!r}.', old, "rename")
        both = [name for name in names if name in data.get("ignore", ())]
        if both:
            raise self.fail(f"{both[0]!r} is a parameter and cannot be ignored too. Delete one of the two.", "ignore")
        rows = data.get("max_rows", MOST_USED)
        if rows < 1:
            raise self.fail(f"max_rows must be at least 1, but it is {rows}.", "max_rows")
        if data.get("current", "current.csv") in data.get("past", ()):
            raise self.fail("the current file cannot be a past one too. Take it out of past.", "past")
        return CampaignFile(
            objective=data["objective"],
            maximize=_DIRECTIONS[direction],
            past=tuple(data.get("past", ())),
            parameters=parameters,
            unit=data.get("unit", ""),
            current=data.get("current", "current.csv"),
            model=data.get("model", DEFAULT_MODEL),
            ignore=tuple(data.get("ignore", ())),
            max_rows=rows,
            rename=data.get("rename", {}),
            fill=data.get("fill", {}),
        )

    def _check(self, data: Mapping[str, Any], keys: Mapping[str, str], table: str) -> None:
        """Every key known, every value of its type."""
        where = f" in [{table}]" if table else ""
        for key, value in data.items():
            if key not in keys:
                raise self.fail(f"unknown key {key!r}{where}. {nearest(key, keys)}", key, table)
            if not _fits(value, keys[key]):
                raise self.fail(f"{key}{where} must be {keys[key]}, but it is {value!r}.", key, table)

    def _parameter(self, name: str, data: Any) -> Parameter:
        table = f"parameters.{name}"
        if not isinstance(data, dict):
            raise self.fail(f"{name} must be a table [{table}] with kind, low and high.", name, "parameters")
        self._check(data, _PARAMETER_KEYS, table)

        def wrong(key: str, what: str) -> InputError:
            return self.fail(f"{key} in [{table}] {what}", key, table)

        kinds = [k.value for k in Kind]
        if data.get("kind") not in kinds:
            what = f"must be one of {', '.join(kinds)}"
            raise wrong("kind", f"{what}, but it is {data['kind']!r}." if "kind" in data else f"is missing: it {what}.")
        kind = Kind(data["kind"])
        needed = {Kind.CATEGORY: ("choices",), Kind.FIXED: ("value",)}.get(kind, ("low", "high"))
        allowed = {"kind", "unit", *needed, *(("log", "step") if "low" in needed else ())}
        for key in needed:
            if key not in data:
                raise wrong(key, f"is missing: kind {kind.value!r} needs {' and '.join(needed)}.")
        for key in data:
            if key not in allowed:
                raise wrong(key, f"does not go with kind {kind.value!r}. Delete it, or change the kind.")
        unit = data.get("unit", "")
        if kind is Kind.CATEGORY:
            choices = tuple(_category(c) for c in data["choices"])
            if len(set(choices)) < 2 or len(set(choices)) < len(choices):
                raise wrong("choices", f"must be two or more different values, but they are {list(choices)}.")
            return Parameter(name, kind, choices=choices, unit=unit)
        if kind is Kind.FIXED:
            return Parameter(name, kind, value=data["value"], unit=unit)
        low, high, step, log = data["low"], data["high"], data.get("step"), data.get("log", False)
        for key, value in (("low", low), ("high", high), ("step", step)):
            if value is not None and not math.isfinite(value):
                raise wrong(key, f"must be a finite number, but it is {value}.")
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
        return Parameter(name, kind, low=low, high=high, log=log, step=step, unit=unit)


def _category(value: Any) -> str:
    """A category as it stands in a CSV file: text."""
    return value if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else str(value)


def _fits(value: Any, what: str) -> bool:
    match what:
        case "a text in quotation marks":
            return isinstance(value, str)
        case "a whole number":
            return isinstance(value, int) and not isinstance(value, bool)
        case "a number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "a number or a text":
            return isinstance(value, int | float | str) and not isinstance(value, bool)
        case "true or false":
            return isinstance(value, bool)
        case "a table":
            return isinstance(value, dict)
        case "a list of texts":
            return isinstance(value, list) and all(isinstance(v, str) for v in value)
    return isinstance(value, list)
