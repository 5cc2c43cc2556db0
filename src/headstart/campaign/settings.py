"""What a campaign may set: the ranges of its parameters, the rules about them, or a list of candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jaxtyping import Float
from torch import Tensor

from headstart.campaign.experiments import as_setting, setting_at
from headstart.campaign.file import TOML, CampaignFile
from headstart.campaign.past import read_candidates
from headstart.data.descriptors import Descriptors
from headstart.data.rules.rule import Clause, FixedValue, Forbidden, OnSteps, Relation, SettingRule
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

    def kept(self, space: Space, row: Mapping[str, Any], name: str) -> dict[str, Any] | None:
        """The row, moved inside the rules if it breaks one, with this parameter as it is; None where none is."""
        if self.broken(row) is None:
            return dict(row)
        try:
            domain = Ruled(space, self.rules, pinned={name: row[name]})
        except NoSettingError:
            return None
        return {**row, **space.decode(domain.snap(space.encode([row])))[0]}

    def settable(self, space: Space, x: Float[Tensor, "d"], taken: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The point as somebody can set it: with as few digits as keep it apart from what is taken, inside the rules.

        A candidate is its row of the list, with all of its columns.
        """
        exact = space.decode(x.unsqueeze(0))[0]
        if self.listed:
            names = [p.name for p in self.parameters]
            return dict(next(row for row in self.listed if all(_same(row[n], exact[n]) for n in names)))
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
        free = [p for p in self.parameters if p.kind is Kind.FLOAT and p.step is None and not p.log and p.name in tied]
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
    rules = (
        tuple(parse_rule(rule.text, space, f"{toml}, line {rule.line}" if rule.line else toml) for rule in file.rules)
        + implied
    )
    if not file.candidates:
        try:
            Ruled(space, rules)
        except NoSettingError as error:
            raise NoSettingError(f"{toml}: {error}") from error
        return CampaignSettings(file.parameters, rules, descriptors)
    table = read_candidates(folder / file.candidates, file.parameters, file.rules_of_cells)
    rows = _candidates(table, file)
    names = [p.name for p in file.parameters]
    kept = [row for row in rows if all(rule.holds(row) for rule in rules)]
    if not kept:
        raise NoSettingError(
            f"{table.path}: none of its {len(rows)} rows keeps all rules in {toml}. Remove one, or add rows."
        )
    more = tuple(column for column in table.columns if column not in names)
    return CampaignSettings(file.parameters, rules, descriptors, tuple(kept), more, table.remarks)


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
    free = [p for p in file.parameters if p.kind is not Kind.FIXED]
    for p in free:
        table.require(p.name, "The list needs a column for every parameter that is not fixed.")
    if not table.rows:
        raise InputError(f"{table.path} has a header but no rows: there is nothing to choose. Add candidates.")
    found = []
    for i, cells in enumerate(table.rows):
        row: dict[str, Any] = dict(zip(table.columns, cells, strict=True))
        row |= {p.name: _candidate_value(table, i, p) for p in free}
        row |= {p.name: p.value for p in file.parameters if p.kind is Kind.FIXED}
        found.append(row)
    return found


def _candidate_value(table: Table, row: int, p: Parameter) -> Any:
    place, cell = table.place(row, p.name), table.rows[row][table.columns.index(p.name)]
    value = as_setting(p, setting_at(table, row, p, missing="Fill it in."), f"{place}: ", offered=True)
    if isinstance(value, str):
        return value
    if not p.low <= value <= p.high:
        raise InputError(
            f"{place}: {cell} lies outside {p.low:g} … {p.high:g}. Widen the range in [parameters.{p.name}] in {TOML}, "
            "or remove the row."
        )
    if not p.on_step(value):
        by = f"steps of {p.step:g}" if p.step is not None else "whole numbers"
        raise InputError(
            f"{place}: {cell} is not on {by} from {p.low:g} on. Change [parameters.{p.name}] in {TOML}, or remove the "
            "row."
        )
    return value


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, str) or isinstance(b, str):
        return str(a) == str(b)
    return bool(abs(a - b) <= 1e-9 * max(1.0, abs(a), abs(b)))
