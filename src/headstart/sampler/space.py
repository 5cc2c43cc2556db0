"""The space of a study: every parameter that its trials or its sources know, and when it is there.

A parameter that trials have asked for has its latest range, and is in the space until the latest three trials that
should have asked for it have not. One that only sources have has the range of the last such source, and is in the space
until one trial has not.

Choices that are numbers, as in ``suggest_categorical("batch_size", [16, 32, 64])``, are ordered (``OrderedChoices``).

Whether a trial should have asked for a parameter is a question of the parameter's ``Condition``. So a branch that no
trial has been to keeps its parameters, and they have informed values when a trial takes the branch.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState

from headstart.data.conditions import Condition, learn_conditions
from headstart.data.ranges import DiscreteNumbers, Distribution, has_single_value
from headstart.data.space import Space
from headstart.errors import NoPlaceError
from headstart.sources.column_guess import spans_log
from headstart.sources.matching import is_missing, match
from headstart.sources.raw import RawTask

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial

_MAX_CATEGORIES = 50  # a text column with more is a name or a remark
_ROUNDING = 1e-12
_TRIALS_WITHOUT = 3  # trials that should have asked for a parameter and have not, after which it is dropped


_LEAST_ORDERED = 3  # choices: the order of two says nothing, and 0 and 1 are often no and yes


@dataclass(frozen=True)
class OrderedChoices(DiscreteNumbers):
    """The choices of a categorical parameter, which is ``asked`` for, as discrete numbers."""

    asked: BaseDistribution | None = None

    @classmethod
    def of(cls, name: str, distribution: Distribution, categories: Collection[str]) -> Distribution:
        """The parameter ordered, if its choices are three different numbers at least and no ``categories``."""
        choices = getattr(distribution, "choices", ())
        plain = all(isinstance(c, int | float) and not isinstance(c, bool) and math.isfinite(c) for c in choices)
        if name in categories or not plain or not len(set(choices)) == len(choices) >= _LEAST_ORDERED:
            return distribution
        assert isinstance(distribution, BaseDistribution)
        return cls(tuple(choices), asked=distribution)


def as_asked(distribution: Distribution) -> BaseDistribution:
    """The parameter as the objective asks for it."""
    asked = distribution.asked if isinstance(distribution, OrderedChoices) else distribution
    assert isinstance(asked, BaseDistribution)
    return asked


@dataclass(frozen=True)
class StudySnapshot:
    """A study at one moment: its trials, read once, and its parameters by name; equal if the parameters are."""

    study: Study = field(compare=False)
    trials: Sequence[FrozenTrial] = field(compare=False)
    distributions: dict[str, Distribution]
    conditions: dict[str, Condition]
    dropped: tuple[str, ...] = ()  # that were given or asked for, and are not asked for any more
    all_known: Mapping[str, Distribution] = field(default_factory=dict)  # the dropped ones and the sources' too

    @property
    def nothing_to_choose(self) -> bool:
        """Whether every parameter has a single value, or there is none."""
        return all(map(has_single_value, self.distributions.values()))

    def asking_for(self, asked: Mapping[str, Distribution]) -> StudySnapshot:
        """The same with these parameters as they are asked for; new ones count as absent in all trials so far."""
        new = {name: Condition() for name in asked if name not in self.distributions}
        return replace(
            self,
            distributions={**self.distributions, **asked},
            conditions=new | self.conditions,
            all_known={**self.all_known, **asked},
        )


@dataclass(frozen=True)
class SourceSpace:
    """What the sources know of the space: their parameters, and the rows of those that may have branches."""

    distributions: Mapping[str, BaseDistribution]
    rows: tuple[tuple[Mapping[str, Any], ...], ...]
    branching: bool

    @classmethod
    def of(cls, sources: Sequence[RawTask], listed: RawTask | None = None) -> SourceSpace:
        """The space of the sources; the parameters of a list of settings to try are all there are."""
        every = (*sources, listed) if listed is not None else tuple(sources)
        rows = tuple(_rows(task) for task in every if task.conditional)
        known = known_space(sources if listed is None else [listed])
        return cls(known, rows, any(_branching(own) for own in rows))

    def branches(self) -> dict[str, Condition]:
        """The conditions of the parameters that another parameter switches on and off."""
        found = learn_conditions(self.rows) if self.branching else {}
        return {name: condition for name, condition in found.items() if condition.parent is not None}

    def snapshot(
        self, study: Study, given: Mapping[str, Distribution] | None = None, categories: Collection[str] = ()
    ) -> StudySnapshot:
        """The study as it is now; a space that the user has ``given`` is all there is to choose.

        The choices of ``categories`` are not ordered, even if they are numbers.
        """
        trials = study.get_trials(deepcopy=False)
        finished = [t.params for t in trials if t.state == TrialState.COMPLETE and t.params]
        conditions: dict[str, Condition] = {}
        if self.branching or _branching(finished):
            conditions = learn_conditions([finished, *self.rows])
        tried = {name for row in finished for name in row}
        known = dict(given or {})
        if given is None:
            known = {**self.distributions, **{name: d for t in trials for name, d in t.distributions.items()}}
        known = {name: OrderedChoices.of(name, own, categories) for name, own in known.items()}
        dropped = {
            name
            for name in known
            if _is_dropped(name, finished, conditions, 1 if given is None and name not in tried else _TRIALS_WITHOUT)
        }
        kept = {name: known[name] for name in sorted(known) if name not in dropped}
        lacking = {name: Condition() for name in kept if any(name not in row for row in finished)}
        gone = tuple(sorted(dropped & {*tried, *(given or ())}))
        return StudySnapshot(study, trials, kept, lacking | conditions, gone, known)


def _rows(task: RawTask) -> tuple[Mapping[str, Any], ...]:
    """The parameters that every row was run with; None is a value where it is one of the categories."""
    choices = {name: getattr(d, "choices", ()) for name, d in (task.distributions or {}).items()}
    with_none = {name for name, own in choices.items() if any(choice is None for choice in own)}
    columns = [(name, task.rows[name].tolist(), name in with_none) for name in task.parameters]
    return tuple(
        {name: values[i] for name, values, none in columns if (none and values[i] is None) or not is_missing(values[i])}
        for i in range(len(task.rows))
    )


def _branching(rows: Sequence[Mapping[str, Any]]) -> bool:
    return any(row.keys() != rows[0].keys() for row in rows)


def _is_dropped(
    name: str, finished: Sequence[Mapping[str, Any]], conditions: Mapping[str, Condition], enough: int
) -> bool:
    """Whether the latest trials that should have asked for the parameter have not."""
    condition = conditions.get(name)
    if condition is not None and condition.parent is None:
        enough = _TRIALS_WITHOUT  # it is there sometimes, and when is not known
    without = 0
    for row in reversed(finished):
        if name in row:
            return False
        without += _expected(name, row, conditions)
        if without >= enough:
            return True
    return False


def _expected(name: str, row: Mapping[str, Any], conditions: Mapping[str, Condition]) -> bool:
    condition = conditions.get(name)
    if condition is None or condition.parent is None:
        return True
    if condition.parent in row:
        return condition.allows(row[condition.parent])
    return _expected(condition.parent, row, conditions)  # one that should have been there, and was not, is gone itself


def known_space(sources: Sequence[RawTask]) -> dict[str, BaseDistribution]:
    """The parameters of all sources, sorted, each as the last source that has it knows it, or as its values span it."""
    found: dict[str, BaseDistribution] = {}
    for task in sources:
        for name in task.parameters:
            own = (task.distributions or {}).get(name) or _spanned(task.rows[name])
            if own is not None:
                found[name] = own
    return dict(sorted(found.items()))


def clip_value(value: Any, name: str, distribution: Distribution) -> Any:
    """The value that the distribution allows next to this one; a ``NoPlaceError`` where there is none."""
    if has_single_value(distribution):
        return getattr(distribution, "choices", (getattr(distribution, "low", None),))[0]
    matched = match([value], distribution)
    if matched.problem or matched.new_levels or not matched.ok.all():
        raise NoPlaceError(f"{value!r} is no value of {name!r}.")
    space, own = Space.of({name: distribution}), matched.values[0]
    nearest = space.decode(space.encode([{name: own}]))[0][name]
    low, high = getattr(distribution, "low", 0.0), getattr(distribution, "high", 0.0)
    if isinstance(distribution, DiscreteNumbers) or not isinstance(nearest, float):
        return nearest
    if low <= own <= high and abs(own - nearest) <= _ROUNDING * max(1.0, abs(own)):
        return float(own)  # a value that is there stays as it is to the last digit
    return nearest


def _spanned(column: Any) -> BaseDistribution | None:
    values = [v.item() if hasattr(v, "item") else v for v in column.dropna()]
    if not values or pd.api.types.is_datetime64_any_dtype(column):
        return None
    if any(isinstance(v, bool) or not isinstance(v, int | float) for v in values):
        levels: Mapping[Any, None] = dict.fromkeys(v if isinstance(v, bool | int | float) else str(v) for v in values)
        return CategoricalDistribution(sorted(levels, key=str)) if len(levels) <= _MAX_CATEGORIES else None
    numbers = [float(v) for v in values if math.isfinite(v)]
    if not numbers:
        return None
    low, high = min(numbers), max(numbers)
    log = spans_log(np.array(numbers))
    if all(number.is_integer() for number in numbers):
        return IntDistribution(int(low), int(high), log=log)
    return FloatDistribution(low, high, log=log)
