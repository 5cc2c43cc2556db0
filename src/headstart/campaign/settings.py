"""What a campaign may set: the ranges of its parameters, the rules about them, or a list of candidates."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jaxtyping import Float
from torch import Tensor

from headstart.campaign.experiments import setting_at, unusual
from headstart.campaign.file import TOML, CampaignFile
from headstart.campaign.past import read_candidates
from headstart.data.descriptors import Descriptors
from headstart.data.rules.rule import (
    Clause,
    FixedValue,
    Forbidden,
    OnSteps,
    Relation,
    SettingRule,
    feasible_rows,
)
from headstart.data.rules.text import parse_rule
from headstart.data.space import Space
from headstart.decide.domain import Candidates, Domain, Mixed
from headstart.decide.ruled.ruled import Ruled
from headstart.errors import InputError, NoSettingError
from headstart.sources.described import descriptors_in_tasks, read_descriptors
from headstart.sources.files.tables import Table
from headstart.sources.parameters import Kind, Parameter
from headstart.sources.raw import RawTask

# A suggestion is written with so many digits at least, and at most
_DIGITS = range(3, 12)


@dataclass(frozen=True)
class CampaignSettings:
    """What may be suggested. ``listed`` are the candidates with all columns of their file, if there is such a list."""

    parameters: tuple[Parameter, ...]
    rules: tuple[SettingRule, ...] = ()
    descriptors: Mapping[str, Descriptors] = field(default_factory=dict)
    listed: tuple[Mapping[str, Any], ...] = ()
    more_columns: tuple[str, ...] = ()  # of the list: a sample's number, a place on a shelf
    remarks: tuple[str, ...] = ()  # on how the list was read

    def domain(self, space: Space) -> Domain:
        """The points of the space that may be suggested."""
        if self.listed:
            names = [p.name for p in self.parameters]
            return Candidates.of(space, [{name: row[name] for name in names} for row in self.listed], self.rules)
        return Ruled(space, self.rules) if self.rules else Mixed(space)

    def broken(self, row: Mapping[str, Any]) -> SettingRule | None:
        """The first rule that a row breaks."""
        return next((rule for rule in self.rules if not rule.holds(row)), None)

    def kept(self, space: Space, row: Mapping[str, Any], *names: str) -> dict[str, Any] | None:
        """The row, moved inside the rules if it breaks one, with these parameters as they are; None where none is."""
        if self.broken(row) is None:
            return dict(row)
        try:
            domain = Ruled(space, self.rules, pinned={name: row[name] for name in names})
        except NoSettingError:
            return None
        return {**row, **space.decode(domain.snap(space.encode([row])))[0]}

    def settable(self, space: Space, x: Float[Tensor, "d"], taken: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The point as somebody can set it: with as few digits as keep it apart from what is taken, inside the rules.

        A candidate is its row of the list, with all of its columns.
        """
        exact = space.decode(x.unsqueeze(0))[0]
        if self.listed:
            return dict(next(row for row in self.listed if all(_same(row[name], exact[name]) for name in exact)))
        for digits in _DIGITS:
            rounded = {p.name: p.rounded(exact[p.name], digits) for p in self.parameters}
            if self.broken(rounded):
                rounded = self._rounded_inside(space, x, digits) or rounded
            if not self.broken(rounded) and rounded not in taken:
                return rounded
        return dict(exact)

    def _rounded_inside(self, space: Space, x: Float[Tensor, "d"], digits: int) -> dict[str, Any] | None:
        """The nearest point whose numbers have so many digits and keep the rules; None if there is none."""
        tied = {name for rule in self.rules for name in rule.parameters}
        any_value = [p for p in self.parameters if p.kind is Kind.FLOAT and p.step is None and not p.values]
        free = [p for p in any_value if not p.log and p.name in tied]
        steps = [OnSteps(p.name, p.unit_of(digits), 0.0) for p in free]
        try:
            domain = Ruled(space, [*self.rules, *steps])
        except NoSettingError:
            return None
        row = space.decode(domain.snap(x.unsqueeze(0)))[0]
        return {p.name: p.rounded(row[p.name], digits) for p in self.parameters}


def read_settings(folder: Path, file: CampaignFile, past: Sequence[RawTask], *, place: str = "") -> CampaignSettings:
    """The rules, descriptors and candidates of a campaign, checked; an ``InputError`` names file, row and remedy.

    ``place`` is where the rules stand, if not in ``headstart.toml``.
    """
    toml = place or str(folder / TOML)
    descriptors = _descriptors(folder, file, past)
    implied = _implied(file.parameters)
    if not file.rules and not implied and not file.candidates:
        return CampaignSettings(file.parameters, descriptors=descriptors)
    space = Space.of({p.name: p.distribution() for p in file.parameters}, descriptors=descriptors)
    lines = [f"{toml}, line {line}" for line in file.rule_lines] or [toml] * len(file.rules)
    rules = (*(parse_rule(rule, space, line) for rule, line in zip(file.rules, lines, strict=True)), *implied)
    try:
        if not file.candidates:
            Ruled(space, rules)  # whether any setting satisfies the rules
            return CampaignSettings(file.parameters, rules, descriptors)
        table = read_candidates(folder / file.candidates, file.parameters, file.rules_of_cells)
        rows = _candidates(table, file)
        kept = tuple(rows[i] for i in feasible_rows(rows, rules))
    except NoSettingError as error:
        raise NoSettingError(f"{toml}: {error}") from error
    more = tuple(column for column in table.columns if column not in space.names)
    return CampaignSettings(file.parameters, rules, descriptors, kept, more, table.remarks)


def _implied(parameters: Sequence[Parameter]) -> tuple[SettingRule, ...]:
    """What may not be suggested though rows were run with it: other values of what is fixed, and what is withdrawn."""
    fixed = [FixedValue(p.name, p.value) for p in parameters if p.kind is Kind.FIXED and p.recorded]
    gone = [Forbidden((Clause(p.name, Relation.EQUAL, level),)) for p in parameters for level in p.withdrawn]
    return (*fixed, *gone)


def _descriptors(folder: Path, file: CampaignFile, past: Sequence[RawTask]) -> dict[str, Descriptors]:
    found = {}
    for p in file.parameters:
        if isinstance(p.descriptors, tuple):
            found[p.name] = descriptors_in_tasks(past, p.name, p.descriptors, p.choices)
        elif p.descriptors:
            found[p.name] = read_descriptors(folder / p.descriptors, p.name, p.choices, file.rules_of_cells)
    return found


def _candidates(table: Table, file: CampaignFile) -> list[dict[str, Any]]:
    for p in file.parameters:
        if p.kind is not Kind.FIXED:
            table.require(p.name, "The list needs a column for every parameter that is not fixed.")
    if not table.rows:
        raise InputError(f"{table.path} has a header but no rows: there is nothing to choose. Add candidates.")
    return [
        {**dict(zip(table.columns, cells, strict=True)), **{p.name: _offered(table, i, p) for p in file.parameters}}
        for i, cells in enumerate(table.rows)
    ]


def _offered(table: Table, row: int, p: Parameter) -> Any:
    """A candidate's value of a parameter, or an ``InputError`` where it could not be suggested."""
    if p.kind is Kind.FIXED:
        return p.value
    value = setting_at(table, row, p, missing="Fill it in.", offered=True)
    if isinstance(value, str) or (p.low <= value <= p.high and p.on_step(value)):
        return value
    by = f"is not on {f'steps of {p.step:g}' if p.step is not None else 'whole numbers'} from {p.low:g} on"
    why = unusual(p, value) or by
    raise InputError(
        f"{table.place(row, p.name)}: {table.cells(p.name)[row]} {why}. Change [parameters.{p.name}] in {TOML}, or "
        "remove the row."
    )


def _same(a: Any, b: Any) -> bool:
    return bool(a == b) if isinstance(a, str) else math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)
