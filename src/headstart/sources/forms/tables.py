"""DataFrames: tables of anybody's, and those that ``Study.trials_dataframe`` makes.

columns                     are
params_x, (params, x)       the parameter x of a table of trials; an empty cell: the trial was run without it
value, value_loss           its one objective, the second with a name
values_0, values_loss       one of its objectives, by number or name
state                       tells which trials are finished
anything else               nothing, in a table of trials; in any other one, a parameter, or the objective if
                            somebody says so
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from headstart.errors import InputError, UnusableSourceError
from headstart.sources.forms.found import Wanted
from headstart.sources.raw import RawTask

__all__ = ["task_of_frame"]

_PARAMETER = "params_"
_RESULTS = ("value_", "values_")


def task_of_frame(frame: pd.DataFrame, wanted: Wanted, name: str, origin: str, *, first_row: int = 1) -> RawTask:
    """The rows of a DataFrame. ``first_row`` is what the user calls the first one."""
    if not len(frame):
        raise UnusableSourceError(f"{origin} has no rows: nothing was measured there.")
    frame = frame.set_axis([_flat(column) for column in frame.columns], axis="columns")
    twice = frame.columns[frame.columns.duplicated()]
    if len(twice):
        raise InputError(f"{origin}: column {twice[0]!r} appears more than once. Rename or delete one.")
    parameters = [column for column in frame.columns if column.startswith(_PARAMETER)]
    results = {column: _metric(column) for column in frame.columns if column == "value" or column.startswith(_RESULTS)}
    if parameters and (results or wanted.objective in frame.columns):
        return _of_trials(frame, parameters, results, wanted, name, origin, first_row)
    objective = wanted.objective
    there = ", ".join(repr(column) for column in frame.columns)
    if objective is None:
        raise InputError(f"{origin}: which column holds the results is not said. Give objective='...', one of {there}.")
    if objective not in frame.columns:
        raise InputError(f"{origin}: there is no column {objective!r} with the results. It has {there}.")
    rows = frame.drop(columns=objective).reset_index(drop=True)
    return RawTask(name, rows, _numbers(frame[objective], objective, origin, first_row), origin=origin)


def _of_trials(
    frame: pd.DataFrame,
    parameters: list[str],
    results: dict[str, str],
    wanted: Wanted,
    name: str,
    origin: str,
    first_row: int,
) -> RawTask:
    column, notes = _result(frame, results, wanted, origin)
    done = pd.Series(True, index=frame.index)
    if "state" in frame.columns:
        done = frame["state"].astype(str).str.rpartition(".")[2].str.upper() == "COMPLETE"
    if not done.any():
        raise UnusableSourceError(f"{origin} has no finished trial to learn from ({len(frame)} trials).")
    if not done.all():
        notes += (f"{int((~done).sum())} unfinished trials are left out",)
    rows = frame.loc[done.to_numpy(), parameters].rename(columns=lambda parameter: parameter.removeprefix(_PARAMETER))
    y = _numbers(frame[column], column, origin, first_row)[done.to_numpy()]
    return RawTask(name, rows.reset_index(drop=True), y, origin=origin, notes=notes, conditional=True)


def _result(frame: pd.DataFrame, results: dict[str, str], wanted: Wanted, origin: str) -> tuple[str, tuple[str, ...]]:
    """The column with the objective that is wanted, by its own name or its metric's, and what there is to say."""
    objective = wanted.objective
    if objective is not None and objective in frame.columns:
        return objective, ()
    for column, metric in results.items():
        if objective == metric:
            return column, ()
    if len(results) == 1 and not wanted.of_this_one:
        (column,) = results
        return column, () if objective is None else (f"its results are {column!r}, which is taken as {objective!r}",)
    there = ", ".join(repr(metric) for metric in results.values())
    if objective is None:
        raise InputError(
            f"{origin} has {len(results)} objectives, {there}, but a source needs one. Name it with objective='...'."
        )
    raise InputError(f"{origin} has no objective {objective!r}. There {'are' if len(results) > 1 else 'is'} {there}.")


def _flat(column: Any) -> str:
    """The name of a column, of several levels as ``trials_dataframe`` would write it: params_x for (params, x)."""
    return "_".join(str(part) for part in column if str(part)) if isinstance(column, tuple) else str(column)


def _metric(column: str) -> str:
    """The name of the objective in a column: loss for value_loss, 0 for values_0, value for value."""
    return column.partition("_")[2] or column


def _numbers(column: pd.Series[Any], objective: str, origin: str, first_row: int) -> NDArray[np.float64]:
    """The results; NaN where the cell is empty."""
    is_time = column.dtype.kind in "mM"  # which pandas would count in nanoseconds
    numbers = pd.Series(np.nan, index=column.index) if is_time else pd.to_numeric(column, errors="coerce")
    text = numbers.isna() & column.notna() & (column.astype(str).str.strip() != "")
    if text.any():
        row = int(np.flatnonzero(text)[0])
        raise InputError(
            f"{origin}, row {row + first_row}: {objective} = {column.iloc[row]!r} is not a number. "
            "Correct it, or leave the cell empty; rows without a result are ignored."
        )
    values: NDArray[np.float64] = numbers.to_numpy(dtype=np.float64, na_value=np.nan)
    return values
