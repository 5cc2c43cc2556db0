"""A part of a space in which every number lies between two ends, and how a rule narrows it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from headstart.data.rules.rule import Clause, Relation, rounding
from headstart.decide.ruled.block import Block

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Piece:
    """Numbers between ``low`` and ``high``, those at ``tied`` being in the block; the others are each for itself."""

    low: Float[Array, "p"]
    high: Float[Array, "p"]
    there: dict[str, bool]
    tied: NDArray[np.intp]
    block: Block | None


@dataclass(frozen=True)
class Part:
    """A piece in the making."""

    low: tuple[float, ...]
    high: tuple[float, ...]
    there: dict[str, bool] = field(default_factory=dict)

    def narrowed(self, j: int, ends: tuple[float, float]) -> Part:
        """The part with number j between these ends."""
        low, high = list(self.low), list(self.high)
        low[j], high[j] = ends
        return replace(self, low=tuple(low), high=tuple(high))


def kept_by(relation: Relation, factor: float, bound: float) -> tuple[float, float]:
    """Between what one number with this factor keeps the rule."""
    value = bound / factor
    if relation is Relation.EQUAL:
        return value, value
    return (-np.inf, value) if (relation is Relation.AT_MOST) is (factor > 0) else (value, np.inf)


def kept_away(clause: Clause) -> list[tuple[float, float]]:
    """Where a number does not meet the condition."""
    v, room = float(clause.value), 2 * rounding(clause.value)
    match clause.relation:
        case Relation.ABOVE:
            return [(-np.inf, v)]
        case Relation.BELOW:
            return [(v, np.inf)]
        case Relation.AT_MOST:
            return [(v + room, np.inf)]
        case Relation.AT_LEAST:
            return [(-np.inf, v - room)]
        case Relation.EQUAL:
            return [(-np.inf, v - room), (v + room, np.inf)]
        case Relation.OTHER:
            return [(v, v)]
