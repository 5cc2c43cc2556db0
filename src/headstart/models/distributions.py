"""The distributions that the bridge to BoTorch hands out."""

from __future__ import annotations

from functools import partial

import torch
from botorch.posteriors.posterior import Posterior
from botorch.posteriors.transformed import TransformedPosterior
from gpytorch.distributions import MultivariateNormal
from gpytorch.likelihoods import GaussianLikelihood
from jaxtyping import Float
from torch import Tensor

from headstart.data.warp import Warp

__all__ = ["ExactNormal", "noise_likelihood", "through"]


class ExactNormal(MultivariateNormal):  # type: ignore[misc]
    """Whose variance is what it is: GPyTorch raises variances below 1e-10, whatever the units of y."""

    @property
    def variance(self) -> Tensor:
        """The diagonal of the covariance."""
        diagonal: Tensor = self.lazy_covariance_matrix.diagonal(dim1=-1, dim2=-2)
        return diagonal.expand(self.loc.shape)


def through(warp: Warp, posterior: Posterior) -> TransformedPosterior:
    """A normal distribution in mapped units, seen in the user's; mean and variance by quadrature."""

    def moment(which: int, mean: Tensor, var: Tensor) -> Tensor:
        return warp.moments(mean.squeeze(-1), var.squeeze(-1))[which].unsqueeze(-1)

    return TransformedPosterior(
        posterior,
        sample_transform=lambda samples: warp.outward(samples.squeeze(-1)).unsqueeze(-1),
        mean_transform=partial(moment, 0),
        variance_transform=partial(moment, 1),
    )


def noise_likelihood(noise: Float[Tensor, "*b"]) -> GaussianLikelihood:
    """Observation noise of this variance as a GPyTorch likelihood with fixed parameters."""
    from gpytorch.constraints import GreaterThan

    floor = float(noise.min()) * (1 - 1e-9) if noise.numel() else 0.0
    likelihood = GaussianLikelihood(
        batch_shape=noise.shape, noise_constraint=GreaterThan(floor, transform=None, initial_value=noise.unsqueeze(-1))
    )
    likelihood = likelihood.to(dtype=torch.float64, device=noise.device)
    likelihood.noise = noise.unsqueeze(-1)
    for parameter in likelihood.parameters():
        parameter.requires_grad_(False)
    return likelihood.eval()
