"""The pictures of a campaign: how it goes, what the model predicts, and what each past campaign says by itself.

progress.png   results and the best so far, against the best of every past campaign; a panel for every outcome
front.png      several objectives against each other: past and present results, the front, and what is pending
slices.png     the prediction along each parameter through the best point, with past and present results
sources.png    the same slices as each past campaign alone would predict them

Of several outcomes there are slices and sources for each, as in slices-yield.png.
"""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from headstart.campaign.experiments import Experiment, State
from headstart.campaign.fitted import Fitted, FittedOutcome
from headstart.campaign.suggestions import reference_point
from headstart.data.outcomes import Goal, Limit
from headstart.draw.canvas import INK, legend_below, look_at, out_of_view, panels, save_png, tidy
from headstart.draw.looks import NOW, PastLook, heading, label, looks_of, named, past_label, short
from headstart.draw.slices import slices_figure, slices_through, sources_figure
from headstart.gp.threads import single_thread

_UNKNOWN = "pending: nothing is known about it yet"
_PALE = "#9A9A9A"
_FEW = 3  # past campaigns that a narrow picture has room for
# Beside the axes, in shares of their width: where the marks of the past campaigns stand, and how far apart
_MARKS, _APART = 1.012, 0.017


@single_thread()
def draw_campaign(fitted: Fitted, out: Path) -> list[Path]:
    """Write the pictures into the folder, which is made if it is not there; none of predictions if nothing is known."""
    return save_png(campaign_figures(fitted), out)


def campaign_figures(fitted: Fitted) -> dict[str, Figure]:
    """The same pictures by their names, as figures."""
    reference = reference_point(fitted)
    slices = slices_through(fitted, reference)
    pictures = {"progress": _progress(fitted)}
    if len(fitted.goals) > 1:
        pictures["front"] = _front(fitted)
    for own in fitted.outcomes:
        of = own.column.name if len(fitted.outcomes) > 1 else ""
        if own.knows or own.alignment.datasets:
            pictures[named("slices", of)] = slices_figure(own, slices, reference)
        if own.alignment.datasets:
            pictures[named("sources", of)] = sources_figure(own, slices, reference)
    return pictures


def _progress(fitted: Fitted) -> Figure:
    n = len(fitted.outcomes)
    width = 7.6 if len(fitted.campaign.past) <= _FEW else 8.8  # for two columns of names in the legend
    figure, grid = panels(n, columns=1, size=(width, 3.2 if n == 1 else 2.9), below=1.4)
    for own, axes in zip(fitted.outcomes, grid, strict=True):
        _progress_of(own, axes, last=axes is grid[-1])
    hidden = sum(int(own.outliers.sum()) for own in fitted.outcomes)
    heading(figure, "Progress", f"{_aims(fitted)}{out_of_view(hidden)}")
    legend_below(figure, grid)
    return figure


def _aims(fitted: Fitted) -> str:
    return "; ".join(f"{column.label} {column.aim}" for column in fitted.campaign.file.results)


def _progress_of(own: FittedOutcome, axes: Axes, *, last: bool) -> None:
    campaign, column = own.campaign, own.column
    place = {e.number: i + 1 for i, e in enumerate(campaign.experiments)}
    measured, results = own.experiments, own.values
    better = np.maximum if column.more_is_better else np.minimum
    past = looks_of(campaign.past)
    bests = []
    for i, (task, (_, y)) in enumerate(zip(own.alignment.tasks, own.ordinary_past, strict=True)):
        bests.append(float(better.reduce(y)))
        if isinstance(column.outcome, Goal):
            told = f"best of {short(task.name)} ({len(task.rows)} experiments)"
            told = past_label(told, "best of each of {} past campaigns", len(past))
            _draw_level(axes, bests[-1], past[task.name], i, told)
    if isinstance(column.outcome, Limit):
        axes.axhline(column.outcome.value, color=INK, linewidth=1.1, linestyle="--", label="limit", zorder=1)
    if len(measured):
        at = np.array([place[e.number] for e in measured])
        good = np.array([campaign.within(e) for e in measured], dtype=bool)
        if isinstance(column.outcome, Goal) and good.any():
            best = better.accumulate(np.where(good, results, -math.inf if column.more_is_better else math.inf))
            x, y, told = at[np.isfinite(best)], best[np.isfinite(best)], "best of this campaign"
            axes.step(x, y, where="post", color=NOW, linewidth=2.0, label=told, zorder=2)
        axes.plot(at[good], results[good], "o", color=INK, markersize=6, label="results", zorder=3)
        axes.plot(at[~good], results[~good], "x", color=INK, markersize=6, label="outside the limits", zorder=3)
        if good.all():
            axes.lines[-1].remove()
    else:
        axes.annotate("no results yet", (0.5, 0.5), xycoords="axes fraction", ha="center", va="center", color=INK)
        axes.tick_params(labelleft=own.knows or bool(own.alignment.datasets))
    if failed := [place[e.number] for e in campaign.those(State.FAILED)]:
        at_the_foot = axes.get_xaxis_transform()
        axes.plot(failed, [0.03] * len(failed), "x", color=_PALE, transform=at_the_foot, label="failed", clip_on=False)
    found = _draw_pending(own, axes, place)
    axes.set_xlim(0.5, max(len(place), 3) + 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    tall = 2.9 if len(campaign.file.results) == 1 else 1.9
    tidy(axes, "experiments of this campaign" if last else "", label(column.label, tall))
    if (far := own.outliers).any():
        look_at(axes, [results[~far], bests, *found])


def _draw_level(axes: Axes, y: float, look: PastLook, place: int, told: str) -> None:
    """The best of a past campaign: a line through the picture, and its mark beside it."""
    across: dict[str, Any] = {"color": look.color, "label": told, "zorder": 1}
    if look.crowd:
        axes.axhline(y, linewidth=0.7, alpha=0.6, **across)
        return
    marked: dict[str, Any] = {"marker": look.marker, "markevery": [1], "markersize": 5, "clip_on": False}
    ends = [0.0, _MARKS + _APART * (place % 3)]  # equal ones beside each other
    across |= {"linewidth": 1.3, "linestyle": (0, (5, 2)), "transform": axes.get_yaxis_transform()}
    axes.plot(ends, [y, y], **across, **marked)


def _draw_pending(own: FittedOutcome, axes: Axes, place: dict[int, int]) -> list[np.ndarray]:
    """What is awaited of the outcome, at its places; the ends of what is expected."""
    name = own.column.name
    pending = [e for e in own.campaign.those(State.PENDING) if name not in e.results]
    if not pending:
        return []
    at = np.array([place[e.number] for e in pending])
    found = own.expected([e.values for e in pending], measured=True)
    if found is None:
        axes.plot(at, np.full(len(at), 0.04), "|", color=INK, transform=axes.get_xaxis_transform(), label=_UNKNOWN)
        return []
    look: dict[str, Any] = {"fmt": "o", "color": INK, "mfc": "white", "capsize": 3}
    axes.errorbar(at, found.median, found.errors, label="pending: expected, 95 %", **look)
    return [found.low, found.high]


def _front(fitted: Fitted) -> Figure:
    couples = list(itertools.combinations(fitted.goals, 2))
    figure, grid = panels(len(couples), size=(5.4 + 1.6 / len(couples), 4.9))
    for (one, other), axes in zip(couples, grid, strict=True):
        _couple(fitted, one, other, axes)
    n = len(fitted.campaign.front)
    told = f"{n} result{'' if n == 1 else 's'} that no other beats in everything" if n else "no result yet"
    heading(figure, "The front", f"{told}. {_aims(fitted)}")
    legend_below(figure, grid)
    return figure


def _couple(fitted: Fitted, one: FittedOutcome, other: FittedOutcome, axes: Axes) -> None:
    campaign, names = fitted.campaign, (one.column.name, other.column.name)
    past = looks_of(campaign.past)
    for task in campaign.past:
        if all(name in task.objectives for name in names):
            x, y = (task.objectives[name].y for name in names)
            look: dict[str, Any] = {"color": past[task.name].color, "marker": past[task.name].marker, "mfc": "none"}
            told = past_label(short(task.name), "{} past campaigns", len(past))
            axes.plot(x, y, linestyle="none", markersize=4.5, alpha=0.75, label=told, zorder=1, **look)
    both = [e for e in campaign.experiments if all(name in e.results for name in names)]
    front = {e.number for e in campaign.front}
    groups: dict[str, tuple[list[Experiment], dict[str, Any]]] = {
        "on the front": ([e for e in both if e.number in front], {"marker": "o", "color": NOW, "markersize": 8}),
        "this campaign": (
            [e for e in both if e.number not in front and campaign.within(e)],
            {"marker": "o", "color": INK, "markersize": 5.5},
        ),
        "outside the limits": ([e for e in both if not campaign.within(e)], {"marker": "x", "color": _PALE}),
    }
    for told, (experiments, own_look) in groups.items():
        if experiments:
            x, y = (np.array([e.results[name] for e in experiments]) for name in names)
            axes.plot(x, y, linestyle="none", label=told, zorder=5, **own_look)
    if len(fitted.goals) == 2 and front:
        _draw_line(one, other, [e for e in both if e.number in front], axes)
    if pending := [e for e in campaign.those(State.PENDING) if not e.results]:
        rows = [e.values for e in pending]
        x_found, y_found = one.expected(rows, measured=True), other.expected(rows, measured=True)
        if x_found is not None and y_found is not None:
            look = {"fmt": "o", "color": INK, "mfc": "white", "elinewidth": 0.8, "zorder": 4}
            ends = (x_found.median, y_found.median, y_found.errors, x_found.errors)
            axes.errorbar(*ends, label="pending: expected, 95 %", **look)
    tidy(axes, label(one.column.label, 4.6), label(other.column.label, 3.0))


def _draw_line(one: FittedOutcome, other: FittedOutcome, front: list[Experiment], axes: Axes) -> None:
    """The edge of what the front dominates, from result to result."""
    points = sorted((e.results[one.column.name], e.results[other.column.name]) for e in front)
    x, y = (np.array(part) for part in zip(*points, strict=True))
    where = "pre" if one.column.more_is_better else "post"
    axes.step(x, y, where=where, color=NOW, linewidth=1.4, zorder=3)  # type: ignore[arg-type]
