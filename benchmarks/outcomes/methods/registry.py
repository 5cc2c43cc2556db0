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
headstart-unmapped   headstart without output maps, so that volumes are in the units of what is measured
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from benchmarks.outcomes.methods.searcher import Measured, Searcher, draws
from benchmarks.outcomes.problems.problem import OutcomeInstance, OutcomeProblem, Spoiling
from benchmarks.problems.adversarial import Scenario
from benchmarks.problems.problem import stream
from headstart.data.dataset import Dataset
from headstart.data.units import OutputMap
from headstart.decide.suggest import suggest_several
from headstart.errors import InputError
from headstart.models.family import AUTO
from headstart.models.model import TransferModel
from headstart.models.outcomes import OutcomePriors


@dataclass(frozen=True, slots=True)
class Contender:
    """How a method begins, given the instance and words that its draws are keyed by, and what is done to sources."""

    begin: Callable[[OutcomeInstance, tuple[object, ...]], Searcher]
    spoils: Callable[[OutcomeProblem], Spoiling] = lambda _: {}


class _Ours(Searcher):
    def __init__(
        self, instance: OutcomeInstance, key: tuple[object, ...], *, past: bool, model: TransferModel = AUTO
    ) -> None:
        self.instance, self.key = instance, key
        self._priors = OutcomePriors.learn(instance.outcomes, instance.sources if past else {}, model=model)

    def next(self, X: Float[Tensor, "n d"], Y: Measured) -> Float[Tensor, "d"]:
        levels = self.instance.space.categories
        targets = {name: Dataset(X, y, categories=levels) for name, y in Y.items()}
        known = self._priors.condition(targets, seed=len(X))
        taken = None if self.instance.rows is None else X
        return suggest_several(known, domain=self.instance.domain, avoid=taken, seed=draws(self.key, "suggest", len(X)))


class _Random(Searcher):
    def __init__(self, instance: OutcomeInstance, key: tuple[object, ...]) -> None:
        self.instance, self.key = instance, key

    def next(self, X: Float[Tensor, "n d"], Y: Measured) -> Float[Tensor, "d"]:  # noqa: ARG002
        generator = stream(*self.key, "random", len(X))
        if self.instance.rows is None:
            return self.instance.domain.uniform(1, generator)[0]
        free = self.instance.free_rows(X)
        return free[int(torch.randint(len(free), (), generator=generator))]


def _botorch(instance: OutcomeInstance, key: tuple[object, ...]) -> Searcher:
    from benchmarks.outcomes.methods.processes import ProcessSearcher

    return ProcessSearcher(instance, key, past=False)


def _multi_task(instance: OutcomeInstance, key: tuple[object, ...]) -> Searcher:
    from benchmarks.outcomes.methods.processes import ProcessSearcher

    return ProcessSearcher(instance, key, past=True)


def _optuna(sampler: str) -> Callable[[OutcomeInstance, tuple[object, ...]], Searcher]:
    def begin(instance: OutcomeInstance, key: tuple[object, ...]) -> Searcher:
        from benchmarks.outcomes.methods.samplers import SamplerSearcher

        return SamplerSearcher(sampler, instance, key)

    return begin


def _with_past(instance: OutcomeInstance, key: tuple[object, ...]) -> Searcher:
    return _Ours(instance, key, past=True)


def _unmapped(instance: OutcomeInstance, key: tuple[object, ...]) -> Searcher:
    return _Ours(instance, key, past=True, model=AUTO.using(output_map=OutputMap.NONE))


def _all(scenario: Scenario) -> Callable[[OutcomeProblem], Spoiling]:
    return lambda problem: dict.fromkeys(problem.outcomes, scenario)


def _only(number: int) -> Callable[[OutcomeProblem], Spoiling]:
    return lambda problem: dict.fromkeys(problem.outcomes[number - 1 : number], Scenario.NEGATED)


METHODS_COMPARED: dict[str, Contender] = {
    "headstart": Contender(_with_past),
    "alone": Contender(lambda instance, key: _Ours(instance, key, past=False)),
    "botorch": Contender(_botorch),
    "multi-task": Contender(_multi_task),
    "optuna-gp": Contender(_optuna("gp")),
    "optuna-tpe": Contender(_optuna("tpe")),
    "optuna-nsga2": Contender(_optuna("nsga2")),
    "random": Contender(_Random),
    "headstart-noise": Contender(_with_past, _all(Scenario.NOISE)),
    "headstart-negated": Contender(_with_past, _all(Scenario.NEGATED)),
    "headstart-negated-1": Contender(_with_past, _only(1)),
    "headstart-negated-2": Contender(_with_past, _only(2)),
    "headstart-unmapped": Contender(_unmapped),
}


def method_compared(name: str) -> Contender:
    """The method of that name."""
    if name in METHODS_COMPARED:
        return METHODS_COMPARED[name]
    raise InputError(f"There is no method {name!r}. The known ones are {', '.join(METHODS_COMPARED)}.")
