"""``Pieces``: a space with rules as a union of pieces, in each of which all rules are linear constraints.

A piece has given categories, and every number between two ends:

rule                          what it does to a piece
FixedValue                    leaves one category, or sets both ends
Forbidden                     where its categories are met, one of its numbers keeps away: a piece for each of them
a conditional parameter       its parent lies where it is active, or where it is not: a piece for each
LinearRule                    sets an end if it has a single number left; else ties its numbers together in a ``Block``,
                              after a piece was made for each value of those that are discrete numbers
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
from headstart.data.ranges import rounding
from headstart.data.rules.rule import Clause, FixedValue, Forbidden, LinearRule, OnSteps, Relation, SettingRule
from headstart.data.space import Space
from headstart.decide.ruled.block import Block
from headstart.decide.ruled.numeric import NumericRange
from headstart.errors import NoSettingError

Array = NDArray[np.float64]
Levels = tuple[int, ...]

ABSENT = -1  # the level of a category that is not active
_MOST_PIECES = 256  # for one combination of categories
_MOST_LEVELS = 4096  # combinations of categories; of more, a random sample is looked at


@dataclass(frozen=True)
class Piece:
    """Numbers from ``low`` to ``high``; those at ``tied`` are in the block, the others free of it.

    ``active`` are the parameters of the rules that are active there. Pieces with equal ends are equal.
    """

    numbers: tuple[NumericRange, ...] = field(compare=False)
    low: tuple[float, ...]
    high: tuple[float, ...]
    active: frozenset[str] = frozenset()
    tied: tuple[int, ...] = ()
    block: Block | None = field(default=None, compare=False)

    def narrowed(self, j: int, ends: tuple[float, float]) -> Piece:
        """The piece with number j between these ends."""
        low, high = list(self.low), list(self.high)
        low[j], high[j] = ends
        return replace(self, low=tuple(low), high=tuple(high))

    @cached_property
    def loose(self) -> list[tuple[int, NumericRange]]:
        """The active numbers that are not tied."""
        return [(j, n) for j, n in enumerate(self.numbers) if n.name in self.active and j not in self.tied]

    def excess(self, Z: Float[Array, "n p"]) -> Float[Array, "n"]:
        """How far values violate the constraints, in shares of the ranges."""
        out = np.zeros(len(Z))
        for j, number in enumerate(self.numbers):
            if number.name in self.active and number.column is not None:
                away = (self.low[j] - Z[:, j]).clip(0.0) + (Z[:, j] - self.high[j]).clip(0.0)
                out += away / max(number.high - number.low, 1e-300)
                if number.listed and self.low[j] == self.high[j]:  # a value of its own is left for the rules alone
                    out += away > 0
        return out if self.block is None else out + self.block.excess(self.block.shares(Z[:, self.tied]))

    def clipped(self, Z: Float[Array, "n p"]) -> Float[Array, "n p"]:
        """The nearest values inside of the numbers that are not tied."""
        Z = Z.copy()
        for j, number in self.loose:
            Z[:, j] = number.nearest(Z[:, j], self.low[j], self.high[j])
        return Z

    def nearest(self, Z: Float[Array, "n p"]) -> Float[Array, "n p"]:
        """The nearest values inside."""
        Z = self.clipped(Z)
        if self.block is not None:
            Z[:, self.tied] = self.block.values(self.block.nearest(self.block.shares(Z[:, self.tied])))
        return Z


@dataclass(frozen=True, eq=False)
class Pieces:
    """The pieces of a space with rules, by the levels of the relevant categories; each is computed when needed."""

    space: Space
    rules: tuple[SettingRule, ...]
    pinned: Mapping[str, Any] = field(default_factory=dict)
    _known: dict[Levels, tuple[Piece, ...]] = field(default_factory=dict)
    _blocks: dict[str, Block] = field(default_factory=dict)

    @cached_property
    def numbers(self) -> tuple[NumericRange, ...]:
        """The numeric parameters."""
        steps = [rule for rule in self.rules if isinstance(rule, OnSteps)]
        return tuple(
            NumericRange.of(axis, [rule for rule in steps if rule.parameter == axis.name], self.pinned.get(axis.name))
            for axis in self.space.axes
            if not axis.categorical
        )

    @cached_property
    def _at(self) -> dict[str, int]:
        return {number.name: j for j, number in enumerate(self.numbers)}

    @cached_property
    def _conditions(self) -> dict[str, Condition]:
        return {name: condition for name, condition in self.space.conditions if condition.parent is not None}

    @cached_property
    def relevant(self) -> tuple[str, ...]:
        """The parameters of the rules and those that they are conditional on, parents first."""

        def line(name: str) -> list[str]:
            """What it is conditional on, and itself."""
            return [*(line(str(self._conditions[name].parent)) if name in self._conditions else ()), name]

        every = dict.fromkeys(own for rule in self.rules for name in rule.parameters for own in line(name))
        return tuple(sorted(every, key=lambda name: len(line(name))))

    @cached_property
    def categories(self) -> tuple[Axis, ...]:
        """The categorical parameters among the relevant ones."""
        return tuple(self.space.by_name[name] for name in self.relevant if self.space.by_name[name].categorical)

    @cached_property
    def in_sums(self) -> frozenset[str]:
        """The parameters in linear rules of more than one term."""
        linear = [rule for rule in self.rules if isinstance(rule, LinearRule) and len(rule.terms) > 1]
        return frozenset(name for rule in linear for name in rule.parameters)

    @cached_property
    def possible(self) -> tuple[Levels, ...]:
        """The combinations of levels that have pieces; of very many, a sample."""
        return tuple(levels for levels in self._combinations if self.of(levels))

    @cached_property
    def _combinations(self) -> list[Levels]:
        options = []
        for axis in self.categories:
            own = list(range(len(axis.choices)))
            if axis.name in self.pinned:
                own = [i for i, level in enumerate(axis.levels) if level == self.pinned[axis.name]]
            options.append([*own, ABSENT] if axis.name in self._conditions else own)
        if np.prod([float(len(option)) for option in options]) <= _MOST_LEVELS:
            return list(product(*options))
        rng = np.random.default_rng(0)
        drawn = np.stack([rng.choice(option, size=_MOST_LEVELS) for option in options], axis=-1)
        return list(dict.fromkeys(tuple(row) for row in drawn.tolist()))

    def of(self, levels: Levels) -> tuple[Piece, ...]:
        """The pieces with these levels of the relevant categories."""
        if levels not in self._known:
            self._known[levels] = tuple(self._built(levels))
        return self._known[levels]

    def require_feasible(self) -> None:
        """Raise a ``NoSettingError`` with a minimal set of contradicting rules, if nothing satisfies all of them."""
        if any(map(self.of, self._combinations)):
            return
        needed = list(self.rules)
        for rule in self.rules:
            fewer = [other for other in needed if other is not rule]
            without = Pieces(self.space, tuple(fewer), self.pinned)
            if not any(map(without.of, without._combinations)):
                needed = fewer
        given = " with " + ", ".join(f"{name} = {value}" for name, value in self.pinned.items()) if self.pinned else ""
        which, it = "all of these rules: " + "; ".join(map(str, needed)), "one"
        if len(needed) == 1:
            which, it = f"the rule {str(needed[0])!r}", "it"
        raise NoSettingError(f"No setting of the space{given} keeps {which}. Change or remove {it}.")

    def _built(self, levels: Levels) -> list[Piece]:
        if any(number.count == 0 and number.name not in self._conditions for number in self.numbers):
            return []
        own = dict(zip((axis.name for axis in self.categories), levels, strict=True))
        ends = tuple(number.low for number in self.numbers), tuple(number.high for number in self.numbers)
        parts = [Piece(self.numbers, *ends)]
        for name in self.relevant:
            parts = [made for part in parts for made in self._with_presence(part, name, own)][:_MOST_PIECES]
        fixed = [rule for rule in self.rules if isinstance(rule, FixedValue)]
        avoided: list[tuple[Clause, ...]] = [(Clause(rule.parameter, Relation.OTHER, rule.value),) for rule in fixed]
        avoided += [rule.clauses for rule in self.rules if isinstance(rule, Forbidden)]
        for clauses in avoided:
            made = [kept for part in parts for kept in self._without(part, clauses, own)]
            parts = list(dict.fromkeys(made))[:_MOST_PIECES]
        for j, number in enumerate(self.numbers):
            if number.listed and number.name in self.in_sums:
                parts = _sample([made for part in parts for made in self._by_value(part, j)], _MOST_LEVELS)
        parts = _sample(parts, _MOST_PIECES)
        return [piece for part in parts if (piece := self._tied(part)) is not None]

    def _with_presence(self, part: Piece, name: str, own: dict[str, int]) -> list[Piece]:
        """The part cut into where the parameter is active and where it is not."""
        condition, made = self._conditions.get(name), []
        for there, cut in [(True, part)] if condition is None else self._cuts(part, condition, own):
            if name in own and (own[name] != ABSENT) is not there:
                continue
            if there and name in self._at and self.numbers[self._at[name]].count == 0:
                continue
            made.append(replace(cut, active=cut.active | {name}) if there else cut)
        return made

    def _cuts(self, part: Piece, condition: Condition, own: dict[str, int]) -> list[tuple[bool, Piece]]:
        parent = str(condition.parent)
        if parent not in part.active:
            return [(False, part)]
        if parent in own:
            return [(condition.allows(self.space.by_name[parent].levels[own[parent]]), part)]
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

    def _without(self, part: Piece, clauses: tuple[Clause, ...], own: dict[str, int]) -> list[Piece]:
        """The part itself if the combination is not in it; else a part for each number that can avoid it."""
        if not all(clause.parameter in part.active for clause in clauses):
            return [part]
        made = []
        for clause in clauses:
            if clause.parameter in own:
                level = self.space.by_name[clause.parameter].levels[own[clause.parameter]]
                if Forbidden((clause,)).holds({clause.parameter: level}):
                    return [part]
                continue
            j = self._at[clause.parameter]
            for low, high in _intervals(clause.relation.opposite, float(clause.value)):
                ends = self.numbers[j].within(max(low, part.low[j]), min(high, part.high[j]))
                if ends == (part.low[j], part.high[j]):
                    return [part]
                if ends is not None:
                    made.append(part.narrowed(j, ends))
        return made

    def _by_value(self, part: Piece, j: int) -> list[Piece]:
        """A part for each value of a list of numbers in a sum, as far as the other terms can satisfy the rules."""
        number = self.numbers[j]
        if number.name not in part.active:
            return [part]
        made = [part.narrowed(j, (v, v)) for v in number.listed if part.low[j] <= v <= part.high[j]]
        return [one for one in made if all(self._within_reach(rule, one) for rule in self._linear(part))]

    def _linear(self, part: Piece) -> list[LinearRule]:
        return [r for r in self.rules if isinstance(r, LinearRule) and part.active.issuperset(r.parameters)]

    def _within_reach(self, rule: LinearRule, part: Piece) -> bool:
        """Whether the sum can be on the right side of the bound with every term between its ends."""
        ends = [sorted((f * part.low[self._at[n]], f * part.high[self._at[n]])) for n, f in rule.terms]
        least, most = sum(own[0] for own in ends), sum(own[1] for own in ends)
        room = rounding(rule.bound, *(end for own in ends for end in own))
        reaches, stays = most >= rule.bound - room, least <= rule.bound + room
        return (reaches or rule.relation is Relation.AT_MOST) and (stays or rule.relation is Relation.AT_LEAST)

    def _tied(self, part: Piece) -> Piece | None:
        """The part under the linear rules; None if they leave nothing of it."""
        rules = self._linear(part)
        low, high = list(part.low), list(part.high)
        while True:  # rules about a single number are ends, which may fix it and so leave others with a single one
            rows = []
            for rule in rules:
                # ≥ is ≤ with all signs turned
                sign, equal = -1.0 if rule.relation is Relation.AT_LEAST else 1.0, rule.relation is Relation.EQUAL
                terms = [(self._at[name], sign * factor) for name, factor in rule.terms]
                loose = [(j, factor) for j, factor in terms if low[j] < high[j]]
                rest = sign * rule.bound - sum(factor * low[j] for j, factor in terms if low[j] == high[j])
                room = rounding(rule.bound, *(factor * low[j] for j, factor in terms))
                if not loose and (abs(rest) if equal else -rest) > room:
                    return None
                if len(loose) > 1:
                    rows.append((equal, loose, rest))
                elif loose:
                    ((j, factor),) = loose
                    least = rest / factor if equal or factor < 0 else -np.inf
                    most = rest / factor if equal or factor > 0 else np.inf
                    found = self.numbers[j].within(max(low[j], least), min(high[j], most))
                    if found is None:
                        return None
                    low[j], high[j] = found
            if all(low[j] < high[j] for _, loose, _ in rows for j, _ in loose):
                break
        tied = tuple(sorted({j for _, loose, _ in rows for j, _ in loose}))
        made = replace(part, low=tuple(low), high=tuple(high), tied=tied)
        if not tied:
            return made
        ends = [(low[j], high[j]) for j in tied]
        key = repr((tied, ends, rows))
        if key not in self._blocks:  # which the pieces of other categories may share
            sides = [(is_equal, [dict(terms).get(j, 0.0) for j in tied] + [bound]) for is_equal, terms, bound in rows]
            A, E = (
                np.array([side for is_equal, side in sides if is_equal is equal]).reshape(-1, len(tied) + 1)
                for equal in (False, True)
            )
            own, (least, most) = tuple(self.numbers[j] for j in tied), np.array(ends).T
            self._blocks[key] = Block(own, least, most, A[:, :-1], A[:, -1], E[:, :-1], E[:, -1])
        return replace(made, block=self._blocks[key]) if len(self._blocks[key].found) else None


def _sample(parts: list[Piece], most: int) -> list[Piece]:
    """No more than so many of the parts, evenly."""
    return parts if len(parts) <= most else [parts[i * len(parts) // most] for i in range(most)]


def _intervals(relation: Relation, v: float) -> list[tuple[float, float]]:
    """Where a number compares so with v."""
    below, above = v - 2 * rounding(v), v + 2 * rounding(v)
    return {
        Relation.AT_MOST: [(-np.inf, v)],
        Relation.AT_LEAST: [(v, np.inf)],
        Relation.EQUAL: [(v, v)],
        Relation.ABOVE: [(above, np.inf)],
        Relation.BELOW: [(-np.inf, below)],
        Relation.OTHER: [(-np.inf, below), (above, np.inf)],
    }[relation]
