"""What the package works out in closed form, directly: by fitting, and factorising, for every question anew."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

from headstart import Dataset, TransferPosterior
from headstart.models.auto.posterior import AutoPosterior
from headstart.models.auto.scores import refits_up_to
from headstart.models.auto.shares import gained
from headstart.models.chain.layer import Layer
from headstart.models.model import Prior, observed

__all__ = ["dense_scores", "direct_shares", "prequential"]

_FAR = 1e3


def dense_scores(layer: Layer, target: Dataset) -> Float[Tensor, "*b n"]:
    """log p(y_i − y_1 | y_1 … y_{i−1}) at the layer's hyperparameters from the covariance of the contrasts; 0 first."""
    at = layer.below.at(target.X)
    noise = layer.params.noise_var.unsqueeze(-1) + (0.0 if target.error_var is None else target.error_var)
    K = layer.gain_cov(at, at) + torch.diag_embed(noise.expand(target.y.shape))
    if target.batch is not None and layer.params.batch_var is not None:  # in K every shift is one of its own
        alike = target.batch.unsqueeze(-1) == target.batch.unsqueeze(-2)
        K = K + layer.params.batch_var[..., None, None] * alike
    A = torch.eye(target.n, dtype=K.dtype)[1:]
    A[:, 0] = -1.0  # of the contrasts
    L = torch.linalg.cholesky(A @ K @ A.mT)
    r = torch.einsum("ij,...j->...i", A, target.y - at.mean)
    z = torch.linalg.solve_triangular(L, r.unsqueeze(-1), upper=False).squeeze(-1)
    scores = -0.5 * (z.square() + math.log(2 * math.pi)) - L.diagonal(dim1=-2, dim2=-1).log()
    return torch.cat([torch.zeros_like(target.y[..., :1]), scores], dim=-1)


def prequential(prior: Prior, target: Dataset) -> Float[Tensor, "*b n"]:
    """The scores of every value of the target under a model whose posterior is a layer, in the user's units."""
    scores = torch.zeros_like(target.y)
    for refit in refits_up_to(target.n):
        posterior = prior.condition(target.head(refit), seed=refit)
        layer, units, warp = posterior.predictor, posterior.units, posterior.warp
        assert isinstance(layer, Layer)
        found = dense_scores(layer, units.inward(target if warp is None else warp.task_inward(target)))
        found = found - units.scale.log().unsqueeze(-1)
        if warp is not None:
            found = found + warp.log_slope(target.y)
        scores[..., refit:] = found[..., refit:]
    return scores


def direct_shares(prior: Prior, posterior: TransferPosterior, X: Float[Tensor, "m d"]) -> Float[Tensor, "m k"]:
    """Half of what each task adds alone, half of what it adds last, from models that were built for each case.

    A source that says nothing has a single row, far away; a target has none.
    """
    target = prior.inward(observed(posterior))
    loud = [*prior.sources, target]
    far = torch.full((1, target.d), _FAR, dtype=torch.float64)
    silent = [Dataset(far, torch.zeros(1, dtype=torch.float64), unseen=s.unseen) for s in prior.sources]
    nobody = [*silent, Dataset.empty(target.d)]

    def predicted(tasks: list[Dataset]) -> tuple[Tensor, Tensor, Tensor]:
        found = prior.model.at(posterior.hyperparameters, sources=tasks[:-1], target=tasks[-1])
        if isinstance(found, AutoPosterior):
            pairs, believed = [m.predict_marginal(X) for m in found.mixture.members], found.weights
        else:
            pairs, believed = [found.predict(X)], torch.ones(1, dtype=torch.float64)
        mean, var = (torch.stack(part) for part in zip(*pairs, strict=True))
        return mean, var, believed

    def learnt(now: list[Dataset], before: list[Dataset]) -> Tensor:
        mean, var, believed = predicted(now)
        mean_0, var_0, _ = predicted(before)
        return believed @ gained(mean, var, mean_0, var_0)

    gains = []
    for i in range(len(loud)):
        alone, others = list(nobody), list(loud)
        alone[i], others[i] = loud[i], nobody[i]
        gains.append(0.5 * (learnt(alone, nobody) + learnt(loud, others)))
    total = torch.stack(gains, dim=-1)
    return total / total.sum(-1, keepdim=True)
