"""Odd files as laboratories have them, with what every number in them really is."""

from __future__ import annotations

import csv
import io
import math
import unicodedata
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from xml.sax.saxutils import escape
from zipfile import ZipFile

from openpyxl import Workbook

from headstart.sources.files.cells import number_text

GARBAGE = ["warm", "see note", "5-7", "1..2", "x", "12:30", "3. Mai", "5 apples", "1,2,3", "2 x 5", "++3", "5 kg/h²"]
MISSING = ["", "n/a", "-", "k.A.", "#NV", "n.d.", "NaN", "–"]
FAILED = ["failed", "fehlgeschlagen", "Aborted"]
TITLES = ["Series B", "exported 2024-05-02", "AG Beispiel; Labor 3", "T, c and y"]
HEADERS = ["T [°C]", "time_min", "c [mol/L]", "yield [%]"]


@dataclass
class OddFile:
    """A file, and what its cells mean by row and column: a number, None for none, or "?" for what nobody can know."""

    path: Path
    truth: dict[int, dict[str, float | str | None]] = field(default_factory=dict)
    damaged: bool = False  # bytes were changed: only that nothing breaks can be asked


def write_odd_file(folder: Path, seed: int) -> OddFile:
    """A file with a random choice of oddities."""
    r = Random(seed)
    ending = r.choice(["csv"] * 6 + ["xlsx", "ods"])
    mark = r.choice([".", ","])
    delimiter = r.choice([";", "\t", "|"] if mark == "," else [",", ";", "\t", "|"])
    odd = r.choice([0.0, 0.02, 0.1, 0.3])
    titles = [[r.choice(TITLES)] for _ in range(r.choice([0, 0, 1, 2]))]
    extra = r.sample(["Notes", "Date", "Operator", "Purity [%]", "Run"], r.randrange(4))
    columns = [*HEADERS, *extra]
    r.shuffle(columns)
    found = OddFile(folder / f"odd{seed}.{ending}")
    records: list[list[str]] = [*titles, columns]
    for i in range(r.randrange(3, 20)):
        number = len(records) + 1
        row, meanings = _row(r, i, columns, odd, mark)
        records.append(row)
        found.truth[number] = meanings
        if r.random() < 0.05:
            records.append([""] * len(columns))
    if ending == "xlsx":
        found.path.write_bytes(_xlsx(records, mark, r))
    elif ending == "ods":
        found.path.write_bytes(ods_bytes(records))
    else:
        found.path.write_bytes(_csv(records, delimiter, r))
    if r.random() < 0.15:
        raw = bytearray(found.path.read_bytes())
        for _ in range(r.randrange(1, 6)):
            at = r.randrange(len(raw))
            if r.random() < 0.5:
                raw[at] = r.randrange(256)
            else:
                del raw[at:]
                raw = raw or bytearray(b"x")
        found.path.write_bytes(bytes(raw))
        found.damaged = True
    return found


def _row(
    r: Random, i: int, columns: list[str], odd: float, mark: str
) -> tuple[list[str], dict[str, float | str | None]]:
    values = {
        "T [°C]": float(r.choice(range(20, 121, 5))),
        "time_min": float(r.choice([15, 30, 60, 90, 1200, 2400])),
        "c [mol/L]": r.choice([0.05, 0.1, 1.25, 1.125]),
        "yield [%]": round(r.uniform(0, 100), r.choice([0, 1, 2])),
    }
    told = {
        "Notes": r.choice(["", "", "ok", "stirrer stopped"]),
        "Date": f"{i % 28 + 1:02d}.03.2024",
        "Operator": r.choice(["Kim", "Ole"]),
        "Purity [%]": number_text(round(r.uniform(90, 99), 1), mark),
        "Run": str(i + 1),
    }
    row, meanings = [], {}
    for column in columns:
        if column in told:
            row.append(told[column])
            continue
        text, meaning = _cell(r, values[column], column, mark) if r.random() < odd else (None, values[column])
        row.append(number_text(values[column], mark) if text is None else text)
        meanings[column] = meaning
    return row, meanings


def _cell(r: Random, value: float, column: str, mark: str) -> tuple[str, float | str | None]:
    """One oddity: what is written, and what it means."""
    plain = number_text(value, mark)
    unit, others = {
        "T [°C]": ("°C", [("K", lambda v: v + 273.15), ("°F", lambda v: v * 1.8 + 32)]),
        "time_min": ("min", [("h", lambda v: v / 60), ("s", lambda v: v * 60)]),
        "c [mol/L]": ("mol/L", [("mmol/L", lambda v: v * 1000), ("mM", lambda v: v * 1000)]),
        "yield [%]": ("%", []),
    }[column]
    kind = r.randrange(11)
    if kind == 0:
        return f"{plain} {unit}", value
    if kind == 1 and others:
        name, into = r.choice(others)
        return f"{number_text(round(into(value), 10), mark)} {name}", value
    if kind == 2:
        return r.choice(["~", "ca. ", "≈ "]) + plain, value
    if kind == 3:
        return f"< {plain}", value / 2 if value > 0 else "?"
    if kind == 4:
        return r.choice(
            [
                f"{value:,.1f}".replace(",", " ").replace(".", mark),
                f"{value:,.1f}" if mark == "." else f"{value:,.1f}".replace(",", "'").replace(".", ","),
            ]
        ), round(value, 1)
    if kind == 5:  # groups of three as the file's language has them; alone they may be read as decimals, or asked about
        other = "," if mark == "." else "."
        return f"{value:,.0f}".replace(",", other), float(f"{value:.0f}")
    if kind == 6:
        return r.choice(MISSING), None
    if kind == 7:
        return r.choice(FAILED), None if column == "yield [%]" else "?"
    if kind == 8:
        return r.choice(GARBAGE), "?"
    if kind == 9:
        return f"{plain} ± {number_text(0.5, mark)}", value
    return f"{value:e}".replace(".", mark), float(f"{value:e}")


def _csv(records: list[list[str]], delimiter: str, r: Random) -> bytes:
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, lineterminator=r.choice(["\n", "\r\n"])).writerows(records)
    text = out.getvalue()
    if r.random() < 0.1:
        text = unicodedata.normalize("NFD", text)
    encoding = r.choice(["utf-8", "utf-8-sig", "utf-16", "cp1252"])
    return text.encode(encoding, errors="replace")


def _number(text: str, mark: str) -> float | None:
    if mark == "," and "." in text:
        return None
    try:
        return float(text.replace(mark, "."))
    except ValueError:
        return None


def _xlsx(records: list[list[str]], mark: str, r: Random) -> bytes:
    book, out = Workbook(), io.BytesIO()
    sheet = book.active
    assert sheet is not None
    for i, record in enumerate(records, start=1):
        for k, text in enumerate(record, start=1):
            value = _number(text, mark)
            cell = sheet.cell(i, k)
            if value is None or not math.isfinite(value) or "_" in text:
                cell.value = text or None
            elif r.random() < 0.05:
                cell.value, cell.number_format = value / 100, "0.00%"
                record[k - 1] = "percent"
            else:
                cell.value = value
    book.save(out)
    return out.getvalue()


def ods_bytes(records: list[list[str]]) -> bytes:
    names = "".join(
        f' xmlns:{part}="urn:oasis:names:tc:opendocument:xmlns:{part}:1.0"' for part in ("office", "table", "text")
    )
    rows = "".join(
        "<table:table-row>"
        + "".join(
            f'<table:table-cell office:value-type="string"><text:p>{escape(text)}</text:p></table:table-cell>'
            for text in record
        )
        + '<table:table-cell table:number-columns-repeated="1000"/></table:table-row>'
        for record in records
    )
    sheet = (
        f'<table:table table:name="Sheet1">{rows}<table:table-row table:number-rows-repeated="1048000"/></table:table>'
    )
    out = io.BytesIO()
    with ZipFile(out, "w") as archive:
        archive.writestr(
            "content.xml",
            f"<?xml version='1.0'?><office:document-content{names}><office:body><office:spreadsheet>{sheet}"
            "</office:spreadsheet></office:body></office:document-content>",
        )
    return out.getvalue()
