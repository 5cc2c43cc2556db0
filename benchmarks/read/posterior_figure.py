"""The paper's figure 1: what the three sequential models make of a source that covers half of the domain.

    f(x; c) = x sin(x + π) + c x on (−10, 10)
    source    c = ½, uniform in (−10, 0)
    target    c = −½, at x = 1, 2, 3, 4

The paper names neither the number of source points nor the noise: here they are 20 and 0.1, its values for the
one-dimensional families. Hyperparameters are fitted as the paper fits them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from matplotlib.axes import Axes
from numpy.typing import NDArray

from benchmarks.problems.problem import stream
from benchmarks.problems.synthetic import ALPINE_C
from benchmarks.read.figures import save_png
from benchmarks.read.sheet import Cellular, Sheet
from benchmarks.read.styles import style
from headstart.data.dataset import Dataset
from headstart.draw.canvas import INK, legend_below, panels, tidy
from headstart.models.family import BHGP, GPBO, MHGP, SHGP

SOURCE_C, TARGET_C = 0.5, -0.5
TARGET_X = (1.0, 2.0, 3.0, 4.0)
_SIGMAS = 1.959964  # of a 95 % interval
_SOURCE_COLOR = "#AA4499"  # of no method

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Mean and standard deviation of every model at x, and the data, all in the function's own units."""

    x: Array
    posteriors: dict[str, tuple[Array, Array]]  # "source", "mhgp", "bhgp", "shgp"
    source: tuple[Array, Array]
    target: tuple[Array, Array]
    truth: dict[str, Array]  # "source" and "target"


def _task(c: float, x: torch.Tensor, noise: float, seed: int, name: str) -> Dataset:
    """Observations of f(·; c) at x in (−10, 10)."""
    X = ((x + 10) / 20).unsqueeze(-1)
    error = torch.randn(len(x), generator=stream("fig1", seed, name), dtype=torch.float64)
    return Dataset(X, ALPINE_C.evaluate(torch.tensor([c], dtype=torch.float64), X) + noise * error, name)


def compare_posteriors(*, points: int = 20, noise: float = 0.1, seed: int = 0, grid: int = 401) -> Comparison:
    """Fit the source model, MHGP, BHGP and SHGP, and predict on a grid."""
    inputs = -10 * torch.rand(points, generator=stream("fig1", seed, "inputs"), dtype=torch.float64)
    source = _task(SOURCE_C, inputs, noise, seed, "source")
    target = _task(TARGET_C, torch.tensor(TARGET_X, dtype=torch.float64), noise, seed, "target")
    X = torch.linspace(0, 1, grid, dtype=torch.float64).unsqueeze(-1)
    posteriors = {"source": GPBO.paper().learn().condition(source, seed=seed)}
    for name, model in (("mhgp", MHGP), ("bhgp", BHGP), ("shgp", SHGP)):
        posteriors[name] = model.paper().learn([source], seed=seed).condition(target, seed=seed)
    found = {}
    for name, posterior in posteriors.items():
        mean, var = posterior.predict(X)
        found[name] = (mean.numpy(), var.clamp_min(0).sqrt().numpy())
    return Comparison(
        x=(20 * X.squeeze(-1) - 10).numpy(),
        posteriors=found,
        source=((20 * source.X.squeeze(-1) - 10).numpy(), source.y.numpy()),
        target=((20 * target.X.squeeze(-1) - 10).numpy(), target.y.numpy()),
        truth={
            name: ALPINE_C.evaluate(torch.tensor([c], dtype=torch.float64), X).numpy()
            for name, c in (("source", SOURCE_C), ("target", TARGET_C))
        },
    )


def draw_posteriors(comparison: Comparison, folder: Path, name: str = "fig1") -> Path:
    """Three panels: (a) the source's posterior, (b) MHGP and BHGP, (c) SHGP; means and 95 % intervals."""
    figure, axes = panels(3, size=(4.4, 3.6))
    for panel, (models, task, heading) in zip(
        axes,
        (
            (("source",), "source", "(a) source model"),
            (("bhgp", "mhgp"), "target", "(b) MHGP and BHGP"),
            (("shgp",), "target", "(c) SHGP"),
        ),
        strict=True,
    ):
        panel.axvspan(-10, 0, color="#F3F3F3", zorder=0)
        panel.plot(comparison.x, comparison.truth[task], color=INK, linestyle=":", linewidth=1.2, label="true function")
        for i, model in enumerate(models):
            # where two means are equal, the lower one is seen as a rim
            _draw_model(panel, comparison, model, width=1.8 if i else 2.0 * len(models))
        x, y = comparison.source if task == "source" else comparison.target
        label = "source data" if task == "source" else "target data"
        panel.plot(x, y, "ko" if task == "target" else "k+", markersize=6, zorder=5, label=label)
        panel.set_xlim(-10, 10)
        panel.set_xticks(range(-10, 11, 5))
        tidy(panel, xlabel="x", ylabel="f(x)" if panel is axes[0] else "", title=heading)
    ends = [panel.get_ylim() for panel in axes]
    for panel in axes:
        panel.set_ylim(min(low for low, _ in ends), max(high for _, high in ends))
    legend_below(figure, axes, "lines are means, shades 95 % intervals; the source was measured where it is grey")
    return save_png(figure, folder, name)


def _draw_model(axes: Axes, comparison: Comparison, model: str, width: float) -> None:
    mean, deviation = comparison.posteriors[model]
    s = style(model)
    color, label = (_SOURCE_COLOR, "source posterior") if model == "source" else (s.color, s.label)
    axes.plot(comparison.x, mean, color=color, linewidth=width, label=label, zorder=3)
    low, high = mean - _SIGMAS * deviation, mean + _SIGMAS * deviation
    axes.fill_between(comparison.x, low, high, color=color, alpha=0.2, linewidth=0)
    for edge in (low, high):
        axes.plot(comparison.x, edge, color=color, linewidth=0.8, alpha=0.8)


def posterior_sheet(comparison: Comparison) -> Sheet:
    """The mean standard deviation of every model left and right of 0, and how often its interval holds the truth."""
    left = comparison.x < 0
    rows: list[tuple[Cellular, ...]] = []
    for name, (mean, deviation) in comparison.posteriors.items():
        truth = comparison.truth["source" if name == "source" else "target"]
        inside = np.abs(mean - truth) <= _SIGMAS * deviation
        sides = (float(v) for part in (left, ~left) for v in (deviation[part].mean(), inside[part].mean()))
        rows.append((name, *sides))
    return Sheet(
        name="posterior",
        title="Alpine, source known left of 0",
        columns=("model", "sd_left", "coverage_left", "sd_right", "coverage_right"),
        rows=tuple(rows),
        note="Mean standard deviation, and the share of x where the 95 % interval holds the true function.",
    )
