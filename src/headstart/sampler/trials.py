"""The trials of a study in a space: results, points whose result is awaited, and the notes that workers leave.

What counts as a result: docs/optuna.md, results. All other trials, those that run, wait or have failed, are pending
points, with the parameters that are known of them. A trial that was run without a parameter of the space has it at
rest, or at the value that ``fill`` gives.

A running trial shows no parameter before the objective asks for it. What was suggested is therefore noted at once in
system attributes, cut into pieces that a column of a database takes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from optuna.trial import TrialState
from torch import Tensor

from headstart.data.space import Space
from headstart.errors import NoPlaceError
from headstart.sources.batches import Batches, in_batches
from headstart.sources.forms.naming import BatchName
from headstart.sources.forms.studies import estimated_finals
from headstart.sources.matching import match
from headstart.sources.optuna_api import enqueued_parameters, set_attributes, study_attributes, system_attributes
from headstart.sources.raw import INFINITE

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial

    from headstart.sampler.space import StudySnapshot

_COMPLETE = TrialState.COMPLETE
_KEY = "headstart:params"
_PIECE = 2045  # characters of a system attribute in a relational database
_MAX_PENDING = 64  # the latest trials without a result, and the latest running ones, that are pending points
_ASKING = timedelta(seconds=60)  # a trial without parameters for longer is not asking any more
_SAME_EXPERIMENT = 1e-3  # of the unit cube


@dataclass(frozen=True)
class EncodedTrials:
    """The trials of a study in its space, but for trial number ``own``."""

    own: int
    space: Space
    finished: tuple[FrozenTrial, ...]  # those with a result
    X: Float[Tensor, "n d"]  # their points
    values: NDArray[np.float64]  # their results of the first objective
    failed: Float[Tensor, "f d"]  # the points of trials without a result
    awaited: Float[Tensor, "a d"]  # those of the trials that run or wait
    running: Mapping[int, Mapping[str, Any]]  # the parameters of these by number
    asking: int  # how many older running trials have no parameters yet
    batch: Batches | None = None  # of the finished trials, where any trial or the study says one
    present: float | None = None  # the batch of the next trial and of those that run

    @property
    def pending(self) -> Float[Tensor, "p d"]:
        """All points that are not to be suggested again."""
        return torch.cat([self.failed, self.awaited])

    @property
    def noisy(self) -> bool:
        """Whether two trials of the same point and batch have different results."""
        known: dict[tuple[float, ...], Any] = {}
        batches = [0.0] * len(self.finished) if self.batch is None else self.batch.numbers.tolist()
        every = zip(self.X.tolist(), batches, self.finished, strict=True)
        done = [((*x, batch), t.values) for x, batch, t in every if t.state == _COMPLETE]
        return any(known.setdefault(point, values) != values for point, values in done)

    def in_batches(self, rows: NDArray[np.intp]) -> dict[str, Any]:
        """The arguments of a ``Dataset`` of these of the finished trials that say which batches they belong to."""
        return in_batches(self.batch, rows, self.present)

    def with_batches(self, named: BatchName, now: StudySnapshot, asking: FrozenTrial | None) -> EncodedTrials:
        """The same with the batches that the user attributes of trials and of the study say.

        A trial that says none belongs to the batch of the one before it. The present batch is what the trial that is
        asking says, or else the study, or else the latest trial.
        """
        if named.name is None:
            return self
        trials = [t for t in now.trials if t.state != TrialState.WAITING]
        own = None if asking is None else named.label(asking.user_attrs)
        present = named.label(study_attributes(now.study)) if own is None else own
        every = named.numbered([*(named.label(t.user_attrs) for t in trials), present], "this study")
        if every is None:
            return self
        places = {t.number: i for i, t in enumerate(trials)}
        rows = np.array([places[t.number] for t in self.finished], dtype=int)
        return replace(self, batch=every.only(rows), present=float(every.numbers[-1]))

    def with_running(self, trials: Sequence[FrozenTrial]) -> EncodedTrials:
        """The same with the running and waiting trials as they are now: encoded again only if one has changed."""
        running = _running(trials, self.own)
        if running == self.running:
            return self
        return replace(self, running=running, awaited=_points(running.values(), self.space))


def encode_trials(
    trials: Sequence[FrozenTrial], space: Space, *, own: int, minimize: bool, fill: Mapping[str, Any]
) -> EncodedTrials:
    """The trials as results and pending points. Trial ``own``, which is asking, does not count."""
    others = [trial for trial in trials if trial.number != own]
    finals = {t.number: t.values[0] for t in others if t.state == TrialState.COMPLETE and t.values}
    finals |= estimated_finals(others, minimize=minimize)
    if not any(abs(value) < INFINITE for value in finals.values()):
        finals = {}  # without a finite value there is no result
    finished = [t for t in others if t.number in finals]
    X, kept = _encode([{**fill, **t.params} for t in finished], space)
    finished = [finished[i] for i in kept]
    done = (TrialState.FAIL, TrialState.PRUNED, TrialState.COMPLETE)
    failed = [t.params for t in others if t.state in done and t.number not in finals]
    running, now = _running(others, own), datetime.now()
    older = [t for t in others if t.state == TrialState.RUNNING and t.number < own]
    young = [t for t in older if t.datetime_start is not None and now - t.datetime_start < _ASKING]
    return EncodedTrials(
        own=own,
        space=space,
        finished=tuple(finished),
        X=X,
        values=np.array([finals[t.number] for t in finished], dtype=np.float64),
        failed=_points(failed[-_MAX_PENDING:], space),
        awaited=_points(running.values(), space),
        running=running,
        asking=sum(not parameters(t) for t in young),
    )


def count_same(X: Float[Tensor, "n d"], points: Float[Tensor, "p d"]) -> Int[Tensor, "n"]:
    """How many of the points are the same experiment as each row of X for practical purposes."""
    return (torch.cdist(X, points, p=torch.inf) < _SAME_EXPERIMENT).sum(-1)


def _running(trials: Sequence[FrozenTrial], own: int) -> dict[int, dict[str, Any]]:
    """The parameters of the latest trials that run or wait, by number."""
    unfinished = [t for t in trials if not t.state.is_finished() and t.number != own]
    return {t.number: parameters(t) for t in unfinished[-_MAX_PENDING:]}


def _points(params: Iterable[Mapping[str, Any]], space: Space) -> Float[Tensor, "n d"]:
    """The points of the trials that have a place in the space; categories that were noted as text are turned back."""
    rows = []
    for own in params:
        found = {}
        for axis in space.axes:
            if axis.name in own:
                matched = match([own[axis.name]], axis.distribution)
                if matched.ok.all() and not matched.problem:
                    found[axis.name] = matched.values[0]
        rows.append(found)
    return _encode(rows, space)[0]


def _encode(rows: Sequence[Mapping[str, Any]], space: Space) -> tuple[Float[Tensor, "n d"], list[int]]:
    """The rows that have a place in the space, and their numbers."""
    blocks, kept = [torch.empty(0, space.d, dtype=torch.float64)], list(range(len(rows)))
    if not rows:
        return blocks[0], kept
    try:
        return space.encode(rows), kept
    except NoPlaceError:
        kept = []
    for i, row in enumerate(rows):
        with suppress(NoPlaceError):
            blocks.append(space.encode([row]))
            kept.append(i)
    return torch.cat(blocks), kept


def parameters(trial: FrozenTrial) -> dict[str, Any]:
    """The parameters of an unfinished trial as far as they are known."""
    return {**(noted(trial) or {}), **fixed_parameters(trial)}


def fixed_parameters(trial: FrozenTrial) -> dict[str, Any]:
    """The parameters that cannot be chosen any more: those the trial was enqueued with, and those it has asked for."""
    return {**enqueued_parameters(trial), **trial.params}


def note(study: Study, trial: FrozenTrial, params: Mapping[str, Any]) -> None:
    """Tell every other worker what this trial will run with."""
    plain = {name: v if v is None or isinstance(v, bool | int | float | str) else str(v) for name, v in params.items()}
    text = json.dumps(plain)
    pieces = [text[i : i + _PIECE] for i in range(0, len(text), _PIECE)]
    attributes = {f"{_KEY}:{i}": piece for i, piece in enumerate(pieces)}
    # the count last: now they are complete
    set_attributes(study, trial, {**attributes, _KEY: len(pieces)}, user=False)


def noted(trial: FrozenTrial) -> dict[str, Any] | None:
    """What was noted for the trial, None if nothing was."""
    attributes = system_attributes(trial)
    count = attributes.get(_KEY)
    if count is None:
        return None
    try:
        params: dict[str, Any] = json.loads("".join(attributes[f"{_KEY}:{i}"] for i in range(count)))
    except (KeyError, ValueError):  # read while it was being changed
        return None
    return params
