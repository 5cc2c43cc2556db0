"""Copies and pickles of what was learnt."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import torch
from tests.problems import REPRESENTATIVES, in_turn, predictions, quick, transfer_problem

from headstart import FAMILY, Dataset, TransferPosterior
from headstart.models.model import Prior

PROBLEM = transfer_problem()
WAYS: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
}


@cache
def _prior(name: str) -> Prior:
    """Never conditioned: what it would have kept of that is not in its copies."""
    return quick(FAMILY[name]).learn(PROBLEM.sources)


@cache
def _posterior(name: str) -> TransferPosterior:
    return PROBLEM.posterior(quick(FAMILY[name]))


@pytest.mark.parametrize(("name", "way"), in_turn(WAYS))
def test_a_copy_of_a_posterior_predicts_the_same(name: str, way: str) -> None:
    """Copied or pickled, a posterior keeps its predictions, its hyperparameters and its reports."""
    posterior = _posterior(name)
    again = WAYS[way](posterior)
    assert torch.equal(predictions(again, PROBLEM.Xq), predictions(posterior, PROBLEM.Xq))
    assert torch.equal(again.train_targets, posterior.train_targets)
    assert [str(r) for r in again.fit_reports] == [str(r) for r in posterior.fit_reports]
    assert type(again.hyperparameters) is type(posterior.hyperparameters)


@pytest.mark.parametrize(("name", "way"), in_turn(WAYS))
def test_a_copy_of_a_prior_conditions_the_same(name: str, way: str) -> None:
    """Copied or pickled, what was learnt from the sources is as good as the original."""
    prior = _prior(name)
    again = WAYS[way](prior)
    assert again.model == prior.model
    expected = predictions(_posterior(name), PROBLEM.Xq)
    assert torch.equal(predictions(again.condition(PROBLEM.target), PROBLEM.Xq), expected)


@pytest.mark.parametrize("way", ["deepcopy", "pickle"])
def test_a_copy_of_a_data_set_is_a_data_set(way: str) -> None:
    """A frozen data set can be copied and pickled with its name."""
    data = Dataset(PROBLEM.target.X, PROBLEM.target.y, "mine")
    again = WAYS[way](data)
    assert torch.equal(again.X, data.X)
    assert torch.equal(again.y, data.y)
    assert again.name == "mine"


@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_a_deep_copy_shares_nothing(name: str) -> None:
    """Overwriting the data of a deep copy leaves the original alone."""
    posterior = _posterior(name)
    expected = predictions(posterior, PROBLEM.Xq)
    again = copy.deepcopy(posterior)
    again.train_targets.zero_()
    again.predictor.X.zero_()
    assert torch.equal(predictions(posterior, PROBLEM.Xq), expected)
    assert torch.equal(posterior.train_targets, PROBLEM.target.y)
