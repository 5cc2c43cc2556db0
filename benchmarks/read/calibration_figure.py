"""Observed against nominal coverage: a method that knows what it does not know is on the diagonal."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, PercentFormatter

from benchmarks.read.calibration import KNOWN, LEVELS, Forecasts, Known, coverage, groups
from benchmarks.read.curves import band, curve
from benchmarks.read.styles import in_order
from headstart.draw.canvas import FORMATS, INK, legend_below, panels, save, tidy
from headstart.errors import InputError

_NOMINAL = np.arange(1, 100) / 100
_MARKED = [int(np.abs(_NOMINAL - level).argmin()) for level in LEVELS]
_LETTERS_PER_INCH = 15
_NOTE = (
    "results inside the central interval, ± standard error over runs; markers at 50, 80 and 95 %. "
    "Below the diagonal: too sure; above: too cautious"
)


def draw_calibration(found: Sequence[Forecasts], file: Path) -> list[Path]:
    """A row for families and one for tables, a panel per number of results known, as PNG and SVG beside each other."""
    if file.suffix.removeprefix(".").lower() not in FORMATS:
        raise InputError(f"{file}: pictures are written as PNG and SVG. Give a name that ends in .png.")
    parts = groups(found)
    columns = [known for known in KNOWN if _has_any(found, known)]
    figure, axes = panels(len(parts) * len(columns), columns=len(columns), size=(3.4, 3.6))
    for row, (name, part) in enumerate(parts.items()):
        for column, known in enumerate(columns):
            panel = axes[row * len(columns) + column]
            _draw_panel(panel, part, known)
            tidy(
                panel,
                xlabel="nominal coverage" if row == len(parts) - 1 else "",
                ylabel="observed coverage" if column == 0 else "",
                title=f"{name.capitalize()}, {_title(known)}",
            )
    legend_below(figure, axes, textwrap.fill(_NOTE, int(_LETTERS_PER_INCH * figure.get_figwidth())))
    return save(figure, file.parent, file.stem)


def _title(known: Known) -> str:
    if known.last == 0:
        return "no result known"
    return f"{known.label} results known"


def _has_any(found: Sequence[Forecasts], known: Known) -> bool:
    return any(not np.isnan(f.pit[:, known.columns]).all() for f in found)


def _draw_panel(axes: Axes, part: Sequence[Forecasts], known: Known) -> None:
    axes.plot([0, 1], [0, 1], color=INK, linewidth=0.9, zorder=1)
    for method in in_order(f.method for f in part):
        own = [f for f in part if f.method == method]
        if not _has_any(own, known):
            curve(axes, method, [], [], floor=0.0)  # for the order of the legend
            continue
        share, error = coverage(own, known, _NOMINAL.tolist())
        error = np.nan_to_num(error)
        band(axes, method, _NOMINAL, share - error, share + error, floor=0.0, alpha=0.16)
        curve(axes, method, _NOMINAL, share, floor=0.0, every=_MARKED)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(FixedLocator([0.0, *LEVELS]))
        axis.set_major_formatter(PercentFormatter(xmax=1.0, decimals=0))
    # markers at 0 and 100 % are not cut
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.02, 1.02)
    axes.set_aspect("equal")
