"""The data behind the tuning problems: what comes with scikit-learn, asked several questions. Nothing is downloaded.

    classes   iris, iris by its sepals · wine, wine by its acids, wine by its colour · cancer by the means, by the
              errors and by the worst of ten measurements · digits (all ten), even or odd, 3 or 8, 4 or 9, below 5,
              by their upper half · diabetes above the median
    numbers   diabetes, by its blood, by its body · cancer: the worst radius, the worst compactness from what is not the
              worst · wine: alcohol, colour, proline from the rest · linnerud: waist from exercise · iris: petal width
              from the sepals and the species · Friedman's second function (generated, the only one)

A task is one question with its folds, which all configurations meet. At most 240 rows, drawn once, so that a model
trains in milliseconds. Columns are as they come: whether they are scaled is a part of the model.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets
from sklearn.model_selection import KFold, StratifiedKFold

from headstart.errors import InputError

_ROWS = 240
_FOLDS = 3

_Array = NDArray[Any]
_Table = tuple[_Array, _Array]


@dataclass(frozen=True, eq=False)
class TuningTask:
    """Rows, what is to be predicted, and the (train, test) row numbers of the folds.

    ``fingerprint`` is a digest of all of it.
    """

    name: str
    X: _Array
    y: _Array
    folds: tuple[tuple[_Array, _Array], ...]
    fingerprint: str = field(init=False)

    def __post_init__(self) -> None:
        parts = (self.X, self.y, *(rows for fold in self.folds for rows in fold))
        digest = hashlib.sha256(b"".join(np.ascontiguousarray(part, float).tobytes() for part in parts))
        object.__setattr__(self, "fingerprint", digest.hexdigest()[:16])


@cache
def tuning_task(name: str) -> TuningTask:
    """The task of that name, with at most 240 of its rows."""
    if name not in CLASSES and name not in NUMBERS:
        raise InputError(f"There is no task {name!r}. The known ones are {', '.join((*CLASSES, *NUMBERS))}.")
    X, y = CLASSES[name]() if name in CLASSES else NUMBERS[name]()
    chosen = np.sort(np.random.default_rng(0).permutation(len(y))[:_ROWS])
    X, y = np.asarray(X, float)[chosen], np.asarray(y)[chosen]
    if name in NUMBERS:
        y = (y - y.mean()) / y.std()
    split = StratifiedKFold if name in CLASSES else KFold
    folds = tuple(split(_FOLDS, shuffle=True, random_state=0).split(X, y))
    return TuningTask(name, X, y, folds)


# ── where the rows come from ──────────────────────────────────────────────────────────────────────────────────────────


@cache
def _load(name: str) -> _Table:
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    return np.asarray(X, float), np.asarray(y)


def _columns(name: str, columns: slice | list[int]) -> Callable[[], _Table]:
    """The data set by some of its columns."""
    return lambda: (_load(name)[0][:, columns], _load(name)[1])


def _relabelled(name: str, label: Callable[[_Array], _Array]) -> Callable[[], _Table]:
    """The data set with another question."""
    return lambda: (_load(name)[0], label(_load(name)[1]).astype(int))


def _one_or_other(a: int, b: int) -> Callable[[], _Table]:
    """Two of the ten digits."""

    def table() -> _Table:
        X, y = _load("digits")
        there = (y == a) | (y == b)
        return X[there], (y[there] == b).astype(int)

    return table


def _column_from(name: str, column: int, others: slice | list[int]) -> Callable[[], _Table]:
    """One column of a data set, from others."""
    return lambda: (_load(name)[0][:, others], _load(name)[0][:, column])


def _waist() -> _Table:
    X, y = _load("linnerud")
    return X, y[:, 1].astype(float)


def _petal_width() -> _Table:
    X, y = _load("iris")
    return np.column_stack([X[:, :2], y]), X[:, 3]


def _friedman() -> _Table:
    X, y = datasets.make_friedman2(n_samples=_ROWS, noise=60.0, random_state=0)
    return X, y


CLASSES: dict[str, Callable[[], _Table]] = {
    "iris": _columns("iris", slice(None)),
    "iris-sepals": _columns("iris", [0, 1]),
    "wine": _columns("wine", slice(None)),
    "wine-acids": _columns("wine", [1, 2, 3, 4, 8]),
    "wine-colour": _columns("wine", [0, 9, 10]),
    "cancer-means": _columns("breast_cancer", slice(0, 10)),
    "cancer-errors": _columns("breast_cancer", slice(10, 20)),
    "cancer-worst": _columns("breast_cancer", slice(20, 30)),
    "digits": _columns("digits", slice(None)),
    "digits-even": _relabelled("digits", lambda y: y % 2),
    "digits-below-5": _relabelled("digits", lambda y: y < 5),
    "digits-upper-half": lambda: (_load("digits")[0][:, :32], _load("digits")[1] % 2),
    "digits-3-or-8": _one_or_other(3, 8),
    "digits-4-or-9": _one_or_other(4, 9),
    "diabetes-high": _relabelled("diabetes", lambda y: y > np.median(y)),
}
NUMBERS: dict[str, Callable[[], _Table]] = {
    "diabetes": _columns("diabetes", slice(None)),
    "diabetes-blood": _columns("diabetes", slice(3, 10)),
    "diabetes-body": _columns("diabetes", slice(0, 4)),
    "cancer-radius": _column_from("breast_cancer", 20, [1, 4, 5, 6, 8, 9, 10, 14, 15, 16]),
    "cancer-compactness": _column_from("breast_cancer", 25, slice(0, 20)),
    "wine-alcohol": _column_from("wine", 0, slice(1, 13)),
    "wine-colour-intensity": _column_from("wine", 9, [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12]),
    "wine-proline": _column_from("wine", 12, slice(0, 12)),
    "linnerud-waist": _waist,
    "iris-petal-width": _petal_width,
    "friedman": _friedman,
}
