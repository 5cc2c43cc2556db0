"""The choice of W: how the tasks of a joint model share their kernels (the paper's section 4 and appendix B).

    k((x, i), (x', j)) = Σ_ν [W_ν]_ij κ_ν(x, x') + δ_ij σ_i²    per observation

    choice           W_ν                                              kernels   parameters of W, n_s sources
    Hierarchical     s_ν² on all tasks i, j ≥ ν                       n_s + 1   n_s + 1                     HGP
    WeightedSource   s_ν² (e_ν e_νᵀ + w_ν (e_ν + e_t)(e_ν + e_t)ᵀ)    n_s + 1   2 n_s + 1                   WSGP
    SharedKernel     one W = F Fᵀ, F lower triangular                 1         (n_s + 1)(n_s + 2)/2        MTKGP
    Free             every W_ν = F_ν F_νᵀ                             n_s + 1   (n_s + 1)²(n_s + 2)/2       MTGP

Outputscales s_ν² are part of W. The target is the last task, e_t. Each choice knows its named parameters, how W
follows from them, and how a gradient by W is pulled back to them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from headstart.errors import InputError
from headstart.gp.hyperparameters import GPParams, Slot, outputscale_slot
from headstart.models.params import ChainParams, CoregionalParams, ModelParams, WeightedParams, require_levels

Values = dict[str, Tensor]


@dataclass(frozen=True, slots=True)
class Coregion(ABC):
    """How W follows from named parameters. T is the number of tasks, V the number of kernels."""

    def n_kernels(self, T: int) -> int:
        """How many kernels, each with a W of its own, T tasks have: the V of Σ_ν W_ν ∘ k_ν."""
        return T

    @abstractmethod
    def slots(self, T: int) -> tuple[Slot, ...]:
        """The parameters of W."""

    @abstractmethod
    def W(self, values: Values, T: int) -> Float[Tensor, "*b V T T"]:
        """W_ν from the natural values of the slots."""

    @abstractmethod
    def pull_back(self, values: Values, dW: Float[Tensor, "*b V T T"], T: int) -> Values:
        """The gradient by θ of every slot, given the symmetric gradient by W."""

    @abstractmethod
    def linked(self, kernel: int, T: int) -> range:
        """The source tasks that kernel ν couples to the target; they and the target are all it touches."""

    @abstractmethod
    def coregional(self, params: ModelParams, T: int) -> CoregionalParams:
        """The user's form as lengthscales, W, noise and means."""

    @abstractmethod
    def params(self, ell: Tensor, values: Values, noise_var: Tensor, mean: Tensor) -> ModelParams:
        """The user's form from lengthscales (*b, V, d), the values of W, and noise and mean of every task (*b, T)."""

    def with_target_mean(self, mean: Float[Tensor, "*b T"]) -> Float[Tensor, "*b T"]:
        """The tasks' means where the target has no data: it is expected where the sources lie on average."""
        return torch.cat([mean[..., :-1], mean[..., :-1].mean(-1, keepdim=True)], dim=-1)


def _outputscale(values: Values) -> Float[Tensor, "*b T"]:
    return torch.cat([values["outputscale"], values["residual_outputscale"]], dim=-1)


def _levels(ell: Tensor, outputscale: Tensor, noise_var: Tensor, offset: Tensor) -> tuple[GPParams, ...]:
    T = noise_var.shape[-1]
    return tuple(GPParams(ell[..., i, :], outputscale[..., i], noise_var[..., i], offset[..., i]) for i in range(T))


def _stacked(levels: tuple[GPParams, ...]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return (
        torch.stack([p.lengthscale for p in levels], dim=-2),
        *(torch.stack([getattr(p, name) for p in levels], dim=-1) for name in ("outputscale", "noise_var", "offset")),
    )  # type: ignore[return-value]


@dataclass(frozen=True, slots=True)
class Hierarchical(Coregion):
    """[W_ν]_ij = s_ν² where i ≥ ν and j ≥ ν: every task is the previous one plus something of its own."""

    def slots(self, T: int) -> tuple[Slot, ...]:
        """The outputscale of the first task, and of every residual."""
        return outputscale_slot(1, residual=False), outputscale_slot(T - 1, residual=True)

    def _mask(self, like: Tensor, T: int) -> Float[Tensor, "T T T"]:
        at_least = torch.arange(T, device=like.device)[None, :] >= torch.arange(T, device=like.device)[:, None]
        return (at_least[:, :, None] & at_least[:, None, :]).to(like)

    def W(self, values: Values, T: int) -> Float[Tensor, "*b V T T"]:
        """s_ν² times a block of ones."""
        outputscale = _outputscale(values)
        return outputscale[..., None, None] * self._mask(outputscale, T)

    def pull_back(self, values: Values, dW: Float[Tensor, "*b V T T"], T: int) -> Values:
        """s_ν² Σ dW_ν over its block."""
        outputscale = _outputscale(values)
        gradient = outputscale * (dW * self._mask(outputscale, T)).sum((-2, -1))
        return {"outputscale": gradient[..., :1], "residual_outputscale": gradient[..., 1:]}

    def linked(self, kernel: int, T: int) -> range:
        """Sources ν and later."""
        return range(kernel, T - 1)

    def coregional(self, params: ModelParams, T: int) -> CoregionalParams:
        """From one process per level."""
        if not isinstance(params, ChainParams):
            raise InputError(f"HGP takes ChainParams, but got {type(params).__name__}.")
        require_levels(params.levels, T)
        ell, outputscale, noise_var, offset = _stacked(params.levels)
        W = outputscale[..., None, None] * self._mask(outputscale, T)
        return CoregionalParams(ell, W, noise_var, offset.cumsum(-1))

    def params(self, ell: Tensor, values: Values, noise_var: Tensor, mean: Tensor) -> ChainParams:
        """One process per level; its offset is what its task's mean adds to the previous one's."""
        offset = torch.diff(mean, dim=-1, prepend=torch.zeros_like(mean[..., :1]))
        return ChainParams(_levels(ell, _outputscale(values), noise_var, offset))

    def with_target_mean(self, mean: Float[Tensor, "*b T"]) -> Float[Tensor, "*b T"]:
        """The target is expected where the task before it lies: an offset of 0."""
        return torch.cat([mean[..., :-1], mean[..., -2:-1]], dim=-1)


@dataclass(frozen=True, slots=True)
class WeightedSource(Coregion):
    """W_ν = s_ν² (e_ν e_νᵀ + w_ν (e_ν + e_t)(e_ν + e_t)ᵀ): the sources are independent, the target sums them."""

    def slots(self, T: int) -> tuple[Slot, ...]:
        """Outputscales of the sources and of the target's own part, and the weights."""
        return (
            outputscale_slot(T - 1, residual=False),
            outputscale_slot(1, residual=True),
            Slot("weight", T - 1, 1e-4, 100.0, 1.0, 1.5),
        )

    def _assemble(self, outputscale: Tensor, weight: Tensor, T: int) -> Float[Tensor, "*b V T T"]:
        W = outputscale.new_zeros(*outputscale.shape[:-1], T, T, T)
        t = T - 1
        for source in range(t):
            shared = outputscale[..., source] * weight[..., source]
            W[..., source, source, source] = outputscale[..., source] + shared
            W[..., source, source, t] = W[..., source, t, source] = W[..., source, t, t] = shared
        W[..., t, t, t] = outputscale[..., t]
        return W

    def W(self, values: Values, T: int) -> Float[Tensor, "*b V T T"]:
        """The appendix's formula for several sources."""
        return self._assemble(_outputscale(values), values["weight"], T)

    def pull_back(self, values: Values, dW: Float[Tensor, "*b V T T"], T: int) -> Values:
        """By s_ν²: s_ν² (dW_νν + w Σ_block); by w_ν: s_ν² w Σ_block."""
        t = T - 1
        nu = torch.arange(t, device=dW.device)
        own = dW[..., nu, nu, nu]
        block = own + 2 * dW[..., nu, nu, t] + dW[..., nu, t, t]
        outputscale, weight = values["outputscale"], values["weight"]
        return {
            "outputscale": outputscale * (own + weight * block),
            "residual_outputscale": values["residual_outputscale"] * dW[..., t, t, t].unsqueeze(-1),
            "weight": outputscale * weight * block,
        }

    def linked(self, kernel: int, T: int) -> range:
        """The source that the kernel belongs to; the target's own kernel has none."""
        return range(kernel, min(kernel + 1, T - 1))

    def coregional(self, params: ModelParams, T: int) -> CoregionalParams:
        """From one process per task and the weights."""
        if not isinstance(params, WeightedParams):
            raise InputError(f"WSGP takes WeightedParams, but got {type(params).__name__}.")
        require_levels(params.levels, T)
        params.require()
        ell, outputscale, noise_var, offset = _stacked(params.levels)
        return CoregionalParams(ell, self._assemble(outputscale, params.weights, T), noise_var, offset)

    def params(self, ell: Tensor, values: Values, noise_var: Tensor, mean: Tensor) -> WeightedParams:
        """One process per task and the weights."""
        return WeightedParams(_levels(ell, _outputscale(values), noise_var, mean), values["weight"])


@dataclass(frozen=True, slots=True)
class _Factored(Coregion):
    """W_ν = F_ν F_νᵀ, F_ν = a_ν F̃_ν lower triangular with a positive diagonal and F̃_00 = 1: any positive definite W.

    The amplitude a_ν is common to all tasks, so that a task without data is as large as those with data. The prior's
    median has unit variance in every task and correlates each with the first by √0.9: sources are brought because
    somebody thinks they are related.
    """

    def slots(self, T: int) -> tuple[Slot, ...]:
        """The amplitudes, and the entries of F̃, its diagonal apart because it is positive."""
        V = self.n_kernels(T)
        below = tuple(math.sqrt(0.9) if j == 0 else 0.0 for i in range(T) for j in range(i))
        return (
            Slot("amplitude", V, 1e-1, 10.0, 1 / math.sqrt(V), 0.5),
            Slot("factor_diagonal", V * (T - 1), 1e-2, 10.0, math.sqrt(0.1), 1.0),
            Slot("factor_below", V * len(below), -10.0, 10.0, below * V, 1.0, positive=False),
        )

    def _factor(self, values: Values, T: int) -> Float[Tensor, "*b V T T"]:
        """The lower factor F̃ of W = a² F̃ F̃ᵀ, its first entry being 1."""
        V = self.n_kernels(T)
        first = torch.ones_like(values["amplitude"]).unsqueeze(-1)
        F = torch.diag_embed(torch.cat([first, values["factor_diagonal"].unflatten(-1, (V, T - 1))], dim=-1))
        rows, columns = torch.tril_indices(T, T, offset=-1, device=F.device)
        F[..., rows, columns] = values["factor_below"].unflatten(-1, (V, -1))
        return F

    def W(self, values: Values, T: int) -> Float[Tensor, "*b V T T"]:
        """a² F̃ F̃ᵀ."""
        F = values["amplitude"][..., None, None] * self._factor(values, T)
        return F @ F.mT

    def pull_back(self, values: Values, dW: Float[Tensor, "*b V T T"], T: int) -> Values:
        """dF = 2 dW F on the lower triangle; by log a it is Σ dF ∘ F, by F̃ it is a dF."""
        amplitude = values["amplitude"][..., None, None]
        F = amplitude * self._factor(values, T)
        dF = (2 * dW @ F).tril()
        rows, columns = torch.tril_indices(T, T, offset=-1, device=dW.device)
        return {
            "amplitude": (dF * F).sum((-2, -1)),
            "factor_diagonal": (dF * F).diagonal(dim1=-2, dim2=-1)[..., 1:].flatten(-2),
            "factor_below": (amplitude * dF)[..., rows, columns].flatten(-2),
        }

    def linked(self, kernel: int, T: int) -> range:  # noqa: ARG002
        """All sources: every kernel is every task's."""
        return range(T - 1)

    def coregional(self, params: ModelParams, T: int) -> CoregionalParams:
        """It is the form itself."""
        if not isinstance(params, CoregionalParams):
            raise InputError(f"MTKGP and MTGP take CoregionalParams, but got {type(params).__name__}.")
        V = self.n_kernels(T)
        if params.W.shape[-3:] != (V, T, T):
            raise InputError(f"W must have shape {(V, T, T)} for {T} tasks, but it has {tuple(params.W.shape[-3:])}.")
        return params

    def params(self, ell: Tensor, values: Values, noise_var: Tensor, mean: Tensor) -> CoregionalParams:
        """Lengthscales, W, noise and means."""
        return CoregionalParams(ell, self.W(values, noise_var.shape[-1]), noise_var, mean)


@dataclass(frozen=True, slots=True)
class SharedKernel(_Factored):
    """One kernel and one W for all tasks."""

    def n_kernels(self, T: int) -> int:  # noqa: ARG002
        """The same one for all tasks."""
        return 1


@dataclass(frozen=True, slots=True)
class Free(_Factored):
    """A kernel and a W per task: the full sum of separable kernels."""
