"""Verdicts on sources, the weights behind them, and which sources agree."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from tests.problems import points, star_params
from torch import Tensor

from headstart import AUTO, GPBO, SHGP, STAR, Dataset, InputError
from headstart.data.descriptors import Descriptors
from headstart.data.ranges import Choices, FloatRange
from headstart.data.space import Space
from headstart.gp.hyperparameters import GPParams
from headstart.gp.kernels import Kernel
from headstart.gp.lbfgs import Minimization
from headstart.models.auto.auto import Auto, AutoPrior
from headstart.models.auto.candidates import Candidate
from headstart.models.auto.explanation import (
    Explanation,
    SourceVerdict,
    Verdict,
    WhyUnusable,
    _reason,
    auto_only,
    explain,
    judged,
    posterior_weights,
    says_little,
)
from headstart.models.auto.relation import SourceRelation, agreement_of


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
    found = agreement_of(prior.alone)
    stretched = tuple(Dataset(s.X, 5 * s.y + 100) for s in prior.sources)
    again = agreement_of(replace(prior.alone, sources=stretched))
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
    assert agreement_of(prior.alone).tolist() == [[1, 0], [0, 1]]


def test_before_the_first_result_only_the_gate_speaks(prior: AutoPrior) -> None:
    """Noise is ignored; of a source that predicts itself nothing else is known yet, and nothing was left out."""
    explanation = explain(prior)
    assert explanation.n_observations == 0
    verdicts = {s.name: s for s in explanation.sources}
    assert verdicts["noise"].verdict is Verdict.IGNORED
    assert "does not predict itself" in verdicts["noise"].reason
    for name in ("like it", "upside down", "another"):
        s = verdicts[name]
        assert s.verdict is Verdict.UNTESTED
        assert s.explained == "It predicts itself well."
        assert math.isnan(s.gain)
        assert math.isnan(s.trials)
        assert s.history == ((0, s.weight),)


def test_results_tell_the_sources_apart(explained: Explanation, prior: AutoPrior) -> None:
    """Each is what it is, whatever its units; weights go the same way, and leaving out what is related costs."""
    by_name = {s.name: s for s in explained.sources}
    assert {name: s.verdict for name, s in by_name.items()} == {
        "like it": Verdict.RELATED,
        "upside down": Verdict.REVERSED,
        "noise": Verdict.IGNORED,
        "another": Verdict.UNKNOWN,
    }
    assert by_name["another"].relation.unrelated > 0.5
    assert by_name["like it"].weight > 0
    assert by_name["upside down"].weight < 0
    assert by_name["noise"].weight == 0
    assert by_name["like it"].gain > 0 > by_name["another"].gain
    assert explained.named(Verdict.REVERSED) == ("upside down",)
    assert "is the direction right? upside down" in str(explained)
    X = points(9, seed=10)
    assert [verdict for verdict, _ in judged(prior, Dataset(X, _hill(X)))] == [s.verdict for s in explained.sources]


def test_one_surprise_does_not_turn_a_verdict(prior: AutoPrior) -> None:
    """Any one of ten results may be far off, either way: what is related is not called anything else, nor unknown."""
    X = points(10, seed=10)
    y = _hill(X)
    for i in range(len(y)):
        for by in (-5.0, 5.0):
            spoilt = y.clone()
            spoilt[i] += by * float(y.std())
            like, turned, _, other = (verdict for verdict, _ in judged(prior, Dataset(X, spoilt)))
            assert like in (Verdict.RELATED, Verdict.UNKNOWN)
            assert turned in (Verdict.REVERSED, Verdict.UNKNOWN)
            assert other in (Verdict.UNRELATED, Verdict.UNKNOWN)


@pytest.mark.parametrize("n", [2, 7])
def test_equal_results_show_nothing(prior: AutoPrior, n: int) -> None:
    """Seven trials on a plateau are no contrast: no source is called anything for them."""
    told = explain(prior, Dataset(points(n, seed=10), torch.full((n,), 3.0, dtype=torch.float64)))
    before = judged(prior, Dataset.empty(2))
    assert [s.relation for s in told.sources] == [relation for _, relation in before]
    assert {s.verdict for s in told.sources} == {Verdict.UNKNOWN, Verdict.IGNORED}


def _found(verdict: Verdict, relation: SourceRelation, gain: float, trials: float, rows: int = 20) -> SourceVerdict:
    unusable = WhyUnusable.LITTLE if verdict is Verdict.IGNORED else None
    return SourceVerdict("it", rows, verdict, "", 1.0, 0.1, unusable, relation, gain, trials, 0.3, 0.2, ((0, 0.3),))


@pytest.mark.parametrize(
    ("verdict", "relation", "reason"),
    [
        (Verdict.RELATED, SourceRelation(0.97, 0.02, 0.01), "It shows what the target shows (97 % sure)"),
        (Verdict.RELATED, SourceRelation(0.9999, 0.0, 0.0001), "(more than 99 % sure)"),
        (Verdict.REVERSED, SourceRelation(0.01, 0.02, 0.97), "Where it is high the target is low (97 % sure)"),
        (Verdict.UNRELATED, SourceRelation(0.01, 0.97, 0.02), "not found in the target (97 % sure)"),
        (Verdict.UNKNOWN, SourceRelation(0.5, 0.3, 0.2), "it is 50% related, 30% unrelated, 20% upside down"),
    ],
)
def test_a_sentence_says_what_its_numbers_say(verdict: Verdict, relation: SourceRelation, reason: str) -> None:
    """The probability of the verdict, and whether it would have been worse or better without, later or sooner."""
    for gain, come in ((0.2, "0.2 worse"), (-0.2, "0.2 better"), (0.0, "predicted as well")):
        for trials, when in ((2.0, "2 results later"), (-1.0, "1 result sooner"), (0.0, "no later")):
            found = _found(verdict, relation, gain, trials)
            told = _reason(found, 1.0, False, "the target", 9)
            assert reason in told
            assert ("so do others" in told) == (verdict is Verdict.RELATED and gain <= 0 and trials <= 0)
            if verdict is Verdict.UNRELATED:
                assert ("may be chance" if gain > 0 or trials > 0 else "): drop it.") in told
            if gain or trials:
                assert come in found.without
                assert when in found.without
            else:
                assert found.without == "Left out, nothing would have changed."


def test_without_a_result_a_source_counts_as_far_as_it_predicts_itself() -> None:
    """And a small one for less."""
    found = _found(Verdict.UNTESTED, SourceRelation(0.5, 0.3, 0.2), math.nan, math.nan)
    assert _reason(found, 0.4, False, "the target", 0) == "It counts for 40%, for it hardly predicts itself."
    assert "20 rows say little on their own" in _reason(found, 0.4, True, "the target", 1)
    assert "It predicts itself well" in _reason(found, 1.0, False, "the target", 1)


def test_candidates_without_weights_can_be_explained() -> None:
    """A chain and a plain process: no source has a weight, and none can be left out; verdicts need neither."""
    model = Auto(candidates=(Candidate("past", SHGP, 0.7), Candidate("scratch", GPBO, 0.3)))
    X = points(20, seed=0)
    prior = model.learn([Dataset(X, _hill(X), "one"), Dataset(X, -_hill(X), "other")])
    assert isinstance(prior, AutoPrior)
    Z = points(9, seed=3)
    one, other = explain(prior, Dataset(Z, _hill(Z))).sources
    assert math.isnan(one.weight)
    assert math.isnan(one.gain)
    assert (one.verdict, other.verdict) == (Verdict.RELATED, Verdict.REVERSED)


def test_few_rows_are_called_few_and_not_noise() -> None:
    """Fewer than five rows per input and one more say little on their own, whatever they are."""
    X = points(14, seed=0)
    assert says_little(Dataset(X, _hill(X)))
    X = points(15, seed=0)
    assert not says_little(Dataset(X, _hill(X)))
    told = _reason(
        _found(Verdict.IGNORED, SourceRelation(0.5, 0.3, 0.2), 0.0, 0.0, rows=12), 0.0, True, "the target", 0
    )
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
    """A line per source, one on whose direction looks wrong, and one for the candidates; a notebook has a table."""
    *lines, direction, last = str(explained).splitlines()
    assert [line.split(":")[0] for line in lines] == ["like it", "upside down", "noise", "another"]
    assert direction == "is the direction right? upside down"
    assert last.startswith("believed after 9 observations: kin ")
    table = explained._repr_html_()
    assert table.count("<tr>") == 5
    assert f"{last}</p>" in table
    named = replace(explained, sources=tuple(replace(s, name="<b> & co") for s in explained.sources))
    assert "<b>" not in named._repr_html_()
    assert "&lt;b&gt; &amp; co" in named._repr_html_()


def test_the_numbers_are_a_table(explained: Explanation) -> None:
    """A row per source, with the three probabilities, which sum to 1."""
    frame = explained.to_frame()
    assert frame["verdict"].tolist() == [str(s.verdict) for s in explained.sources]
    assert frame[["related", "unrelated", "upside_down"]].sum(axis=1).tolist() == pytest.approx([1, 1, 1, 1])
    assert frame["upside_down"][1] > 0.95
    assert frame["gain"].tolist() == [s.gain for s in explained.sources]
    assert frame.attrs["observations"] == 9


def test_a_batch_of_problems_is_refused() -> None:
    """An explanation is of one problem."""
    X = torch.stack([points(6, seed=0), points(6, seed=1)])
    prior = AUTO.learn([Dataset(X, X.sum(-1))])
    assert isinstance(prior, AutoPrior)
    with pytest.raises(InputError, match="one problem"):
        explain(prior)


def test_nothing_is_fitted_to_explain(prior: AutoPrior, monkeypatch: pytest.MonkeyPatch) -> None:
    """What AUTO fitted to the target is at hand."""
    x = points(6, seed=9)
    target = Dataset(x, _hill(x))
    fresh = auto_only(prior.model.learn(prior.sources))
    fresh.condition()
    posterior = fresh.condition(target)
    monkeypatch.setattr(Minimization, "run", lambda _: pytest.fail("There was a fit."))
    cached = {kind: len(entries) for kind, entries in fresh._cache._kinds.items()}
    again, given = explain(fresh, target), explain(fresh, target, posterior=posterior)
    assert {kind: len(entries) for kind, entries in fresh._cache._kinds.items()} == cached
    assert again == given
