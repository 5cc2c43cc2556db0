"""Spaces that branch: what is asked for depends on what was answered before."""

from __future__ import annotations

from typing import Any

from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from benchmarks.tuning.problem import Params, TuningProblem
from benchmarks.tuning.scores import cross_validated, disorder, log_loss


def _kernels(p: Params) -> Any:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    own = {name: p[name] for name in ("gamma", "degree", "coef0") if name in p}
    return make_pipeline(StandardScaler(), SVC(C=p["C"], kernel=p["kernel"], max_iter=20_000, **own))


def _choice(p: Params) -> Any:
    from sklearn.ensemble import ExtraTreesClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    match p["classifier"]:
        case "svm":
            model = SVC(C=p["svm_C"], gamma=p["svm_gamma"], max_iter=20_000)
        case "neighbours":
            model = KNeighborsClassifier(n_neighbors=p["neighbours"], weights=p["neighbours_weights"])
        case "trees":
            depth, leaf = p["trees_depth"], p["trees_leaf"]
            features = p["trees_features"]
            model = ExtraTreesClassifier(
                20, max_depth=depth, min_samples_leaf=leaf, max_features=features, random_state=0
            )
        case _:
            model = LogisticRegression(C=p["logistic_C"], max_iter=30)
    return make_pipeline(StandardScaler(), model)


def _layers(p: Params) -> Any:
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    layers = tuple(p[f"units_{i}"] for i in range(p["layers"]))
    network = MLPClassifier(
        layers,
        activation=p["activation"],
        alpha=p["alpha"],
        learning_rate_init=p["learning_rate"],
        batch_size=32,
        max_iter=10,
        random_state=0,
    )
    return make_pipeline(StandardScaler(), network)


_UNITS = IntDistribution(2, 64, log=True)
_COST = FloatDistribution(1e-2, 1e3, log=True)
_GAMMA = FloatDistribution(1e-4, 10.0, log=True)

BRANCHING = (
    TuningProblem(
        name="svm-kernels",
        title="support vector machine, choice of kernel",
        tasks=("cancer-means", "digits-below-5", "cancer-errors", "diabetes-high", "digits-even"),
        space={
            "kernel": CategoricalDistribution(("linear", "poly", "rbf", "sigmoid")),
            "C": _COST,
            "gamma": _GAMMA,
            "degree": IntDistribution(2, 5),
            "coef0": FloatDistribution(-1.0, 2.0),
        },
        only={
            "gamma": ("kernel", ("poly", "rbf", "sigmoid")),
            "degree": ("kernel", ("poly",)),
            "coef0": ("kernel", ("poly", "sigmoid")),
        },
        train=cross_validated(_kernels, disorder),
        revision=2,
    ),
    TuningProblem(
        name="classifier-choice",
        title="choice of classifier",
        tasks=("cancer-means", "digits-upper-half", "cancer-errors", "diabetes-high", "digits-even"),
        space={
            "classifier": CategoricalDistribution(("svm", "neighbours", "trees", "logistic")),
            "svm_C": _COST,
            "svm_gamma": _GAMMA,
            "neighbours": IntDistribution(1, 60, log=True),
            "neighbours_weights": CategoricalDistribution(("uniform", "distance")),
            "trees_depth": IntDistribution(1, 12),
            "trees_leaf": IntDistribution(1, 40, log=True),
            "trees_features": FloatDistribution(0.05, 1.0),
            "logistic_C": FloatDistribution(1e-4, 1e3, log=True),
        },
        only={
            "svm_C": ("classifier", ("svm",)),
            "svm_gamma": ("classifier", ("svm",)),
            "neighbours": ("classifier", ("neighbours",)),
            "neighbours_weights": ("classifier", ("neighbours",)),
            "trees_depth": ("classifier", ("trees",)),
            "trees_leaf": ("classifier", ("trees",)),
            "trees_features": ("classifier", ("trees",)),
            "logistic_C": ("classifier", ("logistic",)),
        },
        train=cross_validated(_choice, disorder),
        revision=2,
    ),
    TuningProblem(
        name="network-layers",
        title="neural network, one to three layers",
        tasks=("cancer-errors", "digits-even", "wine-acids", "diabetes-high", "iris"),
        space={
            "layers": IntDistribution(1, 3),
            "units_0": _UNITS,
            "units_1": _UNITS,
            "units_2": _UNITS,
            "activation": CategoricalDistribution(("relu", "tanh", "logistic")),
            "alpha": FloatDistribution(1e-6, 10.0, log=True),
            "learning_rate": FloatDistribution(1e-4, 0.3, log=True),
        },
        only={"units_1": ("layers", (2, 3)), "units_2": ("layers", (3,))},
        train=cross_validated(_layers, log_loss),
    ),
)
