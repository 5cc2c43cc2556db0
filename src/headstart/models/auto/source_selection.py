"""Source selection: which of many sources are used, at first and as results of the target come in.

Which and why is in docs/models.md, under AUTO; how many, in headstart.tuning. Up to ``max_sources`` all are used.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headstart.data.dataset import Dataset
from headstart.models.auto.scores import REFITS
from headstart.models.chain.beliefs import ExactBeliefs, weights_of
from headstart.models.star.independent import IndependentSources
from headstart.tuning import AUTO_TUNING

_ELEMENTS = 1 << 22  # of the covariances between sources and target that are in memory at once


def selection_size(n: int) -> int:
    """The number of first results, of n, that the selection depends on: the last refit; 0 before there are enough."""
    return max((refit for refit in REFITS if AUTO_TUNING.few_results <= refit <= n), default=0)


def max_sources_of(sources: Sequence[Dataset]) -> int:
    """How many of these sources may be used at a time."""
    rows = sum(source.n for source in sources) / len(sources)
    return max(AUTO_TUNING.max_sources, min(AUTO_TUNING.max_small_sources, int(AUTO_TUNING.source_row_budget / rows)))


def selected_sources(alone: IndependentSources, seen: Dataset | None = None) -> IndependentSources:
    """The sources that are used from these results of the target on; without any, while it has few.

    Every problem of a batch selects its own sources: one that only others select is not trusted in it.
    """
    trust, most = alone.trust, max_sources_of(alone.sources)
    if len(alone.sources) <= most:
        return alone
    if seen is None or seen.n < AUTO_TUNING.few_results:
        return _selected(alone, _drawn(trust, most))
    first, inward = _drawn(trust, most // 2), alone.units.completed(seen).inward(seen)
    alike = correlation(means_at(alone.members, inward.X), inward.y)
    alike = alike.masked_fill(first | (trust <= 0), -torch.inf)
    best = alike.topk(most - most // 2, dim=-1)
    more = torch.zeros_like(first).scatter(-1, best.indices, best.values > -torch.inf)
    return _selected(alone, first | more)


def _drawn(trust: Float[Tensor, "*b s"], most: int) -> Bool[Tensor, "*b s"]:
    """The first trusted sources in a fixed random order; their own order may have a meaning, such as a period."""
    order = torch.randperm(trust.shape[-1], generator=torch.Generator().manual_seed(0)).to(trust.device)
    trusted = trust[..., order] > 0
    found = torch.empty_like(trusted)
    found[..., order] = trusted & (trusted.cumsum(-1) <= most)
    return found


def _selected(alone: IndependentSources, mask: Bool[Tensor, "*b s"]) -> IndependentSources:
    index = mask.reshape(-1, mask.shape[-1]).any(0).nonzero().squeeze(-1)
    if len(index) == 0:  # none is trusted: one stands for all, with weight 0
        index = index.new_zeros(1)
    return alone.some(index.tolist(), (alone.trust * mask)[..., index])


def correlation(shapes: Float[Tensor, "*b s n"], y: Float[Tensor, "*b n"]) -> Float[Tensor, "*b s"]:
    """The correlation of every source's means with the results; 0 where one of both does not vary."""
    a = shapes - shapes.mean(-1, keepdim=True)
    b = (y - y.mean(-1, keepdim=True)).unsqueeze(-2)
    size = a.square().sum(-1).sqrt() * b.square().sum(-1).sqrt()
    return torch.where(size > 0, (a * b).sum(-1) / torch.where(size > 0, size, 1.0), 0.0)


def means_at(members: Sequence[ExactBeliefs], X: Float[Tensor, "*b n d"]) -> Float[Tensor, "*b s n"]:
    """The means of sources on their own at X, those of equal size together, in O(n N_ν) each."""
    alike: dict[tuple[int, ...], list[int]] = defaultdict(list)
    found: dict[int, Tensor] = {}
    for i, member in enumerate(members):
        alike[tuple(member.X.shape)].append(i)
    for (*batch, N, _), places in alike.items():
        together = max(1, _ELEMENTS // max(1, torch.Size(batch).numel() * N * X.shape[-2]))
        for start in range(0, len(places), together):
            some = places[start : start + together]
            found.update(zip(some, _means([members[i] for i in some], X), strict=True))
    return torch.stack([found[i] for i in range(len(members))], dim=-2)


def _means(members: Sequence[ExactBeliefs], X: Float[Tensor, "*b n d"]) -> Float[Tensor, "g *b n"]:
    """The means of members with equal numbers of rows."""
    beta = weights_of(torch.stack([m.L for m in members]), torch.stack([m.z for m in members]))
    lengthscale = torch.stack([m.terms[0].lengthscale for m in members])
    weight = torch.stack([m.terms[0].weight for m in members])
    k = members[0].kernel(X, torch.stack([m.X for m in members]), lengthscale)
    offset = torch.stack([m.offset for m in members])
    return offset.unsqueeze(-1) + (k @ (weight * beta).unsqueeze(-1)).squeeze(-1)
