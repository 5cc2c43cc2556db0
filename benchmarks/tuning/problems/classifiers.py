"""Classifiers: support vectors, neighbours, forests, boosted trees, logistic regression, a pipeline."""

from __future__ import annotations

from typing import Any

from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from benchmarks.tuning.problem import Params, TuningProblem
from benchmarks.tuning.scores import accuracy, cross_validated, error, log_loss

_SWITCH = CategoricalDistribution((True, False))


def _svm(p: Params) -> Any:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    weight = "balanced" if p["balanced"] else None
    machine = SVC(C=p["C"], gamma=p["gamma"], class_weight=weight, max_iter=20_000)
    return make_pipeline(StandardScaler(), machine)


def _neighbours(p: Params) -> Any:
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = KNeighborsClassifier(n_neighbors=p["neighbours"], weights=p["weights"], p=p["power"])
    return make_pipeline(StandardScaler(), model) if p["scaled"] else model


def _forest(p: Params) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(
        n_estimators=p["trees"],
        criterion=p["criterion"],
        max_depth=p["depth"],
        max_features=p["features"],
        min_samples_leaf=p["leaf"],
        bootstrap=p["bootstrap"],
        random_state=0,
    )


def _boosted(p: Params) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

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


def _logistic(p: Params) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = LogisticRegression(
        C=p["C"],
        l1_ratio=p["l1_ratio"],
        solver="saga",
        fit_intercept=p["intercept"],
        class_weight="balanced" if p["balanced"] else None,
        max_iter=p["iterations"],
        random_state=0,
    )
    return make_pipeline(StandardScaler(), model)


def _pipeline(p: Params) -> Any:
    from sklearn import preprocessing
    from sklearn.decomposition import PCA
    from sklearn.linear_model import RidgeClassifier
    from sklearn.pipeline import Pipeline

    scaler = {
        "none": "passthrough",
        "standard": preprocessing.StandardScaler(),
        "range": preprocessing.MinMaxScaler(),
        "robust": preprocessing.RobustScaler(),
        "quantile": preprocessing.QuantileTransformer(n_quantiles=50),
    }[p["scaler"]]
    products = preprocessing.PolynomialFeatures(2, include_bias=False) if p["products"] else "passthrough"
    project = PCA(p["kept"], whiten=p["whiten"], svd_solver="full") if p["project"] else "passthrough"
    steps = [("scale", scaler), ("project", project), ("products", products)]
    return Pipeline([*steps, ("classify", RidgeClassifier(alpha=p["alpha"]))])


CLASSIFIERS = (
    TuningProblem(
        name="svm",
        title="support vector machine, Gaussian kernel",
        tasks=("cancer-means", "digits-even", "wine-acids", "diabetes-high", "iris-sepals"),
        space={
            "C": FloatDistribution(1e-2, 1e3, log=True),
            "gamma": FloatDistribution(1e-4, 10.0, log=True),
            "balanced": _SWITCH,
        },
        train=cross_validated(_svm, error),
    ),
    TuningProblem(
        name="neighbours",
        title="k nearest neighbours",
        tasks=("wine", "cancer-errors", "digits", "diabetes-high", "iris-sepals"),
        space={
            "neighbours": IntDistribution(1, 60, log=True),
            "weights": CategoricalDistribution(("uniform", "distance")),
            "power": FloatDistribution(1.0, 5.0),
            "scaled": _SWITCH,
        },
        train=cross_validated(_neighbours, accuracy),
        maximize=True,
    ),
    TuningProblem(
        name="forest",
        title="random forest",
        tasks=("wine-acids", "cancer-errors", "digits-below-5", "diabetes-high", "iris-sepals"),
        space={
            "trees": IntDistribution(2, 30, log=True),
            "criterion": CategoricalDistribution(("gini", "entropy")),
            "depth": IntDistribution(1, 12),
            "features": FloatDistribution(0.05, 1.0),
            "leaf": IntDistribution(1, 40, log=True),
            "bootstrap": _SWITCH,
        },
        train=cross_validated(_forest, accuracy),
        maximize=True,
    ),
    TuningProblem(
        name="boosted-trees",
        title="boosted trees, histograms",
        tasks=("wine-acids", "cancer-means", "digits-upper-half", "diabetes-high", "iris-sepals"),
        space={
            "learning_rate": FloatDistribution(5e-3, 1.0, log=True),
            "iterations": IntDistribution(3, 30),
            "leaves": IntDistribution(2, 32, log=True),
            "leaf": IntDistribution(2, 50, log=True),
            "l2": FloatDistribution(1e-6, 1e2, log=True),
            "features": FloatDistribution(0.1, 1.0),
        },
        train=cross_validated(_boosted, log_loss),
    ),
    TuningProblem(
        name="logistic",
        title="logistic regression, elastic net",
        tasks=("wine-acids", "cancer-errors", "digits-4-or-9", "diabetes-high", "iris"),
        space={
            "C": FloatDistribution(1e-4, 1e3, log=True),
            "l1_ratio": FloatDistribution(0.0, 1.0),
            "iterations": IntDistribution(2, 60, log=True),
            "intercept": _SWITCH,
            "balanced": _SWITCH,
        },
        train=cross_validated(_logistic, log_loss),
    ),
    TuningProblem(
        name="pipeline",
        title="scaling, projection, products, ridge classifier",
        tasks=("wine", "cancer-means", "digits-3-or-8", "diabetes-high", "iris"),
        space={
            "scaler": CategoricalDistribution(("none", "standard", "range", "robust", "quantile")),
            "project": _SWITCH,
            "kept": FloatDistribution(0.3, 0.999),
            "whiten": _SWITCH,
            "products": _SWITCH,
            "alpha": FloatDistribution(1e-4, 1e4, log=True),
        },
        only={"kept": ("project", (True,)), "whiten": ("project", (True,))},
        train=cross_validated(_pipeline, error),
    ),
)
