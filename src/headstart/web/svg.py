"""Pictures as SVG that is readable in light and in dark."""

from __future__ import annotations

import io

import matplotlib as mpl
from matplotlib.figure import Figure

# What a colour is in the dark: ink and paper change places, and dark colours become light ones of the same hue
_DARK = {
    "#333333": "#e2e2e2", "#000000": "#e2e2e2", "#ffffff": "#16191d", "#e2e2e2": "#3b424a", "#f2f2f2": "#23282e",
    "#0072b2": "#5fb2ee", "#882255": "#e08bb5", "#12365e": "#7fa3d1", "#009e73": "#33c69c", "#d55e00": "#ff8f3f",
    "#c8c8c8": "#6c747d", "#9a9a9a": "#a5adb5",
}  # fmt: skip
_RULES = "".join(
    f'[style*="{what}: {light}" i]{{{what}:{dark} !important}}'
    for light, dark in _DARK.items()
    for what in ("fill", "stroke")
)
_STYLE = f"<style>@media screen and (prefers-color-scheme: dark){{svg{{fill:#e2e2e2}}{_RULES}}}</style>"


def themed(figure: Figure) -> bytes:
    """The figure as SVG on no ground of its own; a reader's dark theme turns ink light. Equal figures, equal bytes."""
    figure.patch.set_alpha(0.0)
    for axes in figure.axes:
        if axes.get_facecolor()[:3] == (1.0, 1.0, 1.0):
            axes.patch.set_alpha(0.0)
    content = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "headstart", "svg.fonttype": "path"}):
        figure.savefig(content, format="svg", metadata={"Date": None, "Creator": None})
    text = content.getvalue().decode()
    start = text.index(">", text.index("<svg")) + 1
    return (text[:start] + _STYLE + text[start:]).encode()
