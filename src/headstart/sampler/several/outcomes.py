"""What is measured of every trial of a study, and what past studies know of it.

    of the new study                                  of a past study or table it is
    an objective with a metric name                   the objective of that name
    an objective without one                          the one of that number, if it has as many; turned round where it
                                                      went the other way
    one of as many as ``objective`` names             the one named in its place, where no name is one of the study's
    the first objective                               its only one, if that has no name or no such name is known
    a constraint                                      the constraint of that key

A constraint holds where its value is at most 0. Before the first trial is finished nobody knows which ones a study has:
those of the sources count. Then its own do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from headstart.data.dataset import Dataset
from headstart.data.outcomes import MOST_GOALS, Goal, Limit, Outcomes
from headstart.errors import InputError
from headstart.sources.forms.naming import ErrorNames, errors_of_trials
from headstart.sources.forms.studies import constraints_of
from headstart.sources.raw import RawObjective, RawTask, error_var, finite

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial

_CONSTRAINT = "constraint "


def _objective_names(study: Study) -> tuple[str, ...]:
    """The study's metric names, or the numbers of its objectives."""
    return tuple(study.metric_names or map(str, range(len(study.directions))))


def _name(key: str) -> str:
    """How the outcome of a constraint is called."""
    return f"{_CONSTRAINT}{key}"


def _key(name: str) -> str:
    return name.removeprefix(_CONSTRAINT)


def outcomes_of(study: Study, trials: Sequence[FrozenTrial], sources: Sequence[RawTask]) -> Outcomes | None:
    """The study's outcomes; None where there is one objective and nothing else."""
    from optuna.study import StudyDirection
    from optuna.trial import TrialState

    if len(study.directions) > MOST_GOALS:
        raise InputError(
            f"TransferSampler weighs at most {MOST_GOALS} objectives against each other, but the study has "
            f"{len(study.directions)}. Make constraints of those that only have to be good enough."
        )
    finished = [trial for trial in trials if trial.state == TrialState.COMPLETE]
    if finished:
        keys = dict.fromkeys(key for trial in finished for key in constraints_of(trial))
    else:
        keys = dict.fromkeys(key for task in sources for key in task.constraints)
    if len(study.directions) == 1 and not keys:
        return None
    ways = [direction == StudyDirection.MAXIMIZE for direction in study.directions]
    goals = tuple(Goal(name, maximize=way) for name, way in zip(_objective_names(study), ways, strict=True))
    return Outcomes(goals, tuple(Limit(_name(key), at_most=0.0) for key in sorted(keys)))


def decided(task: RawTask, study: Study) -> RawTask:
    """The task with the objective of the study's name, where it has several and nobody said which one counts."""
    if not task.undecided:
        return task
    own = task.objectives.get(_objective_names(study)[0]) if study.metric_names else None
    if own is None:
        raise InputError(
            f"{task.where} has {len(task.objectives)} objectives, {', '.join(map(repr, task.objectives))}, but the "
            "study has one. Name the one that counts with objective='...'."
        )
    return replace(task, y=own.y, maximize=own.maximize, error=own.error, undecided=False)


def results_of(
    X: torch.Tensor, trials: Sequence[FrozenTrial], outcomes: Outcomes, categories: Any, errors: ErrorNames
) -> dict[str, Dataset]:
    """The results of every outcome in the rows X of these trials, as measured, with the errors that are known."""
    found = {}
    for i, name in enumerate(outcomes.names):
        error = None
        if i < len(outcomes.goals):
            values = [trial.values[i] if trial.values else math.nan for trial in trials]
            attribute = errors.of_objective(name, i, len(outcomes.goals), "The study")
            error, _ = errors_of_trials(trials, attribute, "this study")
        else:
            values = [constraints_of(trial).get(_key(name), math.nan) for trial in trials]
        y = finite(np.array(values, dtype=np.float64))
        there = torch.from_numpy(~np.isnan(y))
        variances = None if error is None else error_var(error[there.numpy()])
        found[name] = Dataset(
            X[there], torch.from_numpy(y)[there], "this study", categories=categories, error_var=variances
        )
    return found


def no_outcome_in_words(task: RawTask, outcomes: Outcomes) -> str:
    """That a source has nothing that the study measures."""
    known = ", ".join(map(repr, (*task.objectives, *task.constraints))) or "one objective without a name"
    return (
        f"{task.where} is left out: the study has {', '.join(map(repr, outcomes.names))}, the source {known}. Give "
        "both the same names, or name the source's objectives in the order of the study's with objective=[...]."
    )


def measured_by(task: RawTask, outcomes: Outcomes, order: Sequence[str] = ()) -> Mapping[str, RawObjective]:
    """What the task knows of every outcome, as the new study measures it; ``order`` are the names that were given."""
    found: dict[str, RawObjective] = {}
    names = [goal.name for goal in outcomes.goals]
    in_order = dict(zip(names, order, strict=True)) if len(order) == len(names) and not {*order} & {*names} else {}
    unnamed = all(name.isdecimal() for name in task.objectives)
    for goal in outcomes.goals:
        own = task.objectives.get(goal.name)
        if own is not None and (not goal.name.isdecimal() or len(task.objectives) == len(outcomes.goals)):
            turn = goal.name.isdecimal() and own.maximize is not None and own.maximize != goal.maximize
            found[goal.name] = replace(own, y=-own.y if turn else own.y, maximize=goal.maximize)
        elif (other := task.objectives.get(in_order.get(goal.name, ""))) is not None:
            turn = other.maximize is not None and other.maximize != goal.maximize
            found[goal.name] = replace(other, y=-other.y if turn else other.y, maximize=goal.maximize)
    if not found and len(task.objectives) <= 1 and unnamed:
        first = outcomes.goals[0]
        turn = task.maximize is not None and task.maximize != first.maximize
        found[first.name] = RawObjective(-task.y if turn else task.y, first.maximize, task.error)
    for limit in outcomes.limits:
        if (key := _key(limit.name)) in task.constraints:
            found[limit.name] = RawObjective(task.constraints[key])
    return found
