"""The star family: independent sources, each conditioned on its own data alone, and the target on top of them.

    f_t(x) = offset + Σ_ν w_ν (f_ν(x) − offset_ν) + Σ_ν g_ν(x) + δ(x)

The prior that follows, and the mean, var and own of every model, are in docs/models.md. A product of two normal
variables is not normal: STAR keeps its first two moments. A weighting gives the target's evidence its fixed means and
covariances (``terms``), whose coefficients depend on the fitted parameters ω, and the weights at fitted ω.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import cycle

import torch
from jaxtyping import Float
from torch import Tensor

from headstart.data.dataset import Dataset
from headstart.gp.evidence import Coefficients, GaussianEvidence, WeightedTerms
from headstart.gp.hyperparameters import GPParams, Inputs, Layout, Slot, ThetaPrior
from headstart.gp.kernels import Kernel
from headstart.gp.linalg import broadcast_shapes
from headstart.models.chain.beliefs import Beliefs, BeliefsAt, ExactBeliefs, sources_at
from headstart.tuning import AUTO_TUNING

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
    """The prior of the target: the weighted sum of the sources' posteriors."""

    members: tuple[ExactBeliefs, ...]
    weights: StarWeights
    index: tuple[int, ...] | None = None  # of the selected sources among all, where these are some
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


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """What a weighting depends on: the sources' spreads in model units, and how far each source is trusted."""

    spread: Float[Tensor, "*b s"]
    trust: Float[Tensor, "*b s"]  # from 0 to 1
    own: Float[Tensor, "*b 1"] | None = None  # the target's own share, where it was learnt (models.auto.likeness)


def star_evidence(target: Dataset, kernel: Kernel, terms: WeightedTerms) -> GaussianEvidence:
    """The evidence of the target on top of the sources, in model units: O(s N_t² + N_t³), however large they are."""
    b = target.batch_shape
    return GaussianEvidence(
        _flat(target.X, b),
        _flat(target.y, b),
        kernel=kernel,
        residual=True,
        free_offset=True,
        inputs=Inputs.of(target.d, target.categories),
        terms=terms,
        error_var=None if target.error_var is None else _flat(target.error_var, b),
        shifts=None if (D := target.shift_pattern) is None else _flat(D, b),
    )


def target_prior(layout: Layout, target: Dataset, shifts: ThetaPrior, expected: ThetaPrior | None = None) -> ThetaPrior:
    """The prior of a target's θ, the ``expected`` one or the general one, with that of its shifts where it has any."""
    own = Layout(tuple(slot for slot in layout.slots if slot.name != "batch_var"))
    prior = own.prior(target.batch_shape.numel()) if expected is None else expected
    return prior.then(shifts) if target.has_shifts else prior


def expecting(shifts: ThetaPrior, own: GPParams, target: Dataset) -> GPParams:
    """The same hyperparameters; of a target with one batch so far with the shifts that it is expected to have."""
    if own.batch_var is None or target.has_shifts:
        return own
    return replace(own, batch_var=shifts.centre.exp().reshape(own.batch_var.shape))


def _flat(tensor: Tensor, batch: torch.Size) -> Tensor:
    return tensor.reshape(batch.numel(), *tensor.shape[len(batch) :])


@dataclass(frozen=True, slots=True)
class Integrated:
    """w_ν · (spread of source ν) ~ N(ρ mean/s, ρ² spread²/s), independent of each other.

    Sources count alike whatever their own size, and together the s of them are about as large as one. With a mean of
    0.3 spreads a source may well turn out to count with the wrong sign (probability 0.4 for a single one), so that
    where it shows its *highest* values is worth a look, too: a negated source is found out in a few evaluations, and is
    then as useful as any. ``own`` is the share of the sources' kernels that the target has to itself: it may differ
    from the sources as smoothly, or as roughly, as they vary, whatever the residual's own prior says. ``amplitude`` is
    the spread of log ρ's prior.

    With a mean of 1 and a ``balance`` near 1 (StarWeights) the target is one more of the sources' kind: its prior mean
    is the sources' average shape, its covariance that of the sources around it, (1/s) Σ (m_ν − m̄)(m_ν − m̄)ᵀ, and how
    much they count together is known up to ρ and a little.
    """

    mean: float = AUTO_TUNING.star_weight_mean
    spread: float = AUTO_TUNING.star_weight_sd
    own: float = AUTO_TUNING.own_share
    amplitude: float = AUTO_TUNING.star_amplitude_log_sd
    balance: float = 0.0

    @property
    def coefficients(self) -> Coefficients:
        """Means scale with ρ, covariances with ρ²."""
        return Coefficients(Slot("amplitude", 1, 0.02, 50.0, 1.0, self.amplitude))

    def unit(self, facts: SourceFacts) -> StarWeights:
        """The weights for ρ = 1."""
        n_open = facts.trust.sum(-1, keepdim=True).clamp_min(1.0)
        size = facts.spread.clamp_min(AUTO_TUNING.min_source_spread)
        mean = self.mean * facts.trust / n_open / size
        var = facts.trust * self.spread**2 / n_open / size.square()
        own = self.own if facts.own is None else facts.own
        balance = torch.full_like(n_open, self.balance)
        return StarWeights(mean, var, facts.trust * own / n_open / size.square(), balance)

    def terms(
        self, members: tuple[ExactBeliefs, ...], facts: SourceFacts, at: BeliefsAt, batch: torch.Size
    ) -> WeightedTerms:
        """One mean and one covariance, both scaled by ρ; ``at`` are the sources at the target's inputs."""
        below = StarBeliefs(members, self.unit(facts))
        at = below.weigh(at)
        mean, cov = _flat(at.mean, batch).unsqueeze(1), _flat(below.cov(at, at), batch).unsqueeze(1)
        return WeightedTerms(mean, cov, self.coefficients)

    def weights(self, rho: Float[Tensor, "*b 1"], facts: SourceFacts) -> StarWeights:
        """The unit weights, scaled by ρ."""
        unit = self.unit(facts)
        return StarWeights(rho * unit.mean, rho.square() * unit.var, rho.square() * unit.own, unit.balance)


@dataclass(frozen=True, slots=True)
class FittedWeights:
    """Weights w_ν ≥ 0 that are fitted, with a prior of median 1/s: without target data the sources are averaged.

    ScaML-GP (Tighineanu et al., AISTATS 2024) has the weights w; ``modular``, WSGP whose sources ignore the target,
    b = w/(1 + w) between 0 and 1, and the target b (1 − b) k_ν of its own.
    """

    modular: bool = False

    def terms(
        self, members: tuple[ExactBeliefs, ...], facts: SourceFacts, at: BeliefsAt, batch: torch.Size
    ) -> WeightedTerms:
        """A mean m_ν − offset_ν and a covariance Σ_ν per source; of a modular star the k_ν, too."""
        shapes = [part.mean - member.offset.unsqueeze(-1) for part, member in zip(at.parts, members, strict=True)]
        covs = [member.cov(part, part) for part, member in zip(at.parts, members, strict=True)]
        covs += [member.prior_cov(at.X, at.X) for member in members if self.modular]
        trust = facts.trust.unbind(-1)
        return WeightedTerms(
            torch.stack([_flat(t[..., None] * m, batch) for t, m in zip(trust, shapes, strict=True)], dim=1),
            torch.stack(
                [_flat(t[..., None, None] * C, batch) for t, C in zip(cycle(trust), covs, strict=False)], dim=1
            ),
            Coefficients(Slot("weight", len(members), 1e-3, 20.0, 1 / len(members), 1.0), self.modular),
        )

    def weights(self, omega: Float[Tensor, "*b k"], facts: SourceFacts) -> StarWeights:
        """The fitted weights, known exactly; a source that is not trusted has 0."""
        b = omega / (1 + omega) if self.modular else omega
        nothing = torch.zeros_like(b)
        own = facts.trust * b * (1 - b) if self.modular else nothing
        return StarWeights(facts.trust * b, nothing, own, nothing[..., :1])


Weighting = Integrated | FittedWeights
