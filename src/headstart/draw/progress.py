"""How a campaign goes: its results and the best so far, what is expected of the open rows, and the best of the past."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FixedFormatter, FixedLocator

from headstart.campaign.best_past import PastRun, best_result, past_runs
from headstart.campaign.campaign import Campaign
from headstart.campaign.experiments import State
from headstart.campaign.fitted import Fitted, FittedOutcome
from headstart.data.outcomes import Goal, Limit, Standing
from headstart.draw.canvas import INK, NARROW, fitting, legend_below, look_at, out_of_view, panels, tidy, width_of
from headstart.draw.looks import NOW, PALE, STANDING_LOOKS, heading, label, plain, short
from headstart.sources.batches import Batches

_UNKNOWN = "open: nothing is known about it yet"
_EXPECTED = "open rows: expected, 95 %"
_BAND, _PAST = "#56B4E9", "#009E73"
_INCHES_A_NUMBER = 0.56  # of width that an open row needs for its median beside it
_MOST_OPEN = 0.75  # of the width that open rows may take for that
_INCHES_A_TICK = 0.3
_FEW_ROWS = 3  # a shorter axis looks empty
_SHADE, _EDGE = "#F2F2F2", "#C8C8C8"  # of every second batch, and where one begins
_NAME, _INCHES_A_NAME, _INCHES_BETWEEN = 8, 1.6, 0.12  # size of a batch's name, the longest, and from one to the next


def progress_figure(fitted: Fitted, *, narrow: bool = False) -> Figure:
    """A panel for every outcome; ``narrow`` for a telephone."""
    n = len(fitted.outcomes)
    size = (NARROW if narrow else 7.6, 2.9 if n == 1 else 2.3)
    figure, grid = panels(n, columns=1, size=size, below=1.0)
    past, places = past_runs(fitted), _Places.of(fitted.campaign, size[0] - 0.7)
    for own, axes in zip(fitted.outcomes, grid, strict=True):
        _draw_batches(fitted.campaign, axes, places, size[0] - 0.7, named=axes is grid[0])
        _draw(own, past, axes, places, last=axes is grid[-1], tall=size[1] - 0.4)
    hidden = sum(int(own.outliers.sum()) for own in fitted.outcomes)
    heading(figure, "Progress", f"{aims(fitted)}{out_of_view(hidden)}")
    legend_below(figure, grid)
    return figure


def aims(fitted: Fitted) -> str:
    """What every outcome is to be, in words."""
    return "; ".join(f"{column.label} {column.aim}" for column in fitted.campaign.file.results)


@dataclass(frozen=True, slots=True)
class _Places:
    """Where the rows of the table stand on the axis, by their numbers, and which of them have a tick.

    An open row has as much room as its median needs to be ``numbered``, as long as there is so much.
    """

    at: dict[int, float]
    starts: dict[int, float]
    end: float
    ticks: list[int]
    numbered: bool

    @classmethod
    def of(cls, campaign: Campaign, inches: float) -> _Places:
        """The places on an axis of this length."""
        rows = [e.number for e in campaign.experiments]
        open_ = {e.number for e in campaign.those(State.PENDING)}
        share, done = _INCHES_A_NUMBER / inches, len(rows) - len(open_)
        numbered = len(open_) * share <= _MOST_OPEN
        wide = max(1.0, share * done / (1 - len(open_) * share)) if numbered and open_ else 1.0
        ends = np.cumsum([0.5, *(wide if number in open_ else 1.0 for number in rows)])
        apart = max(1, math.ceil(_INCHES_A_TICK * (ends[-1] - ends[0]) / inches))
        ticks = [n for i, n in enumerate(rows) if (n in open_ and numbered) or i % apart == 0]
        middles = (ends[:-1] + ends[1:]) / 2
        at, starts = (dict(zip(rows, each.tolist(), strict=True)) for each in (middles, ends[:-1]))
        return cls(at, starts, float(ends[-1]), ticks, numbered)

    @property
    def last(self) -> float:
        """Where the axis ends."""
        return max(self.end, _FEW_ROWS + 0.5)


def _draw_batches(campaign: Campaign, axes: Axes, places: _Places, inches: float, *, named: bool) -> None:
    """A band for every batch, every second one shaded, and the names of as many as there is room for."""
    if not _has_batches(campaign):
        return
    rows = campaign.experiments
    batches = Batches.of([e.batch for e in rows])
    first = [0, *(np.flatnonzero(np.diff(batches.numbers)) + 1).tolist()]
    edges = [*(places.starts[rows[i].number] for i in first), places.end]
    free, an_inch = -math.inf, inches / (places.last - 0.5)
    for k, (i, (start, end)) in enumerate(zip(first, itertools.pairwise(edges), strict=True)):
        if k % 2:
            axes.axvspan(start, end, facecolor=_SHADE, edgecolor="none", zorder=0)
        if k:
            axes.axvline(start, color=_EDGE, linewidth=0.7, zorder=0.5)
        told = fitting(batches.names[float(batches.numbers[i])], _INCHES_A_NAME, size=_NAME, lines=1)
        at, width = (start - 0.5) * an_inch, width_of(told, size=_NAME)
        if named and at >= free and at + width <= inches:
            there: dict[str, Any] = {"xycoords": axes.get_xaxis_transform(), "ha": "left", "va": "bottom"}
            axes.annotate(plain(told), (start, 1.01), color=PALE, fontsize=_NAME, annotation_clip=False, **there)
            free = at + width + _INCHES_BETWEEN


def _has_batches(campaign: Campaign) -> bool:
    return any(e.batch is not None for e in campaign.experiments)


def _draw(own: FittedOutcome, past: Sequence[PastRun], axes: Axes, places: _Places, *, last: bool, tall: float) -> None:
    campaign, column, place = own.campaign, own.column, places.at
    of = f" {short(column.name)}" if len(campaign.file.results) > 1 else ""
    measured, results = own.experiments, own.values
    level = None
    goal, runs = column.outcome, [(run.measured, run.standing) for run in past]
    if isinstance(goal, Goal) and (best_past := best_result(runs, goal)) is not None:
        level, standing = best_past
        name = next(r.campaign for r in past if r.standing is standing and r.measured.get(column.name) == level)
        unknown = standing is Standing.UNKNOWN
        told = f"best{of} of the past{f', {standing}' if unknown else ''}: {level:.4g} ({short(name)})"
        dashes = (0, (1, 3)) if unknown else (0, (5, 3))
        axes.axhline(level, color=_PAST, linewidth=1.4, linestyle=dashes, label=told, zorder=1)
    if isinstance(column.outcome, Limit):
        told = f"{short(column.name)} {column.aim}"
        for end in column.outcome.ends:
            axes.axhline(end, color=INK, linewidth=1.1, linestyle="--", label=told, zorder=1)
            told = "_"  # one entry for both ends
    if len(measured):
        at = np.array([place[e.number] for e in measured])
        standings = [campaign.standing(e) for e in measured]
        good = np.array([standing is Standing.WITHIN for standing in standings])
        if isinstance(column.outcome, Goal) and good.any():
            losses = np.array([column.outcome.loss(y) if ok else math.inf for y, ok in zip(results, good, strict=True)])
            best = results[[int(losses[: i + 1].argmin()) for i in range(len(losses))]]
            there = good.cumsum() > 0
            # up to the last row that has a result
            told = f"best{of} so far: {best[-1]:.4g}"
            axes.step(at[there], best[there], where="post", color=NOW, linewidth=2.0, label=told, zorder=2)
        for each, look in STANDING_LOOKS.items():
            there = np.array([standing is each for standing in standings])
            if there.any():
                told = str(each) if campaign.file.limits else "results"
                axes.plot(at[there], results[there], color=INK, linestyle="none", label=told, zorder=3, **look)
    elif not campaign.those(State.PENDING) or not own.knows:
        axes.annotate("no results yet", (0.5, 0.5), xycoords="axes fraction", ha="center", va="center", color=INK)
        axes.tick_params(labelleft=own.knows or bool(own.alignment.datasets))
    if failed := [place[e.number] for e in campaign.those(State.FAILED)]:
        at_the_foot = axes.get_xaxis_transform()
        axes.plot(failed, [0.03] * len(failed), "x", color=PALE, transform=at_the_foot, label="failed", clip_on=False)
    found = _draw_open(own, axes, places)
    axes.set_xlim(0.5, places.last)
    axes.xaxis.set_major_locator(FixedLocator([place[number] for number in places.ticks]))
    axes.xaxis.set_major_formatter(FixedFormatter([str(number) for number in places.ticks]))
    bands = f"; bands: {short(campaign.file.batch)}" if _has_batches(campaign) else ""
    tidy(axes, f"row of the table{bands}" if last else "", label(column.label, tall))
    if (far := own.outliers).any():
        look_at(axes, [results[~far], [] if level is None else [level], *found])


def _draw_open(own: FittedOutcome, axes: Axes, places: _Places) -> list[np.ndarray]:
    """What is awaited of the outcome, at its places; the ends of what is expected."""
    name = own.column.name
    pending = [e for e in own.campaign.those(State.PENDING) if name not in e.results]
    if not pending:
        return []
    at = np.array([places.at[e.number] for e in pending])
    found = own.expected([e.values for e in pending], measured=True)
    if found is None:
        axes.plot(at, np.full(len(at), 0.04), "|", color=INK, transform=axes.get_xaxis_transform(), label=_UNKNOWN)
        return []
    look: dict[str, Any] = {"fmt": "o", "color": NOW, "ecolor": _BAND, "elinewidth": 5, "mec": "white", "markersize": 7}
    axes.errorbar(at, found.median, found.errors, label=_EXPECTED, zorder=2.5, **look)
    if places.numbered:
        beside: dict[str, Any] = {"xytext": (7, 0), "textcoords": "offset points", "va": "center", "fontsize": 9}
        for x, y in zip(at.tolist(), found.median.tolist(), strict=True):
            halo = [withStroke(linewidth=2.5, foreground="white")]
            axes.annotate(f"{y:.3g}", (x, y), color=INK, path_effects=halo, zorder=4, **beside)
    return [found.low, found.high]
