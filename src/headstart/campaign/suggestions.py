"""The next experiments of a campaign, what each of them rests on, and whether it pays to go on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from headstart.campaign.campaign import repeat_spread
from headstart.campaign.experiments import State
from headstart.campaign.file import TOML
from headstart.campaign.fitted import THIS, Fitted, FittedOutcome
from headstart.decide.stopping import Outlook, outlook
from headstart.decide.suggest import suggest
from headstart.errors import InputError, Message, NoPointLeftError, Setting
from headstart.gp.threads import single_thread
from headstart.models.auto.shares import shares

# Settings may be within the limits if that is at least so probable, compared with the most probable of all
_LIKELY = 0.5


@dataclass(frozen=True, slots=True)
class Range:
    """The median of a result and the ends of its 95 % interval, in the user's units; NaN where nothing is known."""

    median: float = math.nan
    low: float = math.nan
    high: float = math.nan


@dataclass(frozen=True, slots=True)
class Suggestion:
    """An experiment to do: what to set, what to expect of every outcome, and what that rests on.

    ``values`` may have columns of a list of candidates besides the parameters. ``within`` is how probable it is that
    all limits hold.
    """

    values: Mapping[str, Any]
    expected: Mapping[str, Range]
    within: float
    shares: tuple[tuple[str, float], ...]  # of the past campaigns in order, and of this one


@single_thread()
def next_experiments(fitted: Fitted, n: int, *, seed: int = 0) -> tuple[Suggestion, ...]:
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
        more = "one more setting" if n == 1 else f"{n} more settings"
        raise NoPointLeftError(
            Message(
                f"There is no point left: {campaign.folder} has not {more} that is neither pending, failed nor "
                "finished. Fill in results, ask for fewer, or widen the ranges or the list in "
                f"{campaign.folder / TOML}.",
                Setting("number"),
            )
        ) from error
    rows: list[dict[str, Any]] = []
    for x in X:
        rows.append(campaign.settings.settable(space, x, [*waiting, *tried, *rows]))
    expected = [ranges_at(own, rows) for own in fitted.outcomes]
    names = [own.column.name for own in fitted.outcomes]
    within = fitted.probability_within(rows)
    return tuple(
        Suggestion(row, dict(zip(names, each, strict=True)), float(p), share)
        for row, each, p, share in zip(rows, zip(*expected, strict=True), within, rests_on(fitted, rows), strict=True)
    )


def _taken(fitted: Fitted) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
    """The settings that are awaited or failed, and those of finished experiments where repeating teaches nothing."""
    campaign = fitted.campaign
    waiting = [e.values for e in (*campaign.those(State.PENDING), *campaign.those(State.FAILED))]
    deterministic = all(own.deterministic for own in fitted.outcomes)
    return waiting, [e.values for e in campaign.those(State.FINISHED)] if deterministic else []


def ranges_at(own: FittedOutcome, rows: Sequence[Mapping[str, Any]]) -> list[Range]:
    """What a measurement of the outcome is expected to be at each of the rows."""
    found = own.expected(rows, measured=True)
    if found is None:
        return [Range()] * len(rows)
    return [Range(*map(float, numbers)) for numbers in zip(found.median, found.low, found.high, strict=True)]


def rests_on(fitted: Fitted, rows: Sequence[Mapping[str, Any]]) -> list[tuple[tuple[str, float], ...]]:
    """How much of what is known about each of the rows comes from where; of several outcomes on average."""
    names = [*(task.name for task in fitted.campaign.past), THIS]
    total = np.zeros((len(rows), len(names)))
    X = fitted.space.encode(rows)
    for own in fitted.outcomes:
        part = shares(own.prior, own.posterior, X).numpy()
        places = [names.index(task.name) for task in own.alignment.tasks] + [len(names) - 1]
        total[:, places] += part / len(fitted.outcomes)
    return [tuple(zip(names, row, strict=True)) for row in total.tolist()]


def reference_point(fitted: Fitted) -> dict[str, Any]:
    """The best experiment within the limits; before there is one, the settings that promise most among past rows.

    Those are moved to where something may be suggested first. Where limits hold most probably counts before the first
    objective. Without any past rows it is the middle of the space.
    """
    campaign, space = fitted.campaign, fitted.space
    if (best := campaign.best) is not None:
        return dict(best.values)
    known = [data.X for own in fitted.outcomes for data in own.alignment.datasets]
    X = torch.cat(known) if known else torch.full((1, space.d), 0.5, dtype=torch.float64)
    X = campaign.settings.domain(space).snap(X).unique(dim=0)
    with torch.no_grad():
        within = fitted.known.probability_within(X)
        X = X[within >= _LIKELY * within.max()]
        median = fitted.first.posterior.quantile(X, 0.5, noise=False)
    row = campaign.settings.settable(space, X[median.argmin()], ())
    return {p.name: row[p.name] for p in campaign.file.parameters}


def noise_of(own: FittedOutcome, reference: Mapping[str, Any]) -> tuple[float, int]:
    """The scatter of a measurement in the user's units: from repeats, with their number, or the model's guess and 0.

    The guess is that at the reference point; NaN where nothing is known. Outliers do not count.
    """
    kept = [(e, y) for e, y, far in zip(own.experiments, own.values, own.outliers, strict=True) if not far]
    tasks: list[tuple[Sequence[Mapping[str, Any]], Sequence[float]]] = [
        ([e.values for e, _ in kept], [float(y) for _, y in kept]),
        *((rows.to_dict("records"), y.tolist()) for rows, y in own.ordinary_past),
    ]
    return repeat_spread(tasks) or (own.scatter(reference) if own.knows else math.nan, 0)


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
