"""Prequential log scores: what a model predicted about every value of the target before that value was seen.

With hyperparameters found from the first observations, and K the model's covariance of all of them with noise, the
Cholesky factor L of K and z = L⁻¹ r hold every prediction of an observation from those before it:

    log p(y_i | y_1 … y_{i−1}) = −½ z_i² − log L_ii − ½ log 2π

The level of a task says nothing about which model is right, and models differ in the level they expect. So the offset
has a flat prior: contrasts y_i − y_1 are scored, and the first observation scores 0. Shifts of batches are in K, so
that a value of a new batch is predicted with their variance; which batch is the present one makes no difference.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

from headstart.gp.linalg import solve_lower

# Numbers of observations at which the hyperparameters behind the scores are refitted: often while every observation
# tells much, then ever less often. The same for a run from the start and for one that was read from a file.
REFITS = (1, *(size for k in range(1, 20) for size in (1 << k, 3 << (k - 1))))


def refits_up_to(n: int) -> list[int]:
    """The refits that come before observation number n + 1 is scored."""
    return [refit for refit in REFITS if refit < n]


def scores_of(L: Float[Tensor, "*b n n"], z: Float[Tensor, "*b n"]) -> Float[Tensor, "*b n"]:
    """The scores of all observations from the factor L of their covariance and z = L⁻¹ r; the first one is 0.

    With e = L⁻¹ 1, and the offset given a flat prior, the first i values leave it with precision S_i and mean c_i/S_i;
    the next one is then predicted with

        S_i = Σ_{j≤i} e_j²       variance    L_ii² (1 + e_i²/S_{i−1})
        c_i = Σ_{j≤i} e_j z_j    residual    L_ii (z_i − e_i c_{i−1}/S_{i−1})

    which are the scores of the contrasts y_i − y_1 at O(n²), without a new factor.
    """
    if z.shape[-1] < 2:
        return torch.zeros_like(z)
    e = solve_lower(L, torch.ones_like(L[..., :1])).squeeze(-1)
    S, c = e.square().cumsum(-1), (e * z).cumsum(-1)
    grows = S[..., 1:] / S[..., :-1]
    residual = z[..., 1:] - e[..., 1:] * c[..., :-1] / S[..., :-1]
    log_sd = L.diagonal(dim1=-2, dim2=-1)[..., 1:].log() + 0.5 * grows.log()
    scores = -0.5 * (residual.square() / grows + math.log(2 * math.pi)) - log_sd
    return torch.cat([torch.zeros_like(z[..., :1]), scores], dim=-1)
