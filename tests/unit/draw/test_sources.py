"""The pictures of what became of the sources."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from headstart import InputError
from headstart.draw.sources import draw_agreement, draw_verdicts, plot_sources
from headstart.models.auto.explanation import Explanation, SourceVerdict, Verdict, WhyUnusable
from headstart.models.auto.relation import SourceRelation


def _verdict(i: int, results: int) -> SourceVerdict:
    """Of many kinds, with a long name and one that looks like a formula."""
    name = ("$x_1$", "a campaign with a name that nobody wants to read in a picture", "short")[i % 3]
    history = tuple((n, 0.2 + 0.1 * n * (-1) ** i) for n in range(results + 1))
    relation = SourceRelation(0.7 - 0.04 * i, 0.2 + 0.03 * i, 0.1 + 0.01 * i)
    kinds = tuple(Verdict)
    why = (None, None, WhyUnusable.NOISE, WhyUnusable.CONSTANT, WhyUnusable.TOO_FEW)[i % 5]
    numbers = (0.7 * i - 1, 0.2, why, relation, 0.1 * i, float(i - 1))
    weight = (history[-1][1], 0.2 * (i % 3), history)
    return SourceVerdict(f"{name} {i}", 12 + i, kinds[i % len(kinds)], "So it is.", *numbers, *weight)


def _explanation(n: int, results: int) -> Explanation:
    history = tuple((k, (0.5, 0.3 - 0.02 * k, 0.2 + 0.02 * k)) for k in range(results + 1))
    names = ("star", "chain", "plain")
    candidates, texts = dict(zip(names, history[-1][1], strict=True)), {name: f"It is {name}." for name in names}
    sources = tuple(_verdict(i, results) for i in range(n))
    return Explanation(sources, candidates, history, results, texts, texts, "plain", "this study")


def _check(n: int) -> Explanation:
    found = _explanation(n, 0)
    matrix = np.linspace(-1, 1, n * n).reshape(n, n)
    matrix[[source.unusable is not None for source in found.sources]] = np.nan
    np.fill_diagonal(matrix, 1.0)
    return replace(found, agreement=matrix)


def _is_png(path: Path) -> bool:
    content = path.read_bytes()
    return content.startswith(b"\x89PNG") and len(content) > 2_000


@pytest.mark.parametrize(
    "n",
    [
        pytest.param(1, marks=pytest.mark.slow, id="one file"),
        pytest.param(3, id="a few"),
        pytest.param(14, marks=pytest.mark.slow, id="too many for numbers in the matrix"),
    ],
)
def test_the_picture_of_past_files_is_drawn(tmp_path: Path, n: int) -> None:
    """Equal for equal files, in a folder that need not be there."""
    path = draw_agreement(_check(n), tmp_path / "new" / "plots")
    assert path == tmp_path / "new" / "plots" / "agreement.png"
    assert _is_png(path)
    before = path.read_bytes()
    assert draw_agreement(_check(n), path.parent).read_bytes() == before


@pytest.mark.parametrize(
    ("n", "results"), [(1, 0), *(pytest.param(*c, marks=pytest.mark.slow) for c in [(3, 1), (8, 9)])]
)
def test_the_picture_of_verdicts_is_drawn(tmp_path: Path, n: int, results: int) -> None:
    """Before the first result, too, and with more sources than there are colours."""
    path = draw_verdicts(_explanation(n, results), tmp_path)
    assert path == tmp_path / "verdicts.png"
    assert _is_png(path)


def test_the_picture_of_past_files_shows_gains_and_agreement(tmp_path: Path, figures: list[Figure]) -> None:
    """A bar as long as the gain where it is known, in words why it is not, and the matrix with its numbers."""
    check = _check(5)
    draw_agreement(check, tmp_path)
    bars, matrix, _ = figures[0].axes
    assert check.agreement is not None
    known = [i for i, source in enumerate(check.sources) if source.unusable in (None, WhyUnusable.NOISE)]
    widths = {round(bar.get_y() + bar.get_height() / 2): bar.get_width() for bar in bars.patches}  # type: ignore[attr-defined]
    assert widths == pytest.approx({i: check.sources[i].informative for i in known})
    assert [text.get_text().strip() for text in bars.texts] == [s.unusable or "" for s in check.sources]
    drawn = np.ma.filled(matrix.images[0].get_array(), np.nan)  # type: ignore[arg-type]
    assert np.array_equal(drawn, check.agreement, equal_nan=True)
    numbers = [text.get_text() for text in matrix.texts]
    assert numbers[:3] == ["1", f"{check.agreement[0, 1]:+.2f}", f"{check.agreement[0, 2]:+.2f}"]
    assert numbers.count("–") == np.isnan(check.agreement).sum()


def test_the_picture_of_verdicts_shows_weights_relations_and_beliefs() -> None:
    """Every source's weights over the results, how it is related and its verdict, and beliefs that fill the panel."""
    explanation = _explanation(3, 6)
    figure = plot_sources(explanation)
    weights, related, believed = figure.axes
    bars = np.array([(bar.get_x(), bar.get_width()) for bar in related.patches]).reshape(3, 3, 2)  # type: ignore[attr-defined]
    for i, source in enumerate(explanation.sources):
        assert np.array_equal(weights.lines[i].get_xydata(), source.history)
        assert bars[:, i, 1] == pytest.approx(source.relation)
        assert bars[:, i, 0] == pytest.approx([0, source.relation.same, 1 - source.relation.reversed])
        assert related.texts[i].get_text() == str(source.verdict)
    heights = np.array([bar.get_height() for bar in believed.patches]).reshape(3, 7)  # type: ignore[attr-defined]
    assert np.allclose(heights.T, [shares for _, shares in explanation.history])
    assert "after 6 results" in str(figure.get_suptitle())
    assert weights.get_xlabel() == believed.get_xlabel() == "results of this study"


def test_the_picture_of_verdicts_shows_how_sure_a_weight_is() -> None:
    """An error bar of one standard deviation at every weight."""
    explanation = _explanation(3, 2)
    weights = plot_sources(explanation).axes[0]
    for source, bar in zip(explanation.sources, weights.containers, strict=True):
        ((_, low), (_, high)) = bar[2][0].get_segments()[0]
        assert (low, high) == pytest.approx((source.weight - source.weight_sd, source.weight + source.weight_sd))


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    """With the name of the folder."""
    (tmp_path / "plots").touch()
    with pytest.raises(InputError, match="plots: the folder cannot be made"):
        draw_verdicts(_explanation(1, 0), tmp_path / "plots")
    with pytest.raises(InputError, match="plots: the folder cannot be made"):
        draw_agreement(_check(1), tmp_path / "plots")
