"""``TransferSampler``: an Optuna sampler that starts from what was measured before.

    when                                    parameters come from
    no trial of the study is finished       a suggestion in the space as the sources know it, parameter by parameter
                                            fitted into the distribution that the objective asks for
    afterwards, or with ``space`` given     a suggestion in the space common to the finished trials (``space``)
    a parameter outside that space          ``independent_sampler``, or at random

The state of a study is in its storage and nowhere else: a sampler can be pickled, shared by threads, and used by any
number of processes on one study. Randomness is a function of the seed and the trial's number.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import optuna
import torch
from optuna.samplers import BaseSampler, RandomSampler

from headstart.data.dataset import Dataset
from headstart.decide.acquisition import Acquisition
from headstart.errors import InputError, NoPlaceError, NumericalError
from headstart.models.auto.reasons import Reasons, explanation_of
from headstart.models.model import Prior, TransferModel
from headstart.sampler.arguments import require_arguments, require_one_objective
from headstart.sampler.first_space import clip_value, known_space
from headstart.sampler.model_cache import ModelCache
from headstart.sampler.strategy import Strategy
from headstart.sampler.suggested import Suggested, find_clash
from headstart.sampler.trials import SeenTrials, note, noted, see
from headstart.sources.aligned import Alignment, Decision
from headstart.sources.alignment import align
from headstart.sources.extremes import infinite_in_words, outliers_in_words, with_outliers
from headstart.sources.past import read_sources

if TYPE_CHECKING:
    from optuna import Study
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial, TrialState

__all__ = ["TransferSampler"]

_logger = logging.getLogger(__name__)

_ROUNDS = 8  # how often a suggestion that clashes with another worker's is made again, in case many ask at once
_PAUSE = 0.02  # seconds, on average half of it; twice as long after every further clash


class TransferSampler(BaseSampler):
    """Bayesian optimisation with a head start from past studies, tables and files.

    Args:
        sources: Past tasks, from the least to the most related one: Optuna studies, pairs (storage_url, study_name),
            DataFrames, paths of CSV files, ``Dataset``s. They are read here, once.
        model: A name of ``headstart.FAMILY`` in upper or lower case, or a model with options of its own.
        acquisition: "logei", the logarithm of the expected improvement, or "ucb", the optimistic bound of the mean
            by ``beta`` standard deviations.
        beta: How much uncertainty attracts with "ucb".
        seed: Equal seeds give equal suggestions for equal trials.
        objective: The column of tables that holds the results, and which of several objectives of a study counts;
            for single sources {source: name}.
        space: The search space, if it is to be known before the first trial has run. Needed for ``Dataset``s.
        rename: Other names for the sources' parameters, {old: new}, or {source: {old: new}} for single sources.
        fill: Values of parameters that a source did not record, such as {"dropout": 0.0}. Without one, the source
            is taken as constant along the parameter.
        deterministic_objective: Whether repeating a finished trial is a waste.
        cache_dir: A folder in which what was learnt from the sources is kept for other processes and runs.
        independent_sampler: For parameters outside the common space; by default they are drawn at random.

    A study with several objectives is an ``InputError``; constraints are ignored, with a warning.
    """

    def __init__(
        self,
        sources: Sequence[Any] = (),
        *,
        model: str | TransferModel = "auto",
        acquisition: str | Acquisition = "logei",
        beta: float = 3.0,
        seed: int | None = None,
        objective: str | Mapping[str, str] | None = None,
        space: Mapping[str, BaseDistribution] | None = None,
        rename: Mapping[str, Any] | None = None,
        fill: Mapping[str, Any] | None = None,
        deterministic_objective: bool = False,
        cache_dir: str | PathLike[str] | None = None,
        independent_sampler: BaseSampler | None = None,
    ) -> None:
        require_arguments(seed, space, fill)
        self._strategy = Strategy.of(model, acquisition, beta=beta, deterministic=deterministic_objective)
        self._space = dict(space) if space is not None else None
        self._sources = read_sources(sources, objective=objective, space=space, rename=rename)
        if self._strategy.model.needs_sources and not self._sources:
            raise InputError("There is no source to start from: give sources=[...], or model='gpbo' to start without.")
        self._fill = dict(fill or {})
        self._cache = ModelCache(None if cache_dir is None else Path(cache_dir).expanduser())
        self._independent_sampler = independent_sampler
        self._entropy = _fresh_entropy() if seed is None else seed
        self._first_space = known_space(self._sources)
        self._said: set[str | Decision] = set()
        self._aligned: tuple[Any, Alignment] | None = None  # the latest, with what it was asked for
        self._last: Suggested | None = None
        self._lock = threading.RLock()

    # ── what it did ───────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def last(self) -> Suggested | None:
        """The latest suggestion of this process and what it rests on; None before the first."""
        return self._last

    @property
    def report(self) -> str:
        """How the sources were brought into the search space, a line per decision. Print it."""
        if (last := self._last) is not None:
            own = [f"this study: {last.posterior.train_targets.shape[-1]} results", *(f"  ! {r}" for r in last.remarks)]
            return "\n".join([str(last.alignment), *(own if last.remarks else ())])
        names = [f"{task.name}: {len(task.rows)} rows of {', '.join(task.parameters)}" for task in self._sources]
        return "\n".join(["Nothing was suggested yet, so nothing had to be aligned.", *names])

    def explain(self) -> Reasons:
        """Why the latest suggestion is what it is: a verdict on every source, and what the prediction rests on.

        Print it. It takes ``model="auto"``, the default, whose candidates are weighed by what they predicted.
        """
        last = self._last
        if last is None:
            raise InputError("Nothing was suggested yet, so there is nothing to explain.")
        target = Dataset(last.posterior.train_inputs[0], last.posterior.train_targets, "this study")
        return explanation_of(last.prior, target, last.x.unsqueeze(0), posterior=last.posterior)

    # ── what Optuna calls ─────────────────────────────────────────────────────────────────────────────────────────

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:  # noqa: ARG002
        """The parameters that are chosen together: ``space``, or those common to all finished trials."""
        found = self._space
        if found is None:
            found = optuna.search_space.intersection_search_space(study.get_trials(deepcopy=False))
        return {name: distribution for name, distribution in found.items() if not distribution.single()}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The next parameters, noted for all other workers to see."""
        require_one_objective(study)
        return self._suggest(study, trial, search_space, final=True) if search_space else {}

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """A parameter on its own: informed as long as no trial is finished, at random if the sources do not know it."""
        require_one_objective(study)
        params = noted(trial)
        if params is None and self._space is None and param_name in self._first_space:
            trials = study.get_trials(deepcopy=False)
            if not any(t.state == optuna.trial.TrialState.COMPLETE for t in trials):
                guess = self._first_guess([t for t in trials if t.number != trial.number])
                varies = any(not distribution.single() for distribution in guess.values())
                params = self._suggest(study, trial, guess, final=False) if varies else None
        if params and param_name in params:
            try:
                return clip_value(params[param_name], param_name, param_distribution)
            except NoPlaceError:
                pass  # a category that is no more
        sampler = self._independent_sampler or RandomSampler(seed=self._seed(trial.number, param_name))
        return sampler.sample_independent(study, trial, param_name, param_distribution)

    def reseed_rng(self) -> None:
        """Go on with other random numbers."""
        self._entropy = _fresh_entropy()
        if self._independent_sampler is not None:
            self._independent_sampler.reseed_rng()

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Tell the independent sampler, if there is one, that a trial begins."""
        if self._independent_sampler is not None:
            self._independent_sampler.before_trial(study, trial)

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        """Tell the independent sampler; our own results are read from the storage when the next trial asks."""
        if self._independent_sampler is not None:
            self._independent_sampler.after_trial(study, trial, state, values)

    # ── how ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _suggest(
        self, study: Study, trial: FrozenTrial, distributions: Mapping[str, BaseDistribution], *, final: bool
    ) -> dict[str, Any]:
        """Parameters for the trial; none (they are then drawn at random) where the arithmetic failed.

        Threads take turns, so that each sees what the others were given. Another process may ask between our looking
        and our noting: older trials that have no parameters yet are assumed to take the best points, and what turns
        out to clash afterwards is chosen again. Of two that clash one is enough, or both would meet again at the next
        best point: each waits for a moment of its own length, and stays if the other has withdrawn by then.
        """
        minimize = study.direction != optuna.study.StudyDirection.MAXIMIZE
        with self._lock, _on_cpu():
            trials = study.get_trials(deepcopy=False)
            elsewhere = {name for t in trials for name in t.distributions}
            try:
                alignment, prior = self._learn(distributions, elsewhere, minimize)
                self._say_once(alignment if final else None, trials)
                looking = partial(see, space=alignment.space, own=trial.number, minimize=minimize)
                seen = looking(trials)
                remarks = self._on_results(prior, seen)
                posterior = prior.condition(seen.target, seed=self._seed(trial.number))
                for round_ in range(_ROUNDS):
                    x = self._strategy.choose(posterior, alignment.space, seen, seed=self._seed(trial.number, round_))
                    params = alignment.space.decode(x.unsqueeze(0))[0]
                    note(study, trial, params)
                    pause = self._pause(trial.number, round_)
                    clash = find_clash(x, seen, lambda: looking(study.get_trials(deepcopy=False)), pause)
                    if clash is None or round_ == _ROUNDS - 1:
                        break
                    note(study, trial, {})  # so that the other one sees that it may stay
                    seen = replace(clash, target=seen.target)
            except NumericalError as error:
                _logger.warning("Trial %d is drawn at random, because the model failed: %s", trial.number, error)
                note(study, trial, {})
                return {}
            self._last = Suggested(trial.number, params, x, alignment, prior, posterior, minimize, remarks)
            return params

    def _learn(
        self, distributions: Mapping[str, BaseDistribution], elsewhere: set[str], minimize: bool
    ) -> tuple[Alignment, Prior]:
        asked = (dict(distributions), elsewhere, minimize)
        if self._aligned is None or self._aligned[0] != asked:
            found = align(
                self._sources, distributions, fill=self._fill, minimize=minimize, elsewhere=elsewhere, strict=False
            )
            self._aligned = (asked, found)
        alignment = self._aligned[1]
        prior = self._cache.learn(self._strategy.model_for(alignment.datasets), alignment.datasets)
        return with_outliers(alignment, prior), prior

    def _first_guess(self, trials: Sequence[FrozenTrial]) -> dict[str, BaseDistribution]:
        """The space as the sources know it, corrected by what other trials have already asked for."""
        asked = {name: d for t in trials for name, d in t.distributions.items() if name in self._first_space}
        return {name: asked.get(name, distribution) for name, distribution in self._first_space.items()}

    def _seed(self, number: int, purpose: int | str = "fit") -> int:
        """A seed of the trial's own, so that workers with equal seeds do not draw alike."""
        words = [self._entropy % (1 << 64), number, *str(purpose).encode()]
        return int(np.random.SeedSequence(words).generate_state(1)[0])

    def _pause(self, number: int, round_: int) -> float:
        """Seconds; another number for every trial and round."""
        return float(np.random.default_rng(self._seed(number, f"pause {round_}")).uniform(0, _PAUSE * 2**round_))

    def _say_once(self, alignment: Alignment | None, trials: Sequence[FrozenTrial]) -> None:
        for decision in alignment.warnings if alignment is not None else ():
            self._say(decision, f"{decision} (see sampler.report)")
        if any(str(key).startswith("constraints") for t in trials[-20:] for key in t.system_attrs):
            self._say("constraints", "TransferSampler ignores constraints: infeasible trials count as any other.")

    def _on_results(self, prior: Prior, seen: SeenTrials) -> tuple[str, ...]:
        """What there is to say about the study's own results; that some are outliers is also logged, once."""
        far = outliers_in_words(prior, seen.target, seen.values, seen.numbers, "trial")
        if far:
            self._say("outliers", f"This study: {far} (see sampler.report)")
        return tuple(remark for remark in (far, infinite_in_words(seen.values)) if remark)

    def _say(self, what: str | Decision, text: str) -> None:
        if what not in self._said:
            self._said.add(what)
            _logger.warning("%s", text)

    # ── pickling ──────────────────────────────────────────────────────────────────────────────────────────────────

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the lock and the latest suggestion."""
        return {name: value for name, value in vars(self).items() if name not in ("_lock", "_last")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """With a lock of its own."""
        vars(self).update(state, _lock=threading.RLock(), _last=None)


def _on_cpu() -> AbstractContextManager[Any]:
    """Small matrices stay on the CPU, also where torch's default device is another."""
    return nullcontext() if torch.get_default_device().type == "cpu" else torch.device("cpu")


def _fresh_entropy() -> int:
    return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
