"""A parameter as people describe it: its kind, range, choices and unit."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from headstart.errors import MissingExtraError
from headstart.sources.files.unit_names import with_unit

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

__all__ = ["MOST_USED", "Kind", "Parameter", "nearest"]

MOST_USED = 500  # rows of a past file, unless somebody says otherwise: a fit takes time with the cube of their number


class Kind(StrEnum):
    """What the values of a parameter are."""

    FLOAT = "float"
    INT = "int"
    CATEGORY = "category"
    FIXED = "fixed"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a campaign. ``step`` None means any value, or for whole numbers every one.

    ``descriptors`` is the file with numbers that describe its categories, or the columns of the past files that do.
    ``withdrawn`` are categories that were run and are not to be suggested any more, ``before`` is the value that rows
    were run with which do not have it, and ``recorded`` are values that a fixed parameter had in them.
    """

    name: str
    kind: Kind
    low: float = math.nan
    high: float = math.nan
    log: bool = False
    step: float | None = None
    choices: tuple[str, ...] = ()
    value: float | str = ""
    unit: str = ""
    descriptors: str | tuple[str, ...] = ""
    withdrawn: tuple[str, ...] = ()
    before: float | str | None = None
    recorded: tuple[Any, ...] = ()

    @property
    def label(self) -> str:
        """Name and unit for people."""
        return with_unit(self.name, self.unit)

    @property
    def is_text(self) -> bool:
        """Whether its values are text."""
        return self.kind is Kind.CATEGORY or (self.kind is Kind.FIXED and isinstance(self.value, str))

    def distribution(self) -> BaseDistribution:
        """The same as one of Optuna's distributions."""
        try:
            from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
        except ImportError as error:
            raise MissingExtraError(
                "A campaign folder needs Optuna, which is not installed: pip install optuna."
            ) from error
        match self.kind:
            case Kind.CATEGORY:
                return CategoricalDistribution((*self.choices, *self.withdrawn))
            case Kind.FIXED if self.recorded and self.is_text:
                return CategoricalDistribution(tuple(dict.fromkeys((self.value, *self.recorded))))
            case Kind.FIXED if self.recorded:
                values = [float(self.value), *map(float, self.recorded)]
                return FloatDistribution(min(values), max(values))
            case Kind.FIXED:
                return CategoricalDistribution((self.value,))
            case Kind.INT:
                return IntDistribution(int(self.low), int(self.high), log=self.log, step=int(self.step or 1))
            case Kind.FLOAT:
                return FloatDistribution(self.low, self.high, log=self.log, step=self.step)

    def with_recorded(self, values: Iterable[Any]) -> Parameter:
        """A fixed parameter with the other values that rows were run with: they stay as evidence."""
        if self.kind is not Kind.FIXED:
            return self
        others = [v for v in dict.fromkeys(values) if v is not None and v == v and v != self.value]
        return replace(self, recorded=tuple(others)) if others else self

    def rounded(self, value: Any, digits: int = 3) -> Any:
        """A value that somebody can set: about ``digits`` digits of the range, or of the value on a log scale."""
        if self.kind is Kind.FIXED:
            return self.value
        if self.kind is not Kind.FLOAT or self.step is not None:
            return value
        places = digits - 1 - self._leading(abs(value) if self.log else (self.high - self.low) / 10)
        return min(max(round(float(value), places), self.low), self.high)

    def unit_of(self, digits: int) -> float:
        """The last place of values with so many digits of the range."""
        return float(f"1e{self._leading((self.high - self.low) / 10) + 1 - digits}")

    @staticmethod
    def _leading(size: float) -> int:
        return math.floor(math.log10(size))

    def on_step(self, value: float) -> bool:
        """Whether a value is one of those that steps, or whole numbers, reach from the lower end."""
        step = self.step or (1 if self.kind is Kind.INT else None)
        if step is None:
            return True
        steps = (value - self.low) / step
        return abs(steps - round(steps)) < 1e-6


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint at the known word that looks most like this one, or all of them."""
    known = list(known)
    lower = {k.lower(): k for k in known}
    close = difflib.get_close_matches(word.lower(), lower, n=1, cutoff=0.6)
    return f"Did you mean {lower[close[0]]!r}?" if close else f"The known ones are {', '.join(map(repr, known))}."
