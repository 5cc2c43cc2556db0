"""Past tasks in the new task's space, and a list of every decision that took.

the source …                             what is done
lacks a parameter                        it is a function that is constant along it, or ``fill`` gives the value
has a parameter the new space lacks      dropped; a warning if it varied, for its effect now looks like noise
was run in another range                 rows outside the present range stay as evidence
used other categories                    each gets a level of its own, which is never suggested; where the categories
                                         are described (``descriptors``), it must be as well
lacks a value or the result in a row     the row is left out; without the values of most rows, the parameter is
ran a row without a parameter            the row has it at rest (``data.conditions``)
has infinite results                     they count as the worst or best finite one
has no error of some results             they have the median of the known ones
shares no parameter with the new space   an InputError, or it is left out
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from headstart.data.conditions import Condition
from headstart.data.dataset import Dataset
from headstart.data.descriptors import Descriptors
from headstart.data.outcomes import Outcomes
from headstart.data.ranges import has_single_value
from headstart.data.space import Space
from headstart.errors import InputError, NothingInCommonError
from headstart.sources.matching import Matched, match, outside
from headstart.sources.raw import INFINITE, RawObjective, RawTask, error_var, finite

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution


@dataclass(frozen=True)
class Decision:
    """What was done about one parameter of one source (parameter "" for its rows), as a plain sentence.

    ``warning`` marks those that may cost something, which a careful user wants to know.
    """

    source: str
    parameter: str
    what: str
    warning: bool = False

    def __str__(self) -> str:
        """The sentence with its subject."""
        subject = f"{self.source}, {self.parameter}" if self.parameter else self.source
        return f"{subject}: {self.what}"


@dataclass(frozen=True)
class Alignment:
    """The sources as data sets of one space, smaller being better, and how they got there.

    ``rows`` are the rows of every task that its data set has.
    """

    space: Space
    tasks: tuple[RawTask, ...]
    datasets: tuple[Dataset, ...]
    rows: tuple[tuple[int, ...], ...]
    decisions: tuple[Decision, ...]

    @property
    def warnings(self) -> tuple[Decision, ...]:
        """The decisions that may cost something."""
        return tuple(decision for decision in self.decisions if decision.warning)

    def noting(self, notes: Iterable[str]) -> Alignment:
        """With a remark on every task, in order, where there is one: how it was learnt (``FitReport.note``)."""
        told = [Decision(task.name, "", note) for task, note in zip(self.tasks, notes, strict=False) if note]
        return replace(self, decisions=(*self.decisions, *told)) if told else self

    def __str__(self) -> str:
        """The report: a heading per source and a line per decision, warnings marked with an exclamation mark."""
        lines = [f"Search space: {', '.join(self.space.names)}"]
        used = {task.name: (task, data) for task, data in zip(self.tasks, self.datasets, strict=True)}
        names = dict.fromkeys([*used, *(decision.source for decision in self.decisions)])
        for name in names:
            if name in used:
                task, data = used[name]
                lines.append(f"{name}: {data.n} of {len(task.rows)} rows used")
            else:
                lines.append(f"{name}: not used")
            own = [decision for decision in self.decisions if decision.source == name]
            width = max((len(decision.parameter) for decision in own), default=0)
            lines += [f"  {'!' if d.warning else ' '} {d.parameter or '·':<{width}}  {d.what}" for d in own]
            if not own:
                lines.append("    every parameter and row fits")
        if not names:
            lines.append("no sources")
        return "\n".join(lines)


_UNSEEN = 0.5  # the placeholder of a coordinate that was not recorded


@dataclass(frozen=True)
class _Placed:
    """One source with its columns matched, before the levels of all sources are known."""

    task: RawTask
    columns: dict[str, Matched]
    keep: NDArray[np.bool_]
    unseen: tuple[str, ...]


def align(
    sources: Sequence[RawTask],
    distributions: Mapping[str, BaseDistribution],
    *,
    fill: Mapping[str, Any] | None = None,
    minimize: bool = True,
    elsewhere: Collection[str] = (),
    conditions: Mapping[str, Condition] | None = None,
    strict: bool = True,
    descriptors: Mapping[str, Descriptors] | None = None,
) -> Alignment:
    """The sources in the space of ``distributions``, for a task that is to be minimised or maximised.

    ``fill`` gives the value of parameters that a source lacks, ``conditions`` when the parameters are there that are
    not always, ``descriptors`` numbers that describe the categories of a parameter. ``elsewhere`` are parameters that
    exist, but not in this space, as in a conditional one: a source that knows only those is left out, not refused.
    Unless it is ``strict``, so is, with a warning, one that has nothing in common with either.
    """
    fill, described = dict(fill or {}), dict(descriptors or {})
    decisions: list[Decision] = []
    placed: list[_Placed] = []
    for task in sources:
        try:
            one = _place(task, distributions, fill, elsewhere, minimize, decisions, described)
        except NothingInCommonError:
            if strict:
                raise
            what = (
                f"it has {', '.join(task.parameters)}, and nothing in common with {', '.join(distributions)}: it is "
                "left out; if a parameter has another name now, say rename={'old': 'new'}"
            )
            decisions[:] = [d for d in decisions if d.source != task.name]
            decisions.append(Decision(task.name, "", what, warning=True))
            continue
        if one is not None:
            placed.append(one)
    extra: dict[str, list[Any]] = {}
    for one in placed:
        for name, matched in one.columns.items():
            known = extra.setdefault(name, [])
            known += [v for v in matched.new_levels if not any(type(v) is type(k) and v == k for k in known)]
    sometimes = {n: Condition() for one in placed for n, matched in one.columns.items() if matched.absent is not None}
    space = Space.of(
        distributions,
        extra_levels={name: levels for name, levels in extra.items() if levels},
        conditions=sometimes | dict(conditions or {}),
        descriptors=described,
    )
    return Alignment(
        space=space,
        tasks=tuple(one.task for one in placed),
        datasets=tuple(_encode(one, space, minimize) for one in placed),
        rows=tuple(tuple(np.flatnonzero(one.keep).tolist()) for one in placed),
        decisions=tuple(decisions),
    )


def _place(
    task: RawTask,
    distributions: Mapping[str, BaseDistribution],
    fill: Mapping[str, Any],
    elsewhere: Collection[str],
    minimize: bool,
    decisions: list[Decision],
    descriptors: Mapping[str, Descriptors],
) -> _Placed | None:
    """The source with its columns matched; None if it is left out."""

    def decide(parameter: str, what: str, *, warning: bool = False) -> None:
        decisions.append(Decision(task.name, parameter, what, warning))

    free = {name: d for name, d in distributions.items() if not has_single_value(d)}
    fixed_or_elsewhere = {*elsewhere, *distributions} - set(free)
    if not set(task.parameters) & set(free):
        _leave_out(task, distributions, fixed_or_elsewhere, decisions)
        return None
    for note in task.notes:
        decide("", note)
    if task.maximize is not None and task.maximize == minimize:
        goal = ("maximised", "minimised") if task.maximize else ("minimised", "maximised")
        decide("", f"it was {goal[0]} and the new task is {goal[1]}: its sign is turned round", warning=True)
    keep = ~np.isnan(finite(task.y))
    _count(decide, "", "have no result and are left out", ~keep)
    _count(
        decide,
        "",
        "have an infinite result, which counts as the worst or best finite one",
        keep & (np.abs(task.y) >= INFINITE),
    )

    columns: dict[str, Matched] = {}
    for name, distribution in free.items():
        matched = _column(task, name, distribution, fill, keep, decide)
        if matched is not None:
            columns[name] = matched
            keep = keep & matched.ok
    if not set(columns) & set(task.parameters):
        problems = [
            f"{d.parameter}: {d.what}" for d in decisions if d.source == task.name and d.warning and d.parameter
        ]
        _leave_out(task, distributions, fixed_or_elsewhere, decisions, problems)
        return None
    if not keep.any():
        raise InputError(
            f"{task.where}: none of its {len(task.rows)} rows has a result and values for "
            f"{', '.join(columns)}. Fill them in, give fill={{...}}, or leave the source out."
        )
    for name, matched in columns.items():
        distribution = distributions[name]
        away = outside(replace(matched, ok=keep), distribution)
        if away:
            low, high = getattr(distribution, "low", None), getattr(distribution, "high", None)
            decide(name, f"{away} rows lie outside the present range {low} … {high} and stay as evidence")
        if matched.new_levels:
            if name in descriptors:
                descriptors[name].require(matched.new_levels, name, task.where)
            listed = ", ".join(repr(level) for level in matched.new_levels)
            decide(name, f"{listed}: unknown here, gets a level of its own that is never suggested")
    _report_dropped(task, distributions, elsewhere, descriptors, decide)
    return _Placed(task, columns, keep, tuple(name for name in free if name not in columns))


def _column(
    task: RawTask,
    name: str,
    distribution: BaseDistribution,
    fill: Mapping[str, Any],
    keep: NDArray[np.bool_],
    decide: Any,
) -> Matched | None:
    """The source's values of one parameter, with gaps filled if a value is given; None if it did not record it."""
    matched = match(list(task.rows[name]), distribution) if name in task.rows else None
    if matched is not None and task.conditional and not matched.problem and name not in fill:
        matched = matched.with_absent(list(task.rows[name]))
        if matched.absent is not None:
            _count(decide, name, "were run without it", keep & matched.absent)
    if matched is not None and matched.problem:
        decide(name, f"{matched.problem}; it is taken as not recorded", warning=True)
        matched = None
    elif matched is not None and (matched.ok & keep).sum() * 2 < keep.sum() and name not in fill:
        lacking = int((keep & ~matched.ok).sum())
        decide(name, f"{lacking} of {int(keep.sum())} rows lack it, so it is taken as not recorded")
        return None
    if matched is None and name not in fill:
        if name not in task.rows:
            decide(name, "not recorded: the source is taken as constant along it")
        return None
    if name in fill and (matched is None or not matched.ok.all()):
        filled = _filled(task, name, fill[name], distribution)
        if matched is None:
            decide(name, f"not recorded: {fill[name]!r} is filled in")
            return filled
        _count(decide, name, f"lack it: {fill[name]!r} is filled in", keep & ~matched.ok)
        values = [v if ok else f for v, f, ok in zip(matched.values, filled.values, matched.ok, strict=True)]
        return replace(matched, values=values, ok=filled.ok, new_levels=(*matched.new_levels, *filled.new_levels))
    assert matched is not None
    _count(decide, name, "cannot be placed (empty, no number, or not positive) and are left out", keep & ~matched.ok)
    return matched


def _report_dropped(
    task: RawTask,
    distributions: Mapping[str, BaseDistribution],
    elsewhere: Collection[str],
    descriptors: Mapping[str, Descriptors],
    decide: Any,
) -> None:
    for name in task.parameters:
        values = {repr(value) for value in task.rows[name]}
        describes = [parameter for parameter, own in descriptors.items() if name in own.names]
        if name not in distributions and describes:
            decide(name, f"it describes {' and '.join(describes)}, and is no parameter of its own")
            continue
        if name in distributions and has_single_value(distributions[name]) and len(values) > 1:
            decide(name, "it has a single value now but varied here, which looks like noise", warning=True)
        elif name not in distributions and name in elsewhere:
            decide(name, "no part of the common space: dropped")
        elif name not in distributions and len(values) > 1:
            decide(name, "only this source has it, and it varied, which now looks like noise: dropped", warning=True)
        elif name not in distributions:
            decide(name, "only this source has it, and it never varied: dropped")


def _filled(task: RawTask, name: str, value: Any, distribution: BaseDistribution) -> Matched:
    matched = match([value] * len(task.rows), distribution)
    if matched.problem or not matched.ok.all():
        raise InputError(
            f"fill gives {value!r} for {name!r}, which cannot be placed in {distribution}. "
            "Give a value of the parameter, or leave it out."
        )
    return matched


def _count(decide: Any, parameter: str, what: str, rows: NDArray[np.bool_]) -> None:
    count = int(rows.sum())
    if count:
        decide(parameter, f"{count} of {len(rows)} rows {what}")


def _encode(one: _Placed, space: Space, minimize: bool) -> Dataset:
    """The usable rows in the unit cube (or around it), smaller being better."""
    kept = np.flatnonzero(one.keep).tolist()
    placeholder = {
        axis.name: axis.levels[0] if axis.levels else getattr(axis.distribution, "low", None)
        for axis in space.axes
        if axis.name in one.unseen
    }
    rows = [placeholder | {k: v for name, m in one.columns.items() for k, v in m.value(name, i).items()} for i in kept]
    X = space.encode(rows)
    columns = [c for axis in space.axes if axis.name in one.unseen for c in range(*axis.columns.indices(space.d))]
    X[:, columns] = _UNSEEN
    larger_is_better = not minimize if one.task.maximize is None else one.task.maximize
    y = finite(one.task.y)[kept]
    y = -y if larger_is_better else y
    error = None if one.task.error is None else error_var(one.task.error[kept])
    return Dataset(X, y, one.task.name, unseen=tuple(columns), categories=space.categories, error_var=error)


def _leave_out(
    task: RawTask,
    distributions: Mapping[str, BaseDistribution],
    elsewhere: Collection[str],
    decisions: list[Decision],
    problems: Sequence[str] = (),
) -> None:
    """Leave out a source that knows other parts of a conditional space only; refuse one that has nothing in common."""
    if set(task.parameters) & set(elsewhere):
        decisions[:] = [decision for decision in decisions if decision.source != task.name]
        decisions.append(Decision(task.name, "", f"it tells nothing about {', '.join(distributions)} and is left out"))
        return
    because = f" ({'; '.join(problems)})" if problems else ""
    raise NothingInCommonError(
        f"{task.where} has nothing in common with the search space: it has {', '.join(task.parameters) or 'nothing'}, "
        f"and the space {', '.join(distributions)}{because}. Rename its columns to the parameters they mean, or leave "
        "it out."
    )


def with_any_result(task: RawTask, measured: Mapping[str, RawObjective]) -> RawTask | None:
    """The task with 0 for every row that knows one of the outcomes, so that all of these are aligned; None if none."""
    known = np.zeros(len(task.rows), dtype=bool)
    for outcome in measured.values():
        known |= ~np.isnan(outcome.y)
    if not known.any():
        return None
    return replace(task, y=np.where(known, 0.0, np.nan), maximize=None, error=None)


def split(
    alignment: Alignment, measured: Mapping[str, Mapping[str, RawObjective]], outcomes: Outcomes
) -> dict[str, Alignment]:
    """What every outcome has of the tasks ``with_any_result``; ``measured`` is what each knows, by its name."""
    return {name: _of_one(alignment, measured, outcomes, name) for name in outcomes.names}


def _of_one(
    alignment: Alignment, measured: Mapping[str, Mapping[str, RawObjective]], outcomes: Outcomes, name: str
) -> Alignment:
    tasks, datasets, every_row = [], [], []
    for task, data, rows in zip(alignment.tasks, alignment.datasets, alignment.rows, strict=True):
        own = measured[task.name].get(name)
        if own is None:
            continue
        y, places = finite(own.y), np.array(rows, dtype=int)
        there = ~np.isnan(y[places])
        if not there.any():
            continue
        kept = places[there]
        error = None if own.error is None else error_var(own.error[kept])
        X = data.X[torch.from_numpy(there)]
        as_measured = Dataset(X, torch.from_numpy(y[kept]), data.name, data.unseen, data.categories, error)
        tasks.append(replace(task, y=own.y, maximize=own.maximize, error=own.error))
        datasets.append(outcomes[name].signed(as_measured))
        every_row.append(tuple(kept.tolist()))
    return replace(alignment, tasks=tuple(tasks), datasets=tuple(datasets), rows=tuple(every_row))
