"""The star family: independent sources, each conditioned on its own data alone, and the target on top of them.

    f_t(x) = offset + Σ_ν w_ν (f_ν(x) − offset_ν) + Σ_ν g_ν(x) + δ(x)

with f_ν ~ (m_ν, Σ_ν) the posterior of source ν, w_ν ~ N(mean, var) its weight, g_ν ~ GP(0, own · k_ν), δ ~ GP(0, k_t):

    prior mean    offset + Σ mean_ν (m_ν − offset_ν)
    prior cov     Σ (mean_ν² + var_ν) Σ_ν + var_ν (m_ν − offset_ν)(m_ν − offset_ν)ᵀ + own_ν k_ν,  and k_t
                  (weights that are independent; StarWeights has the general case)

    model    weighting     mean     var      own          the weights are
    STAR     Integrated    0.3 ρ/s  ρ²/s     0.2 ρ²/s     integrated out: free in sign, no hyperparameter but ρ, the
                                                          size of the target (in units of each source's spread)
    AUTO's kin             ρ/s      ρ²/s     learnt       the same, around the sources' average (balance 0.9)
    SCAML    Fitted        w        0        0            fitted (Tighineanu et al., AISTATS 2024)
    MWSGP    Fitted        b        0        b (1 − b)    fitted, b = w/(1 + w): WSGP whose sources ignore the target

A product of two normal variables is not normal: STAR keeps its first two moments. The order of the sources does not
matter, and they are learnt in lockstep. A likelihood evaluation costs O(s N_t² + N_t³).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from headstart.gp.linalg import broadcast_shapes
from headstart.models.chain.beliefs import Beliefs, BeliefsAt, ExactBeliefs, sources_at

_ONE_BY_ONE = 16  # with more sources the kernels are evaluated together
_ELEMENTS = 1 << 20  # of kernels that are in memory at once


@dataclass(frozen=True, slots=True)
class StarWeights:
    """Normal weights of the f_ν, and the share of each k_ν that the target has of its own.

    With D = diag(√var), e a unit vector with equal entries for all sources that count (var > 0), and c = ``balance``,

        cov(w) = D (I − c e eᵀ) D = R Rᵀ        R = D (I − (1 − √(1 − c)) e eᵀ)

    c = 0: weights are independent. c = 1: their deviations from the mean sum to 0, so that only differences between the
    sources vary, and not how much they count together.
    """

    mean: Float[Tensor, "*b s"]
    var: Float[Tensor, "*b s"]
    own: Float[Tensor, "*b s"]
    balance: Float[Tensor, "*b 1"]

    @property
    def marginal_var(self) -> Float[Tensor, "*b s"]:
        """The diagonal of cov(w)."""
        return self.var * (1 - self.balance * self._unit().square())

    def _unit(self) -> Float[Tensor, "*b s"]:
        counts = (self.var > 0).to(self.var)
        return counts / counts.sum(-1, keepdim=True).clamp_min(1.0).sqrt()

    def balanced(self, parts: Float[Tensor, "*b s m"]) -> Float[Tensor, "*b s m"]:
        """(I − (1 − √(1 − c)) e eᵀ) · parts."""
        e = self._unit().unsqueeze(-1)
        taken_off = (1 - (1 - self.balance).sqrt()).unsqueeze(-1)
        return parts - taken_off * e * (e * parts).sum(-2, keepdim=True)


@dataclass(frozen=True, slots=True)
class StarBeliefs(Beliefs):
    """The prior of the target: the weighted sum of the sources' posteriors.

    Where only some of the sources are selected, ``index`` are their positions among all ``n_sources``.
    """

    members: tuple[ExactBeliefs, ...]
    weights: StarWeights
    index: tuple[int, ...] | None = None
    n_sources: int = 0

    @property
    def batch_shape(self) -> torch.Size:  # type: ignore[override]
        """The independent problems."""
        return self.members[0].batch_shape

    @property
    def sources(self) -> tuple[ExactBeliefs, ...]:
        """The members: any star of the same ones can ``weigh`` what they say at a point."""
        return self.members

    def of_all(self, values: Float[Tensor, "*b k"]) -> Float[Tensor, "*b s"]:
        """A value for every source, from those of the selected sources: 0 for the others."""
        if self.index is None:
            return values
        found = values.new_zeros(*values.shape[:-1], self.n_sources)
        found[..., self.index] = values
        return found

    def _at(self, X: Float[Tensor, "*b m d"]) -> BeliefsAt:
        return self.weigh(sources_at(self.members, X))

    def weigh(self, at: BeliefsAt) -> BeliefsAt:
        """The weighted sum at points where the sources' posteriors are known; a sum that was weighed already stays."""
        if not at.parts:
            return at
        mean, var, marginal = self.weights.mean, self.weights.var, self.weights.marginal_var
        total, v, u = torch.zeros_like(at.mean), [], []
        for i, (member, part) in enumerate(zip(self.members, at.parts, strict=True)):
            assert part.v is not None
            shape = part.mean - member.offset.unsqueeze(-1)
            total = total + mean[..., i, None] * shape
            v.append((mean[..., i].square() + marginal[..., i]).sqrt()[..., None, None] * part.v)
            u.append(var[..., i, None].sqrt() * shape)
        balanced = self.weights.balanced(torch.stack(u, dim=-2))
        return replace(at, mean=total, v=torch.cat(v, dim=-2), u=balanced, parts=())

    def _sizes(self) -> Float[Tensor, "*b s"]:
        return self.weights.mean.square() + self.weights.marginal_var + self.weights.own

    def prior_cov(self, A: Float[Tensor, "*b n d"], B: Float[Tensor, "*c m d"]) -> Float[Tensor, "*out n m"]:
        """Σ (mean_ν² + var(w_ν) + own_ν) k_ν(A, B)."""
        if len(self.members) > _ONE_BY_ONE and all(len(member.prior) == 1 for member in self.members):
            return self._prior_cov_together(A, B)
        parts = (
            size[..., None, None] * member.prior_cov(A, B)
            for size, member in zip(self._sizes().unbind(-1), self.members, strict=True)
        )
        return sum(parts, start=A.new_zeros(()))

    def _prior_cov_together(self, A: Float[Tensor, "*b n d"], B: Float[Tensor, "*c m d"]) -> Float[Tensor, "*out n m"]:
        """The same for many sources of one kernel each: as many kernels at once as ``_ELEMENTS`` allows."""
        lengthscale = torch.stack([member.prior[0][0] for member in self.members])
        size = self._sizes().movedim(-1, 0) * torch.stack([member.prior[0][1] for member in self.members])
        one = broadcast_shapes(A.shape[:-2], B.shape[:-2], self.batch_shape).numel() * A.shape[-2] * B.shape[-2]
        together = max(1, _ELEMENTS // max(1, one))
        kernel = self.members[0].kernel
        parts = zip(lengthscale.split(together), size.split(together), strict=True)
        found = [(w[..., None, None] * kernel(A, B, scale)).sum(0) for scale, w in parts]
        return sum(found, start=A.new_zeros(()))

    def cov_from(self, kernels: Float[Tensor, "s *b n n"], at: BeliefsAt) -> Float[Tensor, "*b n n"]:
        """``cov(at, at)`` from the sources' k_ν, which do not depend on the weights."""
        assert at.v is not None
        assert at.u is not None
        sizes = self._sizes().movedim(-1, 0)[..., None, None]
        prior: Tensor = (sizes * kernels).sum(0)
        return prior - at.v.mT @ at.v + at.u.mT @ at.u

    def prior_var(self) -> Float[Tensor, "*b 1"]:
        """Σ (mean_ν² + var(w_ν) + own_ν) k_ν(x, x)."""
        sizes = self._sizes().unbind(-1)
        return sum(
            (size.unsqueeze(-1) * member.prior_var() for size, member in zip(sizes, self.members, strict=True)),
            start=self._sizes().new_zeros(()),
        )
