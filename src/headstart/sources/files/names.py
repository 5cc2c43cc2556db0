"""Names of columns and parameters: which column a name means, and the unit that a name shows.

names are            where they agree in all but
spelled alike        case, spaces and the composition of umlauts (``folded``): what somebody types, and cells of text
called alike         these, separators and the unit (``plain``): a result that is asked for, one column in several files

An exact name always wins. All names of files, settings and arguments are resolved here, by ``meant_by``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence

from headstart.sources.files.units import UNIT_WORDS, canonical_unit

_BRACKETS = re.compile(r"(?P<base>.*?\S)\s*[\[(](?P<unit>[^\[\]()]{1,20})[\])]\s*")
_SLASH = re.compile(r"(?P<base>.*?\S)\s+/\s+(?P<unit>\S{1,20})\s*")  # temperature / °C
# T in °C; T, °C
_IN = re.compile(r"(?P<base>.*?\S)(?:\s+in\s+|\s*,\s*)(?P<unit>\S{1,20}(?: \S{1,3})?)\s*", re.IGNORECASE)
_LAST_WORD = re.compile(r"(?P<base>.*[^\W_]\.?)(?P<apart>[_ ])(?P<unit>\S+)")  # time_min; Temp. °C
_RATIO = re.compile(r"(?P<base>.*[^\W_])_(?P<above>[^\W_]+)_(?P<below>[^\W_]+)")  # speed_mm_s
_PER = re.compile(r"[^\W_][^/]+/[^/]+")  # 1e6/mL, U/mL: whatever it is, by a unit
# One letter behind a space is a unit only of what is measured in it: no catalyst A, no vitamin C
_OF_LETTER = {
    "h": r"time|\w*zeit|dauer|duration|t", "s": r"time|\w*zeit|dauer|duration|t", "g": r"mass|\w*masse|weight",
    "C": r"T|\w*temp\w*\.?", "K": r"T|\w*temp\w*\.?", "F": r"T|\w*temp\w*\.?",
}  # fmt: skip


def folded(text: str, *, case: bool = False) -> str:
    """The text as it is compared: composed umlauts, single spaces and, unless it counts, no capitals."""
    text = unicodedata.normalize("NFC", " ".join(text.split()))
    return text if case else text.casefold()


def plain(column: str) -> str:
    """The name without unit, case and separators: what two spellings of a column have in common."""
    return re.sub(r"[\W_]+", "", split_unit(folded(column, case=True))[0]).casefold()


def meant_by(names: Iterable[str], columns: Sequence[str], *, alike: Callable[[str], str] = folded) -> dict[str, str]:
    """The columns that the names mean, each with the name: those of that very name, else all that are ``alike``."""
    names = list(names)
    spelled = {alike(name): name for name in names if name not in columns}
    return {c: c if c in names else spelled[alike(c)] for c in columns if c in names or alike(c) in spelled}


def split_unit(column: str) -> tuple[str, str]:
    """("temperature", "°C") of ``temperature [°C]``; the unit is empty where the name shows none.

    Without brackets or a slash only what is known as a unit is one: ``T in °C``, ``Temp. °C``, ``time_min``.
    """
    for pattern in (_BRACKETS, _SLASH):
        if match := pattern.fullmatch(column):
            unit = match["unit"].strip()
            return match["base"].strip(" _"), UNIT_WORDS.get(unit, unit)
    if (match := _IN.fullmatch(column)) and (unit := canonical_unit(match["unit"])):
        return match["base"], unit
    if (match := _RATIO.fullmatch(column)) and (unit := canonical_unit(f"{match['above']}/{match['below']}")):
        return match["base"], unit
    if match := _LAST_WORD.fullmatch(column):
        base, word = match["base"], match["unit"]
        if word.isalnum():
            letter = len(word) == 1 and match["apart"] == " "
            fits = not letter or re.search(rf"(?i:\b(?:{_OF_LETTER.get(word, '(?!)')}))$", base)
            unit = UNIT_WORDS.get(word, "") if fits else ""
        else:
            unit = canonical_unit(word) or (word if _PER.fullmatch(word) and canonical_unit(word.split("/")[1]) else "")
        if unit:
            return base, unit
    return column, ""


def with_unit(column: str, unit: str) -> str:
    """The name and its unit for people: ``time [min]`` for the column ``time_min``."""
    base = split_unit(column)[0] if split_unit(column)[1] == unit else column
    return f"{base} [{unit}]" if unit else base
