"""Hyperparameters: named and bounded, as a value (``GPParams``) and as a flat vector for the optimiser (``Layout``).

The bounds and the weak priors below (numbers in ``headstart.tuning``) are in *model units*: inputs in the unit cube,
outputs of about unit variance. A positive parameter p enters the flat vector as θ = log p, and its prior is a normal
distribution of θ, so that the most likely value is the median and a parameter without data sits exactly there.

    parameter     bounds          median        95 % of the prior     why
    lengthscale   [0.05, 20]      0.3 √g        a factor 7 each way   distances among g inputs grow like √g
      category    the same        √g            the same              two levels are at distance 1
    outputscale   [0.01, 100]     1             a factor 7 each way   outputs have unit variance
      residual    [1e-4, 100]     0.3           a factor 20 each way  what is left after a good source is smaller
    noise_var     [1e-6, 1]       0.01          a factor 50 each way  a tenth of the spread is a common error
    batch_var     [1e-6, 10]      0.01          a factor 50 each way  shifts between batches are often as large as noise

The offset of a task is not searched for. Where a task lies says nothing about its shape, so while the others are
fitted the offset is integrated out, offset ~ N(mean of the task's residuals, OFFSET_VAR): one observation then says
nothing about the outputscale, as it should. Afterwards the offset is its own posterior mean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from enum import Enum
from typing import Any, Self

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from headstart.errors import InputError
from headstart.gp.linalg import broadcast_shapes
from headstart.tuning import PLAIN_TUNING

OFFSET_VAR = PLAIN_TUNING.offset_var


class Starts(Enum):
    """Where the restarts of the optimiser begin."""

    PRIOR = "prior"  # the first at the prior's median, the others drawn from the prior
    SOFTPLUS = "softplus"  # log(1 + exp(N(0, 1))) for every parameter: the paper's appendix


def require_finite(params: Any, where: str) -> None:
    """Raise an ``InputError`` that names the field of a frozen value whose tensor is not finite."""
    for f in fields(params):
        value = getattr(params, f.name)
        if isinstance(value, Tensor) and not bool(value.isfinite().all()):
            raise InputError(f"{f.name} {where} must be finite, but it is {value.tolist()}.")


def require_variance(value: Tensor, what: str) -> None:
    """Raise an ``InputError`` where a variance is negative."""
    if not bool((value >= 0).all()):
        raise InputError(f"{what} is a variance and must not be negative, but it is {value.tolist()}.")


@dataclass(frozen=True, slots=True)
class GPParams:
    """One Gaussian process: y = offset + f(x) + ε, f ~ GP(0, outputscale · κ(·, ·; lengthscale)), var ε = noise_var.

    An infinite lengthscale means that the process does not see that input. Rows of other batches than the present one
    have shifts in common besides (``Dataset.shift_pattern``).

    Args:
        lengthscale: ℓ, one per input, (*b, d).
        outputscale: The variance of f, (*b).
        noise_var: The variance of the noise, (*b).
        offset: The mean, (*b).
        batch_var: The variance of the shifts of batches, (*b); None is 0.
    """

    lengthscale: Float[Tensor, "*b d"]
    outputscale: Float[Tensor, "*b"]
    noise_var: Float[Tensor, "*b"]
    offset: Float[Tensor, "*b"]
    batch_var: Float[Tensor, "*b"] | None = None

    @classmethod
    def of(
        cls,
        *,
        lengthscale: object,
        outputscale: object,
        noise_var: object,
        offset: object = 0.0,
        batch_var: object = None,
    ) -> Self:
        """Checked hyperparameters from numbers, sequences or tensors: positive, and the noise not negative.

        Args:
            lengthscale: One per input.
            outputscale: The variance of f.
            noise_var: The variance of the noise.
            offset: The mean.
            batch_var: The variance of the shifts of batches; None where there are none.

        Returns:
            Tensors of one batch shape.
        """
        given = {"lengthscale": lengthscale, "outputscale": outputscale, "noise_var": noise_var, "offset": offset}
        given |= {} if batch_var is None else {"batch_var": batch_var}
        values = {name: torch.as_tensor(value, dtype=torch.float64) for name, value in given.items()}
        if values["lengthscale"].dim() == 0:
            raise InputError("lengthscale needs one value per input, but it is a single number.")
        shapes = {name: tuple(value.shape) for name, value in values.items()}
        try:
            batch = broadcast_shapes(shapes["lengthscale"][:-1], *(shapes[name] for name in list(shapes)[1:]))
        except ValueError as error:
            raise InputError(f"The hyperparameters do not fit together: their shapes are {shapes}.") from error
        params = cls(
            lengthscale=values["lengthscale"].expand(*batch, -1),
            **{name: value.expand(batch) for name, value in values.items() if name != "lengthscale"},
        )
        params.require("the task")
        return params

    def require(self, task: str, d: int | None = None) -> None:
        """Raise an ``InputError`` unless this is a process (of d inputs): finite, positive, the noise not negative.

        Args:
            task: Whose hyperparameters they are, for the message.
            d: The number of inputs; None for any.
        """
        seen = self.lengthscale.masked_fill(self.lengthscale == torch.inf, 1.0)
        require_finite(replace(self, lengthscale=seen), f"of {task}")
        for name in ("lengthscale", "outputscale"):
            if not bool((getattr(self, name) > 0).all()):
                raise InputError(f"{name} of {task} must be positive, but it is {getattr(self, name).tolist()}.")
        require_variance(self.noise_var, f"noise_var of {task}")
        if self.batch_var is not None:
            require_variance(self.batch_var, f"batch_var of {task}")
        if d is not None and self.lengthscale.shape[-1] != d:
            raise InputError(f"{task} has {self.lengthscale.shape[-1]} lengthscales, but the inputs have {d} columns.")

    def scaled(self, scale: Float[Tensor, "*b"], offset: Float[Tensor, "*b"]) -> GPParams:
        """The same process for outputs scale · y + offset.

        Args:
            scale: A factor of the outputs.
            offset: What is added to them.

        Returns:
            Hyperparameters in the other units.
        """
        return GPParams(
            lengthscale=self.lengthscale,
            outputscale=self.outputscale * scale**2,
            noise_var=self.noise_var * scale**2,
            offset=self.offset * scale + offset,
            batch_var=None if self.batch_var is None else self.batch_var * scale**2,
        )


def blind_to(params: GPParams, columns: Sequence[int]) -> GPParams:
    """The same process, which does not see these inputs: their lengthscales are infinite."""
    if not columns:
        return params
    lengthscale = params.lengthscale.clone()
    lengthscale[..., list(columns)] = torch.inf
    return replace(params, lengthscale=lengthscale)


@dataclass(frozen=True, slots=True)
class Slot:
    """A named piece of the flat vector with its bounds and its normal prior (centre and spread) in θ."""

    name: str
    size: int
    lower: float
    upper: float
    centre: float | tuple[float, ...]
    spread: float
    positive: bool = True
    power: float = 1.0  # a positive parameter p acts through p to this power …
    negligible: float = 0.0  # … and hardly, where that is small against this

    def spread_out(self, value: float | tuple[float, ...]) -> list[float]:
        """One number per entry, in θ."""
        values = list(value) if isinstance(value, tuple) else [value] * self.size
        return [math.log(v) for v in values] if self.positive else values


@dataclass(frozen=True, slots=True)
class ThetaPrior:
    """The normal prior of θ of every problem: the layout's (``Layout.prior``), or what other tasks have shown."""

    centre: Float[Tensor, "P p"]
    spread: Float[Tensor, "P p"]

    def then(self, last: ThetaPrior) -> ThetaPrior:
        """That of these entries and, behind them, of others."""
        pairs = (self.centre, last.centre), (self.spread, last.spread)
        return ThetaPrior(*(torch.cat([own, rest.to(own)], dim=-1) for own, rest in pairs))


@dataclass(frozen=True, slots=True)
class Layout:
    """The flat vector θ: its slots in order, with bounds, priors and starting points."""

    slots: tuple[Slot, ...]

    @property
    def size(self) -> int:
        """The length of θ."""
        return sum(slot.size for slot in self.slots)

    def bounds(self) -> tuple[Float[Tensor, "p"], Float[Tensor, "p"]]:
        """The lowest and highest θ."""
        lower = [v for s in self.slots for v in s.spread_out(s.lower)]
        upper = [v for s in self.slots for v in s.spread_out(s.upper)]
        return torch.tensor(lower, dtype=torch.float64), torch.tensor(upper, dtype=torch.float64)

    def centre(self) -> Float[Tensor, "p"]:
        """The prior's median, which is also its mode in θ."""
        return torch.tensor([v for s in self.slots for v in s.spread_out(s.centre)], dtype=torch.float64)

    def precision(self) -> Float[Tensor, "p"]:
        """1/spread² of the prior of every entry."""
        return torch.tensor(self._per_entry([s.spread**-2 for s in self.slots]), dtype=torch.float64)

    def prior(self, P: int) -> ThetaPrior:
        """The same weak prior for each of P problems."""
        spread = torch.tensor(self._per_entry([s.spread for s in self.slots]), dtype=torch.float64)
        return ThetaPrior(self.centre().expand(P, -1), spread.expand(P, -1))

    def completed(self, theta: Float[Tensor, "P k"]) -> Float[Tensor, "P p"]:
        """The first entries of θ with the prior's median of the others."""
        rest = self.centre()[theta.shape[-1] :].to(theta)
        return torch.cat([theta, rest.expand(len(theta), -1)], dim=-1)

    def saturating(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """θ compressed where it no longer changes the covariance: log(pᵏ + negligible)/k, so θ where pᵏ is large."""
        power = np.array(self._per_entry([s.power for s in self.slots]))
        negligible = np.array(self._per_entry([s.negligible for s in self.slots]))
        compressed: NDArray[np.float64] = np.log(np.exp(power * theta) + negligible) / power
        return compressed

    def _per_entry(self, values: Sequence[float]) -> list[float]:
        """The value of its slot for every entry of θ."""
        return [value for slot, value in zip(self.slots, values, strict=True) for _ in range(slot.size)]

    def named(self, theta: Float[Tensor, "*b p"]) -> dict[str, Float[Tensor, "*b k"]]:
        """The natural values by slot name: exp θ where positive, θ elsewhere."""
        pieces = theta.split([slot.size for slot in self.slots], dim=-1)
        return {s.name: piece.exp() if s.positive else piece for s, piece in zip(self.slots, pieces, strict=True)}

    def starts(self, how: Starts, n: int, generator: torch.Generator) -> Float[Tensor, "n p"]:
        """n starting points inside the bounds."""
        normal = torch.randn(n, self.size, generator=generator, dtype=torch.float64)
        lower, upper = self.bounds()
        if how is Starts.SOFTPLUS:
            positive = torch.tensor(self._per_entry([s.positive for s in self.slots]))
            theta = torch.where(positive, torch.nn.functional.softplus(normal).log(), normal)
        else:
            normal[0] = 0.0
            theta = self.centre() + normal / self.precision().sqrt()
        return theta.clamp(lower, upper)


@dataclass(frozen=True, slots=True)
class Inputs:
    """Which columns of X share a lengthscale: ``group`` has a number for each, the categories' after the others'."""

    group: tuple[int, ...]
    n_numbers: int

    @classmethod
    def of(cls, d: int, categories: Sequence[Sequence[int]] = ()) -> Inputs:
        """d columns, of which some are the levels of categories."""
        numbers = [column for column in range(d) if not any(column in levels for levels in categories)]
        place = {column: i for i, column in enumerate(numbers)}
        place |= {column: len(numbers) + i for i, levels in enumerate(categories) for column in levels}
        return cls(tuple(place[column] for column in range(d)), len(numbers))

    @property
    def n_groups(self) -> int:
        """How many lengthscales there are."""
        return max(self.group) + 1

    @property
    def all_alone(self) -> bool:
        """Whether every column has its own."""
        return self.n_groups == len(self.group)


def lengthscale_slot(name: str, n_kernels: int, inputs: Inputs) -> Slot:
    """The lengthscales of ``n_kernels`` kernels, kernel by kernel."""
    g = inputs.n_groups
    number, category = PLAIN_TUNING.number_lengthscale_median, PLAIN_TUNING.category_lengthscale_median
    medians = [number if i < inputs.n_numbers else category for i in range(g)]
    centre = tuple(median * math.sqrt(g) for median in medians) * n_kernels
    return Slot(name, n_kernels * g, 0.05, 20.0, centre, PLAIN_TUNING.scale_spread, power=-2.0, negligible=0.2)


def outputscale_slot(n_levels: int, *, residual: bool) -> Slot:
    """Outputscales of a task of its own, or of the residual on top of another task."""
    if residual:
        median, spread = PLAIN_TUNING.residual_outputscale_median, PLAIN_TUNING.residual_outputscale_spread
        return Slot("residual_outputscale", n_levels, 1e-4, 100.0, median, spread)
    return Slot("outputscale", n_levels, 0.01, 100.0, 1.0, PLAIN_TUNING.scale_spread)


def noise_slot(n_tasks: int) -> Slot:
    """The noise variance of every task."""
    median, spread = PLAIN_TUNING.noise_var_median, PLAIN_TUNING.noise_var_spread
    return Slot("noise_var", n_tasks, 1e-6, 1.0, median, spread, negligible=0.01)


def batch_slot() -> Slot:
    """The variance of the shifts of batches."""
    median, spread = PLAIN_TUNING.batch_var_median, PLAIN_TUNING.batch_var_spread
    return Slot("batch_var", 1, 1e-6, 10.0, median, spread, negligible=0.01)


def gp_layout(inputs: Inputs, *, residual: bool) -> Layout:
    """θ = [log lengthscale (g), log outputscale, log noise_var] of one process."""
    return Layout((lengthscale_slot("lengthscale", 1, inputs), outputscale_slot(1, residual=residual), noise_slot(1)))
