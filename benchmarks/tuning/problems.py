"""The tuning problems: a search space as an objective asks for it, a model of scikit-learn, and the tasks it learns.

kind               problems
plain              kernel-ridge, gaussian-process, svm
mixed              neighbours, forest, boosted-trees, boosted-regression, logistic, elastic-net
conditional        pipeline, svm-kernels, classifier-choice, network-layers
awkward            diverging-sgd (some runs end at up to 1e30), pruned-network (most trials are not trained to the end)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from benchmarks.tuning import models
from benchmarks.tuning.models import Params
from benchmarks.tuning.tasks import TuningTask
from headstart.errors import InputError

if TYPE_CHECKING:
    from optuna.trial import BaseTrial


@dataclass(frozen=True, eq=False)
class TuningProblem:
    """What is tuned, and on what.

    ``only`` says of a conditional parameter which one must have which of some values for it to be asked for: a gamma
    only where the kernel is "rbf" or "poly". Parents come before their children in ``space``.

    ``train`` gives the scores after every step of training, of which the last is the result; where ``prunes``, they are
    reported step by step and a pruner may end the trial. ``revision`` is raised with every change of ``train``, so that
    cached scores of earlier versions are not taken for present ones.
    """

    name: str
    title: str
    tasks: tuple[str, ...]
    space: dict[str, BaseDistribution]
    train: Callable[[TuningTask, Params], list[float]]
    only: Mapping[str, tuple[str, tuple[Any, ...]]] = field(default_factory=dict)
    maximize: bool = False
    prunes: bool = False
    revision: int = 1

    def ask(self, trial: BaseTrial) -> dict[str, Any]:
        """The parameters of a trial, asked for one after the other, and none in a branch that was not taken."""
        params: dict[str, Any] = {}
        for name, distribution in self.space.items():
            parent, values = self.only.get(name, ("", ()))
            if not parent or params.get(parent) in values:
                params[name] = _suggest(trial, name, distribution)
        return params

    def key(self, task: TuningTask, params: Params) -> str:
        """What makes an evaluation the same as another one: the model, the data and the values."""
        return json.dumps([self.name, self.revision, task.name, task.fingerprint, dict(params)], sort_keys=True)


def _suggest(trial: BaseTrial, name: str, distribution: BaseDistribution) -> Any:
    match distribution:
        case FloatDistribution(low=low, high=high, log=log, step=step):
            return trial.suggest_float(name, low, high, log=log, step=step)
        case IntDistribution(low=low, high=high, log=log, step=step):
            return trial.suggest_int(name, low, high, log=log, step=step)
        case CategoricalDistribution(choices=choices):
            return trial.suggest_categorical(name, choices)
    raise TypeError(f"{name}: {distribution} is no distribution of Optuna's.")


_log = partial(FloatDistribution, log=True)
_log_int = partial(IntDistribution, log=True)


def _one_of(*choices: str | bool) -> CategoricalDistribution:
    return CategoricalDistribution(choices)


_SWITCH, _UNITS, _COST, _GAMMA = _one_of(True, False), _log_int(2, 64), _log(1e-2, 1e3), _log(1e-4, 10.0)

PROBLEMS: dict[str, TuningProblem] = {
    problem.name: problem
    for problem in (
        TuningProblem(
            "svm",
            "support vector machine, Gaussian kernel",
            ("cancer-means", "digits-even", "wine-acids", "diabetes-high", "iris-sepals"),
            {"C": _COST, "gamma": _GAMMA, "balanced": _SWITCH},
            models.cross_validated(models.svm, models.error),
        ),
        TuningProblem(
            "neighbours",
            "k nearest neighbours",
            ("wine", "cancer-errors", "digits", "diabetes-high", "iris-sepals"),
            {
                "neighbours": _log_int(1, 60),
                "weights": _one_of("uniform", "distance"),
                "power": FloatDistribution(1.0, 5.0),
                "scaled": _SWITCH,
            },
            models.cross_validated(models.neighbours, models.accuracy),
            maximize=True,
        ),
        TuningProblem(
            "forest",
            "random forest",
            ("wine-acids", "cancer-errors", "digits-below-5", "diabetes-high", "iris-sepals"),
            {
                "trees": _log_int(2, 30),
                "criterion": _one_of("gini", "entropy"),
                "depth": IntDistribution(1, 12),
                "features": FloatDistribution(0.05, 1.0),
                "leaf": _log_int(1, 40),
                "bootstrap": _SWITCH,
            },
            models.cross_validated(models.forest, models.accuracy),
            maximize=True,
        ),
        TuningProblem(
            "boosted-trees",
            "boosted trees, histograms",
            ("wine-acids", "cancer-means", "digits-upper-half", "diabetes-high", "iris-sepals"),
            {
                "learning_rate": _log(5e-3, 1.0),
                "iterations": IntDistribution(3, 30),
                "leaves": _log_int(2, 32),
                "leaf": _log_int(2, 50),
                "l2": _log(1e-6, 1e2),
                "features": FloatDistribution(0.1, 1.0),
            },
            models.cross_validated(models.boosted, models.log_loss),
        ),
        TuningProblem(
            "logistic",
            "logistic regression, elastic net",
            ("wine-acids", "cancer-errors", "digits-4-or-9", "diabetes-high", "iris"),
            {
                "C": _log(1e-4, 1e3),
                "l1_ratio": FloatDistribution(0.0, 1.0),
                "iterations": _log_int(2, 60),
                "intercept": _SWITCH,
                "balanced": _SWITCH,
            },
            models.cross_validated(models.logistic, models.log_loss),
        ),
        TuningProblem(
            "pipeline",
            "scaling, projection, products, ridge classifier",
            ("wine", "cancer-means", "digits-3-or-8", "diabetes-high", "iris"),
            {
                "scaler": _one_of("none", "standard", "range", "robust", "quantile"),
                "project": _SWITCH,
                "kept": FloatDistribution(0.3, 0.999),
                "whiten": _SWITCH,
                "products": _SWITCH,
                "alpha": _log(1e-4, 1e4),
            },
            models.cross_validated(models.pipeline, models.error),
            only={"kept": ("project", (True,)), "whiten": ("project", (True,))},
        ),
        TuningProblem(
            "elastic-net",
            "elastic net with products of columns",
            ("diabetes", "wine-alcohol", "cancer-compactness", "iris-petal-width", "linnerud-waist"),
            {
                "alpha": _log(1e-4, 10.0),
                "l1_ratio": FloatDistribution(0.0, 1.0),
                "degree": IntDistribution(1, 2),
                "squares": _SWITCH,
                "intercept": _SWITCH,
            },
            models.cross_validated(models.elastic_net, models.rmse),
        ),
        TuningProblem(
            "kernel-ridge",
            "kernel ridge regression",
            ("diabetes", "wine-proline", "cancer-radius", "friedman", "wine-colour-intensity"),
            {"alpha": _log(1e-4, 1e2), "gamma": _GAMMA, "kernel": _one_of("rbf", "laplacian", "polynomial")},
            models.cross_validated(models.kernel_ridge, models.rmse),
        ),
        TuningProblem(
            "gaussian-process",
            "Gaussian process with given hyperparameters",
            ("diabetes-blood", "wine-alcohol", "cancer-compactness", "friedman", "iris-petal-width"),
            {
                "lengthscale": _log(0.05, 100.0),
                "noise": _log(1e-5, 10.0),
                "smoothness": _one_of("0.5", "1.5", "2.5"),
                "scaler": _one_of("standard", "quantile"),
            },
            models.cross_validated(models.gaussian_process, models.rmse),
        ),
        TuningProblem(
            "boosted-regression",
            "boosted trees, regression",
            ("diabetes", "wine-proline", "cancer-radius", "friedman", "wine-alcohol"),
            {
                "loss": _one_of("squared_error", "absolute_error", "huber"),
                "learning_rate": _log(1e-2, 1.0),
                "trees": IntDistribution(3, 25),
                "depth": IntDistribution(1, 6),
                "rows": FloatDistribution(0.3, 1.0),
                "features": FloatDistribution(0.1, 1.0),
            },
            models.cross_validated(models.boosted_regression, models.rmse),
        ),
        TuningProblem(
            "diverging-sgd",
            "stochastic gradient descent that may diverge",
            ("diabetes", "wine-alcohol", "cancer-radius", "friedman", "iris-petal-width"),
            {
                "eta0": _log(1e-4, 1.0),
                "schedule": _one_of("constant", "invscaling"),
                "decay": FloatDistribution(0.05, 0.6),
                "products": _SWITCH,
                "penalty": _one_of("l2", "l1"),
                "alpha": _log(1e-6, 1.0),
                "epochs": _log_int(1, 20),
                "average": _SWITCH,
            },
            models.cross_validated(models.Descent, models.mse),
            revision=2,
        ),
        TuningProblem(
            "svm-kernels",
            "support vector machine, choice of kernel",
            ("cancer-means", "digits-below-5", "cancer-errors", "diabetes-high", "digits-even"),
            {
                "kernel": _one_of("linear", "poly", "rbf", "sigmoid"),
                "C": _COST,
                "gamma": _GAMMA,
                "degree": IntDistribution(2, 5),
                "coef0": FloatDistribution(-1.0, 2.0),
            },
            models.cross_validated(models.kernels, models.disorder),
            only={
                "gamma": ("kernel", ("poly", "rbf", "sigmoid")),
                "degree": ("kernel", ("poly",)),
                "coef0": ("kernel", ("poly", "sigmoid")),
            },
            revision=2,
        ),
        TuningProblem(
            "classifier-choice",
            "choice of classifier",
            ("cancer-means", "digits-upper-half", "cancer-errors", "diabetes-high", "digits-even"),
            {
                "classifier": _one_of("svm", "neighbours", "trees", "logistic"),
                "svm_C": _COST,
                "svm_gamma": _GAMMA,
                "neighbours": _log_int(1, 60),
                "neighbours_weights": _one_of("uniform", "distance"),
                "trees_depth": IntDistribution(1, 12),
                "trees_leaf": _log_int(1, 40),
                "trees_features": FloatDistribution(0.05, 1.0),
                "logistic_C": _log(1e-4, 1e3),
            },
            models.cross_validated(models.choice, models.disorder),
            only={
                name: ("classifier", (name.partition("_")[0],))
                for name in (
                    *("svm_C", "svm_gamma", "neighbours", "neighbours_weights"),
                    *("trees_depth", "trees_leaf", "trees_features", "logistic_C"),
                )
            },
            revision=2,
        ),
        TuningProblem(
            "network-layers",
            "neural network, one to three layers",
            ("cancer-errors", "digits-even", "wine-acids", "diabetes-high", "iris"),
            {
                "layers": IntDistribution(1, 3),
                "units_0": _UNITS,
                "units_1": _UNITS,
                "units_2": _UNITS,
                "activation": _one_of("relu", "tanh", "logistic"),
                "alpha": _log(1e-6, 10.0),
                "learning_rate": _log(1e-4, 0.3),
            },
            models.cross_validated(models.layers, models.log_loss),
            only={"units_1": ("layers", (2, 3)), "units_2": ("layers", (3,))},
        ),
        TuningProblem(
            "pruned-network",
            "neural network, epoch by epoch, pruned",
            ("cancer-means", "digits-below-5", "wine-acids", "diabetes-high", "iris-sepals"),
            {
                "units": _UNITS,
                "batch": _log_int(8, 64),
                "solver": _one_of("adam", "sgd"),
                "activation": _one_of("relu", "tanh"),
                "alpha": _log(1e-6, 10.0),
                "learning_rate": _log(1e-4, 1.0),
            },
            models.epochs,
            prunes=True,
        ),
    )
}


def tuning_problem(name: str) -> TuningProblem:
    """The problem of that name."""
    if name not in PROBLEMS:
        raise InputError(f"There is no tuning problem {name!r}. The known ones are {', '.join(PROBLEMS)}.")
    return PROBLEMS[name]
