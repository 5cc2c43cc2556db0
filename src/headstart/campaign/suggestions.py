"""The next experiments of a campaign, what each of them rests on, and whether it pays to go on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch

from headstart.campaign.campaign import repeat_spread
from headstart.campaign.experiments import Experiment, State
from headstart.campaign.file import TOML
from headstart.campaign.fitted import THIS, Fitted, FittedOutcome, Range
from headstart.data.outcomes import Standing
from headstart.decide.control import is_control
from headstart.decide.stopping import Outlook, outlook
from headstart.decide.suggest import suggest
from headstart.errors import InputError, Message, NoPointLeftError, Setting
from headstart.gp.threads import single_thread
from headstart.models.auto.shares import shares

# Settings may be within the limits if that is at least so probable, compared with the most probable of all
_LIKELY = 0.5
_BATCH = ""  # the name of no parameter


@dataclass(frozen=True, slots=True)
class RowOutlook:
    """An experiment to do: what to set, what to expect of every outcome, and what that rests on.

    ``values`` may have columns of a list of candidates besides the parameters; ``expected`` is NaN where nothing is
    known. ``within`` is how probable it is that all limits hold in a measurement. A ``control`` repeats a setting of
    another batch, to show the shift of the present one.
    """

    values: Mapping[str, Any]
    expected: Mapping[str, Range[float]]
    within: float
    shares: tuple[tuple[str, float], ...]  # of the past campaigns in order, and of this one
    control: bool = False


@single_thread()
def next_experiments(fitted: Fitted, n: int, *, seed: int = 0) -> tuple[RowOutlook, ...]:
    """The n experiments that promise most, given those that are pending; failed ones are not asked for again."""
    if n < 1:
        raise InputError(f"The number of suggestions must be at least 1, but it is {n}.")
    campaign, space = fitted.campaign, fitted.space
    waiting, tried = _taken(fitted)
    try:
        X = fitted.device.searching(
            fitted.known,
            lambda known, device: suggest(
                known,
                domain=campaign.settings.domain(space),
                q=n,
                pending=space.encode(waiting).to(device) if waiting else None,
                avoid=space.encode(tried).to(device) if tried else None,
                seed=seed,
            ).cpu(),
        ).reshape(n, space.d)
    except NoPointLeftError as error:
        left = "no setting is" if n == 1 else f"fewer than {n} settings are"
        raise NoPointLeftError(
            Message(
                f"There is no point left: {left} left that nobody has tried or is going to try (pending, failed or "
                "finished). Fill in results, ask for fewer, or widen the ranges or the list in "
                f"{campaign.folder / TOML}.",
                Setting("number"),
            )
        ) from error
    rows: list[dict[str, Any]] = []
    controls = [is_control(fitted.known, x) for x in X]
    for x, control in zip(X, controls, strict=True):
        taken = () if control else (*waiting, *tried, *rows)
        rows.append(campaign.settings.settable(space, x, taken))
    return tuple(replace(row, control=own) for row, own in zip(outlooks_at(fitted, rows), controls, strict=True))


def _taken(fitted: Fitted) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
    """The settings that are awaited or failed, and those of finished experiments where repeating teaches nothing."""
    campaign = fitted.campaign
    waiting = [e.values for e in (*campaign.those(State.PENDING), *campaign.those(State.FAILED))]
    deterministic = all(own.deterministic for own in fitted.outcomes)
    return waiting, [e.values for e in campaign.those(State.FINISHED)] if deterministic else []


def outlooks_at(fitted: Fitted, rows: Sequence[Mapping[str, Any]]) -> tuple[RowOutlook, ...]:
    """What a measurement of every outcome is expected to be at each of the rows, and what that rests on.

    That is how much of what is known comes from where, of several outcomes on average.
    """
    X, unknown = fitted.space.encode(rows), Range(math.nan, math.nan, math.nan)
    names = [*(task.name for task in fitted.campaign.past), THIS]
    total = np.zeros((len(rows), len(names)))
    expected: list[dict[str, Range[float]]] = [{} for _ in rows]
    for own in fitted.outcomes:
        places = [names.index(task.name) for task in own.alignment.tasks] + [len(names) - 1]
        total[:, places] += shares(own.prior, own.posterior, X).numpy() / len(fitted.outcomes)
        found = own.expected(X, measured=True)
        for i, each in enumerate(expected):
            each[own.column.name] = unknown if found is None else Range(*(float(part[i]) for part in found))
    within = fitted.known.probability_within(X).tolist()
    rests_on = (tuple(zip(names, row, strict=True)) for row in total.tolist())
    return tuple(RowOutlook(*each) for each in zip(rows, expected, within, rests_on, strict=True))


def reference_point(fitted: Fitted) -> dict[str, Any]:
    """The best experiment within the limits; before there is one, the settings that promise most among those run.

    Those are the past rows, and own ones where a limit was not measured, moved to where something may be suggested.
    Where limits hold most probably counts before the first objective. Without any such rows it is the middle of the
    space.
    """
    campaign, space = fitted.campaign, fitted.space
    if (best := campaign.best) is not None:
        return dict(best.values)
    known = [data.X for own in fitted.outcomes for data in own.alignment.datasets]
    if own := campaign.with_goals(Standing.UNKNOWN):
        known.append(space.encode([e.values for e in own]))
    X = torch.cat(known) if known else torch.full((1, space.d), 0.5, dtype=torch.float64)
    X = campaign.settings.domain(space).snap(X).unique(dim=0)
    with torch.no_grad():
        within = fitted.known.probability_within(X)
        X = X[within >= _LIKELY * within.max()]
        median = fitted.first.posterior.quantile(X, 0.5, noise=False)
    row = campaign.settings.settable(space, X[median.argmin()], ())
    return {p.name: row[p.name] for p in campaign.file.parameters}


def best_without_shifts(fitted: Fitted) -> tuple[Experiment, Range[float]] | None:
    """The experiment that is expected to be the best in the present batch, and what is expected of it.

    None where that is the best result, with several objectives, and where no shifts between batches count.
    """
    own, found = fitted.first, fitted.campaign.with_goals(Standing.WITHIN)
    if len(fitted.goals) > 1 or not found or not own.target.has_shifts:
        return None
    expected = own.expected([e.values for e in found])
    if expected is None:
        return None
    i = int(np.argmin([own.column.outcome.loss(median) for median in expected.median.tolist()]))
    best = fitted.campaign.best
    if best is not None and found[i].values == best.values:
        return None
    return found[i], Range(*(float(part[i]) for part in expected))


def noise_of(own: FittedOutcome, reference: Mapping[str, Any]) -> tuple[float, int]:
    """The scatter of a measurement in the user's units: from repeats, with their number, or the model's guess and 0.

    The guess is that at the reference point; NaN where nothing is known. Outliers do not count, and repeats are those
    of one batch.
    """
    kept = ~own.outliers
    rows = pd.DataFrame([e.values for e in own.experiments], columns=list(own.alignment.space.names))
    tasks = [(rows.assign(**{_BATCH: [str(e.batch) for e in own.experiments]})[kept], own.values[kept])]
    for task, (past, y) in zip(own.alignment.tasks, own.ordinary_past, strict=True):
        batch = 0.0 if task.batch is None else task.batch.numbers[past.index]
        tasks.append((past.assign(**{_BATCH: batch}), y))
    return repeat_spread(tasks) or (
        own.scatter(reference) if own.knows else math.nan,
        0,
    )


@single_thread()
def outlook_of(fitted: Fitted, *, seed: int = 0) -> Outlook | None:
    """What further experiments are expected to gain; None before there is a result."""
    campaign, space = fitted.campaign, fitted.space
    if not campaign.measured(fitted.first.column.name):
        return None
    waiting, tried = _taken(fitted)
    found = outlook(
        fitted.known,
        campaign.settings.domain(space),
        pending=space.encode(waiting) if waiting else None,
        avoid=space.encode(tried) if tried else None,
        seed=seed,
    )
    return replace(found, objective=campaign.file.goals[0].name)
