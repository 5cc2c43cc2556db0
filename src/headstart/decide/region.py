"""Spectral projected gradient: minimisation under linear constraints, many runs in lockstep, each in its own region.

A run takes the Barzilai-Borwein step a along the gradient, projects it onto its region, and shortens the way there by
s until the loss is below the worst of the last few (a nonmonotone line search):

    y ← y + s (P(y − a g) − y)        Birgin, Martínez and Raydan, SIAM J. Optim. 10 (2000), 1196

Regions are convex, so that no point on the way leaves them. Constraints are linear in values, not in the coordinates of
a log axis: where columns are tied together, y is the share of a range, and the chain rule takes the gradient there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import NDArray

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Index = NDArray[np.intp]
Loss = Callable[[Array, Index], tuple[Array, Array]]  # (points, which of the runs they belong to) → (loss, gradient)
# (columns that linear constraints tie together, the projection of a point onto their polytope and whether it was found)
Tie = tuple[Index, Callable[[Array], tuple[Array, Flags]]]

_MEMORY = 4  # last losses that a new one is compared with
_BACKTRACKS = 12
_PATIENCE = 3  # steps in a row that may gain no more than rounding


@dataclass(frozen=True, eq=False)
class Region:
    """Where each of n points may go in f free columns: a box, some columns of which are tied together.

    y stands for the coordinate u = (L(offset + scale y) − start) / width, L being the log where ``log`` is true. Where
    a column is not tied, y = u.
    """

    low: Float[Array, "n f"]
    high: Float[Array, "n f"]
    offset: Float[Array, "n f"]
    scale: Float[Array, "n f"]
    log: Bool[Flags, "n f"]
    start: Float[Array, "n f"]
    width: Float[Array, "n f"]
    ties: list[Tie | None]

    @classmethod
    def cube(cls, n: int, f: int) -> Region:
        """The unit cube for every point, without ties."""
        zero, one = (partial(np.full, (n, f), value) for value in (0.0, 1.0))
        return cls(zero(), one(), zero(), one(), np.zeros((n, f), dtype=bool), zero(), one(), [None] * n)

    def _outward(self, Y: Float[Array, "k f"], which: Index) -> tuple[Float[Array, "k f"], Float[Array, "k f"]]:
        """The coordinates of y, and their derivatives."""
        log, scale, width = self.log[which], self.scale[which], self.width[which]
        Z = self.offset[which] + scale * Y
        size = np.where(log, Z, 1.0)
        return (np.where(log, np.log(size), Z) - self.start[which]) / width, scale / width / size

    def _project(self, Y: Float[Array, "k f"], which: Index) -> tuple[Float[Array, "k f"], Bool[Flags, "k"]]:
        """The projection of y onto the regions, and for which of them it was found."""
        P, ok = Y.clip(self.low[which], self.high[which]), np.ones(len(Y), dtype=bool)
        for i, run in enumerate(which):
            tie = self.ties[run]
            if tie is not None:
                columns, project = tie
                P[i, columns], ok[i] = (found[0] for found in project(Y[i : i + 1, columns]))
        return P, ok

    def descend(self, loss: Loss, U: Float[Array, "n f"], *, max_iterations: int) -> Float[Array, "n f"]:
        """The best coordinates that each run finds from its start U inside the region; the loss is one of those."""

        def own_loss(Y: Array, which: Index) -> tuple[Array, Array]:
            coordinates, pace = self._outward(Y, which)
            values, slopes = loss(coordinates, which)
            return values, slopes * pace

        T, every = self.start + self.width * U, np.arange(len(U))
        Y = (np.where(self.log, np.exp(np.where(self.log, T, 0.0)), T) - self.offset) / self.scale
        f, g = own_loss(Y, every)
        best, lowest = Y.copy(), f.copy()
        last = np.tile(f[:, None], (1, _MEMORY))
        idle = np.zeros(len(Y), dtype=np.int64)
        pace = np.full(len(Y), 0.1) / np.abs(g).max(-1, initial=0.0).clip(1e-8)
        going = every
        for iteration in range(max_iterations):
            P, ok = self._project(Y[going] - pace[going, None] * g[going], going)
            D = np.where(ok[:, None], P - Y[going], 0.0)
            fall = (g[going] * D).sum(-1)
            keep = (np.abs(D).max(-1, initial=0.0) > 1e-7) & (fall < 0) & (idle[going] < _PATIENCE)
            going, D, fall = going[keep], D[keep], fall[keep]
            if len(going) == 0:
                break
            before = f[going]
            X, values, slopes = _backtracked(own_loss, Y[going], before, D, fall, last[going].max(-1), going)
            moved, change = X - Y[going], slopes - g[going]
            curvature = (moved * change).sum(-1)
            with np.errstate(divide="ignore", invalid="ignore"):
                longest = np.where(curvature > 0, np.square(moved).sum(-1) / curvature, np.inf)
            pace[going] = longest.clip(1e-8, 1e4)
            Y[going], f[going], g[going] = X, values, slopes
            last[going, iteration % _MEMORY] = values
            better = values < lowest[going]
            gained = lowest[going] - values > 1e-9 * np.abs(values).clip(1.0)
            idle[going] = np.where(gained, 0, idle[going] + 1)
            best[going[better]], lowest[going[better]] = X[better], values[better]
        return self._outward(best, every)[0]


def _backtracked(
    loss: Loss, Y: Array, f: Array, D: Array, fall: Array, worst: Array, which: Index
) -> tuple[Array, Array, Array]:
    """The runs after a backtracking line search along D."""
    s = np.ones(len(Y))
    X, values, slopes = Y.copy(), f.copy(), np.zeros_like(Y)
    waiting = np.arange(len(Y))
    for _ in range(_BACKTRACKS):
        trial = Y[waiting] + s[waiting, None] * D[waiting]
        v, g = loss(trial, which[waiting])
        X[waiting], values[waiting], slopes[waiting] = trial, v, g
        short = v > worst[waiting] + 1e-4 * s[waiting] * fall[waiting]  # Armijo
        # the lowest place of the parabola through what is known
        with np.errstate(divide="ignore", invalid="ignore"):
            share = -fall[waiting] / (2 * ((v - f[waiting]) / s[waiting] - fall[waiting]))
        s[waiting] *= np.where(short, np.nan_to_num(share, nan=0.5).clip(0.1, 0.5), 1.0)
        waiting = waiting[short]
        if len(waiting) == 0:
            break
    return X, values, slopes
