"""What one cell of a spreadsheet means: a number in either decimal convention, a date, or nothing.

``docs/files.md`` has a table of all forms. A cell that could be two numbers is refused: nobody guesses. A table [cells]
in ``headstart.toml`` says otherwise, for cells of any form.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from headstart.sources.files.names import folded
from headstart.sources.files.units import canonical_unit, converted, converts

# "none" and "-" may well name a category
_NOTHING = frozenset(
    {"", "n/a", "#n/a", "#nv", "nan", "k.a.", "k. a.", "n.d.", "n. d.", "n.b.", "n. b.", "#div/0!", "#value!", "#wert!"}
    | {"#ref!", "#bezug!", "#name?", "#num!", "#zahl!", "#null!"}
)
_NO_NUMBER = _NOTHING | {"na", "n.a.", "n. a.", "nd", "-", "–", "—", "--", "---", "null", "none", "keine", "tbd", "?"}
_FAILED = frozenset(
    {"failed", "fail", "failure", "error", "aborted", "fehlgeschlagen", "fehler", "abgebrochen", "abbruch"}
    | {"misslungen", "gescheitert"}
)

_SPACES = dict.fromkeys(map(ord, "\u00a0\u2009\u202f"), " ") | {ord("\u2212"): "-", ord("’"): "'"}
_PLAIN = re.compile(r"[+-]?(?:\d+(?:([.,])\d*)?|([.,])\d+)(?:[eE][+-]?\d+)?")
_THREE_DIGITS = re.compile(r"[+-]?[1-9]\d{0,2}[.,]\d{3}")
_GROUPED = re.compile(r"[+-]?\d{1,3}(?:([ '.,])\d{3})(?:\1\d{3})*(?:([.,])\d+)?")

_MONTH = (
    r"(?:jan(?:uary?|uar)?|feb(?:ruary?|ruar)?|mar(?:ch)?|mär(?:z)?|mrz|apr(?:il)?|may|mai|june?|juni|july?|juli"
    r"|aug(?:ust)?|sept?(?:ember)?|o[ck]t(?:ober)?|nov(?:ember)?|de[cz](?:ember)?)\.?"
)
_DATES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?:[T ]\d{1,2}:\d{2}.*)?",
        r"\d{1,2}([./-])\d{1,2}\1(?:\d{4}|\d{2})(?:,? \d{1,2}:\d{2}.*)?",
        r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?: ?[ap]m)?",
        rf"\d{{1,2}}[. -]+{_MONTH}(?:[ -]*\d{{2,4}})?",
        rf"{_MONTH}[ -]+\d{{1,4}}(?:,? *\d{{4}})?",
    )
)


def _tidy(text: str) -> str:
    return text.strip() if text.isascii() else text.translate(_SPACES).strip()


def is_missing(text: str, *, numeric: bool) -> bool:
    """Whether the cell says nothing. In a column of numbers 'none' and '-' say nothing either."""
    return _tidy(text).lower() in (_NO_NUMBER if numeric else _NOTHING)


def is_failure(text: str) -> bool:
    """Whether a result is missing for good: 'failed', 'n/a'. An empty cell is a result that is still awaited."""
    word = _tidy(text).lower()
    return word in _FAILED or (word != "" and word in _NO_NUMBER)


def is_date(text: str) -> bool:
    """Whether the cell is a date or a time of day."""
    return any(pattern.fullmatch(_tidy(text)) for pattern in _DATES)


def _grouped(text: str) -> str | None:
    """A number whose digits stand in groups of three, without the groups; None where that is not certain."""
    match = _GROUPED.fullmatch(text)
    if match is None:
        return None
    group, mark = match.groups()
    once = text.count(group) == 1
    if mark == group or (group in ".," and mark is None and once):
        return None
    return text.replace(group, "").replace(",", ".")


def is_ambiguous(text: str, mark: str | None) -> bool:
    """Whether the cell reads as two different numbers: '1,234' where the decimal mark is a point, or the reverse.

    Where no decimal mark is known, both are.
    """
    text = _tidy(text)
    return (mark is None or mark not in text) and _THREE_DIGITS.fullmatch(text) is not None


def number(text: str, mark: str | None = ".", *, told: bool = False) -> float | None:
    """The number in the cell, or None. ``mark`` is the file's decimal mark; the other one is read where it is clear.

    Where somebody has ``told`` the mark, the other one stands between thousands.
    """
    text = _tidy(text)
    if is_ambiguous(text, mark):
        return float(re.sub("[.,]", "", text)) if told else None
    plain = text.replace(",", ".") if _PLAIN.fullmatch(text) else _grouped(text)
    if plain is None:
        return None
    value = float(plain)
    return value if math.isfinite(value) else None


def decimal_mark(cells: Iterable[str], delimiter: str) -> str | None:
    """The decimal mark that the numbers among the cells show, or None where no number has one.

    '12,5' and '0,123' can only be decimal; '1,234' alone counts only in a file separated by semicolons, which
    spreadsheet programs write where the comma is the decimal mark. '1.234' alone counts in other files, if most such
    numbers do not end in 0 as thousands do: nobody knows what '1.200' is.
    """
    clear, weak = {".": 0, ",": 0}, {".": 0, ",": 0}
    round_ones = 0
    for cell in cells:
        text = _tidy(cell)
        if plain := _PLAIN.fullmatch(text):
            found = plain.group(1) or plain.group(2)
            if found:
                three = _THREE_DIGITS.fullmatch(text)
                (weak if three else clear)[found] += 1
                round_ones += three is not None and found == "." and text.endswith("0")
        elif (grouped := _GROUPED.fullmatch(text)) and grouped.group(2):
            clear[grouped.group(2)] += 1
    if clear["."] != clear[","]:
        return max(clear, key=lambda m: clear[m])
    if delimiter == ";":
        return "," if weak[","] and not weak["."] else None
    return "." if 2 * round_ones < weak["."] and not weak[","] else None


def number_text(value: float, mark: str, *, clear: bool = False) -> str:
    """The number as a cell: no more digits than it needs, whole numbers without a decimal mark.

    To be ``clear`` where nothing else shows the decimal mark, 1.234 gets a digit that no thousands have.
    """
    text = repr(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))
    return text.replace(".", mark) + ("0" if clear and _THREE_DIGITS.fullmatch(text) else "")


MISSING, FAILED, MARK_KEY = "missing", "failed", "decimal_mark"

_ABOUT = re.compile(r"(?:~|≈|≃|∼|(?:ca|circa|approx|about|etwa|ungefähr|ungef|rund)\b\.?)\s*", re.IGNORECASE)
_BOUND = re.compile(r"(<=|>=|≤|≥|<|>)\s*")
_SPREAD = re.compile(r"\s*(?:±|\+/-|\+-)\s*\d+(?:[.,]\d+)?")
_NUMBER = r"[+-]?(?:\d{1,3}(?:[ '’]\d{3})+|\d[\d.,]*|[.,]\d+)(?:[.,]\d+)?(?:[eE][+-]?\d+)?"
_WITH_UNIT = re.compile(rf"(?P<number>{_NUMBER})\s*(?P<unit>[^\d\s].*)")
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

    ``word`` is ``missing`` or ``failed`` for a cell that says so. ``told`` is a number of [cells], in any unit.
    """

    value: float | None = None
    word: str = ""
    how: str = ""
    problem: str = ""
    unit: str = ""  # that the cell itself has
    told: bool = False
    ambiguous: bool = False

    @property
    def plain(self) -> bool:
        """Whether the cell is a number and nothing else."""
        return self.value is not None and not self.how and not self.unit


def parse_cell(text: str, mark: str | None, rules: CellRules) -> CellReading:
    """What the cell says by itself: its number in its own unit, or in that of its column."""
    told = rules.meaning(text)
    if isinstance(told, str):
        return CellReading(word=told, how=f"counts as {told}, as [cells] says")
    if told is not None:
        return CellReading(float(told), how=f"is {told:g}, as [cells] says", told=True)
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
        thousands = sure and is_ambiguous(text, known)
        return CellReading(
            value, how="is a number with thousands, as decimal_mark in [cells] says" if thousands else ""
        )
    if is_ambiguous(text, known):
        return CellReading(problem=ambiguity(text, known), ambiguous=True)
    if is_date(text):
        return CellReading(
            problem=f"{text!r} is a date, not a number. If a spreadsheet program made a date of a number, format the "
            "column as a number and type the value again"
        )
    return _parse_form(text, known, sure)


def _parse_form(text: str, mark: str | None, sure: bool) -> CellReading:
    """A number with signs or a unit around it."""
    rest, how = _tidy(text).replace("–", "-"), []
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
        return CellReading(problem=ambiguity(text, mark), unit=word)
    if value is None or (not how and not bound and not word):
        is_range = _RANGE.fullmatch(rest) is not None
        return CellReading(
            problem=f"{text!r} is a range, not a number. Write one number" if is_range else f"{text!r} is not a number"
        )
    if bound:
        below = bound[1] in ("<", "<=", "≤")
        if value <= 0 and below:
            return CellReading(problem=f"{text!r} is below a limit that is not above 0, so nobody knows the number")
        value = value / 2 if below else value
        how.append("counts as half of its limit" if below else "counts as its limit")
    return CellReading(value, how=", ".join(how), unit=word)


def in_unit(cell: CellReading, own: str, unit: str) -> CellReading:
    """The cell with its number in ``unit``; it is in its own unit, or else in ``own``, that of its column."""
    word = cell.unit or own
    if cell.value is None or cell.told or (not cell.unit and (word == unit or not word or not unit)):
        return cell
    value, how = cell.value, [cell.how] if cell.how else []
    if word == (unit or word):
        how.append(f"is read without its unit {word}" if unit else f"is in {word}, by its own unit")
    elif not converts(word, unit):
        return CellReading(
            problem=f"a value in {word} cannot be converted to {unit}, which its column is in", unit=word
        )
    else:
        value = converted(value, word, unit)
        how.append(f"is converted from {word} to {unit}")
    if not math.isfinite(value):
        return CellReading(problem="the number is too large")
    return CellReading(value, how=", ".join(how), unit=cell.unit)


def ambiguity(text: str, mark: str | None) -> str:
    """That a cell is one of two numbers, and how to say which."""
    first = "." if "." in text else ","
    bare, decimal = text.replace(first, ""), text.replace(first, mark or ".")
    if mark is None:
        return (
            f"{text!r} can be read as {bare} or as {decimal}, and nothing else in the file shows its decimal mark. "
            f'Write the one that is meant, or say it once with {MARK_KEY} = "," (or ".") in [cells] of headstart.toml'
        )
    return (
        f"{text!r} can be read as {bare} or as {decimal}. Decimals in this file have a "
        f"{'point' if mark == '.' else 'comma'}: write the one that is meant"
    )
