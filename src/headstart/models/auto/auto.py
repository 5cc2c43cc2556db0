"""AUTO: the default model. It chooses from the data, and a plain Gaussian process is always among its candidates.

    candidate   what it believes                                           when it is right
    kin         the target is one more of the sources' kind: their         the past agrees
                average, and differs from it as they differ
    star        the target is a weighted sum of the sources, of any sign   some of the sources are useless, or reversed
    chain       every task is the previous one plus a little (SHGP); with  sources ever more like the target
                up to five sources
    plain       nothing (GPBO)                                             the past misleads, or is noise

Four things decide. A *gate*: a source that does not even predict itself better than a constant is not trusted
(``gate``). *Likeness*: how far each kind of candidate is believed before the first result is learnt from predicting
every source from the others (``likeness``). *Weights*: from then on candidates are weighed by what they said about
every value of the target before it was seen (``prequential``), which is the posterior probability of each being
right. And *shares* that some candidates keep, whatever the others seem to know.

What is predicted is the mixture. What is tried next is what the mixture expects most of, but for one point in three,
from the sixth on, which the plain process chooses: what the past knows of where to look is used up by then, and
candidates are weighed by points that they chose themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import torch
from jaxtyping import Float
from torch import Tensor

from headstart.data.dataset import Dataset
from headstart.data.units import OutputMap, OutputUnits, Units
from headstart.errors import InputError
from headstart.gp.fit import FitOptions, FitReport, Seed, generator_from
from headstart.gp.kernels import Kernel
from headstart.models.auto.candidates import DEFAULT, Candidate, require_candidates, trusted, weighed, weighting_of
from headstart.models.auto.gate import Informative, informative
from headstart.models.auto.likeness import likeness
from headstart.models.auto.members import in_units, predictor_of, with_point_estimate
from headstart.models.auto.posterior import AutoFitResult, AutoPosterior, Judgement, Turns
from headstart.models.auto.prequential import refits_up_to, scores_of
from headstart.models.auto.study.informed import Informed
from headstart.models.auto.study.kept import kept_at_first, most_of
from headstart.models.auto.study.plain import PlainProcess
from headstart.models.chain.beliefs import BeliefsAt
from headstart.models.chain.layer import Layer
from headstart.models.growth.grown import with_appended_rows
from headstart.models.growth.memory import Memory
from headstart.models.learning import LearnContext
from headstart.models.mixture import Mixture
from headstart.models.model import Prior, TransferModel
from headstart.models.params import AutoParams, ModelParams
from headstart.models.posterior import TransferPosterior
from headstart.models.sequential import Sequential
from headstart.models.single import SinglePrior
from headstart.models.star.independent import IndependentSources, fit_independently
from headstart.models.star.star import Star, StarPrior
from headstart.models.star.weighting import Integrated
from headstart.tuning import AUTO_TUNING


@dataclass(frozen=True, kw_only=True)
class Auto(TransferModel):
    """Several models, weighed by what they predicted. One of them, and one only, goes without sources.

    It alone chooses one in ``plain_every`` of the points after the first five.
    """

    candidates: tuple[Candidate, ...] = DEFAULT
    plain_every: int = AUTO_TUNING.plain_turn_every

    def __post_init__(self) -> None:
        """Check the candidates."""
        super().__post_init__()
        require_candidates(self.candidates)
        if self.plain_every < 1:
            raise InputError(f"plain_every must be at least 1, but it is {self.plain_every}.")
        if self.units is not OutputUnits.SHARED:
            raise InputError("AUTO's candidates are compared in one unit: units must be OutputUnits.SHARED.")

    def paper(self) -> Self:
        """Trained as the paper's models, but for the units, which all candidates share."""
        return self.using(kernel=Kernel.RBF, fit=FitOptions.paper(), output_map=OutputMap.NONE)

    @property
    def names(self) -> tuple[str, ...]:
        """The candidates' names, in their order."""
        return tuple(candidate.name for candidate in self.candidates)

    @property
    def plain(self) -> int:
        """Which candidate goes without sources."""
        return next(k for k, candidate in enumerate(self.candidates) if not candidate.informed)

    def _models(self) -> tuple[TransferModel, ...]:
        # the data come to the candidates through AUTO's own output map
        return tuple(
            candidate.model.using(kernel=self.kernel, fit=self.fit, output_map=OutputMap.NONE)
            for candidate in self.candidates
        )

    def _learn(self, sources: tuple[Dataset, ...], seed: Seed, context: LearnContext) -> AutoPrior:
        unordered = tuple(candidate for candidate in self.candidates if not candidate.ordered)
        if len(sources) > AUTO_TUNING.chain_max_sources and len(unordered) < len(self.candidates):
            return self.using(candidates=unordered)._learn(sources, seed, context)
        generator = generator_from(seed)
        alone = fit_independently(sources, self, seed, context)
        y, known, X = zip(*((s.y, s.error_var, s.X) for s in map(alone.known.inward, sources)), strict=True)
        gate = informative(alone.layers, y, known, X)
        kept = kept_at_first(gate.trust, most_of(sources))
        models = self._models()
        # stars and the plain process are tried on the sources; a chain has an order, and nothing to be tried on
        tested = [k for k, model in enumerate(models) if weighting_of(model) is not None or k == self.plain]
        alike = likeness(
            alone.some(kept.index),
            kept.trust,
            [weighting_of(models[k]) for k in tested],
            [self.candidates[k].believed for k in tested],
            self.kernel,
            context,
        )
        believed = gate.trust.new_tensor([candidate.believed for candidate in self.candidates])
        believed = believed.expand(*gate.trust.shape[:-1], -1).clone()
        believed[..., tested] = alike.believed * believed[..., tested].sum(-1, keepdim=True)
        priors: list[Prior] = []
        for k, model in enumerate(models):
            match model:
                case Star():
                    star = model.upon(alone).gated(gate.trust)
                    if k == tested[0]:
                        star = replace(star, facts=replace(star.facts, own=alike.own), expected=alike.expected)
                    priors.append(star)
                case Sequential():
                    priors.append(model.upon(sources, generator, context, (alone.layers[0], alone.reports[0])))
                case _:
                    priors.append(model.learn(sources, seed=generator, context=context))
        believed = trusted(believed, gate.trust, self.candidates)
        return AutoPrior(model=self, sources=sources, alone=alone, priors=tuple(priors), gate=gate, believed=believed)

    def _at(self, params: ModelParams, sources: tuple[Dataset, ...], target: Dataset) -> TransferPosterior:
        if not isinstance(params, AutoParams):
            raise InputError(f"AUTO takes AutoParams, but got {type(params).__name__}.")
        params.require()
        if len(params.candidates) != len(self.candidates):
            raise InputError(f"AUTO has {len(self.candidates)} candidates, but {len(params.candidates)} are given.")
        posteriors = [
            model.at(own, sources=sources if model.needs_sources else (), target=target)
            for model, own in zip(self._models(), params.candidates, strict=True)
        ]
        members = tuple(predictor_of(posterior) for posterior in posteriors)
        weights = params.weights.expand(*target.batch_shape, -1).to(target.X.device)
        outcome = AutoFitResult(Units.identity(target), _params(posteriors, weights), ())
        return AutoPosterior(Mixture(members, weights), outcome, target.y)


@dataclass(frozen=True, kw_only=True)
class AutoPrior(Prior):
    """What the candidates learnt from the sources.

    What was found of a target is kept, for it is asked for again, when it is explained and at the next step: all
    candidates given the latest one; those that know the sources given its first rows, at every refit; and all scores up
    to the last refit. The seed of ``condition`` changes nothing: fits begin at
    points that depend on the number of results alone, so that the same ones can be had again.
    """

    model: Auto
    alone: IndependentSources
    priors: tuple[Prior, ...]
    gate: Informative
    believed: Float[Tensor, "*b k"]  # of every candidate before the first result
    _latest: Memory[tuple[TransferPosterior, ...]] = field(
        default_factory=lambda: Memory(most=1), repr=False, compare=False
    )
    _scored: Memory[Tensor] = field(default_factory=Memory, repr=False, compare=False)

    @cached_property
    def plain(self) -> PlainProcess:
        """The candidate that goes without sources."""
        prior = self.priors[self.model.plain]
        assert isinstance(prior, SinglePrior)
        return PlainProcess(prior, self.alone.units)

    @cached_property
    def informed(self) -> Informed:
        """The candidates that know the sources."""
        priors = tuple(prior for prior in self.priors if not isinstance(prior, SinglePrior))
        return Informed(self.alone, self.gate.trust, priors)

    @property
    def fit_reports(self) -> tuple[FitReport, ...]:
        """Those of the sources on their own, then those of the candidates that learnt them in another way."""
        further = (prior.fit_reports for prior in self.priors if not isinstance(prior, StarPrior))
        return (*self.alone.reports, *(report for reports in further for report in reports))

    def locate(self, X: Float[Tensor, "*b m d"]) -> Float[Tensor, "*b m d"] | BeliefsAt:
        """The points for every candidate; all stars have the same sources. X where there are so many that some are
        asked now and others later.
        """
        if len(self.sources) > most_of(self.sources):
            return X
        nothing = BeliefsAt(X, 0.0 * X.sum(-1))
        stars = self.alone.locate(X)
        parts = []
        for prior in self.priors:
            located = stars if isinstance(prior, StarPrior) else prior.locate(X)
            parts.append(located if isinstance(located, BeliefsAt) else nothing)
        return replace(nothing, parts=tuple(parts))

    def star_of(self, i: int) -> StarPrior:
        """Source i alone, its weight of any sign."""
        return Star(
            weighting=Integrated(), kernel=self.model.kernel, fit=self.model.fit, output_map=OutputMap.NONE
        ).upon(self.alone.only(i))

    def _condition(self, target: Dataset, seed: Seed) -> AutoPosterior:  # noqa: ARG002
        units = self.alone.units.completed(target)
        posteriors, judgement = self._candidates(target), self.judged(self._scores(target))
        plain = self.model.plain
        members = [in_units(units, posterior, target) for posterior in posteriors]
        doubting = members[plain]
        small = judgement.weights[..., plain] < AUTO_TUNING.plain_mixture_from_weight
        members[plain] = with_point_estimate(doubting, small)
        params = _params(posteriors, judgement.weights)
        reports = (*self.fit_reports, *(posterior.fit_reports[-1] for posterior in posteriors))
        blind = ~self.gate.open.any(-1)
        turns = Turns(plain, doubting, self.model.plain_every)
        outcome = AutoFitResult(units, params, reports, blind=blind, judgement=judgement, turns=turns)
        return AutoPosterior(Mixture(tuple(members), judgement.weights), outcome, target.y)

    def judged(self, scores: Float[Tensor, "*b k n"]) -> Judgement:
        """The weights that follow from these scores."""
        return Judgement(self.model.names, weighed(scores, self.believed, self.model.candidates), scores, self.gate)

    def after(self, target: Dataset, n: int, k: int) -> TransferPosterior:
        """Candidate k, which knows the sources, given the first n observations of the target."""
        if 0 < n == target.n:
            return self._candidates(target)[k]
        return self.informed.given(target.head(n))[k - (k > self.model.plain)]

    def _candidates(self, target: Dataset) -> tuple[TransferPosterior, ...]:
        """All candidates given the target."""
        return self._latest.of(target, lambda: self._with_plain(self.informed.given(target), self.plain.given(target)))

    def _with_plain(
        self, informed: tuple[TransferPosterior, ...], plain: TransferPosterior
    ) -> tuple[TransferPosterior, ...]:
        k = self.model.plain
        return (*informed[:k], plain, *informed[k:])

    def _scores(self, target: Dataset) -> Float[Tensor, "*b k n"]:
        """Every candidate's scores of every value, in mapped units.

        Values between two refits are predicted from the first of them, so what came before the last one is known.
        """
        refits = refits_up_to(target.n)
        if not refits:
            return target.y.new_zeros(*target.batch_shape, len(self.priors), target.n)
        seen = target.head(refits[-1])
        before = self._scored.of(seen, lambda: self._scores(seen))
        plain = with_appended_rows(self.plain.as_tested(seen), target)
        new = []
        for posterior in self._with_plain(self.informed.after(seen, target), plain):
            # in units of its own: where the sources' are unknown those of the first values are not those of all
            layer = posterior.predictor
            assert isinstance(layer, Layer)
            new.append(scores_of(layer)[..., seen.n :] - posterior.units.scale.log().unsqueeze(-1))
        return torch.cat([before, torch.stack(new, dim=-2)], dim=-1)


def _params(posteriors: Sequence[TransferPosterior], weights: Float[Tensor, "*b k"]) -> AutoParams:
    return AutoParams(tuple(posterior.hyperparameters for posterior in posteriors), weights)
