"""The adviser behind the sampler: what the next trial of a study should run with.

One suggestion, made when Optuna asks for all parameters or the objective for the first one:

    the study       its trials, read once, and every parameter that they or the sources know    sampler.space
    the sources     aligned to that space and learnt from, as long as it stays the same         sampler.outcomes
    the trials      encoded once: results and pending points                                    sampler.trials
    the domain      the points that rules, candidates and fixed parameters allow                sampler.settings
    the choice      noted in the storage for all other workers to see
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import optuna
import torch
from jaxtyping import Float
from optuna.trial import TrialState
from torch import Tensor

from headstart.data.ranges import Distribution, has_single_value
from headstart.data.rules.rule import SettingRule
from headstart.data.space import Space
from headstart.decide.acquisition import Acquisition
from headstart.decide.domain import Candidates, Domain
from headstart.decide.stopping import Outlook, outlook
from headstart.decide.suggest import suggest
from headstart.errors import InputError, NoPlaceError, NoPointLeftError, NumericalError, nearest
from headstart.gp.fit import generator_from
from headstart.models.learning import LearningProgress
from headstart.models.model import observed
from headstart.models.outcomes import OutcomePosteriors
from headstart.sampler.explanation import PREFIX, StudyExplanation, Suggested, explained, not_explained
from headstart.sampler.outcomes import SourceFitter, StudyPriors, prefix_of
from headstart.sampler.settings import SettingConstraints, TrialDomain, not_kept, values_of_late_parameter
from headstart.sampler.space import StudySnapshot, as_asked, clip_value
from headstart.sampler.trials import EncodedTrials, count_same, fixed_parameters, note, noted
from headstart.sources.alignment import infinite_in_words, outliers_in_words, own_outliers
from headstart.sources.forms.naming import errors_of_trials
from headstart.sources.optuna_api import set_attributes, study_attributes
from headstart.sources.raw import finite

if TYPE_CHECKING:
    from optuna import Study
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

_ROUNDS = 8  # how often a suggestion that clashes with another worker's is made again
_PAUSE = 0.02  # seconds, on average half of it; twice as long after every further clash
_RECENT = 16  # suggestions that are kept for parameters that are asked for late
_MAX_ASKING = 8  # workers asking at the same moment that are taken into account
_ELSEWHERE = 512  # points that are compared where the best one is pending
_SINGLE = "it had a single value so far"

LOGGER = "optuna.headstart"
logger = optuna.logging.get_logger(LOGGER)
# Seconds: progress is logged where learning takes longer than the first, and once in the second
_LONG, _INTERVAL = 2.0, 10.0


@dataclass
class SamplerLog:
    """The sampler's messages, through a child of Optuna's logger, so that Optuna's verbosity and handlers hold."""

    said: set[str] = field(default_factory=set)  # the warnings that were logged
    told: float = -math.inf  # when progress was

    def warn(self, text: str, key: str = "") -> None:
        """Log a warning unless one of the same key, by default its text, was logged."""
        if self.is_new(key or text):
            logger.warning(text)

    def is_new(self, key: str) -> bool:
        """Whether nothing of this key was logged; from now on it was."""
        new = key not in self.said
        self.said.add(key)
        return new

    def progress(self, now: LearningProgress) -> None:
        """Log how far learning is, every ten seconds where it takes long."""
        if now.share < 1 and now.seconds + now.left >= _LONG and time.time() - self.told >= _INTERVAL:
            self.told = time.time()
            logger.info("%s.", now)


@dataclass
class Adviser:
    """Makes the suggestions of one process; ``last`` is the latest."""

    fitter: SourceFitter
    settings: SettingConstraints
    log: SamplerLog
    entropy: int
    acquisition: Acquisition
    beta: float
    deterministic: bool  # repeating a finished trial is a waste
    last: Suggested | None = None
    _recent: dict[int, Suggested] = field(default_factory=dict)  # by trial number: threads have one each
    # what was read for the trial of that number, whose parameters Optuna asks for next
    _read: tuple[int, StudySnapshot] | None = None
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def relative_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """The parameters that are chosen before the objective asks: those that finished trials, or ``space``, know."""
        if self.settings:
            return {}  # Optuna would not ask again for those after one that is offered otherwise: a rule could break
        with self._lock:  # what a thread reads here holds until it suggests, or until another one does
            now = self.fitter.read(study)
            finished = {name for t in now.trials if t.state == TrialState.COMPLETE for name in t.params}
            found = {
                name: as_asked(distribution)
                for name, distribution in now.distributions.items()
                if not has_single_value(distribution) and (self.fitter.space is not None or name in finished)
            }
            self._read = (trial.number, now) if found else None
        return found

    def suggest(self, study: Study, trial: FrozenTrial, asked: Mapping[str, BaseDistribution]) -> dict[str, Any] | None:
        """Parameters for the trial, with those ``asked`` for; None if nothing can be chosen, {} if the model failed."""
        with self._lock, _on_cpu():  # threads take turns, so that each sees what the others were given
            kept, self._read = self._read, None
            fresh = kept is not None and kept[0] == trial.number and kept[1].study is study
            now = (kept[1] if kept is not None and fresh else self.fitter.read(study)).asking_for(
                self.fitter.ordered(asked)
            )
            if now.nothing_to_choose:
                return None
            try:
                found = self._suggested(now, trial)
            except NumericalError as error:
                logger.warning("Trial %s is not chosen by the model, which failed: %s", trial.number, error)
                params: dict[str, Any] = {}  # so that the independent sampler draws
                if self.settings:  # it does not know of rules
                    space = Space.of(now.distributions, conditions=now.conditions)
                    allowed, seed = self._domain(now, space, trial), self.seed(trial.number, "drawn")
                    params = allowed.params(allowed.domain.uniform(1, generator_from(seed))[0])
                note(study, trial, params)
                return params
            self.last = self._recent[trial.number] = found
            for number in list(self._recent)[:-_RECENT]:
                del self._recent[number]
        set_attributes(study, trial, found.attributes, user=True)
        return found.params

    def value(self, study: Study, trial: FrozenTrial, name: str, distribution: BaseDistribution) -> Any:
        """One parameter of the trial, fitted into what the objective asks for.

        A parameter that the suggestion held for inactive is chosen now, the others as they are. Raises a
        ``NoPlaceError`` with the reason where there is no value.
        """
        params, own = noted(trial), self.fitter.ordered({name: distribution})[name]
        if params is None:
            # the first parameter that is known leads to the suggestion, with those drawn before as they are
            with self._lock:
                now = self.fitter.read(study)
                if name not in now.distributions:
                    self.settings.require_listed(name)
                    raise NoPlaceError(self._why_unknown)
                self._read = trial.number, now
                params = self.suggest(study, trial, {})
            if params is None:
                raise NoPlaceError(_SINGLE)
        if name in params:
            found = _offered(params[name], name, own)
            if self.settings and not (found == [params[name]] and self._is_expected(study, trial, name, own)):
                # what was chosen is not offered, and what is near it may break a rule: choose again
                params = self.suggest(study, trial, {name: distribution}) or {}
                found = _offered(params[name], name, own) if name in params else []
            if found:
                return found[0]
        if not params:
            raise NoPlaceError("the model failed")
        self.settings.require_listed(name)
        return self._late_value(study, trial, name, own, {**params, **trial.params})

    def begin(self, study: Study, trial: FrozenTrial) -> None:
        """Raise an ``InputError`` if the study or a rule asks for what there is not; warn of rules the trial breaks."""
        self.fitter.require(study)
        if self.acquisition is Acquisition.LCB and len(study.directions) > 1:
            raise InputError(
                f"acquisition='ucb' is the bound of one objective, but the study has {len(study.directions)}. Use "
                "acquisition='logei', the default, or make constraints of the others."
            )
        self._begin_in_batch(study, trial)
        if self.settings:
            params = fixed_parameters(trial)
            for rule in self._rules(self.fitter.read(study)):
                if not rule.holds(params):
                    self.log.warn(not_kept(trial.number, params, f"the rule {str(rule)!r}", rule.parameters))

    def _begin_in_batch(self, study: Study, trial: FrozenTrial) -> None:
        """Write down that the trial belongs to the batch that the study says, if the trial says none."""
        named = self.fitter.batch
        if named.name is None:
            return
        told = study_attributes(study)
        if complaint := named.complaint(told.get(named.name)):
            raise InputError(f"Study {study.study_name!r}: {complaint}")
        now = named.label(told)
        if now is not None and named.label(trial.user_attrs) is None:
            set_attributes(study, trial, {named.name: now}, user=True)
            trial.set_user_attr(named.name, now)  # so that the objective sees it

    def forget(self, number: int) -> None:
        """Drop what the suggestion of a trial that has ended rests on."""
        self._recent.pop(number, None)

    def _suggested(self, now: StudySnapshot, trial: FrozenTrial) -> Suggested:
        """The suggestion, noted in the storage.

        Another process may ask between our reading and our noting: older trials without parameters are assumed to take
        the best points, and a point that turns out to clash is chosen again. Of two trials that clash one is enough:
        each waits for a moment of its own length, and stays if the other has withdrawn by then.
        """
        number = trial.number
        fitted = self.fitter.fit(now)
        trials = fitted.encode(now, trial)
        known = fitted.condition(trials, seed=self.seed(number))
        self._warn_of(now, fitted, known)
        remarks = self._remarks(fitted, trials)
        allowed = self._domain(now, fitted.alignment.space, trial)
        for round_ in range(_ROUNDS):
            x = self._choose(known, allowed.domain, trials, self.seed(number, round_))
            params = allowed.params(x)
            note(now.study, trial, params)
            clash = self._clash(now.study, x, trials, round_)
            if clash is None or round_ == _ROUNDS - 1:
                break
            note(now.study, trial, {})  # so that the other one sees that it may stay
            trials = clash
        if allowed.rows is not None and count_same(x.unsqueeze(0), torch.cat([trials.X, trials.pending])) > 0:
            self.log.warn(
                f"Every candidate that may be tried ({len(allowed.rows)}) was tried or is awaited: from now on they "
                "are tried again."
            )
        return Suggested(number, params, x, fitted, known, partial(self.outlook, now.study), remarks, trials.batch)

    def _choose(self, known: OutcomePosteriors, domain: Domain, trials: EncodedTrials, seed: int) -> Float[Tensor, "d"]:
        """The best point that is neither pending nor, where points are tried once, finished; if all are, the best.

        Trials that ask at this moment are assumed to take the best points, and this one takes the next best. Where all
        that is left to gain lies next to a pending point, the most promising point elsewhere is taken.
        """
        q, pending, finished = 1 + min(trials.asking, _MAX_ASKING), trials.pending, self._avoided(domain, trials)
        for count, awaited, avoid in ((q, pending, finished), (1, pending, finished), (1, pending, None)):
            try:
                x = self._best(known, domain, q=count, pending=awaited, avoid=avoid, seed=seed)
                break
            except NoPointLeftError:  # every point of a finite space is used up: repeat one
                continue
        else:
            x = self._best(known, domain, seed=seed)
        if not count_same(x.unsqueeze(0), pending).item():
            return x
        X = domain.X if isinstance(domain, Candidates) else domain.spread(_ELSEWHERE, generator_from(seed))
        free = X[count_same(X, pending) == 0]
        if not len(free):
            return x
        mean, var = known.posteriors[0].predict(free)
        return free[(mean - self.beta * var.sqrt()).argmin()]

    def _avoided(self, domain: Domain, trials: EncodedTrials) -> Float[Tensor, "n d"] | None:
        """The finished points, where a point is tried again only when all others were tried.

        It is so for a deterministic objective and for listed candidates. Of other spaces with few points it is so until
        something shows noise, standard errors or a repeated trial with another result: an untried point says more.
        """
        exact = domain.listing is not None and not (trials.noisy or self.fitter.errors.every)
        return trials.X if self.deterministic or isinstance(domain, Candidates) or exact else None

    def _best(
        self,
        known: OutcomePosteriors,
        domain: Domain,
        *,
        seed: int,
        q: int = 1,
        pending: Float[Tensor, "p d"] | None = None,
        avoid: Float[Tensor, "k d"] | None = None,
    ) -> Float[Tensor, "d"]:
        """The last of q points where the acquisition value is highest, found on the device where that is faster."""

        def search(on: OutcomePosteriors, device: str) -> Float[Tensor, "*out d"]:
            return suggest(
                on,
                domain=domain,
                kind=self.acquisition,
                q=q,
                pending=None if pending is None else pending.to(device),
                avoid=None if avoid is None else avoid.to(device),
                seed=seed,
                beta=self.beta,
            ).cpu()

        return self.fitter.context.device.searching(known, search).reshape(-1, domain.d)[-1]

    def _clash(self, study: Study, x: Float[Tensor, "d"], trials: EncodedTrials, round_: int) -> EncodedTrials | None:
        """The trials as they are now if another one was given the same point, and still has it after a pause."""
        random = np.random.default_rng(self.seed(trials.own, f"pause {round_}"))
        for seconds in (0.0, float(random.uniform(0, _PAUSE * 2**round_))):
            time.sleep(seconds)
            unfinished = study.get_trials(deepcopy=False, states=(TrialState.RUNNING, TrialState.WAITING))
            now = trials.with_running(unfinished)
            if now is trials or count_same(x.unsqueeze(0), now.pending) <= count_same(x.unsqueeze(0), trials.pending):
                return None
        return now

    def _is_expected(self, study: Study, trial: FrozenTrial, name: str, distribution: Distribution) -> bool:
        """Whether the suggestion was made for these values of the parameter."""
        if self.fitter.space is not None:
            return True
        last = self._recent.get(trial.number)
        known = self.fitter.read(study) if last is None else last.alignment.space
        return known.distributions.get(name) == distribution

    def _late_value(
        self, study: Study, trial: FrozenTrial, name: str, distribution: Distribution, params: Mapping[str, Any]
    ) -> Any:
        last = self._recent.get(trial.number)
        if last is None or name not in last.alignment.space.names:
            raise NoPlaceError(self._why_unknown)
        space = last.alignment.space
        axis = space.by_name[name]
        if axis.width == 0:
            raise NoPlaceError(_SINGLE)
        with self._lock, _on_cpu():
            rules = self._rules(self.fitter.read(study)) if self.settings else ()
            domain = values_of_late_parameter(space, axis, params, rules)
            x = self._best(last.known, domain, seed=self.seed(trial.number, name))
            found = axis.value(x[axis.columns].unsqueeze(0))[0]
            note(study, trial, {**params, name: found})
        return clip_value(found, name, distribution)

    def _rules(self, now: StudySnapshot) -> tuple[SettingRule, ...]:
        return self.settings.read(now.all_known, final=self.fitter.space is not None)

    def _domain(self, now: StudySnapshot, space: Space, trial: FrozenTrial | None = None) -> TrialDomain:
        """What the trial, or the next one, may run with."""
        fixed, number = ({}, len(now.trials)) if trial is None else (fixed_parameters(trial), trial.number)
        pinned = {name: value for name, value in fixed.items() if name in space.names}
        return self.settings.domain(space, pinned, self._rules(now), number, self.log.warn)

    @property
    def _why_unknown(self) -> str:
        if self.fitter.space is not None:
            return "it is no part of the space that was given"
        return "no source and no finished trial has it"

    def explain(self, study: Study | None, outcome: str | int | None = None) -> StudyExplanation:
        """Verdicts on the sources of an outcome after the study's results, or those of the latest suggestion."""
        with self._lock, _on_cpu():
            if study is not None:
                now = self.fitter.read(study)
                look: Callable[[], Outlook] = partial(self.outlook, study)
                if not now.distributions:
                    why = "No parameter is known before the first trial, so there is nothing to explain."
                    return not_explained(why, str(self.fitter.sources), look=look)
                fitted = self.fitter.fit(now)
                trials = fitted.encode(now)
                name = fitted.name_of(outcome)
                target, remarks = fitted.results(trials, name), self._remarks(fitted, trials)
                posterior, X, batches = None, target.X[:0], trials.batch
            elif self.last is not None:
                fitted, remarks, look = self.last.fitted, self.last.remarks, self.last.look
                name = fitted.name_of(outcome)
                posterior, X, batches = self.last.known[name], self.last.x.unsqueeze(0), self.last.batch
                target = observed(posterior)
            else:
                return not_explained(
                    "Nothing was suggested yet, so there is nothing to explain; explain(study) is about a study that "
                    "was loaded.",
                    str(self.fitter.sources),
                )
        return explained(
            fitted, target, X, outcome=name, posterior=posterior, remarks=remarks, look=look, batches=batches
        )

    def outlook(self, study: Study) -> Outlook:
        """What the next trials of the study are expected to gain."""
        with self._lock, _on_cpu():
            now = self.fitter.read(study)
            if now.nothing_to_choose:
                return Outlook(None, 1, 0, thing="trial")
            fitted, number = self.fitter.fit(now), len(now.trials)
            trials = fitted.encode(now)
            allowed = self._domain(now, fitted.alignment.space)
            found = outlook(
                fitted.condition(trials, seed=self.seed(number)),
                allowed.domain,
                pending=trials.pending,
                avoid=self._avoided(allowed.domain, trials),
                seed=self.seed(number, "outlook"),
            )
        name = fitted.outcomes.goals[0].name
        return replace(found, objective=found.objective if name == "0" else name, thing="trial")

    def _warn_of(self, now: StudySnapshot, fitted: StudyPriors, known: OutcomePosteriors) -> None:
        """Before the trial costs anything: what may be wrong with the sources, the space or the stated errors."""
        for decision in fitted.alignment.warnings:
            self.log.warn(f"{decision} (see sampler.explain())")
        tried = any(trial.state == TrialState.COMPLETE and trial.params for trial in now.trials)
        for name in self.fitter.fill if tried else ():
            if name not in now.all_known:
                told = f"fill gives a value for {name!r}, but no source and no trial has such a parameter."
                self.log.warn(f"{told} {nearest(name, now.all_known)}")
        for name in now.dropped:
            self.log.warn(f"{name}: the latest trials have not asked for it, so it is not chosen any more.")
        for attribute in self.fitter.errors.every:
            for complaint in errors_of_trials(now.trials, attribute, f"Study {now.study.study_name!r}")[1]:
                self.log.warn(f"{complaint} Until then it is taken as not known.")
        self._warn_of_batches(now)
        count = len(fitted.alignment.tasks)
        if count and all(bool(posterior.blind) for posterior in known.posteriors):
            which = "The source is not" if count == 1 else f"None of the {count} sources is"
            self.log.warn(
                f"{which} trusted, being too small or noise (print(sampler.explain()) says why): the first trials are "
                "the best of the past and a design that fills the space."
            )

    def _warn_of_batches(self, now: StudySnapshot) -> None:
        """Of batches that shifts cannot drift with, and of a name that nothing has, once a trial is finished."""
        named, sources = self.fitter.batch, self.fitter.sources
        if named.name is None:
            return
        for trial in now.trials:
            if complaint := named.complaint(trial.user_attrs.get(named.name)):
                where = f"Study {now.study.study_name!r}, trial {trial.number}"
                self.log.warn(f"{where}: {complaint} It counts as of the batch before it.")
        told = {name for trial in now.trials for name in trial.user_attrs} | {*study_attributes(now.study)}
        finished = any(trial.state == TrialState.COMPLETE for trial in now.trials)
        if finished and named.name not in told and all(task.batch is None for task in sources):
            columns = {name for task in sources for name in task.parameters if name not in now.distributions}
            known = sorted({name for name in told if not name.startswith(PREFIX)} | columns)
            self.log.warn(
                f"batch: neither this study, nor a trial of it, nor a source has {named.name!r}, so that all results "
                f"are of one batch. Say it with study.set_user_attr({named.name!r}, ...) before trials are asked for, "
                f"or with trial.set_user_attr in the objective. {nearest(named.name, known) if known else ''}".rstrip()
            )

    def _remarks(self, fitted: StudyPriors, trials: EncodedTrials) -> tuple[str, ...]:
        """Remarks on the study's own results; outliers are also logged, each once."""
        found = []
        for name, prior in fitted.priors.items():
            values, target = fitted.values(name, trials), fitted.results(trials, name)
            there = ~np.isnan(finite(values))
            numbers = [trial.number for trial, own in zip(trials.finished, there, strict=True) if own]
            of = prefix_of(name, fitted.outcomes)
            if far := outliers_in_words(prior, target, values[there].tolist(), numbers, "trial"):
                which = [number for number, own in zip(numbers, own_outliers(prior, target), strict=True) if own]
                self.log.warn(f"This study: {of}{far} (see sampler.explain())", key=f"outliers {name} {which}")
            found += [f"{of}{remark}" for remark in (far, infinite_in_words(values[there].tolist())) if remark]
        return tuple(found)

    def seed(self, number: int, purpose: int | str = "fit") -> int:
        """A seed of the trial's own, so that workers with equal seeds do not draw alike."""
        words = [self.entropy % (1 << 64), number, *str(purpose).encode()]
        return int(np.random.SeedSequence(words).generate_state(1)[0])

    def __getstate__(self) -> dict[str, Any]:
        """The sources and the options: what was learnt is learnt again, or found in the folder of fits."""
        return vars(self) | {"_lock": None, "last": None, "_recent": {}, "_read": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """With a lock of its own."""
        vars(self).update(state, _lock=threading.RLock())


def _on_cpu() -> AbstractContextManager[Any]:
    """Small matrices stay on the CPU, also where torch's default device is another."""
    return nullcontext() if torch.get_default_device().type == "cpu" else torch.device("cpu")


def _offered(value: Any, name: str, distribution: Distribution) -> list[Any]:
    """The value, or the nearest one that is offered; nothing where it is a category that is not offered."""
    try:
        return [clip_value(value, name, distribution)]
    except NoPlaceError:
        return []
