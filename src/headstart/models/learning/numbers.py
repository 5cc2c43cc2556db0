"""What a fit found, as plain numbers: all that has to be kept of it, and nothing that could be run."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

import headstart
from headstart.data.dataset import Dataset
from headstart.gp.fit import FitReport
from headstart.gp.hyperparameters import GPParams

if TYPE_CHECKING:
    from headstart.models.model import TransferModel

# Arrays by name
Numbers = Mapping[str, NDArray[Any]]

# Another number is another meaning of the entries: none of them is taken for one of today
_MEANING = "1"
# Options of a model that say nothing about how a source is fitted: outputs have passed their map by then
_ELSEWHERE = ("output_map",)
_OF_A_TARGET = ("draws", "unit_cube")


def content_key(kind: str, tasks: Sequence[Dataset], *also: object) -> str:
    """The SHA-256 of all that a result depends on: what it is, the tasks' values (not their names), and the rest.

    A changed value, option or version is another key, so what is kept is never out of date.
    """
    digest = hashlib.sha256(repr((_MEANING, headstart.__version__, kind, also)).encode())
    for task in tasks:
        known = () if task.error_var is None else (task.error_var,)
        digest.update(repr((tuple(task.X.shape), task.unseen, task.categories, len(known))).encode())
        for tensor in (task.X, task.y, *known):
            digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def options_of(model: TransferModel) -> str:
    """The options of a model that the fit of a source depends on, in words that differ where they do."""
    from headstart.models.model import TransferModel

    own = {f.name: getattr(model, f.name) for f in fields(TransferModel) if f.name not in _ELSEWHERE}
    fit = own.pop("fit")
    how = {f.name: getattr(fit, f.name) for f in fields(fit) if f.name not in _OF_A_TARGET}
    return repr((own, how))


def fit_in_numbers(params: GPParams, report: FitReport) -> Numbers:
    """A process and how it was found; the task's name stays with whoever knows it."""
    found = {f"params.{f.name}": getattr(params, f.name) for f in fields(params)}
    found |= {f"report.{f.name}": getattr(report, f.name) for f in fields(report) if f.name != "task"}
    return {
        name: value.detach().cpu().contiguous().numpy() if isinstance(value, Tensor) else np.asarray(value)
        for name, value in found.items()
    }


def fit_of_numbers(numbers: Numbers, task: str, device: torch.device) -> tuple[GPParams, FitReport]:
    """The same back again, the hyperparameters on the device; a ``KeyError`` where something is missing."""
    params = {f.name: torch.from_numpy(numbers[f"params.{f.name}"].copy()).to(device) for f in fields(GPParams)}
    plain = {"n_observations": int, "note": str}
    report: dict[str, Any] = {f.name: numbers[f"report.{f.name}"] for f in fields(FitReport) if f.name != "task"}
    report = {n: plain[n](v) if n in plain else torch.from_numpy(v.copy()) for n, v in report.items()}
    return GPParams(**params), FitReport(task, **report)


def is_fit(numbers: Numbers, task: Dataset) -> bool:
    """Whether the numbers are a fit of this task: every one is there, of the right shape, and possible."""
    try:
        params, report = fit_of_numbers(numbers, "", torch.device("cpu"))
        params.require("the entry", task.d)
    except (KeyError, TypeError, ValueError):  # of which an InputError is one
        return False
    b, shapes = task.batch_shape, {f.name: getattr(report, f.name) for f in fields(report)}
    restarts = report.objective.shape[len(b) :]
    return (
        all(getattr(params, f.name).dtype == torch.float64 for f in fields(params))
        and params.lengthscale.shape == (*b, task.d)
        and all(getattr(params, f.name).shape == b for f in fields(params) if f.name != "lengthscale")
        and report.best.shape == b
        and len(restarts) == 1
        and all(v.shape == (*b, *restarts) for n, v in shapes.items() if isinstance(v, Tensor) and n != "best")
    )
