"""GPBO and MTKGP against BoTorch's own models at equal hyperparameters."""

from __future__ import annotations

from typing import Any

import gpytorch
import pytest
import torch
from botorch.models import SingleTaskGP
from botorch.models.multitask import MultiTaskGP
from gpytorch.kernels import IndexKernel, MaternKernel, RBFKernel, ScaleKernel
from gpytorch.means import ConstantMean, MultitaskMean, ZeroMean
from tests.problems import coregional_params
from tests.reference.answers import joint_log_evidence
from torch import Tensor

from headstart import GPBO, MTKGP, ChainParams, Dataset, GPParams, Kernel

TOLERANCE: dict[str, Any] = {"rtol": 0, "atol": 1e-8}


def draw(generator: torch.Generator, *shape: int) -> Tensor:
    return torch.rand(shape, generator=generator, dtype=torch.float64)


def base_kernel(kernel: Kernel, lengthscale: Tensor, active_dims: Tensor | None = None) -> Any:
    options = {"ard_num_dims": len(lengthscale), "active_dims": active_dims}
    base = RBFKernel(**options) if kernel is Kernel.RBF else MaternKernel(nu=2.5, **options)
    base = base.double()
    base.lengthscale = lengthscale
    return base


def constant_mean(value: float) -> Any:
    mean = ConstantMean().double()
    mean.constant = torch.tensor(value, dtype=torch.float64)
    return mean


def compare(ours: Any, theirs: Any) -> None:
    a, b = ours.distribution, theirs.distribution
    torch.testing.assert_close(a.mean, b.mean, **TOLERANCE)
    torch.testing.assert_close(a.covariance_matrix, b.covariance_matrix, **TOLERANCE)


@pytest.mark.parametrize("kernel", Kernel)
@pytest.mark.parametrize("offset", [None, 0.7], ids=["zero mean", "constant mean"])
@pytest.mark.parametrize(("n", "d"), [(1, 1), (2, 3), (15, 2), (40, 6)])
def test_gpbo_is_a_single_task_gp(kernel: Kernel, offset: float | None, n: int, d: int) -> None:
    """Mean, covariance and log marginal likelihood of SingleTaskGP(ScaleKernel(ARD)) agree to 1e-8."""
    g = torch.Generator().manual_seed(n)
    X, Xq, y = draw(g, n, d), draw(g, 9, d), 2 * draw(g, n)
    lengthscale, outputscale, noise_var = 0.3 + draw(g, d), 1 + draw(g), 0.01 + 0.02 * draw(g, 1)
    covar = ScaleKernel(base_kernel(kernel, lengthscale)).double()
    covar.outputscale = outputscale  # tensors: GPyTorch takes a number through float32
    mean = ZeroMean() if offset is None else constant_mean(offset)
    theirs = SingleTaskGP(X, y.unsqueeze(-1), covar_module=covar, mean_module=mean, outcome_transform=None)
    theirs.likelihood.noise = noise_var
    params = GPParams.of(
        lengthscale=lengthscale, outputscale=outputscale, noise_var=noise_var.squeeze(), offset=offset or 0.0
    )
    ours = GPBO.using(kernel=kernel).at(ChainParams((params,)), target=Dataset(X, y))

    with torch.no_grad(), gpytorch.settings.fast_computations(False, False, False):
        prior = theirs.train().likelihood(theirs(X))
        torch.testing.assert_close(ours.log_evidence, prior.log_prob(y), **TOLERANCE)
        theirs.eval()
        for noise in (False, True):
            compare(ours.posterior(Xq, observation_noise=noise), theirs.posterior(Xq, observation_noise=noise))


@pytest.mark.parametrize("kernel", Kernel)
@pytest.mark.filterwarnings("ignore:Sparse invariant checks")  # linear_operator's
@pytest.mark.parametrize("sizes", [(6, 4), (5, 1, 7, 3), (8, 3, 1)])
def test_mtkgp_is_a_multi_task_gp(kernel: Kernel, sizes: tuple[int, ...]) -> None:
    """Mean, covariance and joint log marginal likelihood of MultiTaskGP with an IndexKernel agree to 1e-8."""
    d, T, rank = 2, len(sizes), 2
    g = torch.Generator().manual_seed(sum(sizes))
    X, y = [draw(g, n, d) for n in sizes], [2 * draw(g, n) for n in sizes]
    Xq, lengthscale, noise_var, means = draw(g, 9, d), 0.3 + draw(g, d), 0.01 + 0.1 * draw(g, T), draw(g, T)

    factor, own = 2 * draw(g, T, rank) - 1, 0.1 + draw(g, T)
    tasks = IndexKernel(num_tasks=T, rank=rank, active_dims=torch.tensor([d])).double()
    tasks.initialize(covar_factor=factor, var=own)
    inputs = base_kernel(kernel, lengthscale, active_dims=torch.arange(d))
    all_X = torch.cat([torch.cat([X[i], torch.full((n, 1), i).double()], -1) for i, n in enumerate(sizes)])
    mean = MultitaskMean([constant_mean(m) for m in means.tolist()], num_tasks=T)
    options: dict[str, Any] = {"task_feature": -1, "output_tasks": [T - 1], "outcome_transform": None}
    theirs = MultiTaskGP(all_X, torch.cat(y).unsqueeze(-1), mean_module=mean, **options)
    theirs.covar_module = inputs * tasks
    theirs.likelihood.noise = noise_var

    params = coregional_params(
        lengthscale=lengthscale.unsqueeze(0),
        W=(factor @ factor.mT + torch.diag(own)).unsqueeze(0),
        noise_var=noise_var,
        mean=means,
    )
    data = [Dataset(X_i, y_i) for X_i, y_i in zip(X, y, strict=True)]
    ours = MTKGP.using(kernel=kernel).at(params, sources=data[:-1], target=data[-1])

    with torch.no_grad(), gpytorch.settings.fast_computations(False, False, False):
        prior = theirs.train().likelihood(theirs(all_X), [all_X])
        torch.testing.assert_close(joint_log_evidence(ours), prior.log_prob(torch.cat(y)), **TOLERANCE)
        compare(ours.posterior(Xq), theirs.eval().posterior(Xq))
