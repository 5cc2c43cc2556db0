"""What the models say of their own: results against predictions, which parameters matter, two parameters at once.

predicted.png    every result against what was expected of it before it was known, with the share inside its 95 % range
importance.png   how much of the variance of the prediction every parameter explains
contour.png      the median of the prediction over two parameters, the others as at one point
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray

from headstart.campaign.fitted import Fitted, FittedOutcome
from headstart.campaign.insight import Importance, Predicted, importances, predicted
from headstart.draw.canvas import INK, NARROW, legend_below, panels, tidy
from headstart.draw.looks import NOW, heading, label, looks_of, noted, past_label, short
from headstart.draw.slices import Slice, described, draw_ticks, slice_along
from headstart.errors import InputError
from headstart.sources.parameters import Kind

_OTHERS = "#56B4E9"
_FINE, _COARSE = 41, 15  # points of a contour along each side; where every point has to be moved inside rules fewer
_LEVELS, _LABELLED = 12, 6
_COLORS = "viridis"
_FEW_CELLS = 80  # categories against categories, of which each has its number


def predicted_figure(fitted: Fitted, *, narrow: bool = False) -> Figure | None:
    """Every result against what was expected of it before it was known; None where nothing was."""
    found = [(own, then) for own in fitted.outcomes if len((then := predicted(fitted, own)).measured)]
    if not found:
        return None
    size = (NARROW, 3.3) if narrow else (4.4, 3.9)
    figure, grid = panels(len(found), columns=1 if narrow else 3, size=size, below=0.9)
    for (own, then), axes in zip(found, grid, strict=True):
        _draw_predicted(own, then, axes)
    told = "; ".join(
        f"{f'{short(own.column.name)}: ' if len(fitted.outcomes) > 1 else ''}{int(then.inside.sum())} of "
        f"{len(then.measured)} results ({then.inside.mean():.0%}) lie in the range"
        for own, then in found
    )
    heading(figure, "Predicted against measured", f"before each result was known: {told}; 95 % are meant to")
    legend_below(figure, grid)
    return figure


def _draw_predicted(own: FittedOutcome, then: Predicted, axes: Axes) -> None:
    inside = then.inside
    for which, color, told in ((inside, NOW, "in its 95 % range"), (~inside, "#D55E00", "outside its 95 % range")):
        if which.any():
            look: dict[str, Any] = {"fmt": "o", "color": color, "elinewidth": 1.1, "markersize": 5, "label": told}
            axes.errorbar(then.measured[which], then.expected.median[which], then.expected.errors[:, which], **look)
    ends = [min(then.measured.min(), then.expected.median.min()), max(then.measured.max(), then.expected.median.max())]
    axes.plot(ends, ends, color=INK, linewidth=1.0, linestyle="--", zorder=0, label="as predicted")
    tidy(axes, label(f"measured {own.column.label}", 2.8), label(f"expected {own.column.label}", 2.4))


def importance_figure(fitted: Fitted, *, narrow: bool = False) -> Figure | None:
    """How much of the variance of the prediction every parameter explains, alone and with the others."""
    found = [(own, importances(fitted, own)) for own in fitted.outcomes if own.knows]
    if not found:
        return None
    tall = 1.4 + 0.45 * len(found[0][1])
    size = (NARROW, tall) if narrow else (4.4 if len(found) > 1 else 6.2, tall)
    figure, grid = panels(len(found), columns=1 if narrow else 3, size=size, below=1.3)
    for (own, each), axes in zip(found, grid, strict=True):
        _draw_importance(own, each, axes, labelled=len(fitted.outcomes) > 1)
    heading(figure, "Importance", "how much of the variance of the prediction over all settings a parameter explains")
    legend_below(figure, grid)
    return figure


def _draw_importance(own: FittedOutcome, found: Sequence[Importance], axes: Axes, *, labelled: bool) -> None:
    parameters = {p.name: p.label for p in own.campaign.file.parameters}
    for y, one in enumerate(found):
        alone = min(one.alone, one.total)
        axes.barh(y, alone, height=0.42, color=NOW, label="alone")
        axes.barh(y, one.total - alone, left=alone, height=0.42, color=_OTHERS, label="together with others")
        above: dict[str, Any] = {"textcoords": "offset points", "va": "bottom", "fontsize": 9, "color": INK}
        told = f"{short(parameters[one.parameter])}: {one.total:.0%}, alone {alone:.0%}"
        axes.annotate(told, (0.0, y - 0.21), xytext=(1, 1), **above)
    axes.set_ylim(len(found) - 0.6, -0.75)
    axes.set_yticks([])
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    tidy(axes, "share of the variance", "", title=short(own.column.name) if labelled else "")


def contour_figure(
    fitted: Fitted,
    own: FittedOutcome,
    names: tuple[str, str],
    point: Mapping[str, Any],
    *,
    best: bool = True,
    narrow: bool = False,
) -> Figure:
    """The median of the prediction over two parameters, the others as at a point, with past and present results.

    Where rules tie others to the two they follow; where no setting keeps the rules nothing is drawn.
    """
    by_name = {p.name: p for p in fitted.campaign.file.parameters if p.kind is not Kind.FIXED}
    if names[0] == names[1] or not {*names} <= {*by_name}:
        raise InputError(f"A contour needs two different parameters of {', '.join(by_name)}, but it got {names}.")
    n = _COARSE if fitted.campaign.settings.rules else _FINE
    across, up = (slice_along(by_name[name], point, n) for name in names)
    Z = _medians(fitted, own, across, up, point)
    size = (NARROW, 3.5) if narrow else (6.6, 4.9)
    figure, (axes,) = panels(1, size=size, below=0.9)
    cells = across.is_discrete or up.is_discrete
    ends = (float(np.nanmin(Z)), float(np.nanmax(Z))) if np.isfinite(Z).any() else (0.0, 1.0)
    if cells or ends[0] == ends[1]:
        drawn: Any = axes.pcolormesh(across.x, up.x, np.ma.masked_invalid(Z), shading="nearest", cmap=_COLORS)
    else:
        drawn = axes.contourf(across.x, up.x, np.ma.masked_invalid(Z), levels=_LEVELS, cmap=_COLORS)
        lines = axes.contour(across.x, up.x, np.ma.masked_invalid(Z), levels=_LABELLED, colors="white", linewidths=0.7)
        axes.clabel(lines, fontsize=8, fmt="%.4g")
    if across.is_discrete and up.is_discrete and Z.size <= _FEW_CELLS:
        for i, j in np.ndindex(Z.shape):
            if np.isfinite(Z[i, j]):
                halo: dict[str, Any] = {"path_effects": [withStroke(linewidth=2.5, foreground="white")], "color": INK}
                axes.text(
                    float(across.x[j]), float(up.x[i]), f"{Z[i, j]:.3g}", ha="center", va="center", fontsize=9, **halo
                )
    _draw_points(own, across, up, axes)
    (x,), (y,) = across.where([point[names[0]]]), up.where([point[names[1]]])
    told = "best point" if best else "this point"
    axes.plot([x], [y], "*", color="white", mec=INK, markersize=14, linestyle="none", label=told, zorder=6)
    tidy(axes, label(across.parameter.label, size[0] - 1.6), label(up.parameter.label, 2.6))
    axes.grid(False)
    draw_ticks(axes, across, "x")
    draw_ticks(axes, up, "y")
    bar = figure.colorbar(drawn, ax=axes)
    bar.set_label(label(f"expected {own.column.label}", 2.8))
    others = [p for p in fitted.campaign.file.parameters if p.name not in names]
    note = described(point, others) if others else "no other parameters"
    heading(figure, "Two parameters at once", noted(f"the others as at the {told}: {note}", own.column.name))
    legend_below(figure, [axes])
    return figure


def _medians(
    fitted: Fitted, own: FittedOutcome, across: Slice, up: Slice, point: Mapping[str, Any]
) -> NDArray[np.float64]:
    """The median at every place of the grid, a row for each value of the second; NaN where no setting keeps rules."""
    settings, one, other = fitted.campaign.settings, across.parameter.name, up.parameter.name
    rows = [{**point, one: a, other: b} for b in up.values for a in across.values]
    kept = [settings.kept(fitted.space, row, one, other) for row in rows] if settings.rules else rows
    there = [i for i, row in enumerate(kept) if row is not None]
    Z = np.full(len(rows), np.nan)
    found = own.expected([row for row in kept if row is not None]) if there else None
    if found is not None:
        Z[there] = found.median
    return Z.reshape(len(up.values), len(across.values))


def _draw_points(own: FittedOutcome, across: Slice, up: Slice, axes: Axes) -> None:
    """Where results were measured, in the past and now, whatever their other settings."""
    names, past = (across.parameter.name, up.parameter.name), looks_of(own.campaign.past)
    for task in own.alignment.tasks:
        if all(name in task.rows for name in names):
            x, y = (s.where(list(task.rows[s.parameter.name])) for s in (across, up))
            look: dict[str, Any] = {"mec": "white", "mew": 0.6, "color": past[task.name].color, "markersize": 4.5}
            look |= {"marker": past[task.name].marker, "linestyle": "none", "zorder": 4}
            axes.plot(x, y, label=past_label(short(task.name), "{} past campaigns", len(past)), **look)
    if own.experiments:
        x, y = (s.where([e.values[s.parameter.name] for e in own.experiments]) for s in (across, up))
        now: dict[str, Any] = {"color": INK, "mec": "white", "markersize": 6.5, "linestyle": "none", "zorder": 5}
        axes.plot(x, y, "o", label="this campaign", **now)
    (left, right), (low, high) = (_ends(s) for s in (across, up))
    axes.set(xlim=(left, right), ylim=(low, high))


def _ends(s: Slice) -> tuple[float, float]:
    """The ends of an axis: categories have room around them."""
    margin = 0.5 if s.is_category else 0.0
    return float(s.x.min()) - margin, float(s.x.max()) + margin
