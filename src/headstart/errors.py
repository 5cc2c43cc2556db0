"""Every exception headstart raises on purpose.

    HeadstartError
    ├── InputError(ValueError)            what came in is not what was asked for; nothing was computed
    │   ├── NoPlaceError                  a value or a row that the space has no place for
    │   ├── NoBatchError                  a value that cannot name a batch: no day, or no time where shifts drift
    │   ├── NoPointLeftError              every point that could be suggested is pending or to be avoided
    │   ├── NoSettingError                rules about the settings that none of them keeps
    │   ├── NothingInCommonError          a source that shares no parameter with the space
    │   ├── UnknownParameterError         a rule about a parameter that the space does not have
    │   ├── UnusableSourceError           a source that cannot be reached, or has nothing to learn from
    │   ├── MissingDataError              a table that does not come with headstart, and is not where it was looked for
    │   ├── NotComparableError            methods whose runs have no problem or no seed in common
    │   ├── SeveralProblemsError          all that is wrong with some files, each of it in a line
    │   ├── UnreadableTableError          a file that is no table, next to others that may be one
    │   ├── UnwritableError               a file or a folder that cannot be written
    │   ├── ChangedMeanwhileError         somebody else was faster: what was looked at is not there any more
    │   └── UnusableCellsError            cells that somebody typed, with what is wrong with each
    │       └── UnlistedSettingsError     settings that are none of a list of values, which may be right all the same
    ├── NumericalError(ArithmeticError)   the data are fine, the arithmetic was not
    └── MissingExtraError(ImportError)    an optional dependency is not installed

A message says what was expected, what came (value, shape, argument, task, row) and what to do. An ``InputError`` that
somebody answers by going on in another way has a name of its own, so that no other one is mistaken for it.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting that mends what a message tells, by the name that every product knows it by, and its value."""

    name: str
    value: str = ""


class Message(str):
    """A sentence for people, and the settings that mend what it tells; each product adds how these are set there."""

    settings: tuple[Setting, ...]

    def __new__(cls, text: str, *settings: Setting) -> Self:
        """The text with its settings."""
        made = super().__new__(cls, text)
        made.settings = settings
        return made


class HeadstartError(Exception):
    """The root of the tree: catch this to catch them all."""


class InputError(HeadstartError, ValueError):
    """An argument that cannot be used. Raised where it enters, before any computation."""


class NoPlaceError(InputError):
    """A value that is missing, is no number, or is none of the categories: it has no coordinates in the space."""


class NoBatchError(InputError):
    """A value that cannot name a batch: a day that no calendar has, or no time where shifts drift with time."""


class NoPointLeftError(InputError):
    """Every point of a finite domain is pending or to be avoided: wait, widen the domain, or allow repetitions."""


class NoSettingError(InputError):
    """Rules that no setting of the space keeps; the message names some that contradict each other."""


class NothingInCommonError(InputError):
    """A source without a single parameter of the space; rename its columns, or leave it out."""


class UnknownParameterError(InputError):
    """A parameter that a rule about the settings names, and that nobody knows (yet)."""


class UnusableSourceError(InputError):
    """A past study or table that others can do without: it is empty, out of reach, or gone."""


class MissingDataError(InputError):
    """A table of the benchmark that has to be fetched; the message says where it is looked for."""


class NotComparableError(InputError):
    """Results in which no two methods can be compared on the same problems and seeds."""


class SeveralProblemsError(InputError):
    """Several things are wrong, each a sentence of its own in ``problems``."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


class UnreadableTableError(InputError):
    """A file that cannot be read as a table; those who read several files go on and tell all that is wrong at once."""


class UnwritableError(InputError):
    """A file or a folder that the operating system does not let be written, or that changed meanwhile."""


class ChangedMeanwhileError(InputError):
    """A file that somebody else changed since it was looked at: nothing is written over what they did."""


class UnusableCellsError(InputError):
    """Cells that cannot be used as they were typed; ``cells`` has what is wrong by row and column."""

    def __init__(self, cells: Mapping[tuple[int, str], str]) -> None:
        super().__init__("; ".join(f"row {row}, {column}: {what}" for (row, column), what in cells.items()))
        self.cells = dict(cells)


class UnlistedSettingsError(UnusableCellsError):
    """Settings that are none of a list of values: somebody has to say whether they were run so.

    ``nearest`` has the value of the list that may be meant, by row and column.
    """

    def __init__(self, cells: Mapping[tuple[int, str], str], nearest: Mapping[tuple[int, str], float]) -> None:
        super().__init__(cells)
        self.nearest = dict(nearest)


class NumericalError(HeadstartError, ArithmeticError):
    """A computation that could not be carried out, such as a factorisation that failed in every restart."""


class MissingExtraError(HeadstartError, ImportError):
    """An optional dependency is missing; the message names the extra to install."""


def message_of(error: BaseException) -> Message:
    """What an error says, with the settings that mend it; of several problems all of them."""
    said = error.problems if isinstance(error, SeveralProblemsError) else (error.args[0] if error.args else "",)
    settings = dict.fromkeys(one for text in said if isinstance(text, Message) for one in text.settings)
    return Message(str(error), *settings)


def nearest(word: str, known: Iterable[str], shown: Callable[[str], str] = repr) -> str:
    """A hint at the known word that looks most like this one, or all of them, as they are ``shown``."""
    known = list(known)
    lower = {k.lower(): k for k in known}
    close = difflib.get_close_matches(word.lower(), lower, n=1, cutoff=0.6)
    return f"Did you mean {shown(lower[close[0]])}?" if close else f"The known ones are {', '.join(map(shown, known))}."


def refuse(problems: Sequence[str]) -> None:
    """Raise an ``InputError`` if there are problems: all of them together, each once."""
    found = list(dict.fromkeys(problems))
    if len(found) == 1:
        raise InputError(found[0])
    if found:
        raise SeveralProblemsError(found)
