"""Log scores of predictions of every value before it was seen."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
import torch
from tests.direct import dense_scores
from tests.problems import item_of, params_for, transfer_problem
from torch import Tensor

from headstart import FAMILY, Dataset
from headstart.models.auto.scores import REFITS, refits_up_to, scores_of
from headstart.models.chain.layer import Layer

PROBLEM = transfer_problem(n_target=7)
MODELS = pytest.mark.parametrize("name", ["GPBO", "SHGP", "STAR"])


def all_scores(layer: Layer) -> Tensor:
    return scores_of(layer.L, layer.z)


def layer_of(name: str, n: int = 7, shift: float = 0.0) -> Layer:
    target = PROBLEM.head(n)
    posterior = FAMILY[name].at(
        params_for(name),
        sources=() if name == "GPBO" else PROBLEM.sources,
        target=target.with_data(target.X, target.y + shift),
    )
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
    scores = all_scores(layer)
    assert scores[0].item() == 0
    assert scores.tolist() == pytest.approx(one_by_one(layer, target.X, target.y), abs=1e-8)
    torch.testing.assert_close(scores, dense_scores(layer, target), rtol=0, atol=1e-10)


@MODELS
def test_scores_do_not_care_where_the_task_lies(name: str) -> None:
    """A constant added to all values changes nothing."""
    here, there = (all_scores(layer_of(name, shift=shift)) for shift in (0.0, 300.0))
    torch.testing.assert_close(here, there, rtol=0, atol=1e-8)


@MODELS
def test_earlier_scores_do_not_know_of_later_values(name: str) -> None:
    """The scores of a head are the head of the scores; no value has no score, and one scores 0."""
    whole = all_scores(layer_of(name))
    for n in (0, 1, 4):
        torch.testing.assert_close(all_scores(layer_of(name, n)), whole[:n])


@MODELS
def test_a_batch_is_scored_problem_by_problem(name: str) -> None:
    """Every problem has the scores it has alone."""
    problem = transfer_problem(n_target=7, batch_shape=(3,))
    model, sources = FAMILY[name], () if name == "GPBO" else problem.sources

    def scored(sources: Sequence[Dataset], target: Dataset) -> Tensor:
        layer = model.at(params_for(name), sources=sources, target=target).predictor
        assert isinstance(layer, Layer)
        return all_scores(layer)

    together = scored(sources, problem.target)
    assert together.shape == (3, 7)
    for i in range(3):
        alone = scored([item_of(source, i) for source in sources], item_of(problem.target, i))
        torch.testing.assert_close(together[i], alone)


def test_a_value_is_scored_by_a_fit_that_has_not_seen_it() -> None:
    """Refits come ever less often, begin with one observation, and are always of fewer than are scored."""
    assert refits_up_to(0) == refits_up_to(1) == []
    assert refits_up_to(2) == [1]
    assert refits_up_to(9) == [1, 2, 3, 4, 6, 8]
    assert refits_up_to(8)[-1] == 6
    assert list(REFITS) == sorted(set(REFITS))
