"""AUTO's posterior: the mixture of its candidates as a BoTorch model, and the scores behind their weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headstart.data.dataset import Dataset
from headstart.data.units import Units
from headstart.models.auto.gate import Informative
from headstart.models.chain.layer import Layer
from headstart.models.mixture import Mixture, take_problems
from headstart.models.params import AutoParams
from headstart.models.posterior import FitResult, TransferPosterior
from headstart.tuning import AUTO_TUNING


@dataclass(frozen=True, slots=True)
class Judgement:
    """The weights of the candidates, and what they follow from.

    ``scores`` (candidates × observations) are log p of every value of the target before it was seen, in mapped units;
    ``gate`` says how far every source is trusted.
    """

    candidates: tuple[str, ...]
    weights: Float[Tensor, "*b k"]
    scores: Float[Tensor, "*b k n"]
    gate: Informative


@dataclass(frozen=True, slots=True)
class Turns:
    """The points that candidate k chooses alone, as ``member``: one in ``every``, after the first points."""

    k: int
    member: Layer | Mixture
    every: int

    def has(self, n: int) -> bool:
        """Whether candidate k chooses point number n, counted from 0."""
        return n >= AUTO_TUNING.first_points and n % self.every == self.every - 1


@dataclass(frozen=True, slots=True)
class AutoFitResult(FitResult):
    """Also the judgement and the turns; None where the weights were given."""

    judgement: Judgement | None = None
    turns: Turns | None = None


class AutoPosterior(TransferPosterior):
    """The mixture of AUTO's candidates. As a BoTorch model it has their common mean and covariance.

    ``suggest`` averages the acquisition values of the candidates (decide.value): the expected improvement of a
    mixture is not that of a normal distribution with its moments.
    """

    _predictor: Mixture
    _outcome: AutoFitResult

    @property
    def mixture(self) -> Mixture:
        """The candidates and their weights, in model units."""
        return self._predictor

    @property
    def judgement(self) -> Judgement | None:
        """The scores and the gate behind the weights."""
        return self._outcome.judgement

    @property
    def weights(self) -> Float[Tensor, "*b k"]:
        """The weight of every candidate."""
        return self.mixture.weights

    @property
    def cautious(self) -> bool:
        """True: the least certain candidate alone would explore where all others expect bad values."""
        return True

    def deciding(self, n: int) -> Mixture:
        """The mixture that chooses point number n: in a turn one candidate has all weight, with all its uncertainty."""
        turns, mixture = self._outcome.turns, self.mixture
        if turns is None or not turns.has(n):
            return mixture
        k = turns.k
        weights = torch.zeros_like(mixture.weights)
        weights[..., k] = 1.0
        return Mixture((*mixture.members[:k], turns.member, *mixture.members[k + 1 :]), weights)

    def condition_on_observations(self, X: Tensor, Y: Tensor, noise: Tensor | None = None, **options: Any) -> Self:
        """As of every model; a fantasy has no turns."""
        found = super().condition_on_observations(X, Y, noise, **options)
        return type(self)(found.mixture, replace(self._outcome, turns=None), found.train_targets, self._warp)

    def candidate(self, k: int, rows: Int[Tensor, "p"] | None = None) -> TransferPosterior:
        """One candidate as a model of its own, for all problems of a batch or some of them, by their index."""
        params = self.hyperparameters
        assert isinstance(params, AutoParams)
        own = params.candidates[k]
        known = self._outcome
        outcome = FitResult(self.units, own, doubt=known.doubt, error_var=known.error_var, bounds=known.bounds)
        parts = (self.mixture.members[k], outcome, self._y, self._warp)
        return TransferPosterior(*(parts if rows is None else take_problems(parts, rows, self.batch_shape)))


def with_point_estimate(plain: Layer | Mixture, where: Bool[Tensor, "*b"]) -> Layer | Mixture:
    """The plain process at its most probable hyperparameters ``where`` (its weight is small), else as it is.

    Uncertain hyperparameters keep a search without sources exploring. With sources the other candidates do that.
    """
    if isinstance(plain, Layer):
        return plain
    mode = torch.zeros_like(plain.weights)
    mode[..., 0] = 1.0
    return replace(plain, weights=torch.where(where.unsqueeze(-1), mode, plain.weights))


def predictor_of(posterior: TransferPosterior) -> Layer | Mixture:
    """The predictor of a posterior, which can be a member of a mixture."""
    predictor = posterior.predictor
    assert isinstance(predictor, Layer | Mixture)
    return predictor


def in_units(units: Units, posterior: TransferPosterior, target: Dataset) -> Layer | Mixture:
    """The predictor of a candidate in these units; only the plain process has units of its own."""
    own = posterior.units
    if torch.equal(own.scale, units.scale) and torch.equal(own.offset, units.offset):
        return predictor_of(posterior)
    return _rescaled(
        predictor_of(posterior),
        own.scale / units.scale,
        (own.offset - units.offset) / units.scale,
        units.inward(target),
    )


def _rescaled(predictor: Layer | Mixture, scale: Tensor, offset: Tensor, target: Dataset) -> Layer | Mixture:
    """The predictor in units in which its values are scale · y + offset; ``target`` has them already."""
    if isinstance(predictor, Mixture):
        return replace(predictor, members=tuple(_rescaled(m, scale, offset, target) for m in predictor.members))
    scaled = replace(predictor, params=predictor.params.scaled(scale, offset))
    return scaled.with_observations(target)
