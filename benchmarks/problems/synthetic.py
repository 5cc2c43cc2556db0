"""The paper's function families (appendix "Details on experiments"): a classic function, its parameters drawn anew.

    family       f(x; parameters)                                        domain           parameters
    forrester    a (6x − 2)² sin(12x − 4) + b (x − ½) − c                [0, 1]           a, b, c
    alpine       x sin(x + π + s) + 0.1 x                                [−10, 10]        s: five sources, one target
    alpine_c     x sin(x + π) + c x                                      [−10, 10]        c
    branin       a (x₂ − b x₁² + c x₁ − r)² + s (1 − t) cos x₁ + s       [−5,10]×[0,15]   a, b, c, r, s, t
    hartmann3    −Σ_i α_i exp(−Σ_j A_ij (x_j − P_ij)²)                   [0, 1]³          α₁ … α₄
    hartmann6    the same with other A and P                             [0, 1]⁶          α₁ … α₄

Noise and numbers of source points are those of the paper's single-source experiments. The square in Branin is missing
in the paper's text.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from benchmarks.problems.family import Family

Matrix = Sequence[Sequence[float]]

# ── the formulas, in their own domain ─────────────────────────────────────────────────────────────────────────────


def _forrester(params: Tensor, inputs: Sequence[Tensor]) -> Tensor:
    (a, b, c), (x,) = params.unbind(-1), inputs
    return a * (6 * x - 2) ** 2 * torch.sin(12 * x - 4) + b * (x - 0.5) - c


def _alpine(params: Tensor, inputs: Sequence[Tensor]) -> Tensor:
    (s,), (x,) = params.unbind(-1), inputs
    return x * torch.sin(x + math.pi + s) + 0.1 * x


def _alpine_c(params: Tensor, inputs: Sequence[Tensor]) -> Tensor:
    (c,), (x,) = params.unbind(-1), inputs
    return x * torch.sin(x + math.pi) + c * x


def _branin(params: Tensor, inputs: Sequence[Tensor]) -> Tensor:
    (a, b, c, r, s, t), (x1, x2) = params.unbind(-1), inputs
    return a * (x2 - b * x1**2 + c * x1 - r) ** 2 + s * (1 - t) * torch.cos(x1) + s


def _hartmann(A: Matrix, P: Matrix, params: Tensor, inputs: Sequence[Tensor]) -> Tensor:
    x = inputs[0]
    A_, P_ = x.new_tensor(A), x.new_tensor(P) * 1e-4
    # Σ_j one input at a time: no tensor of size n × 4 × d
    exponent = x.new_zeros(*x.shape, len(A))
    for j, x in enumerate(inputs):
        exponent = exponent + A_[:, j] * (x.unsqueeze(-1) - P_[:, j]) ** 2
    return -(params * torch.exp(-exponent)).sum(-1)


# ── the families ──────────────────────────────────────────────────────────────────────────────────────────────────

FORRESTER = Family(
    name="forrester",
    formula=_forrester,
    bounds=((0.0, 1.0),),
    ranges=((0.2, 3.0), (-5.0, 15.0), (-5.0, 5.0)),
)
ALPINE = Family(
    name="alpine",
    formula=_alpine,
    bounds=((-10.0, 10.0),),
    ranges=((0.0, 5 * math.pi / 12),),
    fixed_sources=tuple((k * math.pi / 12,) for k in range(1, 6)),
    fixed_target=(0.0,),
)
# The comparison figure goes from c = ½ to c = −½ and names no distribution: between the two is our choice.
ALPINE_C = Family(
    name="alpine_c",
    formula=_alpine_c,
    bounds=((-10.0, 10.0),),
    ranges=((-0.5, 0.5),),
)
BRANIN = Family(
    name="branin",
    formula=_branin,
    bounds=((-5.0, 10.0), (0.0, 15.0)),
    ranges=((0.5, 1.5), (0.1, 0.15), (1.0, 2.0), (5.0, 7.0), (8.0, 12.0), (0.03, 0.05)),
    noise_std=1.0,
)
_HARTMANN_RANGES = ((1.0, 1.02), (1.18, 1.2), (2.8, 3.0), (3.2, 3.4))
HARTMANN3 = Family(
    name="hartmann3",
    formula=partial(
        _hartmann,
        ((3.0, 10, 30), (0.1, 10, 35), (3.0, 10, 30), (0.1, 10, 35)),
        ((3689, 1170, 2673), (4699, 4387, 7470), (1091, 8732, 5547), (381, 5743, 8828)),
    ),
    bounds=((0.0, 1.0),) * 3,
    ranges=_HARTMANN_RANGES,
)
HARTMANN6 = Family(
    name="hartmann6",
    formula=partial(
        _hartmann,
        ((10, 3, 17, 3.5, 1.7, 8), (0.05, 10, 17, 0.1, 8, 14), (3, 3.5, 1.7, 10, 17, 8), (17, 8, 0.05, 10, 0.1, 14)),
        (
            (1312, 1696, 5569, 124, 8283, 5886),
            (2329, 4135, 8307, 3736, 1004, 9991),
            (2348, 1451, 3522, 2883, 3047, 6650),
            (4047, 8828, 8732, 5743, 1091, 381),
        ),
    ),
    bounds=((0.0, 1.0),) * 6,
    ranges=_HARTMANN_RANGES,
)

FAMILIES: dict[str, Family] = {f.name: f for f in (FORRESTER, ALPINE, ALPINE_C, BRANIN, HARTMANN3, HARTMANN6)}
