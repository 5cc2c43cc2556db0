"""Which columns of different files are the same: by their names, their units and their values, with reasons.

    score = likeness of the names + 0.25 if the units measure the same + 0.2 for numbers in the same range

Of texts as many of them in common count for up to 0.4. Units that cannot be converted, or a number here and a text
there, rule it out; so does another column of the same file that is meant already.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from headstart.errors import Message, Setting
from headstart.sources.columns import cell_unit, column_unit
from headstart.sources.files.cells import in_unit
from headstart.sources.files.names import folded, plain
from headstart.sources.files.tables import Table
from headstart.sources.files.units import converted, converts, quantity_of
from headstart.sources.roles import is_counter, measured_rank, no_setting, result_of
from headstart.sources.terms import contained, initials, likeness, meanings_of

# A pair counts from ENOUGH on, and is sure if its names agree by SURE: what is below is shown as doubtful
_ENOUGH, _SURE = 0.75, 0.8
_UNIT, _RANGE, _TEXTS = 0.25, 0.2, 0.4
_ONLY_ONE = 0.3  # values that overlap so far may be the same if no other columns are left
_MOST_LEFT = 3


@dataclass(frozen=True, slots=True)
class SameColumn:
    """Columns of different files that are one: its name, those that it has elsewhere, why, and which are in doubt."""

    name: str
    others: tuple[str, ...]
    why: Mapping[str, str] = field(default_factory=dict)
    doubts: frozenset[str] = frozenset()

    @property
    def doubtful(self) -> bool:
        """Whether somebody should look at it."""
        return bool(self.doubts)

    @property
    def in_doubt(self) -> tuple[str, ...]:
        """The other names that somebody should look at: all of them where its own is one of those."""
        return tuple(other for other in self.others if other in self.doubts) or (self.others if self.doubts else ())

    def reason(self, other: str) -> str:
        """Why a column of another name is this one."""
        return self.why.get(other) or self.why.get(self.name) or "they are called alike"


@dataclass(frozen=True)
class _Column:
    """What one name stands for in the files that have it."""

    name: str
    tables: tuple[Table, ...]
    files: frozenset[int]
    numeric: bool
    unit: str
    meanings: tuple[str, ...]
    texts: frozenset[str] = frozenset()
    ends: tuple[float, float] | None = None  # the least and the largest value

    def in_unit(self, unit: str) -> tuple[float, float] | None:
        """The least and the largest value in another unit."""
        if self.ends is None or not self.unit or not unit:
            return self.ends
        low, high = (converted(end, self.unit, unit) for end in self.ends)
        return low, high


@dataclass
class _Group:
    columns: list[_Column]
    reasons: dict[str, str] = field(default_factory=dict)
    doubts: frozenset[str] = frozenset()

    @property
    def files(self) -> frozenset[int]:
        return frozenset(i for column in self.columns for i in column.files)


def same_columns(
    tables: Sequence[Table], *, apart: Collection[str] = (), prefer: Sequence[str] = ()
) -> tuple[list[SameColumn], list[str]]:
    """Columns that are one under several names, and what has to be decided by somebody: units that do not go together.

    ``apart`` are names that are as somebody said, and are compared with none. A column of several names is called by
    one of ``prefer``, or else as in the first file.
    """
    names = [c for c in dict.fromkeys(c for t in tables for c in t.columns) if c not in apart and plain(c)]
    columns = [_column(name, tables) for name in names if not no_setting(name, tables) and not is_counter(name)]
    pairs = [(a, b) for a, b in combinations(columns, 2) if not a.files & b.files]
    groups = {column.name: _Group([column]) for column in columns}
    scored = sorted(((_score(a, b), a, b) for a, b in pairs), key=lambda pair: -pair[0][0])
    for (score, why, doubtful), a, b in scored:
        if score >= _ENOUGH:
            _join(groups, a, b, why, doubtful)
    _join_results(tables, columns, groups)
    for i, j in combinations(range(len(tables)), 2):
        for a, b in _left_alike(i, j, groups):
            what = f"in {quantity_of(a.unit) or a.unit}" if a.unit else "of such a name"
            why = f"no other column {what} is left, and values are alike" if a.numeric else "they have the same texts"
            _join(groups, a, b, why, doubtful=True)
    found = list({id(group): group for group in groups.values() if len(group.columns) > 1}.values())
    return [_named(group, names, prefer) for group in found], _conflicts(pairs, groups)


def _column(name: str, tables: Sequence[Table]) -> _Column:
    own = [(i, t) for i, t in enumerate(tables) if name in t.columns]
    filled = [t for _, t in own if t.kind(name) != "empty"]
    numeric = bool(filled) and all(t.kind(name) == "number" for t in filled)
    unit = next((u for t in filled if (u := column_unit(t, name) or cell_unit(t, name))), "") if numeric else ""
    texts = frozenset() if numeric else frozenset(folded(c) for t in filled for c in t.cells(name) if c)
    cells = [in_unit(cell, column_unit(t, name), unit) for t in filled for cell in t.parsed(name)] if numeric else []
    values = [cell.value for cell in cells if cell.value is not None]
    ends = (min(values), max(values)) if values else None
    files = frozenset(i for i, _ in own)
    return _Column(name, tuple(filled), files, numeric, unit, meanings_of(name), frozenset(texts), ends)


def _score(a: _Column, b: _Column) -> tuple[float, str, bool]:
    """How likely two columns are one, why, and whether somebody should look at it."""
    nothing = (0.0, "", False)
    if a.numeric != b.numeric:
        return nothing
    names = 1.0 if initials(a.name, b.name) else likeness(a.meanings, b.meanings)
    if not names:
        return nothing
    called = "they are called alike" if names >= _SURE else "their names have something in common"
    if not a.numeric:
        shared = _shared(a, b)
        score = names + (_TEXTS * shared if shared else -_RANGE)
        return score, called + (", with the same texts" if shared else ", but with other texts"), names < _SURE
    if a.unit and b.unit and not converts(b.unit, a.unit):
        return nothing
    overlap = _overlap(a, b)
    one_unit = bool(a.unit) and bool(b.unit)
    score = names + _UNIT * one_unit + (_RANGE * overlap if overlap else -_RANGE)
    why = [called]
    if one_unit:
        why.append(f"in {a.unit}" if a.unit == b.unit else f"{b.unit} is converted to {a.unit}")
    elif a.unit or b.unit:
        if not overlap:
            return nothing
        bare = b if a.unit else a
        why.append(f"{bare.name!r} does not say its unit, but its values are like those in {a.unit or b.unit}")
    if not overlap:
        why.append("though their values differ")
    says_more = contained(a.meanings, b.meanings) or contained(b.meanings, a.meanings)
    sure = (names >= _SURE or (says_more and one_unit and overlap > 0)) and one_unit == bool(a.unit or b.unit)
    return score, ", ".join(why), not (sure and overlap > 0)


def _shared(a: _Column, b: _Column) -> float:
    """The share of texts that they have in common, of the column that has fewer."""
    return len(a.texts & b.texts) / max(1, min(len(a.texts), len(b.texts)))


def _overlap(a: _Column, b: _Column) -> float:
    """The share of the shorter range that lies in the other, in one unit."""
    unit = a.unit or b.unit
    first, second = a.in_unit(unit), b.in_unit(unit)
    if first is None or second is None:
        return 0.0
    common = min(first[1], second[1]) - max(first[0], second[0])
    shorter = min(first[1] - first[0], second[1] - second[0])
    return min(1.0, max(0.0, common / shorter)) if shorter > 0 else float(common >= 0)


def _join(groups: dict[str, _Group], a: _Column, b: _Column, why: str, doubtful: bool) -> None:
    one, other = groups[a.name], groups[b.name]
    if one is other or one.files & other.files:
        return
    one.columns += other.columns
    one.reasons |= {**other.reasons, b.name: why}
    one.doubts |= other.doubts | ({b.name} if doubtful else set())
    for column in other.columns:
        groups[column.name] = one


def _join_results(tables: Sequence[Table], columns: Sequence[_Column], groups: dict[str, _Group]) -> None:
    """Where no result is in every file, what looks most like one in each of them may be the same."""
    known = {column.name: column for column in columns}
    likely = [known.get(result_of(table)) for table in tables]
    if (
        not likely
        or any(column is None for column in likely)
        or any(measured_rank(c.name) and len(g.files) == len(tables) for g in groups.values() for c in g.columns)
    ):
        return
    first, *others = [column for column in likely if column is not None]
    for other in others:
        if not (first.unit and other.unit) or converts(other.unit, first.unit):
            _join(groups, first, other, "each looks most like the result of its file", doubtful=True)


def _left_alike(i: int, j: int, groups: dict[str, _Group]) -> list[tuple[_Column, _Column]]:
    """Columns of two files that have no partner in the other one and may be it, in the order that they stand in.

    Only where both files have as many of a kind: one time in h and one in min, two categories with the same texts.
    """
    every = [(group, c) for group in {id(g): g for g in groups.values()}.values() for c in group.columns]
    own = [[c for g, c in every if f in c.files and other not in g.files] for f, other in ((i, j), (j, i))]
    found = []
    for a in own[0]:
        kin = [[c for c in side if c.numeric == a.numeric and (_could_be(a, c) or c is a)] for side in own]
        kin[0] = [c for c in own[0] if c.numeric == a.numeric and any(_could_be(c, b) for b in kin[1])]
        if len(kin[0]) == len(kin[1]) <= _MOST_LEFT and a in kin[0]:
            found.append((a, kin[1][kin[0].index(a)]))
    return found


def _could_be(a: _Column, b: _Column) -> bool:
    if a.numeric != b.numeric:
        return False
    if not a.numeric:
        return 2 * _shared(a, b) >= 1
    if bool(a.unit) != bool(b.unit) or (a.unit and not converts(b.unit, a.unit)) or _overlap(a, b) < _ONLY_ONE:
        return False
    return bool(a.unit) or likeness(a.meanings, b.meanings) >= _ONLY_ONE


def _named(group: _Group, names: Sequence[str], prefer: Sequence[str]) -> SameColumn:
    called = sorted((c.name for c in group.columns), key=names.index)
    name = next((n for n in called if n in prefer), called[0])
    return SameColumn(name, tuple(n for n in called if n != name), group.reasons, group.doubts)


def _conflicts(pairs: Sequence[tuple[_Column, _Column]], groups: dict[str, _Group]) -> list[str]:
    """Columns that are called alike and cannot be one: nobody renames grams into percent."""
    found: list[str] = []
    for a, b in pairs:
        alike = plain(a.name) == plain(b.name) and (len(plain(a.name)) > 1 or a.name[0] == b.name[0])
        if not alike or not (a.unit and b.unit) or converts(b.unit, a.unit) or len(groups[b.name].columns) > 1:
            continue
        files = [c.tables[0].path for c in (b, a)]
        found.append(
            Message(
                f"{files[0]}: {b.name!r} and {a.name!r} in {files[1]} are called alike, but {b.unit} cannot be "
                f"converted to {a.unit}. Give one of them another name, or leave one out.",
                Setting("rename", f"{b.name}=NEW"),
                Setting("ignore", b.name),
            )
        )
    return found
