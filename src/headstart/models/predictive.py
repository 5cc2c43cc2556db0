"""The distribution of a measurement at a point: a normal one, or a mixture of normals where several models predict.

With weights w_k that add up to 1, means μ_k and standard deviations s_k, noise included,

    P(result ≤ y) = Σ w_k Φ((y − μ_k)/s_k)        density Σ w_k φ((y − μ_k)/s_k)/s_k

which is not the normal distribution with the mixture's mean and variance: where the members disagree it has shoulders
or several peaks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from headstart.errors import InputError

__all__ = ["NormalMixture", "require_probability"]

# Halvings of the bracket of a quantile: 2⁻⁶⁰ of it is below the rounding of its ends
_HALVINGS = 60
_LOG_ROOT_TAU = 0.5 * math.log(2 * math.pi)


@dataclass(frozen=True, slots=True)
class NormalMixture:
    """One distribution per problem and point, (*c, m); its members are in the last dimension.

    A single normal distribution has one member of weight 1.
    """

    means: Float[Tensor, "*c m k"]
    sds: Float[Tensor, "*c m k"]
    weights: Float[Tensor, "*#c #m k"]

    def cdf(self, y: Float[Tensor, "*#c #m"]) -> Float[Tensor, "*c m"]:
        """P(result ≤ y)."""
        every: Tensor = torch.special.ndtr(self._standardised(y))
        return (self.weights * every).sum(-1)

    def log_density(self, y: Float[Tensor, "*#c #m"]) -> Float[Tensor, "*c m"]:
        """log p(y), far out in the tails as well."""
        every = -0.5 * self._standardised(y).square() - _LOG_ROOT_TAU - self.sds.log()
        return torch.logsumexp(every + self.weights.log(), dim=-1)

    def quantile(self, p: float) -> Float[Tensor, "*c m"]:
        """The y with P(result ≤ y) = p. It lies between the lowest and the highest of the members' own quantiles."""
        require_probability(p, "p")
        own: Tensor = self.means + self.sds * torch.special.ndtri(self.means.new_tensor(p))
        if own.shape[-1] == 1:
            return own.squeeze(-1)
        counts = self.weights.expand(own.shape) > 0
        low = own.masked_fill(~counts, torch.inf).amin(-1)
        high = own.masked_fill(~counts, -torch.inf).amax(-1)
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            below = self.cdf(middle) < p
            low, high = torch.where(below, middle, low), torch.where(below, high, middle)
        return 0.5 * (low + high)

    def _standardised(self, y: Float[Tensor, "*#c #m"]) -> Float[Tensor, "*c m k"]:
        return (y.unsqueeze(-1) - self.means) / self.sds


def require_probability(p: float, name: str) -> None:
    """Raise an ``InputError`` unless 0 < p < 1."""
    if not 0 < p < 1:
        raise InputError(f"{name} must be between 0 and 1, such as 0.95, but it is {p}.")
