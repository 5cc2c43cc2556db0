"""AUTO's candidates: the models that are averaged, and their weights, from prior beliefs, trust and scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from headstart.errors import InputError
from headstart.models.chain.layer import Propagation
from headstart.models.model import TransferModel
from headstart.models.sequential import Sequential, Single
from headstart.models.star.star import Star
from headstart.models.star.weights import Integrated
from headstart.tuning import AUTO_TUNING


@dataclass(frozen=True, slots=True)
class Candidate:
    """One of the models that AUTO averages over.

    Args:
        name: What it is called; every candidate has a name of its own.
        model: A model of the family. Its kernel, fit options and output map are AUTO's.
        believed: Prior belief, as a proportion of those of all candidates.
        at_least: Weight that the candidate keeps whatever its scores.
        meaning: Completes the sentence "the target is …", for explanations.
        label: The same in a few words, for pictures.
    """

    name: str
    model: TransferModel
    believed: float
    at_least: float = 0.0
    meaning: str = ""
    label: str = ""

    @property
    def ordered(self) -> bool:
        """Whether the order of the sources matters: a chain through all of them, the last one nearest to the target."""
        return isinstance(self.model, Sequential)

    @property
    def informed(self) -> bool:
        """Whether it uses the sources."""
        return not isinstance(self.model, Single)


DEFAULT = (
    Candidate(
        "kin",
        Star(weighting=Integrated(mean=1.0, balance=AUTO_TUNING.kin_balance)),
        AUTO_TUNING.kin_belief,
        meaning="one more of the past campaigns' kind: like them on average, and as different as they are",
        label="one of the past's kind (kin)",
    ),
    Candidate(
        "star",
        Star(weighting=Integrated()),
        AUTO_TUNING.star_belief,
        at_least=AUTO_TUNING.star_min_weight,
        meaning="a weighted sum of the past campaigns, of any sign, and something of its own",
        label="weighted sum of the past (star)",
    ),
    Candidate(
        "chain",
        Sequential(propagation=Propagation.EXACT),
        AUTO_TUNING.chain_belief,
        meaning="the last past campaign, which was like the one before it, and a little change",
        label="each like the one before (chain)",
    ),
    Candidate(
        "plain",
        Single(),
        AUTO_TUNING.plain_belief,
        at_least=AUTO_TUNING.plain_min_weight,
        meaning="nothing that the past knows: a model from scratch",
        label="from scratch (plain)",
    ),
)


def require_candidates(candidates: Sequence[Candidate]) -> None:
    """Raise an ``InputError`` unless names differ, beliefs are positive, and exactly one candidate is plain."""
    names = [candidate.name for candidate in candidates]
    if len(set(names)) < len(names):
        raise InputError(f"Candidates must have names of their own, but they are {', '.join(names)}.")
    if not all(candidate.believed > 0 for candidate in candidates):
        raise InputError("Every candidate must be believed to some degree: believed must be positive.")
    shares = [candidate.at_least for candidate in candidates]
    if min(shares, default=0.0) < 0 or sum(shares) > 1:
        raise InputError(f"at_least are shares that add up to at most 1, but they are {shares}.")
    if sum(not candidate.informed for candidate in candidates) != 1:
        raise InputError("One candidate, and one only, must be a plain process (GPBO).")


def candidate_weights(
    scores: Float[Tensor, "*b k n"], believed: Float[Tensor, "*b k"], candidates: Sequence[Candidate]
) -> Float[Tensor, "*b k"]:
    """w_k ∝ believed_k · exp(Σ_i score_ki), mixed with the minimum weights: (1 − Σ at_least) w_k + at_least_k.

    Where only the plain process has any belief it has all the weight.
    """
    # one outlier, a value in other units say, must not decide for good
    scored = torch.maximum(scores, scores.amax(-2, keepdim=True) - AUTO_TUNING.max_log_ratio).sum(-1)
    weights = torch.softmax(believed.log() + scored, dim=-1)
    shares = scores.new_tensor([candidate.at_least for candidate in candidates])
    alone = (believed > 0).sum(-1, keepdim=True) == 1
    return torch.where(alone, weights, (1 - shares.sum()) * weights + shares)


def beliefs_given_trust(
    believed: Float[Tensor, "*b k"], trust: Float[Tensor, "*b s"], candidates: Sequence[Candidate]
) -> Float[Tensor, "*b k"]:
    """Beliefs times the trust in the sources that each candidate rests on; the plain process has the rest.

    A chain runs through all sources, so it rests on the one that is trusted least. It also takes the last source for
    the one most like the target, which with s sources is right with probability 1/s.
    """
    found = believed.clone()
    for k, candidate in enumerate(candidates):
        if candidate.ordered:
            found[..., k] = believed[..., k] / trust.shape[-1] * trust.amin(-1)
        elif candidate.informed:
            found[..., k] = believed[..., k] * trust.amax(-1)
        else:
            found[..., k] = believed[..., k] + believed.sum(-1) * (1 - trust.amax(-1))
    return found / found.sum(-1, keepdim=True)


def weighting_of(model: TransferModel) -> Integrated | None:
    """The weighting of a star that integrates its weights out; None of any other model."""
    return model.weighting if isinstance(model, Star) and isinstance(model.weighting, Integrated) else None
