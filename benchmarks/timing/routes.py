"""Ways to the next trial with the data of several tasks at hand, as people take them today.

    route                        uses           what is timed: everything between a finished trial and the next
    TransferSampler              all tasks      study.ask(); the sources were learnt before, once for all trials
    Optuna's GPSampler           target only    study.ask()
    Optuna's BoTorchSampler      target only    study.ask(); from optuna-integration
    BoTorch's MultiTaskGP        all tasks      fit_gpytorch_mll and optimize_acqf, as in BoTorch's own tutorials
    Ax, transfer learning        all tasks      fitting and gen() of Ax's own specification for transferable experiments

    when             what the sampler knew before
    going on         the study: it was asked for the last of the trials, whose result has just been told
    read at once     nothing of the study, all of whose trials it now sees for the first time
    every time       there is nothing that it could have kept

Packages that headstart does not depend on are imported when their route begins; it then says which one is missing.
"""

from __future__ import annotations

import logging
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import optuna
import torch
from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.trial import create_trial

from benchmarks.problems.problem import stream
from benchmarks.problems.synthetic import HARTMANN6
from headstart.data.dataset import Dataset
from headstart.errors import MissingExtraError
from headstart.sampler.sampler import TransferSampler

if TYPE_CHECKING:
    from optuna import Study
    from optuna.samplers import BaseSampler

_RESTARTS, _RAW_SAMPLES = 10, 512  # of BoTorchSampler, and here of MultiTaskGP as well


@dataclass(frozen=True, slots=True)
class History:
    """What is known when the next trial is asked for, in the unit cube; ``measure`` is the target's function."""

    sources: tuple[Dataset, ...]
    target: Dataset
    measure: Callable[[torch.Tensor], torch.Tensor] = field(repr=False, compare=False)


def draw_history(seed: int, *, sources: int = 3, points: int = 100, trials: int = 30) -> History:
    """Random points of random tasks of the Hartmann family, with the paper's noise."""
    functions = HARTMANN6

    def task(name: str, n: int) -> tuple[Dataset, Callable[[torch.Tensor], torch.Tensor]]:
        draw = stream("sampler", seed, name)
        X = torch.rand(n, functions.d, generator=draw, dtype=torch.float64)
        error = functions.noise_std * torch.randn(n, generator=draw, dtype=torch.float64)
        function = partial(functions.evaluate, functions.sample(1, draw)[0])
        return Dataset(X, function(X) + error, name), function

    return History(tuple(task(f"source {i}", points)[0] for i in range(sources)), *task("target", trials))


def space(d: int) -> dict[str, BaseDistribution]:
    """The unit cube for Optuna."""
    return {f"x{i}": FloatDistribution(0.0, 1.0) for i in range(d)}


def transfer_sampler(history: History, model: str, *, seed: int = 0) -> TransferSampler:
    """Ours, with the sources of the history."""
    return TransferSampler(history.sources, model=model, space=space(history.target.d), seed=seed)


class When(Enum):
    """What was known before; see the head of the module."""

    GOING_ON = "going on"
    AT_ONCE = "read at once"
    EVERY_TIME = "every time"


class Route(ABC):
    """A way to the next trial."""

    name: str
    when: When = When.EVERY_TIME

    @abstractmethod
    def begin(self, history: History) -> Callable[[], Callable[[], object]]:
        """Do what is done once for all trials; calling the result sets up a trial, and what that gives is timed."""


class OptunaRoute(Route):
    """A sampler in a study with the finished trials. The first trial of another study makes it learn from the sources.

    Every trial that is timed is that of a copy, which knows what the sampler knew then and nothing of the others.
    """

    def __init__(self, name: str, when: When, sampler: Callable[[History], BaseSampler]) -> None:
        self.name, self.when, self._sampler = name, when, sampler

    def begin(self, history: History) -> Callable[[], Callable[[], object]]:
        """Make the sampler, let it learn, and go through all of it once with a copy, so that everything is loaded."""
        target, sampler = history.target, self._sampler(history)
        asked = space(target.d)
        optuna.create_study(sampler=sampler).ask(asked)

        def arrange() -> Callable[[], object]:
            going_on = self.when is When.GOING_ON
            study = _study(target.head(target.n - 1) if going_on else target, deepcopy(sampler))
            if going_on:
                trial = study.ask(asked)
                study.tell(trial, float(history.measure(torch.tensor([list(trial.params.values())]).double())))
            return lambda: study.ask(asked).params

        arrange()()
        return arrange


def _study(target: Dataset, sampler: BaseSampler) -> Study:
    study = optuna.create_study(sampler=sampler)
    for x, y in zip(target.X.tolist(), target.y.tolist(), strict=True):
        params = {f"x{i}": value for i, value in enumerate(x)}
        study.add_trial(create_trial(params=params, distributions=space(target.d), value=y))
    return study


def _botorch_sampler(history: History) -> BaseSampler:  # noqa: ARG001
    sampler: BaseSampler = _optional("optuna_integration", "optuna-integration").BoTorchSampler(seed=0)
    return sampler


def _optional(module: str, package: str) -> Any:
    """A module that headstart does not depend on."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(f"not installed: pip install {package}") from error


class MultiTaskRoute(Route):
    """BoTorch's own multi-task process over all tasks, each standardised, and the logarithmic EI of the target."""

    name = "BoTorch's MultiTaskGP"

    def begin(self, history: History) -> Callable[[], Callable[[], object]]:
        """There is nothing to keep: all tasks are fitted together, every time."""
        tasks = (*history.sources, history.target)
        task = torch.cat([torch.full((data.n, 1), float(i), dtype=torch.float64) for i, data in enumerate(tasks)])
        X = torch.cat([torch.cat([data.X for data in tasks]), task], dim=-1)
        Y = torch.cat([(data.y.mean() - data.y) / data.y.std() for data in tasks]).unsqueeze(-1)
        return lambda: lambda: _multi_task(X, Y, target=len(tasks) - 1)


def _multi_task(X: torch.Tensor, Y: torch.Tensor, *, target: int) -> torch.Tensor:
    from botorch.acquisition.analytic import LogExpectedImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models.multitask import MultiTaskGP
    from botorch.optim.optimize import optimize_acqf
    from gpytorch.mlls import ExactMarginalLogLikelihood

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # line searches that end early are BoTorch's business
        model = MultiTaskGP(X, Y, task_feature=-1, output_tasks=[target])
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        own = X[:, -1] == target
        acquisition = LogExpectedImprovement(model, best_f=Y[own].max())
        bounds = torch.stack([torch.zeros(X.shape[-1] - 1), torch.ones(X.shape[-1] - 1)]).double()
        x, _ = optimize_acqf(acquisition, bounds=bounds, q=1, num_restarts=_RESTARTS, raw_samples=_RAW_SAMPLES)
    point: torch.Tensor = x
    return point


class AxRoute(Route):
    """Ax's multi-task process with the sources as transferable experiments.

    Without its model selection, which also fits a single task and cross-validates both, and takes longer still.
    """

    name = "Ax, transfer learning"

    def begin(self, history: History) -> Callable[[], Callable[[], object]]:
        """Put the data into experiments."""
        transfer = _optional("ax.adapter.transfer_learning.adapter", "ax-platform")
        auxiliary, _ = import_module("ax.core.auxiliary"), import_module("ax.api.client")
        import_module("ax.utils.common.logger").set_ax_logger_levels(logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            experiment = _ax_experiment(history.target)
            sources = [auxiliary.AuxiliaryExperiment(_ax_experiment(source)) for source in history.sources]
            purpose = auxiliary.AuxiliaryExperimentPurpose.TRANSFERABLE_EXPERIMENT
            experiment.auxiliary_experiments_by_purpose = {purpose: sources}

        def trial() -> object:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                (spec,), _ = transfer.transfer_learning_generator_specs_constructor(use_model_selection=False)
                spec.fit(experiment=experiment)
                return spec.gen(experiment=experiment, n=1)

        return lambda: trial


def _ax_experiment(data: Dataset) -> Any:
    client = import_module("ax.api.client").Client()
    names, range_ = list(space(data.d)), import_module("ax.api.configs").RangeParameterConfig
    parameters = [range_(name=name, parameter_type="float", bounds=(0.0, 1.0)) for name in names]
    client.configure_experiment(name=data.name, parameters=parameters)
    client.configure_optimization(objective="-value")
    for x, y in zip(data.X.tolist(), data.y.tolist(), strict=True):
        index = client.attach_trial(dict(zip(names, x, strict=True)))
        client.complete_trial(index, raw_data={"value": y})
    return client._experiment


def routes(model: str) -> tuple[Route, ...]:
    """All of them, ours with this model first: going on, then read at once, then with a single model of the paper."""
    ours, going_on = f"TransferSampler ({model.upper()})", When.GOING_ON
    return (
        OptunaRoute(ours, going_on, lambda h: transfer_sampler(h, model)),
        OptunaRoute(ours, When.AT_ONCE, lambda h: transfer_sampler(h, model)),
        OptunaRoute("TransferSampler (SHGP)", going_on, lambda h: transfer_sampler(h, "shgp")),
        OptunaRoute("Optuna's GPSampler", going_on, lambda _: optuna.samplers.GPSampler(seed=0)),
        OptunaRoute("Optuna's BoTorchSampler", going_on, _botorch_sampler),
        MultiTaskRoute(),
        AxRoute(),
    )
