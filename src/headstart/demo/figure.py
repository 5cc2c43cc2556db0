"""The picture of the demonstration. It is drawn from results alone: nothing is computed again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from matplotlib.transforms import offset_copy
from torch import Tensor

from headstart.demo.demo import DemoResult
from headstart.draw.canvas import INK, evaluations_axis, positive, tidy
from headstart.errors import InputError

_RUNS_SHOWN = 12  # more single runs than these hide the median
_SCRATCH, _HEAD_START = ("#D55E00", "s"), ("#0072B2", "o")


def require_writable(path: Path) -> None:
    """Raise an ``InputError`` unless a picture can be written to ``path``: a known format, in a folder that exists."""
    formats = sorted(FigureCanvasAgg.get_supported_filetypes())
    if path.suffix.lower().lstrip(".") not in formats:
        raise InputError(f"{path} must end in the name of a picture format: {', '.join('.' + k for k in formats)}.")
    if not path.parent.is_dir():
        raise InputError(f"{path} cannot be written: there is no folder {path.parent}. Create it first.")
    existed = path.exists()
    try:
        path.open("ab").close()
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}.") from error
    if not existed:
        path.unlink()


def draw_demo(result: DemoResult, path: Path) -> None:
    """The lowest error so far against trials, on a log axis: the median of the runs, and the runs if they are few."""
    demo = result.demo
    figure = Figure(figsize=(7.6, 4.8), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    floor = positive([result.scratch.numpy(), result.head_start.numpy()])
    past = f"{demo.past_trials} past trials on each of {', '.join(demo.sources)}"
    _draw(axes, result.scratch, *_SCRATCH, "from scratch", floor)
    _draw(axes, result.head_start, *_HEAD_START, f"head start: {past}", floor)
    _draw_match(figure, axes, result, floor)
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 5) if high < 10 * low else (1, 2, 5)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g} %"))
    evaluations_axis(axes, result.trials)
    tidy(axes, "trials: a support vector machine is trained and tested", "lowest cross-validated error so far")
    axes.set_title(f"Tuning a support vector machine on {demo.described}", loc="left", fontweight="bold", pad=44)
    note = f"bold: median of {demo.runs} runs" if demo.runs > 1 else "one run"
    note += "; thin: each run" * (1 < demo.runs <= _RUNS_SHOWN) + f"; head start by {demo.model_name}"
    if result.interrupted:
        note += f"; interrupted after {result.trials} of {demo.trials} trials"
    axes.annotate(note, (0, 1), xytext=(0, 30), xycoords="axes fraction", textcoords="offset points", color=INK)
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=2, frameon=False, borderaxespad=0.2, borderpad=0.2)
    figure.savefig(path)


def _draw(axes: Axes, errors: Float[Tensor, "runs trials"], color: str, marker: str, label: str, floor: float) -> None:
    shown, trials = errors.clamp_min(floor), np.arange(1, errors.shape[-1] + 1)
    if 1 < len(shown) <= _RUNS_SHOWN:
        axes.plot(trials, shown.mT.numpy(), color=color, alpha=0.35, linewidth=0.9, drawstyle="steps-post")
    median = shown.quantile(0.5, dim=0).numpy()
    look: dict[str, Any] = {"linewidth": 2.4, "drawstyle": "steps-post", "marker": marker, "markersize": 5}
    axes.plot(trials, median, color=color, label=label, zorder=3, **look)


def _draw_match(figure: Figure, axes: Axes, result: DemoResult, floor: float) -> None:
    """A dotted line at what scratch reached, and how many trials earlier the head start was there."""
    scratch, head_start = result.trials_to_match()
    if head_start is None or head_start >= scratch:
        return
    goal = max(result.medians[0][-1].item(), floor)
    axes.axhline(goal, color=INK, linewidth=1.0, linestyle=":")
    # in between the head start is at the line or below, and scratch above: there is room just above the line
    above = offset_copy(axes.transData, figure, y=9, units="points")
    arrow = {"arrowstyle": "<->", "color": INK, "linewidth": 1.2, "shrinkA": 0, "shrinkB": 0}
    ends: dict[str, Any] = {"xy": (head_start, goal), "xytext": (scratch, goal), "xycoords": above, "textcoords": above}
    axes.annotate("", **ends, arrowprops=arrow, zorder=4)
    fewer, middle = scratch - head_start, ((scratch + head_start) / 2, goal)
    box = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.75}
    look: dict[str, Any] = {"fontsize": 9, "color": INK, "bbox": box, "zorder": 5, "ha": "center", "va": "bottom"}
    place: dict[str, Any] = {"xycoords": above, "xytext": (0, 4), "textcoords": "offset points"}
    axes.annotate(f"{fewer} trial{'s' if fewer > 1 else ''} fewer", middle, **place, **look)
