"""Make the SVM table that ships with headstart, from the data sets inside scikit-learn.

    python scripts/make_svm_table.py --out svm_sklearn.csv.gz

Every task is a classification problem: a whole data set, one class against the rest, two classes, or some of the
columns. Every row is a random configuration of a support vector machine with its cross-validated error, on inputs
standardised by the training folds. Small data sets are split more often, so that every error is a mean over at least
1000 predictions. Results go to a partial file as they come, and a second start continues from it. Tasks that a
benchmark learns nothing from are left out at the end, and said: see ``why_not``.

Needs scikit-learn, joblib and pandas: pip install "headstart[demo]".
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import itertools
import math
import time
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks.problems.shared_tables import UNUSED_DEGREE, UNUSED_GAMMA

Array = NDArray[Any]
FOLDS = 3
PREDICTIONS = 1000  # at least so many held-out predictions per error
MAX_ROWS = 500  # larger tasks are sub-sampled
MAX_ITERATIONS = 20_000  # of libsvm: no fit hangs, and a fit cut short is scored as it is
NEAR = 0.02  # of the span of a task's errors: random search should not get so near at once
BLOCK = 50  # configurations per job
# The digits and the pairs of digits that are hard to tell; the others are easy for most configurations.
DIGITS = (1, 2, 3, 5, 8, 9)
DIGIT_PAIRS = ((1, 8), (2, 3), (3, 8), (3, 9), (5, 9), (8, 9))
FIELDS = ("task", "index", "cost", "gamma", "degree", "kernel", "error")


class Config(NamedTuple):
    """A configuration, with the value of a hyperparameter also where the kernel does not use it."""

    cost: float
    gamma: float
    degree: float
    kernel: str


def tasks(seed: int) -> Iterator[tuple[str, Array, Array]]:
    """Name, inputs and labels of every candidate task."""
    sets = {"iris": load_iris, "wine": load_wine, "cancer": load_breast_cancer, "digits": load_digits}
    for name, load in sets.items():
        X, y = load(return_X_y=True)
        for part, columns, rows, labels in _parts(name, y):
            yield part, *_sample(X[rows][:, columns], labels[rows], seed, part)


def _parts(name: str, y: Array) -> Iterator[tuple[str, slice, Array, Array]]:
    """Name, columns, rows and labels of the tasks made from one data set."""
    every, classes = np.ones(len(y), dtype=bool), range(int(y.max()) + 1)
    yield name, slice(None), every, y
    if len(classes) > 2:
        for c in DIGITS if name == "digits" else classes:
            yield f"{name}_{c}_rest", slice(None), every, (y == c).astype(int)
        for a, b in DIGIT_PAIRS if name == "digits" else itertools.combinations(classes, 2):
            yield f"{name}_{a}_{b}", slice(None), (y == a) | (y == b), y
    if name == "iris":  # the two kinds of leaves
        yield "iris_sepal", slice(0, 2), every, y
        yield "iris_petal", slice(2, 4), every, y
    if name == "cancer":  # ten measurements: their means, standard errors and worst values
        for i, kind in enumerate(("mean", "se", "worst")):
            yield f"cancer_{kind}", slice(10 * i, 10 * i + 10), every, y
    if name == "digits":
        yield "digits_parity", slice(None), every, y % 2


def _generator(seed: int, *key: str) -> np.random.Generator:
    return np.random.default_rng([seed, zlib.crc32("/".join(key).encode())])


def _sample(X: Array, y: Array, seed: int, task: str) -> tuple[Array, Array]:
    chosen = np.sort(_generator(seed, task, "rows").permutation(len(y))[:MAX_ROWS])
    return X[chosen], y[chosen]


def configurations(seed: int, task: str, n: int) -> list[Config]:
    """The n random configurations of a task, rounded as they are written."""
    draw = _generator(seed, task, "configurations")

    def config() -> Config:
        cost, gamma = (float(f"{2.0**x:.6g}") for x in draw.uniform(-10, 10, 2))
        degree, kernel = int(draw.integers(2, 6)), ("linear", "poly", "rbf")[draw.integers(3)]
        return Config(
            cost,
            gamma if kernel != "linear" else UNUSED_GAMMA,
            degree if kernel == "poly" else UNUSED_DEGREE,
            kernel,
        )

    return [config() for _ in range(n)]


def errors(X: Array, y: Array, configs: list[Config], seed: int) -> list[float]:
    """The repeated stratified cross-validated error of every configuration; all meet the same folds."""
    splits = RepeatedStratifiedKFold(
        n_splits=FOLDS, n_repeats=math.ceil(PREDICTIONS / len(y)), random_state=seed
    ).split(X, y)
    folds = []
    for train, test in splits:
        scaler = StandardScaler().fit(X[train])
        folds.append((scaler.transform(X[train]), y[train], scaler.transform(X[test]), y[test]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # cut short by MAX_ITERATIONS
        return [_error(config, folds) for config in configs]


def _error(config: Config, folds: list[tuple[Array, Array, Array, Array]]) -> float:
    machine = SVC(
        C=config.cost,
        gamma=config.gamma,
        degree=int(config.degree),
        kernel=config.kernel,
        max_iter=MAX_ITERATIONS,
    )
    wrong = [machine.fit(X, y).predict(X_test) != y_test for X, y, X_test, y_test in folds]
    return float(np.concatenate(wrong).mean())


def block(seed: int, task: str, X: Array, y: Array, n: int, indices: list[int]) -> list[tuple[Any, ...]]:
    """The rows of some configurations of a task."""
    configs = configurations(seed, task, n)
    values = errors(X, y, [configs[i] for i in indices], seed)
    return [(task, i, *configs[i], round(value, 6)) for i, value in zip(indices, values, strict=True)]


def compute(partial: Path, seed: int, n: int, jobs: int) -> pd.DataFrame:
    """All rows of all tasks: those in the partial file are kept, the others are computed and appended to it."""
    partial.parent.mkdir(parents=True, exist_ok=True)
    text = partial.read_text() if partial.exists() else ",".join(FIELDS) + "\n"
    partial.write_text(text[: text.rfind("\n") + 1])  # a line cut off by a kill goes
    have = pd.read_csv(partial)
    done = set(zip(have["task"], have["index"], strict=True))
    todo, names = [], set()
    for task, X, y in tasks(seed):
        names.add(task)
        missing = [i for i in range(n) if (task, i) not in done]
        todo += [(seed, task, X, y, n, missing[k : k + BLOCK]) for k in range(0, len(missing), BLOCK)]
    print(f"{len(done)} rows are there, {sum(len(job[-1]) for job in todo)} are to do, in {partial}", flush=True)
    start = time.monotonic()
    with partial.open("a", newline="") as file:
        results = Parallel(n_jobs=jobs, return_as="generator_unordered")(delayed(block)(*job) for job in todo)
        for k, rows in enumerate(results, 1):
            csv.writer(file, lineterminator="\n").writerows(rows)
            file.flush()
            print(f"{k}/{len(todo)} {time.monotonic() - start:.0f} s {rows[0][0]}", flush=True)
    rows = pd.read_csv(partial).sort_values(["task", "index"], ignore_index=True)
    return rows[rows["task"].isin(names)]


def why_not(error: pd.Series) -> str:
    """Why a task is left out; empty if it is not."""
    span = error.max() - error.min()
    if span < 0.05:
        return f"nearly constant: its errors span {span:.3f}"
    if (ties := (error == error.min()).mean()) > 0.2:
        return f"{ties:.0%} of its rows attain the minimum"
    if (easy := near(error)) > 1 / 3:
        return f"{easy:.0%} of its rows are within {NEAR:.0%} of the span of its errors from the minimum"
    return ""


def near(error: pd.Series) -> float:
    """The share of rows that are as good as the best, but for 2 % of the span of the errors."""
    return float((error <= error.min() + NEAR * (error.max() - error.min())).mean())


def summary(table: pd.DataFrame) -> str:
    """One line per task: the spread of its errors, how rare good rows are, its best configuration."""
    lines = [f"{'task':16} {'min':>6} {'median':>6} {'max':>6} {'at min':>6} {'near':>6}  best (log2 cost, log2 gamma)"]
    for task, rows in table.groupby("task"):
        error = rows["error"]
        best = rows.loc[error.idxmin()]
        lines.append(
            f"{task:16} {error.min():6.4f} {error.median():6.3f} {error.max():6.3f} "
            f"{(error == error.min()).mean():6.1%} {near(error):6.1%}  {best['kernel']:6} "
            f"{math.log2(best['cost']):5.1f} {math.log2(best['gamma']):5.1f} degree {best['degree']}"
        )
    return "\n".join(lines)


def write(table: pd.DataFrame, path: Path) -> None:
    """A gzipped CSV that has the same bytes whenever it has the same rows."""
    text = io.StringIO()
    table.to_csv(text, index=False, lineterminator="\n")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.getvalue().encode(), compresslevel=9, mtime=0))


def main() -> None:
    """Compute, choose, write."""
    parser = argparse.ArgumentParser(description="Make the SVM table that ships with headstart.")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/problems/data/svm_sklearn.csv.gz"))
    parser.add_argument("--partial", type=Path, default=Path("out"), help="the folder of the partial file")
    parser.add_argument("--configurations", type=int, default=300)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    partial = args.partial / f"svm_sklearn.{args.seed}.{args.configurations}.{FOLDS}.{PREDICTIONS}.partial.csv"
    rows = compute(partial, args.seed, args.configurations, args.jobs)
    print(summary(rows))
    reasons = {task: why_not(group["error"]) for task, group in rows.groupby("task")}
    for task, reason in reasons.items():
        if reason:
            print(f"left out: {task}, {reason}")
    kept = rows[rows["task"].map(lambda task: not reasons[task])]
    write(kept.drop(columns="index"), args.out)
    print(f"{kept['task'].nunique()} tasks, {len(kept)} rows, {args.out.stat().st_size / 1000:.0f} kB in {args.out}")


if __name__ == "__main__":
    main()
