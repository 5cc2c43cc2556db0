"""The distributions that the bridge to BoTorch hands out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from botorch.posteriors.posterior import Posterior
from botorch.posteriors.transformed import TransformedPosterior
from gpytorch.distributions import MultivariateNormal
from gpytorch.likelihoods import GaussianLikelihood
from jaxtyping import Float
from torch import Tensor

from headstart.data.bounds import Bounds
from headstart.data.units import Units
from headstart.data.warp import Warp
from headstart.errors import InputError
from headstart.models.chain.beliefs import BeliefsAt
from headstart.models.mixture import components
from headstart.models.predictive import NormalMixture


class ExactNormal(MultivariateNormal):  # type: ignore[misc]
    """Whose variance is what it is: GPyTorch raises variances below 1e-10, whatever the units of y."""

    @property
    def variance(self) -> Tensor:
        """The diagonal of the covariance."""
        diagonal: Tensor = self.lazy_covariance_matrix.diagonal(dim1=-1, dim2=-2)
        return diagonal.expand(self.loc.shape)


@dataclass(frozen=True, slots=True)
class OutputTransform:
    """From model units to the user's: offset and scale, a monotone map, and the values that a result can have.

        model units  –(units)→  mapped units  –(warp)→  –(bounds)→  the user's units

    Where there is no warp mapped units are the user's; bounds cut off what lies beyond them (data.bounds).
    """

    units: Units
    warp: Warp | None
    bounds: Bounds | None

    def inward(self, y: Float[Tensor, "*c m"]) -> Float[Tensor, "*c m"]:
        """Values in the user's units as a predictor means them."""
        mapped = y if self.warp is None else self.warp.inward(y)
        return (mapped - self.units.offset.unsqueeze(-1)) / self.units.scale.unsqueeze(-1)

    def outward(self, inner: Float[Tensor, "*c m"]) -> Float[Tensor, "*c m"]:
        """A predictor's values in the user's units."""
        return self._seen(self.units.offset.unsqueeze(-1) + self.units.scale.unsqueeze(-1) * inner)

    def _seen(self, mapped: Float[Tensor, "*c m"]) -> Float[Tensor, "*c m"]:
        y = mapped if self.warp is None else self.warp.outward(mapped)
        return y if self.bounds is None else self.bounds.clip(y)

    def moments(
        self, mean: Float[Tensor, "*c m"], var: Float[Tensor, "*c m"]
    ) -> tuple[Float[Tensor, "*c m"], Float[Tensor, "*c m"]]:
        """Mean and variance in the user's units of what is normal in mapped units."""
        if self.bounds is not None:
            return self.bounds.moments(mean, var, self.warp)
        return (mean, var) if self.warp is None else self.warp.moments(mean, var)

    def predicted(
        self, predictor: Any, X: Float[Tensor, "*b m d"] | BeliefsAt
    ) -> tuple[Float[Tensor, "*c m"], Float[Tensor, "*c m"]]:
        """Mean and variance of f at every row of X; within bounds those of the mixture, cut off member by member.

        A member that knows little reaches far beyond the bounds, and would draw the common moments with it.
        """
        offset, scale = self.units.offset.unsqueeze(-1), self.units.scale.unsqueeze(-1)
        parts = components(predictor, X) if self.bounds is not None else [(predictor, None, X)]
        found = []
        for member, weight, at in parts:
            mean, var = member.predict_marginal(at)
            mean, var = self.moments(offset + scale * mean, scale.square() * var)
            if weight is None:
                return mean, var
            found.append((weight.unsqueeze(-1), mean, var))
        total = sum((w * mean for w, mean, _ in found), start=torch.zeros_like(found[0][1]))
        apart = (w * (var + (mean - total).square()) for w, mean, var in found)
        return total, sum(apart, start=torch.zeros_like(total))

    def through(self, posterior: Posterior) -> Posterior:
        """A normal distribution in mapped units, seen in the user's; mean and variance by quadrature."""
        if self.warp is None and self.bounds is None:
            return posterior

        def moment(which: int, mean: Tensor, var: Tensor) -> Tensor:
            return self.moments(mean.squeeze(-1), var.squeeze(-1))[which].unsqueeze(-1)

        return TransformedPosterior(
            posterior,
            sample_transform=lambda samples: self._seen(samples.squeeze(-1)).unsqueeze(-1),
            mean_transform=partial(moment, 0),
            variance_transform=partial(moment, 1),
        )

    def cdf(
        self, said: NormalMixture, y: Float[Tensor, "*#c #m"], inner: Float[Tensor, "*#c #m"] | None = None
    ) -> Float[Tensor, "*c m"]:
        """P(result ≤ y); ``inner`` is y in model units, where that is not as of a result."""
        found = said.cdf(self.inward(y) if inner is None else inner)
        if self.bounds is None:
            return found
        found = torch.where(y < self.bounds.low, torch.zeros_like(found), found)
        return torch.where(y >= self.bounds.high, torch.ones_like(found), found)

    def log_density(self, said: NormalMixture, y: Float[Tensor, "*#c #m"]) -> Float[Tensor, "*c m"]:
        """log p(y) in the user's units; at a bound the logarithm of the probability that lies there."""
        inner = self.inward(y)
        found = said.log_density(inner) - self.units.scale.log().unsqueeze(-1)
        found = found if self.warp is None else found + self.warp.log_slope(y)
        if self.bounds is None:
            return found
        found = torch.where(y <= self.bounds.low, said.cdf(inner).log(), found)
        found = torch.where(y >= self.bounds.high, said.above(inner).log(), found)
        return torch.where(self.bounds.clip(y) == y, found, torch.full_like(found, -torch.inf))


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


def require_points(X: Tensor, own: Float[Tensor, "*b n d"]) -> None:
    """Raise an ``InputError`` unless X are points like those of the model's own."""
    if not isinstance(X, Tensor) or X.dim() < 2 or X.shape[-1] != own.shape[-1]:
        shape = tuple(X.shape) if isinstance(X, Tensor) else type(X).__name__
        raise InputError(f"X must have shape (*batch, q, {own.shape[-1]}), but it is {shape}.")
    if X.dtype != torch.float64 or X.device != own.device:
        raise InputError(f"X must be float64 on {own.device}, but it is {X.dtype} on {X.device}.")
    if not bool(X.isfinite().all()):
        raise InputError("X must be finite, but it has NaN or infinite entries.")


def require_values(Y: Tensor, n: int) -> None:
    """Raise an ``InputError`` unless Y are n results, as BoTorch gives them."""
    if not isinstance(Y, Tensor) or Y.dtype != torch.float64 or Y.shape[-2:] != (n, 1):
        what = f"{Y.dtype} of shape {tuple(Y.shape)}" if isinstance(Y, Tensor) else type(Y).__name__
        raise InputError(f"Y must be float64 of shape (*batch, {n}, 1), but it is {what}.")
    if not bool(Y.isfinite().all()):
        raise InputError("Y must be finite: leave out observations that failed.")
