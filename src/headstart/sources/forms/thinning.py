"""Huge sources: what ten thousand rows do not show, more of them hardly will, and reading and learning take time.

kept            which                                             because
a tenth         the best; of a table, both ends                   the optimum is what is transferred
the others      an even spread of the remaining rows, in order    the function must be known elsewhere too

Of several objectives each has its part of the tenth, so that the best of none of them is lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from headstart.sources.raw import RawTask, finite

MOST_LEARNT = 20_000  # rows of one source: AUTO learns them in a dozen seconds (models.large)
_BEST = 10  # one in so many is among the best


def rows_kept(y: NDArray[np.float64], maximize: bool | None, most: int) -> NDArray[np.intp]:
    """At most so many rows that have a result, in order."""
    return rows_kept_of([(y, maximize)], most)


def rows_kept_of(results: Sequence[tuple[NDArray[np.float64], bool | None]], most: int) -> NDArray[np.intp]:
    """The same of several results of every row: a row counts that has one of them."""
    values = [finite(y) for y, _ in results]
    known = np.flatnonzero(~np.all([np.isnan(y) for y in values], axis=0))
    if len(known) <= most:
        return known
    share = most // _BEST // len(results)
    best = np.unique(
        np.concatenate([_best(y, maximize, share) for y, (_, maximize) in zip(values, results, strict=True)])
    )
    rest = np.setdiff1d(known, best)
    spread = rest[np.linspace(0, len(rest) - 1, most - len(best)).round().astype(int)]
    return np.sort(np.concatenate([best, spread]))


def _best(y: NDArray[np.float64], maximize: bool | None, n: int) -> NDArray[np.intp]:
    """The n best rows; of both ends where it is not known which one is good."""
    known = np.flatnonzero(~np.isnan(y))
    ranked = known[np.argsort(y[known], kind="stable")]
    n_low = {False: n, True: 0, None: n // 2}[maximize]
    return np.concatenate([ranked[:n_low], ranked[max(0, len(ranked) - (n - n_low)) :]])


def _kept_of(task: RawTask, most: int) -> NDArray[np.intp]:
    if task.undecided and task.objectives:  # which of them counts is not known yet
        return rows_kept_of([(own.y, own.maximize) for own in task.objectives.values()], most)
    return rows_kept(task.y, task.maximize, most)


def thinned(task: RawTask) -> RawTask:
    """The task with at most ``MOST_LEARNT`` rows, and a note if it had more."""
    n = len(task.rows)
    if n <= MOST_LEARNT:
        return task
    kept = _kept_of(task, MOST_LEARNT)
    return replace(task.only(kept), notes=(*task.notes, thinned_in_words(len(kept), n)))


def thinned_in_words(kept: int, n: int) -> str:
    """The note on a source of which not every row is used."""
    return f"{kept:,} of {n:,} rows are used: the best tenth, and an even spread of the others"
