"""Problems with several outcomes, as one run meets them: a past, a target, and what its results are measured by.

    problem        objective            second outcome                          inputs                     sources
    lcbench-two    accuracy, maximised  model_parameters, minimised             3 numeric, 4 log           10 × 60
    lcbench-limit  accuracy, maximised  model_parameters ≤ its 25 % quantile    the same                   10 × 60
    suzuki-two     yield, maximised     turnover, maximised                     1 categorical, 3 numeric   3 × 60
    suzuki-limit   yield, maximised     turnover ≥ its median                   the same                   3 × 60

Quantiles are those of the target's own table. Tasks take turns as the target, the others are sources, with 60 random
rows each; the candidates are the target's rows. Both outcomes are as measured: the number of parameters, not its
logarithm.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property

import torch
from jaxtyping import Float
from torch import Tensor

from benchmarks.outcomes.measures import FrontVolume, WithinLimits, Yardstick
from benchmarks.problems.adversarial import Scenario, SpoiltProblem
from benchmarks.problems.problem import Problem
from benchmarks.problems.shared_tables import SHARED, shared_table
from benchmarks.problems.table import TableProblem, TaskTable
from headstart.data.dataset import Dataset
from headstart.data.outcomes import Goal, Limit, Outcomes
from headstart.data.space import Space
from headstart.decide.domain import Candidates, Domain
from headstart.decide.ruled.ruled import Ruled
from headstart.errors import InputError

_ROWS = 60

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


# Of a quantity that is limited: what follows from all its values in the target
LimitOf = Callable[[Tensor], Limit]


@cache
def _table(name: str, outcome: str) -> TaskTable:
    """Equal but for the values: the draws of a ``TableProblem`` are keyed by the name of the table."""
    return shared_table(name, outcome=outcome)


def spoilt_sources(
    problem: Problem, outcome: str, seed: int, steps: int, spoiling: Spoiling | None
) -> tuple[Dataset, ...]:
    """The sources of one outcome, changed where that is asked for, with random numbers of the outcome's own."""
    scenario = (spoiling or {}).get(outcome, Scenario.RELATED)
    if scenario is not Scenario.RELATED:
        own = copy.copy(problem)
        own.name = problem.name.replace("[", f"[{outcome},", 1)
        problem = SpoiltProblem(own, scenario)
    drawn = problem.draw([seed], steps).sources
    return tuple(Dataset(s.X[0], s.y[0], s.name, s.unseen, s.categories) for s in drawn)


class TwoOutcomes(OutcomeProblem):
    """Two columns of a shared table: ``second`` is a further objective, or makes a limit of the target's values."""

    def __init__(
        self, name: str, title: str, table: str, first: Goal, second: Goal | LimitOf, limited: str = ""
    ) -> None:
        self.name, self.title, self._table_name = name, title, table
        self._first, self._second = first, second
        self.outcomes = (first.name, second.name if isinstance(second, Goal) else limited)
        self.main = "volume" if isinstance(second, Goal) else "regret"

    def _problems(self) -> dict[str, TableProblem]:
        n = SHARED[self._table_name].n_sources
        tables = {outcome: _table(self._table_name, outcome) for outcome in self.outcomes}
        return {outcome: TableProblem(table, n, _ROWS, in_turn=True) for outcome, table in tables.items()}

    @property
    def fingerprint(self) -> str:  # type: ignore[override]
        """That of both columns."""
        return "+".join(_table(self._table_name, outcome).fingerprint for outcome in self.outcomes)

    def draw(self, seed: int, steps: int, spoiling: Spoiling | None = None) -> OutcomeInstance:
        """The target whose turn it is, and random rows of the others."""
        problems = self._problems()
        drawn = {outcome: problem.draw([seed], steps) for outcome, problem in problems.items()}
        rows = [instance.candidates for instance in drawn.values() if instance.candidates is not None]
        if not torch.equal(rows[0].X, rows[1].X):
            raise InputError(f"{self._table_name}: some row has only one of {' and '.join(self.outcomes)}.")
        X, values = _once(rows[0].X[0], {o: r.values[0] for o, r in zip(self.outcomes, rows, strict=True)})
        sources = {o: spoilt_sources(problem, o, seed, steps, spoiling) for o, problem in problems.items()}
        if isinstance(self._second, Goal):
            outcomes = Outcomes((self._first, self._second))
        else:
            outcomes = Outcomes((self._first,), (self._second(values[self.outcomes[1]]),))
        Y = torch.stack([outcome.sign * values[outcome.name] for outcome in outcomes], dim=-1)
        yardstick: Yardstick
        if outcomes.limits:
            bounds = torch.tensor([limit.bound for limit in outcomes.limits], dtype=torch.float64)
            yardstick = WithinLimits.of(Y, bounds)
        else:
            yardstick = FrontVolume.of(Y)

        def evaluate(points: Tensor) -> dict[str, Tensor]:
            which = torch.cdist(points, X, p=torch.inf).argmin(-1)
            return {name: own[which] for name, own in values.items()}

        return OutcomeInstance(
            outcomes=outcomes,
            space=problems[self.outcomes[0]].table.space,
            sources=sources,
            label=drawn[self.outcomes[0]].labels[0],
            yardstick=yardstick,
            evaluate=evaluate,
            noise={name: torch.zeros(steps, dtype=torch.float64) for name in outcomes.names},
            rows=X,
        )


def _once(X: Tensor, values: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
    """Every row of inputs once: of several measurements the first."""
    first = (X.unsqueeze(0) == X.unsqueeze(1)).all(-1).double().argmax(-1)
    kept = first == torch.arange(len(X))
    return X[kept], {name: own[kept] for name, own in values.items()}


def _small(values: Tensor) -> Limit:
    return Limit("model_parameters", at_most=float(values.quantile(0.25)))


def _busy(values: Tensor) -> Limit:
    return Limit("turnover", at_least=float(values.median()))


_ACCURACY, _YIELD = Goal("accuracy", maximize=True), Goal("yield", maximize=True)
_LCBENCH, _SUZUKI = "mlp_lcbench", "suzuki_reizman"
_SMALL, _BUSY = "accuracy with model_parameters at most their 25 % quantile", "yield with turnover at least its median"
TABLES: tuple[OutcomeProblem, ...] = (
    TwoOutcomes("lcbench-two", "accuracy and model_parameters", _LCBENCH, _ACCURACY, Goal("model_parameters")),
    TwoOutcomes("suzuki-two", "yield and turnover", _SUZUKI, _YIELD, Goal("turnover", maximize=True)),
    TwoOutcomes("lcbench-limit", _SMALL, _LCBENCH, _ACCURACY, _small, "model_parameters"),
    TwoOutcomes("suzuki-limit", _BUSY, _SUZUKI, _YIELD, _busy, "turnover"),
)
