"""Past data in the forms people have them, as ``RawTask``s; ``docs/optuna.md`` has a table of all forms.

Only an Optuna study says whether larger is better; everything else is taken in the direction of the new task.
A source without anything to learn from is told and left out, as long as there are others; a mistaken call is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias, overload

import numpy as np
import pandas as pd

from headstart.data.dataset import Dataset
from headstart.errors import InputError, UnusableSourceError
from headstart.notebook import html_lines, html_table
from headstart.sources.forms.naming import BatchName, Renames, Wanted, of_no_source, told_apart
from headstart.sources.forms.storages import Storages, is_url, listed, reading, shown
from headstart.sources.forms.studies import task_of_study, task_of_trials, thinned
from headstart.sources.forms.tables import task_of_dataset, task_of_file, task_of_frame
from headstart.sources.raw import RawTask, finite

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.storages import BaseStorage

# A source's name, known before its rows are, and how to read it: an ``UnusableSourceError`` where there is nothing to
# learn from, any other ``InputError`` where the call is mistaken
Found: TypeAlias = tuple[str, Callable[[Wanted], RawTask]]


@dataclass(frozen=True, eq=False, repr=False)
class Sources(Sequence[RawTask]):
    """Past tasks that were read, from the least to the most related one, and why others were not. Print it.

    It is a sequence of the tasks, and a sampler takes it as its ``sources``.

    Args:
        tasks: The tasks that can be learnt from.
        skipped: A sentence for every source that is empty, out of reach or gone.
    """

    tasks: tuple[RawTask, ...] = ()
    skipped: tuple[str, ...] = ()

    @classmethod
    def from_storage(
        cls,
        storage: str | BaseStorage,
        *,
        include: str | Iterable[str] | None = None,
        exclude: str | Iterable[str] | None = None,
        objective: str | int | Sequence[str | int] | Mapping[str, Any] | None = None,
        rename: Mapping[str, Any] | None = None,
        error: str | Mapping[Any, str] | None = None,
        batch: str | None = None,
        drift: float | None = None,
    ) -> Self:
        """Every usable study of a database, sorted by name.

        Args:
            storage: One of Optuna's storages, or its URL.
            include: The studies to take: a name, a pattern such as "lightgbm-*", or a list of them.
            exclude: Those not to take after all.
            objective: Of studies with several objectives, the name or number of the one that counts; or for single
                studies, {study: name}.
            rename: New names of parameters, {old: new} or {study: {old: new}}.
            error: The user attribute with the standard error of a trial's result; of several objectives {objective:
                attribute}.
            batch: The user attribute with the batch of a trial, such as its lot or its day.
            drift: Over how many days, or units of the batches' numbers, shifts stay alike; None: each has its own.

        Returns:
            The studies' trials as tasks, and a sentence for every study that was skipped.

        Raises:
            InputError: If no study of that name can be learnt from.
        """
        _require_storage(storage)
        with Storages() as storages:
            names = storages.names(storage)
            wanted, unwanted = _patterns(include, "include"), _patterns(exclude, "exclude") or []
            chosen = [n for n in names if (wanted is None or _fits(n, wanted)) and not _fits(n, unwanted)]
            unmet = [pattern for pattern in wanted or () if not any(_fits(name, [pattern]) for name in names)]
            missing = [f"{shown(storage)}: no study is called {what!r}. {listed(names, what)}" for what in unmet]
            others = f"{shown(storage)}: {len(names) - len(chosen)} of {len(names)} studies are not asked for."
            if names and not chosen:
                raise InputError("\n".join(["There is nothing to start from.", *(missing or [others])]))
            asked = Wanted.of(objective, error, batch=BatchName.of(batch, drift))
            tasks, skipped = _read(every_study(storages, storage, chosen), missing, asked, rename)
        return cls(tasks, skipped if len(chosen) == len(names) else (*skipped, others))

    @overload
    def __getitem__(self, index: int) -> RawTask: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[RawTask, ...]: ...
    def __getitem__(self, index: int | slice) -> RawTask | tuple[RawTask, ...]:
        return self.tasks[index]

    def __len__(self) -> int:
        return len(self.tasks)

    def __str__(self) -> str:
        """A line per source, and one for each that is not used."""
        lines = [f"{task.name}: {len(task.rows)} rows of {', '.join(task.parameters)}" for task in self.tasks]
        return "\n".join([*lines, *(f"not used: {line}" for line in self.skipped)]) or "no sources"

    def _repr_html_(self) -> str:
        """The same for a notebook: a table of the sources."""
        rows = [(task.name, len(task.rows), ", ".join(task.parameters)) for task in self.tasks]
        not_used = "\n".join(f"not used: {line}" for line in self.skipped)
        return html_table(("source", "rows", "parameters"), rows) + (html_lines(not_used) if not_used else "")

    def __repr__(self) -> str:
        return f"Sources({len(self.tasks)} tasks, {len(self.skipped)} skipped)"


def read_sources(
    sources: Sequence[Any],
    *,
    objective: str | int | Sequence[str | int] | Mapping[str, Any] | None = None,
    space: Mapping[str, BaseDistribution] | None = None,
    rename: Mapping[str, Any] | None = None,
    error: str | Mapping[Any, str] | None = None,
    constraints: Mapping[str, str] | None = None,
    limited: Mapping[str, str | None] | None = None,
    batch: BatchName | None = None,
) -> Sources:
    """All sources, in order, under names of their own.

    ``objective`` names the column with the results of tables, and the objective of studies that have several: for all
    sources, or {source: name}; a list names several, all of which are read. ``error`` names the column or user
    attribute with the standard errors of the results, for several objectives {objective: name}; ``constraints`` the
    columns of tables with values that must not be above 0, {key: column}, and ``limited`` the columns and attributes
    with quantities in their own units, {name: that of its errors}; ``batch`` those with the batch of a result.
    ``space`` gives the parameters of a ``Dataset``, whose columns have no names. ``rename`` gives parameters other
    names: {old: new} in all sources, {source: {old: new}} in one.
    """
    require_list(sources)
    skipped: list[str] = [*sources.skipped] if isinstance(sources, Sources) else []
    with Storages() as storages:
        found: list[Found] = []
        for i, source in enumerate(sources):
            try:
                if isinstance(source, Sources):
                    skipped += source.skipped
                    found += [one for task in source for one in found_in(task, task.name, storages, space)]
                else:
                    found += found_in(source, f"source {i + 1}", storages, space)
            except UnusableSourceError as reason:
                skipped.append(str(reason))
        if not found and not skipped:
            return Sources()
        return Sources(*_read(found, skipped, Wanted.of(objective, error, constraints, limited, batch), rename))


def _read(
    found: Sequence[Found],
    not_found: Sequence[str],
    wanted: Wanted,
    rename: Mapping[str, Any] | None,
) -> tuple[tuple[RawTask, ...], tuple[str, ...]]:
    """Everything that was found and can be learnt from, and what cannot."""
    renames, skipped = Renames.of(rename), list(not_found)

    def complain(mistake: str) -> None:
        """Names that nothing has are a mistake, unless they may be those of a source that is out of reach."""
        if mistake and not skipped:
            raise InputError(mistake)
        skipped.extend([mistake] if mistake else [])

    names = told_apart([name for name, _ in found])
    complain(of_no_source("objective", wanted.own, names))
    complain(of_no_source("rename", renames.own, names))
    tasks: list[RawTask] = []
    for name, (_, read) in zip(names, found, strict=True):
        try:
            task = read(wanted.of_source(name))
        except UnusableSourceError as reason:
            skipped.append(str(reason))
            continue
        if all(np.isnan(finite(own.y)).all() for own in task.known.values()):
            skipped.append(f"{task.where} has no result to learn from (of {len(task.rows)} none is a finite number).")
            continue
        tasks.append(thinned(task if task.name == name else replace(task, name=name)))
    if not tasks:
        raise InputError("\n".join(["There is nothing to start from: no source can be used.", *skipped]))
    complain(renames.of_no_parameter(tasks))
    complain(wanted.of_no_column(tasks))
    return tuple(renames.applied(task) for task in tasks), tuple(skipped)


def require_list(sources: Any) -> None:
    """Raise an ``InputError`` where one source is given instead of a list of them."""
    from optuna.storages import BaseStorage

    single = isinstance(sources, str | PathLike | pd.DataFrame | Dataset | RawTask) or not isinstance(sources, Sequence)
    what = type(sources).__name__
    if not single and isinstance(sources, tuple) and len(sources) == 2:
        first, second = sources
        single = (isinstance(first, str) and is_url(first) and not is_url(str(second))) or (
            isinstance(first, BaseStorage) and isinstance(second, str)
        )
        what = "pair (storage, study_name)"
    if single:
        raise InputError(f"sources must be a list, but it is a {what}: put it in brackets.")


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
            return [(source.name, lambda wanted: wanted.chosen(source, UnusableSourceError))]
        case Study():
            with reading("An Optuna Study"):
                own = source.study_name
            return [(own, partial(task_of_study, source, origin=f"Study {own!r}"))]
        case Dataset():
            own = source.name or name
            return [(own, lambda _: task_of_dataset(source, space, own))]
        case pd.DataFrame():
            own = str(source.attrs.get("name", name))
            return [(own, partial(task_of_frame, source, name=own, origin=f"{own} (DataFrame)"))]
        case (str() as text, str() | StudySummary()) if not is_url(text):
            raise InputError(
                f"A pair is (storage, study_name), but {text!r} is no storage and no URL, as in 'sqlite:///past.db'. "
                "Give a CSV file as a path on its own."
            )
        case (str() | BaseStorage() as storage, str() | StudySummary() as which):
            return [_study_named(storages, storage, which if isinstance(which, str) else which.study_name)]
        case list() | tuple() if all(isinstance(trial, FrozenTrial) for trial in source):
            return [(name, partial(task_of_trials, source, name=name))]
        case BaseStorage() | str() if not isinstance(source, str) or is_url(source):
            return every_study(storages, source, storages.names(source))
        case str() | PathLike():
            path = Path(source)
            return [(path.stem, partial(task_of_file, path))]
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
    found = [_study_named(storages, storage, name, UnusableSourceError) for name in names]
    if not found:
        raise UnusableSourceError(f"{shown(storage)}: there is no study in it.")
    return found


def _study_named(
    storages: Storages, storage: str | BaseStorage, name: str, refusal: type[InputError] = InputError
) -> Found:
    origin = f"{shown(storage)}, study {name!r}"
    return name, lambda wanted: task_of_study(storages.study(storage, name), wanted, origin, refusal=refusal)


def _require_storage(storage: Any) -> None:
    """Raise an ``InputError`` unless it is a storage or the URL of one."""
    from optuna.storages import BaseStorage

    if not (isinstance(storage, BaseStorage) or (isinstance(storage, str) and is_url(storage))):
        what = repr(storage) if isinstance(storage, str) else f"a {type(storage).__name__}"
        raise InputError(f"A storage is one of Optuna's, or a URL as 'sqlite:///past.db' is, but this is {what}.")


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
