"""Huge sources: what ten thousand rows do not show, more of them hardly will, and reading and learning take time.

kept            which                                             because
a tenth         the best; of a table, both ends                   the optimum is what is transferred
the others      an even spread of the remaining rows, in order    the function must be known elsewhere too
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from headstart.sources.raw import RawTask, finite

__all__ = ["MOST_LEARNT", "rows_kept", "thinned", "thinned_in_words"]

MOST_LEARNT = 20_000  # rows of one source: AUTO learns them in a dozen seconds (models.large)
_BEST = 10  # one in so many is among the best


def rows_kept(y: NDArray[np.float64], maximize: bool | None, most: int) -> NDArray[np.intp]:
    """At most so many rows that have a result, in order."""
    known = np.flatnonzero(~np.isnan(finite(y)))
    if len(known) <= most:
        return known
    n_best = most // _BEST
    ranked = known[np.argsort(finite(y)[known], kind="stable")]
    n_low = {False: n_best, True: 0, None: n_best // 2}[maximize]
    best = np.concatenate([ranked[:n_low], ranked[len(ranked) - (n_best - n_low) :]])
    rest = np.setdiff1d(known, best)
    spread = rest[np.linspace(0, len(rest) - 1, most - n_best).round().astype(int)]
    return np.sort(np.concatenate([best, spread]))


def thinned(task: RawTask) -> RawTask:
    """The task with at most ``MOST_LEARNT`` rows, and a note if it had more."""
    n = len(task.rows)
    if n <= MOST_LEARNT:
        return task
    kept = rows_kept(task.y, task.maximize, MOST_LEARNT)
    return replace(task.only(kept), notes=(*task.notes, thinned_in_words(len(kept), n)))


def thinned_in_words(kept: int, n: int) -> str:
    """The note on a source of which not every row is used."""
    return f"{kept:,} of {n:,} rows are used: the best tenth, and an even spread of the others"
