"""What a model had said about a value before it was seen: prequential log scores, in closed form between refits.

With hyperparameters found from the first observations, and K the model's covariance of all of them with noise, the
Cholesky factor L of K and z = L⁻¹ r hold every prediction of an observation from those before it:

    log p(y_i | y_1 … y_{i−1}) = −½ z_i² − log L_ii − ½ log 2π

A mixture's members, with weights found from the first observations, are each weighed anew by every later one.

Where a task lies says nothing about which model is right, and models differ in what they expect there. So the offset is
given a flat prior: what is scored are the contrasts y_i − y_1, and the first observation scores nothing.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

from headstart.data.dataset import Dataset
from headstart.gp.linalg import cholesky, solve_lower
from headstart.models.auto.members import predictor_of
from headstart.models.chain.layer import Layer
from headstart.models.mixture import Mixture
from headstart.models.model import Prior

__all__ = ["REFITS", "prequential", "refits_up_to", "sequential_scores"]

# Numbers of observations at which the hyperparameters behind the scores are found anew: often while every
# observation tells much, then ever less often. The same for a run from the start and for one that was read from a file.
REFITS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192)


def refits_up_to(n: int) -> list[int]:
    """The refits that come before observation number n + 1 is scored."""
    return [refit for refit in REFITS if refit < n]


def prequential(prior: Prior, target: Dataset) -> Float[Tensor, "*b n"]:
    """The scores of every value of the target under a model whose posterior is a layer, in the user's units."""
    scores = torch.zeros_like(target.y)
    for refit in refits_up_to(target.n):
        posterior = prior.condition(target.head(refit), seed=refit)
        predictor, units, warp = predictor_of(posterior), posterior.units, posterior.warp
        inward = units.inward(target if warp is None else warp.task_inward(target))
        found = sequential_scores(predictor, inward.X, inward.y, after=refit) - units.scale.log().unsqueeze(-1)
        if warp is not None:
            found = found + warp.log_slope(target.y)
        scores[..., refit:] = found[..., refit:]
    return scores


def sequential_scores(
    predictor: Layer | Mixture, X: Float[Tensor, "*b n d"], y: Float[Tensor, "*b n"], *, after: int
) -> Float[Tensor, "*b n"]:
    """log p(y_i | y_1 … y_{i−1}) at the predictor's hyperparameters, for the observations ``after`` the first ones.

    Of those, with which the hyperparameters were found, only a single layer's are given; a mixture's are 0.
    """
    if isinstance(predictor, Layer):
        return _of_layer(predictor, X, y)
    every = torch.stack([sequential_scores(m, X, y, after=after) for m in predictor.members], dim=-2)
    every[..., :after] = 0.0
    together = torch.logsumexp(every.cumsum(-1) + predictor.weights.log().unsqueeze(-1), dim=-2)
    return together.diff(dim=-1, prepend=torch.zeros_like(together[..., :1]))


def _of_layer(layer: Layer, X: Float[Tensor, "*b n d"], y: Float[Tensor, "*b n"]) -> Float[Tensor, "*b n"]:
    """At the layer's hyperparameters, whatever it has observed; 0 for the first one."""
    if X.shape[-2] < 2:
        return torch.zeros_like(y)
    at = layer.below.at(X)
    K = layer.gain_cov(at, at)
    K = K + torch.diag_embed(layer.params.noise_var.unsqueeze(-1).expand(y.shape))
    r = y - at.mean
    first = K[..., :1, :]
    contrasts = K[..., 1:, 1:] - first[..., 1:] - first[..., 1:].mT + first[..., :1]
    L = cholesky(contrasts, of="The covariance of the target's observations")
    z = solve_lower(L, (r[..., 1:] - r[..., :1]).unsqueeze(-1)).squeeze(-1)
    scores = -0.5 * (z.square() + math.log(2 * math.pi)) - L.diagonal(dim1=-2, dim2=-1).log()
    return torch.cat([torch.zeros_like(y[..., :1]), scores], dim=-1)
