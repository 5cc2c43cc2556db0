"""The text form of limits, thresholds and targets, and its parser.

    impurity <= 2                 at most; also 2 >= impurity, impurity at most 2
    6.5 <= pH <= 7.5              between
    pH = 7, pH near 7             as near as possible
    cost <= 1.1 * baseline        relative to the result of a baseline: a row, a trial, or a value

What a text says of an objective is its threshold, the worst value that is still of interest, or its target; of anything
else it is a limit. A name may have spaces and units in it, and stands in quotes where it looks like a number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, cast

from headstart.data.outcomes import Goal, Limit
from headstart.data.rules.text import parse_amount
from headstart.errors import InputError

_BASELINE = "baseline"
_QUOTED = r"'[^']*'|\"[^\"]*\"|`[^`]*`"
_RELATION = re.compile(rf"{_QUOTED}|(?P<relation><=|>=|==|(?<!!)[<>=≤≥≈]|(?<=\s)(?:near|at most|at least)(?=\s))")
_AT_MOST, _NEAR = ("<=", "≤", "<", "at most"), ("=", "==", "≈", "near")
_EXAMPLES = "'impurity <= 2', '6.5 <= pH <= 7.5' or 'pH = 7'"


@dataclass(frozen=True, slots=True)
class Amount:
    """A value that may be relative to that of a baseline: number + share · baseline."""

    number: float
    share: float = 0.0

    def value(self, baseline: float | None) -> float:
        """In the user's units, to twelve digits; ``baseline`` may be None where it has no share."""
        return float(f"{self.number + (self.share * baseline if baseline is not None else 0.0):.12g}")


@dataclass(frozen=True, slots=True)
class Requirement:
    """A statement about what is measured, as people write it; ``text`` is what they wrote."""

    name: str
    text: str
    at_most: Amount | None = None
    at_least: Amount | None = None
    near: Amount | None = None

    @property
    def relative(self) -> bool:
        """Whether the baseline is needed."""
        amounts = (self.at_most, self.at_least, self.near)
        return any(amount is not None and amount.share for amount in amounts)


def parse_requirement(text: str, where: str = "") -> Requirement:
    """Parse a statement about what is measured.

    Args:
        text: The statement, such as ``impurity <= 2``.
        where: The argument or option that it was given as, for messages.

    Returns:
        The requirement.

    Raises:
        InputError: It is none; the message says what to write.
    """
    cited = f"{where}: {text!r}" if where else repr(text)
    if not isinstance(text, str):
        raise InputError(f"{cited} is no text. Write {_EXAMPLES}.")
    found = [match for match in _RELATION.finditer(text) if match["relation"]]
    ends = [0, *(end for match in found for end in match.span()), len(text)]
    parts = [text[a:b].strip() for a, b in zip(ends[::2], ends[1::2], strict=True)]
    relations = [match["relation"] for match in found]
    amounts = [_amount(part, cited) for part in parts]
    if amounts[0] is not None and all(amounts):
        amounts[0] = None  # a number may be a name: what stands first is meant
    named = [i for i, amount in enumerate(amounts) if amount is None]
    if len(relations) not in (1, 2) or len(named) != 1 or (len(relations) == 2 and named != [1]):
        raise InputError(
            f"{cited} says nothing about a result. Write {_EXAMPLES}, with a number, or a multiple of baseline, beside "
            "each sign."
        )
    (place,) = named
    name = parts[place].strip("'\"`").strip()
    if not name:
        raise InputError(f"{cited} names no result. Write {_EXAMPLES}.")
    made = Requirement(name, text.strip())
    for i, relation in enumerate(relations):
        left = i + 1 == place  # the number is on the left of the name
        amount = amounts[i] if left else amounts[i + 1]
        side = "at_most" if (relation in _AT_MOST) is not left else "at_least"
        key = "near" if relation in _NEAR else side
        if getattr(made, key) is not None:
            raise InputError(f"{cited} has two {key.replace('_', ' ')} values. A range is written '6.5 <= pH <= 7.5'.")
        made = replace(made, **cast(Any, {key: amount}))
    if made.near is not None and len(relations) > 1:
        raise InputError(f"{cited} has both a target and a limit. Write one statement for each.")
    return made


def _amount(text: str, cited: str) -> Amount | None:
    """The value that a text says; None where it is none."""
    with suppress(InputError):
        return Amount(*parse_amount(re.sub(r"(?<=\d),(?=\d)", ".", text), _BASELINE, cited))
    return None


def required(
    goals: Sequence[Goal],
    requirements: Iterable[Requirement | Limit],
    baseline: Callable[[str], float | None] = lambda _: None,
) -> tuple[tuple[Goal, ...], tuple[Limit, ...]]:
    """The objectives with their thresholds and targets, and the limits on everything else.

    Args:
        goals: The objectives.
        requirements: What was said, in any order; limits may be there as they are.
        baseline: The baseline's result of a name in the user's units, None where it has none.

    Returns:
        The objectives and the limits.

    Raises:
        InputError: A statement does not fit its objective, is there twice, or lacks its baseline.
    """
    found = {goal.name: goal for goal in goals}
    limits: dict[str, Limit] = {}
    asked = [(one if isinstance(one, Requirement) else _of_limit(one), one) for one in requirements]
    # targets first: a threshold is a distance to them
    for one, given in sorted(asked, key=lambda pair: pair[0].near is None):
        at = baseline(one.name) if one.relative else None
        if one.relative and at is None:
            raise InputError(
                f"{one.text!r} is relative to a baseline, but no baseline has a result {one.name!r}. Say what the "
                "baseline is, or write the number."
            )
        at_most, at_least, near = (
            None if amount is None else amount.value(at) for amount in (one.at_most, one.at_least, one.near)
        )
        if one.name in found:
            found[one.name] = _aimed(found[one.name], one.text, at_most, at_least, near)
        elif near is not None:
            raise InputError(
                f"{one.text!r}: {one.name!r} is no objective, so it cannot have a target. Make it an objective "
                f"(there {'are' if len(found) > 1 else 'is'} {', '.join(map(repr, found))}), or write a range, as in "
                "'6.5 <= pH <= 7.5'."
            )
        else:
            own = given if isinstance(given, Limit) else Limit(one.name, at_most, at_least)
            limits[one.name] = _both(limits[one.name], own) if one.name in limits else own
    return tuple(found.values()), tuple(limits.values())


def _of_limit(limit: Limit) -> Requirement:
    ends = {key: getattr(limit, key) for key in ("at_most", "at_least")}
    return Requirement(limit.name, str(limit), **{key: Amount(v) for key, v in ends.items() if v is not None})


def _both(one: Limit, other: Limit) -> Limit:
    """Two statements about one quantity as one limit."""
    ends = {}
    for key in ("at_most", "at_least"):
        first, second = getattr(one, key), getattr(other, key)
        if first is not None and second is not None:
            raise InputError(f"{one} and {other} say the same of {one.name!r} twice. Leave one of them out.")
        ends[key] = first if second is None else second
    return replace(one, **ends)


def _aimed(goal: Goal, text: str, at_most: float | None, at_least: float | None, near: float | None) -> Goal:
    """The objective with its target, or with its threshold."""
    if near is not None:
        if goal.target is not None:
            raise InputError(f"{text!r}: {goal.name!r} has a target already, {goal.target:g}. Leave one of them out.")
        return replace(goal, target=near, maximize=False)
    if goal.threshold is not None:
        raise InputError(f"{text!r}: {goal.name!r} has a threshold already, {goal.threshold:g}. Leave one of them out.")
    if goal.target is not None:
        away = {round(abs(end - goal.target), 12) for end in (at_most, at_least) if end is not None}
        if at_most is None or at_least is None or len(away) > 1 or not at_least < at_most:
            raise InputError(
                f"{text!r}: {goal.name!r} is to be near {goal.target:g}, so what is still of interest is a range with "
                f"{goal.target:g} in its middle. Write one, or leave the statement out."
            )
        return replace(goal, threshold=at_most)
    wanted, other = (at_least, at_most) if goal.maximize else (at_most, at_least)
    if wanted is None or other is not None:
        way, sign = ("maximised", ">=") if goal.maximize else ("minimised", "<=")
        raise InputError(
            f"{text!r}: {goal.name!r} is {way}, and the worst value of it that is still of interest is written "
            f"'{goal.name} {sign} …'. Correct the sign, or say that it is to be near a value: '{goal.name} = 7'."
        )
    return replace(goal, threshold=wanted)
