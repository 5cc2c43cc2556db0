"""Weightings of a star's sources (models.star.weights): which weights are integrated out, and which are fitted.

A weighting gives the target's evidence its fixed means and covariances (``terms``), whose coefficients depend on the
fitted parameters ω, and the weights at fitted ω (``weights``).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import cycle

import torch
from jaxtyping import Float
from torch import Tensor

from headstart.data.dataset import Dataset
from headstart.gp.evidence import Coefficients, GaussianEvidence, WeightedTerms
from headstart.gp.hyperparameters import Inputs, Slot
from headstart.gp.kernels import Kernel
from headstart.models.chain.beliefs import BeliefsAt, ExactBeliefs
from headstart.models.star.weights import StarBeliefs, StarWeights
from headstart.tuning import AUTO_TUNING


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """What a weighting depends on: the sources' spreads in model units, and how far each source is trusted.

    ``own`` is the share that the target has of its own, where it was learnt from the sources (models.auto.likeness).
    """

    spread: Float[Tensor, "*b s"]
    trust: Float[Tensor, "*b s"]  # from 0 to 1
    own: Float[Tensor, "*b 1"] | None = None


def star_evidence(target: Dataset, kernel: Kernel, terms: WeightedTerms) -> GaussianEvidence:
    """The evidence of the target on top of the sources: O(s N_t² + N_t³) per evaluation, however large they are.

    ``target`` and the terms are in model units; batch dimensions of the target are flattened.
    """
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
    )


def _flat(tensor: Tensor, batch: torch.Size) -> Tensor:
    return tensor.reshape(batch.numel(), *tensor.shape[len(batch) :])


@dataclass(frozen=True, slots=True)
class ScaleCoefficients(Coefficients):
    """Coefficients a = ω of the means and c = ω² of the covariances; without a ``slot`` ω is 1.

    ``modular``: a = b = ω/(1 + ω), and c = b² for the Σ_ν, then b (1 − b) for the k_ν.
    """

    slot: Slot | None
    modular: bool = False

    def slots(self) -> tuple[Slot, ...]:
        """ω, if it is free."""
        return () if self.slot is None else (self.slot,)

    def values(self, omega: Tensor) -> tuple[Tensor, Tensor]:
        """The coefficients a and c."""
        if self.modular:
            b = omega / (1 + omega)
            return b, torch.cat([b.square(), b * (1 - b)], dim=-1)
        omega = omega if omega.shape[-1] else omega.new_ones(omega.shape[0], 1)
        return omega, omega.square()

    def gradient(self, omega: Tensor, by_a: Tensor, by_c: Tensor) -> Tensor:
        """The derivative by ω from those by a and c; db/dω = 1/(1 + ω)²."""
        if not self.modular:
            return by_a + 2 * omega * by_c
        b = omega / (1 + omega)
        by_Sigma, by_k = by_c.chunk(2, dim=-1)
        return (by_a + 2 * b * by_Sigma + (1 - 2 * b) * by_k) / (1 + omega).square()


@dataclass(frozen=True, slots=True)
class Integrated:
    """w_ν · (spread of source ν) ~ N(ρ mean/s, ρ² spread²/s), independent of each other.

    Sources count alike whatever their own size, and together the s of them are about as large as one. With a mean of
    0.3 spreads a source may well turn out to count with the wrong sign (probability 0.4 for a single one), so that
    where it shows its *highest* values is worth a look, too: a negated source is found out in a few evaluations, and is
    then as useful as any. ``own`` is the share of the sources' kernels that the target has to itself: it may differ
    from the sources as smoothly, or as roughly, as they vary, whatever the residual's own prior says. ``amplitude`` is
    the spread of log ρ's prior; 0 fixes ρ = 1.

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
    def coefficients(self) -> ScaleCoefficients:
        """Means scale with ρ, covariances with ρ²."""
        free = self.amplitude > 0
        return ScaleCoefficients(Slot("amplitude", 1, 0.02, 50.0, 1.0, self.amplitude) if free else None)

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

    def weights(self, omega: Float[Tensor, "*b k"], facts: SourceFacts) -> StarWeights:
        """The unit weights, scaled by ρ."""
        unit = self.unit(facts)
        rho = omega if omega.shape[-1] else omega.new_ones(*omega.shape[:-1], 1)
        return StarWeights(rho * unit.mean, rho.square() * unit.var, rho.square() * unit.own, unit.balance)


@dataclass(frozen=True, slots=True)
class FittedWeights:
    """Weights w_ν ≥ 0 that are fitted, with a prior of median 1/s: without target data the sources are averaged.

    ScaML-GP has the weights w; ``modular``, WSGP whose sources ignore the target, b = w/(1 + w) between 0 and 1, and
    the target b (1 − b) k_ν of its own.
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
            ScaleCoefficients(Slot("weight", len(members), 1e-3, 20.0, 1 / len(members), 1.0), self.modular),
        )

    def weights(self, omega: Float[Tensor, "*b k"], facts: SourceFacts) -> StarWeights:
        """The fitted weights, known exactly; a source that is not trusted has 0."""
        b = omega / (1 + omega) if self.modular else omega
        nothing = torch.zeros_like(b)
        own = facts.trust * b * (1 - b) if self.modular else nothing
        return StarWeights(facts.trust * b, nothing, own, nothing[..., :1])


Weighting = Integrated | FittedWeights
