"""A study whose trials another program keeps: told anew whenever they have changed, and asked what to try next."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import optuna
import pandas as pd
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.study import StudyDirection
from optuna.trial import TrialState, create_trial

from headstart.data.outcomes import Limit
from headstart.data.rules.rule import LinearRule
from headstart.sampler.sampler import TransferSampler
from headstart.sources.past import Sources, require_list

_NAME = "told"


@dataclass(frozen=True)
class ToldTrial:
    """A trial as the other program has it: its results by name and their standard errors, none while it is awaited."""

    params: Mapping[str, Any]
    values: Mapping[str, float] = field(default_factory=dict)
    errors: Mapping[str, float] = field(default_factory=dict)
    failed: bool = False


@dataclass(frozen=True)
class ToldProblem:
    """What is to be tried and what is wanted of it; equal problems have one sampler.

    ``goals`` says of every objective whether it is maximised, ``measured`` which results have standard errors.
    """

    space: Mapping[str, BaseDistribution]
    goals: Mapping[str, bool]
    limits: tuple[Limit, ...] = ()
    rules: tuple[LinearRule, ...] = ()
    categories: tuple[str, ...] = ()  # parameters whose choices are only names, though they are numbers
    measured: tuple[str, ...] = ()
    candidates: tuple[tuple[Any, ...], ...] | None = None  # rows in the order of the space, the only ones to choose


def error_name(result: str) -> str:
    """The column of tables, and the user attribute of trials, with the standard errors of a result."""
    return f"{result} error"


def table_of(trials: Iterable[ToldTrial], name: str) -> pd.DataFrame:
    """The finished trials as a source of that name."""
    rows = [
        {**t.params, **t.values, **{error_name(key): own for key, own in t.errors.items()}}
        for t in trials
        if t.values and not t.failed
    ]
    table = pd.DataFrame(rows)
    table.attrs["name"] = name
    return table


def with_tables(sources: Sequence[Any], table: Callable[[Any, str], Any]) -> Sequence[Any]:
    """The sources, each as ``table`` gives it, which gets the name of one that has none; others stay as they are."""
    require_list(sources)
    if isinstance(sources, Sources):
        return sources
    return [table(source, f"source {i + 1}") for i, source in enumerate(sources)]


class ToldStudy:
    """The sampler of one problem, and an Optuna study in memory with the trials as they were told last.

    Args:
        sources: Past tasks, as ``TransferSampler`` takes them.
        problem: What is to be tried, and what is wanted.
        options: Further arguments of ``TransferSampler``, which go before what the problem says.
    """

    def __init__(self, sources: Sequence[Any], problem: ToldProblem, options: Mapping[str, Any]) -> None:
        self.problem = problem
        names = [*problem.goals]
        said: dict[str, Any] = {
            "space": problem.space,
            "objective": names if len(names) > 1 else names[0],
            "limits": problem.limits,
            "rules": problem.rules,
            "categories": problem.categories,
            "error": {name: error_name(name) for name in problem.measured} or None,
        }
        if problem.candidates is not None:
            said["candidates"] = pd.DataFrame(problem.candidates, columns=list(problem.space), dtype=object)
        self.sampler = TransferSampler(sources, **{**said, **options})
        self._empty = optuna.storages.InMemoryStorage()
        ways = [StudyDirection.MAXIMIZE if m else StudyDirection.MINIMIZE for m in problem.goals.values()]
        study = optuna.create_study(storage=self._empty, study_name=_NAME, directions=ways, sampler=self.sampler)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            study.set_metric_names(names)
        self.study = study

    def tell(self, trials: Iterable[ToldTrial]) -> None:
        """Take these trials instead of all that were told before.

        Those without all objectives are awaited; one with a category that the space does not have is left out.
        """
        storage = copy.deepcopy(self._empty)
        self.study = optuna.load_study(study_name=_NAME, storage=storage, sampler=self.sampler)
        for own in trials:
            self._add(own)

    def wait_for(self, params: Mapping[str, Any]) -> None:
        """Take these settings as being tried."""
        self._add(ToldTrial(params))

    def ask(self) -> dict[str, Any]:
        """The settings to try next, which are awaited from now on."""
        return dict(self.study.ask({**self.problem.space}).params)

    def _add(self, own: ToldTrial) -> None:
        found = {name: self._with(name, own.params[name]) for name in self.problem.space if name in own.params}
        there = {name: distribution for name, distribution in found.items() if distribution is not None}
        if len(there) < len(found):
            return  # a value that has no place any more
        values = [own.values.get(name, math.nan) for name in self.problem.goals]
        known = not own.failed and all(map(math.isfinite, values))
        errors = {error_name(key): error for key, error in own.errors.items()}
        self.study.add_trial(
            create_trial(
                state=TrialState.FAIL if own.failed else TrialState.COMPLETE if known else TrialState.RUNNING,
                values=values if known else None,
                params={name: own.params[name] for name in there},
                distributions=there,
                user_attrs={**{k: v for k, v in own.values.items() if k not in self.problem.goals}, **errors},
            )
        )

    def _with(self, name: str, value: Any) -> BaseDistribution | None:
        """The distribution of the parameter, widened to a number that lies outside; None where it has no place."""
        match self.problem.space.get(name):
            case CategoricalDistribution() as own:
                return own if value in own.choices else None
            case FloatDistribution(low=low, high=high, log=log):
                return FloatDistribution(min(low, value), max(high, value), log=log) if value > 0 or not log else None
            case IntDistribution(low=low, high=high, log=log):
                return IntDistribution(min(low, value), max(high, value), log=log) if value > 0 or not log else None
        return None
