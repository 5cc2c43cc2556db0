"""Beliefs: the distribution f_below ~ (m, Σ) that the tasks below give a task before its first observation.

    class            m(x)                     Σ(x, x')                        used by
    NoBeliefs        0                        0                               the first level, GPBO
    MeanBeliefs      Σ_i k_i(x, X_i) β_i      0: it is forgotten              MHGP
    ExactBeliefs     v(x)ᵀ z                  k(x, x') − v(x)ᵀ v(x')          SHGP and every joint model
    BoostedBeliefs   as MeanBeliefs           k(x, x') − vᵀ v' + uᵀ u'        BHGP, boosted at every level

with v(x) = L⁻¹ k(X, x), z = L⁻¹ y for the Cholesky factor L of all data below, and u(x) = Lᵀγ(x)ᵀ − v(x), where
γ(x) are the weights of y in the mean of MHGP (ERRATA, facts 3 and 4: nothing recurses from level to level).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from headstart.gp.hyperparameters import GPParams
from headstart.gp.kernels import Kernel
from headstart.gp.linalg import append_rows, broadcast_shapes, fold, solve_lower, solve_upper, unfold


def log_normal(L: Float[Tensor, "*b n n"], z: Float[Tensor, "*c n"]) -> Float[Tensor, "*out"]:
    """log N(y; m, L Lᵀ) with z = L⁻¹ (y − m)."""
    log_diagonal = L.diagonal(dim1=-2, dim2=-1).log()
    return -0.5 * (z.square().sum(-1) + 2 * log_diagonal.sum(-1) + z.shape[-1] * math.log(2 * math.pi))


@dataclass(frozen=True, slots=True)
class BeliefsAt:
    """Beliefs at some points: their mean, and the features whose inner products make up the covariance."""

    X: Float[Tensor, "*b m d"]
    mean: Float[Tensor, "*b m"]
    v: Float[Tensor, "*b r m"] | None = None
    u: Float[Tensor, "*b q m"] | None = None
    parts: tuple[BeliefsAt, ...] = ()  # of several sources whose weights are not known yet (models.star.star)

    def unfolded(self, extra: torch.Size) -> BeliefsAt:
        """With the dimensions that ``linalg.fold`` moved into the rows moved back."""
        if not extra:
            return self
        parts = tuple(part.unfolded(extra) for part in self.parts)
        return self._each(unfold(self.X.mT, extra).mT, lambda t: unfold(t, extra), parts)

    def rows(self, which: slice) -> BeliefsAt:
        """The same beliefs at some of the points."""
        return self._each(self.X[..., which, :], lambda t: t[..., which], ())

    def _each(self, X: Tensor, f: Callable[[Tensor], Tensor], parts: tuple[BeliefsAt, ...]) -> BeliefsAt:
        """At X, with f of what has a column per point."""
        v, u = (None if t is None else f(t) for t in (self.v, self.u))
        return BeliefsAt(X, f(self.mean.unsqueeze(-2)).squeeze(-2), v, u, parts)

    def joined(self, other: BeliefsAt) -> BeliefsAt:
        """These points and then the others."""
        return BeliefsAt(
            X=_cat(self.X, other.X, -2),
            mean=_cat(self.mean.unsqueeze(-2), other.mean.unsqueeze(-2), -1).squeeze(-2),
            v=None if self.v is None or other.v is None else _cat(self.v, other.v, -1),
            u=None if self.u is None or other.u is None else _cat(self.u, other.u, -1),
        )


def _cat(a: Tensor, b: Tensor, dim: int) -> Tensor:
    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return torch.cat([a.expand(*batch, *a.shape[-2:]), b.expand(*batch, *b.shape[-2:])], dim=dim)


class Beliefs(ABC):
    """m and Σ of the task below; Σ = 0 unless ``prior_cov`` and ``prior_var`` say otherwise."""

    batch_shape: torch.Size

    @property
    def sources(self) -> tuple[ExactBeliefs, ...]:
        """The sources of which these beliefs are a weighted sum, in order; none where they are no such sum."""
        return ()

    @abstractmethod
    def _at(self, X: Float[Tensor, "*b m d"]) -> BeliefsAt: ...

    def at(self, X: Float[Tensor, "*b m d"]) -> BeliefsAt:
        """Beliefs at X, whose leading dimensions broadcast with ``batch_shape``."""
        rows, extra = fold(X, self.batch_shape)
        return self._at(rows).unfolded(extra)

    def weigh(self, at: BeliefsAt) -> BeliefsAt:
        """These beliefs at points that were located before the target was known."""
        return at

    def prior_cov(self, A: Float[Tensor, "*b n d"], B: Float[Tensor, "*c m d"]) -> Float[Tensor, "*out n m"]:
        """k(A, B): the covariance before any data."""
        return A.new_zeros(*broadcast_shapes(A.shape[:-2], B.shape[:-2]), A.shape[-2], B.shape[-2])

    def prior_var(self) -> Float[Tensor, "*b 1"]:
        """k(x, x), which is the same everywhere."""
        return torch.zeros(*self.batch_shape, 1, dtype=torch.float64)

    def cov(self, a: BeliefsAt, b: BeliefsAt) -> Float[Tensor, "*out n m"]:
        """Σ between the points of a and those of b."""
        Sigma = self.prior_cov(a.X, b.X)
        if a.v is not None and b.v is not None:
            Sigma = Sigma - a.v.mT @ b.v
        if a.u is not None and b.u is not None:
            Sigma = Sigma + a.u.mT @ b.u
        return Sigma

    def var(self, a: BeliefsAt) -> Float[Tensor, "*b m"]:
        """The diagonal of Σ at the points of a."""
        var = self.prior_var().to(a.mean.device).expand(a.mean.shape)
        if a.v is not None:
            var = var - a.v.square().sum(-2)
        if a.u is not None:
            var = var + a.u.square().sum(-2)
        return var


@dataclass(frozen=True, slots=True)
class NoBeliefs(Beliefs):
    """Nothing below: m = 0, Σ = 0."""

    batch_shape: torch.Size

    def _at(self, X: Float[Tensor, "*b m d"]) -> BeliefsAt:
        return BeliefsAt(X, 0.0 * X.sum(-1))


@dataclass(frozen=True, slots=True)
class MeanBeliefs(Beliefs):
    """The mean of a stack of levels: offset + Σ_i k_i(x, X_i) β_i with β_i = (k_i(X_i, X_i) + σ_i² I)⁻¹ r_i.

    r_i = y_i − (the mean below at X_i) is what level i had to explain. The covariance below is forgotten.
    """

    kernel: Kernel
    X: tuple[Float[Tensor, "*b _ d"], ...]  # levels differ in size
    params: tuple[GPParams, ...]
    beta: tuple[Float[Tensor, "*b _"], ...]

    @property
    def batch_shape(self) -> torch.Size:  # type: ignore[override]
        """The independent problems."""
        return self.X[0].shape[:-2]

    def own_rows(self, X: Float[Tensor, "*b m d"]) -> list[Float[Tensor, "*b _ m"]]:
        """k_i(X_i, X) for every level i."""
        return [
            p.outputscale[..., None, None] * self.kernel(X_i, X, p.lengthscale)
            for X_i, p in zip(self.X, self.params, strict=True)
        ]

    def mean_from(self, own: list[Float[Tensor, "*b _ m"]]) -> Float[Tensor, "*b m"]:
        """The mean from the k_i(X_i, X)."""
        offset = torch.stack([p.offset for p in self.params]).sum(0).unsqueeze(-1)
        terms = (beta.unsqueeze(-2) @ k for beta, k in zip(self.beta, own, strict=True))
        return offset + sum(terms).squeeze(-2)  # type: ignore[union-attr]

    def _at(self, X: Float[Tensor, "*b m d"]) -> BeliefsAt:
        return BeliefsAt(X, self.mean_from(self.own_rows(X)))

    def extended(self, X: Float[Tensor, "*b n d"], params: GPParams, beta: Float[Tensor, "*b n"]) -> MeanBeliefs:
        """With one more level on top."""
        return replace(self, X=(*self.X, X), params=(*self.params, params), beta=(*self.beta, beta))


@dataclass(frozen=True, slots=True)
class CrossTerm:
    """weight · κ(x, x'; lengthscale) between a target point and the source rows ``start`` … ``stop``."""

    lengthscale: Float[Tensor, "*b d"]
    weight: Float[Tensor, "*b k"]  # one per row, or a single one for all
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class ExactBeliefs(Beliefs):
    """Bayes' rule on a joint Gaussian process of all tasks: Σ_ν W_ν ∘ k_ν (the paper's eq. 1).

    ``X`` are the rows of all sources, ``L`` the Cholesky factor of their covariance with noise, ``z = L⁻¹ (y − mean)``.
    ``terms`` are the W_ν[t, i] k_ν(·, X_i) that link the target to them, ``prior`` the (lengthscale, W_ν[t, t]).
    """

    kernel: Kernel
    X: Float[Tensor, "*b N d"]
    terms: tuple[CrossTerm, ...]
    prior: tuple[tuple[Float[Tensor, "*b d"], Float[Tensor, "*b"]], ...]
    L: Float[Tensor, "*b N N"]
    z: Float[Tensor, "*b N"]
    offset: Float[Tensor, "*b"]

    @property
    def batch_shape(self) -> torch.Size:  # type: ignore[override]
        """The independent problems."""
        return self.X.shape[:-2]

    def cross_cov(self, X: Float[Tensor, "*b m d"]) -> Float[Tensor, "*b N m"]:
        """The covariance of the source rows with the target at X."""
        N, m = self.X.shape[-2], X.shape[-2]
        K = X.new_zeros(*self.batch_shape, N, m)
        for term in self.terms:
            k = self.kernel(self.X[..., term.start : term.stop, :], X, term.lengthscale)
            K[..., term.start : term.stop, :] += k * term.weight.unsqueeze(-1)
        return K

    def _at(self, X: Float[Tensor, "*b m d"]) -> BeliefsAt:
        v = solve_lower(self.L, self.cross_cov(X))
        return BeliefsAt(X, self.offset.unsqueeze(-1) + (self.z.unsqueeze(-2) @ v).squeeze(-2), v)

    def prior_cov(self, A: Float[Tensor, "*b n d"], B: Float[Tensor, "*c m d"]) -> Float[Tensor, "*out n m"]:
        """Σ_ν W_ν[t, t] k_ν(A, B)."""
        parts = (weight[..., None, None] * self.kernel(A, B, lengthscale) for lengthscale, weight in self.prior)
        return sum(parts, start=A.new_zeros(()))

    def prior_var(self) -> Float[Tensor, "*b 1"]:
        """The variance of f before any data: Σ_ν W_ν[t, t]."""
        return sum((weight for _, weight in self.prior), start=self.X.new_zeros(())).unsqueeze(-1)

    def extended(
        self, params: GPParams, at: BeliefsAt, corner: Float[Tensor, "*b n n"], z: Float[Tensor, "*b n"]
    ) -> ExactBeliefs:
        """A hierarchical stack with one more level: k(x, x') gains k_new, which only the new rows see.

        ``at`` are the beliefs at the new rows, ``corner`` the Cholesky factor of their covariance given all below.
        """
        assert at.v is not None
        N, n = self.X.shape[-2], at.X.shape[-2]
        new = CrossTerm(params.lengthscale, params.outputscale.unsqueeze(-1), N, N + n)
        return ExactBeliefs(
            kernel=self.kernel,
            X=torch.cat([self.X, at.X], dim=-2),
            terms=(*(replace(term, stop=N + n) for term in self.terms), new),
            prior=(*self.prior, (params.lengthscale, params.outputscale)),
            L=append_rows(self.L, at.v.mT, corner),
            z=torch.cat([self.z, z], dim=-1),
            offset=self.offset + params.offset,
        )


@dataclass(frozen=True, slots=True)
class BoostedBeliefs(Beliefs):
    """Recursive boosting (BHGP): the mean of MHGP with the covariance of its error under the exact model.

    With D the block diagonal of k_i(X_i, X_i) + σ_i² I and F the blocks k_i(X_j, X_i), i < j, below it,
    γ(x) = k_own(x) (D + F)⁻¹. Writing D = E Eᵀ and D + F = T Eᵀ with T lower triangular,

        Lᵀ γ(x)ᵀ = R E⁻¹ k_own(x)ᵀ    with R = Lᵀ T⁻ᵀ computed once,

    so a query costs two triangular solves and one product, O(N²). The first level alone has T = L: u = 0.
    """

    mean: MeanBeliefs
    exact: ExactBeliefs
    E: tuple[Float[Tensor, "*b _ _"], ...]  # Cholesky factors of the blocks of D
    T: Float[Tensor, "*b N N"]
    R: Float[Tensor, "*b N N"]

    @property
    def batch_shape(self) -> torch.Size:  # type: ignore[override]
        """The independent problems."""
        return self.exact.batch_shape

    def _at(self, X: Float[Tensor, "*b m d"]) -> BeliefsAt:
        own = self.mean.own_rows(X)
        v = solve_lower(self.exact.L, self.exact.cross_cov(X))
        whitened = torch.cat([solve_lower(E, k) for E, k in zip(self.E, own, strict=True)], dim=-2)
        return BeliefsAt(X, self.mean.mean_from(own), v, self.R @ whitened - v)

    def prior_cov(self, A: Float[Tensor, "*b n d"], B: Float[Tensor, "*c m d"]) -> Float[Tensor, "*out n m"]:
        """The prior covariance of the exact stack."""
        return self.exact.prior_cov(A, B)

    def prior_var(self) -> Float[Tensor, "*b 1"]:
        """The prior variance of the exact stack."""
        return self.exact.prior_var()

    def extended(
        self,
        params: GPParams,
        at: BeliefsAt,
        own: Float[Tensor, "*b n n"],
        beta: Float[Tensor, "*b n"],
        corner: Float[Tensor, "*b n n"],
    ) -> BoostedBeliefs:
        """With one more level: ``own`` is the factor of k_new(X, X) + σ² I, ``corner`` the exact model's factor."""
        below = [solve_lower(E, k).mT for E, k in zip(self.E, self.mean.own_rows(at.X), strict=True)]  # F E⁻ᵀ
        T = append_rows(self.T, torch.cat(below, dim=-1), own)
        exact = self.exact.extended(params, at, corner, torch.zeros_like(beta))  # its mean is not used: no z
        mean = self.mean.extended(at.X, params, beta)
        return BoostedBeliefs(mean, exact, (*self.E, own), T, solve_lower(T, exact.L).mT)

    @classmethod
    def first(cls, mean: MeanBeliefs, exact: ExactBeliefs) -> BoostedBeliefs:
        """A single level: an ordinary posterior."""
        identity = torch.eye(exact.L.shape[-1], dtype=exact.L.dtype, device=exact.L.device).expand_as(exact.L)
        return cls(mean, exact, (exact.L,), exact.L, identity)


def sources_at(members: Sequence[ExactBeliefs], X: Float[Tensor, "*b m d"]) -> BeliefsAt:
    """Every source's own posterior at X, for any weighted sum of these sources to ``weigh``."""
    return BeliefsAt(X, 0.0 * X.sum(-1), parts=tuple(member.at(X) for member in members))


def weights_of(L: Float[Tensor, "*b n n"], z: Float[Tensor, "*b n"]) -> Float[Tensor, "*b n"]:
    """β = (L Lᵀ)⁻¹ r from z = L⁻¹ r."""
    return solve_upper(L, z.unsqueeze(-1)).squeeze(-1)
