"""The pictures of a campaign: how it goes, what the model predicts, and what each past campaign says by itself.

progress.png   results and the best so far, what is expected of open rows, and the best of the past, by outcome
front.png      several objectives against each other: past and present results, the front, and what is pending
predicted.png and importance.png   results against predictions, and which parameters matter (``draw.insight``)
slices.png     the prediction along each parameter through the best point, with past and present results
sources.png    the same slices as each past campaign alone would predict them

Of several outcomes there are slices and sources for each, as in slices-yield.png.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from headstart.campaign.best_past import past_runs
from headstart.campaign.experiments import Experiment, State
from headstart.campaign.fitted import Fitted, FittedOutcome
from headstart.campaign.suggestions import reference_point
from headstart.data.outcomes import Goal, Standing
from headstart.draw.canvas import INK, NARROW, legend_below, panels, save_png, tidy
from headstart.draw.insight import importance_figure, predicted_figure
from headstart.draw.looks import NOW, PALE, STANDING_LOOKS, heading, label, looks_of, named, past_label, short
from headstart.draw.progress import aims, progress_figure
from headstart.draw.slices import slices_figure, slices_through, sources_figure
from headstart.gp.threads import single_thread


@single_thread()
def draw_campaign(fitted: Fitted, out: Path) -> list[Path]:
    """Write the pictures into the folder, which is made if it is not there; none of predictions if nothing is known."""
    return save_png(campaign_figures(fitted), out)


def campaign_figures(fitted: Fitted, *, narrow: bool = False) -> dict[str, Figure]:
    """The same pictures by their names, as figures; ``narrow`` ones are for a telephone."""
    reference = reference_point(fitted)
    slices = slices_through(fitted, reference)
    pictures = {"progress": progress_figure(fitted, narrow=narrow)}
    if len(fitted.goals) > 1:
        pictures["front"] = _front(fitted, narrow=narrow)
    for name, draw in (("predicted", predicted_figure), ("importance", importance_figure)):
        if (figure := draw(fitted, narrow=narrow)) is not None:
            pictures[name] = figure
    for own in fitted.outcomes:
        of = own.column.name if len(fitted.outcomes) > 1 else ""
        if own.knows or own.alignment.datasets:
            pictures[named("slices", of)] = slices_figure(own, slices, reference, narrow=narrow)
        if own.alignment.datasets:
            pictures[named("sources", of)] = sources_figure(own, slices, reference, narrow=narrow)
    return pictures


def _front(fitted: Fitted, *, narrow: bool) -> Figure:
    couples = list(itertools.combinations(fitted.goals, 2))
    size = (NARROW, 4.4) if narrow else (5.4 + 1.6 / len(couples), 4.9)
    figure, grid = panels(len(couples), columns=1 if narrow else 3, size=size)
    for (one, other), axes in zip(couples, grid, strict=True):
        _couple(fitted, one, other, axes, size[0] - 1.2)
    n = len(fitted.campaign.front)
    what = f"{n} result{'' if n == 1 else 's'} that no other beats in everything."
    heading(figure, "The front", f"{what if n else fitted.campaign.why_no_best} {aims(fitted)}")
    legend_below(figure, grid)
    return figure


def _couple(fitted: Fitted, one: FittedOutcome, other: FittedOutcome, axes: Axes, inches: float) -> None:
    campaign, names = fitted.campaign, (one.column.name, other.column.name)
    past, limited = looks_of(campaign.past), bool(campaign.file.limits)
    runs = [run for run in past_runs(fitted) if all(name in run.measured for name in names)]
    for campaign_name, standing in itertools.product(past, Standing):
        if own := [run for run in runs if run.campaign == campaign_name and run.standing is standing]:
            x, y = (np.array([run.measured[name] for run in own]) for name in names)
            at, beyond = past[campaign_name], standing is Standing.BEYOND
            face = at.color if limited and standing is Standing.WITHIN else "none"
            look: dict[str, Any] = {"marker": "x" if beyond else at.marker, "color": PALE if beyond else at.color}
            told = past_label(short(campaign_name), "{} past campaigns", len(past))
            told = f"past, {standing}" if beyond else f"{told}, {standing}" if standing is Standing.UNKNOWN else told
            axes.plot(x, y, linestyle="none", markersize=4.5, alpha=0.75, mfc=face, label=told, zorder=1, **look)
    both = [e for e in campaign.experiments if all(name in e.results for name in names)]
    front = {e.number for e in campaign.front}
    groups: dict[str, tuple[list[Experiment], dict[str, Any]]] = {
        "on the front": ([e for e in both if e.number in front], {"marker": "o", "color": NOW, "markersize": 8}),
    }
    for standing, own_look in STANDING_LOOKS.items():
        told = f"this campaign, {standing}" if limited else "this campaign"
        others = [e for e in both if e.number not in front and campaign.standing(e) is standing]
        groups[told] = (others, {"color": INK, **own_look})
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
    tidy(axes, label(one.column.label, inches), label(other.column.label, 3.0))


def _draw_line(one: FittedOutcome, other: FittedOutcome, front: list[Experiment], axes: Axes) -> None:
    """The edge of what the front dominates, from result to result; with a target it has none."""
    if any(isinstance(own.column.outcome, Goal) and own.column.outcome.target is not None for own in (one, other)):
        return
    points = sorted((e.results[one.column.name], e.results[other.column.name]) for e in front)
    x, y = (np.array(part) for part in zip(*points, strict=True))
    where = "pre" if one.column.more_is_better else "post"
    axes.step(x, y, where=where, color=NOW, linewidth=1.4, zorder=3)  # type: ignore[arg-type]
