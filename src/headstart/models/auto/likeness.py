"""How alike the sources are: each is predicted from the others, as the target will be from all of them.

A target is taken for one more of the sources' kind. So what is to be expected of it can be tried out: every source in
turn is a target, of which some rows are known, and the others are its sources. Three things are learnt from that:

    own        how much a task has of its own, as a share of the sources' kernels: of a few values the most probable
               one, all sources together, with a prior for few of them
    expected   the hyperparameters of what a task has besides (its residual's kernel, its noise, its size): their mean
               and spread over the sources, the general prior counting as one of them
    believed   which kind of candidate is right how often: the posterior mean of the proportions of a mixture whose
               Dirichlet prior is worth STRENGTH sources

A source says nothing of itself here, and with one source there is nothing to try: what is left are the priors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headstart.gp.evidence import GaussianEvidence, WeightedTerms
from headstart.gp.fit import FitOptions, fit
from headstart.gp.hyperparameters import Inputs, Layout, ThetaPrior
from headstart.gp.kernels import Kernel
from headstart.gp.threads import single_thread
from headstart.models.fitcache import Arrays, fit_key
from headstart.models.learning import DEFAULT_CONTEXT, LearnContext, count_in_words
from headstart.models.star.independent import IndependentSources
from headstart.models.star.weighting import Amplitude, Integrated, SourceFacts
from headstart.models.star.weights import StarBeliefs
from headstart.tuning import AUTO_TUNING

# What a task may have of its own, and how probable that is before any two sources were compared
OWN = AUTO_TUNING.own_shares
_PROBABLE = AUTO_TUNING.own_share_prior
# The prior of the proportions counts as so many sources
STRENGTH = AUTO_TUNING.likeness_prior_sources
_ROWS = AUTO_TUNING.likeness_rows
_TRIED = AUTO_TUNING.max_sources
_STEPS = 6  # of expectation and maximisation; it has converged long before
_QUICK = FitOptions(restarts=AUTO_TUNING.likeness_restarts)


@dataclass(frozen=True, slots=True)
class Likeness:
    """What was learnt: ``own`` and ``expected`` for a weighting, and how often each of the candidates is right."""

    own: Float[Tensor, "*b 1"]
    believed: Float[Tensor, "*b k"]
    expected: ThetaPrior | None = None


def likeness(
    alone: IndependentSources,
    let_in: Float[Tensor, "*b s"],
    candidates: Sequence[Integrated | None],
    believed: Sequence[float],
    kernel: Kernel,
    context: LearnContext = DEFAULT_CONTEXT,
) -> Likeness:
    """``candidates`` are the weightings of the stars among them; ``own`` and ``expected`` are those of the first one.

    None is a candidate without sources; where that comes first there is nothing to learn.
    """
    if len(alone.sources) < 2 or candidates[0] is None:
        own = let_in.new_tensor(AUTO_TUNING.own_share).expand(*let_in.shape[:-1], 1)
        return Likeness(own, _proportions_before(let_in, believed))
    cache = context.cache
    key = "" if cache is None else _key(alone, let_in, candidates, believed, kernel)
    found = None if cache is None else cache.get(key, lambda arrays: _from_arrays(arrays, let_in, len(candidates)))
    if found is None:
        seconds = 0.03 * len(alone.sources)
        done = context.meter(f"Comparing {count_in_words(alone.sources)} with each other", seconds)
        with single_thread():
            found = _compared(alone, let_in, candidates, believed, kernel)
        done(seconds)
        if cache is not None:
            cache.put(key, {name: part.cpu().contiguous().numpy() for name, part in _parts(found).items()})
    return found


def _key(
    alone: IndependentSources,
    let_in: Float[Tensor, "*b s"],
    candidates: Sequence[Integrated | None],
    believed: Sequence[float],
    kernel: Kernel,
) -> str:
    """The key of a comparison: the sources, their processes, the candidates, and the numbers that shape it."""
    tuning = (OWN, _PROBABLE, STRENGTH, _ROWS, _TRIED, _QUICK)
    params = [getattr(layer.params, f.name).tolist() for layer in alone.layers for f in fields(layer.params)]
    options = (kernel, tuple(candidates), tuple(believed), let_in.tolist(), tuning)
    return fit_key("likeness", alone.sources, *options, params)


def _parts(found: Likeness) -> dict[str, Tensor]:
    assert found.expected is not None
    expected = found.expected
    return {"own": found.own, "believed": found.believed, "centre": expected.centre, "spread": expected.spread}


def _from_arrays(arrays: Arrays, let_in: Float[Tensor, "*b s"], n_candidates: int) -> Likeness:
    """A likeness from the cache: of the right shapes, finite, proportions, and spreads above 0, or a ``ValueError``."""
    b, P = let_in.shape[:-1], let_in.shape[:-1].numel()
    own, believed, centre, spread = (arrays[name] for name in ("own", "believed", "centre", "spread"))
    if (
        any(v.dtype != np.float64 or not np.isfinite(v).all() for v in (own, believed, centre, spread))
        or own.shape != (*b, 1)
        or believed.shape != (*b, n_candidates)
        or centre.shape != spread.shape
        or (centre.ndim, len(centre)) != (2, P)
        or not bool((own > 0).all() and (believed > 0).all() and (spread > 0).all())
        or not np.allclose(believed.sum(-1), 1.0)
    ):
        raise ValueError("it is no comparison of these sources")
    tensors = [torch.from_numpy(np.array(array)).to(let_in) for array in (own, believed, centre, spread)]
    return Likeness(tensors[0], tensors[1], ThetaPrior(tensors[2], tensors[3]))


def _compared(
    alone: IndependentSources,
    let_in: Float[Tensor, "*b s"],
    candidates: Sequence[Integrated | None],
    believed: Sequence[float],
    kernel: Kernel,
) -> Likeness:
    chances = _proportions_before(let_in, believed)
    probable, grid = let_in.new_tensor(_PROBABLE).log(), let_in.new_tensor(OWN).log()
    first = candidates[0]
    assert first is not None
    tried = [*(replace(first, own=own) for own in OWN), *candidates[1:]]
    # evidence (*b, source, candidate); a source that is not let in has no say
    found = [_evidences(alone, let_in, i, tried, kernel) for i in range(len(alone.sources[:_TRIED]))]
    evidence, thetas = torch.stack([one[0] for one in found], -2), torch.stack([one[1] for one in found], -3)
    says = let_in[..., :_TRIED].unsqueeze(-1)
    of_own, others = evidence[..., : len(OWN)], evidence[..., len(OWN) :]
    weights = torch.softmax(probable + (says * of_own).sum(-2), dim=-1)
    own = (weights * grid).sum(-1, keepdim=True).exp()
    best = torch.logsumexp(of_own + weights.log().unsqueeze(-2), dim=-1, keepdim=True)
    theta = (weights[..., None, :, None] * thetas[..., : len(OWN), :]).sum(-2)  # (*b, source, p)
    expected = _expected(theta, says, found[0][2])
    return Likeness(own, _proportions(torch.cat([best, others], dim=-1), says, chances), expected)


def _proportions_before(let_in: Float[Tensor, "*b s"], believed: Sequence[float]) -> Float[Tensor, "*b k"]:
    chances = let_in.new_tensor(believed)
    return (chances / chances.sum()).expand(*let_in.shape[:-1], -1)


def _expected(theta: Float[Tensor, "*b s p"], says: Float[Tensor, "*b s 1"], layout: Layout) -> ThetaPrior:
    """Mean and spread of the sources' θ, with the general prior as one of them."""
    general, var = layout.centre().to(theta), layout.precision().to(theta).reciprocal()
    n = says.sum(-2) + 1
    centre = (general + (says * theta).sum(-2)) / n
    apart = var + (general - centre).square() + (says * (theta - centre.unsqueeze(-2)).square()).sum(-2)
    p = layout.size
    return ThetaPrior(centre.reshape(-1, p), (apart / n).sqrt().reshape(-1, p))


def _proportions(
    evidence: Float[Tensor, "*b s k"], says: Float[Tensor, "*b s 1"], prior: Float[Tensor, "*b k"]
) -> Float[Tensor, "*b k"]:
    """π_k = (STRENGTH · prior_k + Σ_ν r_νk)/(STRENGTH + s), r_νk ∝ π_k p_k(source ν)."""
    found = prior
    for _ in range(_STEPS):
        responsible = says * torch.softmax(evidence + found.log().unsqueeze(-2), dim=-1)
        found = STRENGTH * prior + responsible.sum(-2)
        found = found / found.sum(-1, keepdim=True)
    return found


def _evidences(
    alone: IndependentSources, let_in: Float[Tensor, "*b s"], i: int, tried: Sequence[Integrated | None], kernel: Kernel
) -> tuple[Float[Tensor, "*b k"], Float[Tensor, "*b k p"], Layout]:
    """log p(some rows of source i | the other sources), at the most probable hyperparameters, and these."""
    some = alone.sources[i].rows(slice(None, None, math.ceil(alone.sources[i].n / _ROWS)))
    source = alone.known.inward(some)
    b = source.batch_shape
    P, n = b.numel(), source.n
    others = let_in.clone()
    others[..., i] = 0.0
    facts = SourceFacts(alone.facts.spread, others)
    at = alone.locate(source.X)
    kernels = torch.stack([member.prior_cov(source.X, source.X) for member in alone.members])
    means, covs = [], []
    for weighting in tried:
        if weighting is None:
            means.append(torch.zeros_like(source.y).reshape(P, n))
            covs.append(source.y.new_zeros(P, n, n))
            continue
        below = StarBeliefs(alone.members, weighting.unit(facts))
        own = below.weigh(at)
        means.append(own.mean.reshape(P, n))
        covs.append(below.cov_from(kernels, own).reshape(P, n, n))
    k = len(tried)
    amplitude = next(weighting.amplitude for weighting in tried if weighting is not None)
    evidence = GaussianEvidence(
        source.X.reshape(P, n, -1).repeat(k, 1, 1),
        source.y.reshape(P, n).repeat(k, 1),
        kernel=kernel,
        residual=True,
        free_offset=True,
        inputs=Inputs.of(source.d, source.categories),
        terms=WeightedTerms(torch.cat(means).unsqueeze(1), torch.cat(covs).unsqueeze(1), Amplitude(amplitude)),
        error_var=None if source.error_var is None else source.error_var.reshape(P, n).repeat(k, 1),
    )
    theta, report = fit(evidence, _QUICK, seed=i, task=f"source {i}", batch_shape=torch.Size([k * P]))
    best = report.objective.gather(-1, report.best.unsqueeze(-1)).squeeze(-1)
    return (-n * best).reshape(k, *b).movedim(0, -1), theta.reshape(k, *b, -1).movedim(0, -2), evidence.layout
