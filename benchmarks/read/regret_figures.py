"""Regrets in the paper's forms: against evaluations, and the last one against source points or noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from benchmarks.read.analysis import Array, Cell, Results, mean_and_error
from benchmarks.read.curves import band, curve
from benchmarks.read.styles import is_table, setting, settings_of, title
from headstart.draw.canvas import evaluations_axis, legend_below, log_axis, panels, positive, save, tidy, values_axis
from headstart.errors import InputError

_QUANTILES = (0.2, 0.8)
MEAN = "mean ± standard error of the mean"
MEDIAN = f"median and {_QUANTILES[0]:.0%} to {_QUANTILES[1]:.0%} range of the runs"


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
            _draw_panel(panel, results.on(problem), statistic)
            what = "ADTM" if is_table(problem) else "simple regret"
            tidy(panel, xlabel="evaluations", ylabel=what, title=panel_title(problem, shown))
        legend_below(figure, axes, f"{statistic}; {_runs(results)}")
        paths += save(figure, folder, f"{name}{suffix}")
    return paths


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


def _draw_panel(axes: Axes, cells: Mapping[str, Cell], statistic: str) -> None:
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
                _draw_panel(panel, results.on(problem), statistic)
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
        paths += save(figure, folder, f"{name}-{points:g}")
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
