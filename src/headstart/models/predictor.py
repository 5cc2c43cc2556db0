"""What a model's ``condition`` finds: a predictor of the target in model units, and what else there is to know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headstart.data.bounds import Bounds
from headstart.data.units import Units
from headstart.gp.fit import FitReport
from headstart.models.chain.beliefs import BeliefsAt
from headstart.models.params import ModelParams
from headstart.models.predictive import Doubt


class Predictor(Protocol):
    """The target's posterior in model units: a ``Layer``, or an ensemble of them."""

    @property
    def batch_shape(self) -> torch.Size:
        """Independent problems, with the dimensions of any fantasies in front."""
        ...

    @property
    def X(self) -> Float[Tensor, "*b n d"]:
        """Where the target was observed."""
        ...

    @property
    def noise_var(self) -> Float[Tensor, "*b"]:
        """The target's noise variance."""
        ...

    def predict(self, X: Float[Tensor, "*b m d"]) -> tuple[Float[Tensor, "*c m"], Float[Tensor, "*c m m"]]:
        """Mean and joint covariance."""
        ...

    def predict_marginal(
        self, X: Float[Tensor, "*b m d"] | BeliefsAt
    ) -> tuple[Float[Tensor, "*c m"], Float[Tensor, "*c m"]]:
        """Mean and variance of f at every row of X, in model units, without covariances."""
        ...

    def observing(
        self, X: Float[Tensor, "*b k d"], y: Float[Tensor, "*c k"], *, noise_var: Tensor | None = None
    ) -> Predictor:
        """After more observations, at the same hyperparameters."""
        ...

    def log_evidence(self) -> Float[Tensor, "*b"]:
        """log p(y_t | sources) in model units."""
        ...


@dataclass(frozen=True, slots=True)
class FitResult:
    """What ``condition`` found besides the predictor: its units, its hyperparameters, how they were fitted.

    ``blind`` says that no source is behind it, in all problems of a batch or in some; ``doubt`` is what the predictor
    does not know of its own uncertainty; ``past_bests`` are the best point of every source; ``error_var`` are the known
    variances of the target's values and ``bounds`` the values that it can have, in the user's units.
    """

    units: Units
    hyperparameters: ModelParams
    reports: tuple[FitReport, ...] = ()
    blind: Bool[Tensor, "*b"] | bool = False
    doubt: Doubt | None = None
    past_bests: Float[Tensor, "*b s d"] | None = None
    error_var: Float[Tensor, "*b n"] | None = None
    bounds: Bounds | None = None
