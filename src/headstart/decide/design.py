"""Where to begin when nothing is known: points that keep away from each other and have no liking for the edge.

From a scrambled Sobol set the point is taken that is farthest from all that were tried or are awaited, distances being
measured on a torus, Σ_j min(|Δ_j|, 1 − |Δ_j|)²: the corners of a cube are then as near to the middle as anything else,
while in the plain sense they are the farthest of all, and where experiments fail. Two levels of a category are as far
apart as two numbers can be, so that those not tried yet are the farthest. There is no state: a study that is continued,
or that many workers share, goes on with what it sees.

Where there is a past that a model could make nothing of (a few rows each, or noise), half of the design are its best
points: whoever has done an experiment before tries again what was best.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headstart.decide.domain import Domain

_LOOKED_AT = 64  # points of which one is chosen
_SAME = 1e-6  # points whose coordinates all differ by less are the same


def are_among(X: Float[Tensor, "n d"], points: Float[Tensor, "k d"]) -> Bool[Tensor, "n"]:
    """Which rows of X are the same as one of the points."""
    if len(points) == 0:
        return torch.zeros(len(X), dtype=torch.bool, device=X.device)
    return torch.cdist(X, points, p=torch.inf).amin(-1) < _SAME


def design_size(n_inputs: int) -> int:
    """How many points are laid out before a model of the target alone is asked."""
    return min(2 + n_inputs // 2, 6)


def design_point(
    domain: Domain,
    tried: Float[Tensor, "k d"],
    generator: torch.Generator,
    *,
    free: Float[Tensor, "m d"] | None = None,
    past: Float[Tensor, "s d"] | None = None,
) -> Float[Tensor, "d"]:
    """The next point of the design; of a list, one of its ``free`` rows. ``past`` are points that were good before."""
    X = domain.listing if free is None else free
    if past is not None and len(past) and 2 * len(tried) < design_size(domain.inputs):
        new = past[~are_among(past, tried.to(past))]
        if len(new):
            return domain.snap(new[:1])[0] if X is None else X[(X - new[0]).square().sum(-1).argmin()]
    if X is None:
        X = domain.spread(_LOOKED_AT, generator)
    else:
        X = X[torch.randperm(len(X), generator=generator)[:_LOOKED_AT]]
    if len(tried) == 0:
        return X[0]
    return X[_torus(X, tried.to(X), domain).amin(-1).argmax()]


def _torus(A: Float[Tensor, "n d"], B: Float[Tensor, "k d"], domain: Domain) -> Float[Tensor, "n k"]:
    apart = (A.unsqueeze(-2) - B.unsqueeze(-3)).abs()
    squares = torch.minimum(apart, 1 - apart).square()
    for levels in domain.categories:  # ½² where they differ, shared by the columns of the two levels
        squares[..., list(levels)] = (apart[..., list(levels)] > 0).to(apart) / 8
    for columns in domain.described:  # to begin with, every category is one
        squares[..., list(columns)] = 0.0
    return squares.sum(-1)
