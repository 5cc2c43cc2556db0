"""Transfer with the libraries that others use, at the strength of their own defaults.

    method         model                                          the first point
    botorch-mtgp   BoTorch's MultiTaskGP, the task a feature;     where the sources' own processes are lowest on average
                   LogEI of the target
    ax             Ax's transfer learning: its generator BOTL     the same: Ax wants a result of the target first
                   with the sources as auxiliary experiments,
                   or its default model from scratch, whichever
                   ranks the results better when left out
    baybe          BayBE's TaskParameter, whose only active       its own choice, from the sources alone
                   value is the target

All are asked for their acquisition function at every free row, so that none is held back by a search. BoTorch's
functions are searched with ``optimize_acqf``; Ax and BayBE do tables only. Numbers are given in the unit cube (logs
taken), categories as such. Outputs are standardised by task, as BoTorch's documentation asks and Ax does itself; BayBE,
which standardises all tasks together, is given outputs that were standardised by task.
Ax and BayBE come with the dependency group ``platforms``.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from benchmarks.methods.method import Proposer
from benchmarks.methods.scratch import OneByOne, highest_in_cube, silence
from benchmarks.problems.problem import Instance
from headstart.data.axis import Axis
from headstart.errors import InputError, MissingExtraError

_SELECTED = 3  # results from which Ax's choice between its models can be cross-validated


def begin(name: str, instance: Instance, problem: str, seeds: Sequence[int]) -> Proposer:
    """The method of that name at work."""
    match name:
        case "botorch-mtgp":
            return _MultiTask(instance, problem, seeds)
        case "ax":
            return _Ax(instance, problem, seeds)
        case "baybe":
            return _BayBE(instance, problem, seeds)
    raise InputError(f"There is no rival {name!r}.")


def standardised(y: Float[Tensor, "n"]) -> Float[Tensor, "n"]:
    """(y − mean) / standard deviation; a single value, or equal ones, are 0."""
    spread = y.std() if len(y) > 1 else y.new_zeros(())
    return (y - y.mean()) / spread if spread > 0 else torch.zeros_like(y)


class _Rival(OneByOne):
    """What the three have in common: the first point, and parameters by name."""

    def _past(self, problem: int) -> list[tuple[Tensor, Tensor]]:
        return [(source.X[problem].cpu(), source.y[problem].cpu()) for source in self.instance.sources]

    def _zero_shot(self, problem: int) -> Any:
        """Minus the mean over the sources of what a process of each one's own predicts, as an acquisition function."""
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import SingleTaskGP
        from gpytorch.mlls import ExactMarginalLogLikelihood

        models = []
        for X, y in self._past(problem):
            model = SingleTaskGP(X, standardised(y).unsqueeze(-1), outcome_transform=None)
            fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
            models.append(model)
        return lambda X: -torch.stack([m.posterior(X).mean[..., 0, 0] for m in models]).mean(0)

    def _axes(self) -> list[Axis]:
        assert self.instance.space is not None
        return [axis for axis in self.instance.space.axes if axis.width]

    def _named(self, X: Float[Tensor, "n d"]) -> list[dict[str, Any]]:
        """Every row by the names of the parameters: a coordinate, or the name of a level."""
        columns = {axis.name: X[:, axis.columns] for axis in self._axes()}
        numbers: Mapping[str, list[Any]] = {
            axis.name: [f"level {i}" for i in columns[axis.name].argmax(-1).tolist()]
            if axis.categorical
            else columns[axis.name][:, 0].tolist()
            for axis in self._axes()
        }
        return [dict(zip(numbers, row, strict=True)) for row in zip(*numbers.values(), strict=True)]

    def _require_rows(self, name: str) -> None:
        if self.instance.candidates is None or self.instance.space is None:
            raise InputError(f"{name} is compared on tables only, but this problem is a function.")


class _MultiTask(_Rival):
    """BoTorch's MultiTaskGP with LogEI."""

    def choose(
        self, problem: int, X: Float[Tensor, "n d"], y: Float[Tensor, "n"], free: Bool[Tensor, "M"] | None
    ) -> tuple[float, Tensor]:
        if free is None and self.instance.space is not None:
            raise InputError("botorch-mtgp searches the unit cube or the rows of a table, but there are categories.")
        value = self._log_ei(problem, X, y) if len(y) else self._zero_shot(problem)
        fitted = time.process_time()
        return fitted, highest_in_cube(value, self.domain.d) if free is None else self.best_of(value, problem, free)

    def _log_ei(self, problem: int, X: Float[Tensor, "n d"], y: Float[Tensor, "n"]) -> Any:
        """LogEI on the lowest result of the target, which is the last task."""
        from botorch.acquisition.analytic import LogExpectedImprovement
        from botorch.fit import fit_gpytorch_mll
        from botorch.models.multitask import MultiTaskGP
        from gpytorch.mlls import ExactMarginalLogLikelihood

        tasks = [*self._past(problem), (X, y)]
        rows = torch.cat([torch.cat([A, A.new_full((len(A), 1), i)], dim=-1) for i, (A, _) in enumerate(tasks)])
        values = torch.cat([standardised(v) for _, v in tasks]).unsqueeze(-1)
        model = MultiTaskGP(rows, values, task_feature=-1, output_tasks=[len(tasks) - 1], outcome_transform=None)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        return LogExpectedImprovement(model, best_f=standardised(y).min(), maximize=False)


class _Ax(_Rival):
    """Ax's generator BOTL, with the choice between it and the default model that Ax makes."""

    def __init__(self, instance: Instance, problem: str, seeds: Sequence[int]) -> None:
        super().__init__(instance, problem, seeds)
        self._require_rows("ax")
        try:
            import ax
        except ImportError as error:
            raise MissingExtraError("The method ax needs Ax: pip install --group platforms.") from error
        del ax
        with silence():
            self._experiments = [self._experiment(i) for i in range(len(seeds))]

    def _experiment(self, problem: int) -> Any:
        """The target without a result, and the sources as experiments that can be transferred from."""
        from ax.adapter.transfer_learning.adapter import TL_EXP
        from ax.core.auxiliary_source import AuxiliarySource

        past = [self._filled(f"source {i}", X, y) for i, (X, y) in enumerate(self._past(problem))]
        target = self._filled("target", *(v[:0] for v in self._past(problem)[0]))
        target.auxiliary_experiments_by_purpose = {TL_EXP: [AuxiliarySource(experiment=e) for e in past]}
        return target

    def _filled(self, name: str, X: Float[Tensor, "n d"], y: Float[Tensor, "n"]) -> Any:
        """An experiment that minimises y, with these results."""
        from ax.core.experiment import Experiment
        from ax.core.metric import Metric
        from ax.core.objective import Objective
        from ax.core.optimization_config import OptimizationConfig
        from ax.core.parameter import ChoiceParameter, ParameterType, RangeParameter
        from ax.core.search_space import SearchSpace

        space = SearchSpace(
            [
                ChoiceParameter(
                    axis.name,
                    ParameterType.STRING,
                    [f"level {i}" for i in range(axis.width)],
                    is_ordered=False,
                    sort_values=False,
                )
                if axis.categorical
                else RangeParameter(axis.name, ParameterType.FLOAT, lower=0.0, upper=1.0)
                for axis in self._axes()
            ]
        )
        goal = OptimizationConfig(Objective(expression="-y", metric_name_to_signature={"y": "y"}))
        experiment = Experiment(name=name, search_space=space, optimization_config=goal, tracking_metrics=[Metric("y")])
        for parameters, value in zip(self._named(X), y.tolist(), strict=True):
            _attach(experiment, parameters, value)
        return experiment

    def choose(
        self, problem: int, X: Float[Tensor, "n d"], y: Float[Tensor, "n"], free: Bool[Tensor, "M"] | None
    ) -> tuple[float, Tensor]:
        assert free is not None
        assert self.instance.candidates is not None
        if not len(y):
            value = self._zero_shot(problem)
            return time.process_time(), self.best_of(value, problem, free)
        from ax.core.observation import ObservationFeatures
        from ax.utils.common.constants import Keys

        experiment = self._experiments[problem]
        _attach(experiment, self._named(X[-1:])[0], float(y[-1]))
        adapter, fitted = _fitted(experiment, results=len(y)), time.process_time()
        left = free.nonzero().squeeze(-1)
        rows = self._named(self.instance.candidates.X[problem].cpu()[left])
        at_target = {Keys.TASK_FEATURE_NAME.value: 0}
        values = adapter.evaluate_acquisition_function([ObservationFeatures(row, metadata=at_target) for row in rows])
        return fitted, left[torch.tensor(values).argmax()]


def _attach(experiment: Any, parameters: Mapping[str, Any], value: float) -> None:
    """One more trial with its result, whose noise is not known."""
    import pandas as pd
    from ax.core.arm import Arm
    from ax.core.data import Data

    trial = experiment.new_trial()
    trial.add_arm(Arm(parameters=dict(parameters), name=f"{trial.index}_0"))
    trial.mark_running(no_runner_required=True)
    record = {"trial_index": trial.index, "arm_name": f"{trial.index}_0", "metric_name": "y", "metric_signature": "y"}
    experiment.attach_data(Data(df=pd.DataFrame([{**record, "mean": value, "sem": float("nan")}])))
    trial.mark_completed()


def _fitted(experiment: Any, *, results: int) -> Any:
    """The adapter that Ax would go on with."""
    from ax.adapter.transfer_learning.adapter import transfer_learning_generator_specs_constructor

    specs, selector = transfer_learning_generator_specs_constructor(use_model_selection=results >= _SELECTED)
    for spec in specs:
        spec.fit(experiment=experiment, data=experiment.lookup_data())
    best = specs[0] if selector is None else selector.best_model(specs)
    return best.fitted_adapter


class _BayBE(_Rival):
    """BayBE's recommender on the free rows, with the task as a parameter."""

    def __init__(self, instance: Instance, problem: str, seeds: Sequence[int]) -> None:
        super().__init__(instance, problem, seeds)
        self._require_rows("baybe")
        try:
            import baybe
        except ImportError as error:
            raise MissingExtraError("The method baybe needs BayBE: pip install --group platforms.") from error
        del baybe

    def choose(
        self, problem: int, X: Float[Tensor, "n d"], y: Float[Tensor, "n"], free: Bool[Tensor, "M"] | None
    ) -> tuple[float, Int[Tensor, ""]]:
        assert free is not None
        assert self.instance.candidates is not None
        import pandas as pd
        from baybe.objectives import SingleTargetObjective
        from baybe.parameters import CategoricalParameter, NumericalDiscreteParameter, TaskParameter
        from baybe.recommenders import BotorchRecommender
        from baybe.searchspace import SearchSpace, SubspaceDiscrete
        from baybe.targets import NumericalTarget

        left = free.nonzero().squeeze(-1)
        tasks = {f"source {i}": data for i, data in enumerate(self._past(problem))} | {"target": (X, y)}
        known = pd.concat(
            [
                pd.DataFrame(self._named(A)).assign(task=task, y=standardised(v).tolist())
                for task, (A, v) in tasks.items()
                if len(v)
            ],
            ignore_index=True,
        )
        rows = pd.DataFrame(self._named(self.instance.candidates.X[problem].cpu()[left])).assign(task="target")
        parameters: list[Any] = [TaskParameter("task", values=tuple(tasks), active_values=("target",))]
        for axis in self._axes():
            levels = [f"level {i}" for i in range(axis.width)]
            values = sorted({*known[axis.name], *rows[axis.name]})
            parameters.append(
                CategoricalParameter(axis.name, values=levels)
                if axis.categorical
                else NumericalDiscreteParameter(axis.name, values=values)
            )
        chosen = BotorchRecommender().recommend(
            1,
            # not ``from_dataframe``, which spends seconds on looking every value up
            SearchSpace(discrete=SubspaceDiscrete(parameters=parameters, exp_rep=rows)),
            SingleTargetObjective(NumericalTarget("y", minimize=True)),
            known,
        )
        return time.process_time(), left[int(chosen.index[0])]
