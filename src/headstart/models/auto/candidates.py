"""AUTO's candidates: the models that are averaged, and their weights, from prior beliefs, trust and scores.

The best candidate changes: at first the past knows more, later the target's own results do. An average over whole
histories would follow too slowly, since a candidate that was better for ten results has to lose all that it gained
(van Erven, Grünwald and de Rooij 2012, the catch-up phenomenon). So the prior is one over sequences of candidates
(fixed share, Herbster and Warmuth 1998): after result t the candidate is drawn anew from the beliefs with probability
α_t = min(1, r/t), r = ``switch_rate``, and stays what it is otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from headstart.errors import InputError
from headstart.models.model import TransferModel
from headstart.models.sequential import Single
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
        meaning: Completes the sentence "the target is …", for explanations.
        label: The same in a few words, for pictures.
    """

    name: str
    model: TransferModel
    believed: float
    meaning: str = ""
    label: str = ""

    @property
    def pooled(self) -> bool:
        """Whether it takes all sources for one."""
        return isinstance(self.model, Star) and self.model.pooled

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
        meaning="a weighted sum of the past campaigns, of any sign, and something of its own",
        label="weighted sum of the past (star)",
    ),
    Candidate(
        "pooled",
        Star(weighting=Integrated(mean=1.0, balance=AUTO_TUNING.kin_balance), pooled=True),
        AUTO_TUNING.pooled_belief,
        meaning="what all past campaigns together show, taken for one, and a little change",
        label="the past as one (pooled)",
    ),
    Candidate(
        "plain",
        Single(),
        AUTO_TUNING.plain_belief,
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
    if sum(not candidate.informed for candidate in candidates) != 1:
        raise InputError("One candidate, and one only, must be a plain process (GPBO).")


def candidate_weights(scores: Float[Tensor, "*b k n"], believed: Float[Tensor, "*b k"]) -> Float[Tensor, "*b k n+1"]:
    """The weights w_kt of the candidates for value number t + 1, given their scores of the t values before.

        w_k0 = believed_k
        p_kt ∝ w_k,t−1 · exp(score_kt)                  the posterior of the candidate that predicts value t
        w_kt = (1 − α_t) p_kt + α_t believed_k          the candidate of value t + 1

    Every sequence of candidates k_1 … k_n with m changes is followed at a cost that grows with m and log n alone; for
    switch_rate = 1, and as the first value scores 0 with all of them (models.auto.scores):

        Σ_t log Σ_k w_k,t−1 exp(score_kt) ≥ Σ_t score_{k_t,t} − (m + 1) (log n + max_t log 1/believed_{k_t})

    A switch goes to what is believed, so what the gate keeps out does not come back.
    """
    weights = [believed]
    for t, score in enumerate(scores.unbind(-1), start=1):
        drawn_anew = min(1.0, AUTO_TUNING.switch_rate / t)
        posterior = torch.softmax(weights[-1].log() + score, dim=-1)
        weights.append(torch.lerp(posterior, believed, drawn_anew))
    return torch.stack(weights, dim=-1)


def beliefs_given_trust(
    believed: Float[Tensor, "*b k"], trust: Float[Tensor, "*b s"], candidates: Sequence[Candidate]
) -> Float[Tensor, "*b k"]:
    """Beliefs times the trust in the sources that each candidate rests on; the plain process has the rest."""
    found = believed.clone()
    for k, candidate in enumerate(candidates):
        if candidate.informed:
            found[..., k] = believed[..., k] * trust.amax(-1)
        else:
            found[..., k] = believed[..., k] + believed.sum(-1) * (1 - trust.amax(-1))
    return found / found.sum(-1, keepdim=True)


def weighting_of(model: TransferModel) -> Integrated | None:
    """The weighting of a star that integrates its weights out; None of any other model."""
    return model.weighting if isinstance(model, Star) and isinstance(model.weighting, Integrated) else None
