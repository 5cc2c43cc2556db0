"""What a model had said about a value before it was seen."""

from __future__ import annotations

import math

import pytest
import torch
from tests.direct import prequential
from tests.problems import params_for, points, quick, transfer_problem
from torch import Tensor

from headstart import AUTO, FAMILY, SHGP, Dataset
from headstart.models.auto.explanation import auto_only
from headstart.models.auto.prequential import REFITS, refits_up_to, scores_alone, sequential_scores
from headstart.models.chain.layer import Layer
from headstart.models.mixture import Mixture

PROBLEM = transfer_problem(n_target=7)
MODELS = pytest.mark.parametrize("name", ["GPBO", "SHGP", "STAR"])


def layer_of(name: str, n: int = 7, batch_shape: tuple[int, ...] = ()) -> Layer:
    problem = transfer_problem(n_target=7, batch_shape=batch_shape)
    sources = () if name == "GPBO" else problem.sources
    posterior = FAMILY[name].at(params_for(name, batch_shape=batch_shape), sources=sources, target=problem.head(n))
    assert isinstance(posterior.predictor, Layer)
    return posterior.predictor


def one_by_one(layer: Layer, X: Tensor, y: Tensor) -> list[float]:
    """Kriging with an unknown constant: best linear unbiased predictions, one after the other, with their variance."""
    at = layer.below.at(X)
    K = layer.gain_cov(at, at) + layer.params.noise_var * torch.eye(len(y), dtype=torch.float64)
    r, scores = y - at.mean, [0.0]
    for i in range(1, len(y)):
        inverse, k, one = torch.linalg.inv(K[:i, :i]), K[:i, i], torch.ones(i, dtype=torch.float64)
        information = one @ inverse @ one
        level = (one @ inverse @ r[:i]) / information
        mean = level + k @ inverse @ (r[:i] - level)
        var = K[i, i] - k @ inverse @ k + (1 - one @ inverse @ k) ** 2 / information
        scores.append(float(-0.5 * ((r[i] - mean) ** 2 / var + torch.log(2 * math.pi * var))))
    return scores


@MODELS
def test_scores_are_predictions_one_by_one_with_an_unknown_level(name: str) -> None:
    """Each value is predicted from those before it; where the task lies is not known, and the first scores 0."""
    layer, target = layer_of(name), PROBLEM.target
    scores = sequential_scores(layer, target.X, target.y, after=0)
    assert scores[0].item() == 0
    assert scores.tolist() == pytest.approx(one_by_one(layer, target.X, target.y), abs=1e-8)


@MODELS
def test_scores_do_not_care_where_the_task_lies(name: str) -> None:
    """A constant added to all values changes nothing."""
    layer, target = layer_of(name), PROBLEM.target
    here, there = (sequential_scores(layer, target.X, target.y + shift, after=0) for shift in (0.0, 300.0))
    torch.testing.assert_close(here, there, rtol=0, atol=1e-8)


@MODELS
def test_scores_do_not_care_what_the_layer_has_seen(name: str) -> None:
    """Only its hyperparameters count, so a layer of few observations scores many."""
    target = PROBLEM.target
    some, none = (sequential_scores(layer_of(name, n), target.X, target.y, after=0) for n in (3, 0))
    torch.testing.assert_close(some, sequential_scores(layer_of(name), target.X, target.y, after=0))
    torch.testing.assert_close(none, some)


@MODELS
def test_earlier_scores_do_not_know_of_later_values(name: str) -> None:
    """The scores of a head are the head of the scores."""
    layer, target = layer_of(name), PROBLEM.target
    head = PROBLEM.head(4)
    torch.testing.assert_close(
        sequential_scores(layer, head.X, head.y, after=0), sequential_scores(layer, target.X, target.y, after=0)[:4]
    )


@MODELS
def test_a_batch_is_scored_problem_by_problem(name: str) -> None:
    """Every problem has the scores it has alone."""
    problem = transfer_problem(n_target=7, batch_shape=(3,))
    params = params_for(name)
    model, sources = FAMILY[name], () if name == "GPBO" else problem.sources
    together = model.at(params, sources=sources, target=problem.target).predictor
    assert isinstance(together, Layer)
    scores = sequential_scores(together, problem.target.X, problem.target.y, after=0)
    assert scores.shape == (3, 7)
    for i in range(3):
        alone = model.at(
            params,
            sources=[type(s)(s.X[i], s.y[i]) for s in sources],
            target=type(problem.target)(problem.target.X[i], problem.target.y[i]),
        ).predictor
        assert isinstance(alone, Layer)
        torch.testing.assert_close(
            scores[i], sequential_scores(alone, problem.target.X[i], problem.target.y[i], after=0)
        )


@pytest.mark.parametrize("n", [0, 1])
def test_without_a_second_value_there_is_nothing_to_score(n: int) -> None:
    """No value has no score, and one scores 0."""
    head = PROBLEM.head(n)
    assert sequential_scores(layer_of("STAR", n), head.X, head.y, after=0).tolist() == [0.0] * n


def test_a_value_is_scored_by_a_fit_that_has_not_seen_it() -> None:
    """Refits come ever less often, begin with one observation, and are always of fewer than are scored."""
    assert refits_up_to(0) == refits_up_to(1) == []
    assert refits_up_to(2) == [1]
    assert refits_up_to(9) == [1, 2, 3, 4, 6, 8]
    assert refits_up_to(8)[-1] == 6
    assert list(REFITS) == sorted(set(REFITS))


# ── several predictors ────────────────────────────────────────────────────────────────────────────────────────────


def test_a_mixture_weighs_its_members_anew_by_every_value() -> None:
    """log Σ w_k(i) p_k(y_i | …) with w_k(i) ∝ w_k(i − 1) p_k(y_{i−1} | …); what came before scores 0."""
    target, after = PROBLEM.target, 3
    members = tuple(layer_of(name) for name in ("GPBO", "SHGP", "STAR"))
    weights = torch.tensor([0.2, 0.5, 0.3], dtype=torch.float64)
    scores = sequential_scores(Mixture(members, weights), target.X, target.y, after=after)
    own = torch.stack([sequential_scores(m, target.X, target.y, after=after) for m in members])
    expected, now = [0.0] * after, weights
    for i in range(after, target.n):
        together = (now * own[:, i].exp()).sum()
        expected.append(float(together.log()))
        now = now * own[:, i].exp() / together
    assert scores.tolist() == pytest.approx(expected, abs=1e-10)


def test_a_model_with_an_output_map_is_scored_in_the_users_units() -> None:
    """log p(y_i), about as its posterior has it; a change of units by a factor moves it by the logarithm."""
    problem = transfer_problem(n_target=9)
    model = quick(SHGP)
    for scale in (1.0, 1e3):
        sources = [Dataset(s.X, scale * s.y.exp()) for s in problem.sources]
        target = Dataset(problem.target.X, scale * problem.target.y.exp())
        prior = model.learn(sources)
        scores = prequential(prior, target)
        if scale == 1.0:
            first = scores
            assert prior.warp is not None
            assert prior.warp.power.item() < 1
            # the level is known by then, so that a score is nearly the log density of the posterior before it
            said = [
                prior.condition(target.head(n), seed=n).log_density(target.X[n : n + 1], target.y[n : n + 1])
                for n in (6, 8)
            ]
            assert torch.cat(said).tolist() == pytest.approx(scores[[6, 8]].tolist(), abs=0.5)
    torch.testing.assert_close(scores[1:], first[1:] - math.log(1e3), rtol=0, atol=1e-3)
    assert not scores[0]


# ── every source alone ────────────────────────────────────────────────────────────────────────────────────────────


def _awkward_sources(d: int) -> list[Dataset]:
    """Of several sizes; one is constant, one does not know the last input, one has a single row."""
    found = []
    for i, n in enumerate((12, 12, 7, 9, 1)):
        X = points(n, d=d, seed=i)
        y = (3 + i) * (X - 0.2 * i).square().sum(-1) if i != 2 else torch.full((n,), 2.0, dtype=torch.float64)
        found.append(Dataset(X, y, unseen=(d - 1,) if i == 3 else ()))
    return found


@pytest.mark.parametrize("n", [0, 1, 2, 7, 13])
def test_sources_in_lockstep_score_as_each_does_alone(n: int) -> None:
    """What a star of one source says of the target, fitted for itself at every refit."""
    prior = auto_only(quick(AUTO).learn(_awkward_sources(3)))
    X = points(n, d=3, seed=20)
    target = prior.inward(Dataset(X, 2 * (X - 0.3).square().sum(-1)))
    with torch.no_grad():
        together = scores_alone(prior.alone, prior.model, target)
        alone = [prequential(prior.star_of(i), target) for i in range(5)]
    torch.testing.assert_close(together, torch.stack(alone), rtol=0, atol=1e-8)


def test_where_no_source_has_a_scale_the_target_gives_it() -> None:
    """All sources are constant and alike: the units of a refit are those of the values it has seen."""
    X = points(6, d=2, seed=0)
    prior = auto_only(quick(AUTO).learn([Dataset(X, torch.ones(6, dtype=torch.float64))] * 2))
    target = Dataset(points(6, d=2, seed=3), 100 * points(6, d=1, seed=4)[:, 0])
    with torch.no_grad():
        together = scores_alone(prior.alone, prior.model, prior.inward(target))
        alone = [prequential(prior.star_of(i), prior.inward(target)) for i in range(2)]
    torch.testing.assert_close(together, torch.stack(alone), rtol=0, atol=1e-8)


def test_categories_share_a_lengthscale_there_too() -> None:
    """The levels of a category are columns with one lengthscale."""
    X = torch.cat([points(14, d=1, seed=0), torch.eye(2, dtype=torch.float64).repeat(7, 1)], dim=-1)
    y = X[:, 0].sin() + X[:, 1]
    prior = auto_only(quick(AUTO).learn([Dataset(X, y, categories=((1, 2),)), Dataset(X, -y, categories=((1, 2),))]))
    target = Dataset(X[:6], X[:6, 0].cos() + X[:6, 1], categories=((1, 2),))
    with torch.no_grad():
        together = scores_alone(prior.alone, prior.model, prior.inward(target))
        alone = [prequential(prior.star_of(i), prior.inward(target)) for i in range(2)]
    torch.testing.assert_close(together, torch.stack(alone), rtol=0, atol=1e-8)
