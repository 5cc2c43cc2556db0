"""The members of an outcome's mixture as functions of x: as they are, or given draws of results that are awaited.

A predictor that is no mixture is its own only member. A member is evaluated by its ``Surface`` where it has that form,
which gives the gradient in closed form, and by automatic differentiation otherwise.

Given that f(P) = y at the pending points P, a member's mean moves and its variance shrinks. For a layer that observed
its own mean at P, a draw y = mean(P) + L_P z moves the mean by wᵀz, with w the last rows of L⁻¹ P(X, x); for any other
predictor, f(x) | f(P) = m + L e has mean m(x) + wᵀe with w = L⁻¹ cov(P, x).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self, TypeAlias

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from headstart.decide.acquisition import confidence_bound, log_closeness, log_improvement, log_within
from headstart.decide.surface import Backward, Surface, surface_of
from headstart.gp.linalg import LEAST_VAR, cholesky, solve_lower
from headstart.gp.threads import single_thread
from headstart.models.chain.layer import Layer
from headstart.models.mixture import Predictor, components
from headstart.models.predictive import OutputTransform
from headstart.tuning import PLAIN_TUNING

Array = NDArray[np.float64]
_WithSlopes: TypeAlias = tuple[Array, Array, Array]  # a value, and its derivatives by mean and variance
# Means (q, n), one for every draw of the awaited results, and the variance (n)
Moments: TypeAlias = Callable[[Tensor], tuple[Tensor, Tensor]]

ROWS = 4096  # of a long list that are predicted together
_KNOWN_UP_TO = 1e-4  # of its variance f is taken as known at the pending points, so that they may also repeat


@dataclass(frozen=True, slots=True)
class ByAutograd:
    """Means and variance of f at points of a single problem, with gradients by automatic differentiation."""

    moments: Moments
    device: torch.device

    def predict(self, X: Float[Array, "n d"]) -> tuple[Float[Array, "q n"], Float[Array, "n"]]:
        """Means and variance at many points."""
        with torch.no_grad():
            mean, var = self.moments(torch.from_numpy(X).to(self.device))
        return mean.cpu().numpy(), var.cpu().numpy()

    def mean(self, X: Float[Array, "n d"]) -> Float[Array, "q n"]:
        """The means alone."""
        return self.predict(X)[0]

    def at(self, X: Float[Array, "n d"]) -> tuple[Float[Array, "q n"], Float[Array, "n"], Backward]:
        """Means and variance at a few points, and the function from their derivatives to those by x."""
        with torch.enable_grad():
            x = torch.from_numpy(X).to(self.device).requires_grad_()
            found = self.moments(x)

        def backward(by_mean: Array, by_var: Array) -> Array:
            slopes = zip(found, (by_mean, by_var), strict=True)
            pairs = [(own, by) for own, by in slopes if own.requires_grad]  # a variance may be the same everywhere
            if not pairs:
                return np.zeros_like(X)
            by_outputs = [torch.from_numpy(np.ascontiguousarray(by)).to(self.device) for _, by in pairs]
            gradient: Array = torch.autograd.grad([own for own, _ in pairs], x, by_outputs)[0].cpu().numpy()
            return gradient

        mean, var = (part.detach().cpu().numpy() for part in found)
        return mean, var, backward


@dataclass(frozen=True, slots=True)
class Nearness:
    """The loss |y − target| of an objective, in the user's units; ``way`` leads there from model units."""

    target: float
    way: OutputTransform

    @property
    def at(self) -> float:
        """The target in model units."""
        return float(self.inward_of(torch.tensor([self.target], dtype=torch.float64))[0])

    def inward_of(self, y: Float[Tensor, "*n"]) -> Float[Tensor, "*n"]:
        """Values in the user's units in model units."""
        return self.way.inward(y.reshape(-1)).reshape(y.shape)

    def loss(self, values: Float[Tensor, "*n"]) -> Float[Tensor, "*n"]:
        """How far values in model units are from the target, in the user's."""
        return (self.way.outward(values.reshape(-1)) - self.target).abs().reshape(values.shape)

    def ends(self, levels: Float[Array, "*n"]) -> tuple[Array, Array, Array]:
        """What is within a distance in the user's units, in model units, and the distance.

        None is less than that of what lies a thousandth beside the target: an exact hit could not be compared.
        """
        at, beside = self.at, PLAIN_TUNING.improvement_at_bound
        least = self.loss(torch.tensor([at - beside, at + beside], dtype=torch.float64)).amax()
        height = np.maximum(levels, float(least))
        low, high = (self.inward_of(torch.from_numpy(self.target + side * height)).numpy() for side in (-1.0, 1.0))
        return np.minimum(low, at - beside), np.maximum(high, at + beside), height


@dataclass(frozen=True)
class Members:
    """An outcome as a function of x: the k members of its predictor that have weight, with a mean for every draw q."""

    predictor: Predictor
    predictors: tuple[Predictor, ...]  # of the members
    functions: tuple[Surface | ByAutograd, ...]
    weights: Float[Array, "k"]
    noise_var: Float[Array, "k"]
    floor: float | None = None  # the lowest value that a result can have
    near: Nearness | None = None  # for an objective with a target

    @classmethod
    def of(cls, predictor: Predictor, floor: Float[Tensor, ""] | None = None, near: Nearness | None = None) -> Self:
        """Of a predictor of a single problem; a mixture in a mixture counts by its own members."""
        parts = [(member, 1.0 if weight is None else float(weight)) for member, weight in components(predictor)]
        predictors, kept = zip(*(part for part in parts if part[1] > PLAIN_TUNING.member_min_weight), strict=True)
        noise_var = torch.stack([member.noise_var for member in predictors]).detach().cpu().numpy()
        lowest = None if floor is None else float(floor)
        functions = tuple(_as_it_is(member) for member in predictors)
        return cls(predictor, predictors, functions, np.array(kept) / sum(kept), noise_var, lowest, near)

    def means(self, X: Float[Tensor, "n d"]) -> Float[Tensor, "n"]:
        """The mean of the mixture at every row of X, while no result is awaited."""
        points, weights = X.detach().cpu().numpy(), torch.from_numpy(self.weights)
        with single_thread():
            parts = [
                torch.from_numpy(np.stack([own.mean(points[i : i + ROWS])[0] for own in self.functions], axis=-1))
                for i in range(0, max(len(points), 1), ROWS)
            ]
            return torch.cat([(part * weights).sum(-1) for part in parts]).to(X.device)

    def reachable(self, values: Float[Tensor, "*n"]) -> Float[Tensor, "*n"]:
        """The values, none of them below the lowest that a result can have."""
        return values if self.floor is None else values.clamp_min(self.floor)

    def loss(self, values: Float[Tensor, "*n"]) -> Float[Tensor, "*n"]:
        """What is to be small: the values themselves, or with a target how far they are from it in the user's units."""
        return values if self.near is None else self.near.loss(values)

    def log_between(self, ends: tuple[float, float], X: Float[Tensor, "n d"], *, noisy: bool) -> Float[Tensor, "n"]:
        """The logarithm of the probability that f, or a noisy result, is between the ends at each row of X."""
        noise_var = self.noise_var[:, None, None] * noisy
        with single_thread():
            mean, var = self.predict(X.detach().cpu().numpy())
        value, *_ = log_within(mean, var[:, None], ends=ends, noise_var=noise_var)
        every = torch.from_numpy(value[:, 0] + np.log(self.weights)[:, None])
        return torch.logsumexp(every, dim=0).to(X.device)

    def log_below(self, level: Float[Tensor, ""], X: Float[Tensor, "n d"]) -> Float[Tensor, "n"]:
        """The logarithm of the probability that the loss is below a level at each row of X."""
        if self.near is not None:
            low, high, _ = self.near.ends(level.reshape(1).cpu().numpy())
            return self.log_between((float(low[0]), float(high[0])), X, noisy=False)
        if bool(self.reachable(level) > level):
            return X.new_full((len(X),), -torch.inf)
        return self.log_between((-math.inf, float(level)), X, noisy=False)

    def log_improvement(
        self, mean: Array, var: Array, *, level: Float[Array, "*#b 1"], noise_var: Float[Array, "*#b 1"]
    ) -> _WithSlopes:
        """The logarithm of what the loss is expected to be below ``level``, with its derivatives."""
        if self.near is None:
            return log_improvement(mean, var, level=level, noise_var=noise_var, floor=self.floor)
        low, high, height = self.near.ends(np.ascontiguousarray(level))
        return log_closeness(mean, var, low=low, at=self.near.at, high=high, height=height, noise_var=noise_var)

    def confidence_bound(self, mean: Array, var: Array, beta: float) -> _WithSlopes:
        """−(loss − β sd) of the mean with its derivatives; a distance to a target is that in model units."""
        if self.near is None:
            return confidence_bound(mean, var, beta)
        away = mean - self.near.at
        value, by_mean, by_var = confidence_bound(np.abs(away), var, beta)
        return value, by_mean * np.sign(away), by_var

    def predict(self, X: Float[Array, "n d"]) -> tuple[Float[Array, "k q n"], Float[Array, "k n"]]:
        """Means and variances at many points."""
        means, variances = zip(*(own.predict(X) for own in self.functions), strict=True)
        return np.stack(means), np.maximum(np.stack(variances), LEAST_VAR)

    def at(self, X: Float[Array, "n d"]) -> tuple[Float[Array, "k q n"], Float[Array, "k n"], Backward]:
        """Means and variances at a few points, and the function from their derivatives to those by x."""
        means, variances, back = zip(*(own.at(X) for own in self.functions), strict=True)
        var = np.stack(variances)

        def backward(by_mean: Float[Array, "k q n"], by_var: Float[Array, "k n"]) -> Float[Array, "n d"]:
            by_var = np.where(var > LEAST_VAR, by_var, 0.0)
            parts = [own(by_mean[k], by_var[k]) for k, own in enumerate(back)]
            gradient: Array = sum(parts[1:], start=parts[0])
            return gradient

        return np.stack(means), np.maximum(var, LEAST_VAR), backward

    def given(
        self, X: Float[Tensor, "p d"], e: Float[Tensor, "q p"], *, alike: bool
    ) -> tuple[Members, Float[Tensor, "k q p"]]:
        """The members given draws of f at the points X that are awaited, and the draws, from standard normal numbers.

        Every member has draws of its own, or all have those of the mixture as a normal distribution (``alike``).
        """
        awaited = [_Awaited.of(member, X) for member in self.predictors]
        if alike:
            y = [self.reachable(_Awaited.of(self.predictor, X).draws(e))] * len(awaited)
        else:
            y = [own.draws(e) for own in awaited]
        functions = tuple(own.given(draws) for own, draws in zip(awaited, y, strict=True))
        return replace(self, functions=functions), torch.stack(y)


def _as_it_is(predictor: Predictor) -> Surface | ByAutograd:
    """A member while no result is awaited."""

    def moments(X: Tensor) -> tuple[Tensor, Tensor]:
        mean, var = predictor.predict_marginal(X)
        return mean.unsqueeze(0), var

    return surface_of(predictor) or ByAutograd(moments, predictor.X.device)


@dataclass(frozen=True, slots=True)
class _Awaited:
    """The distribution of f at the points whose results are awaited, by one predictor."""

    predictor: Predictor
    X: Float[Tensor, "p d"]
    mean: Float[Tensor, "p"]
    noise_var: Float[Tensor, "p"]
    L: Float[Tensor, "p p"]

    @classmethod
    def of(cls, predictor: Predictor, X: Float[Tensor, "p d"]) -> Self:
        with torch.no_grad():
            mean, cov = predictor.predict(X)
            noise_var = _KNOWN_UP_TO * cov.diagonal().clamp_min(0.0) + LEAST_VAR
            L = cholesky(cov + torch.diag_embed(noise_var), of="The covariance of the pending points")
        return cls(predictor, X, mean, noise_var, L)

    def draws(self, e: Float[Tensor, "q p"]) -> Float[Tensor, "q p"]:
        """Values of f at the points, from standard normal numbers."""
        return self.mean + (self.L @ e.to(self.mean.device).unsqueeze(-1)).squeeze(-1)

    def given(self, y: Float[Tensor, "q p"]) -> Surface | ByAutograd:
        """The predictor given each of several draws y of f at the points."""
        with torch.no_grad():
            shift = (y - self.mean).mT
            if not isinstance(self.predictor, Layer):
                return ByAutograd(self._by_covariance(solve_lower(self.L, shift).mT), y.device)
            layer, p = self.predictor.observing(self.X, self.mean, noise_var=self.noise_var), len(self.X)
            z = solve_lower(layer.L[-p:, -p:], shift).mT
        surface = surface_of(layer)
        if surface is not None:
            return surface.shifted(z.numpy())

        def moments(X: Tensor) -> tuple[Tensor, Tensor]:
            mean, var = layer.predict_marginal(X)
            w = solve_lower(layer.L, layer.gain_cov(layer.at, layer.below.at(X)))[-p:, :]
            return mean + z @ w, var

        return ByAutograd(moments, y.device)

    def _by_covariance(self, e: Float[Tensor, "q p"]) -> Moments:
        def moments(X: Tensor) -> tuple[Tensor, Tensor]:
            rows = X.unsqueeze(-2)
            mean, cov = self.predictor.predict(torch.cat([rows, self.X.expand(len(rows), *self.X.shape)], -2))
            w = solve_lower(self.L, cov[:, 1:, :1].squeeze(-1).mT)
            return mean[:, 0] + e @ w, cov[:, 0, 0] - w.square().sum(-2)

        return moments
