"""Sources that mislead: a problem whose target stays what it is, while its source data are spoilt in a known way.

RELATED     as they are
SCALED      5 y + 100: the same shape in other units
NEGATED     −y: the best is shown as the worst
NOISE       random values of the same mean and spread
CONSTANT    the mean everywhere
SHIFTED     inputs moved by a third of their range, round the corner: the optimum is somewhere else
SWAPPED     the last source has two of its numeric inputs exchanged, as by a slip of the pen
NINE_BAD    one good source, and nine that are negated, noise or constant in turn, in an order drawn by the seed
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum

import torch
from torch import Tensor

from benchmarks.problems.problem import Instance, Problem, stream
from headstart.data.dataset import Dataset
from headstart.errors import InputError

_SHIFT = 1 / 3
_BAD = 9


class Scenario(StrEnum):
    """What is done to the sources."""

    RELATED = "related"
    SCALED = "scaled"
    NEGATED = "negated"
    NOISE = "noise"
    CONSTANT = "constant"
    SHIFTED = "shifted"
    SWAPPED = "swapped"
    NINE_BAD = "nine-bad"


class SpoiltProblem(Problem):
    """The same targets, noise and first random points as ``problem``, with spoilt sources."""

    def __init__(self, problem: Problem, scenario: Scenario) -> None:
        self.problem, self.scenario, self.d = problem, scenario, problem.d
        self.fingerprint = problem.fingerprint
        self.name = problem.name.replace("[", f"[{scenario},", 1)
        self.space = problem.space
        one_each = tuple(slice(i, i + 1) for i in range(self.d))
        self._columns = one_each if self.space is None else tuple(a.columns for a in self.space.axes if a.width)
        if scenario is Scenario.SWAPPED:
            self._two_numeric(())

    def _two_numeric(self, unseen: Sequence[int]) -> tuple[int, int]:
        """The first and the last column of a numeric input that the source has recorded."""
        numeric = [c.start for c in self._columns if c.stop - c.start == 1 and c.start not in unseen]
        if len(numeric) < 2:
            raise InputError(f"{self.problem.name} has fewer than two numeric inputs: there is nothing to exchange.")
        return numeric[0], numeric[-1]

    def draw(self, seeds: Sequence[int], steps: int) -> Instance:
        """The instances of these seeds with other sources."""
        instance = self.problem.draw(seeds, steps)
        return replace(instance, sources=self._spoilt(instance.sources, seeds))

    def _spoilt(self, sources: tuple[Dataset, ...], seeds: Sequence[int]) -> tuple[Dataset, ...]:
        match self.scenario:
            case Scenario.SWAPPED:
                return (*sources[:-1], self._swapped(sources[-1]))
            case Scenario.NINE_BAD:
                return self._one_good(sources, seeds)
            case _:
                return tuple(self._one(s, self.scenario, seeds, i) for i, s in enumerate(sources))

    def _one(self, source: Dataset, scenario: Scenario, seeds: Sequence[int], number: int) -> Dataset:
        X, y = source.X, source.y
        mean = y.mean(-1, keepdim=True)
        match scenario:
            case Scenario.SCALED:
                y = 5 * y + 100
            case Scenario.NEGATED:
                y = -y
            case Scenario.NOISE:
                draws = [
                    torch.randn(
                        source.n, generator=stream(self.problem.name, seed, "noise source", number), dtype=y.dtype
                    )
                    for seed in seeds
                ]
                y = mean + y.std(-1, keepdim=True) * torch.stack(draws)
            case Scenario.CONSTANT:
                y = mean.expand_as(y)
            case Scenario.SHIFTED:
                X = self._shifted(X)
            case _:
                pass
        return source.with_data(X, y)

    def _shifted(self, X: Tensor) -> Tensor:
        """Numeric inputs moved by a third, categories by a third of their number."""
        moved = X.clone()
        for columns in self._columns:
            part, width = X[..., columns], columns.stop - columns.start
            moved[..., columns] = (
                torch.frac(part + _SHIFT) if width == 1 else part.roll(max(1, round(width * _SHIFT)), dims=-1)
            )
        return moved

    def _swapped(self, source: Dataset) -> Dataset:
        first, last = self._two_numeric(source.unseen)
        X = source.X.clone()
        X[..., [first, last]] = source.X[..., [last, first]]
        return source.with_data(X, source.y)

    def _one_good(self, sources: tuple[Dataset, ...], seeds: Sequence[int]) -> tuple[Dataset, ...]:
        ways = (Scenario.NEGATED, Scenario.NOISE, Scenario.CONSTANT)
        others = sources[1:] or sources  # the good one's data are used again only where there is no other source
        bad = [self._one(others[-1 - i % len(others)], ways[i % len(ways)], seeds, i) for i in range(_BAD)]
        every = (sources[0], *bad)
        if len({source.unseen for source in every}) > 1:
            raise InputError(
                f"The sources of {self.problem.name} must have recorded the same inputs, for they change places, "
                "but they have not."
            )
        orders = [
            torch.randperm(len(every), generator=stream(self.problem.name, seed, "order of sources")) for seed in seeds
        ]
        X, y = torch.stack([s.X for s in every], dim=1), torch.stack([s.y for s in every], dim=1)
        rows, order = torch.arange(len(seeds)).unsqueeze(-1), torch.stack(orders)
        X, y = X[rows, order], y[rows, order]
        unseen, levels = every[0].unseen, every[0].categories
        return tuple(Dataset(X[:, i], y[:, i], f"source {i}", unseen, levels) for i in range(len(every)))
