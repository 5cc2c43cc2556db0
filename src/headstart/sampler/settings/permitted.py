"""``Permitted``: which settings the trials of a study may run with.

    rules       "2*A + B <= 100", "A + B + C = 1", "forbid: T > 180 and solvent = toluene", or rules as data
    fixed       {"A": 3}       the parameter has this value
    steps       {"B": 0.5}     values on a step, from the parameter's lowest one
    candidates  a list of settings, one of which is tried each time

A rule is about parameters that are known: by ``space``, by a source, or because a trial has asked for them. One about a
parameter that nobody knows is refused before the trial runs, for whatever were drawn for it could break the rule. One
about a parameter that trials do not ask for any more does not bind, and is named. What a trial was enqueued with, or
has asked for already, stays as it is: rules that cannot be kept with it do not count for that trial, and are named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from headstart.data.ranges import Distribution, has_single_value
from headstart.data.rules.rule import FixedValue, OnSteps, SettingRule, axis_named
from headstart.data.rules.text import parse_rule
from headstart.data.space import Space
from headstart.decide.domain import Domain, Mixed, Searchable
from headstart.decide.ruled.ruled import Ruled
from headstart.errors import InputError, NoSettingError, UnknownParameterError
from headstart.gp.fit import generator_from
from headstart.sampler.settings.shelf import Shelf, Stock
from headstart.sampler.whole_space import SourceSpace

# Says something that is worth a warning
Say = Callable[[str], None]


@dataclass(frozen=True)
class Leeway:
    """The points that one trial may run with, and how to read one of them."""

    space: Space
    domain: Domain
    rules: tuple[SettingRule, ...] = ()
    stock: Stock | None = None

    def params(self, x: Float[Tensor, "d"]) -> dict[str, Any]:
        """The parameters at a point; a candidate as it was given."""
        found = self.space.decode(x.unsqueeze(0))[0]
        return found if self.stock is None else {**found, **self.stock.row(x)}

    def any(self, seed: int) -> Float[Tensor, "d"]:
        """A point that no model has a say in."""
        generator = generator_from(seed)
        if isinstance(self.domain, Searchable):
            return self.domain.uniform(1, generator)[0]
        X = self.domain.listing()
        assert X is not None
        return X[int(torch.randint(len(X), (), generator=generator))]


@dataclass(frozen=True)
class Permitted:
    """The rules as they were given, and the list, if there is one. Without any of them everything is allowed."""

    rules: tuple[SettingRule | str, ...] = ()
    fixed: Mapping[str, Any] = field(default_factory=dict)
    steps: Mapping[str, float] = field(default_factory=dict)
    candidates: Shelf | None = None

    @classmethod
    def of(cls, rules: Any, fixed: Any, steps: Any, candidates: Any) -> Permitted:
        """What the arguments say, as far as it can be checked before the parameters are known."""
        if isinstance(rules, str | SettingRule) or not isinstance(rules, Sequence):
            raise InputError(f"rules must be a list, as in ['A + B <= 1'], but it is {rules!r}: put it in brackets.")
        for rule in rules:
            if not isinstance(rule, str | SettingRule):
                raise InputError(f"A rule is text, as 'A + B <= 1' is, or a headstart rule, but one is {rule!r}.")
        for name, given in (("fixed", fixed), ("steps", steps)):
            if given is not None and not isinstance(given, Mapping):
                raise InputError(f"{name} must map parameters to values, as in {{'A': 3}}, but it is {given!r}.")
        return cls(tuple(rules), dict(fixed or {}), dict(steps or {}), Shelf.of(candidates))

    @property
    def everything(self) -> bool:
        """Whether there is no rule and no list."""
        return not (self.rules or self.fixed or self.steps or self.candidates)

    def read(self, known: Mapping[str, Distribution], *, final: bool = False) -> tuple[SettingRule, ...]:
        """The rules as data, about these parameters. ``final`` says that there will never be others.

        Fails on what is no rule, and on a parameter that is not among them.
        """
        if not (self.rules or self.fixed or self.steps):
            return ()
        if known and all(has_single_value(distribution) for distribution in known.values()):
            return ()  # there is nothing to choose
        hint = (
            "" if final else " If the objective asks for it, give space={name: distribution, ...} with all parameters."
        )
        if not known:
            raise InputError(f"No parameter is known before the first trial, so that no rule can be kept.{hint}")
        space = Space.of(known)
        try:
            read = [parse_rule(rule, space) if isinstance(rule, str) else rule for rule in self.rules]
            read += [FixedValue(axis_named(space, name, "fixed").name, value) for name, value in self.fixed.items()]
            for name, step in self.steps.items():
                start = getattr(axis_named(space, name, "steps").distribution, "low", 0.0)
                read.append(OnSteps(name, step, start))
            for rule in read:
                rule.require(space)
        except UnknownParameterError as error:
            raise InputError(f"{error}{hint}") from error
        return tuple(read)

    def require(self, space: Mapping[str, Distribution] | None) -> None:
        """Raise an ``InputError`` if nothing is allowed in a space that is given, or in the one of the candidates."""
        if self.everything:
            return
        if self.candidates is not None:
            listed = SourceSpace.of((), self.candidates.task)
            known, branches = space or dict(listed.distributions), listed.branches()
        elif space is None:
            return
        else:
            known, branches = space, {}
        rules = self.read(known, final=space is not None)
        self.leeway(Space.of(known, conditions=branches), {}, rules, 0, lambda _: None)

    def require_listed(self, name: str) -> None:
        """Raise an ``InputError`` if there is a list of settings that says nothing of this parameter."""
        if self.candidates is not None and name not in self.candidates.parameters:
            raise InputError(self.candidates.lacks(name))

    def tell_of_broken(self, rules: Sequence[SettingRule], params: Mapping[str, Any], number: int, say: Say) -> None:
        """Say which rules are broken by what trial ``number`` runs with already."""
        for rule in rules:
            if not rule.holds(params):
                say(_not_kept(number, params, f"the rule {str(rule)!r}", rule.parameters))

    def leeway(
        self, space: Space, pinned: Mapping[str, Any], rules: Sequence[SettingRule], number: int, say: Say
    ) -> Leeway:
        """What trial ``number`` may run with, these parameters having a value already; ``rules`` are all, as data."""
        if self.candidates is not None:
            return self._of_candidates(self.candidates, space, pinned, self._binding(rules, space, say), number, say)
        own = self._binding(rules, space, say)
        if not own:
            return Leeway(space, Mixed(space, pinned))
        if not pinned:
            return Leeway(space, Ruled(space, own), own)
        kept = _possible(space, own, pinned)
        for rule in own:
            if rule not in kept:
                say(_not_kept(number, pinned, f"the rule {str(rule)!r}", rule.parameters))
        return Leeway(space, Ruled(space, kept, pinned) if kept else Mixed(space, pinned), kept)

    @staticmethod
    def _binding(rules: Sequence[SettingRule], space: Space, say: Say) -> tuple[SettingRule, ...]:
        """The rules whose parameters are all asked for."""
        for rule in rules:
            gone = [name for name in rule.parameters if name not in space.names]
            if gone:
                say(f"The rule {str(rule)!r} does not bind: trials do not ask for {', '.join(map(repr, gone))}.")
        return tuple(rule for rule in rules if set(rule.parameters) <= set(space.names))

    @staticmethod
    def _of_candidates(
        shelf: Shelf,
        space: Space,
        pinned: Mapping[str, Any],
        rules: tuple[SettingRule, ...],
        number: int,
        say: Say,
    ) -> Leeway:
        stock = shelf.stock(space, rules)
        own = stock.with_values(pinned, space)
        if own is None:
            say(_not_kept(number, pinned, "the list of candidates", tuple(pinned)))
        return Leeway(space, (own or stock).domain, rules, own or stock)


def _possible(space: Space, rules: Sequence[SettingRule], pinned: Mapping[str, Any]) -> tuple[SettingRule, ...]:
    """The rules that can be kept with the values that are there: all of them, or one after the other."""
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


def _not_kept(number: int, pinned: Mapping[str, Any], what: str, about: Sequence[str]) -> str:
    values = ", ".join(f"{name} = {value}" for name, value in pinned.items() if name in about)
    return f"Trial {number} runs with {values}, with which {what} cannot be kept: its result counts all the same."
