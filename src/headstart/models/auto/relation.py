"""Relation of a source to the target: is its shape found in the results, upside down, or not at all?

At the target's n inputs source ν is a mean m − offset and a covariance Σ (what its rows do not show), both divided by
the spread of its values; R is the correlation of its process there, before any data. With a of unknown size, results
are taken as

    y = a 1 + s e        e ~ N(h r m, r² Σ + (1 − r²) ((1 − ν) R + ν I))

    h = +1 the same, −1 upside down, r in ``SHARES``        h = 0, r = 0: unrelated, something of its own as smooth

averaged over r, over the share ν of noise, over log s ~ N(0, 1), and over m as it is, by its rank among the source's
values, and bent, (exp(c m) − 1)/c with c = ±0.7, for two tasks may rise together without being proportional. Known
errors of results are added to the covariance, as for s = 1. The flat prior of a leaves contrasts of results: with C
that covariance, P = C⁻¹ − C⁻¹ B (Bᵀ C⁻¹ B)⁻¹ Bᵀ C⁻¹ and e = y/s − h r m, where B = 1, or with batches (k of them) says
which rows are in which, for then every batch has a level a of its own,

    log p(y | h, r, ν, s) = −½ eᵀ P e − ½ log |C| − ½ log |Bᵀ C⁻¹ B| − (n − k) log s − ½ (n − k) log 2π

All results count together, whatever their order and wherever a search has put them: where a source hardly varies among
them, they say little about it, either way. One of them may be a surprise, of which any value was as probable. Given the
others it has the residual (P e)_i / P_ii with the variance s² / P_ii, so that with probability π of a surprise

    p(y) → p(y) ((1 − π) + π/n Σ_i q / p(y_i | the others))

and no single result can decide. Sources that predict each other are then related alike: ``shared``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from headstart.data.dataset import Dataset
from headstart.data.thinning import representative
from headstart.gp.linalg import cholesky, solve_lower
from headstart.models.auto.source_selection import correlation, means_at
from headstart.models.star.independent import IndependentSources
from headstart.tuning import AUTO_TUNING

SHARES = (0.5, 0.8, 0.95)  # r: how much of the target's size is the source's shape
NOISE = (0.02, 0.1, 0.4)  # ν: how much of the rest is noise
_LOG_SIZES = torch.linspace(-2.5, 2.5, 11, dtype=torch.float64)  # log s, in standard deviations of its prior
_BEND, _FAR = 0.7, 3.0  # c, and how many spreads away a shape is bent
_RANKS = (0.02, 0.98)  # of what lies beyond the source's values
_SURPRISE = 0.2  # π
_SURPRISING = 0.1  # q: a density over ten spreads of the sources
_MOST_ROWS = 100  # results that are enough to tell
# How probable it is that two sources are related alike whose correlation is beyond the first number
_TIED = ((0.7, 0.97), (0.5, 0.92))
_ELEMENTS = 1 << 22  # of covariances that are in memory at once
_JITTER = 1e-8


class SourceRelation(NamedTuple):
    """How probable it is that a source is the same as the target, unrelated, or upside down; they sum to 1."""

    same: float
    unrelated: float
    reversed: float

    @property
    def turned(self) -> SourceRelation:
        """That of the source upside down."""
        return SourceRelation(self.reversed, self.unrelated, self.same)


PRIOR = SourceRelation(0.6, 0.2, 0.2)


def relations(
    alone: IndependentSources, target: Dataset, agreement: Float[Tensor, "s s"] | None = None
) -> list[SourceRelation]:
    """How every source is related to the target.

    Args:
        alone: The sources, each on its own.
        target: The target behind its output map; without two that differ the probabilities
            are those before any.
        agreement: How the sources predict each other, if they are to share what is found.

    Returns:
        The probabilities of every source.
    """
    if (groups := target.shift_groups) is not None:  # a row alone in its batch says nothing
        _, place, counts = groups.unique(return_inverse=True, return_counts=True)
        target = target.rows((counts[place] > 1).nonzero()[:, 0])
    if target.n < 2 or bool((target.y == target.y[0]).all()):  # equal results show no shape, whichever they are
        return [PRIOR] * len(alone.sources)
    target = representative(target, _MOST_ROWS)
    inward = alone.units.completed(target).inward(target)
    size = inward.y.std()
    if size > 0 and abs(math.log(size)) > float(_LOG_SIZES[-1]):  # of another order of magnitude than the sources
        errors = None if inward.error_var is None else inward.error_var / size.square()
        inward = replace(inward, y=inward.y / size, error_var=errors)
    together = max(1, _ELEMENTS // (target.n**2 * len(NOISE) * (len(SHARES) + 1)))
    found = [
        log_evidence(inward, *_shapes_at(alone, range(start, min(start + together, len(alone.sources))), target.X))
        for start in range(0, len(alone.sources), together)
    ]
    each = torch.softmax(torch.cat(found) + torch.tensor(PRIOR, dtype=torch.float64).log(), dim=-1)
    own = [SourceRelation(*row) for row in each.tolist()]
    return own if agreement is None else shared(own, agreement, alone.trust)


def shared(
    own: Sequence[SourceRelation], agreement: Float[Tensor, "s s"], trust: Float[Tensor, "s"]
) -> list[SourceRelation]:
    """What is found of a source, told by the clearest of those that predict each other.

    With λ the probability that two sources are related alike, (1 − λ) times the own relation and λ times the other's,
    turned if they are the reverse of each other. Only what is related or upside down is told: that one source is
    unrelated may be for another reason.
    """
    both = 0.5 * (agreement + agreement.mT)
    between = torch.where((trust > 0) & (trust > 0).unsqueeze(-1), both, 0.0).tolist()
    found = []
    for j, mine in enumerate(own):
        best = mine
        for i, other in enumerate(own):
            tied = next((share for least, share in _TIED if abs(between[i][j]) > least), 0.0)
            if i == j or not tied or max(other) == other.unrelated:
                continue
            theirs = other if between[i][j] > 0 else other.turned
            told = SourceRelation(*(tied * p + (1 - tied) * q for p, q in zip(theirs, mine, strict=True)))
            if max(told) != told.unrelated and (max(told) > max(best) or max(best) == best.unrelated):
                best = told
        found.append(best)
    return found


def agreement_of(alone: IndependentSources) -> Float[Tensor, "s s"]:
    """The correlation of source i's mean at source j's inputs with j's values; 1 on the diagonal, 0 of a flat mean.

    Below 0 one source is the other upside down.
    """
    with torch.no_grad():
        found = torch.stack([correlation(means_at(alone.members, s.X), s.y) for s in alone.sources], dim=-1)
    return found.fill_diagonal_(1.0)


def _shapes_at(
    alone: IndependentSources, which: range, X: Float[Tensor, "n d"]
) -> tuple[Float[Tensor, "4 s n"], Float[Tensor, "s n n"], Float[Tensor, "s n n"]]:
    """m in its four shapes, Σ and R of some sources at X."""
    shapes, left, correlated = [], [], []
    for i in which:
        member, spread = alone.members[i], alone.spread[i].clamp_min(AUTO_TUNING.min_source_spread)
        at, values = member.at(X), alone.known.inward(alone.sources[i]).y.sort().values
        below = torch.searchsorted(values, at.mean) + torch.searchsorted(values, at.mean, right=True)
        rank = torch.special.ndtri(((0.5 * below + 0.5) / (len(values) + 1)).clamp(*_RANKS))
        m = (at.mean - member.offset) / spread
        bent = [torch.expm1(c * m.clamp(-_FAR, _FAR)) / c for c in (_BEND, -_BEND)]
        shapes.append(torch.stack([m, rank, *bent]))
        left.append(member.cov(at, at) / spread.square())
        correlated.append(member.prior_cov(X, X) / member.prior_var())
    return torch.stack(shapes, dim=1), torch.stack(left), torch.stack(correlated)


def log_evidence(
    target: Dataset, shapes: Float[Tensor, "k s n"], left: Float[Tensor, "s n n"], R: Float[Tensor, "s n n"]
) -> Float[Tensor, "s 3"]:
    """log p(y) if the source is the same, unrelated, and upside down; y in model units, averaged over k shapes."""
    y, one = target.y, torch.eye(target.n, dtype=target.y.dtype)
    errors = torch.zeros_like(y) if target.error_var is None else target.error_var
    noise = y.new_tensor(NOISE)[:, None, None]
    own = (1 - noise) * R[:, None] + noise * one  # (s, ν, n, n)
    r = y.new_tensor((0.0, *SHARES))[:, None, None, None]
    C = r.square() * left[:, None, None] + (1 - r.square()) * own[:, None] + torch.diag(errors + _JITTER)
    L = cholesky(C, of="The covariance of the results under a source")
    half = solve_lower(L, one.expand_as(C))
    C_inverse = half.mT @ half
    B = one.new_ones(target.n, 1)
    if (groups := target.shift_groups) is not None:
        B = (groups.unsqueeze(-1) == groups.unique()).to(y)
    levels = C_inverse @ B
    F = cholesky(B.mT @ levels, of="What the results say of their levels")
    apart = solve_lower(F, levels.mT)
    P = C_inverse - apart.mT @ apart
    half_of_C, half_of_B = (own.diagonal(dim1=-2, dim2=-1).log().sum(-1) for own in (L, F))
    log_det = 2 * (half_of_C + half_of_B)
    found = []
    for sign, rows in ((1.0, slice(1, None)), (0.0, slice(0, 1)), (-1.0, slice(1, None))):
        each = [
            _averaged(y, sign * r[rows, :, 0] * m[:, None, None], P[:, rows], log_det[:, rows], B.shape[-1])
            for m in shapes
        ]
        found.append(torch.logsumexp(torch.stack(each), dim=0) - math.log(len(each)))
    return torch.stack(found, dim=-1)


def _averaged(
    y: Float[Tensor, "n"],
    shape: Float[Tensor, "s r 1 n"],
    P: Float[Tensor, "s r v n n"],
    log_det: Float[Tensor, "s r v"],
    k: int,
) -> Float[Tensor, "s"]:
    """log p(y), averaged over r, ν and s, with one surprise; k levels are unknown."""
    n = len(y)
    prior = torch.log_softmax(-0.5 * _LOG_SIZES.square(), dim=-1)
    e = y * torch.exp(-_LOG_SIZES).unsqueeze(-1) - shape.unsqueeze(-2)  # (s, r, 1, sizes, n)
    Pe = e @ P
    log_p = -0.5 * (e * Pe).sum(-1) - 0.5 * log_det.unsqueeze(-1) - (n - k) * (_LOG_SIZES + 0.5 * math.log(2 * math.pi))
    precision = P.diagonal(dim1=-2, dim2=-1).unsqueeze(-2)
    given_others = 0.5 * (precision.log() - Pe.square() / precision - math.log(2 * math.pi)) - _LOG_SIZES.unsqueeze(-1)
    surprise = torch.logsumexp(math.log(_SURPRISING) - given_others, dim=-1) + math.log(_SURPRISE / n)
    log_p = log_p + torch.logaddexp(surprise, surprise.new_tensor(math.log1p(-_SURPRISE)))
    every = (log_p + prior).flatten(1)
    return torch.logsumexp(every, dim=-1) - math.log(shape.shape[1] * log_det.shape[-1])
