"""What was worked out for a target is kept for the next step, up to a bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from headstart.data.dataset import Dataset

V = TypeVar("V")

_MOST = 64  # more than there are refits (models.auto.prequential)


class Memory(Generic[V]):
    """Values by the data they were worked out from.

    Results that come in late make for another past: the oldest value is forgotten, so that the memory stays bounded.
    """

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._kept: dict[bytes, V] = {}

    def __len__(self) -> int:
        """How many values are kept."""
        return len(self._kept)

    def of(self, target: Dataset, work_out: Callable[[], V]) -> V:
        """The value for these data, worked out where it is not kept."""
        parts = (target.X, target.y, *(() if target.error_var is None else (target.error_var,)))
        key = b"".join(part.cpu().numpy().tobytes() for part in parts)
        if key not in self._kept:
            value = work_out()
            while len(self._kept) >= self._most:
                self._kept.pop(next(iter(self._kept)))
            self._kept[key] = value
        return self._kept[key]
