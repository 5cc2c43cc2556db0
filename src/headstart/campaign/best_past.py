"""The best past settings of a campaign, and what is expected of them now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from headstart.campaign.campaign import Campaign, far_from_balance
from headstart.campaign.fitted import Fitted
from headstart.campaign.suggestions import RowOutlook, outlooks_at
from headstart.data.outcomes import Goal, Limit, Outcomes, Standing
from headstart.decide.front import front_of

_SHOWN = 3  # more than a few past settings are no help in choosing
_MOVED = 5e-3  # shares of a range: less is rounding


@dataclass(frozen=True, slots=True)
class PastBest:
    """Past settings that were among the best: what was measured there then, and what is expected now.

    ``measured`` is the mean of the ``runs`` that past ``campaign`` made of them, by outcome. Settings that could not be
    suggested as they were run are those nearest to them, and ``moved`` names the parameters in which they differ.
    ``unmeasured`` are the limited quantities that nobody measured there: whether those limits held is unknown.
    """

    campaign: str
    measured: Mapping[str, float]
    runs: int
    moved: tuple[str, ...]
    unmeasured: tuple[str, ...]
    now: RowOutlook

    def told(self, name: str) -> str:
        """What was measured of an outcome, in words."""
        if name not in self.measured:
            return "–"
        return f"{self.measured[name]:.6g}{f' (mean of {self.runs})' if self.runs > 1 else ''}"

    @property
    def unknown_limits(self) -> str:
        """Which limited quantities were not measured there, in words."""
        return f"{' and '.join(self.unmeasured)} not measured then"

    def row_in(self, campaign: Campaign) -> int | None:
        """The number of the campaign's own row with these settings; None if there is none."""
        names = [p.name for p in campaign.file.parameters]
        same = (e.number for e in campaign.experiments if all(e.values[n] == self.now.values[n] for n in names))
        return next(same, None)


def best_past(fitted: Fitted, n: int = _SHOWN) -> tuple[PastBest, ...]:
    """The n best settings of all past campaigns together, each moved to where something may be suggested.

    Of one objective that is the order of what was measured, repeats within a campaign as their mean. Of several it is
    that of the fronts: first what no other past settings beat in everything, the most balanced first, then what only
    those beat, and so on. Settings where a limited quantity was not measured follow those that are known to be within
    the limits. Outliers, settings that lack an objective, and those that broke a limit do not count.
    """
    outcomes = fitted.campaign.file.outcomes
    complete = [run for run in past_runs(fitted) if all(goal.name in run.measured for goal in outcomes.goals)]
    within, unknown = ([r for r in complete if r.standing is s] for s in (Standing.WITHIN, Standing.UNKNOWN))
    if not within and not unknown:
        return ()
    campaign, space = fitted.campaign, fitted.space
    domain = campaign.settings.domain(space)
    found: list[tuple[PastRun, dict[str, Any], tuple[str, ...]]] = []
    for run in chain(_in_order(within, outcomes), _in_order(unknown, outcomes)):
        row = campaign.settings.settable(space, domain.snap(run.x.unsqueeze(0))[0], ())
        if any(row == other for _, other, _ in found):
            continue
        away = (space.encode([row])[0] - run.x).abs() > _MOVED
        moved = [a.name for a in space.axes if away[a.columns].any() or {*range(space.d)[a.columns]} & {*run.unseen}]
        found.append((run, row, tuple(moved)))
        if len(found) == n:
            break
    now = outlooks_at(fitted, [row for _, row, _ in found])
    return tuple(
        PastBest(run.campaign, run.measured, run.runs, moved, _unmeasured(run, outcomes), outlook)
        for (run, _, moved), outlook in zip(found, now, strict=True)
    )


@dataclass(frozen=True, slots=True)
class PastRun:
    """Settings of a past campaign: their place in the space, the columns not recorded, mean results, number of runs.

    ``standing`` says whether those results were within the limits.
    """

    campaign: str
    x: torch.Tensor
    unseen: tuple[int, ...]
    measured: Mapping[str, float]
    runs: int
    standing: Standing


def past_runs(fitted: Fitted) -> list[PastRun]:
    """All past settings with what was measured there; outliers are left out, unless they are of a limited quantity."""
    places: dict[tuple[str, bytes], tuple[torch.Tensor, tuple[int, ...]]] = {}
    results: dict[tuple[str, bytes], dict[str, list[float]]] = {}
    for own in fitted.outcomes:
        aligned = own.alignment
        for task, rows, (X, unseen), (kept, y) in zip(
            aligned.tasks, aligned.rows, aligned.inputs, own.ordinary_past, strict=True
        ):
            at = {row: X[i] for i, row in enumerate(rows)}
            limited = isinstance(own.column.outcome, Limit)
            index, values = (list(rows), task.y[list(rows)]) if limited else (kept.index, y)
            for row, value in zip(index, values.tolist(), strict=True):
                key = (task.name, at[row].numpy().tobytes())
                places[key] = (at[row], unseen)
                results.setdefault(key, {}).setdefault(own.column.name, []).append(value)
    means = {key: {name: float(np.mean(values)) for name, values in each.items()} for key, each in results.items()}
    standing = fitted.campaign.file.outcomes.standing
    return [
        PastRun(key[0], *places[key], measured, max(map(len, results[key].values())), standing(measured))
        for key, measured in means.items()
    ]


def best_result(runs: Iterable[tuple[Mapping[str, float], Standing]], goal: Goal) -> tuple[float, Standing] | None:
    """The best result of one objective: of those within the limits, else of those where a limit was not measured.

    None where there is neither; results by outcome come with their standing.
    """
    known = [(results[goal.name], standing) for results, standing in runs if goal.name in results]
    for wanted in (Standing.WITHIN, Standing.UNKNOWN):
        if values := [value for value, standing in known if standing is wanted]:
            return min(values, key=goal.loss), wanted
    return None


def _in_order(runs: Sequence[PastRun], outcomes: Outcomes) -> Iterator[PastRun]:
    """From the best on."""
    Y = np.array([outcomes.losses(run.measured) for run in runs])
    return (runs[i] for i in _best_first(Y))


def _unmeasured(run: PastRun, outcomes: Outcomes) -> tuple[str, ...]:
    return tuple(limit.name for limit in outcomes.limits if limit.name not in run.measured)


def _best_first(Y: NDArray[np.float64]) -> Iterator[int]:
    """The rows of Y, front after front, each front from the most balanced on; smaller is better."""
    left = np.arange(len(Y))
    while len(left):
        on = front_of(torch.from_numpy(Y[left])).numpy()
        front = left[on]
        yield from front[np.argsort(far_from_balance(Y[front]), kind="stable")].tolist()
        left = left[~on]
