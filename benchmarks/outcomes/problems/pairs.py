"""Made-up experiments with two outcomes, to try things out on: the tables are for judging them.

    problem                        outcomes, both minimised                       candidates
    coupling-two, -limit           two tasks of a laboratory's family             300 random points of its space
    turning-two, -limit            (bench.problems.laboratory) over the same
    roasting-two, -limit           inputs: loss and waste

Every source is a pair of such tasks, too, with 60 noisy rows. The parameters of the two outcomes are drawn apart, so
that they want different settings. ``-limit`` wants waste at most its 25 % quantile among the candidates.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from benchmarks.outcomes.measures import FrontVolume, WithinLimits, Yardstick
from benchmarks.outcomes.problems.problem import OutcomeInstance, OutcomeProblem, Spoiling
from benchmarks.outcomes.problems.tables import spoilt_sources
from benchmarks.problems.laboratory import LABORATORY, Laboratory
from benchmarks.problems.problem import Instance, Problem, stream
from headstart.data.dataset import Dataset
from headstart.data.outcomes import Goal, Limit, Outcomes

_SOURCES, _POINTS, _CANDIDATES = 3, 60, 300
_LOSS, _WASTE = "loss", "waste"


class LaboratoryPair(OutcomeProblem):
    """Two outcomes of a laboratory's family, the second a goal or limited."""

    outcomes = (_LOSS, _WASTE)

    def __init__(self, family: str, *, limited: bool) -> None:
        self.family, self._limited = LABORATORY[family], limited
        self.name = f"{family}-{'limit' if limited else 'two'}"
        self.title = f"two outcomes of {family}{', the second limited' * limited}"
        self.main = "regret" if limited else "volume"

    def draw(self, seed: int, steps: int, spoiling: Spoiling | None = None) -> OutcomeInstance:
        """The tasks and the candidates of the seed."""
        X = self.family.random_points(1, _CANDIDATES, stream(self.family.name, seed, "candidates"))[0]
        sources, values = {}, {}
        for outcome in self.outcomes:
            past = _Tasks(self.family, outcome)
            sources[outcome] = spoilt_sources(past, outcome, seed, steps, spoiling)
            values[outcome] = self.family.evaluate(past.params(seed)[-1], X)
        limit = Limit(_WASTE, at_most=float(values[_WASTE].quantile(0.25)))
        outcomes = Outcomes((Goal(_LOSS),), (limit,)) if self._limited else Outcomes((Goal(_LOSS), Goal(_WASTE)))
        Y = torch.stack([values[name] for name in self.outcomes], dim=-1)
        yardstick: Yardstick = FrontVolume.of(Y)
        if self._limited:
            yardstick = WithinLimits.of(Y, torch.tensor([limit.bound], dtype=torch.float64))

        def evaluate(points: Tensor) -> dict[str, Tensor]:
            which = torch.cdist(points, X, p=torch.inf).argmin(-1)
            return {name: own[which] for name, own in values.items()}

        return OutcomeInstance(
            outcomes=outcomes,
            space=self.family.space,
            sources=sources,
            label=str(seed),
            yardstick=yardstick,
            evaluate=evaluate,
            noise={name: torch.zeros(steps, dtype=torch.float64) for name in self.outcomes},
            rows=X,
        )


class _Tasks(Problem):
    """The sources of one outcome; both have the same rows."""

    def __init__(self, family: Laboratory, outcome: str) -> None:
        self.family, self.outcome, self.d, self.space = family, outcome, family.d, family.space
        self.name = f"{family.name}[{outcome}]"

    def params(self, seed: int) -> Tensor:
        """Those of the sources, then those of the target."""
        return self.family.sample(_SOURCES + 1, stream(self.family.name, self.outcome, seed, "tasks"))

    def draw(self, seeds: Sequence[int], steps: int) -> Instance:
        """Noisy values at random points."""
        X, y = [], []
        for seed in seeds:
            X.append(self.family.random_points(_SOURCES, _POINTS, stream(self.family.name, seed, "rows")))
            errors = torch.randn(
                _SOURCES,
                _POINTS,
                generator=stream(self.family.name, self.outcome, seed, "errors"),
                dtype=torch.float64,
            )
            y.append(self.family.evaluate(self.params(seed)[:-1], X[-1]) + self.family.noise_std * errors)
        levels = self.family.space.categories
        sources = tuple(
            Dataset(torch.stack([x[i] for x in X]), torch.stack([v[i] for v in y]), f"source {i}", categories=levels)
            for i in range(_SOURCES)
        )
        one = torch.ones(len(seeds), dtype=torch.float64)
        return Instance(sources, one, one, torch.zeros(len(seeds), steps), tuple(map(str, seeds)))


PAIRS: dict[str, OutcomeProblem] = {
    problem.name: problem
    for family in LABORATORY
    for problem in (LaboratoryPair(family, limited=False), LaboratoryPair(family, limited=True))
}
