"""The paper's unifying view: a joint model is Σ_ν W_ν ∘ k_ν with its choice of W, a noise and a mean per task."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.problems import coregional_params
from tests.reference import dense
from tests.reference.answers import answer, joint_log_evidence
from tests.reference.dense import Array, Joint
from tests.theorems.strategies import Problem, assert_same, transfer_problems

from headstart import MTGP, MTKGP, WSGP, TransferModel, TransferPosterior


def assert_is(joint: Joint, posterior: TransferPosterior, Xq: Array) -> None:
    """The same posterior, the same log p(y_t | D_s) and the same log p(y_s, y_t)."""
    assert_same(answer(posterior, Xq), joint.posterior(Xq))
    everything, sources = joint.log_evidence(), joint.log_evidence(len(joint.tasks) - 1)
    assert joint_log_evidence(posterior).item() == pytest.approx(everything, abs=1e-8)
    assert posterior.log_evidence.item() == pytest.approx(everything - sources, abs=1e-8)


@given(problem=transfer_problems())
def test_wsgp_sums_its_sources(problem: Problem) -> None:
    """W_ν = e_ν e_νᵀ + w_ν (e_ν + e_t)(e_ν + e_t)ᵀ for every source, each task around its own offset."""
    assert_is(dense.star(*problem.dense, problem.weights), problem.posterior(WSGP, problem.star), problem.Xq)


@pytest.mark.parametrize("model", [pytest.param(MTKGP, id="MTKGP"), pytest.param(MTGP, id="MTGP")])
@given(problem=transfer_problems(), seed=st.integers(0, 2**32 - 1))
def test_a_free_w_is_used_as_it_is(problem: Problem, model: TransferModel, seed: int) -> None:
    """MTKGP and MTGP are the joint process of any positive semi-definite W, one in all or one for every task."""
    T = len(problem.tasks)
    kernels = problem.levels if model == MTGP else problem.levels[:1]
    F = np.random.default_rng(seed).normal(size=(len(kernels), T, T))
    F[..., -1] = 0.0  # singular
    W = np.array([k.outputscale for k in kernels])[:, None, None] * F @ F.swapaxes(-1, -2)
    noise, means = [k.noise_var for k in problem.levels], [k.offset for k in problem.levels]
    params = coregional_params(lengthscale=[k.lengthscale for k in kernels], W=W, noise_var=noise, mean=means)
    unit = [dense.Level(k.lengthscale, 1.0, 0.0) for k in kernels]
    joint = Joint(problem.kind, problem.tasks, unit, W, means, noise)
    assert_is(joint, problem.posterior(model, params), problem.Xq)
