"""Prequential log scores: what a model predicted about every value of the target before that value was seen.

With hyperparameters found from the first observations, and K the model's covariance of all of them with noise, the
Cholesky factor L of K and z = L⁻¹ r hold every prediction of an observation from those before it:

    log p(y_i | y_1 … y_{i−1}) = −½ z_i² − log L_ii − ½ log 2π

The level of a task says nothing about which model is right, and models differ in the level they expect. So the offset
has a flat prior: contrasts y_i − y_1 are scored, and the first observation scores 0. Shifts of batches are in K, so
that a value of a new batch is predicted with their variance; which batch is the present one makes no difference.
"""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from headstart.data.dataset import Dataset
from headstart.gp.evidence import WeightedTerms
from headstart.gp.fit import fit
from headstart.gp.hyperparameters import ThetaPrior
from headstart.gp.linalg import cholesky, solve_lower
from headstart.models.chain.layer import shifts_of
from headstart.models.model import TransferModel
from headstart.models.star.independent import IndependentSources
from headstart.models.star.weights import (
    Integrated,
    SourceFacts,
    StarBeliefs,
    expecting,
    star_evidence,
    target_prior,
)

# Numbers of observations at which the hyperparameters behind the scores are refitted: often while every observation
# tells much, then ever less often. The same for a run from the start and for one that was read from a file.
REFITS = (1, *(size for k in range(1, 20) for size in (1 << k, 3 << (k - 1))))

# Stars of one source each, which only explain, are refitted up to this many observations
_LAST_REFIT_OF_ONE = 192
_ELEMENTS = 1 << 24  # of the target's covariances under several sources that are in memory at once


def refits_up_to(n: int) -> list[int]:
    """The refits that come before observation number n + 1 is scored."""
    return [refit for refit in REFITS if refit < n]


def scores_alone(alone: IndependentSources, model: TransferModel, target: Dataset) -> Float[Tensor, "s n"]:
    """The scores of every value of the target, in mapped units, under stars of one source each.

    The stars have the kernel and the fit options of ``model``. At the target's inputs a source is a mean and a
    covariance, whatever its size: so all stars are fitted in lockstep, each as it would be by itself.
    """
    n, s = target.n, len(alone.sources)
    refits = [refit for refit in refits_up_to(n) if refit <= _LAST_REFIT_OF_ONE]
    if not refits:
        return target.y.new_zeros(s, n)
    together = max(1, _ELEMENTS // n**2)
    parts = (alone.some(range(start, min(start + together, s))) for start in range(0, s, together))
    return torch.cat([_in_lockstep(part, model, target, refits) for part in parts])


def _in_lockstep(
    alone: IndependentSources, model: TransferModel, target: Dataset, refits: list[int]
) -> Float[Tensor, "s n"]:
    """The scores under each of these sources, fitted in lockstep."""
    weighting, n_sources = Integrated(), len(alone.sources)
    scores = target.y.new_zeros(n_sources, target.n)
    means, covs = _priors_at(alone, weighting, target.X)
    certain = torch.ones_like(alone.trust[..., :1])
    each = [alone.some((i,), certain).expected_shifts for i in range(n_sources)]
    expected = ThetaPrior(
        *(torch.cat(parts) for parts in zip(*((one.centre, one.spread) for one in each), strict=True))
    )
    target = replace(target, categories=target.categories or alone.sources[0].categories)
    for refit, end in zip(refits, [*refits[1:], target.n], strict=True):
        units = alone.units.completed(target.head(refit))
        inward = units.inward(target.head(end)).repeated(n_sources)
        terms = WeightedTerms(means[:, None, :refit], covs[:, None, :refit, :refit], weighting.coefficients)
        seen, b = inward.head(refit), torch.Size([n_sources])
        evidence = star_evidence(seen, model.kernel, terms)
        prior = target_prior(evidence.layout, seen, expected)
        theta, _ = fit(evidence, model.fit, seed=refit, task="target", batch_shape=b, prior=prior)
        own, omega = expecting(expected, evidence.params(theta), seen), evidence.omega(theta)
        K = omega.square().unsqueeze(-1) * covs[:, :end, :end]
        K = K + own.outputscale[:, None, None] * model.kernel(target.X[:end], target.X[:end], own.lengthscale)
        noise = own.noise_var.unsqueeze(-1) + (0.0 if inward.error_var is None else inward.error_var)
        K, shifts = K + torch.diag_embed(noise.expand(inward.y.shape)), shifts_of(inward, own)
        K = K if shifts is None else K + shifts
        L = cholesky(K, of="The covariance of the target's observations")
        z = solve_lower(L, (inward.y - omega * means[:, :end]).unsqueeze(-1)).squeeze(-1)
        scores[:, refit:end] = scores_of(L, z)[:, refit:] - units.scale.log().unsqueeze(-1)
    return scores


def _priors_at(
    alone: IndependentSources, weighting: Integrated, X: Float[Tensor, "n d"]
) -> tuple[Float[Tensor, "s n"], Float[Tensor, "s n n"]]:
    """Prior mean and covariance of the target at X under a star of each source, at amplitude 1."""
    means, covs = [], []
    for member, spread in zip(alone.members, alone.spread.unsqueeze(-1), strict=True):
        below = StarBeliefs((member,), weighting.unit(SourceFacts(spread, torch.ones_like(spread))))
        at = below.at(X)
        means.append(at.mean)
        covs.append(below.cov(at, at))
    return torch.stack(means), torch.stack(covs)


def scores_of(L: Float[Tensor, "*b n n"], z: Float[Tensor, "*b n"]) -> Float[Tensor, "*b n"]:
    """The scores of all observations from the factor L of their covariance and z = L⁻¹ r; the first one is 0.

    With e = L⁻¹ 1, and the offset given a flat prior, the first i values leave it with precision S_i and mean c_i/S_i;
    the next one is then predicted with

        S_i = Σ_{j≤i} e_j²       variance    L_ii² (1 + e_i²/S_{i−1})
        c_i = Σ_{j≤i} e_j z_j    residual    L_ii (z_i − e_i c_{i−1}/S_{i−1})

    which are the scores of the contrasts y_i − y_1 at O(n²), without a new factor.
    """
    if z.shape[-1] < 2:
        return torch.zeros_like(z)
    e = solve_lower(L, torch.ones_like(L[..., :1])).squeeze(-1)
    S, c = e.square().cumsum(-1), (e * z).cumsum(-1)
    grows = S[..., 1:] / S[..., :-1]
    residual = z[..., 1:] - e[..., 1:] * c[..., :-1] / S[..., :-1]
    log_sd = L.diagonal(dim1=-2, dim2=-1)[..., 1:].log() + 0.5 * grows.log()
    scores = -0.5 * (residual.square() / grows + math.log(2 * math.pi)) - log_sd
    return torch.cat([torch.zeros_like(z[..., :1]), scores], dim=-1)
