"""The pictures of a campaign: how it goes, what the model predicts, and what each past campaign says by itself.

progress.png   results and the best so far, against the best of every past campaign
slices.png     the prediction along each parameter through the best point, with past and present results
sources.png    the same slices as each past campaign alone would predict them
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullFormatter
from numpy.typing import NDArray

from headstart.campaign.campaign import State
from headstart.campaign.model import Fitted, reference_point
from headstart.draw.canvas import INK, legend_below, save, tidy
from headstart.draw.looks import NOW, heading, past_looks, plain, short
from headstart.gp.threads import single_thread
from headstart.models.botorch import TransferPosterior
from headstart.models.family import GPBO
from headstart.sources.files.safe import make_folder
from headstart.sources.parameters import Kind, Parameter
from headstart.sources.unit_names import split_unit

__all__ = ["draw_campaign"]

_POINTS = 121
_PREDICTION = "prediction: median, 95 %"
_UNKNOWN = "pending: nothing is known about it yet"


@dataclass(frozen=True, slots=True)
class _Slice:
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
        return self.parameter.kind is Kind.CATEGORY

    def where(self, values: Sequence[Any]) -> NDArray[np.float64]:
        """The positions of values; a category that is not offered any more has none."""
        if not self.is_category:
            return np.array([math.nan if v is None else v for v in values], dtype=float)
        places = {choice: float(i) for i, choice in enumerate(self.parameter.choices)}
        return np.array([places.get(v, math.nan) for v in values])


@single_thread()
def draw_campaign(fitted: Fitted, out: Path) -> list[Path]:
    """Write the pictures into the folder, which is made if it is not there; none of predictions if nothing is known."""
    make_folder(out)
    reference = reference_point(fitted)
    slices = [_slice(p, reference) for p in fitted.campaign.file.parameters if p.kind is not Kind.FIXED]
    pictures = {"progress": _progress(fitted)}
    if fitted.knows or fitted.campaign.past:
        pictures["slices"] = _slices(fitted, slices, reference)
    if fitted.alignment.datasets:
        pictures["sources"] = _sources(fitted, slices, reference)
    return [save(figure, out, name, ("png",))[0] for name, figure in pictures.items()]


# ── progress ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _progress(fitted: Fitted) -> Figure:
    campaign, file = fitted.campaign, fitted.campaign.file
    figure = Figure(figsize=(7.6, 4.6), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    finished = campaign.those(State.FINISHED)
    results = np.array([e.result for e in finished])
    best = np.maximum.accumulate(results) if file.maximize else np.minimum.accumulate(results)
    steps = np.arange(1, len(finished) + 1)
    pick = np.max if file.maximize else np.min
    ordinary = {task.name: y for task, (_, y) in zip(fitted.alignment.tasks, fitted.ordinary_past, strict=True)}
    bests = [float(pick(ordinary.get(task.name, task.y))) for task in campaign.past]
    for task, level, (color, _) in zip(campaign.past, bests, past_looks(len(campaign.past)), strict=True):
        label = f"best of {short(task.name)} ({len(task.y)} experiments)"
        axes.axhline(level, color=color, linewidth=1.3, linestyle=(0, (5, 2)), label=label, zorder=1)
    if len(finished):
        axes.step(steps, best, where="post", color=NOW, linewidth=2.0, label="best of this campaign", zorder=2)
        axes.plot(steps, results, "o", color=INK, markersize=6, label="results", zorder=3)
    else:
        axes.annotate("no results yet", (0.5, 0.5), xycoords="axes fraction", ha="center", va="center", color=INK)
        axes.tick_params(labelleft=fitted.knows or bool(campaign.past))
    pending = campaign.those(State.PENDING)
    found = fitted.expected([e.values for e in pending], measured=True) if pending else None
    if pending:
        at = len(finished) + np.arange(1, len(pending) + 1)
        if found is not None:
            look: dict[str, Any] = {"fmt": "o", "color": INK, "mfc": "white", "capsize": 3}
            axes.errorbar(at, found.median, found.errors, label="pending: expected, 95 %", **look)
        else:
            axes.plot(at, np.full(len(at), 0.04), "|", color=INK, transform=axes.get_xaxis_transform(), label=_UNKNOWN)
    axes.set_xlim(0.5, max(len(finished) + len(pending), 3) + 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    tidy(axes, "experiments of this campaign", plain(file.label))
    far = fitted.outliers
    if far.any():
        ends = [] if found is None else [found.low, found.high]
        _look_at(axes, [results[~far], bests, *ends])
    note = f"{file.label}, {'higher' if file.maximize else 'lower'} is better{_out_of_view(int(far.sum()))}"
    heading(figure, "Progress", note)
    legend_below(figure, [axes])
    return figure


# ── slices ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _slice(p: Parameter, reference: dict[str, Any]) -> _Slice:
    values: list[Any]
    if p.kind is Kind.CATEGORY:
        values = list(p.choices)
    elif p.log:
        values = np.geomspace(p.low, p.high, _POINTS).tolist()
    else:
        values = np.linspace(p.low, p.high, _POINTS).tolist()
    return _Slice(p, values, [{**reference, p.name: value} for value in values])


def _slices(fitted: Fitted, slices: Sequence[_Slice], reference: dict[str, Any]) -> Figure:
    file = fitted.campaign.file
    figure, panels = _panels(len(slices))
    finished = fitted.campaign.those(State.FINISHED)
    looks = past_looks(len(fitted.campaign.past))
    medians: list[Any] = []
    for s, axes in zip(slices, panels, strict=True):
        name = s.parameter.name
        for i, (task, (color, marker)) in enumerate(zip(fitted.campaign.past, looks, strict=True)):
            if name in task.rows:
                x = s.where(list(task.rows[name])) + (0.09 * (i + 1) if s.is_category else 0.0)
                look: dict[str, Any] = {
                    "color": color,
                    "marker": marker,
                    "linestyle": "none",
                    "markersize": 4.5,
                    "mfc": "none",
                }
                axes.plot(x, task.y, alpha=0.75, label=short(task.name), zorder=1, **look)
        found = fitted.expected(s.rows)
        if found is None:
            axes.annotate("nothing is known yet", (0.5, 0.5), xycoords="axes fraction", ha="center", color=INK)
        elif s.is_category:
            look = {"fmt": "s", "color": NOW, "capsize": 4, "zorder": 4}
            axes.errorbar(s.x - 0.12, found.median, found.errors, label=_PREDICTION, **look)
        else:
            axes.plot(s.x, found.median, color=NOW, linewidth=2.2, label=_PREDICTION, zorder=3)
            axes.fill_between(s.x, found.low, found.high, color=NOW, alpha=0.18, linewidth=0)
        medians.append([] if found is None else found.median)
        if finished:
            x = s.where([e.values[name] for e in finished])
            results = [e.result for e in finished]
            axes.plot(x, results, "o", color=INK, markersize=5.5, label="this campaign", zorder=5)
        _axis(axes, s, file.label)
        _mark_reference(axes, s, reference)
    tasks, far = fitted.ordinary_past, fitted.outliers
    _look_at(panels[0], [*(y for _, y in tasks), np.array([e.result for e in finished])[~far], *medians])
    hidden = int(far.sum()) + sum(d.n for d in fitted.alignment.datasets) - sum(len(y) for _, y in tasks)
    note = f"{_described(fitted, reference)}{_out_of_view(hidden)}"
    heading(figure, "Prediction through the best point", note)
    legend_below(figure, panels, note="past results were measured at other settings of the remaining parameters")
    return figure


def _sources(fitted: Fitted, slices: Sequence[_Slice], reference: dict[str, Any]) -> Figure:
    file, space = fitted.campaign.file, fitted.alignment.space
    figure, panels = _panels(len(slices))
    alone = [GPBO.anywhere().learn().condition(d) for d in fitted.alignment.datasets]
    looks = past_looks(len(alone))
    for s, axes in zip(slices, panels, strict=True):
        found = fitted.expected(s.rows)
        lines = [] if found is None else [("all together, this campaign", INK, "o", found.median)]
        for d, posterior, (color, marker) in zip(fitted.alignment.datasets, alone, looks, strict=True):
            lines.append(
                (f"{short(d.name)} alone", color, marker, fitted.sign * _median(posterior, space.encode(s.rows)))
            )
        for i, (label, color, marker, y) in enumerate(lines):
            width, top = (2.4, 4) if i == 0 else (1.6, 3)
            if s.is_category:
                x = s.x + 0.13 * (i - (len(lines) - 1) / 2)
                axes.plot(x, y, linestyle="none", marker=marker, color=color, markersize=7, label=label, zorder=top)
            else:
                axes.plot(s.x, y, color=color, linewidth=width, zorder=top)
                at = int(np.argmax(y) if file.maximize else np.argmin(y))
                axes.plot(s.x[at], y[at], marker=marker, color=color, markersize=8, mec="white", zorder=5)
                axes.plot([], [], color=color, linewidth=width, marker=marker, label=label)
        _axis(axes, s, file.label)
        _mark_reference(axes, s, reference)
    heading(figure, "What each past campaign says", _described(fitted, reference))
    legend_below(figure, panels, note="a marker on a line is where it is best")
    return figure


def _median(posterior: TransferPosterior, X: torch.Tensor) -> NDArray[np.float64]:
    with torch.no_grad():
        return np.asarray(posterior.quantile(X, 0.5, noise=False).numpy())


# ── what the pictures share ───────────────────────────────────────────────────────────────────────────────────────


def _panels(n: int) -> tuple[Figure, list[Axes]]:
    columns = min(n, 2 if n in (2, 4) else 3)
    rows = math.ceil(n / columns)
    figure = Figure(
        figsize=(4.3 * columns + (1.5 if columns == 1 else 0), 3.1 * rows + 1.5), dpi=150, layout="constrained"
    )
    grid = np.asarray(figure.subplots(rows, columns, squeeze=False, sharey=True)).ravel()
    for unused in grid[n:]:
        unused.set_axis_off()
    return figure, list(grid[:n])


def _axis(axes: Axes, s: _Slice, ylabel: str) -> None:
    p = s.parameter
    tidy(axes, plain(p.label), plain(ylabel) if axes.get_subplotspec().is_first_col() else "")  # type: ignore[union-attr]
    if s.is_category:
        axes.xaxis.set_major_locator(FixedLocator(range(len(p.choices))))
        long = sum(map(len, p.choices)) > 36
        axes.set_xticklabels(
            [short(c) for c in p.choices], rotation=30 if long else 0, ha="right" if long else "center"
        )
        axes.set_xlim(-0.6, len(p.choices) - 0.4)
        return
    if p.log:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
    low, high = axes.get_xlim()
    axes.set_xlim(low, high)


def _look_at(axes: Axes, values: Sequence[Any]) -> None:
    """Keep results and medians in view; a band that is wider than them may leave the picture."""
    everything = np.concatenate([np.asarray(v, dtype=float) for v in values])
    if not len(everything):
        return
    low, high = float(everything.min()), float(everything.max())
    margin = 0.15 * (high - low) or 1.0
    axes.set_ylim(low - margin, high + margin)


def _out_of_view(count: int) -> str:
    return f"; {count} result{' lies' if count == 1 else 's lie'} far outside the picture" if count else ""


def _mark_reference(axes: Axes, s: _Slice, reference: dict[str, Any]) -> None:
    (x,) = s.where([reference[s.parameter.name]])
    axes.axvline(float(x), color=INK, linewidth=0.9, linestyle=":", zorder=0, label="best point")


def _described(fitted: Fitted, reference: dict[str, Any]) -> str:
    """The reference point in words."""
    best, file = fitted.campaign.best, fitted.campaign.file
    what = "the best prediction among past settings" if best is None else f"row {best.number}, {best.result:g}"
    unit = f" {file.unit}" if best is not None and file.unit else ""
    settings = (f"{split_unit(p.name)[0]} {_value(reference[p.name])} {p.unit}".strip() for p in file.parameters)
    return f"{what}{unit}: {', '.join(settings)}"


def _value(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, int | float) else str(value)
