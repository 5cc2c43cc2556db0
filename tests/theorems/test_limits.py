"""Fact 7: the limits in which the models become each other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from tests.cases import with_slow
from tests.problems import (
    REPRESENTATIVES,
    TRANSFER,
    coregional_params,
    ensemble_params,
    star_params,
    weighted_params,
)
from tests.reference import dense
from tests.reference.answers import answer
from tests.reference.dense import Gaussian, Task
from tests.theorems.strategies import Problem, assert_same, fixed_problem, gp_params, transfer_problems

from headstart import (
    AUTO,
    BHGP,
    FAMILY,
    GPBO,
    HGP,
    MHGP,
    MTGP,
    MTKGP,
    MWSGP,
    RGPE,
    SCAML,
    SHGP,
    STAR,
    TSTR,
    WSGP,
    AutoParams,
    Kernel,
    TransferModel,
)
from headstart.models.params import ModelParams

CHAINS = [pytest.param(model, id=name) for name, model in [("MHGP", MHGP), ("SHGP", SHGP), ("BHGP", BHGP)]]


def without_sources(model: TransferModel, problem: Problem) -> ModelParams:
    """The target's level in the form that the model takes."""
    level = gp_params(problem.levels[-1])
    if model in (MTKGP, MTGP):
        return coregional_params(
            lengthscale=level.lengthscale.unsqueeze(0),
            W=level.outputscale.reshape(1, 1, 1),
            noise_var=level.noise_var.unsqueeze(0),
            mean=level.offset.unsqueeze(0),
        )
    if model is WSGP:
        return weighted_params((level,), [])
    star = star_params((level,), [])
    if model in (STAR, SCAML, MWSGP):
        return star
    if model is AUTO:
        chain = problem.last().chain
        return AutoParams((star, star, star, chain), torch.tensor([0.4, 0.1, 0.3, 0.2], dtype=torch.float64))
    return ensemble_params((level,), [1.0]) if model in (RGPE, TSTR) else problem.last().chain


@pytest.mark.parametrize("name", with_slow(TRANSFER, quick=REPRESENTATIVES[1:]))
@given(problem=transfer_problems(min_target=1))
def test_without_sources_every_model_is_gpbo(problem: Problem, name: str) -> None:
    """At given hyperparameters and with no source, every model is the ordinary process on the target alone."""
    model, alone = FAMILY[name], problem.last()
    plain = alone.ask(GPBO)
    assert_same(alone.ask(model, without_sources(model, problem)), plain)
    assert_same(plain, dense.chain(*alone.dense).posterior(problem.Xq))


@given(problem=transfer_problems())
def test_wsgp_with_zero_weights_is_gpbo(problem: Problem) -> None:
    """WSGP with w = 0 is GPBO on the target."""
    silent = replace(problem, weights=(0.0,) * len(problem.weights))
    wsgp = silent.posterior(WSGP, silent.star)
    assert_same(answer(wsgp, problem.Xq), problem.last().ask(GPBO))
    assert wsgp.log_evidence.item() == pytest.approx(problem.last().posterior(GPBO).log_evidence.item(), abs=1e-9)


@pytest.mark.parametrize("kernel", Kernel)
@pytest.mark.parametrize("sizes", [(4, 3), (3, 4, 3)])
@pytest.mark.parametrize("noise_var", [1e-5, 1e-7, 1e-9])
def test_a_source_known_exactly_makes_the_three_chains_one(
    sizes: tuple[int, ...], kernel: Kernel, noise_var: float
) -> None:
    """Σ_s → 0: where the last source was measured at every point in play, MHGP = BHGP = SHGP up to its noise."""
    problem = fixed_problem(sizes, kernel=kernel)
    X = np.linspace(0, 1, sizes[-1] + len(problem.Xq))[:, None]  # well apart: the limit is reached in step with σ²
    known = replace(problem.levels[-2], noise_var=noise_var, lengthscale=(0.1,))
    problem = replace(
        problem,
        tasks=(*problem.tasks[:-2], Task(X, np.sin(5 * X[:, 0])), Task(X[::2][: sizes[-1]], problem.tasks[-1].y)),
        levels=(*problem.levels[:-2], known, problem.levels[-1]),
        Xq=X[-len(problem.Xq) :],
    )
    mhgp, shgp, bhgp = (problem.ask(model) for model in (MHGP, SHGP, BHGP))
    assert_same(mhgp, bhgp, 100 * noise_var)
    assert_same(mhgp, shgp, 100 * noise_var)


@given(problem=transfer_problems())
def test_sources_without_variance_make_the_three_chains_one(problem: Problem) -> None:
    """Σ_s → 0 the other way: sources that are constants leave nothing to propagate."""
    flat = [replace(level, outputscale=1e-12) for level in problem.levels[:-1]]
    problem = replace(problem, levels=(*flat, problem.levels[-1]))
    mhgp, shgp, bhgp = (problem.ask(model) for model in (MHGP, SHGP, BHGP))
    assert_same(mhgp, bhgp, 1e-8)
    assert_same(mhgp, shgp, 1e-8)


@pytest.mark.parametrize("model", [pytest.param(SHGP, id="SHGP"), pytest.param(HGP, id="HGP")])
@given(problem=transfer_problems())
def test_without_residuals_all_tasks_are_one_function(problem: Problem, model: TransferModel) -> None:
    """k_t → 0 at every level but the first: one process on the pooled data, each task with its own noise."""
    same = [replace(level, outputscale=1e-12, offset=0.0) for level in problem.levels[1:]]
    problem = replace(problem, levels=(problem.levels[0], *same))
    y = np.concatenate([task.y for task in problem.tasks])
    Z = dense.stacked(problem.tasks, problem.Xq)
    K = dense.kernel(problem.kind, Z, Z, problem.levels[0])
    noise = [level.noise_var for task, level in zip(problem.tasks, problem.levels, strict=True) for _ in task.y]
    observed = K + np.diag([*noise, *[0.0] * len(problem.Xq)])
    prior = Gaussian(np.full(len(Z), problem.levels[0].offset), observed)
    pooled = dense.condition(prior, slice(0, len(y)), y, 0.0)[slice(len(y), None)]
    assert_same(problem.ask(model), pooled, 1e-8)


@pytest.mark.parametrize("model", CHAINS)
@given(problem=transfer_problems(max_target=0))
def test_before_the_first_observation_a_chain_says_what_its_sources_say(problem: Problem, model: TransferModel) -> None:
    """N_t = 0: SHGP and BHGP are (m_s, Σ_s + k_t), with (m_s, Σ_s) their own last source; MHGP is (m_s, k_t)."""
    below = problem.first(len(problem.tasks) - 1).ask(model)
    k_t = dense.kernel(problem.kind, problem.Xq, problem.Xq, problem.levels[-1])
    cov = k_t if model is MHGP else below.cov + k_t
    assert_same(problem.ask(model), Gaussian(below.mean + problem.levels[-1].offset, cov))


@given(problem=transfer_problems(max_sources=1, max_target=0))
def test_before_the_first_observation_one_source_makes_shgp_and_bhgp_one(problem: Problem) -> None:
    """N_t = 0 and one source: SHGP = BHGP."""
    assert_same(problem.ask(SHGP), problem.ask(BHGP))


@given(problem=transfer_problems(min_sources=2))
def test_the_order_of_sources_does_not_matter_to_a_star(problem: Problem) -> None:
    """WSGP says the same, to the same evidence, whatever the order of its sources."""
    turned = replace(
        problem,
        tasks=(*problem.tasks[-2::-1], problem.tasks[-1]),
        levels=(*problem.levels[-2::-1], problem.levels[-1]),
        weights=problem.weights[::-1],
    )
    one, other = problem.posterior(WSGP, problem.star), turned.posterior(WSGP, turned.star)
    assert_same(answer(one, problem.Xq), answer(other, problem.Xq))
    assert one.log_evidence.item() == pytest.approx(other.log_evidence.item(), abs=1e-8)


@pytest.mark.parametrize("model", CHAINS)
def test_the_order_of_sources_matters_to_a_chain(model: TransferModel) -> None:
    """A chain learns the later source as a residual on the earlier one, so that turning them round changes it."""
    problem = fixed_problem((4, 3, 2))
    a, b, t = range(3)
    turned = replace(
        problem,
        tasks=tuple(problem.tasks[i] for i in (b, a, t)),
        levels=tuple(problem.levels[i] for i in (b, a, t)),
    )
    assert np.abs(problem.ask(model).mean - turned.ask(model).mean).max() > 1e-2
