"""Past data in the forms people have them, as ``RawTask``s.

    what is given                     parameters                    objective
    optuna.Study                      of its finished trials        their value, with the study's direction
    (storage_url, study_name)         the same, read from storage   the same
    study.trials_dataframe()          its params_* columns          its column "value"
    pandas.DataFrame                  every other column            the column named by ``objective``
    path of a CSV file                the same                      the same
    headstart.Dataset                 the columns, in the order     y
                                      and coordinates of ``space``
    RawTask                           itself

Only an Optuna study says whether larger is better; everything else is taken in the direction of the new task.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from headstart.data.dataset import Dataset, require_unit_cube
from headstart.data.space import Space
from headstart.errors import InputError
from headstart.sources.files.frames import read_csv, result_column
from headstart.sources.files.tables import read_table
from headstart.sources.raw import RawTask, finite

if TYPE_CHECKING:
    from optuna import Study
    from optuna.distributions import BaseDistribution

__all__ = ["is_same_study", "read_source", "read_sources"]

_KINDS = (
    "an Optuna Study, a pair (storage_url, study_name), a pandas DataFrame, the path of a CSV file, "
    "a headstart.Dataset or a RawTask"
)
_PARAMETER_PREFIX = "params_"  # of the columns of Study.trials_dataframe()


def read_sources(
    sources: Sequence[Any], *, objective: str | None = None, space: Mapping[str, BaseDistribution] | None = None
) -> tuple[RawTask, ...]:
    """All sources, in order, under names of their own."""
    if isinstance(sources, str | PathLike | pd.DataFrame | Dataset | RawTask) or not isinstance(sources, Sequence):
        raise InputError(f"sources must be a list, but it is a {type(sources).__name__}: put it in brackets.")
    if isinstance(sources, tuple) and len(sources) == 2 and all(isinstance(part, str) for part in sources):
        first, second = sources
        if "://" in first and "://" not in second:
            raise InputError("sources must be a list, but it is one (storage_url, study_name): put it in brackets.")
    tasks = [
        read_source(source, objective=objective, space=space, name=f"source {i + 1}")
        for i, source in enumerate(sources)
    ]
    for task in tasks:
        if np.isnan(finite(task.y)).all():
            raise InputError(f"{task.where} has no result to learn from ({len(task.rows)} rows): leave it out.")
    names = _distinct([task.name for task in tasks])
    return tuple(_renamed(task, name) for task, name in zip(tasks, names, strict=True))


def read_source(
    source: Any,
    *,
    objective: str | None = None,
    space: Mapping[str, BaseDistribution] | None = None,
    name: str = "source",
) -> RawTask:
    """One source as it was recorded.

    ``objective`` names the column with the results of DataFrames and CSV files, ``space`` gives the parameters of a
    ``Dataset``, whose columns have no names. ``name`` is for sources that have none themselves.
    """
    from optuna import Study

    match source:
        case RawTask():
            return source
        case Study():
            return _of_study(source, f"Study {source.study_name!r}")
        case Dataset():
            return _of_dataset(source, space, name)
        case pd.DataFrame():
            own = source.attrs.get("name", name)
            return _of_frame(source, objective, str(own), f"{own} (DataFrame)")
        case (str() as storage, (str() | None) as study_name):
            return _of_storage(storage, study_name)
        case str() | PathLike():
            text = str(source)
            if "://" in text:
                raise InputError(
                    f"{_without_password(text)!r} looks like a storage: give a pair (storage_url, study_name)."
                )
            return _of_file(Path(text), objective)
    raise InputError(f"A source must be {_KINDS}, but one is a {type(source).__name__}.")


# ── Optuna ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _of_study(study: Study, origin: str) -> RawTask:
    from optuna.study import StudyDirection
    from optuna.trial import TrialState

    if len(study.directions) != 1:
        raise InputError(
            f"{origin} has {len(study.directions)} objectives, but a source needs one. "
            "Make a DataFrame of its trials with the one that matters, and name it with objective=..."
        )
    trials = study.get_trials(deepcopy=False)
    finished = [trial for trial in trials if trial.state == TrialState.COMPLETE]
    if not finished:
        raise InputError(f"{origin} has no finished trial to learn from ({len(trials)} trials): leave it out.")
    names = dict.fromkeys(name for trial in finished for name in trial.params)
    columns = {n: pd.Series([t.params.get(n, math.nan) for t in finished], dtype=object) for n in names}
    counts = {state: sum(t.state == state for t in trials) for state in TrialState}
    left_out = [
        f"{count} {state.name.lower()}" for state, count in counts.items() if count and state != TrialState.COMPLETE
    ]
    return RawTask(
        name=study.study_name,
        rows=pd.DataFrame(columns, index=range(len(finished))),
        y=np.array([trial.value for trial in finished], dtype=np.float64),
        distributions={n: d for trial in finished for n, d in trial.distributions.items()},
        origin=origin,
        maximize=study.direction == StudyDirection.MAXIMIZE,
        conditional=True,
        notes=(f"{' and '.join(left_out)} trials have no final value and are left out",) if left_out else (),
    )


def _of_storage(storage: str, study_name: str | None) -> RawTask:
    import optuna

    shown = _without_password(storage)
    if "://" not in storage:
        raise InputError(
            f"A pair is (storage_url, study_name), but {shown!r} is no URL, as in 'sqlite:///past.db'. "
            "Give a CSV file as a path on its own."
        )
    file = re.fullmatch(r"sqlite(?:\+\w+)?:///(?!:memory:)(?!file:)([^?]+)(?:\?.*)?", storage)
    if file and not Path(file[1]).is_file():  # SQLite would make an empty one
        raise InputError(f"{shown}: there is no file {file[1]!r}. Check the path; /// is followed by a relative one.")
    try:
        backend = optuna.storages.get_storage(storage)
        names = sorted(optuna.get_all_study_names(backend))  # summaries would read the trials of every study
    except Exception as error:  # every database has its own
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InputError(
            f"The storage {shown} cannot be read: {_without_password(reason)} Check the URL, that the server runs, "
            "and that its driver is installed."
        ) from error
    if study_name is None and len(names) == 1:
        study_name = names[0]
    if study_name not in names:
        known = ", ".join(repr(name) for name in names[:10]) + (", …" if len(names) > 10 else "")
        asked = "which study to take is not said" if study_name is None else f"there is no study {study_name!r}"
        raise InputError(f"{shown}: {asked}. It has {known or 'no studies'}.")
    return _of_study(optuna.load_study(study_name=study_name, storage=backend), f"{shown}, study {study_name!r}")


def _without_password(text: str) -> str:
    return re.sub(r"(://[^:/@\s]*):[^@/\s]*@", r"\1:***@", text)


# ── tables ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _of_file(path: Path, objective: str | None) -> RawTask:
    frame = read_csv(path, ignore=() if objective is None else (objective,))
    if objective is not None:
        table = read_table(path)
        table.require(objective, "Say which one holds the results.")
        results = result_column(table, objective)  # "failed" is none
        frame[objective] = pd.Series([np.nan if v is None else v for v in results], dtype=np.float64)
    return _of_frame(frame, objective, path.stem, str(path))


def _of_frame(frame: pd.DataFrame, objective: str | None, name: str, origin: str) -> RawTask:
    columns = [str(column) for column in frame.columns]
    notes: tuple[str, ...] = ()
    if any(column.startswith(_PARAMETER_PREFIX) for column in columns) and (objective or "value") in columns:
        objective = objective or "value"
        if "state" in columns:
            done = frame["state"].astype(str).str.upper() == "COMPLETE"
            if not done.all():
                notes = (f"{int((~done).sum())} unfinished trials are left out",)
            frame = frame[done]
        kept = [column for column in frame.columns if str(column).startswith(_PARAMETER_PREFIX)]
        rows = frame[kept].rename(columns=lambda column: str(column).removeprefix(_PARAMETER_PREFIX))
    else:
        if objective is None:
            raise InputError(
                f"{origin}: which column holds the results is not said. Give objective='...', one of "
                f"{', '.join(repr(column) for column in columns)}."
            )
        if objective not in columns:
            raise InputError(
                f"{origin}: there is no column {objective!r} with the results. It has "
                f"{', '.join(repr(column) for column in columns)}."
            )
        rows = frame.drop(columns=[column for column in frame.columns if str(column) == objective])
        rows = rows.rename(columns=str)
    y = _numbers(frame[next(c for c in frame.columns if str(c) == objective)], objective, origin)
    return RawTask(name, rows.reset_index(drop=True), y, origin=origin, notes=notes)


def _numbers(column: pd.Series[Any], objective: str, origin: str) -> NDArray[np.float64]:
    """The results; NaN where the cell is empty."""
    is_number = pd.api.types.is_numeric_dtype(column) or column.dtype == object
    numbers = pd.to_numeric(column, errors="coerce") if is_number else pd.Series(np.nan, index=column.index)
    text = numbers.isna() & column.notna() & (column.astype(str).str.strip() != "")
    if text.any():
        row = int(np.flatnonzero(text)[0])
        raise InputError(
            f"{origin}, row {row + 1}: {objective} = {column.iloc[row]!r} is not a number. "
            "Correct it, or leave the cell empty; rows without a result are ignored."
        )
    values: NDArray[np.float64] = numbers.to_numpy(dtype=np.float64, na_value=np.nan)
    return values


def _of_dataset(data: Dataset, space: Mapping[str, BaseDistribution] | None, name: str) -> RawTask:
    own = data.name or name
    what = f"{own} (Dataset)"
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
    return RawTask(own, rows, data.y.cpu().numpy().copy(), distributions=dict(space), origin=what)


def _distinct(names: Sequence[str]) -> list[str]:
    """The names, with a number behind those that came before."""
    seen: dict[str, int] = {}
    distinct = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        distinct.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return distinct


def _renamed(task: RawTask, name: str) -> RawTask:
    return task if task.name == name else replace(task, name=name)


def is_same_study(task: RawTask, study: Study) -> bool:
    return False
