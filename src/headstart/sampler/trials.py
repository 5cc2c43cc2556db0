"""What the trials of a study say in a given space: results, points whose result is awaited, and who is asking too.

    trial is      its parameters are              it counts as
    COMPLETE      its own                         an observation; ±inf becomes the worst or best finite value, and a
                                                  pending point for good where no value is finite
    RUNNING       those suggested so far, and     a pending point
                  those noted in a system attribute
    WAITING       those it was enqueued with      a pending point
    FAIL          its own                         a pending point for good: not tried again, and no value invented
    PRUNED        its own                         an observation of what it would have ended at (``estimated_finals``);
                                                  as a failed one if it reported nothing

A trial that was run without a parameter of the space has it at rest, or at the value that ``fill`` gives.

A running trial shows no parameter before the objective asks for it, so what was suggested for it is noted right away
in system attributes, in pieces that a database column takes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headstart.data.dataset import Dataset
from headstart.data.space import Space
from headstart.errors import NoPlaceError
from headstart.sources.forms.naming import errors_of_trials
from headstart.sources.forms.studies import estimated_finals
from headstart.sources.matching import match
from headstart.sources.raw import error_var, finite

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial

_KEY = "headstart:params"
_PIECE = 2045  # characters that a system attribute may have in a relational database
_MAX_PENDING = 64  # of those that will never have a result, and of those that may, the latest
_ASKING = timedelta(seconds=60)  # a trial without parameters for longer is not asking any more


@dataclass(frozen=True)
class SeenTrials:
    """A study in a space: its results, the points that are awaited, and how many trials ask at this moment.

    ``asking`` counts the older running trials that have no parameters yet; ``numbers`` and ``values`` are those of the
    finished trials behind the target's rows, as the study has them.
    """

    target: Dataset
    pending: Float[Tensor, "p d"]
    asking: int
    numbers: tuple[int, ...] = ()
    values: tuple[float, ...] = ()


def see(
    trials: Sequence[FrozenTrial],
    space: Space,
    *,
    own: int,
    minimize: bool,
    fill: Mapping[str, Any] | None = None,
    error: str | None = None,
) -> SeenTrials:
    """The trials but number ``own``, in the space; one that has no place in it does not count.

    ``error`` is the user attribute with the standard error of a result.
    """
    from optuna.trial import TrialState

    others = [trial for trial in trials if trial.number != own]
    estimates = estimated_finals(others, minimize=minimize)
    finals = {t.number: t.values[0] for t in others if t.state == TrialState.COMPLETE and t.values} | estimates
    finished = [t for t in others if t.number in finals]
    rows, kept = _encode([{**(fill or {}), **t.params} for t in finished], space)
    values = np.array([finals[finished[i].number] for i in kept], dtype=np.float64)
    y = finite(values)
    levels = space.categories
    known = len(kept) > 0 and not bool(np.isnan(y).any())  # without a finite value there is no result
    target = Dataset.empty(space.d, categories=levels)
    if known:
        errors, _ = errors_of_trials([finished[i] for i in kept], error, "this study")
        target = Dataset(rows, y if minimize else -y, categories=levels, error_var=error_var(errors))
    numbers = tuple(finished[i].number for i in kept) if known else ()

    done = (TrialState.FAIL, TrialState.PRUNED, TrialState.COMPLETE)
    gone = [t.params for t in others if t.state in done and not (known and t.number in finals)]
    awaited = [parameters(t) for t in others if t.state in (TrialState.RUNNING, TrialState.WAITING)]
    points = [_translated(params, space) for params in [*gone[-_MAX_PENDING:], *awaited[-_MAX_PENDING:]]]
    pending, _ = _encode(points, space)
    running = [t for t in others if t.state == TrialState.RUNNING and t.number < own]
    asking = sum(_is_asking(t) for t in running)
    return SeenTrials(target, pending, asking, numbers, tuple(values.tolist()) if known else ())


def parameters(trial: FrozenTrial) -> dict[str, Any]:
    """What an unfinished trial runs with, as far as it is known."""
    return {**(noted(trial) or {}), **fixed_parameters(trial)}


def fixed_parameters(trial: FrozenTrial) -> dict[str, Any]:
    """What nobody can choose any more: what the trial was enqueued with, and what it has asked for."""
    fixed: dict[str, Any] = trial.system_attrs.get("fixed_params", {})
    return {**fixed, **trial.params}


def note(study: Study, trial: FrozenTrial, params: Mapping[str, Any]) -> None:
    """Tell every other worker what this trial will run with."""
    plain = {name: v if v is None or isinstance(v, bool | int | float | str) else str(v) for name, v in params.items()}
    text = json.dumps(plain)
    pieces = [text[i : i + _PIECE] for i in range(0, len(text), _PIECE)]
    for i, piece in enumerate(pieces):
        study._storage.set_trial_system_attr(trial._trial_id, f"{_KEY}:{i}", piece)
    study._storage.set_trial_system_attr(trial._trial_id, _KEY, len(pieces))  # last: now they are complete


def noted(trial: FrozenTrial) -> dict[str, Any] | None:
    """What was noted for the trial, None if nothing was."""
    attributes = trial.system_attrs
    count = attributes.get(_KEY)
    if count is None:
        return None
    try:
        params: dict[str, Any] = json.loads("".join(attributes[f"{_KEY}:{i}"] for i in range(count)))
    except (KeyError, ValueError):  # seen in the middle of being changed
        return None
    return params


def _is_asking(trial: FrozenTrial) -> bool:
    if parameters(trial):
        return False
    start = trial.datetime_start
    return start is not None and datetime.now() - start < _ASKING


def _translated(params: Mapping[str, Any], space: Space) -> dict[str, Any]:
    """The parameters of the space, with categories that came as text turned back."""
    found = {}
    for axis in space.axes:
        if axis.name in params:
            matched = match([params[axis.name]], axis.distribution)
            if matched.ok.all() and not matched.problem:
                found[axis.name] = matched.values[0]
    return found


def _encode(rows: Sequence[Mapping[str, Any]], space: Space) -> tuple[Float[Tensor, "n d"], list[int]]:
    """The rows that have a place in the space, and their numbers."""
    if not rows:
        return torch.empty(0, space.d, dtype=torch.float64), []
    try:
        return space.encode(rows), list(range(len(rows)))
    except NoPlaceError:
        placed = []
        for i, row in enumerate(rows):
            try:
                placed.append((space.encode([row]), i))
            except NoPlaceError:
                continue
    if not placed:
        return torch.empty(0, space.d, dtype=torch.float64), []
    return torch.cat([X for X, _ in placed]), [i for _, i in placed]
