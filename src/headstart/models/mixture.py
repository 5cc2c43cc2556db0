"""Predictors of the target in model units: a ``Layer``, a ``Mixture`` (AUTO), or an ``Ensemble`` (RGPE, TST-R)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from headstart.models.chain.layer import Layer


@dataclass(frozen=True, slots=True)
class _Weighted(ABC):
    members: tuple[Layer | Mixture, ...]
    weights: Float[Tensor, "*b k"]

    @abstractmethod
    def _sum(self, means: Sequence[Tensor], covs: Sequence[Tensor], dims: int) -> tuple[Tensor, Tensor]:
        """Mean and covariance from those of the members; with one dimension the variance."""

    @property
    def batch_shape(self) -> torch.Size:
        """Independent problems, with the dimensions of any fantasies in front."""
        return self.members[-1].batch_shape

    @property
    def X(self) -> Float[Tensor, "*b n d"]:
        """Where the target was observed."""
        return self.members[-1].X

    def predict(self, X: Float[Tensor, "*b m d"]) -> tuple[Float[Tensor, "*c m"], Float[Tensor, "*c m m"]]:
        """Mean and joint covariance."""
        means, covs = zip(*(member.predict(X) for member in self.members), strict=True)
        return self._sum(means, covs, 2)

    def predict_marginal(self, X: Float[Tensor, "*b m d"]) -> tuple[Float[Tensor, "*c m"], Float[Tensor, "*c m"]]:
        """Mean and variance of f at every row of X, in model units, without covariances."""
        means, variances = zip(*(member.predict_marginal(X) for member in self.members), strict=True)
        return self._sum(means, variances, 1)


def _weighted(weights: Float[Tensor, "*b k"], parts: Sequence[Tensor], dims: int) -> Tensor:
    """Σ w_k part_k, of parts with so many dimensions behind those of the batch."""
    each = zip(weights.unbind(-1), parts, strict=True)
    return sum((w[(..., *[None] * dims)] * part for w, part in each), start=weights.new_zeros(()))


@dataclass(frozen=True, slots=True)
class Mixture(_Weighted):
    """Members in the same model units, with weights that add up to 1; the first two moments of the mixture.

    mean Σ w_k μ_k, covariance Σ w_k (Σ_k + (μ_k − mean)(μ_k − mean)ᵀ): where the members disagree it is uncertain.
    Members are different models, or one model with different hyperparameters of the target.
    """

    @property
    def noise_var(self) -> Float[Tensor, "*b"]:
        """The mean of the members' noise variances."""
        return (self.weights * torch.stack([m.noise_var for m in self.members], dim=-1)).sum(-1)

    def log_evidence(self) -> Float[Tensor, "*b"]:
        """log Σ w_k p_k(y)."""
        every = torch.stack([member.log_evidence() for member in self.members], dim=-1)
        return torch.logsumexp(every + self.weights.log(), dim=-1)

    def _sum(self, means: Sequence[Tensor], covs: Sequence[Tensor], dims: int) -> tuple[Tensor, Tensor]:
        mean = _weighted(self.weights, means, 1)
        away = [m - mean for m in means]
        spread = (a.square() if dims == 1 else a.unsqueeze(-1) * a.unsqueeze(-2) for a in away)
        return mean, _weighted(self.weights, [cov + s for cov, s in zip(covs, spread, strict=True)], dims)

    def observing(
        self, X: Float[Tensor, "*b k d"], y: Float[Tensor, "*c k"], *, noise_var: Tensor | None = None
    ) -> Mixture:
        """Every member after more observations; the weights stay."""
        return replace(self, members=tuple(m.observing(X, y, noise_var=noise_var) for m in self.members))


@dataclass(frozen=True, slots=True)
class Ensemble(_Weighted):
    """mean Σ w_i μ_i, covariance Σ v_i Σ_i, every member in its own standardised units; the target's comes last.

    v are ``cov_weights``: w² for RGPE, and for TST-R 1 for the target and 0 for the sources.
    """

    cov_weights: Float[Tensor, "*b k"]

    @property
    def noise_var(self) -> Float[Tensor, "*b"]:
        """The target's noise variance."""
        return self.members[-1].noise_var

    def log_evidence(self) -> Float[Tensor, "*b"]:
        """The target member's: the ensemble is no probability model of its own."""
        return self.members[-1].log_evidence()

    def _sum(self, means: Sequence[Tensor], covs: Sequence[Tensor], dims: int) -> tuple[Tensor, Tensor]:
        return _weighted(self.weights, means, 1), _weighted(self.cov_weights, covs, dims)

    def observing(
        self, X: Float[Tensor, "*b k d"], y: Float[Tensor, "*c k"], *, noise_var: Tensor | None = None
    ) -> Ensemble:
        """The target member after more observations; the weights stay."""
        *sources, target = self.members
        return replace(self, members=(*sources, target.observing(X, y, noise_var=noise_var)))


Predictor = Layer | Mixture | Ensemble


def components(predictor: Any) -> list[tuple[Any, Float[Tensor, "*b"] | None]]:
    """The predictors that a mixture, and a mixture in it, is made of, with weights; of another itself, without one."""
    if not isinstance(predictor, Mixture):
        return [(predictor, None)]
    found: list[tuple[Any, Float[Tensor, "*b"] | None]] = []
    for weight, member in zip(predictor.weights.unbind(-1), predictor.members, strict=True):
        for part, share in components(member):
            found.append((part, weight if share is None else weight * share))
    return found


def in_batch_of_best(predictor: Any, least: float) -> Any:
    """The predictor of a single problem with the batch of its best result as the present one (``Layer.in_batch_of``).

    Members of a mixture whose weight is no more than ``least`` are not asked, and stay as they are.
    """
    parts = [(one, 1.0 if weight is None else float(weight)) for one, weight in components(predictor)]
    counts = [(one, weight) for one, weight in parts if weight > least]
    best = int(torch.stack([one.fitted_values * weight for one, weight in counts]).sum(0).argmin())
    moved = {id(one): one.in_batch_of(best) for one, _ in counts}

    def changed(part: Any) -> Any:
        if isinstance(part, Mixture):
            return replace(part, members=tuple(map(changed, part.members)))
        return moved.get(id(part), part)

    return changed(predictor)
