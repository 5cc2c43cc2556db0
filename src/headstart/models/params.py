"""Hyperparameters of whole models, in the user's units: what ``at`` takes and ``hyperparameters`` gives back.

ChainParams         one GPParams per level, target last       GPBO, MHGP, SHGP, BHGP, HGP
WeightedParams      the same and a weight per source          WSGP
CoregionalParams    lengthscales, W_ν, noise and means        MTKGP (one kernel), MTGP (one per task)
EnsembleParams      one GPParams per task, weights, units     RGPE, TST-R
StarParams          one GPParams per task, weights            STAR, SCAML, MWSGP
AutoParams          those of every candidate, weights         AUTO
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from headstart.errors import InputError
from headstart.gp.hyperparameters import GPParams, require_finite, require_variance

P = TypeVar("P", bound="GPParams | CoregionalParams")


@dataclass(frozen=True, slots=True)
class ChainParams:
    """One process per level; level ν models the residual on the levels below.

    The prior mean of task i is the sum of the offsets of the levels up to i.

    Args:
        levels: The processes of the sources in order, then of the target.
    """

    levels: tuple[GPParams, ...]


@dataclass(frozen=True, slots=True)
class WeightedParams:
    """A process per task, and how much every source adds to the target: W_ν of the paper's appendix B.

    Args:
        levels: The processes of the sources in order, then of the target.
        weights: A weight per source, (*b, s), not negative.
    """

    levels: tuple[GPParams, ...]
    weights: Float[Tensor, "*b s"]

    def require(self) -> None:
        """Raise an ``InputError`` unless there is one finite weight, not negative, per source."""
        _require_one_each(self, ("weights",), len(self.levels) - 1, "source")
        if not bool((self.weights >= 0).all()):
            raise InputError(
                f"weights must not be negative (W_ν would be indefinite), but are {self.weights.tolist()}."
            )


@dataclass(frozen=True, slots=True)
class CoregionalParams:
    """Σ_ν W_ν ∘ κ_ν + noise per task, with V kernels of unit variance.

    Args:
        lengthscale: Of every kernel, (*b, V, d).
        W: A covariance of the tasks per kernel, (*b, V, T, T).
        noise_var: Of every task, (*b, T).
        mean: Of every task, (*b, T).
    """

    lengthscale: Float[Tensor, "*b V d"]
    W: Float[Tensor, "*b V T T"]
    noise_var: Float[Tensor, "*b T"]
    mean: Float[Tensor, "*b T"]

    def require(self, d: int | None = None) -> None:
        """Raise an ``InputError`` unless this is a joint process: W_ν covariances, no negative noise.

        Args:
            d: The number of inputs; None for any.
        """
        kernels, tasks = self.lengthscale.shape[-2:-1], self.W.shape[-1:]
        if not kernels or self.W.shape[-3:] != (*kernels, *tasks, *tasks):
            raise InputError(
                "lengthscale must have shape (kernels, d) and W (kernels, tasks, tasks), but they have shapes "
                f"{tuple(self.lengthscale.shape)} and {tuple(self.W.shape)}."
            )
        _require_one_each(self, ("noise_var", "mean"), tasks[0], "task")
        if not bool((self.lengthscale > 0).all()):
            raise InputError(f"lengthscale must be positive, but it is {self.lengthscale.tolist()}.")
        if d is not None and self.lengthscale.shape[-1] != d:
            raise InputError(f"There are {self.lengthscale.shape[-1]} lengthscales, but the inputs have {d} columns.")
        lowest = torch.linalg.eigvalsh(self.W).amin()
        size = self.W.diagonal(dim1=-2, dim2=-1).abs().amax()
        if not torch.allclose(self.W, self.W.mT) or bool(lowest < -1e-8 * size):
            raise InputError(
                f"every W must be symmetric and positive semi-definite, but the lowest eigenvalue is {lowest.item():g}."
            )
        require_variance(self.noise_var, "noise_var of the tasks")


@dataclass(frozen=True, slots=True)
class EnsembleParams:
    """A process per task, and the weights of the ensemble, which predicts in the units of the target.

    Args:
        levels: The processes of the sources in order, then of the target.
        weights: Of every task, (*b, T), not negative.
        offsets: Of the units in which every task predicts, (*b, T).
        scales: Of the same units, (*b, T), positive.
    """

    levels: tuple[GPParams, ...]
    weights: Float[Tensor, "*b T"]
    offsets: Float[Tensor, "*b T"]
    scales: Float[Tensor, "*b T"]

    def require(self) -> None:
        """Raise an ``InputError`` unless weights and units are finite, the scales positive and no weight negative."""
        _require_one_each(self, ("weights", "offsets", "scales"), len(self.levels), "task")
        if not bool((self.weights >= 0).all()):
            raise InputError(f"weights must not be negative, but they are {self.weights.tolist()}.")
        if not bool((self.scales > 0).all()):
            raise InputError(f"scales must be positive, but they are {self.scales.tolist()}.")


@dataclass(frozen=True, slots=True)
class StarParams:
    """A process per task, and the distribution of the sources' weights.

    The target is offset + Σ w_ν (f_ν − offset_ν) + Σ g_ν + δ with w_ν ~ N(weights_ν, weight_var_ν) and
    g_ν ~ GP(0, own_ν k_ν); see models.star.

    Args:
        levels: The processes of the sources in order, then of the target.
        weights: The mean of every source's weight, (*b, s).
        weight_var: Its variance, (*b, s).
        own: The share of every source's kernel that the target has of its own, (*b, s).
        balance: How far the weights' deviations cancel out between the sources, (*b, 1): from 0, where they are
            independent, to 1, where they sum to 0.
        doubt: Where the sources are pooled into one, further noise variance of each one's rows, (*b, sources).
    """

    levels: tuple[GPParams, ...]
    weights: Float[Tensor, "*b s"]
    weight_var: Float[Tensor, "*b s"]
    own: Float[Tensor, "*b s"]
    balance: Float[Tensor, "*b 1"]
    doubt: Float[Tensor, "*b _"] | None = None

    def require(self) -> None:
        """Raise an ``InputError`` unless there is one finite weight per source, and no negative variance or share."""
        _require_one_each(self, ("weights", "weight_var", "own"), len(self.levels) - 1, "source")
        require_variance(self.weight_var, "weight_var")
        require_variance(self.own, "own")
        if not bool(((self.balance >= 0) & (self.balance <= 1)).all()):
            raise InputError(f"balance must be between 0 and 1, but it is {self.balance.tolist()}.")


@dataclass(frozen=True, slots=True)
class AutoParams:
    """The hyperparameters of AUTO's candidates, and their weights.

    Args:
        candidates: Those of every candidate, in their order.
        weights: The weight of every candidate, (*b, k); they sum to 1.
    """

    candidates: tuple[ModelParams, ...]
    weights: Float[Tensor, "*b k"]

    def require(self) -> None:
        """Raise an ``InputError`` unless there is a weight per candidate, not negative, and they add up to 1."""
        _require_one_each(self, ("weights",), len(self.candidates), "candidate")
        w = self.weights
        if not bool((w >= 0).all()) or not torch.allclose(w.sum(-1), torch.ones_like(w[..., 0])):
            raise InputError(f"weights must not be negative and add up to 1, but they are {w.tolist()}.")


ModelParams = ChainParams | WeightedParams | CoregionalParams | EnsembleParams | StarParams | AutoParams


def _require_one_each(params: ModelParams, names: Sequence[str], n: int, what: str) -> None:
    """Raise an ``InputError`` unless these fields are tensors with a value per task or the like, and all are finite."""
    for name in names:
        value = getattr(params, name)
        if not isinstance(value, Tensor) or value.shape[-1:] != (n,):
            came = f"has shape {tuple(value.shape)}" if isinstance(value, Tensor) else f"is {value!r}"
            raise InputError(f"{name} must be a tensor with one value per {what} ({n}), but it {came}.")
    require_finite(params, f"of every {what}")


def require_levels(levels: Sequence[GPParams], n: int, d: int | None = None) -> None:
    """Raise an ``InputError`` unless there is one process (of d inputs) per task."""
    if len(levels) != n:
        raise InputError(
            f"{n} tasks ({n - 1} sources and the target) need {n} levels of hyperparameters, not {len(levels)}."
        )
    for i, level in enumerate(levels):
        level.require(f"level {i}", d)


def rescaled(params: ModelParams, scale: Float[Tensor, "*b"], offset: Float[Tensor, "*b"]) -> ModelParams:
    """The same model for outputs scale · y + offset of all tasks; of a chain the first level carries the offset."""
    assert not isinstance(params, EnsembleParams | AutoParams)
    if isinstance(params, CoregionalParams):
        return replace(
            params,
            W=params.W * scale[..., None, None, None] ** 2,
            noise_var=params.noise_var * scale.unsqueeze(-1) ** 2,
            mean=params.mean * scale.unsqueeze(-1) + offset.unsqueeze(-1),
        )
    first, *further = params.levels
    rest = torch.zeros_like(offset) if isinstance(params, ChainParams) else offset
    return replace(params, levels=(first.scaled(scale, offset), *(p.scaled(scale, rest) for p in further)))


def expanded(params: P, batch_shape: torch.Size, device: torch.device) -> P:
    """The same values for every problem of a batch, on a device."""
    # the number of dimensions behind those of the batch
    own: Sequence[int] = (1, 0, 0, 0, 0) if isinstance(params, GPParams) else (2, 3, 1, 1)
    shaped: list[Tensor | None] = []
    for f, dims in zip(fields(params), own, strict=True):
        value: Tensor | None = getattr(params, f.name)
        shaped.append(value if value is None else _expanded(value.to(device), batch_shape, dims))
    return type(params)(*shaped)  # type: ignore[arg-type]


def _expanded(value: Tensor, batch_shape: torch.Size, dims: int) -> Tensor:
    return value.expand((*batch_shape, *value.shape[value.dim() - dims :]))
