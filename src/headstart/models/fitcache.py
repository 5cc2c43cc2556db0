"""``FitCache``: fitted hyperparameters in a folder that any number of processes may share, one npz file per key.

    key     SHA-256 of the data, the options of the fit, and FIT_SCHEMA (``fit_key``)
    value   arrays by name, read with ``allow_pickle=False``: an entry holds numbers and cannot run code

A file is written under another name and renamed, so that nobody reads half of it. Two processes that need the same fit
at the same time both compute it, and the later rename wins with equal content.
"""

from __future__ import annotations

import hashlib
import logging
import uuid
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headstart.data.dataset import Dataset
from headstart.errors import UnwritableError
from headstart.gp.fit import FitOptions, FitReport
from headstart.gp.hyperparameters import GPParams

T = TypeVar("T")
Arrays = Mapping[str, NDArray[Any]]

_log = logging.getLogger(__name__)

# Raise it when a fit gives other numbers for the same data and options, or when an entry has another form: entries of
# other numbers are never read. tests/unit/models/test_fitcache.py notices changes of the code that a fit runs through.
FIT_SCHEMA = 4

_UNREADABLE = (OSError, ValueError, KeyError, TypeError, EOFError, NotImplementedError, zipfile.BadZipFile, zlib.error)


class FitCache:
    """Arrays by key in a folder, which is made if it is not there; ``warn`` is told what is wrong with it.

    A file that cannot be read, or holds something else, counts as missing. After the first failed write (a full disk,
    a folder that is read-only) nothing more is written.
    """

    def __init__(self, folder: Path, warn: Callable[[str], None] = _log.warning) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UnwritableError(f"{folder}: the folder cannot be made: {error.strerror}.") from error
        self.folder = folder
        self._warn = warn
        self._writes = True

    def get(self, key: str, read: Callable[[Arrays], T]) -> T | None:
        """What ``read`` makes of the arrays of the key; None without an entry, or where ``read`` refuses it."""
        path = self._path(key)
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as entry:
                return read({name: entry[name] for name in entry.files})
        except FileNotFoundError:
            return None
        except _UNREADABLE as error:
            self._warn(f"{path} cannot be used ({error}): what it held is fitted anew, and it is replaced.")
            return None

    def put(self, key: str, arrays: Arrays) -> None:
        """Write the arrays of the key, all of them or nothing."""
        if not self._writes:
            return
        temporary = self.folder / f".{key}.{uuid.uuid4().hex}.tmp"
        try:
            try:
                with temporary.open("xb") as file:
                    np.savez(file, **dict(arrays))  # type: ignore[arg-type]
                temporary.replace(self._path(key))
            finally:
                temporary.unlink(missing_ok=True)
        except OSError as error:
            self._writes = False
            self._warn(f"Fits are not kept in {self.folder}, and every process computes them: {error.strerror}.")

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.npz"


def fit_key(kind: str, tasks: Sequence[Dataset], *also: object) -> str:
    """The SHA-256 of all that a fit depends on: its kind, the tasks' values (not their names), ``also``, FIT_SCHEMA."""
    digest = hashlib.sha256(repr((FIT_SCHEMA, kind, also)).encode())
    for task in tasks:
        known = {name: getattr(task, name) for name in ("error_var", "batch", "present")}
        known = {name: tensor for name, tensor in known.items() if tensor is not None}
        named = (*known, *(() if task.drift is None else (task.drift,)))
        digest.update(repr((tuple(task.X.shape), task.unseen, task.categories, named)).encode())
        for tensor in (task.X, task.y, *known.values()):
            digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def options_in_key(fit: FitOptions) -> str:
    """The options that the fit of a source depends on: ``draws`` and ``unit_cube`` concern other things."""
    return repr(replace(fit, draws=0, unit_cube=True))


def values_of(levels: Sequence[GPParams]) -> list[list[object]]:
    """The values of hyperparameters, for a key."""
    every = ([getattr(level, f.name) for f in fields(level)] for level in levels)
    return [[value if value is None else value.tolist() for value in values] for values in every]


def fit_as_arrays(params: GPParams, report: FitReport) -> Arrays:
    """A fit as arrays, without the name of the task."""
    found = {f"params.{f.name}": getattr(params, f.name) for f in fields(params)}
    found |= {f"report.{f.name}": getattr(report, f.name) for f in fields(report)[1:]}  # the first is the name
    return {
        name: value.detach().cpu().contiguous().numpy() if isinstance(value, Tensor) else np.asarray(value)
        for name, value in found.items()
        if value is not None
    }


def fit_from_arrays(arrays: Arrays, task: Dataset, name: str) -> tuple[GPParams, FitReport]:
    """The fit of a task; a ``ValueError`` or ``KeyError`` where the arrays are no possible fit of it."""
    names = [f.name for f in fields(GPParams) if f.name != "batch_var" or task.batch is not None]
    params = GPParams(**{name: _tensor(arrays[f"params.{name}"]) for name in names})
    kinds: dict[Any, Any] = {"int": int, "str": str}
    own = {f.name: kinds.get(f.type, _tensor)(arrays[f"report.{f.name}"]) for f in fields(FitReport)[1:]}
    report = FitReport(name, **own)
    params.require("the entry", task.d)
    b, device = tuple(task.batch_shape), task.X.device
    by_restart = (*b, *report.objective.shape[-1:])
    shapes = {"lengthscale": (*b, task.d), "best": b} | dict.fromkeys(names[1:], b)
    every = {f.name: getattr(part, f.name) for part in (params, report) for f in fields(part)}
    found = {key: tuple(value.shape) for key, value in every.items() if isinstance(value, Tensor)}
    doubles = all(every[name].dtype == torch.float64 for name in names)
    if not doubles or found != {key: shapes.get(key, by_restart) for key in found}:
        raise ValueError("its arrays have other shapes or types than a fit of this task")
    return replace(params, **{name: every[name].to(device) for name in names}), report


def _tensor(array: NDArray[Any]) -> Tensor:
    return torch.from_numpy(np.array(array))
