"""What a campaign with several results suggests, and what it says about each of them."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from tests.unit.campaign.several import HEADER, TOML, make_several, measured, some_rows

from headstart.campaign.campaign import open_campaign
from headstart.campaign.fitted import Fitted, Pooled, fit_campaign
from headstart.campaign.suggestions import next_experiments, outlook_of, outlooks_at, reference_point
from headstart.data.dataset import Dataset
from headstart.decide.aim import Aim
from headstart.decide.stopping import Advice
from headstart.draw.campaign import draw_campaign

SETTINGS = [(0.3, 0.3, "u"), (0.5, 0.4, "u"), (0.6, 0.1, "v"), (0.1, 0.8, "u"), (0.55, 0.0, "u"), (0.2, 0.1, "v")]
ONE_GOAL = TOML.replace('[objectives.cost]\ndirection = "minimize"\n', "").replace("\n[[rules]]", "\n[[rules]]")


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Fitted:
    """Two objectives and a limit, six results."""
    folder = make_several(tmp_path_factory.mktemp("several"), some_rows(SETTINGS) + "0.4,0.2,u,,,,\n")
    return fit_campaign(open_campaign(folder))


def test_every_outcome_has_its_own_sources_and_direction(several: Fitted) -> None:
    """The cost is known to one file alone, and everything is predicted as it is measured."""
    assert [len(own.alignment.datasets) for own in several.outcomes] == [2, 1, 2]
    assert [own.sign for own in several.outcomes] == [-1, 1, 1]
    rows = [{"a": a, "b": b, "s": s} for a, b, s in SETTINGS]
    for i, own in enumerate(several.outcomes):
        found = own.expected(rows)
        assert found is not None
        true = np.array([measured(*setting)[i] for setting in SETTINGS])
        assert np.abs(found.median - true).max() < 0.15 * np.ptp(true)


def test_known_errors_reach_the_models(several: Fitted) -> None:
    """Of the results that have a column of errors, here and in the past; squared, and none elsewhere."""
    y, cost, _ = several.outcomes
    assert y.target.error_var is not None
    assert torch.allclose(y.target.error_var, torch.full((6,), 0.25, dtype=torch.float64))
    old, older = (one.data.error_var for one in y.past)
    assert old is not None
    assert older is None
    assert cost.target.error_var is None


def test_suggestions_keep_the_rules_and_tell_of_every_outcome(several: Fitted) -> None:
    """With how probable it is that the limit holds, by which it was chosen."""
    batch = next_experiments(several, 3)
    for s in batch:
        assert several.campaign.settings.broken(s.values) is None
        assert list(s.expected) == ["y", "cost", "dirt"]
        assert s.expected["dirt"].low < s.expected["dirt"].median < s.expected["dirt"].high
        assert sum(share for _, share in s.shares) == pytest.approx(1.0)
    rows = [s.values for s in batch]
    X = several.space.encode(rows)
    assert [s.within for s in batch] == pytest.approx(Aim.of(several.known).log_within(X).exp().tolist(), abs=2e-3)
    far = outlooks_at(several, [{"a": 0.95, "b": 0.0, "s": "u"}, {"a": 0.1, "b": 0.1, "s": "u"}])
    assert far[0].within < 0.2 < 0.8 < far[1].within


def test_shares_are_those_of_all_outcomes_on_average(several: Fitted) -> None:
    """A file that lacks the cost has no share of it."""
    shares = outlooks_at(several, [{"a": 0.9, "b": 0.05, "s": "v"}])[0].shares
    assert [name for name, _ in shares] == ["old", "older", "this campaign"]
    assert sum(share for _, share in shares) == pytest.approx(1.0)
    assert all(share > 0 for _, share in shares)


def test_one_objective_with_a_limit_goes_where_both_are_good(tmp_path: Path) -> None:
    """dirt = 5 a² at most 2 leaves a ≤ 0.63; the best of the past within the limit is where a first point goes."""
    fitted = fit_campaign(open_campaign(make_several(tmp_path, toml=ONE_GOAL)))
    reference = reference_point(fitted)
    assert fitted.campaign.settings.broken(reference) is None
    assert outlooks_at(fitted, [reference])[0].within > 0.4
    (first,) = next_experiments(fitted, 1)
    assert first.within > 0.4
    assert first.values["s"] == "u"
    assert 0.3 < first.values["a"] < 0.75


def test_a_result_outside_the_limits_is_not_the_best(tmp_path: Path) -> None:
    """However good it is."""
    rows = some_rows([(0.7, 0.3, "u"), (0.5, 0.3, "u")])
    campaign = open_campaign(make_several(tmp_path, rows, ONE_GOAL))
    assert measured(0.7, 0.3, "u")[2] > 2
    assert campaign.best is not None
    assert campaign.best.number == 3
    none = open_campaign(make_several(tmp_path, some_rows([(0.7, 0.3, "u")]), ONE_GOAL))
    assert none.best is None


def test_whether_to_go_on_is_said(tmp_path: Path, several: Fitted) -> None:
    """Too early with six results; nothing before the first; and with hardly anything to gain it is not worth it."""
    found = outlook_of(several)
    assert found is not None
    assert found.advice is Advice.TOO_EARLY
    assert "too early to say with 6 of at least 8 results" in str(found)
    assert outlook_of(fit_campaign(open_campaign(make_several(tmp_path)))) is None


def test_candidates_are_suggested_as_they_stand(tmp_path: Path) -> None:
    """With their own columns; what is pending is not suggested again."""
    make_several(tmp_path, HEADER + "0.5,0.3,u,,,,\n", 'candidates = "shelf.csv"\n' + TOML)
    (tmp_path / "shelf.csv").write_text("well,a,b,s\nA1,0.5,0.3,u\nA2,0.45,0.3,u\nB1,0.1,0.9,v\n")
    batch = next_experiments(fit_campaign(open_campaign(tmp_path)), 2)
    assert {s.values["well"] for s in batch} == {"A2", "B1"}


def test_repeats_become_one_row_with_an_error_if_there_are_enough() -> None:
    """Four repeats show a scatter of their own; fewer are left to the model; what is known of a group is its rows'."""
    X = torch.tensor([[0.1], [0.1], [0.1], [0.5], [0.5], [0.5], [0.9]], dtype=torch.float64)
    y = torch.tensor([1.0, 2.0, 3.0, 5.0, 5.0, 8.0, 4.0], dtype=torch.float64)
    pooled = Pooled.of(Dataset(X, y))
    assert pooled.groups == ((0, 1, 2), (3, 4, 5), (6,))
    assert pooled.data.y.tolist() == [2.0, 6.0, 4.0]
    assert pooled.data.error_var is not None
    assert pooled.spread_out(np.array([False, True, False])).tolist() == [False] * 3 + [True] * 3 + [False]
    few = Pooled.of(Dataset(X[2:], y[2:]))
    assert few.data.n == 5
    assert few.data.error_var is None
    assert few.groups == tuple((i,) for i in range(5))


def test_pictures_of_several_outcomes(several: Fitted, tmp_path: Path, figures: list[Figure]) -> None:
    """A panel for each, the front of the two objectives, and slices of each."""
    paths = draw_campaign(several, tmp_path)
    names = [path.stem for path in paths]
    assert names == [
        "progress",
        "front",
        "predicted",
        "importance",
        "slices-y",
        "sources-y",
        "slices-cost",
        "sources-cost",
        "slices-dirt",
        "sources-dirt",
    ]
    progress, front = figures[:2]
    assert [axes.get_ylabel() for axes in progress.axes] == ["y [%]", "cost", "dirt"]
    (limit,) = (line for line in progress.axes[2].lines if line.get_label() == "dirt at most 2")
    assert set(np.ravel(limit.get_ydata())) == {2.0}
    (axes,) = front.axes
    (drawn,) = (line for line in axes.lines if line.get_label() == "on the front")
    expected = [(e.results["y"], e.results["cost"]) for e in several.campaign.front]
    assert [tuple(point) for point in np.array(drawn.get_data()).T] == expected
    (past,) = (line for line in axes.lines if line.get_label() == "old")
    (beyond,) = (line for line in axes.lines if line.get_label() == "past, beyond the limits")
    (task,) = (task for task in several.campaign.past if task.name == "old")
    y, cost, dirt = (task.objectives[name].y for name in ("y", "cost", "dirt"))
    for line, there in ((past, dirt <= 2), (beyond, dirt > 2)):
        assert {*zip(*line.get_data(), strict=True)} == {*zip(y[there], cost[there], strict=True)}  # type: ignore[arg-type]
    assert not any(line.get_label() == "older" for line in axes.lines)  # it lacks the cost


def test_nothing_known_of_a_limit_is_no_number(tmp_path: Path) -> None:
    """Neither the past nor the campaign has measured it."""
    toml = TOML.replace("[limits.dirt]", "[limits.smell]")
    fitted = fit_campaign(open_campaign(make_several(tmp_path, HEADER.replace("dirt", "smell"), toml)))
    (first,) = next_experiments(fitted, 1)
    assert math.isnan(first.expected["smell"].median)
    assert first.within == 0.5
