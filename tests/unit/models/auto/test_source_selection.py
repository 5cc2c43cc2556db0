"""Which of many sources are asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from tests.problems import points, quick
from torch import Tensor

from headstart import AUTO, Dataset, Kernel, StarParams
from headstart.decide.suggest import suggest
from headstart.gp import kernels
from headstart.models.auto import likeness as likening
from headstart.models.auto import source_selection as selecting
from headstart.models.auto.auto import AutoPrior
from headstart.models.auto.explanation import Verdict, auto_only, explain
from headstart.models.auto.source_selection import (
    max_sources_of,
    means_at,
    selected_sources,
    selection_size,
)
from headstart.models.chain.layer import Layer
from headstart.models.star.weights import StarBeliefs
from headstart.tuning import AUTO_TUNING

MOST = 8  # few enough to be quick to learn
TUNING = replace(AUTO_TUNING, max_sources=MOST, source_row_budget=0)
FROM = AUTO_TUNING.few_results
MANY = MOST + 8


def _wave(X: Tensor, phase: float) -> Tensor:
    return torch.sin(5 * X[:, 0] + phase) + X[:, 1]


@pytest.fixture(autouse=True, scope="module")
def _few_rows() -> Iterator[None]:
    """Sources of a few rows, which are quick to learn, count as large, and fewer of them are asked."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (selecting, likening):
            patch.setattr(module, "AUTO_TUNING", TUNING)
        yield


def _sources(n: int, sizes: tuple[int, ...] = (7, 9)) -> list[Dataset]:
    """Waves, their phases all around the circle."""
    X = [points(sizes[i % len(sizes)], seed=i) for i in range(n)]
    return [Dataset(x, _wave(x, 6.28 * i / n), name=f"s{i}") for i, x in enumerate(X)]


def _target(n: int) -> Dataset:
    X = points(n, seed=77)
    return Dataset(X, _wave(X, 1.0), name="today")


@pytest.fixture(scope="module")
def prior() -> AutoPrior:
    """AUTO with more sources than are asked."""
    return auto_only(quick(AUTO).learn(_sources(MANY)))


def test_up_to_so_many_all_are_asked(prior: AutoPrior) -> None:
    """Trusted or not, in their order, whatever the results say."""
    few = prior.alone.some(range(MOST))
    assert selected_sources(few) is few
    assert selected_sources(few, _target(20)) is few


def test_more_small_sources_are_asked_than_large_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as have so many rows together, within bounds."""
    monkeypatch.setattr(selecting, "AUTO_TUNING", AUTO_TUNING)
    tasks = [Dataset(points(n, seed=0), points(n, seed=1)[:, 0]) for n in (2, 25, 50, 64, 100, 900)]
    most, small = AUTO_TUNING.max_sources, AUTO_TUNING.max_small_sources
    assert [max_sources_of([task] * 3) for task in tasks] == [small, small, 64, 50, most, most]


def test_of_more_the_trusted_ones_are_asked(prior: AutoPrior) -> None:
    """As many as may be; one that is not trusted is none of them, and with few that are it is those."""
    trust = torch.ones(MANY, dtype=torch.float64)
    trust[:5] = 0.0
    kept = selected_sources(replace(prior.alone, trust=trust))
    assert len(kept.index) == MOST
    assert min(kept.index) >= 5
    assert kept.trust.tolist() == [1.0] * MOST
    trust[[1, 3, 5, 7]] = 1.0
    trust[[6, *range(8, MANY)]] = 0.0
    assert selected_sources(replace(prior.alone, trust=trust)).index == (1, 3, 5, 7)
    nobody = selected_sources(replace(prior.alone, trust=torch.zeros_like(trust)))
    assert nobody.index == (0,)
    assert nobody.trust.tolist() == [0.0]


def test_problems_of_a_batch_keep_each_their_own(prior: AutoPrior) -> None:
    """A source that another problem keeps has no weight in this one."""
    generator = torch.Generator().manual_seed(1)
    trust = (torch.rand(2, MANY, generator=generator, dtype=torch.float64) - 0.4).clamp_min(0.0)
    kept = selected_sources(replace(prior.alone, trust=trust))
    for i in range(2):
        alone = selected_sources(replace(prior.alone, trust=trust[i]))
        own = {place: float(value) for place, value in zip(kept.index, kept.trust[i], strict=True) if value > 0}
        assert own == dict(zip(alone.index, alone.trust.tolist(), strict=True))


def test_half_of_them_are_the_ones_most_like_the_target(prior: AutoPrior) -> None:
    """Those whose means at the target's inputs go up and down with its results, the right way round."""
    target = prior.inward(_target(24))
    kept = selected_sources(prior.alone, target)
    means = means_at(prior.alone.members, target.X)
    alike = torch.corrcoef(torch.cat([target.y.unsqueeze(0), means]))[0, 1:]
    drawn = set(selecting._drawn(prior.gate.trust, MOST // 2).nonzero().squeeze(-1).tolist())
    rest = [i for i in alike.argsort(descending=True).tolist() if i not in drawn and float(prior.gate.trust[i]) > 0]
    assert set(kept.index) == drawn | set(rest[: MOST - MOST // 2])
    left_out = [i for i in range(MANY) if i not in kept.index]
    assert left_out
    assert max(float(alike[i]) for i in left_out) <= min(float(alike[i]) for i in rest[: MOST - MOST // 2])


def test_sources_are_chosen_anew_at_refits_only(prior: AutoPrior) -> None:
    """From the eighth result on; in between the same ones are asked, by whoever comes."""
    assert [selection_size(n) for n in (0, FROM - 1, FROM, FROM + 1, 12, 200)] == [0, 0, FROM, FROM, 12, 192]
    at_first = selected_sources(prior.alone).index
    assert prior.selected(_target(FROM - 1)).index == at_first
    now = prior.selected(_target(FROM)).index
    assert now != at_first
    assert prior.selected(_target(FROM + 3)).index == now


def test_means_together_are_those_of_each(prior: AutoPrior, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sources of equal size in one product, in parts that fit: what each member says of its own mean."""
    X = points(11, seed=5)
    expected = torch.stack([member.at(X).mean for member in prior.alone.members])
    torch.testing.assert_close(means_at(prior.alone.members, X), expected, rtol=0, atol=1e-9)
    largest: list[int] = []
    original = kernels.squared_distance

    def watched(A: Tensor, B: Tensor, lengthscale: Tensor) -> Tensor:
        found = original(A, B, lengthscale)
        largest.append(found.numel())
        return found

    monkeypatch.setattr(kernels, "squared_distance", watched)
    monkeypatch.setattr(selecting, "_ELEMENTS", 300)
    torch.testing.assert_close(means_at(prior.alone.members, X), expected, rtol=0, atol=1e-9)
    assert len(largest) > 5
    assert max(largest) <= 300


def test_what_is_asked_stays_bounded(prior: AutoPrior) -> None:
    """No candidate has more members than may be asked, and no more rows of theirs are in memory."""
    for n in (0, 5, 10):
        posterior = prior.condition(_target(n))
        for member in posterior.predictor.members:  # type: ignore[union-attr]
            if isinstance(member, Layer) and isinstance(member.below, StarBeliefs):
                assert len(member.below.members) == MOST
                assert member.at.v is None or member.at.v.shape[-2] <= 9 * MOST


def test_sources_are_compared_with_as_many_as_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """How alike they are is tried on some, each from as many others: it does not grow with the square of all."""
    seen: list[int] = []
    original = likening._evidences

    def counted(alone: Any, *args: Any) -> Any:
        seen.append(len(alone.sources))
        return original(alone, *args)

    monkeypatch.setattr(likening, "_evidences", counted)
    quick(AUTO).learn(_sources(MOST + 3))
    monkeypatch.setattr(selecting, "AUTO_TUNING", replace(TUNING, source_row_budget=AUTO_TUNING.source_row_budget))
    quick(AUTO).learn(_sources(MOST + 3))
    assert seen == [*[MOST] * MOST, *[MOST + 3] * MOST]


def test_a_source_that_is_not_asked_has_no_weight_in_the_hyperparameters(prior: AutoPrior) -> None:
    """They are of all sources, and the model at them predicts what the posterior does."""
    target, X = _target(10), points(6, seed=3)
    posterior = prior.condition(target)
    params = posterior.hyperparameters
    star = params.candidates[0]  # type: ignore[union-attr]
    assert isinstance(star, StarParams)
    asked = prior.selected(prior.inward(target)).index
    assert star.weights.shape[-1] == MANY
    assert star.weights.nonzero().squeeze(-1).tolist() == sorted(asked)
    again = prior.model.at(params, sources=prior.sources, target=prior.inward(target))
    behind = type(posterior)(posterior.predictor, posterior._outcome, posterior.train_targets)
    for a, b in zip(behind.predict(X), again.predict(X), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-8)


def test_the_past_in_reverse_order_says_nearly_the_same() -> None:
    """Which sources are drawn depends on their places, and some of them stand for all, whichever they are."""
    sources, X, target = _sources(2 * MOST), points(40, seed=3), _target(6)
    one, other = (quick(AUTO).learn(past).condition(target) for past in (sources, sources[::-1]))
    (mean, var), (mean_2, _) = one.predict(X), other.predict(X)
    assert float(((mean - mean_2).square() / var).mean()) < 0.3


def test_every_source_has_a_verdict(prior: AutoPrior) -> None:
    """One that is not asked has neither a weight nor a share, and leaving it out changes nothing."""
    target = _target(10)
    asked = prior.selected(prior.inward(target)).index
    reasons = explain(prior, target, points(3, seed=2))
    assert len(reasons.sources) == MANY
    assert reasons.shares is not None
    assert reasons.shares.sum(-1).tolist() == pytest.approx([1.0] * 3)
    for i, source in enumerate(reasons.sources):
        assert (source.verdict is Verdict.IGNORED) == (float(prior.gate.trust[i]) == 0)
        if i not in asked:
            assert source.weight == source.gain == source.trials == 0
            assert reasons.shares[:, i].tolist() == [0.0] * 3
    assert len(reasons.to_frame()) == MANY
    assert len(explain(prior).sources) == MANY


def test_many_sources_of_another_kind_do_not_hide_the_few_that_matter() -> None:
    """Once there are results, sources like the target are asked, few as they are among all."""
    X = [points(9, seed=i) for i in range(4 * MOST)]
    like = {5, 10, 19, 25}
    sources = [
        Dataset(x, _wave(x, 1.0) if i in like else torch.cos(3 * i + 7 * x[:, 1]) - x[:, 0]) for i, x in enumerate(X)
    ]
    prior = auto_only(quick(AUTO).learn(sources))
    trusted = {i for i in like if float(prior.gate.trust[i]) > 0}
    assert trusted
    assert trusted <= set(prior.selected(prior.inward(_target(16))).index)
    point = suggest(prior.condition(_target(16)), seed=0)
    assert point.shape == (2,)


def test_problems_of_a_batch_are_what_they_are_alone() -> None:
    """Also with more sources than are asked, up to rounding."""
    X = torch.stack([torch.stack([points(7, seed=10 * b + i) for i in range(MANY)]) for b in range(2)], dim=1)
    y = torch.sin(5 * X[..., 0] + torch.linspace(0, 6, MANY, dtype=torch.float64)[:, None, None]) + X[..., 1]
    sources = [Dataset(a, b) for a, b in zip(X, y, strict=True)]
    T = torch.stack([points(9, seed=50 + b) for b in range(2)])
    target = Dataset(T, torch.sin(5 * T[..., 0]) + T[..., 1])
    Q = points(4, seed=1)
    mean, var = quick(AUTO).learn(sources).condition(target).predict(Q.expand(2, -1, -1))
    for b in range(2):
        alone = quick(AUTO).learn([replace(s, X=s.X[b], y=s.y[b]) for s in sources])
        own_mean, own_var = alone.condition(Dataset(T[b], target.y[b])).predict(Q)
        torch.testing.assert_close(mean[b], own_mean, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(var[b], own_var, rtol=1e-3, atol=1e-5)


def test_a_kernel_of_another_kind_is_asked_alike() -> None:
    """The means of many sources are those of the kernel that they were learnt with."""
    prior = auto_only(quick(AUTO).using(kernel=Kernel.RBF).learn(_sources(3)))
    X = points(5, seed=5)
    expected = torch.stack([member.at(X).mean for member in prior.alone.members])
    torch.testing.assert_close(means_at(prior.alone.members, X), expected, rtol=0, atol=1e-9)
