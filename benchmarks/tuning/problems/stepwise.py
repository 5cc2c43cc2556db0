"""A network that is trained epoch by epoch, reports its loss after each, and may be pruned."""

from __future__ import annotations

import warnings

import numpy as np
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from benchmarks.tuning.problem import Params, TuningProblem
from benchmarks.tuning.scores import log_loss
from benchmarks.tuning.tasks import TuningTask

_EPOCHS = 10


def _epochs(task: TuningTask, p: Params) -> list[float]:
    """The mean log loss over the folds after every epoch."""
    from sklearn.neural_network import MLPClassifier
    from sklearn.preprocessing import StandardScaler

    classes = np.unique(task.y)
    losses = np.zeros((len(task.folds), _EPOCHS))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for i, (rows, held_out) in enumerate(task.folds):
            scaler = StandardScaler().fit(task.X[rows])
            X, X_held_out = scaler.transform(task.X[rows]), scaler.transform(task.X[held_out])
            network = MLPClassifier(
                (p["units"],),
                activation=p["activation"],
                solver=p["solver"],
                alpha=p["alpha"],
                learning_rate_init=p["learning_rate"],
                batch_size=p["batch"],
                random_state=0,
            )
            for epoch in range(_EPOCHS):
                network.partial_fit(X, task.y[rows], classes=classes)
                losses[i, epoch] = log_loss(network, X_held_out, task.y[held_out])
    return [float(loss) for loss in losses.mean(axis=0)]


STEPWISE = (
    TuningProblem(
        name="pruned-network",
        title="neural network, epoch by epoch, pruned",
        tasks=("cancer-means", "digits-below-5", "wine-acids", "diabetes-high", "iris-sepals"),
        space={
            "units": IntDistribution(2, 64, log=True),
            "batch": IntDistribution(8, 64, log=True),
            "solver": CategoricalDistribution(("adam", "sgd")),
            "activation": CategoricalDistribution(("relu", "tanh")),
            "alpha": FloatDistribution(1e-6, 10.0, log=True),
            "learning_rate": FloatDistribution(1e-4, 1.0, log=True),
        },
        train=_epochs,
        prunes=True,
    ),
)
