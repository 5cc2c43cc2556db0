"""Hyperparameters of whole models, in the user's units: what ``at`` takes and ``hyperparameters`` gives back.

ChainParams         one GPParams per level, target last       GPBO, MHGP, SHGP, BHGP, HGP
WeightedParams      the same and a weight per source          WSGP
CoregionalParams    lengthscales, W_ν, noise and means        MTKGP (one kernel), MTGP (one per task)
EnsembleParams      one GPParams per task, weights, units     RGPE
StarParams          one GPParams per task, weights            STAR, SCAML, MWSGP
AutoParams          those of every candidate, weights         AUTO
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import torch
from jaxtyping import Float
from torch import Tensor

from headstart.errors import InputError
from headstart.gp.hyperparameters import GPParams, require_finite, require_variance
from headstart.gp.linalg import broadcast_shapes


@dataclass(frozen=True, slots=True)
class ChainParams:
    """One process per level: the sources in order, then the target. Level ν models the residual on the levels below.

    The prior mean of task i is the sum of the offsets of the levels up to i.
    """

    levels: tuple[GPParams, ...]

    def scaled(self, scale: Float[Tensor, "*b"], offset: Float[Tensor, "*b"]) -> ChainParams:
        """The same model for outputs scale · y + offset: the first level carries the offset."""
        shift = [offset, *([torch.zeros_like(offset)] * (len(self.levels) - 1))]
        return ChainParams(tuple(p.scaled(scale, s) for p, s in zip(self.levels, shift, strict=True)))


@dataclass(frozen=True, slots=True)
class WeightedParams:
    """A process per task, target last, and how much every source adds to the target: W_ν of the paper's appendix B."""

    levels: tuple[GPParams, ...]
    weights: Float[Tensor, "*b s"]

    @classmethod
    def of(cls, levels: Sequence[GPParams], weights: object) -> Self:
        """Checked parameters.

        Args:
            levels: A process per task, target last.
            weights: One weight, not negative, per source.

        Returns:
            The parameters.
        """
        w = torch.as_tensor(weights, dtype=torch.float64)
        if w.dim() == 0:
            raise InputError(f"weights must have one value per source ({len(levels) - 1}), but there is one number.")
        params = cls(tuple(levels), w)
        params.require()
        return params

    def require(self) -> None:
        """Raise an ``InputError`` unless there is one finite weight, not negative, per source."""
        require_finite(self, "of the sources")
        if self.weights.shape[-1] != len(self.levels) - 1:
            raise InputError(
                f"weights must have one value per source ({len(self.levels) - 1}), "
                f"but they have shape {tuple(self.weights.shape)}."
            )
        if not bool((self.weights >= 0).all()):
            raise InputError(
                f"weights must not be negative (W_ν would be indefinite), but are {self.weights.tolist()}."
            )

    def scaled(self, scale: Float[Tensor, "*b"], offset: Float[Tensor, "*b"]) -> WeightedParams:
        """The same model for outputs scale · y + offset."""
        return WeightedParams(tuple(p.scaled(scale, offset) for p in self.levels), self.weights)


@dataclass(frozen=True, slots=True)
class CoregionalParams:
    """Σ_ν W_ν ∘ κ_ν + noise per task: V kernels of unit variance, their W_ν (T × T), the tasks' noise and mean."""

    lengthscale: Float[Tensor, "*b V d"]
    W: Float[Tensor, "*b V T T"]
    noise_var: Float[Tensor, "*b T"]
    mean: Float[Tensor, "*b T"]

    @classmethod
    def of(cls, *, lengthscale: object, W: object, noise_var: object, mean: object = 0.0) -> Self:
        """Checked parameters.

        Args:
            lengthscale: Of every kernel, (*b, V, d).
            W: A symmetric positive semi-definite matrix per kernel, (*b, V, T, T).
            noise_var: Of every task, not negative, (*b, T).
            mean: Of every task, (*b, T).

        Returns:
            The parameters.
        """
        ell, W_, noise, mean_ = (torch.as_tensor(v, dtype=torch.float64) for v in (lengthscale, W, noise_var, mean))
        if ell.dim() < 2 or W_.dim() < 3 or W_.shape[-3] != ell.shape[-2] or W_.shape[-1] != W_.shape[-2]:
            raise InputError(
                "lengthscale must have shape (kernels, d) and W (kernels, tasks, tasks), but they have shapes "
                f"{tuple(ell.shape)} and {tuple(W_.shape)}."
            )
        for name, value in (("noise_var", noise), ("mean", mean_)):
            if value.dim() and value.shape[-1] not in (1, W_.shape[-1]):
                raise InputError(f"{name} needs a value per task ({W_.shape[-1]}), but it is {value.tolist()}.")
        if noise.shape[-1:] != W_.shape[-1:]:
            raise InputError(f"noise_var needs a value per task ({W_.shape[-1]}), but it is {noise.tolist()}.")
        params = cls(ell, W_, noise, mean_.expand(broadcast_shapes(noise.shape, mean_.shape)))
        params.require()
        return params

    def require(self, d: int | None = None) -> None:
        """Raise an ``InputError`` unless this is a joint process (of d inputs): W_ν covariances, no negative noise."""
        require_finite(self, "of the tasks")
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

    def expanded(self, batch_shape: torch.Size, like: Tensor) -> CoregionalParams:
        """The same values for a batch of problems, on the device of ``like``."""
        b, device = batch_shape, like.device
        return CoregionalParams(
            self.lengthscale.expand(*b, -1, -1).to(device),
            self.W.expand(*b, -1, -1, -1).to(device),
            self.noise_var.expand(*b, -1).to(device),
            self.mean.expand(*b, -1).to(device),
        )

    def scaled(self, scale: Float[Tensor, "*b"], offset: Float[Tensor, "*b"]) -> CoregionalParams:
        """The same model for outputs scale · y + offset."""
        return CoregionalParams(
            self.lengthscale,
            self.W * scale[..., None, None, None] ** 2,
            self.noise_var * scale.unsqueeze(-1) ** 2,
            self.mean * scale.unsqueeze(-1) + offset.unsqueeze(-1),
        )


@dataclass(frozen=True, slots=True)
class EnsembleParams:
    """A process per task, target last, and the weights of the ensemble.

    Task i predicts in its own units (offset_i, scale_i); the ensemble speaks in those of the target.
    """

    levels: tuple[GPParams, ...]
    weights: Float[Tensor, "*b T"]
    offsets: Float[Tensor, "*b T"]
    scales: Float[Tensor, "*b T"]

    @classmethod
    def of(cls, levels: Sequence[GPParams], weights: object, offsets: object = 0.0, scales: object = 1.0) -> Self:
        """Checked: a weight per task, not negative; by default all tasks speak the same units."""
        w, o, s = (torch.as_tensor(v, dtype=torch.float64) for v in (weights, offsets, scales))
        for name, value in (("weights", w), ("offsets", o), ("scales", s)):
            if (value.dim() or name == "weights") and value.shape[-1:] != (len(levels),):
                shape = tuple(value.shape)
                raise InputError(f"{name} must have one value per task ({len(levels)}), but have shape {shape}.")
        params = cls(tuple(levels), w, o.expand(w.shape), s.expand(w.shape))
        params.require()
        return params

    def require(self) -> None:
        """Raise an ``InputError`` unless weights and units are finite, the scales positive and no weight negative."""
        require_finite(self, "of the ensemble")
        if not bool((self.weights >= 0).all()):
            raise InputError(f"weights must not be negative, but they are {self.weights.tolist()}.")
        if not bool((self.scales > 0).all()):
            raise InputError(f"scales must be positive, but they are {self.scales.tolist()}.")


@dataclass(frozen=True, slots=True)
class StarParams:
    """A process per task, target last, and per source the mean and variance of its weight and the target's own share.

    The target is offset + Σ w_ν (f_ν − offset_ν) + Σ g_ν + δ with w_ν ~ N(weights_ν, weight_var_ν) and
    g_ν ~ GP(0, own_ν k_ν); see models.star. ``balance`` says how far the weights' deviations cancel out between the
    sources, from 0 (each for itself) to 1 (they add up to nothing).
    """

    levels: tuple[GPParams, ...]
    weights: Float[Tensor, "*b s"]
    weight_var: Float[Tensor, "*b s"]
    own: Float[Tensor, "*b s"]
    balance: Float[Tensor, "*b 1"]

    @classmethod
    def of(
        cls,
        levels: Sequence[GPParams],
        weights: object,
        weight_var: object = 0.0,
        own: object = 0.0,
        balance: object = 0.0,
    ) -> Self:
        """Checked: a weight per source, and no negative variance."""
        w, v, o, b = (torch.as_tensor(value, dtype=torch.float64) for value in (weights, weight_var, own, balance))
        if w.dim() == 0:
            raise InputError(f"weights must have one value per source ({len(levels) - 1}), but there is one number.")
        params = cls(tuple(levels), w, v.expand(w.shape), o.expand(w.shape), b.expand(*w.shape[:-1], 1))
        params.require()
        return params

    def require(self) -> None:
        """Raise an ``InputError`` unless there is one finite weight per source, and no negative variance or share."""
        require_finite(self, "of the sources")
        for name in ("weights", "weight_var", "own"):
            shape = getattr(self, name).shape
            if shape[-1] != len(self.levels) - 1:
                raise InputError(
                    f"{name} must have one value per source ({len(self.levels) - 1}), but have shape {tuple(shape)}."
                )
        require_variance(self.weight_var, "weight_var")
        require_variance(self.own, "own")
        if not bool(((self.balance >= 0) & (self.balance <= 1)).all()):
            raise InputError(f"balance must be between 0 and 1, but it is {self.balance.tolist()}.")

    def scaled(self, scale: Float[Tensor, "*b"], offset: Float[Tensor, "*b"]) -> StarParams:
        """The same model for outputs scale · y + offset of all tasks."""
        return replace(self, levels=tuple(p.scaled(scale, offset) for p in self.levels))


@dataclass(frozen=True, slots=True)
class AutoParams:
    """The hyperparameters of AUTO's candidates, in their order, and how far each is believed."""

    candidates: tuple[ModelParams, ...]
    weights: Float[Tensor, "*b k"]

    def require(self) -> None:
        """Raise an ``InputError`` unless there is a weight per candidate, not negative, and they add up to 1."""
        require_finite(self, "of the candidates")
        w, n = self.weights, len(self.candidates)
        if w.shape[-1:] != (n,):
            raise InputError(f"weights must have one value per candidate ({n}), but have shape {tuple(w.shape)}.")
        if not bool((w >= 0).all()) or not torch.allclose(w.sum(-1), torch.ones_like(w[..., 0])):
            raise InputError(f"weights must not be negative and add up to 1, but they are {w.tolist()}.")


ModelParams = ChainParams | WeightedParams | CoregionalParams | EnsembleParams | StarParams | AutoParams
