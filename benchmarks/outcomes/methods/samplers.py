"""Optuna's samplers with their defaults: several directions, and limits as constraints (value ≤ 0 is feasible).

They suggest in the box. On tables the nearest free row is evaluated, and told with its own settings; the trial that
was asked for counts as failed, which samplers pass over. Where a linear sum must not exceed a bound, the nearest point
that keeps the rule takes its place in the same way. Mixtures are asked for as Optuna's own questions and answers
advise: x_i = −log u_i/Σ_j log u_j of uniform u. NSGA-II has populations of 10, for with its default of 50 all of a run
would be its random beginning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor

from benchmarks.methods.scratch import optuna_distributions, quietly
from benchmarks.outcomes.methods.searcher import Measured, Searcher, draws
from benchmarks.outcomes.problems.problem import OutcomeInstance
from headstart.data.ranges import FloatRange
from headstart.data.rules.rule import LinearRule, Relation
from headstart.data.space import Space
from headstart.decide.ruled.ruled import Ruled
from headstart.errors import InputError
from headstart.gp.threads import single_thread

if TYPE_CHECKING:
    from optuna import Study, Trial
    from optuna.samplers import BaseSampler

_POPULATION = 10
_LEAST = 1e-6  # of a uniform number whose logarithm is taken


class SamplerSearcher(Searcher):
    """A study of one run."""

    def __init__(self, sampler: str, instance: OutcomeInstance, key: tuple[object, ...]) -> None:
        self.instance = instance
        domain = instance.domain
        rules = domain.rules if isinstance(domain, Ruled) else ()
        self._mixes = any(isinstance(rule, LinearRule) and rule.relation is Relation.EQUAL for rule in rules)
        space = instance.space
        if self._mixes:
            space = Space.of({axis.name: FloatRange(_LEAST, 1.0) for axis in space.axes})
        self._distributions = optuna_distributions(space)
        with quietly():
            self._study = self._begin(sampler, draws(key, f"optuna-{sampler}"))
        self._asked: Trial | None = None

    def _begin(self, sampler: str, seed: int) -> Study:
        import optuna

        both = optuna.study.StudyDirection
        directions = [both.MAXIMIZE if goal.maximize else both.MINIMIZE for goal in self.instance.outcomes.goals]
        return optuna.create_study(sampler=_sampler(sampler, seed), directions=directions)

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


def _sampler(name: str, seed: int) -> BaseSampler:
    import optuna

    match name:
        case "gp":
            return optuna.samplers.GPSampler(seed=seed)
        case "tpe":
            return optuna.samplers.TPESampler(seed=seed)
        case "nsga2":
            return optuna.samplers.NSGAIISampler(seed=seed, population_size=_POPULATION)
    raise InputError(f"There is no sampler {name!r}.")
