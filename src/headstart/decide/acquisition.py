"""How much a point is worth trying: BoTorch's own acquisition functions, set up for minimisation.

    kind      value at x, the higher the better     with
    LOG_EI    log E[max(f* − f(x), 0)]              f* the incumbent
    LCB       −(mean(x) − β sd(x))                  β the exploration coefficient; the paper uses 3

Under noise LOG_EI may ask for a point again: what it does not know about f there is an improvement it hopes for.
The paper's β multiplies the standard deviation. BoTorch's ``beta`` multiplies the variance, so it is given β².

``acquisition`` gives BoTorch's function, for whoever works with BoTorch; ``worth`` the same values from predictions
at hand, ``worth_and_slopes`` also how they change with those. What ``suggest`` maximises is a ``Worth``, which also
knows of points whose result is awaited (decide/pending).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

import numpy as np
import torch
from botorch.acquisition.analytic import (
    AnalyticAcquisitionFunction,
    LogExpectedImprovement,
    UpperConfidenceBound,
    _log_ei_helper,
)
from botorch.acquisition.objective import PosteriorTransform
from botorch.posteriors.gpytorch import GPyTorchPosterior
from botorch.posteriors.posterior import Posterior
from gpytorch.distributions import MultivariateNormal
from jaxtyping import Float
from linear_operator import to_linear_operator
from numpy.typing import NDArray
from scipy.special import log_ndtr
from torch import Tensor

from headstart.data.units import Units
from headstart.errors import InputError
from headstart.models.botorch import TransferPosterior

__all__ = [
    "Acquisition",
    "InModelUnits",
    "PlainWorth",
    "Worth",
    "acquisition",
    "incumbent",
    "worth",
    "worth_and_slopes",
]


Array = NDArray[np.float64]

_LOG_ROOT_2PI = 0.5 * math.log(2 * math.pi)


class Acquisition(Enum):
    """What is maximised over the search space."""

    LOG_EI = "log_ei"
    LCB = "lcb"


class InModelUnits(PosteriorTransform):
    """f in model units, (f − offset) / scale, where it varies by about 1 whatever the user's units are.

    BoTorch treats variances below 1e-12 as 1e-12, and optimisers stop at absolute gradients. In the user's units
    both would make a suggestion depend on whether the objective is in metres or in nanometres.
    """

    def __init__(self, units: Units) -> None:
        super().__init__()
        self._units = units

    def evaluate(self, Y: Float[Tensor, "*c q 1"], X: Tensor | None = None) -> Float[Tensor, "*c q"]:  # noqa: ARG002
        """The values in model units, without the output dimension."""
        return (Y.squeeze(-1) - self._units.offset.unsqueeze(-1)) / self._units.scale.unsqueeze(-1)

    def forward(self, posterior: Posterior, X: Tensor | None = None) -> Posterior:  # noqa: ARG002
        """The distribution of f in model units."""
        if not isinstance(posterior, GPyTorchPosterior):
            raise InputError(f"Model units need a Gaussian posterior, but it is a {type(posterior).__name__}.")
        normal, scale = posterior.distribution, self._units.scale
        mean = (normal.mean - self._units.offset.unsqueeze(-1)) / scale.unsqueeze(-1)
        # an operator, because a plain matrix would be factorised here and now
        cov = to_linear_operator(normal.covariance_matrix / scale[..., None, None] ** 2)
        return GPyTorchPosterior(MultivariateNormal(mean, cov))


class Worth(Protocol):
    """How much each of many points is worth trying, the higher the better: what a search maximises."""

    def __call__(self, X: Float[Tensor, "*b n d"]) -> Float[Tensor, "*b n"]:
        """The value at every row of X, with its gradient."""
        ...


def incumbent(
    posterior: TransferPosterior,
    X: Float[Tensor, "*b n d"] | None = None,
    *,
    posterior_transform: PosteriorTransform | None = None,
) -> Float[Tensor, "*b"]:
    """The lowest posterior mean at X, by default at the target's own inputs.

    Under noise the lowest *observed* value is too low: a lucky error would never be beaten. Fails where there is
    no point to look at.
    """
    X = posterior.train_inputs[0] if X is None else X
    if X.shape[-2] == 0:
        raise InputError(
            "There is no incumbent: the target has no observation yet. Give best_f, for instance the lowest posterior "
            "mean at some points (incumbent(posterior, X)), as suggest does."
        )
    with torch.no_grad():
        rows = X.movedim(-2, 0).unsqueeze(-2)  # each row its own query, in front of the model's batch
        mean: Tensor = posterior.posterior(rows, posterior_transform=posterior_transform).mean
    return mean[..., 0, 0].amin(0)


def acquisition(
    posterior: TransferPosterior,
    kind: Acquisition,
    *,
    best_f: Float[Tensor, "*b"] | float | None = None,
    beta: float = 3.0,
    posterior_transform: PosteriorTransform | None = None,
) -> AnalyticAcquisitionFunction:
    """BoTorch's acquisition function of that kind for minimisation, itself to be maximised.

    ``best_f`` (LOG_EI) is the value to improve on, by default the ``incumbent``; ``beta`` (LCB) multiplies the
    standard deviation. With a ``posterior_transform`` both refer to the transformed posterior.
    """
    match kind:
        case Acquisition.LOG_EI:
            if best_f is None:
                best_f = incumbent(posterior, posterior_transform=posterior_transform)
            best_f = torch.as_tensor(best_f)
            if best_f.dim() > 0:
                best_f = best_f.unsqueeze(-1)  # BoTorch compares it with means of shape (*b, 1)
            return LogExpectedImprovement(
                posterior, best_f=best_f, posterior_transform=posterior_transform, maximize=False
            )
        case Acquisition.LCB:
            require_beta(beta)
            return UpperConfidenceBound(
                posterior, beta=beta**2, posterior_transform=posterior_transform, maximize=False
            )


def worth(
    kind: Acquisition,
    mean: Float[Tensor, "*b m"],
    var: Float[Tensor, "*b m"],
    *,
    best_f: Float[Tensor, "*b"],
    beta: float = 3.0,
) -> Float[Tensor, "*b m"]:
    """The same values from predictions that are at hand, such as those for a list of candidates."""
    sd = var.sqrt()
    match kind:
        case Acquisition.LOG_EI:
            u = (best_f.unsqueeze(-1) - mean) / sd
            value: Tensor = _log_ei_helper(u) + sd.log()
            return value
        case Acquisition.LCB:
            return beta * sd - mean


def worth_and_slopes(
    kind: Acquisition,
    mean: Float[Array, "*b m"],
    var: Float[Array, "*b m"],
    *,
    best_f: Float[Array, "*b"],
    beta: float = 3.0,
) -> tuple[Float[Array, "*b m"], Float[Array, "*b m"], Float[Array, "*b m"]]:
    """The values of ``worth`` and their derivatives by the mean and by the variance, for a few points very often.

    With u = (f* − mean)/sd and h(u) = φ(u) + u Φ(u), LOG_EI is log h(u) + log sd, so that h′ = Φ gives

        −Φ(u)/(h(u) sd)     by the mean
        φ(u)/(2 h(u) var)   by the variance
    """
    sd = np.sqrt(var)
    match kind:
        case Acquisition.LOG_EI:
            u = (best_f[..., None] - mean) / sd
            log_h = _log_ei_helper(torch.from_numpy(u)).numpy()
            by_mean = -np.exp(log_ndtr(u) - log_h) / sd
            by_var = 0.5 * np.exp(-0.5 * u * u - _LOG_ROOT_2PI - log_h) / var
            return log_h + np.log(sd), by_mean, by_var
        case Acquisition.LCB:
            return beta * sd - mean, np.full_like(mean, -1.0), 0.5 * beta / sd


@dataclass(frozen=True, slots=True)
class PlainWorth:
    """An acquisition function of BoTorch, asked about many points at once."""

    function: AnalyticAcquisitionFunction
    posterior: TransferPosterior
    kind: Acquisition
    best_f: Float[Tensor, "*b"]
    beta: float

    @classmethod
    def of(
        cls, posterior: TransferPosterior, kind: Acquisition, *, best_f: Float[Tensor, "*b"], beta: float
    ) -> PlainWorth:
        """In model units, which ``best_f`` is in too."""
        units = InModelUnits(posterior.units)
        function = acquisition(posterior, kind, best_f=best_f, beta=beta, posterior_transform=units)
        return cls(function, posterior, kind, best_f, beta)

    def __call__(self, X: Float[Tensor, "*b n d"]) -> Float[Tensor, "*b n"]:
        """The function at every row of X."""
        rows = X.movedim(-2, 0).unsqueeze(-2)  # each point its own query, in front of the model's batch
        value: Tensor = self.function(rows).movedim(0, -1)
        return value


def require_beta(beta: float) -> None:
    """Raise an ``InputError`` unless uncertainty attracts."""
    if not beta >= 0:
        raise InputError(f"beta is how much uncertainty attracts and must not be negative, but it is {beta}.")
