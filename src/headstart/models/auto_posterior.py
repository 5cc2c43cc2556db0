"""What AUTO gives back: the mixture of its candidates as a BoTorch model, and the judgement behind their weights."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor

from headstart.models.botorch import Outcome, TransferPosterior
from headstart.models.gate import Informative
from headstart.models.mixture import Mixture, taken

__all__ = ["AutoOutcome", "AutoPosterior", "Judgement"]


@dataclass(frozen=True, slots=True)
class Judgement:
    """How far every candidate is believed, and why.

    ``scores`` (candidates × observations) are log p of every value of the target before it was seen, in model units;
    ``gate`` says which sources were let in.
    """

    candidates: tuple[str, ...]
    weights: Float[Tensor, "*b k"]
    scores: Float[Tensor, "*b k n"]
    gate: Informative


@dataclass(frozen=True, slots=True)
class AutoOutcome(Outcome):
    """Also the judgement; None where the weights were given."""

    judgement: Judgement | None = None


class AutoPosterior(TransferPosterior):
    """The mixture of AUTO's candidates. As a BoTorch model it is their common mean and covariance.

    A suggestion is better made from one candidate at a time (decide.rules): the mixture of a sure and an ignorant
    candidate is as unsure as the ignorant one, and would be explored as if nothing were known.
    """

    @property
    def mixture(self) -> Mixture:
        """The candidates and their weights, in model units."""
        predictor = self.predictor
        assert isinstance(predictor, Mixture)
        return predictor

    @property
    def judgement(self) -> Judgement | None:
        """Why the weights are what they are."""
        outcome = self._outcome
        assert isinstance(outcome, AutoOutcome)
        return outcome.judgement

    @property
    def weights(self) -> Float[Tensor, "*b k"]:
        """How far every candidate is believed."""
        return self.mixture.weights

    def candidate(self, k: int, rows: Int[Tensor, "p"] | None = None) -> TransferPosterior:
        """One candidate as a model of its own, for all problems of the batch or some."""
        layer, units, y = self.mixture.members[k], self.units, self._y
        if rows is not None:
            n = self.batch_shape[-1]
            layer, units, y = taken(layer, rows, n), taken(units, rows, n), y[rows]
        return TransferPosterior(layer, Outcome(units, self.hyperparameters), y)
