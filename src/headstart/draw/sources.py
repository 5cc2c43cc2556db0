"""What became of the sources, as an interactive figure like Optuna's own: ``plot_sources(sampler.explain())``.

left     how much of every source's shape the target has, ± a standard deviation
right    what every source alone adds to the predictions of the target, with its 95 % interval
below    how far the candidates were believed after every result

A verdict has a colour and a marker, so that it is told apart in grey, too. The details are shown where the pointer is.
"""

from __future__ import annotations

import html
import itertools
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headstart.errors import MissingExtraError
from headstart.models.auto.explanation import Explanation, SourceVerdict, Verdict

if TYPE_CHECKING:
    import plotly.graph_objects as go

_INK, _RULE = "#333333", "#BBBBBB"
# Dark, light, in between: apart in grey as well, and so are the markers
_LOOKS = {
    Verdict.USED: ("#0072B2", "circle"),
    Verdict.REDUCED: ("#E69F00", "triangle-down"),
    Verdict.IGNORED: ("#7A7A7A", "x-thin-open"),
}
_PALE = "#D0D0D0"
_INFORMED = ("#0072B2", "#56B4E9", "#12365E", "#7F9FBF", "#A9CCE3")  # candidates that know the past, in their order
_LONG_NAME = 30
# Pixels: of a source's row, of the panel below, between the panels, above and below them
_ROW, _BELIEFS, _BETWEEN, _TOP, _BOTTOM = 22, 170, 110, 110, 110
_LEAST_ROWS = 4
_LINE = 96  # characters of a reason that fit in a line of what the pointer shows


def plot_sources(explanation: Explanation) -> go.Figure:
    """The weights and gains of all sources by their verdicts, and the beliefs in the candidates.

    It needs plotly: without it a ``MissingExtraError`` says how to get it.
    """
    try:
        from plotly.subplots import make_subplots
    except ImportError as error:
        raise MissingExtraError(
            "The figure of the sources needs plotly, which is not installed: pip install 'headstart[plotly]'."
        ) from error
    n = len(explanation.sources)
    upper = _ROW * max(n, _LEAST_ROWS)
    inner = upper + _BETWEEN + _BELIEFS
    figure = make_subplots(
        rows=2,
        cols=2,
        specs=[[{}, {}], [{"colspan": 2}, None]],
        shared_yaxes=True,
        row_heights=[upper, _BELIEFS],
        vertical_spacing=_BETWEEN / inner,
        horizontal_spacing=0.04,
    )
    for verdict in Verdict:
        _add_verdict(figure, verdict, explanation)
    _add_beliefs(figure, explanation)
    _lay_out(figure, explanation, _TOP + inner + _BOTTOM)
    _say_what_is_unknown(figure, explanation)
    return figure


def _add_verdict(figure: Any, verdict: Verdict, explanation: Explanation) -> None:
    """The sources with this verdict in both panels, under one entry of the legend."""
    import plotly.graph_objects as go

    asked = [] if explanation.shares is None else explanation.shares.tolist()
    share = asked[-1] if asked else [None] * len(explanation.sources)
    found = [(i, source) for i, source in enumerate(explanation.sources) if source.verdict is verdict]
    tested = [(i, source) for i, source in found if source.interval is not None]
    color, symbol = _LOOKS[verdict]
    common: dict[str, Any] = {
        "mode": "markers",
        "name": str(verdict),
        "legendgroup": str(verdict),
        "marker": {"color": color, "symbol": symbol, "size": 9, "line": {"color": color, "width": 2}},
        "hovertemplate": "%{customdata}<extra></extra>",
    }
    error = {"color": color, "thickness": 1.6, "width": 3}
    figure.add_trace(
        go.Scatter(
            x=[source.weight for _, source in found],
            y=[i for i, _ in found],
            error_x={"array": [source.weight_sd for _, source in found], **error},
            customdata=[_told(source, share[i]) for i, source in found],
            showlegend=bool(found),
            **common,
        ),
        row=1,
        col=1,
    )
    figure.add_trace(
        go.Scatter(
            x=[source.gain for _, source in tested],
            y=[i for i, _ in tested],
            error_x={"array": [source.interval[1] - source.gain for _, source in tested if source.interval], **error},
            customdata=[_told(source, share[i]) for i, source in tested],
            showlegend=False,
            **common,
        ),
        row=1,
        col=2,
    )


def _add_beliefs(figure: Any, explanation: Explanation) -> None:
    import plotly.graph_objects as go

    results, shares = zip(*explanation.history, strict=True)
    colors = itertools.cycle(_INFORMED)
    for name, share in zip(explanation.candidates, zip(*shares, strict=True), strict=True):
        figure.add_trace(
            go.Bar(
                x=list(results),
                y=list(share),
                name=_escaped(explanation.labels[name]),
                legend="legend2",
                marker={
                    "color": _PALE if name == explanation.plain else next(colors),
                    "line": {"color": "white", "width": 0.5},
                },
                hovertemplate=f"{_escaped(name)}: %{{y:.0%}} after %{{x}} results<extra></extra>",
            ),
            row=2,
            col=1,
        )


def _lay_out(figure: Any, explanation: Explanation, height: int) -> None:
    n, results = len(explanation.sources), explanation.n_observations
    when = f"after {results} result{'s'[: results - 1]}" if results else "before the first result"
    figure.update_layout(
        title={
            "text": f"What became of the {f'{n} sources' if n > 1 else 'source'} {when}",
            "x": 0.0,
            "xanchor": "left",
            "xref": "paper",
            "y": 1 - 24 / height,
            "yanchor": "top",
        },
        template="plotly_white",
        font={"color": _INK},
        height=height,
        margin={"l": 60, "r": 30, "t": _TOP, "b": _BOTTOM},
        barmode="stack",
        bargap=0.0,
        hoverlabel={"align": "left"},
        # in pixels: above the panels, and below them
        legend={"orientation": "h", "x": 0.0, "y": 1 + 34 / (height - _TOP - _BOTTOM), "yanchor": "bottom"},
        legend2={
            "orientation": "h",
            "x": 0.0,
            "y": -52 / (height - _TOP - _BOTTOM),
            "yanchor": "top",
            "traceorder": "normal",
        },
    )
    names = [_escaped(_short(source.name)) for source in explanation.sources]
    figure.update_yaxes(
        row=1,
        tickmode="array",
        tickvals=list(range(n)),
        ticktext=names,
        range=[max(n, _LEAST_ROWS) - 0.5, -0.5],
        automargin=True,
        zeroline=False,
    )
    figure.update_yaxes(row=2, tickformat=".0%", range=[0, 1], automargin=True)
    figure.update_xaxes(title_font_size=12, title_standoff=8)
    figure.update_xaxes(row=1, zeroline=True, zerolinecolor=_INK, zerolinewidth=1.2, rangemode="tozero")
    figure.update_xaxes(row=1, col=1, title_text="1: all of its shape, below 0: reversed")
    figure.update_xaxes(row=1, col=2, title_text="nats per result, 0: no source at all")
    figure.update_xaxes(row=2, title_text="results of this study", range=[-0.5, results + 0.5], tickformat="d")
    if results < 10:
        figure.update_xaxes(row=2, dtick=1)
    figure.add_vline(x=1.0, line={"color": _RULE, "dash": "dash", "width": 1.2}, row=1, col=1)
    for axis, title in (
        ("", "weight ± standard deviation"),
        ("2", "what it adds, 95 % interval"),
        ("3", "how far each candidate is believed"),
    ):
        _note(figure, f"<b>{title}</b>", axis, x=0.0, y=1.0, above=True)


def _say_what_is_unknown(figure: Any, explanation: Explanation) -> None:
    if all(source.interval is None for source in explanation.sources):
        figure.update_xaxes(row=1, col=2, range=[-1, 1])
        _note(figure, "not known yet: too few results", "2", x=0.5, y=0.5)


def _note(figure: Any, text: str, axis: str, *, x: float, y: float, above: bool = False) -> None:
    """A text in a panel, or above it."""
    figure.add_annotation(
        text=text,
        x=x,
        y=y,
        xref=f"x{axis} domain",
        yref=f"y{axis} domain",
        showarrow=False,
        xanchor="left" if above else "center",
        yanchor="bottom" if above else "middle",
        yshift=4 if above else 0,
        bgcolor=None if above else "white",
        font={"size": 13, "color": _INK},
    )


def _told(source: SourceVerdict, share: float | None) -> str:
    """What is shown where the pointer is."""
    lines = [
        f"<b>{_escaped(source.name)}</b>, {source.rows} rows: {source.verdict}",
        *_wrapped(source.reason),
        f"weight {source.weight:+.2f} ± {source.weight_sd:.2f}",
    ]
    if source.interval is not None:
        lines.append(f"gain {source.gain:+.2f}, 95 % interval {source.interval[0]:+.2f} to {source.interval[1]:+.2f}")
    if share is not None:
        lines.append(f"its share of the latest prediction {share:.0%}")
    return "<br>".join(lines)


def _wrapped(text: str) -> Sequence[str]:
    return [_escaped(line) for line in textwrap.wrap(text, _LINE)]


def _short(name: str) -> str:
    """Cut in the middle if it is long, for names often differ in the end."""
    half = _LONG_NAME // 2
    return name if len(name) <= _LONG_NAME else f"{name[:half]}…{name[1 - half :]}"


def _escaped(text: str) -> str:
    """As it is: neither markup nor a formula."""
    return html.escape(text, quote=False).replace("$", "&#36;")
