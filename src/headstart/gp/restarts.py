"""Which of the restarts of a problem need not go on: those that meet a better one, and those that fall behind.

A run that comes close to a better run of its problem, in every coordinate, is on the way to where that one goes: it
stops there and takes over its end. The caller may say in which coordinates the runs are compared (``Joining``), since
not every distance means something. A run that would not catch up with the best of its problem in all the steps it has
left, if it goes on as in the last ten, may be given up. ``FitReport`` says what became of each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

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


@dataclass(frozen=True, slots=True)
class FitReport:
    """What every restart of one fit did. ``objective`` is what was minimised, per observation; lower is better.

    Leading dimensions are those of the batch of problems; the last one counts the restarts. With
    ``FitOptions.natural_too`` its second half are the same starts searched in natural parameters (on top of inherited
    beliefs: at first). The evaluations of the best restart include those that polished it (only where ``PlainEvidence``
    is maximised without priors).
    """

    task: str
    objective: Float[Tensor, "*b R"]
    evaluations: Int[Tensor, "*b R"]
    converged: Bool[Tensor, "*b R"]
    failures: Int[Tensor, "*b R"]  # factorisations that failed on the way
    joined: Int[Tensor, "*b R"]  # the restart whose path this one met and whose end it shares, or −1
    best: Int[Tensor, "*b"]
    n_observations: int = 0
    n_natural: int = 0  # how many restarts, the last ones, were (at first) searched in natural parameters
    note: str = ""  # how a task of very many rows was learnt, in words

    def __str__(self) -> str:
        """A line for the fit and, for a single problem, a line per restart."""
        restarts = f"{self.objective.shape[-1] - self.n_natural} restarts"
        if self.n_natural:
            restarts += f" in log and {self.n_natural} in natural parameters"
        head = (
            f"{self.task}: {self.n_observations} observations, {restarts}, "
            f"{int(self.converged.sum())} of {self.converged.numel()} converged, "
            f"{int(self.evaluations.sum())} evaluations, {int(self.failures.sum())} failed factorisations"
        )
        head += f"; {self.note}" if self.note else ""
        if self.objective.dim() > 1 or self.objective.numel() == 0:
            return head
        rows = [
            f"  {i:>3} {'*' if i == int(self.best) else ' '} objective {self.objective[i].item():+.6f}  "
            f"evaluations {int(self.evaluations[i]):>4}  {'converged' if self.converged[i] else 'stopped early'}"
            f"{f', with restart {int(self.joined[i])}' if self.joined[i] >= 0 else ''}"
            f"{f'  failures {int(self.failures[i])}' if self.failures[i] else ''}"
            for i in range(len(self.objective))
        ]
        return "\n".join([head, *rows])

    def at_row(self, row: int, task: str) -> FitReport:
        """The report of one entry of the first batch dimension."""
        tensors = [f.name for f in fields(self) if isinstance(getattr(self, f.name), Tensor)]
        rows: dict[str, Any] = {name: getattr(self, name)[row] for name in tensors}
        return replace(self, task=task, **rows)
