"""Days as cells have them: 2026-11-03, 03.11.2026, 11/3/26 or 3 Nov 2026, with or without a time of day.

Whether 03/11/2026 is in March or in November is for the other cells to show, such as 25/11/2026; with a point between
the numbers the day stands first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from typing import Self

_YEAR_FIRST = re.compile(r"(?P<y>\d{4})(?P<sep>[-/.])(?P<m>\d{1,2})[-/.](?P<d>\d{1,2})(?:[T ].*)?")
_YEAR_LAST = re.compile(r"(?P<d>\d{1,2})(?P<sep>[./-])(?P<m>\d{1,2})(?P=sep)(?P<y>\d{4}|\d{2})(?:,? .*)?")
_IN_WORDS = (
    re.compile(r"(?P<d>\d{1,2})[. -]+(?P<m>[^\W\d_]{3,})\.?[ -]*(?P<y>\d{4}|\d{2})"),
    re.compile(r"(?P<m>[^\W\d_]{3,})\.?[ -]+(?P<d>\d{1,2}),? *(?P<y>\d{4})"),
)
_MONTHS = {
    "jan": 1, "feb": 2, "mar": 3, "mär": 3, "mrz": 3, "apr": 4, "may": 5, "mai": 5, "jun": 6, "jul": 7, "aug": 8,
    "sep": 9, "oct": 10, "okt": 10, "nov": 11, "dec": 12, "dez": 12,
}  # fmt: skip
_CENTURY = 70  # 69 is 2069, 70 is 1970


@dataclass(frozen=True, slots=True)
class DayFormat:
    """How a column writes days. ``like`` is its last day in numbers, ``orders`` whether the month stands first.

    Where nothing shows that, no order is known and the day is taken to be first; where cells show both, cells that can
    be two days are none.
    """

    like: str = ""
    orders: frozenset[bool] = frozenset()

    @classmethod
    def of(cls, cells: Iterable[str], others: Iterable[str] = ()) -> Self:
        """That of a column; what its own cells do not show is as in the ``others``."""
        own, more = ([" ".join(cell.split()) for cell in each] for each in (cells, others))
        every = (*reversed(own), *reversed(more))
        last = (cell for cell in every if _YEAR_FIRST.fullmatch(cell) or _YEAR_LAST.fullmatch(cell))
        return cls(next(last, ""), _orders(own) or _orders(more))

    def undecided(self, text: str) -> bool:
        """Whether a cell can be two days and no cell of the column shows which."""
        return not self.orders and _either_way(text)

    def day(self, text: str) -> date | None:
        """The day of a cell, None where there is none; a ``ValueError`` for one that the calendar does not have."""
        text = " ".join(text.split())
        if found := _YEAR_FIRST.fullmatch(text):
            return date(int(found["y"]), int(found["m"]), int(found["d"]))
        if found := _YEAR_LAST.fullmatch(text):
            if len(self.orders) > 1 and _either_way(text):
                return None
            day, month = int(found["d"]), int(found["m"])
            swapped = found["sep"] != "." and True in self.orders and (month > 12 or len(self.orders) == 1)
            return date(_year(found["y"]), *((day, month) if swapped else (month, day)))
        for pattern in _IN_WORDS:
            if (found := pattern.fullmatch(text)) and (month := _MONTHS.get(found["m"][:3].lower(), 0)):
                return date(_year(found["y"]), month, int(found["d"]))
        return None

    def text(self, day: date) -> str:
        """The day as the column writes days; as 2026-11-03 where it does not show how."""
        found = _YEAR_LAST.fullmatch(self.like)
        known = found is not None and (found["sep"] == "." or len(self.orders) == 1)
        found = found if known else _YEAR_FIRST.fullmatch(self.like)
        if found is None:
            return day.isoformat()
        width = min(len(found["d"]), len(found["m"]))
        numbers = [f"{day.day:0{width}d}", f"{day.month:0{width}d}"]
        year = f"{day.year}"[-len(found["y"]) :]
        if found.re is _YEAR_FIRST:
            return found["sep"].join([year, *reversed(numbers)])
        swapped = found["sep"] != "." and True in self.orders
        return found["sep"].join([*(reversed(numbers) if swapped else numbers), year])


def is_day(text: str) -> bool:
    """Whether a cell is a day with its year, be it one of the calendar or not."""
    try:
        return DayFormat().day(text) is not None
    except ValueError:
        return True


def _year(text: str) -> int:
    return int(text) if len(text) == 4 else int(text) + (2000 if int(text) < _CENTURY else 1900)


def _either_way(text: str) -> bool:
    """Whether day and month could change places."""
    found = _YEAR_LAST.fullmatch(" ".join(text.split()))
    ends = (0, 0) if found is None or found["sep"] == "." else (int(found["d"]), int(found["m"]))
    return ends[0] != ends[1] and max(ends) <= 12


def _orders(cells: Iterable[str]) -> frozenset[bool]:
    """What cells show of whether the month stands first: it is at most 12."""
    shown = [found for cell in cells if (found := _YEAR_LAST.fullmatch(cell))]
    ends = [(int(found["d"]), int(found["m"])) for found in shown if found["sep"] != "."]
    return frozenset(second > 12 for first, second in ends if max(first, second) > 12 >= min(first, second))
