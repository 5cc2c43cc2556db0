"""What a pruned trial would have ended at: evidence that is too good to throw away, and not a final value.

A trial that is pruned at step s has a value v there. Those that ran to their end show by how much a value at that step
differs from the final one, and the median of that is added:

    estimate = v + median over finished trials of (final value − value at the latest step ≤ s)

With fewer than three finished trials that reported v itself is taken. No estimate is better than the best finished
value: a trial is pruned because it does not look like one of the best, and a promise is no result.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from headstart.sources.raw import INFINITE

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

__all__ = ["estimated_finals"]

_ENOUGH = 3


def estimated_finals(trials: Sequence[FrozenTrial], *, minimize: bool) -> dict[int, float]:
    """The estimates by the numbers of the pruned trials that have reported something."""
    from optuna.trial import TrialState

    finished = [
        (t.value, t.intermediate_values)
        for t in trials
        if t.state == TrialState.COMPLETE and t.value is not None and abs(t.value) < INFINITE
    ]
    best = (min if minimize else max)((value for value, _ in finished), default=None)
    found = {}
    for trial in trials:
        if trial.state != TrialState.PRUNED or not trial.intermediate_values:
            continue
        step = max(trial.intermediate_values)
        value = trial.intermediate_values[step]
        if not abs(value) < INFINITE:  # nor NaN
            continue
        rises = [final - at for final, values in finished if math.isfinite(at := _at(values, step))]
        estimate = value + (float(np.median(rises)) if len(rises) >= _ENOUGH else 0.0)
        if best is not None:
            estimate = max(estimate, best) if minimize else min(estimate, best)
        found[trial.number] = estimate
    return found


def _at(values: Mapping[int, float], step: int) -> float:
    """The value at the latest step up to this one; NaN if there is none."""
    known = [s for s in values if s <= step]
    return values[max(known)] if known else math.nan
