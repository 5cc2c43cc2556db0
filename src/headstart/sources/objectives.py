"""Which objective of a source is which of the new study: the one rule behind the argument ``objective``.

An objective of a source has a name, that of its metric or column, and a number, from 0 on. ``objective`` names it by
either, for all sources or for single ones, and several in a list. Then an objective of the new study is, of a source,

1. the named one of its own metric name, or that was asked for by it;
2. of the other named ones, in their order, the next, the study's in theirs;
3. where that leaves one open: the one of the same metric name;
4. where only one of the two has metric names, or neither, or each has a single objective: the one of the same number
   if there are as many, and the only one of a source without a name is the first.

A name that a source does not have is refused with what there is, unless it is meant for all sources and this one has a
single objective, or some of the others that are named. Values of the same metric name are taken as they are; others
change their sign where they went the other way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headstart.data.outcomes import Goal
from headstart.errors import InputError
from headstart.sources.files.names import meant_by
from headstart.sources.raw import RawObjective, RawTask


def called(asked: str, names: Sequence[str]) -> str | None:
    """The objective that is meant, by its name, spelled alike, or by its number."""
    if meant := meant_by([asked], names):
        return next(iter(meant))
    return names[int(asked)] if asked.isdecimal() and int(asked) < len(names) else None


def choose(task: RawTask, asked: Sequence[str], *, must: bool, refusal: type[InputError] = InputError) -> RawTask:
    """The task with the objectives that are asked for ``named``, the first of them being its results.

    It ``must`` have them where they were asked of it alone. ``refusal`` is raised where it has none of several.
    """
    names = list(task.results)
    there = f"There {'are' if len(names) > 1 else 'is'} {', '.join(map(repr, names))}."
    notes: tuple[str, ...] = ()
    if not asked:
        if len(names) > 1 and not task.named:
            notes = (f"it has {len(names)} objectives, {', '.join(map(repr, names))}",)
        return replace(task, notes=(*task.notes, *notes)) if notes and notes[0] not in task.notes else task
    found = {one: called(one, names) for one in asked}
    known = [own for own in found.values() if own is not None]
    twice = next((own for own in known if known.count(own) > 1), None)
    if twice is not None:
        both = " and ".join(repr(one) for one, own in found.items() if own == twice)
        raise InputError(f"{task.where}: objective names {twice!r} twice, by {both}. Name it once.")
    lacking = [one for one, own in found.items() if own is None]
    if lacking and (must or (len(asked) == 1 and len(names) > 1)):
        raise refusal(f"{task.where} has no objective {lacking[0]!r}. {there}")
    if not known and len(asked) == 1:
        (own,) = names
        found = {asked[0]: own}
        notes = () if own.isdecimal() else (f"it has one objective, {own!r}, which is taken as {asked[0]!r}",)
    elif not known:
        return task
    else:
        notes = tuple(f"it has no objective {one!r}" for one in lacking)
    chosen = task.results[next(own for own in found.values() if own is not None)]
    return replace(
        task,
        y=chosen.y,
        maximize=chosen.maximize,
        error=chosen.error,
        named=found,
        notes=(*task.notes, *notes),
    )


def of_goals(task: RawTask, goals: Sequence[Goal]) -> dict[str, RawObjective]:
    """What the task knows of every objective of the study, by the study's names (by number where it has none).

    Values are as they were measured; ``maximize`` differs from the goal's where their sign is to change.
    """
    there, open_ = task.results, [goal.name for goal in goals]
    metrics = [name for name in open_ if not name.isdecimal()]
    found: dict[str, str] = {}
    others: list[str | None] = []
    for asked, taken in task.named.items():
        metric = next((m for name in (asked, taken) if name for m in meant_by([name], metrics)), None)
        if metric is None:
            others.append(taken)
        elif taken is not None:
            found[metric] = taken
    rest = [name for name in open_ if name not in found]
    if len(others) <= len(rest):
        found |= {name: own for name, own in zip(rest, others, strict=False) if own is not None}
    if not task.named or len(others) <= len(rest):
        names, left = list(there), [name for name in open_ if name not in found]
        same = {m: own for m in left for own in meant_by([m], names) if m in metrics and own not in found.values()}
        numbered = not same and (not metrics or all(name.isdecimal() for name in names) or len(names) == 1)
        if numbered and len(names) == len(goals):
            same = {name: own for name, own in zip(open_, names, strict=True) if name in left}
        elif not (same or found) and len(names) == 1 and names[0].isdecimal():
            same = {open_[0]: names[0]}
        found |= {name: own for name, own in same.items() if own not in found.values()}
    result = {}
    for goal in goals:
        if goal.name in found:
            name = found[goal.name]
            measured, alike = there[name], goal.name in metrics and bool(meant_by([goal.name], [name]))
            as_now = alike or measured.maximize is None or goal.target is not None
            result[goal.name] = replace(measured, maximize=goal.maximize) if as_now else measured
    return result
