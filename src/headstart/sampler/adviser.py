"""The adviser behind the sampler: what the next trial of a study should run with.

One suggestion, whoever asks first, Optuna for all parameters or the objective for one of them:

    the whole space     every parameter that trials or sources know, and when it is there    sampler.whole_space
    the sources in it   aligned, and learnt from, once as long as the space stays the same   sources.alignment
    the study in it     results, points that are awaited                                     sampler.trials
    the choice          noted in the storage for all other workers to see                    sampler.strategy
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from headstart.data.dataset import Dataset
from headstart.data.rules.rule import SettingRule
from headstart.data.space import Space
from headstart.decide.stopping import Outlook, outlook
from headstart.errors import NoPlaceError, NumericalError
from headstart.models.model import Prior
from headstart.sampler.settings.constraints import SettingConstraints, TrialDomain, values_of_late_parameter
from headstart.sampler.several.learner import Learner
from headstart.sampler.strategy import Strategy, how_often
from headstart.sampler.suggested import Suggested, find_clash
from headstart.sampler.trials import SeenTrials, fixed_parameters, note, noted
from headstart.sampler.whole_space import WholeSpace, clip_value
from headstart.sampler.words import Words
from headstart.sources.alignment import Alignment
from headstart.sources.extremes import infinite_in_words, outliers_in_words

if TYPE_CHECKING:
    from optuna import Study
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

_ROUNDS = 8  # how often a suggestion that clashes with another worker's is made again, in case many ask at once
_PAUSE = 0.02  # seconds, on average half of it; twice as long after every further clash
_RECENT = 16  # suggestions that are kept for parameters that are asked for late
_SINGLE = "it had a single value so far"


@dataclass
class Adviser:
    """The sources, what was learnt from them, and the latest suggestion of this process."""

    learner: Learner
    entropy: int
    settings: SettingConstraints = field(default_factory=SettingConstraints)
    last: Suggested | None = None
    _recent: dict[int, Suggested] = field(default_factory=dict)  # by trial number: threads have one each
    _lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def words(self) -> Words:
        """What is said."""
        return self.learner.words

    @property
    def strategy(self) -> Strategy:
        """How the next point is chosen."""
        return self.learner.strategy

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
            whole = self.learner.whole_space(study, trials).with_also(asked or {})
            if all(distribution.single() for distribution in whole.distributions.values()):
                return {}
            try:
                learnt = self.learner.learn(study, whole, trials)
                self._tell(learnt.alignment, whole)
                space = learnt.alignment.space
                self.learner.tell_of_errors(study, trials)
                looking = self.learner.looking(study, learnt, trial.number)
                seen = looking(trials)
                remarks = self._on_results(learnt.prior, seen) if learnt.outcomes is None else ()
                known = learnt.condition(seen, trials, seed=self.seed(trial.number))
                if learnt.alignment.datasets and learnt.trusts_nothing(known):
                    self.words.nothing_trusted(len(learnt.alignment.datasets))
                allowed = self._domain(trial, space, whole)
                for round_ in range(_ROUNDS):
                    x = self.strategy.choose(known, allowed.domain, seen, seed=self.seed(trial.number, round_))
                    params = allowed.params(x)
                    note(study, trial, params)
                    pause = self._pause(trial.number, round_)
                    clash = find_clash(x, seen, lambda: looking(study.get_trials(deepcopy=False)), pause)
                    if clash is None or round_ == _ROUNDS - 1:
                        break
                    note(study, trial, {})  # so that the other one sees that it may stay
                    seen = replace(clash, target=seen.target)
            except NumericalError as error:
                self.words.failed(trial.number, error)
                params = self._without_model(trial, whole)
                note(study, trial, params)
                return params
            if allowed.rows is not None and how_often(x.unsqueeze(0), torch.cat([seen.target.X, seen.pending])) > 0:
                self.words.used_up(len(allowed.rows))
            self.last = learnt.suggested(trial.number, params, x, known, remarks)
            self._recent[trial.number] = self.last
            for number in list(self._recent)[:-_RECENT]:
                del self._recent[number]
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
            if name not in self._expected(study):
                self.settings.require_listed(name)
                raise NoPlaceError(self._why_unknown)
            params = self.suggest(study, trial)
            if not params and noted(study._storage.get_trial(trial._trial_id)) is None:
                raise NoPlaceError(_SINGLE)
        if name in params:
            found = _offered(params[name], name, distribution)
            if self.settings and not (
                found == [params[name]] and (self.learner.space or self._expected(study)[name] == distribution)
            ):
                # what was chosen is not offered, and what is near it may break a rule: choose again
                params = self.suggest(study, trial, {name: distribution})
                found = _offered(params[name], name, distribution) if name in params else []
            if found:
                return found[0]
        if not params:
            raise NoPlaceError("the model failed")
        self.settings.require_listed(name)
        return self._late_value(study, trial, name, distribution, {**params, **trial.params})

    def forget(self, number: int) -> None:
        """A trial has ended, and will ask for no further parameter: what its suggestion rests on is not kept."""
        self._recent.pop(number, None)

    def _expected(self, study: Study) -> Mapping[str, BaseDistribution]:
        """The parameters that are there to be chosen, as far as anybody knows."""
        return self.learner.whole_space(study, study.get_trials(deepcopy=False)).distributions

    def _late_value(
        self, study: Study, trial: FrozenTrial, name: str, distribution: BaseDistribution, params: Mapping[str, Any]
    ) -> Any:
        last = self._recent.get(trial.number)
        if last is None or name not in last.alignment.space.names:
            raise NoPlaceError(self._why_unknown)
        axis = next(axis for axis in last.alignment.space.axes if axis.name == name)
        if axis.width == 0:
            raise NoPlaceError(_SINGLE)
        with self._lock, _on_cpu():
            rules = self._rules(self.learner.whole_space(study, study.get_trials(deepcopy=False)))
            domain = values_of_late_parameter(last.alignment.space, axis, params, rules)
            x = self.strategy.ask(last.several or last.posterior, domain, seed=self.seed(trial.number, name))
            found = axis.value(x[axis.columns].unsqueeze(0))[0]
            note(study, trial, {**params, name: found})
        return clip_value(found, name, distribution)

    def _rules(self, whole: WholeSpace) -> tuple[SettingRule, ...]:
        return self.settings.read(whole.every, final=self.learner.space is not None)

    def begin(self, study: Study, trial: FrozenTrial) -> None:
        """Raise an ``InputError`` if a rule is about what nobody knows; say which ones the trial was given against."""
        if self.settings:
            rules = self._rules(self.learner.whole_space(study, study.get_trials(deepcopy=False)))
            self.settings.warn_of_broken(rules, fixed_parameters(trial), trial.number, self.words.of_rules)

    def _domain(self, trial: FrozenTrial, space: Space, whole: WholeSpace) -> TrialDomain:
        pinned = {n: v for n, v in fixed_parameters(trial).items() if n in space.names}
        return self.settings.domain(space, pinned, self._rules(whole), trial.number, self.words.of_rules)

    def _without_model(self, trial: FrozenTrial, whole: WholeSpace) -> dict[str, Any]:
        """Where there are rules, a setting that keeps them; otherwise nothing, and somebody else draws."""
        if not self.settings:
            return {}
        allowed = self._domain(trial, Space.of(whole.distributions, conditions=whole.conditions), whole)
        return allowed.params(allowed.random_point(self.seed(trial.number, "drawn")))

    @property
    def _why_unknown(self) -> str:
        if self.learner.space is not None:
            return "it is no part of the space that was given"
        return "no source and no finished trial has it"

    # ── what it rests on ──────────────────────────────────────────────────────────────────────────────────────────

    def prior_and_results(self, study: Study, outcome: str | None = None) -> tuple[Prior, Dataset]:
        """What was learnt from the sources of an outcome and the study's own results, without a suggestion."""
        with self._lock, _on_cpu():
            trials = study.get_trials(deepcopy=False)
            learnt = self.learner.learn(study, self.learner.whole_space(study, trials), trials)
            seen = self.learner.looking(study, learnt, -1)(trials)
            return learnt.of(outcome, seen, trials)

    def outlook(self, study: Study) -> Outlook:
        """What the next trials of the study are expected to gain."""
        with self._lock, _on_cpu():
            trials = study.get_trials(deepcopy=False)
            whole = self.learner.whole_space(study, trials)
            if all(distribution.single() for distribution in whole.distributions.values()):
                return Outlook(None, 1, 0, thing="trial")
            learnt, number = self.learner.learn(study, whole, trials), len(trials)
            space = learnt.alignment.space
            seen = self.learner.looking(study, learnt, -1)(trials)
            known = learnt.condition(seen, trials, seed=self.seed(number))
            allowed = self.settings.domain(space, {}, self._rules(whole), number, self.words.of_rules)
            once = self.strategy.tries_once(allowed.domain)
            found = outlook(
                known,
                allowed.domain,
                pending=seen.pending,
                avoid=seen.target.X if once else None,
                seed=self.seed(number, "outlook"),
            )
        names = getattr(study, "metric_names", None)
        return replace(found, objective=names[0] if names else found.objective, thing="trial")

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
        dropped = ("_lock", "last", "_recent")
        return {name: value for name, value in vars(self).items() if name not in dropped}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """With a lock of its own."""
        vars(self).update(state, _lock=threading.RLock(), last=None, _recent={})


def _on_cpu() -> AbstractContextManager[Any]:
    """Small matrices stay on the CPU, also where torch's default device is another."""
    return nullcontext() if torch.get_default_device().type == "cpu" else torch.device("cpu")


def _offered(value: Any, name: str, distribution: BaseDistribution) -> list[Any]:
    """The value, or the nearest one that is offered; nothing where it is a category that is no more."""
    try:
        return [clip_value(value, name, distribution)]
    except NoPlaceError:
        return []
