"""AUTO, the default model: several models averaged by how well they predicted, a plain Gaussian process among them.

    candidate   what the target is                                         when it is right
    kin         one more task of the sources' kind: their average, and     the past agrees
                different from it as they are from each other
    star        a weighted sum of the sources, weights of any sign         some of the sources are useless, or reversed
    pooled      what the rows of all sources together show, taken for one  each source has few rows for its inputs
    plain       unrelated to the sources (GPBO)                            the past misleads, or is noise

Three things decide. A *gate*: a source is not trusted that neither its own rows nor those of all sources predict better
than a constant (``models.auto.gate``). *Likeness*: the belief in each candidate before the first result is learnt from
predicting every source from the others (``models.auto.likeness``). *Weights*: from then on candidates are weighted by
the log scores of their predictions of every value of the target before it was seen (``models.auto.scores``): posterior
probabilities under a prior by which the best candidate may change (``models.auto.candidates``).

Predictions are those of the mixture, and the next point maximises the mixture's acquisition value. All numbers are in
``headstart.tuning``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Self

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headstart.data.dataset import Dataset
from headstart.data.units import OutputMap, OutputUnits, Units
from headstart.errors import InputError
from headstart.gp.fit import Seed, generator_from
from headstart.models.auto.candidates import (
    DEFAULT,
    Candidate,
    beliefs_given_trust,
    candidate_weights,
    require_candidates,
    weighting_of,
)
from headstart.models.auto.gate import Informative, informative, informative_together
from headstart.models.auto.likeness import likeness
from headstart.models.auto.posterior import AutoFitResult, AutoPosterior, in_units, with_point_estimate
from headstart.models.auto.relation import agreement_of
from headstart.models.auto.scores import REFITS, refits_up_to, scores_of
from headstart.models.auto.source_selection import max_sources_of, selected_sources, selection_size
from headstart.models.chain.layer import Layer
from headstart.models.learning import LearnContext
from headstart.models.mixture import Mixture
from headstart.models.model import Prior, TransferModel
from headstart.models.params import AutoParams, ModelParams
from headstart.models.posterior import TransferPosterior
from headstart.models.refits import (
    at_last_refit,
    fit_of_long,
    fitted_on_representative_rows,
    is_long,
    refit_size,
    with_appended_rows,
)
from headstart.models.sequential import SequentialPrior, SinglePrior
from headstart.models.star.independent import IndependentSources, fit_independently, fit_pooled, rows_pooled
from headstart.models.star.star import Star, StarPrior
from headstart.tuning import AUTO_TUNING

# A candidate that uses the sources, and of a star θ, at which a later fit can begin
_Fitted = tuple[TransferPosterior, Float[Tensor, "P p"] | None]


@dataclass(frozen=True, kw_only=True)
class Auto(TransferModel):
    """Several models, averaged by how well they predicted.

    Args:
        candidates: The models, with their prior beliefs. Exactly one of them is plain (GPBO), without sources.
        kernel: The kernel of all candidates.
        fit: How the hyperparameters of all candidates are found.
        units: Where output units come from; of AUTO always the sources, in common.
        output_map: Whether outputs go through a monotone map first.
    """

    candidates: tuple[Candidate, ...] = DEFAULT

    paper_units = OutputUnits.SHARED

    def __post_init__(self) -> None:
        """Check the candidates."""
        super().__post_init__()
        require_candidates(self.candidates)
        if self.units is not OutputUnits.SHARED:
            raise InputError("AUTO's candidates are compared in one unit: units must be OutputUnits.SHARED.")

    @property
    def names(self) -> tuple[str, ...]:
        """The candidates' names, in their order."""
        return tuple(candidate.name for candidate in self.candidates)

    @property
    def plain(self) -> int:
        """The index of the candidate without sources."""
        return next(k for k, candidate in enumerate(self.candidates) if not candidate.informed)

    def _models(self) -> tuple[TransferModel, ...]:
        # the data come to the candidates through AUTO's own output map
        return tuple(
            candidate.model.using(kernel=self.kernel, fit=self.fit, output_map=OutputMap.NONE)
            for candidate in self.candidates
        )

    def _for(self, sources: Sequence[Dataset]) -> Self:
        """The model that is learnt from these sources: one, or so many that some are selected, are not pooled."""
        if 1 < len(sources) <= max_sources_of(sources):
            return self
        return self.using(candidates=tuple(candidate for candidate in self.candidates if not candidate.pooled))

    def _learn(self, sources: tuple[Dataset, ...], seed: Seed, context: LearnContext) -> AutoPrior:
        auto, generator = self._for(sources), generator_from(seed)
        models = auto._models()
        # stars and the plain process are compared on the sources
        compared = [k for k, model in enumerate(models) if weighting_of(model) is not None or k == auto.plain]

        # 1. every source on its own
        alone = fit_independently(sources, auto, seed, context)
        # 2. gate: how far each source is trusted, on its own or together with the others
        gate, as_one = informative(alone.layers, [alone.known.inward(source) for source in sources]), None
        if any(candidate.pooled for candidate in auto.candidates):
            as_one = fit_pooled(alone, auto, seed, context)
            rows = as_one.known.inward(as_one.sources[0])
            together = informative_together(as_one.layers[0], rows, rows_pooled(sources))
            gate = gate.where(gate.trust >= together.trust, together)
        alone = replace(alone, trust=gate.trust)
        if as_one is not None and bool((gate.trust < 1).any()):
            as_one = fit_pooled(alone, auto, seed, context)
        # 3. and 4. likeness: every source, or those selected of many, predicted from the others by the candidates
        alike = likeness(
            selected_sources(alone),
            [one if isinstance(one := models[k], Star) else None for k in compared],
            [auto.candidates[k].believed for k in compared],
            auto.kernel,
            context,
            as_one,
        )
        # 5. beliefs: as the candidates predicted the sources, as far as the sources are trusted
        believed = gate.trust.new_tensor([candidate.believed for candidate in auto.candidates])
        believed = believed.expand(*gate.trust.shape[:-1], -1).clone()
        believed[..., compared] = alike.believed * believed[..., compared].sum(-1, keepdim=True)
        believed = beliefs_given_trust(believed, gate.trust, auto.candidates)
        # 6. the candidates' priors; the first star has the target's own part from likeness
        priors: list[Prior] = []
        for k, model in enumerate(models):
            match model:
                case Star() if as_one is not None and model.pooled:
                    priors.append(model.upon(as_one))
                case Star():
                    star = model.upon(alone)
                    if k == compared[0]:
                        star = replace(star, own=alike.own, expected=alike.expected)
                    priors.append(star)
                case _:
                    priors.append(model.learn(sources, seed=generator, context=context))
        # those of the sources on their own, then of the candidates that learnt the sources in another way
        further = (report for prior in priors if not isinstance(prior, StarPrior) for report in prior.fit_reports)
        return AutoPrior(
            model=auto,
            sources=sources,
            fit_reports=(*alone.reports, *further),
            alone=alone,
            priors=tuple(priors),
            gate=gate,
            believed=believed,
        )

    def _at(self, params: ModelParams, sources: tuple[Dataset, ...], target: Dataset) -> TransferPosterior:
        if not isinstance(params, AutoParams):
            raise InputError(f"AUTO takes AutoParams, but got {type(params).__name__}.")
        params.require()
        n = len(params.candidates)
        auto = self if n == len(self.candidates) else self._for(sources)
        if n != len(auto.candidates):
            raise InputError(f"AUTO has {len(auto.candidates)} candidates, but {n} are given.")
        posteriors = [
            model.at(own, sources=sources if model.needs_sources else (), target=target)
            for model, own in zip(auto._models(), params.candidates, strict=True)
        ]
        units, weights = Units.identity(target), params.weights.expand(*target.batch_shape, -1).to(target.X.device)
        members = tuple(in_units(units, posterior, target) for posterior in posteriors)
        own = AutoParams(tuple(posterior.hyperparameters for posterior in posteriors), weights)
        return AutoPosterior(Mixture(members, weights), AutoFitResult(units, own), target.y)


@dataclass(frozen=True, kw_only=True)
class AutoPrior(Prior):
    """The candidates as learnt from the sources.

    The seed of ``condition`` changes nothing: fits begin at points that depend on the number of results alone. So what
    was worked out for a target can be cached, for the next step and for explanations, and is the same when it is not.
    """

    model: Auto
    alone: IndependentSources
    priors: tuple[Prior, ...]
    gate: Informative
    believed: Float[Tensor, "*b k"]  # of every candidate before the first result

    @property
    def stars(self) -> list[int]:
        """The indices of the candidates that have a weight for every source."""
        return [k for k, one in enumerate(self.priors) if isinstance(one, StarPrior) and not one.model.pooled]

    @cached_property
    def agreement(self) -> Float[Tensor, "s s"]:
        """How the sources predict each other (models.auto.relation); of very many nothing but that each is itself."""
        if len(self.sources) > AUTO_TUNING.max_small_sources:
            return torch.eye(len(self.sources), dtype=torch.float64)
        return agreement_of(self.alone)

    def after(self, target: Dataset, n: int, k: int) -> TransferPosterior:
        """Candidate k, which uses the sources, given the first n observations of the target."""
        if 0 < n == target.n:
            return self.given(target)[k]
        return self._informed(target.head(refit_size(n)), target.head(n))[k - (k > self.model.plain)]

    def given(self, target: Dataset) -> tuple[TransferPosterior, ...]:
        """All candidates given the target behind its output map, with the hyperparameters of its last refit."""
        seen = target.head(refit_size(target.n))
        return self._cache.get(
            "candidates", target, lambda: self._with_plain(self._informed(seen, target), self._plain(target)), keep=1
        )

    def selected(self, target: Dataset) -> IndependentSources:
        """The sources that are used, given the target's results (models.auto.source_selection)."""
        seen = target.head(selection_size(target.n))
        return self._cache.get("selected", seen, lambda: selected_sources(self.alone, seen))

    def _condition(self, target: Dataset, seed: Seed) -> AutoPosterior:  # noqa: ARG002
        units = self.alone.units.completed(target)
        posteriors, scores, k = self.given(target), self._scores(target), self.model.plain
        weights = candidate_weights(scores, self.believed)[..., -1]
        members = tuple(in_units(units, posterior, target) for posterior in posteriors)
        plain = with_point_estimate(members[k], weights[..., k] < AUTO_TUNING.plain_mixture_from_weight)
        outcome = AutoFitResult(
            units,
            AutoParams(tuple(posterior.hyperparameters for posterior in posteriors), weights),
            (*self.fit_reports, *(posterior.fit_reports[-1] for posterior in posteriors)),
            blind=~self.gate.open.any(-1),
            scores=scores,
        )
        return AutoPosterior(Mixture((*members[:k], plain, *members[k + 1 :]), weights), outcome, target.y)

    def _scores(self, target: Dataset) -> Float[Tensor, "*b k n"]:
        """Every candidate's scores of every value, in mapped units.

        Values between two refits are predicted from the first of them, so those before the last refit are cached.
        """
        refits = refits_up_to(target.n)
        if not refits:
            return target.y.new_zeros(*target.batch_shape, len(self.priors), target.n)
        seen = target.head(refits[-1])
        before = self._cache.get("scores", seen, lambda: self._scores(seen))
        plain = with_appended_rows(self._cache.get("plain, scored", seen, lambda: self._plain_to_score(seen)), target)
        new = []
        for posterior in self._with_plain(self._informed(seen, target), plain):
            # in units of its own: where the sources have none those of the first values are not those of all
            layer = posterior.predictor
            assert isinstance(layer, Layer)
            new.append(scores_of(layer.L, layer.z)[..., seen.n :] - posterior.units.scale.log().unsqueeze(-1))
        return torch.cat([before, torch.stack(new, dim=-2)], dim=-1)

    def _with_plain(
        self, informed: tuple[TransferPosterior, ...], plain: TransferPosterior
    ) -> tuple[TransferPosterior, ...]:
        k = self.model.plain
        return (*informed[:k], plain, *informed[k:])

    def _informed(self, seen: Dataset, target: Dataset) -> tuple[TransferPosterior, ...]:
        """The candidates with sources given the target, with the hyperparameters of its first rows, ``seen``."""
        fitted = self._informed_at(seen)
        if seen.n == target.n:
            return tuple(posterior for posterior, _ in fitted)
        at = self.selected(seen).locate(target.X[..., seen.n :, :])
        informed = (k for k in range(len(self.priors)) if k != self.model.plain)
        return tuple(
            with_appended_rows(posterior, target, at if k in self.stars else None)
            for k, (posterior, _) in zip(informed, fitted, strict=True)
        )

    def _informed_at(self, seen: Dataset) -> tuple[_Fitted, ...]:
        """The candidates with sources fitted to these rows; only refits that are needed again are cached."""
        if seen.n in (0, *REFITS) or is_long(seen.n):
            return self._cache.get("informed", seen, lambda: self._fit_informed(seen))
        return self._fit_informed(seen)

    def _fit_informed(self, seen: Dataset) -> tuple[_Fitted, ...]:
        n, selected = seen.n, self.selected(seen)
        at = selected.locate(seen.X)
        # of a long target a fit begins where that of the last refit ended
        before = self._informed_at(seen.head(refits_up_to(n)[-1])) if is_long(n) else None
        fitted: list[_Fitted] = []
        for k, prior in enumerate(prior for prior in self.priors if not isinstance(prior, SinglePrior)):
            if isinstance(prior, StarPrior):
                used = (prior.alone, prior.alone.locate(seen.X)) if prior.model.pooled else (selected, at)
                fitted.append(prior.found(seen, n, *used, None if before is None else before[k][1]))
            elif isinstance(prior, SequentialPrior) and is_long(n):
                later = replace(prior, model=prior.model.using(fit=fit_of_long(prior.model.fit)))
                fitted.append((fitted_on_representative_rows(partial(later._fitted, seed=n), seen), None))
            else:
                fitted.append((prior.condition(seen, seed=n), None))
        return tuple(fitted)

    def _plain(self, target: Dataset) -> TransferPosterior:
        """GPBO to the last bit; a target whose spread is unknown is expected to vary as the sources do."""

        def fitted(seen: Dataset, _: Seed) -> TransferPosterior:
            varies = Units.of([seen]).scale > 0 if seen.n > 1 else seen.y.new_zeros(seen.batch_shape).bool()
            return self._fit_plain(seen, own_units=varies)

        return at_last_refit(fitted, target, 0, self._cache)

    def _plain_to_score(self, seen: Dataset) -> TransferPosterior:
        """The plain process as it is scored: in the sources' units, at point estimates of its hyperparameters.

        Two or three values that happen to be close say nothing of a spread: in its own units it would be too sure of
        the next one, and lose its weight for good. From five values on it has its own units where they vary by another
        order of magnitude than the sources.
        """
        units, own = self.alone.units.completed(seen), Units.of([seen])
        apart = (own.scale / units.scale).log().abs() > math.log(AUTO_TUNING.own_scale_ratio)
        known = (own.scale > 0) & (seen.n >= AUTO_TUNING.own_scale_from_results)
        return self._fit_plain(seen, own_units=apart & known, draws=0)

    def _fit_plain(
        self, target: Dataset, *, own_units: Bool[Tensor, "*b"], draws: int | None = None
    ) -> TransferPosterior:
        """The plain process in the target's own units in some problems of a batch, in the sources' in the others."""
        units, own = self.alone.units.completed(target), Units.of([target])
        known = Units(torch.where(own_units, own.offset, units.offset), torch.where(own_units, own.scale, units.scale))
        prior = self.priors[self.model.plain]
        assert isinstance(prior, SinglePrior)
        fit = prior.model.fit
        fit = fit if draws is None else replace(fit, draws=draws)
        fit = fit_of_long(fit) if is_long(target.n) else fit
        prior = replace(prior, model=prior.model.using(fit=fit), known=known)
        return fitted_on_representative_rows(lambda rows: prior._fitted(rows, target.n), target)
