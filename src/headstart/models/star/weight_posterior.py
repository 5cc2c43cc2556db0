"""What the target's data say about the weights of its sources.

With w ~ N(mean, R Rᵀ) (models.star.weights), M the sources' shapes at X, and K, r those of the target:

    E[w | y]   = mean + R (Rᵀ M) K⁻¹ r
    cov[w | y] = R (I − (Rᵀ M) K⁻¹ (Rᵀ M)ᵀ) Rᵀ
"""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from headstart.gp.linalg import solve_lower, solve_upper
from headstart.models.chain.layer import Layer
from headstart.models.mixture import Mixture, Predictor
from headstart.models.star.weights import StarBeliefs


def posterior_weights(star: Predictor) -> tuple[Float[Tensor, "*b s"], Float[Tensor, "*b s"]]:
    """Mean and standard deviation of the sources' weights in a star, given the target's data.

    Both are 0 for a source that is not asked.
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
