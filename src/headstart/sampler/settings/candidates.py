"""``CandidateTable``: a given list of settings, one of which is tried each time.

what is given                   a row is called
pandas.DataFrame                by its place, from 1 on
list of {parameter: value}      the same
path of a CSV file              by its number in a spreadsheet program, where the header is row 1
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from headstart.data.ranges import has_single_value
from headstart.data.rules.rule import SettingRule, feasible_rows
from headstart.data.space import Space
from headstart.decide.domain import Candidates
from headstart.errors import InputError, NoPlaceError
from headstart.sampler.whole_space import clip_value
from headstart.sources.columns import read_frame
from headstart.sources.files.workbooks import split_sheet
from headstart.sources.matching import is_missing, match
from headstart.sources.raw import RawTask

_SAME = 1e-9  # of the unit cube: coordinates that differ by less are equal


@dataclass(frozen=True, eq=False)
class CandidateTable:
    """Rows of values; messages call them by ``where`` and by their number, counted from ``first_row`` on."""

    frame: pd.DataFrame
    where: str = "candidates"
    first_row: int = 1

    @classmethod
    def of(cls, given: Any) -> CandidateTable | None:
        """The table that the argument ``candidates`` of the sampler holds."""
        match given:
            case None:
                return None
            case pd.DataFrame():
                found = cls(given.reset_index(drop=True).set_axis([str(c) for c in given.columns], axis="columns"))
            case str() | PathLike():
                path = Path(given).expanduser()
                if not (split_sheet(path) or (path,))[0].exists():
                    raise InputError(f"candidates: there is no file {path}. Look at the spelling and at the folder.")
                found = cls(read_frame(path), str(path), 2)
            case [*rows] if rows and all(isinstance(row, Mapping) for row in rows):
                names = dict.fromkeys(str(name) for row in rows for name in row)
                columns = {n: pd.Series([row.get(n, np.nan) for row in rows], dtype=object) for n in names}
                found = cls(pd.DataFrame(columns))
            case []:
                found = cls(pd.DataFrame())
            case _:
                raise InputError(
                    "candidates must be a DataFrame, a list of {parameter: value}, or the path of a CSV file, but "
                    f"it is {type(given).__name__}."
                )
        if found.frame.empty:
            raise InputError(f"{found.where}: there are no candidates. Give at least one row.")
        return found

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(map(str, self.frame.columns))

    def lacks(self, name: str) -> str:
        """A message that a parameter is missing."""
        return (
            f"{self.where}: the candidates have no column {name!r}, which is a parameter of the study. Add it, or give "
            "the parameter a single value in the objective."
        )

    @property
    def task(self) -> RawTask:
        """The rows as if they had been tried: they show which parameters there are, and which of them in branches."""
        return RawTask(self.where, self.frame, np.zeros(len(self.frame)), conditional=True)

    def in_space(
        self, space: Space, rules: Sequence[SettingRule] = ()
    ) -> tuple[Candidates, tuple[Mapping[str, Any], ...]]:
        """The rows that satisfy the rules, as points and as values; fails on a row outside the space, and on none."""
        rows = self._rows(space)
        try:
            X = space.encode_exactly(rows)
        except NoPlaceError:
            for i, row in enumerate(rows):
                self._require(space, i, row)
            raise
        kept = feasible_rows(rows, rules)
        return Candidates(X[kept], space.categories), tuple(rows[i] for i in kept)

    def _require(self, space: Space, i: int, row: Mapping[str, Any]) -> None:
        """Raise an ``InputError`` that names the row as the user does, if it is no point of the space."""
        lacking = [axis.name for axis in space.axes if axis.name not in self.parameters and axis.width]
        if lacking:
            raise InputError(self.lacks(lacking[0]))
        try:
            space.encode_exactly([row])
        except NoPlaceError as error:
            text = str(error)
            rest = text.removeprefix("Row 0") if text.startswith("Row 0") else f": {text}"
            raise InputError(f"{self.where}, row {i + self.first_row}{rest}") from error

    def _rows(self, space: Space) -> list[dict[str, Any]]:
        """The values as the parameters of the space have them: text of a number is one, an empty cell is no value."""
        rows: list[dict[str, Any]] = [{} for _ in range(len(self.frame))]
        for axis in space.axes:
            if axis.name not in self.frame:
                if has_single_value(axis.distribution):
                    rows = [{**row, axis.name: clip_value(None, axis.name, axis.distribution)} for row in rows]
                continue
            column = self.frame[axis.name].tolist()
            matched = match(column, axis.distribution)
            for row, raw, value, ok in zip(rows, column, matched.values, matched.ok, strict=True):
                if ok and not matched.problem:
                    whole = axis.integer and float(value).is_integer()
                    row[axis.name] = int(value) if whole else value
                elif not is_missing(raw):
                    row[axis.name] = raw  # which has no place, and the message says so
        return rows


def agree(row: Mapping[str, Any], values: Mapping[str, Any], space: Space) -> bool:
    """Whether the row has these values, up to ``_SAME`` of the unit cube."""
    for axis in space.axes:
        if axis.name not in values or axis.width == 0:
            continue
        if axis.name not in row:
            return False
        matched = match([values[axis.name]], axis.distribution)
        if matched.problem or matched.new_levels or not matched.ok.all():
            return False
        if float((axis.place([row[axis.name]]) - axis.place(matched.values)).abs().max()) > _SAME:
            return False
    return True
