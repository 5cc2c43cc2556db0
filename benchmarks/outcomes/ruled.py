"""Functions with a rule about their settings, with past tasks: one objective, minimised, measured with noise.

    problem    function                                        rule                         sources
    sum-rule   Hartmann's in six inputs (problems.synthetic)       x1 + … + x6 <= 1.5           3 × 60, all over the box
    mixture    a blend of ten ingredients: Scheffé's           x1 + … + x10 = 1             3 × 60 mixtures
               quadratic Σ b_i x_i + Σ_{i<j} c_ij x_i x_j

The optimum of Hartmann's function without the rule has the sum 2.1. Past rows of ``sum-rule`` may break the rule. The
coefficients of a blend are those of its run, b_i ~ N(0, 1) and c_ij ~ N(0, 2²), and a deviation of every task's own, a
third as large. Optima are found by brute force: the best of many random points that keep the rule, polished.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor

from benchmarks.outcomes.measures import BelowOptimum
from benchmarks.outcomes.problems import OutcomeInstance, OutcomeProblem, Spoiling, spoilt_sources
from benchmarks.problems.problem import Instance, Problem, stream
from benchmarks.problems.synthetic import HARTMANN6
from headstart.data.dataset import Dataset
from headstart.data.outcomes import Goal, Outcomes
from headstart.data.ranges import FloatRange
from headstart.data.space import Space

_SOURCES, _POINTS = 3, 60
_MOST = 1.5  # the sum of the six inputs
_INGREDIENTS = 10
_DEVIATION = 1 / 3
_LOOKED_AT, _POLISHED = 20_000, 8
_VALUE = "value"

Values = Callable[[Tensor], Tensor]


def _names(d: int) -> tuple[str, ...]:
    return tuple(f"x{i + 1}" for i in range(d))


def lowest(values: Values, X: Float[Tensor, "n d"], total: float, *, equal: bool) -> float:
    """The lowest value on the cube where the inputs add up to ``total``, or at most to that.

    From the best of the points X, by sequential quadratic programming.
    """
    found = values(X)
    starts = X[found.topk(_POLISHED, largest=False).indices]
    rule = {"type": "eq" if equal else "ineq", "fun": lambda x: total - x.sum()}

    def with_slope(x: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        point = torch.from_numpy(x).requires_grad_()
        value = values(point.unsqueeze(0))[0]
        (slope,) = torch.autograd.grad(value, point)
        return float(value.detach()), slope.numpy()

    best = float(found.amin())
    for start in starts:
        polished = minimize(
            with_slope, start.numpy(), jac=True, method="SLSQP", bounds=[(0.0, 1.0)] * X.shape[-1], constraints=[rule]
        )
        if abs(polished.x.sum() - total) < 1e-6 or (not equal and polished.x.sum() <= total):
            best = min(best, float(polished.fun))
    return best


class RuledProblem(OutcomeProblem, ABC):
    """One objective under a rule."""

    outcomes = (_VALUE,)
    main = "regret"
    rule: str
    noise_std: float

    def __init__(self, name: str, title: str, d: int) -> None:
        self.name, self.title, self.d = name, title, d
        self.space = Space.of({x: FloatRange(0.0, 1.0) for x in _names(d)})

    @abstractmethod
    def tasks(self, seed: int) -> tuple[Values, ...]:
        """The functions of the sources, then that of the target."""

    @abstractmethod
    def points(self, n: int, generator: torch.Generator, *, past: bool = False) -> Float[Tensor, "n d"]:
        """Random points that keep the rule; of past ones some may not."""

    @abstractmethod
    def optimum(self, target: Values, X: Float[Tensor, "n d"]) -> float:
        """The lowest value that keeps the rule, X being points that do."""

    def draw(self, seed: int, steps: int, spoiling: Spoiling | None = None) -> OutcomeInstance:
        """Tasks, past rows and noise of the seed."""
        target = self.tasks(seed)[-1]
        X = self.points(_LOOKED_AT, stream(self.name, seed, "looked at"))
        noise = self.noise_std * torch.randn(steps, generator=stream(self.name, seed, "noise"), dtype=torch.float64)
        return OutcomeInstance(
            outcomes=Outcomes((Goal(_VALUE),)),
            space=self.space,
            sources={_VALUE: spoilt_sources(_Past(self), _VALUE, seed, steps, spoiling)},
            label=str(seed),
            yardstick=BelowOptimum(self.optimum(target, X), float(target(X).median())),
            evaluate=lambda points: {_VALUE: target(points)},
            noise={_VALUE: noise},
            rules=(self.rule,),
        )


class _Past(Problem):
    """The sources of a ruled problem, as a plain problem that can be spoilt."""

    def __init__(self, of: RuledProblem) -> None:
        self.of, self.d, self.space = of, of.d, of.space
        self.name = f"{of.name}[sources={_SOURCES}]"

    def draw(self, seeds: Sequence[int], steps: int) -> Instance:
        """Noisy values at random points."""
        found = [self._sources(seed) for seed in seeds]
        sources = tuple(
            Dataset(torch.stack([X for X, _ in own]), torch.stack([y for _, y in own]), f"source {i}")
            for i, own in enumerate(zip(*found, strict=True))
        )
        one = torch.ones(len(seeds), dtype=torch.float64)
        return Instance(sources, one, one, torch.zeros(len(seeds), steps), tuple(map(str, seeds)))

    def _sources(self, seed: int) -> list[tuple[Tensor, Tensor]]:
        rows, found = stream(self.of.name, seed, "rows"), []
        for values in self.of.tasks(seed)[:-1]:
            X = self.of.points(_POINTS, rows, past=True)
            error = self.of.noise_std * torch.randn(_POINTS, generator=rows, dtype=torch.float64)
            found.append((X, values(X) + error))
        return found


class SumRule(RuledProblem):
    """Hartmann's function where the inputs may not add up to more than 1.5."""

    rule = f"{' + '.join(_names(6))} <= {_MOST:g}"
    noise_std = 0.05

    def __init__(self) -> None:
        super().__init__("sum-rule", "Hartmann's function in six inputs of which the sum is at most 1.5", 6)

    def tasks(self, seed: int) -> tuple[Values, ...]:
        """Random members of the family."""
        params = HARTMANN6.sample(_SOURCES + 1, stream(self.name, seed, "tasks"))
        return tuple(partial(HARTMANN6.evaluate, own) for own in params)

    def points(self, n: int, generator: torch.Generator, *, past: bool = False) -> Float[Tensor, "n d"]:
        """Uniform; where the rule is to be kept, so are the sum's share of the most and the parts of it."""
        X = torch.rand(n, self.d, generator=generator, dtype=torch.float64)
        if past:
            return X
        parts = -torch.rand(n, self.d + 1, generator=generator, dtype=torch.float64).clamp_min(1e-12).log()
        X = _MOST * (parts / parts.sum(-1, keepdim=True))[:, :-1]  # uniform in the simplex below the sum
        return X[(X <= 1).all(-1)]

    def optimum(self, target: Values, X: Float[Tensor, "n d"]) -> float:
        """By brute force."""
        return lowest(target, X, _MOST, equal=False)


class Blends(RuledProblem):
    """A property of mixtures of ten ingredients."""

    rule = f"{' + '.join(_names(_INGREDIENTS))} = 1"
    noise_std = 0.03

    def __init__(self) -> None:
        super().__init__("mixture", "a quadratic of ten ingredients that add up to 1", _INGREDIENTS)

    def tasks(self, seed: int) -> tuple[Values, ...]:
        """The same coefficients, with deviations."""
        generator, k = stream(self.name, seed, "tasks"), _SOURCES + 1
        common, own = (torch.randn(n, self.d, self.d + 1, generator=generator, dtype=torch.float64) for n in (1, k))
        return tuple(partial(_blend, coefficients) for coefficients in common + _DEVIATION * own)

    def points(self, n: int, generator: torch.Generator, *, past: bool = False) -> Float[Tensor, "n d"]:  # noqa: ARG002
        """Uniform mixtures."""
        parts = -torch.rand(n, self.d, generator=generator, dtype=torch.float64).clamp_min(1e-12).log()
        return parts / parts.sum(-1, keepdim=True)

    def optimum(self, target: Values, X: Float[Tensor, "n d"]) -> float:
        """By brute force; pure ingredients, blends of two and of three are looked at, too."""
        few = [torch.eye(self.d, dtype=torch.float64)]
        for k in (2, 3):
            which = torch.combinations(torch.arange(self.d), k)
            few.append(torch.zeros(len(which), self.d, dtype=torch.float64).scatter_(1, which, 1 / k))
        return lowest(target, torch.cat([X, *few]), 1.0, equal=True)


def _blend(coefficients: Float[Tensor, "d d1"], X: Float[Tensor, "n d"]) -> Float[Tensor, "n"]:
    linear, quadratic = coefficients[:, 0], 2.0 * coefficients[:, 1:].triu(1)
    return X @ linear + ((X @ quadratic) * X).sum(-1)


RULED: tuple[OutcomeProblem, ...] = (SumRule(), Blends())
