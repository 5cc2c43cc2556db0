"""What the pictures of a campaign share: colours, labels, headings, legends, and how they are written."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from headstart.errors import InputError
from headstart.study.safe_files import write_whole

__all__ = ["INK", "NOW", "heading", "legend", "make_folder", "past_looks", "plain", "save", "short", "tidy"]

INK, NOW = "#333333", "#0072B2"
# Colours that colour-blind readers can tell apart (Okabe and Ito), and markers
_COLORS = ("#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#882255")
_MARKERS = ("s", "^", "D", "v", "P", "X")
_LONG_NAME = 28


def past_looks(n: int) -> list[tuple[str, str]]:
    """A colour and a marker for each of n past campaigns; when the colours begin anew, with other markers."""
    k = len(_COLORS)
    return [(_COLORS[i % k], _MARKERS[(i + i // k) % k]) for i in range(n)]


def short(name: str) -> str:
    """The name, cut in the middle if it is long: names often differ in the end."""
    half = _LONG_NAME // 2
    return name if len(name) <= _LONG_NAME else f"{name[:half]}…{name[1 - half :]}"


def plain(text: str) -> str:
    """Without formulas: a dollar is a dollar."""
    return text.replace("$", r"\$")


def tidy(axes: Axes, xlabel: str, ylabel: str) -> None:
    """Labels, a light grid, and no frame."""
    axes.set_xlabel(plain(xlabel))
    axes.set_ylabel(plain(ylabel))
    axes.grid(True, which="major", color="#E2E2E2", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def heading(figure: Figure, title: str, note: str) -> None:
    """A title with a line below it, or several."""
    lines = "\n".join(textwrap.wrap(plain(note), width=int(13 * figure.get_figwidth())))
    figure.suptitle(f"$\\bf{{{title.replace(' ', '~')}}}$\n{lines}", x=0.01, ha="left", fontsize=11, color=INK)


def legend(figure: Figure, panels: Sequence[Axes], note: str = "") -> None:
    """Below the panels, every label once."""
    found: dict[str, Any] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    longest = max(map(len, found))
    columns = max(1, min(len(found), int(figure.get_figwidth() / (0.066 * longest + 0.6))))
    drawn = figure.legend(
        list(found.values()),
        [plain(label) for label in found],
        loc="outside lower center",
        ncols=columns,
        frameon=False,
        fontsize=9,
        title=note or None,
        title_fontproperties={"size": 9},
    )
    drawn.get_title().set_color(INK)


def make_folder(out: Path) -> None:
    """The folder for pictures; an ``InputError`` where it cannot be made."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{out}: the folder cannot be made: {error.strerror}.") from error


def save(figure: Figure, path: Path) -> Path:
    """Write the picture whole or not at all; equal pictures are equal files."""
    content = io.BytesIO()
    figure.savefig(content, format="png", metadata={"Software": None})
    write_whole(path, content.getvalue())
    return path
