"""Columns that are no parameters by what is in them or what they are called: dates, people, remarks, other results."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from headstart.sources.files.cells import is_missing, number
from headstart.sources.files.tables import Table
from headstart.sources.files.unit_names import folded, split_unit

_MOSTLY = 0.5  # a column with fewer of its cells filled says too little
_DISTINCT = 0.7  # of what is measured most values differ
_FEWEST = 6

_PEOPLE = (
    r"operator\w*|user|analyst|technician|chemist|person|people|name|names|initials|who|author|scientist|worker|student"
    r"|(?:done|made|run|measured) by|bearbeiter(?:in)?|laborant(?:in)?|mitarbeiter(?:in)?|kürzel|bediener(?:in)?|durch"
)
_REMARKS = (
    r"(?:foot)?notes?|comments?|remarks?|observations?|description|bemerkung(?:en)?|kommentare?|notiz(?:en)?"
    r"|anmerkung(?:en)?|beobachtung(?:en)?|beschreibung"
    r"|file ?name|dateiname|link|eln|lab ?book|laborjournal|journal|barcode"
)
_DATES = r"date|datum|day|time ?stamp|started|finished|tag|uhrzeit|created|modified"
_RESULTS = (
    r"yield|isolated yield|purity|conversion|selectivity|ee|e\.e\.|enantiomeric excess|dr|assay|impurit(?:y|ies)"
    r"|recovery|titer|titre|od ?600|response|results?|outcome|score|loss|rmse|accuracy|area|peak area|hplc(?: area)?"
    r"|ausbeute|reinheit|umsatz|selektivität|gehalt|ergebnis(?:se)?|messwert|nebenprodukt|by-?products?|side products?"
    r"|verunreinigung(?:en)?|crude weight|isolated (?:mass|weight)|auswaage|viscosity|viskosität|hardness|härte"
    r"|tensile strength|zugfestigkeit|shrinkage|cost|costs|kosten|productivity|throughput|quality|qualität"
)
_SPREADS = r".*(?:[ _.](?:sd|std|stdev|sem|stderr|error|err|uncertainty)|standardabweichung|fehler)"


def no_parameter(name: str, tables: Sequence[Table], has: Sequence[Sequence[bool]], results: Sequence[str]) -> str:
    """Why the column is proposed to be left out, "" if it may be a parameter. ``has`` are the rows with results."""
    own = [
        (t, h) for t, h in zip(tables, has, strict=True) if name in t.columns and t.kind(name, forms=True) != "empty"
    ]
    if not own:
        return "it is empty"
    filled = [
        not is_missing(c, numeric=True) for t, h in own for c, there in zip(t.cells(name), h, strict=True) if there
    ]
    if sum(filled) < _MOSTLY * len(filled):
        return f"only {sum(filled)} of {len(filled)} rows have it"
    if any(t.kind(name, forms=True) == "date" for t, _ in own):
        return "dates are no parameters"
    words = folded(re.sub(r"[_\s]+", " ", split_unit(name)[0])).strip(" .:#")
    numeric = all(t.kind(name, forms=True) == "number" for t, _ in own)
    if re.fullmatch(_DATES, words) and (not numeric or re.fullmatch(r"date|datum|time ?stamp", words)):
        return "dates are no parameters"
    if re.fullmatch(_PEOPLE, words) and not numeric:
        return "who did it is no setting" + _if_so(name)
    if re.fullmatch(_REMARKS, words) and not numeric:
        return "remarks are no setting"
    if numeric and (re.fullmatch(_RESULTS, words) or re.fullmatch(_SPREADS, words)):
        return "by its name it is measured, not set" + _if_so(name, result=True)
    if numeric and all(_stands_behind(t, name, results) and _mostly_differs(t, name) for t, _ in own):
        return "it stands behind the result and hardly any value occurs twice, as if it was measured" + _if_so(
            name, result=True
        )
    return ""


def _if_so(name: str, *, result: bool = False) -> str:
    limit = f", a result with --limit '{name}>=VALUE'" if result else ""
    return f"; make it a parameter with --parameter '{name}'{limit}"


def _stands_behind(table: Table, name: str, results: Sequence[str]) -> bool:
    places = [table.columns.index(result) for result in results if result in table.columns]
    return bool(places) and table.columns.index(name) > max(places)


def _mostly_differs(table: Table, name: str) -> bool:
    values = [v for cell in table.cells(name) if (v := number(cell, table.mark)) is not None]
    return len(values) >= _FEWEST and len(np.unique(values)) >= _DISTINCT * len(values)
