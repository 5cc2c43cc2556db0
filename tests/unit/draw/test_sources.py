"""The figure of what became of the sources."""

from __future__ import annotations

import builtins
import json
from typing import Any

import pytest
import torch

from headstart import MissingExtraError
from headstart.draw.sources import plot_sources
from headstart.models.auto.explanation import Explanation, SourceVerdict, Verdict

NAMES = ("$x_1$ and $y$", "a study with a name that nobody wants to read in a picture", "svm <b>")


def _reasons(n: int, results: int) -> Explanation:
    """Of many kinds, with long names, and some that look like markup or like formulas."""
    kinds, sources = tuple(Verdict), []
    for i in range(n):
        interval = (0.1 * i - 0.5, 0.1 * i + 0.5) if results >= 4 else None
        weight = 0.3 * (-1) ** i
        sources.append(
            SourceVerdict(
                f"{NAMES[i % 3]} {i}",
                10 + i,
                kinds[i % 3],
                "So it is.",
                1.0,
                0.1,
                None,
                0.1 * i,
                interval,
                weight,
                0.2,
                (),
            )
        )
    history = tuple((k, (0.7 - 0.01 * k, 0.3 + 0.01 * k)) for k in range(results + 1))
    believed = dict(zip(("kin", "plain"), history[-1][1], strict=True))
    labels = {"kin": "like the past", "plain": "from scratch"}
    shares = torch.full((1 if results else 0, n + 1), 1 / (n + 1), dtype=torch.float64)
    return Explanation(tuple(sources), believed, history, results, labels, labels, "plain", "this study", shares)


def _traces(figure: Any, kind: str, axis: str | None = None) -> list[Any]:
    return [t for t in figure.data if t.type == kind and (axis is None or (t.xaxis or "x") == axis)]


def test_the_figure_has_every_weight_and_gain_by_verdict() -> None:
    """A point with its error bar for every source in both panels, at its row, in the looks of its verdict."""
    reasons = _reasons(7, 9)
    figure = plot_sources(reasons)
    sources = reasons.sources
    for axis, middle, half in (
        ("x", "weight", lambda s: s.weight_sd),
        ("x2", "gain", lambda s: s.interval[1] - s.gain),
    ):
        found = {}
        for trace in _traces(figure, "scatter", axis):
            for x, y, error, text in zip(trace.x, trace.y, trace.error_x.array, trace.customdata, strict=True):
                found[y] = (trace.name, x, error)
                assert "So it is." in text
                assert f"{10 + y} rows" in text
                assert "12%" in text  # of the latest prediction
        assert found == {i: (str(s.verdict), getattr(s, middle), half(s)) for i, s in enumerate(sources)}
    looks = {t.name: (t.marker.color, t.marker.symbol) for t in _traces(figure, "scatter")}
    assert list(looks) == [str(verdict) for verdict in Verdict]
    assert len({color for color, _ in looks.values()}) == len({symbol for _, symbol in looks.values()}) == 3
    assert [t.name for t in _traces(figure, "scatter") if t.showlegend] == list(looks)


def test_the_figure_has_the_beliefs_after_every_result() -> None:
    """They fill the panel."""
    reasons = _reasons(3, 6)
    bars = _traces(plot_sources(reasons), "bar")
    assert [bar.name for bar in bars] == ["like the past", "from scratch"]
    for k, bar in enumerate(bars):
        assert list(zip(bar.x, bar.y, strict=True)) == [(n, share[k]) for n, share in reasons.history]
    assert [sum(column) for column in zip(*(bar.y for bar in bars), strict=True)] == pytest.approx([1.0] * 7)


@pytest.mark.parametrize("n", [1, 3, 30])
def test_many_sources_have_room(n: int) -> None:
    """A row of its own for each, with its name, which is short, and neither markup nor a formula."""
    figure = plot_sources(_reasons(n, 5))
    axis = figure.layout.yaxis
    assert list(axis.tickvals) == list(range(n))
    assert axis.range == (max(n, 4) - 0.5, -0.5)
    assert axis.automargin
    assert axis.ticktext[0] == "&#36;x_1&#36; and &#36;y&#36; 0"
    assert n < 3 or axis.ticktext[1:3] == ("a study with a …in a picture 1", "svm &lt;b&gt; 2")
    top, bottom = axis.domain[1], axis.domain[0]
    inner = figure.layout.height - figure.layout.margin.t - figure.layout.margin.b
    assert (top - bottom) * inner / max(n, 4) == pytest.approx(22, rel=0.02)  # pixels
    title = "What became of the source after 5 results" if n == 1 else f"What became of the {n} sources after 5 results"
    assert figure.layout.title.text == title


@pytest.mark.parametrize("results", [0, 1])
def test_what_is_not_known_yet_is_said(results: int) -> None:
    """Without intervals there is a sentence in their place."""
    figure = plot_sources(_reasons(2, results))
    assert all(not trace.x for trace in _traces(figure, "scatter", "x2"))
    assert "not known yet: too few results" in [note.text for note in figure.layout.annotations]
    assert figure.layout.title.text.endswith("before the first result" if results == 0 else "after 1 result")
    json.loads(figure.to_json())


def test_without_plotly_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an extra."""
    original = builtins.__import__

    def without(name: str, *args: Any) -> Any:
        if name.split(".")[0] == "plotly":
            raise ImportError(name)
        return original(name, *args)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"needs plotly.*pip install 'headstart\[plotly\]'"):
        plot_sources(_reasons(1, 0))
