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
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from botorch.posteriors.posterior import Posterior
from botorch.posteriors.transformed import TransformedPosterior
from jaxtyping import Float
from scipy.special import chdtri
from torch import Tensor

from headstart.data.bounds import Bounds, Seen, SoftBounds, Support
from headstart.data.units import Units
from headstart.data.warp import Warp
from headstart.errors import InputError
from headstart.models.chain.beliefs import BeliefsAt, sources_at
from headstart.models.chain.layer import Layer
from headstart.models.mixture import components
from headstart.tuning import PLAIN_TUNING

# Halvings of the bracket of a quantile: 2⁻⁶⁰ of it is below the rounding of its ends
_HALVINGS = 60
_SCALES = 9  # normal distributions that stand for Student's
_LOG_ROOT_TAU = 0.5 * math.log(2 * math.pi)


@dataclass(frozen=True, slots=True)
class NormalMixture:
    """One distribution per problem and point, (*c, m); its members, one or several, are in the last dimension."""

    means: Float[Tensor, "*c m k"]
    sds: Float[Tensor, "*c m k"]
    weights: Float[Tensor, "*#c #m k"]

    def cdf(self, y: Float[Tensor, "*#c #m"], *, above: bool = False) -> Float[Tensor, "*c m"]:
        """P(result ≤ y), or P(result > y), each exact where it is small."""
        z = self._standardised(y)
        every: Tensor = torch.special.ndtr(-z if above else z)
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
        return _where_reached(self.cdf, p, low, high)

    @property
    def sd(self) -> Float[Tensor, "*c m"]:
        """The standard deviation of the mixture."""
        away = self.means - (self.weights * self.means).sum(-1, keepdim=True)
        return (self.weights * (self.sds.square() + away.square())).sum(-1).sqrt()

    def with_unknown_scale(self, freedom: float) -> NormalMixture:
        """The same with Student's distribution, of so many degrees of freedom, in place of every normal one."""
        middle = (np.arange(_SCALES) + 0.5) / _SCALES
        factors = torch.from_numpy(np.sqrt(freedom / chdtri(freedom, middle))).to(self.sds)
        sds = (self.sds.unsqueeze(-1) * factors).flatten(-2)
        means = self.means.unsqueeze(-1).expand(*self.means.shape, _SCALES).flatten(-2)
        weights = (self.weights.unsqueeze(-1) / _SCALES).expand(*self.weights.shape, _SCALES).flatten(-2)
        return NormalMixture(means, sds, weights)

    def _standardised(self, y: Float[Tensor, "*#c #m"]) -> Float[Tensor, "*c m k"]:
        return (y.unsqueeze(-1) - self.means) / self.sds


def _where_reached(
    cdf: Callable[[Tensor], Tensor], p: float, low: Float[Tensor, "*c m"], high: Float[Tensor, "*c m"]
) -> Float[Tensor, "*c m"]:
    """Where a distribution function reaches p, which is between low and high."""
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        below = cdf(middle) < p
        low, high = torch.where(below, middle, low), torch.where(below, high, middle)
    return 0.5 * (low + high)


@dataclass(frozen=True, slots=True)
class Doubt:
    """What predictors leave out of their uncertainty."""

    level_var: Float[Tensor, "*b"]  # of the target before any data, in model units
    freedom: float  # how many independent values its scale is known from; two points of a search show as much as one


def measurement(predictor: Any, X: Float[Tensor, "*b m d"], doubt: Doubt | None, *, noise: bool) -> NormalMixture:
    """What a measurement at every row of X will be, in model units: a draw from a drawn member, with noise or not."""
    means, sds, weights = [], [], []
    asked: dict[tuple[int, ...], BeliefsAt] = {}  # the sources, once for all stars that are made of them
    for member, weight in components(predictor):
        at: Tensor | BeliefsAt = X
        sources = member.below.sources if isinstance(member, Layer) else ()
        if sources and X.shape[:-2] == member.batch_shape:
            which = tuple(map(id, sources))
            at = asked[which] = asked.get(which) or sources_at(sources, X)
        for one, share in member.over_sizes_of_shifts() if doubt and isinstance(member, Layer) else [(member, 1.0)]:
            if doubt is not None and isinstance(one, Layer):
                mean, var, level_var = one.predict_with_level(at, doubt.level_var)
                var = var + level_var
            else:
                mean, var = one.predict_marginal(at)
            means.append(mean)
            sds.append((var + noise * one.noise_var.unsqueeze(-1)).sqrt())
            weights.append(share * (torch.ones_like(mean[..., 0]) if weight is None else weight))
    every = NormalMixture(torch.stack(means, -1), torch.stack(sds, -1), torch.stack(weights, -1).unsqueeze(-2))
    return every if doubt is None else every.with_unknown_scale(doubt.freedom)


def require_probability(p: float, name: str) -> None:
    """Raise an ``InputError`` unless 0 < p < 1."""
    if not 0 < p < 1:
        raise InputError(f"{name} must be between 0 and 1, such as 0.95, but it is {p}.")


@dataclass(frozen=True, slots=True)
class OutputTransform:
    """From model units to the user's: offset and scale, a monotone map, and the values that a result can have.

        model units  –(units)→  mapped units  –(warp)→  –(bounds)→  the user's units

    Where there is no warp mapped units are the user's; bounds cut off what lies beyond them (data.bounds).

    What is stated of a measurement, its quantiles and probabilities, approaches a bound that no result was ``seen`` at.
    With v the result in model units, u → v the ``SoftBounds`` that reach ``bound_reach`` standard deviations of the
    measurement, F the predictor's distribution function and ε = ``bound_doubt``

        P(result ≤ y) = (1 − ε) F(u(v)) + ε F(v)        and 0 or 1 beyond a bound that is given
    """

    units: Units
    warp: Warp | None
    bounds: Bounds | None
    seen: Seen | None = None

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
        self, predictor: Any, X: Float[Tensor, "*b m d"]
    ) -> tuple[Float[Tensor, "*c m"], Float[Tensor, "*c m"]]:
        """Mean and variance of f at every row of X; within bounds those of the mixture, cut off member by member."""
        offset, scale = self.units.offset.unsqueeze(-1), self.units.scale.unsqueeze(-1)
        # a member that knows little reaches far beyond the bounds, and would draw the common moments with it
        parts = components(predictor) if self.bounds is not None else [(predictor, None)]
        found = []
        for member, weight in parts:
            mean, var = member.predict_marginal(X)
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

    @property
    def _support(self) -> Support:
        """Where results can be."""
        return Support.of(self.bounds, self.seen, self.units.offset)

    def _soft(self, said: NormalMixture) -> SoftBounds | None:
        """The bounds that a measurement approaches, in model units; None where there are none."""
        ends = [end.unsqueeze(-1) for end in (self._support.low_approached, self._support.high_approached)]
        there = [end.isfinite() for end in ends]
        if not bool(torch.cat(there, -1).any()):
            return None
        inner = [self.inward(end.masked_fill(~known, 0.0)) for end, known in zip(ends, there, strict=True)]
        low, high = (torch.where(*each) for each in zip(there, inner, ends, strict=True))
        return SoftBounds.between(low, high, PLAIN_TUNING.bound_reach * said.sd)

    def quantile(self, said: NormalMixture, p: float) -> Float[Tensor, "*c m"]:
        """The y with P(result ≤ y) = p, in the user's units."""
        inner, soft, ends = said.quantile(p), self._soft(said), self._support
        low, high = ends.low.unsqueeze(-1), ends.high.unsqueeze(-1)
        if soft is None:
            return self.outward(inner).clamp(low, high)
        kept = soft.outward(inner)
        between = torch.minimum(inner, kept), torch.maximum(inner, kept)
        inner = _where_reached(lambda v: self._softly(said, soft, v, said.cdf(v)), p, *between)
        y = self.outward(inner).clamp(low, high)
        # rounding may carry a value next to a bound beyond it
        y = torch.where(inner > soft.low, torch.maximum(y, ends.low_approached.unsqueeze(-1)), y)
        return torch.where(inner < soft.high, torch.minimum(y, ends.high_approached.unsqueeze(-1)), y)

    @staticmethod
    def _softly(said: NormalMixture, soft: SoftBounds, inner: Tensor, free: Float[Tensor, "*c m"]) -> Tensor:
        """P(result ≤ y) with bounds that are approached, from that without."""
        return torch.lerp(said.cdf(soft.inward(inner)[0]), free, PLAIN_TUNING.bound_doubt)

    def cdf(
        self, said: NormalMixture, y: Float[Tensor, "*#c #m"], inner: Float[Tensor, "*#c #m"] | None = None
    ) -> Float[Tensor, "*c m"]:
        """P(result ≤ y); ``inner`` is y in model units, where that is not as of a result."""
        inner = self.inward(y) if inner is None else inner
        found, soft, ends = said.cdf(inner), self._soft(said), self._support
        found = found if soft is None else self._softly(said, soft, inner, found)
        found = torch.where(y < ends.low.unsqueeze(-1), torch.zeros_like(found), found)
        return torch.where(y >= ends.high.unsqueeze(-1), torch.ones_like(found), found)

    def log_density(self, said: NormalMixture, y: Float[Tensor, "*#c #m"]) -> Float[Tensor, "*c m"]:
        """log p(y) in the user's units; at a bound the logarithm of the probability that lies there."""
        inner, soft, ends = self.inward(y), self._soft(said), self._support
        low, high = ends.low.unsqueeze(-1), ends.high.unsqueeze(-1)
        slope = -self.units.scale.log().unsqueeze(-1)
        slope = slope if self.warp is None else slope + self.warp.log_slope(y)
        found = said.log_density(inner) + slope
        found = torch.where(y <= low, said.cdf(inner).log(), found)
        found = torch.where(y >= high, said.cdf(inner, above=True).log(), found)
        found = torch.where((y < low) | (y > high), torch.full_like(found, -torch.inf), found)
        if soft is None:
            return found
        u, by_bounds = soft.inward(inner)
        kept = said.log_density(u) + by_bounds + slope + math.log1p(-PLAIN_TUNING.bound_doubt)
        return torch.logaddexp(kept, found + math.log(PLAIN_TUNING.bound_doubt))
