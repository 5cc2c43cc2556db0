"""When the hyperparameters of a growing target are found anew: with every result, then ever more rarely.

Up to EVERY results each of them may change what is believed, and a fit takes a moment. Later one among hundreds changes
next to nothing, and a fit takes seconds. So from then on hyperparameters are those of the first ``refit_size(n)``
results, four numbers in every doubling (128, 160, 192, 224, 256, 320 …), and the results since then are rows that are
added to the factor, O(n²). The numbers are fixed: a study read from a file has the fits of one that was followed.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from headstart.data.dataset import Dataset
from headstart.gp.fit import FitOptions
from headstart.tuning import PLAIN_TUNING

EVERY = PLAIN_TUNING.refit_every_result_up_to
FITTED_ON = PLAIN_TUNING.refit_rows


def refit_size(n: int) -> int:
    """Of how many of n results the hyperparameters are found: all up to EVERY, at least four fifths of them later."""
    if n <= EVERY:
        return n
    octave = 1 << (n.bit_length() - 1)
    return n - (n - octave) % (octave // PLAIN_TUNING.refits_per_doubling)


def fit_of_many(options: FitOptions) -> FitOptions:
    """How the hyperparameters of a long target are found: from fewer starts."""
    return replace(options, restarts=min(options.restarts, PLAIN_TUNING.refit_restarts))


def typical_rows(task: Dataset, most: int) -> Dataset:
    """At most so many rows that are like all of them: every so many by the size of their results, in their order.

    The rows of a batch of problems are chosen for each of them.
    """
    if task.n <= most:
        return task
    picks = torch.linspace(0, task.n - 1, most, dtype=torch.float64, device=task.y.device).round().long()
    rows = task.y.argsort(dim=-1, stable=True)[..., picks].sort(-1).values
    X = task.X.gather(-2, rows.unsqueeze(-1).expand(*rows.shape, task.d))
    return task.with_data(
        X, task.y.gather(-1, rows), None if task.error_var is None else task.error_var.gather(-1, rows)
    )
