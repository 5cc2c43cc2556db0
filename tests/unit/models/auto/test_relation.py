"""How a source is related to the target."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from tests.problems import points
from torch import Tensor

from headstart import AUTO, Dataset
from headstart.models.auto import relation
from headstart.models.auto.auto import AutoPrior
from headstart.models.auto.relation import NOISE, SHARES, SourceRelation, log_evidence, relations, shared


def _contrasts(
    y: NDArray[np.float64], mean: NDArray[np.float64], C: NDArray[np.float64], batch: NDArray[np.int_]
) -> float:
    """log p of y_i − y_first in every batch, which is that of y under a flat prior of the level of each."""
    first = [int(np.argmax(batch == own)) for own in batch]
    D = np.array([np.eye(len(y))[i] - np.eye(len(y))[k] for i, k in enumerate(first) if i != k])
    return float(multivariate_normal(D @ mean, D @ C @ D.T).logpdf(D @ y)) if len(D) else 0.0


def _dense(
    y: NDArray[np.float64],
    m: NDArray[np.float64],
    left: NDArray[np.float64],
    R: NDArray[np.float64],
    batch: NDArray[np.int_],
) -> float:
    """log p(y) of a source that is the same, by brute force."""
    n, sizes = len(y), np.linspace(-2.5, 2.5, 11)
    prior = -0.5 * sizes**2 - logsumexp(-0.5 * sizes**2)
    found = []
    for r in SHARES:
        for noise in NOISE:
            C = r**2 * left + (1 - r**2) * ((1 - noise) * R + noise * np.eye(n)) + 1e-8 * np.eye(n)
            for size, weight in zip(np.exp(sizes), prior, strict=True):
                mean, cov = size * r * m, size**2 * C
                cases = [math.log(0.8) + _contrasts(y, mean, cov, batch)]
                for i in range(n):
                    on = np.arange(n) != i
                    cases.append(math.log(0.2 / n * 0.1) + _contrasts(y[on], mean[on], cov[np.ix_(on, on)], batch[on]))
                found.append(weight + logsumexp(cases) - math.log(len(SHARES) * len(NOISE)))
    return float(logsumexp(found))


@pytest.mark.parametrize("batch", [(0, 0, 0, 0, 0), (0, 1, 0, 1, 1)])
def test_evidence_is_that_of_the_dense_formula(batch: tuple[int, ...]) -> None:
    """Of contrasts of results within batches, averaged over sizes, shares and noise, with one surprise or none."""
    random, n = np.random.default_rng(0), len(batch)
    y, m, A, B = random.normal(size=n), random.normal(size=n), *random.normal(size=(2, n, 9))
    left, R, own = 0.1 * A @ A.T / 9, np.corrcoef(B), np.array(batch)
    target = Dataset(torch.zeros(n, 1, dtype=torch.float64), torch.from_numpy(y), batch=own if any(batch) else None)
    given = [torch.from_numpy(part[None]) for part in (m[None], left, R)]
    found = log_evidence(target, *given)
    same, _, turned = found[0].tolist()
    assert same == pytest.approx(_dense(y, m, left, R, own), abs=1e-6)
    assert turned == pytest.approx(_dense(y, -m, left, R, own), abs=1e-6)
    both = log_evidence(target, torch.cat([given[0], -given[0]]), *given[1:])[0].tolist()
    assert both[0] == pytest.approx(both[2]) == pytest.approx(np.logaddexp(same, turned) - math.log(2))
    with pytest.MonkeyPatch.context() as patch:  # without its shape nothing is the same or upside down
        patch.setattr(relation, "SHARES", (0.0,))
        assert log_evidence(target, *given)[0].tolist() == pytest.approx([found[0, 1].item()] * 3)


def _function(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A smooth random function of two inputs at 200 points."""
    X, generator = points(200, seed=seed), torch.Generator().manual_seed(seed)
    waves = torch.randn(2, 64, generator=generator, dtype=torch.float64) / 0.35
    phases = 2 * math.pi * torch.rand(64, generator=generator, dtype=torch.float64)
    return X, torch.cos(X @ waves + phases) @ torch.randn(64, generator=generator, dtype=torch.float64) / 8


@pytest.mark.parametrize("seed", range(6))
def test_a_source_is_related_to_itself_and_its_negation_upside_down(seed: int) -> None:
    """After 15 results, in any units and with another level; adding a constant to results changes nothing."""
    X, y = _function(seed)
    sources = [Dataset(X[:40], y[:40]), Dataset(X[40:80], 7 - y[40:80])]
    prior = AUTO.learn(sources)
    assert isinstance(prior, AutoPrior)
    target = Dataset(X[100:115], y[100:115])
    same, turned = relations(prior.alone, prior.inward(target))
    assert same.same > 0.9
    assert turned.reversed > 0.9
    lifted = relations(prior.alone, Dataset(target.X, prior.inward(target).y + 3.0))
    assert np.allclose([same, turned], lifted, atol=1e-6)


@pytest.mark.slow
def test_another_function_is_hardly_ever_called_related() -> None:
    """Nor upside down: of 60 pairs of random functions at most 3, though one in ten was allowed to be."""
    wrong = 0
    for seed in range(60):
        (X, y), (Z, z) = _function(seed), _function(1000 + seed)
        prior = AUTO.learn([Dataset(X[:40], y[:40])])
        assert isinstance(prior, AutoPrior)
        (found,) = relations(prior.alone, prior.inward(Dataset(Z[:12], z[:12])))
        wrong += max(found.same, found.reversed) > 0.9
    assert wrong <= 3


def test_where_a_source_is_flat_nothing_is_learnt_of_it() -> None:
    """Results that are close to each other say nothing about a source that does not vary there."""
    X, y = _function(0)
    prior = AUTO.learn([Dataset(X[:40], y[:40])])
    assert isinstance(prior, AutoPrior)
    close = 0.5 + 1e-3 * torch.rand(8, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    noise = 0.02 * torch.randn(8, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    (found,) = relations(prior.alone, Dataset(close, noise))
    assert np.allclose(found, relation.PRIOR, atol=0.25)
    assert max(found) < 0.9


def test_sources_that_predict_each_other_share_what_is_found() -> None:
    """The clearest tells, turned if they are the reverse; never that it is unrelated, and nobody who is not trusted."""
    clear, vague, unrelated = (
        SourceRelation(0.98, 0.01, 0.01),
        SourceRelation(0.5, 0.3, 0.2),
        SourceRelation(0.02, 0.96, 0.02),
    )
    trust = torch.ones(2, dtype=torch.float64)

    def told(c: float, one: SourceRelation, other: SourceRelation, trust: Tensor = trust) -> SourceRelation:
        between = torch.tensor([[1.0, c + 0.05], [c - 0.05, 1.0]], dtype=torch.float64)
        second = shared([one, other], between, trust)[1]
        assert sum(second) == pytest.approx(1)
        return second

    assert told(0.8, clear, vague) == pytest.approx([0.97 * p + 0.03 * q for p, q in zip(clear, vague, strict=True)])
    assert told(-0.6, clear, vague).reversed == pytest.approx(0.92 * 0.98 + 0.08 * 0.2)
    assert told(0.4, clear, vague) == vague
    assert told(0.9, unrelated, vague) == vague
    assert told(0.8, clear, unrelated).same > 0.9
    assert told(0.8, clear, vague, torch.tensor([0.0, 1.0])) == vague
    assert told(0.8, clear, vague, torch.tensor([1.0, 0.0])) == vague


def test_without_results_the_relation_is_the_prior() -> None:
    """And one result alone has no contrast."""
    X, y = _function(0)
    prior = AUTO.learn([Dataset(X[:40], y[:40])])
    assert isinstance(prior, AutoPrior)
    for n in (0, 1):
        assert relations(prior.alone, Dataset(X[:n], y[:n])) == [relation.PRIOR]


def test_shifts_between_batches_say_nothing_of_a_relation() -> None:
    """Whatever the level of a batch; a row alone in its batch counts for nothing."""
    X, y = _function(0)
    prior = AUTO.learn([Dataset(X[:40], y[:40])])
    assert isinstance(prior, AutoPrior)
    batch = torch.arange(9).div(4, rounding_mode="floor")
    seen = Dataset(X[50:59], y[50:59], batch=batch)
    moved = Dataset(X[50:59], y[50:59] + torch.tensor([0.0, 0.4, 3.0])[batch].double(), batch=batch)
    (found,) = relations(prior.alone, seen)
    assert found.same > 0.5
    assert relations(prior.alone, moved)[0] == pytest.approx(found, abs=1e-9)
    assert relations(prior.alone, seen.head(8))[0] == pytest.approx(found, abs=1e-9)
    apart = Dataset(X[50:59], y[50:59], batch=torch.arange(9))
    assert relations(prior.alone, apart) == [relation.PRIOR]
