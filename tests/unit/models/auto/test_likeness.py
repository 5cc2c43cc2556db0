"""How alike sources are: what is learnt from predicting each of them from the others."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from tests.problems import quick, tensor
from torch import Tensor

from headstart import AUTO, Dataset
from headstart.data.units import OutputMap
from headstart.gp.evidence import GaussianEvidence
from headstart.gp.fit import FitOptions, fit
from headstart.gp.hyperparameters import ThetaPrior
from headstart.gp.kernels import Kernel
from headstart.models.auto.auto import AutoPrior
from headstart.models.auto.likeness import Likeness, _expected, _pooled_without, _proportions, likeness
from headstart.models.learning import LearnContext
from headstart.models.star.independent import (
    IndependentSources,
    fit_independently,
    fit_pooled,
    pooled,
    rows_pooled,
)
from headstart.models.star.star import Star, StarPrior
from headstart.models.star.weights import Integrated, SourceFacts, star_evidence
from headstart.tuning import AUTO_TUNING

KIN, FREE = Integrated(mean=1.0, spread=1.0, balance=0.9), Integrated()
ALL = Star(weighting=KIN, pooled=True)
OWN, STRENGTH = AUTO_TUNING.own_shares, AUTO_TUNING.likeness_prior_sources
CANDIDATES, BELIEVED = (Star(weighting=KIN), Star(weighting=FREE), None), (0.6, 0.2, 0.2)


def points(seed: int, n: int = 20) -> Tensor:
    return torch.rand(n, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def bowl(X: Tensor) -> Tensor:
    return (X - 0.4).square().sum(-1) * 4


def wave(X: Tensor, phase: float) -> Tensor:
    return torch.sin(7 * X[:, 0] + phase) * torch.cos(6 * X[:, 1] - 2 * phase)


def learnt(sources: list[Dataset]) -> IndependentSources:
    return fit_independently(tuple(sources), quick(AUTO).using(output_map=OutputMap.NONE), 0, LearnContext())


def found(sources: list[Dataset], trust: list[float] | None = None) -> Likeness:
    alone = learnt(sources)
    return likeness(
        replace(alone, trust=tensor(trust or [1.0] * len(sources))),
        CANDIDATES,
        BELIEVED,
        Kernel.MATERN52,
        LearnContext(),
    )


def kin_evidence(alone: IndependentSources, target: Dataset) -> GaussianEvidence:
    facts = SourceFacts(alone.spread, alone.trust)
    terms = KIN.terms(alone.members, facts, alone.locate(target.X), target.batch_shape)
    return star_evidence(target, Kernel.MATERN52, terms)


ALIKE = [Dataset(X, bowl(X) + 0.1 * i) for i, X in enumerate(points(seed) for seed in range(5))]
DIFFERENT = [Dataset(X, wave(X, 1.3 * i)) for i, X in enumerate(points(seed) for seed in range(5))]


def test_sources_that_are_alike_make_kin_believed() -> None:
    """And sources that have nothing to do with each other make it doubted, with more of their own."""
    alike, different = found(ALIKE), found(DIFFERENT)
    assert alike.believed.sum().item() == pytest.approx(1)
    assert alike.believed[0].item() > 0.8
    assert different.believed[0].item() < 0.4
    assert different.believed[2].item() > 0.35  # .2 before any comparison
    assert alike.own.item() < different.own.item()
    assert OWN[0] <= alike.own.item() <= OWN[-1]


def pooled_belief(sources: list[Dataset]) -> float:
    """The belief in the pooled sources against kin, .5 before any comparison."""
    alone = learnt(sources)
    as_one = fit_pooled(alone, quick(AUTO), 0, LearnContext())
    candidates = (Star(weighting=KIN), ALL, None)
    return likeness(alone, candidates, (0.4, 0.4, 0.2), Kernel.MATERN52, LearnContext(), as_one).believed[1].item()


def test_small_sources_of_one_kind_are_better_predicted_from_all_rows() -> None:
    """Of six rows each the average knows little, their pooled rows much; of rows enough both know the same."""

    def task(n: int, seed: int) -> Dataset:
        X = torch.rand(n, 4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        return Dataset(X, torch.sin(3 * X).sum(-1) + 0.1 * seed)

    assert pooled_belief([task(6, i) for i in range(8)]) > 0.7


def test_the_pooled_rows_of_a_source_do_not_predict_it() -> None:
    """Without the rows of one, the pooled sources say what the others say, pooled at the same hyperparameters."""
    alone = learnt(DIFFERENT)
    as_one = fit_pooled(alone, quick(AUTO), 0, LearnContext())
    sizes = rows_pooled(DIFFERENT)
    for i in (0, 2, 4):
        others = pooled([source for j, source in enumerate(DIFFERENT) if j != i])
        layer = as_one.layers[0].with_observations(as_one.known.inward(others))
        expected = layer.predict_marginal(DIFFERENT[i].X)[0]
        without = _pooled_without(as_one, i, sizes)
        torch.testing.assert_close(without.at(DIFFERENT[i].X).mean, expected)


def test_one_source_leaves_the_priors() -> None:
    """There is nothing to predict it from."""
    alone = found(ALIKE[:1])
    assert alone.believed.tolist() == pytest.approx([0.6, 0.2, 0.2])
    assert alone.expected is None
    assert OWN[0] < alone.own.item() < OWN[-1]


def test_a_source_that_is_not_trusted_has_no_say() -> None:
    """With a stranger that is not trusted, what is learnt is what is learnt without it."""
    stranger = Dataset(points(9), wave(points(9), 0.5))
    with_it, without = found([*ALIKE, stranger], [1.0] * 5 + [0.0]), found(ALIKE)
    torch.testing.assert_close(with_it.believed, without.believed, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(with_it.own, without.own, rtol=1e-2, atol=0)


def test_proportions_are_a_dirichlet_posterior_s_mean() -> None:
    """(STRENGTH · prior + Σ responsibilities)/(STRENGTH + s): with clear evidence these are counts."""
    prior, one = tensor([0.6, 0.2, 0.2]), torch.ones(3, 1, dtype=torch.float64)
    clear = tensor([[0.0, -99.0, -99.0], [0.0, -99.0, -99.0], [-99.0, -99.0, 0.0]])
    expected = (STRENGTH * prior + tensor([2.0, 0.0, 1.0])) / (STRENGTH + 3)
    torch.testing.assert_close(_proportions(clear, one, prior), expected)
    torch.testing.assert_close(_proportions(0 * clear, one, prior), prior)


def test_what_is_expected_is_the_sources_mean_with_the_general_prior_as_one_of_them() -> None:
    """Centre (c + Σ θ)/(1 + s), variance (v + (c − centre)² + Σ (θ − centre)²)/(1 + s)."""
    evidence = kin_evidence(learnt(ALIKE), Dataset(points(1, 4), bowl(points(1, 4))))
    layout = evidence.layout
    c, v = layout.centre(), 1 / layout.precision()
    theta = torch.stack([c + 1, c - 0.5])
    got = _expected(theta, torch.ones(2, 1, dtype=torch.float64), layout)
    centre = (c + theta.sum(0)) / 3
    torch.testing.assert_close(got.centre[0], centre)
    apart = v + (c - centre).square() + (theta - centre).square().sum(0)
    torch.testing.assert_close(got.spread[0], (apart / 3).sqrt())


def test_what_is_expected_is_where_a_fit_without_data_ends() -> None:
    """And with a few data, and a very sure expectation, it ends there too; of each problem its own."""
    X = points(3, 5).expand(2, 5, 2)
    sources = [Dataset(points(i).expand(2, 20, 2), bowl(points(i)).expand(2, 20)) for i in range(2)]
    alone = learnt(sources)
    for n in (0, 5):
        target = Dataset(X[:, :n], bowl(X[:, :n]))
        evidence = kin_evidence(alone, target)
        p = evidence.layout.size
        centre = torch.stack([torch.full((p,), -0.5, dtype=torch.float64), torch.full((p,), -0.7, dtype=torch.float64)])
        sure = ThetaPrior(centre, torch.full((2, p), 1e-4, dtype=torch.float64))
        theta, _ = fit(evidence, FitOptions(), seed=0, task="it", batch_shape=torch.Size([2]), prior=sure)
        torch.testing.assert_close(theta, centre, rtol=0, atol=1e-3)


def test_auto_gives_kin_what_was_learnt() -> None:
    """Its own share, its expectations and the beliefs; the sign-free star has its usual ones."""
    prior = quick(AUTO).learn(ALIKE)
    assert isinstance(prior, AutoPrior)
    kin, star = prior.priors[0], prior.priors[1]
    assert prior.believed[0].item() > 0.6
    assert isinstance(kin, StarPrior)
    assert isinstance(star, StarPrior)
    assert kin.expected is not None
    assert star.expected is None
    assert kin.own is not None
    assert star.own is None


def test_a_balanced_star_of_equal_sources_is_sure_of_their_shape() -> None:
    """Deviations cancel out between sources that say the same: what is left unknown is 10 % of the size."""
    X = points(0)
    sources = [Dataset(X, bowl(X)) for _ in range(4)]
    spread = {}
    for name, weighting in (("balanced", KIN), ("free", replace(KIN, balance=0.0))):
        star = Star(weighting=replace(weighting, own=1e-9), output_map=OutputMap.NONE).learn(sources)
        assert isinstance(star, StarPrior)
        weights = weighting.unit(SourceFacts(star.alone.spread, star.alone.trust))
        z = star.alone.members[0].at(X).mean - star.alone.members[0].offset
        u = weights.balanced(weights.var.sqrt().unsqueeze(-1) * z.expand(4, -1))
        spread[name] = u.square().sum(0)
    torch.testing.assert_close(spread["balanced"], 0.1 * spread["free"])
