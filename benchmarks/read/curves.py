"""Lines and bands in the style of a method."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from benchmarks.read.styles import style


def curve(axes: Axes, method: str, x: ArrayLike, y: ArrayLike, *, floor: float, every: Any = None) -> None:
    """A line in the method's style, with a marker at every point or at ``every``."""
    s = style(method)
    look: dict[str, Any] = {
        "color": s.color,
        "linestyle": s.line,
        "linewidth": 1.7,
        "marker": s.marker,
        "markersize": 4.5,
    }
    axes.plot(x, np.maximum(np.asarray(y, dtype=float), floor), markevery=every, zorder=3, **look)
    axes.plot([], [], label=s.label, **look)  # what the legend shows: a marker in any case


def band(
    axes: Axes, method: str, x: ArrayLike, low: ArrayLike, high: ArrayLike, *, floor: float, alpha: float = 0.12
) -> None:
    """A shaded range in the method's colour."""
    low_, high_ = (np.maximum(np.asarray(v, dtype=float), floor) for v in (low, high))
    axes.fill_between(np.asarray(x, dtype=float), low_, high_, color=style(method).color, alpha=alpha, linewidth=0)
