"""What one cell of a spreadsheet means: a number in either decimal convention, a date, or nothing.

'12.5'  '12,5'  '1e-3'  '−4'  '1 234,5'  '1.234.567,8'     numbers
'1,234' in a file with decimal points                      ambiguous: 1.234 or 1234, so nobody guesses
'1.200' in a file where nothing shows the decimal mark     ambiguous: 1.2 or 1200
''  'n/a'  'k.A.'  'n.d.'  '#NV'                           nothing; in a column of numbers '-' and 'none' too
'failed'  'fehlgeschlagen'  'aborted'                      a result that there will never be
'2024-03-01'  '1.3.2024'  '12:30'  '3. Mai'  'Mar-24'      dates and times

What has more in it than a number, such as '60 °C' or '<0.1', is the matter of ``readings``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

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
    return _could_be_two(_tidy(text), mark)


def _could_be_two(text: str, mark: str | None) -> bool:
    return (mark is None or mark not in text) and _THREE_DIGITS.fullmatch(text) is not None


def number(text: str, mark: str | None = ".", *, told: bool = False) -> float | None:
    """The number in the cell, or None. ``mark`` is the file's decimal mark; the other one is read where it is clear.

    Where somebody has ``told`` the mark, the other one stands between thousands.
    """
    text = _tidy(text)
    if _could_be_two(text, mark):
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
    if weak["."] and not weak[","] and delimiter != ";":
        return "." if 2 * round_ones < weak["."] else None
    if weak["."]:
        return None
    return "," if weak[","] and delimiter == ";" else None


def number_text(value: float, mark: str, *, clear: bool = False) -> str:
    """The number as a cell: no more digits than it needs, whole numbers without a decimal mark.

    To be ``clear`` where nothing else shows the decimal mark, 1.234 gets a digit that no thousands have.
    """
    text = repr(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))
    return text.replace(".", mark) + ("0" if clear and _THREE_DIGITS.fullmatch(text) else "")
