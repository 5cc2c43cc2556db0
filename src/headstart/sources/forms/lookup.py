"""What a source has, before anything of it is read: the forms told apart, and the studies of a storage by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from headstart.data.dataset import Dataset
from headstart.errors import InputError, UnusableSourceError
from headstart.sources.forms.datasets import task_of_dataset
from headstart.sources.forms.found import Found, Wanted
from headstart.sources.forms.storages import Storages, is_url, reading, shown
from headstart.sources.forms.studies import task_of_study, task_of_trials
from headstart.sources.forms.table_files import task_of_file
from headstart.sources.forms.tables import task_of_frame
from headstart.sources.raw import RawTask

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.storages import BaseStorage

_KINDS = (
    "an Optuna Study, a pair (storage or URL, study_name), a storage or its URL, a list of FrozenTrials, a pandas "
    "DataFrame, the path of a CSV, Parquet or .xlsx file, a headstart.Dataset, Sources or a RawTask"
)


def found_in(
    source: Any, name: str, storages: Storages, space: Mapping[str, BaseDistribution] | None
) -> Sequence[Found]:
    """The tasks of one source, not read yet. ``name`` is for sources that have none themselves."""
    from optuna import Study
    from optuna.storages import BaseStorage
    from optuna.study import StudySummary
    from optuna.trial import FrozenTrial

    match source:
        case RawTask():
            return [Found(source.name, lambda _: source)]
        case Study():
            with reading("An Optuna Study"):
                own = source.study_name
            return [Found(own, partial(task_of_study, source, origin=f"Study {own!r}"))]
        case Dataset():
            own = source.name or name
            return [Found(own, lambda _: task_of_dataset(source, space, own))]
        case pd.DataFrame():
            own = str(source.attrs.get("name", name))
            return [Found(own, partial(task_of_frame, source, name=own, origin=f"{own} (DataFrame)"))]
        case (str() | BaseStorage() as storage, (str() | StudySummary() | None) as which):
            return [_one_study(storages, storage, which.study_name if isinstance(which, StudySummary) else which)]
        case list() | tuple() if all(isinstance(trial, FrozenTrial) for trial in source):
            return [Found(name, partial(task_of_trials, source, name=name))]
        case BaseStorage():
            return every_study(storages, source, storages.names(source))
        case str() if is_url(source):
            return every_study(storages, source, storages.names(source))
        case str() | PathLike():
            path = Path(source)
            return [Found(path.stem, partial(task_of_file, path))]
        case StudySummary():
            raise InputError(
                f"The summary of study {source.study_name!r} does not say where its trials are: give a pair "
                "(storage, summary)."
            )
        case FrozenTrial():
            raise InputError("A source is a list of trials, but one is a single trial: put the list in brackets.")
    raise InputError(f"A source must be {_KINDS}, but one is a {type(source).__name__}.")


def every_study(storages: Storages, storage: str | BaseStorage, names: Iterable[str]) -> list[Found]:
    """The studies of these names. One that does not have the objective that is wanted is not usable."""

    def read(name: str, wanted: Wanted) -> RawTask:
        return task_of_study(
            storages.study(storage, name), wanted, f"{shown(storage)}, study {name!r}", refusal=UnusableSourceError
        )

    found = [Found(name, partial(read, name)) for name in names]
    if not found:
        raise UnusableSourceError(f"{shown(storage)}: there is no study in it.")
    return found


def matching_names(
    names: Sequence[str], include: str | Iterable[str] | None, exclude: str | Iterable[str] | None
) -> tuple[list[str], list[str]]:
    """The names to take, in order, and what of ``include`` fits none of them."""
    wanted, unwanted = _patterns(include, "include"), _patterns(exclude, "exclude")
    chosen = [
        name for name in names if (wanted is None or _fits(name, wanted)) and not (unwanted and _fits(name, unwanted))
    ]
    unmet = [pattern for pattern in wanted or () if not any(_fits(name, [pattern]) for name in names)]
    return chosen, unmet


def require_storage(storage: Any) -> None:
    """Raise an ``InputError`` unless it is a storage or the URL of one."""
    from optuna.storages import BaseStorage

    if not (isinstance(storage, BaseStorage) or (isinstance(storage, str) and is_url(storage))):
        what = repr(storage) if isinstance(storage, str) else f"a {type(storage).__name__}"
        raise InputError(f"A storage is one of Optuna's, or a URL as 'sqlite:///past.db' is, but this is {what}.")


def _one_study(storages: Storages, storage: str | BaseStorage, name: str | None) -> Found:
    if isinstance(storage, str) and not is_url(storage):
        raise InputError(
            f"A pair is (storage, study_name), but {storage!r} is no storage and no URL, as in 'sqlite:///past.db'. "
            "Give a CSV file as a path on its own."
        )
    own = storages.only_name(storage) if name is None else name

    def read(wanted: Wanted) -> RawTask:
        return task_of_study(storages.study(storage, own), wanted, f"{shown(storage)}, study {own!r}")

    return Found(own, read)


def _patterns(given: str | Iterable[str] | None, argument: str) -> list[str] | None:
    """The names and patterns of an argument; None where it says nothing."""
    if given is None:
        return None
    patterns = [given] if isinstance(given, str) else list(given) if isinstance(given, Iterable) else [given]
    for pattern in patterns:
        if not isinstance(pattern, str):
            raise InputError(f"{argument} must be a name, a pattern such as 'lightgbm-*', or a list, not {pattern!r}.")
    return patterns


def _fits(name: str, patterns: Iterable[str]) -> bool:
    """Whether one of the patterns fits; a name as it is fits itself, also with brackets in it."""
    return any(name == pattern or fnmatchcase(name, pattern) for pattern in patterns)
