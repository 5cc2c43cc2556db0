"""Acquisition functions of one outcome with their derivatives in closed form: log expected improvement and a bound.

    kind      value at x, the higher the better     with
    LOG_EI    log E[max(f* − ½σ − m(x), 0)]         f* the incumbent, m(x) the mean at x once x is measured
    LCB       −(mean(x) − β sd(x))                  β the exploration coefficient; the paper uses 3

Before the measurement m(x) is normal around the mean, with variance var²/(var + noise_var): what a measurement with
noise can change. Without noise that is var, and LOG_EI is BoTorch's ``LogExpectedImprovement``. With noise a point that
was measured already promises little, however large the error of a measurement: it is repeated only where even that is
more than any other point has to offer. And an improvement counts by what exceeds half a measurement's error σ
(``PLAIN_TUNING.improvement_margin``): without that a search stays around a valley's lowest point, gaining less than a
measurement can show, and never looks for a deeper one. The paper's β multiplies the standard deviation, BoTorch's
``beta`` the variance.

Of an objective that is to be near a target t the improvement on a distance d is E[max(d − |y − t|, 0)], with y = g(m)
in the user's units. Where the map g to them is straight on either side of τ = g⁻¹(t) that is, with a = g⁻¹(t − d) and
b = g⁻¹(t + d),

    d (H(b) − H(τ))/(b − τ) − d (H(τ) − H(a))/(τ − a)        (``log_closeness``)

a second difference of H(x) = E[max(x − m, 0)]; which m are any nearer than d, and that none is nearer than t itself, is
exact whatever g is.

Where a result cannot be below some value b (``floor``, data.bounds), neither can m(x), and no improvement is more than
what is left to it: with H(t) = E[max(t − ½σ − m(x), 0)] LOG_EI is log(H(f*) − H(b)), f* ≥ b. The bound gives way by a
thousandth: where f* is at b already, the probability to be as good is compared.
"""

from __future__ import annotations

import math
from enum import Enum

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray
from scipy.special import erfcx, log_ndtr, ndtr

from headstart.tuning import PLAIN_TUNING

Array = NDArray[np.float64]

_LOG_ROOT_2PI = 0.5 * math.log(2 * math.pi)
_ROOT_HALF_PI, _ROOT_HALF = math.sqrt(math.pi / 2), math.sqrt(0.5)
# Logarithms of the expected improvement below two levels differ by no less: between equal levels there is next to none
CLOSEST = -1e-12


class Acquisition(Enum):
    """The acquisition function that is maximised over the search space."""

    LOG_EI = "log_ei"
    LCB = "lcb"


def log_improvement(
    mean: Float[Array, "*#b n"],
    var: Float[Array, "*#b n"],
    *,
    level: Float[Array, "*#b 1"],
    noise_var: Float[Array, "*#b 1"],
    floor: float | None = None,
) -> tuple[Float[Array, "*c n"], Float[Array, "*c n"], Float[Array, "*c n"]]:
    """log E[max(level − ½σ − m, 0)] and its derivatives by the mean and by the variance, in model units.

    With u = (level − ½σ − mean)/s, σ² = noise_var, s² = var²/(var + noise_var) and h(u) = φ(u) + u Φ(u) it is
    log h(u) + log s, so that h′ = Φ gives

        −Φ(u)/(h(u) s)                                  by the mean
        φ(u)/(h(u) s) · ∂s/∂var                         by the variance,  ∂s/∂var = s (1/var − ½/(var + noise_var))

    With a floor b and v = (b − mean)/s each of h, Φ and φ is the difference between u and v.
    """
    total = var + noise_var
    s = var / np.sqrt(total)
    margin = PLAIN_TUNING.improvement_margin * np.sqrt(noise_var)
    log_h, rise, density = _log_h_and_shares((level - margin - mean) / s)
    if floor is not None:
        below, *others = _log_h_and_shares((floor - PLAIN_TUNING.improvement_at_bound - margin - mean) / s)
        gap = np.minimum(below - log_h, CLOSEST)
        share, left = np.exp(gap), -np.expm1(gap)
        rise, density = ((own - share * other) / left for own, other in zip((rise, density), others, strict=True))
        log_h = log_h + np.log(left)
    return log_h + np.log(s), -rise / s, density * (1 / var - 0.5 / total)


def log_closeness(
    mean: Float[Array, "*#b n"],
    var: Float[Array, "*#b n"],
    *,
    low: Float[Array, "*#b 1"],
    at: float,
    high: Float[Array, "*#b 1"],
    height: Float[Array, "*#b 1"],
    noise_var: Float[Array, "*#b 1"],
) -> tuple[Float[Array, "*c n"], Float[Array, "*c n"], Float[Array, "*c n"]]:
    """log E[tent(m)] and its derivatives by the mean and by the variance; the tent is 0 outside low … high.

    It rises from ``low`` to ``height`` at ``at`` and falls to ``high``, less half a measurement's error on either side.
    With H = s h(u), u = (x − mean)/s as in ``log_improvement`` and slopes r = height/(at − low), f = height/(high − at)

        E = s (f (h_b − h_τ) − r (h_τ − h_a))        ∂h/∂mean = −Φ/s,  ∂(s h)/∂s = φ

    A mean below ``at`` is seen in the mirror, so that h is never large: then nothing cancels.
    """
    total = var + noise_var
    s = var / np.sqrt(total)
    below = mean < at
    side = np.where(below, -1.0, 1.0)
    near, far = np.where(below, high, low) - at, np.where(below, low, high) - at  # on the side away from the mean first
    near, far, m = side * near, side * far, side * (mean - at)
    narrow = np.minimum(-near, far)
    margin = np.minimum(
        PLAIN_TUNING.improvement_margin * np.sqrt(noise_var), narrow - PLAIN_TUNING.improvement_at_bound
    )
    kept = 1.0 - np.maximum(margin, 0.0) / narrow
    rise, fall = height / -near, height / far
    parts = [_log_h_and_shares((x - m) / s) for x in (kept * far, 0.0 * far, kept * near)]
    (log_b, *_), (log_t, *_), (log_a, *_) = parts
    gap = [np.minimum(low_h - high_h, CLOSEST) for low_h, high_h in ((log_t, log_b), (log_a, log_t))]
    falls, rises = log_b + np.log(-np.expm1(gap[0])) + np.log(fall), log_t + np.log(-np.expm1(gap[1])) + np.log(rise)
    value = falls + np.log(-np.expm1(np.minimum(rises - falls, CLOSEST)))
    shares = [
        factor * np.exp(log_h - value) for factor, (log_h, *_) in zip((fall, -(fall + rise), rise), parts, strict=True)
    ]
    by_mean = -sum(share * own for share, (_, own, _) in zip(shares, parts, strict=True)) * side / s
    by_var = sum(share * own for share, (*_, own) in zip(shares, parts, strict=True)) * (1 / var - 0.5 / total)
    return value + np.log(s), by_mean, by_var


def confidence_bound(
    mean: Float[Array, "*b n"], var: Float[Array, "*#b n"], beta: float
) -> tuple[Float[Array, "*b n"], Float[Array, "*b n"], Float[Array, "*#b n"]]:
    """−(mean − β sd) and its derivatives by the mean and by the variance."""
    sd = np.sqrt(var)
    return beta * sd - mean, np.full_like(mean, -1.0), 0.5 * beta / sd


def log_within(
    mean: Float[Array, "*b n"],
    var: Float[Array, "*#b n"],
    *,
    ends: tuple[float, float],
    noise_var: Float[Array, "*#b 1"],
) -> tuple[Float[Array, "*b n"], Float[Array, "*b n"], Float[Array, "*b n"]]:
    """log P(a measurement is between ``ends``) = log(Φ(z) − Φ(v)) and its derivatives by the mean and by the variance.

    z = (upper − mean)/sd, v = (lower − mean)/sd, sd² = var + noise_var: a limit is to hold for the measurement, so the
    noise counts. Without a lower end (−∞) it is log Φ(z).
    """
    lower, upper = ends
    sd = np.sqrt(var + noise_var)
    z = (upper - mean) / sd
    if math.isinf(lower):
        value = log_ndtr(z)
        ratio = np.exp(-0.5 * z * z - _LOG_ROOT_2PI - value)  # φ(z)/Φ(z)
        return value, -ratio / sd, -0.5 * ratio * z / (sd * sd)
    v = (lower - mean) / sd
    above = z + v > 0  # in the mirror both are in the lower tail, where differences are exact
    high, low = log_ndtr(np.where(above, -v, z)), log_ndtr(np.where(above, -z, v))
    value = high + np.log(-np.expm1(np.minimum(low - high, CLOSEST)))
    at_z, at_v = (np.exp(-0.5 * end * end - _LOG_ROOT_2PI - value) for end in (z, v))
    return value, -(at_z - at_v) / sd, -0.5 * (at_z * z - at_v * v) / (sd * sd)


def _log_h_and_shares(u: Float[Array, "*c"]) -> tuple[Float[Array, "*c"], Float[Array, "*c"], Float[Array, "*c"]]:
    """log h(u), Φ(u)/h(u) and φ(u)/h(u); below −1 by Mills' ratio m = Φ/φ, with h/φ = 1 + u m."""
    low, high = np.minimum(u, -1.0), np.maximum(u, -1.0)
    mills = _ROOT_HALF_PI * erfcx(-_ROOT_HALF * low)
    t = 1 / (low * low)  # below −40 a series in it, for 1 + u m is a difference of like numbers
    series = t * (1 - t * (3 - t * (15 - t * (105 - t * (945 - t * 10395)))))
    over = np.where(low < -40.0, series, 1 + low * mills)
    log_below = np.log(over) - 0.5 * low * low - _LOG_ROOT_2PI
    density, rise = np.exp(-0.5 * high * high - _LOG_ROOT_2PI), ndtr(high)
    h, near = density + high * rise, u > -1.0
    return (
        np.where(near, np.log(h), log_below),
        np.where(near, rise / h, mills / over),
        np.where(near, density / h, 1 / over),
    )
