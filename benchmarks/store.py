"""Where results go: one JSON object per run and line, appended; a killed program loses at most what it was doing.

A line is written in one piece and flushed to the disk, under a lock, so that several processes can share a store. A
store that was cut off in the middle of a line is read up to there, and says so.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import subprocess
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

SCHEMA = 1
_DIGITS = 10  # of what is written down; computations keep them all

RunKey = tuple[str, str, int, str]


@cache
def commit() -> str:
    """The short name of the commit that the program was started from, empty outside a repository."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    try:
        found = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    except OSError:  # there is no git
        return ""
    return found.stdout.strip()


@cache
def provenance(device: str = "cpu") -> dict[str, Any]:
    """What a result depends on besides its settings: versions, commit, hardware."""
    found: dict[str, Any] = {"python": platform.python_version(), "commit": commit(), "device": device}
    for name in (
        *("headstart", "torch", "botorch", "gpytorch", "scipy", "numpy", "numba", "optuna", "scikit-learn"),
        *("ax-platform", "baybe"),
    ):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    found["hardware"] = platform.machine()
    if device.startswith("cuda"):
        import torch

        found["hardware"] = torch.cuda.get_device_name()
    return found


def rounded(values: Iterable[float]) -> list[float]:
    """The values with ten digits."""
    return [float(f"{value:.{_DIGITS}g}") for value in values]


@dataclass(frozen=True, slots=True)
class Run:
    """One optimisation or measurement: a problem, a method, a seed, and everything that came of it.

    ``value`` is noiseless, ``y`` what the method saw, ``regret`` the lowest (value − minimum)/scale so far. ``label``
    names the target. ``traces`` are further series by name: measures after every evaluation, or what was timed.

    ``pit`` (probability integral transform) and ``log_density`` are what the model had said about every y before it was
    seen: P(result ≤ y), and log p(y/scale) = log p(y) + log scale, so that problems in other units are comparable. The
    scale is that of the regret on tables, and the spread of y within the sources for functions, whose own is 1. They
    are None where a point was chosen without a model.
    """

    problem: str
    method: str
    seed: int
    settings: dict[str, Any]
    label: str = ""
    x: list[list[float]] = field(default_factory=list)
    y: list[float] = field(default_factory=list)
    value: list[float] = field(default_factory=list)
    regret: list[float] = field(default_factory=list)
    fit_seconds: list[float] = field(default_factory=list)
    acquisition_seconds: list[float] = field(default_factory=list)
    learn_seconds: float = 0.0
    provenance: dict[str, Any] = field(default_factory=dict)
    pit: list[float | None] = field(default_factory=list)
    log_density: list[float | None] = field(default_factory=list)
    traces: dict[str, list[Any]] = field(default_factory=dict)

    @property
    def key(self) -> RunKey:
        """What makes a run the same as another one."""
        return (self.problem, self.method, self.seed, settings_key(self.settings))


def settings_key(settings: dict[str, Any]) -> str:
    """Settings as a string that is equal for equal settings."""
    return json.dumps(settings, sort_keys=True)


@dataclass(frozen=True, slots=True)
class StoreContents:
    """The runs of a store, and sentences about what could not be read."""

    runs: tuple[Run, ...]
    remarks: tuple[str, ...]


class Store:
    """A folder with ``runs.jsonl``; further JSONL files in it, made elsewhere, are read as well."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "runs.jsonl"

    def append(self, runs: Iterable[Run]) -> None:
        """Write the runs, all or none of each."""
        append_lines(self.path, ({"schema": SCHEMA, **asdict(run)} for run in runs))

    def read(self) -> StoreContents:
        """All runs; of equal ones the last."""
        runs: dict[RunKey, Run] = {}
        remarks = []
        for path in sorted(self.folder.glob("*.jsonl")):
            records, unread = read_lines(path, SCHEMA)
            remarks += unread
            for number, record in records:
                try:
                    run = Run(**record)
                except TypeError:
                    remarks.append(f"{path}, line {number}: has not the fields of a run, left out.")
                    continue
                runs[run.key] = run
        return StoreContents(tuple(runs.values()), tuple(remarks))


def append_lines(path: Path, records: Iterable[dict[str, Any]]) -> None:
    """Write the records under a lock, so that several processes can share the file, and flush them to the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(record) + "\n" for record in records)
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        # a line that an earlier process could not finish must not swallow ours
        if file.tell() and not _ends_with_newline(path):
            lines = "\n" + lines
        os.write(file.fileno(), lines.encode())
        os.fsync(file.fileno())


def _ends_with_newline(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


def read_lines(path: Path, schema: int) -> tuple[list[tuple[int, dict[str, Any]]], list[str]]:
    """The records of the schema with the numbers of their lines, and a sentence about every other line."""
    records, remarks = [], []
    for number, line in enumerate(path.read_bytes().split(b"\n") if path.exists() else (), start=1):
        if not line:
            continue
        try:
            record = json.loads(line)
        except ValueError:
            remarks.append(f"{path}, line {number}: cut off in the middle, left out.")
            continue
        found = record.pop("schema", None) if isinstance(record, dict) else None
        if found != schema:
            remarks.append(f"{path}, line {number}: written in format {found}, this is {schema}; left out.")
            continue
        records.append((number, record))
    return records, remarks
