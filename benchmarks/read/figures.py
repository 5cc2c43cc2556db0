"""Figures of the benchmark: regrets in the paper's forms, and observed against nominal coverage, as PNG files.

A method that knows what it does not know is on the diagonal of the coverage figure.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter
from numpy.typing import ArrayLike
from PIL import Image

from benchmarks.read.analysis import Array, Cell, Results, by_kind, mean_and_error
from benchmarks.read.calibration import KNOWN, LEVELS, Forecasts, Known, coverage, groups
from benchmarks.read.styles import in_order, is_table, setting, settings_of, style, title
from benchmarks.read.targets import TARGETS, Profile, profile
from headstart.draw.canvas import INK, evaluations_axis, legend_below, panels, positive, tidy
from headstart.errors import InputError
from headstart.sources.files.safe import make_folder

_DOTS_PER_INCH, _COLOURS = 120, 160
_QUANTILES = (0.2, 0.8)
MEAN = "mean ± standard error of the mean"
MEDIAN = f"median and {_QUANTILES[0]:.0%} to {_QUANTILES[1]:.0%} range of the runs"
_NOMINAL = np.arange(1, 100) / 100
_MARKED = [int(np.abs(_NOMINAL - level).argmin()) for level in LEVELS]
_LETTERS_PER_INCH = 15
_NOTE = (
    "results inside the central interval, ± standard error over runs; markers at 50, 80 and 95 %. "
    "Below the diagonal: too sure; above: too cautious"
)


def save_png(figure: Figure, folder: Path, name: str) -> Path:
    """``name.png`` in the folder, with a palette that keeps it small."""
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=_DOTS_PER_INCH)
    path = make_folder(folder) / f"{name}.png"
    with Image.open(content) as image:
        few = image.convert("RGB").quantize(
            _COLOURS, method=Image.Quantize.MAXCOVERAGE, kmeans=3, dither=Image.Dither.NONE
        )
    few.save(path, optimize=True)
    return path


def log_axis(axes: Axes) -> None:
    """A log y axis whose ticks are numbers, with more of them where there are few decades."""
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    if high < 1000 * low:
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 5, 7) if high < 3 * low else (1, 2, 5)))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def values_axis(axes: Axes, values: Array) -> None:
    """A log x axis whose ticks are just these values."""
    axes.set_xscale("log")
    axes.set_xticks([float(v) for v in values], [f"{v:g}" for v in values])
    axes.set_xticks([], minor=True)


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


# ── regrets ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def draw_regret(
    results: Results, folder: Path, name: str = "regret", *, problems: Sequence[str] | None = None
) -> list[Path]:
    """One panel per problem: ``name`` has means and standard errors, ``name-median`` medians and quantiles.

    ``problems`` says which, and in which order; those without runs are left out.
    """
    shown = [p for p in problems or results.problems if p in results.problems]
    if not shown:
        raise InputError("There is nothing to draw: there are no runs.")
    paths = []
    for statistic, suffix in ((MEAN, ""), (MEDIAN, "-median")):
        figure, axes = panels(len(shown))
        for panel, problem in zip(axes, shown, strict=True):
            _draw_regrets(panel, results.on(problem), statistic)
            what = "ADTM" if is_table(problem) else "simple regret"
            tidy(panel, xlabel="evaluations", ylabel=what, title=panel_title(problem, shown))
        legend_below(figure, axes, f"{statistic}; {_runs(results)}")
        paths.append(save_png(figure, folder, f"{name}{suffix}"))
    return paths


def draw_profiles(results: Results, folder: Path) -> list[Path]:
    """A panel per target regret: the share of (problem, seed) pairs solved, against evaluations.

    Tables and functions have pictures of their own where there are several of both.
    """
    drawn = []
    for kind, of_kind in by_kind(results).items():
        found = [one for target in TARGETS if (one := profile(of_kind, target)) is not None]
        if found:
            word = kind.removesuffix(": ").lower()
            figure = _profiles(found, f"{word}: " * bool(word))
            drawn.append(save_png(figure, folder, "-".join(["profiles", *([word] if word else [])])))
    return drawn


def _profiles(found: Sequence[Profile], what: str) -> Figure:
    figure, axes = panels(len(found), size=(3.2, 3.0))
    for panel, one in zip(axes, found, strict=True):
        steps = np.arange(1, one.steps + 1)
        every = max(1, one.steps // 6)
        for i, method in enumerate(one.budgets):
            shares = one.within(method, steps.astype(np.float64))
            curve(panel, method, steps, shares, floor=0.0, every=(i * every // len(one.budgets), every))
        panel.set_ylim(-0.02, 1.02)
        evaluations_axis(panel, one.steps)
        tidy(panel, xlabel="evaluations", ylabel="share solved", title=f"Within a regret of {one.target:g}")
    pairs = len(next(iter(found[0].budgets.values())))
    legend_below(figure, axes, f"{what}data profiles over {pairs} pairs (problem, seed)")
    return figure


def panel_title(problem: str, among: Sequence[str]) -> str:
    """The problem's name, and of its settings those in which problems of that name differ."""
    name, settings = settings_of(problem)
    alike = [settings_of(other)[1] for other in among if settings_of(other)[0] == name]
    differing = [key for key in settings if len({other.get(key) for other in alike}) > 1]
    words = {
        **{"sources": "{} sources", "points": "{} source points", "rows": "{} rows", "noise": "noise {}"},
        **{"order": "{} order", "repeats": "rows may repeat"},
    }
    parts = [words.get(key, key + " {}").format(settings[key]) for key in differing]
    several = settings.get("sources", "1") != "1" and "sources" not in differing
    return ", ".join([title(problem), *([f"{settings['sources']} sources"] if several else []), *parts])


def _runs(results: Results) -> str:
    """How many runs there are, by method where they differ."""
    counts: dict[str, set[int]] = {}
    for cell in results.cells:
        counts.setdefault(cell.method, set()).add(len(cell.seeds))
    every = sorted(set.union(*counts.values()))
    return f"{every[0]} runs" if len(every) == 1 else f"{every[0]} to {every[-1]} runs"


def _statistic(cell: Cell, statistic: str) -> tuple[Array, Array, Array]:
    """Line, lower and upper end of the band."""
    if statistic == MEAN:
        mean, error = mean_and_error(cell.regret)
        error = np.nan_to_num(error)
        return mean, mean - error, mean + error
    low, high = np.quantile(cell.regret, _QUANTILES, axis=0)
    return np.median(cell.regret, axis=0), low, high


def _draw_regrets(axes: Axes, cells: Mapping[str, Cell], statistic: str) -> None:
    drawn = {method: _statistic(cell, statistic) for method, cell in cells.items()}
    floor = positive([line for line, _, _ in drawn.values()])
    # a band may reach 0, which is infinitely far down: the lines decide where the axis ends
    bottom = max(0.4 * floor, min(floor, positive([low for _, low, _ in drawn.values()])))
    alpha = 0.16 if len(drawn) <= 4 else 0.12 if statistic == MEAN else 0.07
    for i, (method, (line, low, high)) in enumerate(drawn.items()):
        steps = np.arange(1, len(line) + 1)
        every = max(1, len(line) // 6)
        band(axes, method, steps, low, high, floor=bottom, alpha=alpha)
        curve(axes, method, steps, line, floor=bottom, every=(i * every // len(drawn), every))
    top = max(float(high.max()) for _, _, high in drawn.values())
    axes.set_ylim(0.85 * bottom, max(1.15 * top, 2 * bottom))
    log_axis(axes)
    evaluations_axis(axes, max(len(line) for line, _, _ in drawn.values()))


def draw_ablation(results: Results, folder: Path, name: str = "ablation") -> list[Path]:
    """A figure for every number of source points: a column per noise, the mean above and the median below."""
    paths = []
    sizes = sorted({n for p in results.problems if (n := setting(p, "points")) is not None})
    for points in sizes:
        problems = [p for p in results.problems if setting(p, "points") == points]
        problems.sort(key=lambda p: setting(p, "noise") or 0.0)
        figure, axes = panels(2 * len(problems), columns=len(problems))
        for row, statistic in enumerate((MEAN, MEDIAN)):
            for column, problem in enumerate(problems):
                panel = axes[row * len(problems) + column]
                _draw_regrets(panel, results.on(problem), statistic)
                noise = setting(problem, "noise")
                above = f"{title(problem)}, noise {noise:g}" if row == 0 else ""
                tidy(
                    panel,
                    xlabel="evaluations" if row else "",
                    ylabel=("mean" if row == 0 else "median") + " simple regret" if column == 0 else "",
                    title=above,
                )
        note = f"{points:g} source points. Above: {MEAN}; below: {MEDIAN}; {_runs(results)}"
        legend_below(figure, axes, note)
        paths.append(save_png(figure, folder, f"{name}-{points:g}"))
    return paths


def draw_final(axes: Axes, results: Results, key: str, xlabel: str) -> None:
    """The regret after the last evaluation against a number in the problems' names, ``points`` or ``noise``."""
    place = {p: value for p in results.problems if (value := setting(p, key)) is not None}
    lines = {}
    for method in results.methods:
        cells = sorted((place[c.problem], c) for c in results.cells if c.method == method and c.problem in place)
        last = [mean_and_error(cell.regret[:, -1:]) for _, cell in cells]
        mean, error = (np.concatenate(column) for column in zip(*last, strict=True))
        lines[method] = (np.array([value for value, _ in cells]), mean, np.nan_to_num(error))
    floor = positive([mean for _, mean, _ in lines.values()])
    for method, (x, mean, error) in lines.items():
        band(axes, method, x, mean - error, mean + error, floor=0.5 * floor)
        curve(axes, method, x, mean, floor=0.5 * floor)
    values_axis(axes, np.array(sorted(set(place.values()))))
    log_axis(axes)
    steps = max(cell.steps for cell in results.cells)
    tidy(axes, xlabel=xlabel, ylabel=f"simple regret after {steps} evaluations")


# ── calibration ───────────────────────────────────────────────────────────────────────────────────────────────────────


def draw_calibration(found: Sequence[Forecasts], file: Path) -> Path:
    """A row for families and one for tables, a panel per number of results known."""
    if file.suffix.lower() != ".png":
        raise InputError(f"{file}: pictures are written as PNG. Give a name that ends in .png.")
    parts = groups(found)
    columns = [known for known in KNOWN if _has_any(found, known)]
    figure, axes = panels(len(parts) * len(columns), columns=len(columns), size=(3.4, 3.6))
    for row, (name, part) in enumerate(parts.items()):
        for column, known in enumerate(columns):
            panel = axes[row * len(columns) + column]
            _draw_coverage(panel, part, known)
            tidy(
                panel,
                xlabel="nominal coverage" if row == len(parts) - 1 else "",
                ylabel="observed coverage" if column == 0 else "",
                title=f"{name.capitalize()}, {_in_words(known)}",
            )
    legend_below(figure, axes, textwrap.fill(_NOTE, int(_LETTERS_PER_INCH * figure.get_figwidth())))
    return save_png(figure, file.parent, file.stem)


def _in_words(known: Known) -> str:
    if known.last == 0:
        return "no result known"
    return f"{known.label} results known"


def _has_any(found: Sequence[Forecasts], known: Known) -> bool:
    return any(not np.isnan(f.pit[:, known.columns]).all() for f in found)


def _draw_coverage(axes: Axes, part: Sequence[Forecasts], known: Known) -> None:
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
    ticks, labels = [0.0, *LEVELS], [f"{level:.0%}" for level in (0.0, *LEVELS)]
    # markers at 0 and 100 % are not cut
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    axes.set_xticks(ticks, labels)
    axes.set_yticks(ticks, labels)
