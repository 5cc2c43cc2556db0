"""One of our models per outcome, as a ``ModelList`` under BoTorch's functions for several objectives and for limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import gpytorch
import pytest
import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.analytic import LogConstrainedExpectedImprovement
from botorch.acquisition.logei import qLogNoisyExpectedImprovement
from botorch.acquisition.multi_objective.analytic import ExpectedHypervolumeImprovement
from botorch.acquisition.multi_objective.logei import (
    qLogExpectedHypervolumeImprovement,
    qLogNoisyExpectedHypervolumeImprovement,
)
from botorch.acquisition.multi_objective.objective import GenericMCMultiOutputObjective
from botorch.acquisition.objective import GenericMCObjective
from botorch.models.model import Model, ModelList
from botorch.optim.optimize import optimize_acqf
from botorch.sampling.list_sampler import ListSampler
from botorch.sampling.normal import SobolQMCNormalSampler
from botorch.utils.multi_objective.box_decompositions.non_dominated import FastNondominatedPartitioning
from botorch.utils.sampling import manual_seed
from tests.problems import as_single_task_gp, gp_params, points, quick, tensor
from torch import Tensor

from headstart import FAMILY, GPBO, ChainParams, Dataset
from headstart.data.outcomes import Goal, Limit, Outcomes
from headstart.models.outcomes import OutcomePosteriors, OutcomePriors

MODELS = {name: quick(FAMILY[name]) for name in ("AUTO", "SHGP", "STAR", "HGP")}
OUTCOMES = Outcomes((Goal("cost"),), (Limit("impurity", at_most=2.0),))
X_SEEN, X_NEW, X_PENDING = points(5, seed=1), points(3, seed=2), points(2, seed=3)
BOUNDS = tensor([[0.0, 0.0], [1.0, 1.0]])
REFERENCE = tensor([-4.0, -3.0])  # of what is maximised
WITHIN: list[Callable[[Tensor], Tensor]] = [lambda Y: Y[..., 1] - 2.0]


def _cost(X: Tensor) -> Tensor:
    return (X - 0.4).square().sum(-1).mul(4).exp()


def _impurity(X: Tensor) -> Tensor:
    return 1.5 + torch.sin(4 * X[:, 0]) - X[:, 1]


def _both(Y: Tensor, X: Tensor | None = None) -> Tensor:
    return -Y


def _first(Y: Tensor, X: Tensor | None = None) -> Tensor:
    return -Y[..., 0]


BOTH, FIRST = GenericMCMultiOutputObjective(_both), GenericMCObjective(_first)
Y_SEEN = torch.stack([_cost(X_SEEN), _impurity(X_SEEN)], dim=-1)


@pytest.fixture(autouse=True)
def _seeded() -> Iterator[None]:
    """BoTorch draws its starting points from the global random state."""
    with manual_seed(0):
        yield


@cache
def _known(name: str) -> OutcomePosteriors:
    """Both behind learnt output maps; one result lacks its impurity."""
    past = [points(12, seed=10 + i) for i in range(2)]
    sources = {
        "cost": [Dataset(X, _cost(X) + 0.2) for X in past],
        "impurity": [Dataset(X, 1.2 * _impurity(X)) for X in past],
    }
    targets = {"cost": Dataset(X_SEEN, Y_SEEN[:, 0]), "impurity": Dataset(X_SEEN[:4], Y_SEEN[:4, 1])}
    return OutcomePriors.learn(OUTCOMES, sources, model=MODELS[name]).condition(targets)


def _sampler(n: int = 16) -> Any:
    return ListSampler(*(SobolQMCNormalSampler(torch.Size((n,)), seed=i) for i in range(2)))


def _partitioning() -> Any:
    return FastNondominatedPartitioning(REFERENCE, -Y_SEEN)


Make = Callable[[Model], AcquisitionFunction]
ACQUISITIONS: dict[str, Make] = {
    "qLogEHVI": lambda m: qLogExpectedHypervolumeImprovement(
        m, REFERENCE, _partitioning(), sampler=_sampler(), objective=BOTH
    ),
    "qLogEHVI with limits and pending points": lambda m: qLogExpectedHypervolumeImprovement(
        m, REFERENCE, _partitioning(), sampler=_sampler(), objective=BOTH, constraints=WITHIN, X_pending=X_PENDING
    ),
    "qLogNEHVI": lambda m: qLogNoisyExpectedHypervolumeImprovement(
        m, REFERENCE, X_SEEN, sampler=_sampler(), objective=BOTH, prune_baseline=True
    ),
    "qLogNEHVI with limits and pending points": lambda m: qLogNoisyExpectedHypervolumeImprovement(
        m, REFERENCE, X_SEEN, sampler=_sampler(), objective=BOTH, constraints=WITHIN, X_pending=X_PENDING
    ),
    "constrained LogEI": lambda m: LogConstrainedExpectedImprovement(
        m, best_f=Y_SEEN[:, 0].min(), objective_index=0, constraints={1: (None, 2.0)}, maximize=False
    ),
    "constrained qLogNEI": lambda m: qLogNoisyExpectedImprovement(
        m, X_SEEN, sampler=_sampler(), objective=FIRST, constraints=WITHIN
    ),
    "constrained qLogNEI with pending points": lambda m: qLogNoisyExpectedImprovement(
        m, X_SEEN, sampler=_sampler(), objective=FIRST, constraints=WITHIN, X_pending=X_PENDING
    ),
}


_QUICK = {("AUTO", "qLogNEHVI with limits and pending points"), ("SHGP", "qLogEHVI"), ("STAR", "constrained LogEI")}


@pytest.mark.parametrize(
    ("name", "acquisition"),
    [
        pytest.param(name, acquisition, marks=() if (name, acquisition) in _QUICK else pytest.mark.slow)
        for name in MODELS
        for acquisition in ACQUISITIONS
    ],
)
def test_every_acquisition_function_can_be_optimised(name: str, acquisition: str) -> None:
    """Values and gradients are finite, behind output maps and for a mixture, and ``optimize_acqf`` climbs."""
    function = ACQUISITIONS[acquisition](_known(name).model_list())
    X = X_NEW.unsqueeze(-2).clone().requires_grad_()
    value = function(X)
    (gradient,) = torch.autograd.grad(value.sum(), X)
    assert value.shape == (3,)
    assert bool(value.isfinite().all())
    assert bool(gradient.isfinite().all())
    start = X.detach()
    _, found = optimize_acqf(
        function,
        BOUNDS,
        q=1,
        num_restarts=3,
        batch_initial_conditions=start,
        options={"maxiter": 3},
        return_best_only=False,
    )
    assert bool((found - value.detach() >= -1e-9).all())
    assert float((found - value.detach()).max()) > 0


@pytest.mark.parametrize("name", MODELS)
def test_gradients_agree_with_finite_differences(name: str) -> None:
    """Of the function with most in it."""
    function = ACQUISITIONS["qLogNEHVI with limits and pending points"](_known(name).model_list())
    X = X_NEW[:1].clone().requires_grad_()
    (gradient,) = torch.autograd.grad(function(X).sum(), X)
    step = 1e-6
    with torch.no_grad():
        differences = [
            (function(X + step * e) - function(X - step * e)).item() / (2 * step)
            for e in torch.eye(2, dtype=torch.float64)
        ]
    torch.testing.assert_close(gradient[0], tensor(differences), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_samples_and_moments_are_the_outcomes_own(name: str) -> None:
    """Every output of the list is that outcome's model, and the target's results alone are the baseline."""
    found = _known(name)
    model = found.model_list()
    posterior: Any = model.posterior(X_NEW)
    for i, own in enumerate(found.posteriors):
        torch.testing.assert_close(posterior.mean[:, i], own.posterior(X_NEW).mean.squeeze(-1))
        torch.testing.assert_close(posterior.variance[:, i], own.posterior(X_NEW).variance.squeeze(-1))
    samples = _sampler(4096)(posterior)
    assert samples.shape == (4096, 3, 2)
    error = posterior.variance.sqrt() / 4096**0.5
    assert bool(((samples.mean(0) - posterior.mean).abs() < 5 * error).all())
    assert [len(own.train_inputs[0]) for own in found.posteriors] == [5, 4]


@pytest.mark.parametrize("name", MODELS)
def test_fantasies_of_all_outcomes_are_those_of_each(name: str) -> None:
    """``fantasize`` conditions every model on its own draws, and what comes back is a ``ModelList``."""
    found = _known(name)
    model = found.model_list()
    fantasy: Any = model.fantasize(X_PENDING, _sampler(4))
    assert type(fantasy) is ModelList
    assert fantasy.batch_shape == (4,)
    for i, own in enumerate(found.posteriors):
        imagined: Any = fantasy.models[i]
        Y = imagined.train_targets[:, -2:].unsqueeze(-1)
        expected = own.condition_on_observations(X_PENDING, Y).posterior(X_NEW)
        after: Any = fantasy.posterior(X_NEW)
        torch.testing.assert_close(after.mean[..., i], expected.mean.squeeze(-1))
    function = qLogNoisyExpectedImprovement(
        ModelList(*(own.condition_on_observations(X_PENDING, _values(own)) for own in found.posteriors)),
        torch.cat([X_SEEN, X_PENDING]),
        sampler=_sampler(),
        objective=FIRST,
        constraints=WITHIN,
    )
    assert bool(function(X_NEW.unsqueeze(-2)).isfinite().all())


def _values(own: Any) -> Tensor:
    return own.posterior(X_PENDING).mean.detach()


# ── at equal hyperparameters ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("acquisition", [*ACQUISITIONS, "EHVI"])
def test_plain_processes_have_the_values_of_botorchs_own(acquisition: str) -> None:
    """GPBO and ``SingleTaskGP`` at equal hyperparameters, with the same base samples."""
    make = {
        **ACQUISITIONS,
        "EHVI": lambda m: ExpectedHypervolumeImprovement(m, REFERENCE.tolist(), _partitioning()),
    }[acquisition]
    every = [gp_params(2, seed=i) for i in range(2)]
    targets = [Dataset(X_SEEN, Y_SEEN[:, i]) for i in range(2)]
    ours = OutcomePosteriors(
        OUTCOMES,
        tuple(GPBO.at(ChainParams((params,)), target=target) for params, target in zip(every, targets, strict=True)),
    )
    theirs = ModelList(
        *(as_single_task_gp(X_SEEN, target.y, params) for params, target in zip(every, targets, strict=True))
    )
    with torch.no_grad(), gpytorch.settings.fast_computations(False, False, False):
        value = make(ours.model_list())(X_NEW.unsqueeze(-2))
        expected = make(theirs)(X_NEW.unsqueeze(-2))
    torch.testing.assert_close(value, expected, rtol=1e-4, atol=1e-4)
