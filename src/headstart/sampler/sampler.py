"""``TransferSampler``: an Optuna sampler that learns from past studies, tables and files.

The state of a study is in its storage alone: a sampler can be pickled, shared by threads, and used by any number of
processes on one study. Random numbers are a function of the seed and the trial's number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from numbers import Integral, Real
from os import PathLike, urandom
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, TPESampler

from headstart.data.dataset import Dataset
from headstart.data.outcomes import Limit
from headstart.data.rules.rule import SettingRule
from headstart.decide.acquisition import Acquisition
from headstart.errors import InputError, NoPlaceError, nearest
from headstart.models.device import device_from
from headstart.models.family import model_name, model_named
from headstart.models.fitcache import FitCache
from headstart.models.learning import LearnContext, require_n_jobs
from headstart.models.model import TransferModel
from headstart.sampler.adviser import Adviser, SamplerLog, logger
from headstart.sampler.explanation import StudyExplanation, Suggested
from headstart.sampler.limits import StudyLimits
from headstart.sampler.outcomes import SourceFitter, require_one_objective
from headstart.sampler.settings import SettingConstraints
from headstart.sampler.space import OrderedChoices
from headstart.sources.forms.naming import BatchName, ErrorNames
from headstart.sources.optuna_api import write_constraints
from headstart.sources.past import read_sources
from headstart.sources.raw import RawTask

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial, TrialState

_LISTED = 10  # sources that are named where the sampler is printed


class TransferSampler(BaseSampler):
    """Bayesian optimisation with a head start from past studies, tables and files.

    Args:
        sources: Past tasks, from the least to the most related one: studies, storages, tables, files; see
            ``headstart.Sources``. They are read here, once; what cannot be used is logged, and the rest goes on.
            None at all is a start from scratch.
        model: A name of ``headstart.FAMILY`` in upper or lower case, or a model with options of its own. "rgpe" and
            "tst-r" are for one objective without constraints.
        acquisition: "logei", the logarithm of the expected improvement, or "ucb", the optimistic bound of the mean
            by ``beta`` standard deviations, for one objective; constraints add the logarithm of their probability.
        beta: How much uncertainty attracts with "ucb".
        seed: Equal seeds give equal suggestions for equal trials.
        objective: The objective of the sources that counts, by name or number, and the column of tables that holds the
            results; for single sources {source: name}. A list names several: those that are metric names of the study
            are these objectives, the others its other objectives in order (docs/optuna.md has the whole rule).
        space: The search space, if it is to be known before the first trial has run. Needed for ``Dataset``s.
        rename: Other names for the sources' parameters, {old: new}, or {source: {old: new}} for single sources.
        fill: Values of parameters that a source did not record, such as {"dropout": 0.0}. Without one, the source
            is taken as constant along the parameter.
        deterministic_objective: Whether repeating a finished trial is a waste.
        cache_dir: A folder in which what was learnt from the sources is kept for other processes and runs: numbers,
            which are read and never run. Processes that start at once learn every source once.
        n_jobs: How many processes learn sources at once, where that pays; -1 is one for every processor. "ray" has the
            Ray cluster learn them that is there. What is learnt is the same.
        device: "cuda" has large sources learnt, and searched, on the GPU, where that pays; without one it is the CPU.
        independent_sampler: For parameters that no source and no finished trial knows; by default TPE.
        error: The user attribute of trials, of this study and of past ones, and the column of tables with the standard
            error of a result; of several objectives {objective: name}. A result without one has a typical error.
        batch: The user attribute of trials, of this study and of past ones, and the column of tables with the batch of
            a result, such as a lot, a day or an operator, whose results may be shifted together. The present batch is
            what the trial says, or the study (``study.set_user_attr("lot", "B")``), or else the latest trial.
        drift: With ``batch``, over how many days shifts stay alike, where batches are dates, or over how much where
            they are numbers; by default every batch has a shift of its own.
        constraints: The columns of tables that hold constraints, {key: column}: they hold where a value is at most 0.
        limits: What the results must keep, as text: "impurity <= 2", "6.5 <= pH <= 7.5" or "cost <= 1.1 * baseline". Of
            an objective it is the worst value that is still of interest, and "pH = 7" has it as near to 7 as possible.
            Anything else is a user attribute of trials, ``trial.set_user_attr("impurity", 1.7)``, and the column or
            user attribute of that name in sources. ``headstart`` ``Limit``s are taken, too.
        baseline: What limits are relative to: the number of a trial, or results of your own, {name: value}.
        least_probability: A trial that keeps all limits and constraints with less than this probability is suggested
            only where no better one exists; by default 0.2.
        rules: What the settings must keep, as text ("2*A + B <= 100", "A + B + C = 1", "forbid: T > 180 and solvent =
            toluene") or as ``headstart`` rules. A rule is about parameters that are known before the trial: from
            ``space``, from a source, or from trials that ran.
        fixed: Values that parameters always have, such as {"A": 3}.
        steps: Steps that values are on, counted from the lowest one, such as {"B": 0.5}.
        categories: Parameters whose choices are only names, though they are numbers. Without it the choices of
            ``suggest_categorical("batch_size", [16, 32, 64])`` are ordered, as three numbers or more are.
        candidates: The settings to choose from, one of which is tried each time: a DataFrame, a list of {parameter:
            value}, or the path of a CSV file. What was tried is tried again only when all of them were.
        warn_independent_sampling: Whether it is logged which parameters ``independent_sampler`` draws, and why: a
            warning where there is a past or a model to choose them by.
        constraints_func: Gives the constraints of a finished trial as numbers, which hold where they are at most 0; for
            Optuna 4, whose trials have no ``set_constraint``.

    A study may have up to four objectives, and constraints: each is learnt from the sources that have it, and the next
    trial is where the improvement, or the volume beyond the front, is largest as far as the constraints probably hold.
    """

    def __init__(
        self,
        sources: Sequence[Any] | None = (),
        *,
        model: str | TransferModel = "auto",
        acquisition: str | Acquisition = "logei",
        beta: float = 3.0,
        seed: int | None = None,
        objective: str | int | Sequence[str | int] | Mapping[str, Any] | None = None,
        space: Mapping[str, BaseDistribution] | None = None,
        rename: Mapping[str, Any] | None = None,
        fill: Mapping[str, Any] | None = None,
        deterministic_objective: bool = False,
        cache_dir: str | PathLike[str] | None = None,
        n_jobs: int | str = 1,
        device: str = "cpu",
        independent_sampler: BaseSampler | None = None,
        constraints_func: Callable[[FrozenTrial], Sequence[float]] | None = None,
        error: str | Mapping[Any, str] | None = None,
        batch: str | None = None,
        drift: float | None = None,
        constraints: Mapping[str, str] | None = None,
        limits: Sequence[str | Limit] = (),
        baseline: int | Mapping[str, float] | None = None,
        least_probability: float | None = None,
        rules: Sequence[SettingRule | str] = (),
        fixed: Mapping[str, Any] | None = None,
        steps: Mapping[str, float] | None = None,
        candidates: Any = None,
        categories: Collection[str] = (),
        warn_independent_sampling: bool = True,
    ) -> None:
        settings = SettingConstraints.of(rules, fixed, steps, candidates)
        _require_arguments(seed, beta, cache_dir, constraints_func, independent_sampler)
        _require_space_and_fill(space, fill)
        log = SamplerLog()
        place = device_from(device, log.warn)
        learnt_by, chosen_by = _model(model).anywhere(), _acquisition(acquisition)
        limits_of_trials = [*(["constraints_func"] if constraints_func else ()), *(constraints or ())]
        require_one_objective(learnt_by, ["the objective", *limits_of_trials])
        fits = None if cache_dir is None else FitCache(Path(cache_dir).expanduser(), logger.warning)
        context = LearnContext(fits, require_n_jobs(n_jobs), on_progress=log.progress, device=place)
        if isinstance(categories, str):
            raise InputError(f"categories must be a list of parameters, but it is {categories!r}: put it in brackets.")
        names = frozenset(categories)
        ordered = None if space is None else {n: OrderedChoices.of(n, own, names) for n, own in space.items()}
        settings.require(ordered)
        study_limits, error = StudyLimits.of(limits, baseline, least_probability, error)
        errors, batches = ErrorNames.of(error), BatchName.of(batch, drift)
        found = read_sources(
            () if sources is None else sources,
            objective=objective,
            space=space,
            rename=rename,
            error=error,
            constraints=constraints,
            limited=study_limits.quantities,
            batch=batches,
        )
        known = (own for task in found for own in (task.error, *(o.error for o in task.objectives.values())))
        if found and errors.every and all(own is None for own in known):
            what = f"no source has a column or user attribute {errors.every[0]!r}"
            log.warn(f"error: {what}, so the errors of theirs are not known.")
        for line in found.skipped:
            log.warn(line)
        if not found and learnt_by.needs_sources:
            logger.info("No sources are given: the study starts from scratch.")
        _require_shifts(learnt_by, batches, found)
        fitter = SourceFitter(
            sources=found,
            model=learnt_by,
            space=ordered,
            fill=dict(fill or {}),
            context=context,
            warn=log.warn,
            listed=settings.candidates.task if settings.candidates else None,
            errors=errors,
            batch=batches,
            categories=names,
            study_limits=study_limits,
        )
        fitter.require_common_ground()
        entropy = _fresh_entropy() if seed is None else int(seed)
        self._adviser = Adviser(
            fitter, settings, log, entropy, chosen_by, beta=float(beta), deterministic=deterministic_objective
        )
        self._independent_sampler = independent_sampler
        self._constraints_func = constraints_func
        self._warn_independent_sampling = warn_independent_sampling

    @property
    def last(self) -> Suggested | None:
        """The latest suggestion of this process; None before the first.

        Print it: what is to be tried, what is expected of it, how much it rests on, and whether it pays to go on.
        """
        return self._adviser.last

    def explain(self, study: Study | None = None, *, outcome: str | int | None = None) -> StudyExplanation:
        """A verdict on every source, what the prediction rests on, and how the sources came into the search space.

        Print it, or see ``to_frame()``. Only ``model="auto"``, the default, weighs its sources and has verdicts.

        Args:
            study: A study, loaded from a storage for instance, to give the verdicts after its finished trials; by
                default they are those of the latest suggestion.
            outcome: The name or number of the objective ("0" is the first, and the default), or "constraint ..." with
                the constraint's key, where several things are measured.

        Returns:
            The verdicts; where there are none, it says why.

        Raises:
            InputError: There is no such outcome.
        """
        return self._adviser.explain(study, outcome)

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """The parameters that are chosen before the objective asks; see ``Adviser.relative_space``."""
        return self._adviser.relative_space(study, trial)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The next parameters, noted for all other workers to see; nothing where the model failed."""
        params = self._adviser.suggest(study, trial, search_space) if search_space else None
        return {name: value for name, value in (params or {}).items() if name in search_space}

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """One parameter: of the suggestion, or chosen now, or drawn where nothing is known of it."""
        try:
            return self._adviser.value(study, trial, param_name, param_distribution)
        except NoPlaceError as error:
            reason = str(error).rstrip(".")
        sampler = self._independent_sampler or TPESampler(seed=self._adviser.seed(trial.number, param_name))
        by_whom_and_why = f"{type(sampler).__name__}: {reason}"
        own = self.last if self.last is not None and self.last.trial_number == trial.number else None
        if own is not None:
            own.drawn[param_name] = by_whom_and_why
        said = f"{param_name} is drawn by {by_whom_and_why}"
        if self._warn_independent_sampling:
            from_scratch = own is None and not self._adviser.fitter.sources
            say = logger.warning if not from_scratch and self._adviser.log.is_new(said) else logger.info
            say(f"Trial {trial.number}: {said}.")
        return sampler.sample_independent(study, trial, param_name, param_distribution)

    def reseed_rng(self) -> None:
        """Go on with other random numbers."""
        self._adviser.entropy = _fresh_entropy()
        if self._independent_sampler is not None:
            self._independent_sampler.reseed_rng()

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Refuse rules about unknown parameters with an ``InputError``; pass it on to the independent sampler."""
        self._adviser.begin(study, trial)
        if self._independent_sampler is not None:
            self._independent_sampler.before_trial(study, trial)

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        """Write down the constraints, and pass it on to the independent sampler; results are read when needed."""
        if self._constraints_func is not None:
            write_constraints(self._constraints_func, study, trial, state)
        if self._independent_sampler is not None:
            self._independent_sampler.after_trial(study, trial, state, values)
        self._adviser.forget(trial.number)

    def __repr__(self) -> str:
        """The model and the sources."""
        names = [task.name for task in self._adviser.fitter.sources]
        listed = ", ".join(names[:_LISTED]) + (f" and {len(names) - _LISTED} more" if len(names) > _LISTED else "")
        return f"TransferSampler({model_name(self._adviser.fitter.model)}, sources: {listed or 'none'})"


def _fresh_entropy() -> int:
    return int.from_bytes(urandom(8), "little")


def _require(ok: bool, message: str) -> None:
    if not ok:
        raise InputError(message)


def _require_arguments(seed: Any, beta: Any, cache_dir: Any, constraints_func: Any, independent_sampler: Any) -> None:
    ok = seed is None or (isinstance(seed, Integral) and not isinstance(seed, bool))
    _require(ok, f"seed must be a whole number, or None for another one every time, but it is {seed!r}.")
    ok = isinstance(beta, Real) and not isinstance(beta, bool) and 0 <= float(beta) < math.inf
    _require(ok, f"beta is how much uncertainty attracts, a number from 0 on, but it is {beta!r}.")
    ok = cache_dir is None or isinstance(cache_dir, str | PathLike)
    _require(ok, f"cache_dir must be the path of a folder, but it is {cache_dir!r}.")
    ok = constraints_func is None or callable(constraints_func)
    _require(ok, f"constraints_func must be a function of a trial that gives numbers, not {constraints_func!r}.")
    ok = independent_sampler is None or isinstance(independent_sampler, BaseSampler)
    _require(ok, f"independent_sampler must be one of Optuna's, such as TPESampler(), not {independent_sampler!r}.")


def _require_space_and_fill(space: Any, fill: Any) -> None:
    """Without a space the parameters are not known yet, and ``fill`` may name any."""
    for name, given in (("space", space), ("fill", fill)):
        what = f"{name} must map names to values, as in {{'x': …}}, but it is {type(given).__name__}."
        _require(given is None or isinstance(given, Mapping), what)
    for name, distribution in (space or {}).items():
        what = f"space gives {distribution!r} for {name!r}, but it takes Optuna's distributions, such as "
        _require(isinstance(distribution, BaseDistribution), f"{what}optuna.distributions.FloatDistribution(0, 1).")
    for name in fill or {} if space is not None else ():
        what = f"fill gives a value for {name!r}, which is no parameter of the space. {nearest(name, space)}"
        _require(name in space, what)


def _model(model: str | TransferModel) -> TransferModel:
    is_model = isinstance(model, str | TransferModel)
    _require(is_model, f"model must be a name or a headstart model such as SHGP, but it is {model!r}.")
    return model_named(model) if isinstance(model, str) else model


def _require_shifts(model: TransferModel, batch: BatchName, sources: Sequence[RawTask]) -> None:
    """Raise an ``InputError`` where batches are named, or a source has several, and the model knows no shifts."""
    several = [task for task in sources if task.batch is not None and len({*task.batch.numbers.tolist()}) > 1]
    if batch.name is not None or several:
        try:
            model.require_known_batches([Dataset([[0.0], [1.0]], [0.0, 0.0], batch=[0, 1])])
        except InputError as error:
            where = several[0].where if batch.name is None else f"batch={batch.name!r}"
            raise InputError(f"{where}: {error}") from error


def _acquisition(kind: str | Acquisition) -> Acquisition:
    if isinstance(kind, Acquisition):
        return kind
    named = {"logei": Acquisition.LOG_EI, "ucb": Acquisition.LCB}
    _require(kind in named, f"acquisition must be one of {', '.join(named)}, but it is {kind!r}.")
    return named[kind]
