"""Past tasks in the new task's space, and a list of every decision that took.

What is done about a source that lacks a parameter, has other ranges and categories, or has infinite and far results is
told in ``docs/optuna.md``. Of results far from all others (``data.warp``) there is a warning: they may be slips.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool
from numpy.typing import NDArray
from torch import Tensor

from headstart.data.conditions import Condition
from headstart.data.dataset import Dataset
from headstart.data.descriptors import Descriptors
from headstart.data.outcomes import Goal, Outcomes
from headstart.data.ranges import DiscreteNumbers, Distribution, has_single_value, span_in_words
from headstart.data.space import Space
from headstart.errors import InputError, NothingInCommonError
from headstart.models.model import Prior
from headstart.notebook import html_report
from headstart.sources.batches import in_batches
from headstart.sources.matching import Matched, match
from headstart.sources.raw import INFINITE, RawObjective, RawTask, error_var, finite


@dataclass(frozen=True)
class Decision:
    """What was done about one parameter of one source, as a plain sentence.

    The parameter is "" where it is about the source's rows, the source "" where it is about several.

    ``warning`` marks those that may cost something, which a careful user wants to know.
    """

    source: str
    parameter: str
    what: str
    warning: bool = False

    def __str__(self) -> str:
        """The sentence with its subject."""
        subject = ", ".join(part for part in (self.source, self.parameter) if part)
        return f"{subject}: {self.what}"


@dataclass(frozen=True)
class Alignment:
    """The sources as data sets of one space, smaller being better, and how they got there.

    ``rows`` are the rows of every task that are used, ``inputs`` their places in the space, and the columns that were
    not recorded. There are no ``datasets`` where several outcomes have some of their own (``split``).
    """

    space: Space
    tasks: tuple[RawTask, ...]
    datasets: tuple[Dataset, ...]
    rows: tuple[tuple[int, ...], ...]
    inputs: tuple[tuple[Tensor, tuple[int, ...]], ...]
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
        for axis in self.space.axes:
            if axis.listed:
                scale = "on a log scale" if axis.log else "on a linear scale"
                lines.append(f"{axis.name}: ordered numbers, {span_in_words(axis.distribution)}, {scale}")
        pairs = zip(self.tasks, self.rows, strict=True)
        used = {task.name: f"{len(rows)} of {len(task.rows)} rows used" for task, rows in pairs}
        names = dict.fromkeys([*used, *(decision.source for decision in self.decisions)])
        for name in names:
            lines.append(f"{name}: {used.get(name, 'not used')}" if name else "several sources:")
            own = [decision for decision in self.decisions if decision.source == name]
            width = max((len(decision.parameter) for decision in own), default=0)
            lines += [f"  {'!' if d.warning else ' '} {d.parameter or '·':<{width}}  {d.what}" for d in own]
            if not own:
                lines.append("    every parameter and row fits")
        if not names:
            lines.append("no sources")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """The same report for a notebook."""
        return html_report(str(self))


_LISTED = 5  # of sources and rows more than this are counted
_UNSEEN = 0.5  # the placeholder of a coordinate that was not recorded


def align(
    sources: Sequence[RawTask],
    distributions: Mapping[str, Distribution],
    *,
    fill: Mapping[str, Any] | None = None,
    minimize: bool = True,
    elsewhere: Collection[str] = (),
    conditions: Mapping[str, Condition] | None = None,
    strict: bool = True,
    descriptors: Mapping[str, Descriptors] | None = None,
    known: Mapping[str, NDArray[np.bool_]] | None = None,
) -> Alignment:
    """The sources in the space of ``distributions``, for a task that is to be minimised or maximised.

    ``fill`` gives the value of parameters that a source lacks, ``conditions`` when the parameters are there that are
    not always, ``descriptors`` numbers that describe the categories of a parameter. ``elsewhere`` are parameters that
    exist, but not in this space, as in a conditional one: a source that knows only those is left out, not refused.
    Unless it is ``strict``, so is, with a warning, one that has nothing in common with either. Where several outcomes
    were measured, ``known`` are the rows of every source that have a result of any.
    """
    described = dict(descriptors or {})
    decisions: list[Decision] = []
    placed: list[_Placing] = []
    for task in sources:
        work = _Placing(task, distributions, dict(fill or {}), elsewhere, described)
        try:
            placed += [work] if work.place(minimize, None if known is None else known[task.name]) else []
        except NothingInCommonError:
            if strict:
                raise
            what = (
                f"it has {', '.join(task.parameters)}, and nothing in common with {', '.join(distributions)}: it is "
                "left out; if a parameter has another name now, say rename={'old': 'new'}"
            )
            decisions.append(Decision(task.name, "", what, warning=True))
            continue
        decisions += work.decisions
    extra: dict[str, list[Any]] = {}
    for name, matched in (column for one in placed for column in one.columns.items() if column[1].new_levels):
        extra.setdefault(name, []).extend(matched.new_levels)
    sometimes = {n: Condition() for one in placed for n, matched in one.columns.items() if matched.absent is not None}
    space = Space.of(
        distributions,
        extra_levels=extra,
        conditions=sometimes | dict(conditions or {}),
        descriptors=described,
    )
    decisions += _gone(placed)
    whole = Alignment(
        space=space,
        tasks=tuple(one.task for one in placed),
        datasets=(),
        rows=tuple(tuple(np.flatnonzero(one.keep).tolist()) for one in placed),
        inputs=tuple(_encode(one, space) for one in placed),
        decisions=tuple(decisions),
    )
    if known is not None:
        return whole
    datasets = []
    for task, rows, (X, unseen) in zip(whole.tasks, whole.rows, whole.inputs, strict=True):
        kept, larger_is_better = list(rows), not minimize if task.maximize is None else task.maximize
        y = -finite(task.y)[kept] if larger_is_better else finite(task.y)[kept]
        error = None if task.error is None else error_var(task.error[kept])
        datasets.append(Dataset(X, y, task.name, unseen, space.categories, error, **in_batches(task.batch, kept)))
    return replace(whole, datasets=tuple(datasets))


@dataclass
class _Placing:
    """Matches the columns of one source, before the levels of all are known, and takes down what is decided."""

    task: RawTask
    distributions: Mapping[str, Distribution]
    fill: Mapping[str, Any]
    elsewhere: Collection[str]
    descriptors: Mapping[str, Descriptors]
    decisions: list[Decision] = field(default_factory=list)
    columns: dict[str, Matched] = field(default_factory=dict)
    gone: dict[str, bool] = field(default_factory=dict)  # parameters that are no more, and whether they varied
    keep: NDArray[np.bool_] = field(init=False)  # the rows that can be used

    @property
    def free(self) -> list[str]:
        return [name for name, distribution in self.distributions.items() if not has_single_value(distribution)]

    def decide(self, parameter: str, what: str, *, warning: bool = False) -> None:
        self.decisions.append(Decision(self.task.name, parameter, what, warning))

    def count(self, parameter: str, what: str, rows: NDArray[np.bool_]) -> None:
        if rows.any():
            self.decide(parameter, f"{int(rows.sum())} of {len(rows)} rows {what}")

    def place(self, minimize: bool, known: NDArray[np.bool_] | None) -> bool:
        """Match the source's columns; False if it is left out. ``known`` are the rows that have any result."""
        task, free, columns = self.task, self.free, self.columns
        if not set(task.parameters) & set(free):
            self.leave_out()
            return False
        for note in task.notes:
            self.decide("", note)
        if known is None and task.maximize is not None and task.maximize == minimize:
            self.decide("", _turned("it", "the new task", task.maximize), warning=True)
        keep = ~np.isnan(finite(task.y)) if known is None else known
        self.count("", "have no result and are left out", ~keep)
        if known is None:
            infinite = keep & (np.abs(task.y) >= INFINITE)
            self.count("", "have an infinite result, which counts as the worst or best finite one", infinite)
        for name in free:
            matched = self.column(name, keep)
            if matched is not None:
                columns[name] = matched
                keep = keep & matched.ok
        if not set(columns) & set(task.parameters):
            self.leave_out()
            return False
        if not keep.any():
            raise InputError(
                f"{task.where}: none of its {len(task.rows)} rows has a result and values for "
                f"{', '.join(columns)}. Fill them in, give fill={{...}}, or leave the source out."
            )
        for name, matched in columns.items():
            own = self.distributions[name]
            low, high = (getattr(own, end, None) for end in ("low", "high"))
            there = keep if matched.absent is None else keep & ~matched.absent
            numbers = [] if low is None else [matched.values[i] for i in np.flatnonzero(there)]
            if away := sum(not low <= number <= high for number in numbers):
                self.decide(name, f"{away} rows lie outside the present range {low} … {high} and stay as evidence")
            elif isinstance(own, DiscreteNumbers) and (other := sum(v not in own.values for v in numbers)):
                self.decide(
                    name, f"{other} rows lie between the present values {span_in_words(own)} and stay as evidence"
                )
            if matched.new_levels:
                if name in self.descriptors:
                    self.descriptors[name].require(matched.new_levels, name, task.where)
                listed = ", ".join(repr(level) for level in matched.new_levels)
                self.decide(name, f"{listed}: unknown here, gets a level of its own that is never suggested")
        self.report_dropped()
        self.keep = keep
        return True

    def column(self, name: str, keep: NDArray[np.bool_]) -> Matched | None:
        """The source's values of one parameter, with gaps filled if a value is given; None if it did not record it."""
        task, fill, distribution = self.task, self.fill, self.distributions[name]
        none = any(choice is None for choice in getattr((task.distributions or {}).get(name), "choices", ()))
        matched = match(list(task.rows[name]), distribution, none=none) if name in task.rows else None
        if matched is not None and matched.problem:
            self.decide(name, f"{matched.problem}; it is taken as not recorded", warning=True)
            matched = None
        if name not in fill:
            if matched is None:
                if name not in task.rows:
                    self.decide(name, "not recorded: the source is taken as constant along it")
                return None
            if task.conditional:
                matched = matched.with_absent(list(task.rows[name]))
                if matched.absent is not None:
                    self.count(name, "were run without it", keep & matched.absent)
            lacking = keep & ~matched.ok
            if 2 * lacking.sum() > keep.sum():
                told = f"{int(lacking.sum())} of {int(keep.sum())} rows lack it, so it is taken as not recorded"
                self.decide(name, told)
                return None
            self.count(name, "cannot be placed (empty, no number, or not positive) and are left out", lacking)
            return matched
        if matched is not None and matched.ok.all():
            return matched
        filled = match([fill[name]] * len(task.rows), distribution)
        if filled.problem or not filled.ok.all():
            raise InputError(
                f"fill gives {fill[name]!r} for {name!r}, which cannot be placed in {distribution}. "
                "Give a value of the parameter, or leave it out."
            )
        if matched is None:
            self.decide(name, f"not recorded: {fill[name]!r} is filled in")
            return filled
        self.count(name, f"lack it: {fill[name]!r} is filled in", keep & ~matched.ok)
        values = [v if ok else f for v, f, ok in zip(matched.values, filled.values, matched.ok, strict=True)]
        return replace(matched, values=values, ok=filled.ok, new_levels=(*matched.new_levels, *filled.new_levels))

    def report_dropped(self) -> None:
        for name in self.task.parameters:
            varied = len({repr(value) for value in self.task.rows[name]}) > 1
            describes = [parameter for parameter, own in self.descriptors.items() if name in own.names]
            if name in self.distributions:
                if has_single_value(self.distributions[name]) and varied:
                    told = "it has a single value now but varied here, which looks like noise"
                    self.decide(name, told, warning=True)
            elif describes:
                self.decide(name, f"it describes {' and '.join(describes)}, and is no parameter of its own")
            elif name in self.elsewhere:
                self.decide(name, "no part of the common space: dropped")
            else:
                self.gone[name] = varied

    def leave_out(self) -> None:
        """Leave out a source that knows other parts of a conditional space only; refuse one without common ground."""
        task, names = self.task, ", ".join(self.distributions)
        if set(task.parameters) & ({*self.elsewhere, *self.distributions} - {*self.free}):
            self.decisions = [Decision(task.name, "", f"it tells nothing about {names} and is left out")]
            return
        problems = [f"{d.parameter}: {d.what}" for d in self.decisions if d.warning and d.parameter]
        because = f" ({'; '.join(problems)})" if problems else ""
        raise NothingInCommonError(
            f"{task.where} has nothing in common with the search space: it has "
            f"{', '.join(task.parameters) or 'nothing'}, and the space {names}{because}. Rename its columns to the "
            "parameters they mean, or leave it out."
        )


def _gone(placed: Sequence[_Placing]) -> list[Decision]:
    """A decision on every parameter that sources have and the space has not, whichever have it."""
    found = []
    for name in dict.fromkeys(name for one in placed for name in one.gone):
        having = [one.task.name for one in placed if name in one.gone]
        varied = any(one.gone.get(name) for one in placed)
        how = "it varied, which now looks like noise" if varied else "it never varied"
        if len(having) == 1:
            found.append(Decision(having[0], name, f"only this source has it, and {how}: dropped", warning=varied))
        else:
            listed = ", ".join(having[:_LISTED]) + (
                f" and {len(having) - _LISTED} more" if len(having) > _LISTED else ""
            )
            told = f"{len(having)} sources have it ({listed}), the search space does not, and {how}: dropped"
            found.append(Decision("", name, told, warning=varied))
    return found


def _encode(one: _Placing, space: Space) -> tuple[Tensor, tuple[int, ...]]:
    """The usable rows in the unit cube (or around it), and the columns that were not recorded."""
    kept = np.flatnonzero(one.keep).tolist()
    unseen = [space.by_name[name] for name in one.free if name not in one.columns]
    placeholder = {axis.name: axis.first for axis in unseen}
    columns = one.columns.items()
    rows = [
        placeholder | {name: own.values[i] for name, own in columns if own.absent is None or not own.absent[i]}
        for i in kept
    ]
    X = space.encode(rows)
    places = [c for axis in unseen for c in range(*axis.columns.indices(space.d))]
    X[:, places] = _UNSEEN
    return X, tuple(places)


def _turned(what: str, now: str, maximized: bool) -> str:
    ways = ("maximised", "minimised") if maximized else ("minimised", "maximised")
    return f"{what} was {ways[0]} and {now} is {ways[1]}: its sign is turned round"


def turned_round(measured: Mapping[str, Mapping[str, RawObjective]], outcomes: Outcomes) -> list[Decision]:
    """A warning for every objective of a source that went the other way; ``measured`` is what each knows, by name."""
    found = []
    for goal in outcomes.goals:
        what = "it" if len(outcomes.goals) == 1 else f"its {goal.name!r}"
        ways = {source: own[goal.name].maximize for source, own in measured.items() if goal.name in own}
        turned = {source: way for source, way in ways.items() if way is not None and way != goal.maximize}
        found += [
            Decision(source, "", _turned(what, "the new task", way), warning=True) for source, way in turned.items()
        ]
    return found


def any_result(measured: Mapping[str, RawObjective]) -> NDArray[np.bool_]:
    """The rows that have a result of one of these; a single False where nothing is measured."""
    return np.asarray(np.any([~np.isnan(own.y) for own in measured.values()], axis=0))


def split(
    alignment: Alignment, measured: Mapping[str, Mapping[str, RawObjective]], outcomes: Outcomes
) -> dict[str, Alignment]:
    """What every outcome has of sources with several; ``measured`` is what each knows, by its name.

    Values of an objective that went the other way change their sign.
    """

    def of_one(name: str) -> Alignment:
        tasks, datasets, every_row = [], [], []
        for task, (X, unseen), rows in zip(alignment.tasks, alignment.inputs, alignment.rows, strict=True):
            own = measured[task.name].get(name)
            if own is None:
                continue
            turned = isinstance(goal := outcomes[name], Goal) and own.maximize not in (None, goal.maximize)
            y, places = -finite(own.y) if turned else finite(own.y), np.array(rows, dtype=int)
            there = ~np.isnan(y[places])
            if not there.any():
                continue
            kept = places[there]
            error = None if own.error is None else error_var(own.error[kept])
            own_X = X[torch.from_numpy(there)]
            batch = in_batches(task.batch, kept)
            as_measured = Dataset(own_X, y[kept], task.name, unseen, alignment.space.categories, error, **batch)
            tasks.append(replace(task, y=own.y, maximize=own.maximize, error=own.error))
            datasets.append(outcomes[name].signed(as_measured))
            every_row.append(tuple(kept.tolist()))
        inputs = tuple((data.X, data.unseen) for data in datasets)
        return replace(alignment, tasks=tuple(tasks), datasets=tuple(datasets), rows=tuple(every_row), inputs=inputs)

    return {name: of_one(name) for name in outcomes.names}


def with_outliers(alignment: Alignment, outliers: Sequence[Bool[Tensor, "_"]]) -> Alignment:
    """The alignment with a decision, which is a warning, on every source that has outliers.

    ``outliers`` says of every row of a source whether it is one (``Prior.outliers``); none at all says that none is.
    """
    found = []
    for task, rows, data, mask in zip(
        alignment.tasks, alignment.rows, alignment.datasets, outliers, strict=bool(outliers)
    ):
        numbers = None if task.numbers is None else [task.numbers[i] for i in rows]
        if told := _in_words(data, mask, task.y[list(rows)], numbers, "row", task.origin):
            found.append(Decision(task.name, "", told, warning=True))
    return replace(alignment, decisions=(*alignment.decisions, *found)) if found else alignment


def outliers_in_words(
    prior: Prior, target: Dataset, values: Sequence[float], numbers: Sequence[int], place: str
) -> str:
    """What becomes of the target's outliers, "" if it has none.

    ``values`` are its results as they were recorded, ``numbers`` those of the rows or trials, called ``place``.
    """
    mask = torch.from_numpy(own_outliers(prior, target))
    return _in_words(target, mask, np.asarray(values, dtype=np.float64), numbers, place)


def own_outliers(prior: Prior, target: Dataset) -> NDArray[np.bool_]:
    """Which of the target's results lie far from all others: a minority of them, or none.

    Next to a past in other units the first few all seem to be far from each other.
    """
    warp = prior.warp_of(target)
    mask = np.zeros(target.n, dtype=bool) if warp is None else np.asarray(warp.outliers(target).numpy())
    return mask if 2 * mask.sum() < target.n else np.zeros_like(mask)


def infinite_in_words(values: Sequence[float]) -> str:
    """How many results are infinite and what they count as, "" if none is."""
    count = int((np.abs(values) >= INFINITE).sum())
    return f"{count} of {len(values)} results are infinite and count as the worst or best finite one" if count else ""


def _in_words(
    data: Dataset,
    mask: Bool[Tensor, "n"],
    values: NDArray[np.float64],
    numbers: Sequence[int] | None,
    place: str,
    file: str = "",
) -> str:
    """As in "2 of 40 results lie far from all others (worst 1e+09): they count as little worse than the rest"."""
    y, middle = data.y.numpy(), float(data.y.median())
    far = [i for i in np.argsort(-np.abs(y - middle), kind="stable").tolist() if mask[i]]
    parts = []
    for side, extreme, found in (
        ("worse", "worst", [i for i in far if y[i] > middle]),
        ("better", "best", [i for i in far if y[i] < middle]),
    ):
        if not found:
            continue
        told = f"{extreme} {values[found[0]]:.3g}"
        if numbers is not None:
            listed = [f"{place} {numbers[i]}: {values[i]:.6g}" for i in found[:_LISTED]]
            more = [f"and {len(found) - _LISTED} more"] if len(found) > _LISTED else []
            told = ", ".join([*([file] if file else []), *listed, *more])
        lie, counts = ("lies", "it counts") if len(found) == 1 else ("lie", "they count")
        far_off = f"{len(found)} of {data.n} results {lie} far from all others ({told})"
        parts.append(f"{far_off}: {counts} as little {side} than the rest")
    return "; ".join(parts)
