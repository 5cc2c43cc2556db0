"""The methods by name, and what each is. Those of other libraries are loaded when they begin.

headstart            AUTO per outcome, with all sources
alone                the same without sources: a plain process per outcome (GPBO)
headstart-noise      sources of random values, all outcomes
headstart-negated    sources negated, all outcomes; -negated-1 and -2: of the first or the second outcome alone
botorch              BoTorch without sources: SingleTaskGP per outcome, qLogNEHVI, or qLogNEI with constraints
multi-task           the same with BoTorch's MultiTaskGP per outcome over all rows of the sources: what Ax's
                     transfer learning does with several metrics
optuna-gp, optuna-tpe, optuna-nsga2    Optuna's samplers, without sources
random               uniform
headstart-unsaid     headstart without the thresholds that the objectives have
headstart-limited    the thresholds are limits instead, on copies of the objectives
headstart-unmapped   headstart without output maps, so that volumes are in the units of what is measured
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from benchmarks.methods.scratch import optuna_distributions, quietly
from benchmarks.outcomes.problems import OutcomeInstance, OutcomeProblem, Spoiling
from benchmarks.problems.adversarial import Scenario
from benchmarks.problems.problem import stream
from headstart.data.dataset import Dataset
from headstart.data.outcomes import Limit, Outcomes
from headstart.data.ranges import FloatRange
from headstart.data.rules.rule import LinearRule, Relation
from headstart.data.space import Space
from headstart.data.units import OutputMap
from headstart.decide.ruled.ruled import Ruled
from headstart.decide.suggest import suggest
from headstart.errors import InputError
from headstart.gp.threads import single_thread
from headstart.models.family import AUTO
from headstart.models.model import TransferModel
from headstart.models.outcomes import OutcomePriors

if TYPE_CHECKING:
    from optuna import Trial
    from optuna.samplers import BaseSampler

_T = TypeVar("_T")
_POPULATION = 10  # of NSGA-II
_LEAST = 1e-6  # of a uniform number whose logarithm is taken

# Results by outcome, as measured
Measured = Mapping[str, Float[Tensor, "n"]]


class Searcher(ABC):
    """A method at work on one instance."""

    @abstractmethod
    def next(self, X: Float[Tensor, "n d"], Y: Measured) -> Float[Tensor, "d"]:
        """The next point, given what was evaluated; on tables the nearest free row is taken instead."""


def draws(key: tuple[object, ...], *more: object) -> int:
    """A seed that belongs to these words."""
    return int(torch.randint(2**31, (), generator=stream(*key, *more)))


@dataclass(frozen=True, slots=True)
class Contender:
    """How a method begins, given the instance and words that its draws are keyed by, and what is done to sources."""

    begin: Callable[[OutcomeInstance, tuple[object, ...]], Searcher]
    spoils: Callable[[OutcomeProblem], Spoiling] = lambda _: {}


class _Ours(Searcher):
    def __init__(
        self,
        instance: OutcomeInstance,
        key: tuple[object, ...],
        *,
        past: bool,
        model: TransferModel = AUTO,
        wanted: Callable[[Outcomes], tuple[Outcomes, Mapping[str, str]]] = lambda outcomes: (outcomes, {}),
    ) -> None:
        self.instance, self.key = instance, key
        outcomes, self._copies = wanted(instance.outcomes)
        sources = self._with_copies(instance.sources) if past else {}
        self._priors = OutcomePriors.learn(outcomes, sources, model=model)

    def _with_copies(self, by_name: Mapping[str, _T]) -> dict[str, _T]:
        """The same with what limits are on under names of their own."""
        return {**by_name, **{copy: by_name[name] for copy, name in self._copies.items()}}

    def next(self, X: Float[Tensor, "n d"], Y: Measured) -> Float[Tensor, "d"]:
        levels = self.instance.space.categories
        targets = self._with_copies({name: Dataset(X, y, categories=levels) for name, y in Y.items()})
        known = self._priors.condition(targets, seed=len(X))
        taken = None if self.instance.rows is None else X
        return suggest(known, domain=self.instance.domain, avoid=taken, seed=draws(self.key, "suggest", len(X)))


def _unsaid(outcomes: Outcomes) -> tuple[Outcomes, Mapping[str, str]]:
    """Without thresholds."""
    return replace(outcomes, goals=tuple(replace(goal, threshold=None) for goal in outcomes.goals)), {}


def _limited(outcomes: Outcomes) -> tuple[Outcomes, Mapping[str, str]]:
    """Limits in place of thresholds, and of which objectives they are."""
    copies = {f"{goal.name} of interest": goal for goal in outcomes.goals if goal.threshold is not None}
    ends = {name: "at_least" if goal.maximize else "at_most" for name, goal in copies.items()}
    limits = tuple(Limit(name, **{ends[name]: goal.threshold}) for name, goal in copies.items())
    free, _ = _unsaid(outcomes)
    return replace(free, limits=(*outcomes.limits, *limits)), {name: goal.name for name, goal in copies.items()}


class _Random(Searcher):
    def __init__(self, instance: OutcomeInstance, key: tuple[object, ...]) -> None:
        self.instance, self.key = instance, key

    def next(self, X: Float[Tensor, "n d"], Y: Measured) -> Float[Tensor, "d"]:  # noqa: ARG002
        generator = stream(*self.key, "random", len(X))
        if self.instance.rows is None:
            return self.instance.domain.uniform(1, generator)[0]
        free = self.instance.free_rows(X)
        return free[int(torch.randint(len(free), (), generator=generator))]


class _Optuna(Searcher):
    """Optuna's samplers with their defaults: several directions, and limits as constraints (value ≤ 0 is feasible).

    They suggest in the box. On tables the nearest free row is evaluated, and told with its own settings; the trial that
    was asked for counts as failed, which samplers pass over. Where a linear sum must not exceed a bound, the nearest
    point that keeps the rule takes its place in the same way. Mixtures are asked for as Optuna's own questions and
    answers advise: x_i = −log u_i/Σ_j log u_j of uniform u. NSGA-II has populations of 10, for with its default of 50
    all of a run would be its random beginning.
    """

    def __init__(self, instance: OutcomeInstance, key: tuple[object, ...], sampler: str) -> None:
        self.instance = instance
        domain = instance.domain
        rules = domain.rules if isinstance(domain, Ruled) else ()
        self._mixes = any(isinstance(rule, LinearRule) and rule.relation is Relation.EQUAL for rule in rules)
        space = instance.space
        if self._mixes:
            space = Space.of({axis.name: FloatRange(_LEAST, 1.0) for axis in space.axes})
        self._distributions = optuna_distributions(space)
        seed = draws(key, f"optuna-{sampler}")
        with quietly():
            import optuna

            samplers: dict[str, Callable[..., BaseSampler]] = {
                "gp": optuna.samplers.GPSampler,
                "tpe": optuna.samplers.TPESampler,
                "nsga2": partial(optuna.samplers.NSGAIISampler, population_size=_POPULATION),
            }
            both = optuna.study.StudyDirection
            directions = [both.MAXIMIZE if goal.maximize else both.MINIMIZE for goal in instance.outcomes.goals]
            self._study = optuna.create_study(sampler=samplers[sampler](seed=seed), directions=directions)
        self._asked: Trial | None = None

    def next(self, X: Float[Tensor, "n d"], Y: Measured) -> Float[Tensor, "d"]:
        """What the sampler asks for, having been told the last result."""
        with quietly(), single_thread():
            if len(X):
                self._tell(X[-1], {name: float(y[-1]) for name, y in Y.items()})
            self._asked = self._study.ask(self._distributions)
        params = self._asked.params
        if not self._mixes:
            return self.instance.space.encode([params])[0]
        parts = -torch.tensor([params[axis.name] for axis in self.instance.space.axes], dtype=torch.float64).log()
        total = parts.sum()
        return parts / total if total > 0 else torch.full_like(parts, 1 / len(parts))

    def _tell(self, x: Float[Tensor, "d"], last: dict[str, float]) -> None:
        """The result of the trial itself, or of what was evaluated instead."""
        from optuna.trial import TrialState, create_trial

        assert self._asked is not None
        outcomes = self.instance.outcomes
        values = [last[goal.name] for goal in outcomes.goals]
        if self._mixes:
            self._study.tell(self._asked, values)
            return
        frozen = self._study.trials[self._asked.number]
        self._study.tell(self._asked, state=TrialState.FAIL)
        self._study.add_trial(
            create_trial(
                values=values,
                params=self.instance.space.decode(x.unsqueeze(0))[0],
                distributions=self._distributions,
                system_attrs=frozen.system_attrs,  # NSGA-II: the generation
                constraints={limit.name: limit.sign * last[limit.name] - limit.bound for limit in outcomes.limits},
            )
        )


def _botorch(instance: OutcomeInstance, key: tuple[object, ...], *, past: bool) -> Searcher:
    from benchmarks.outcomes.processes import ProcessSearcher

    return ProcessSearcher(instance, key, past=past)


def _all(scenario: Scenario) -> Callable[[OutcomeProblem], Spoiling]:
    return lambda problem: dict.fromkeys(problem.outcomes, scenario)


def _only(number: int) -> Callable[[OutcomeProblem], Spoiling]:
    return lambda problem: dict.fromkeys(problem.outcomes[number - 1 : number], Scenario.NEGATED)


_WITH_PAST = partial(_Ours, past=True)
METHODS_COMPARED: dict[str, Contender] = {
    "headstart": Contender(_WITH_PAST),
    "alone": Contender(partial(_Ours, past=False)),
    "botorch": Contender(partial(_botorch, past=False)),
    "multi-task": Contender(partial(_botorch, past=True)),
    **{f"optuna-{name}": Contender(partial(_Optuna, sampler=name)) for name in ("gp", "tpe", "nsga2")},
    "random": Contender(_Random),
    "headstart-noise": Contender(_WITH_PAST, _all(Scenario.NOISE)),
    "headstart-negated": Contender(_WITH_PAST, _all(Scenario.NEGATED)),
    "headstart-negated-1": Contender(_WITH_PAST, _only(1)),
    "headstart-negated-2": Contender(_WITH_PAST, _only(2)),
    "headstart-unsaid": Contender(partial(_WITH_PAST, wanted=_unsaid)),
    "headstart-limited": Contender(partial(_WITH_PAST, wanted=_limited)),
    "headstart-unmapped": Contender(partial(_WITH_PAST, model=AUTO.using(output_map=OutputMap.NONE))),
}


def method_compared(name: str) -> Contender:
    """The method of that name."""
    if name in METHODS_COMPARED:
        return METHODS_COMPARED[name]
    raise InputError(f"There is no method {name!r}. The known ones are {', '.join(METHODS_COMPARED)}.")
