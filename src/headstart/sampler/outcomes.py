"""What is measured in a study, and what its sources teach about each outcome.

    outcome of the new study                          of a past study or table it is
    an objective with a metric name                   the objective of that name
    an objective without one                          the one of that number, if it has as many; with its sign changed
                                                      if it went the other way
    one of as many as ``objective`` names             the one named in its place, if no name is one of the study's
    the first objective                               its only one, if that has no name or no such name is known
    a constraint                                      the constraint of that key

A constraint holds where its value is at most 0. Before the first trial is finished a study has the constraints of its
sources, and then its own.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from optuna.study import StudyDirection
from optuna.trial import TrialState

from headstart.data.dataset import Dataset
from headstart.data.outcomes import MOST_GOALS, Goal, Limit, Outcomes
from headstart.errors import InputError, NothingInCommonError
from headstart.models.family import GPBO
from headstart.models.fitcache import fit_key
from headstart.models.learning import LearnContext
from headstart.models.model import Prior, TransferModel
from headstart.models.outcomes import OutcomePosteriors, OutcomePriors
from headstart.models.posterior import TransferPosterior
from headstart.sampler.log import OnceLogger, progress_logger
from headstart.sampler.space import SourceSpace, StudySpace
from headstart.sampler.trials import EncodedTrials, encode_trials
from headstart.sources.alignment import Alignment, align, split, with_any_result, with_outliers
from headstart.sources.forms.naming import ErrorNames, errors_of_trials
from headstart.sources.forms.studies import is_same_study
from headstart.sources.optuna_api import constraints_of
from headstart.sources.raw import RawObjective, RawTask, error_var, finite

if TYPE_CHECKING:
    from optuna import Study
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

# The posterior of the one objective of a study, or those of all of its outcomes
Known: TypeAlias = TransferPosterior | OutcomePosteriors

_CONSTRAINT = "constraint "
_PRIORS_KEPT = 8


@dataclass(frozen=True)
class StudySnapshot:
    """A study at one moment: its trials, read once, and the parameters that they and the sources know."""

    study: Study
    trials: Sequence[FrozenTrial]
    space: StudySpace

    def asking_for(self, asked: Mapping[str, BaseDistribution]) -> StudySnapshot:
        """The same with these parameters as the objective asks for them."""
        return replace(self, space=self.space.asking_for(asked))


@dataclass(frozen=True)
class StudyPriors:
    """The sources in the space of a study, and a prior for every outcome; without ``outcomes`` for the one objective.

    ``errors`` are the user attributes with the standard errors of the objectives, in their order.
    """

    alignment: Alignment
    minimize: bool
    priors: Mapping[str, Prior]
    outcomes: Outcomes | None
    fill: Mapping[str, Any]
    errors: tuple[str | None, ...]

    @property
    def prior(self) -> Prior:
        """The prior of the first objective."""
        return next(iter(self.priors.values()))

    def encode(self, trials: Sequence[FrozenTrial], own: int = -1) -> EncodedTrials:
        """The trials of the study in its space, but for number ``own``."""
        error = self.errors[0] if self.outcomes is None else None
        return encode_trials(trials, self.alignment.space, own=own, minimize=self.minimize, fill=self.fill, error=error)

    def condition(self, encoded: EncodedTrials, *, seed: int) -> Known:
        """The posterior, or posteriors, given the study's results."""
        if self.outcomes is None:
            return self.prior.condition(encoded.target, seed=seed)
        priors = OutcomePriors(self.outcomes, tuple(self.priors.values()), self.alignment.space.d)
        return priors.condition(self._results(encoded), seed=seed)

    def prior_and_results(self, outcome: str | None, encoded: EncodedTrials) -> tuple[Prior, Dataset]:
        """The prior and the results of one outcome, by default of the first objective."""
        if self.outcomes is None:
            if outcome is not None:
                raise InputError(f"The study has one objective, so there is no outcome {outcome!r} to explain.")
            return self.prior, replace(encoded.target, name="this study")
        own = self.outcomes[self.outcomes.names[0] if outcome is None else outcome]
        return self.priors[own.name], own.signed(self._results(encoded)[own.name])

    def _results(self, encoded: EncodedTrials) -> dict[str, Dataset]:
        """The results of every outcome as measured, with the errors that are known."""
        assert self.outcomes is not None
        found, trials, target = {}, encoded.finished, encoded.target
        for i, name in enumerate(self.outcomes.names):
            error = None
            if i < len(self.outcomes.goals):
                values = [trial.values[i] if trial.values else math.nan for trial in trials]
                error, _ = errors_of_trials(trials, self.errors[i], "this study")
            else:
                key = name.removeprefix(_CONSTRAINT)
                values = [constraints_of(trial).get(key, math.nan) for trial in trials]
            y = finite(np.array(values, dtype=np.float64))
            there = ~np.isnan(y)
            variances = None if error is None else error_var(error[there])
            X = target.X[torch.from_numpy(there)]
            found[name] = Dataset(X, y[there], "this study", categories=target.categories, error_var=variances)
        return found


@dataclass
class SourceFitter:
    """Learns from the sources for a study: a prior for each of its outcomes.

    Alignment and learning happen once as long as the space stays the same; the latest priors are kept by the content
    of their data. ``listed`` is a list of settings to try, whose parameters are then all there are; ``order`` are the
    objectives as they were named one after the other, and ``errors`` says where the standard errors of results are.
    """

    sources: Sequence[RawTask]
    model: TransferModel
    space: Mapping[str, BaseDistribution] | None
    fill: Mapping[str, Any]
    context: LearnContext
    log: OnceLogger
    listed: RawTask | None = None
    order: tuple[str, ...] = ()
    errors: ErrorNames = field(default_factory=ErrorNames)
    _of_study: dict[str, tuple[tuple[RawTask, ...], SourceSpace]] = field(default_factory=dict)  # by its name
    _latest: tuple[Any, StudyPriors] | None = None
    _priors: OrderedDict[str, Prior] = field(default_factory=OrderedDict)

    def require_common_ground(self) -> None:
        """Log what becomes of the sources in a given space, whatever the direction; raise if none is of use."""
        if self.space is None or not self.sources:
            return
        tasks = [_with_every_row(task) for task in self.sources]
        low, high = (align(tasks, self.space, fill=self.fill, minimize=way, strict=False) for way in (True, False))
        if not low.datasets:
            raise NothingInCommonError(
                f"No source has anything in common with the space ({', '.join(self.space)}): "
                f"{'; '.join(str(decision) for decision in low.decisions)}."
            )
        for decision in low.warnings:
            if decision in high.warnings:
                self.log.warn(f"{decision} (see sampler.report)")

    def read(self, study: Study) -> StudySnapshot:
        """The study as it is now."""
        trials = study.get_trials(deepcopy=False)
        return StudySnapshot(study, trials, self._known_of(study)[1].with_trials(trials, self.space))

    def sources_of(self, study: Study) -> tuple[RawTask, ...]:
        """The sources but the study itself, which would count twice."""
        return self._known_of(study)[0]

    def _known_of(self, study: Study) -> tuple[tuple[RawTask, ...], SourceSpace]:
        name = study.study_name
        if name not in self._of_study:
            own = tuple(task for task in self.sources if not is_same_study(task, study))
            if len(own) < len(self.sources):
                self.log.warn(
                    f"The study {name!r} is one of its own sources, and is left out of them: its trials count as they "
                    "are."
                )
            self._of_study[name] = own, SourceSpace.of(own, self.listed)
        return self._of_study[name]

    def fit(self, now: StudySnapshot) -> StudyPriors:
        """What the sources teach about the study; the latest is kept."""
        study, sources = now.study, self.sources_of(now.study)
        outcomes = _outcomes_of(study, now.trials, sources)
        elsewhere = {name for trial in now.trials for name in trial.distributions}
        asked = (study.study_name, now.space, elsewhere, tuple(study.directions), outcomes)
        if self._latest is None or self._latest[0] != asked:
            if outcomes is None:
                found = self._fit_one(now, [_decided(task, study) for task in sources], elsewhere)
            else:
                found = self._fit_several(now, sources, elsewhere, outcomes)
            self._latest = asked, found
        return self._latest[1]

    def _fit_one(self, now: StudySnapshot, sources: Sequence[RawTask], elsewhere: set[str]) -> StudyPriors:
        minimize, alignment = self._aligned(now, sources, elsewhere)
        prior = self._learn(alignment.datasets)
        told = with_outliers(alignment, prior.outliers).noting(report.note for report in prior.fit_reports)
        error = self.errors.of_objective(_objective_names(now.study)[0], 0, 1, "The study")
        return StudyPriors(told, minimize, {"": prior}, None, self.fill, (error,))

    def _fit_several(
        self, now: StudySnapshot, sources: Sequence[RawTask], elsewhere: set[str], outcomes: Outcomes
    ) -> StudyPriors:
        measured = {task.name: _measured_by(task, outcomes, self.order) for task in sources}
        usable = []
        for task in sources:
            with_results = with_any_result(task, measured[task.name])
            if with_results is None:
                self.log.warn(_no_outcome_in_words(task, outcomes))
            else:
                usable.append(with_results)
        minimize, alignment = self._aligned(now, usable, elsewhere)
        priors = {name: self._learn(own.datasets) for name, own in split(alignment, measured, outcomes).items()}
        names = [goal.name for goal in outcomes.goals]
        errors = tuple(self.errors.of_objective(n, i, len(names), "The study") for i, n in enumerate(names))
        return StudyPriors(alignment, minimize, priors, outcomes, self.fill, errors)

    def _aligned(self, now: StudySnapshot, sources: Sequence[RawTask], elsewhere: set[str]) -> tuple[bool, Alignment]:
        """Whether the first objective is minimised, and the sources in the space of the study."""
        minimize = now.study.directions[0] != StudyDirection.MAXIMIZE
        return minimize, align(
            sources,
            now.space.distributions,
            fill=self.fill,
            minimize=minimize,
            elsewhere=elsewhere,
            conditions=now.space.conditions,
            strict=False,
        )

    def _learn(self, sources: Sequence[Dataset]) -> Prior:
        """The model's prior, or a plain process if it needs sources and there are none; every process has the same."""
        model = self.model if sources or not self.model.needs_sources else GPBO.anywhere()
        key = fit_key("prior", sources, repr(model), [source.name for source in sources])
        prior = self._priors.pop(key, None)
        if prior is None:
            prior = model.learn(sources, seed=0, context=replace(self.context, on_progress=progress_logger()))
        self._priors[key] = prior
        if len(self._priors) > _PRIORS_KEPT:
            self._priors.popitem(last=False)
        return prior

    def __getstate__(self) -> dict[str, Any]:
        """The sources and the options: what was learnt is learnt again, or found in the folder of fits."""
        return vars(self) | {"_of_study": {}, "_latest": None, "_priors": OrderedDict()}


# ── outcomes of a study, and of its sources ───────────────────────────────────────────────────────────────────────


def metric_names(study: Study) -> list[str] | None:
    """The study's metric names; the part of a study that a pruner such as Hyperband shows has none."""
    return getattr(study, "metric_names", None)


def _objective_names(study: Study) -> tuple[str, ...]:
    """The study's metric names, or the numbers of its objectives."""
    return tuple(metric_names(study) or map(str, range(len(study.directions))))


def _outcomes_of(study: Study, trials: Sequence[FrozenTrial], sources: Sequence[RawTask]) -> Outcomes | None:
    """The study's outcomes; None where there is one objective and nothing else."""
    if len(study.directions) > MOST_GOALS:
        raise InputError(
            f"TransferSampler weighs at most {MOST_GOALS} objectives against each other, but the study has "
            f"{len(study.directions)}. Make constraints of those that only have to be good enough."
        )
    finished = [trial for trial in trials if trial.state == TrialState.COMPLETE]
    if finished:
        keys = {key for trial in finished for key in constraints_of(trial)}
    else:
        keys = {key for task in sources for key in task.constraints}
    if len(study.directions) == 1 and not keys:
        return None
    ways = [direction == StudyDirection.MAXIMIZE for direction in study.directions]
    goals = tuple(Goal(name, maximize=way) for name, way in zip(_objective_names(study), ways, strict=True))
    return Outcomes(goals, tuple(Limit(f"{_CONSTRAINT}{key}", at_most=0.0) for key in sorted(keys)))


def _decided(task: RawTask, study: Study) -> RawTask:
    """The task with the objective of the study's name, where it has several and none was chosen."""
    if not task.undecided:
        return task
    own = task.objectives.get((metric_names(study) or [""])[0])
    if own is None:
        raise InputError(
            f"{task.where} has {len(task.objectives)} objectives, {', '.join(map(repr, task.objectives))}, but the "
            "study has one. Name the one that counts with objective='...'."
        )
    return replace(task, y=own.y, maximize=own.maximize, error=own.error, undecided=False)


def _measured_by(task: RawTask, outcomes: Outcomes, order: Sequence[str]) -> dict[str, RawObjective]:
    """What the task knows of every outcome, as the new study measures it; ``order`` are the names that were given."""
    found: dict[str, RawObjective] = {}
    names = [goal.name for goal in outcomes.goals]
    in_order = dict(zip(names, order, strict=True)) if len(order) == len(names) and not {*order} & {*names} else {}
    for goal in outcomes.goals:
        own, numbered = task.objectives.get(goal.name), goal.name.isdecimal()
        if own is not None and (not numbered or len(task.objectives) == len(names)):
            found[goal.name] = _turned(own, goal) if numbered else replace(own, maximize=goal.maximize)
        elif (other := task.objectives.get(in_order.get(goal.name, ""))) is not None:
            found[goal.name] = _turned(other, goal)
    if not found and len(task.objectives) <= 1 and all(name.isdecimal() for name in task.objectives):
        found[names[0]] = _turned(RawObjective(task.y, task.maximize, task.error), outcomes.goals[0])
    for limit in outcomes.limits:
        if (key := limit.name.removeprefix(_CONSTRAINT)) in task.constraints:
            found[limit.name] = RawObjective(task.constraints[key])
    return found


def _turned(own: RawObjective, goal: Goal) -> RawObjective:
    """The values with the sign changed if they went the other way."""
    turn = own.maximize is not None and own.maximize != goal.maximize
    return replace(own, y=-own.y if turn else own.y, maximize=goal.maximize)


def _no_outcome_in_words(task: RawTask, outcomes: Outcomes) -> str:
    known = ", ".join(map(repr, (*task.objectives, *task.constraints))) or "one objective without a name"
    return (
        f"{task.where} is left out: the study has {', '.join(map(repr, outcomes.names))}, the source {known}. Give "
        "both the same names, or name the source's objectives in the order of the study's with objective=[...]."
    )


def _with_every_row(task: RawTask) -> RawTask:
    """Of a task with several outcomes, all rows that have a result of one."""
    every = {"": RawObjective(task.y), **task.objectives}
    return (with_any_result(task, every) or task) if task.undecided else task
