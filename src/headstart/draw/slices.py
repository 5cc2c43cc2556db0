"""The prediction of an outcome along each parameter through one point, by all campaigns together or by each alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator
from numpy.typing import NDArray

from headstart.campaign.fitted import Fitted, FittedOutcome
from headstart.data.outcomes import Limit
from headstart.draw.canvas import INK, NARROW, legend_below, look_at, out_of_view, panels, tidy
from headstart.draw.looks import NOW, PastLook, heading, label, looks_of, noted, past_label, short
from headstart.models.family import GPBO
from headstart.sources.files.names import split_unit
from headstart.sources.parameters import Kind, Parameter

_POINTS, _POINTS_BY_RULES = 121, 31
_PREDICTION, _BAND = "prediction: median, 95 %", "prediction: 95 % range"
_INCHES_A_LETTER = 0.04  # of height, at 30°
_MOST_TICKS = 8  # values of a list that are all told
_ROOM = 0.3  # beside a category, half of which belongs to its neighbour


@dataclass(frozen=True, slots=True)
class Slice:
    """A parameter's values along its axis with everything else as at the reference point."""

    parameter: Parameter
    values: list[Any]
    rows: list[dict[str, Any]]

    @property
    def x(self) -> NDArray[np.float64]:
        """Where the values are drawn."""
        return self.where(self.values)

    @property
    def is_category(self) -> bool:
        """Whether it has categories."""
        return self.parameter.kind is Kind.CATEGORY

    @property
    def is_discrete(self) -> bool:
        """Whether nothing can be set between its values: those of a category, or of a list."""
        return self.is_category or bool(self.parameter.values)

    def where(self, values: Sequence[Any]) -> NDArray[np.float64]:
        """The positions of values; a category that is not offered any more has none."""
        if not self.is_category:
            return np.array([math.nan if v is None else v for v in values], dtype=float)
        places = {choice: float(i) for i, choice in enumerate(self.parameter.choices)}
        return np.array([places.get(v, math.nan) for v in values])


def slices_through(fitted: Fitted, point: Mapping[str, Any]) -> list[Slice]:
    """Every parameter over its range. Where rules tie others to it they follow; values that no setting has are gone."""
    return [_slice(p, point, fitted) for p in fitted.campaign.file.parameters if p.kind is not Kind.FIXED]


def slice_along(p: Parameter, point: Mapping[str, Any], n: int, *, whole: bool = False) -> Slice:
    """n values of a parameter over its range, or all categories; ``whole`` numbers only, of one that has no others."""
    spaced = np.geomspace if p.log else np.linspace
    values: list[Any] = [*p.choices, *p.values] or spaced(p.low, p.high, n).tolist()
    if whole and p.kind is Kind.INT:
        values = sorted({round(value) for value in values})
    return Slice(p, values, [{**point, p.name: value} for value in values])


def _slice(p: Parameter, point: Mapping[str, Any], fitted: Fitted) -> Slice:
    settings = fitted.campaign.settings
    # a rule may tie whole numbers to others by their steps
    along = slice_along(p, point, _POINTS_BY_RULES if settings.rules else _POINTS, whole=bool(settings.rules))
    rows = [settings.kept(fitted.space, row, p.name) for row in along.rows]
    there = [(value, row) for value, row in zip(along.values, rows, strict=True) if row is not None]
    return Slice(p, [value for value, _ in there], [row for _, row in there])


def slices_figure(
    fitted: FittedOutcome, slices: Sequence[Slice], point: Mapping[str, Any], *, best: bool = True, narrow: bool = False
) -> Figure:
    """The prediction of all campaigns together through a point, the best or another, with past and present results."""
    column = fitted.column
    figure, grid = _panels(slices, narrow=narrow)
    measured, results = fitted.experiments, fitted.values
    past = looks_of(fitted.campaign.past)
    medians: list[Any] = []
    for s, axes in zip(slices, grid, strict=True):
        name = s.parameter.name
        for i, task in enumerate(fitted.alignment.tasks):
            if name in task.rows:
                beside = _ROOM * (i + 1) / len(fitted.alignment.tasks) if s.is_category else 0.0
                x = s.where(list(task.rows[name])) + beside
                look: dict[str, Any] = {"color": past[task.name].color, "marker": past[task.name].marker, "mfc": "none"}
                told = past_label(short(task.name), "results of {} past campaigns", len(past))
                axes.plot(x, task.y, linestyle="none", markersize=4.5, alpha=0.75, label=told, zorder=1, **look)
        found = fitted.expected(s.rows)
        if found is None:
            axes.annotate("nothing is known yet", (0.5, 0.5), xycoords="axes fraction", ha="center", color=INK)
        elif s.is_discrete:
            look = {"fmt": "s" if s.is_category else "s:", "color": NOW, "capsize": 4, "zorder": 4}
            axes.errorbar(s.x, found.median, found.errors, label=_PREDICTION, **look)
        else:
            axes.plot(s.x, found.median, color=NOW, linewidth=2.2, label=_PREDICTION, zorder=3)
            axes.fill_between(s.x, found.low, found.high, color=NOW, alpha=0.18, linewidth=0, label=_BAND)
        medians.append([] if found is None else found.median)
        if len(measured):
            x = s.where([e.values[name] for e in measured]) - (_ROOM if s.is_category else 0.0)
            axes.plot(x, results, "o", color=INK, markersize=5.5, label="this campaign", zorder=5)
        _axis(axes, s, column.label)
        _mark_point(axes, s, point, best=best)
        if isinstance(column.outcome, Limit):
            for i, end in enumerate(column.outcome.ends):
                told = "_limit" if i else "limit"  # one entry for both ends
                axes.axhline(end, color=INK, linewidth=1.1, linestyle="--", zorder=2, label=told)
    tasks, far = fitted.ordinary_past, fitted.outliers
    look_at(grid[0], [*(y for _, y in tasks), results[~far], *medians])
    hidden = int(far.sum()) + sum(d.n for d in fitted.alignment.datasets) - sum(len(y) for _, y in tasks)
    note = f"{_described(fitted, point, best=best)}{out_of_view(hidden)}"
    heading(figure, f"Prediction through {'the best' if best else 'a chosen'} point", noted(note, _outcome(fitted)))
    legend_below(figure, grid, note="past results were measured at other settings of the remaining parameters")
    return figure


def sources_figure(
    fitted: FittedOutcome, slices: Sequence[Slice], point: Mapping[str, Any], *, narrow: bool = False
) -> Figure:
    """The prediction of every past campaign alone through the best point, inside the bounds of the outcome."""
    column, space, outcome = fitted.column, fitted.alignment.space, fitted.column.outcome
    figure, grid = _panels(slices, narrow=narrow)
    alone = [GPBO.anywhere().learn().condition(d) for d in fitted.alignment.datasets]
    past = looks_of(fitted.campaign.past)
    looks = [past[task.name] for task in fitted.alignment.tasks]
    for s, axes in zip(slices, grid, strict=True):
        found = fitted.expected(s.rows)
        together = PastLook(INK, "o")
        lines = [] if found is None else [("all together, this campaign", together, found.median)]
        for d, posterior, look in zip(fitted.alignment.datasets, alone, looks, strict=True):
            told = past_label(f"{short(d.name)} alone", "each of {} past campaigns alone", len(past))
            with torch.no_grad():
                y = fitted.sign * posterior.quantile(space.encode(s.rows), 0.5, noise=False).numpy()
            lines.append((told, look, np.clip(y, outcome.low, outcome.high)))
        for i, (told, look, y) in enumerate(lines):
            width, top = (2.4, 4) if look is together else (0.7, 2) if look.crowd else (1.6, 3)
            mark: dict[str, Any] = {"marker": look.marker, "color": look.color, "markersize": 5 if look.crowd else 7.5}
            if s.is_category:
                x = s.x + 2 * _ROOM * (i / max(len(lines) - 1, 1) - 0.5)
                axes.plot(x, y, linestyle="none", label=told, zorder=top, **mark)
            else:
                line: dict[str, Any] = {"color": look.color, "linewidth": width, "linestyle": look.line}
                axes.plot(s.x, y, zorder=top, **line)
                at = int(np.argmin([outcome.loss(float(value)) for value in y]))
                axes.plot(s.x[at], y[at], mec=look.color if look.crowd else "white", zorder=top + 1, **mark)
                axes.plot([], [], label=told, **{**line, **mark})
        _axis(axes, s, column.label)
        _mark_point(axes, s, point, best=True)
    heading(figure, "What each past campaign says", noted(_described(fitted, point, best=True), _outcome(fitted)))
    legend_below(figure, grid, note="a marker on a line is where it is best")
    return figure


def _panels(slices: Sequence[Slice], *, narrow: bool) -> tuple[Figure, list[Axes]]:
    n = len(slices)
    columns = 1 if narrow else min(n, 2 if n in (2, 4) else 3)
    # letters of slanted names, which take height from their row
    letters = [max((len(short(c)) for c in s.parameter.choices), default=0) * _is_slanted(s.parameter) for s in slices]
    slanted = sum(_INCHES_A_LETTER * max(letters[i : i + columns]) for i in range(0, n, columns))
    size = (NARROW, 2.5) if narrow else (5.8 if columns == 1 else 4.3, 3.1)
    return panels(n, columns=columns, size=size, below=1.5 + slanted, sharey=True)


def _axis(axes: Axes, s: Slice, ylabel: str) -> None:
    p = s.parameter
    first = axes.get_subplotspec().is_first_col()  # type: ignore[union-attr]
    tidy(axes, label(p.label, 2.9), label(ylabel, 2.0) if first else "")
    draw_ticks(axes, s, "x")
    if s.is_category:
        axes.set_xlim(-0.6, len(p.choices) - 0.4)
    else:
        axes.set_xlim(axes.get_xlim())


def draw_ticks(axes: Axes, s: Slice, which: Literal["x", "y"]) -> None:
    """The ticks of one axis, "x" or "y": names of categories, or numbers as they are on a log scale too."""
    p, axis = s.parameter, axes.xaxis if which == "x" else axes.yaxis
    if s.is_category:
        slanted = which == "x" and _is_slanted(p)
        slant: dict[str, Any] = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"} if slanted else {}
        axis.set_major_locator(FixedLocator(range(len(p.choices))))
        axis.set_ticklabels([short(c) for c in p.choices], **slant)
    elif p.log:
        (axes.set_xscale if which == "x" else axes.set_yscale)("log")
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())
    if 0 < len(p.values) <= _MOST_TICKS:
        axis.set_major_locator(FixedLocator(p.values))
        axis.set_ticklabels([f"{value:g}" for value in p.values])
        axis.set_minor_locator(NullLocator())


def _is_slanted(p: Parameter) -> bool:
    """Whether the names of its categories are too long to stand beside each other."""
    return sum(map(len, p.choices)) > 36


def _mark_point(axes: Axes, s: Slice, point: Mapping[str, Any], *, best: bool) -> None:
    (x,) = s.where([point[s.parameter.name]])
    told = "best point" if best else "this point"
    axes.axvline(float(x), color=INK, linewidth=0.9, linestyle=":", zorder=0, label=told)


def _outcome(fitted: FittedOutcome) -> str:
    """Which one it is, where there are several."""
    return fitted.column.name if len(fitted.campaign.file.results) > 1 else ""


def _described(fitted: FittedOutcome, point: Mapping[str, Any], *, best: bool) -> str:
    """The point in words."""
    found, file, column = fitted.campaign.best, fitted.campaign.file, fitted.column
    what = ""
    if best and found is not None:
        known = found.results.get(column.name)
        unit = f" {column.unit}" if column.unit else ""
        balanced = ", the most balanced of the front" if len(file.goals) > 1 else ""
        what = f"row {found.number}{balanced}" + ("" if known is None else f", {known:g}{unit}") + ": "
    elif best:
        what = "the best prediction among settings that were run: "
    return f"{what}{described(point, file.parameters)}"


def described(point: Mapping[str, Any], parameters: Sequence[Parameter]) -> str:
    """Settings of a point in words."""
    values = {n: f"{value:.4g}" if isinstance(value, int | float) else str(value) for n, value in point.items()}
    return ", ".join(f"{split_unit(p.name)[0]} {values[p.name]} {p.unit}".strip() for p in parameters)
