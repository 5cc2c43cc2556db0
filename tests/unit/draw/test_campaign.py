"""The pictures of a campaign."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from tests.unit.campaign.campaigns import make, value
from tests.unit.campaign.several import HEADER, make_several

from headstart import InputError
from headstart.campaign.campaign import open_campaign
from headstart.campaign.fitted import fit_campaign
from headstart.draw.campaign import draw_campaign
from headstart.draw.progress import progress_figure

SOME = "x,s,y\n" + "".join(f"{x},u,{value(x, 'u')}\n" for x in (0.3, 0.5, 0.9))


@pytest.mark.parametrize(
    "current",
    [pytest.param("x,s,y\n", marks=pytest.mark.slow, id="no results yet"), pytest.param(SOME, id="some results")],
)
def test_the_pictures_are_drawn(tmp_path: Path, current: str) -> None:
    """PNG files, equal for equal folders, in a folder that need not be there."""
    fitted = fit_campaign(open_campaign(make(tmp_path, current=current)))
    paths = draw_campaign(fitted, tmp_path / "new" / "plots")
    predicted = ["predicted.png"] if current == SOME else []
    names = ["progress.png", *predicted, "importance.png", "slices.png", "sources.png"]
    assert [path.name for path in paths] == names
    first = [path.read_bytes() for path in paths]
    assert all(content.startswith(b"\x89PNG") and len(content) > 3_000 for content in first)
    assert [path.read_bytes() for path in draw_campaign(fitted, tmp_path / "new" / "plots")] == first


def _line(axes: Axes, label: str) -> NDArray[np.float64]:
    """Where the line of that label runs: x and y."""
    (found,) = (line for line in axes.lines if line.get_label() == label)
    return np.array(found.get_data(), dtype=float)


@pytest.mark.parametrize("direction", ["maximize", pytest.param("minimize", marks=pytest.mark.slow)])
def test_progress_shows_results_the_best_and_what_is_expected(
    tmp_path: Path, figures: list[Figure], direction: str
) -> None:
    """The best in the user's direction, the past's too, and an open row where it is expected, with its number."""
    results = [4.0, 7.0, 5.0]
    rows = "".join(f"{x},u,{y}\n" for x, y in zip((0.3, 0.5, 0.9), results, strict=True))
    folder = make(tmp_path, current=f"x,s,y\n{rows}0.6,v,\n", direction=direction)
    fitted = fit_campaign(open_campaign(folder))
    draw_campaign(fitted, tmp_path / "plots")
    (axes,) = figures[0].axes
    assert _line(axes, "results").tolist() == [[1, 2, 3], results]
    best = [4.0, 7.0, 7.0] if direction == "maximize" else [4.0, 4.0, 4.0]
    assert _line(axes, f"best so far: {best[-1]:g}").tolist() == [[1, 2, 3], best]
    sign = 1 if direction == "maximize" else -1
    level, name = max((sign * float((sign * task.y).max()), task.name) for task in fitted.campaign.past)
    assert set(_line(axes, f"best of the past: {level:g} ({name})")[1]) == {level}
    expected = fitted.first.expected([{"x": 0.6, "s": "v"}], measured=True)
    assert expected is not None
    (pending,) = (box for box in axes.containers if box.get_label() == "open rows: expected, 95 %")
    line, _, (bars,) = pending.lines  # type: ignore[attr-defined]
    assert np.allclose(np.ravel(line.get_data()), [4, expected.median[0]])
    assert np.allclose(np.ravel(bars.get_segments()[0][:, 1]), [expected.low[0], expected.high[0]])
    assert [text.get_text() for text in axes.texts] == [f"{expected.median[0]:.3g}"]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["2", "3", "4", "5"]  # rows of the table
    assert ("maximised" if direction == "maximize" else "minimised") in str(figures[0].get_suptitle())


def test_with_a_target_the_line_of_the_best_comes_nearer_to_it(tmp_path: Path, figures: list[Figure]) -> None:
    """From either side; it never leaves the nearest result so far."""
    folder = make(tmp_path, current="x,s,y\n0.3,u,4\n0.5,u,7.5\n0.9,u,9\n0.4,u,6\n")
    toml = folder / "headstart.toml"
    toml.write_text(toml.read_text().replace('direction = "maximize"', "target = 6.5"))
    draw_campaign(fit_campaign(open_campaign(folder)), tmp_path / "plots")
    assert _line(figures[0].axes[0], "best so far: 6").tolist() == [[1, 2, 3, 4], [4, 7.5, 7.5, 6]]


def test_a_limit_that_was_not_measured_is_drawn_as_unknown(tmp_path: Path, figures: list[Figure]) -> None:
    """Such rows are neither good nor the best so far nor on the front, and have a look and words of their own."""
    current = "0.1,0.3,u,40,0.5,30,0.1\n0.6,0.3,u,99,0.5,1,n/a\n0.9,0.05,u,45,0.5,10,4\n"
    fitted = fit_campaign(open_campaign(make_several(tmp_path, HEADER + current)))
    draw_campaign(fitted, tmp_path / "plots")
    progress, front = figures[0].axes[0], figures[1].axes[0]
    assert _line(progress, "within the limits").tolist() == [[1], [40]]
    assert _line(progress, "limits not measured").tolist() == [[2], [99]]
    assert _line(progress, "beyond the limits").tolist() == [[3], [45]]
    assert set(_line(progress, "best y so far: 40")[1]) == {40}
    looks = {str(line.get_marker()) for line in progress.lines if "limits" in str(line.get_label())}
    assert len(looks) == 3
    assert _line(front, "on the front").tolist() == [[40], [30]]
    assert _line(front, "this campaign, limits not measured").tolist() == [[99], [1]]
    assert _line(front, "this campaign, beyond the limits").tolist() == [[45], [10]]


def test_slices_show_the_prediction_through_the_best_point(tmp_path: Path, figures: list[Figure]) -> None:
    """Along every parameter, the others as at the best point; and what each past campaign says of the same line."""
    fitted = fit_campaign(open_campaign(make(tmp_path, current=SOME)))
    draw_campaign(fitted, tmp_path / "plots")
    *_, slices, sources = figures
    along_x, along_s = slices.axes[:2]
    x, median = _line(along_x, "prediction: median, 95 %")
    expected = fitted.first.expected([{"x": float(at), "s": "u"} for at in x])
    assert expected is not None
    assert (x[0], x[-1]) == (0, 1)
    assert np.allclose(median, expected.median)
    assert _line(along_x, "this campaign").tolist() == [[0.3, 0.5, 0.9], [value(at, "u") for at in (0.3, 0.5, 0.9)]]
    assert _line(along_s, "this campaign")[0].tolist() == [-0.3, -0.3, -0.3]  # beside the prediction, at u
    assert [text.get_text() for text in along_s.get_xticklabels()] == ["u", "v"]
    assert set(_line(along_x, "best point")[0]) == {0.5}
    assert len(_line(along_x, "a")[0]) == 12
    # every line of a past campaign has a marker where it is highest
    ends = [np.ravel(line.get_xdata()) for line in sources.axes[0].lines]
    tops = np.concatenate([x for x in ends if len(x) == 1])
    assert np.abs(tops[1:] - [0.55, 0.65]).max() < 0.03


def test_before_the_first_result_progress_says_so(tmp_path: Path, figures: list[Figure]) -> None:
    """It has the level of the past and no line of its own."""
    draw_campaign(fit_campaign(open_campaign(make(tmp_path))), tmp_path / "plots")
    (axes,) = figures[0].axes
    assert [text.get_text() for text in axes.texts] == ["no results yet"]
    assert [line.get_label() for line in axes.lines] == ["best of the past: 9.992 (a)"]


def test_open_rows_have_room_for_their_numbers(tmp_path: Path) -> None:
    """Among many results they stand further apart; where even that is not enough there are no numbers."""
    rows = "x,s,y\n" + "".join(f"{(i % 19) / 19:.3f},u,{i % 7}\n" for i in range(40))
    fitted = fit_campaign(open_campaign(make(tmp_path, current=f"{rows}0.6,v,\n0.7,v,\n0.3,u,\n")))
    for narrow in (False, True):
        figure = progress_figure(fitted, narrow=narrow)
        figure.draw_without_rendering()
        (axes,) = figure.axes
        boxes = [text.get_window_extent() for text in axes.texts]
        assert len(boxes) == 3
        assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))
        ticks = [text.get_window_extent() for text in axes.get_xticklabels()]
        assert not any(one.overlaps(other) for one, other in itertools.pairwise(ticks))
    (tmp_path / "current.csv").write_text(rows + "".join(f"0.{i}5,v,\n" for i in range(1, 40)))
    (axes,) = progress_figure(fit_campaign(open_campaign(tmp_path)), narrow=True).axes
    assert len(axes.texts) == 0


def in_lots(folder: Path, lots: list[str], open_row: str = "") -> Path:
    """A campaign whose rows are of these lots."""
    rows = "".join(f"{(i % 9 + 1) / 10},u,{value((i % 9 + 1) / 10, 'u')},{lot}\n" for i, lot in enumerate(lots))
    make(folder, current=f"x,s,y,lot\n{rows}{open_row}")
    toml = folder / "headstart.toml"
    toml.write_text(toml.read_text().replace("past =", 'batch = "lot"\npast ='))
    return folder


def _shaded(axes: Axes) -> list[tuple[float, float]]:
    """From where to where bands are shaded."""
    boxes = [patch.get_extents().transformed(axes.transData.inverted()) for patch in axes.patches]
    return [(round(box.x0, 6), round(box.x1, 6)) for box in boxes]


def test_progress_shows_batches(tmp_path: Path) -> None:
    """Every second one is shaded, a line stands where one begins, and its name at the top; open rows belong to one."""
    folder = in_lots(tmp_path, ["A", "A", "B", "B", "B", "A"], "0.6,v,,C\n")
    (axes,) = progress_figure(fit_campaign(open_campaign(folder))).axes
    assert _shaded(axes)[0] == (2.5, 5.5)
    assert [text.get_text() for text in axes.texts if not text.get_text()[0].isdigit()] == ["A", "B", "A", "C"]
    assert [line.get_xdata()[0] for line in axes.lines if line.get_color() == "#C8C8C8"] == [2.5, 5.5, 6.5]  # type: ignore[index]
    assert axes.get_xlabel() == "row of the table; bands: lot"


def test_without_batches_progress_has_no_bands(tmp_path: Path) -> None:
    """Nothing of them is in the picture."""
    (axes,) = progress_figure(fit_campaign(open_campaign(make(tmp_path, current=SOME)))).axes
    assert not axes.patches
    assert not axes.texts
    assert axes.get_xlabel() == "row of the table"


def test_names_of_batches_never_overlap(tmp_path: Path) -> None:
    """Of many, and of long ones, those are shown that there is room for, on a telephone fewer."""
    lots = [
        f"lot {i // 2} of a very long name that nobody could read" if i < 8 else f"2026-03-{i // 2:02d}"
        for i in range(40)
    ]
    fitted = fit_campaign(open_campaign(in_lots(tmp_path, lots)))
    shown = []
    for narrow in (False, True):
        figure = progress_figure(fitted, narrow=narrow)
        figure.draw_without_rendering()
        boxes = [text.get_window_extent() for text in figure.axes[0].texts]
        assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))
        assert max(box.x1 for box in boxes) <= figure.bbox.width
        shown.append(len(boxes))
    assert shown[0] > shown[1] >= 2


def test_before_anything_is_known_only_progress_is_drawn(tmp_path: Path) -> None:
    """There is nothing to predict from."""
    make(tmp_path, current="x,s,y\n0.6,v,\n")
    toml = tmp_path / "headstart.toml"
    toml.write_text(toml.read_text().replace('["a.csv", "b.csv"]', "[]"))
    fitted = fit_campaign(open_campaign(tmp_path))
    assert [path.name for path in draw_campaign(fitted, tmp_path / "plots")] == ["progress.png"]


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    """Before anything is drawn."""
    fitted = fit_campaign(open_campaign(make(tmp_path)))
    (tmp_path / "plots").touch()
    with pytest.raises(InputError, match="plots: the folder cannot be made"):
        draw_campaign(fitted, tmp_path / "plots")
