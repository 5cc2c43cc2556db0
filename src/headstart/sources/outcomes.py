"""Past tasks of which several things were measured: aligned once, by every row that knows any of them, and then split.

with_any_result   a task whose every such row has a place
split             the alignment of each outcome: the tasks that have it, with the rows that do
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import torch

from headstart.data.dataset import Dataset
from headstart.data.outcomes import Outcomes
from headstart.sources.aligned import Alignment
from headstart.sources.raw import RawObjective, RawTask, error_var, finite


def with_any_result(task: RawTask, measured: Mapping[str, RawObjective]) -> RawTask | None:
    """The task with 0 for every row that knows one of the outcomes, so that all of these are aligned; None if none."""
    known = np.zeros(len(task.rows), dtype=bool)
    for outcome in measured.values():
        known |= ~np.isnan(outcome.y)
    if not known.any():
        return None
    return replace(task, y=np.where(known, 0.0, np.nan), maximize=None, error=None)


def split(
    alignment: Alignment, measured: Mapping[str, Mapping[str, RawObjective]], outcomes: Outcomes
) -> dict[str, Alignment]:
    """What every outcome has of the tasks ``with_any_result``; ``measured`` is what each knows, by its name."""
    return {name: _of_one(alignment, measured, outcomes, name) for name in outcomes.names}


def _of_one(
    alignment: Alignment, measured: Mapping[str, Mapping[str, RawObjective]], outcomes: Outcomes, name: str
) -> Alignment:
    tasks, datasets, every_row = [], [], []
    for task, data, rows in zip(alignment.tasks, alignment.datasets, alignment.rows, strict=True):
        own = measured[task.name].get(name)
        if own is None:
            continue
        y, places = finite(own.y), np.array(rows, dtype=int)
        there = ~np.isnan(y[places])
        if not there.any():
            continue
        kept = places[there]
        error = None if own.error is None else error_var(own.error[kept])
        X = data.X[torch.from_numpy(there)]
        as_measured = Dataset(X, torch.from_numpy(y[kept]), data.name, data.unseen, data.categories, error)
        tasks.append(replace(task, y=own.y, maximize=own.maximize, error=own.error))
        datasets.append(outcomes[name].signed(as_measured))
        every_row.append(tuple(kept.tolist()))
    return replace(alignment, tasks=tuple(tasks), datasets=tuple(datasets), rows=tuple(every_row))
