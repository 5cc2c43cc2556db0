"""Fact 1: MHGP, BHGP and SHGP are one rule, a gain from one prior and the covariance it leaves under another."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from tests.reference import dense
from tests.reference.answers import tensor
from tests.theorems.strategies import Problem, assert_same, transfer_problems

from headstart import BHGP, MHGP, SHGP, TransferModel

RULES = [
    pytest.param(MHGP, False, False, id="MHGP"),
    pytest.param(BHGP, False, True, id="BHGP"),
    pytest.param(SHGP, True, True, id="SHGP"),
]


@pytest.mark.parametrize(("model", "gain_sees_below", "keeps_below"), RULES)
@given(problem=transfer_problems())
def test_a_sequential_model_is_two_answers(
    problem: Problem, model: TransferModel, gain_sees_below: bool, keeps_below: bool
) -> None:
    """A sequential model is the Joseph form, repeated over the levels, for its choice of gain and of covariance."""
    rule = dense.joseph(*problem.dense, problem.Xq, gain_sees_below=gain_sees_below, keeps_below=keeps_below)
    assert_same(problem.ask(model), rule)


@pytest.mark.parametrize("model", [rule.values[0] for rule in RULES], ids=[rule.id for rule in RULES])
@given(problem=transfer_problems())
def test_variances_are_the_diagonal_of_the_covariance(problem: Problem, model: TransferModel) -> None:
    """``predict``, which computes no covariance between points, has the means and variances of ``posterior``."""
    mean, var = problem.posterior(model).predict(tensor(problem.Xq))
    joint = problem.ask(model)
    np.testing.assert_allclose(mean.numpy(), joint.mean, atol=1e-10)
    np.testing.assert_allclose(var.numpy(), np.diag(joint.cov), atol=1e-10)


@given(problem=transfer_problems())
def test_the_means_of_mhgp_and_bhgp_are_the_same(problem: Problem) -> None:
    """BHGP and MHGP share their gain, so they share their mean and their evidence."""
    np.testing.assert_allclose(problem.ask(MHGP).mean, problem.ask(BHGP).mean, atol=1e-10)
    mhgp, bhgp = problem.posterior(MHGP).log_evidence, problem.posterior(BHGP).log_evidence
    assert mhgp.item() == pytest.approx(bhgp.item(), abs=1e-9)
