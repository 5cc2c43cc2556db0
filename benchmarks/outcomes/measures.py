"""How good a run is after every evaluation. Values are behind their signs: smaller is better, limits are upper ones.

several objectives   the volume between the front of what was evaluated and a reference point, over that of the
                     front of the whole table. The reference is the worst value of every objective in the table
                     (``volume``), or a tenth beyond the front's own worst values (``nadir``): the first asks
                     whether anything is missed, the second how much of the front itself is known
with an agreed       the share of the volume between the results and the agreed reference (``agreed``), the same with
reference            the worst values of all (``plain``), and that of the evaluations that are no better (``worse``)
one, with limits     (best within the limits so far − best within them)/(worst − best within them), which is 1
                     before anything is within them (``regret``); and whether anything is (``found``)
one, with rules      (best so far − optimum)/(median of the domain − optimum), without the noise (``regret``)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import torch
from botorch.utils.multi_objective.hypervolume import Hypervolume
from jaxtyping import Bool, Float
from torch import Tensor

from headstart.decide.front import front_of, reference_beyond
from headstart.errors import InputError


def volume_of(Y: Float[Tensor, "n m"], reference: Float[Tensor, "m"]) -> float:
    """The volume of what is worse than some row of Y and better than the reference."""
    better = Y[(reference > Y).all(-1)]
    if len(better) == 0:
        return 0.0
    return float(Hypervolume(-reference).compute(-better[front_of(better)]))


class Yardstick(ABC):
    """What the results of a run are compared with."""

    @abstractmethod
    def curves(self, Y: Float[Tensor, "n m"]) -> dict[str, list[float]]:
        """A number for every evaluation, by measure, from all outcomes of all evaluations."""


@dataclass(frozen=True, eq=False)
class FrontVolume(Yardstick):
    """The volume that a table's front has, by measure, with the reference points."""

    references: Mapping[str, Float[Tensor, "m"]]
    volumes: Mapping[str, float]

    @classmethod
    def of(cls, Y: Float[Tensor, "n m"]) -> Self:
        """Of all rows of a table."""
        spread = Y.std(0)
        references = {"volume": Y.amax(0), "nadir": reference_beyond(Y, spread)}
        volumes = {name: volume_of(Y, reference) for name, reference in references.items()}
        if not min(volumes.values()) > 0:
            raise InputError("The front of the table has no volume: some objective is constant.")
        return cls(references, volumes)

    def curves(self, Y: Float[Tensor, "n m"]) -> dict[str, list[float]]:
        """The shares of the volumes."""
        return {
            name: [volume_of(Y[: n + 1], reference) / self.volumes[name] for n in range(len(Y))]
            for name, reference in self.references.items()
        }


@dataclass(frozen=True, eq=False)
class AgreedVolume(Yardstick):
    """The volumes of a front with respect to an agreed reference, and to the worst values of all."""

    reference: Float[Tensor, "m"]
    worst: Float[Tensor, "m"]
    volumes: tuple[float, float]

    @classmethod
    def of(cls, Y: Float[Tensor, "n m"], reference: Float[Tensor, "m"]) -> Self:
        """Of many random points."""
        worst = Y.amax(0)
        volumes = volume_of(Y, reference), volume_of(Y, worst)
        if not min(volumes) > 0:
            raise InputError("No point is better than the agreed reference.")
        return cls(reference, worst, volumes)

    def curves(self, Y: Float[Tensor, "n m"]) -> dict[str, list[float]]:
        """The shares of both volumes, and that of the evaluations that are no better than the agreed reference."""
        ends = zip(("agreed", "plain"), (self.reference, self.worst), self.volumes, strict=True)
        shares = {name: [volume_of(Y[: n + 1], end) / full for n in range(len(Y))] for name, end, full in ends}
        worse = (self.reference <= Y).any(-1).to(Y).cumsum(0) / torch.arange(1, len(Y) + 1)
        return {**shares, "worse": worse.tolist()}


@dataclass(frozen=True, eq=False)
class WithinLimits(Yardstick):
    """The best and the worst value of the first outcome where all others are within their bounds."""

    best: float
    worst: float
    bounds: Float[Tensor, "c"]

    @classmethod
    def of(cls, Y: Float[Tensor, "n m"], bounds: Float[Tensor, "c"]) -> Self:
        """Of all rows of a table."""
        within = Y[_within(Y, bounds), 0]
        if len(within) == 0 or not within.amax() > within.amin():
            raise InputError("Fewer than two different results of the table are within the limits.")
        return cls(float(within.amin()), float(within.amax()), bounds)

    def curves(self, Y: Float[Tensor, "n m"]) -> dict[str, list[float]]:
        """The regret, and whether anything was found."""
        within = _within(Y, self.bounds)
        value = torch.where(within, Y[:, 0], self.worst).cummin(0).values
        regret = (value - self.best) / (self.worst - self.best)
        return {"regret": regret.tolist(), "found": within.to(Y).cummax(0).values.tolist()}


def _within(Y: Float[Tensor, "n m"], bounds: Float[Tensor, "c"]) -> Bool[Tensor, "n"]:
    return (Y[:, 1:] <= bounds).all(-1)


@dataclass(frozen=True)
class BelowOptimum(Yardstick):
    """The lowest value that keeps the rules, and the median of random points that do."""

    optimum: float
    typical: float

    def curves(self, Y: Float[Tensor, "n m"]) -> dict[str, list[float]]:
        """The regret; Y are values without noise."""
        best = Y[:, 0].cummin(0).values
        return {"regret": ((best - self.optimum) / (self.typical - self.optimum)).tolist()}
