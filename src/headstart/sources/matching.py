"""How the values a source recorded become values of a parameter of the new space.

parameter is     the source's value is           it becomes
numeric          a number, or text of one        that number, also outside the range or between grid values
                 ≤ 0 on a log axis, or missing   nothing: the row cannot be placed
categorical      a category, or its text         that category ("3" is 3, "true" is True)
                 missing, and None a category    None, also where it was one of the source's alone
                 anything else                   a level of its own
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

if TYPE_CHECKING:
    from headstart.data.ranges import Distribution

# With more unknown categories than this the column means something else, such as a number or a name
_MAX_NEW_LEVELS = 20


@dataclass(frozen=True)
class Matched:
    """The values, where there are some (``ok``), and the levels that the new space does not know.

    ``problem`` says why the column cannot be used at all. Rows in ``absent`` were run without the parameter: they are
    ``ok`` and have no value.
    """

    values: list[Any]
    ok: NDArray[np.bool_]
    new_levels: tuple[Any, ...] = ()
    problem: str = ""
    absent: NDArray[np.bool_] | None = None

    def with_absent(self, column: Sequence[Any]) -> Matched:
        """The same for a column whose empty cells stand for a row that was run without the parameter.

        NaN always does, and None where it is no category.
        """
        empty = np.array([is_missing(v) and (v is not None or not ok) for v, ok in zip(column, self.ok, strict=True)])
        return replace(self, ok=self.ok | empty, absent=empty) if empty.any() and not empty.all() else self


def match(column: Sequence[Any], distribution: Distribution, *, none: bool = False) -> Matched:
    """The column's values as values of the parameter; ``none`` says that None was a category where they are from."""
    if hasattr(distribution, "choices"):
        return _match_levels(column, distribution.choices, none=none)
    return _match_numbers(column, log=bool(getattr(distribution, "log", False)))


def _match_numbers(column: Sequence[Any], *, log: bool) -> Matched:
    numbers = [_number(value) for value in column]
    ok = np.array([number is not None and (number > 0 or not log) for number in numbers], dtype=bool)
    given = [value for value in column if not is_missing(value)]
    problem = ""
    if given and all(number is None for number in numbers):
        problem = f"numbers are needed, but it holds {given[0]!r}"
    elif given and not ok.any():
        problem = "positive numbers are needed for its log axis, but it has none"
    return Matched(numbers, ok, problem=problem)


def _match_levels(column: Sequence[Any], choices: Sequence[Any], *, none: bool) -> Matched:
    values: list[Any] = []
    new: list[Any] = []
    ok = np.ones(len(column), dtype=bool)
    known = 0
    for i, raw in enumerate(column):
        value = _plain(raw)
        level = _choice(value, choices)
        if level is not None:
            known += 1
            values.append(choices[level])
            continue
        if is_missing(value) and not (none and value is None):
            ok[i] = False
            values.append(None)
            continue
        other = _choice(value, new)
        if other is None:
            new.append(value)
        values.append(value if other is None else new[other])
    problem = ""
    if len(new) > _MAX_NEW_LEVELS:
        problem = f"it holds {len(new)} different values that are no category, such as {new[0]!r}"
    elif new and not known and all(isinstance(value, float) for value in new):
        problem = f"categories are needed, but it holds numbers such as {new[0]!r}"
    return Matched(values, ok, () if problem else tuple(new), problem)


def _choice(value: Any, choices: Sequence[Any]) -> int | None:
    """The number of the category that the value stands for."""
    if is_missing(value):
        return next((i for i, choice in enumerate(choices) if is_missing(choice)), None)
    for same in _SAME:
        for i, choice in enumerate(choices):
            if not is_missing(choice) and same(value, choice):
                return i
    return None


def _same_text(a: Any, b: Any) -> bool:
    """A value read from text is text: "3" is 3, "3.0" is 3 as well, and "true" is True."""
    if not isinstance(a, str) and not isinstance(b, str):
        return False
    first, second = str(a).strip(), str(b).strip()
    if isinstance(a, bool) or isinstance(b, bool):
        return first.casefold() == second.casefold()
    if first == second:
        return True
    if isinstance(a, str) and isinstance(b, str):
        return False
    numbers = _number(first), _number(second)
    return None not in numbers and numbers[0] == numbers[1]


# When a value is a category, the surest first; 0 and 1, as a table has them, are False and True
_SAME: tuple[Callable[[Any, Any], bool], ...] = (
    lambda a, b: type(a) is type(b) and bool(a == b),
    lambda a, b: isinstance(a, bool) == isinstance(b, bool) and bool(a == b),
    _same_text,
    lambda a, b: isinstance(a, bool | int | float) and isinstance(b, bool | int | float) and bool(a == b),
)


def _number(value: Any) -> float | int | None:
    """The number a value stands for, and None where there is none."""
    value = _plain(value)
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool):
        return int(value)
    if not isinstance(value, Real) or not math.isfinite(value):
        return None
    return value if isinstance(value, int) else float(value)


def _plain(value: Any) -> Any:
    """NumPy's scalars as Python's own."""
    return value.item() if isinstance(value, np.generic) else value


def is_missing(value: Any) -> bool:
    """Whether the cell is empty: None, NaN, or one of pandas' own."""
    if value is None or value is pd.NA or value is pd.NaT:
        return True
    return isinstance(value, Real) and math.isnan(value)
