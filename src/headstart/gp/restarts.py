"""Which of the restarts of a problem need not go on: those that meet a better one, and those that fall behind.

A run that comes close to a better run of its problem, in every coordinate, is on the way to where that one goes: it
stops there and takes over its end. The caller may say in which coordinates the runs are compared (``Joining``), since
not every distance means something. A run that would not catch up with the best of its problem in all the steps it has
left, if it goes on as in the last ten, may be given up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["JOIN_WITHIN", "PACE", "Array", "Joining", "agree", "better_neighbours", "ends", "too_slow"]

Array = NDArray[np.float64]

# In the logarithm of a parameter: ten per cent
JOIN_WITHIN = 0.1
# So many steps say how fast a run gets on
PACE = 10


def _as_they_are(points: Array) -> Array:
    return points


@dataclass(frozen=True, slots=True)
class Joining:
    """When and how runs are compared: every so many steps from step 10 on, in these coordinates (a row per run).

    With ``race_from`` runs that are too slow from this step on are given up.
    """

    every: int = 10
    within: float = JOIN_WITHIN
    coordinates: Callable[[Array], Array] = _as_they_are
    race_from: int | None = None

    def is_due(self, step: int) -> bool:
        """Whether runs are compared before this step. Runs that begin at one point need a while to part."""
        return step >= 10 and step % self.every == 0

    def is_race(self, step: int) -> bool:
        """Whether the runs' pace is looked at before this step."""
        return self.race_from is not None and step >= self.race_from and (step - self.race_from) % PACE == 0


def better_neighbours(x: Array, value: Array, active: list[int], restarts: int, within: float) -> NDArray[np.int64]:
    """For every active run the best of its problem within reach, if it is better (or equal and earlier); else −1."""
    runs = np.array(active, dtype=np.int64)
    rows = (runs // restarts * restarts)[:, None] + np.arange(restarts)  # of its problem
    near = (np.abs(x[rows] - x[runs, None]) < within).all(-1)
    values, own = value[rows], value[runs, None]
    better = (values < own) | ((values == own) & (rows < runs[:, None]))
    candidates = np.where(near & better, values, np.inf)
    every, best = np.arange(len(runs)), candidates.argmin(-1)
    return np.where(candidates[every, best] < np.inf, rows[every, best], -1)


def too_slow(value: Array, earlier: Array, restarts: int, paces: float) -> NDArray[np.bool_]:
    """Whether so many times its gain since ``earlier`` leaves a run behind the best of its problem."""
    best = value.reshape(-1, restarts).min(-1).repeat(restarts)
    behind: NDArray[np.bool_] = value - paces * (earlier - value) > best
    return behind


def ends(joined: NDArray[np.int64]) -> NDArray[np.int64]:
    """The run at the end of every chain of joins."""
    end = np.arange(len(joined))
    while (onward := joined[end] >= 0).any():
        end = np.where(onward, joined[end], end)
    return end


def agree(
    x: Array, joined: NDArray[np.int64], active: list[int], by_x: NDArray[np.bool_], within: float
) -> NDArray[np.bool_]:
    """For every problem whether its runs in x (those marked in its row of ``by_x``) have all ended, in one place."""
    end, going = ends(joined), np.zeros(len(x), dtype=bool)
    going[active] = True
    places = x[end].reshape(*by_x.shape, -1)
    first = places[np.arange(len(places)), by_x.argmax(-1)]
    elsewhere = np.abs(places - first[:, None]).max(-1) >= within
    agreed: NDArray[np.bool_] = ~((going[end].reshape(by_x.shape) | elsewhere) & by_x).any(-1)
    return agreed
