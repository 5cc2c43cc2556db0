"""``TransferRecommender``: a recommender of BayBE that learns from past campaigns, tables and files."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution

from headstart.data.rules.rule import LinearRule, Relation
from headstart.errors import InputError
from headstart.platforms.told import ToldProblem, ToldStudy, ToldTrial, with_tables
from headstart.sampler.explanation import StudyExplanation

if TYPE_CHECKING:
    from baybe.objectives.base import Objective
    from baybe.searchspace import SearchSpace

_RELATIONS = {"<=": Relation.AT_MOST, ">=": Relation.AT_LEAST, "=": Relation.EQUAL}
_BOOKKEEPING = ["BatchNr", "FitNr"]  # columns of a campaign's measurements that are no parameters


class TransferRecommender:
    """Recommendations with a head start: a campaign's recommender that chooses as ``TransferSampler`` does.

    The first batch is already informed, so no initial recommender needs to come before it.

    Args:
        sources: Past tasks, from the least to the most related one: BayBE campaigns, and whatever a sampler takes, such
            as DataFrames and CSV files whose columns are called as the parameters and targets are.
        options: Further arguments of ``headstart.TransferSampler``: ``seed``, ``model``, ``rename``, ``cache_dir`` ….

    Raises:
        InputError: The sources are no list. All else that is wrong is told when something is asked for.
    """

    def __init__(self, sources: Sequence[Any] = (), **options: Any) -> None:
        self._sources = with_tables(sources, _table)
        self._options = options
        self._told: ToldStudy | None = None

    def recommend(
        self,
        batch_size: int,
        searchspace: SearchSpace,
        objective: Objective | None = None,
        measurements: pd.DataFrame | None = None,
        pending_experiments: pd.DataFrame | None = None,
    ) -> pd.DataFrame:
        """The next experiments.

        Args:
            batch_size: How many.
            searchspace: Where they may lie.
            objective: A single target, or several of a Pareto objective, without transformations.
            measurements: The results so far.
            pending_experiments: Experiments whose result is awaited.

        Returns:
            A row for each, in the order of the search space's parameters.

        Raises:
            InputError: A source cannot be used, or the campaign has what headstart does not know.
        """
        candidates = searchspace.discrete.get_candidates()[0]
        if not searchspace.discrete.is_empty and searchspace.continuous.is_empty and len(candidates) < batch_size:
            from baybe.exceptions import NotEnoughPointsLeftError

            raise NotEnoughPointsLeftError(f"There are {len(candidates)} points left, but {batch_size} are asked for.")
        problem = _problem(searchspace, objective, candidates)
        if self._told is None or problem != self._told.problem:
            self._told = ToldStudy(self._sources, problem, self._options)
        told = [_trial(row, problem, measured=True) for row in _rows(measurements)]
        self._told.tell([*told, *(_trial(row, problem, measured=False) for row in _rows(pending_experiments))])
        found = pd.DataFrame([self._told.ask() for _ in range(batch_size)], columns=list(searchspace.parameter_names))
        if searchspace.discrete.is_empty:
            return found
        names = list(candidates.columns)
        index = {tuple(row): i for i, row in zip(candidates.index, candidates.itertuples(index=False), strict=True)}
        found.index = pd.Index([index[tuple(row)] for row in found[names].itertuples(index=False)])
        return found

    def explain(self, *, outcome: str | None = None) -> StudyExplanation:
        """A verdict on every source after the results that are known, and what the latest recommendation rests on.

        Args:
            outcome: The target that it is about; by default the first.

        Returns:
            The verdicts; print it, or let a notebook show it.

        Raises:
            InputError: Nothing was recommended yet, or there is no such outcome.
        """
        if self._told is None:
            raise InputError("Nothing was recommended yet, so the campaign is not known and nothing is learnt.")
        return self._told.sampler.explain(outcome=outcome)


def _table(source: Any, name: str) -> Any:
    """The measurements of a past campaign as a source; anything else as it is."""
    measured = getattr(source, "measurements", None)
    if not isinstance(measured, pd.DataFrame):
        return source
    table = measured.drop(columns=_BOOKKEEPING, errors="ignore")
    table.attrs["name"] = name
    return table


def _rows(table: pd.DataFrame | None) -> list[dict[str, Any]]:
    return [] if table is None else [{str(k): v for k, v in row.items()} for row in table.to_dict("records")]


def _trial(row: Mapping[str, Any], problem: ToldProblem, *, measured: bool) -> ToldTrial:
    """An experiment; a discrete number that was set otherwise counts as the nearest one."""
    params = {name: _nearest(row[name], own) for name, own in problem.space.items()}
    if not measured:
        return ToldTrial(params)
    values = {name: float(row[name]) for name in problem.goals if not math.isnan(row[name])}
    return ToldTrial(params, values, failed=len(values) < len(problem.goals))


def _nearest(value: Any, own: BaseDistribution) -> Any:
    if isinstance(own, CategoricalDistribution) and value not in own.choices and isinstance(value, int | float):
        return min((c for c in own.choices if isinstance(c, int | float)), key=lambda c: abs(c - value), default=value)
    return value


def _problem(space: SearchSpace, objective: Objective | None, candidates: pd.DataFrame) -> ToldProblem:
    """What the campaign looks for, and where; an ``InputError`` where headstart does not know a part of it."""
    discrete, continuous = space.discrete, space.continuous
    distributions = {p.name: _distribution(p) for p in space.parameters}
    rules = []
    for own in (*continuous.constraints_lin_eq, *continuous.constraints_lin_ineq):
        if own.is_interpoint:
            raise InputError(f"{own} is about a whole batch, which a TransferRecommender does not know.")
        terms = tuple(zip(own.parameters, own.coefficients, strict=True))
        rules.append(LinearRule(terms, _RELATIONS[own.operator], own.rhs))
    if continuous.constraints_nonlin:
        raise InputError("The search space has nonlinear constraints, which a TransferRecommender does not know.")
    free = math.prod(len(p.values) for p in discrete.parameters)
    if not discrete.is_empty and not continuous.is_empty and len(candidates) < free:
        raise InputError(
            "The search space is hybrid, and not all combinations of its discrete parameters may be recommended, which "
            "a TransferRecommender does not know. Make it discrete, or leave the constraints out."
        )
    rows = None
    if continuous.is_empty:
        rows = tuple(tuple(row) for row in candidates[list(distributions)].itertuples(index=False))
    return ToldProblem(distributions, _goals(objective), rules=tuple(rules), candidates=rows)


def _goals(objective: Objective | None) -> dict[str, bool]:
    """Whether each target is maximised."""
    from baybe.objectives import ParetoObjective, SingleTargetObjective
    from baybe.targets import NumericalTarget
    from baybe.transformations import IdentityTransformation

    if not isinstance(objective, SingleTargetObjective | ParetoObjective):
        kind = "no objective" if objective is None else f"a {type(objective).__name__}"
        raise InputError(f"A TransferRecommender needs a single target or a ParetoObjective, but there is {kind}.")
    targets: Sequence[Any] = objective.targets
    for target in targets:
        if not (isinstance(target, NumericalTarget) and isinstance(target.transformation, IdentityTransformation)):
            raise InputError(
                f"The target {target.name!r} is no plain number to maximise or minimise. Leave its transformation out, "
                "or make what it gives a target of its own."
            )
    return {target.name: not target.minimize for target in targets}


def _distribution(parameter: Any) -> BaseDistribution:
    """A parameter of BayBE as Optuna has it."""
    from baybe.parameters import NumericalContinuousParameter, TaskParameter

    if isinstance(parameter, TaskParameter):
        raise InputError(f"{parameter.name!r} is a task. Leave it out, and give the other tasks as sources.")
    if isinstance(parameter, NumericalContinuousParameter):
        return FloatDistribution(parameter.bounds.lower, parameter.bounds.upper)
    return CategoricalDistribution(tuple(parameter.values))
