"""What all figures share: panels, one legend below, PNG files, and SVG for a page."""

from __future__ import annotations

import io
import math
import textwrap
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path
from matplotlib.ticker import FixedLocator
from numpy.typing import ArrayLike

from headstart.sources.files.safe import make_folder, write_whole

INK = "#333333"
NARROW = 3.9  # inches of a picture that a telephone shows without making its letters small

# A log axis has no zero. Lower values are drawn at the floor.
_FLOOR = 1e-9
# Room in a legend
_LEGEND = 9  # points
_INCHES_A_LETTER, _INCHES_A_HANDLE, _HANDLE = 0.066, 0.8, 3.0
_ROWS_OF_A_LEGEND, _INCHES_A_ROW = 3, 0.2  # for more of them a figure grows
_POINTS_AN_INCH = 72
_ONE_AT_A_TIME = threading.Lock()  # Matplotlib's settings and its parser of formulas are shared by all threads
# What a colour is in the dark: ink and paper change places, and dark colours become light ones of the same hue
_DARK = {
    "#333333": "#e2e2e2", "#000000": "#e2e2e2", "#ffffff": "#16191d", "#e2e2e2": "#3b424a", "#f2f2f2": "#23282e",
    "#0072b2": "#5fb2ee", "#882255": "#e08bb5", "#12365e": "#7fa3d1", "#009e73": "#33c69c", "#d55e00": "#ff8f3f",
    "#c8c8c8": "#6c747d", "#9a9a9a": "#a5adb5", "#56b4e9": "#3579b8",
}  # fmt: skip
_RULES = "".join(
    f'[style*="{what}: {light}" i]{{{what}:{dark} !important}}'
    for light, dark in _DARK.items()
    for what in ("fill", "stroke")
)
_STYLE = f"<style>@media screen and (prefers-color-scheme: dark){{svg{{fill:#e2e2e2}}{_RULES}}}</style>"


def panels(
    n: int, *, columns: int = 3, size: tuple[float, float] = (4.2, 3.4), below: float = 0.7, sharey: bool = False
) -> tuple[Figure, list[Axes]]:
    """A figure with n panels of this size in inches, at most so many in a row, and so much room ``below`` them."""
    columns = min(n, columns)
    rows = math.ceil(n / columns)
    figure = Figure(figsize=(columns * size[0], rows * size[1] + below), dpi=150, layout="constrained")
    grid = np.atleast_1d(np.asarray(figure.subplots(rows, columns, squeeze=False, sharey=sharey))).ravel()
    for unused in grid[n:]:
        unused.set_axis_off()
    return figure, list(grid[:n])


def positive(values: Sequence[ArrayLike]) -> float:
    """The lowest positive value among all, at least 1e-9: where zeros and values below 0 are drawn."""
    flat = np.concatenate([np.ravel(np.asarray(v, dtype=float)) for v in values])
    above = flat[np.isfinite(flat) & (flat > _FLOOR)]
    return float(above.min()) if len(above) else _FLOOR


def evaluations_axis(axes: Axes, steps: int) -> None:
    """Evaluations 1 … steps: ticks at 1, 5, 10, 15 …, or at every one if there are few."""
    apart = 1 if steps <= 8 else 5 if steps <= 40 else 10
    axes.xaxis.set_major_locator(
        FixedLocator([1, *range(apart, steps + 1, apart)] if apart > 1 else range(1, steps + 1))
    )
    axes.set_xlim(0.5, steps + 0.5)


def tidy(axes: Axes, xlabel: str = "", ylabel: str = "", *, title: str = "") -> None:
    """Labels, a light grid, no box."""
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    axes.set_title(title, loc="left", fontsize=11, fontweight="bold")
    axes.grid(True, which="major", color="#E2E2E2", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def look_at(axes: Axes, values: Sequence[ArrayLike]) -> None:
    """Keep results and medians in view; a band that is wider than them may leave the picture."""
    everything = np.concatenate([np.asarray(v, dtype=float) for v in values])
    if not len(everything):
        return
    low, high = float(everything.min()), float(everything.max())
    margin = 0.15 * (high - low) or 1.0
    axes.set_ylim(low - margin, high + margin)


def out_of_view(count: int) -> str:
    """How many results are not in the picture, for its note."""
    return f"; {count} result{' lies' if count == 1 else 's lie'} far outside the picture" if count else ""


def fitting(text: str, inches: float, *, size: float, lines: int) -> str:
    """The text in lines that are no longer than this, by the widths of its letters; what is too much ends in '…'."""
    text = " ".join(text.split())
    letters = 2 + int(1.3 * inches * len(text) / max(width_of(text, size=size), 1.0 / _POINTS_AN_INCH))
    while True:
        found = textwrap.wrap(text, letters, max_lines=lines, placeholder="…")
        if letters == 1 or all(width_of(line, size=size) <= inches for line in found):
            return "\n".join(found)
        letters -= 1


def width_of(line: str, *, size: float) -> float:
    """The width of a line of text in inches."""
    points = text_to_path.get_text_width_height_descent(line, FontProperties(size=size), False)[0]
    return float(points) / _POINTS_AN_INCH


def legend_below(figure: Figure, axes: Sequence[Axes], note: str = "") -> None:
    """One legend for all panels, in which every label stands once, and a note on what is drawn.

    It has as many columns as there is room for the longest label. For more than a few rows the figure grows, so that
    the panels keep their height.
    """
    found: dict[str, Any] = {}
    for panel in axes:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    room = figure.get_figwidth() - _INCHES_A_HANDLE
    found = {fitting(label, room, size=_LEGEND, lines=2): handle for label, handle in found.items()}
    longest = max((len(line) for label in found for line in label.split("\n")), default=1)
    most = max(1, int(figure.get_figwidth() / (_INCHES_A_LETTER * longest + _INCHES_A_HANDLE)))
    rows = max(1, math.ceil(sum(1 + label.count("\n") for label in found) / most))
    figure.set_figheight(figure.get_figheight() + _INCHES_A_ROW * max(0, rows - _ROWS_OF_A_LEGEND))
    legend = figure.legend(
        list(found.values()),
        list(found),
        loc="outside lower center",
        ncols=max(1, math.ceil(len(found) / rows)),
        frameon=False,
        fontsize=_LEGEND,
        handlelength=_HANDLE,
        title=fitting(note, 0.95 * figure.get_figwidth(), size=_LEGEND, lines=2) or None,
        title_fontproperties={"size": _LEGEND},
    )
    legend.get_title().set_color(INK)


def save_png(figures: Mapping[str, Figure], folder: Path) -> list[Path]:
    """Write figures as PNG by their names, all of them or none; the folder is made if it is not there."""
    make_folder(folder)
    drawn = {folder / f"{name}.png": _drawn(figure, "png", {"Software": None}) for name, figure in figures.items()}
    for path, content in drawn.items():
        write_whole(path, content)
    return list(drawn)


def themed_svg(figure: Figure) -> bytes:
    """The figure as SVG on no ground of its own; a reader's dark theme turns ink light."""
    figure.patch.set_alpha(0.0)
    for axes in figure.axes:
        if axes.get_facecolor()[:3] == (1.0, 1.0, 1.0):
            axes.patch.set_alpha(0.0)
    drawn = _drawn(figure, "svg", {"Date": None, "Creator": None})
    start = drawn.index(b">", drawn.index(b"<svg")) + 1
    return drawn[:start] + _STYLE.encode() + drawn[start:]


def _drawn(figure: Figure, suffix: str, metadata: Mapping[str, None]) -> bytes:
    """The picture's content: equal for equal figures."""
    content = io.BytesIO()
    with _ONE_AT_A_TIME, mpl.rc_context({"svg.hashsalt": "headstart"}):
        figure.savefig(content, format=suffix, metadata=metadata)
    return content.getvalue()
