"""The tuning problems: models of scikit-learn, what is tuned of each, and the tasks that it learns.

kind               problems
plain              kernel-ridge, gaussian-process, svm
mixed              neighbours, forest, boosted-trees, boosted-regression, logistic, elastic-net
conditional        pipeline, svm-kernels, classifier-choice, network-layers
awkward            diverging-sgd (some runs end at up to 1e30), pruned-network (most trials are not trained to the end)

Parameters have scikit-learn's names where they are handed on as they are. Scores are cross-validated. Equal parameters
give equal ones, because the folds and all seeds are fixed.
"""

from __future__ import annotations

import json
import warnings
from ast import literal_eval
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Matern
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import ElasticNet, LogisticRegression, RidgeClassifier, SGDRegressor
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, QuantileTransformer, RobustScaler, StandardScaler
from sklearn.svm import SVC

from benchmarks.tuning.tasks import TuningTask
from headstart.errors import InputError

if TYPE_CHECKING:
    from optuna.trial import BaseTrial

Params = Mapping[str, Any]
Score = Callable[[Any, NDArray[Any], NDArray[Any]], float]

WORST = 1e30  # of a model whose numbers overflowed: finite, as a careful objective returns it
_EPOCHS = 10


# ── scores ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def accuracy(model: Any, X: NDArray[Any], y: NDArray[Any]) -> float:
    """The share of right predictions."""
    return float(np.mean(model.predict(X) == y))


def error(model: Any, X: NDArray[Any], y: NDArray[Any]) -> float:
    """The share of wrong predictions."""
    return float(np.mean(model.predict(X) != y))


def disorder(model: Any, X: NDArray[Any], y: NDArray[Any]) -> float:
    """1 − the area under the ROC curve: the share of pairs of both classes that are in the wrong order."""
    has_margin = hasattr(model, "decision_function")
    ordered_by = model.decision_function(X) if has_margin else model.predict_proba(X)[:, 1]
    return 1.0 - float(roc_auc_score(y, ordered_by))


def log_loss(model: Any, X: NDArray[Any], y: NDArray[Any]) -> float:
    """− mean log p(y), p at least 1e-12."""
    p = model.predict_proba(X)[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    return float(-np.log(np.clip(p, 1e-12, 1.0)).mean())


def mse(model: Any, X: NDArray[Any], y: NDArray[Any]) -> float:
    """The mean of (ŷ − y)², and ``WORST`` where that is no number. Targets have variance 1."""
    with np.errstate(over="ignore", invalid="ignore"):
        value = float(np.mean((model.predict(X) - y) ** 2))
    return min(value, WORST) if np.isfinite(value) else WORST


def rmse(model: Any, X: NDArray[Any], y: NDArray[Any]) -> float:
    """√ of ``mse``."""
    return float(np.sqrt(mse(model, X, y)))


# ── models ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _scaled(model: Any) -> Any:
    return make_pipeline(StandardScaler(), model)


def _neighbours(p: Params) -> Any:
    model = KNeighborsClassifier(**{name: p[name] for name in ("n_neighbors", "weights", "p")})
    return _scaled(model) if p["scaled"] else model


def _pipeline(p: Params) -> Any:
    scalers = {"standard": StandardScaler(), "range": MinMaxScaler(), "robust": RobustScaler()}
    scalers |= {"none": "passthrough", "quantile": QuantileTransformer(n_quantiles=50)}
    products = PolynomialFeatures(2, include_bias=False) if p["products"] else "passthrough"
    project = PCA(p["kept"], whiten=p["whiten"], svd_solver="full") if p["project"] else "passthrough"
    return make_pipeline(scalers[p["scaler"]], project, products, RidgeClassifier(alpha=p["alpha"]))


def _choice(p: Params) -> Any:
    own = {name.partition("__")[2]: value for name, value in p.items() if "__" in name}
    fixed: dict[str, Any] = {
        "svm": (SVC, {"max_iter": 20_000}),
        "neighbours": (KNeighborsClassifier, {}),
        "trees": (ExtraTreesClassifier, {"n_estimators": 20, "random_state": 0}),
        "logistic": (LogisticRegression, {"max_iter": 30}),
    }
    kind, more = fixed[p["classifier"]]
    return _scaled(kind(**own, **more))


def _layers(p: Params) -> Any:
    units = tuple(p[f"units_{i}"] for i in range(p["layers"]))
    own = {name: p[name] for name in ("activation", "alpha", "learning_rate_init")}
    return _scaled(MLPClassifier(units, batch_size=32, max_iter=10, random_state=0, **own))


def _elastic_net(p: Params) -> Any:
    net = ElasticNet(alpha=p["alpha"], l1_ratio=p["l1_ratio"], fit_intercept=p["fit_intercept"], max_iter=200)
    products = PolynomialFeatures(p["degree"], interaction_only=not p["squares"], include_bias=False)
    return make_pipeline(StandardScaler(), products, StandardScaler(), net)


def _gaussian_process(p: Params) -> Any:
    scaler = StandardScaler() if p["scaler"] == "standard" else QuantileTransformer(n_quantiles=13)
    kernel = Matern(length_scale=p["length_scale"], nu=float(p["nu"]))
    return make_pipeline(scaler, GaussianProcessRegressor(kernel, alpha=p["noise"], optimizer=None))


class _Descent:
    """Stochastic gradient descent whose numbers may overflow: it then predicts ``WORST``."""

    def __init__(self, p: Params) -> None:
        self.products = PolynomialFeatures(2 if p["products"] else 1, include_bias=False)
        own = {name: value for name, value in p.items() if name != "products"}
        self.model: Any = SGDRegressor(tol=None, random_state=0, **own)

    def fit(self, X: Any, y: Any) -> _Descent:
        try:
            self.model = make_pipeline(StandardScaler(), self.products, self.model).fit(X, y)
        except ValueError as error_:
            if "overflow" not in str(error_):
                raise
            self.model = None
        return self

    def predict(self, X: Any) -> Any:
        return X[:, 0] * 0 + WORST if self.model is None else self.model.predict(X)


def _network(p: Params) -> Any:
    own = {name: value for name, value in p.items() if name != "units"}
    return MLPClassifier((p["units"],), random_state=0, **own)


# ── problems ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class TuningProblem:
    """What is tuned, and on what.

    ``parameters`` is the search space, ``name: low..high`` of a number, ``name: log low..high``, or ``name: a|b`` of a
    category; a conditional one says ``if parent in a|b``, and its parent comes before it. ``revision`` is raised with
    every change of the scores, so that cached ones of earlier versions are not taken for present ones. Where it
    ``prunes``, the model is trained epoch by epoch, and a pruner may end the trial.
    """

    name: str
    title: str
    build: Callable[[Params], Any]
    score: Score
    task_names: str
    parameters: str
    maximize: bool = False
    prunes: bool = False
    revision: int = 1

    @property
    def tasks(self) -> tuple[str, ...]:
        """The names of its tasks."""
        return tuple(self.task_names.split())

    @cached_property
    def space(self) -> dict[str, BaseDistribution]:
        """The distribution of every parameter."""
        return {name: _distribution(text.partition(" if ")[0]) for name, text in self._lines()}

    @cached_property
    def only(self) -> dict[str, tuple[str, tuple[Any, ...]]]:
        """Of every conditional parameter which one must have which of some values for it to be asked for."""
        found = {}
        for name, text in self._lines():
            if condition := text.partition(" if ")[2]:
                parent, _, values = condition.partition(" in ")
                found[name] = parent, tuple(map(_value, values.split("|")))
        return found

    def _lines(self) -> list[tuple[str, str]]:
        parts = (part.partition(": ") for part in self.parameters.split("; "))
        return [(name, text) for name, _, text in parts]

    def ask(self, trial: BaseTrial) -> dict[str, Any]:
        """The parameters of a trial, asked for one after the other, and none in a branch that was not taken."""
        params: dict[str, Any] = {}
        for name, distribution in self.space.items():
            parent, values = self.only.get(name, ("", ()))
            if not parent or params.get(parent) in values:
                params[name] = _suggested(trial, name, distribution)
        return params

    def train(self, task: TuningTask, params: Params) -> list[float]:
        """The mean score over the folds, after every epoch of a network that may be pruned, otherwise one value."""
        scores = []
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # a fit that did not converge is scored as it is
            for rows, held_out in task.folds:
                X, X_held_out, y = task.X[rows], task.X[held_out], task.y[rows]
                model, own = self.build(params), []
                if self.prunes:
                    scaler = StandardScaler().fit(X)
                    X, X_held_out = scaler.transform(X), scaler.transform(X_held_out)
                for _ in range(_EPOCHS if self.prunes else 1):
                    model = model.partial_fit(X, y, classes=np.unique(task.y)) if self.prunes else model.fit(X, y)
                    own.append(self.score(model, X_held_out, task.y[held_out]))
                scores.append(own)
        return [float(value) for value in np.mean(scores, axis=0)]

    def key(self, task: TuningTask, params: Params) -> str:
        """What makes an evaluation the same as another one: the model, the data and the values."""
        return json.dumps([self.name, self.revision, task.name, task.fingerprint, dict(params)], sort_keys=True)


def _suggested(trial: BaseTrial, name: str, distribution: BaseDistribution) -> Any:
    match distribution:
        case FloatDistribution(low=low, high=high, log=log):
            return trial.suggest_float(name, low, high, log=log)
        case IntDistribution(low=low, high=high, log=log):
            return trial.suggest_int(name, low, high, log=log)
        case CategoricalDistribution(choices=choices):
            return trial.suggest_categorical(name, choices)
    raise TypeError(f"{name}: {distribution} is no distribution of Optuna's.")


def _distribution(text: str) -> BaseDistribution:
    ends = text.removeprefix("log ").split("..")
    if len(ends) == 1:
        return CategoricalDistribution(tuple(map(_value, text.split("|"))))
    low, high = map(_value, ends)
    return (IntDistribution if isinstance(low, int) else FloatDistribution)(low, high, log=text.startswith("log "))


def _value(text: str) -> Any:
    """A number, True, False or None; otherwise the text itself, and so where it is quoted."""
    try:
        return literal_eval(text)
    except (ValueError, SyntaxError):
        return text


PROBLEMS: dict[str, TuningProblem] = {
    problem.name: problem
    for problem in (
        TuningProblem(
            "svm",
            "support vector machine, Gaussian kernel",
            lambda p: _scaled(SVC(max_iter=20_000, **p)),
            error,
            "cancer-means digits-even wine-acids diabetes-high iris-sepals",
            "C: log 1e-2..1e3; gamma: log 1e-4..10.0; class_weight: balanced|None",
        ),
        TuningProblem(
            "neighbours",
            "k nearest neighbours",
            _neighbours,
            accuracy,
            "wine cancer-errors digits diabetes-high iris-sepals",
            "n_neighbors: log 1..60; weights: uniform|distance; p: 1.0..5.0; scaled: True|False",
            maximize=True,
        ),
        TuningProblem(
            "forest",
            "random forest",
            lambda p: RandomForestClassifier(random_state=0, **p),
            accuracy,
            "wine-acids cancer-errors digits-below-5 diabetes-high iris-sepals",
            "n_estimators: log 2..30; criterion: gini|entropy; max_depth: 1..12; max_features: 0.05..1.0; "
            "min_samples_leaf: log 1..40; bootstrap: True|False",
            maximize=True,
        ),
        TuningProblem(
            "boosted-trees",
            "boosted trees, histograms",
            lambda p: HistGradientBoostingClassifier(early_stopping=False, random_state=0, **p),
            log_loss,
            "wine-acids cancer-means digits-upper-half diabetes-high iris-sepals",
            "learning_rate: log 5e-3..1.0; max_iter: 3..30; max_leaf_nodes: log 2..32; min_samples_leaf: log 2..50; "
            "l2_regularization: log 1e-6..1e2; max_features: 0.1..1.0",
        ),
        TuningProblem(
            "logistic",
            "logistic regression, elastic net",
            lambda p: _scaled(LogisticRegression(solver="saga", random_state=0, **p)),
            log_loss,
            "wine-acids cancer-errors digits-4-or-9 diabetes-high iris",
            "C: log 1e-4..1e3; l1_ratio: 0.0..1.0; max_iter: log 2..60; fit_intercept: True|False; "
            "class_weight: balanced|None",
        ),
        TuningProblem(
            "pipeline",
            "scaling, projection, products, ridge classifier",
            _pipeline,
            error,
            "wine cancer-means digits-3-or-8 diabetes-high iris",
            "scaler: none|standard|range|robust|quantile; project: True|False; kept: 0.3..0.999 if project in True; "
            "whiten: True|False if project in True; products: True|False; alpha: log 1e-4..1e4",
        ),
        TuningProblem(
            "elastic-net",
            "elastic net with products of columns",
            _elastic_net,
            rmse,
            "diabetes wine-alcohol cancer-compactness iris-petal-width linnerud-waist",
            "alpha: log 1e-4..10.0; l1_ratio: 0.0..1.0; degree: 1..2; squares: True|False; fit_intercept: True|False",
        ),
        TuningProblem(
            "kernel-ridge",
            "kernel ridge regression",
            lambda p: _scaled(KernelRidge(**p)),
            rmse,
            "diabetes wine-proline cancer-radius friedman wine-colour-intensity",
            "alpha: log 1e-4..1e2; gamma: log 1e-4..10.0; kernel: rbf|laplacian|polynomial",
        ),
        TuningProblem(
            "gaussian-process",
            "Gaussian process with given hyperparameters",
            _gaussian_process,
            rmse,
            "diabetes-blood wine-alcohol cancer-compactness friedman iris-petal-width",
            "length_scale: log 0.05..100.0; noise: log 1e-5..10.0; nu: '0.5'|'1.5'|'2.5'; scaler: standard|quantile",
        ),
        TuningProblem(
            "boosted-regression",
            "boosted trees, regression",
            lambda p: GradientBoostingRegressor(random_state=0, **p),
            rmse,
            "diabetes wine-proline cancer-radius friedman wine-alcohol",
            "loss: squared_error|absolute_error|huber; learning_rate: log 1e-2..1.0; n_estimators: 3..25; "
            "max_depth: 1..6; subsample: 0.3..1.0; max_features: 0.1..1.0",
        ),
        TuningProblem(
            "diverging-sgd",
            "stochastic gradient descent that may diverge",
            _Descent,
            mse,
            "diabetes wine-alcohol cancer-radius friedman iris-petal-width",
            "eta0: log 1e-4..1.0; learning_rate: constant|invscaling; power_t: 0.05..0.6; products: True|False; "
            "penalty: l2|l1; alpha: log 1e-6..1.0; max_iter: log 1..20; average: True|False",
            revision=2,
        ),
        TuningProblem(
            "svm-kernels",
            "support vector machine, choice of kernel",
            lambda p: _scaled(SVC(max_iter=20_000, **p)),
            disorder,
            "cancer-means digits-below-5 cancer-errors diabetes-high digits-even",
            "kernel: linear|poly|rbf|sigmoid; C: log 1e-2..1e3; gamma: log 1e-4..10.0 if kernel in poly|rbf|sigmoid; "
            "degree: 2..5 if kernel in poly; coef0: -1.0..2.0 if kernel in poly|sigmoid",
            revision=2,
        ),
        TuningProblem(
            "classifier-choice",
            "choice of classifier",
            _choice,
            disorder,
            "cancer-means digits-upper-half cancer-errors diabetes-high digits-even",
            "classifier: svm|neighbours|trees|logistic; "
            "svm__C: log 1e-2..1e3 if classifier in svm; svm__gamma: log 1e-4..10.0 if classifier in svm; "
            "neighbours__n_neighbors: log 1..60 if classifier in neighbours; "
            "neighbours__weights: uniform|distance if classifier in neighbours; "
            "trees__max_depth: 1..12 if classifier in trees; "
            "trees__min_samples_leaf: log 1..40 if classifier in trees; "
            "trees__max_features: 0.05..1.0 if classifier in trees; "
            "logistic__C: log 1e-4..1e3 if classifier in logistic",
            revision=2,
        ),
        TuningProblem(
            "network-layers",
            "neural network, one to three layers",
            _layers,
            log_loss,
            "cancer-errors digits-even wine-acids diabetes-high iris",
            "layers: 1..3; units_0: log 2..64; units_1: log 2..64 if layers in 2|3; units_2: log 2..64 if layers in 3; "
            "activation: relu|tanh|logistic; alpha: log 1e-6..10.0; learning_rate_init: log 1e-4..0.3",
        ),
        TuningProblem(
            "pruned-network",
            "neural network, epoch by epoch, pruned",
            _network,
            log_loss,
            "cancer-means digits-below-5 wine-acids diabetes-high iris-sepals",
            "units: log 2..64; batch_size: log 8..64; solver: adam|sgd; activation: relu|tanh; alpha: log 1e-6..10.0; "
            "learning_rate_init: log 1e-4..1.0",
            prunes=True,
        ),
    )
}


def tuning_problem(name: str) -> TuningProblem:
    """The problem of that name."""
    if name not in PROBLEMS:
        raise InputError(f"There is no tuning problem {name!r}. The known ones are {', '.join(PROBLEMS)}.")
    return PROBLEMS[name]
