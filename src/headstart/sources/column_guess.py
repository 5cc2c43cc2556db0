"""What the columns of past files are: parameters with ranges, scales, categories and units, each with its reason."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from headstart.errors import InputError
from headstart.sources.files.frames import input_column, result_column
from headstart.sources.files.tables import Table
from headstart.sources.parameters import MOST_USED, Kind, Parameter, nearest
from headstart.sources.unit_names import plain, split_unit

__all__ = ["Guess", "Proposal", "find_result", "outward", "propose", "spans_log"]

# A positive column is on a log scale if it spans so much and its median lies in the lowest part of the range
_DECADES, _LOW_PART = 2.0, 0.2
_FEW_LEVELS, _MANY_LEVELS, _LONG_TEXT = 5, 20, 40
_COUNTER = re.compile(
    r"(?:.*[^a-z])?(?:run|no|nr|num|number|id|index|exp|experiment|trial|row|sample|#)\.?", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Guess:
    """A parameter, and why each of its settings is as it is."""

    parameter: Parameter
    reasons: Mapping[str, str] = field(default_factory=dict)


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
) -> Proposal:
    """Parameters for every column that varied, in rows that have any of the results.

    The tables have the results under one name each. Columns that are ``measured`` too, such as errors, are no
    parameters.
    """
    has = [_has_result(table, results) for table in tables]
    known = {*results, *measured, *ignore}
    names = list(dict.fromkeys(c for t in tables for c in t.columns if c not in known))
    ignored = dict.fromkeys(ignore, "left out as told")
    guesses: list[Guess] = []
    for name in names:
        guess = _guess(name, tables, has, text=name in categories)
        if isinstance(guess, str):
            ignored[name] = guess
        else:
            guesses.append(guess)
    if not guesses:
        raise InputError(
            f"{tables[0].path}: no column besides {', '.join(map(repr, results))} varies, so there is nothing to "
            f"choose ({'; '.join(f'{name}: {why}' for name, why in ignored.items()) or 'there is no other'})."
        )
    _require_common(tables, [g.parameter.name for g in guesses])
    return Proposal(tuple(guesses), ignored, tuple(_remarks(tables, guesses)))


def _has_result(table: Table, results: Sequence[str]) -> list[bool]:
    if not table.rows:
        raise InputError(f"{table.path} has a header but no rows: nothing was measured there. Leave it out.")
    known = [result_column(table, name) for name in results if name in table.columns]
    has = [any(column[row] is not None for column in known) for row in range(len(table.rows))]
    if not any(has):
        raise InputError(
            f"{table.path}: no row has a result in column {', '.join(map(repr, results))}. Fill them in, or leave the "
            "file out."
        )
    return has


def _guess(name: str, tables: Sequence[Table], results: Sequence[Sequence[bool]], *, text: bool) -> Guess | str:
    """The parameter in this column, or why it is none."""
    own = [(t, has) for t, has in zip(tables, results, strict=True) if name in t.columns and t.kind(name) != "empty"]
    if not own:
        return "it is empty"
    columns = [input_column(t, name, has, text=text) for t, has in own]
    words = [c.dtype == object for c in columns]
    if any(words) and not all(words):
        number, (word, has) = own[words.index(False)][0].path, own[words.index(True)]
        row = next(i for i, cell in enumerate(word.cells(name)) if cell and has[i])
        raise InputError(
            f"{word.place(row, name)}: {word.cells(name)[row]!r} is text, but in {number} the column holds "
            f"numbers. Rename one of them, or make it a category with --category {name!r}."
        )
    kept = [c[np.asarray(has)].to_numpy() for c, (_, has) in zip(columns, own, strict=True)]
    only = "" if len(own) == len(tables) else f"only recorded in {', '.join(str(t.path.name) for t, _ in own)}"
    guess = _category(name, np.concatenate(kept)) if all(words) else _number(name, kept)
    if isinstance(guess, Guess) and only:
        return Guess(guess.parameter, {**guess.reasons, "kind": "; ".join(filter(None, [guess.reasons["kind"], only]))})
    return guess


def _category(name: str, values: NDArray[np.object_]) -> Guess | str:
    levels = sorted({str(v) for v in values})
    if len(levels) == 1:
        return f"it is {levels[0]!r} in every row"
    mostly_different = len(levels) > _FEW_LEVELS and 2 * len(levels) > len(values)
    if max(map(len, levels)) > _LONG_TEXT or len(levels) > _MANY_LEVELS or mostly_different:
        return f"{len(levels)} different texts in {len(values)} rows look like remarks"
    base, unit = split_unit(name)
    parameter = Parameter(name, Kind.CATEGORY, choices=tuple(levels), unit=unit if base != name else "")
    return Guess(parameter, {"kind": f"{len(levels)} different texts"})


def _number(name: str, columns: Sequence[NDArray[np.float64]]) -> Guess | str:
    values = np.concatenate(columns)
    low, high = float(values.min()), float(values.max())
    if low == high:
        return f"it is {low:g} in every row"
    whole = bool(np.all(values == np.round(values))) and abs(low) < 2**53 and abs(high) < 2**53
    if whole and _COUNTER.fullmatch(name) and all(np.all(np.diff(c) == 1) for c in columns) and len(values) > 2:
        return "it only counts the rows"
    unit = split_unit(name)[1]
    log = spans_log(values)
    bottom, top = outward(low, high, log=log)
    reasons = {"low": f"the data: {low:g} … {high:g}", "kind": "whole numbers in every row" if whole else ""}
    if log:
        reasons["log"] = f"spans {math.log10(high / low):.1f} decades"
    if unit:
        reasons["unit"] = "from the column's name"
    kind = Kind.INT if whole else Kind.FLOAT
    if whole:
        bottom, top = (max(1.0, math.floor(bottom)) if log else math.floor(bottom)), math.ceil(top)
    return Guess(Parameter(name, kind, low=bottom, high=top, log=log, unit=unit), reasons)


def spans_log(values: NDArray[np.float64]) -> bool:
    """Whether values look as if chosen on a log scale: positive, over two decades, and half of them in the low fifth.

    Values that are spread evenly over 0.01 … 10 span as much, but half of them lie above the middle.
    """
    low, high = float(values.min()), float(values.max())
    if low <= 0 or low == high or math.log10(high / low) < _DECADES:
        return False
    return (float(np.median(values)) - low) / (high - low) < _LOW_PART


def outward(low: float, high: float, *, log: bool) -> tuple[float, float]:
    """The range rounded outward: to 1, 2 or 5 times a power of ten on a log scale, else by an eighth at most."""
    if log:
        ends = []
        for value, up in ((low, False), (high, True)):
            power = 10.0 ** math.floor(math.log10(value) + 1e-12)
            steps = [
                m
                for m in (1, 2, 5, 10)
                if (m * power >= value * (1 - 1e-12) if up else m * power <= value * (1 + 1e-12))
            ]
            ends.append(_clean((min if up else max)(steps) * power))
        return ends[0], ends[1]
    span = high - low
    power = 10.0 ** math.floor(math.log10(span))
    step = next(s for s in (power / 10, power / 5, power / 2, power) if span / s <= 20)
    bottom, top = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    if low > 0 >= bottom:  # nobody stirs for 0 minutes
        digit = 10.0 ** math.floor(math.log10(low))
        bottom = math.floor(low / digit + 1e-9) * digit
    return _clean(bottom), _clean(top)


def _clean(value: float) -> float:
    """Without the dust of arithmetic: 0.3, not 0.30000000000000004."""
    return float(f"{value:.12g}")


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
    remarks = [remark for table in tables for remark in table.remarks]
    parameters = [g.parameter for g in guesses]
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
        f"{p.name} has {a!r} and {b!r}. If they are the same, make them alike in the files."
        for p in parameters
        for a, b in itertools.combinations(p.choices, 2)
        if a.lower() == b.lower()
    ]
    remarks += [
        f"{table.path} has {len(table.rows)} rows; a random {MOST_USED} of them are used (max_rows in headstart.toml)."
        for table in tables
        if len(table.rows) > MOST_USED
    ]
    return remarks
