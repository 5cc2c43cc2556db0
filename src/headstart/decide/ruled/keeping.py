"""Which of many points keep the rules: the same verdict as that of each rule on the decoded row, for all at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from headstart.data.axis import Axis
from headstart.data.rules.rule import Clause, FixedValue, Forbidden, LinearRule, OnSteps, Relation, SettingRule
from headstart.data.space import Space
from headstart.decide.ruled.numbers import Number
from headstart.decide.ruled.pieces import ABSENT, Levels, Pieces

Flags = NDArray[np.bool_]
Numbers = NDArray[np.float64]

_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Reading:
    """What the parameters are at some points of a space: values of numbers, levels of the categories of rules."""

    Z: Float[Numbers, "n p"]
    levels: Int[NDArray[np.int64], "n c"]
    there: Mapping[str, Flags]
    numbers: tuple[Number, ...]
    categories: tuple[Axis, ...]

    @classmethod
    def of(cls, X: Float[Tensor, "n d"], space: Space, pieces: Pieces) -> Reading:
        """That of points of the space."""
        U = X.numpy()
        Z = [number.values(np.zeros(len(U)) if (c := number.column) is None else U[:, c]) for number in pieces.numbers]
        present = None
        if any(condition.parent for _, condition in space.conditions):
            present = dict(zip(space.names, space.present(X).T.numpy(), strict=True))
        everywhere = np.ones(len(U), dtype=bool)
        there = {name: everywhere if present is None else present[name] for name in pieces.relevant}
        levels = []
        for axis in pieces.categories:
            level = axis.level_at(X[:, axis.columns]).numpy() if axis.width else np.zeros(len(U), dtype=np.int64)
            levels.append(np.where(there[axis.name], level, ABSENT))
        table = np.stack(levels, axis=-1) if levels else np.zeros((len(U), 0), dtype=np.int64)
        values = np.stack(Z, axis=-1) if Z else np.zeros((len(U), 0))
        return cls(values, table, there, pieces.numbers, pieces.categories)

    def combinations(self) -> list[tuple[Levels, NDArray[np.intp]]]:
        """The combinations of levels that occur, each with the points that have it."""
        if self.levels.shape[1] == 0:
            return [((), np.arange(len(self.Z)))]
        found, index = np.unique(self.levels, axis=0, return_inverse=True)
        return [(tuple(row), np.flatnonzero(index.ravel() == i)) for i, row in enumerate(found.tolist())]

    def keeps(self, rules: Sequence[SettingRule]) -> Flags:
        """Which of the points keep all of the rules."""
        kept = np.ones(len(self.Z), dtype=bool)
        for rule in rules:
            there = np.logical_and.reduce([self.there[name] for name in rule.parameters])
            kept &= self._holds(rule) | ~there
        return kept

    def _holds(self, rule: SettingRule) -> Flags:
        match rule:
            case LinearRule(terms=terms, relation=relation, bound=bound):
                parts = np.stack([factor * self._value(name) for name, factor in terms])
                room = _ROUNDING * np.abs(parts).max(0).clip(max(1.0, abs(bound)))
                return _lies(relation, parts.sum(0) - bound, room)
            case Forbidden(clauses=clauses):
                return np.asarray(~np.logical_and.reduce([self._meets(clause) for clause in clauses]))
            case FixedValue(parameter=name, value=value):
                return self._meets(Clause(name, Relation.EQUAL, value))
            case OnSteps(parameter=name, step=step, start=start):
                z = self._value(name)
                apart = z - (start + np.round((z - start) / step) * step)
                return _lies(Relation.EQUAL, apart, _ROUNDING * np.abs(z).clip(1.0))
        raise TypeError(f"{type(rule).__name__} is no rule that a search knows.")

    def _value(self, name: str) -> Numbers:
        return self.Z[:, next(j for j, number in enumerate(self.numbers) if number.name == name)]

    def _meets(self, clause: Clause) -> Flags:
        for c, axis in enumerate(self.categories):
            if axis.name == clause.parameter:
                return np.asarray(np.array([clause.met(level) for level in axis.levels])[self.levels[:, c]])
        room = np.full(len(self.Z), _ROUNDING * max(1.0, abs(float(clause.value))))
        return _lies(clause.relation, self._value(clause.parameter) - float(clause.value), room)


def _lies(relation: Relation, apart: Numbers, room: Numbers) -> Bool[Flags, "n"]:
    match relation:
        case Relation.AT_MOST:
            return np.asarray(apart <= room)
        case Relation.AT_LEAST:
            return np.asarray(apart >= -room)
        case Relation.EQUAL:
            return np.asarray(np.abs(apart) <= room)
        case Relation.ABOVE:
            return np.asarray(apart > room)
        case Relation.BELOW:
            return np.asarray(apart < -room)
        case Relation.OTHER:
            return np.asarray(np.abs(apart) > room)
