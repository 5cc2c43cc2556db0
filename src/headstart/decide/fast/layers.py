"""Layers as surfaces (decide.fast.surface): which of them are such a function of x, and with what numbers.

    layer          L_s                     Q                            h               d             e_ν
    plain          none                    none                         z               1             none
    chain, joint   that of all sources     v_s(X)ᵀ                      z_s, z          1             none
    star           a block per source      (w² + s) v_s(X)ᵀ − u(X)ᵀe    w_ν z_ν, z      w² + s, 1     √s_ν z_ν

with w and s the mean and variance of the weight of a source, and v_s, u its features at the target's inputs X, as they
are in the layer's beliefs (models.chain.beliefs).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import torch
from jaxtyping import Float
from torch import Tensor

from headstart.decide.fast.features import Features
from headstart.decide.fast.surface import MIDDLE, Surface
from headstart.models.chain.beliefs import ExactBeliefs, NoBeliefs
from headstart.models.chain.layer import Layer, Propagation
from headstart.models.mixture import Predictor
from headstart.models.star.weights import StarBeliefs


def surface_of(predictor: Predictor) -> Surface | None:
    """The surface of a layer; None for a batch, on a GPU, and for predictors of another kind (MEAN, BOOSTED …)."""
    if not isinstance(predictor, Layer) or predictor.propagation is not Propagation.EXACT:
        return None
    if predictor.L.dim() > 2 or predictor.z.dim() > 1 or predictor.L.device.type != "cpu":
        return None
    with torch.no_grad():
        match predictor.below:
            case NoBeliefs():
                return _plain(predictor)
            case ExactBeliefs() as below if below.kernel is predictor.kernel:
                return _chain(predictor, below)
            case StarBeliefs() as below if all(m.kernel is predictor.kernel for m in below.members):
                return _star(predictor, below)
    return None


@dataclass(frozen=True, slots=True)
class _Features:
    """weight · κ(·, Z; lengthscale), which belong to the rows of data from ``start`` on."""

    Z: Float[Tensor, "k d"]
    lengthscale: Float[Tensor, "d"]
    weight: Float[Tensor, "#k"]
    start: int


def _own_features(layer: Layer, start: int) -> _Features:
    return _Features(layer.X, layer.params.lengthscale, layer.params.outputscale.reshape(1), start)


def _plain(layer: Layer) -> Surface:
    p, n = layer.params, layer.L.shape[-1]
    return _surface(
        layer,
        [_own_features(layer, 0)],
        blocks=(),
        Q=layer.L.new_zeros(n, 0),
        offset=p.offset,
        h=layer.z,
        size=p.outputscale,
        d=torch.ones_like(layer.z),
        e=layer.L.new_zeros(0, 0),
    )


def _links(beliefs: ExactBeliefs, start: int) -> list[_Features]:
    """What links x to the data of the sources, whose rows are those from ``start`` on."""
    return [
        _Features(beliefs.X[term.start : term.stop], term.lengthscale, term.weight, start + term.start)
        for term in beliefs.terms
    ]


def _prior(beliefs: ExactBeliefs, X: Tensor, start: int, share: Tensor) -> list[_Features]:
    """What links x to the target's data at X before any other data."""
    return [_Features(X, lengthscale, (share * weight).reshape(1), start) for lengthscale, weight in beliefs.prior]


def _chain(layer: Layer, below: ExactBeliefs) -> Surface:
    p, at, S = layer.params, layer.at, below.z.shape[-1]
    assert at.v is not None
    return _surface(
        layer,
        [*_links(below, 0), *_prior(below, layer.X, S, torch.ones_like(p.outputscale)), _own_features(layer, S)],
        blocks=(below.L,),
        Q=at.v.mT,
        offset=below.offset + p.offset,
        h=torch.cat([below.z, layer.z]),
        size=below.prior_var().squeeze(-1) + p.outputscale,
        d=torch.ones(S + len(layer.z), dtype=layer.z.dtype),
        e=layer.L.new_zeros(0, S),
    )


def _star(layer: Layer, below: StarBeliefs) -> Surface:
    p, at, weights = layer.params, layer.at, below.weights
    assert at.v is not None
    assert at.u is not None
    z = [member.z for member in below.members]
    S = sum(len(part) for part in z)
    power = weights.mean.square() + weights.marginal_var
    features, start = [], 0
    for i, member in enumerate(below.members):
        share = power[i] + weights.own[i]
        features += [*_links(member, start), *_prior(member, layer.X, S, share)]
        start += len(z[i])
    spread = torch.cat([power[i].expand(len(part)) for i, part in enumerate(z)])
    e = weights.balanced(torch.block_diag(*(weights.var[i].sqrt() * part for i, part in enumerate(z))))
    return _surface(
        layer,
        [*features, _own_features(layer, S)],
        blocks=tuple(member.L for member in below.members),
        Q=at.v.mT * spread.sqrt() - at.u.mT @ e,
        offset=p.offset,
        h=torch.cat([*(weights.mean[i] * part for i, part in enumerate(z)), layer.z]),
        size=below.prior_var().squeeze(-1) + p.outputscale,
        d=torch.cat([spread, torch.ones_like(layer.z)]),
        e=e,
    )


def _surface(
    layer: Layer,
    features: Sequence[_Features],
    *,
    blocks: tuple[Tensor, ...],
    Q: Float[Tensor, "n S"],
    offset: Float[Tensor, ""],
    h: Float[Tensor, "N"],
    size: Float[Tensor, ""],
    d: Float[Tensor, "N"],
    e: Float[Tensor, "s S"],
) -> Surface:
    Z = torch.cat([f.Z for f in features]) - MIDDLE
    precision = torch.cat([f.lengthscale.reciprocal().square().expand_as(f.Z) for f in features])
    weight = torch.cat([f.weight.expand(len(f.Z)) for f in features])
    scaled = Z * precision
    ends = accumulate(len(f.Z) for f in features)
    groups = (
        (slice(f.start, f.start + len(f.Z)), slice(end - len(f.Z), end)) for f, end in zip(features, ends, strict=True)
    )
    return Surface(
        features=Features(
            layer.kernel,
            form=torch.cat([-0.5 * precision, scaled], dim=-1).numpy(),
            constant=-0.5 * (Z * scaled).sum(-1).numpy(),
            weight=weight.numpy(),
            groups=tuple(groups),
            n_rows=len(d),
        ),
        blocks=tuple(block.numpy() for block in blocks),
        Q=Q.numpy(),
        L=layer.L.numpy(),
        offset=float(offset),
        h=h.unsqueeze(0).numpy(),
        size=float(size),
        d=d.numpy(),
        e=e.numpy(),
    )
