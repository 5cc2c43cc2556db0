"""The members of an outcome's mixture as functions of x: as they are, or given draws of results that are awaited.

A predictor that is no mixture is its own only member. A member is asked through its ``Surface`` where it has that form,
which gives the gradient in closed form, and through automatic differentiation otherwise.

Given that f(P) = y at the pending points P, a member's mean moves and its variance shrinks. For a layer that observed
its own mean at P, a draw y = mean(P) + L_P z moves the mean by wᵀz, with w the last rows of L⁻¹ P(X, x); for any other
predictor, f(x) | f(P) = m + L e has mean m(x) + wᵀe with w = L⁻¹ cov(P, x).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, Self, TypeAlias

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from headstart.decide.surface import Surface, surface_of
from headstart.gp.linalg import LEAST_VAR, cholesky, solve_lower
from headstart.gp.threads import single_thread
from headstart.models.chain.layer import Layer
from headstart.models.mixture import Predictor, components

Array = NDArray[np.float64]
# From the derivatives by the means (q, n) and the variance (n) to the gradient by x (n, d)
Backward: TypeAlias = Callable[[Array, Array], Array]

# Rows of a long list that are predicted together
ROWS = 4096
# A member with less weight is not asked: it takes as long as one that counts
_NEGLIGIBLE = 1e-3
# f is taken as known at the pending points up to this share of its variance, so that they may also repeat
_KNOWN_UP_TO = 1e-4


class MemberFunction(Protocol):
    """Mean of f, for every draw of the awaited results, and its variance at points of a single problem."""

    def predict(self, X: Float[Array, "n d"]) -> tuple[Float[Array, "q n"], Float[Array, "n"]]:
        """Means and variance at many points."""
        ...

    def at(self, X: Float[Array, "n d"]) -> tuple[Float[Array, "q n"], Float[Array, "n"], Backward]:
        """Means and variance at a few points, and the way back to x."""
        ...


@dataclass(frozen=True, slots=True)
class _BySurface:
    surface: Surface

    def predict(self, X: Float[Array, "n d"]) -> tuple[Float[Array, "q n"], Float[Array, "n"]]:
        return self.surface.predict(X)

    def at(self, X: Float[Array, "n d"]) -> tuple[Float[Array, "q n"], Float[Array, "n"], Backward]:
        seen = self.surface.at(X)
        return seen.mean, seen.var, lambda by_mean, by_var: self.surface.gradient(seen, by_mean, by_var)


@dataclass(frozen=True, slots=True)
class _ByAutograd:
    moments: Callable[[Tensor], tuple[Float[Tensor, "q n"], Float[Tensor, "n"]]]
    device: torch.device

    def predict(self, X: Float[Array, "n d"]) -> tuple[Float[Array, "q n"], Float[Array, "n"]]:
        with torch.no_grad():
            mean, var = self.moments(torch.from_numpy(X).to(self.device))
        return mean.cpu().numpy(), var.cpu().numpy()

    def at(self, X: Float[Array, "n d"]) -> tuple[Float[Array, "q n"], Float[Array, "n"], Backward]:
        with torch.enable_grad():
            x = torch.from_numpy(X).to(self.device).requires_grad_()
            found = self.moments(x)

        def back(by_mean: Array, by_var: Array) -> Array:
            slopes = zip(found, (by_mean, by_var), strict=True)
            pairs = [(own, torch.from_numpy(np.ascontiguousarray(by)).to(self.device)) for own, by in slopes]
            pairs = [(own, by) for own, by in pairs if own.requires_grad]  # a variance may be the same everywhere
            if not pairs:
                return np.zeros_like(X)
            outputs, by_outputs = [own for own, _ in pairs], [by for _, by in pairs]
            gradient: Array = torch.autograd.grad(outputs, x, by_outputs)[0].cpu().numpy()
            return gradient

        mean, var = (part.detach().cpu().numpy() for part in found)
        return mean, var, back


@dataclass(frozen=True)
class Member:
    """One predictor of a mixture."""

    predictor: Predictor

    @cached_property
    def surface(self) -> Surface | None:
        """The member as a function with a closed-form gradient, if it has that form."""
        return surface_of(self.predictor)

    def now(self) -> MemberFunction:
        """The member as it is, no result being awaited."""
        if self.surface is not None:
            return _BySurface(self.surface)

        def moments(X: Tensor) -> tuple[Tensor, Tensor]:
            mean, var = self.predictor.predict_marginal(X)
            return mean.unsqueeze(0), var

        return _ByAutograd(moments, self.predictor.X.device)


@dataclass(frozen=True)
class Members:
    """The members of an outcome's predictor that have a weight worth asking."""

    predictor: Predictor
    members: tuple[Member, ...]
    weights: Float[Tensor, "k"]
    floor: Float[Tensor, ""] | None = None  # the lowest value that a result can have, in model units

    @classmethod
    def of(cls, predictor: Predictor, floor: Float[Tensor, ""] | None = None) -> Self:
        """Of a predictor of a single problem; a mixture in a mixture counts by its own members."""
        parts = components(predictor)
        if parts[0][1] is None:
            return cls(predictor, (Member(predictor),), predictor.X.new_ones(1), floor)
        weights = torch.stack([weight for _, weight in parts if weight is not None])
        kept = [k for k, weight in enumerate(weights.tolist()) if weight > _NEGLIGIBLE]
        weights = weights[kept]
        return cls(predictor, tuple(Member(parts[k][0]) for k in kept), weights / weights.sum(), floor)

    def means(self, X: Float[Tensor, "n d"]) -> Float[Tensor, "n"]:
        """The mean of the mixture at every row of X, in model units."""
        return torch.cat([self._means(part) for part in X.split(ROWS, dim=-2)], dim=-1)

    def _means(self, X: Float[Tensor, "n d"]) -> Float[Tensor, "n"]:
        with torch.no_grad(), single_thread():
            means = [
                member.predictor.predict_marginal(X)[0]
                if member.surface is None
                else torch.from_numpy(member.surface.mean(X.numpy()))[0]
                for member in self.members
            ]
            return (torch.stack(means, dim=-1) * self.weights).sum(-1)

    def reachable(self, values: Float[Tensor, "*n"]) -> Float[Tensor, "*n"]:
        """The values, none of them below the lowest that a result can have."""
        return values if self.floor is None else torch.maximum(values, self.floor)

    def now(self) -> OutcomeFunction:
        """All members as they are, no result being awaited."""
        return self._function([member.now() for member in self.members])

    def given(self, awaited: Sequence[AwaitedResults], y: Sequence[Float[Tensor, "q p"]]) -> OutcomeFunction:
        """Every member given its draws of the awaited results."""
        return self._function([own.given(draws) for own, draws in zip(awaited, y, strict=True)])

    def _function(self, functions: Sequence[MemberFunction]) -> OutcomeFunction:
        noise_var = torch.stack([member.predictor.noise_var for member in self.members]).detach().cpu().numpy()
        floor = None if self.floor is None else float(self.floor)
        return OutcomeFunction(tuple(functions), self.weights.cpu().numpy(), noise_var, floor)


@dataclass(frozen=True, slots=True)
class OutcomeFunction:
    """One outcome as a function of x: its members k, each with a mean for every draw q, in model units."""

    members: tuple[MemberFunction, ...]
    weights: Float[Array, "k"]
    noise_var: Float[Array, "k"]
    floor: float | None

    def predict(self, X: Float[Array, "n d"]) -> tuple[Float[Array, "k q n"], Float[Array, "k n"]]:
        """Means and variances at many points."""
        means, variances = zip(*(member.predict(X) for member in self.members), strict=True)
        return np.stack(means), np.maximum(np.stack(variances), LEAST_VAR)

    def at(self, X: Float[Array, "n d"]) -> tuple[Float[Array, "k q n"], Float[Array, "k n"], Backward]:
        """Means and variances at a few points, and the way back to x."""
        means, variances, back = zip(*(member.at(X) for member in self.members), strict=True)
        var = np.stack(variances)

        def backward(by_mean: Float[Array, "k q n"], by_var: Float[Array, "k n"]) -> Float[Array, "n d"]:
            by_var = np.where(var > LEAST_VAR, by_var, 0.0)
            parts = [own(by_mean[k], by_var[k]) for k, own in enumerate(back)]
            gradient: Array = sum(parts[1:], start=parts[0])
            return gradient

        return np.stack(means), np.maximum(var, LEAST_VAR), backward


@dataclass(frozen=True, slots=True)
class AwaitedResults:
    """f at the points whose results are awaited, by one predictor, in model units."""

    predictor: Predictor
    X: Float[Tensor, "p d"]
    mean: Float[Tensor, "p"]
    noise_var: Float[Tensor, "p"]
    L: Float[Tensor, "p p"]

    @classmethod
    def of(cls, predictor: Predictor, X: Float[Tensor, "p d"]) -> Self:
        """The distribution of f at X."""
        with torch.no_grad():
            mean, cov = predictor.predict(X)
            noise_var = _KNOWN_UP_TO * cov.diagonal().clamp_min(0.0) + LEAST_VAR
            L = cholesky(cov + torch.diag_embed(noise_var), of="The covariance of the pending points")
        return cls(predictor, X, mean, noise_var, L)

    def draws(self, e: Float[Tensor, "q p"]) -> Float[Tensor, "q p"]:
        """Values of f at the points, from standard normal numbers."""
        return self.mean + (self.L @ e.to(self.mean.device).unsqueeze(-1)).squeeze(-1)

    def given(self, y: Float[Tensor, "q p"]) -> MemberFunction:
        """The predictor given each of several draws y of f at the points."""
        with torch.no_grad():
            shift = (y - self.mean).mT
            if not isinstance(self.predictor, Layer):
                return _ByAutograd(self._by_covariance(solve_lower(self.L, shift).mT), y.device)
            layer, p = self.predictor.observing(self.X, self.mean, noise_var=self.noise_var), len(self.X)
            z = solve_lower(layer.L[-p:, -p:], shift).mT
        surface = surface_of(layer)
        if surface is not None:
            return _BySurface(surface.shifted(z.numpy()))

        def moments(X: Tensor) -> tuple[Tensor, Tensor]:
            mean, var = layer.predict_marginal(X)
            w = solve_lower(layer.L, layer.gain_cov(layer.at, layer.below.at(X)))[-p:, :]
            return mean + z @ w, var

        return _ByAutograd(moments, y.device)

    def _by_covariance(self, e: Float[Tensor, "q p"]) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
        def moments(X: Tensor) -> tuple[Tensor, Tensor]:
            rows = X.unsqueeze(-2)
            mean, cov = self.predictor.predict(torch.cat([rows, self.X.expand(len(rows), *self.X.shape)], -2))
            w = solve_lower(self.L, cov[:, 1:, :1].squeeze(-1).mT)
            return mean[:, 0] + e @ w, cov[:, 0, 0] - w.square().sum(-2)

        return moments


def standard_draws(pairs: int, p: int, generator: torch.Generator) -> Float[Tensor, "q p"]:
    """Standard normal numbers, each row with its opposite; for ``pairs`` = 0 the mean alone."""
    if pairs == 0:
        return torch.zeros(1, p, dtype=torch.float64)
    draws = torch.randn(pairs, p, generator=generator, dtype=torch.float64)
    return torch.cat([draws, -draws])
