"""What a star owes to each source: the posterior of the sources' weights, and predictions without some of the tasks.

*Weights.* With w ~ N(mean, R Rᵀ) (models.star.weights), M the sources' shapes at X, and K, r those of the target:

    E[w | y]   = mean + R (Rᵀ M) K⁻¹ r
    cov[w | y] = R (I − (Rᵀ M) K⁻¹ (Rᵀ M)ᵀ) Rᵀ

*Leaving tasks out.* At the layer's hyperparameters a source that is left out is its prior: its shape m_ν − offset_ν is
0, its Σ_ν is k_ν. With h_ν = 1 where source ν is heard and 0 where it is left out, c_ν = mean_ν² + var(w_ν), and
v_ν = L_ν⁻¹ k_ν(X_ν, ·),

    prior mean    Σ h_ν mean_ν (m_ν − offset_ν)
    prior cov     Σ (c_ν + own_ν) k_ν + k_t − Σ h_ν c_ν v_νᵀ v_ν + Uᵀ U        U = Rᵀ of the h_ν (m_ν − offset_ν)

so that terms with a source's data are worked out once for all cases, and a case costs O(s N_t² + N_t³).
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headstart.gp.linalg import cholesky, solve_lower, solve_upper
from headstart.models.chain.beliefs import BeliefsAt
from headstart.models.chain.layer import Layer
from headstart.models.mixture import Mixture, Predictor
from headstart.models.star.weights import StarBeliefs


def posterior_weights(star: Predictor) -> tuple[Float[Tensor, "*b s"], Float[Tensor, "*b s"]]:
    """Mean and standard deviation of the sources' weights in a star, given the target's data.

    Both are 0 for a source that is not selected.
    """
    layer = star.members[0] if isinstance(star, Mixture) else star  # at the most probable hyperparameters
    assert isinstance(layer, Layer)
    below = layer.below
    assert isinstance(below, StarBeliefs)
    weights, u = below.weights, layer.at.u
    assert u is not None  # Rᵀ M
    if layer.L.shape[-1] == 0:
        return below.of_all(weights.mean), below.of_all(weights.marginal_var.sqrt())
    sd = weights.var.sqrt()
    alpha = solve_upper(layer.L, layer.z.unsqueeze(-1))  # K⁻¹ r
    moved = weights.mean + sd * weights.balanced(u @ alpha).squeeze(-1)
    known = solve_lower(layer.L, weights.balanced(u).mT).square().sum(-2)
    left = (weights.marginal_var - weights.var * known).clamp_min(0.0).sqrt()
    return below.of_all(moved), below.of_all(left)


def predict_heard(
    layer: Layer, X: Float[Tensor, "m d"], heard: Bool[Tensor, "c k"]
) -> tuple[Float[Tensor, "c m"], Float[Tensor, "c m"]]:
    """Mean and variance of f at X in every case: ``heard`` says which sources, and last if the target, have data.

    The layer is a star's, of one problem. Cases that differ in sources that are not selected are worked out once.
    """
    below = layer.below
    assert isinstance(below, StarBeliefs)
    if below.index is not None:
        heard, case = heard[:, [*below.index, -1]].unique(dim=0, return_inverse=True)
        mean, var = _predict_heard(layer, below, X, heard)
        return mean[case], var[case]
    return _predict_heard(layer, below, X, heard)


def _predict_heard(
    layer: Layer, below: StarBeliefs, X: Float[Tensor, "m d"], heard: Bool[Tensor, "c k"]
) -> tuple[Float[Tensor, "c m"], Float[Tensor, "c m"]]:
    weights, n = below.weights, layer.X.shape[-2]
    h = heard[:, :-1].to(X)
    at = [member.at(torch.cat([layer.X, X])) for member in below.members]
    shapes = torch.stack([a.mean - member.offset for a, member in zip(at, below.members, strict=True)])
    c = weights.mean.square() + weights.marginal_var
    mean = h @ (weights.mean.unsqueeze(-1) * shapes)
    u = weights.balanced(h.unsqueeze(-1) * (weights.var.sqrt().unsqueeze(-1) * shapes))
    mean_x, u_x, u_t = mean[:, n:] + layer.params.offset, u[..., n:], u[..., :n]
    known_x = torch.stack([size * _v(a)[:, n:].square().sum(-2) for size, a in zip(c, at, strict=True)])
    var_x = layer.params.outputscale + below.prior_var() - h @ known_x + u_x.square().sum(-2)
    if n == 0:
        return mean_x, var_x

    def cov(b: slice, u_b: Float[Tensor, "c s _"]) -> Float[Tensor, "c n _"]:
        """Between the target's rows and those of b."""
        known = torch.stack([size * _v(a)[:, :n].mT @ _v(a)[:, b] for size, a in zip(c, at, strict=True)])
        before = layer.gain_cov(_bare(layer.X), _bare(at[0].X[b]))
        between: Tensor = before - (h @ known.flatten(1)).unflatten(-1, known.shape[1:]) + u_t.mT @ u_b
        return between

    K = cov(slice(n), u_t) + torch.diag_embed(layer.noise)
    L = cholesky(K, of="The covariance of the observations")
    y = layer.at.mean + layer.params.offset + (layer.L @ layer.z.unsqueeze(-1)).squeeze(-1)
    z = solve_lower(L, (y - mean[:, :n] - layer.params.offset).unsqueeze(-1))
    v = solve_lower(L, cov(slice(n, None), u_x))
    told = heard[:, -1:]
    return (
        torch.where(told, mean_x + (z.mT @ v).squeeze(-2), mean_x),
        torch.where(told, var_x - v.square().sum(-2), var_x),
    )


def _v(at: BeliefsAt) -> Float[Tensor, "r m"]:
    assert at.v is not None
    return at.v


def _bare(X: Float[Tensor, "m d"]) -> BeliefsAt:
    """Points at which nothing was learnt."""
    return BeliefsAt(X, torch.zeros_like(X[..., 0]))
