"""The models of scikit-learn that are tuned, and how they are scored.

Scores are cross-validated. Equal parameters give equal ones, because the folds and all seeds are fixed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import preprocessing
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
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import PolynomialFeatures, QuantileTransformer, StandardScaler
from sklearn.svm import SVC

from benchmarks.tuning.tasks import TuningTask

Params = Mapping[str, Any]

WORST = 1e30  # of a model whose numbers overflowed: finite, as a careful objective returns it
_EPOCHS = 10


def error(model: Any, X: NDArray[Any], y: NDArray[Any]) -> float:
    """The share of wrong predictions."""
    return float(np.mean(model.predict(X) != y))


def accuracy(model: Any, X: NDArray[Any], y: NDArray[Any]) -> float:
    """The share of right predictions."""
    return float(np.mean(model.predict(X) == y))


def disorder(model: Any, X: NDArray[Any], y: NDArray[Any]) -> float:
    """1 − the area under the ROC curve: the share of pairs of both classes that are in the wrong order."""
    has_margin = hasattr(model, "decision_function")
    ordered_by = model.decision_function(X) if has_margin else model.predict_proba(X)[:, 1]
    return 1.0 - float(roc_auc_score(y, ordered_by))


def log_loss(model: Any, X: NDArray[Any], y: NDArray[Any]) -> float:
    """− mean log p(y), p at least 1e-12."""
    columns = np.searchsorted(model.classes_, y)
    p = model.predict_proba(X)[np.arange(len(y)), columns]
    return float(-np.log(np.clip(p, 1e-12, 1.0)).mean())


def mse(model: Any, X: NDArray[Any], y: NDArray[Any]) -> float:
    """The mean of (ŷ − y)², and ``WORST`` where that is no number. Targets have variance 1."""
    with np.errstate(over="ignore", invalid="ignore"):
        value = float(np.mean((model.predict(X) - y) ** 2))
    return min(value, WORST) if np.isfinite(value) else WORST


def rmse(model: Any, X: NDArray[Any], y: NDArray[Any]) -> float:
    """√ of ``mse``."""
    return float(np.sqrt(mse(model, X, y)))


def cross_validated(
    build: Callable[[Params], Any], score: Callable[[Any, NDArray[Any], NDArray[Any]], float]
) -> Callable[[TuningTask, Params], list[float]]:
    """The mean score over the folds of the model that ``build`` makes; one value, for there are no steps."""

    def train(task: TuningTask, params: Params) -> list[float]:
        found = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a fit that did not converge is scored as it is
            for rows, held_out in task.folds:
                model = build(params).fit(task.X[rows], task.y[rows])
                found.append(score(model, task.X[held_out], task.y[held_out]))
        return [float(np.mean(found))]

    return train


# ── models ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _scaled(model: Any) -> Any:
    return make_pipeline(StandardScaler(), model)


def _weight(p: Params) -> str | None:
    return "balanced" if p["balanced"] else None


def svm(p: Params) -> Any:
    """A support vector machine with a Gaussian kernel."""
    return _scaled(SVC(C=p["C"], gamma=p["gamma"], class_weight=_weight(p), max_iter=20_000))


def kernels(p: Params) -> Any:
    """A support vector machine with a choice of kernel."""
    own = {name: p[name] for name in ("gamma", "degree", "coef0") if name in p}
    return _scaled(SVC(C=p["C"], kernel=p["kernel"], max_iter=20_000, **own))


def neighbours(p: Params) -> Any:
    """Nearest neighbours, with columns scaled or as they come."""
    model = KNeighborsClassifier(n_neighbors=p["neighbours"], weights=p["weights"], p=p["power"])
    return _scaled(model) if p["scaled"] else model


def forest(p: Params) -> Any:
    """A random forest."""
    return RandomForestClassifier(
        n_estimators=p["trees"],
        criterion=p["criterion"],
        max_depth=p["depth"],
        max_features=p["features"],
        min_samples_leaf=p["leaf"],
        bootstrap=p["bootstrap"],
        random_state=0,
    )


def boosted(p: Params) -> Any:
    """Boosted trees on histograms."""
    return HistGradientBoostingClassifier(
        learning_rate=p["learning_rate"],
        max_iter=p["iterations"],
        max_leaf_nodes=p["leaves"],
        min_samples_leaf=p["leaf"],
        l2_regularization=p["l2"],
        max_features=p["features"],
        early_stopping=False,
        random_state=0,
    )


def logistic(p: Params) -> Any:
    """Logistic regression with an elastic net."""
    how = {"solver": "saga", "fit_intercept": p["intercept"], "class_weight": _weight(p), "max_iter": p["iterations"]}
    return _scaled(LogisticRegression(C=p["C"], l1_ratio=p["l1_ratio"], random_state=0, **how))


def pipeline(p: Params) -> Any:
    """Scaling, projection, products, and a ridge classifier."""
    scaler = {
        "none": "passthrough",
        "standard": StandardScaler(),
        "range": preprocessing.MinMaxScaler(),
        "robust": preprocessing.RobustScaler(),
        "quantile": QuantileTransformer(n_quantiles=50),
    }[p["scaler"]]
    products = PolynomialFeatures(2, include_bias=False) if p["products"] else "passthrough"
    project = PCA(p["kept"], whiten=p["whiten"], svd_solver="full") if p["project"] else "passthrough"
    steps = [("scale", scaler), ("project", project), ("products", products)]
    return Pipeline([*steps, ("classify", RidgeClassifier(alpha=p["alpha"]))])


def choice(p: Params) -> Any:
    """One of four classifiers."""
    match p["classifier"]:
        case "svm":
            return _scaled(SVC(C=p["svm_C"], gamma=p["svm_gamma"], max_iter=20_000))
        case "neighbours":
            return _scaled(KNeighborsClassifier(n_neighbors=p["neighbours"], weights=p["neighbours_weights"]))
        case "trees":
            size = {"max_depth": p["trees_depth"], "min_samples_leaf": p["trees_leaf"]}
            return _scaled(ExtraTreesClassifier(20, max_features=p["trees_features"], random_state=0, **size))
    return _scaled(LogisticRegression(C=p["logistic_C"], max_iter=30))


def layers(p: Params) -> Any:
    """A network of one to three layers."""
    layers = tuple(p[f"units_{i}"] for i in range(p["layers"]))
    how = {"activation": p["activation"], "alpha": p["alpha"], "learning_rate_init": p["learning_rate"]}
    return _scaled(MLPClassifier(layers, batch_size=32, max_iter=10, random_state=0, **how))


def elastic_net(p: Params) -> Any:
    """An elastic net on products of columns."""
    net = ElasticNet(alpha=p["alpha"], l1_ratio=p["l1_ratio"], fit_intercept=p["intercept"], max_iter=200)
    products = PolynomialFeatures(p["degree"], interaction_only=not p["squares"], include_bias=False)
    return make_pipeline(StandardScaler(), products, StandardScaler(), net)


def kernel_ridge(p: Params) -> Any:
    """Kernel ridge regression."""
    return _scaled(KernelRidge(alpha=p["alpha"], kernel=p["kernel"], gamma=p["gamma"]))


def gaussian_process(p: Params) -> Any:
    """A Gaussian process with given hyperparameters."""
    scaler = StandardScaler() if p["scaler"] == "standard" else QuantileTransformer(n_quantiles=13)
    kernel = Matern(length_scale=p["lengthscale"], nu=float(p["smoothness"]))
    return make_pipeline(scaler, GaussianProcessRegressor(kernel, alpha=p["noise"], optimizer=None))


def boosted_regression(p: Params) -> Any:
    """Boosted regression trees."""
    return GradientBoostingRegressor(
        loss=p["loss"],
        learning_rate=p["learning_rate"],
        n_estimators=p["trees"],
        max_depth=p["depth"],
        subsample=p["rows"],
        max_features=p["features"],
        random_state=0,
    )


class Descent:
    """Stochastic gradient descent whose numbers may overflow: it then predicts ``WORST``."""

    def __init__(self, p: Params) -> None:
        self.params = p
        self.model: Any = None

    def fit(self, X: Any, y: Any) -> Descent:
        """Descend; an overflow is kept in mind."""
        p = self.params
        products = PolynomialFeatures(2 if p["products"] else 1, include_bias=False)
        model = SGDRegressor(
            penalty=p["penalty"],
            alpha=p["alpha"],
            learning_rate=p["schedule"],
            eta0=p["eta0"],
            power_t=p["decay"],
            max_iter=p["epochs"],
            tol=None,
            average=p["average"],
            random_state=0,
        )
        try:
            self.model = make_pipeline(StandardScaler(), products, model).fit(X, y)
        except ValueError as error_:
            if "overflow" not in str(error_):
                raise
        return self

    def predict(self, X: Any) -> Any:
        """Predictions; all of them ``WORST`` after an overflow."""
        return X[:, 0] * 0 + WORST if self.model is None else self.model.predict(X)


def epochs(task: TuningTask, p: Params) -> list[float]:
    """The mean log loss over the folds after every epoch of a network."""
    classes = np.unique(task.y)
    losses = np.zeros((len(task.folds), _EPOCHS))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for i, (rows, held_out) in enumerate(task.folds):
            scaler = StandardScaler().fit(task.X[rows])
            X, X_held_out = scaler.transform(task.X[rows]), scaler.transform(task.X[held_out])
            how = {"activation": p["activation"], "solver": p["solver"], "alpha": p["alpha"], "batch_size": p["batch"]}
            network = MLPClassifier((p["units"],), learning_rate_init=p["learning_rate"], random_state=0, **how)
            for epoch in range(_EPOCHS):
                network.partial_fit(X, task.y[rows], classes=classes)
                losses[i, epoch] = log_loss(network, X_held_out, task.y[held_out])
    return [float(loss) for loss in losses.mean(axis=0)]
