"""What the parameters in the columns of past files are: ranges, scales, steps, categories and units, with reasons."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from headstart.data.ranges import even_in_ratio, numbers_in_words
from headstart.errors import InputError, Message, Setting, nearest, refuse
from headstart.sources.batch_column import BatchGuess, propose_batch, told_of_batches
from headstart.sources.columns import TableUse, cell_unit, input_column, typed
from headstart.sources.files.cells import MISSING, is_date
from headstart.sources.files.names import folded, meant_by, plain, split_unit
from headstart.sources.files.tables import Table
from headstart.sources.files.units import quantity_of
from headstart.sources.parameters import MOST_USED, Kind, Parameter
from headstart.sources.roles import is_counter, no_parameter, perhaps_measured
from headstart.sources.terms import meanings_of

_FEW_LEVELS, _MANY_LEVELS, _LONG_TEXT = 5, 20, 40


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
    batch: BatchGuess | None = None


def find_result(tables: Sequence[Table], wanted: str, *, everywhere: bool = True) -> tuple[str, dict[str, str]]:
    """The column that is meant, and how it is called in files that spell it otherwise: ``yield`` for ``Yield [%]``.

    An exact name wins; else the names must agree in all but unit, case and separators. Unless it has to be
    ``everywhere``, one file that has it is enough.
    """
    found: list[str] = []
    for table in tables:
        alike = list(meant_by([wanted], table.columns, alike=plain))
        if len(alike) == 1:
            found.append(alike[0])
        elif everywhere or (table is tables[-1] and not found):
            told = f"{table.path}: there is no column {wanted!r}. {nearest(wanted, table.columns)}"
            raise InputError(Message(f"{told} Or rename the one that is meant.", Setting("rename", f"OLD={wanted}")))
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
    batch: str | None = "",
    apart: Sequence[str] = (),
) -> Proposal:
    """Parameters for every column that varied, in rows that have any of the results, and the column of batches.

    The tables have the results under one name each. Columns that are ``measured`` too, such as errors, are no
    parameters; ``parameters`` are, whatever they look like. The ``batch`` is a column ("": it is proposed, None: there
    is none); columns that are ``apart`` have no other name. All that is wrong in any table is told at once.
    """
    known = {*results, *measured, *ignore, *filter(None, [batch])}
    names = list(dict.fromkeys(c for t in tables for c in t.columns if c not in known))
    empty = "has a header but no rows: nothing was measured there. Leave it out."
    refuse([f"{table.path} {empty}" for table in tables if not table.rows])
    has = [_has_result(table, results) for table in tables]
    ignored = dict.fromkeys(ignore, "left out as told")
    ignored |= {
        name: why
        for name in names
        if name not in (*parameters, *categories) and (why := no_parameter(name, tables, has, results))
    }
    having = {name: _having(name, tables) for name in names if name not in ignored}
    units = {name: unit for name, own in having.items() if (unit := _unit(name, [tables[i] for i in own]))}
    mixed = [name for name, own in having.items() if any(tables[i].kind(name) == "text" for i in own)]
    texts = {name: () for name in having if name in categories or name in mixed}
    numbers = tuple(name for name in having if name not in texts)
    use = TableUse(tuple(results), numbers, texts, dict.fromkeys(measured, ""), units)
    plain_tables = [typed(table, use) for table in tables]
    refuse([problem for table in plain_tables for problem in table.problems])
    has = [_has_result(table, results) for table in plain_tables]
    called = ", ".join(map(repr, results))
    refuse(
        [
            f"{table.path}: no row has a result in column {called}{' and all inputs' if table.rows else ''}. Fill them "
            "in, or leave the file out."
            for table, own in zip(plain_tables, has, strict=True)
            if not any(own)
        ]
    )
    guesses: list[Guess] = []
    for name, own in having.items():
        if name in mixed and name not in categories:
            _require_one_kind(name, [tables[i] for i in own])
        kept = [input_column(plain_tables[i], name, has[i])[np.asarray(has[i])].to_numpy() for i in own]
        if not own:
            guess: Guess | str = "it is empty"
        else:
            guess = _number(name, kept, units.get(name, "")) if name in numbers else _category(name, kept)
        if isinstance(guess, str):
            ignored[name] = guess
            continue
        if len(own) < len(tables):
            only = f"only recorded in {', '.join(tables[i].path.name for i in own)}"
            reason = "; ".join(filter(None, [guess.reasons["kind"], only]))
            guess = replace(guess, reasons={**guess.reasons, "kind": reason})
        guesses.append(guess)
    if not guesses:
        raise InputError(
            f"{tables[0].path}: no column besides {called} varies, so there is nothing to "
            f"choose ({'; '.join(f'{name}: {why}' for name, why in ignored.items()) or 'there is no other'})."
        )
    settings = [g.parameter.name for g in guesses]
    has = [_has_result(table, results) for table in tables]
    if batch:
        batches: BatchGuess | None = BatchGuess(batch, f"as told: {told_of_batches(batch, tables, has)}")
    else:
        refused = [name for name in ignored if name not in ignore]
        batches = None if batch is None else propose_batch(refused, tables, has, settings, apart)
    taken = {} if batches is None else {batches.name: "", **batches.also}
    ignored = {name: ignored[name] for name in (*ignore, *names) if name in ignored and name not in taken}
    _require_common(tables, settings)
    asked = [
        Message(f"Look at it: {name!r} is taken for a setting, but {why}.", Setting("ignore", name))
        for name in settings
        if name not in parameters and (why := perhaps_measured(name, tables, results, settings))
    ]
    return Proposal(tuple(guesses), ignored, (*asked, *_remarks(tables, guesses)), batches)


def _having(name: str, tables: Sequence[Table]) -> list[int]:
    """The tables in which the column is filled; where it is '-' throughout and numbers elsewhere, it is not."""
    own = [i for i, table in enumerate(tables) if name in table.columns and table.kind(name) != "empty"]
    return [i for i in own if not all(cell.word == MISSING for cell in tables[i].parsed(name))] or own


def _unit(name: str, tables: Sequence[Table]) -> str:
    """The unit of a column: of its name, of the name it had in the first file that tells it, or of its cells."""
    own = [table for table in tables if table.kind(name) == "number"]
    told = [split_unit(name)[1], *(t.units.get(name, "") for t in own), *(cell_unit(t, name) for t in own)]
    return next(filter(None, told), "")


def _has_result(table: Table, results: Sequence[str]) -> list[bool]:
    """Which rows have a number for any of the results."""
    known = [table.values.get(name) or table.parsed(name) for name in results if name in table.columns]
    return [any(column[row].value is not None for column in known) for row in range(len(table.rows))]


def _require_one_kind(name: str, tables: Sequence[Table]) -> None:
    """A column of texts is one in every file that has it: no numbers there, and no dates."""
    for table in tables:
        if table.kind(name) == "date":
            cells = table.cells(name)
            row = next(i for i, cell in enumerate(cells) if is_date(cell))
            raise InputError(
                Message(
                    f"{table.place(row, name)}: {cells[row]!r} is a date, which is no parameter. Leave the column out, "
                    "or make a number of it, such as the days since the first one.",
                    Setting("ignore", name),
                )
            )
    numbers = next((t for t in tables if t.kind(name) == "number"), None)
    if numbers is not None:
        word = next(t for t in tables if t.kind(name) == "text")
        row = next(i for i, cell in enumerate(word.parsed(name)) if cell.value is None and cell.word != MISSING)
        raise InputError(
            Message(
                f"{word.place(row, name)}: {word.cells(name)[row]!r} is text, but in {numbers.path} the column holds "
                "numbers. Rename one of them, or make it a category.",
                Setting("category", name),
            )
        )


def _category(name: str, columns: Sequence[NDArray[np.object_]]) -> Guess | str:
    """The parameter in this column of every file, or why it is none."""
    values = [str(value) for column in columns for value in column]
    spellings: dict[str, Counter[str]] = {}
    for value in values:
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
    """The parameter in this column of every file, or why it is none."""
    values = np.concatenate(columns)
    low, high = float(values.min()), float(values.max())
    if low == high:
        return f"it is {low:g} in every row"
    whole = bool(np.all(values == np.round(values))) and abs(low) < 2**53 and abs(high) < 2**53
    if whole and is_counter(name) and all(len(np.unique(c)) == len(c) for c in columns) and len(values) > 2:
        return "it only counts the rows"
    log = spans_log(values)
    kind = Kind.INT if whole else Kind.FLOAT
    units = {"unit": "from the column's name" if unit == split_unit(name)[1] else "from the cells"} if unit else {}
    if listed := sizes_in(name, columns, unit):
        told = f"only these {len(listed)} in {len(values)} rows; for values between write low and high instead"
        reasons = {"kind": "few values again and again, at uneven gaps: it seems to exist in sizes", "values": told}
        parameter = Parameter(name, kind, values=listed, log=even_in_ratio(listed), unit=unit)
        return Guess(parameter, reasons | units, (low, high))
    step = None if log else common_step(values.tolist())
    bottom, top = (low, high) if step else outward(low, high, log=log)
    reasons = {"kind": "whole numbers in every row" if whole else ""}
    if log:
        reasons["log"] = f"spans {math.log10(high / low):.1f} decades"
    if step:
        reasons["step"] = "all values lie on it; delete it for values between"
    reasons |= units
    if whole:
        bottom, top = (max(1.0, math.floor(bottom)) if log else math.floor(bottom)), math.ceil(top)
    reasons["low"] = f"the data: {low:g} … {high:g}" + ("" if (bottom, top) == (low, high) else ", rounded outward")
    return Guess(Parameter(name, kind, low=bottom, high=top, log=log, step=step, unit=unit), reasons, (low, high))


# A list of sizes has no more values, and each occurs so often on average
_MOST_SIZES, _OFTEN = 6, 5
_SIZES = frozenset({"radius", "size", "diameter", "batchsize"})


def sizes_in(name: str, columns: Sequence[NDArray[np.float64]], unit: str) -> tuple[float, ...]:
    """The few values that all files have again and again at uneven gaps, of something that may exist in sizes; else ().

    Only lengths, what is called a size, and whole numbers at equal ratios (16, 32, 64) exist in sizes. Temperatures,
    times or concentrations are set as one likes, however few values were tried; values at even gaps are a grid.
    """
    counts = Counter(float(value) for own in columns for value in own)
    values = tuple(sorted(counts))
    if not 3 <= len(values) <= _MOST_SIZES or counts.total() < _OFTEN * len(values) or min(counts.values()) < 2:
        return ()
    others = [Counter(map(float, own)) for own in columns]
    if len(others) > 1 and any(counts[value] == own[value] for own in others for value in own):
        return ()  # a file has a value of its own
    gaps = np.diff(values)
    if gaps.max() < 1.01 * gaps.min():
        return ()
    ratios = np.diff(np.log(values)) if values[0] > 0 else gaps
    doubling = all(value == int(value) for value in values) and ratios.max() < 1.01 * ratios.min()
    named = bool(_SIZES & {*meanings_of(name)})
    return values if quantity_of(unit) == "length" or (not unit and (doubling or named)) else ()


def _require_common(tables: Sequence[Table], names: Sequence[str]) -> None:
    """Every file needs a parameter that another one has, or it has nothing to say about them."""
    for table in tables:
        own = {name for name in names if name in table.columns}
        others = {name for other in tables if other is not table for name in names if name in other.columns}
        if len(tables) > 1 and not own & others:
            raise InputError(
                Message(
                    f"{table.path} has no parameter in common with the other files: it has "
                    f"{', '.join(map(repr, sorted(own))) or 'none'}, they have {', '.join(map(repr, sorted(others)))}. "
                    "Leave it out, or say which columns are the same.",
                    Setting("rename", "OLD=NEW"),
                )
            )


def _remarks(tables: Sequence[Table], guesses: Sequence[Guess]) -> list[str]:
    """What is worth a second look: one column under two names, one category in two spellings."""
    parameters = [g.parameter for g in guesses]
    remarks = []
    if beyond := [(g.parameter, g.run) for g in guesses if g.run not in (None, (g.parameter.low, g.parameter.high))]:
        told = "; ".join(f"{p.name} {p.low:g} … {p.high:g} (so far {r[0]:g} … {r[1]:g})" for p, r in beyond if r)
        remarks.append(f"Ranges that reach past what was ever run: {told}. Narrow them in headstart.toml if need be.")
    remarks += [
        Message(
            f"{p.name} was only ever {numbers_in_words(p.values)}: nothing else will be suggested. If values between "
            "can be set, say so.",
            Setting("parameter", f"{p.name}={p.low:g}..{p.high:g}"),
        )
        for p in parameters
        if p.values
    ]
    for i, a in enumerate(parameters):
        for b in parameters[i + 1 :]:
            together = any(a.name in t.columns and b.name in t.columns for t in tables)
            if not together and (plain(a.name) == plain(b.name) or plain(a.name).startswith(plain(b.name)[:4])):
                files = [next(t.path.name for t in tables if p.name in t.columns) for p in (a, b)]
                remarks.append(
                    Message(
                        f"{a.name!r} ({files[0]}) and {b.name!r} ({files[1]}) never occur together. If they are the "
                        "same, say so.",
                        Setting("rename", f"{b.name}={a.name}"),
                        Setting("force"),
                    )
                )
    remarks += [
        f"{table.path} has {len(table.rows)} rows; {MOST_USED} of them are used (max_rows in headstart.toml)."
        for table in tables
        if len(table.rows) > MOST_USED
    ]
    return remarks


# A positive column is on a log scale if it spans so much and its median lies in the lowest part of the range
_DECADES, _LOW_PART = 2.0, 0.2


def spans_log(values: NDArray[np.float64]) -> bool:
    """Whether values look as if chosen on a log scale: positive, over two decades, and half of them in the low fifth.

    Values that are spread evenly over 0.01 … 10 span as much, but half of them lie above the middle.
    """
    low, high = float(values.min()), float(values.max())
    if low <= 0 or math.log10(high / low) < _DECADES:
        return False
    return (float(np.median(values)) - low) / (high - low) < _LOW_PART


def outward(low: float, high: float, *, log: bool) -> tuple[float, float]:
    """The range rounded outward: to 1, 2 or 5 times a power of ten on a log scale, else by an eighth at most."""
    if log:
        powers = range(math.floor(math.log10(low)) - 1, math.floor(math.log10(high)) + 2)
        round_ones = [float(f"{digit}e{power}") for power in powers for digit in (1, 2, 5)]
        below = max(value for value in round_ones if value <= low * (1 + 1e-12))
        return below, min(value for value in round_ones if value >= high * (1 - 1e-12))
    span = high - low
    power = 10.0 ** math.floor(math.log10(span))
    step = next(s for s in (power / 10, power / 5, power / 2, power) if span / s <= 20)
    bottom, top = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    if low > 0 >= bottom:  # nobody stirs for 0 minutes
        digit = 10.0 ** math.floor(math.log10(low))
        bottom = math.floor(low / digit + 1e-9) * digit
    return float(f"{bottom:.12g}"), float(f"{top:.12g}")  # 0.3, not 0.30000000000000004


# Values that happen to lie on every k-th place do so with a chance of k^(1 − n); this must be rarer than 1 in so many
_CHANCE = 50
_MOST_DIGITS = 9


def common_step(values: Iterable[float]) -> float | None:
    """The step between all values, counted from the lowest, if they have one that is more than their last digit.

    0.1, 0.2, 0.4 have none: all numbers with one decimal lie on tenths.
    """
    exact = sorted({Fraction(f"{value:.12g}") for value in values})
    divisor = math.lcm(*(value.denominator for value in exact))
    digits = next((n for n in range(_MOST_DIGITS + 1) if 10**n % divisor == 0), None)
    if len(exact) < 3 or digits is None:
        return None
    places = [int((value - exact[0]) * 10**digits) for value in exact]
    step = math.gcd(*places)
    if step < 2 or float(step) ** (len(exact) - 1) < _CHANCE:
        return None
    return float(Fraction(step, 10**digits))
