"""What the columns of past files are: parameters with ranges, scales, categories and units, each with its reason."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from headstart.errors import InputError, refuse
from headstart.sources.columns.cleaning import TableUse, cell_unit, cleaned
from headstart.sources.columns.frames import input_column
from headstart.sources.columns.grid import common_step
from headstart.sources.columns.roles import no_parameter
from headstart.sources.columns.span import outward, spans_log
from headstart.sources.files.cells import is_missing, number
from headstart.sources.files.readings import CellRules
from headstart.sources.files.tables import Table
from headstart.sources.files.unit_names import folded, plain, split_unit
from headstart.sources.parameters import MOST_USED, Kind, Parameter, nearest

_NOTHING_THERE = "nothing was measured there. Leave it out."
_FEW_LEVELS, _MANY_LEVELS, _LONG_TEXT = 5, 20, 40
_COUNTER = re.compile(
    r"(?:.*[^a-z])?(?:run|no|nr|num|number|id|index|exp|experiment|trial|row|sample|#)\.?", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Guess:
    """A parameter, why each of its settings is as it is, and the least and largest value that was ever run."""

    parameter: Parameter
    reasons: Mapping[str, str] = field(default_factory=dict)
    run: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Proposal:
    """What the files are taken for. ``ignored`` has the columns that are no parameters, with the reason."""

    guesses: tuple[Guess, ...]
    ignored: Mapping[str, str]
    remarks: tuple[str, ...]


def find_result(tables: Sequence[Table], wanted: str, *, everywhere: bool = True) -> tuple[str, dict[str, str]]:
    """The column that is meant, and how it is called in files that spell it otherwise: ``yield`` for ``Yield [%]``.

    An exact name wins; else the names must agree in all but unit, case and separators. Unless it has to be
    ``everywhere``, one file that has it is enough.
    """
    found: list[str] = []
    for table in tables:
        if wanted in table.columns:
            found.append(wanted)
            continue
        alike = [column for column in table.columns if plain(column) == plain(wanted)]
        if len(alike) == 1:
            found.append(alike[0])
        elif everywhere or (table is tables[-1] and not found):
            table.require(wanted, f"{nearest(wanted, table.columns)} Or call it so with --rename 'OLD={wanted}'.")
    name = wanted if wanted in found else found[0]
    return name, {other: name for other in found if other != name}


def propose(
    tables: Sequence[Table],
    results: Sequence[str],
    *,
    measured: Sequence[str] = (),
    ignore: Sequence[str] = (),
    categories: Sequence[str] = (),
    parameters: Sequence[str] = (),
    rules: CellRules | None = None,
) -> Proposal:
    """Parameters for every column that varied, in rows that have any of the results.

    The tables have the results under one name each. Columns that are ``measured`` too, such as errors, are no
    parameters; ``parameters`` are, whatever they look like. All that is wrong in any table is told at once.
    """
    known = {*results, *measured, *ignore}
    names = list(dict.fromkeys(c for t in tables for c in t.columns if c not in known))
    empty = [f"{table.path} has a header but no rows: {_NOTHING_THERE}" for table in tables if not table.rows]
    refuse(empty)
    rules = rules or CellRules()
    first = [cleaned(t, TableUse(tuple(results), rules=rules)) for t in tables]
    has = [_has_result(own.table, results) for own in first]
    ignored = dict.fromkeys(ignore, "left out as told")
    ignored |= {
        name: why for name in names if name not in parameters and (why := no_parameter(name, tables, has, results))
    }
    kept = [name for name in names if name not in ignored]
    units = {name: unit for name in kept if (unit := _unit(name, tables))}
    use = _use(kept, categories, results, measured, units, rules, tables)
    every = [cleaned(table, use) for table in tables]
    refuse([problem for own in every for problem in own.problems])
    plain_tables = [own.table for own in every]
    has = [_has_result(table, results) for table in plain_tables]
    _require_results(plain_tables, has, results)
    guesses: list[Guess] = []
    for name in kept:
        guess = _guess(name, plain_tables, has, text=name in categories, unit=units.get(name, ""))
        if isinstance(guess, str):
            ignored[name] = guess
        else:
            guesses.append(guess)
    if not guesses:
        raise InputError(
            f"{tables[0].path}: no column besides {', '.join(map(repr, results))} varies, so there is nothing to "
            f"choose ({'; '.join(f'{name}: {why}' for name, why in ignored.items()) or 'there is no other'})."
        )
    ignored = {name: ignored[name] for name in (*ignore, *names) if name in ignored}
    _require_common(tables, [g.parameter.name for g in guesses])
    return Proposal(tuple(guesses), ignored, tuple(_remarks(tables, guesses)))


def _use(
    names: Sequence[str],
    categories: Sequence[str],
    results: Sequence[str],
    measured: Sequence[str],
    units: Mapping[str, str],
    rules: CellRules,
    tables: Sequence[Table],
) -> TableUse:
    """What the columns are to be: numbers where they are in every file that has them."""
    texts = {
        name: ()
        for name in names
        if name in categories or any(t.kind(name, forms=True) == "text" for t in _having(name, tables))
    }
    numbers = tuple(name for name in names if name not in texts)
    return TableUse(tuple(results), numbers, texts, dict.fromkeys(measured, ""), units, rules)


def _having(name: str, tables: Sequence[Table]) -> list[Table]:
    """The tables in which the column is filled; where it is '-' throughout and numbers elsewhere, it is not."""
    own = [t for t in tables if name in t.columns and t.kind(name) != "empty"]
    filled = [t for t in own if not all(is_missing(cell, numeric=True) for cell in t.cells(name))]
    return filled or own


def _unit(name: str, tables: Sequence[Table]) -> str:
    """The unit of a column: of its name, of the name it had in the first file that tells it, or of its cells."""
    if unit := split_unit(name)[1]:
        return unit
    own = [t for t in tables if name in t.columns and t.kind(name, forms=True) == "number"]
    told = (
        unit
        for find in (lambda t: t.units.get(name, ""), lambda t: cell_unit(t, name))
        for t in own
        if (unit := find(t))
    )
    return next(told, "")


def _has_result(table: Table, results: Sequence[str]) -> list[bool]:
    known = [[number(cell, table.mark) for cell in table.cells(name)] for name in results if name in table.columns]
    return [any(column[row] is not None for column in known) for row in range(len(table.rows))]


def _require_results(tables: Sequence[Table], has: Sequence[Sequence[bool]], results: Sequence[str]) -> None:
    names = ", ".join(map(repr, results))
    refuse(
        [
            f"{table.path}: no row has a result in column {names}{' and all inputs' if table.rows else ''}. Fill them "
            "in, or leave the file out."
            for table, own in zip(tables, has, strict=True)
            if not any(own)
        ]
    )


def _guess(
    name: str, tables: Sequence[Table], results: Sequence[Sequence[bool]], *, text: bool, unit: str
) -> Guess | str:
    """The parameter in this column, or why it is none."""
    having = _having(name, tables)
    own = [(t, has) for t, has in zip(tables, results, strict=True) if any(t is one for one in having)]
    if not own:
        return "it is empty"
    columns = [input_column(t, name, has, text=text) for t, has in own]
    words = [c.dtype == object for c in columns]
    if any(words) and not all(words):
        other, (word, has) = own[words.index(False)][0].path, own[words.index(True)]
        row = next(i for i, cell in enumerate(word.cells(name)) if cell and has[i])
        raise InputError(
            f"{word.place(row, name)}: {word.cells(name)[row]!r} is text, but in {other} the column holds "
            f"numbers. Rename one of them, or make it a category with --category {name!r}."
        )
    kept = [c[np.asarray(has)].to_numpy() for c, (_, has) in zip(columns, own, strict=True)]
    only = "" if len(own) == len(tables) else f"only recorded in {', '.join(str(t.path.name) for t, _ in own)}"
    guess = _category(name, np.concatenate(kept)) if all(words) else _number(name, kept, unit)
    if isinstance(guess, Guess) and only:
        return replace(guess, reasons={**guess.reasons, "kind": "; ".join(filter(None, [guess.reasons["kind"], only]))})
    return guess


def _category(name: str, values: NDArray[np.object_]) -> Guess | str:
    spellings: dict[str, Counter[str]] = {}
    for value in map(str, values):
        spellings.setdefault(folded(value), Counter())[value] += 1
    levels = sorted(max(sorted(own), key=lambda spelling: own[spelling]) for own in spellings.values())
    if len(levels) == 1:
        return f"it is {levels[0]!r} in every row"
    mostly_different = len(levels) > _FEW_LEVELS and 2 * len(levels) > len(values)
    if max(map(len, levels)) > _LONG_TEXT or len(levels) > _MANY_LEVELS or mostly_different:
        return f"{len(levels)} different texts in {len(values)} rows look like remarks"
    base, unit = split_unit(name)
    parameter = Parameter(name, Kind.CATEGORY, choices=tuple(levels), unit=unit if base != name else "")
    return Guess(parameter, {"kind": f"{len(levels)} different texts"})


def _number(name: str, columns: Sequence[NDArray[np.float64]], unit: str) -> Guess | str:
    values = np.concatenate(columns)
    low, high = float(values.min()), float(values.max())
    if low == high:
        return f"it is {low:g} in every row"
    whole = bool(np.all(values == np.round(values))) and abs(low) < 2**53 and abs(high) < 2**53
    if whole and _COUNTER.fullmatch(name) and all(len(np.unique(c)) == len(c) for c in columns) and len(values) > 2:
        return "it only counts the rows"
    log = spans_log(values)
    step = None if log else common_step(values.tolist())
    bottom, top = (low, high) if step else outward(low, high, log=log)
    reasons = {"kind": "whole numbers in every row" if whole else ""}
    if log:
        reasons["log"] = f"spans {math.log10(high / low):.1f} decades"
    if step:
        reasons["step"] = "all values lie on it; delete it for values between"
    if unit:
        reasons["unit"] = "from the column's name" if unit == split_unit(name)[1] else "from the cells"
    kind = Kind.INT if whole else Kind.FLOAT
    if whole:
        bottom, top = (max(1.0, math.floor(bottom)) if log else math.floor(bottom)), math.ceil(top)
    reasons["low"] = f"the data: {low:g} … {high:g}" + ("" if (bottom, top) == (low, high) else ", rounded outward")
    return Guess(Parameter(name, kind, low=bottom, high=top, log=log, step=step, unit=unit), reasons, (low, high))


def _require_common(tables: Sequence[Table], names: Sequence[str]) -> None:
    """Every file needs a parameter that another one has, or it has nothing to say about them."""
    for table in tables:
        own = {name for name in names if name in table.columns}
        others = {name for other in tables if other is not table for name in names if name in other.columns}
        if len(tables) > 1 and not own & others:
            raise InputError(
                f"{table.path} has no parameter in common with the other files: it has "
                f"{', '.join(map(repr, sorted(own))) or 'none'}, they have {', '.join(map(repr, sorted(others)))}. "
                "Leave it out, or say which columns are the same with --rename 'OLD=NEW'."
            )


def _remarks(tables: Sequence[Table], guesses: Sequence[Guess]) -> list[str]:
    """What is worth a second look: one column under two names, one category in two spellings."""
    parameters = [g.parameter for g in guesses]
    remarks = []
    if beyond := [(g.parameter, g.run) for g in guesses if g.run not in (None, (g.parameter.low, g.parameter.high))]:
        told = "; ".join(f"{p.name} {p.low:g} … {p.high:g}, run {run[0]:g} … {run[1]:g}" for p, run in beyond if run)
        remarks.append(f"Ranges that reach past what was ever run: {told}. Narrow them in headstart.toml if need be.")
    for i, a in enumerate(parameters):
        for b in parameters[i + 1 :]:
            together = any(a.name in t.columns and b.name in t.columns for t in tables)
            if not together and (plain(a.name) == plain(b.name) or plain(a.name).startswith(plain(b.name)[:4])):
                files = [next(t.path.name for t in tables if p.name in t.columns) for p in (a, b)]
                remarks.append(
                    f"{a.name!r} ({files[0]}) and {b.name!r} ({files[1]}) never occur together. If they are the same, "
                    f"run again with --rename '{b.name}={a.name}' (init: and with --force)."
                )
    remarks += [
        f"{table.path} has {len(table.rows)} rows; {MOST_USED} of them are used (max_rows in headstart.toml)."
        for table in tables
        if len(table.rows) > MOST_USED
    ]
    return remarks
