"""``TransferSampler``: an Optuna sampler that starts from what was measured before.

    a parameter                                       comes from
    that a finished trial or a source knows           the model, with all others that are there (sampler.adviser)
    the same, in a branch that was not expected       the model, the others being as they are
    that nobody knows yet, or outside ``space``       ``independent_sampler``; a line in the log says so

The state of a study is in its storage and nowhere else: a sampler can be pickled, shared by threads, and used by any
number of processes on one study. Randomness is a function of the seed and the trial's number. Nothing heavy is
imported before a sampler is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from os import PathLike, urandom
from typing import TYPE_CHECKING, Any

import optuna
from optuna.samplers import BaseSampler, TPESampler
from optuna.samplers._base import _process_constraints_after_trial

from headstart.errors import InputError, NoPlaceError
from headstart.sampler.arguments import require_arguments

if TYPE_CHECKING:
    from optuna import Study
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial, TrialState

    from headstart.data.rules.rule import SettingRule
    from headstart.decide.acquisition import Acquisition
    from headstart.decide.stopping import Outlook
    from headstart.models.auto.explanation import Explanation
    from headstart.models.model import TransferModel
    from headstart.sampler.suggested import Drawn, Suggested

_LISTED = 10  # sources that are named where the sampler is printed


class TransferSampler(BaseSampler):
    """Bayesian optimisation with a head start from past studies, tables and files.

    Args:
        sources: Past tasks, from the least to the most related one: studies, storages, tables, files; see
            ``headstart.Sources``. They are read here, once; what cannot be used is logged, and the rest goes on.
            None at all is a start from scratch.
        model: A name of ``headstart.FAMILY`` in upper or lower case, or a model with options of its own.
        acquisition: "logei", the logarithm of the expected improvement, or "ucb", the optimistic bound of the mean
            by ``beta`` standard deviations.
        beta: How much uncertainty attracts with "ucb".
        seed: Equal seeds give equal suggestions for equal trials.
        objective: The column of tables that holds the results, and which of several objectives of a study counts;
            for single sources {source: name}. Where the study has several objectives a list: they are matched to its
            metric names, or, where none of them is one, taken in the order of its objectives.
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
        constraints: The columns of tables that hold constraints, {key: column}: they hold where a value is at most 0.
        rules: What the settings must keep, as text ("2*A + B <= 100", "A + B + C = 1", "forbid: T > 180 and solvent =
            toluene") or as ``headstart`` rules. A rule is about parameters that are known before the trial: from
            ``space``, from a source, or from trials that ran.
        fixed: Values that parameters always have, such as {"A": 3}.
        steps: Steps that values are on, counted from the lowest one, such as {"B": 0.5}.
        candidates: The settings to choose from, one of which is tried each time: a DataFrame, a list of {parameter:
            value}, or the path of a CSV file. What was tried is tried again only when all of them were.
        constraints_func: Gives the constraints of a finished trial as numbers, which hold where they are at most 0; for
            Optuna 4, whose trials have no ``set_constraint``.

    A study may have up to three objectives, and constraints: each is learnt from the sources that have it, and the next
    trial is where the improvement, or the volume beyond the front, is largest as far as the constraints probably hold.
    """

    def __init__(
        self,
        sources: Sequence[Any] = (),
        *,
        model: str | TransferModel = "auto",
        acquisition: str | Acquisition = "logei",
        beta: float = 3.0,
        seed: int | None = None,
        objective: str | Sequence[str] | Mapping[str, Any] | None = None,
        space: Mapping[str, BaseDistribution] | None = None,
        rename: Mapping[str, Any] | None = None,
        fill: Mapping[str, Any] | None = None,
        deterministic_objective: bool = False,
        cache_dir: str | PathLike[str] | None = None,
        n_jobs: int | str = 1,
        device: str = "cpu",
        independent_sampler: BaseSampler | None = None,
        constraints_func: Callable[[FrozenTrial], Sequence[float]] | None = None,
        error: str | Mapping[str, str] | None = None,
        constraints: Mapping[str, str] | None = None,
        rules: Sequence[SettingRule | str] = (),
        fixed: Mapping[str, Any] | None = None,
        steps: Mapping[str, float] | None = None,
        candidates: Any = None,
    ) -> None:
        from headstart.sampler.settings.constraints import SettingConstraints
        from headstart.sampler.start import start

        require_arguments(
            seed,
            space,
            fill,
            independent_sampler=independent_sampler,
            beta=beta,
            cache_dir=cache_dir,
            constraints_func=constraints_func,
        )
        self._adviser = start(
            sources,
            model=model,
            acquisition=acquisition,
            beta=beta,
            deterministic=deterministic_objective,
            entropy=_fresh_entropy() if seed is None else int(seed),
            objective=objective,
            space=space,
            rename=rename,
            fill=fill,
            cache_dir=cache_dir,
            n_jobs=n_jobs,
            device=device,
            settings=SettingConstraints.of(rules, fixed, steps, candidates),
            error=error,
            constraints=constraints,
        )
        self._independent_sampler = independent_sampler
        self._constraints_func = constraints_func
        self._last: Suggested | Drawn | None = None

    # ── what it did ───────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def last(self) -> Suggested | Drawn | None:
        """The latest trial of this process and what it rests on; None before the first."""
        return self._last

    @property
    def report(self) -> str:
        """How the sources were brought into the search space, a line per decision. Print it."""
        if (last := self._adviser.last) is not None:
            own = [f"this study: {last.posterior.train_targets.shape[-1]} results", *(f"  ! {r}" for r in last.remarks)]
            return "\n".join([str(last.alignment), *(own if last.remarks else ())])
        names = [f"{t.name}: {len(t.rows)} rows of {', '.join(t.parameters)}" for t in self._adviser.learner.sources]
        return "\n".join(["Nothing was suggested yet, so nothing had to be aligned.", *names])

    def explain(self, study: Study | None = None, *, outcome: str | None = None) -> Explanation:
        """Why the latest suggestion is what it is: a verdict on every source, and what the prediction rests on.

        Of a ``study``, loaded from a storage for instance, the verdicts after its finished trials. Print it, or see
        ``to_frame()``. It takes ``model="auto"``, the default, whose candidates are weighed by what they predicted.
        Where several things are measured ``outcome`` is the name or number of the objective ("0" is the first, and
        the default), or "constraint …" with the constraint's key.
        """
        from headstart.models.auto.explanation import explain
        from headstart.models.model import observed

        if study is not None:
            prior, target = self._adviser.prior_and_results(study, outcome)
            return explain(prior, target, target.X[:0])
        last = self._adviser.last
        if last is None:
            raise InputError("Nothing was suggested yet, so there is nothing to explain: give it a study.")
        prior, posterior = last.prior, last.posterior
        if last.several is not None and outcome is not None:
            prior, posterior = last.priors[last.several.outcomes[outcome].name], last.several[outcome]
        target = replace(observed(posterior), name="this study")
        return explain(prior, target, last.x.unsqueeze(0), posterior=posterior)

    def outlook(self, study: Study) -> Outlook:
        """Whether it pays to go on: what the next trials together are expected to gain. Print it.

        Of one objective in its units and beside the noise, of several as a share of the front's volume; ``advice`` is
        what follows. See ``headstart.decide.stopping`` for what counts as small.
        """
        return self._adviser.outlook(study)

    # ── what Optuna calls ─────────────────────────────────────────────────────────────────────────────────────────

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:  # noqa: ARG002
        """The parameters that are chosen before the objective asks: those that finished trials, or ``space``, know.

        Where there are rules it is none: Optuna would not ask again for those that come after one which the objective
        offers other values of, and together they could break a rule.
        """
        if self._adviser.settings:
            return {}
        trials = study.get_trials(deepcopy=False)
        finished = {name for t in trials if t.state == optuna.trial.TrialState.COMPLETE for name in t.params}
        found = self._adviser.learner.whole_space(study, trials).distributions
        return {
            name: distribution
            for name, distribution in found.items()
            if not distribution.single() and (self._adviser.learner.space is not None or name in finished)
        }

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The next parameters, noted for all other workers to see."""
        if not search_space:
            return {}
        params = self._adviser.suggest(study, trial, search_space)
        self._last = self._adviser.last if params else None
        return {name: value for name, value in params.items() if name in search_space}

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """A parameter on its own: of what was chosen, or chosen now, or drawn where nobody knows anything of it."""
        try:
            value = self._adviser.value(study, trial, param_name, param_distribution)
        except NoPlaceError as error:
            return self._draw(study, trial, param_name, param_distribution, str(error))
        self._last = self._adviser.last
        return value

    def _draw(self, study: Study, trial: FrozenTrial, name: str, distribution: BaseDistribution, reason: str) -> Any:
        from headstart.sampler.suggested import Drawn

        sampler = self._independent_sampler or TPESampler(seed=self._adviser.seed(trial.number, name))
        own = type(sampler).__name__
        suggested = self._adviser.last
        if suggested is not None and suggested.trial_number == trial.number:
            self._last = suggested
        elif self._last is None or self._last.trial_number != trial.number:
            self._last = Drawn(trial.number)
        self._last.drawn[name] = f"{own}: {reason}"
        from_nothing = self._last is not suggested and not self._adviser.learner.sources
        self._adviser.words.drawn(trial.number, name, own, reason, expected=from_nothing)
        return sampler.sample_independent(study, trial, name, distribution)

    def reseed_rng(self) -> None:
        """Go on with other random numbers."""
        self._adviser.entropy = _fresh_entropy()
        if self._independent_sampler is not None:
            self._independent_sampler.reseed_rng()

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """See that its rules are about what is known; tell the independent sampler, if any, that a trial begins."""
        self._adviser.begin(study, trial)
        if self._independent_sampler is not None:
            self._independent_sampler.before_trial(study, trial)

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        """Write down the constraints, tell the independent sampler; results are read when the next trial asks."""
        if self._constraints_func is not None:
            _process_constraints_after_trial(self._constraints_func, study, trial, state)
        if self._independent_sampler is not None:
            self._independent_sampler.after_trial(study, trial, state, values)
        self._adviser.forget(trial.number)

    def __repr__(self) -> str:
        """The model and the sources."""
        from headstart.models.family import model_name

        names = [task.name for task in self._adviser.learner.sources]
        listed = ", ".join(names[:_LISTED]) + (f" and {len(names) - _LISTED} more" if len(names) > _LISTED else "")
        return f"TransferSampler({model_name(self._adviser.strategy.model)}, sources: {listed or 'none'})"

    # ── pickling ──────────────────────────────────────────────────────────────────────────────────────────────────

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the latest suggestion."""
        return vars(self) | {"_last": None}


def _fresh_entropy() -> int:
    return int.from_bytes(urandom(8), "little")
