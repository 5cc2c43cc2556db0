"""What is measured in a study, and what its sources teach about each outcome.

Which outcome of a source is which of the study: docs/optuna.md, several objectives and constraints. A constraint holds
where its value is at most 0. Before the first trial is finished a study has those of its sources, and then its own.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

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
from headstart.sampler.space import SourceSpace, StudySnapshot
from headstart.sampler.trials import EncodedTrials, encode_trials
from headstart.sampler.wishes import Wishes
from headstart.sources.alignment import Alignment, align, any_result, split, with_outliers
from headstart.sources.forms.naming import ErrorNames, errors_of_trials, limited_of_trials
from headstart.sources.forms.studies import is_same_study
from headstart.sources.optuna_api import constraints_of
from headstart.sources.raw import RawObjective, RawTask, error_var, finite

if TYPE_CHECKING:
    from optuna import Study
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

_CONSTRAINT = "constraint "
_PRIORS_KEPT = 8


@dataclass(frozen=True)
class StudyPriors:
    """The sources in the space of a study, and a prior for every outcome."""

    alignment: Alignment
    outcomes: Outcomes
    priors: Mapping[str, Prior]
    fill: Mapping[str, Any]
    errors: tuple[str | None, ...]  # the user attributes with the standard errors of the outcomes, in their order

    @property
    def prior(self) -> Prior:
        """The prior of the first objective."""
        return next(iter(self.priors.values()))

    def encode(self, trials: Sequence[FrozenTrial], own: int = -1) -> EncodedTrials:
        """The trials of the study in its space, but for number ``own``."""
        minimize = not self.outcomes.goals[0].maximize
        return encode_trials(trials, self.alignment.space, own=own, minimize=minimize, fill=self.fill)

    def condition(self, encoded: EncodedTrials, *, seed: int) -> OutcomePosteriors:
        """The posteriors given the study's results."""
        priors = OutcomePriors(self.outcomes, tuple(self.priors.values()), self.alignment.space.d)
        return priors.condition({name: self._measured(name, encoded) for name in self.priors}, seed=seed)

    def results(self, encoded: EncodedTrials, outcome: str | None = None) -> Dataset:
        """The results of an outcome, by default the first objective, smaller being better."""
        own = self.outcomes[self.outcomes.names[0] if outcome is None else outcome]
        return own.signed(self._measured(own.name, encoded))

    def _measured(self, name: str, encoded: EncodedTrials) -> Dataset:
        """The results of an outcome as measured, with the errors that are known."""
        place, trials = self.outcomes.names.index(name), encoded.finished
        if place == 0:
            values = encoded.values
        elif place < len(self.outcomes.goals):
            values = np.array([trial.values[place] if trial.values else math.nan for trial in trials], dtype=np.float64)
        elif name.startswith(_CONSTRAINT):
            key = name.removeprefix(_CONSTRAINT)
            values = np.array([constraints_of(trial).get(key, math.nan) for trial in trials], dtype=np.float64)
        else:
            own = limited_of_trials(trials, {name: None}).get(name)
            values = np.full(len(trials), math.nan) if own is None else own.y
        error, _ = errors_of_trials(trials, self.errors[place], "this study")
        y = finite(values)
        there, space = ~np.isnan(y), encoded.space
        variances = None if error is None else error_var(error[there])
        X = encoded.X[torch.from_numpy(there)]
        return Dataset(X, y[there], "this study", categories=space.categories, error_var=variances)


@dataclass
class SourceFitter:
    """Learns from the sources for a study, once as long as its space stays the same: a prior for each outcome."""

    sources: Sequence[RawTask]
    model: TransferModel
    space: Mapping[str, BaseDistribution] | None
    fill: Mapping[str, Any]
    context: LearnContext
    warn: Callable[[str], None]
    listed: RawTask | None = None  # settings to try, whose parameters are then all there are
    order: tuple[str, ...] = ()  # the objectives as they were named one after the other
    errors: ErrorNames = field(default_factory=ErrorNames)
    wishes: Wishes = field(default_factory=Wishes)
    _of_study: dict[str, tuple[tuple[RawTask, ...], SourceSpace]] = field(default_factory=dict)  # by its name
    _latest: tuple[Any, StudyPriors] | None = None
    _priors: OrderedDict[str, Prior] = field(default_factory=OrderedDict)  # the latest by the content of their data

    def require_common_ground(self) -> None:
        """Log what becomes of the sources in a given space, whatever the direction; raise if none is of use."""
        if self.space is None or not self.sources:
            return
        # of a task with several outcomes all rows that have a result of one
        known = {
            task.name: any_result({"": RawObjective(task.y), **(task.objectives if task.undecided else {})})
            for task in self.sources
        }
        found = align(self.sources, self.space, fill=self.fill, strict=False, known=known)
        if not found.tasks:
            raise NothingInCommonError(
                f"No source has anything in common with the space ({', '.join(self.space)}): "
                f"{'; '.join(str(decision) for decision in found.decisions)}."
            )
        for decision in found.warnings:
            self.warn(f"{decision} (see sampler.report)")

    def read(self, study: Study) -> StudySnapshot:
        """The study as it is now."""
        return self._known_of(study)[1].snapshot(study, self.space)

    def _known_of(self, study: Study) -> tuple[tuple[RawTask, ...], SourceSpace]:
        """The sources but the study itself, which would count twice, and what they know of the space."""
        name = study.study_name
        if name not in self._of_study:
            own = tuple(task for task in self.sources if not is_same_study(task, study))
            if len(own) < len(self.sources):
                self.warn(
                    f"The study {name!r} is one of its own sources, and is left out of them: its trials count as they "
                    "are."
                )
            self._of_study[name] = own, SourceSpace.of(own, self.listed)
        return self._of_study[name]

    def fit(self, now: StudySnapshot) -> StudyPriors:
        """What the sources teach about the study; the latest is kept."""
        study, (sources, _) = now.study, self._known_of(now.study)
        outcomes = self._outcomes_of(study, now.trials, sources)
        elsewhere = {name for trial in now.trials for name in trial.distributions}
        asked = (study.study_name, now, elsewhere, outcomes)
        if self._latest is None or self._latest[0] != asked:
            self._latest = asked, self._fit(now, sources, elsewhere, outcomes)
        return self._latest[1]

    def _fit(
        self, now: StudySnapshot, sources: Sequence[RawTask], elsewhere: set[str], outcomes: Outcomes
    ) -> StudyPriors:
        one, names = len(outcomes.names) == 1, outcomes.names[: len(outcomes.goals)]
        errors = tuple(self.errors.of_objective(n, i, len(names), "The study") for i, n in enumerate(names))
        errors = (*errors, *(self.wishes.errors.get(limit.name) for limit in outcomes.limits))
        measured = {} if one else {task.name: _measured_by(task, outcomes, self.order) for task in sources}
        known = None if one else {name: any_result(own) for name, own in measured.items()}
        tasks = [_decided(task, now.study) if one else task for task in sources]
        if one and outcomes.goals[0].target is not None:
            tasks = [replace(task, maximize=None) for task in tasks]
        for source in sources:
            if known is not None and not known[source.name].any():
                theirs = ", ".join(map(repr, (*source.objectives, *source.constraints)))
                self.warn(
                    f"{source.where} is left out: the study has {', '.join(map(repr, outcomes.names))}, the source "
                    f"{theirs or 'one objective without a name'}. Give both the same names, or name the source's "
                    "objectives in the order of the study's with objective=[...]."
                )
        alignment = align(
            [task for task in tasks if known is None or known[task.name].any()],
            now.distributions,
            fill=self.fill,
            minimize=not outcomes.goals[0].maximize,
            elsewhere=elsewhere,
            conditions=now.conditions,
            strict=False,
            known=known,
        )
        parts = {outcomes.names[0]: alignment} if one else split(alignment, measured, outcomes)
        priors = {name: self._learn(own.datasets) for name, own in parts.items()}
        if one:
            (prior,) = priors.values()
            alignment = with_outliers(alignment, prior.outliers).noting(report.note for report in prior.fit_reports)
        return StudyPriors(alignment, outcomes, priors, self.fill, errors)

    def _outcomes_of(self, study: Study, trials: Sequence[FrozenTrial], sources: Sequence[RawTask]) -> Outcomes:
        """What is measured: the study's objectives, the constraints of its trials, or of its sources, and limits."""
        if len(study.directions) > MOST_GOALS:
            raise InputError(
                f"TransferSampler weighs at most {MOST_GOALS} objectives against each other, but the study has "
                f"{len(study.directions)}. Make constraints of those that only have to be good enough."
            )
        finished = [trial for trial in trials if trial.state == TrialState.COMPLETE]
        known = [constraints_of(trial) for trial in finished] if finished else [task.constraints for task in sources]
        limits = sorted({f"{_CONSTRAINT}{key}" for own in known for key in own})
        goals = zip(_metric_names(study) or map(str, range(len(study.directions))), study.directions, strict=True)
        return self.wishes.outcomes(
            tuple(Goal(name, maximize=direction == StudyDirection.MAXIMIZE) for name, direction in goals),
            tuple(Limit(name, at_most=0.0) for name in limits),
            finished,
            self.warn,
        )

    def _learn(self, sources: Sequence[Dataset]) -> Prior:
        """The model's prior, or a plain process if it needs sources and there are none; every process has the same."""
        model = self.model if sources or not self.model.needs_sources else GPBO.anywhere()
        key = fit_key("prior", sources, repr(model), [source.name for source in sources])
        prior = self._priors.pop(key, None)
        if prior is None:
            prior = model.learn(sources, seed=0, context=self.context)
        self._priors[key] = prior
        if len(self._priors) > _PRIORS_KEPT:
            self._priors.popitem(last=False)
        return prior

    def __getstate__(self) -> dict[str, Any]:
        """The sources and the options: what was learnt is learnt again, or found in the folder of fits."""
        return vars(self) | {"_of_study": {}, "_latest": None, "_priors": OrderedDict()}


def _metric_names(study: Study) -> list[str] | None:
    return getattr(study, "metric_names", None)  # the part of a study that Hyperband shows has none


def _decided(task: RawTask, study: Study) -> RawTask:
    """The task with the objective of the study's name, where it has several and none was chosen."""
    if not task.undecided:
        return task
    own = task.objectives.get((_metric_names(study) or [""])[0])
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
    limits = {f"{_CONSTRAINT}{key}": RawObjective(values) for key, values in task.constraints.items()} | {
        **task.limited
    }
    found |= {limit.name: limits[limit.name] for limit in outcomes.limits if limit.name in limits}
    return found


def _turned(own: RawObjective, goal: Goal) -> RawObjective:
    """The values with the sign changed if they went the other way."""
    turn = own.maximize is not None and own.maximize != goal.maximize and goal.target is None
    return replace(own, y=-own.y if turn else own.y, maximize=goal.maximize)
