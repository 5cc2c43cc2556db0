"""Points and steps on grids that linear rules tie together."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp

Array = NDArray[np.float64]

_SECONDS = 2.0


def farthest(
    direction: Float[Array, "p"],
    sides: tuple[Array, Array, Array, Array],
    grids: NDArray[np.intp],
    start: Float[Array, "g"],
    pitch: Float[Array, "g"],
) -> Float[Array, "p"] | None:
    """A point x with A x ≤ b, E x = e that is farthest against a direction, up to the tolerances of a solver.

    On the ``grids`` it is a whole number of steps of length ``pitch`` from ``start``. None if there is no such
    point, or none is found soon.
    """
    A, b, E, e = sides
    # x = offset + scale y, y whole on the grids
    offset, scale, whole = np.zeros(len(direction)), np.ones(len(direction)), np.zeros(len(direction))
    offset[grids], scale[grids], whole[grids] = start, pitch, 1
    rows = [LinearConstraint(A * scale, -np.inf, b - A @ offset + 1e-11)]
    if len(E):
        rows.append(LinearConstraint(E * scale, e - E @ offset, e - E @ offset))
    bounds, limit = Bounds(-np.inf, np.inf), {"time_limit": _SECONDS}
    found = milp(direction * scale, constraints=rows, integrality=whole, bounds=bounds, options=limit)
    return None if found.x is None else offset + scale * np.where(whole > 0, np.round(found.x), found.x)


def pair_steps(G: Float[Array, "q g"]) -> Sequence[Float[Array, "g"]]:
    """The shortest steps of two grids that keep the sum of an equality, if the other terms do not change."""
    found = []
    for row in G:
        for j, k in combinations(np.flatnonzero(np.abs(row) > 1e-12), 2):
            ratio = Fraction(float(row[j] / row[k])).limit_denominator(1000)
            step = np.zeros(len(row))
            step[j], step[k] = ratio.denominator, -ratio.numerator
            found.append(step)
    return found
