"""What a cell of a column of numbers means, also where it holds more than a number; ``docs/files.md`` has the table.

'60 °C'   '8.5 %'    60 and 8.5; another unit than the column's is converted where that is known
'~5'  'ca. 5'        5
'<0.1'               0.05: half the limit, as is usual for what is too little to be measured
'>100'               100
'5 ± 0.2'            5
'n.d.'  'failed'     missing, failed

A table [cells] in ``headstart.toml`` says otherwise, for cells of any form: "n.d." = "failed", "<0.1" = 0.1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headstart.sources.files.cells import is_ambiguous, is_date, is_failure, is_missing, number
from headstart.sources.files.unit_names import folded
from headstart.sources.files.units import canonical_unit, converted, converts

MISSING, FAILED, MARK_KEY = "missing", "failed", "decimal_mark"

_MINUS = dict.fromkeys(map(ord, "\u2212\u2013"), "-") | dict.fromkeys(map(ord, "\u00a0\u2009\u202f"), " ")
_ABOUT = re.compile(r"(?:~|≈|≃|∼|(?:ca|circa|approx|about|etwa|ungefähr|ungef|rund)\b\.?)\s*", re.IGNORECASE)
_BOUND = re.compile(r"(<=|>=|≤|≥|<|>)\s*")
_SPREAD = re.compile(r"\s*(?:±|\+/-|\+-)\s*\d+(?:[.,]\d+)?")
_NUMBER = r"[+-]?(?:\d{1,3}(?:[ '’]\d{3})+|\d[\d.,]*|[.,]\d+)(?:[.,]\d+)?(?:[eE][+-]?\d+)?"
_WITH_UNIT = re.compile(rf"(?P<number>{_NUMBER})\s*(?P<unit>[^\d\s].*)")
_BARE = re.compile(r"[+-]?\d+(?:[.,]\d+)?")
_RANGE = re.compile(rf"{_NUMBER}\s*(?:-|–|\.\.|…|bis|to)\s*{_NUMBER}(?:\s*\D+)?")


@dataclass(frozen=True, slots=True)
class CellRules:
    """What somebody says that cells mean: ``missing``, ``failed`` or a number by the cell's text, whatever its case.

    ``decimal_mark`` is that of all files, where they do not show it.
    """

    meanings: Mapping[str, str | float] = field(default_factory=dict)
    decimal_mark: str | None = None

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> CellRules:
        """Those of a table [cells]."""
        meanings = {folded(text): meaning for text, meaning in told.items() if text != MARK_KEY}
        return cls(meanings, told.get(MARK_KEY))

    def meaning(self, text: str) -> str | float | None:
        """What was said of this cell, None if nothing was."""
        return self.meanings.get(folded(text)) if self.meanings else None


def wrong_meaning(text: str, meaning: Any) -> str:
    """Why a cell cannot be said to mean this, "" if it can."""
    if text == MARK_KEY:
        return "" if meaning in (".", ",") else f'{MARK_KEY} in [cells] must be "." or ",", but it is {meaning!r}.'
    number_told = isinstance(meaning, int | float) and not isinstance(meaning, bool) and math.isfinite(meaning)
    if meaning in (MISSING, FAILED) or number_told:
        return ""
    return f'[cells] says "missing", "failed" or a number of a cell, but {text!r} gets {meaning!r}.'


@dataclass(frozen=True, slots=True)
class CellReading:
    """A cell's number, or that there is none (None); ``how`` it was read if not plainly, or why it cannot be.

    ``word`` is ``missing`` or ``failed`` for a cell that says so.
    """

    value: float | None = None
    word: str = ""
    how: str = ""
    problem: str = ""
    unit: str = ""  # that the cell itself has


def read_cell(text: str, mark: str | None, rules: CellRules, *, own: str = "", unit: str = "") -> CellReading:
    """The number that the cell stands for, in ``unit``; cells without a unit are in ``own``, that of their column."""
    own = own or unit
    told = rules.meaning(text)
    if isinstance(told, str):
        return CellReading(word=told, how=f"counts as {told}, as [cells] says")
    if told is not None:
        return CellReading(float(told), how=f"is {told:g}, as [cells] says")
    if is_missing(text, numeric=True):
        return CellReading(word=MISSING)
    if is_failure(text):
        return CellReading(word=FAILED)
    if text.startswith("="):
        return CellReading(
            problem=f"{text[:40]!r} is a formula whose value the workbook does not have. Open it in the spreadsheet "
            "program and save it"
        )
    known, sure = (mark, False) if rules.decimal_mark is None else (rules.decimal_mark, True)
    value = number(text, known, told=sure)
    if value is not None:
        if sure and is_ambiguous(text, known):
            return _in_unit(value, own, unit, ["is a number with thousands, as decimal_mark in [cells] says"])
        return _in_unit(value, own, unit, [])
    if is_ambiguous(text, known):
        return CellReading(problem=ambiguity(text, known))
    if is_date(text):
        return CellReading(
            problem=f"{text!r} is a date, not a number. If a spreadsheet program made a date of a number, format the "
            "column as a number and type the value again"
        )
    return _read_form(text, known, sure, own, unit)


def _read_form(text: str, mark: str | None, sure: bool, own: str, unit: str) -> CellReading:
    """A number with signs or a unit around it."""
    rest, how = text.translate(_MINUS).strip(), []
    if about := _ABOUT.match(rest):
        rest = rest[about.end() :]
        how.append(f"is read without the {about[0].strip()!r}")
    bound = _BOUND.match(rest)
    if bound:
        rest = rest[bound.end() :]
    if spread := _SPREAD.search(rest):
        rest = rest[: spread.start()] + rest[spread.end() :]
        how.append("is read without its error")
    found = _WITH_UNIT.fullmatch(rest)
    word = canonical_unit(found["unit"]) if found else ""
    digits = found["number"].strip() if found and word else rest
    value = number(digits, mark, told=sure)
    if value is None and is_ambiguous(digits, mark):
        return CellReading(problem=ambiguity(text, mark))
    if value is None or (not how and not bound and not word):
        return CellReading(problem=_no_number(text, rest))
    if bound:
        below = bound[1] in ("<", "<=", "≤")
        if value <= 0 and below:
            return CellReading(problem=f"{text!r} is below a limit that is not above 0, so nobody knows the number")
        value = value / 2 if below else value
        how.append("counts as half of its limit" if below else "counts as its limit")
    return _in_unit(value, word or own, unit, how, spelled=found["unit"] if found and word else "")


def _in_unit(value: float, word: str, unit: str, how: list[str], spelled: str = "") -> CellReading:
    """The value in the column's unit, or that it has none there."""
    if spelled and word == (unit or word):
        how.append(f"is read without its unit {word}" if unit else f"is in {word}, by its own unit")
    elif word and unit and word != unit:
        if not converts(word, unit):
            return CellReading(
                problem=f"a value in {word} cannot be converted to {unit}, which its column is in", unit=word
            )
        value = converted(value, word, unit)
        how.append(f"is converted from {word} to {unit}")
    if not math.isfinite(value):
        return CellReading(problem="the number is too large")
    return CellReading(value, how=", ".join(how), unit=word if spelled else "")


def unit_in(text: str) -> str:
    """The unit that a cell has behind its number, "" for none."""
    if _BARE.fullmatch(text):  # as nearly all are
        return ""
    found = _WITH_UNIT.fullmatch(_BOUND.sub("", _ABOUT.sub("", text.translate(_MINUS).strip(), count=1), count=1))
    return canonical_unit(found["unit"]) if found else ""


def ambiguity(text: str, mark: str | None) -> str:
    """That a cell is one of two numbers, and how to say which."""
    first = "." if "." in text else ","
    bare, decimal = text.replace(first, ""), text.replace(first, mark or ".")
    if mark is None:
        return (
            f"{text!r} can be read as {bare} or as {decimal}, and nothing else in the file shows its decimal mark. "
            f'Write the one that is meant, or say it once with {MARK_KEY} = "," (or ".") in [cells] of '
            f"headstart.toml (init: --cell '{MARK_KEY}=,')"
        )
    return (
        f"{text!r} can be read as {bare} or as {decimal}. Decimals in this file have a "
        f"{'point' if mark == '.' else 'comma'}: write the one that is meant"
    )


def _no_number(text: str, rest: str) -> str:
    if _RANGE.fullmatch(rest):
        return f"{text!r} is a range, not a number. Write one number"
    return f"{text!r} is not a number"
