"""What the demonstration tunes: a support vector machine on one of scikit-learn's data sets, and what is known before.

The machine is really trained and tested at every trial, as the rows of the table once were: inputs are standardised by
the training folds, and the error is that of a repeated stratified 3-fold cross-validation with at least 1000
predictions. The past tuning runs of a data set are those of the *other* three.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from headstart.errors import InputError, MissingExtraError
from headstart.sources.raw import RawTask

# What is to be told from the data
QUESTIONS = {
    "cancer": "malignant or benign",
    "digits": "odd or even",
    "iris": "which of 3 species",
    "wine": "which of 3 growers",
}
TASKS = {name: name for name in QUESTIONS} | {"digits": "digits_parity"}  # in the table of past runs

# The space of the table. As there, every kernel has a value for every hyperparameter, also where it does not use it.
SPACE: dict[str, BaseDistribution] = {
    "cost": FloatDistribution(2.0**-10, 2.0**10, log=True),
    "gamma": FloatDistribution(2.0**-10, 2.0**10, log=True),
    "degree": IntDistribution(2, 5),
    "kernel": CategoricalDistribution(("linear", "poly", "rbf")),
}

_FOLDS = 3
_PREDICTIONS = 1000  # at least so many per error
_SAMPLE = 500  # rows of the digits
_MAX_ITERATIONS = 20_000  # of libsvm: no fit hangs, and a fit cut short is scored as it is


@dataclass(frozen=True, eq=False)
class SupportVectorMachine:
    """The cross-validated error of a support vector machine on one data set; all configurations meet the same folds."""

    data_set: str
    folds: tuple[tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]], ...]

    @classmethod
    def on(cls, data_set: str) -> SupportVectorMachine:
        """The data set, split and standardised."""
        try:
            from sklearn import datasets
            from sklearn.model_selection import RepeatedStratifiedKFold
            from sklearn.preprocessing import StandardScaler
        except ImportError as error:
            raise MissingExtraError(
                "The demonstration tunes a machine of scikit-learn, which is not installed: "
                "pip install 'headstart[demo]'."
            ) from error

        load = getattr(datasets, "load_breast_cancer" if known(data_set) == "cancer" else f"load_{data_set}")
        X, y = load(return_X_y=True)
        if data_set == "digits":  # of the 1797 rows as many as the table has, drawn once and for all
            chosen = np.sort(np.random.default_rng(0).permutation(len(y))[:_SAMPLE])
            X, y = X[chosen], y[chosen] % 2
        repeats = math.ceil(_PREDICTIONS / len(y))
        folds = []
        for train, test in RepeatedStratifiedKFold(n_splits=_FOLDS, n_repeats=repeats, random_state=0).split(X, y):
            scaler = StandardScaler().fit(X[train])
            folds.append((scaler.transform(X[train]), y[train], scaler.transform(X[test]), y[test]))
        return cls(data_set, tuple(folds))

    def error(self, *, cost: float, gamma: float, degree: int, kernel: str) -> float:
        """The share of wrong predictions on held-out rows."""
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.svm import SVC

        machine = SVC(C=cost, gamma=gamma, degree=degree, kernel=kernel, max_iter=_MAX_ITERATIONS)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # cut short by _MAX_ITERATIONS
            wrong = [machine.fit(X, y).predict(X_test) != y_test for X, y, X_test, y_test in self.folds]
        return float(np.concatenate(wrong).mean())


def known(data_set: str) -> str:
    """The name itself, or an ``InputError`` with those that can be had."""
    if data_set not in QUESTIONS:
        raise InputError(f"There is no data set {data_set!r}. The demo has: {', '.join(QUESTIONS)}.")
    return data_set


def past_runs(data_set: str, *, trials: int, seed: int) -> list[RawTask]:
    """What tuning the same machine on the other data sets gave: so many random configurations of each."""
    table, known_set = _table(), known(data_set)
    runs = []
    for name, task in TASKS.items():
        if name == known_set:
            continue
        rows = table[table["task"] == task]
        if not 1 <= trials <= len(rows):
            raise InputError(f"A past tuning run has 1 to {len(rows)} trials, but {trials} were asked for.")
        rows = rows.sample(trials, random_state=seed, ignore_index=True)
        runs.append(RawTask(name, rows[list(SPACE)], rows["error"].to_numpy(float), SPACE, f"the past run on {name}"))
    return runs


@cache
def _table() -> pd.DataFrame:
    """The four data sets' rows of the benchmark's table."""
    with as_file(files("headstart.demo") / "data" / "past_runs.csv.gz") as path:
        return pd.read_csv(path)
