"""``TransferNode``: a generation node of Ax that learns from past experiments, tables and files (extra ``ax``)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from headstart.data.outcomes import Limit
from headstart.data.rules.rule import LinearRule, Relation
from headstart.errors import InputError, MissingExtraError
from headstart.platforms.told import ToldProblem, ToldStudy, ToldTrial, table_of, with_tables
from headstart.sampler.explanation import StudyExplanation

try:
    from ax.core.data import Data
    from ax.core.experiment import Experiment
    from ax.core.optimization_config import OptimizationConfig
    from ax.core.parameter import ChoiceParameter, FixedParameter, Parameter, ParameterType, RangeParameter
    from ax.core.search_space import SearchSpace
    from ax.core.types import ComparisonOp
    from ax.generation_strategy.external_generation_node import ExternalGenerationNode
    from ax.generation_strategy.transition_criterion import TransitionCriterion
except ImportError as missing:
    raise MissingExtraError(f"A node of Ax needs {missing.name}: pip install 'headstart[ax]'.") from missing


class TransferNode(ExternalGenerationNode):  # type: ignore[misc,unused-ignore]
    """Candidates with a head start: the generation node that chooses as ``TransferSampler`` does.

    The search space, objectives, outcome constraints and parameter constraints are the experiment's; trials that have
    no result yet are awaited. The first candidate is already informed, so no Sobol trials need to come before it.

    Args:
        sources: Past tasks, from the least to the most related one: Ax experiments, and whatever a sampler takes,
            such as DataFrames and CSV files whose columns are called as the parameters and metrics are.
        name: The node's name.
        transition_criteria: When the generation strategy goes on to another node; by default never.
        options: Further arguments of ``headstart.TransferSampler``: ``seed``, ``model``, ``rename``, ``cache_dir`` ….

    Raises:
        InputError: The sources are no list. When a candidate is asked for: a source that cannot be used, or an
            experiment with what headstart does not know, such as fidelities, derived or hierarchical parameters, and
            relative constraints.
    """

    def __init__(
        self,
        sources: Sequence[Any] = (),
        *,
        name: str = "headstart",
        transition_criteria: Sequence[TransitionCriterion] | None = None,
        **options: Any,
    ) -> None:
        # what was tried is repeated only where that says more than anything new
        super().__init__(name=name, should_deduplicate=False, transition_criteria=transition_criteria)
        self._options = options
        self._sources = with_tables(sources, _table)
        self._told: ToldStudy | None = None
        self._space: SearchSpace | None = None
        self._known: list[dict[str, Any]] = []  # the settings that the study has

    def update_generator_state(self, experiment: Experiment, data: Data) -> None:
        """Take the trials of the experiment, and its search space and objectives if they have changed.

        Args:
            experiment: The experiment.
            data: Its results.
        """
        trials = list(_trials(experiment, data))
        measured = {name for trial in trials for name in trial.errors}
        measured |= {n for n in experiment.metrics for s in self._sources if f"{n} error" in getattr(s, "columns", ())}
        problem = _problem(experiment, tuple(sorted(measured)))
        if self._told is None or problem != self._told.problem:
            self._told = ToldStudy(self._sources, problem, self._options)
        self._space = experiment.search_space
        self._told.tell(trials)
        self._known = [dict(trial.params) for trial in trials]

    def get_next_candidate(self, pending_parameters: list[dict[str, Any]]) -> dict[str, Any]:
        """The parameters to try next.

        Args:
            pending_parameters: Those that are being tried.

        Returns:
            Values by the names of all parameters.
        """
        assert self._told is not None
        assert self._space is not None
        for params in pending_parameters:
            if params not in self._known:
                self._told.wait_for(params)
                self._known.append(params)
        found = {name: self._space[name].cast(value) for name, value in self._told.ask().items()}
        self._known.append(found)
        return found

    def explain(self, *, outcome: str | None = None) -> StudyExplanation:
        """A verdict on every source after the results that are known, and what the latest candidate rests on.

        Args:
            outcome: The metric that it is about; by default the first objective.

        Returns:
            The verdicts; print it, or let a notebook show it.

        Raises:
            InputError: No candidate was asked for yet, or there is no such outcome.
        """
        if self._told is None:
            raise InputError("No candidate was asked for yet, so the experiment is not known and nothing is learnt.")
        return self._told.sampler.explain(outcome=outcome)


def _table(source: Any, name: str) -> Any:
    """The results of a past experiment as a source; anything else as it is."""
    if not isinstance(source, Experiment):
        return source
    return table_of(_trials(source, source.lookup_data()), source.name if source.has_name else name)


def _trials(experiment: Experiment, data: Data) -> Iterator[ToldTrial]:
    """Every arm of every trial, with the results that it has."""
    values: dict[tuple[int, str], dict[str, float]] = {}
    errors: dict[tuple[int, str], dict[str, float]] = {}
    for row in data.df.itertuples():
        place = int(row.trial_index), str(row.arm_name)
        if math.isfinite(row.mean):
            values.setdefault(place, {})[row.metric_name] = float(row.mean)
        if math.isfinite(row.sem) and row.sem > 0:
            errors.setdefault(place, {})[row.metric_name] = float(row.sem)
    for index, trial in experiment.trials.items():
        for arm in trial.arms:
            found = values.get((index, arm.name), {})
            lost = trial.status.is_failed or trial.status.is_abandoned or arm in trial.abandoned_arms
            failed = lost or (trial.status.is_terminal and not found)
            yield ToldTrial(arm.parameters, found, errors.get((index, arm.name), {}), failed=failed)


def _problem(experiment: Experiment, measured: tuple[str, ...]) -> ToldProblem:
    """What the experiment looks for, and where; an ``InputError`` where headstart does not know a part of it."""
    config, space = experiment.optimization_config, experiment.search_space
    if config is None:
        raise InputError("The experiment has no objective yet: configure its optimization first.")
    if space.is_hierarchical:
        raise InputError("The search space is hierarchical, which a TransferNode does not know. Flatten it.")
    goals = _goals(config)
    limits = tuple(_limit(one) for one in config.all_constraints)
    rules = tuple(
        LinearRule(tuple(own.constraint_dict.items()), Relation.AT_MOST, float(own.bound))
        for own in space.parameter_constraints
    )
    names = tuple(n for n, p in space.parameters.items() if isinstance(p, ChoiceParameter) and not p.is_ordered)
    known = {*goals, *(limit.name for limit in limits)}
    return ToldProblem(
        {name: _distribution(p) for name, p in space.parameters.items()},
        goals,
        limits,
        rules,
        names,
        tuple(name for name in measured if name in known),
    )


def _goals(config: OptimizationConfig) -> dict[str, bool]:
    """Whether each objective is maximised."""
    objective = config.objective
    weights = [weight for _, weight in objective.metric_weights]
    if len(weights) != objective.expression.count(",") + 1:
        raise InputError(f"The objective {objective.expression!r} is a sum of metrics. Make it a metric of its own.")
    return {name: weight > 0 for name, weight in zip(objective.metric_names, weights, strict=True)}


def _limit(constraint: Any) -> Limit:
    """An outcome constraint on one metric as a limit."""
    if constraint.relative:
        raise InputError(f"{constraint.expression!r} is relative to a baseline. Write the number that it stands for.")
    if len(constraint.metric_names) != 1:
        raise InputError(f"{constraint.expression!r} is about a sum of metrics. Make it a metric of its own.")
    ((_, weight),) = constraint.metric_weights
    name, bound = constraint.metric_names[0], float(constraint.bound) / weight
    at_most = (constraint.op is ComparisonOp.LEQ) == (weight > 0)
    return Limit(name, at_most=bound) if at_most else Limit(name, at_least=bound)


def _distribution(parameter: Parameter) -> BaseDistribution:
    """A parameter of Ax as Optuna has it."""
    if parameter.is_fidelity:
        raise InputError(f"{parameter.name!r} is a fidelity, which a TransferNode does not know. Fix it at its target.")
    match parameter:
        case FixedParameter():
            return CategoricalDistribution((parameter.value,))
        case ChoiceParameter() if not parameter.is_task:
            return CategoricalDistribution(tuple(parameter.values))
        case RangeParameter() if not parameter.logit_scale:
            if parameter.parameter_type is ParameterType.INT:
                return IntDistribution(int(parameter.lower), int(parameter.upper), log=parameter.log_scale)
            return FloatDistribution(parameter.lower, parameter.upper, log=parameter.log_scale)
    kind = "is a task" if isinstance(parameter, ChoiceParameter) else f"is a {type(parameter).__name__}"
    kind = "has a logit scale" if isinstance(parameter, RangeParameter) else kind
    raise InputError(
        f"{parameter.name!r} {kind}, which a TransferNode does not know. Take a range (linear or log), choices, or a "
        "fixed value; other tasks are sources."
    )
