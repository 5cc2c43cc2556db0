"""What AUTO gives back: the mixture of its candidates as a BoTorch model, and the judgement behind their weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headstart.models.auto.gate import Informative
from headstart.models.chain.layer import Layer
from headstart.models.mixture import Mixture, take_problems
from headstart.models.params import AutoParams
from headstart.models.posterior import FitResult, TransferPosterior
from headstart.tuning import AUTO_TUNING


@dataclass(frozen=True, slots=True)
class Judgement:
    """How far every candidate is believed, and why.

    ``scores`` (candidates × observations) are log p of every value of the target before it was seen, in mapped units;
    ``gate`` says which sources were let in.
    """

    candidates: tuple[str, ...]
    weights: Float[Tensor, "*b k"]
    scores: Float[Tensor, "*b k n"]
    gate: Informative


@dataclass(frozen=True, slots=True)
class Turns:
    """Which points candidate k chooses alone, then as ``member``: one in ``every``, after the first points."""

    k: int
    member: Layer | Mixture
    every: int

    def has(self, n: int) -> bool:
        """Whether point number n, counted from 0, is that candidate's."""
        return n >= AUTO_TUNING.first_points and n % self.every == self.every - 1


@dataclass(frozen=True, slots=True)
class AutoFitResult(FitResult):
    """Also the judgement, and who chooses when; None where the weights were given."""

    judgement: Judgement | None = None
    turns: Turns | None = None


class AutoPosterior(TransferPosterior):
    """The mixture of AUTO's candidates. As a BoTorch model it is their common mean and covariance.

    ``suggest`` asks the candidates one by one and averages what they answer (decide.average): the improvement that
    several normal distributions promise is not that of one with their common moments.
    """

    _predictor: Mixture
    _outcome: AutoFitResult

    @property
    def mixture(self) -> Mixture:
        """The candidates and their weights, in model units."""
        return self._predictor

    @property
    def judgement(self) -> Judgement | None:
        """Why the weights are what they are."""
        return self._outcome.judgement

    @property
    def weights(self) -> Float[Tensor, "*b k"]:
        """How far every candidate is believed."""
        return self.mixture.weights

    @property
    def cautious(self) -> bool:
        """It is: its least sure candidate can exclude nothing, wherever all others know it to be bad."""
        return True

    def deciding(self, n: int) -> Mixture:
        """The mixture, or with all weight on one candidate where it is that one's turn, with all its doubts."""
        turns, mixture = self._outcome.turns, self.mixture
        if turns is None or not turns.has(n):
            return mixture
        k = turns.k
        weights = torch.zeros_like(mixture.weights)
        weights[..., k] = 1.0
        return Mixture((*mixture.members[:k], turns.member, *mixture.members[k + 1 :]), weights)

    def condition_on_observations(self, X: Tensor, Y: Tensor, noise: Tensor | None = None, **options: Any) -> Self:
        """As of every model; in a fantasy nobody has a turn."""
        found = super().condition_on_observations(X, Y, noise, **options)
        return type(self)(found.mixture, replace(self._outcome, turns=None), found.train_targets, self._warp)

    def candidate(self, k: int, rows: Int[Tensor, "p"] | None = None) -> TransferPosterior:
        """One candidate as a model of its own, for all problems of the batch or some, counted in order."""
        params = self.hyperparameters
        assert isinstance(params, AutoParams)
        own = params.candidates[k]
        known = self._outcome
        outcome = FitResult(self.units, own, doubt=known.doubt, error_var=known.error_var, bounds=known.bounds)
        parts = (self.mixture.members[k], outcome, self._y, self._warp)
        return TransferPosterior(*(parts if rows is None else take_problems(parts, rows, self.batch_shape)))
