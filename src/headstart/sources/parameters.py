"""A parameter as people describe it: its kind, range, choices and unit."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from headstart.data.ranges import DiscreteNumbers, even_in_ratio, numbers_in_words
from headstart.errors import InputError, MissingExtraError
from headstart.sources.files.cells import number
from headstart.sources.files.names import split_unit, with_unit

if TYPE_CHECKING:
    from headstart.data.ranges import Distribution

MOST_USED = 2000  # rows of a past file, unless somebody says otherwise: they are learnt in three seconds, every time


class Kind(StrEnum):
    """What the values of a parameter are."""

    FLOAT = "float"
    INT = "int"
    CATEGORY = "category"
    FIXED = "fixed"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a campaign. ``step`` None means any value, or for whole numbers every one.

    A number may have a list of ``values`` instead: these alone are suggested, and ``low`` and ``high`` are its ends.
    ``descriptors`` is the file with numbers that describe its categories, or the columns of the past files that do.
    ``withdrawn`` are categories that were run and are not to be suggested any more, ``before`` is the value that rows
    were run with which do not have it, and ``recorded`` are values that a fixed parameter had in them.
    """

    name: str
    kind: Kind
    low: float = math.inf  # no range: below this, above that; NaN would make it unequal to itself
    high: float = -math.inf
    log: bool = False
    step: float | None = None
    values: tuple[float, ...] = ()
    choices: tuple[str, ...] = ()
    value: float | str = ""
    unit: str = ""
    descriptors: str | tuple[str, ...] = ""
    withdrawn: tuple[str, ...] = ()
    before: float | str | None = None
    recorded: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        """Sort the values, and take the ends of the range from them."""
        if self.values:
            values = tuple(sorted({int(v) if self.kind is Kind.INT and v == int(v) else float(v) for v in self.values}))
            for name, value in (("values", values), ("low", values[0]), ("high", values[-1])):
                object.__setattr__(self, name, value)

    @property
    def label(self) -> str:
        """Name and unit for people."""
        return with_unit(self.name, self.unit)

    @property
    def is_text(self) -> bool:
        """Whether its values are text."""
        return self.kind is Kind.CATEGORY or (self.kind is Kind.FIXED and isinstance(self.value, str))

    @property
    def span(self) -> str:
        """What may be set, in short: 40 … 120, steps of 5."""
        if self.kind is Kind.CATEGORY:
            return ", ".join(self.choices)
        if self.kind is Kind.FIXED:
            return f"always {self.value}"
        more = ", log" if self.log else f", steps of {self.step:g}" if self.step is not None else ""
        return (numbers_in_words(self.values) if self.values else f"{self.low:g} … {self.high:g}") + more

    @property
    def wrong(self) -> tuple[str, str] | None:
        """The field of a range that cannot be, and a sentence on what is wrong with it."""
        low, high, step = self.low, self.high, self.step
        if self.values and (low == high or not all(map(math.isfinite, self.values))):
            told = numbers_in_words(self.values)
            return (
                "values",
                f"Two different numbers are needed at least, but they are {told}. Add one, or fix the value.",
            )
        if self.values and step is not None:
            return "step", "A step goes with no list of values. Leave one of the two out."
        if low >= high and self.kind in (Kind.INT, Kind.FLOAT):
            how = "Swap them" if low > high else "Widen the range, or give it one fixed value"
            return "low", f"{low:g} is not below {high:g}. {how}."
        if self.log and low <= 0:
            where = "values" if self.values else "low"
            return where, f"A log scale needs a lower end above 0, but it is {low:g}. Raise it, or use no log scale."
        if step is not None and self.log:
            return "step", "A step goes with no log scale. Leave one of the two out."
        if step is not None and not 0 < step <= high - low:
            return "step", f"A step must be positive and within the range, but it is {step:g}."
        listed = [("values", value) for value in self.values]
        for name, value in listed or (("low", low), ("high", high), ("step", step)):
            if self.kind is Kind.INT and value is not None and value != int(value):
                what = "values" if listed else "ends and a whole step"
                return name, f"Whole numbers need whole {what}, but it is {value:g}."
        return None

    def distribution(self) -> Distribution:
        """The same as one of Optuna's distributions, or as ``DiscreteNumbers``."""
        if self.values:
            return DiscreteNumbers(self.values, log=self.log)
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
                return IntDistribution(int(self.low), int(self._last), log=self.log, step=int(self.step or 1))
            case Kind.FLOAT:
                return FloatDistribution(self.low, self._last, log=self.log, step=self.step)

    @property
    def _last(self) -> float:
        """The highest value that steps from the lower end reach."""
        if self.step is None:
            return self.high
        return float(f"{self.low + math.floor((self.high - self.low) / self.step + 1e-9) * self.step:.12g}")

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
        if self.kind is not Kind.FLOAT or self.step is not None or self.values:
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
        """Whether a value is one of the list, or of those that steps, or whole numbers, reach from the lower end."""
        if self.values:
            return any(math.isclose(value, own, rel_tol=1e-9, abs_tol=1e-12) for own in self.values)
        step = self.step or (1 if self.kind is Kind.INT else None)
        if step is None:
            return True
        steps = (value - self.low) / step
        return abs(steps - round(steps)) < 1e-6


_RANGE = re.compile(
    r"(?P<low>.+?)\s*(?:\.\.\.?|…)\s*(?P<high>\S+)(?P<words>(?:\s+[a-z]+(?:\s+[\d.,]+)?)*)", re.IGNORECASE
)


def parameter_of_text(text: str) -> Parameter:
    """A parameter as somebody writes it: ``T=20..120``, ``n=1..9 int``, ``c=0.001..1 log``, ``T=20..120 step 5``.

    Categories have a bar between them, ``solvent=DMF|THF``, and so have the values of a list, ``r=0.4|0.8|1.2``, while
    numbers that are only names are ``lot=1|2|3 category``. Whole numbers are said to be such: 20 … 120 may be either.
    """
    name, equals, told = (part.strip() for part in text.partition("="))
    example = "as in 'T=20..120', 'n=1..9 int', 'c=0.001..1 log', 'r=0.4|0.8|1.2' or 'solvent=DMF|THF'"
    if not (name and equals and told):
        raise InputError(f"parameter must be NAME=LOW..HIGH or NAME=A|B, {example}, but it is {text!r}.")
    unit = split_unit(name)[1]
    if "|" in told:
        names = told.removesuffix(" category")
        choices = tuple(choice.strip() for choice in names.split("|"))
        values = [value for choice in choices if (value := number(choice, ".")) is not None]
        if len(values) == len(choices) and names == told:
            kind = Kind.INT if all(value == int(value) for value in values) else Kind.FLOAT
            listed = Parameter(name, kind, values=tuple(values), log=even_in_ratio(sorted(set(values))), unit=unit)
            if listed.wrong:
                raise InputError(f"parameter {text!r}: {listed.wrong[1]}")
            return listed
        if not all(choices) or len({choice.casefold() for choice in choices}) < len(choices):
            raise InputError(f"parameter {text!r}: every category needs a name of its own.")
        return Parameter(name, Kind.CATEGORY, choices=choices, unit=unit)
    found = _RANGE.fullmatch(told)
    if found is None:
        raise InputError(f"parameter {text!r} is no range and no list of categories; write it {example}.")
    low, high = (number(found[end], None) for end in ("low", "high"))
    words = found["words"].split()
    step = number(words.pop(words.index("step") + 1), None) if "step" in words[:-1] else None
    kinds = [word.lower() for word in words if word != "step"]
    if low is None or high is None or set(kinds) - {"int", "log", "float"} or ("step" in words and step is None):
        raise InputError(f"parameter {text!r} is not understood; write it {example}.")
    kind = Kind.INT if "int" in kinds else Kind.FLOAT
    made = Parameter(name, kind, low=low, high=high, log="log" in kinds, step=step, unit=unit)
    if made.wrong:
        raise InputError(f"parameter {text!r}: {made.wrong[1]}")
    return made
