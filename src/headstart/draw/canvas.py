"""What all figures share: panels, log axes with readable ticks, one legend below, and PNG and SVG files."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator
from numpy.typing import ArrayLike, NDArray

from headstart.sources.files.safe import make_folder, write_whole

INK = "#333333"

FORMATS = ("png", "svg")
# A log axis has no zero. Lower values are drawn at the floor.
_FLOOR = 1e-9
# Room in a legend
_INCHES_A_LETTER, _INCHES_A_HANDLE, _HANDLE = 0.066, 0.8, 3.0
_ROWS_OF_A_LEGEND, _INCHES_A_ROW = 3, 0.2  # for more of them a figure grows
_POINTS_AN_INCH = 72


def panels(n: int, *, columns: int = 3, size: tuple[float, float] = (4.2, 3.4)) -> tuple[Figure, list[Axes]]:
    """A figure with n panels of this size in inches, at most so many in a row."""
    columns = min(n, columns)
    rows = math.ceil(n / columns)
    figure = Figure(figsize=(columns * size[0], rows * size[1] + 0.7), dpi=150, layout="constrained")
    grid = np.atleast_1d(np.asarray(figure.subplots(rows, columns, squeeze=False))).ravel()
    for unused in grid[n:]:
        unused.set_axis_off()
    return figure, list(grid[:n])


def positive(values: Sequence[ArrayLike]) -> float:
    """The lowest positive value among all, at least 1e-9: where zeros and values below 0 are drawn."""
    flat = np.concatenate([np.ravel(np.asarray(v, dtype=float)) for v in values])
    above = flat[np.isfinite(flat) & (flat > _FLOOR)]
    return float(above.min()) if len(above) else _FLOOR


def number(value: float) -> str:
    """A tick as people write it: 0.01, 10, 10⁻⁶."""
    if value == 0 or 1e-4 <= abs(value) < 1e5:
        return f"{value:g}"
    digits, _, power = f"{value:.0e}".partition("e")
    raised = str(int(power)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{raised}" if digits == "1" else f"{digits}·10{raised}"


def log_axis(axes: Axes, *, x: bool = False) -> None:
    """A log scale whose ticks are numbers, with more of them where there are few decades."""
    axis = axes.xaxis if x else axes.yaxis
    (axes.set_xscale if x else axes.set_yscale)("log")
    low, high = axes.get_xlim() if x else axes.get_ylim()
    if high < 3 * low:
        axis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 4, 5, 6, 8)))
    elif high < 1000 * low:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
    axis.set_minor_formatter(NullFormatter())


def values_axis(axes: Axes, values: NDArray[np.float64]) -> None:
    """A log x axis whose ticks are just these values."""
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator([float(v) for v in values]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))


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
    room, font = inches * _POINTS_AN_INCH, FontProperties(size=size)

    def fits(line: str) -> bool:
        return bool(text_to_path.get_text_width_height_descent(line, font, False)[0] <= room)

    found = [""]
    for word in text.split():
        if fits(f"{found[-1]} {word}".strip()):
            found[-1] = f"{found[-1]} {word}".strip()
            continue
        if found[-1]:
            found.append("")
        for letter in word:  # one that is longer than a line is broken
            if found[-1] and not fits(found[-1] + letter):
                found.append("")
            found[-1] += letter
    if len(found) > lines:
        last = found[lines - 1]
        while last and not fits(f"{last}…"):
            last = last[:-1]
        found = [*found[: lines - 1], f"{last.rstrip()}…"]
    return "\n".join(found)


def legend_below(figure: Figure, axes: Sequence[Axes], note: str = "", *, columns: int | None = None) -> None:
    """One legend for all panels, in which every label stands once, and a note on what is drawn.

    By default it has as many columns as there is room for the longest label. For more than a few rows the figure grows,
    so that the panels keep their height.
    """
    found: dict[str, Any] = {}
    for panel in axes:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    longest = max(map(len, found), default=1)
    most = columns or max(1, int(figure.get_figwidth() / (_INCHES_A_LETTER * longest + _INCHES_A_HANDLE)))
    rows = max(1, math.ceil(len(found) / most))
    figure.set_figheight(figure.get_figheight() + _INCHES_A_ROW * max(0, rows - _ROWS_OF_A_LEGEND))
    legend = figure.legend(
        list(found.values()),
        list(found),
        loc="outside lower center",
        ncols=max(1, math.ceil(len(found) / rows)),
        frameon=False,
        fontsize=9,
        handlelength=_HANDLE,
        title=note or None,
        title_fontproperties={"size": 9},
    )
    legend.get_title().set_color(INK)


def save(figure: Figure, folder: Path, name: str, formats: Sequence[str] = FORMATS) -> list[Path]:
    """``name.png`` and ``name.svg`` in the folder, all of them or none; equal figures give equal files."""
    return save_all({name: figure}, folder, formats)


def save_all(figures: Mapping[str, Figure], folder: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Several figures by their names: all are drawn before the first is written."""
    drawn = {f"{name}.{suffix}": _drawn(figure, suffix) for name, figure in figures.items() for suffix in formats}
    make_folder(folder)
    for name, content in drawn.items():
        write_whole(folder / name, content)
    return [folder / name for name in drawn]


def _drawn(figure: Figure, suffix: str) -> bytes:
    content = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "headstart"}):
        figure.savefig(content, format=suffix, metadata={"Date": None} if suffix == "svg" else {"Software": None})
    return content.getvalue()
