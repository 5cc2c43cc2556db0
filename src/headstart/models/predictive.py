"""The distribution of a measurement at a point: a normal one, or a mixture of normals where several models predict.

With weights w_k that add up to 1, means μ_k and standard deviations s_k, noise included,

    P(result ≤ y) = Σ w_k Φ((y − μ_k)/s_k)        density Σ w_k φ((y − μ_k)/s_k)/s_k

which is not the normal distribution with the mixture's mean and variance: where the members disagree it has shoulders
or several peaks.

What is stated to the user is wider than what the members say. They take the target's level as known
(``Layer.predict_with_level``) and its scale too, which n values show as well as they show a standard deviation: what
is divided by it is not normal but has Student's distribution. That is again a mixture of normals, of which a few are
taken.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from scipy.special import chdtri
from torch import Tensor

from headstart.errors import InputError
from headstart.models.chain.beliefs import BeliefsAt
from headstart.models.chain.layer import Layer
from headstart.models.mixture import components
from headstart.models.star.weights import StarBeliefs, sources_at

# Halvings of the bracket of a quantile: 2⁻⁶⁰ of it is below the rounding of its ends
_HALVINGS = 60
_SCALES = 9  # normal distributions that stand for Student's
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

    def above(self, y: Float[Tensor, "*#c #m"]) -> Float[Tensor, "*c m"]:
        """P(result > y), exact where it is small."""
        every: Tensor = torch.special.ndtr(-self._standardised(y))
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

    def with_unknown_scale(self, freedom: float) -> NormalMixture:
        """The same with Student's distribution, of so many degrees of freedom, in place of every normal one."""
        middle = (np.arange(_SCALES) + 0.5) / _SCALES
        factors = torch.from_numpy(np.sqrt(freedom / chdtri(freedom, middle))).to(self.sds)
        sds = (self.sds.unsqueeze(-1) * factors).flatten(-2)
        means = self.means.unsqueeze(-1).expand(*self.means.shape, _SCALES).flatten(-2)
        weights = (self.weights.unsqueeze(-1) / _SCALES).expand(*self.weights.shape, _SCALES).flatten(-2)
        return NormalMixture(means, sds, weights)

    def with_error(self, error_var: Float[Tensor, "*#c #m"]) -> NormalMixture:
        """The same of results of which a further error is known, a variance each."""
        return NormalMixture(self.means, (self.sds.square() + error_var.unsqueeze(-1)).sqrt(), self.weights)

    def _standardised(self, y: Float[Tensor, "*#c #m"]) -> Float[Tensor, "*c m k"]:
        return (y.unsqueeze(-1) - self.means) / self.sds


@dataclass(frozen=True, slots=True)
class Doubt:
    """What predictors leave out of their uncertainty.

    ``level_var`` is the variance of the target's level before any data, in model units; ``freedom`` how many
    independent values its scale is known from. The points of a search are near each other, and two of them show as much
    as one independent value.
    """

    level_var: Float[Tensor, "*b"]
    freedom: float


def _sharing_sources(parts: Iterable[tuple[Any, Any, Any]]) -> Iterator[tuple[Any, Any, Any]]:
    """The same, with the sources asked once for all stars that are made of them."""
    asked: dict[tuple[int, ...], BeliefsAt] = {}
    for member, weight, X in parts:
        below = member.below if isinstance(member, Layer) else None
        if isinstance(below, StarBeliefs) and isinstance(X, Tensor) and X.shape[:-2] == member.batch_shape:
            which = tuple(map(id, below.members))
            if which not in asked:
                asked[which] = sources_at(below.members, X)
            yield member, weight, asked[which]
        else:
            yield member, weight, X


def measurement(
    predictor: Any, X: Float[Tensor, "*b m d"] | BeliefsAt, doubt: Doubt | None, *, noise: bool
) -> NormalMixture:
    """What a measurement at every row of X will be, in model units: a draw from a drawn member, with noise or not."""
    means, sds, weights = [], [], []
    for member, weight, at in _sharing_sources(components(predictor, X)):
        if doubt is not None and isinstance(member, Layer):
            mean, var, level_var = member.predict_with_level(at, doubt.level_var)
            var = var + level_var
        else:
            mean, var = member.predict_marginal(at)
        means.append(mean)
        sds.append((var + noise * member.noise_var.unsqueeze(-1)).sqrt())
        weights.append(torch.ones_like(mean[..., 0]) if weight is None else weight)
    every = NormalMixture(torch.stack(means, -1), torch.stack(sds, -1), torch.stack(weights, -1).unsqueeze(-2))
    return every if doubt is None else every.with_unknown_scale(doubt.freedom)


def require_probability(p: float, name: str) -> None:
    """Raise an ``InputError`` unless 0 < p < 1."""
    if not 0 < p < 1:
        raise InputError(f"{name} must be between 0 and 1, such as 0.95, but it is {p}.")
