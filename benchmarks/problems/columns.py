"""An input of a table: its range or levels, and what is doubtful about it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.problems.frame import is_number
from headstart.data.ranges import Choices, FloatRange
from headstart.errors import InputError

_FEW_INTEGERS = 10
_MANY_LEVELS = 20
# A positive column with max / min and max / median above these may be meant as log.
_WIDE, _SKEWED = 1e3, 10.0

Array = NDArray[Any]


class ColumnKind(StrEnum):
    """How a column is encoded."""

    NUMERIC = "numeric"
    LOG = "log"
    CATEGORICAL = "categorical"


@dataclass(frozen=True, slots=True)
class Column:
    """An input of a table in raw units: its range, or its levels in order."""

    name: str
    kind: ColumnKind
    low: float = math.nan
    high: float = math.nan
    levels: tuple[str, ...] = ()

    @property
    def values(self) -> FloatRange | Choices:
        """What may be chosen."""
        if self.kind is ColumnKind.CATEGORICAL:
            return Choices(self.levels)
        return FloatRange(self.low, self.high, log=self.kind is ColumnKind.LOG)


def column(name: str, raw: Array, kept: NDArray[np.bool_], log: bool, where: str, report: list[str]) -> Column | None:
    """The column as its kept rows show it; None, and a sentence in the report, if it is constant."""
    x = raw[kept]
    text = x.dtype == object
    levels = tuple(sorted(set(x))) if text else ()
    if (len(levels) == 1) if text else (x.min() == x.max()):
        report.append(f"{name} is left out: it is {x[0]!s} in every row.")
        return None
    if text and log:
        raise InputError(f"{where}: {name} is to be on a log scale, but it is text, such as {levels[0]!r}.")
    if text:
        _report_on_text(name, levels, len(x), report)
        return Column(name, ColumnKind.CATEGORICAL, levels=levels)
    if log and x.min() <= 0:
        row = int(np.flatnonzero(kept & (raw <= 0))[0])
        raise InputError(
            f"{where}, row {row + 1}: {name} = {raw[row]:g} has no logarithm. "
            f"Leave {name} out of the log columns, or remove the row."
        )
    whole, distinct = bool(np.all(x == np.round(x))), len(np.unique(x))
    if whole and distinct <= _FEW_INTEGERS:
        report.append(
            f"{name} has only the whole numbers {some(map(str, np.unique(x).astype(int)))}: taken as numeric."
        )
    elif whole and distinct == len(x) and np.ptp(x) == len(x) - 1:
        report.append(f"{name} is a different whole number in every row. If it counts the rows, leave it out.")
    elif not log and x.min() > 0 and x.max() > max(_WIDE * x.min(), _SKEWED * np.median(x)):
        report.append(f"{name} runs from {x.min():g} to {x.max():g} on a linear scale. A log scale may be meant.")
    return Column(name, ColumnKind.LOG if log else ColumnKind.NUMERIC, low=float(x.min()), high=float(x.max()))


def _report_on_text(name: str, levels: Sequence[str], n: int, report: list[str]) -> None:
    words = [level for level in levels if not is_number(level)]
    if len(words) < len(levels):
        which = f"all but {some(words)}" if words else "all"
        report.append(f"{name} is text, so categorical, though of its {len(levels)} levels {which} are numbers.")
    elif len(levels) > _MANY_LEVELS:
        report.append(f"{name} is text with {len(levels)} levels in {n} rows: as many inputs are made of it.")


def some(names: Iterable[str], most: int = 10) -> str:
    """The first of these names, and how many more there are."""
    every = list(names)
    return ", ".join(every[:most]) + (f" and {len(every) - most} more" if len(every) > most else "")
