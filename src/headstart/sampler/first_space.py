"""The space as the sources know it, for the first trial: a study shows its own space only once a trial has run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from headstart.data.axis import has_single_value
from headstart.data.space import Space
from headstart.errors import NoPlaceError
from headstart.sources.column_guess import spans_log
from headstart.sources.matching import match
from headstart.sources.raw import RawTask

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

__all__ = ["clip_value", "known_space"]

_MAX_CATEGORIES = 50  # a text column with more is a name or a remark


def known_space(sources: Sequence[RawTask]) -> dict[str, BaseDistribution]:
    """The parameters of all sources, sorted, each as the last source that has it knows it.

    An Optuna study knows its distributions; of a table it is what its values span.
    """
    found: dict[str, BaseDistribution] = {}
    for task in sources:
        for name in task.parameters:
            own = (task.distributions or {}).get(name) or _spanned(task.rows[name])
            if own is not None:
                found[name] = own
    return dict(sorted(found.items()))


def clip_value(value: Any, name: str, distribution: BaseDistribution) -> Any:
    """The value that the distribution allows next to this one; a ``NoPlaceError`` where there is none."""
    if has_single_value(distribution):
        return getattr(distribution, "choices", (getattr(distribution, "low", None),))[0]
    matched = match([value], distribution)
    if matched.problem or matched.new_levels or not matched.ok.all():
        raise NoPlaceError(f"{value!r} is no value of {name!r}.")
    space = Space.of({name: distribution})
    return space.decode(space.encode([{name: matched.values[0]}]))[0][name]


def _spanned(column: Any) -> BaseDistribution | None:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

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
