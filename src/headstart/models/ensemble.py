"""Rank-weighted ensembles of one Gaussian process per task, as baselines: RGPE (Feurer et al. 2018) votes by samples,
TST-R (Wistuba et al. 2016) weighs a source by the rate of pairs that it ranks wrongly.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Real

import torch
from jaxtyping import Float
from torch import Tensor

from headstart.data.dataset import Dataset
from headstart.data.units import Units
from headstart.errors import InputError
from headstart.gp.fit import Seed, generator_from
from headstart.models.chain.beliefs import NoBeliefs
from headstart.models.chain.condensed import LevelSpec
from headstart.models.chain.fitting import fit_layer
from headstart.models.chain.layer import Layer
from headstart.models.learning import LearnContext
from headstart.models.mixture import Ensemble
from headstart.models.model import Prior, TransferModel
from headstart.models.params import EnsembleParams, ModelParams, require_levels
from headstart.models.posterior import FitResult, TransferPosterior
from headstart.models.star.independent import fit_each

_SAMPLES = 256
_HORIZON = 30  # target evaluations after which every source that ranks clearly worse is dropped
_AT_ZERO = 0.75  # the Epanechnikov kernel at 0


def misranked_pairs(f: Float[Tensor, "*b n"], y: Float[Tensor, "*c n"]) -> Float[Tensor, "*out"]:
    """How many ordered pairs (j, k) have f_j < f_k where y_j ≥ y_k, or the reverse."""
    f_less = f.unsqueeze(-1) < f.unsqueeze(-2)
    y_less = y.unsqueeze(-1) < y.unsqueeze(-2)
    return (f_less ^ y_less).sum((-2, -1)).double()


class RankWeighting(ABC):
    """How the members of the ensemble are weighted, and how their covariances add up."""

    @abstractmethod
    def weights(
        self, sources: Sequence[Layer], own: Layer, target: Dataset, generator: torch.Generator
    ) -> Float[Tensor, "*b T"]:
        """Of the sources' processes and of the target's ``own``, which comes last; they add up to 1."""

    @abstractmethod
    def of_covariances(self, weights: Float[Tensor, "*b T"]) -> Float[Tensor, "*b T"]:
        """What every member's covariance is multiplied by, from the weights of the means."""


@dataclass(frozen=True)
class SampledVotes(RankWeighting):
    """RGPE: the share of samples in which a member ranks the target's points best; covariance Σ w_i² Σ_i."""

    def weights(
        self, sources: Sequence[Layer], own: Layer, target: Dataset, generator: torch.Generator
    ) -> Float[Tensor, "*b T"]:
        """(1/S) Σ_a [i ∈ best(a)] / |best(a)|, with sources that would dilute the vote dropped."""
        n, T, S = target.n, len(sources) + 1, _SAMPLES
        if n < 2:  # no pair to rank: the sources share the weight, the target has nothing to say
            weights = target.X.new_full((*target.batch_shape, T), 1 / (T - 1))
            weights[..., -1] = 0.0
            return weights
        losses = []
        for source in sources:
            mean, cov = source.predict(target.X)
            losses.append(misranked_pairs(_samples(mean, cov, S, generator), target.y.unsqueeze(-2)))
        mean, var = own.leave_one_out(target.y)
        draws = torch.randn(S, n, generator=generator, dtype=torch.float64).to(mean.device)
        losses.append(misranked_pairs(mean.unsqueeze(-2) + var.sqrt().unsqueeze(-2) * draws, target.y.unsqueeze(-2)))
        loss = torch.stack(losses, dim=-1)  # (*b, S, T)
        loss = self._without_diluting(loss, n, generator)
        best = (loss == loss.amin(-1, keepdim=True)).double()
        return (best / best.sum(-1, keepdim=True)).mean(-2)

    def of_covariances(self, weights: Float[Tensor, "*b T"]) -> Float[Tensor, "*b T"]:
        """w_i²."""
        return weights.square()

    def _without_diluting(self, loss: Tensor, n: int, generator: torch.Generator) -> Tensor:
        """Sources that rank clearly worse than the target are dropped, ever more surely as observations come in."""
        target = loss[..., -1:]
        suspicious = loss.median(-2).values > target.quantile(0.95, dim=-2)
        beats = (loss < target).double().mean(-2)
        p_drop = 1 - (1 - min(n / _HORIZON, 1.0)) * beats
        draw = torch.rand(loss.shape[-1], generator=generator, dtype=torch.float64).to(loss.device)
        drop = suspicious & (draw < p_drop)
        drop[..., -1] = False
        kept: Tensor = loss.masked_fill(drop.unsqueeze(-2), torch.inf)
        return kept


@dataclass(frozen=True)
class RankAgreement(RankWeighting):
    """TST-R: a kernel of the rate of pairs that a source's mean ranks wrongly; the covariance is the target's own.

        w_i ∝ ¾ (1 − t_i²) where t_i = rate_i/bandwidth ≤ 1, and 0 elsewhere; the target's own weight is that of t = 0

    The rate is over all pairs of results, none where there are fewer than two; a tie on one side alone counts half.

    Args:
        bandwidth: The rate from which on a source has no weight, as in the paper 0.1.
    """

    bandwidth: float = 0.1

    def __post_init__(self) -> None:
        """Check the bandwidth."""
        ok = isinstance(self.bandwidth, Real) and not isinstance(self.bandwidth, bool)
        if not ok or not 0 < self.bandwidth < math.inf:
            raise InputError(f"bandwidth must be a rate of pairs, a number above 0, but it is {self.bandwidth!r}.")

    def weights(
        self,
        sources: Sequence[Layer],
        own: Layer,  # noqa: ARG002
        target: Dataset,
        generator: torch.Generator,  # noqa: ARG002
    ) -> Float[Tensor, "*b T"]:
        """The kernel of every source's rate, and of 0 for the target, divided by their sum."""
        pairs = max(1, target.n * (target.n - 1))
        means = (source.predict_marginal(target.X)[0] for source in sources)
        rates = [misranked_pairs(mean, target.y) / pairs for mean in means]
        t = torch.stack([*rates, torch.zeros_like(rates[0])], dim=-1) / self.bandwidth
        kernel = _AT_ZERO * (1 - t.square()).clamp_min(0.0)
        return kernel / kernel.sum(-1, keepdim=True)

    def of_covariances(self, weights: Float[Tensor, "*b T"]) -> Float[Tensor, "*b T"]:
        """1 for the target, 0 for the sources."""
        own = torch.zeros_like(weights)
        own[..., -1] = 1.0
        return own


@dataclass(frozen=True, kw_only=True)
class RankingPrior(Prior):
    """One Gaussian process per source, learnt once."""

    model: RankingWeighted
    members: tuple[Layer, ...]
    units: tuple[Units, ...]

    def _condition(self, target: Dataset, seed: Seed) -> TransferPosterior:
        generator = generator_from(seed)
        # The target's own units need a spread; before that, the sources' shared ones.
        own, shared = Units.of([target]), Units.of(self.sources).completed(target)
        known = own.scale > 0
        units = Units(torch.where(known, own.offset, shared.offset), torch.where(known, own.scale, shared.scale))
        inward = units.inward(target)
        spec = LevelSpec(self.model.kernel, self.model.fit, self.model.units, seed=generator)
        member, report = fit_layer(NoBeliefs(inward.batch_shape), inward, spec)
        weighting = self.model.weighting
        weights = weighting.weights(self.members, member, inward, generator)
        members, every = (*self.members, member), (*self.units, units)
        params = EnsembleParams(
            tuple(m.params.scaled(u.scale, u.offset) for m, u in zip(members, every, strict=True)),
            weights,
            torch.stack([u.offset for u in every], dim=-1),
            torch.stack([u.scale for u in every], dim=-1),
        )
        return TransferPosterior(
            Ensemble(members, weights, weighting.of_covariances(weights)),
            FitResult(units, params, (*self.fit_reports, report)),
            target.y,
        )


def _samples(mean: Tensor, cov: Tensor, n: int, generator: torch.Generator) -> Float[Tensor, "*b S n"]:
    """Draws from N(mean, cov) through the symmetric root V √Λ Vᵀ, which is unique, and exists where inputs repeat."""
    values, vectors = torch.linalg.eigh(cov)
    root: Tensor = (vectors * values.clamp_min(0.0).sqrt().unsqueeze(-2)) @ vectors.mT
    draws = torch.randn(n, mean.shape[-1], generator=generator, dtype=torch.float64).to(mean.device)
    return mean.unsqueeze(-2) + draws @ root


@dataclass(frozen=True, kw_only=True)
class RankingWeighted(TransferModel):
    """A process per task, each in its own standardised units, weighted by how they rank the target's results.

    Args:
        weighting: The rule: ``SampledVotes()`` is RGPE, ``RankAgreement()`` TST-R.
    """

    weighting: RankWeighting = field(default_factory=SampledVotes)

    no_shifts = "it compares the ranks of results"

    def _learn(self, sources: tuple[Dataset, ...], seed: Seed, context: LearnContext) -> RankingPrior:
        units = tuple(Units.of([source]).completed(source) for source in sources)
        one = torch.ones_like(sources[0].y.sum(-1))
        members, reports = fit_each(sources, units, one, self, seed, context)
        return RankingPrior(model=self, sources=sources, members=members, units=units, fit_reports=reports)

    def _at(self, params: ModelParams, sources: tuple[Dataset, ...], target: Dataset) -> TransferPosterior:
        if not isinstance(params, EnsembleParams):
            raise InputError(f"A rank-weighted ensemble takes EnsembleParams, but got {type(params).__name__}.")
        tasks, nothing = (*sources, target), NoBeliefs(target.batch_shape)
        require_levels(params.levels, len(tasks), target.d)
        params.require()
        units = tuple(map(Units, params.offsets.unbind(-1), params.scales.unbind(-1)))
        members = tuple(
            Layer.observe(
                nothing, level.scaled(1 / unit.scale, -unit.offset / unit.scale), unit.inward(task), kernel=self.kernel
            )
            for task, level, unit in zip(tasks, params.levels, units, strict=True)
        )
        ensemble = Ensemble(members, params.weights, self.weighting.of_covariances(params.weights))
        return TransferPosterior(ensemble, FitResult(units[-1], params), target.y)
