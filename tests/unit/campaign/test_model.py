"""What a campaign's model says, and in which direction."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.unit.campaign.campaigns import make, value

from headstart import InputError
from headstart.campaign.campaign import open_campaign
from headstart.campaign.fitted import Fitted, fit_campaign
from headstart.campaign.suggestions import next_experiments, noise_of, outlook_of, reference_point
from headstart.decide.stopping import Advice
from headstart.models.auto.shares import shares

SOME = "x,s,y\n" + "".join(f"{x},u,{value(x, 'u')}\n" for x in (0.3, 0.5, 0.9))


def _fitted(folder: Path, **options: str) -> Fitted:
    return fit_campaign(open_campaign(make(folder, **options)))


def test_the_first_suggestion_is_informed(tmp_path: Path) -> None:
    """Before any result it is near the optimum that both past campaigns show, 0.6 with u, where more is expected than
    they had on average, and about 10 may be.
    """
    fitted = _fitted(tmp_path)
    (first,) = next_experiments(fitted, 1)
    assert first.values["s"] == "u"
    assert 0.5 < first.values["x"] < 0.7
    expected = first.expected["y"]
    assert expected.median > np.mean([task.y.mean() for task in fitted.campaign.past]) + 1
    assert expected.low < expected.median < 10.5
    assert expected.high > 10
    assert first.within == 1.0
    assert reference_point(fitted)["s"] == "u"


def test_minimising_is_maximising_the_negative(tmp_path: Path) -> None:
    """The same points are suggested, and what is expected has the other sign."""
    (tmp_path / "up").mkdir()
    (tmp_path / "down").mkdir()
    up = next_experiments(_fitted(tmp_path / "up"), 2)
    down = next_experiments(_fitted(tmp_path / "down", direction="minimize"), 2)
    assert [s.values for s in up] == [s.values for s in down]
    high, low = ([s.expected["y"] for s in found] for found in (up, down))
    assert [r.median for r in high] == pytest.approx([-r.median for r in low])
    assert [r.low for r in high] == pytest.approx([-r.high for r in low])
    assert [r.high for r in high] == pytest.approx([-r.low for r in low])


def test_pending_rows_are_no_further_experiments(tmp_path: Path) -> None:
    """Where both settings are awaited there is nothing left to try."""
    make(tmp_path, current="s,y\nu,3\nv,1\nv,\n")
    toml = tmp_path / "headstart.toml"
    toml.write_text(re.sub(r"\[parameters\.x\].*?\n\n", "", toml.read_text(), flags=re.DOTALL))
    toml.write_text(toml.read_text().replace('["a.csv", "b.csv"]', "[]"))
    found = outlook_of(fit_campaign(open_campaign(tmp_path)))
    assert found is not None
    assert found.advice is not Advice.NOTHING_LEFT
    with (tmp_path / "current.csv").open("a") as file:
        file.write("u,\n")
    found = outlook_of(fit_campaign(open_campaign(tmp_path)))
    assert found is not None
    assert found.advice is Advice.NOTHING_LEFT


def test_pending_and_failed_rows_are_not_suggested_again(tmp_path: Path) -> None:
    """Nor is anything twice in a batch; and the values have few digits and lie in the ranges."""
    (first,) = next_experiments(_fitted(tmp_path), 1)
    x, s = first.values["x"], first.values["s"]
    for outcome in ("", "failed"):
        batch = next_experiments(_fitted(tmp_path, current=f"x,s,y\n{x},{s},{outcome}\n"), 3)
        rows = [dict(s.values) for s in batch]
        assert dict(first.values) not in rows
        assert len({tuple(row.values()) for row in rows}) == 3
        for row in rows:
            assert 0 <= row["x"] <= 1
            assert row["x"] == round(row["x"], 3)
            assert row["s"] in ("u", "v")


def test_predictions_follow_the_results(tmp_path: Path) -> None:
    """Where the campaign measured, the result is expected; the interval of a measurement is wider than that of f."""
    fitted = _fitted(tmp_path, current=SOME).first
    rows = [e.values for e in fitted.campaign.experiments]
    true, measured = fitted.expected(rows), fitted.expected(rows, measured=True)
    assert true is not None
    assert measured is not None
    assert true.median == pytest.approx([value(x, "u") for x in (0.3, 0.5, 0.9)], abs=0.3)
    assert np.all((measured.low < true.low) & (true.low < true.median) & (true.median < true.high))
    assert np.all(measured.high > true.high)
    assert np.all(measured.errors > 0)


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_19_of_20_results_lie_in_the_interval(tmp_path: Path, direction: str) -> None:
    """P(low < result < high) of the model itself is 95 %, in the user's direction."""
    fitted = _fitted(tmp_path, current=SOME, direction=direction).first
    row = {"x": 0.45, "s": "v"}
    X = fitted.alignment.space.encode([row])
    found = fitted.expected([row], measured=True)
    assert found is not None
    low, high, median = (torch.as_tensor(fitted.sign * end) for end in (found.low, found.high, found.median))
    inside = (fitted.posterior.cdf(X, high) - fitted.posterior.cdf(X, low)).abs()
    assert inside.item() == pytest.approx(0.95)
    assert fitted.posterior.cdf(X, median).item() == pytest.approx(0.5)
    with torch.no_grad():
        within = fitted.posterior.interval(X, 0.95, noise=False)
    assert float(within[1] - within[0]) < float((high - low).abs())


def test_shares_sum_to_one_and_only_those_with_data_have_one(tmp_path: Path) -> None:
    """Near own results the own campaign counts more than far from them."""
    start = _fitted(tmp_path).first
    X = start.alignment.space.encode([{"x": 0.3, "s": "u"}, {"x": 0.05, "s": "v"}])
    none = shares(start.prior, start.posterior, X)
    assert torch.allclose(none.sum(-1), torch.ones(2, dtype=torch.float64))
    assert none[:, -1].tolist() == [0, 0]
    assert bool((none[:, :2] > 0).all())
    later = _fitted(tmp_path, current=SOME).first
    some = shares(later.prior, later.posterior, X)
    assert torch.allclose(some.sum(-1), torch.ones(2, dtype=torch.float64))
    assert some[0, -1] > some[1, -1]


def test_a_campaign_without_past_files_stands_on_its_own(tmp_path: Path) -> None:
    """Its share is everything, and it can still suggest."""
    make(tmp_path, current=SOME)
    toml = tmp_path / "headstart.toml"
    toml.write_text(toml.read_text().replace('["a.csv", "b.csv"]', "[]"))
    (s,) = next_experiments(fit_campaign(open_campaign(tmp_path)), 1)
    assert s.shares == (("this campaign", 1.0),)
    assert s.expected["y"].low < s.expected["y"].median < s.expected["y"].high


@pytest.mark.parametrize("results", [0, 1])
def test_where_nothing_is_known_nothing_is_stated(tmp_path: Path, results: int) -> None:
    """Without past files fewer than two results show nothing: no number is made up."""
    make(tmp_path, current="".join(SOME.splitlines(keepends=True)[: 1 + results]))
    toml = tmp_path / "headstart.toml"
    toml.write_text(toml.read_text().replace('["a.csv", "b.csv"]', "[]"))
    fitted = fit_campaign(open_campaign(tmp_path))
    assert not fitted.knows
    assert fitted.first.expected([{"x": 0.5, "s": "u"}]) is None
    found = [s.expected["y"] for s in next_experiments(fitted, 2)]
    assert all(math.isnan(number) for r in found for number in (r.median, r.low, r.high))
    assert math.isnan(noise_of(fitted.first, reference_point(fitted))[0])


@pytest.mark.parametrize("past", ['["a.csv", "b.csv"]', "[]"], ids=["past", "no past"])
def test_the_reference_point_is_the_same_at_every_call(tmp_path: Path, past: str) -> None:
    """Nothing is drawn for it: before any result it is the most promising past row, or the middle of the space."""
    make(tmp_path)
    toml = tmp_path / "headstart.toml"
    toml.write_text(toml.read_text().replace('["a.csv", "b.csv"]', past))
    fitted = fit_campaign(open_campaign(tmp_path))
    before = torch.get_rng_state()
    points = [reference_point(fitted) for _ in range(3)]
    assert points[0] == points[1] == points[2]
    assert points[0] == ({"x": 0.5, "s": "u"} if past == "[]" else {"x": 0.542, "s": "u"})
    assert torch.equal(torch.get_rng_state(), before)


def test_the_noise_is_that_of_repeats_or_else_the_models(tmp_path: Path) -> None:
    """With the number of repeats it rests on."""
    fitted = _fitted(tmp_path, current="x,s,y\n0.3,u,4\n0.3,u,6\n")
    scatter, repeats = noise_of(fitted.first, reference_point(fitted))
    assert (scatter, repeats) == pytest.approx((2**0.5, 1))
    without = _fitted(tmp_path)
    point = reference_point(without)
    assert noise_of(without.first, point) == (without.first.scatter(point), 0)


def test_whether_results_scatter_is_judged_in_the_models_units(tmp_path: Path) -> None:
    """Smooth results are deterministic and scattered ones are not, whatever their unit."""
    for factor in (1e-6, 1e6):
        for scatter in (0.0, 1.5):
            rows = [(i / 40, factor * (value(i / 40, "u") + scatter * (-1) ** i)) for i in range(41)]
            make(tmp_path, current="x,s,y\n" + "".join(f"{x},u,{y}\n" for x, y in rows))
            toml = tmp_path / "headstart.toml"
            toml.write_text(toml.read_text().replace('["a.csv", "b.csv"]', "[]"))
            assert fit_campaign(open_campaign(tmp_path)).first.deterministic == (scatter == 0)


def test_an_unknown_model_is_named_with_file_and_nearest(tmp_path: Path) -> None:
    """Names are those of the family, in lower case."""
    make(tmp_path)
    toml = tmp_path / "headstart.toml"
    toml.write_text(f'model = "shpg"\n{toml.read_text()}')
    with pytest.raises(InputError, match=r"headstart\.toml: there is no model 'shpg'\. Did you mean 'shgp'\?"):
        fit_campaign(open_campaign(tmp_path))
