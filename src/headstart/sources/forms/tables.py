"""Tables as past tasks: DataFrames, those that ``Study.trials_dataframe`` makes, files, and ``Dataset``s.

In a table of trials, params_x or (params, x) is the parameter x, and an empty cell of it says that the trial was run
without it; value, value_loss, values_0 and values_loss are objectives, user_attrs_sd the errors if ``error`` is "sd",
user_attrs_lot the batches if ``batch`` is "lot", and system_attrs_constraints:heat the constraint "heat". Of any other
table every column is a parameter, unless somebody says that it is an objective, the error of one, a constraint, or the
batch. Files in .parquet and .pq are read by pyarrow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from headstart.data.dataset import Dataset, require_unit_cube
from headstart.data.space import Space
from headstart.errors import InputError, MissingExtraError, UnusableSourceError
from headstart.sources.batches import Batches
from headstart.sources.columns import read_frame
from headstart.sources.files.cells import is_failure, is_missing, number
from headstart.sources.files.names import meant_by
from headstart.sources.files.workbooks import workbook_file
from headstart.sources.forms.naming import Wanted, stated_errors
from headstart.sources.optuna_api import CONSTRAINT_COLUMN
from headstart.sources.raw import RawObjective, RawTask

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

_PARAMETER = "params_"
_RESULTS = ("value_", "values_")
_ATTRIBUTE = "user_attrs_"


def task_of_frame(frame: pd.DataFrame, wanted: Wanted, name: str, origin: str, *, first_row: int = 1) -> RawTask:
    """The rows of a DataFrame. ``first_row`` is what the user calls the first one."""
    if not len(frame):
        raise UnusableSourceError(f"{origin} has no rows: nothing was measured there.")
    frame = frame.set_axis([_flat(column) for column in frame.columns], axis="columns")
    frame = frame.set_axis(range(first_row, first_row + len(frame)), axis="index")
    twice = frame.columns[frame.columns.duplicated()]
    if len(twice):
        raise InputError(f"{origin}: column {twice[0]!r} appears more than once. Rename or delete one.")
    parameters = [column for column in frame.columns if column.startswith(_PARAMETER)]
    results = [column for column in frame.columns if column == "value" or column.startswith(_RESULTS)]
    metrics = {column.partition("_")[2] or "0": column for column in results}  # loss of value_loss, 0 of values_0
    of_trials = bool(parameters) and bool(metrics or {*wanted.objectives} & {*frame.columns})
    if not of_trials:
        names = (*wanted.columns, *filter(None, [wanted.batch.name]))
        frame = frame.rename(columns=meant_by(names, list(frame.columns)))
    at = _column(frame, wanted.batch.name)
    batch = None if at is None else wanted.batch.numbered(list(frame[at]), origin)
    columns, notes = _objectives(frame, metrics if of_trials else {}, wanted, origin)
    if of_trials and "state" in frame.columns:
        done = frame["state"].astype(str).str.rpartition(".")[2].str.upper() == "COMPLETE"
        if not done.any():
            raise UnusableSourceError(f"{origin} has no finished trial to learn from ({len(frame)} trials).")
        notes += () if done.all() else (f"{int((~done).sum())} unfinished trials are left out",)
        frame = frame[done]
    listed = [c for c in frame.columns if of_trials and c.startswith(CONSTRAINT_COLUMN)]
    constraints = {c.removeprefix(CONSTRAINT_COLUMN): c for c in listed}
    constraints |= {key: column for key, column in wanted.constraints.items() if column in frame.columns}
    lacking = [column for column in wanted.constraints.values() if column not in frame.columns]
    notes += tuple(f"it has no column {column!r}" for column in lacking if not of_trials)
    measured, errors = _measured(frame, columns, wanted, origin)
    limited, theirs = _limited(frame, wanted, origin)
    if not of_trials:
        taken = {*columns.values(), *constraints.values(), *errors, *theirs, at}
        parameters = [column for column in frame.columns if column not in taken]
    rows = frame[parameters].apply(_settings).reset_index(drop=True)
    nothing = RawObjective(np.full(len(rows), np.nan))
    first = next(iter(measured.values()), nothing)
    task = RawTask(
        name,
        rows.rename(columns=lambda column: column.removeprefix(_PARAMETER)) if of_trials else rows,
        first.y,
        origin=origin,
        notes=notes,
        conditional=of_trials,
        objectives=measured,
        constraints={key: _numbers(frame[column], origin) for key, column in constraints.items()},
        limited=limited,
        error=first.error,
        batch=None if batch is None else batch.only(frame.index.to_numpy() - first_row),
    )
    return wanted.chosen(task) if measured else task


def _column(frame: pd.DataFrame, name: str | None) -> str | None:
    """The column of this name, or of the user attribute; None without one."""
    return None if name is None else next((c for c in (name, f"{_ATTRIBUTE}{name}") if c in frame.columns), None)


def _objectives(
    frame: pd.DataFrame, metrics: Mapping[str, str], wanted: Wanted, origin: str
) -> tuple[dict[str, str], tuple[str, ...]]:
    """The columns of the objectives by their names: every one of a table of trials, the wanted ones of another.

    ``metrics`` are the columns of results in a table of trials, by number or metric. There are none where a table
    knows constraints or limited quantities alone.
    """
    every = list(frame.columns)
    if metrics:
        names = {column: name for name, column in metrics.items()}
        others = {one: one for one in wanted.objectives if one in every and one not in (*names, *metrics)}
        renamed = {
            next((w for w in wanted.objectives if w == column), name): column for name, column in metrics.items()
        }
        return {**renamed, **others}, ()
    limited = {at for name in wanted.limited for at in (name, f"{_ATTRIBUTE}{name}")}
    bounded = ({*wanted.constraints.values()} | limited) & {*every}
    if not wanted.objectives:
        there = ", ".join(repr(column) for column in every if column not in bounded)
        named = f"{origin}: which column holds the results is not said. Give objective='...', one of {there}"
        alone = (
            f"; if it has none and knows {', '.join(map(repr, sorted(bounded)))} alone, give the name they would have"
        )
        raise InputError(f"{named}{alone if bounded else ''}.")
    found = {objective: objective for objective in wanted.objectives if objective in every}
    lacking = [objective for objective in wanted.objectives if objective not in every]
    if lacking and (wanted.of_this_one or not (found or bounded)):
        there = ", ".join(map(repr, every))
        nor = "".join(f", and none of a constraint, {column!r}" for column in wanted.constraints.values())
        has = f"{origin} has no column {lacking[0]!r}{nor}."
        raise InputError(f"{has} There {'are' if len(every) > 1 else 'is'} {there}.")
    return found, () if found else tuple(f"it has no column {objective!r}" for objective in lacking)


def _measured(
    frame: pd.DataFrame, columns: Mapping[str, str], wanted: Wanted, origin: str
) -> tuple[dict[str, RawObjective], list[str]]:
    """The results and errors of every objective, and the columns that hold the errors."""
    found, used = {}, []
    for objective, column in columns.items():
        y, error = _numbers(frame[column], origin), None
        named = wanted.error_of(objective, list(columns), origin)
        own = _column(frame, named)
        if own is not None:
            used.append(own)
            error = _errors(frame[own], y, origin)
        found[objective] = RawObjective(y, None, error)
    return found, used


def _limited(frame: pd.DataFrame, wanted: Wanted, origin: str) -> tuple[dict[str, RawObjective], list[str]]:
    """The quantities that the new task has limits on, and the columns that they and their errors stand in."""
    found, used = {}, []
    for name, attribute in wanted.limited.items():
        at, error = (_column(frame, n) for n in (name, attribute))
        if at is not None:
            y = _numbers(frame[at], origin)
            found[name] = RawObjective(y, None, None if error is None else _errors(frame[error], y, origin))
            used += [at, *([error] if error is not None else [])]
    return found, used


def _errors(column: pd.Series[Any], y: NDArray[np.float64], origin: str) -> NDArray[np.float64]:
    """The standard errors of the results; what is said of a row without a result does not count."""
    told = _emptied(column, partial(is_missing, numeric=True))
    numbers = pd.to_numeric(told, errors="coerce")
    values = [
        None if np.isnan(result) else raw if np.isnan(number) else number
        for raw, number, result in zip(told, numbers, y, strict=True)
    ]
    error, complaints = stated_errors(values, str(column.name), lambda i: f"{origin}, row {column.index[i]}")
    if complaints:
        raise InputError(complaints[0])
    return error


def _emptied(column: pd.Series[Any], says_nothing: Callable[[str], bool]) -> pd.Series[Any]:
    """The column without its cells of text that say nothing."""
    if pd.api.types.is_numeric_dtype(column.dtype) or column.dtype.kind in "mMb":
        return column
    nothing = [isinstance(value, str) and says_nothing(value) for value in column]
    return column.astype(object).mask(nothing, np.nan) if any(nothing) else column


def _settings(column: pd.Series[Any]) -> pd.Series[Any]:
    """A column of settings with nothing where a cell says so, as in a file: n/a, and among numbers also - or none."""
    told = list(_emptied(column, partial(is_missing, numeric=True)).dropna())
    numeric = bool(told) and all(not isinstance(value, str) or number(value) is not None for value in told)
    return _emptied(column, partial(is_missing, numeric=numeric))


def _flat(column: Any) -> str:
    """The name of a column, of several levels as ``trials_dataframe`` would write it: params_x for (params, x)."""
    return "_".join(str(part) for part in column if str(part)) if isinstance(column, tuple) else str(column)


def _numbers(column: pd.Series[Any], origin: str) -> NDArray[np.float64]:
    """The numbers in a column; NaN where the cell says nothing, or that the experiment failed."""
    told = _emptied(column, lambda cell: is_missing(cell, numeric=True) or is_failure(cell))
    is_time = column.dtype.kind in "mM"  # which pandas would count in nanoseconds
    numbers = pd.Series(np.nan, index=column.index) if is_time else pd.to_numeric(told, errors="coerce")
    text = numbers.isna() & told.notna()
    if text.any():
        row = text.idxmax()
        raise InputError(
            f"{origin}, row {row}: {column.name} = {column[row]!r} is not a number. "
            "Correct it, or leave the cell empty; rows without a result are ignored."
        )
    values: NDArray[np.float64] = numbers.to_numpy(dtype=np.float64, na_value=np.nan)
    return values


_PARQUET = (".parquet", ".pq")
_DATABASE = (".db", ".sqlite", ".sqlite3")


def task_of_file(path: Path, wanted: Wanted) -> RawTask:
    """The table in a file."""
    ending = path.suffix.lower()
    if ending in _DATABASE:
        raise InputError(f"{path} looks like a database: give its URL, 'sqlite:///{path}'.")
    if not workbook_file(path).exists():
        raise UnusableSourceError(f"{path}: there is no such file. Look at the spelling and at the folder.")
    if ending in _PARQUET:
        return task_of_frame(_parquet(path), wanted, path.stem, str(path))
    batch = wanted.batch
    frame = read_frame(path, measured=wanted.columns, text=batch.name if batch.drift is None else None)
    task = task_of_frame(frame, wanted, path.stem, str(path), first_row=2)
    # what is noted of a source is told with its name
    notes = (remark.removeprefix(str(path)).lstrip(":, ").rstrip(".") for remark in frame.attrs["remarks"])
    return replace(task, notes=(*task.notes, *notes))


def _parquet(path: Path) -> pd.DataFrame:
    try:
        return pd.read_parquet(path, engine="pyarrow")
    except ImportError as error:
        raise MissingExtraError(
            f"{path}: reading Parquet needs pyarrow. Install it with pip install 'headstart[parquet]', or use CSV."
        ) from error
    except (OSError, ValueError) as error:  # pyarrow's own errors are among both
        why = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"{path}: the file is not what its name says, or it is cut off ({why}).") from error


def task_of_dataset(data: Dataset, space: Mapping[str, BaseDistribution] | None, name: str) -> RawTask:
    """The values that the coordinates stand for, column by column of the space."""
    what = f"{name} (Dataset)"
    if space is None:
        raise InputError(
            f"{what}: its columns have no names. Give the sampler space={{name: distribution, ...}} in the order of "
            "the columns, or pass a DataFrame."
        )
    if data.batch_shape:
        raise InputError(f"{what}: a source is one task, but this is a batch of shape {tuple(data.batch_shape)}.")
    places = Space.of(space)
    if data.d != places.d:
        raise InputError(
            f"{what}: the space has {places.d} columns in the unit cube (a categorical parameter has one a category), "
            f"but the data set has {data.d}."
        )
    require_unit_cube(data, what)
    rows = pd.DataFrame(places.decode(data.X), columns=list(places.names), dtype=object)
    y = data.y.cpu().numpy().copy()
    error = None if data.error_var is None else np.sqrt(data.error_var.cpu().numpy())
    batch = None
    if data.batch is not None:
        numbers = data.batch.cpu().numpy().copy()
        batch = Batches(numbers, {number: f"{number:g}" for number in numbers.tolist()}, data.drift)
    return RawTask(name, rows, y, distributions=dict(space), origin=what, error=error, batch=batch)
