"""AUTO: the default model. It chooses from the data, and a plain Gaussian process is always among its candidates.

    candidate   what it believes                                          when it is right
    star        the target is a weighted sum of the sources, of any sign  several sources, some of them useless
    chain       every task is the previous one plus a little (SHGP)       sources ever more like the target
    plain       nothing (GPBO)                                            the past misleads, or is noise

Three things decide. A *gate*: a source that does not even predict itself better than a constant is not let in
(models.gate). *Weights*: candidates are weighed by what they said about every value of the target before it was seen
(models.prequential), which is the posterior probability of each being right. And a *share* that always stays with the
plain process, whatever the others seem to know.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headstart.data.dataset import Dataset
from headstart.data.units import OutputMap, Units
from headstart.errors import InputError
from headstart.gp.fit import FitReport, Seed, generator_from
from headstart.models.auto_posterior import AutoOutcome, AutoPosterior, Judgement
from headstart.models.beliefs import At
from headstart.models.botorch import TransferPosterior
from headstart.models.gate import Informative, informative
from headstart.models.layer import Layer, Propagation
from headstart.models.mixture import Mixture
from headstart.models.model import Prior, TransferModel
from headstart.models.params import AutoParams, ChainParams, ModelParams, StarParams
from headstart.models.prequential import REFITS, refits_up_to, sequential_scores
from headstart.models.sequential import Sequential, SequentialPrior
from headstart.models.single import Single, SinglePrior
from headstart.models.star import Star, StarPrior
from headstart.models.star_weights import Integrated

__all__ = ["CANDIDATES", "Auto", "AutoPrior"]

V = TypeVar("V")

CANDIDATES = ("star", "chain", "plain")
_SPREAD_KNOWN, _ANOTHER_SCALE = 5, 10.0
# With at least this weight the plain process decides on its own
_ON_ITS_OWN = 0.5
# By so many nats a candidate can fall behind the best one with a single value
_WORST_SURPRISE = 10.0
# Fitted candidates and scores that are kept: more than there are refits
_KEPT = 64


@dataclass(frozen=True, kw_only=True)
class Auto(TransferModel):
    """A star, a chain and a plain process, weighed by what they predicted.

    ``share`` is the weight that the plain process never falls below. ``believed`` are the weights before the first
    prediction was tested, in the order of CANDIDATES, with a single source.
    """

    share: float = 0.1
    believed: tuple[float, float, float] = (0.6, 0.2, 0.2)

    def __post_init__(self) -> None:
        """Check the numbers."""
        super().__post_init__()
        if not 0 <= self.share <= 1:
            raise InputError(f"share must be between 0 and 1, but it is {self.share}.")
        if len(self.believed) != len(CANDIDATES) or not min(self.believed) > 0:
            raise InputError(f"believed must be {len(CANDIDATES)} positive numbers, but it is {self.believed}.")

    def _candidates(self) -> tuple[Star, Sequential, Single]:
        # the data come to the candidates through AUTO's own output map
        options = {"kernel": self.kernel, "fit": self.fit, "output_map": OutputMap.NONE}
        return (
            Star(weighting=Integrated(), **options),  # type: ignore[arg-type]
            Sequential(propagation=Propagation.EXACT, **options),  # type: ignore[arg-type]
            Single(**options),  # type: ignore[arg-type]
        )

    def _learn(self, sources: tuple[Dataset, ...], seed: Seed) -> AutoPrior:
        generator = generator_from(seed)
        star, chain, plain = self._candidates()
        star_prior = star.learn(sources, seed=generator)
        chain_prior = chain.learn(sources, seed=generator)
        assert isinstance(star_prior, StarPrior)
        assert isinstance(chain_prior, SequentialPrior)
        plain_prior = plain.learn(sources)
        assert isinstance(plain_prior, SinglePrior)
        gate = informative(star_prior.layers, tuple(star_prior.known.inward(source).y for source in sources))
        return AutoPrior(
            model=self,
            sources=sources,
            star=star_prior.gated(gate.open),
            chain=chain_prior,
            plain=plain_prior,
            gate=gate,
        )

    def _at(self, params: ModelParams, sources: tuple[Dataset, ...], target: Dataset) -> TransferPosterior:
        if not isinstance(params, AutoParams):
            raise InputError(f"AUTO takes AutoParams, but got {type(params).__name__}.")
        params.require()
        star, chain, plain = self._candidates()
        posteriors = [
            star.at(params.star, sources=sources, target=target),
            chain.at(params.chain, sources=sources, target=target),
            plain.at(params.plain, target=target),
        ]
        members = tuple(_predictor(posterior) for posterior in posteriors)
        weights = params.weights.expand(*target.batch_shape, -1).to(target.X.device)
        outcome = AutoOutcome(Units.identity(target), _params(posteriors, weights), ())
        return AutoPosterior(Mixture(members, weights), outcome, target.y)


@dataclass(frozen=True, kw_only=True)
class AutoPrior(Prior):
    """What the candidates learnt from the sources. What they predicted is worked out once per target, and kept."""

    model: Auto
    star: StarPrior
    chain: SequentialPrior
    plain: SinglePrior
    gate: Informative
    _informed: dict[bytes, tuple[TransferPosterior, ...]] = field(default_factory=dict, repr=False, compare=False)
    _tested: dict[bytes, TransferPosterior] = field(default_factory=dict, repr=False, compare=False)
    _scored: dict[bytes, Tensor] = field(default_factory=dict, repr=False, compare=False)

    @property
    def fit_reports(self) -> tuple[FitReport, ...]:
        """The star's, then the chain's: one per source, in order."""
        return (*self.star.fit_reports, *self.chain.fit_reports)

    def locate(self, X: Float[Tensor, "*b m d"]) -> At:
        """The points for every candidate."""
        nothing = At(X, 0.0 * X.sum(-1))
        return replace(nothing, parts=(self.star.locate(X), self.chain.locate(X), nothing))

    def _condition(self, target: Dataset, seed: Seed) -> AutoPosterior:  # noqa: ARG002
        units = self.star.units.completed(target)
        posteriors = self._candidates(target)
        judgement = judged(self._scores(target), self.gate, self.model)
        star, chain, plain = (_in_units(units, posterior, target) for posterior in posteriors)
        members = (star, chain, _sure_of_itself(plain, judgement.weights[..., -1] < _ON_ITS_OWN))
        params = _params(posteriors, judgement.weights)
        reports = (*self.fit_reports, *(posterior.fit_reports[-1] for posterior in posteriors))
        blind = ~self.gate.open.any(-1)
        outcome = AutoOutcome(units, params, reports, blind=blind, judgement=judgement)
        return AutoPosterior(Mixture(members, judgement.weights), outcome, target.y)

    def after(self, target: Dataset, n: int) -> tuple[TransferPosterior, ...]:
        """All candidates given the first n observations of the target, in the order of CANDIDATES."""
        return self._candidates(target.head(n))

    def _candidates(self, target: Dataset) -> tuple[TransferPosterior, ...]:
        """All candidates given the target."""
        return (*self._with_sources(target), self._plain(target))

    def _with_sources(self, target: Dataset) -> tuple[TransferPosterior, ...]:
        """The star and the chain. Their starts depend on nothing but the target's size, so they can be had again.

        Those of the refits are kept: what is predicted from them is asked for at every later step.
        """
        key = _key(target)
        if key in self._informed:
            return self._informed[key]
        fitted = tuple(prior.condition(target, seed=target.n) for prior in (self.star, self.chain))
        if target.n in REFITS:
            _remember(self._informed, key, fitted)
        return fitted

    def _plain(self, target: Dataset) -> TransferPosterior:
        """The plain process, GPBO to the last bit; a target whose spread is unknown is to vary as the sources do."""
        varies = Units.of([target]).scale > 0 if target.n > 1 else target.y.new_zeros(target.batch_shape).bool()
        return self._plain_with(target, own_units=varies)

    def _plain_as_tested(self, seen: Dataset) -> TransferPosterior:
        """The plain process in the sources' units: two or three values that happen to be close say nothing of a spread.

        In its own units it would be all too sure of the next one, and lose its credit for good. From five values on it
        has its own where they vary by a different order of magnitude than the sources.
        """
        key = _key(seen)
        if key not in self._tested:
            units, own = self.star.units.completed(seen), Units.of([seen])
            apart = (own.scale / units.scale).log().abs() > math.log(_ANOTHER_SCALE)
            known = (own.scale > 0) & (seen.n >= _SPREAD_KNOWN)
            _remember(self._tested, key, self._plain_with(seen, own_units=apart & known, draws=0))
        return self._tested[key]

    def _plain_with(
        self, target: Dataset, *, own_units: Bool[Tensor, "*b"], draws: int | None = None
    ) -> TransferPosterior:
        """The plain process in the target's own units in some problems, and in those of the sources in the others."""
        units, own = self.star.units.completed(target), Units.of([target])
        known = Units(torch.where(own_units, own.offset, units.offset), torch.where(own_units, own.scale, units.scale))
        model = self.plain.model
        model = model if draws is None else model.using(fit=replace(model.fit, draws=draws))
        return replace(self.plain, model=model, known=known).condition(target, seed=target.n)

    def _scores(self, target: Dataset) -> Float[Tensor, "*b k n"]:
        """Every candidate's scores of every value, in mapped units.

        Values between two refits are predicted from the first of them, so what came before the last one is known.
        """
        refits = refits_up_to(target.n)
        if not refits:
            return target.y.new_zeros(*target.batch_shape, len(CANDIDATES), target.n)
        seen = target.head(refits[-1])
        key = _key(seen)
        if key not in self._scored:
            _remember(self._scored, key, self._scores(seen))
        new = []
        for posterior in (*self._with_sources(seen), self._plain_as_tested(seen)):
            # in units of its own: where the sources' are unknown those of the first values are not those of all
            inward = posterior.units.inward(target)
            scores = sequential_scores(_predictor(posterior), inward.X, inward.y, after=seen.n)
            new.append(scores[..., seen.n :] - posterior.units.scale.log().unsqueeze(-1))
        return torch.cat([self._scored[key], torch.stack(new, dim=-2)], dim=-1)


def _key(target: Dataset) -> bytes:
    return target.X.cpu().numpy().tobytes() + target.y.cpu().numpy().tobytes()


def _remember(kept: dict[bytes, V], key: bytes, value: V) -> None:
    """Results that come in late make for another past: the oldest is forgotten, so that the memory stays bounded."""
    while len(kept) >= _KEPT:
        kept.pop(next(iter(kept)))
    kept[key] = value


def judged(scores: Float[Tensor, "*b k n"], gate: Informative, model: Auto) -> Judgement:
    """w_k ∝ believed_k · exp(Σ_i score_ki), of which the plain process has at least its share.

    The chain runs through all sources, so it is believed only where all are let in; with none, the plain process has
    it all. It also takes the last source for the one most like the target. Any of them may be, so one chance in s of
    what is believed of a chain is left of it with s sources.
    """
    chances = torch.tensor(model.believed, dtype=scores.dtype, device=scores.device)
    chain = CANDIDATES.index("chain")
    chances[chain] /= gate.open.shape[-1]
    believed = chances.log().expand(scores.shape[:-1])
    # one value that nobody expected, in other units say, must not decide for good
    scored = torch.maximum(scores, scores.amax(-2, keepdim=True) - _WORST_SURPRISE).sum(-1)
    shut = ~gate.open.all(-1, keepdim=True) & (torch.arange(len(CANDIDATES), device=scores.device) == chain)
    weights = torch.softmax((believed + scored).masked_fill(shut, -torch.inf), dim=-1)
    plain = torch.zeros_like(weights)
    plain[..., -1] = 1.0
    weights = (1 - model.share) * weights + model.share * plain
    weights = torch.where(gate.open.any(-1, keepdim=True), weights, plain)
    return Judgement(CANDIDATES, weights, scores, gate)


def _params(posteriors: Sequence[TransferPosterior], weights: Float[Tensor, "*b k"]) -> AutoParams:
    star, chain, plain = (posterior.hyperparameters for posterior in posteriors)
    assert isinstance(star, StarParams)
    assert isinstance(chain, ChainParams)
    assert isinstance(plain, ChainParams)
    return AutoParams(star, chain, plain, weights)


def _sure_of_itself(plain: Layer | Mixture, where: Bool[Tensor, "*b"]) -> Layer | Mixture:
    """The plain process at its most probable hyperparameters in some of the problems.

    That these are uncertain is what keeps a search on its own from freezing. Where others are believed more, they do
    that, and what an uncertain process finds worth a look is a distraction.
    """
    if isinstance(plain, Layer):
        return plain
    mode = torch.zeros_like(plain.weights)
    mode[..., 0] = 1.0
    return replace(plain, weights=torch.where(where.unsqueeze(-1), mode, plain.weights))


def _predictor(posterior: TransferPosterior) -> Layer | Mixture:
    predictor = posterior.predictor
    assert isinstance(predictor, Layer | Mixture)
    return predictor


def _in_units(units: Units, posterior: TransferPosterior, target: Dataset) -> Layer | Mixture:
    """The candidate in these units: only the plain process speaks its own."""
    own = posterior.units
    if torch.equal(own.scale, units.scale) and torch.equal(own.offset, units.offset):
        return _predictor(posterior)
    return _rescaled(
        _predictor(posterior), own.scale / units.scale, (own.offset - units.offset) / units.scale, units.inward(target)
    )


def _rescaled(predictor: Layer | Mixture, scale: Tensor, offset: Tensor, target: Dataset) -> Layer | Mixture:
    """The predictor in units in which its values are scale · y + offset, and those of the target as given."""
    if isinstance(predictor, Mixture):
        return replace(predictor, members=tuple(_rescaled(m, scale, offset, target) for m in predictor.members))
    params = predictor.params.scaled(scale, offset)
    options = {"kernel": predictor.kernel, "propagation": predictor.propagation}
    return Layer.observe(predictor.below, params, target.X, target.y, **options)  # type: ignore[arg-type]
