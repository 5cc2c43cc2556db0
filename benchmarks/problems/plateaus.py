"""Functions that are flat nearly everywhere, where only a small region is good: all minimised, and without noise there.

    family            minimised                               flat            inputs
    flat_success      −success rate, 0 outside an ellipsoid   84 % of points  3
    flat_needle       −score, 0 outside a small disc          94 %            2
    flat_accuracy     −accuracy, that of the majority class   72 %            3
    flat_yield        −yield, cut off at 0 and at 1           76 %            4
    flat_reward       −reward of a policy that nearly always  none exactly    4
                      fails, in a curved valley it does not

A task has its good region somewhere near that of the others, and its own best value. The reward has small differences
and noise where the policy fails.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from benchmarks.problems.family import Family


def _far(params: Tensor, inputs: Sequence[Tensor], radii: Sequence[float]) -> Tensor:
    """Σ_j ((x_j − c_j)/r_j)² with the centre c in the first parameters."""
    parts = [((x - params[..., j]) / r) ** 2 for j, (x, r) in enumerate(zip(inputs, radii, strict=True))]
    return torch.stack(parts).sum(0)


def _success(params: Tensor, inputs: Sequence[Tensor]) -> Tensor:
    return -params[..., 3] * (1 - _far(params, inputs, (0.33, 0.33, 0.33))).clamp_min(0.0).sqrt()


def _needle(params: Tensor, inputs: Sequence[Tensor]) -> Tensor:
    return -params[..., 2] * (1 - _far(params, inputs, (0.13, 0.13))).clamp_min(0.0)


def _accuracy(params: Tensor, inputs: Sequence[Tensor]) -> Tensor:
    """Two inputs make up for one another: the good region lies across them."""
    a, b, c = inputs
    far = _far(params, (a + 0.5 * (b - 0.5), b, c), (0.18, 0.5, 0.6))
    return -(0.95 * params[..., 3] - 0.25 * far).clamp_min(0.6)


def _yield(params: Tensor, inputs: Sequence[Tensor]) -> Tensor:
    a, b, _, d = inputs
    radii = (3.2**-0.5, 2.4**-0.5, 1.5**-0.5)
    left = 1.1 - _far(params, inputs[:3], radii) - 2.5 * (a - b + 0.2) ** 2 - 0.6 * d * params[..., 3]
    return -(1.6 * left - 0.6).clamp(0.0, 1.0)


def _reward(params: Tensor, inputs: Sequence[Tensor]) -> Tensor:
    a, b, c, d = inputs
    valley = (b - 0.2 - 0.6 * params[..., 1] * a**2) / 0.12
    runs = torch.exp(-(valley**2) - ((c - params[..., 2]) / 0.25) ** 2 - ((a - params[..., 0]) / 0.3) ** 2)
    return -(params[..., 3] * runs + 0.01 * (1 - d) + 0.01 * a)


def _near(*middles: float, by: float = 0.08) -> tuple[tuple[float, float], ...]:
    return tuple((middle - by, middle + by) for middle in middles)


def _unit(d: int) -> tuple[tuple[float, float], ...]:
    return ((0.0, 1.0),) * d


_FAMILIES = (
    Family("flat_success", _success, (*_near(0.6, 0.35, 0.5), (0.7, 1.0)), _unit(3), noise_std=0.0),
    Family("flat_needle", _needle, (*_near(0.6, 0.4, by=0.05), (0.7, 1.0)), _unit(2), noise_std=0.0),
    Family("flat_accuracy", _accuracy, (*_near(0.45, 0.55, 0.5), (0.95, 1.0)), _unit(3), noise_std=0.0),
    Family("flat_yield", _yield, (*_near(0.4, 0.6, 0.5), (0.6, 1.0)), _unit(4), noise_std=0.0),
    Family("flat_reward", _reward, (*_near(0.6), (0.8, 1.0), *_near(0.45), (0.6, 1.0)), _unit(4), noise_std=0.005),
)
PLATEAUS: dict[str, Family] = {family.name: family for family in _FAMILIES}
