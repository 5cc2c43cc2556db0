"""What a prediction rests on."""

from __future__ import annotations

import pytest
import torch
from tests.direct import direct_shares
from tests.problems import points
from torch import Tensor

from headstart import AUTO, FAMILY, GPBO, SHGP, Dataset
from headstart.models.auto.auto import AutoPrior
from headstart.models.auto.explanation import auto_only, explain
from headstart.models.auto.shares import gained, shares


def _valley(X: Tensor) -> Tensor:
    return -5 * torch.exp(-10 * (X - 0.5).square().sum(-1))


def _task(n: int, seed: int, name: str = "") -> Dataset:
    X = points(n, seed=seed)
    return Dataset(X, _valley(X), name)


def _noise(n: int, seed: int) -> Dataset:
    X = points(n, seed=seed)
    return Dataset(X, torch.randn(n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64))


BOTTOM = torch.full((1, 2), 0.5, dtype=torch.float64)


def test_what_was_learnt_is_the_divergence_of_normal_distributions() -> None:
    """As torch computes it; and nothing where nothing changed."""
    mean, mean_0 = torch.tensor([[0.3, -1.0]]).double(), torch.tensor([[0.0, 2.0]]).double()
    var, var_0 = torch.tensor([[0.2, 1.5]]).double(), torch.tensor([[1.0, 0.7]]).double()
    normal = torch.distributions.Normal
    expected = torch.distributions.kl_divergence(normal(mean, var.sqrt()), normal(mean_0, var_0.sqrt()))
    assert torch.allclose(gained(mean, var, mean_0, var_0), expected)
    assert gained(mean, var, mean, var).tolist() == [[0, 0]]


@pytest.mark.parametrize("name", ["AUTO", "STAR", "SHGP", "MHGP", "WSGP", "RGPE"])
def test_shares_sum_to_one_and_are_no_less_than_nothing(name: str) -> None:
    """In every model, with and without data of the target."""
    model = FAMILY[name]
    prior = model.learn([_task(12, 0), _task(12, 1)])
    X = points(4, seed=5)
    for target in (_task(5, 9), Dataset.empty(2)):
        each = shares(prior, prior.condition(target), X)
        assert each.shape == (4, 3)
        assert torch.allclose(each.sum(-1), torch.ones(4, dtype=torch.float64))
        assert bool((each >= 0).all())
        assert target.n > 0 or each[:, -1].tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("name", ["AUTO", "STAR", "SCAML", "MWSGP"])
@pytest.mark.parametrize("results", [0, 1, 6])
def test_shares_are_those_of_models_built_for_every_case(name: str, results: int) -> None:
    """A star knows what it would say without a source's data, and need not be built without them."""
    X = points(9, seed=7)
    half = Dataset(X, X[:, 0].sin(), unseen=(1,))
    prior = FAMILY[name].learn([_task(12, 0), _noise(12, 1), half])
    X = points(4, seed=5)
    posterior = prior.condition(_task(results, 9))
    torch.testing.assert_close(shares(prior, posterior, X), direct_shares(prior, posterior, X), rtol=0, atol=1e-8)


def test_where_a_source_is_lowest_it_counts_before_the_first_result() -> None:
    """Though there AUTO is *less* certain with it than without, for it does not know the source's weight."""
    source = _task(25, 0)
    prior = AUTO.learn([source])
    posterior = prior.condition()
    far = Dataset(torch.full((1, 2), 1e3, dtype=torch.float64), torch.zeros(1, dtype=torch.float64))
    empty = Dataset.empty(2)
    (_, known), (_, unknown) = (
        AUTO.at(posterior.hyperparameters, sources=[s], target=empty).predict(BOTTOM) for s in (source, far)
    )
    assert known > unknown
    assert shares(prior, posterior, BOTTOM).tolist() == [[1, 0]]


def test_two_sources_that_say_the_same_share_alike() -> None:
    """Neither is the one that came first."""
    X = points(15, seed=0)
    prior = AUTO.learn([Dataset(X, _valley(X), "a"), Dataset(X.clone(), _valley(X), "b")])
    a, b, own = shares(prior, prior.condition(_task(4, 9)), BOTTOM)[0].tolist()
    assert a == pytest.approx(b, rel=0.35)  # the chain has an order
    assert min(a, b, own) > 0


def test_own_results_count_more_near_them() -> None:
    """And more of them count more."""
    prior = SHGP.learn([_task(20, 0)])
    X = torch.tensor([[0.1, 0.1], [0.9, 0.9]], dtype=torch.float64)
    near = Dataset(X[:1] + 0.02, _valley(X[:1] + 0.02))
    own = shares(prior, prior.condition(near), X)[:, -1]
    assert own[0] > own[1]


def test_noise_has_no_share() -> None:
    """A model whose gate is shut rests on the target alone, even before there is any."""
    prior = AUTO.learn([_noise(20, 5)])
    assert isinstance(prior, AutoPrior)
    assert not bool(prior.gate.open.any())
    for target in (Dataset.empty(2), _task(4, 9)):
        assert shares(prior, prior.condition(target), BOTTOM).tolist() == [[0, 1]]


def test_without_sources_all_is_the_targets_own() -> None:
    """Of a model from scratch, with sources at hand or not."""
    for sources in ([], [_task(8, 0)]):
        prior = GPBO.learn(sources)
        each = shares(prior, prior.condition(_task(4, 9)), BOTTOM)
        assert each[0, -1] == 1
        assert each.shape == (1, len(sources) + 1)


# ── as a table ────────────────────────────────────────────────────────────────────────────────────────────────────

LATER = Dataset(points(6, seed=9), _valley(points(6, seed=9)), "now")


def _named() -> AutoPrior:
    noise = _noise(20, 5)
    return auto_only(AUTO.learn([_task(12, 0, "like it"), Dataset(noise.X, noise.y, "noise")]))


def test_the_table_has_a_row_per_source_with_the_numbers_of_its_verdict() -> None:
    """And the share of the latest of the points; how far candidates are believed comes with it."""
    reasons = explain(_named(), LATER, points(2, seed=5))
    assert reasons.shares is not None
    frame = reasons.to_frame()
    assert frame["source"].tolist() == ["like it", "noise"]
    assert frame["rows"].tolist() == [12, 20]
    for row, source, share in zip(frame.itertuples(), reasons.sources, reasons.shares[-1], strict=False):
        assert (row.verdict, row.reason) == (source.verdict.value, source.explained)
        assert (row.weight, row.weight_sd, row.gain) == (source.weight, source.weight_sd, source.gain)
        assert (row.related, row.unrelated, row.upside_down) == source.relation
        assert row.trials == source.trials
        assert (row.informative, row.share) == (source.informative, float(share))
    assert frame.attrs == {"observations": 6, "believed": reasons.candidates}


@pytest.mark.parametrize("results", [0, 1, 2])
def test_what_is_not_known_yet_is_nan_and_said(results: int) -> None:
    """Without a point there is no share, before the second result nothing that a source could be left out of."""
    reasons = explain(_named(), LATER.head(results) if results else Dataset.empty(2), BOTTOM[:0])
    frame = reasons.to_frame()
    assert frame[["gain", "trials"]].isna().all(axis=None) == (results < 2)
    assert frame["verdict"].tolist() == ["not tested yet" if results < 2 else "not known yet", "ignored"]
    assert frame["share"].isna().all()
    assert frame[["weight", "weight_sd", "informative", "related", "upside_down"]].notna().all(axis=None)
    *_, believed, rests = str(reasons).splitlines()
    assert believed.startswith(f"believed after {results} observations: kin ")
    assert believed.endswith("yet)") == (results == 0)
    assert rests == "rests on: not known yet, for no point was suggested or asked about"


def test_what_is_known_is_not_said_to_be_unknown() -> None:
    """With six results and a point nothing is missing."""
    assert "not known" not in str(explain(_named(), LATER, BOTTOM))
