"""``[parameters.NAME]``: what may be set, and between which values."""

from __future__ import annotations

import math
from typing import Any

from headstart.campaign.toml.keys import LIST, NUMBER, SWITCH, TEXT, TEXT_OR_TEXTS, VALUE, TomlText
from headstart.errors import InputError
from headstart.sources.parameters import Kind, Parameter

_KEYS = {
    "kind": TEXT, "low": NUMBER, "high": NUMBER, "log": SWITCH, "step": NUMBER, "choices": LIST, "value": VALUE,
    "unit": TEXT, "descriptors": TEXT_OR_TEXTS, "withdrawn": LIST, "before": VALUE,
}  # fmt: skip


def parameter_of(toml: TomlText, name: str, data: Any) -> Parameter:
    """The parameter that a table [parameters.NAME] describes."""
    table = f"parameters.{name}"
    if not isinstance(data, dict):
        raise toml.fail(f"{name} must be a table [{table}] with kind, low and high.", name, "parameters")
    toml.check(data, _KEYS, table)

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
    return Parameter(name, kind, low=low, high=high, log=log, step=step, unit=unit, before=before)


def _category(value: Any) -> str:
    """A category as it stands in a CSV file: text."""
    return value if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else str(value)
