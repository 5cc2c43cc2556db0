"""May the past be trusted? What the sources say about themselves and each other, before the first result."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from headstart.data.dataset import Dataset
from headstart.models.auto.explanation import SourceVerdict, auto_only, explain
from headstart.models.auto.unusable import WhyUnusable, why_unusable
from headstart.models.chain.layer import Layer
from headstart.models.model import Prior

# A correlation below this is no agreement, however many rows it comes from; with few rows twice chance (1/√n) counts
_WEAK = 0.3


@dataclass(frozen=True, slots=True)
class PastCheck:
    """What past campaigns say about themselves (``gains`` ± ``errors``, nats per row) and about each other.

    ``silent`` says why a campaign says nothing; None where it does. ``agreement[i, j]`` is the
    correlation of what i predicts with what j measured; NaN where i says nothing, or j has nothing to compare with.
    """

    verdicts: tuple[SourceVerdict, ...]
    rows: tuple[int, ...]
    gains: tuple[float, ...]
    errors: tuple[float, ...]
    silent: tuple[WhyUnusable | None, ...]
    agreement: NDArray[np.float64]

    @property
    def names(self) -> tuple[str, ...]:
        """Of the campaigns, in order."""
        return tuple(v.name for v in self.verdicts)

    def relation(self, i: int, j: int) -> float | None:
        """The correlation of two campaigns, the mean of both directions; None where it may be chance."""
        both = float(self.agreement[i, j] + self.agreement[j, i]) / 2
        chance = max(_WEAK, 2 / math.sqrt(min(self.rows[i], self.rows[j])))
        return both if abs(both) > chance else None

    def agrees(self, i: int) -> tuple[str, ...]:
        """The campaigns that show what this one shows."""
        return self._related(i, 1.0)

    def contradicts(self, i: int) -> tuple[str, ...]:
        """The campaigns that show the reverse."""
        return self._related(i, -1.0)

    def _related(self, i: int, sign: float) -> tuple[str, ...]:
        others = ((name, self.relation(i, j)) for j, name in enumerate(self.names) if j != i)
        return tuple(name for name, r in others if r is not None and sign * r > 0)


def check_past(prior: Prior) -> PastCheck:
    """What the sources say about themselves and each other."""
    auto = auto_only(prior)
    with torch.no_grad():
        between = agreement(auto.alone.layers, auto.sources).numpy().copy()
    silent = tuple(why_unusable(auto, i) for i in range(len(auto.sources)))
    between[[why is not None for why in silent]] = math.nan
    between[:, [why in (WhyUnusable.CONSTANT, WhyUnusable.TOO_FEW) for why in silent]] = math.nan
    return PastCheck(
        verdicts=explain(auto).sources,
        rows=tuple(source.n for source in auto.sources),
        gains=tuple(auto.gate.gain.tolist()),
        errors=tuple(auto.gate.error.tolist()),
        silent=silent,
        agreement=between,
    )


def agreement(layers: Sequence[Layer], sources: Sequence[Dataset]) -> Float[Tensor, "s s"]:
    """How source i predicts source j: the correlation of i's mean at j's inputs with j's values; 1 on the diagonal.

    Below 0 one shows the other upside down. A mean that is flat there says nothing: 0.
    """
    result = torch.eye(len(sources), dtype=torch.float64)
    for i, layer in enumerate(layers):
        for j, source in enumerate(sources):
            if i != j:
                mean, _ = layer.predict_marginal(source.X)
                a, b = mean - mean.mean(), source.y - source.y.mean()
                size = a.norm() * b.norm()
                result[i, j] = a @ b / size if size > 0 else 0.0
    return result
