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

from headstart.decide.acquisition import Worth
from headstart.models.auto_posterior import AutoPosterior
from headstart.models.botorch import TransferPosterior

__all__ = ["AveragedWorth", "Rule", "answered", "pick"]


class Rule(Enum):
    """How the candidates' weights are used."""

    DRAWN = "drawn"
    AVERAGED = "averaged"
    BEST = "best"


@dataclass(frozen=True, slots=True)
class AveragedWorth:
    """log Σ_k w_k exp(worth_k): for LOG_EI the log of the expected improvement under all candidates."""

    parts: tuple[Worth, ...]
    weights: Float[Tensor, "*b k"]

    def __call__(self, X: Float[Tensor, "*b n d"]) -> Float[Tensor, "*b n"]:
        """The value at every row of X."""
        every = torch.stack([part(X) for part in self.parts], dim=-1)
        return torch.logsumexp(every + self.weights.log().unsqueeze(-2), dim=-1)


def pick(posterior: AutoPosterior, rule: Rule, uniform: Float[Tensor, "*#b"]) -> Int[Tensor, "*b"]:
    """The candidate that is asked in every problem; ``uniform`` numbers between 0 and 1 decide where it is drawn.

    Before the first observation none of them was ever wrong, and the one that is believed most is asked.
    """
    weights = posterior.weights
    if rule is Rule.BEST or posterior.train_inputs[0].shape[-2] == 0:
        return weights.argmax(-1)
    last = weights.shape[-1] - 1
    return (weights.cumsum(-1) < uniform.to(weights.device).unsqueeze(-1)).sum(-1).clamp_max(last)


def answered(
    posterior: AutoPosterior,
    which: Int[Tensor, "*b"],
    ask: Callable[[TransferPosterior, int, Int[Tensor, "p"] | None], Tensor],
) -> Tensor:
    """The answers of the candidates that are asked, put together again in the order of the problems.

    ``ask`` is given a candidate, its number, and the rows of the batch it answers for; None where there is no batch.
    """
    if which.dim() == 0:
        return ask(posterior.candidate(int(which)), int(which), None)
    groups = [(k, (which == k).nonzero().squeeze(-1)) for k in range(posterior.weights.shape[-1])]
    parts = [(rows, ask(posterior.candidate(k, rows), k, rows)) for k, rows in groups if len(rows)]
    result = parts[0][1].new_empty(len(which), *parts[0][1].shape[1:])
    for rows, answer in parts:
        result[rows] = answer
    return result
