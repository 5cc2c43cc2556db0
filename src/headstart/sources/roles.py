"""What columns are for, by what they are called and what is in them: settings, what counts, and what is left out.

Left out are dates, people, remarks, numbers of lots and samples, counters, and other results. Each has its reason.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from headstart.errors import Message, Setting
from headstart.sources.files.cells import MISSING
from headstart.sources.files.names import folded, split_unit
from headstart.sources.files.tables import Table
from headstart.sources.terms import meanings_of, words_of

_MOSTLY = 0.5  # a column with fewer of its cells filled says too little
_DISTINCT = 0.7  # of what is measured most values differ
_FEWEST = 6

_NUMBERED = r"(?: ?(?:no|nr|num|number|nummer|id|code|#))?"
_COUNTER = re.compile(
    r"(?:.* )?(?:run|no|nr|num|number|nummer|id|index|exp|experiment|trial|row|sample|specimen|device|entry|probe|seed"
    rf"|versuch|ansatz){_NUMBERED}|#"
)
_LOT = re.compile(
    rf"(?!.*\bper\b)(?:.* )?(?:lot|lots|charge|batch|schmelze|spool|barcode|serial){_NUMBERED}"
    r"|\w+ (?:no|nr|number|nummer|id|code)|\w+nummer|\w+nr"
)
_WHOLE_LOT = re.compile(
    r"(?:.* )?(?:lot|lots|charge|batch|schmelze|spool|plate|platte|instrument|gerät|machine|maschine|anlage|reactor"
    rf"|reaktor){_NUMBERED}"
)
_PEOPLE = re.compile(
    r"operator\w*|user|analyst|(?:lab )?tech(?:nician)?|\w*meister(?:in)?|shift|chemist|person|people|name|names"
    r"|initials|who|author|scientist|worker|student"
    r"|\w+ by|bearbeiter(?:in)?|laborant(?:in)?|mitarbeiter(?:in)?|kürzel|bediener(?:in)?|durch"
)
_REMARKS = re.compile(
    r"(?:foot)?notes?|comments?|remarks?|obs|observations?|description|bemerkung(?:en)?|kommentare?|notiz(?:en)?"
    r"|anmerkung(?:en)?|beobachtung(?:en)?|beschreibung"
    r"|file ?name|dateiname|link|eln|lab ?book|laborjournal|journal"
)
_DATES = re.compile(r"date|datum|day|time ?stamp|started|finished|tag|uhrzeit|created|modified")
_ONLY_DATES = re.compile(r"date|datum|time ?stamp")
_SPREADS = re.compile(r".*(?:[ .](?:sd|std|stdev|sem|stderr|error|err|uncertainty)|standardabweichung|fehler)")
# What is measured, the likeliest to count first; + where high is good, - where low is, ? where nobody can know. The
# words of the first group make a result of any name in which they are, those of the second alone
_MEASURED = (
    ("+", r"yield|ausbeute", ""), ("+", r"titer|titre", ""),
    ("-", r"(?:val|valid|validation|test) (?:loss|error|rmse|mae)", ""),
    ("+", r"(?:val|valid|validation|test) (?:acc|accuracy|auc|f1|score)", ""), ("+", r"conversion|umsatz", "conv"),
    ("+", r"efficiency|wirkungsgrad|effizienz", "pce"),
    ("+", r"uts|(?:tensile|adhesion|bond|peel|shear|zug|haft|biege)(?: strength| festigkeit)|haftung", ""),
    ("+", r"retention|erhalt|life ?time|lebensdauer|standzeit|stability|stabilität", ""),
    ("+", r"strength|festigkeit", ""), ("-", r"burr|grat", ""),
    ("-", r"roughness|rauheit|rauigkeit|rautiefe", r"ra|rz"), ("+", r"hardness|härte", r"hv|hrc"),
    ("+", r"enantiomeric excess", r"ee|dr"), ("+", r"selectivity|selektivität", ""), ("+", r"purity|reinheit", "assay"),
    ("+", r"recovery|productivity|throughput|viability", r"activity|aktivität"), ("+", r"accuracy", r"acc|auc|f1|r2"),
    ("-", r"rmse", r"loss|mse|mae|nll|perplexity"), ("+", r"score|punkte|bewertung|rating", ""),
    # from here on what others are measured beside
    ("-", r"impurit(?:y|ies)|verunreinigung(?:en)?|by ?products?|side products?|nebenprodukte?", r"waste"),
    ("-", r"train(?:ing)? (?:loss|error|rmse)", ""), ("+", r"train(?:ing)? (?:acc|accuracy)", ""),
    ("-", r"wear|verschleiß|distortion|verzug|shrinkage|schwindung|warpage|porosity|porosität|defects?|scrap|ausschuss"
     r"|corrosion rate", ""),
    ("-", r"costs?|kosten", r"price|preis"),
    ("-", r"cycle time|elapsed time|runtime|laufzeit|taktzeit", r"(?:run|wall|lead) ?time"),
    ("+", r"quality|qualität|fastness|echtheit|elongation|bruchdehnung|conductivity|leitfähigkeit", ""),
    ("?", r"outcome|od ?600|isolated (?:mass|weight)|(?:mass|weight) isolated|viscosity|viskosität|gloss|glanz"
     r"|d ?(?:10|50|90)|polydispersity|contact angle|kontaktwinkel",
     r"response|results?|ergebnis(?:se)?|messwert|area|peak area|hplc(?: area)?|gehalt|crude weight|auswaage|z average"
     r"|pdi|haze"),
)  # fmt: skip
_BESIDE = next(i for i, (_, words, _alone) in enumerate(_MEASURED) if words.startswith("impurit"))
_ALONE = tuple(re.compile("|".join(filter(None, patterns))) for _, *patterns in _MEASURED)
_AMONG_OTHERS = tuple(re.compile(rf".*\b(?:{words})\b.*") for _, words, _alone in _MEASURED)
_WANTED = re.compile(r".*\b(?:target|ziel|soll|nominal|initial|start|feed|inlet|input|weight|smoothing)\b.*")
# What settings are called by, as ``meanings_of`` gives it
_SET = frozenset(
    {"temperature", "time", "concentration", "pressure", "loading", "equivalents", "ratio", "flow", "rotation", "speed"}
    | {"feed", "cutdepth", "radius", "thickness", "share", "current", "voltage", "power", "volume", "weight", "dose"}
    | {"humidity", "ph", "rate", "gap", "distance"}
)
_ANY_RESULT = re.compile(r"y|target|objective")  # what counts if nothing else does, but a setting may be called so
_LOSS_OR_TIME = re.compile(r".*\b(?:loss|error|cost|costs|time|runtime|zeit|dauer|kosten|fehler)\b.*")


def spelled_out(column: str) -> str:
    """The words of a name without its unit, small, with spaces between."""
    return " ".join(words_of(column)) or folded(split_unit(column)[0]).strip(" .:")


def is_counter(column: str) -> bool:
    """Whether a column is called as those are that count rows; what has a unit counts none."""
    return not split_unit(column)[1] and _COUNTER.fullmatch(spelled_out(column).lower()) is not None


def is_lot(column: str) -> bool:
    """Whether a column is called as those are that tell one lot, or one sample, from another."""
    return _LOT.fullmatch(spelled_out(column).lower()) is not None


def batch_rank(column: str, *, days: bool) -> tuple[int, str] | None:
    """How likely a column that is no setting tells batches by its name, 0 most of all, and what they are; or None."""
    words = spelled_out(column).lower()
    if split_unit(column)[1]:
        return None
    known = (is_lot(column) and _WHOLE_LOT.fullmatch(words), days, _PEOPLE.fullmatch(words), is_lot(column))
    what = ("batch", "day", "name", "batch")
    return next(((rank, what[rank]) for rank, found in enumerate(known) if found), None)


def called_a_date(column: str) -> bool:
    """Whether a column is called as those are that hold dates or times."""
    return _DATES.fullmatch(spelled_out(column).lower()) is not None


def _counts(column: str, tables: Sequence[Table]) -> bool:
    """Whether all cells of a column are whole numbers and none is there twice in a file."""
    found = [[cell.value for cell in table.parsed(column) if cell.word != MISSING] for table in tables]
    return all(None not in own and len(set(own)) == len(own) and all(v == int(v) for v in own if v) for own in found)


def _in_order(column: str, tables: Sequence[Table]) -> bool:
    """Whether a column that is called as no setting and has no unit counts the rows of every file up, one by one."""
    found = [[cell.value for cell in table.parsed(column) if cell.word != MISSING] for table in tables]
    values = [[value for value in own if value is not None and value == int(value)] for own in found]
    steps = {b - a for own in values for a, b in pairwise(own)}
    named = split_unit(column)[1] or _called_as_a_setting(column)
    return (
        not named
        and steps == {1.0}
        and all(_FEWEST <= len(n) == len(own) for n, own in zip(values, found, strict=True))
    )


def measured_rank(column: str) -> tuple[int, str] | None:
    """How likely a column counts by its name, 0 most of all, and which way ("+", "-", "?"); None if it is no result."""
    words = spelled_out(column).lower()
    return next(((rank, _MEASURED[rank][0]) for rank, pattern in enumerate(_ALONE) if pattern.fullmatch(words)), None)


def _rank(column: str, tables: Sequence[Table]) -> tuple[int, str] | None:
    """As ``measured_rank``, and of names that only contain such a word, where hardly any value occurs twice."""
    if (found := measured_rank(column)) is not None:
        return found
    words = spelled_out(column).lower()
    if _WANTED.fullmatch(words) or not _differ(column, tables):
        return None
    return next(((i, _MEASURED[i][0]) for i, pattern in enumerate(_AMONG_OTHERS) if pattern.fullmatch(words)), None)


def _differ(column: str, tables: Sequence[Table]) -> bool:
    own = _with(column, tables)
    return bool(own) and all(differing(table, column) >= _DISTINCT for table in own)


def _called_as_a_setting(column: str) -> bool:
    return not _SET.isdisjoint(meanings_of(column))


def no_setting(name: str, tables: Sequence[Table]) -> str:
    """Why a column is no setting, whatever counts: a date, somebody, a remark, a lot; "" if it may be one."""
    own = [t for t in tables if name in t.columns and t.kind(name) != "empty"]
    if not own:
        return "it is empty"
    if any(t.kind(name) == "date" for t in own):
        return "dates are no parameters"
    words = spelled_out(name).lower()
    numeric = all(t.kind(name) == "number" for t in own)
    if called_a_date(name) and (not numeric or _ONLY_DATES.fullmatch(words)):
        return "dates are no parameters"
    if _PEOPLE.fullmatch(words) and not numeric:
        return Message("who did it is no setting", Setting("parameter", name))
    if _REMARKS.fullmatch(words) and not numeric:
        return "remarks are no setting"
    if is_lot(name) and not (numeric and is_counter(name) and _counts(name, own)):
        return Message("it looks like the number of a lot", Setting("parameter", name), Setting("category", name))
    if numeric and _in_order(name, own):
        return Message("it only counts the rows", Setting("parameter", name))
    return ""


def no_parameter(name: str, tables: Sequence[Table], has: Sequence[Sequence[bool]], results: Sequence[str]) -> str:
    """Why the column is proposed to be left out, "" if it may be a parameter. ``has`` are the rows with results."""
    if why := no_setting(name, tables):
        return why
    own = [(t, h) for t, h in zip(tables, has, strict=True) if name in t.columns and t.kind(name) != "empty"]
    filled = [cell.word != MISSING for t, h in own for cell, there in zip(t.parsed(name), h, strict=True) if there]
    if sum(filled) < _MOSTLY * len(filled):
        return f"only {sum(filled)} of {len(filled)} rows have it"
    if not all(t.kind(name) == "number" for t, _ in own):
        return ""
    otherwise = Setting("parameter", name), Setting("limit", f"{name}>=VALUE")
    if _rank(name, [t for t, _ in own]) is not None or _SPREADS.fullmatch(spelled_out(name).lower()):
        return Message("by its name it is measured, not set", *otherwise)
    if all(_looks_measured(table, name, results) for table, _ in own):
        behind = "it stands behind the result and hardly any value occurs twice, as if it was measured"
        return Message(behind, *otherwise)
    return ""


def perhaps_measured(name: str, tables: Sequence[Table], results: Sequence[str], settings: Sequence[str]) -> str:
    """Why a column that is taken for a setting may be a result, "" if nothing says so.

    It stands beside the result, or beside others of which that is said; hardly any of its values occurs twice, and
    most of the other settings' do.
    """
    others = [
        own for own in settings if own != name and all(t.kind(own) in ("number", "empty") for t in _with(own, tables))
    ]
    repeat = sum(not _differ(own, _with(own, tables)) for own in others)
    own = _with(name, tables)
    if 2 * repeat <= len(others) or _called_as_a_setting(name) or not _differ(name, tables):
        return ""
    for table in own:
        places = [table.columns.index(result) for result in results if result in table.columns]
        if not places:
            return ""
        near = min(places, key=lambda place: abs(place - table.columns.index(name)))
        ends = sorted((near, table.columns.index(name)))
        if any(
            not _differ(c, [table]) or (c in settings and _called_as_a_setting(c))
            for c in table.columns[ends[0] : ends[1] + 1]
        ):
            return ""
    return "hardly any value occurs twice, as in what is measured, where other settings repeat"


def _with(name: str, tables: Sequence[Table]) -> list[Table]:
    """The tables in which a column is filled."""
    return [table for table in tables if name in table.columns and table.kind(name) != "empty"]


def _looks_measured(table: Table, name: str, results: Sequence[str]) -> bool:
    """Whether it stands behind all results, which are not the first columns of the table, and its values differ."""
    places = [table.columns.index(result) for result in results if result in table.columns]
    behind = bool(places) and 2 * max(places) >= len(table.columns) - 1 and table.columns.index(name) > max(places)
    return behind and differing(table, name) >= _DISTINCT


def differing(table: Table, name: str) -> float:
    """The share of a column's numbers that occur once; 0 where there are few."""
    values = [cell.value for cell in table.parsed(name) if cell.plain and cell.value is not None]
    return len(np.unique(values)) / len(values) if len(values) >= _FEWEST else 0.0


@dataclass(frozen=True, slots=True)
class Counting:
    """The column that is proposed to count, which way (None: nobody can know), and why; ``sure`` by its name."""

    name: str
    maximize: bool | None
    why: str
    sure: bool


def what_counts(tables: Sequence[Table], no: Collection[str] = ()) -> Counting | None:
    """The result of files in which columns have one name each: by its name, else the one that looks most measured.

    ``no`` are columns that somebody says are something else.
    """
    names = list(dict.fromkeys(c for t in tables for c in t.columns))
    numbers = [n for n in names if all(t.kind(n) in ("number", "empty") for t in tables if n in t.columns)]
    numbers = [n for n in numbers if n not in no and not no_setting(n, tables) and not is_counter(n)]
    if not numbers:
        return None
    in_files = {n: sum(n in t.columns for t in tables) for n in numbers}
    everywhere = [n for n in numbers if in_files[n] == max(in_files.values())]
    if ranked := {n: found for n in everywhere if (found := _rank(n, tables))}:
        name = min(ranked, key=lambda n: ranked[n][0])
        rank, way = ranked[name]
        why = "by its name" + (f", before {', '.join(n for n in ranked if n != name)}" if len(ranked) > 1 else "")
        last = max(everywhere, key=lambda n: [t.columns.index(n) for t in tables if n in t.columns])
        if rank < _BESIDE or not _behind(last, name, tables):
            return Counting(name, {"+": True, "-": False}.get(way), why, way != "?")
        return Counting(last, None, f"it stands behind {name!r}, and hardly any value occurs twice", False)
    everywhere = [n for n in everywhere if _ANY_RESULT.fullmatch(spelled_out(n))] or everywhere
    name = max(everywhere, key=lambda n: min(_measured_so_far(t, n) for t in tables if n in t.columns))
    low = _LOSS_OR_TIME.fullmatch(spelled_out(name).lower()) is not None
    return Counting(name, False if low else None, "its values hardly occur twice, as if it was measured", False)


def _behind(last: str, name: str, tables: Sequence[Table]) -> bool:
    """Whether a column looks measured and stands behind another one, which is none of the first, in every file."""
    both = [table for table in tables if last in table.columns and name in table.columns]
    places = [(t.columns.index(name), t.columns.index(last), len(t.columns)) for t in both]
    behind = bool(both) and all(2 * place >= n and place < end for place, end, n in places)
    return behind and measured_rank(last) is None and not _called_as_a_setting(last) and _differ(last, tables)


def _measured_so_far(table: Table, name: str) -> tuple[bool, float]:
    """How far a column looks like the result of its file: values that differ, and one of the last places."""
    return differing(table, name) >= _DISTINCT, table.columns.index(name) / len(table.columns)


def result_of(table: Table) -> str:
    """The column of one file that looks most like its result, "" if none does."""
    numbers = [n for n in table.columns if table.kind(n) == "number"]
    numbers = [n for n in numbers if not no_setting(n, [table]) and not is_counter(n)]
    ranked = [(found[0], n) for n in numbers if (found := _rank(n, [table]))]
    likely = max(numbers, key=lambda n: _measured_so_far(table, n), default="")
    return min(ranked)[1] if ranked else likely if likely and _measured_so_far(table, likely)[0] else ""
