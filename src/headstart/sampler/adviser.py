"""The adviser behind the sampler: what the next trial of a study should run with.

One suggestion, whoever asks first, Optuna for all parameters or the objective for one of them:

    the whole space     every parameter that trials or sources know, and when it is there    sampler.whole_space
    the sources in it   aligned, and learnt from, once as long as the space stays the same   sources.alignment
    the study in it     results, points that are awaited                                     sampler.trials
    the choice          noted in the storage for all other workers to see                    sampler.strategy
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import optuna
import torch

from headstart.data.conditions import Condition
from headstart.data.dataset import Dataset
from headstart.data.space import Space
from headstart.decide.domain import Candidates, Mixed
from headstart.errors import NoPlaceError, NothingInCommonError, NumericalError
from headstart.models.model import Prior
from headstart.sampler.model_cache import ModelCache
from headstart.sampler.several.learnt import Learnt
from headstart.sampler.several.outcomes import decided, measured_by, outcomes_of
from headstart.sampler.strategy import Strategy
from headstart.sampler.suggested import Suggested, find_clash
from headstart.sampler.trials import SeenTrials, fixed_parameters, note, noted, see
from headstart.sampler.whole_space import SourceSpace, WholeSpace, clip_value
from headstart.sampler.words import Words
from headstart.sources.aligned import Alignment
from headstart.sources.alignment import align
from headstart.sources.extremes import infinite_in_words, outliers_in_words, with_outliers
from headstart.sources.forms.studies import is_same_study
from headstart.sources.outcomes import split, with_any_result
from headstart.sources.raw import RawTask

if TYPE_CHECKING:
    from optuna import Study
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

__all__ = ["Adviser"]

_ROUNDS = 8  # how often a suggestion that clashes with another worker's is made again, in case many ask at once
_PAUSE = 0.02  # seconds, on average half of it; twice as long after every further clash
_SINGLE = "it had a single value so far"
_VALUES = 64  # of a parameter that is chosen on its own, so many are compared


@dataclass
class Adviser:
    """The sources, what was learnt from them, and the latest suggestion of this process."""

    sources: Sequence[RawTask]
    strategy: Strategy
    space: Mapping[str, BaseDistribution] | None
    fill: Mapping[str, Any]
    cache: ModelCache
    entropy: int
    last: Suggested | None = None
    words: Words = field(default_factory=Words)
    _own: dict[str, tuple[RawTask, ...]] = field(default_factory=dict)  # the sources of a study, by its name
    _known: dict[str, SourceSpace] = field(default_factory=dict)
    _aligned: tuple[Any, Alignment] | None = None  # the latest, with what it was asked for
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def require_common_ground(self) -> None:
        """Say what becomes of the sources in a space that is given, whatever the direction; fail if none is of use."""
        if self.space is None or not self.sources:
            return
        ways = [
            align(self.sources, self.space, fill=self.fill, minimize=minimize, strict=False)
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

    # ── what a trial runs with ────────────────────────────────────────────────────────────────────────────────────

    def suggest(
        self, study: Study, trial: FrozenTrial, asked: Mapping[str, BaseDistribution] | None = None
    ) -> dict[str, Any]:
        """Parameters for the trial, those that are ``asked`` for among them.

        None where nobody knows any, and where the arithmetic failed.

        Threads take turns, so that each sees what the others were given. Another process may ask between our looking
        and our noting: older trials that have no parameters yet are assumed to take the best points, and what turns
        out to clash afterwards is chosen again. Of two that clash one is enough, or both would meet again at the next
        best point: each waits for a moment of its own length, and stays if the other has withdrawn by then.
        """
        with self._lock, _on_cpu():
            trials = study.get_trials(deepcopy=False)
            whole = self.whole_space(study, trials).with_also(asked or {})
            if all(distribution.single() for distribution in whole.distributions.values()):
                return {}
            try:
                learnt = self._learn(study, whole, trials)
                self._tell(learnt.alignment, whole)
                space = learnt.alignment.space
                looking = partial(see, space=space, own=trial.number, minimize=learnt.minimize, fill=self.fill)
                seen = looking(trials)
                remarks = self._on_results(learnt.prior, seen) if learnt.outcomes is None else ()
                known = learnt.condition(seen, trials, seed=self.seed(trial.number))
                if learnt.alignment.datasets and learnt.trusts_nothing(known):
                    self.words.nothing_trusted(len(learnt.alignment.datasets))
                domain = Mixed(space, pinned=_pinned(trial, space))
                for round_ in range(_ROUNDS):
                    x = self.strategy.choose(known, domain, seen, seed=self.seed(trial.number, round_))
                    params = space.decode(x.unsqueeze(0))[0]
                    note(study, trial, params)
                    pause = self._pause(trial.number, round_)
                    clash = find_clash(x, seen, lambda: looking(study.get_trials(deepcopy=False)), pause)
                    if clash is None or round_ == _ROUNDS - 1:
                        break
                    note(study, trial, {})  # so that the other one sees that it may stay
                    seen = replace(clash, target=seen.target)
            except NumericalError as error:
                self.words.failed(trial.number, error)
                note(study, trial, {})
                return {}
            self.last = learnt.suggested(trial.number, params, x, known, remarks)
        for key, text in learnt.attributes(known).items():
            study._storage.set_trial_user_attr(trial._trial_id, key, text)
        return params

    def value(self, study: Study, trial: FrozenTrial, name: str, distribution: BaseDistribution) -> Any:
        """One parameter of the trial, fitted into what the objective asks for.

        A ``NoPlaceError`` says why there is none. A parameter of which the suggestion thought that it would not be
        there is chosen now, the others as they are.
        """
        params = noted(trial)
        if params is None:
            # whoever asks for a parameter that is known makes the suggestion, with those drawn before as they are
            if name not in self.whole_space(study, study.get_trials(deepcopy=False)).distributions:
                raise NoPlaceError(self._why_unknown)
            params = self.suggest(study, trial)
            if not params and noted(study._storage.get_trial(trial._trial_id)) is None:
                raise NoPlaceError(_SINGLE)
        if name in params:
            try:
                return clip_value(params[name], name, distribution)
            except NoPlaceError:
                pass  # a category that is no more
        if not params:
            raise NoPlaceError("the model failed")
        return self._late_value(study, trial, name, distribution, {**params, **trial.params})

    def _late_value(
        self, study: Study, trial: FrozenTrial, name: str, distribution: BaseDistribution, params: Mapping[str, Any]
    ) -> Any:
        last = self.last
        if last is None or last.trial_number != trial.number or name not in last.alignment.space.names:
            raise NoPlaceError(self._why_unknown)
        space = last.alignment.space
        loose = replace(space, conditions=tuple((n, Condition()) for n in space.names))  # whatever is not there yet
        axis = next(axis for axis in space.axes if axis.name == name)
        if axis.width == 0:
            raise NoPlaceError(_SINGLE)
        grid = axis.grid() if axis.count is not None and axis.count <= _VALUES else None
        if grid is None:
            grid = axis.snap(torch.linspace(0.0, 1.0, _VALUES, dtype=torch.float64).unsqueeze(-1))
        with self._lock, _on_cpu():
            X = loose.encode([{**params, name: value} for value in axis.value(grid)])
            own, X = X[:, axis.columns], space.rested(X)
            X[:, axis.columns] = own
            domain = Candidates(X, space.categories)
            x = self.strategy.ask(last.several or last.posterior, domain, seed=self.seed(trial.number, name))
            found = axis.value(x[axis.columns].unsqueeze(0))[0]
            note(study, trial, {**params, name: found})
        return clip_value(found, name, distribution)

    @property
    def _why_unknown(self) -> str:
        if self.space is not None:
            return "it is no part of the space that was given"
        return "no source and no finished trial has it"

    # ── what it rests on ──────────────────────────────────────────────────────────────────────────────────────────

    def whole_space(self, study: Study, trials: Sequence[FrozenTrial]) -> WholeSpace:
        """Every parameter that the study's trials or its sources know."""
        name = study.study_name
        if name not in self._known:
            self._known[name] = SourceSpace.of(self.sources_of(study))
        return self._known[name].with_trials(trials, self.space)

    def sources_of(self, study: Study) -> tuple[RawTask, ...]:
        """The sources but the study itself, which would count twice."""
        name = study.study_name
        if name not in self._own:
            self._own[name] = tuple(task for task in self.sources if not is_same_study(task, study))
            if len(self._own[name]) < len(self.sources):
                self.words.own_study_left_out(name)
        return self._own[name]

    def prior_and_results(self, study: Study, outcome: str | None = None) -> tuple[Prior, Dataset]:
        """What was learnt from the sources of an outcome and the study's own results, without a suggestion."""
        with self._lock, _on_cpu():
            trials = study.get_trials(deepcopy=False)
            learnt = self._learn(study, self.whole_space(study, trials), trials)
            seen = see(trials, learnt.alignment.space, own=-1, minimize=learnt.minimize, fill=self.fill)
            return learnt.of(outcome, seen, trials)

    def _learn(self, study: Study, whole: WholeSpace, trials: Sequence[FrozenTrial]) -> Learnt:
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
                known = [with_any_result(task, measured_by(task, outcomes)) for task in sources]
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
            return Learnt(with_outliers(alignment, prior.outliers), minimize, {"": prior})
        priors = {}
        measured = {task.name: measured_by(task, outcomes) for task in sources}
        for name, own in split(alignment, measured, outcomes).items():
            priors[name] = self.cache.learn(self.strategy.model_for(own.datasets), own.datasets)
        return Learnt(alignment, minimize, priors, outcomes)

    def _tell(self, alignment: Alignment, whole: WholeSpace) -> None:
        """Before the trial costs anything: what may be wrong with the sources or the space."""
        for decision in alignment.warnings:
            self.words.say_of(decision)
        for name in whole.gone:
            self.words.not_asked_for(name)

    def _on_results(self, prior: Prior, seen: SeenTrials) -> tuple[str, ...]:
        """What there is to say about the study's own results; that some are outliers is also logged, once."""
        far = outliers_in_words(prior, seen.target, seen.values, seen.numbers, "trial")
        if far:
            self.words.outliers(far)
        return tuple(remark for remark in (far, infinite_in_words(seen.values)) if remark)

    # ── chance ────────────────────────────────────────────────────────────────────────────────────────────────────

    def seed(self, number: int, purpose: int | str = "fit") -> int:
        """A seed of the trial's own, so that workers with equal seeds do not draw alike."""
        words = [self.entropy % (1 << 64), number, *str(purpose).encode()]
        return int(np.random.SeedSequence(words).generate_state(1)[0])

    def _pause(self, number: int, round_: int) -> float:
        """Seconds; another number for every trial and round."""
        return float(np.random.default_rng(self.seed(number, f"pause {round_}")).uniform(0, _PAUSE * 2**round_))

    # ── pickling ──────────────────────────────────────────────────────────────────────────────────────────────────

    def __getstate__(self) -> dict[str, Any]:
        """The sources and the options: what was learnt is learnt again, or found in the cache's folder."""
        dropped = ("_lock", "last", "_aligned", "_known", "_own")
        return {name: value for name, value in vars(self).items() if name not in dropped}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """With a lock of its own."""
        vars(self).update(state, _lock=threading.RLock(), last=None, _aligned=None, _known={}, _own={})


def _on_cpu() -> AbstractContextManager[Any]:
    """Small matrices stay on the CPU, also where torch's default device is another."""
    return nullcontext() if torch.get_default_device().type == "cpu" else torch.device("cpu")


def _pinned(trial: FrozenTrial, space: Space) -> dict[str, Any]:
    """What the trial runs with already: what it was enqueued with, and what the objective has asked for."""
    return {n: v for n, v in fixed_parameters(trial).items() if n in space.names}
