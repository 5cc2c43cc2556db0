"""A problem with several outcomes, as one run meets it: a past, a target, and what its results are measured by."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

from benchmarks.outcomes.measures import Yardstick
from benchmarks.problems.adversarial import Scenario
from headstart.data.dataset import Dataset
from headstart.data.outcomes import Outcomes
from headstart.data.space import Space
from headstart.decide.domain import Candidates, Domain
from headstart.decide.ruled.ruled import Ruled

# What is done to the sources of an outcome; those of outcomes that are not named stay as they are
Spoiling = Mapping[str, Scenario]


@dataclass(frozen=True, eq=False)
class OutcomeInstance:
    """One run's problem. Values are as measured.

    ``rows`` are the points that can be evaluated, each once; without them it is every point of the space that keeps
    the ``rules``. ``evaluate`` gives every outcome of points (n, d), by name and without noise, and ``noise`` (steps)
    is added to what is seen of each.
    """

    outcomes: Outcomes
    space: Space
    sources: Mapping[str, tuple[Dataset, ...]]
    label: str
    yardstick: Yardstick
    evaluate: Callable[[Float[Tensor, "n d"]], dict[str, Tensor]]
    noise: Mapping[str, Float[Tensor, "steps"]]
    rows: Float[Tensor, "m d"] | None = None
    rules: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """What draws of this instance are keyed by, besides the problem and the seed."""
        return self.label

    @cached_property
    def domain(self) -> Domain:
        """The points that may be suggested."""
        if self.rows is not None:
            return Candidates(self.rows, self.space.categories)
        return Ruled(self.space, self.rules)

    def inward(self, values: Mapping[str, Tensor]) -> Float[Tensor, "n m"]:
        """All outcomes, in order and behind their signs."""
        return torch.stack([outcome.sign * values[outcome.name] for outcome in self.outcomes], dim=-1)

    def nearest(self, x: Float[Tensor, "d"], tried: Float[Tensor, "n d"]) -> Float[Tensor, "d"]:
        """The point that is evaluated instead of x: the nearest row that is not tried yet, or a point that keeps rules.

        Rows of equal inputs are evaluated once.
        """
        if self.rows is None:
            return self.domain.snap(x.unsqueeze(0))[0]
        free = self.free_rows(tried)
        return free[(free - x).square().sum(-1).argmin()]

    def free_rows(self, tried: Float[Tensor, "n d"]) -> Float[Tensor, "k d"]:
        """The rows that are not tried yet."""
        assert self.rows is not None
        if len(tried) == 0:
            return self.rows
        return self.rows[torch.cdist(self.rows, tried, p=torch.inf).amin(-1) > 0]


class OutcomeProblem(ABC):
    """A way of drawing instances, keyed by the seed: every method meets the same."""

    name: str
    title: str
    outcomes: tuple[str, ...]
    main: str  # the measure that counts
    fingerprint: str | None = None

    @abstractmethod
    def draw(self, seed: int, steps: int, spoiling: Spoiling | None = None) -> OutcomeInstance:
        """The instance of this seed; ``spoiling`` changes the sources and nothing else."""
