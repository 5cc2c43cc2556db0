"""Sources of very many rows: the best tenth of them and an even spread of the others are used (data.thinning).

A study of so many trials that loading them all would take minutes is not loaded whole: a database is asked for the
values alone, and the trials that are used are loaded one by one. Other storages keep all trials in memory anyhow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from headstart.data.thinning import best_and_spread
from headstart.sources.optuna_api import database_of
from headstart.sources.raw import RawTask, finite

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial

MAX_ROWS = 20_000  # of one source: AUTO learns them in a dozen seconds (models.chain.condensed)
LARGE = 20_000  # trials; loading as many takes some eight seconds and 240 MB
MOST_LOADED = 5000  # trials of a larger one; one by one they take as long
_COUNTS = "SELECT state, COUNT(*) FROM trials WHERE study_id = :study GROUP BY state"
_VALUES = (
    "SELECT t.trial_id, v.value, v.value_type FROM trials t JOIN trial_values v ON v.trial_id = t.trial_id "
    "WHERE t.study_id = :study AND t.state = 'COMPLETE' AND v.objective = :place ORDER BY t.number"
)
_INFINITE = {"INF_POS": np.inf, "INF_NEG": -np.inf}


def thinned(task: RawTask) -> RawTask:
    """The task with at most ``MAX_ROWS`` rows, and a note if it had more."""
    n = len(task.rows)
    if n <= MAX_ROWS:
        return task
    every = [(task.y, task.maximize)]
    if task.undecided and task.objectives:  # which of them counts is not known yet
        every = [(own.y, own.maximize) for own in task.objectives.values()]
    kept = best_and_spread([(finite(y), maximize) for y, maximize in every], MAX_ROWS)
    return replace(task.only(kept), notes=(*task.notes, _rows_used(len(kept), n)))


def _rows_used(kept: int, n: int) -> str:
    """The note on a source of which not every row is used."""
    return f"{kept:,} of {n:,} rows are used: the best tenth, and an even spread of the others"


@dataclass(frozen=True)
class SomeTrials:
    """The trials of a large study to learn from, a note on how they were chosen, and what the other trials are."""

    trials: tuple[FrozenTrial, ...]
    notes: tuple[str, ...]
    others: str


def some_trials(study: Study, goals: Sequence[tuple[int, bool]]) -> SomeTrials | None:
    """The best tenth and an even spread of a large study in a database; None where all trials can be loaded.

    ``goals`` are the places of the objectives that count, and whether they are maximised.
    """
    found_in = database_of(study)
    if found_in is None:
        return None
    import sqlalchemy

    database, key = found_in
    with database.engine.connect() as connection:
        found = connection.execute(sqlalchemy.text(_COUNTS), {"study": key})
        counts = {str(state): int(count) for state, count in found}
        if sum(counts.values()) <= LARGE:
            return None
        found_values: list[dict[int, float]] = []
        for place, _ in goals:
            values = connection.execute(sqlalchemy.text(_VALUES), {"study": key, "place": place})
            found_values.append({i: _INFINITE.get(str(k), np.nan if v is None else v) for i, v, k in values})
    ids = list(dict.fromkeys(trial_id for own in found_values for trial_id in own))  # a finished trial has all of them
    results = [
        (finite(np.array([own.get(i, np.nan) for i in ids], dtype=np.float64)), maximize)
        for own, (_, maximize) in zip(found_values, goals, strict=True)
    ]
    kept = best_and_spread(results, MOST_LOADED)
    finished = counts.pop("COMPLETE", 0)
    notes = (_rows_used(len(kept), finished),) if len(kept) < finished else ()
    return SomeTrials(tuple(database.get_trial(ids[i]) for i in kept), notes, in_words(counts))


def in_words(counts: Mapping[str, int]) -> str:
    """How many trials are in which state: "3 pruned and 1 failed"."""
    words = {"FAIL": "failed"}
    return " and ".join(f"{count:,} {words.get(state, state.lower())}" for state, count in counts.items())
