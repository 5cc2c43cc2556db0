"""Regressors: elastic net, kernel ridge, a Gaussian process, boosted trees, and descent that may diverge."""

from __future__ import annotations

from typing import Any

from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from benchmarks.tuning.problem import Params, TuningProblem
from benchmarks.tuning.scores import WORST, cross_validated, mse, rmse


def _elastic_net(p: Params) -> Any:
    from sklearn.linear_model import ElasticNet
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler

    net = ElasticNet(alpha=p["alpha"], l1_ratio=p["l1_ratio"], fit_intercept=p["intercept"], max_iter=200)
    products = PolynomialFeatures(p["degree"], interaction_only=not p["squares"], include_bias=False)
    return make_pipeline(StandardScaler(), products, StandardScaler(), net)


def _kernel_ridge(p: Params) -> Any:
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = KernelRidge(alpha=p["alpha"], kernel=p["kernel"], gamma=p["gamma"])
    return make_pipeline(StandardScaler(), model)


def _gaussian_process(p: Params) -> Any:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import Matern
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import QuantileTransformer, StandardScaler

    scaler = StandardScaler() if p["scaler"] == "standard" else QuantileTransformer(n_quantiles=13)
    kernel = Matern(length_scale=p["lengthscale"], nu=float(p["smoothness"]))
    return make_pipeline(scaler, GaussianProcessRegressor(kernel, alpha=p["noise"], optimizer=None))


def _boosted(p: Params) -> Any:
    from sklearn.ensemble import GradientBoostingRegressor

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
        from sklearn.linear_model import SGDRegressor
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import PolynomialFeatures, StandardScaler

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
        except ValueError as error:
            if "overflow" not in str(error):
                raise
        return self

    def predict(self, X: Any) -> Any:
        """Predictions; all of them ``WORST`` after an overflow."""
        return X[:, 0] * 0 + WORST if self.model is None else self.model.predict(X)


REGRESSORS = (
    TuningProblem(
        name="elastic-net",
        title="elastic net with products of columns",
        tasks=("diabetes", "wine-alcohol", "cancer-compactness", "iris-petal-width", "linnerud-waist"),
        space={
            "alpha": FloatDistribution(1e-4, 10.0, log=True),
            "l1_ratio": FloatDistribution(0.0, 1.0),
            "degree": IntDistribution(1, 2),
            "squares": CategoricalDistribution((True, False)),
            "intercept": CategoricalDistribution((True, False)),
        },
        train=cross_validated(_elastic_net, rmse),
    ),
    TuningProblem(
        name="kernel-ridge",
        title="kernel ridge regression",
        tasks=("diabetes", "wine-proline", "cancer-radius", "friedman", "wine-colour-intensity"),
        space={
            "alpha": FloatDistribution(1e-4, 1e2, log=True),
            "gamma": FloatDistribution(1e-4, 10.0, log=True),
            "kernel": CategoricalDistribution(("rbf", "laplacian", "polynomial")),
        },
        train=cross_validated(_kernel_ridge, rmse),
    ),
    TuningProblem(
        name="gaussian-process",
        title="Gaussian process with given hyperparameters",
        tasks=("diabetes-blood", "wine-alcohol", "cancer-compactness", "friedman", "iris-petal-width"),
        space={
            "lengthscale": FloatDistribution(0.05, 100.0, log=True),
            "noise": FloatDistribution(1e-5, 10.0, log=True),
            "smoothness": CategoricalDistribution(("0.5", "1.5", "2.5")),
            "scaler": CategoricalDistribution(("standard", "quantile")),
        },
        train=cross_validated(_gaussian_process, rmse),
    ),
    TuningProblem(
        name="boosted-regression",
        title="boosted trees, regression",
        tasks=("diabetes", "wine-proline", "cancer-radius", "friedman", "wine-alcohol"),
        space={
            "loss": CategoricalDistribution(("squared_error", "absolute_error", "huber")),
            "learning_rate": FloatDistribution(1e-2, 1.0, log=True),
            "trees": IntDistribution(3, 25),
            "depth": IntDistribution(1, 6),
            "rows": FloatDistribution(0.3, 1.0),
            "features": FloatDistribution(0.1, 1.0),
        },
        train=cross_validated(_boosted, rmse),
    ),
    TuningProblem(
        name="diverging-sgd",
        title="stochastic gradient descent that may diverge",
        tasks=("diabetes", "wine-alcohol", "cancer-radius", "friedman", "iris-petal-width"),
        space={
            "eta0": FloatDistribution(1e-4, 1.0, log=True),
            "schedule": CategoricalDistribution(("constant", "invscaling")),
            "decay": FloatDistribution(0.05, 0.6),
            "products": CategoricalDistribution((True, False)),
            "penalty": CategoricalDistribution(("l2", "l1")),
            "alpha": FloatDistribution(1e-6, 1.0, log=True),
            "epochs": IntDistribution(1, 20, log=True),
            "average": CategoricalDistribution((True, False)),
        },
        train=cross_validated(Descent, mse),
        revision=2,
    ),
)
