"""Cross-validated scores: equal parameters give equal ones, because the folds and all seeds are fixed."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.tuning.problem import Params
from benchmarks.tuning.tasks import TuningTask

WORST = 1e30  # of a model whose numbers overflowed: finite, as a careful objective returns it

_Score = Callable[[Any, NDArray[Any], NDArray[Any]], float]


def error(model: Any, X: NDArray[Any], y: NDArray[Any]) -> float:
    """The share of wrong predictions."""
    return float(np.mean(model.predict(X) != y))


def accuracy(model: Any, X: NDArray[Any], y: NDArray[Any]) -> float:
    """The share of right predictions."""
    return float(np.mean(model.predict(X) == y))


def disorder(model: Any, X: NDArray[Any], y: NDArray[Any]) -> float:
    """1 − the area under the ROC curve: the share of pairs of both classes that are in the wrong order."""
    from sklearn.metrics import roc_auc_score

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


def cross_validated(build: Callable[[Params], Any], score: _Score) -> Callable[[TuningTask, Params], list[float]]:
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
