"""Which past campaigns can be trusted, and what becomes of them."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.problems import points
from tests.unit.campaign.campaigns import make, value
from torch import Tensor

from headstart import AUTO, SHGP, Dataset, InputError
from headstart.campaign.campaign import open_campaign
from headstart.campaign.check import align_files, auto_prior, explained, learn_past, unusual_verdicts
from headstart.campaign.fitted import fit_campaign
from headstart.campaign.init import CampaignPlan, look_at
from headstart.data.outcomes import Goal
from headstart.models.auto.explanation import Explanation, Verdict, check_past, explain

SOME = "x,s,y\n" + "".join(f"{x},u,{value(x, 'u')}\n" for x in (0.3, 0.5, 0.9, 0.1, 0.7))


def _valley(X: Tensor) -> Tensor:
    return -5 * torch.exp(-6 * (X - 0.4).square().sum(-1))


def _sources() -> list[Dataset]:
    X = [points(n, seed=i) for i, n in enumerate((20, 18, 20, 20, 8, 1))]
    noise = torch.randn(20, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return [
        Dataset(X[0], _valley(X[0]), "one"),
        Dataset(X[1], 3 * _valley(X[1]) + 40, "other"),
        Dataset(X[2], -_valley(X[2]), "reverse"),
        Dataset(X[3], noise, "noise"),
        Dataset(X[4], torch.full((8,), 2.0, dtype=torch.float64), "constant"),
        Dataset(X[5], _valley(X[5]), "single"),
    ]


@pytest.fixture(scope="module")
def found() -> Explanation:
    """Of six sources, three of which say something."""
    return check_past(AUTO.learn(_sources()))


def test_each_source_is_what_it_is(found: Explanation) -> None:
    """Noise, a constant and a single row say nothing and are ignored, each for its own reason; no result shows more."""
    assert found.names == ("one", "other", "reverse", "noise", "constant", "single")
    assert [v.rows for v in found.sources] == [20, 18, 20, 20, 8, 1]
    assert [v.unusable for v in found.sources] == [None, None, None, "noise", "constant", "too few rows"]
    assert [v.verdict for v in found.sources] == [Verdict.UNTESTED] * 3 + [Verdict.IGNORED] * 3
    reasons = [v.reason for v in found.sources]
    assert "does not predict itself" in reasons[3]
    assert reasons[4] == "All its results are the same: nothing shows what matters."
    assert reasons[5] == "It has 1 row: too few to see whether it predicts itself."
    assert all(v.informative > v.informative_error for v in found.sources if v.unusable is None)


def test_sources_that_show_the_same_agree_and_those_that_show_the_reverse_contradict(found: Explanation) -> None:
    """Whatever their units; those that say nothing do neither, and their rows of the matrix are empty."""
    assert found.agreement is not None
    assert found.related(0) == (("other",), ("reverse",))
    assert found.related(1) == (("one",), ("reverse",))
    assert found.related(2) == ((), ("one", "other"))
    for i in (3, 4, 5):
        assert found.related(i) == ((), ())
        assert np.isnan(found.agreement[i]).all()
    assert np.isnan(found.agreement[:, 4:]).all()
    assert np.isfinite(found.agreement[:3, :4]).all()


@pytest.mark.parametrize(
    ("r", "n", "related"), [(0.4, 400, True), (0.29, 400, False), (0.4, 16, False), (-0.6, 16, True)]
)
def test_a_correlation_counts_if_it_is_neither_weak_nor_chance(
    found: Explanation, r: float, n: int, related: bool
) -> None:
    """Beyond 0.3, and beyond 2/√n; the two directions are averaged."""
    sources = tuple(replace(source, rows=n) for source in found.sources[:2])
    pair = replace(found, sources=sources, agreement=np.array([[1.0, r + 0.05], [r - 0.05, 1.0]]))
    for i, other in enumerate(("other", "one")):
        assert pair.related(i) == (((other,), ()) if related and r > 0 else ((), (other,)) if related else ((), ()))


def test_files_are_read_as_a_campaign_would_begin_with_them(tmp_path: Path) -> None:
    """The direction hardly matters to what they say, for bad values are seen less closely; nothing is written."""
    make(tmp_path)
    before = sorted(tmp_path.iterdir())
    checks = []
    for maximize in (True, False):
        wanted = CampaignPlan((Goal("y", maximize=maximize),))
        looked = look_at([tmp_path / "a.csv", tmp_path / "b.csv"], tmp_path, wanted)
        checks.append(check_past(learn_past(align_files(looked)["y"])))
    assert sorted(tmp_path.iterdir()) == before
    up, down = checks
    assert up.names == ("a", "b")
    assert up.related(0) == (("b",), ())
    gains, others = ([source.informative for source in one.sources] for one in checks)
    assert gains == pytest.approx(others, rel=0.1)
    assert up.agreement is not None
    assert down.agreement is not None
    assert np.allclose(up.agreement, down.agreement, atol=0.05)


def test_an_explanation_has_verdicts_names_and_shares() -> None:
    """Shares are of the points that are asked about, none by default."""
    prior = AUTO.learn(_sources()[:2])
    X = points(3, seed=9)
    target = Dataset(X, _valley(X), "now")
    reasons = explain(prior, target, X[:2])
    assert (*reasons.names, reasons.target) == ("one", "other", "now")
    assert reasons.shares is not None
    assert torch.allclose(reasons.shares.sum(-1), torch.ones(2, dtype=torch.float64))
    assert "rests on: " in str(reasons).splitlines()[-1]
    assert explain(prior, target).shares is None


def test_only_auto_can_say_why() -> None:
    """Another model is told to be another model."""
    prior = SHGP.learn(_sources()[:1])
    with pytest.raises(
        InputError, match=r'Only AUTO weighs its sources .* but the model is Sequential\. Use model = "auto"'
    ):
        explain(prior)


def test_what_is_not_simply_used_is_unusual_verdicts() -> None:
    """Sources that are ignored, and those that count upside down."""
    prior = AUTO.learn([_sources()[i] for i in (0, 2, 3)])
    assert [s.name for s in unusual_verdicts(explain(prior))] == ["noise"]
    X = points(12, seed=9)
    alone = AUTO.learn(_sources()[2:3])
    (reverse,) = unusual_verdicts(explain(alone, Dataset(X, _valley(X))))
    assert reverse.verdict is Verdict.REVERSED
    assert reverse.weight < 0
    assert unusual_verdicts(None) == ()


def test_a_campaign_with_another_model_is_weighed_all_the_same(tmp_path: Path) -> None:
    """Its own model has no verdicts; AUTO's are to be had on demand. Without past files there is nothing to weigh."""
    make(tmp_path, current=SOME)
    fitted = fit_campaign(open_campaign(tmp_path)).first
    own = explained(fitted)
    assert own is not None
    assert auto_prior(fitted) is fitted.prior
    toml = tmp_path / "headstart.toml"
    text = toml.read_text()
    toml.write_text(text.replace("past =", 'model = "shgp"\npast ='))
    fitted = fit_campaign(open_campaign(tmp_path)).first
    assert explained(fitted) is None
    prior = auto_prior(fitted)
    assert prior is not None
    found = explain(prior, fitted.target)
    assert [s.verdict for s in found.sources] == [s.verdict for s in own.sources]
    assert math.isclose(found.sources[0].relation.same, own.sources[0].relation.same, rel_tol=1e-6)
    toml.write_text(text.replace('["a.csv", "b.csv"]', "[]"))
    assert auto_prior(fit_campaign(open_campaign(tmp_path)).first) is None
