"""The columns of past files as somebody sees and corrects them, and the plan that comes of it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
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
    """A column as it is shown: what somebody ``told`` of it by field, and else what was understood in ``fields``.

    ``wrong`` is by field, ``said`` why it was understood so. A field that is sent back as it was shown tells nothing:
    it is understood anew with everything else.
    """

    name: str
    fields: Mapping[str, str]
    files: int = 0
    examples: str = ""
    said: str = ""
    wrong: Mapping[str, str] | None = None
    told: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, name: str) -> str:
        """What stands in a field."""
        return {**self.fields, **self.told}.get(name, "")

    def error(self, name: str) -> str:
        """What is wrong with a field."""
        return (self.wrong or {}).get(name, "")

    @property
    def state(self) -> str:
        """What the form carries besides its fields: what was told before, and what is shown."""
        return json.dumps({"told": dict(self.told), "shown": {name: self[name] for name in (*_FIELDS, "log")}})


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
    """The same columns with what was told: fields are named role0, low0 …, c0 is the column's name, k0 its state."""
    told: dict[str, dict[str, str]] = {}
    for i in range(len(shown) + 50):
        name = form.get(f"c{i}")
        if isinstance(name, str):
            fields = {one: str(form.get(f"{one}{i}", "")).strip() for one in _FIELDS}
            fields["log"] = "on" if form.get(f"log{i}") else ""
            before, was = _state_in(form.get(f"k{i}"))
            told[name] = {**before, **{one: text for one, text in fields.items() if text != was.get(one, "")}}
    return [replace(c, told=told[c.name]) if c.name in told else c for c in shown]


def _state_in(text: Any) -> tuple[dict[str, str], dict[str, str]]:
    """What was told and what was shown, as ``ColumnForm.state`` writes it; nothing where it is none."""
    try:
        state = json.loads(str(text))
        told, shown = ({str(k): str(v) for k, v in state[part].items()} for part in ("told", "shown"))
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}, {}
    return {one: text for one, text in told.items() if one in (*_FIELDS, "log")}, shown


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
            shown.append(replace(c, said=said, fields={"role": role, "same": same}))
            continue
        wrong: dict[str, str] = {}
        p = _corrected(c, guess.parameter, wrong)
        if not wrong:
            found[c.name] = p
        reasons = "; ".join(dict.fromkeys(reason for reason in guess.reasons.values() if reason))
        numbers = p.kind in (Kind.FLOAT, Kind.INT)
        understood = {
            "kind": p.kind.value,
            "low": f"{p.low:g}" if numbers else "",
            "high": f"{p.high:g}" if numbers else "",
            "step": "" if p.step is None else f"{p.step:g}",
            "value": str(p.value),
            "unit": p.unit,
            "choices": ", ".join(p.choices),
            "log": "on" if p.log else "",
        }
        told = c.told if wrong else {one: understood.get(one, text) if text else text for one, text in c.told.items()}
        shown.append(replace(c, said=reasons, wrong=wrong, fields={**c.fields, **understood}, told=told))
    return found, shown


def _corrected(c: ColumnForm, guess: Parameter, wrong: dict[str, str]) -> Parameter:
    """The guess with what was told; a number that is emptied is guessed again, a step or a unit is taken out."""
    told = c.told
    kind = Kind(told["kind"]) if told.get("kind") in [k.value for k in Kind] else guess.kind
    unit = told.get("unit", guess.unit)[:20]
    if kind is Kind.CATEGORY:
        choices = tuple(dict.fromkeys(part.strip() for part in told.get("choices", "").split(",") if part.strip()))
        choices = choices or guess.choices
        if len(choices) < 2:
            wrong["choices"] = "A category needs two choices at least, separated by commas."
        return replace(guess, kind=kind, choices=choices, unit=unit)
    if kind is Kind.FIXED:
        text = told.get("value", "")
        if not text:
            wrong["value"] = "Which value is it fixed at?"
        value = number(text, ".")
        return Parameter(c.name, kind, value=text if value is None or guess.is_text else value, unit=unit)
    if guess.is_text:
        wrong["kind"] = "Its cells are texts, so it cannot be a number."
        return guess
    low, high, step = (_field(told, name, getattr(guess, name), wrong) for name in ("low", "high", "step"))
    step = None if told.get("step") == "" else step
    log = told["log"] == "on" if "log" in told else guess.log
    if wrong or low is None or high is None:
        return guess
    corrected = Parameter(c.name, kind, low=low, high=high, log=log, step=step, unit=unit)
    wrong.update([corrected.wrong] if corrected.wrong else [])
    return corrected


def _field(told: Mapping[str, str], name: str, guess: float | None, wrong: dict[str, str]) -> float | None:
    text = told.get(name, "")
    value = number(text, ".") if text else guess
    if text and value is None:
        wrong[name] = f"{text!r} is not a number."
    return guess if value is None else value
