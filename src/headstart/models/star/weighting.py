"""Weightings of a star's sources: which weights are integrated out, and which are fitted (models.star.weights)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

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
    open: Float[Tensor, "*b s"]  # trust, from 0 to 1
    own: Float[Tensor, "*b 1"] | None = None


class Weighting(ABC):
    """The prior of the weights (mean, var, own), and which of their parameters ω are fitted."""

    @abstractmethod
    def evidence(
        self,
        members: tuple[ExactBeliefs, ...],
        facts: SourceFacts,
        target: Dataset,
        kernel: Kernel,
        at: BeliefsAt | None = None,
    ) -> GaussianEvidence:
        """The evidence of the target (in model units), batch dimensions flattened.

        ``at`` spares evaluating the sources at its inputs again.
        """

    @abstractmethod
    def weights(self, omega: Float[Tensor, "*b k"], facts: SourceFacts) -> StarWeights:
        """The weights at fitted parameters ω."""


def _flat(tensor: Tensor, batch: torch.Size) -> Tensor:
    return tensor.reshape(batch.numel(), *tensor.shape[len(batch) :])


def _evidence(target: Dataset, kernel: Kernel, terms: WeightedTerms) -> GaussianEvidence:
    """The evidence of the target on top of the sources: O(s N_t² + N_t³) per evaluation, however large they are."""
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


def _shapes_and_covs(
    members: tuple[ExactBeliefs, ...], X: Tensor, at: BeliefsAt | None
) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    """m_ν − offset_ν, Σ_ν and k_ν at the target's inputs."""
    parts = [member.at(X) for member in members] if at is None else at.parts
    shapes = [part.mean - member.offset.unsqueeze(-1) for part, member in zip(parts, members, strict=True)]
    covs = [member.cov(part, part) for part, member in zip(parts, members, strict=True)]
    return shapes, covs, [member.prior_cov(X, X) for member in members]


@dataclass(frozen=True, slots=True)
class Amplitude(Coefficients):
    """One ω = ρ for all: the prior of STAR scaled by ρ."""

    spread: float

    def slots(self) -> tuple[Slot, ...]:
        """ρ, if it is free."""
        return (Slot("amplitude", 1, 0.02, 50.0, 1.0, self.spread),) if self.spread > 0 else ()

    def values(self, omega: Tensor) -> tuple[Tensor, Tensor]:
        """Means scale with the amplitude ρ, covariances with ρ²."""
        rho = omega if omega.shape[-1] else omega.new_ones(omega.shape[0], 1)
        return rho, rho.square()

    def gradient(self, omega: Tensor, by_a: Tensor, by_c: Tensor) -> Tensor:
        """The derivative by ρ, from those by ρ and by ρ² themselves."""
        return by_a + 2 * omega * by_c


@dataclass(frozen=True, slots=True)
class Integrated(Weighting):
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

    def unit(self, facts: SourceFacts) -> StarWeights:
        """The weights for ρ = 1."""
        n_open = facts.open.sum(-1, keepdim=True).clamp_min(1.0)
        size = facts.spread.clamp_min(AUTO_TUNING.min_source_spread)
        mean = self.mean * facts.open / n_open / size
        var = facts.open * self.spread**2 / n_open / size.square()
        own = self.own if facts.own is None else facts.own
        balance = torch.full_like(n_open, self.balance)
        return StarWeights(mean, var, facts.open * own / n_open / size.square(), balance)

    def evidence(
        self,
        members: tuple[ExactBeliefs, ...],
        facts: SourceFacts,
        target: Dataset,
        kernel: Kernel,
        at: BeliefsAt | None = None,
    ) -> GaussianEvidence:
        """One mean and one covariance, both scaled by ρ."""
        below, b = StarBeliefs(members, self.unit(facts)), target.batch_shape
        at = below.at(target.X) if at is None else below.weigh(at)
        mean, cov = _flat(at.mean, b).unsqueeze(1), _flat(below.cov(at, at), b).unsqueeze(1)
        return _evidence(target, kernel, WeightedTerms(mean, cov, Amplitude(self.amplitude)))

    def weights(self, omega: Float[Tensor, "*b k"], facts: SourceFacts) -> StarWeights:
        """The unit weights, scaled by ρ."""
        unit = self.unit(facts)
        rho = omega if omega.shape[-1] else omega.new_ones(*omega.shape[:-1], 1)
        return StarWeights(rho * unit.mean, rho.square() * unit.var, rho.square() * unit.own, unit.balance)


@dataclass(frozen=True, slots=True)
class _PerSource(Coefficients):
    """ω_ν = w_ν ≥ 0 for every source, of median ``centre``."""

    n: int
    centre: float

    def slots(self) -> tuple[Slot, ...]:
        return (Slot("weight", self.n, 1e-3, 20.0, self.centre, 1.0),)

    def values(self, omega: Tensor) -> tuple[Tensor, Tensor]:
        return omega, omega.square()

    def gradient(self, omega: Tensor, by_a: Tensor, by_c: Tensor) -> Tensor:
        return by_a + 2 * omega * by_c


class _Share(_PerSource):
    """b_ν = ω_ν/(1 + ω_ν) for the means, b² for Σ_ν and b (1 − b) for k_ν."""

    def values(self, omega: Tensor) -> tuple[Tensor, Tensor]:
        b = omega / (1 + omega)
        return b, torch.cat([b.square(), b * (1 - b)], dim=-1)

    def gradient(self, omega: Tensor, by_a: Tensor, by_c: Tensor) -> Tensor:
        b = omega / (1 + omega)
        by_Sigma, by_k = by_c.chunk(2, dim=-1)
        by_b = by_a + 2 * b * by_Sigma + (1 - 2 * b) * by_k
        return by_b / (1 + omega).square()


@dataclass(frozen=True, slots=True)
class FreeWeights(Weighting):
    """ScaML-GP: w_ν ≥ 0 fitted, its prior's median 1/s, so that without target data the sources are averaged."""

    @property
    def _has_own_kernels(self) -> bool:
        """Whether the coefficients also ask for the k_ν, after the Σ_ν."""
        return False

    def _coefficients(self, n: int) -> Coefficients:
        return _PerSource(n, 1 / n)

    def evidence(
        self,
        members: tuple[ExactBeliefs, ...],
        facts: SourceFacts,
        target: Dataset,
        kernel: Kernel,
        at: BeliefsAt | None = None,
    ) -> GaussianEvidence:
        """A mean and a covariance per source (two covariances where the target has k_ν of its own)."""
        b = target.batch_shape
        shapes, covs, kernels = _shapes_and_covs(members, target.X, at)
        gates = facts.open.unbind(-1)
        shapes = [gate[..., None] * shape for gate, shape in zip(gates, shapes, strict=True)]
        covs = [gate[..., None, None] * cov for gate, cov in zip(gates, covs, strict=True)]
        if self._has_own_kernels:
            covs += [gate[..., None, None] * k for gate, k in zip(gates, kernels, strict=True)]
        terms = WeightedTerms(
            torch.stack([_flat(shape, b) for shape in shapes], dim=1),
            torch.stack([_flat(cov, b) for cov in covs], dim=1),
            self._coefficients(len(members)),
        )
        return _evidence(target, kernel, terms)

    def weights(self, omega: Float[Tensor, "*b k"], facts: SourceFacts) -> StarWeights:
        """The fitted weights, known exactly; a source that is shut out has 0."""
        nothing = torch.zeros_like(omega)
        return StarWeights(facts.open * omega, nothing, nothing, nothing[..., :1])


@dataclass(frozen=True, slots=True)
class Modular(FreeWeights):
    """WSGP with sources that do not hear of the target: b = w/(1 + w) between 0 and 1."""

    @property
    def _has_own_kernels(self) -> bool:
        """The target has b (1 − b) k_ν."""
        return True

    def _coefficients(self, n: int) -> Coefficients:
        return _Share(n, 1 / n)

    def weights(self, omega: Float[Tensor, "*b k"], facts: SourceFacts) -> StarWeights:
        """b and b (1 − b)."""
        b = omega / (1 + omega)
        nothing = torch.zeros_like(b)
        return StarWeights(facts.open * b, nothing, facts.open * b * (1 - b), nothing[..., :1])
