"""The bridge: what ``condition`` returns is a BoTorch model, in the user's units."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from typing import Any, Self, TypeVar, cast

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.models.model import FantasizeMixin, Model
from botorch.posteriors.gpytorch import GPyTorchPosterior
from botorch.posteriors.posterior import Posterior
from gpytorch.distributions import MultivariateNormal
from gpytorch.likelihoods import GaussianLikelihood
from jaxtyping import Bool, Float
from linear_operator import to_linear_operator
from torch import Tensor

from headstart.data.bounds import Bounds, Seen
from headstart.data.units import Units
from headstart.data.warp import Warp
from headstart.errors import InputError
from headstart.gp.fit import FitReport
from headstart.gp.hyperparameters import OFFSET_VAR, require_variance
from headstart.models.mixture import Predictor
from headstart.models.params import ModelParams
from headstart.models.predictive import Doubt, NormalMixture, OutputTransform, measurement, require_probability
from headstart.tuning import AUTO_TUNING

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FitResult:
    """What ``condition`` found besides the predictor: its units, its hyperparameters, how they were fitted.

    ``blind`` says that no source is behind it, in all problems of a batch or in some; ``doubt`` is what the predictor
    does not know of its own uncertainty; ``past_bests`` are the best point of every source; ``error_var`` are the known
    variances of the target's values, ``batch`` their batches and ``present`` the one that is predicted, ``bounds`` the
    values that it can have and ``seen`` is the range of those that it and its sources had, in the user's units.
    """

    units: Units
    hyperparameters: ModelParams
    reports: tuple[FitReport, ...] = ()
    blind: Bool[Tensor, "*b"] | bool = False
    doubt: Doubt | None = None
    past_bests: Float[Tensor, "*b s d"] | None = None
    error_var: Float[Tensor, "*b n"] | None = None
    batch: Float[Tensor, "*b n"] | None = None
    present: Float[Tensor, "*b"] | None = None
    drift: float | None = None
    bounds: Bounds | None = None
    seen: Seen | None = None


class TransferPosterior(Model, FantasizeMixin):
    """The target task given its own data and the sources', as a BoTorch model with one output.

    It is minimised or maximised by whoever uses it: like every BoTorch model it only predicts. Analytic and Monte
    Carlo acquisition functions, pending points and fantasies work on it. What it says is taken from model units
    over mapped units, up to which its distributions are normal, to the user's (models.predictive).

    Args:
        predictor: The posterior in model units.
        outcome: What the fit found: hyperparameters, reports, units.
        y: The target's values in the user's units, (*b, n).
        warp: The output map; None where there is none.
    """

    def __init__(
        self, predictor: Predictor, outcome: FitResult, y: Float[Tensor, "*b n"], warp: Warp | None = None
    ) -> None:
        super().__init__()
        self._predictor = predictor
        self._outcome = outcome
        self._y = y
        self._warp = warp
        self.eval()

    def _seen_through(self, warp: Warp, y: Float[Tensor, "*b n"]) -> Self:
        """The same model for somebody in front of the map, where the target's values are y."""
        n, scale = y.shape[-1], self.units.scale
        if bool((warp.level_var > 0).any()):
            doubt = Doubt(
                warp.level_var / scale.square(), 0.5 * (n + 2) if n else AUTO_TUNING.range_freedom_before_results
            )
        else:
            doubt = Doubt(torch.full_like(scale, OFFSET_VAR), max(0.5 * (n - 1.0), 1.0))
        return type(self)(self._predictor, replace(self._outcome, doubt=doubt), y, warp)

    def _with_facts(self, **facts: Any) -> Self:
        """The same model with other fields of its ``FitResult``."""
        return type(self)(self._predictor, replace(self._outcome, **facts), self._y, self._warp)

    def problem(self, i: int) -> Self:
        """Problem i of a batch as a model of its own, counted in order.

        Args:
            i: The number of the problem.

        Returns:
            A model without a batch.
        """
        batch, dims = self.batch_shape, len(self.batch_shape)

        def shape(size: torch.Size) -> torch.Size:
            return size[dims:] if size[:dims] == batch else size

        return map_tensors(self, lambda t: t.flatten(0, dims - 1)[i] if t.shape[:dims] == batch else t, shape)

    def within_bounds(self, bounds: Bounds) -> Self:
        """The same model of a result that cannot be outside.

        Quantiles and probabilities approach a bound that no result was ever at; otherwise, and in moments and draws,
        what is predicted beyond a bound is at the bound (data.bounds).

        Args:
            bounds: The values that a result can have, in the user's units.

        Returns:
            A model whose quantiles, moments and draws lie within the bounds.

        Raises:
            InputError: A result of the target lies outside.
        """
        bounds.require(self._y, "the target")
        return self._with_facts(bounds=bounds)

    @property
    def hyperparameters(self) -> ModelParams:
        """In mapped units: ``model.at`` with these and the mapped data reproduces this posterior behind the map."""
        return self._outcome.hyperparameters

    @property
    def fit_reports(self) -> tuple[FitReport, ...]:
        """How the hyperparameters were found: the sources' fits in order, then the target's (joint: one)."""
        return self._outcome.reports

    @property
    def predictor(self) -> Predictor:
        """The posterior in model units."""
        return self._predictor

    @property
    def cautious(self) -> bool:
        """Whether a point is to be expected no worse than most while there are few results (decide.aim)."""
        return False

    @property
    def units(self) -> Units:
        """The affine map between model units and mapped units."""
        return self._outcome.units

    @property
    def warp(self) -> Warp | None:
        """The monotone map between mapped units and the user's; None where there is none."""
        return self._warp

    @property
    def bounds(self) -> Bounds | None:
        """The values that a result can have; None for any."""
        return self._outcome.bounds

    @property
    def floor(self) -> Float[Tensor, "*b"] | None:
        """The lowest value that a result can have, in model units; None for any."""
        return None if self.bounds is None or math.isinf(self.bounds.low) else self.bound(self.bounds.low)

    @property
    def way(self) -> OutputTransform:
        """From model units to the user's."""
        return OutputTransform(self.units, self._warp, self.bounds, self._outcome.seen)

    @property
    def blind(self) -> Bool[Tensor, "*b"]:
        """Where nothing but the target's own data is behind this posterior."""
        return torch.as_tensor(self._outcome.blind, device=self._y.device).expand(self._y.shape[:-1])

    @property
    def knows_nothing(self) -> Bool[Tensor, "*b"]:
        """Where not even the size of a result is known: there is no source behind it, and fewer than two results."""
        return self.blind & (self._y.shape[-1] < 2)

    @property
    def begins_batch(self) -> Bool[Tensor, "*b"]:
        """Where the present batch has no result yet, and others have."""
        older = self._older
        if older is None or not older.shape[-1]:
            return torch.zeros_like(self.blind)
        seen = self._y.shape[-1] > older.shape[-1]  # fantasies are of the present batch
        return older.all(-1) & (not seen)

    @property
    def has_shifts(self) -> bool:
        """Whether a result is of another batch than the present one."""
        return self._older is not None and bool(self._older.any())

    @property
    def _older(self) -> Bool[Tensor, "*b n"] | None:
        own, present = self._outcome.batch, self._outcome.present
        return None if own is None or present is None else own != present.unsqueeze(-1)

    @property
    def doubt(self) -> Doubt | None:
        """What the predictor does not know of its own uncertainty; None where nobody asks for it."""
        return self._outcome.doubt

    @property
    def past_bests(self) -> Float[Tensor, "*b s d"]:
        """The best point of every source that this posterior knows of, in their order."""
        found = self._outcome.past_bests
        return self.train_inputs[0][..., :0, :] if found is None else found

    @property
    def log_evidence(self) -> Float[Tensor, "*b"]:
        """log p(y_t | sources) in the user's units."""
        mapped = self._predictor.log_evidence() - self._y.shape[-1] * self.units.scale.log()
        return mapped if self._warp is None else mapped + self._warp.log_slope(self._y).sum(-1)

    @property
    def num_outputs(self) -> int:
        """How many outputs it predicts, as BoTorch asks: one."""
        return 1

    @property
    def batch_shape(self) -> torch.Size:
        """Independent problems, with the dimensions of any fantasies in front."""
        return self._predictor.batch_shape

    @property
    def likelihood(self) -> GaussianLikelihood:
        """The target's observation noise in mapped units, as a GPyTorch likelihood with fixed parameters."""
        from gpytorch.constraints import GreaterThan

        noise = (self._predictor.noise_var * self.units.scale**2).detach()
        floor = float(noise.min()) * (1 - 1e-9) if noise.numel() else 0.0
        constraint = GreaterThan(floor, transform=None, initial_value=noise.unsqueeze(-1))
        likelihood = GaussianLikelihood(batch_shape=noise.shape, noise_constraint=constraint)
        likelihood = likelihood.to(dtype=torch.float64, device=noise.device)
        likelihood.noise = noise.unsqueeze(-1)
        return likelihood.requires_grad_(False).eval()

    @property
    def train_inputs(self) -> tuple[Tensor, ...]:
        """The target's inputs, as the only element of BoTorch's tuple, for every problem of the batch."""
        X = self._predictor.X
        return (X.expand(*self.batch_shape, *X.shape[-2:]),)

    @property
    def train_targets(self) -> Float[Tensor, "*b n"]:
        """The target's outputs in the user's units, without BoTorch's last dimension."""
        return self._y

    def posterior(  # type: ignore[override]
        self,
        X: Float[Tensor, "*b q d"],
        output_indices: list[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: PosteriorTransform | Callable[[Posterior], Posterior] | None = None,
        **_: Any,
    ) -> Any:
        """The joint distribution of f (of y with ``observation_noise``) at the q rows of X, in the user's units.

        Args:
            X: Points, (*b, q, d).
            output_indices: None or [0], as BoTorch asks: there is one output.
            observation_noise: Whether the noise is included; a tensor of variances is in mapped units.
            posterior_transform: Applied to what is returned.

        Returns:
            A BoTorch posterior. Behind a warp it is a normal distribution seen through the map and cut off at the
            bounds: its samples, mean and variance are the user's.
        """
        self._require_query(X)
        if output_indices is not None and any(i != 0 for i in output_indices):
            raise InputError(f"The model has one output, but output_indices is {output_indices}.")
        if X.shape[-2] == 1:
            # marginals are all there is: spare the inner products of every 1×1 covariance
            mean, var = self._predictor.predict_marginal(X)
            cov = var.unsqueeze(-1)
        else:
            mean, cov = self._predictor.predict(X)
        scale = self.units.scale
        mean, cov = self.units.offset.unsqueeze(-1) + scale.unsqueeze(-1) * mean, scale[..., None, None] ** 2 * cov
        if observation_noise is not False:
            if isinstance(observation_noise, Tensor):
                require_variance(observation_noise, "observation_noise")
                noise = observation_noise.squeeze(-1)
            else:
                noise = (self._predictor.noise_var * scale**2).unsqueeze(-1)
            cov = cov + torch.diag_embed(noise.expand(mean.shape))
        # an operator is factorised when it is needed, and with care for repeated rows; a plain matrix here and now
        posterior: Posterior = GPyTorchPosterior(_ExactNormal(mean, to_linear_operator(cov)))
        posterior = self.way.through(posterior)
        return posterior if posterior_transform is None else posterior_transform(posterior)

    def predict(self, X: Float[Tensor, "*b m d"]) -> tuple[Float[Tensor, "*c m"], Float[Tensor, "*c m"]]:
        """Mean and variance of f at every row of X; no covariance between rows is computed.

        Args:
            X: Points, (*b, m, d).

        Returns:
            Means and variances, (*b, m), in the user's units.
        """
        self._require_query(X)
        return self.way.predicted(self._predictor, X)

    def cdf(self, X: Float[Tensor, "*b m d"], y: Float[Tensor, "*#b m"]) -> Float[Tensor, "*c m"]:
        """P(result ≤ y) of a measurement at every row of X; of AUTO the mixture's, each candidate with its own noise.

        Args:
            X: Points, (*b, m, d).
            y: A value per row, in the user's units.

        Returns:
            Probabilities, (*b, m).
        """
        return self.way.cdf(self._measurement(X), y)

    def log_density(self, X: Float[Tensor, "*b m d"], y: Float[Tensor, "*#b m"]) -> Float[Tensor, "*c m"]:
        """log p(y) of a measurement at every row of X, in the user's units.

        Args:
            X: Points, (*b, m, d).
            y: A value per row, in the user's units.

        Returns:
            Log densities, (*b, m); at a bound the logarithm of the probability that lies there, and −∞ beyond.
        """
        return self.way.log_density(self._measurement(X), y)

    def quantile(self, X: Float[Tensor, "*b m d"], p: float, *, noise: bool = True) -> Float[Tensor, "*c m"]:
        """What a measurement at every row of X stays below with probability p.

        Args:
            X: Points, (*b, m, d).
            p: A probability.
            noise: Whether of a measurement, or of f.

        Returns:
            Quantiles, (*b, m), in the user's units.
        """
        return self.quantiles(X, (p,), noise=noise)[0]

    def quantiles(self, X: Tensor, levels: Sequence[float], *, noise: bool = True) -> tuple[Tensor, ...]:
        """The same for every p of the levels, by one prediction.

        Args:
            X: Points, (*b, m, d).
            levels: Probabilities.
            noise: Whether of a measurement, or of f.

        Returns:
            Quantiles, (*b, m), one tensor for every level.
        """
        found, way = self._measurement(X, noise=noise), self.way
        return tuple(way.quantile(found, p) for p in levels)

    def interval(
        self, X: Float[Tensor, "*b m d"], level: float, *, noise: bool = True
    ) -> tuple[Float[Tensor, "*c m"], Float[Tensor, "*c m"]]:
        """The central interval of a measurement at every row of X: as much is left out below it as above.

        Args:
            X: Points, (*b, m, d).
            level: The probability of the interval, such as 0.95.
            noise: Whether of a measurement, or of f.

        Returns:
            Lower and upper ends, (*b, m), in the user's units.
        """
        require_probability(level, "level")
        low, high = self.quantiles(X, (0.5 - level / 2, 0.5 + level / 2), noise=noise)
        return low, high

    def _measurement(self, X: Float[Tensor, "*b m d"], *, noise: bool = True) -> NormalMixture:
        """The distribution of a measurement, or of f, at every row of X, in model units."""
        self._require_query(X)
        return measurement(self._predictor, X, self._outcome.doubt, noise=noise)

    def condition_on_observations(
        self, X: Float[Tensor, "*b k d"], Y: Float[Tensor, "*c k 1"], noise: Tensor | None = None, **_: Any
    ) -> Self:
        """The model after observing (X, Y) in the user's units, at the same hyperparameters: for fantasies.

        Args:
            X: Points, (*b, k, d).
            Y: Results, (*c, k, 1), in the user's units.
            noise: A variance per result, in mapped units; the fitted one by default.

        Returns:
            A model whose batch shape has the dimensions of the fantasies in front.
        """
        self._require_query(X)
        if not isinstance(Y, Tensor) or Y.dtype != torch.float64 or Y.shape[-2:] != (X.shape[-2], 1):
            what = f"{Y.dtype} of shape {tuple(Y.shape)}" if isinstance(Y, Tensor) else type(Y).__name__
            raise InputError(f"Y must be float64 of shape (*batch, {X.shape[-2]}, 1), but it is {what}.")
        if not bool(Y.isfinite().all()):
            raise InputError("Y must be finite: leave out observations that failed.")
        if noise is not None:
            require_variance(noise, "noise")
        y = Y.squeeze(-1)
        noise_var = None if noise is None else noise.squeeze(-1) / self.units.scale.unsqueeze(-1) ** 2
        predictor = self._predictor.observing(X, self.way.inward(y), noise_var=noise_var)
        batch = predictor.batch_shape
        y_all = torch.cat([self._y.expand(*batch, -1), y.expand(*batch, -1)], dim=-1)
        return type(self)(predictor, self._outcome, y_all, self._warp)

    def bound(self, limit: float) -> Float[Tensor, "*b"]:
        """An upper limit in model units; one that lies among the outliers is pulled in as they are.

        Args:
            limit: An upper limit in the user's units.

        Returns:
            The limit in model units, (*b).
        """
        c = self._y.new_full((*self._y.shape[:-1], 1), limit)
        mapped = c if self._warp is None else self._warp.bound(c, self._y)
        return ((mapped - self.units.offset.unsqueeze(-1)) / self.units.scale.unsqueeze(-1)).squeeze(-1)

    def within(self, X: Float[Tensor, "*b m d"], interval: tuple[float, float]) -> Float[Tensor, "*c m"]:
        """P(low ≤ result ≤ high) of a measurement at every row of X, by the members that suggestions rest on.

        Args:
            X: Points, (*b, m, d).
            interval: The lowest and the highest value, in the user's units; infinite for none.

        Returns:
            Probabilities, (*b, m).
        """
        said, (low, high) = measurement(self._predictor, X, None, noise=True), interval
        below, upto = (said.cdf(self.bound(end).unsqueeze(-1)) if math.isfinite(end) else None for end in (low, high))
        upto = X.new_ones(X.shape[:-1]) if upto is None else upto
        return upto if below is None else upto - below

    def subset_output(self, idcs: list[int]) -> Self:
        """The model itself: it has one output.

        Args:
            idcs: [0].

        Returns:
            The model itself.
        """
        if idcs != [0]:
            raise InputError(f"The model has one output, but outputs {idcs} were asked for.")
        return self

    def _require_query(self, X: Tensor) -> None:
        """Raise an ``InputError`` unless X are points like those of the model's own."""
        own = self._predictor.X
        if not isinstance(X, Tensor) or X.dim() < 2 or X.shape[-1] != own.shape[-1]:
            shape = tuple(X.shape) if isinstance(X, Tensor) else type(X).__name__
            raise InputError(f"X must have shape (*batch, q, {own.shape[-1]}), but it is {shape}.")
        if X.dtype != torch.float64 or X.device != own.device:
            raise InputError(f"X must be float64 on {own.device}, but it is {X.dtype} on {X.device}.")
        if not bool(X.isfinite().all()):
            raise InputError("X must be finite, but it has NaN or infinite entries.")


def map_tensors(value: T, f: Callable[[Tensor], Tensor], shape: Callable[[torch.Size], torch.Size] = torch.Size) -> T:
    """A copy of a posterior, or of a structure of dataclasses and containers, with f applied to every tensor.

    ``shape`` is applied to what says a shape.
    """
    each, found = partial(map_tensors, f=f, shape=shape), cast(Any, value)
    if isinstance(value, Tensor):
        found = f(value)
    elif isinstance(value, torch.Size):
        found = shape(value)
    elif isinstance(value, TransferPosterior):
        found = type(value)(*map(each, (value._predictor, value._outcome, value._y, value._warp)))
    elif isinstance(value, tuple | list):
        found = type(value)(map(each, value))
    elif isinstance(value, dict):
        found = {key: each(part) for key, part in value.items()}
    elif is_dataclass(value) and not isinstance(value, type):
        found = copy.copy(value)
        for own in fields(value):
            object.__setattr__(found, own.name, each(getattr(value, own.name)))
        for name in getattr(found, "__dict__", {}).keys() - {own.name for own in fields(value)}:
            del found.__dict__[name]  # cached properties
    return found  # type: ignore[no-any-return]


class _ExactNormal(MultivariateNormal):  # type: ignore[misc]
    """A normal distribution with its exact variance: GPyTorch raises variances below 1e-10, whatever the units."""

    @property
    def variance(self) -> Tensor:
        """The diagonal of the covariance."""
        diagonal: Tensor = self.lazy_covariance_matrix.diagonal(dim1=-1, dim2=-2)
        return diagonal.expand(self.loc.shape)
