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

_ENOUGH = 3


def estimated_finals(trials: Sequence[FrozenTrial], *, minimize: bool | None) -> dict[int, float]:
    """The estimates by the numbers of the pruned trials that have reported something.

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
        rises = [final - at for final, reported in finished if math.isfinite(at := _at(reported, step))]
        estimate = value + (float(np.median(rises)) if len(rises) >= _ENOUGH else 0.0)
        if finished and minimize is not None:
            values = [final for final, _ in finished]
            estimate = max(estimate, min(values)) if minimize else min(estimate, max(values))
        found[trial.number] = estimate
    return found


def _at(values: Mapping[int, float], step: int) -> float:
    """The value at the latest step up to this one; NaN if there is none."""
    known = [s for s in values if s <= step]
    return values[max(known)] if known else math.nan
