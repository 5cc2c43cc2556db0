"""Acquisition functions: expected improvement and confidence bounds, for minimisation.

    kind      value at x, the higher the better     with
    LOG_EI    log E[max(f* − ½σ − m(x), 0)]         f* the incumbent, m(x) what the mean at x will be once x is measured
    LCB       −(mean(x) − β sd(x))                  β the exploration coefficient; the paper uses 3

Before the measurement m(x) is normal around the mean, with variance var²/(var + noise_var): what a measurement with
noise can change. Without noise that is var, and LOG_EI is BoTorch's ``LogExpectedImprovement``. With noise a point that
was measured already promises little, however large the error of a measurement: it is repeated only where even that is
more than any other point has to offer. And an improvement counts by what exceeds half a measurement's error σ
(MARGIN): without that a search goes on for ever around a valley's lowest point, gaining what nobody would notice, and
never looks for a deeper one. The paper's β multiplies the standard deviation. BoTorch's ``beta`` multiplies
the variance, so it is given β².

Where a result cannot be below some value b (``floor``, data.bounds), neither can m(x), and no improvement is more than
what is left to it: with H(t) = E[max(t − ½σ − m(x), 0)] LOG_EI is log(H(f*) − H(b)), f* ≥ b. The bound gives way by a
thousandth: where f* is at b already, what is compared is how probable it is to be as good.

``acquisition`` gives BoTorch's function in the user's units, for whoever works with BoTorch. ``acquisition_values``
has its values in model units from predictions at hand, ``acquisition_values_and_slopes`` also how they change with
those. What ``suggest`` maximises is an ``AcquisitionValue``, which also knows of points whose result is awaited
(decide/pending).
"""

from __future__ import annotations

import math
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
from jaxtyping import Float
from numpy.typing import NDArray
from scipy.special import erfcx, ndtr
from torch import Tensor

from headstart.errors import InputError
from headstart.gp.linalg import LEAST_VAR
from headstart.models.posterior import TransferPosterior

Array = NDArray[np.float64]

_LOG_ROOT_2PI = 0.5 * math.log(2 * math.pi)
_ROOT_HALF_PI, _ROOT_HALF = math.sqrt(math.pi / 2), math.sqrt(0.5)
_FAR = 40.0  # standard deviations
# An improvement of less than this share of a measurement's standard error is none
MARGIN = 0.5
# In model units: what there is to gain at least, next to a bound
LEFT = 1e-3
_CLOSEST = -1e-12  # of the logarithms of H at two levels


class Acquisition(Enum):
    """What is maximised over the search space."""

    LOG_EI = "log_ei"
    LCB = "lcb"


class AcquisitionValue(Protocol):
    """An acquisition function's values at many points, the higher the better: what a search maximises."""

    def __call__(self, X: Float[Tensor, "*b n d"]) -> Float[Tensor, "*b n"]:
        """The value at every row of X, with its gradient."""
        ...


def incumbent(posterior: TransferPosterior, X: Float[Tensor, "*b n d"] | None = None) -> Float[Tensor, "*b"]:
    """The lowest posterior mean at X, by default at the target's own inputs, in the user's units.

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
        return posterior.predict(X)[0].amin(-1)


def acquisition(
    posterior: TransferPosterior,
    kind: Acquisition,
    *,
    best_f: Float[Tensor, "*b"] | float | None = None,
    beta: float = 3.0,
) -> AnalyticAcquisitionFunction:
    """BoTorch's acquisition function of that kind for minimisation, itself to be maximised, in the user's units.

    ``best_f`` (LOG_EI) is the value to improve on, by default the ``incumbent``; ``beta`` (LCB) multiplies the
    standard deviation.
    """
    match kind:
        case Acquisition.LOG_EI:
            best_f = torch.as_tensor(incumbent(posterior) if best_f is None else best_f)
            if best_f.dim() > 0:
                best_f = best_f.unsqueeze(-1)  # BoTorch compares it with means of shape (*b, 1)
            return LogExpectedImprovement(posterior, best_f=best_f, maximize=False)
        case Acquisition.LCB:
            require_beta(beta)
            return UpperConfidenceBound(posterior, beta=beta**2, maximize=False)


def acquisition_values(
    kind: Acquisition,
    mean: Float[Tensor, "*b m"],
    var: Float[Tensor, "*b m"],
    *,
    best_f: Float[Tensor, "*b"],
    noise_var: Float[Tensor, "*#b"],
    beta: float = 3.0,
    floor: Float[Tensor, "*#b"] | None = None,
) -> Float[Tensor, "*b m"]:
    """The acquisition function's values, from predictions that are at hand; ``floor`` bounds the improvement."""
    var = var.clamp_min(LEAST_VAR)
    match kind:
        case Acquisition.LOG_EI:
            noise = noise_var.unsqueeze(-1)
            sd = var / (var + noise).sqrt()
            value: Tensor = _log_ei_helper((best_f.unsqueeze(-1) - MARGIN * noise.sqrt() - mean) / sd) + sd.log()
            if floor is None:
                return value
            least = floor.unsqueeze(-1) - LEFT - MARGIN * noise.sqrt()
            return log_less(value, _log_ei_helper((least - mean) / sd) + sd.log())
        case Acquisition.LCB:
            return beta * var.sqrt() - mean


def log_less(high: Tensor, low: Tensor) -> Tensor:
    """log(eʰ − eˡ) of two logarithms, the first of which is the higher."""
    return high + torch.log(-torch.expm1((low - high).clamp_max(_CLOSEST)))


def acquisition_values_and_slopes(
    kind: Acquisition,
    mean: Float[Array, "*b m"],
    var: Float[Array, "*b m"],
    *,
    best_f: Float[Array, "*b"],
    noise_var: Float[Array, "*#b"],
    beta: float = 3.0,
    floor: float | None = None,
) -> tuple[Float[Array, "*b m"], Float[Array, "*b m"], Float[Array, "*b m"]]:
    """The same values and their derivatives by the mean and by the variance, for a few points very often.

    With u = (f* − ½σ − mean)/s, σ² = noise_var, s² = var²/(var + noise_var) and h(u) = φ(u) + u Φ(u), LOG_EI is
    log h(u) + log s, so that h′ = Φ gives

        −Φ(u)/(h(u) s)                                  by the mean
        φ(u)/(h(u) s) · ∂s/∂var                         by the variance,  ∂s/∂var = s (1/var − ½/(var + noise_var))

    With a floor b and v = (b − mean)/s each of h, Φ and φ is the difference between u and v.
    """
    match kind:
        case Acquisition.LOG_EI:
            noise = noise_var[..., None]
            total = var + noise
            s = var / np.sqrt(total)
            u = (best_f[..., None] - MARGIN * np.sqrt(noise) - mean) / s
            log_h, rise, density = _log_h_and_shares(u)
            if floor is not None:
                v = (floor - LEFT - MARGIN * np.sqrt(noise) - mean) / s
                below, *others = _log_h_and_shares(v)
                gap = np.minimum(below - log_h, _CLOSEST)
                share, left = np.exp(gap), -np.expm1(gap)
                rise, density = (
                    (own - share * other) / left for own, other in zip((rise, density), others, strict=True)
                )
                log_h = log_h + np.log(left)
            return log_h + np.log(s), -rise / s, density * (1 / var - 0.5 / total)
        case Acquisition.LCB:
            sd = np.sqrt(var)
            return beta * sd - mean, np.full_like(mean, -1.0), 0.5 * beta / sd


def _log_h_and_shares(u: Float[Array, "*c"]) -> tuple[Float[Array, "*c"], Float[Array, "*c"], Float[Array, "*c"]]:
    """log h(u), Φ(u)/h(u) and φ(u)/h(u).

    Below −1 by Mills' ratio m = Φ/φ, h/φ = 1 + u m, which is a difference of like numbers: far below, a series in 1/u².
    """
    low, high = np.minimum(u, -1.0), np.maximum(u, -1.0)
    mills = _ROOT_HALF_PI * erfcx(-_ROOT_HALF * low)
    t = 1 / (low * low)
    series = t * (1 - t * (3 - t * (15 - t * (105 - t * (945 - t * 10395)))))
    over = np.where(low < -_FAR, series, 1 + low * mills)
    log_below = np.log(over) - 0.5 * low * low - _LOG_ROOT_2PI
    density, rise = np.exp(-0.5 * high * high - _LOG_ROOT_2PI), ndtr(high)
    h, near = density + high * rise, u > -1.0
    return (
        np.where(near, np.log(h), log_below),
        np.where(near, rise / h, mills / over),
        np.where(near, density / h, 1 / over),
    )


def require_beta(beta: float) -> None:
    """Raise an ``InputError`` unless uncertainty attracts."""
    if not beta >= 0:
        raise InputError(f"beta is how much uncertainty attracts and must not be negative, but it is {beta}.")
