"""``Learner``: from the sources and a study to what was learnt for it, of the one objective or of every outcome.

Alignment and learning happen once as long as the space stays the same; what was learnt is kept by content
(sampler.model_cache).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import optuna

from headstart.errors import NothingInCommonError
from headstart.sampler.model_cache import ModelCache
from headstart.sampler.several.learnt import Learnt
from headstart.sampler.several.outcomes import decided, measured_by, no_outcome_in_words, outcomes_of
from headstart.sampler.strategy import Strategy
from headstart.sampler.trials import SeenTrials, see
from headstart.sampler.whole_space import SourceSpace, WholeSpace
from headstart.sampler.words import Words
from headstart.sources.alignment import Alignment, align, split, with_any_result
from headstart.sources.extremes import with_outliers
from headstart.sources.forms.naming import ErrorNames, errors_of_trials
from headstart.sources.forms.studies import is_same_study
from headstart.sources.raw import RawObjective, RawTask

if TYPE_CHECKING:
    from optuna import Study
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial


@dataclass
class Learner:
    """The sources, the model that learns from them, and the space if it was given.

    ``listed`` is a list of settings to try, whose parameters are then all there are; ``order`` are the objectives as
    they were named one after the other, and ``errors`` is where the standard errors of the results are.
    """

    sources: Sequence[RawTask]
    strategy: Strategy
    space: Mapping[str, BaseDistribution] | None
    fill: Mapping[str, Any]
    cache: ModelCache
    words: Words
    listed: RawTask | None = None
    order: tuple[str, ...] = ()
    errors: ErrorNames = field(default_factory=ErrorNames)
    _own: dict[str, tuple[RawTask, ...]] = field(default_factory=dict)  # the sources of a study, by its name
    _known: dict[str, SourceSpace] = field(default_factory=dict)
    _aligned: tuple[Any, Alignment] | None = None  # the latest, with what it was asked for

    def require_common_ground(self) -> None:
        """Say what becomes of the sources in a space that is given, whatever the direction; fail if none is of use."""
        if self.space is None or not self.sources:
            return
        ways = [
            align(
                [_with_every_row(t) for t in self.sources], self.space, fill=self.fill, minimize=minimize, strict=False
            )
            for minimize in (True, False)
        ]
        if not ways[0].datasets:
            raise NothingInCommonError(
                f"No source has anything in common with the space ({', '.join(self.space)}): "
                f"{'; '.join(str(decision) for decision in ways[0].decisions)}."
            )
        for decision in ways[0].warnings:
            if decision in ways[1].warnings:
                self.words.say_of(decision)

    def whole_space(self, study: Study, trials: Sequence[FrozenTrial]) -> WholeSpace:
        """Every parameter that the study's trials or its sources know."""
        name = study.study_name
        if name not in self._known:
            self._known[name] = SourceSpace.of(self.sources_of(study), self.listed)
        return self._known[name].with_trials(trials, self.space)

    def sources_of(self, study: Study) -> tuple[RawTask, ...]:
        """The sources but the study itself, which would count twice."""
        name = study.study_name
        if name not in self._own:
            self._own[name] = tuple(task for task in self.sources if not is_same_study(task, study))
            if len(self._own[name]) < len(self.sources):
                self.words.own_study_left_out(name)
        return self._own[name]

    def learn(self, study: Study, whole: WholeSpace, trials: Sequence[FrozenTrial]) -> Learnt:
        """What was learnt for the study in this space."""
        sources = self.sources_of(study)
        outcomes = outcomes_of(study, trials, sources)
        elsewhere = {name for t in trials for name in t.distributions}
        minimize = study.directions[0] != optuna.study.StudyDirection.MAXIMIZE
        asked = (study.study_name, whole, elsewhere, minimize, outcomes)
        if outcomes is None:
            sources = tuple(decided(task, study) for task in sources)
        if self._aligned is None or self._aligned[0] != asked:
            known: Sequence[RawTask | None] = sources
            if outcomes is not None:
                known = [with_any_result(task, measured_by(task, outcomes, self.order)) for task in sources]
                for task, usable in zip(sources, known, strict=True):
                    if usable is None:
                        self.words.not_used(no_outcome_in_words(task, outcomes))
            found = align(
                [task for task in known if task is not None],
                whole.distributions,
                fill=self.fill,
                minimize=minimize,
                elsewhere=elsewhere,
                conditions=whole.conditions,
                strict=False,
            )
            self._aligned = (asked, found)
        alignment = self._aligned[1]
        if outcomes is None:
            prior = self.cache.learn(self.strategy.model_for(alignment.datasets), alignment.datasets)
            told = with_outliers(alignment, prior.outliers).noting(report.note for report in prior.fit_reports)
            return Learnt(told, minimize, {"": prior}, errors=self.errors)
        priors = {}
        measured = {task.name: measured_by(task, outcomes, self.order) for task in sources}
        for name, own in split(alignment, measured, outcomes).items():
            priors[name] = self.cache.learn(self.strategy.model_for(own.datasets), own.datasets)
        return Learnt(alignment, minimize, priors, outcomes, self.errors)

    # ── the study's own results ───────────────────────────────────────────────────────────────────────────────────

    def looking(self, study: Study, learnt: Learnt, own: int) -> Callable[[Sequence[FrozenTrial]], SeenTrials]:
        """How the trials of a study are seen, but for number ``own``."""
        error = None
        if learnt.outcomes is None:
            names = getattr(study, "metric_names", None)  # which the part of a study behind a pruner does not have
            error = self.errors.of_objective((names or ["0"])[0], 0, 1, "The study")
        return partial(
            see, space=learnt.alignment.space, own=own, minimize=learnt.minimize, fill=self.fill, error=error
        )

    def tell_of_errors(self, study: Study, trials: Sequence[FrozenTrial]) -> None:
        """Say which trials state an error that is none: nobody can correct a trial that has ended."""
        for attribute in self.errors.every:
            for complaint in errors_of_trials(trials, attribute, f"Study {study.study_name!r}")[1]:
                self.words.wrong_error(complaint)

    # ── pickling ──────────────────────────────────────────────────────────────────────────────────────────────────

    def __getstate__(self) -> dict[str, Any]:
        """The sources and the options: what was learnt is learnt again, or found in the cache's folder."""
        return {name: value for name, value in vars(self).items() if name not in ("_aligned", "_known", "_own")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """With nothing learnt yet."""
        vars(self).update(state, _aligned=None, _known={}, _own={})


def _with_every_row(task: RawTask) -> RawTask:
    """Of a task that knows several outcomes, all rows that know one."""
    every = {"": RawObjective(task.y), **task.objectives}
    return (with_any_result(task, every) or task) if task.undecided else task
