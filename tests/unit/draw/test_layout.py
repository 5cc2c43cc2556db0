"""Every picture has room: with many past campaigns, long names and several outcomes nothing is cut off or squeezed."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import BboxBase

from headstart.campaign.campaign import open_campaign
from headstart.campaign.check import auto_prior
from headstart.campaign.experiments import State
from headstart.campaign.fitted import Fitted, fit_campaign
from headstart.draw.campaign import campaign_figures
from headstart.draw.canvas import NARROW, fitting
from headstart.draw.looks import MANY, past_looks
from headstart.draw.sources import agreement_figure, plot_sources
from headstart.models.auto.explanation import check_past, explain

TEMPERATURE = "Temperature of the outer jacket during the second heating ramp [°C]"
SOLVENT = "Solvent for the washing step after crystallisation"
YIELD = "Isolated yield after chromatography and drying in vacuo for two days [%]"
COST = "Cost of all of the materials without work and overheads and so on [EUR]"
SOLVENTS = ("dimethylformamide", "acetonitrile", "tetrahydrofuran", "toluene")
ROWS = 5


def _campaign(folder: Path, n: int) -> Fitted:
    """A campaign after n others, with failed and pending experiments, and names that are too long for everything."""
    draw = random.Random(0)
    header = f"{TEMPERATURE},{SOLVENT},{YIELD},{COST}"

    def row(results: str = "") -> str:
        T, solvent = draw.randrange(40, 121, 5), draw.choice(SOLVENTS)
        measured = f"{round(max(0.0, 97 - abs(T - 80) - draw.random()), 1)},{10 + T / 10:g}"
        return f"{T},{solvent},{results or measured}"

    files = [f"{2000 + i}-a-campaign-with-a-rather-long-file-name-{i:02d}.csv" for i in range(n)]
    for name in files:
        (folder / name).write_text("\n".join([header, *(row() for _ in range(ROWS))]), encoding="utf-8")
    own = [row(), row(), row("failed,failed"), row(), row(","), row(",")]
    (folder / "current.csv").write_text("\n".join([header, *own, ""]), encoding="utf-8")
    (folder / "headstart.toml").write_text(
        f"past = {files!r}\n"
        f'[objectives."{YIELD}"]\ndirection = "maximize"\nunit = "%"\nlow = 0\nhigh = 100\n'
        f'[objectives."{COST}"]\ndirection = "minimize"\n'
        f'[parameters."{TEMPERATURE}"]\nkind = "int"\nlow = 40\nhigh = 120\nunit = "°C"\n'
        f'[parameters."{SOLVENT}"]\nkind = "category"\nchoices = {list(SOLVENTS)}\n',
        encoding="utf-8",
    )
    return fit_campaign(open_campaign(folder))


def _pictures(fitted: Fitted, *, narrow: bool = False) -> dict[str, Figure]:
    prior = auto_prior(fitted.first)
    assert prior is not None
    verdicts = plot_sources(explain(prior, fitted.first.target), of=YIELD, narrow=narrow)
    agreement = {} if narrow else {"agreement": agreement_figure(check_past(prior), of=YIELD)}
    return {**campaign_figures(fitted, narrow=narrow), "verdicts": verdicts, **agreement}


@pytest.fixture(scope="module")
def ten(tmp_path_factory: pytest.TempPathFactory) -> Fitted:
    """A campaign after ten others."""
    return _campaign(tmp_path_factory.mktemp("ten"), 10)


@pytest.fixture(scope="module")
def of_ten(ten: Fitted) -> dict[str, Figure]:
    """Its pictures."""
    return _pictures(ten)


@pytest.fixture(scope="module")
def narrow_ten(ten: Fitted) -> dict[str, Figure]:
    """Its pictures as a telephone shows them."""
    return _pictures(ten, narrow=True)


@pytest.fixture(scope="module")
def of_fifty(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Figure]:
    """The pictures of a campaign after fifty others."""
    return _pictures(_campaign(tmp_path_factory.mktemp("fifty"), 50))


@pytest.fixture(scope="module", params=["of_ten", "narrow_ten", pytest.param("of_fifty", marks=pytest.mark.slow)])
def pictures(request: pytest.FixtureRequest) -> dict[str, Figure]:
    """All pictures of a campaign, laid out; matplotlib warns, which fails, where it finds no room for the axes."""
    found: dict[str, Figure] = request.getfixturevalue(request.param)
    for figure in found.values():
        figure.draw_without_rendering()
    return found


def _inside(box: BboxBase | None, canvas: BboxBase) -> bool:
    assert box is not None
    return bool(
        box.x0 >= canvas.x0 - 1 and box.y0 >= canvas.y0 - 1 and box.x1 <= canvas.x1 + 1 and box.y1 <= canvas.y1 + 1
    )


def _shown(figure: Figure) -> list[Axes]:
    return [axes for axes in figure.axes if axes.axison]


def test_nothing_is_cut_off(pictures: dict[str, Figure]) -> None:
    """The title, the legend, and every panel with its labels and marks lie on the canvas."""
    for name, figure in pictures.items():
        title = figure._suptitle  # type: ignore[attr-defined]
        for what in (title, *figure.legends, *_shown(figure)):
            box = what.get_tightbbox() if isinstance(what, Axes) else what.get_window_extent()
            assert _inside(box, figure.bbox), f"{name}: {what}"


def test_nothing_lies_on_the_panels(pictures: dict[str, Figure]) -> None:
    """Neither the title nor the legend overlaps a panel, nor one panel's labels another panel."""
    for name, figure in pictures.items():
        title = figure._suptitle  # type: ignore[attr-defined]
        for axes in _shown(figure):
            for other in (title, *figure.legends):
                assert not other.get_window_extent().overlaps(axes.bbox), f"{name}: {other}"
        for one, other in itertools.permutations(_shown(figure), 2):
            label = one.yaxis.label.get_window_extent()
            assert not label.overlaps(other.bbox) or not one.get_ylabel(), f"{name}: {one.get_ylabel()!r}"


def test_the_panels_keep_their_size(pictures: dict[str, Figure]) -> None:
    """However many campaigns there are to name: at least 1.5 inches of height, and two fifths of the picture in all.

    On a telephone, where a legend has one column, it is a third.
    """
    for name, figure in pictures.items():
        heights = {round(axes.bbox.y0): axes.bbox.height for axes in _shown(figure)}
        assert min(heights.values()) / figure.dpi > 1.5, name
        assert sum(heights.values()) / figure.bbox.height > (0.33 if figure.get_figwidth() == NARROW else 0.4), name


def test_ten_campaigns_look_different_and_are_all_named(of_ten: dict[str, Figure]) -> None:
    """Each has a colour and marker of its own, and an entry in every legend that tells past campaigns apart."""
    looks = past_looks(10)
    assert len({(look.color, look.marker) for look in looks}) == 10
    assert len({(look.color, str(look.line)) for look in past_looks(MANY)}) == MANY
    for name, figure in of_ten.items():
        if name not in ("agreement", "progress", "predicted", "importance"):
            said = [text.get_text() for text in figure.legends[0].get_texts()]
            assert all(any(f"-file-name-{i:02d}" in told for told in said) for i in range(10)), name


@pytest.mark.slow
def test_fifty_campaigns_are_summed_up(of_fifty: dict[str, Figure]) -> None:
    """A legend says once what they are; the verdicts are told apart instead of the campaigns."""
    said = [text.get_text() for text in of_fifty["front"].legends[0].get_texts()]
    assert sum("50 past campaigns" in told for told in said) == 1
    assert not any("file-name" in told for told in said)
    verdicts = {text.get_text() for text in of_fifty["verdicts"].legends[0].get_texts()}
    assert verdicts & {"related", "not known yet", "ignored"}
    assert not any("file-name" in told for told in verdicts)


def test_what_is_drawn_stands_where_the_ticks_say(ten: Fitted, of_ten: dict[str, Figure]) -> None:
    """Failed experiments keep their place among the others, and the errors of weights stand under a tick, 'now'."""
    (failed,) = (line for line in of_ten["progress"].axes[0].lines if line.get_label() == "failed")
    (number,) = (e.number for e in ten.campaign.those(State.FAILED))
    axes = of_ten["progress"].axes[0]
    at = dict(zip([text.get_text() for text in axes.get_xticklabels()], axes.get_xticks(), strict=True))
    assert np.ravel(failed.get_xdata()).tolist() == [at[str(number)]] == [3]
    weights, related, _ = of_ten["verdicts"].axes
    labels = [text.get_text() for text in weights.get_xticklabels()]
    assert labels[-1] == "now"
    assert [float(tick) for tick in labels[:-1]] == [t for t in weights.get_xticks()[:-1] if t <= 3]
    bars = [box.lines[0].get_xdata()[0] for box in weights.containers]  # type: ignore[attr-defined]
    assert len(bars) == 10
    assert np.mean(bars) == pytest.approx(weights.get_xticks()[-1])
    assert [text.xy[1] for text in related.texts] == list(range(10))  # type: ignore[attr-defined]


def test_what_is_expected_lies_inside_the_bounds(of_ten: dict[str, Figure]) -> None:
    """No interval of a yield reaches below 0 or above 100 %, nor does what a past campaign says by itself."""
    (pending,) = (box for box in of_ten["progress"].axes[0].containers if "open rows" in str(box.get_label()))
    ends = np.concatenate([np.asarray(part)[:, 1] for part in pending.lines[2][0].get_segments()])  # type: ignore[attr-defined]
    assert ends.min() >= 0
    assert ends.max() <= 100
    name = next(name for name in of_ten if name.startswith("sources-Isolated"))
    for line in of_ten[name].axes[0].lines:
        y = np.ravel(line.get_ydata()).astype(float)
        assert ((y >= 0) & (y <= 100)).all()


@pytest.mark.parametrize("text", ["a few words that go on and on", "one_word_that_is_" * 8, "", "$x$ % _ {} \\ 60 °C"])
def test_a_text_fits_into_its_lines(text: str) -> None:
    """No line is longer than its room, nothing is lost where lines are enough, and what is cut off ends so: …"""
    whole = fitting(text, 1.2, size=10, lines=100)
    assert "".join(whole.split()) == "".join(text.split())
    cut = fitting(text, 1.2, size=10, lines=2)
    assert cut.count("\n") <= 1
    assert cut == whole or cut.endswith("…")
    figure = Figure(dpi=100)
    for line in (*whole.split("\n"), *cut.split("\n")):
        drawn = figure.text(0, 0, line, fontsize=10, parse_math=False)
        assert drawn.get_window_extent().width <= 1.2 * 100 + 1
