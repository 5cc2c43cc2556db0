"""How past and present campaigns look: colours, markers, names and headings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from matplotlib.figure import Figure

from headstart.data.outcomes import Standing
from headstart.draw.canvas import INK, fitting
from headstart.sources.raw import RawTask

NOW = "#0072B2"
PALE = "#9A9A9A"
MANY = 12  # past campaigns beyond which none has a look of its own: nobody finds 50 in a legend
# Colours that colour-blind readers can tell apart (Okabe and Ito), and markers
_COLORS = ("#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#882255")
_MARKERS = ("s", "^", "D", "v", "P", "X")
_LINES: tuple[Any, ...] = ("-", (0, (5, 1.5)))
_CROWD = "#8C8C8C"
_LONG_NAME = 28
_HEADING = 11  # points
_INCHES_A_LINE = 0.2
_MOST_LINES = 5


# Of results with regard to the limits: one that is not known to be within is neither a full circle nor a cross
STANDING_LOOKS: Mapping[Standing, Mapping[str, Any]] = {
    Standing.WITHIN: {"marker": "o", "markersize": 6},
    Standing.UNKNOWN: {"marker": "D", "markersize": 5.5, "mfc": "white"},
    Standing.BEYOND: {"marker": "x", "markersize": 6},
}


class PastLook(NamedTuple):
    """How a past campaign is drawn, wherever it is."""

    color: str
    marker: str
    line: Any = "-"
    crowd: bool = False  # whether it is one of so many that all look alike


def past_looks(n: int) -> list[PastLook]:
    """A look for each of n past campaigns; when the colours begin anew, with other markers and broken lines.

    Of more than ``MANY`` all look alike.
    """
    if n > MANY:
        return [PastLook(_CROWD, ".", crowd=True)] * n
    k = len(_COLORS)
    return [PastLook(_COLORS[i % k], _MARKERS[(i + i // k) % k], _LINES[i // k]) for i in range(n)]


def looks_of(past: Sequence[RawTask]) -> dict[str, PastLook]:
    """The look of each past campaign by its name."""
    return dict(zip((task.name for task in past), past_looks(len(past)), strict=True))


def past_label(own: str, of_all: str, n: int) -> str:
    """What the legend says of one of n past campaigns: its ``own`` words, or those ``of_all`` where they are many."""
    return own if n <= MANY else of_all.format(n)


def short(name: str) -> str:
    """The name, cut in the middle if it is long, for names often differ in the end; without formulas."""
    half = _LONG_NAME // 2
    return plain(name if len(name) <= _LONG_NAME else f"{name[:half]}…{name[1 - half :]}")


def plain(text: str) -> str:
    """Without formulas: a dollar is a dollar."""
    return text.replace("$", r"\$")


def label(text: str, inches: float) -> str:
    """The label of an axis that is so long, in up to three lines."""
    return plain(fitting(text, inches, size=10, lines=3))


def heading(figure: Figure, title: str, note: str) -> None:
    """A title with a line below it, or several, for which the figure grows."""
    lines = fitting(note, 0.97 * figure.get_figwidth(), size=_HEADING, lines=_MOST_LINES)
    figure.set_figheight(figure.get_figheight() + _INCHES_A_LINE * lines.count("\n"))
    bold = f"$\\bf{{{title.replace(' ', '~')}}}$"
    figure.suptitle(f"{bold}\n{plain(lines)}", x=0.01, ha="left", fontsize=_HEADING, color=INK)


def named(picture: str, of: str) -> str:
    """The name of a picture, of one of several outcomes with the outcome in it."""
    return f"{picture}-{re.sub(r'[^A-Za-z0-9]+', '_', of).strip('_') or 'result'}" if of else picture


def noted(note: str, of: str) -> str:
    """A note that begins with the outcome, where there are several."""
    return f"{of}: {note}" if of else note
