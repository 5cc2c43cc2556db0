"""What is asked for of past sources by name: objectives, errors, constraints, batches, and parameters under new names.

``docs/optuna.md`` has the arguments. What is said of one source, {source: ...}, goes before what is said of all; which
objective is meant says ``sources.objectives``. A result without an error has a typical one (``raw.error_var``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from headstart.errors import InputError, NoBatchError, nearest
from headstart.sources.batches import Batches
from headstart.sources.files.names import meant_by
from headstart.sources.matching import is_missing
from headstart.sources.objectives import called, choose
from headstart.sources.raw import INFINITE, RawObjective, RawTask

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial


@dataclass(frozen=True)
class ErrorNames:
    """The column or attribute with the errors of the one objective, and of single ones."""

    common: str | None = None
    own: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, error: str | Mapping[Any, str] | None) -> Self:
        """What the argument ``error`` says."""
        if error is None or isinstance(error, str):
            return cls(error)
        if isinstance(error, Mapping) and all(isinstance(name, str) for name in error.values()):
            return cls(None, dict(zip(_names(list(error), error, "error"), error.values(), strict=True)))
        raise InputError(
            "error must be the name of a column or user attribute with standard errors, or {objective: name}, but it "
            f"is {error!r}."
        )

    @property
    def every(self) -> tuple[str, ...]:
        """All columns and attributes that are named."""
        return tuple(dict.fromkeys(name for name in (self.common, *self.own.values()) if name is not None))

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


@dataclass(frozen=True)
class BatchName:
    """The column or user attribute with the batch of a result, and over how long shifts stay alike (``drift``)."""

    name: str | None = None
    drift: float | None = None

    @classmethod
    def of(cls, batch: str | None, drift: float | None) -> Self:
        """What the arguments of these names say."""
        if batch is not None and not (isinstance(batch, str) and batch):
            raise InputError(f"batch must be the name of a column or user attribute, but it is {batch!r}.")
        number = isinstance(drift, Real) and not isinstance(drift, bool) and 0 < float(drift) < math.inf
        if drift is not None and not number:
            raise InputError(
                "drift is the time over which shifts stay alike, a positive number: days where batches are dates, but "
                f"it is {drift!r}."
            )
        if drift is not None and batch is None:
            raise InputError(
                "drift is about the shifts of batches: name the column or user attribute that says the batch of a "
                "result, as in batch='lot'."
            )
        return cls(batch, None if drift is None else float(drift))

    def label(self, attributes: Mapping[str, Any]) -> Any:
        """The batch in user attributes, None where none is said, or none that shifts can drift with."""
        found = None if self.name is None else attributes.get(self.name)
        return None if _says_nothing(found) or self.complaint(found) else found

    def complaint(self, label: Any) -> str:
        """Why shifts cannot drift with a batch of this name; empty if they can, or need not."""
        if self.drift is None or _says_nothing(label):
            return ""
        try:
            Batches.of([label], drift=self.drift, where=f"batch {self.name!r}")
        except NoBatchError as error:
            return str(error)
        return ""

    def numbered(self, labels: Sequence[Any], origin: str) -> Batches | None:
        """The batches of these labels, one per row; None where no row has one."""
        told = [None if _says_nothing(label) else label for label in labels]
        if all(label is None for label in told):
            return None
        return Batches.of(told, drift=self.drift, where=f"{origin}, {self.name!r}")

    def of_trials(self, trials: Sequence[FrozenTrial], origin: str) -> Batches | None:
        """The batches of trials; one that says none belongs to that of the trial before it."""
        return None if self.name is None else self.numbered([t.user_attrs.get(self.name) for t in trials], origin)


def _says_nothing(label: Any) -> bool:
    return is_missing(label) or label == ""


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


def limited_of_trials(trials: Sequence[FrozenTrial], wanted: Mapping[str, str | None]) -> dict[str, RawObjective]:
    """The quantities in user attributes of trials that some have, NaN elsewhere, with their errors."""
    found = {}
    for name, attribute in wanted.items():
        values = [trial.user_attrs.get(name) for trial in trials]
        numbers = [float(v) if isinstance(v, Real) and not isinstance(v, bool) else math.nan for v in values]
        if not np.isnan(numbers).all():
            error = errors_of_trials(trials, attribute, "this study")[0]
            found[name] = RawObjective(np.array(numbers, dtype=np.float64), None, error)
    return found


def told_apart(names: Sequence[str]) -> list[str]:
    """The names, with a number behind those that came before."""
    before = [names[:i].count(name) for i, name in enumerate(names)]
    return [f"{name} ({n + 1})" if n else name for name, n in zip(names, before, strict=True)]


@dataclass(frozen=True)
class Wanted:
    """The objectives that somebody named, none if nobody did, of all sources and, in ``own``, of single ones.

    ``of_this_one`` says that they were named for this source alone: then the source must have them. A name that is
    meant for all sources does not concern one that has a single objective anyhow, and of several names a source may
    lack some. ``errors`` are where the standard errors of the results are, ``constraints`` the columns of tables with
    values that must not be above 0, by key, and ``limited`` quantities in their own units, each with the column or
    attribute of its errors. ``batch`` is where the batch of a result is.
    """

    objectives: tuple[str, ...] = ()
    of_this_one: bool = False
    errors: ErrorNames = field(default_factory=ErrorNames)
    constraints: Mapping[str, str] = field(default_factory=dict)
    own: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    limited: Mapping[str, str | None] = field(default_factory=dict)
    batch: BatchName = field(default_factory=BatchName)

    @classmethod
    def of(
        cls,
        objective: Any,
        error: Any = None,
        constraints: Any = None,
        limited: Mapping[str, str | None] | None = None,
        batch: BatchName | None = None,
    ) -> Self:
        """What the arguments of these names say."""
        told = {} if constraints is None else constraints
        if not isinstance(told, Mapping) or not all(isinstance(p, str) for pair in told.items() for p in pair):
            raise InputError(f"constraints must be {{key: column of tables}}, but it is {constraints!r}.")
        single = objective if isinstance(objective, Mapping) else {}
        own = {source: _names(names, objective) for source, names in single.items()}
        common = () if isinstance(objective, Mapping) else _names(objective, objective)
        return cls(common, False, ErrorNames.of(error), dict(told), own, limited or {}, batch or BatchName())

    def of_source(self, name: str) -> Wanted:
        """What is asked for of one source."""
        return replace(self, objectives=self.own[name], of_this_one=True) if name in self.own else self

    def chosen(self, task: RawTask, refusal: type[InputError] = InputError) -> RawTask:
        """The task with the objectives that are asked for; ``refusal`` is raised where it has none of several."""
        return choose(task, self.objectives, must=self.of_this_one, refusal=refusal)

    def error_of(self, objective: str, names: Sequence[str], origin: str) -> str | None:
        """The column or attribute with the errors of one of a source's objectives; None where nothing is said of it."""
        only = called(self.objectives[0], names) if len(self.objectives) == 1 else None
        chosen = None if only is None else names.index(only)
        own = self.errors.of_objective(objective, names.index(objective), len(names), origin, chosen)
        return self.limited.get(objective) if own is None else own

    def of_no_column(self, tasks: Sequence[RawTask]) -> str:
        """A sentence on a constraint whose column no table has; empty if there is none."""
        for key, column in self.constraints.items():
            if not any(key in task.constraints for task in tasks if task.distributions is None):
                known = dict.fromkeys(name for task in tasks for name in task.parameters)
                return f"constraints: no table has a column {column!r}, for {key!r}. {nearest(column, known)}"
        return ""

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns of a table that are asked for by name: there a cell may say 'failed'."""
        limited = [name for pair in self.limited.items() for name in pair if name is not None]
        return tuple(dict.fromkeys((*self.objectives, *self.errors.every, *self.constraints.values(), *limited)))


def _names(given: Any, whole: Any, argument: str = "objective") -> tuple[str, ...]:
    """One name or number, several or none; a number as text."""
    several = () if given is None else given if isinstance(given, Sequence) and not isinstance(given, str) else (given,)
    numbers = [isinstance(name, Integral) and not isinstance(name, bool) and int(name) >= 0 for name in several]
    if not all(number or isinstance(name, str) for name, number in zip(several, numbers, strict=True)):
        raise InputError(
            f"{argument} must be the name of a column or objective, or the number of an objective from 0 on, a list of "
            f"them, or {{source: name}}, but it is {whole!r}."
        )
    names = [str(name) for name in several]
    if len(set(names)) < len(names):
        raise InputError(f"{argument} names one thing twice: {whole!r}.")
    return tuple(names)


@dataclass(frozen=True)
class Renames:
    """New names of parameters, in all sources and in single ones: old → new."""

    common: Mapping[str, str] = field(default_factory=dict)
    own: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @classmethod
    def of(cls, rename: Mapping[str, Any] | None) -> Self:
        """What the argument ``rename`` says."""
        rename = {} if rename is None else rename
        if not isinstance(rename, Mapping):
            raise InputError(f"rename must be {{old: new}}, or {{source: {{old: new}}}}, but it is {rename!r}.")
        own = {name: new for name, new in rename.items() if isinstance(new, Mapping)}
        common = {name: new for name, new in rename.items() if name not in own}
        for names in (common, *own.values()):
            for old, new in names.items():
                if not isinstance(old, str) or not isinstance(new, str):
                    raise InputError(f"rename: names are text, but {old!r} is to become {new!r}.")
        return cls(common, own)

    def applied(self, task: RawTask) -> RawTask:
        """The task with the new names; an ``InputError`` where that cannot be."""
        own = self.own.get(task.name, {})
        told = {**self.common, **own}
        meant = meant_by(told, task.parameters)
        for old in own:
            if old not in meant.values():
                raise InputError(
                    f"rename: {task.where} has no parameter {old!r} to rename. {nearest(old, task.parameters)}"
                )
        names = {column: told[old] for column, old in meant.items() if column != told[old]}
        if not names:
            return task
        new_names = [names.get(column, column) for column in task.parameters]
        for new in new_names:
            if new_names.count(new) > 1:
                both = " and ".join(repr(c) for c in task.parameters if names.get(c, c) == new)
                raise InputError(
                    f"rename: {both} of {task.where} would both be called {new!r}. Rename only one of them, or rename "
                    f"in single sources: rename={{source: {{old: new}}}}."
                )
        distributions = None
        if task.distributions is not None:
            distributions = {names.get(name, name): d for name, d in task.distributions.items()}
        said = ", ".join(f"{old!r} is called {new!r} here" for old, new in names.items())
        rows = task.rows.set_axis(new_names, axis="columns")
        return replace(task, rows=rows, distributions=distributions, notes=(*task.notes, said))

    def of_no_parameter(self, tasks: Sequence[RawTask]) -> str:
        """A sentence on what is to be renamed in all sources and is in none; empty if there is nothing."""
        known = list(dict.fromkeys(name for task in tasks for name in task.parameters))
        meant = meant_by(self.common, known).values()
        for old in self.common:
            if old not in meant:
                return f"rename: no source has a parameter {old!r}. {nearest(old, known)}"
        return ""


def of_no_source(argument: str, named: Mapping[str, Any], sources: Sequence[str]) -> str:
    """A sentence on what an argument says of a source that does not exist; empty if nothing is."""
    for name in named:
        if name not in sources:
            return f"{argument}: there is no source {name!r}. {nearest(name, sources)}"
    return ""
