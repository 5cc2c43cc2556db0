"""Known errors of results: which column of a table, or user attribute of a trial, has the standard error of what.

error="yield_sd"                        of the one objective that a source has, or that counts
error={"yield": "yield_sd", "0": "s"}   of the objective of that name, or number

A result without one has a typical error (``sources.raw.error_var``); one that is no number above 0 is a mistake.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from headstart.errors import InputError
from headstart.sources.matching import is_missing
from headstart.sources.raw import INFINITE

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial


@dataclass(frozen=True)
class ErrorNames:
    """The column or attribute with the errors of the one objective, and of single ones."""

    common: str | None = None
    own: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, error: str | Mapping[str, str] | None) -> Self:
        """What the argument ``error`` says."""
        if error is None or isinstance(error, str):
            return cls(error)
        if isinstance(error, Mapping) and all(isinstance(part, str) for pair in error.items() for part in pair):
            return cls(None, dict(error))
        raise InputError(
            "error must be the name of a column or user attribute with standard errors, or {objective: name}, but it "
            f"is {error!r}."
        )

    @property
    def every(self) -> tuple[str, ...]:
        """All columns and attributes that are named."""
        return tuple(dict.fromkeys([*([] if self.common is None else [self.common]), *self.own.values()]))

    def of_objective(self, name: str, place: int, count: int, where: str, chosen: int | None = None) -> str | None:
        """That of objective number ``place`` of ``count``; None where nothing is said of it.

        ``chosen`` is the number of the one that counts, if somebody has said so. Fails where nobody has, and it is not
        clear of which one the errors are.
        """
        for key in (name, str(place)):
            if key in self.own:
                return self.own[key]
        if count == 1 and len(self.own) == 1:
            return next(iter(self.own.values()))
        if self.common is None or count == 1 or chosen is not None:
            return self.common if count == 1 or chosen == place else None
        raise InputError(
            f"{where} has {count} objectives, so it is not clear of which one {self.common!r} is the error. Give "
            f"error={{{name!r}: {self.common!r}}}, with the objective's name or number."
        )


def stated_errors(
    values: Sequence[Any], what: str, where: Callable[[int], str]
) -> tuple[NDArray[np.float64], list[str]]:
    """The errors, NaN where there is none, and a sentence for each that is no number above 0."""
    found, complaints = np.full(len(values), math.nan), []
    for i, value in enumerate(values):
        if is_missing(value):
            continue
        number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
        if 0 < number < INFINITE:
            found[i] = number
        else:
            complaints.append(
                f"{where(i)}: {what} = {value!r} is the standard error of a result, which must be a number above 0. "
                "Correct it, or leave it out: then a typical one is taken."
            )
    return found, complaints


def errors_of_trials(
    trials: Sequence[FrozenTrial], attribute: str | None, where: str
) -> tuple[NDArray[np.float64] | None, list[str]]:
    """The errors in a user attribute of the trials, None where no trial has it, and what is wrong with some."""
    values = [None if attribute is None else trial.user_attrs.get(attribute) for trial in trials]
    if all(value is None for value in values):
        return None, []
    return stated_errors(values, f"the user attribute {attribute!r}", lambda i: f"{where}, trial {trials[i].number}")
