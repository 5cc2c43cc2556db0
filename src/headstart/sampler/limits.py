"""What the results of a study must keep: limits as people write them, and what they are relative to."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Self

from headstart.data.outcomes import Goal, Limit, Outcomes
from headstart.data.requirements import Requirement, parse_requirement, required
from headstart.errors import InputError

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial


@dataclass(frozen=True)
class StudyLimits:
    """Limits, thresholds and targets; ``errors`` are the user attributes with the errors of limited quantities."""

    requirements: tuple[Requirement | Limit, ...] = ()
    baseline: int | Mapping[str, float] | None = None
    least_probability: float | None = None
    errors: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, limits: Any, baseline: Any, least_probability: Any, error: Any) -> tuple[Self, Any]:
        """What the arguments of these names say, and ``error`` without the errors of limited quantities."""
        if isinstance(limits, str | Limit) or not isinstance(limits, Sequence):
            raise InputError(f"limits must be a list, such as ['impurity <= 2'], but it is {limits!r}.")
        read = tuple(one if isinstance(one, Limit) else parse_requirement(one, "limits") for one in limits)
        names = {one.name for one in read}
        own = {name: at for name, at in error.items() if name in names} if isinstance(error, Mapping) else {}
        rest = {name: at for name, at in error.items() if name not in own} or None if own else error
        number = isinstance(baseline, Integral) and not isinstance(baseline, bool) and int(baseline) >= 0
        if not (baseline is None or number or isinstance(baseline, Mapping)):
            what = "the number of a trial, from 0 on, or {name: value}"
            raise InputError(f"baseline must be {what}, but it is {baseline!r}.")
        for name, value in baseline.items() if isinstance(baseline, Mapping) else ():
            if not isinstance(value, Real) or isinstance(value, bool) or not math.isfinite(value):
                raise InputError(f"baseline must give a number for {name!r}, but it gives {value!r}.")
        found = cls(read, baseline, least_probability, own)
        Outcomes((Goal("objective"),), (), least_probability)  # whether it is a probability
        relative = [one for one in read if isinstance(one, Requirement) and one.relative]
        lacking = [one for one in relative if not number and one.name not in (baseline or {})]
        if lacking:
            raise InputError(
                f"limits: {lacking[0].text!r} is relative to a baseline, but baseline says nothing of "
                f"{lacking[0].name!r}. Give baseline={{{lacking[0].name!r}: value}}, or the number of a trial."
            )
        return found, rest

    @property
    def quantities(self) -> dict[str, str | None]:
        """All that something is said of, with the user attribute of its errors."""
        return {one.name: self.errors.get(one.name) for one in self.requirements}

    def outcomes(
        self,
        goals: Sequence[Goal],
        limits: Sequence[Limit],
        finished: Sequence[FrozenTrial],
        warn: Callable[[str], None],
    ) -> Outcomes:
        """What is measured in a study with these objectives and constraints, after these trials.

        A limit that is relative to a trial does not count before that trial is finished.
        """
        known: dict[str, float] = {}
        if isinstance(self.baseline, Mapping):
            known = {name: float(value) for name, value in self.baseline.items()}
        for trial in finished if not isinstance(self.baseline, Mapping) else ():
            if trial.number == self.baseline:
                known = {key: float(v) for key, v in trial.user_attrs.items() if isinstance(v, Real)}
                known |= {goal.name: value for goal, value in zip(goals, trial.values or (), strict=False)}
        counting = []
        for one in self.requirements:
            if isinstance(one, Requirement) and one.relative and one.name not in known:
                warn(f"limits: {one.text!r} does not count until trial {self.baseline} has a result {one.name!r}.")
            else:
                counting.append(one)
        aimed, own = required(goals, counting, known.get)
        for limit in own:
            if finished and not any(isinstance(trial.user_attrs.get(limit.name), Real) for trial in finished):
                named = (
                    "" if len(goals) > 1 else f", or name the objective so, study.set_metric_names([{limit.name!r}])"
                )
                warn(
                    f"limits: no finished trial has the user attribute {limit.name!r}, so nothing is known of {limit} "
                    f"from this study. Set it in the objective, trial.set_user_attr({limit.name!r}, value){named}."
                )
        return Outcomes(aimed, (*limits, *own), self.least_probability)
