"""Fact 4: recursive boosting has a closed form, the weights γ of all data in the mean."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from tests.reference import dense
from tests.theorems.strategies import Problem, assert_same, transfer_problems

from headstart import BHGP


@given(problem=transfer_problems())
def test_bhgp_is_its_closed_form(problem: Problem) -> None:
    """mean = a r with (I + G) r = y, and cov_BHGP = cov_SHGP + (Lᵀγᵀ − v)ᵀ(Lᵀγᵀ − v) with γ = a (I + G)⁻¹."""
    closed, _ = dense.boosted(*problem.dense, problem.Xq)
    assert_same(problem.ask(BHGP), closed)


@given(problem=transfer_problems())
def test_the_closed_form_is_the_recursion(problem: Problem) -> None:
    """Going from level to level in the Joseph form gives the same Gaussian, and γ its weights of the data."""
    closed, gamma = dense.boosted(*problem.dense, problem.Xq)
    assert_same(dense.joseph(*problem.dense, problem.Xq, gain_sees_below=False, keeps_below=True), closed)
    joint = dense.chain(*problem.dense)
    prior = joint.prior(problem.Xq).mean
    N = len(joint.y)
    np.testing.assert_allclose(prior[N:] + gamma @ (joint.y - prior[:N]), closed.mean, atol=1e-9)
