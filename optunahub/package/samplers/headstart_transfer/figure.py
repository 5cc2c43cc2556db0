"""Draw ``images/thumbnail.png``: tuning a support vector machine with past studies and without.

Run it in the folder of the package, with optunahub, scikit-learn and matplotlib installed: python figure.py
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
import warnings

import matplotlib.pyplot as plt
import numpy as np
import optuna
import optunahub
from sklearn.datasets import load_breast_cancer
from sklearn.datasets import load_digits
from sklearn.datasets import load_iris
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC


HERE = Path(__file__).resolve().parent
PAST = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer}
ROWS = 400  # of the digits, which are the new task
FOLDS = StratifiedKFold(4, shuffle=True, random_state=0)
N_PAST, N_TRIALS, N_RUNS = 40, 15, 10

Objective = Callable[[optuna.Trial], float]


def error_on(load: Callable[..., tuple[np.ndarray, np.ndarray]]) -> Objective:
    """The cross-validated error of a support vector machine on a data set."""
    X, y = load(return_X_y=True)
    X, y = X[:ROWS] if load is load_digits else X, y[:ROWS] if load is load_digits else y

    def objective(trial: optuna.Trial) -> float:
        kernel = trial.suggest_categorical("kernel", ["poly", "rbf", "sigmoid"])
        machine = SVC(
            kernel=kernel,
            C=trial.suggest_float("C", 1e-3, 1e3, log=True),
            gamma=trial.suggest_float("gamma", 1e-5, 1e1, log=True),
            degree=trial.suggest_int("degree", 2, 5) if kernel == "poly" else 3,
            max_iter=20_000,
        )
        accuracy = cross_val_score(make_pipeline(StandardScaler(), machine), X, y, cv=FOLDS)
        return 1 - float(accuracy.mean())

    return objective


def best_so_far(study: optuna.Study) -> np.ndarray:
    """The best error after every trial."""
    return np.minimum.accumulate([trial.value for trial in study.trials])


def main(picture: Path) -> None:
    """Tune ten times in each way, and draw the mean of the best error so far."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    warnings.simplefilter("ignore", ConvergenceWarning)  # a fit cut short counts as it is
    module = optunahub.load_local_module(
        "samplers/headstart_transfer", registry_root=str(HERE.parents[1])
    )
    new = error_on(load_digits)
    found: dict[str, list[np.ndarray]] = {}
    for seed in range(N_RUNS):
        past = []
        for name, load in PAST.items():
            study = optuna.create_study(
                study_name=name, sampler=optuna.samplers.RandomSampler(seed=seed)
            )
            study.optimize(error_on(load), n_trials=N_PAST)
            past.append(study)
        ways: dict[str, optuna.samplers.BaseSampler] = {
            "TransferSampler, with three past studies": module.TransferSampler(past, seed=seed),
            "TPESampler, the best past trials first": optuna.samplers.TPESampler(seed=seed),
            "TPESampler": optuna.samplers.TPESampler(seed=seed),
        }
        for way, sampler in ways.items():
            study = optuna.create_study(sampler=sampler)
            for one in past if "first" in way else ():
                study.enqueue_trial(one.best_params)
            study.optimize(new, n_trials=N_TRIALS)
            found.setdefault(way, []).append(best_so_far(study))
        print(f"run {seed + 1} of {N_RUNS}")

    figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    trials = np.arange(1, N_TRIALS + 1)
    for (way, runs), color in zip(found.items(), ("#000000", "#0072B2", "#D55E00")):
        mean, spread = np.mean(runs, axis=0), np.std(runs, axis=0, ddof=1) / np.sqrt(N_RUNS)
        axes.plot(trials, mean, color=color, label=way, marker="o", markersize=3)
        axes.fill_between(trials, mean - spread, mean + spread, color=color, alpha=0.15, lw=0)
        print(f"{way}: {mean[[0, 4, 9, -1]].round(4).tolist()} after 1, 5, 10, {N_TRIALS}")
    axes.set_yscale("log")
    axes.set_xlabel("trials of the new task: digits")
    axes.set_ylabel("error of the best trial so far")
    axes.set_title(
        f"A support vector machine, mean of {N_RUNS} runs ± standard error", fontsize=10
    )
    axes.legend(frameon=False, fontsize=9)
    figure.savefig(picture, dpi=110)


if __name__ == "__main__":
    main(HERE / "images" / "thumbnail.png")
