"""Other ways to use candidates that are believed to different degrees, for comparison: AUTO averages over them.

DRAWN      one candidate is drawn by weight and asked alone
BEST       the candidate with the highest weight is asked alone
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from jaxtyping import Float, Int
from torch import Tensor

from headstart.models.auto.posterior import AutoPosterior
from headstart.models.posterior import TransferPosterior


class Rule(Enum):
    """How the candidates' weights are used."""

    AVERAGED = "averaged"
    DRAWN = "drawn"
    BEST = "best"


def pick(posterior: AutoPosterior, rule: Rule, uniform: Float[Tensor, "*#b"]) -> Int[Tensor, "*b"]:
    """The candidate that is asked in every problem; ``uniform`` numbers in [0, 1) decide where it is drawn.

    Before the first observation none of them was ever wrong, and the one that is believed most is asked.
    """
    weights = posterior.weights
    if rule is Rule.BEST or posterior.train_inputs[0].shape[-2] == 0:
        return weights.argmax(-1)
    last = weights.shape[-1] - 1
    return (weights.cumsum(-1) <= uniform.to(weights.device).unsqueeze(-1)).sum(-1).clamp_max(last)


def ask_candidates(
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
