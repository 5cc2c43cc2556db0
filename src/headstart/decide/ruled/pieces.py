"""The parts of a space in which its rules are linear: some categories given, and every number between two ends.

a fixed parameter             its category, or both ends
a forbidden combination       where its categories are met, one of its numbers keeps away: a part for each of them
a parameter not always there  its parent is where it is there, or where it is not: a part for each
a linear rule                 an end, if it is about a single number; else the numbers are tied together in a block
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from headstart.data.axis import Axis
from headstart.data.conditions import Condition
from headstart.data.rules.rule import (
    FixedValue,
    Forbidden,
    LinearRule,
    OnSteps,
    Relation,
    SettingRule,
    rounding,
)
from headstart.data.space import Space
from headstart.decide.ruled.block import Block
from headstart.decide.ruled.numbers import Number
from headstart.decide.ruled.parts import Part, Piece, kept_away, kept_by

Array = NDArray[np.float64]
Levels = tuple[int, ...]

ABSENT = -1  # the level of a category that is not there
_MOST_PIECES = 256  # for one combination of categories
_MOST_LEVELS = 4096  # combinations of categories, of more a random part is looked at


@dataclass(frozen=True, eq=False)
class Pieces:
    """All pieces of a space with rules, by the levels of the categories that matter; each is worked out when needed."""

    space: Space
    rules: tuple[SettingRule, ...]
    pinned: Mapping[str, Any] = field(default_factory=dict)
    _known: dict[Levels, tuple[Piece, ...]] = field(default_factory=dict)
    _pieces: dict[tuple[Any, ...], Piece | None] = field(default_factory=dict)
    _blocks: dict[tuple[Any, ...], Block] = field(default_factory=dict)

    @cached_property
    def numbers(self) -> tuple[Number, ...]:
        """The numeric parameters."""
        steps = [rule for rule in self.rules if isinstance(rule, OnSteps)]
        return tuple(
            Number.of(axis, [rule for rule in steps if rule.parameter == axis.name], self.pinned.get(axis.name))
            for axis in self.space.axes
            if not axis.categorical
        )

    @cached_property
    def _at(self) -> dict[str, int]:
        return {number.name: j for j, number in enumerate(self.numbers)}

    @cached_property
    def _axes(self) -> dict[str, Axis]:
        return {axis.name: axis for axis in self.space.axes}

    @cached_property
    def _conditions(self) -> dict[str, Condition]:
        return {name: condition for name, condition in self.space.conditions if condition.parent is not None}

    @cached_property
    def relevant(self) -> tuple[str, ...]:
        """The parameters of rules and all that these hang on, parents first."""
        depth: dict[str, int] = {}

        def found(name: str) -> int:
            if name not in depth:
                condition = self._conditions.get(name)
                depth[name] = 0 if condition is None or condition.parent is None else 1 + found(condition.parent)
            return depth[name]

        for rule in self.rules:
            for name in rule.parameters:
                found(name)
        return tuple(sorted(depth, key=lambda name: depth[name]))

    @cached_property
    def categories(self) -> tuple[Axis, ...]:
        """The categories among them."""
        return tuple(self._axes[name] for name in self.relevant if self._axes[name].categorical)

    @cached_property
    def in_sums(self) -> frozenset[str]:
        """The parameters that linear rules tie to others."""
        linear = [rule for rule in self.rules if isinstance(rule, LinearRule) and len(rule.terms) > 1]
        return frozenset(name for rule in linear for name in rule.parameters)

    @property
    def any(self) -> bool:
        """Whether there is a piece; combinations of categories are looked through until one has."""
        return any(self.of(levels) for levels in self._combinations)

    @cached_property
    def possible(self) -> tuple[Levels, ...]:
        """The combinations of levels of these categories that have pieces; of very many, some."""
        return tuple(levels for levels in self._combinations if self.of(levels))

    @cached_property
    def _combinations(self) -> list[Levels]:
        options = [self._options(axis) for axis in self.categories]
        if np.prod([float(len(option)) for option in options]) <= _MOST_LEVELS:
            return list(product(*options))
        rng = np.random.default_rng(0)
        drawn = np.stack([rng.choice(option, size=_MOST_LEVELS) for option in options], axis=-1)
        return list(dict.fromkeys(tuple(row) for row in drawn.tolist()))

    def excess(self, piece: Piece, Z: Float[Array, "n p"]) -> Float[Array, "n"]:
        """How far values are out of a piece, in shares of the ranges."""
        out = np.zeros(len(Z))
        for j, number in enumerate(self.numbers):
            if piece.there.get(number.name) and number.column is not None:
                away = (piece.low[j] - Z[:, j]).clip(0.0) + (Z[:, j] - piece.high[j]).clip(0.0)
                out += away / max(number.high - number.low, 1e-300)
        return out if piece.block is None else out + piece.block.excess(piece.block.shares(Z[:, piece.tied]))

    def _options(self, axis: Axis) -> list[int]:
        if axis.name in self.pinned:
            own = [i for i, level in enumerate(axis.levels) if level == self.pinned[axis.name]]
        else:
            own = list(range(len(axis.choices)))
        return [*own, *([ABSENT] if axis.name in self._conditions else [])]

    def of(self, levels: Levels) -> tuple[Piece, ...]:
        """The pieces with these levels of the relevant categories."""
        if levels not in self._known:
            self._known[levels] = tuple(self._built(levels))
        return self._known[levels]

    # ── how a piece comes about ───────────────────────────────────────────────────────────────────────────────────

    def _built(self, levels: Levels) -> list[Piece]:
        if any(number.empty and number.name not in self._conditions for number in self.numbers):
            return []
        own = dict(zip((axis.name for axis in self.categories), levels, strict=True))
        parts = [Part(tuple(number.low for number in self.numbers), tuple(number.high for number in self.numbers))]
        for name in self.relevant:
            parts = [made for part in parts for made in self._with_presence(part, name, own)][:_MOST_PIECES]
        for rule in self.rules:
            if isinstance(rule, FixedValue):
                parts = [made for part in parts for made in self._with_fixed(part, rule, own)]
        for rule in self.rules:
            if isinstance(rule, Forbidden):
                made = [kept for part in parts for kept in self._without(part, rule, own)]
                parts = list({(part.low, part.high): part for part in made}.values())[:_MOST_PIECES]
        return [piece for part in parts if (piece := self._made(part)) is not None]

    def _made(self, part: Part) -> Piece | None:
        """The piece of a part; that of equal parts is the same one, whatever the categories."""
        key = (part.low, part.high, tuple(part.there.items()))
        if key not in self._pieces:
            self._pieces[key] = self._tied(part)
        return self._pieces[key]

    def _with_presence(self, part: Part, name: str, own: dict[str, int]) -> list[Part]:
        """The part cut into where the parameter is there and where it is not."""
        condition, made = self._conditions.get(name), []
        for there, cut in [(True, part)] if condition is None else self._cuts(part, condition, own):
            if name in own and (own[name] != ABSENT) is not there:
                continue
            if there and name in self._at and self.numbers[self._at[name]].empty:
                continue
            made.append(replace(cut, there={**cut.there, name: there}))
        return made

    def _cuts(self, part: Part, condition: Condition, own: dict[str, int]) -> list[tuple[bool, Part]]:
        parent = str(condition.parent)
        if not part.there[parent]:
            return [(False, part)]
        if parent in own:
            return [(condition.allows(self._axes[parent].levels[own[parent]]), part)]
        j = self._at[parent]
        values = [v for v in (condition.least, condition.most, *condition.without) if np.isfinite(v)]
        edges = sorted({part.low[j], part.high[j], *(float(v) for v in values if part.low[j] < v < part.high[j])})
        runs: list[tuple[bool, float, float]] = []  # neighbours that are alike, together
        for below, edge in zip([None, *edges], edges, strict=False):
            gap = None if below is None else (below + 2 * rounding(below), edge - 2 * rounding(edge))
            for ends in (gap, (edge, edge)):
                found = None if ends is None else self.numbers[j].within(*ends)
                if found is not None:
                    allowed = condition.allows(sum(found) / 2)
                    alike = bool(runs) and runs[-1][0] is allowed
                    low = runs.pop()[1] if alike else found[0]
                    runs.append((allowed, low, found[1]))
        return [(allowed, part.narrowed(j, (low, high))) for allowed, low, high in runs]

    def _with_fixed(self, part: Part, rule: FixedValue, own: dict[str, int]) -> list[Part]:
        name = rule.parameter
        if not part.there[name]:
            return [part]
        if name in own:
            return [part] if rule.holds({name: self._axes[name].levels[own[name]]}) else []
        j = self._at[name]
        room = rounding(float(rule.value))
        if not part.low[j] - room <= rule.value <= part.high[j] + room:
            return []
        value = min(max(float(rule.value), part.low[j]), part.high[j])
        ends = self.numbers[j].within(value, value)
        return [part.narrowed(j, ends)] if ends else []

    def _without(self, part: Part, rule: Forbidden, own: dict[str, int]) -> list[Part]:
        """The part as it is if the combination is not in it; else one for each number that can keep away."""
        if not all(part.there[name] for name in rule.parameters):
            return [part]
        made = []
        for clause in rule.clauses:
            if clause.parameter in own:
                if not clause.met(self._axes[clause.parameter].levels[own[clause.parameter]]):
                    return [part]
                continue
            j = self._at[clause.parameter]
            for low, high in kept_away(clause):
                ends = self.numbers[j].within(max(low, part.low[j]), min(high, part.high[j]))
                if ends == (part.low[j], part.high[j]):
                    return [part]
                if ends is not None:
                    made.append(part.narrowed(j, ends))
        return made

    def _tied(self, part: Part) -> Piece | None:
        """The piece, if the linear rules leave anything of it."""
        rules = [r for r in self.rules if isinstance(r, LinearRule) and all(part.there[n] for n in r.parameters)]
        low, high = list(part.low), list(part.high)
        while True:  # rules about a single number are ends, which may fix it and so leave others with a single one
            rows = []
            for rule in rules:
                terms = [(self._at[name], factor) for name, factor in rule.terms]
                loose = [(j, factor) for j, factor in terms if low[j] < high[j]]
                rest = rule.bound - sum(factor * low[j] for j, factor in terms if low[j] == high[j])
                room = rounding(rule.bound, *(factor * low[j] for j, factor in terms))
                if not loose and not rule.relation.numbers(0.0, rest, room):
                    return None
                if len(loose) > 1:
                    rows.append((rule.relation, loose, rest))
                elif loose:
                    ((j, factor),) = loose
                    ends = kept_by(rule.relation, factor, rest)
                    found = self.numbers[j].within(max(low[j], ends[0]), min(high[j], ends[1]))
                    if found is None:
                        return None
                    low[j], high[j] = found
            if all(low[j] < high[j] for _, loose, _ in rows for j, _ in loose):
                break
        tied = sorted({j for _, loose, _ in rows for j, _ in loose})
        ends_found = np.array(low), np.array(high)
        if not tied:
            return Piece(*ends_found, part.there, np.array([], dtype=np.intp), None)
        block = self._block(rows, tied, *ends_found)
        return Piece(*ends_found, part.there, np.array(tied, dtype=np.intp), block) if block.feasible else None

    def _block(
        self, rows: list[tuple[Relation, list[tuple[int, float]], float]], tied: list[int], low: Array, high: Array
    ) -> Block:
        key = (tuple(tied), low[tied].tobytes(), high[tied].tobytes(), repr(rows))
        if key not in self._blocks:
            sides: dict[bool, list[Array]] = {True: [], False: []}
            for relation, terms, bound in rows:
                row = np.zeros(len(tied) + 1)
                for j, factor in terms:
                    row[tied.index(j)] = factor
                row[-1] = bound
                sides[relation is Relation.EQUAL].append(-row if relation is Relation.AT_LEAST else row)
            A, E = (np.array(sides[equal]).reshape(-1, len(tied) + 1) for equal in (False, True))
            own = tuple(self.numbers[j] for j in tied)
            self._blocks[key] = Block(own, low[tied], high[tied], A[:, :-1], A[:, -1], E[:, :-1], E[:, -1])
        return self._blocks[key]
