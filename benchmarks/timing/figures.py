"""Seconds against the number of source points: of a training step, and of a step of the optimisation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from benchmarks.read.analysis import Results, mean_and_error
from benchmarks.read.figures import band, curve, draw_final, log_axis, save_png, values_axis
from benchmarks.read.styles import ORDER, setting, title
from benchmarks.timing.complexity import N_TARGET, STATED, StepTiming
from headstart.draw.canvas import legend_below, panels, tidy

_TINY = 1e-9


def _draw_training(axes: Axes, timings: Sequence[StepTiming]) -> None:
    """CPU seconds of a training step on log-log axes."""
    sizes = np.array(sorted({t.n_source for t in timings}), dtype=float)
    for model in (m for m in ORDER if m in STATED):
        of_model = sorted((t for t in timings if t.model == model), key=lambda t: t.n_source)
        if not of_model:
            continue
        x = [t.n_source for t in of_model]
        band(axes, model, x, [t.low for t in of_model], [t.high for t in of_model], floor=_TINY)
        curve(axes, model, x, [t.total for t in of_model], floor=_TINY)
    values_axis(axes, sizes)
    log_axis(axes)
    tidy(axes, xlabel="source points $N_s$", ylabel=f"CPU seconds per training step ($N_t$ = {N_TARGET})")


def draw_figure3(timings: Sequence[StepTiming], results: Results, folder: Path, name: str = "fig3") -> Path:
    """(a) training time, (b) the last regret against source points, (c) against noise: the paper's figure 3."""
    figure, axes = panels(3, size=(4.4, 3.7))
    _draw_training(axes[0], timings)
    by_points = [p for p in results.problems if setting(p, "noise") == 0.01]
    by_noise = [p for p in results.problems if setting(p, "points") == 60]
    for panel, problems, key, xlabel in (
        (axes[1], by_points, "points", "source points (noise 0.01)"),
        (axes[2], by_noise, "noise", "noise (60 source points)"),
    ):
        part = Results(tuple(cell for cell in results.cells if cell.problem in problems))
        if part.cells:
            draw_final(panel, part, key, xlabel)
    for panel, heading in zip(axes, ("(a) training time", "(b) source data", "(c) noise"), strict=True):
        panel.set_title(heading, loc="left", fontsize=11, fontweight="bold")
    legend_below(figure, axes, "(a) median and quartiles, Hartmann-6; (b), (c) mean ± standard error, Hartmann-3")
    return save_png(figure, folder, name)


def draw_runtime(results: Results, folder: Path, name: str = "runtime") -> Path:
    """CPU seconds of a step of the optimisation (fit and choice) against source points: mean ± standard error."""
    figure, (axes,) = panels(1, size=(6.0, 4.2))
    place = {p: value for p in results.problems if (value := setting(p, "points")) is not None}
    for method in results.methods:
        cells = [(place[c.problem], c) for c in results.cells if c.method == method and c.problem in place]
        cells.sort(key=lambda pair: pair[0])
        found = [mean_and_error(cell.step_seconds) for _, cell in cells]
        x, mean = [value for value, _ in cells], np.array([float(m) for m, _ in found])
        error = np.nan_to_num([float(e) for _, e in found])
        if not len(mean) or mean.max() <= 0:
            continue  # random search takes no time
        band(axes, method, x, mean - error, mean + error, floor=_TINY)
        curve(axes, method, x, mean, floor=_TINY)
    values_axis(axes, np.array(sorted(set(place.values()))))
    log_axis(axes)
    families = ", ".join(dict.fromkeys(title(p) for p in results.problems))
    tidy(axes, xlabel="source points", ylabel="CPU seconds per step", title=families)
    steps = max(cell.steps for cell in results.cells)
    legend_below(figure, [axes], f"mean ± standard error over runs of the mean of the first {steps} steps")
    return save_png(figure, folder, name)
