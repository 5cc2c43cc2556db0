"""What columns are for, by what they are called and what is in them: settings, what counts, and what is left out.

Left out are dates, people, remarks, numbers of lots and samples, counters, and other results. Each has its reason.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from headstart.errors import Message, Setting
from headstart.sources.files.cells import MISSING
from headstart.sources.files.names import folded, split_unit
from headstart.sources.files.tables import Table
from headstart.sources.terms import words_of

_MOSTLY = 0.5  # a column with fewer of its cells filled says too little
_DISTINCT = 0.7  # of what is measured most values differ
_FEWEST = 6

_NUMBERED = r"(?: ?(?:no|nr|num|number|nummer|id|code|#))?"
_COUNTER = re.compile(
    r"(?:.* )?(?:run|no|nr|num|number|nummer|id|index|exp|experiment|trial|row|sample|specimen|device|entry|probe|seed"
    rf"|versuch|ansatz){_NUMBERED}|#"
)
_LOT = re.compile(
    rf"(?:.* )?(?:lot|lots|charge|batch|schmelze|spool|barcode|serial){_NUMBERED}"
    r"|\w+ (?:no|nr|number|nummer|id|code)|\w+nummer|\w+nr"
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
# What is measured, the likeliest to count first; + where high is good, - where low is, ? where nobody can know
_MEASURED = (
    ("+", r"yield|ausbeute"), ("+", r"titer|titre"), ("-", r"(?:val|valid|validation|test) (?:loss|error|rmse|mae)"),
    ("+", r"(?:val|valid|validation|test) (?:acc|accuracy|auc|f1|score)"), ("+", r"conversion|conv|umsatz"),
    ("+", r"pce|efficiency|wirkungsgrad|effizienz"), ("+", r"uts|(?:tensile|adhesion|bond|peel|shear|zug|haft|biege)"
     r"(?: strength| festigkeit)|haftung"), ("-", r"(?:surface )?roughness(?: ra)?|ra|rz|rauheit|rauigkeit|rautiefe"),
    ("+", r"hardness|härte|hv|hrc"), ("+", r"ee|enantiomeric excess|dr"), ("+", r"selectivity|selektivität"),
    ("+", r"purity|reinheit|assay"), ("+", r"recovery|productivity|throughput|activity|aktivität"),
    ("+", r"accuracy|acc|auc|f1|r2"), ("-", r"loss|rmse|mse|mae|nll|perplexity"),
    ("+", r"score|punkte|bewertung|rating"),
    ("-", r"impurit(?:y|ies)|verunreinigung(?:en)?|by ?products?|side products?|nebenprodukt|waste"),
    ("-", r"train(?:ing)? (?:loss|error|rmse)"), ("+", r"train(?:ing)? (?:acc|accuracy)"),
    ("-", r"(?:tool )?wear|verschleiß|distortion|verzug|shrinkage|warpage|porosity|porosität|defects?|scrap|ausschuss"),
    ("-", r"costs?|kosten"), ("-", r"(?:cycle|run|wall|elapsed|lead) ?time|runtime|laufzeit|taktzeit"),
    ("+", r"strength|festigkeit|quality|qualität"), ("?", r"response|results?|outcome|ergebnis(?:se)?|messwert"
     r"|od ?600|area|peak area|hplc(?: area)?|gehalt|crude weight|isolated (?:mass|weight)|auswaage"
     r"|viscosity|viskosität|gloss|glanz"),
)  # fmt: skip
_RANKED = tuple((way, re.compile(pattern)) for way, pattern in _MEASURED)
# By their last words, too: current efficiency, product titer; none that a setting may be called by
_ENDS = re.compile(
    r".* (yield|ausbeute|titer|titre|efficiency|wirkungsgrad|roughness(?: ra)?|conversion|umsatz|od600|score|rating)"
)
_ANY_RESULT = re.compile(r"y|target|objective")  # what counts if nothing else does, but a setting may be called so
_LOSS_OR_TIME = re.compile(r".*\b(?:loss|error|cost|costs|time|runtime|zeit|dauer|kosten|fehler)\b.*")


def spelled_out(column: str) -> str:
    """The words of a name without its unit, small, with spaces between."""
    return " ".join(words_of(column)) or folded(split_unit(column)[0]).strip(" .:")


def is_counter(column: str) -> bool:
    """Whether a column is called as those are that count rows."""
    return _COUNTER.fullmatch(spelled_out(column).lower()) is not None


def is_lot(column: str) -> bool:
    """Whether a column is called as those are that tell one lot, or one sample, from another."""
    return _LOT.fullmatch(spelled_out(column).lower()) is not None


def _counts(column: str, tables: Sequence[Table]) -> bool:
    """Whether all cells of a column are whole numbers and none is there twice in a file."""
    found = [[cell.value for cell in table.parsed(column) if cell.word != MISSING] for table in tables]
    return all(None not in own and len(set(own)) == len(own) and all(v == int(v) for v in own if v) for own in found)


def measured_rank(column: str) -> tuple[int, str] | None:
    """How likely a column counts by its name, 0 most of all, and which way ("+", "-", "?"); None if it is no result."""
    words = spelled_out(column).lower()
    end = _ENDS.fullmatch(words)
    for rank, (way, pattern) in enumerate(_RANKED):
        if pattern.fullmatch(words) or (end is not None and pattern.fullmatch(end[1])):
            return rank, way
    return None


def no_setting(name: str, tables: Sequence[Table]) -> str:
    """Why a column is no setting, whatever counts: a date, somebody, a remark, a lot; "" if it may be one."""
    own = [t for t in tables if name in t.columns and t.kind(name) != "empty"]
    if not own:
        return "it is empty"
    if any(t.kind(name) == "date" for t in own):
        return "dates are no parameters"
    words = spelled_out(name).lower()
    numeric = all(t.kind(name) == "number" for t in own)
    if _DATES.fullmatch(words) and (not numeric or _ONLY_DATES.fullmatch(words)):
        return "dates are no parameters"
    if _PEOPLE.fullmatch(words) and not numeric:
        return Message("who did it is no setting", Setting("parameter", name))
    if _REMARKS.fullmatch(words) and not numeric:
        return "remarks are no setting"
    if is_lot(name) and not (numeric and is_counter(name) and _counts(name, own)):
        return Message("it looks like the number of a lot", Setting("parameter", name), Setting("category", name))
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
    if measured_rank(name) is not None or _SPREADS.fullmatch(spelled_out(name).lower()):
        return Message("by its name it is measured, not set", *otherwise)
    if all(_looks_measured(table, name, results) for table, _ in own):
        behind = "it stands behind the result and hardly any value occurs twice, as if it was measured"
        return Message(behind, *otherwise)
    return ""


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
    if ranked := {n: found for n in everywhere if (found := measured_rank(n))}:
        name = min(ranked, key=lambda n: ranked[n][0])
        way = ranked[name][1]
        why = "by its name" + (f", before {', '.join(n for n in ranked if n != name)}" if len(ranked) > 1 else "")
        return Counting(name, {"+": True, "-": False}.get(way), why, way != "?")
    everywhere = [n for n in everywhere if _ANY_RESULT.fullmatch(spelled_out(n))] or everywhere
    name = max(everywhere, key=lambda n: min(_measured_so_far(t, n) for t in tables if n in t.columns))
    low = _LOSS_OR_TIME.fullmatch(spelled_out(name).lower()) is not None
    return Counting(name, False if low else None, "its values hardly occur twice, as if it was measured", False)


def _measured_so_far(table: Table, name: str) -> tuple[bool, float]:
    """How far a column looks like the result of its file: values that differ, and one of the last places."""
    return differing(table, name) >= _DISTINCT, table.columns.index(name) / len(table.columns)


def result_of(table: Table) -> str:
    """The column of one file that looks most like its result, "" if none does."""
    numbers = [n for n in table.columns if table.kind(n) == "number"]
    numbers = [n for n in numbers if not no_setting(n, [table]) and not is_counter(n)]
    ranked = [(found[0], n) for n in numbers if (found := measured_rank(n))]
    likely = max(numbers, key=lambda n: _measured_so_far(table, n), default="")
    return min(ranked)[1] if ranked else likely if likely and _measured_so_far(table, likely)[0] else ""
