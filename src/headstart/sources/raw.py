"""``RawTask``: one past task as it was recorded, in the user's own names, units and direction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from headstart.errors import InputError
from headstart.sources.batches import Batches

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

INFINITE = 1e150  # a number as large counts as infinite


@dataclass(frozen=True, eq=False)
class RawObjective:
    """The values of one of several objectives, and whether larger is better; None as in the new task.

    ``error`` is the standard error of every value as far as it is known, NaN elsewhere.
    """

    y: NDArray[np.float64]
    maximize: bool | None = None
    error: NDArray[np.float64] | None = None

    def only(self, rows: NDArray[np.intp]) -> RawObjective:
        """These of its values."""
        return replace(self, y=self.y[rows], error=None if self.error is None else self.error[rows])


@dataclass(frozen=True, eq=False)
class RawTask:
    """Evaluations of one task: a row of parameters each, and the objective's value, NaN where there is none.

    ``rows`` has one column per parameter, with the values as they were recorded. ``y`` is not flipped: whether larger
    is better says ``maximize``, None meaning that it goes as in the new task. ``distributions`` are known for Optuna
    studies only. ``origin`` is how messages call the place the task was read from, ``notes`` are decisions that were
    taken on reading it, and ``numbers`` are the rows' numbers in a spreadsheet program, None where they have none.
    ``conditional`` says that a row without a value of a parameter was run without that parameter, as in a study that
    asks for some of them in some branches only; otherwise such a value was not written down. ``identity``, the name of
    a study and when its first trial began, tells whether it is the new study itself. ``objectives`` are all that were
    measured, by name or number; ``named`` are those that were asked for, each with what it is called here (None where
    it is not there), and ``y`` is the first of these, or of all (sources.objectives). ``constraints`` are what must not
    be above 0, by key; NaN where a row has none. ``error`` is the standard error of every value of ``y`` as far as it
    is known, NaN elsewhere. ``limited`` are quantities in their own units, by name, that the new task has limits on.
    ``batch`` says which rows were run together, in one lot or on one day; None where nobody said so.
    """

    name: str
    rows: pd.DataFrame
    y: NDArray[np.float64]
    distributions: Mapping[str, BaseDistribution] | None = None
    origin: str = ""
    maximize: bool | None = None
    notes: tuple[str, ...] = ()
    numbers: tuple[int, ...] | None = None
    conditional: bool = False
    identity: tuple[str, datetime] | None = None
    objectives: Mapping[str, RawObjective] = field(default_factory=dict)
    named: Mapping[str, str | None] = field(default_factory=dict)
    constraints: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    limited: Mapping[str, RawObjective] = field(default_factory=dict)
    error: NDArray[np.float64] | None = None
    batch: Batches | None = None

    def __post_init__(self) -> None:
        """Check that rows and values belong together."""
        if self.y.ndim != 1 or len(self.y) != len(self.rows):
            raise InputError(
                f"{self.where}: every row needs one value of the objective, but there are {len(self.rows)} rows "
                f"and values of shape {self.y.shape}."
            )
        columns = [str(column) for column in self.rows.columns]
        double = sorted({column for column in columns if columns.count(column) > 1})
        if double:
            raise InputError(f"{self.where}: column {double[0]!r} appears more than once. Rename or delete one.")

    def only(self, rows: NDArray[np.intp]) -> RawTask:
        """The task with these of its rows, and all that belongs to them."""
        return replace(
            self,
            rows=self.rows.iloc[rows].reset_index(drop=True),
            y=self.y[rows],
            numbers=None if self.numbers is None else tuple(self.numbers[i] for i in rows),
            objectives={name: own.only(rows) for name, own in self.objectives.items()},
            constraints={key: values[rows] for key, values in self.constraints.items()},
            limited={name: own.only(rows) for name, own in self.limited.items()},
            error=None if self.error is None else self.error[rows],
            batch=None if self.batch is None else self.batch.only(rows),
        )

    @property
    def results(self) -> Mapping[str, RawObjective]:
        """Every objective by name or number; one of which nobody said the name is number 0."""
        return self.objectives or {"0": RawObjective(self.y, self.maximize, self.error)}

    @property
    def undecided(self) -> bool:
        """Whether there are several objectives and not one alone was asked for."""
        return len(self.objectives) > 1 and len(self.named) != 1

    @property
    def known(self) -> Mapping[str, RawObjective]:
        """All that was measured: every objective, constraint and limited quantity."""
        limits = {f"constraint {key}": RawObjective(values) for key, values in self.constraints.items()}
        return {**self.results, **limits, **self.limited}

    @property
    def where(self) -> str:
        """How messages call the task."""
        return self.origin or f"source {self.name!r}"

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the recorded parameters."""
        return tuple(str(column) for column in self.rows.columns)


def error_var(error: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
    """The variances behind known errors; a row without one has the median of the others, and nobody if none has any."""
    if error is None or np.isnan(error).all():
        return None
    known = np.where(np.isnan(error), np.nanmedian(error), error)
    return np.square(known)


def finite(y: NDArray[np.float64]) -> NDArray[np.float64]:
    """The values with ±inf as the largest and smallest finite one; NaN stays, and all are NaN if none is finite.

    Numbers whose squares are beyond all numbers are as good as infinite.
    """
    known = y[np.abs(y) < INFINITE]
    return np.clip(y, known.min(), known.max()) if len(known) else np.full_like(y, np.nan)
