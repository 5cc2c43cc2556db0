"""How past and present campaigns look: colours, markers, names and headings."""

from __future__ import annotations

import re
import textwrap

from matplotlib.figure import Figure

from headstart.draw.canvas import INK

__all__ = ["NOW", "heading", "named", "noted", "past_looks", "plain", "short"]

NOW = "#0072B2"
# Colours that colour-blind readers can tell apart (Okabe and Ito), and markers
_COLORS = ("#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#882255")
_MARKERS = ("s", "^", "D", "v", "P", "X")
_LONG_NAME = 28


def past_looks(n: int) -> list[tuple[str, str]]:
    """A colour and a marker for each of n past campaigns; when the colours begin anew, with other markers."""
    k = len(_COLORS)
    return [(_COLORS[i % k], _MARKERS[(i + i // k) % k]) for i in range(n)]


def short(name: str) -> str:
    """The name, cut in the middle if it is long, for names often differ in the end; without formulas."""
    half = _LONG_NAME // 2
    return plain(name if len(name) <= _LONG_NAME else f"{name[:half]}…{name[1 - half :]}")


def plain(text: str) -> str:
    """Without formulas: a dollar is a dollar."""
    return text.replace("$", r"\$")


def heading(figure: Figure, title: str, note: str) -> None:
    """A title with a line below it, or several."""
    lines = "\n".join(textwrap.wrap(plain(note), width=int(13 * figure.get_figwidth())))
    figure.suptitle(f"$\\bf{{{title.replace(' ', '~')}}}$\n{lines}", x=0.01, ha="left", fontsize=11, color=INK)


def named(picture: str, of: str) -> str:
    """The name of a picture, of one of several outcomes with the outcome in it."""
    return f"{picture}-{re.sub(r'[^A-Za-z0-9]+', '_', of).strip('_') or 'result'}" if of else picture


def noted(note: str, of: str) -> str:
    """A note that begins with the outcome, where there are several."""
    return f"{of}: {note}" if of else note
