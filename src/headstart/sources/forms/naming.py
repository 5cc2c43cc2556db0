"""Names: sources told apart, parameters renamed, objectives chosen, for all sources or for one.

rename={"eta": "lr"}                       wherever a source has eta
rename={"last year": {"eta": "lr"}}        in the source of that name alone
rename={"eta": "lr", "last year": {...}}   both; what is said of one source goes before what is said of all
objective="loss"                           wherever there is a choice
objective=["loss", "size"]                 both, wherever they are
objective={"last year": "loss"}            of the source of that name alone
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from headstart.errors import InputError
from headstart.sources.forms.errors import ErrorNames
from headstart.sources.forms.found import Wanted
from headstart.sources.parameters import nearest
from headstart.sources.raw import RawTask


def told_apart(names: Sequence[str]) -> list[str]:
    """The names, with a number behind those that came before."""
    seen: dict[str, int] = {}
    distinct = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        distinct.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return distinct


@dataclass(frozen=True)
class Objectives:
    """The objectives of all sources, and of single ones; where their errors are, and the constraints of tables."""

    common: tuple[str, ...] = ()
    own: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    errors: ErrorNames = field(default_factory=ErrorNames)
    constraints: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, objective: Any, error: Any = None, constraints: Any = None) -> Self:
        """What the arguments of these names say."""
        errors, limited = ErrorNames.of(error), {} if constraints is None else constraints
        if not isinstance(limited, Mapping) or not all(isinstance(p, str) for pair in limited.items() for p in pair):
            raise InputError(f"constraints must be {{key: column of tables}}, but it is {constraints!r}.")
        if isinstance(objective, Mapping):
            own = {source: _names(names, objective) for source, names in objective.items()}
            return cls((), own, errors, dict(limited))
        return cls(_names(objective, objective), {}, errors, dict(limited))

    def wanted(self, source: str) -> Wanted:
        """What is asked for of one source."""
        own = self.own.get(source)
        return Wanted(self.common if own is None else own, own is not None, self.errors, self.constraints)

    def of_no_source(self, sources: Sequence[str]) -> str:
        """A sentence on what is said of a source that does not exist; empty if nothing is."""
        return _of_no_source("objective", self.own, sources)


def _names(given: Any, objective: Any) -> tuple[str, ...]:
    """One name, several or none."""
    names = () if given is None else (given,) if isinstance(given, str) else given
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise InputError(
            "objective must be the name of a column or objective, a list of them, or {source: name}, but it is "
            f"{objective!r}."
        )
    if len(set(names)) < len(names):
        raise InputError(f"objective names one thing twice: {objective!r}.")
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

    def of_no_source(self, sources: Sequence[str]) -> str:
        """A sentence on what is said of a source that does not exist; empty if nothing is."""
        return _of_no_source("rename", self.own, sources)

    def applied(self, task: RawTask) -> RawTask:
        """The task with the new names; an ``InputError`` where that cannot be."""
        own = self.own.get(task.name, {})
        for old in own:
            if old not in task.parameters:
                raise InputError(
                    f"rename: {task.where} has no parameter {old!r} to rename. {nearest(old, task.parameters)}"
                )
        names = {old: new for old, new in {**self.common, **own}.items() if old in task.parameters and old != new}
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
        known = dict.fromkeys(name for task in tasks for name in task.parameters)
        for old in self.common:
            if old not in known:
                return f"rename: no source has a parameter {old!r}. {nearest(old, known)}"
        return ""


def _of_no_source(argument: str, named: Mapping[str, Any], sources: Sequence[str]) -> str:
    for name in named:
        if name not in sources:
            return f"{argument}: there is no source {name!r}. {nearest(name, sources)}"
    return ""
