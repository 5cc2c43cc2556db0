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
from numpy.typing import NDArray
from optuna.study import StudyDirection
from optuna.trial import TrialState

from headstart.data.dataset import Dataset
from headstart.data.outcomes import MOST_GOALS, Goal, Limit, Outcomes
from headstart.data.ranges import Distribution
from headstart.errors import InputError, NothingInCommonError, nearest
from headstart.models.ensemble import RankingWeighted
from headstart.models.family import GPBO, model_name
from headstart.models.fitcache import fit_key
from headstart.models.learning import LearnContext
from headstart.models.model import Prior, TransferModel
from headstart.models.outcomes import OutcomePosteriors, OutcomePriors
from headstart.sampler.limits import StudyLimits
from headstart.sampler.space import OrderedChoices, SourceSpace, StudySnapshot
from headstart.sampler.trials import EncodedTrials, encode_trials
from headstart.sources.alignment import Alignment, align, any_result, split, turned_round, with_outliers
from headstart.sources.forms.naming import BatchName, ErrorNames, errors_of_trials, limited_of_trials
from headstart.sources.forms.studies import is_same_study
from headstart.sources.objectives import called, of_goals
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
    batch: BatchName  # the user attribute with the batch of a trial

    @property
    def prior(self) -> Prior:
        """The prior of the first objective."""
        return next(iter(self.priors.values()))

    def name_of(self, outcome: str | int | None) -> str:
        """The outcome that is asked about, an objective by its name or number; one that there is not is refused."""
        goal = called(str(outcome or 0), [goal.name for goal in self.outcomes.goals])
        return self.outcomes[str(outcome)].name if goal is None else goal

    def encode(self, now: StudySnapshot, asking: FrozenTrial | None = None) -> EncodedTrials:
        """The trials of the study in its space, but for the one that is ``asking``, and the batches they belong to."""
        own, minimize = -1 if asking is None else asking.number, not self.outcomes.goals[0].maximize
        found = encode_trials(now.trials, self.alignment.space, own=own, minimize=minimize, fill=self.fill)
        return found.with_batches(self.batch, now, asking)

    def condition(self, encoded: EncodedTrials, *, seed: int) -> OutcomePosteriors:
        """The posteriors given the study's results."""
        priors = OutcomePriors(self.outcomes, tuple(self.priors.values()), self.alignment.space.d)
        return priors.condition({name: self._measured(name, encoded) for name in self.priors}, seed=seed)

    def results(self, encoded: EncodedTrials, outcome: str | int | None = None) -> Dataset:
        """The results of an outcome, by default the first objective, smaller being better."""
        name = self.name_of(outcome)
        return self.outcomes[name].signed(self._measured(name, encoded))

    def values(self, name: str, encoded: EncodedTrials) -> NDArray[np.float64]:
        """The values of an outcome in every finished trial, NaN where it was not measured."""
        place, trials = self.outcomes.names.index(name), encoded.finished
        if place == 0:
            return encoded.values
        if place < len(self.outcomes.goals):
            found = [trial.values[place] if trial.values else math.nan for trial in trials]
        elif name.startswith(_CONSTRAINT):
            found = [constraints_of(trial).get(name.removeprefix(_CONSTRAINT), math.nan) for trial in trials]
        else:
            own = limited_of_trials(trials, {name: None}).get(name)
            return np.full(len(trials), math.nan) if own is None else own.y
        return np.array(found, dtype=np.float64)

    def _measured(self, name: str, encoded: EncodedTrials) -> Dataset:
        """The results of an outcome as measured, with the errors that are known."""
        place, trials = self.outcomes.names.index(name), encoded.finished
        values = self.values(name, encoded)
        error, _ = errors_of_trials(trials, self.errors[place], "this study")
        y = finite(values)
        there, space = ~np.isnan(y), encoded.space
        variances = None if error is None else error_var(error[there])
        X = encoded.X[torch.from_numpy(there)]
        batch = encoded.in_batches(np.flatnonzero(there))
        return Dataset(X, y[there], "this study", categories=space.categories, error_var=variances, **batch)


@dataclass
class SourceFitter:
    """Learns from the sources for a study, once as long as its space stays the same: a prior for each outcome."""

    sources: Sequence[RawTask]
    model: TransferModel
    space: Mapping[str, Distribution] | None
    fill: Mapping[str, Any]
    context: LearnContext
    warn: Callable[[str], None]
    listed: RawTask | None = None  # settings to try, whose parameters are then all there are
    errors: ErrorNames = field(default_factory=ErrorNames)
    batch: BatchName = field(default_factory=BatchName)
    categories: frozenset[str] = frozenset()  # parameters whose choices are not ordered, even if they are numbers
    study_limits: StudyLimits = field(default_factory=StudyLimits)
    _of_study: dict[str, tuple[tuple[RawTask, ...], SourceSpace]] = field(default_factory=dict)  # by its name
    _latest: tuple[Any, StudyPriors] | None = None
    _priors: OrderedDict[str, Prior] = field(default_factory=OrderedDict)  # the latest by the content of their data

    def require_common_ground(self) -> None:
        """Log what becomes of the sources in a given space, whatever the direction; raise if none is of use."""
        if self.space is None or not self.sources:
            return
        # of a task with several outcomes all rows that have a result of one
        known = {task.name: any_result(task.known) for task in self.sources}
        found = align(self.sources, self.space, fill=self.fill, strict=False, known=known)
        if not found.tasks:
            raise NothingInCommonError(
                f"No source has anything in common with the space ({', '.join(self.space)}): "
                f"{'; '.join(str(decision) for decision in found.decisions)}."
            )
        for decision in found.warnings:
            self.warn(f"{decision} (see sampler.explain())")

    def read(self, study: Study) -> StudySnapshot:
        """The study as it is now."""
        return self._known_of(study)[1].snapshot(study, self.space, self.categories)

    def ordered(self, asked: Mapping[str, BaseDistribution]) -> dict[str, Distribution]:
        """Parameters as the objective asks for them, choices that are numbers ordered."""
        return {name: OrderedChoices.of(name, own, self.categories) for name, own in asked.items()}

    def _known_of(self, study: Study) -> tuple[tuple[RawTask, ...], SourceSpace]:
        """The sources but the study itself, which would count twice, and what they know of the space."""
        name = study.study_name
        if name not in self._of_study:
            _require_few_objectives(study)
            require_one_objective(self.model, [goal.name for goal in _goals_of(study)])
            own = tuple(task for task in self.sources if not is_same_study(task, study))
            if len(own) < len(self.sources):
                self.warn(
                    f"The study {name!r} is one of its own sources, and is left out of them: its trials count as they "
                    "are."
                )
            self._require_errors(study, own)
            for task in own:
                _require_decided(task, _goals_of(study))
            self._of_study[name] = own, SourceSpace.of(own, self.listed)
        return self._of_study[name]

    def require(self, study: Study) -> None:
        """Raise an ``InputError`` if there are too many objectives, or what was said of them is not clear."""
        self._known_of(study)

    def _require_errors(self, study: Study, sources: Sequence[RawTask]) -> None:
        names = [goal.name for goal in _goals_of(study)]
        every = [names, *([*task.results, *filter(None, task.named)] for task in sources)]
        for name in self.errors.own:
            if not any(called(name, own) for own in every):
                known = dict.fromkeys(one for own in every for one in own)
                raise InputError(f"error: there is no objective {name!r}. {nearest(name, known)}")

    def _warn_of_constraints(self, trials: Sequence[FrozenTrial], sources: Sequence[RawTask]) -> None:
        """Of constraints that the sources know and that no finished trial has set."""
        finished = [constraints_of(trial) for trial in trials if trial.state == TrialState.COMPLETE]
        for key in dict.fromkeys(key for task in sources for key in task.constraints) if finished else ():
            if not any(key in own for own in finished):
                self.warn(
                    f"The sources have the constraint {key!r}, but no finished trial has set it, so it does not count. "
                    f"Call trial.set_constraint({key!r}, value) in the objective, or give constraints_func."
                )

    def fit(self, now: StudySnapshot) -> StudyPriors:
        """What the sources teach about the study; the latest is kept."""
        study, (sources, _) = now.study, self._known_of(now.study)
        outcomes = self._outcomes_of(study, now.trials, sources)
        require_one_objective(self.model, outcomes.names)
        self._warn_of_constraints(now.trials, sources)
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
        errors = tuple(own or self.study_limits.errors.get(n) for n, own in zip(names, errors, strict=True))
        errors = (*errors, *(self.study_limits.errors.get(limit.name) for limit in outcomes.limits))
        measured = {task.name: _measured_by(task, outcomes) for task in sources}
        known = {name: any_result(own) for name, own in measured.items()}
        for source in sources:
            if not known[source.name].any():
                theirs = ", ".join(map(repr, source.objectives))
                why = (
                    f"the study has {', '.join(map(repr, outcomes.names))}, the source "
                    f"{theirs or 'one objective without a name'}. Give both the same names, or name the source's "
                    "objectives in the order of the study's with objective=[...]."
                )
                if source.constraints and not theirs:
                    keys = ", ".join(map(repr, source.constraints))
                    why = f"it knows constraints alone, {keys}, and the study has none of them."
                self.warn(f"{source.where} is left out: {why}")
        tasks = [task for task in sources if known[task.name].any()]
        if one:  # the alignment then turns the sign, and tells of rows without a result
            results = {task.name: measured[task.name][names[0]] for task in tasks}
            tasks = [replace(t, y=r.y, maximize=r.maximize, error=r.error) for t in tasks for r in [results[t.name]]]
        alignment = align(
            tasks,
            now.distributions,
            fill=self.fill,
            minimize=not outcomes.goals[0].maximize,
            elsewhere=elsewhere,
            conditions=now.conditions,
            strict=False,
            known=None if one else known,
        )
        parts = {outcomes.names[0]: alignment} if one else split(alignment, measured, outcomes)
        priors = {name: self._learn(own.datasets) for name, own in parts.items()}
        if one:
            (prior,) = priors.values()
            alignment = with_outliers(alignment, prior.outliers).noting(report.note for report in prior.fit_reports)
        else:
            found = turned_round(measured, outcomes)
            for name, own in parts.items():
                far = with_outliers(replace(own, decisions=()), priors[name].outliers).decisions
                found += [replace(decision, what=f"{prefix_of(name, outcomes)}{decision.what}") for decision in far]
            alignment = replace(alignment, decisions=(*alignment.decisions, *found))
        return StudyPriors(alignment, outcomes, priors, self.fill, errors, self.batch)

    def _outcomes_of(self, study: Study, trials: Sequence[FrozenTrial], sources: Sequence[RawTask]) -> Outcomes:
        """What is measured: the study's objectives, the constraints of its trials, or of its sources, and limits."""
        finished = [trial for trial in trials if trial.state == TrialState.COMPLETE]
        known = [constraints_of(trial) for trial in finished] if finished else [task.constraints for task in sources]
        limits = sorted({f"{_CONSTRAINT}{key}" for own in known for key in own})
        constraints = tuple(Limit(name, at_most=0.0) for name in limits)
        return self.study_limits.outcomes(_goals_of(study), constraints, finished, self.warn)

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


def prefix_of(outcome: str, outcomes: Outcomes) -> str:
    """What stands before a remark on an outcome; nothing where it is the only objective."""
    return "" if (outcome,) == tuple(goal.name for goal in outcomes.goals) else f"{outcome}: "


def _metric_names(study: Study) -> list[str] | None:
    return getattr(study, "metric_names", None)  # the part of a study that Hyperband shows has none


def _goals_of(study: Study) -> tuple[Goal, ...]:
    """The objectives of the study by metric name or number."""
    names = _metric_names(study) or map(str, range(len(study.directions)))
    ways = (direction == StudyDirection.MAXIMIZE for direction in study.directions)
    return tuple(Goal(name, maximize=larger) for name, larger in zip(names, ways, strict=True))


def require_one_objective(model: TransferModel, outcomes: Sequence[str]) -> None:
    """Raise an ``InputError`` where several outcomes are measured and the model weighs its sources by ranks."""
    if isinstance(model, RankingWeighted) and len(outcomes) > 1:
        raise InputError(
            f"{model_name(model)} is for one objective without constraints (ranks say which results are better, and "
            f"not how large they are), but there are {', '.join(map(repr, outcomes))}. Take another model, such as "
            'model="auto".'
        )


def _require_few_objectives(study: Study) -> None:
    if len(study.directions) > MOST_GOALS:
        raise InputError(
            f"TransferSampler weighs at most {MOST_GOALS} objectives against each other, but the study has "
            f"{len(study.directions)}. Make constraints of those that only have to be good enough."
        )


def _require_decided(task: RawTask, goals: Sequence[Goal]) -> None:
    if len(goals) == 1 and task.undecided and not of_goals(task, goals):
        named = ", ".join(map(repr, task.named))
        raise InputError(
            f"{task.where} has {len(task.objectives)} objectives, {', '.join(map(repr, task.objectives))}, but the "
            f"study has one. Name the one that counts with objective='...'{f', not {named}' if named else ''}."
        )


def _measured_by(task: RawTask, outcomes: Outcomes) -> dict[str, RawObjective]:
    """What the task knows of every outcome, by the study's names."""
    own = {limit.name: task.known[limit.name] for limit in outcomes.limits if limit.name in task.known}
    return of_goals(task, outcomes.goals) | own
