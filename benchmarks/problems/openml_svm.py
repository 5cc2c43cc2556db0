"""The paper's SVM benchmark: the runs of OpenML's random bot with flow 5891, on the 28 tasks of the paper's table.

``svm_openml`` fetches them through the ``openml`` package, keeps them in a file, and reads them from it afterwards.
The objective is 1 − predictive accuracy. It is defined for any number of classes, and an error like those of the other
tables; the area under the curve would not see where a machine puts its threshold.

OpenML stores what was *set* for a run. The bot sets gamma for the radial kernel only, and degree for the polynomial
one; a value that equals e1071's default may be absent. So a value that is not there means:

    kernel   radial, the default
    cost     1, the default
    degree   3, the default, of a polynomial kernel; 3.5, the middle of the range, of the others, which have none
    gamma    1, the middle of the log range, of the linear kernel, which has none, and of the polynomial one, where
             it was 1 / (number of inputs), the same in all runs of a task; unknown of a radial one: the row is left out

The parsing is tested on a recorded-style answer. It has not been run against the server yet.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.problems.svm_table import UNUSED_DEGREE, UNUSED_GAMMA
from benchmarks.problems.table import TaskTable, read_table
from headstart.errors import HeadstartError, InputError, MissingExtraError

FLOW = 5891
TASKS: tuple[int, ...] = (
    *(37, 3485, 3492, 3493, 3494, 3889, 3891, 3899, 3902, 3903, 3913, 3918, 3950, 9889, 9914, 9946, 9952, 9967),
    *(9971, 9976, 9978, 9980, 9983, 10101, 14951, 34537, 145878, 146064),
)
MEASURE = "predictive_accuracy"
_KERNELS = ("linear", "polynomial", "radial")
_BOT = 2702  # the user "OpenML_Bot R"


def svm_openml(
    folder: str | Path | None = None, *, tasks: Sequence[int] = TASKS, fetch: Callable[[int], Any] | None = None
) -> TaskTable:
    """The table of these tasks; those that are not yet in ``folder`` are fetched and kept there, a file for each.

    The folder is headstart/openml_svm in the user's cache where not given. ``fetch`` answers in place of the server.
    """
    import pandas as pd

    where = _cache() if folder is None else Path(folder)
    ask = fetch_runs if fetch is None else fetch
    frames = []
    for task in tasks:
        path = where / f"svm_{FLOW}_{task}.csv"
        if not path.is_file():
            _write(parse_runs(ask(task)), path)
        frames.append(pd.read_csv(path))
    frames = [frame for frame in frames if len(frame)]
    if not frames:
        raise InputError(f"OpenML has no runs of flow {FLOW} on the tasks {', '.join(map(str, tasks))}.")
    runs = pd.concat(frames, ignore_index=True)
    known = runs["kernel"].isna() | runs["kernel"].isin(_KERNELS)
    table = read_table(
        fill_unset(runs[known]).drop(columns="run"),
        task="task",
        objective="error",
        log=("cost", "gamma"),
        columns=("cost", "gamma", "degree", "kernel"),
        name="svm_openml",
    )
    said = [f"{int((~known).sum())} runs with a kernel other than {', '.join(_KERNELS)} are left out."]
    absent = sorted(set(map(str, tasks)) - set(map(str, runs["task"])), key=int)
    more = [f"There are no runs of {len(absent)} tasks: {', '.join(absent)}."] if absent else []
    return replace(table, report=(*table.report, *(said if not known.all() else ()), *more))


def fetch_runs(task: int) -> Any:
    """What OpenML answers for a task: a DataFrame with a row per run and its settings in ``parameters``."""
    try:
        import openml
    except ImportError as error:
        raise MissingExtraError(
            "Fetching runs from OpenML needs the openml package. Install it with pip install headstart[openml]."
        ) from error
    try:
        return openml.evaluations.list_evaluations_setups(MEASURE, flows=[FLOW], tasks=[task], uploaders=[_BOT])
    except (OSError, openml.exceptions.PyOpenMLError) as error:
        raise HeadstartError(
            f"OpenML did not answer for task {task} ({error}). The tasks that came are kept: run it again to go on."
        ) from error


def parse_runs(answer: Any) -> Any:
    """A DataFrame with the columns run, task, cost, gamma, degree, kernel, error; NaN or None where nothing was set."""
    import pandas as pd

    needed = ("run_id", "task_id", "value", "parameters")
    if len(answer) and (absent := [c for c in needed if c not in answer.columns]):
        raise InputError(
            f"OpenML's answer has no column {', '.join(absent)}, but {', '.join(map(str, answer.columns))}. "
            "The openml package may have changed: headstart was written for openml 0.15."
        )
    rows = []
    for run in answer.to_dict("records"):
        # "mlr.classif.svm(6)_cost" → "cost"; text may come in quotes
        given = run["parameters"] if isinstance(run["parameters"], dict) else {}
        settings = {key.rpartition("_")[2]: str(value).strip("\"'") for key, value in given.items()}
        numbers = {c: _number(settings.get(c), c, run["run_id"]) for c in ("cost", "gamma", "degree")}
        error = None if run["value"] is None else round(1.0 - float(run["value"]), 12)
        rows.append(
            {"run": int(run["run_id"]), "task": int(run["task_id"]), **numbers, "kernel": settings.get("kernel")}
            | {"error": error}
        )
    return pd.DataFrame(rows, columns=["run", "task", "cost", "gamma", "degree", "kernel", "error"])


def fill_unset(runs: Any) -> Any:
    """The same runs with the values that the head of this module gives to what was not set."""
    kernel = runs["kernel"].astype(object).where(runs["kernel"].notna(), "radial")
    gamma = runs["gamma"].where(runs["gamma"].notna() | (kernel == "radial"), UNUSED_GAMMA)
    degree = runs["degree"].where(runs["degree"].notna() | (kernel == "polynomial"), UNUSED_DEGREE).fillna(3.0)
    return runs.assign(kernel=kernel, cost=runs["cost"].fillna(1.0), gamma=gamma, degree=degree)


def _number(text: str | None, name: str, run: object) -> float | None:
    if text is None:
        return None
    try:
        return float(text)
    except ValueError as error:
        raise InputError(f"OpenML's run {run}: {name} = {text!r} is not a number.") from error


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headstart" / "openml_svm"


def _write(runs: Any, path: Path) -> None:
    """The file is there whole, or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(f".{os.getpid()}")
    runs.to_csv(unfinished, index=False)
    unfinished.replace(path)
