"""Results against predictions, importance, and two parameters at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from tests.unit.campaign.campaigns import make, value
from tests.unit.campaign.several import make_several, some_rows

from headstart import InputError
from headstart.campaign.campaign import open_campaign
from headstart.campaign.fitted import Fitted, fit_campaign
from headstart.campaign.insight import importances
from headstart.campaign.suggestions import reference_point
from headstart.draw.insight import contour_figure, importance_figure, predicted_figure

SOME = "x,s,y\n" + "".join(f"{x},u,{value(x, 'u')}\n" for x in (0.3, 0.5, 0.9))


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Fitted:
    return fit_campaign(open_campaign(make(tmp_path_factory.mktemp("one"), current=SOME)))


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Fitted:
    rows = some_rows([(0.2, 0.2, "u"), (0.5, 0.3, "u"), (0.4, 0.4, "v")])
    return fit_campaign(open_campaign(make_several(tmp_path_factory.mktemp("several"), rows)))


def _texts(figure: Figure | None) -> list[str]:
    assert figure is not None
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def test_every_bar_of_importance_has_its_numbers(fitted: Fitted) -> None:
    """The parameter, its total and what it explains alone."""
    said = _texts(importance_figure(fitted))
    found = importances(fitted, fitted.first)
    assert said == [f"{one.parameter}: {one.total:.0%}, alone {min(one.alone, one.total):.0%}" for one in found]


def test_predicted_says_how_many_results_lie_in_their_range(fitted: Fitted) -> None:
    """And draws every result where it was measured."""
    figure = predicted_figure(fitted)
    assert figure is not None
    assert "of 3 results" in str(figure.get_suptitle())
    boxes = [np.ravel(box.lines[0].get_xdata()) for box in figure.axes[0].containers]  # type: ignore[attr-defined]
    assert sorted(np.concatenate(boxes).tolist()) == sorted(fitted.first.values.tolist())


def test_a_contour_is_the_median_at_its_places(several: Fitted) -> None:
    """The other parameter as at the point, and nothing where no setting keeps the rules: a + b ≤ 1."""
    point = reference_point(several)
    figure = contour_figure(several, several.first, ("s", "a"), point)
    (mesh,) = figure.axes[0].collections
    Z: np.ma.MaskedArray[Any, Any] = np.ma.asarray(mesh.get_array())
    expected = several.first.expected([{**point, "s": "u", "a": 0.0}])
    assert expected is not None
    assert float(Z[0, 0]) == pytest.approx(float(expected.median[0]))
    assert bool(np.ma.getmaskarray(Z)[-1, 1])  # forbidden: a > 0.8 with v
    numbers = contour_figure(several, several.first, ("a", "b"), point)
    path = numbers.axes[0].collections[0].get_paths()
    corner = np.concatenate([np.asarray(each.vertices).reshape(-1, 2) for each in path])
    assert float((corner[:, 0] + corner[:, 1]).max()) <= 1.0 + 1e-9


def test_a_contour_of_categories_has_numbers_in_its_cells(tmp_path: Path) -> None:
    """Beside the colour."""
    make(tmp_path, current=SOME)
    toml = tmp_path / "headstart.toml"
    toml.write_text(toml.read_text() + '\n[parameters.t]\nkind = "category"\nchoices = ["p", "q"]\nbefore = "p"\n')
    (tmp_path / "current.csv").write_text("x,s,t,y\n0.3,u,p,3\n0.6,v,q,5\n0.5,u,q,7\n")
    fitted = fit_campaign(open_campaign(tmp_path))
    figure = contour_figure(fitted, fitted.first, ("s", "t"), reference_point(fitted), narrow=True)
    assert len(_texts(figure)) == 4


@pytest.mark.parametrize("names", [("x", "x"), ("x", "nothing")])
def test_a_contour_needs_two_parameters(fitted: Fitted, names: tuple[str, str]) -> None:
    """Different ones, of the campaign."""
    with pytest.raises(InputError, match="two different parameters of x, s"):
        contour_figure(fitted, fitted.first, names, reference_point(fitted))


def test_where_nothing_is_known_nothing_is_drawn(tmp_path: Path) -> None:
    """Neither importance nor predictions."""
    make(tmp_path)
    toml = tmp_path / "headstart.toml"
    toml.write_text(toml.read_text().replace('["a.csv", "b.csv"]', "[]"))
    fitted = fit_campaign(open_campaign(tmp_path))
    assert importance_figure(fitted) is None
    assert predicted_figure(fitted) is None
