"""How a suggestion comes from several candidate models that are believed to different degrees (AUTO).

DRAWN      one candidate is drawn by weight and asked alone
AVERAGED   the expected improvement is averaged over the candidates: log Σ_k w_k EI_k
BEST       the candidate with the highest weight is asked alone
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headstart.decide.acquisition import Acquisition, Worth
from headstart.models.auto_posterior import AutoPosterior
from headstart.models.botorch import TransferPosterior

__all__ = ["AveragedWorth", "Rule", "answered", "averaged", "counting", "pick"]

# A candidate with less weight is not asked: it takes as long as one that counts
_NEGLIGIBLE = 1e-3


class Rule(Enum):
    """How the candidates' weights are used."""

    AVERAGED = "averaged"
    DRAWN = "drawn"
    BEST = "best"


def averaged(
    kind: Acquisition, values: Float[Tensor, "*b n k"], weights: Float[Tensor, "*b k"]
) -> Float[Tensor, "*b n"]:
    """The candidates' common value: an improvement is averaged before its logarithm is taken."""
    w = weights.unsqueeze(-2)
    match kind:
        case Acquisition.LOG_EI:
            return torch.logsumexp(values + w.log(), dim=-1)
        case Acquisition.LCB:
            return (w * values).sum(-1)


@dataclass(frozen=True, slots=True)
class AveragedWorth:
    """What a point is worth to all candidates together."""

    kind: Acquisition
    parts: tuple[Worth, ...]
    weights: Float[Tensor, "*b k"]

    def __call__(self, X: Float[Tensor, "*b n d"]) -> Float[Tensor, "*b n"]:
        """The value at every row of X."""
        return averaged(self.kind, torch.stack([part(X) for part in self.parts], dim=-1), self.weights)


def counting(posterior: AutoPosterior) -> tuple[list[int], Float[Tensor, "*b c"]]:
    """The candidates that have a weight worth mentioning in any of the problems, and their weights: 0 in the others."""
    weights = torch.where(posterior.weights > _NEGLIGIBLE, posterior.weights, 0.0)
    every = [k for k, w in enumerate(weights.unbind(-1)) if bool(w.any())]
    return every, weights[..., every]


def pick(posterior: AutoPosterior, rule: Rule, uniform: Float[Tensor, "*#b"]) -> Int[Tensor, "*b"]:
    """The candidate that is asked in every problem; ``uniform`` numbers in [0, 1) decide where it is drawn.

    Before the first observation none of them was ever wrong, and the one that is believed most is asked.
    """
    weights = posterior.weights
    if rule is Rule.BEST or posterior.train_inputs[0].shape[-2] == 0:
        return weights.argmax(-1)
    last = weights.shape[-1] - 1
    return (weights.cumsum(-1) <= uniform.to(weights.device).unsqueeze(-1)).sum(-1).clamp_max(last)


def answered(
    posterior: AutoPosterior,
    which: Int[Tensor, "*b"],
    ask: Callable[[TransferPosterior, int, Int[Tensor, "p"] | None], Tensor],
) -> Tensor:
    """The answers of the candidates that are asked, put together again in the order of the problems.

    ``ask`` is given a candidate, its number, and the rows of the (flattened) batch it answers for; None without one.
    """
    if which.dim() == 0:
        return ask(posterior.candidate(int(which)), int(which), None)
    groups = [(k, (which.flatten() == k).nonzero().squeeze(-1)) for k in range(posterior.weights.shape[-1])]
    parts = [(rows, ask(posterior.candidate(k, rows), k, rows)) for k, rows in groups if len(rows)]
    result = parts[0][1].new_empty(which.numel(), *parts[0][1].shape[1:])
    for rows, answer in parts:
        result[rows] = answer
    whole: Tensor = result.unflatten(0, which.shape)
    return whole
