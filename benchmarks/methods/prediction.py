"""What a model said about a result before it was there: the raw material of ``calibration``."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headstart.models.posterior import TransferPosterior

# From results y (P,), one per problem, to P(result ≤ y) and log p(y), both (P,) and in the units of y
Predicted = Callable[[Tensor], tuple[Tensor, Tensor]]


def predicting(posterior: TransferPosterior, x: Float[Tensor, "P d"], blind: Bool[Tensor, "P"] | None) -> Predicted:
    """What the posterior says about results at x, one point per problem; nothing for problems that are ``blind``."""

    def predicted(y: Float[Tensor, "P"]) -> tuple[Float[Tensor, "P"], Float[Tensor, "P"]]:
        X, y = x.unsqueeze(-2), y.unsqueeze(-1)
        with torch.no_grad():
            pit, log_density = posterior.cdf(X, y).squeeze(-1), posterior.log_density(X, y).squeeze(-1)
        if blind is None:
            return pit, log_density
        return pit.masked_fill(blind, torch.nan), log_density.masked_fill(blind, torch.nan)

    return predicted
