"""Past studies to read, and ways to read them."""

from __future__ import annotations

import warnings
from typing import Any

import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.trial import FrozenTrial, TrialState, create_trial

from headstart.sources.past import read_sources
from headstart.sources.raw import RawTask

X = FloatDistribution(0.0, 1.0)


def trial(x: float, *values: float, state: TrialState = TrialState.COMPLETE, **more: Any) -> FrozenTrial:
    """A trial with the parameter x, and categories of that name for everything else."""
    categories = {name: CategoricalDistribution(["a", "b"]) for name in more}
    return create_trial(
        state=state, params={"x": x, **more}, distributions={"x": X, **categories}, values=values or None
    )


def study(
    name: str = "past", *, storage: Any = None, y: tuple[float, ...] = (1.0, 2.0), **options: Any
) -> optuna.Study:
    """A study of finished trials with these values."""
    made = optuna.create_study(study_name=name, storage=storage, **options)
    for i, value in enumerate(y):
        made.add_trial(trial(i / 10 % 1, value))
    return made


def failed(name: str, storage: Any = None) -> optuna.Study:
    """A study of which every trial failed."""
    made = study(name, storage=storage, y=())
    made.add_trial(trial(0.5, state=TrialState.FAIL))
    return made


def name_metrics(study: optuna.Study, *names: str) -> None:
    """Give the study's objectives names, which Optuna calls experimental."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        study.set_metric_names(list(names))


def read_one(source: Any, **options: Any) -> RawTask:
    """The only task of one source."""
    (task,) = read_sources([source], **options)
    return task
