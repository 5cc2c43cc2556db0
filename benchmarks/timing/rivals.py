"""The same fits as BoTorch users do them today, from the same starting points and inside the same bounds.

Everything here is plain BoTorch and GPyTorch; nothing of headstart's numerics is used. Parameters are optimised by
``fit_gpytorch_mll`` in their natural space with bounds, which is how BoTorch sets up its own models; GPyTorch's older
softplus parametrisation, which has no bounds and often needs fewer steps, is there as well.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from botorch.exceptions.warnings import BotorchWarning
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from gpytorch.constraints import GreaterThan, Interval
from gpytorch.kernels import Kernel, RBFKernel, ScaleKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.means import ZeroMean
from gpytorch.mlls import ExactMarginalLogLikelihood
from jaxtyping import Float
from linear_operator.utils.warnings import NumericalWarning
from torch import Tensor


def _interval(lower: float, upper: float, start: Tensor) -> Interval:
    return Interval(lower, upper, transform=None, initial_value=start)


def scaled_rbf(d: int) -> ScaleKernel:
    """An ARD RBF kernel with an outputscale, in the bounds of headstart.gp.hyperparameters."""
    base = RBFKernel(ard_num_dims=d, lengthscale_constraint=_interval(0.05, 20.0, torch.tensor(0.5)))
    return ScaleKernel(base, outputscale_constraint=_interval(0.01, 100.0, torch.tensor(1.0)))


class FixedCovariance(Kernel):  # type: ignore[misc]
    """A kernel plus a constant matrix on the training inputs: what SHGP's target inherits from its sources."""

    def __init__(self, kernel: Kernel, C: Float[Tensor, "n n"]) -> None:
        super().__init__()
        self.kernel, self.C = kernel, C

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Any:
        """kernel(x1, x2) + C."""
        K = self.kernel.forward(x1, x2, diag=diag, **params)
        K = K if isinstance(K, Tensor) else K.to_dense()
        return K + (self.C.diagonal() if diag else self.C)


def softplus_rbf(d: int) -> ScaleKernel:
    """The same kernel with GPyTorch's own defaults: every parameter is the softplus of a free one, no bounds."""
    return ScaleKernel(RBFKernel(ard_num_dims=d))


def single_task(
    X: Float[Tensor, "n d"], y: Float[Tensor, "n"], covar_module: Kernel, *, softplus: bool = False
) -> SingleTaskGP:
    """A zero-mean exact GP with the given kernel and headstart's noise bounds, no priors."""
    noise = GreaterThan(1e-6) if softplus else _interval(1e-6, 1.0, torch.tensor(0.1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BotorchWarning)  # inputs and outputs are scaled as headstart scales them
        return SingleTaskGP(
            X,
            y.unsqueeze(-1),
            likelihood=GaussianLikelihood(noise_constraint=noise),
            covar_module=covar_module,
            mean_module=ZeroMean(),
            outcome_transform=None,
        ).double()


def _fit(model: SingleTaskGP) -> float:
    """Maximise the marginal likelihood from where the model stands; log p(y) at the end."""
    mll = ExactMarginalLogLikelihood(model.likelihood, model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # line searches that end early are BoTorch's business
        fit_gpytorch_mll(mll)
    model.train()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore", NumericalWarning)
        return float(mll(model(*model.train_inputs), model.train_targets)) * len(model.train_targets)


def fit_from_starts(
    make: Callable[[], SingleTaskGP], set_start: Callable[[SingleTaskGP, Tensor], None], starts: Tensor
) -> float:
    """One ``fit_gpytorch_mll`` after the other; the best log p(y)."""
    best = -float("inf")
    for start in starts:
        model = make()
        set_start(model, start)
        best = max(best, _fit(model))
    return best


def fit_default(X: Float[Tensor, "n d"], y: Float[Tensor, "n"]) -> float:
    """BoTorch's own default: ``SingleTaskGP`` with its priors, one fit. (Its evidence is of another model.)"""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BotorchWarning)
        return _fit(SingleTaskGP(X, y.unsqueeze(-1)))
