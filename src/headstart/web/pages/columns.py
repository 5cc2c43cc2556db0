"""The columns of past files as somebody sees and corrects them, and the plan that comes of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from headstart.campaign.init import CampaignPlan, Looked
from headstart.data.outcomes import Goal, Limit
from headstart.errors import InputError
from headstart.sources.files.cells import number
from headstart.sources.files.names import split_unit
from headstart.sources.files.tables import Table
from headstart.sources.parameters import Kind, Parameter

ROLES = {
    "parameter": "parameter (can be set)",
    "maximise": "result: maximise",
    "minimise": "result: minimise",
    "at most": "result: at most …",
    "at least": "result: at least …",
    "error": "standard error of …",
    "ignore": "not used",
}
KINDS = {"": "as found", "float": "number", "int": "whole number", "category": "category", "fixed": "fixed value"}
_FIELDS = ("role", "limit", "kind", "low", "high", "step", "value", "unit", "choices", "same", "of")
_RESULT = re.compile(r"yield|ausbeute|result|objective|score|efficiency|response|target|loss|cost|y", re.IGNORECASE)
_LOW_IS_GOOD = re.compile(r"loss|cost|impurit|waste|error|verunreinigung", re.IGNORECASE)
_SHOWN = 4


@dataclass(frozen=True)
class ColumnForm:
    """A column with what was typed about it; ``wrong`` by field, ``said`` is what was understood."""

    name: str
    fields: Mapping[str, str]
    files: int = 0
    examples: str = ""
    said: str = ""
    wrong: Mapping[str, str] | None = None

    def __getitem__(self, field: str) -> str:
        """What stands in a field."""
        return self.fields.get(field, "")

    def error(self, field: str) -> str:
        """What is wrong with a field."""
        return (self.wrong or {}).get(field, "")


def forms_of(tables: Sequence[Table]) -> list[ColumnForm]:
    """Every column of the files, with a guess at what it is for."""
    names = list(dict.fromkeys(column for table in tables for column in table.columns))
    kinds = {name: next((t.kind(name) for t in tables if name in t.columns), "empty") for name in names}
    result = _guessed_result(tables, names, kinds)
    found = []
    for name in names:
        own = [table for table in tables if name in table.columns]
        cells = list(dict.fromkeys(cell for table in own for cell in table.cells(name) if cell))
        role = "ignore" if kinds[name] in ("date", "empty") else "parameter"
        if name == result:
            role = "minimise" if _LOW_IS_GOOD.search(name) else "maximise"
        shown = ", ".join(cells[:_SHOWN]) + (" …" if len(cells) > _SHOWN else "")
        found.append(ColumnForm(name, {"role": role}, len(own), shown))
    return found


def _guessed_result(tables: Sequence[Table], names: Sequence[str], kinds: Mapping[str, str]) -> str:
    """The last column of numbers whose name is that of a result, spelled as most files do; else the last of all."""
    numbers = [name for name in names if kinds[name] == "number"]
    named = [name for name in numbers if _RESULT.fullmatch(split_unit(name)[0].strip())]
    everywhere = [name for name in numbers if all(name in table.columns for table in tables)]
    often = [sum(name in table.columns for table in tables) for name in named]
    named = [name for name, n in zip(named, often, strict=True) if n == max(often)]
    return (named or everywhere or numbers or [""])[-1]


def forms_in(form: Mapping[str, Any], shown: Sequence[ColumnForm]) -> list[ColumnForm]:
    """The same columns with what was typed: fields are named role0, low0 …, and c0 is the column's name."""
    typed: dict[str, dict[str, str]] = {}
    for i in range(len(shown) + 50):
        name = form.get(f"c{i}")
        if isinstance(name, str):
            typed[name] = {field: str(form.get(f"{field}{i}", "")).strip() for field in _FIELDS}
            typed[name]["log"] = "on" if form.get(f"log{i}") else ""
    return [replace(c, fields=typed[c.name]) if c.name in typed else c for c in shown]


def plan_of(columns: Sequence[ColumnForm]) -> CampaignPlan:
    """What the campaign is to be; an ``InputError`` names the column."""
    goals, limits = [], []
    for c in columns:
        if c["same"]:
            continue
        if c["role"] in ("maximise", "minimise"):
            goals.append(Goal(c.name, maximize=c["role"] == "maximise"))
        elif c["role"] in ("at most", "at least"):
            if (value := number(c["limit"], ".")) is None:
                raise InputError(f"{c.name}: say which value it must be {c['role']}.")
            limits.append(Limit(c.name, **{c["role"].replace(" ", "_"): value}))
        elif c["role"] not in ROLES:
            raise InputError(f"{c.name}: {c['role']!r} is nothing that a column can be for.")
    if not goals:
        raise InputError("Say which column is the result to maximise or minimise.")
    return CampaignPlan(
        tuple(goals),
        tuple(limits),
        _errors(columns, [*(goal.name for goal in goals), *(limit.name for limit in limits)]),
        rename={c.name: c["same"] for c in columns if c["same"] and c["same"] != c.name},
        ignore=tuple(c.name for c in columns if c["role"] == "ignore" and not c["same"]),
        categories=tuple(
            c.name for c in columns if c["kind"] == "category" and c["role"] == "parameter" and not c["same"]
        ),
    )


def _errors(columns: Sequence[ColumnForm], results: Sequence[str]) -> dict[str, str]:
    """The columns of standard errors by the result that they belong to."""
    found: dict[str, str] = {}
    for c in columns:
        if c["role"] != "error" or c["same"]:
            continue
        alike = [name for name in results if c.name.casefold().startswith(split_unit(name)[0].strip().casefold())]
        of = c["of"] or (results[0] if len(results) == 1 else max(alike, key=len, default=""))
        if of not in results:
            raise InputError(f"{c.name}: say which result it is the standard error of.")
        if of in found:
            raise InputError(f"{found[of]} and {c.name} cannot both be the standard error of {of}. Choose one.")
        found[of] = c.name
    return found


def parameters_in(columns: Sequence[ColumnForm], looked: Looked) -> tuple[dict[str, Parameter], list[ColumnForm]]:
    """The parameters as corrected, and the columns with what was understood, and what is wrong with a correction."""
    guesses = {guess.parameter.name: guess for guess in looked.proposal.guesses}
    found: dict[str, Parameter] = {}
    shown = []
    for c in columns:
        guess = guesses.get(c.name)
        if guess is None or c["same"]:
            same = c["same"] or looked.file.rename.get(c.name, "")
            said = f"the same as {same}" if same else looked.proposal.ignored.get(c.name, "")
            role = "ignore" if c.name in looked.proposal.ignored else c["role"]
            shown.append(replace(c, said=said, fields={**c.fields, "role": role, "same": same}))
            continue
        wrong: dict[str, str] = {}
        p = _corrected(c, guess.parameter, wrong)
        if not wrong:
            found[c.name] = p
        reasons = "; ".join(dict.fromkeys(reason for reason in guess.reasons.values() if reason))
        shown.append(replace(c, said=reasons, wrong=wrong, fields=c.fields if wrong else _fields_of(c, p)))
    return found, shown


def _fields_of(c: ColumnForm, p: Parameter) -> dict[str, str]:
    numbers = p.kind in (Kind.FLOAT, Kind.INT)
    return {
        **c.fields,
        "kind": p.kind.value,
        "low": f"{p.low:g}" if numbers else "",
        "high": f"{p.high:g}" if numbers else "",
        "step": "" if p.step is None else f"{p.step:g}",
        "value": str(p.value),
        "unit": p.unit,
        "choices": ", ".join(p.choices),
        "log": "on" if p.log else "",
    }


def _corrected(c: ColumnForm, guess: Parameter, wrong: dict[str, str]) -> Parameter:
    """The guess with what was typed; whatever is left empty stays as it was guessed."""
    kind = Kind(c["kind"]) if c["kind"] in [k.value for k in Kind] else guess.kind
    unit = c["unit"][:20] if "unit" in c.fields else guess.unit
    if kind is Kind.CATEGORY:
        choices = tuple(dict.fromkeys(part.strip() for part in c["choices"].split(",") if part.strip()))
        choices = choices or guess.choices
        if len(choices) < 2:
            wrong["choices"] = "A category needs two choices at least, separated by commas."
        return replace(guess, kind=kind, choices=choices, unit=unit)
    if kind is Kind.FIXED:
        if not c["value"]:
            wrong["value"] = "Which value is it fixed at?"
        value = number(c["value"], ".")
        return Parameter(c.name, kind, value=c["value"] if value is None or guess.is_text else value, unit=unit)
    if guess.is_text:
        wrong["kind"] = "Its cells are texts, so it cannot be a number."
        return guess
    low, high = (_field(c, name, getattr(guess, name), wrong) for name in ("low", "high"))
    step = _field(c, "step", guess.step, wrong) if c["step"] else None if "step" in c.fields else guess.step
    log = c["log"] == "on" if "log" in c.fields else guess.log
    if wrong or low is None or high is None:
        return guess
    corrected = Parameter(c.name, kind, low=low, high=high, log=log, step=step, unit=unit)
    wrong.update([corrected.wrong] if corrected.wrong else [])
    return corrected


def _field(c: ColumnForm, name: str, guess: float | None, wrong: dict[str, str]) -> float | None:
    value = number(c[name], ".") if c[name] else guess
    if c[name] and value is None:
        wrong[name] = f"{c[name]!r} is not a number."
    return guess if value is None else value
