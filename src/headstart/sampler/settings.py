"""Which settings the trials of a study may run with: rules about them, and lists of candidates.

What they are and when they bind: docs/optuna.md, rules about the settings. A rule about an unknown parameter is refused
before the trial runs, since any value drawn for it could break the rule. Values that a trial was enqueued with, or has
asked for already, are pinned: rules that they contradict do not bind that trial, with a warning.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor

from headstart.data.axis import Axis
from headstart.data.conditions import Condition
from headstart.data.ranges import Distribution, has_single_value
from headstart.data.rules.rule import FixedValue, OnSteps, SettingRule, axis_named, feasible_rows
from headstart.data.rules.text import read_rules
from headstart.data.space import Space
from headstart.decide.domain import Candidates, Domain, Mixed
from headstart.decide.ruled.ruled import Ruled
from headstart.errors import InputError, NoPlaceError, NoSettingError, UnknownParameterError
from headstart.gp.fit import generator_from
from headstart.sampler.space import SourceSpace, clip_value
from headstart.sources.columns import read_frame
from headstart.sources.files.workbooks import workbook_file
from headstart.sources.matching import is_missing, match
from headstart.sources.raw import RawTask

# Logs a warning
Say = Callable[[str], None]

_ROW = re.compile(r"Row (\d+)(.*)", re.DOTALL)  # how messages of a space begin
_SAME = 1e-9  # of the unit cube: coordinates that differ by less are equal
_LATE_VALUES = 64  # values of a parameter that is asked for late that are compared


@dataclass(frozen=True, eq=False)
class CandidateTable:
    """Rows of values; messages call them by ``where`` and by their number, counted from ``first_row`` on."""

    frame: pd.DataFrame
    where: str = "candidates"
    first_row: int = 1  # of a file 2, as a spreadsheet program counts

    @classmethod
    def of(cls, given: Any) -> CandidateTable | None:
        """The table that the argument ``candidates`` of the sampler holds."""
        if given is None:
            return None
        if isinstance(given, pd.DataFrame):
            found = cls(given.reset_index(drop=True))
        elif isinstance(given, str | PathLike):
            path = Path(given).expanduser()
            if not workbook_file(path).exists():
                raise InputError(f"candidates: there is no file {path}. Look at the spelling and at the folder.")
            found = cls(read_frame(path), str(path), 2)
        elif isinstance(given, Sequence) and all(isinstance(row, Mapping) for row in given):
            found = cls(pd.DataFrame([dict(row) for row in given], dtype=object))
        else:
            raise InputError(
                "candidates must be a DataFrame, a list of {parameter: value}, or the path of a CSV file, but it is "
                f"{type(given).__name__}."
            )
        if found.frame.empty:
            raise InputError(f"{found.where}: there are no candidates. Give at least one row.")
        return replace(found, frame=found.frame.rename(columns=str))

    def lacks(self, name: str) -> str:
        """A message that a parameter is missing."""
        return (
            f"{self.where}: the candidates have no column {name!r}, which is a parameter of the study. Add it, or give "
            "the parameter a single value in the objective."
        )

    @property
    def task(self) -> RawTask:
        """The rows as if they had been tried: they show which parameters there are, and which of them in branches."""
        return RawTask(self.where, self.frame, np.zeros(len(self.frame)), conditional=True)

    def domain(
        self, space: Space, rules: Sequence[SettingRule], pinned: Mapping[str, Any], number: int, say: Say
    ) -> TrialDomain:
        """The rows that satisfy the rules and have the pinned values; with a warning without these, if none has."""
        rows = self._rows(space)
        try:
            X = space.encode_exactly(rows)
        except NoPlaceError as error:
            for axis in space.axes:
                if axis.width and axis.name not in self.frame:
                    raise InputError(self.lacks(axis.name)) from error
            row = _ROW.match(str(error))
            told = f", row {int(row[1]) + self.first_row}{row[2]}" if row else f": {error}"
            raise InputError(f"{self.where}{told}") from error
        kept = feasible_rows(rows, rules)
        there = _has_values(rows, X, pinned, space)
        fits = [i for i in kept if there[i]]
        if not fits:
            say(not_kept(number, pinned, "the list of candidates", tuple(pinned)))
        kept = fits or kept
        return TrialDomain(space, Candidates(X[kept], space.categories, space.described), tuple(rows[i] for i in kept))

    def _rows(self, space: Space) -> list[dict[str, Any]]:
        """The values as the parameters of the space have them: text of a number is one, an empty cell is no value."""
        rows: list[dict[str, Any]] = [{} for _ in range(len(self.frame))]
        for axis in space.axes:
            if axis.name not in self.frame:
                if has_single_value(axis.distribution):
                    rows = [{**row, axis.name: clip_value(None, axis.name, axis.distribution)} for row in rows]
                continue
            column = self.frame[axis.name].tolist()
            matched = match(column, axis.distribution)
            for row, raw, value, ok in zip(rows, column, matched.values, matched.ok, strict=True):
                if ok and not matched.problem:
                    whole = axis.integer and float(value).is_integer()
                    row[axis.name] = int(value) if whole else value
                elif not is_missing(raw):
                    row[axis.name] = raw  # which has no place, and the message says so
        return rows


@dataclass(frozen=True)
class TrialDomain:
    """The points that one trial may run with; ``rows`` are the values of the candidates, if there is a list of them."""

    space: Space
    domain: Domain
    rows: tuple[Mapping[str, Any], ...] | None = None

    def params(self, x: Float[Tensor, "d"]) -> dict[str, Any]:
        """The parameters at a point; those of a candidate as they were given."""
        found = self.space.decode(x.unsqueeze(0))[0]
        if self.rows is None:
            return found
        assert isinstance(self.domain, Candidates)
        return {**found, **self.rows[int((self.domain.X - x).abs().amax(-1).argmin())]}


@dataclass(frozen=True)
class SettingConstraints:
    """The rules as they were given, and the list of candidates, if there is one."""

    rules: tuple[SettingRule | str, ...] = ()
    fixed: Mapping[str, Any] = field(default_factory=dict)
    steps: Mapping[str, float] = field(default_factory=dict)
    candidates: CandidateTable | None = None

    @classmethod
    def of(cls, rules: Any, fixed: Any, steps: Any, candidates: Any) -> SettingConstraints:
        """The constraints in the arguments of the sampler, as far as they can be checked before the space is known."""
        if isinstance(rules, str | SettingRule) or not isinstance(rules, Sequence):
            raise InputError(f"rules must be a list, as in ['A + B <= 1'], but it is {rules!r}: put it in brackets.")
        for rule in rules:
            if not isinstance(rule, str | SettingRule):
                raise InputError(f"A rule is text, as 'A + B <= 1' is, or a headstart rule, but one is {rule!r}.")
        for name, given in (("fixed", fixed), ("steps", steps)):
            if given is not None and not isinstance(given, Mapping):
                raise InputError(f"{name} must map parameters to values, as in {{'A': 3}}, but it is {given!r}.")
        return cls(tuple(rules), dict(fixed or {}), dict(steps or {}), CandidateTable.of(candidates))

    def __bool__(self) -> bool:
        """Whether there is a rule or a list."""
        return bool(self.rules or self.fixed or self.steps or self.candidates)

    def read(self, known: Mapping[str, Distribution], *, final: bool = False) -> tuple[SettingRule, ...]:
        """All rules as data, about these parameters; ``final`` says that there will be no others."""
        if not (self.rules or self.fixed or self.steps):
            return ()
        if known and all(has_single_value(distribution) for distribution in known.values()):
            return ()  # there is nothing to choose
        hint = "" if final else " If the objective asks for it, give space={name: distribution, ...} with all of them."
        if not known:
            raise InputError(f"No parameter is known before the first trial, so that no rule can be kept.{hint}")
        space = Space.of(known)
        try:
            fixed = [FixedValue(axis_named(space, name, "fixed").name, value) for name, value in self.fixed.items()]
            lowest = {n: getattr(axis_named(space, n, "steps").distribution, "low", 0.0) for n in self.steps}
            steps = [OnSteps(name, step, lowest[name]) for name, step in self.steps.items()]
            return read_rules([*self.rules, *fixed, *steps], space)
        except UnknownParameterError as error:
            raise InputError(f"{error}{hint}") from error

    def require(self, space: Mapping[str, Distribution] | None) -> None:
        """Raise an ``InputError`` if no setting of the given space, or of that of the candidates, is feasible."""
        listed = SourceSpace.of((), None if self.candidates is None else self.candidates.task)
        known = space or listed.distributions
        if self and known:
            rules = self.read(known, final=space is not None)
            self.domain(Space.of(known, conditions=listed.branches()), {}, rules, 0, lambda _: None)

    def require_listed(self, name: str) -> None:
        """Raise an ``InputError`` if there is a list of candidates without this parameter."""
        if self.candidates is not None and name not in self.candidates.frame:
            raise InputError(self.candidates.lacks(name))

    def domain(
        self, space: Space, pinned: Mapping[str, Any], rules: Sequence[SettingRule], number: int, say: Say
    ) -> TrialDomain:
        """What trial ``number`` may run with, some of its parameters being pinned; ``rules`` are all, as data.

        Rules bind if all of their parameters are asked for and the pinned values do not contradict them.
        """
        for rule in rules:
            gone = [name for name in rule.parameters if name not in space.names]
            if gone:
                say(f"The rule {str(rule)!r} does not bind: trials do not ask for {', '.join(map(repr, gone))}.")
        own = tuple(rule for rule in rules if set(rule.parameters) <= set(space.names))
        if self.candidates is not None:
            return self.candidates.domain(space, own, pinned, number, say)
        kept = _possible(space, own, pinned) if pinned else own
        for rule in own:
            if rule not in kept:
                say(not_kept(number, pinned, f"the rule {str(rule)!r}", rule.parameters))
        return TrialDomain(space, Ruled(space, kept, pinned) if kept else Mixed(space, pinned))


def _has_values(
    rows: Sequence[Mapping[str, Any]], X: Float[Tensor, "n d"], pinned: Mapping[str, Any], space: Space
) -> list[bool]:
    """Which of the rows, whose points are X, have the pinned values, up to ``_SAME`` of the unit cube."""
    found = torch.ones(len(rows), dtype=torch.bool)
    for axis in space.axes:
        if axis.name in pinned and axis.width:
            matched = match([pinned[axis.name]], axis.distribution)
            if matched.problem or matched.new_levels or not matched.ok.all():
                return [False] * len(rows)
            found &= ((X[:, axis.columns] - axis.place(matched.values)).abs() <= _SAME).all(-1)
            found &= torch.tensor([axis.name in row for row in rows])
    return found.tolist()


def _possible(space: Space, rules: Sequence[SettingRule], pinned: Mapping[str, Any]) -> tuple[SettingRule, ...]:
    """The rules that can be satisfied with the pinned values: all of them, or as many as fit one after the other."""
    kept: tuple[SettingRule, ...] = ()
    for more in (tuple(rules), *((rule,) for rule in rules)):
        try:
            Ruled(space, kept + more, pinned)
        except NoSettingError:
            continue
        if len(more) == len(rules):
            return more
        kept += more
    return kept


def not_kept(number: int, pinned: Mapping[str, Any], what: str, about: Sequence[str]) -> str:
    """A message that the values a trial is given contradict a rule or a list."""
    values = ", ".join(f"{name} = {value}" for name, value in pinned.items() if name in about)
    return f"Trial {number} runs with {values}, with which {what} cannot be kept: its result counts all the same."


def values_of_late_parameter(
    space: Space, axis: Axis, params: Mapping[str, Any], rules: Sequence[SettingRule]
) -> Candidates:
    """Points with values of a parameter that the suggestion held for inactive, the others as they are.

    The values satisfy the rules, if any does with the other parameters as they are.
    """
    loose = replace(space, conditions=tuple((n, Condition()) for n in space.names))  # whatever is not there yet
    values = axis.value(_feasible_values(space, axis, params, rules))
    X = loose.encode([{**params, axis.name: value} for value in values])
    own, X = X[:, axis.columns], space.rested(X)
    X[:, axis.columns] = own
    return Candidates(X, space.categories, space.described)


def _feasible_values(
    space: Space, axis: Axis, params: Mapping[str, Any], rules: Sequence[SettingRule]
) -> Float[Tensor, "n w"]:
    grid = axis.grid() if axis.count is not None and axis.count <= _LATE_VALUES else None
    if grid is None:
        grid = axis.snap(torch.linspace(0.0, 1.0, _LATE_VALUES, dtype=torch.float64).unsqueeze(-1))
    there = {name: value for name, value in params.items() if name in space.names and name != axis.name}
    own = [rule for rule in rules if axis.name in rule.parameters and {*rule.parameters} <= {axis.name, *there}]
    if not own:
        return grid
    about = {axis.name, *(name for rule in own for name in rule.parameters)}
    small = Space.of({name: d for name, d in space.distributions.items() if name in about})
    try:
        ruled = Ruled(small, own, {name: value for name, value in there.items() if name in about})
    except NoSettingError:  # with the other values as they are nothing keeps them
        return grid
    place = next(other for other in small.axes if other.name == axis.name)
    X = ruled.listing
    found = (ruled.spread(_LATE_VALUES, generator_from(0)) if X is None else X)[:, place.columns]
    # the levels of the whole space, some of which only sources have, are not those of the small one
    return axis.place(place.value(found.unique(dim=0)))
