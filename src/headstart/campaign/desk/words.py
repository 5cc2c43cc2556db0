"""How numbers stand in tables that people read, on the command line and on the page."""

from __future__ import annotations

import math
from typing import Any

# More decimal places, or numbers as large, are written with a power of ten
_PLACES, _LARGE = 6, 1e6


def cell(value: Any) -> str:
    """A number with six digits, or the text."""
    return f"{value:.6g}" if isinstance(value, int | float) else str(value)


def with_interval(value: float, low: float, high: float) -> str:
    """82 (71 … 90): as many digits as the width of the interval has two; "not known yet" where there is no number."""
    if math.isnan(value):
        return "not known yet"
    places = max(0, 1 - math.floor(math.log10(high - low))) if high > low else 3
    if places > _PLACES or max(abs(low), abs(high)) >= _LARGE:
        return f"{value:.3g} ({low:.3g} … {high:.3g})"
    value, low, high = (round(number, places) + 0.0 for number in (value, low, high))  # + 0.0: not −0.0
    return f"{value:.{places}f} ({low:.{places}f} … {high:.{places}f})"


def count(n: int, what: str) -> str:
    """1 row, 2 rows."""
    return f"{n} {what}{'' if n == 1 else 's'}"


def percent(value: float) -> str:
    """0.4 as 40 %."""
    return f"{100 * value:.0f} %"
