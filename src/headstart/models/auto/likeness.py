"""How alike the sources are: each is predicted from the others, as the target will be from all of them.

A target is taken for one more of the sources' kind. So what is to be expected of it is estimated by cross-validation:
every source in turn is the target, of which some rows are known, and the others are its sources. This gives

    own        how much a task has of its own, as a share of the sources' kernels: the posterior (geometric) mean over
               a few values, all sources together
    expected   the other hyperparameters of a task (its residual's kernel, its noise, its size): their mean and spread
               over the sources, the general prior counting as one of them
    believed   the proportion in which each candidate is right: the posterior mean of the proportions of a mixture
               whose Dirichlet prior counts as ``likeness_prior_sources`` sources (headstart.tuning)

With one source there is nothing to compare, and the priors are left.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headstart.gp.evidence import WeightedTerms
from headstart.gp.fit import FitOptions, fit
from headstart.gp.hyperparameters import Layout, ThetaPrior
from headstart.gp.kernels import Kernel
from headstart.gp.threads import single_thread
from headstart.models.chain.beliefs import ExactBeliefs
from headstart.models.fitcache import Arrays, fit_key, values_of
from headstart.models.learning import LearnContext, count_in_words
from headstart.models.star.independent import IndependentSources, exact_beliefs, rows_pooled
from headstart.models.star.star import Star
from headstart.models.star.weights import Integrated, SourceFacts, StarBeliefs, star_evidence
from headstart.tuning import AUTO_TUNING

# Small fits, of which there are many
_QUICK = FitOptions(restarts=AUTO_TUNING.likeness_restarts)
_CACHED = ("own", "believed", "centre", "spread")


@dataclass(frozen=True, slots=True)
class Likeness:
    """``own`` and ``expected`` for the first candidate, and the proportion in which each candidate is right."""

    own: Float[Tensor, "*b 1"]
    believed: Float[Tensor, "*b k"]
    expected: ThetaPrior | None = None


def likeness(
    alone: IndependentSources,
    candidates: Sequence[Star | None],
    believed: Sequence[float],
    kernel: Kernel,
    context: LearnContext,
    as_one: IndependentSources | None = None,
) -> Likeness:
    """What is to be expected of a target, from comparing the sources, each as far as it is trusted.

    ``candidates`` are the stars among AUTO's candidates, in which there were prior beliefs ``believed``; None is a
    candidate without sources. Where that comes first there is nothing to learn. ``as_one`` are the sources pooled.
    """
    trust = alone.trust
    chances = trust.new_tensor(believed)
    chances = (chances / chances.sum()).expand(*trust.shape[:-1], -1)
    if len(alone.sources) < 2 or candidates[0] is None:
        return Likeness(trust.new_tensor(AUTO_TUNING.own_share).expand(*trust.shape[:-1], 1), chances)
    cache, key = context.cache, ""
    if cache is not None:
        params = values_of([layer.params for layer in alone.layers])
        options = (kernel, tuple(candidates), tuple(believed), trust.tolist(), AUTO_TUNING)
        key = fit_key("likeness", alone.sources, *options, params)
        if (found := cache.get(key, lambda arrays: _from_arrays(arrays, trust, chances.shape))) is not None:
            return found
    seconds = 0.03 * len(alone.sources)
    done = context.meter(f"Comparing {count_in_words(alone.sources)} with each other", seconds)
    with single_thread():
        own, shares, prior = _compared(alone, candidates, chances, kernel, as_one)
    done(seconds)
    if cache is not None:
        parts = zip(_CACHED, (own, shares, prior.centre, prior.spread), strict=True)
        cache.put(key, {name: part.cpu().contiguous().numpy() for name, part in parts})
    return Likeness(own, shares, prior)


def _from_arrays(arrays: Arrays, trust: Float[Tensor, "*b s"], shape: torch.Size) -> Likeness:
    """A likeness from the cache: of the right shapes, finite, and above 0 where it has to be, or a ``ValueError``."""
    every = [torch.from_numpy(np.array(arrays[name], dtype=np.float64)).to(trust) for name in _CACHED]
    own, believed, centre, spread = every
    theta = (shape[:-1].numel(), centre.shape[-1])
    if (
        [tuple(part.shape) for part in every] != [(*shape[:-1], 1), tuple(shape), theta, theta]
        or not all(bool(part.isfinite().all()) for part in every)
        or not all(bool((part > 0).all()) for part in (own, believed, spread))
        or not torch.allclose(believed.sum(-1), torch.ones_like(own[..., 0]))
    ):
        raise ValueError("it is no comparison of these sources")
    return Likeness(own, believed, ThetaPrior(centre, spread))


def _compared(
    alone: IndependentSources,
    candidates: Sequence[Star | None],
    chances: Float[Tensor, "*b k"],
    kernel: Kernel,
    as_one: IndependentSources | None,
) -> tuple[Float[Tensor, "*b 1"], Float[Tensor, "*b k"], ThetaPrior]:
    """``own``, ``believed`` and ``expected`` from predicting every source, or the first of many, from the others."""
    first, n_own, tried = candidates[0], len(AUTO_TUNING.own_shares), alone.trust[..., : AUTO_TUNING.max_sources]
    assert first is not None
    assert isinstance(first.weighting, Integrated)
    shared = [first.using(weighting=replace(first.weighting, own=own)) for own in AUTO_TUNING.own_shares]
    weightings = [*shared, *candidates[1:]]
    # evidence (*b, source, candidate); a source counts as far as it is trusted
    found = [_evidences(alone, i, weightings, kernel, as_one) for i in range(tried.shape[-1])]
    evidence, thetas = torch.stack([one[0] for one in found], -2), torch.stack([one[1] for one in found], -3)
    trust = tried.unsqueeze(-1)
    of_own, others = evidence[..., :n_own], evidence[..., n_own:]
    log_prior = trust.new_tensor(AUTO_TUNING.own_share_prior).log()
    weights = torch.softmax(log_prior + (trust * of_own).sum(-2), dim=-1)
    own = (weights * trust.new_tensor(AUTO_TUNING.own_shares).log()).sum(-1, keepdim=True).exp()
    best = torch.logsumexp(of_own + weights.log().unsqueeze(-2), dim=-1, keepdim=True)
    theta = (weights[..., None, :, None] * thetas[..., :n_own, :]).sum(-2)  # (*b, source, p)
    expected = _expected(theta, trust, found[0][2])
    return own, _proportions(torch.cat([best, others], dim=-1), trust, chances), expected


def _expected(theta: Float[Tensor, "*b s p"], trust: Float[Tensor, "*b s 1"], layout: Layout) -> ThetaPrior:
    """Mean and spread of the sources' θ, with the general prior as one of them."""
    general, var = layout.centre().to(theta), layout.precision().to(theta).reciprocal()
    n = trust.sum(-2) + 1
    centre = (general + (trust * theta).sum(-2)) / n
    apart = var + (general - centre).square() + (trust * (theta - centre.unsqueeze(-2)).square()).sum(-2)
    p = layout.size
    return ThetaPrior(centre.reshape(-1, p), (apart / n).sqrt().reshape(-1, p))


def _proportions(
    evidence: Float[Tensor, "*b s k"], trust: Float[Tensor, "*b s 1"], prior: Float[Tensor, "*b k"]
) -> Float[Tensor, "*b k"]:
    """π_k = (c · prior_k + Σ_ν r_νk)/(c + s), r_νk ∝ π_k p_k(source ν), with c = likeness_prior_sources."""
    found = prior
    for _ in range(6):  # of expectation and maximisation; it has converged long before
        responsible = trust * torch.softmax(evidence + found.log().unsqueeze(-2), dim=-1)
        found = AUTO_TUNING.likeness_prior_sources * prior + responsible.sum(-2)
        found = found / found.sum(-1, keepdim=True)
    return found


def _pooled_without(as_one: IndependentSources, i: int, sizes: Sequence[int]) -> ExactBeliefs:
    """What the pooled sources say without the rows of source i, at the same hyperparameters."""
    data, layer = as_one.known.inward(as_one.sources[0]), as_one.layers[0]
    rows, begin = torch.arange(data.n, device=data.X.device), sum(sizes[:i])
    others = (rows < begin) | (rows >= begin + sizes[i])
    return exact_beliefs(layer.with_observations(data.rows(rows[others])))


def _evidences(
    alone: IndependentSources, i: int, tried: Sequence[Star | None], kernel: Kernel, as_one: IndependentSources | None
) -> tuple[Float[Tensor, "*b k"], Float[Tensor, "*b k p"], Layout]:
    """log p(some rows of source i | the other sources), at the most probable hyperparameters, and these."""
    some = alone.sources[i].rows(slice(None, None, math.ceil(alone.sources[i].n / AUTO_TUNING.likeness_rows)))
    source = alone.known.inward(some)
    b = source.batch_shape
    P, n = b.numel(), source.n
    others = alone.trust.clone()
    others[..., i] = 0.0
    facts = SourceFacts(alone.spread, others)
    at = alone.locate(source.X)
    kernels = torch.stack([member.prior_cov(source.X, source.X) for member in alone.members])
    means, covs = [], []
    for star in tried:
        if star is None:
            means.append(torch.zeros_like(source.y).reshape(P, n))
            covs.append(source.y.new_zeros(P, n, n))
            continue
        assert isinstance(star.weighting, Integrated)
        if star.pooled:
            assert as_one is not None
            members = (_pooled_without(as_one, i, rows_pooled(alone.sources)),)
            below = StarBeliefs(members, star.weighting.unit(SourceFacts(as_one.spread, as_one.trust)))
            own = below.at(source.X)
            cov = below.cov(own, own)
        else:
            below = StarBeliefs(alone.members, star.weighting.unit(facts))
            own = below.weigh(at)
            cov = below.cov_from(kernels, own)
        means.append(own.mean.reshape(P, n))
        covs.append(cov.reshape(P, n, n))
    k = len(tried)
    scale = next(w.coefficients for w in (star.weighting for star in tried if star) if isinstance(w, Integrated))
    terms = WeightedTerms(torch.cat(means).unsqueeze(1), torch.cat(covs).unsqueeze(1), scale)
    evidence = star_evidence(source.repeated(k), kernel, terms)
    theta, report = fit(evidence, _QUICK, seed=i, task=f"source {i}", batch_shape=torch.Size([k * P]))
    best = report.objective.gather(-1, report.best.unsqueeze(-1)).squeeze(-1)
    # shifts of batches, the last entry, are not those of every source
    layout = Layout(tuple(slot for slot in evidence.layout.slots if slot.name != "batch_var"))
    theta = theta[..., : layout.size]
    return (-n * best).reshape(k, *b).movedim(0, -1), theta.reshape(k, *b, -1).movedim(0, -2), layout
