"""How far learning is: what is being done, which share of it is done, and how long it will probably take."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

# Before anything is done, so many seconds are expected per unit of cost, which is a second on an ordinary processor
_EXPECTED = 1.0


@dataclass(frozen=True, slots=True)
class HowFar:
    """What is being done, the share of it that is done (0 to 1), and the seconds so far and probably left."""

    doing: str
    share: float
    seconds: float
    left: float

    def __str__(self) -> str:
        """As a line of a log has it."""
        return f"{self.doing}: {self.share:.0%} after {in_words(self.seconds)}, about {in_words(self.left)} to go"


Told = Callable[[HowFar], None]


@dataclass
class LearningProgress:
    """Counts the cost that is done of what was announced, and tells at every step; nobody, if nobody wants to know."""

    tell: Told | None = None
    clock: Callable[[], float] = time.monotonic
    _doing: str = ""
    _total: float = 0.0
    _done: float = 0.0
    _began: float = field(default=0.0)

    def begin(self, doing: str, cost: float) -> None:
        """Something of this cost (seconds on an ordinary processor) begins."""
        self._doing, self._total, self._done, self._began = doing, cost, 0.0, self.clock()
        self._say()

    def did(self, cost: float) -> None:
        """So much of it is done."""
        self._done += cost
        self._say()

    def _say(self) -> None:
        if self.tell is None:
            return
        seconds = self.clock() - self._began
        left = self._total - self._done
        rate = seconds / self._done if self._done > 0 else _EXPECTED
        share = min(self._done / self._total, 1.0) if self._total > 0 else 1.0
        self.tell(HowFar(self._doing, share, seconds, max(left * rate, 0.0)))


def in_words(seconds: float) -> str:
    """3 s, 2 min or 1.5 h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
