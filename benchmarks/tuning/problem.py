"""A tuning problem: a search space as an objective asks for it, a model, and the tasks it is trained on."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from benchmarks.tuning.tasks import TuningTask

if TYPE_CHECKING:
    from optuna.trial import BaseTrial

Params = Mapping[str, Any]
Branches = Mapping[str, tuple[str, tuple[Any, ...]]]


@dataclass(frozen=True, eq=False)
class TuningProblem:
    """What is tuned, and on what.

    ``only`` says of a conditional parameter which one must have which of some values for it to be asked for: a gamma
    only where the kernel is "rbf" or "poly". Parents come before their children in ``space``.

    ``train`` gives the scores after every step of training, of which the last is the result; where ``prunes``, they are
    reported step by step and a pruner may end the trial. ``revision`` is raised with every change of ``train``, so that
    cached scores of earlier versions are not taken for present ones.
    """

    name: str
    title: str
    tasks: tuple[str, ...]
    space: dict[str, BaseDistribution]
    train: Callable[[TuningTask, Params], list[float]]
    only: Branches = field(default_factory=dict)
    maximize: bool = False
    prunes: bool = False
    revision: int = 1

    def ask(self, trial: BaseTrial) -> dict[str, Any]:
        """The parameters of a trial, asked for one after the other, and none in a branch that was not taken."""
        params: dict[str, Any] = {}
        for name, distribution in self.space.items():
            if self.is_active(name, params):
                params[name] = _suggest(trial, name, distribution)
        return params

    def is_active(self, name: str, params: Params) -> bool:
        """Whether the parameter is asked for, given those before it."""
        if name not in self.only:
            return True
        parent, values = self.only[name]
        return parent in params and params[parent] in values

    def key(self, task: TuningTask, params: Params) -> str:
        """What makes an evaluation the same as another one: the model, the data and the values."""
        return json.dumps([self.name, self.revision, task.name, task.fingerprint, dict(params)], sort_keys=True)


def _suggest(trial: BaseTrial, name: str, distribution: BaseDistribution) -> Any:
    match distribution:
        case FloatDistribution(low=low, high=high, log=log, step=step):
            return trial.suggest_float(name, low, high, log=log, step=step)
        case IntDistribution(low=low, high=high, log=log, step=step):
            return trial.suggest_int(name, low, high, log=log, step=step)
        case CategoricalDistribution(choices=choices):
            return trial.suggest_categorical(name, choices)
    raise TypeError(f"{name}: {distribution} is no distribution of Optuna's.")
