"""Facts 3 and 6: a stack learnt level by level is one joint Gaussian process, in its posterior and its evidence."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from tests.reference import dense
from tests.reference.answers import joint_log_evidence, tensor
from tests.theorems.strategies import Problem, assert_same, dataset, transfer_problems

from headstart import HGP, SHGP, TransferModel
from headstart.models.joint.coregion import Hierarchical
from headstart.models.joint.joint import DenseEvidence


@pytest.mark.parametrize("model", [pytest.param(SHGP, id="SHGP"), pytest.param(HGP, id="HGP")])
@given(problem=transfer_problems())
def test_a_stack_is_one_joint_process(problem: Problem, model: TransferModel) -> None:
    """The posterior is that of the joint process with K_ij = Σ_{ν ≤ min(i,j)} k_ν(X_i, X_j) + δ_ij σ_i² I."""
    assert_same(problem.ask(model), dense.chain(*problem.dense).posterior(problem.Xq))


@given(problem=transfer_problems())
def test_the_stages_of_shgp_multiply_to_the_evidence_of_hgp(problem: Problem) -> None:
    """log p(y_s, y_t) of HGP is the sum of the stage evidences of SHGP at equal hyperparameters."""
    T = len(problem.tasks)
    stages = [problem.first(i + 1).posterior(SHGP).log_evidence.item() for i in range(T)]
    joint = dense.chain(*problem.dense)
    assert joint_log_evidence(problem.posterior(HGP)).item() == pytest.approx(sum(stages), abs=1e-8)
    assert joint_log_evidence(problem.posterior(SHGP)).item() == pytest.approx(sum(stages), abs=1e-8)
    assert joint.log_evidence() == pytest.approx(sum(stages), abs=1e-8)
    for i in range(T):
        below = joint.log_evidence(i) if i else 0.0
        assert stages[i] == pytest.approx(joint.log_evidence(i + 1) - below, abs=1e-8)


@given(problem=transfer_problems())
def test_the_objective_of_hgp_is_the_sum_of_the_stages(problem: Problem) -> None:
    """What HGP minimises when it is fitted is minus that sum, for outputs measured from the tasks' means."""
    means = dense.chain(*problem.dense).means
    centred = [dense.Task(task.X, task.y - mean) for task, mean in zip(problem.tasks, means, strict=True)]
    evidence = DenseEvidence(
        [dataset(task) for task in centred], coregion=Hierarchical(), kernel=problem.kernel, free_offset=False
    )
    ell = [value for level in problem.levels for value in level.lengthscale]
    theta = tensor([*ell, *(k.outputscale for k in problem.levels), *(k.noise_var for k in problem.levels)]).log()
    value, _, ok = evidence.evaluate(theta.unsqueeze(0), torch.zeros(1, dtype=torch.int64))
    stages = [problem.first(i + 1).posterior(SHGP).log_evidence.item() for i in range(len(problem.tasks))]
    assert bool(ok)
    assert -value.item() == pytest.approx(sum(stages), abs=1e-8)
