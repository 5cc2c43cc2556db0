"""Verdicts on sources, the weights behind them, and which sources agree."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from tests.problems import points, star_params
from torch import Tensor

from headstart import AUTO, GPBO, SHGP, STAR, Dataset, InputError
from headstart.data.descriptors import Descriptors
from headstart.data.ranges import Choices, FloatRange
from headstart.data.space import Space
from headstart.gp.evidence import GaussianEvidence
from headstart.gp.fit import fit
from headstart.gp.hyperparameters import GPParams
from headstart.gp.kernels import Kernel
from headstart.models.auto import scores
from headstart.models.auto.auto import Auto, AutoPrior
from headstart.models.auto.candidates import Candidate
from headstart.models.auto.explanation import (
    Explanation,
    SourceVerdict,
    Verdict,
    WhyUnusable,
    _judge,
    agreement,
    auto_only,
    explain,
    posterior_weights,
    says_little,
)
from headstart.models.auto.scores import refits_up_to


def _hill(X: Tensor) -> Tensor:
    return -torch.exp(-8 * (X[:, 0] - 0.6).square() - 3 * (X[:, 1] - 0.4).square())


def _noise(n: int, seed: int) -> Tensor:
    return torch.randn(n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def _prior() -> AutoPrior:
    """A source like the target, one upside down, one of noise, and one of another function."""
    X = [points(20, seed=seed) for seed in range(4)]
    other = torch.sin(9 * X[3][:, 1]) * torch.cos(7 * X[3][:, 0])
    prior = AUTO.learn(
        [
            Dataset(X[0], _hill(X[0]), "like it"),
            Dataset(X[1], 2 - 3 * _hill(X[1]), "upside down"),
            Dataset(X[2], _noise(20, 1), "noise"),
            Dataset(X[3], other, "another"),
        ]
    )
    assert isinstance(prior, AutoPrior)
    return prior


@pytest.fixture(scope="module")
def prior() -> AutoPrior:
    """Learnt once."""
    return _prior()


@pytest.fixture(scope="module")
def explained(prior: AutoPrior) -> Explanation:
    """After nine results."""
    X = points(9, seed=10)
    return explain(prior, Dataset(X, _hill(X)))


def _kernel(A: Tensor, B: Tensor, p: GPParams) -> Tensor:
    return p.outputscale * torch.exp(-0.5 * torch.cdist(A / p.lengthscale, B / p.lengthscale).square())


@pytest.mark.parametrize("balance", [0.0, 0.8, 1.0])
def test_weights_are_those_of_dense_conditioning(balance: float) -> None:
    """E[w | y] and var[w | y] are what conditioning the joint normal distribution of w and y on y gives."""
    levels = tuple(
        GPParams.of(lengthscale=[ell, 0.5], outputscale=size, noise_var=0.01, offset=offset)
        for ell, size, offset in ((0.4, 1.2, 0.3), (0.6, 0.7, -1.0), (0.8, 0.2, 0.5))
    )
    mean, var = torch.tensor([0.4, 0.2], dtype=torch.float64), torch.tensor([0.5, 0.9], dtype=torch.float64)
    sources = [Dataset(points(7, seed=i), _noise(7, i)) for i in range(2)]
    target = Dataset(points(5, seed=9), _noise(5, 9))
    posterior = STAR.using(kernel=Kernel.RBF).at(
        star_params(levels, mean, var, torch.zeros(2, dtype=torch.float64), balance), sources=sources, target=target
    )
    X, own = target.X, levels[-1]
    sd = var.sqrt()
    V = torch.diag(var) - balance / 2 * sd.unsqueeze(-1) * sd  # D (I − c e eᵀ) D with e = (1, 1)/√2
    M, K = [], _kernel(X, X, own) + own.noise_var * torch.eye(5, dtype=torch.float64)
    for source, p, m, v in zip(sources, levels, mean, V.diagonal(), strict=False):
        A = torch.linalg.inv(_kernel(source.X, source.X, p) + p.noise_var * torch.eye(7, dtype=torch.float64))
        k = _kernel(X, source.X, p)
        M.append(k @ A @ (source.y - p.offset))
        K = K + (m.square() + v) * (_kernel(X, X, p) - k @ A @ k.mT)
    shapes = torch.stack(M)  # (s, n)
    cov = torch.zeros(7, 7, dtype=torch.float64)  # of (w, y)
    cov[:2, :2] = V
    cov[:2, 2:] = V @ shapes
    cov[2:, :2] = cov[:2, 2:].mT
    cov[2:, 2:] = K + shapes.mT @ V @ shapes
    G = cov[:2, 2:] @ torch.linalg.inv(cov[2:, 2:])
    expected = mean + G @ (target.y - own.offset - mean @ shapes)
    left = cov[:2, :2] - G @ cov[2:, :2]
    weights, found = posterior_weights(posterior.predictor)
    assert torch.allclose(weights, expected, atol=1e-9)
    assert torch.allclose(found, left.diagonal().clamp_min(0).sqrt(), atol=1e-7)


def test_without_results_weights_are_the_priors(prior: AutoPrior) -> None:
    """And those of sources that are not let in are 0, for sure."""
    weights, sd = posterior_weights(prior.after(Dataset.empty(2), 0, 0).predictor)
    open_ = prior.gate.open
    assert open_.tolist() == [True, True, False, True]
    assert bool((prior.gate.trust[open_] > 0.9).all())
    assert bool((weights[open_] > 0).all())
    assert bool((sd[open_] > 0).all())
    assert weights[2] == 0
    assert sd[2] == 0


def test_agreement_is_a_correlation(prior: AutoPrior) -> None:
    """1 on the diagonal, high where two show the same, negative where one is upside down, in any units."""
    with torch.no_grad():
        found = agreement(prior.alone.layers, prior.sources)
        stretched = [Dataset(s.X, 5 * s.y + 100) for s in prior.sources]
        again = agreement(prior.alone.layers, stretched)
    assert found.diagonal().tolist() == [1, 1, 1, 1]
    assert found[0, 1] < -0.9
    assert found[1, 0] < -0.9
    assert bool((found[[0, 1], 3].abs() < 0.5).all())
    assert torch.allclose(found, again)


def test_a_mean_that_is_flat_agrees_with_nobody() -> None:
    """A constant source predicts a constant, and a constant cannot be predicted: 0 both ways."""
    X = points(12, seed=0)
    sources = [Dataset(X, _hill(X)), Dataset(X, torch.full((12,), 3.0, dtype=torch.float64))]
    prior = AUTO.learn(sources)
    assert isinstance(prior, AutoPrior)
    with torch.no_grad():
        assert agreement(prior.alone.layers, sources).tolist() == [[1, 0], [0, 1]]


def test_before_the_first_result_only_the_gate_speaks(prior: AutoPrior) -> None:
    """A source that predicts itself is used, not tested yet; noise is ignored. There is no gain and no interval."""
    explanation = explain(prior)
    assert explanation.n_observations == 0
    verdicts = {s.name: s for s in explanation.sources}
    assert verdicts["noise"].verdict is Verdict.IGNORED
    assert "does not predict itself" in verdicts["noise"].reason
    for name in ("like it", "upside down", "another"):
        s = verdicts[name]
        assert s.verdict is Verdict.USED
        assert "no result has tested it" in s.reason
        assert (s.gain, s.interval) == (0.0, None)
        assert s.history == ((0, s.weight),)


def test_results_tell_the_sources_apart(explained: Explanation) -> None:
    """Likeness has a positive weight, its reverse a negative one, and both predict better than the other source."""
    by_name = {s.name: s for s in explained.sources}
    assert by_name["like it"].weight > 0
    assert by_name["upside down"].weight < 0
    assert by_name["noise"].weight == 0
    assert by_name["like it"].verdict is Verdict.USED
    assert by_name["upside down"].verdict is Verdict.USED
    assert by_name["noise"].verdict is Verdict.IGNORED
    assert min(by_name["like it"].gain, by_name["upside down"].gain) > by_name["another"].gain


def test_a_verdict_follows_from_its_numbers(explained: Explanation, prior: AutoPrior) -> None:
    """Ignored: not trusted, or an interval below 0; down-weighted: not surely helpful, and half of its weight lost."""
    for s, let_in in zip(explained.sources, prior.gate.open.tolist(), strict=True):
        assert s.interval is not None
        low, high = s.interval
        assert low < s.gain < high
        assert s.gain == pytest.approx((low + high) / 2)
        lowered = abs(s.weight) < 0.5 * s.history[0][1]
        expected = (
            Verdict.IGNORED if not let_in or high < 0 else Verdict.REDUCED if low <= 0 and lowered else Verdict.USED
        )
        assert s.verdict is expected
        assert s.reason[0].isupper()
        assert s.reason.endswith(".")


@pytest.mark.parametrize(
    ("trust", "interval", "weight", "verdict", "reason"),
    [
        (0.0, (0.1, 0.5), 0.9, Verdict.IGNORED, "does not predict itself"),
        (0.4, None, 0.3, Verdict.REDUCED, "counts for 40%"),
        (1.0, None, 0.3, Verdict.USED, "no result has tested it yet"),
        (1.0, (-0.5, -0.1), 0.9, Verdict.IGNORED, "worse than knowing nothing"),
        (1.0, (0.1, 0.5), 0.1, Verdict.USED, "It helps to predict"),
        (1.0, (0.1, 0.5), -0.9, Verdict.USED, "Upside down"),
        (1.0, (-0.1, 0.5), 0.9, Verdict.USED, "not sure yet"),
        (1.0, (-0.1, 0.5), -0.9, Verdict.USED, "Upside down: where it is high the target is low; whether"),
        (1.0, (-0.1, 0.5), -0.3, Verdict.USED, "Whether it helps to predict the target is not sure yet"),
        (1.0, (-0.5, -0.1), -0.9, Verdict.IGNORED, "worse than knowing nothing"),
        (1.0, (-0.1, 0.5), 0.1, Verdict.REDUCED, "has not helped"),
        (1.0, (-0.5, 0.1), -0.1, Verdict.REDUCED, "has not helped"),
    ],
)
def test_a_verdict_waits_for_evidence(
    trust: float, interval: tuple[float, float] | None, weight: float, verdict: Verdict, reason: str
) -> None:
    """Help is claimed of an interval above 0, harm of one below; in between, whether half the weight (0.3) is left."""
    gain = 0.0 if interval is None else sum(interval) / 2
    numbers = (1.0, 0.1, None, gain, interval, weight, 0.2, ((0, 0.3),))
    found, told, figures = _judge(
        SourceVerdict("it", 20, Verdict.USED, "", "", *numbers), trust, "the target", little=False
    )
    assert found is verdict
    assert reason in told
    assert "nats per" in figures


def test_candidates_without_weights_can_be_explained() -> None:
    """A chain and a plain process: no source has a weight, and verdicts follow from what each adds."""
    model = Auto(candidates=(Candidate("past", SHGP, 0.7), Candidate("scratch", GPBO, 0.3)))
    X = points(20, seed=0)
    prior = model.learn([Dataset(X, _hill(X), "one"), Dataset(X, -_hill(X), "other")])
    assert isinstance(prior, AutoPrior)
    Z = points(6, seed=3)
    one, other = explain(prior, Dataset(Z, _hill(Z))).sources
    assert math.isnan(one.weight)
    assert min(one.gain, other.gain) > 0


def test_few_rows_are_called_few_and_not_noise() -> None:
    """Fewer than five rows per input and one more say little on their own, whatever they are."""
    X = points(14, seed=0)
    assert says_little(Dataset(X, _hill(X)))
    X = points(15, seed=0)
    assert not says_little(Dataset(X, _hill(X)))
    numbers = (0.1, 0.2, WhyUnusable.LITTLE, 0.0, None, 0.0, 0.1, ((0, 0.3),))
    ignored, told, _ = _judge(SourceVerdict("it", 12, Verdict.USED, "", "", *numbers), 0.0, "the target", little=True)
    assert ignored is Verdict.IGNORED
    assert "12 rows say little" in told
    assert "best point is tried" in told


@pytest.mark.parametrize("described", [(), ("polarity",), ("polarity", "donor number")])
def test_a_category_is_one_input_whatever_describes_it(described: tuple[str, ...]) -> None:
    """A number and two categories want twenty rows, with descriptors or without; an input that is not there none."""
    numbers = {"DMF": (0.4, 26.6), "MeCN": (0.5, 14.1), "NMP": (0.3, 27.3)}
    told = {c: dict(zip(described, own, strict=False)) for c, own in numbers.items()}
    space = Space.of(
        {"x": FloatRange(0.0, 1.0), "solvent": Choices(tuple(numbers)), "base": Choices(("KOH", "NaOH"))},
        descriptors={"solvent": Descriptors.of(told, "solvent")} if described else {},
    )
    rows = [{"x": i / 20, "solvent": [*numbers][i % 3], "base": ("KOH", "NaOH")[i % 2]} for i in range(20)]
    X, y = space.encode(rows), torch.arange(20.0, dtype=torch.float64)
    assert not says_little(Dataset(X, y, categories=space.categories))
    assert says_little(Dataset(X[:19], y[:19], categories=space.categories))
    solvent = [c for axis in space.axes if axis.name == "solvent" for c in range(*axis.columns.indices(space.d))]
    assert not says_little(Dataset(X[:15], y[:15], unseen=solvent, categories=space.categories))
    assert says_little(Dataset(X[:14], y[:14], unseen=solvent, categories=space.categories))


def test_the_history_begins_with_the_prior_and_ends_now(explained: Explanation, prior: AutoPrior) -> None:
    """Of the sources' weights and of the candidates, whose weights sum to 1."""
    assert [n for n, _ in explained.history] == list(range(10))
    assert tuple(explained.candidates) == prior.model.names == tuple(explained.meanings) == tuple(explained.labels)
    first, last = explained.history[0][1], explained.history[-1][1]
    assert first == pytest.approx(tuple(prior.believed.tolist()))
    assert last == pytest.approx(tuple(explained.candidates.values()))
    for _, believed in explained.history:
        assert sum(believed) == pytest.approx(1)
    for s in explained.sources:
        assert s.history[0][0] == 0
        assert s.history[-1] == (9, s.weight)


def test_an_explanation_can_be_read(explained: Explanation) -> None:
    """A line per source, and one for the candidates."""
    *lines, last = str(explained).splitlines()
    assert [line.split(":")[0] for line in lines] == ["like it", "upside down", "noise", "another"]
    assert last.startswith("believed after 9 observations: kin ")


def test_a_batch_of_problems_is_refused() -> None:
    """An explanation is of one problem."""
    X = torch.stack([points(6, seed=0), points(6, seed=1)])
    prior = AUTO.learn([Dataset(X, X.sum(-1))])
    assert isinstance(prior, AutoPrior)
    with pytest.raises(InputError, match="one problem"):
        explain(prior)


def test_nothing_is_fitted_twice_to_explain(prior: AutoPrior, monkeypatch: pytest.MonkeyPatch) -> None:
    """What AUTO fitted to the target is at hand: the sources are fitted on their own, all at once at every refit."""
    x = points(6, seed=9)
    target = Dataset(x, _hill(x))
    fresh = auto_only(prior.model.learn(prior.sources))
    fresh.condition()
    posterior = fresh.condition(target)
    fits: list[tuple[int, int]] = []

    def counted(evidence: GaussianEvidence, *args: Any, **options: Any) -> Any:
        fits.append((evidence.n_observations, evidence.n_problems))
        return fit(evidence, *args, **options)

    monkeypatch.setattr(scores, "fit", counted)
    cached = {kind: len(entries) for kind, entries in fresh._cache._kinds.items()}
    again, given = explain(fresh, target), explain(fresh, target, posterior=posterior)
    assert {kind: len(entries) for kind, entries in fresh._cache._kinds.items()} == cached
    assert fits == [(n, len(fresh.sources)) for n in refits_up_to(6)] * 2
    assert again == given
