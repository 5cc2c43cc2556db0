"""A parameter of which a suggestion thought that it would not be there: its values, all others being as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from headstart.data.axis import Axis
from headstart.data.conditions import Condition
from headstart.data.rules.rule import SettingRule
from headstart.data.space import Space
from headstart.decide.domain import Candidates
from headstart.decide.ruled.ruled import Ruled
from headstart.errors import NoSettingError
from headstart.gp.fit import generator_from

_VALUES = 64  # so many are compared


def late_points(space: Space, axis: Axis, params: Mapping[str, Any], rules: Sequence[SettingRule] = ()) -> Candidates:
    """The points with the values of this parameter, those that keep the rules if any does."""
    loose = replace(space, conditions=tuple((n, Condition()) for n in space.names))  # whatever is not there yet
    values = axis.value(_within(space, axis, params, rules))
    X = loose.encode([{**params, axis.name: value} for value in values])
    own, X = X[:, axis.columns], space.rested(X)
    X[:, axis.columns] = own
    return Candidates(X, space.categories)


def _within(space: Space, axis: Axis, params: Mapping[str, Any], rules: Sequence[SettingRule]) -> Float[Tensor, "n w"]:
    grid = axis.grid() if axis.count is not None and axis.count <= _VALUES else None
    if grid is None:
        grid = axis.snap(torch.linspace(0.0, 1.0, _VALUES, dtype=torch.float64).unsqueeze(-1))
    there = {name: value for name, value in params.items() if name in space.names and name != axis.name}
    own = [rule for rule in rules if axis.name in rule.parameters and {*rule.parameters} <= {axis.name, *there}]
    if not own:
        return grid
    about = {axis.name, *(name for rule in own for name in rule.parameters)}
    small = Space.of({name: d for name, d in space.distributions.items() if name in about})
    try:
        ruled = Ruled(small, own, {name: value for name, value in there.items() if name in about})
    except NoSettingError:  # with the other values as they are nothing keeps them
        return grid
    place = next(other for other in small.axes if other.name == axis.name)
    X = ruled.listing()
    found = (ruled.spread(_VALUES, generator_from(0)) if X is None else X)[:, place.columns]
    # the levels of the whole space, some of which only sources have, are not those of the small one
    return axis.place(place.value(found.unique(dim=0)))
