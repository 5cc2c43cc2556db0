"""Batches of rows: the day, lot or operator that every row belongs to, as numbers with names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from headstart.errors import NoBatchError

_DAY = 86400.0  # seconds
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}.*)?")


@dataclass(frozen=True, eq=False)
class Batches:
    """The batch of every row: numbers, as a ``Dataset`` has them, and what each of them is called.

    With a ``drift`` the numbers are times, days for dates, and shifts stay alike over so many of them.
    """

    numbers: NDArray[np.float64]
    names: Mapping[float, str]
    drift: float | None = None

    @classmethod
    def of(cls, labels: Sequence[Any], *, drift: float | None = None, where: str = "batch") -> Self:
        """Number the labels; rows without one belong to the batch of the row above, as cells that were merged.

        Args:
            labels: Texts, numbers, dates or times, one per row; None, NaN and "" are none. A time belongs to its day.
                Texts such as 2026-03-01 or 2026-03-01T14:00 are dates and times if all are, and with a drift each.
            drift: Over how long shifts stay alike, where they drift slowly: in days if labels are dates.
            where: What messages call the labels.

        Returns:
            Numbers from 0 on in the order in which the labels came; with a drift days since 1970, or the numbers.

        Raises:
            NoBatchError: With a drift, a label that is neither a date nor a number.
        """
        filled: list[Any] = []
        for label in labels:
            nothing = label is None or label == "" or label != label  # NaN and NaT differ from themselves
            filled.append((filled[-1] if filled else None) if nothing else label)
        dated = [_dated(label) for label in filled]
        if drift is not None or all(label is None or isinstance(label, date) for label in dated):
            filled = dated
        names = [_name(label) for label in filled]
        if drift is None:
            places = {name: float(i) for i, name in enumerate(dict.fromkeys(names))}
            return cls(np.array([places[name] for name in names]), {i: name for name, i in places.items()})
        first = next((label for label in filled if label is not None), None)
        times = np.array([_time(first if label is None else label, where) for label in filled])
        return cls(times, dict(zip(times.tolist(), names, strict=True)), drift)

    def only(self, rows: NDArray[np.intp]) -> Batches:
        """Those of these rows."""
        return replace(self, numbers=self.numbers[rows])

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.numbers)


def in_batches(
    batches: Batches | None, rows: NDArray[np.intp] | Sequence[int], present: float | None = None
) -> dict[str, Any]:
    """The arguments of a ``Dataset`` of these rows that say which batches they belong to; none where nobody said so."""
    if batches is None:
        return {}
    return {"batch": batches.numbers[np.asarray(rows, dtype=int)], "present": present, "drift": batches.drift}


def _dated(label: Any) -> Any:
    """The date, or the time, that a text in the form of ISO 8601 says; anything else as it is."""
    if isinstance(label, str) and _ISO.fullmatch(label):
        with suppress(ValueError):
            return datetime.fromisoformat(label)
    return label


def _name(label: Any) -> str:
    if isinstance(label, datetime):
        label = label.date()
    if isinstance(label, date):
        return label.isoformat()
    if isinstance(label, float) and label.is_integer():
        label = int(label)
    return "" if label is None else str(label)


def _time(label: Any, where: str) -> float:
    if isinstance(label, datetime):
        return (label.replace(tzinfo=None) - datetime(1970, 1, 1)).total_seconds() / _DAY
    if isinstance(label, date):
        return float((label - date(1970, 1, 1)).days)
    try:
        return float(label)
    except (TypeError, ValueError) as error:
        raise NoBatchError(
            f"{where}: {label!r} is neither a date nor a number, so that shifts cannot drift with it. Leave drift "
            "out: every batch then has a shift of its own."
        ) from error
