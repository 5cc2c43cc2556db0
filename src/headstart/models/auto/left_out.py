"""What leaving a source out would have changed: the results predicted again without it, and when the best had come.

With AUTO's stars as they are now, weighed by how far each is believed, and the results told one after the other:

    gain     median over the results of |error without the source| − |error with it|, each predicted from those before
    trials   choosing among the points that were tried the one expected to be lowest: how much later the best of them
             is tried without the source

A median: one surprise does not decide. Nothing is fitted: a source that is left out is its prior (models.auto.shares),
and a result moves mean and covariance of all points by one step of Kalman's filter,

    g = C e_i / (C_ii + σ²)        mean ← mean + g (y_i − mean_i)        C ← C − g (C e_i)ᵀ
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headstart.gp.hyperparameters import OFFSET_VAR
from headstart.models.auto.auto import AutoPrior
from headstart.models.auto.posterior import AutoPosterior
from headstart.models.chain.layer import Layer
from headstart.models.mixture import Mixture
from headstart.models.star.weights import StarBeliefs

_MOST_RESULTS = 100  # told: what comes later changes little, and a step costs their square

# Of every star (k) and case (c): mean and covariance at the points that were tried, and the noise there
_States = tuple[Float[Tensor, "k c n"], Float[Tensor, "k c n n"], Float[Tensor, "k 1 n"]]


def left_out(prior: AutoPrior, posterior: AutoPosterior) -> tuple[Float[Tensor, "s"], Int[Tensor, "s"]] | None:
    """The gain by every source in the user's units, and in trials; None before two results, or without stars.

    Args:
        prior: What was learnt from the sources.
        posterior: ``prior`` conditioned on the results.

    Returns:
        Of every source ``gain`` and ``trials``, above 0 where it was of use.
    """
    n, s = posterior.train_targets.shape[-1], len(prior.sources)
    if n < 2 or not prior.stars:
        return None
    n = min(n, _MOST_RESULTS)
    members = [posterior.mixture.members[k] for k in prior.stars]
    layers = [member.members[0] if isinstance(member, Mixture) else member for member in members]  # the most probable
    believed = posterior.weights[prior.stars]
    believed = (believed / believed.sum().clamp_min(1e-12))[:, None, None]
    heard = torch.cat([torch.ones(1, s, dtype=torch.bool), ~torch.eye(s, dtype=torch.bool)])
    with torch.no_grad():
        states = _states([layer for layer in layers if isinstance(layer, Layer)], heard, n)
        y = posterior.way.inward(posterior.train_targets[:n])
        in_turn, _ = _told(believed, states, y, in_turn=True)
        _, best_at = _told(believed, states, y, in_turn=False)
        predicted = posterior.way.outward(in_turn[:, 1:])  # the first one only says where the target lies
        errors = (predicted - posterior.train_targets[1:n]).abs()
    return (errors[1:] - errors[0]).median(-1).values, best_at[1:] - best_at[0]


def _states(layers: list[Layer], heard: Bool[Tensor, "c s"], n: int) -> _States:
    """Before any result, with an offset that is hardly known."""
    means, covs, noises = [], [], []
    for layer in layers:
        below, at = layer.below, layer.at.rows(slice(n))
        assert isinstance(below, StarBeliefs)
        h = heard[:, list(range(len(below.members)) if below.index is None else below.index)].to(at.X)
        parts = [member.at(at.X) for member in below.members]
        shapes = torch.stack([part.mean - member.offset for part, member in zip(parts, below.members, strict=True)])
        weights = below.weights
        sizes = weights.mean.square() + weights.marginal_var
        known = torch.stack([size * part.v.mT @ part.v for size, part in zip(sizes, parts, strict=True)])  # type: ignore[union-attr]
        u = weights.balanced(h.unsqueeze(-1) * (weights.var.sqrt().unsqueeze(-1) * shapes))
        K = layer.params.outputscale * layer.kernel(at.X, at.X, layer.params.lengthscale) + below.prior_cov(at.X, at.X)
        means.append(h @ (weights.mean.unsqueeze(-1) * shapes))
        K = K + (layer.noise_cov - torch.diag_embed(layer.noise))[:n, :n]  # shifts between batches
        covs.append(K + OFFSET_VAR - (h @ known.flatten(1)).unflatten(-1, K.shape) + u.mT @ u)
        noises.append(layer.noise[:n].unsqueeze(0))
    return torch.stack(means), torch.stack(covs), torch.stack(noises)


def _told(
    believed: Float[Tensor, "k 1 1"], states: _States, y: Float[Tensor, "n"], *, in_turn: bool
) -> tuple[Float[Tensor, "c n"], Int[Tensor, "c"]]:
    """What was predicted of every result when it came, and when the best came: in turn, or the most promising first."""
    (mean, cov, noise), n = states, len(y)
    cases = torch.arange(mean.shape[1])
    tried = torch.zeros(mean.shape[1:], dtype=torch.bool)
    predicted, best_at, best = [], torch.zeros(len(cases), dtype=torch.long), int(y.argmin())
    for step in range(n):
        expected = (believed * mean).sum(0)
        i = torch.full_like(cases, step) if in_turn else expected.masked_fill(tried, torch.inf).argmin(-1)
        predicted.append(expected[cases, i])
        best_at = torch.where(i == best, step, best_at)
        tried[cases, i] = True
        column = cov[:, cases, i]  # (k, c, n)
        gain = column / (column[:, cases, i] + noise[:, 0, i]).unsqueeze(-1)
        mean = mean + gain * (y[i] - mean[:, cases, i]).unsqueeze(-1)
        cov = cov - gain.unsqueeze(-1) * column.unsqueeze(-2)
    return torch.stack(predicted, dim=-1), best_at
