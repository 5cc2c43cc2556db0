"""Optuna's studies and lists of trials: a row per finished trial, NaN where it was run without a parameter.

Pruned trials that reported a value count as what they would have ended at (``estimated_finals``); other trials without
a final value are noted. A list of trials says neither which way is better nor of which study it is.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from headstart.data.thinning import best_and_spread
from headstart.errors import InputError, UnusableSourceError
from headstart.sources.forms.naming import Wanted, errors_of_trials, limited_of_trials
from headstart.sources.forms.storages import reading
from headstart.sources.optuna_api import constraints_of
from headstart.sources.raw import INFINITE, RawObjective, RawTask, finite

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial


def task_of_study(study: Study, wanted: Wanted, origin: str, *, refusal: type[InputError] = InputError) -> RawTask:
    """The finished trials of a study.

    ``refusal`` is raised where the objective that is wanted is not there: a study that somebody named must have it, of
    all studies of a storage some may not.
    """
    from optuna.study import StudyDirection

    with reading(origin):
        name, directions, metrics = study.study_name, study.directions, study.metric_names
    ways = [direction == StudyDirection.MAXIMIZE for direction in directions]
    with reading(origin):
        trials = study.get_trials(deepcopy=False)
    named = dict(zip(metrics or map(str, range(len(ways))), ways, strict=True))
    task = _task(name, origin, trials, wanted, named)
    began = next((trial.datetime_start for trial in trials if trial.datetime_start is not None), None)
    identity = None if began is None else (name, began)
    return wanted.chosen(replace(task, identity=identity), refusal)


def task_of_trials(trials: Sequence[FrozenTrial], wanted: Wanted, name: str) -> RawTask:
    """The finished ones of a list of trials, in the direction of the new study."""
    origin = f"{name} (list of {len(trials)} trials)"
    numbers = {len(trial.values) for trial in trials if _is_finished(trial) and trial.values is not None}
    if len(numbers) > 1:
        raise InputError(
            f"{origin}: some trials have {min(numbers)} values and others {max(numbers)}. Give the trials of one study."
        )
    return wanted.chosen(_task(name, origin, trials, wanted, {str(i): None for i in range(max(numbers, default=1))}))


def is_same_study(task: RawTask, study: Study) -> bool:
    """Whether the task was read from this very study, which must not be its own source.

    The same name, and a trial that began at the same instant. Trials are looked at only where the names agree. Any of
    them counts, not the first alone, for one that was waiting may have begun since; a copy counts as the study.
    """
    if task.identity is None or task.identity[0] != study.study_name:
        return False
    return any(trial.datetime_start == task.identity[1] for trial in study.get_trials(deepcopy=False))


def _is_finished(trial: FrozenTrial) -> bool:
    from optuna.trial import TrialState

    return trial.state == TrialState.COMPLETE


def _unfinished(trials: Sequence[FrozenTrial]) -> str:
    """How many trials have no final value, in words: "3 pruned and 1 failed"."""
    from optuna.trial import TrialState

    without = Counter(t.state for t in trials if t.state != TrialState.PRUNED or not t.intermediate_values)
    words = {state: state.name.lower() for state in TrialState if state != TrialState.COMPLETE}
    words[TrialState.FAIL] = "failed"
    return " and ".join(f"{without[state]:,} {word}" for state, word in words.items() if without[state])


def _task(
    name: str, origin: str, trials: Sequence[FrozenTrial], wanted: Wanted, objectives: Mapping[str, bool | None]
) -> RawTask:
    """The finished trials; ``objectives`` are theirs by name, and whether larger is better, where that is known."""
    others, ways = _unfinished(trials), list(objectives.values())
    ends = estimated_finals(trials, minimize=None if ways[0] is None else not ways[0])
    places = [i for i, trial in enumerate(trials) if trial.number in ends or _is_finished(trial)]
    finished = [trials[i] for i in places]
    if not finished:
        raise UnusableSourceError(f"{origin} has no finished trial to learn from ({others or 'no trials at all'}).")
    notes: tuple[str, ...] = ()
    notes += (f"{len(ends)} pruned trials count as what they would probably have ended at",) if ends else ()
    if others:
        notes += (f"trials without a final value are left out: {others}",)
    names = dict.fromkeys(name for trial in finished for name in trial.params)
    measured = {}
    for i, (own, larger) in enumerate(objectives.items()):
        error, complaints = errors_of_trials(finished, wanted.error_of(own, list(objectives), origin), origin)
        if complaints:
            raise InputError(complaints[0])
        # only trials of a study with one objective are pruned
        y = np.array([ends.get(t.number, t.values[i] if t.values else math.nan) for t in finished], dtype=np.float64)
        measured[own] = RawObjective(y, larger, error)
    columns = {n: pd.Series([t.params.get(n, math.nan) for t in finished], dtype=object) for n in names}
    limited = [constraints_of(trial) for trial in finished]
    keys = dict.fromkeys(key for own in limited for key in own)
    first, batch = next(iter(measured.values())), wanted.batch.of_trials(trials, origin)
    return RawTask(
        name=name,
        rows=pd.DataFrame(columns, index=range(len(finished))),
        y=first.y,
        maximize=first.maximize,
        distributions={n: d for trial in finished for n, d in trial.distributions.items()},
        origin=origin,
        notes=notes,
        conditional=True,
        objectives=measured,
        constraints={key: np.array([own.get(key, math.nan) for own in limited]) for key in keys},
        error=first.error,
        limited=limited_of_trials(finished, wanted.limited),
        batch=None if batch is None else batch.only(np.array(places)),
    )


MAX_ROWS = 20_000  # of one source: AUTO learns them in a dozen seconds (models.chain.condensed)


def thinned(task: RawTask) -> RawTask:
    """The task with at most ``MAX_ROWS`` rows, and a note if it had more."""
    n = len(task.rows)
    if n <= MAX_ROWS:
        return task
    every = [(task.y, task.maximize)]
    if task.undecided:  # which of them counts is not known yet
        every = [(own.y, own.maximize) for own in task.objectives.values()]
    kept = best_and_spread([(finite(y), maximize) for y, maximize in every], MAX_ROWS)
    return replace(
        task.only(kept),
        notes=(*task.notes, f"{len(kept):,} of {n:,} rows are used: the best tenth, and an even spread of the others"),
    )


_ENOUGH = 3


def estimated_finals(trials: Sequence[FrozenTrial], *, minimize: bool | None) -> dict[int, float]:
    """What pruned trials that reported something would have ended at, by their numbers.

    estimate = v + median over finished trials of (final value − value at the latest step ≤ s)

    for a trial with value v at its last step s. With fewer than three finished trials that reported, v itself is taken.
    No estimate is better than the best finished value: a trial is pruned because it does not look like one of the best.
    Where nobody knows which way is better (``minimize`` None) they are not held back.
    """
    from optuna.trial import TrialState

    finished = [
        (t.values[0], t.intermediate_values)
        for t in trials
        if t.state == TrialState.COMPLETE and t.values and len(t.values) == 1 and abs(t.values[0]) < INFINITE
    ]
    found = {}
    for trial in trials:
        if trial.state != TrialState.PRUNED or not trial.intermediate_values:
            continue
        step = max(trial.intermediate_values)
        value = trial.intermediate_values[step]
        if not abs(value) < INFINITE:  # nor NaN
            continue
        earlier = [(final, values, [s for s in values if s <= step]) for final, values in finished]
        rises = [final - values[max(steps)] for final, values, steps in earlier if steps]
        rises = [rise for rise in rises if math.isfinite(rise)]
        estimate = value + (float(np.median(rises)) if len(rises) >= _ENOUGH else 0.0)
        if finished and minimize is not None:
            values = [final for final, _ in finished]
            estimate = max(estimate, min(values)) if minimize else min(estimate, max(values))
        found[trial.number] = estimate
    return found
