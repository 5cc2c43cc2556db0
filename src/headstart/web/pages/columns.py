"""The columns of past files as somebody sees and corrects them, and the plan that comes of it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from headstart.campaign.file import ResultColumn
from headstart.campaign.init import NO_BATCH, CampaignPlan, ColumnsTaken, Looked
from headstart.data.outcomes import Goal
from headstart.data.ranges import even_in_ratio
from headstart.data.requirements import Requirement, parse_requirement
from headstart.errors import InputError
from headstart.sources.files.cells import number
from headstart.sources.files.names import split_unit
from headstart.sources.files.tables import Table
from headstart.sources.parameters import Kind, Parameter
from headstart.sources.roles import is_lot, no_parameter, perhaps_measured

ROLES = {
    "parameter": "parameter (can be set)",
    "maximise": "result: maximise",
    "minimise": "result: minimise",
    "near": "result: near …",
    "at most": "result: at most …",
    "at least": "result: at least …",
    "between": "result: from … to …",
    "error": "standard error of …",
    "batch": "batch (may be shifted)",
    "ignore": "not used",
}
KINDS = {"": "as found", "float": "number", "int": "whole number", "category": "category", "fixed": "fixed value"}
_FIELDS = ("role", "limit", "kind", "low", "high", "step", "values", "value", "unit", "choices", "same", "of")
_GOALS = ("maximise", "minimise", "near")
# A role with a value as people write it elsewhere; of what is maximised or minimised the worst value of interest
_WRITTEN = {"maximise": ">=", "minimise": "<=", "near": "=", "at most": "<=", "at least": ">="}
_APART = "-"  # in the field "same": not the same as any other
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
    others: Mapping[str, str] = field(default_factory=dict)  # the same in other files, each with the reason
    doubt: str = ""  # what somebody should look at
    asked: tuple[str, ...] = ()  # which of the others that is about
    understood: str = ""  # the range or the choices, in short

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
    """Every column of the files, before anything is known of it."""
    found = []
    for name in dict.fromkeys(column for table in tables for column in table.columns):
        own = [table for table in tables if name in table.columns]
        cells = list(dict.fromkeys(cell for table in own for cell in table.cells(name) if cell))
        shown = ", ".join(cells[:_SHOWN]) + (" …" if len(cells) > _SHOWN else "")
        found.append(ColumnForm(name, {}, len(own), shown))
    return found


def with_roles(columns: Sequence[ColumnForm], taken: ColumnsTaken) -> list[ColumnForm]:
    """The columns with what each is proposed to be, and why: also where the rest of the files has a problem."""
    goals = {goal.name: goal for goal in taken.goals}
    counting = taken.counting
    same = {one.name: one for one in taken.same}
    every = [[True] * len(table.rows) for table in taken.tables]
    left_out = {
        c.name: "" if c.name in goals else no_parameter(c.name, taken.tables, every, list(goals)) for c in columns
    }
    settings = [name for name, why in left_out.items() if not why and name not in (*goals, *taken.rename)]
    found = []
    for c in columns:
        if c.name in taken.rename:
            one = taken.rename[c.name]
            why = same[one].reason(c.name) if one in same else ""
            found.append(replace(c, fields={"role": "parameter", "same": one}, said=why))
            continue
        why = left_out[c.name]
        role, doubt = "ignore" if why else "parameter", ""
        if c.name in goals:
            role = "maximise" if goals[c.name].maximize else "minimise"
            role = role if c.told.get("role") != "near" else "near"
        if counting is not None and counting.name == c.name:
            why = counting.why
            doubt = "" if counting.sure else why
            if counting.maximize is None:
                doubt = "nothing says whether it is to be high or low"
        elif c.told.get("role") == "batch":
            pass
        elif is_lot(c.name) and role == "ignore":
            doubt = str(why)
        elif c.name in settings and c.told.get("role") != "parameter":
            doubt = perhaps_measured(c.name, taken.tables, list(goals), settings)
        asked: tuple[str, ...] = ()
        others = {other: same[c.name].reason(other) for other in same[c.name].others} if c.name in same else {}
        if c.name in same and same[c.name].doubtful:
            asked = same[c.name].in_doubt
            doubt = "; ".join(f"{other}: {others[other]}" for other in asked)
        found.append(replace(c, fields={"role": role}, said=why, others=others, doubt=doubt, asked=asked))
    return found


def forms_in(form: Mapping[str, Any], shown: Sequence[ColumnForm]) -> list[ColumnForm]:
    """The same columns with what was told: fields are named role0, low0 …, c0 is the column's name, k0 its state."""
    told: dict[str, dict[str, str]] = {}
    for i in range(len(shown) + 50):
        name = form.get(f"c{i}")
        if isinstance(name, str):
            fields = {one: str(form.get(f"{one}{i}", "")).strip() for one in _FIELDS if f"{one}{i}" in form}
            fields |= {"log": "on" if form.get(f"log{i}") else ""} if "low" in fields else {}
            before, was = _state_in(form.get(f"k{i}"))
            told[name] = {**before, **{one: text for one, text in fields.items() if text != was.get(one, "")}}
            if fields.get("role") in _GOALS and not fields.get("same"):
                told[name]["role"] = fields["role"]
            one, equals, value = str(form.get("set", "")).partition("=")  # one click: role3=parameter
            if equals and one in [f"role{i}", f"same{i}", f"values{i}"]:
                told[name][one.removesuffix(str(i))] = value
            if was.get("role") == "batch" and told[name].get("role") == "ignore":
                told[name]["batch"] = NO_BATCH
    return [replace(c, told=told[c.name]) if c.name in told else c for c in shown]


def _state_in(text: Any) -> tuple[dict[str, str], dict[str, str]]:
    """What was told and what was shown, as ``ColumnForm.state`` writes it; nothing where it is none."""
    try:
        state = json.loads(str(text))
        told, shown = ({str(k): str(v) for k, v in state[part].items()} for part in ("told", "shown"))
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}, {}
    return {one: text for one, text in told.items() if one in (*_FIELDS, "log", "batch")}, shown


def plan_of(columns: Sequence[ColumnForm], *, sent: bool) -> CampaignPlan:
    """What somebody says that the campaign is to be; an ``InputError`` names the column.

    What counts is proposed as long as nothing was ``sent``; then somebody has seen it.
    """
    goals, limits = [], []
    told = [c for c in columns if c.told.get("same", "") in ("", _APART)]
    for c in told:
        role = c.told.get("role", "parameter")
        if role in _GOALS:
            goals.append(Goal(c.name, maximize=role == "maximise"))
        if role in (*_WRITTEN, "between") and (c["limit"] or role not in ("maximise", "minimise")):
            limits.append(_requirement(c, role))
        elif role not in ROLES:
            raise InputError(f"{c.name}: {role!r} is nothing that a column can be for.")
    if not goals and sent:
        raise InputError("Say which column is the result to maximise or minimise.")
    batches = [c.name for c in told if c.told.get("role") == "batch"]
    if len(batches) > 1:
        raise InputError(f"{batches[0]} and {batches[1]} cannot both be the batch. Choose one.")
    if any(c.told.get("role") == "ignore" and "batch" in c.told for c in told):
        batches.append(NO_BATCH)
    categories = [
        c for c in told if c.told.get("kind") == "category" and c.told.get("role", "parameter") == "parameter"
    ]
    return CampaignPlan(
        tuple(goals),
        tuple(limits),
        errors=_errors(told, [*(goal.name for goal in goals), *(limit.name for limit in limits)]),
        rename={c.name: c.told["same"] for c in columns if c.told.get("same", "") not in ("", _APART, c.name)},
        apart=tuple(c.name for c in columns if c.told.get("same") == _APART),
        ignore=tuple(c.name for c in told if c.told.get("role") == "ignore"),
        categories=tuple(c.name for c in categories),
        parameters=tuple(c.name for c in told if c.told.get("role") == "parameter" and c not in categories),
        batch=batches[0] if batches else "",
    )


def _requirement(c: ColumnForm, role: str) -> Requirement:
    """The value beside a role: the end of what it must be, what it is to be near, or the worst that is of interest."""
    quoted = f'"{c.name}"' if "'" in c.name else f"'{c.name}'"
    low, dash, high = re.sub(r"\s(?:to|bis|-|–)\s|…|\.\.+", "|", c["limit"]).partition("|")
    text = f"{low} <= {quoted} <= {high}" if role == "between" else f"{quoted} {_WRITTEN[role]} {c['limit']}"
    if not c["limit"] or (role == "between") is not bool(dash):
        what = "from which to which value it must be, as in 6.5 … 7.5" if role == "between" else "which value"
        what = what if role in ("between", "near") else f"which value it must be {role}"
        raise InputError(f"{c.name}: say {what if role != 'near' else 'which value it is to be near'}.")
    try:
        return replace(parse_requirement(text), name=c.name)
    except InputError as error:
        raise InputError(f"{c.name}: {c['limit']!r} is no value. Write a number, as in 0.5.") from error


def _errors(columns: Sequence[ColumnForm], results: Sequence[str]) -> dict[str, str]:
    """The columns of standard errors by the result that they belong to."""
    found: dict[str, str] = {}
    for c in columns:
        if c.told.get("role") != "error":
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
    results = {column.name: column for column in looked.file.results}
    batch = looked.proposal.batch
    found: dict[str, Parameter] = {}
    shown = []
    for c in columns:
        guess = guesses.get(c.name)
        if guess is None:
            why = looked.proposal.ignored.get(c.name, c.said)
            more = {"role": "ignore"} if c.name in looked.proposal.ignored else {}
            aim, others = "" if c.name not in results else bounds_of(results[c.name]), c.others
            if batch is not None and c.name == batch.name:
                more, others = {"role": "batch"}, {**others, **dict.fromkeys(batch.also, "it has days too")}
                aim = f"batch: {batch.why.removeprefix('as told: ')}; results of one batch may be shifted together"
            elif batch is not None and c.name in batch.also:
                more = {"same": batch.name}
            shown.append(replace(c, said=why, fields={**c.fields, **more}, understood=aim, others=others))
            continue
        wrong: dict[str, str] = {}
        p = corrected(c, guess.parameter, wrong)
        if not wrong:
            found[c.name] = p
        reasons = "; ".join(dict.fromkeys(reason for reason in guess.reasons.values() if reason))
        fields = fields_of(p)
        kept = c.told if wrong else {one: fields.get(one, text) if text else text for one, text in c.told.items()}
        shown.append(
            replace(c, said=reasons, wrong=wrong, fields={**c.fields, **fields}, told=kept, understood=range_of(p))
        )
    return found, shown


def fields_of(p: Parameter) -> dict[str, str]:
    """What stands in the fields of a parameter."""
    numbers = p.kind in (Kind.FLOAT, Kind.INT) and not p.values
    return {
        "role": "parameter",
        "kind": p.kind.value,
        "low": f"{p.low:.12g}" if numbers else "",
        "high": f"{p.high:.12g}" if numbers else "",
        "step": "" if p.step is None else f"{p.step:.12g}",
        "values": "; ".join(f"{value:.12g}" for value in p.values),
        "value": str(p.value),
        "unit": p.unit,
        "choices": ", ".join(p.choices),
        "log": "on" if p.log else "",
    }


def ranges_in(form: Mapping[str, Any], parameters: Sequence[Parameter]) -> list[tuple[Parameter, ColumnForm]]:
    """The parameters of a campaign with the ranges, steps and choices as typed (low0, high0 …), and their fields."""
    found = []
    for i, p in enumerate(parameters):
        shown = fields_of(p)
        typed = {
            one: str(form[f"{one}{i}"]).strip()
            for one in ("low", "high", "step", "values", "choices")
            if f"{one}{i}" in form
        }
        wrong: dict[str, str] = {}
        if p.values and not typed.get("values", "-"):
            wrong["values"] = "Give the values that exist, from the lowest on, as in 0.4; 0.8; 1.6"
        c = ColumnForm(
            p.name, shown, told={one: text for one, text in typed.items() if text != shown[one]}, wrong=wrong
        )
        found.append((p if not c.told else corrected(c, p, wrong), c))
    return found


def range_of(p: Parameter) -> str:
    """What may be set, in short: 40 … 120 °C, steps of 5."""
    if p.kind is Kind.CATEGORY:
        return p.span
    found, comma, more = p.span.rpartition(", log" if p.log else ", steps") if p.log or p.step else (p.span, "", "")
    return f"{found} {p.unit}".rstrip() + comma + more


def bounds_of(column: ResultColumn) -> str:
    """What a result is to be, in short: as high as possible, 0 … 100 %."""
    outcome = column.outcome
    plain = isinstance(outcome, Goal) and outcome.target is None and outcome.threshold is None
    way = f"as {'low' if outcome.sign > 0 else 'high'} as possible" if plain else column.aim
    if plain and (outcome.low is None or outcome.high is None):
        return way  # there is no number that a unit could belong to
    ends = "" if outcome.low is None or outcome.high is None else f", {outcome.low:g} … {outcome.high:g}"
    return f"{way}{ends} {column.unit}".rstrip()


def corrected(c: ColumnForm, guess: Parameter, wrong: dict[str, str]) -> Parameter:
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
    log = told["log"] == "on" if "log" in told else None
    values = told.get("values", "" if {"low", "high", "step"} & {*filter(told.get, told)} else None)
    if values or (values is None and guess.values):
        listed = _listed(values, wrong) if values else guess.values
        scale = even_in_ratio(listed) if log is None or "values" in told else log
        changed = replace(guess, kind=kind, values=listed, step=None, log=scale, unit=unit)
        return guess if wrong else _checked(changed, wrong)
    low, high, step = (_field(told, name, getattr(guess, name), wrong) for name in ("low", "high", "step"))
    step = None if told.get("step") == "" else step
    if wrong or low is None or high is None:
        return guess
    scale = guess.log if log is None else log
    changed = replace(guess, kind=kind, low=low, high=high, log=scale, step=step, unit=unit, values=())
    return _checked(changed, wrong)


def _checked(p: Parameter, wrong: dict[str, str]) -> Parameter:
    wrong.update([p.wrong] if p.wrong else [])
    return p


def _listed(text: str, wrong: dict[str, str]) -> tuple[float, ...]:
    """The values in a field, in ascending order: 0,4,0,8 without spaces is read as no four of them."""
    parts = [part.strip() for part in re.split(r"[;|]" if re.search(r"[;|]", text) else r",", text) if part.strip()]
    values = [value for part in parts if (value := number(part, ".")) is not None]
    if len(values) < max(2, len(parts)) or any(b <= a for a, b in pairwise(values)):
        wrong["values"] = f"{text!r} is not understood: write the values from the lowest on, as in 0.4; 0.8; 1.6"
    return tuple(values)


def _field(told: Mapping[str, str], name: str, guess: float | None, wrong: dict[str, str]) -> float | None:
    text = told.get(name, "")
    value = number(text, ".") if text else guess
    if text and value is None:
        wrong[name] = f"{text!r} is not a number."
    return guess if value is None else value
