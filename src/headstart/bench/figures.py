"""The picture of the demonstration. It is drawn from results alone: nothing is computed again.

The others: ``regret_figures`` (regrets), ``timing_figures`` (seconds), ``posterior_figure`` (the paper's figure 1).
"""

from __future__ import annotations

from pathlib import Path

from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter
from torch import Tensor

from headstart.bench.demo import DemoResult
from headstart.bench.styles import INK, Style, style
from headstart.errors import InputError

__all__ = ["draw_demo", "require_writable"]

_QUANTILES = (0.2, 0.8)
_RUNS_SHOWN = 12  # more single runs than these hide the median
_LOG_FLOOR = 1e-12  # a log axis has no zero


def require_writable(path: Path) -> None:
    """Raise an ``InputError`` unless a picture can be written to ``path``: a known format, in a folder that exists."""
    known = sorted(FigureCanvasAgg.get_supported_filetypes())
    if path.suffix.lower().lstrip(".") not in known:
        raise InputError(f"{path} must end in the name of a picture format: {', '.join('.' + k for k in known)}.")
    if not path.parent.is_dir():
        raise InputError(f"{path} cannot be written: there is no folder {path.parent}. Create it first.")
    existed = path.exists()
    try:
        with path.open("ab"):
            pass
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}.") from error
    if not existed:
        path.unlink()


def draw_demo(result: DemoResult, path: Path) -> None:
    """Simple regret against evaluations on a log axis: the median, the runs' 20–80 % range, and the runs if few."""
    demo = result.demo
    figure = Figure(figsize=(7.6, 4.8), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    points = f"{demo.source_points} past measurement{'s' if demo.source_points > 1 else ''}"
    _draw_method(axes, result.scratch, style("gpbo"), "from scratch (GPBO)")
    _draw_method(axes, result.head_start, style(demo.model), f"head start ({demo.model.upper()}, {points})")
    _draw_match(axes, result)
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    if high < 1000 * low:  # a few decades have room for more ticks
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xlim(0.5, demo.steps + 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.set_xlabel("evaluations of the target")
    axes.set_ylabel("simple regret (best so far − true minimum)")
    axes.set_title("Head start against from scratch", loc="left", fontweight="bold", pad=44)
    runs = f"median of {demo.runs} runs, their 20–80 % range" if demo.runs > 1 else "one run"
    note = f"{demo.problem.name} family, noise {demo.noise_std:g}; {runs}"
    axes.annotate(note, (0, 1), xytext=(0, 30), xycoords="axes fraction", textcoords="offset points", color=INK)
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=2, frameon=False, borderaxespad=0.2, borderpad=0.2)
    axes.grid(True, which="major", color="#DDDDDD", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    try:
        figure.savefig(path)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}.") from error


def _draw_method(axes: Axes, regret: Float[Tensor, "runs steps"], look: Style, label: str) -> None:
    regret = regret.clamp_min(_LOG_FLOOR)
    steps, color = list(range(1, regret.shape[-1] + 1)), look.color
    if len(regret) > 1:
        low, high = regret.quantile(regret.new_tensor(_QUANTILES), dim=0).tolist()
        axes.fill_between(steps, low, high, color=color, alpha=0.18, linewidth=0)
    if 1 < len(regret) <= _RUNS_SHOWN:
        axes.plot(steps, regret.mT.tolist(), color=color, alpha=0.35, linewidth=0.8)
    median = regret.quantile(0.5, dim=0).tolist()
    drawn = {"color": color, "linestyle": look.line, "marker": look.marker}
    axes.plot(steps, median, linewidth=2.2, markersize=5, label=label, **drawn)


def _draw_match(axes: Axes, result: DemoResult) -> None:
    """A dotted line at what scratch reached, and how many evaluations earlier the head start was there."""
    scratch, head_start = result.evaluations_to_match()
    if head_start is None or head_start >= scratch:
        return
    goal = result.medians[0][-1].clamp_min(_LOG_FLOOR).item()
    axes.axhline(goal, color=INK, linewidth=1.0, linestyle=":")
    arrow = {"arrowstyle": "<->", "color": INK, "linewidth": 1.2, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", xy=(head_start, goal), xytext=(scratch, goal), arrowprops=arrow)
    axes.annotate(
        f"{scratch - head_start} evaluations fewer" if scratch - head_start > 1 else "1 evaluation fewer",
        xy=(head_start, goal),
        xytext=(10, 5),  # on the side where scratch is still far above
        textcoords="offset points",
        ha="left",
        va="bottom",
        fontsize=9,
        color=INK,
        bbox={"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.75},
    )
