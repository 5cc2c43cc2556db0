"""What became of the sources: ``plot_sources(sampler.explain())``, and the pictures of ``headstart check``.

agreement.png   how well each source predicts itself, and which of them show the same
verdicts.png    every source's weight over the results, how it is related, and how far AUTO's candidates were believed
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from headstart.draw.canvas import INK, NARROW, fitting, legend_below, save_png, tidy
from headstart.draw.looks import MANY, NOW, PastLook, heading, named, noted, past_looks, short
from headstart.models.auto.explanation import Explanation, Verdict, WhyUnusable

_PALE = "#C8C8C8"
_INFORMED = (NOW, "#56B4E9", "#12365E", "#7F9FBF", "#A9CCE3")  # candidates that know the past, in their order
# Of many sources the verdicts are told apart, no longer the sources
_VERDICTS = {
    Verdict.RELATED: PastLook(NOW, "o"),
    Verdict.REVERSED: PastLook("#E69F00", "v"),
    Verdict.UNRELATED: PastLook("#7A7A7A", "s"),
    Verdict.UNKNOWN: PastLook("#56B4E9", "D"),
    Verdict.UNTESTED: PastLook("#56B4E9", "^"),
    Verdict.IGNORED: PastLook("#7A7A7A", "x"),
}
_RELATIONS = (Verdict.RELATED, Verdict.UNRELATED, Verdict.REVERSED)  # in the order of a SourceRelation
_SILENT = (Verdict.UNTESTED, Verdict.IGNORED)
_FEW = 3  # sources that a heading can name
_COLORS = "PuOr_r"


def draw_agreement(check: Explanation, out: Path, *, of: str = "") -> Path:
    """Write agreement.png into the folder, which is made if it is not there; ``of`` several outcomes one for each."""
    return save_png({named("agreement", of): agreement_figure(check, of=of)}, out)[0]


def agreement_figure(check: Explanation, *, of: str = "") -> Figure:
    """How well each past campaign predicts itself, and which of them show the same."""
    n = len(check.names)
    alone = n == 1
    side = min(1.4 + 0.62 * n, 9.0)  # inches of the matrix, and below of the names beside it
    names = 0.07 * max(len(short(name)) for name in check.names)
    widths = [3.2 + names] if alone else [3.2 + names, side + names + 1.4]
    figure = Figure(figsize=(sum(widths), 1.6 + side + (0 if alone else 0.6 * names)), dpi=150, layout="constrained")
    panels = figure.subplots(1, len(widths), width_ratios=widths, squeeze=False)
    _self_prediction(panels[0, 0], check)
    if not alone:
        _matrix(figure, panels[0, 1], check)
    silent = [f"{short(source.name)} ({source.unusable})" for source in check.sources if source.unusable]
    told = ", ".join(silent) if len(silent) <= _FEW else f"{len(silent)} of {n}"
    note = (
        f"they say nothing: {told}" if silent else "it predicts itself" if n == 1 else "all of them predict themselves"
    )
    heading(figure, "What the past campaigns say", noted(note, of))
    return figure


def _self_prediction(axes: Axes, check: Explanation) -> None:
    for y, source in enumerate(check.sources):
        gain, error, why = source.informative, source.informative_error, source.unusable
        known = why in (None, WhyUnusable.NOISE, WhyUnusable.LITTLE)
        if known:
            axes.barh(y, gain, height=0.62, color=_PALE if why else NOW)
            axes.plot([gain - error, gain + error], [y, y], color=INK, linewidth=1.4)
        axes.annotate(
            f"  {why or ''}", (max(gain + error, 0.0) if known else 0.0, y), va="center", color=INK, fontsize=9
        )
    axes.axvline(0.0, color=INK, linewidth=0.9)
    _names(axes, check.names)
    tidy(axes, "gain over a constant [nats per row]", "")
    axes.set_title("how well it predicts itself", loc="left", fontsize=10, color=INK)
    axes.margins(x=0.16)


def _matrix(figure: Figure, axes: Axes, check: Explanation) -> None:
    n, values = len(check.names), check.agreement
    assert values is not None
    axes.set_facecolor("#F2F2F2")
    image = axes.imshow(np.ma.masked_invalid(values), cmap=_COLORS, vmin=-1, vmax=1, aspect="equal")
    if n <= MANY:
        for i in range(n):
            for j in range(n):
                value = values[i, j]
                text = "–" if math.isnan(value) else f"{round(value, 2) + 0.0:+.2f}" if i != j else "1"
                dark = not math.isnan(value) and abs(value) > 0.55
                axes.text(j, i, text, ha="center", va="center", fontsize=9, color="white" if dark else INK)
    slant: dict[str, Any] = {"rotation": 90} if n > MANY else {"rotation": 35, "ha": "right", "rotation_mode": "anchor"}
    axes.set_xticks(range(n), [short(name) for name in check.names], fontsize=9, **slant)
    _names(axes, check.names)
    axes.set_title("what the row predicts,\nagainst what the column measured", loc="left", fontsize=10, color=INK)
    bar = figure.colorbar(image, ax=axes, shrink=0.8, ticks=[-1, 0, 1])
    bar.ax.set_yticklabels(["reverse", "unrelated", "the same"])


def _names(axes: Axes, names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), [short(name) for name in names], fontsize=9)
    axes.set_ylim(len(names) - 0.5, -0.5)


def draw_verdicts(explanation: Explanation, out: Path, *, of: str = "") -> Path:
    """Write verdicts.png into the folder, which is made if it is not there; ``of`` several outcomes one for each."""
    return save_png({named("verdicts", of): plot_sources(explanation, of=of)}, out)[0]


def plot_sources(explanation: Explanation, *, of: str = "", narrow: bool = False) -> Figure:
    """Draw the weight of every source over the results, how it is related, and how far the candidates were believed.

    Of more than 12 sources the verdicts are told apart, not the sources.

    Args:
        explanation: What ``sampler.explain()`` or ``explain`` gives.
        of: The outcome that it is about, where there are several.
        narrow: Whether the panels stand below each other, as a telephone shows them.

    Returns:
        A figure of Matplotlib with three panels: ``figure.savefig("sources.png")`` writes it.
    """
    tall = 0.16 * max(0, len(explanation.sources) - 6)
    size = (NARROW, 9.6 + 2.4 * tall) if narrow else (13.2, 4.6 + tall)
    figure = Figure(figsize=size, dpi=150, layout="constrained")
    ratios: dict[str, Any] = {"height_ratios": [1, 1 + tall, 1]} if narrow else {"width_ratios": [1.15, 1.0, 1.0]}
    weights, related, believed = figure.subplots(*((3, 1) if narrow else (1, 3)), **ratios)
    _weights(weights, explanation)
    _relations(related, explanation, inside=narrow)
    _believed(believed, explanation)
    for axes in (weights, related, believed) if narrow else ():
        axes.set_title(fitting(axes.get_title("left"), NARROW - 0.7, size=10, lines=2), loc="left", fontsize=10)
        axes.set_xlabel(fitting(axes.get_xlabel(), NARROW - 1.2, size=10, lines=2))
    counts = [(v, sum(s.verdict is v for s in explanation.sources)) for v in Verdict]
    n = explanation.n_observations
    told = ", ".join(f"{count} {verdict}" for verdict, count in counts if count)
    heading(figure, "Verdicts on the past", noted(f"{told}, after {n} result{'' if n == 1 else 's'}", of))
    legend_below(figure, [weights, related, believed])
    return figure


def _looks(explanation: Explanation) -> list[tuple[PastLook, str]]:
    """How every source is drawn, and what the legend says of it."""
    sources = explanation.sources
    if len(sources) > MANY:
        return [(_VERDICTS[source.verdict], f"{source.verdict}") for source in sources]
    return [(look, short(source.name)) for source, look in zip(sources, past_looks(len(sources)), strict=True)]


def _weights(axes: Axes, explanation: Explanation) -> None:
    looks, last = _looks(explanation), explanation.n_observations
    many = len(looks) > MANY
    for source, (look, told) in zip(explanation.sources, looks, strict=True):
        seen, weight = zip(*source.history, strict=True)
        axes.plot(
            seen,
            weight,
            color=look.color,
            marker=look.marker,
            markersize=3 if many else 5,
            linewidth=0.8 if many else 1.8,
            linestyle=":" if source.verdict is Verdict.IGNORED else look.line,
            label=told,
        )
    apart = 0.03 * max(last, 4)
    strip = 0.0 if many else apart * (len(looks) + 1)  # right of the results, with the errors beside each other
    if not many:
        for i, (source, (look, _)) in enumerate(zip(explanation.sources, looks, strict=True)):
            at, mark = [last + apart * (i + 1.5)], {"color": look.color, "fmt": look.marker}
            axes.errorbar(at, [source.weight], [source.weight_sd], markersize=4, capsize=3, **mark)  # type: ignore[arg-type]
        axes.axvspan(last + apart / 2, last + strip + apart / 2, color="#F2F2F2", linewidth=0, zorder=0)
    axes.axhline(0.0, color=INK, linewidth=0.9)
    axes.axhline(1.0, color=INK, linewidth=0.9, linestyle=(0, (5, 3)))
    _experiments(axes, last, strip)
    if not many:
        ticks = [tick for tick in axes.get_xticks() if 0 <= tick <= last]
        axes.set_xticks([*ticks, last + (strip + apart) / 2], [*(f"{tick:g}" for tick in ticks), "now"])
    tidy(axes, f"results of {short(explanation.target)}", "weight" if many else "weight, ± standard deviation now")
    axes.set_title("how much of its shape is used (1: all, below 0: reversed)", loc="left", fontsize=10, color=INK)


def _relations(axes: Axes, explanation: Explanation, *, inside: bool) -> None:
    """How probable each relation is; a source's name and verdict stand beside the axes, or ``inside`` them, above."""
    height = 0.4 if inside else 0.7
    tested = [(y, s.relation) for y, s in enumerate(explanation.sources) if s.verdict not in _SILENT]
    for k, verdict in enumerate(_RELATIONS):
        color = _PALE if verdict is Verdict.UNRELATED else _VERDICTS[verdict].color
        bars: dict[str, Any] = {"left": [sum(each[:k]) for _, each in tested], "height": height, "color": color}
        axes.barh([y for y, _ in tested], [each[k] for _, each in tested], label=str(verdict), **bars)
    for y, source in enumerate(explanation.sources):
        # beside the axes, so that it cannot be read as the verdict on the row above
        beside: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
        told = str(source.verdict)
        if inside:
            told = fitting(f"{short(source.name)}: {told}", NARROW - 0.9, size=8, lines=1)
            at, to, va = 0.0, (2, 9), "bottom"
        else:
            at, to, va = 1.0, (4, 0), "center"
        axes.annotate(told, (at, y), xytext=to, va=va, fontsize=8 if inside else 9, color=INK, **beside)
    _names(axes, [source.name for source in explanation.sources])
    if inside:
        axes.set_yticks([])
        axes.set_ylim(len(explanation.sources) - 0.6, -0.9)
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    tidy(axes, f"probability after {explanation.n_observations} results", "")
    axes.set_title("what it is to these results", loc="left", fontsize=10, color=INK)


def _believed(axes: Axes, explanation: Explanation) -> None:
    n, shares = zip(*explanation.history, strict=True)
    bottom = np.zeros(len(n))
    colors = itertools.cycle(_INFORMED)
    for name, share in zip(explanation.candidates, np.array(shares).T, strict=True):
        color = _PALE if name == explanation.plain else next(colors)
        label = explanation.labels[name]
        axes.bar(n, share, bottom=bottom, width=1.0, color=color, edgecolor="white", linewidth=0.4, label=label)
        bottom = bottom + share
    _experiments(axes, explanation.n_observations, 0.5, left=0.5)
    axes.set_ylim(0, 1)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    tidy(axes, f"results of {short(explanation.target)}", "")
    axes.set_title("how far each candidate is believed", loc="left", fontsize=10, color=INK)


def _experiments(axes: Axes, last: int, right: float, left: float = 0.0) -> None:
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    margin = 0.02 * max(last, 4)
    axes.set_xlim(-left - margin, last + right + margin)
