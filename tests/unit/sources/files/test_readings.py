"""Cells that hold more than a number: every form of the page on files has the meaning that it says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from headstart.sources.files.cells import CellReading, CellRules, in_unit, parse_cell, wrong_meaning

PAGE = (Path(__file__).parents[4] / "docs" / "files.md").read_text(encoding="utf-8")
RULES = CellRules()


def _unit(text: str, mark: str = ".") -> str:
    return parse_cell(text, mark, RULES).unit


def _read(text: str, mark: str | None = ".", unit: str = "", told: dict[str, Any] | None = None) -> CellReading:
    return in_unit(parse_cell(text, mark, CellRules.of(told) if told else RULES), unit, unit)


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("60 °C", "°C", 60.0),
        ("60°C", "°C", 60.0),
        ("60 ℃", "°C", 60.0),
        ("333.15 K", "°C", 60.0),
        ("140 °F", "°C", 60.0),
        ("1.5 h", "min", 90.0),
        ("2 Std", "min", 120.0),
        ("8.5 %", "%", 8.5),
        ("8,5%", "%", 8.5),
        ("50 mM", "mol/L", 0.05),
        ("1 200 rpm", "rpm", 1200.0),
        ("~5", "", 5.0),
        ("ca. 5", "", 5.0),
        ("≈ 60 °C", "°C", 60.0),
        ("<0.1", "", 0.05),
        ("≤ 0.1 %", "%", 0.05),
        (">100", "", 100.0),
        ("5 ± 0.2", "", 5.0),
        ("5.1 ± 0.2 g", "mg", 5100.0),
        ("–5 °C", "°C", -5.0),
    ],
)
def test_forms_are_numbers_and_it_is_said_how(text: str, unit: str, value: float) -> None:
    """In the column's unit, with a sentence for the user."""
    reading = _read(text, unit=unit)
    assert reading.value == pytest.approx(value, rel=1e-12)
    assert reading.how
    assert not reading.problem


@pytest.mark.parametrize(
    ("text", "mark", "unit", "problem"),
    [
        ("5 g", ".", "%", "a value in g cannot be converted to %"),
        ("5 m", ".", "min", "a value in m cannot be converted to min"),
        ("5 mm", ".", "mmol/L", "a value in mm cannot be converted to mmol/L"),
        ("5 apples", ".", "", "'5 apples' is not a number"),
        ("5-7", ".", "", "'5-7' is a range"),
        ("5 to 7 °C", ".", "°C", "is a range"),
        ("<0", ".", "", "below a limit that is not above 0"),
        ("1.200", None, "", "'1.200' can be read as 1200 or as 1.200, and nothing else in the file shows"),
        ("~1.200", None, "", "can be read as"),
        ("1.200 rpm", None, "rpm", "can be read as"),
        ("1,200", ".", "", "can be read as 1200 or as 1.200. Decimals in this file have a point"),
        ("3. Mai", ".", "", "is a date"),
        ("=A1*2", ".", "", "is a formula whose value the workbook does not have"),
    ],
)
def test_what_nobody_knows_is_a_problem(text: str, mark: str | None, unit: str, problem: str) -> None:
    """Never a number."""
    reading = _read(text, mark, unit)
    assert reading.value is None
    assert problem in reading.problem


def test_plain_numbers_need_no_words() -> None:
    """Nor do missing ones."""
    assert _read("1 200") == CellReading(1200.0)
    assert _read("1.200,5", ",") == CellReading(1200.5)
    assert _read("k.A.") == _read("#NV") == _read("-") == _read("n/a") == CellReading(word="missing")
    assert _read("fehlgeschlagen") == _read("Failed") == CellReading(word="failed")


def test_cells_mean_what_somebody_says() -> None:
    """Whatever their form, their case, and the usual meaning."""
    assert _read("N.D.", told={"n.d.": "failed"}).word == "failed"
    assert _read("<0.1", told={"<0.1": 0.1}).value == 0.1
    assert _read("8840", told={"8840": 88.4}).value == 88.4
    assert _read("1.200", None, told={"decimal_mark": ","}).value == 1200.0
    assert _read("1.200", None, told={"decimal_mark": "."}).value == 1.2
    assert _read("1.200 rpm", None, unit="rpm", told={"decimal_mark": ","}).value == 1200.0
    assert "[cells]" in _read("8840", told={"8840": 88.4}).how


@pytest.mark.parametrize(
    ("text", "meaning"), [("n.d.", "gone"), ("x", True), ("x", float("inf")), ("decimal_mark", ";"), ("x", [1])]
)
def test_a_meaning_that_is_none(text: str, meaning: object) -> None:
    """It is refused with what there is."""
    assert repr(meaning) in wrong_meaning(text, meaning)


def test_units_in_cells() -> None:
    """As they are called in the table of units."""
    assert [_unit(text) for text in ("60 °C", "~5 Min.", "5", "DMF", "5 apples")] == ["°C", "min", "", "", ""]


def test_the_page_says_what_cells_mean() -> None:
    """Every row of its table of forms is true."""
    rows = re.findall(r"^\| (`.+?`) \| ([^|]+?) \|[^|]*\|$", PAGE, flags=re.MULTILINE)
    assert len(rows) >= 12
    for cells, meaning in rows:
        for text in re.findall(r"`([^`]+)`", cells):
            reading = _read(
                text, ",", {"°C": "°C", "%": "%"}.get(_unit(text, ","), "°C" if _unit(text, ",") == "K" else "")
            )
            told = "?" if reading.problem else reading.word or f"{reading.value:g}"
            assert told in [part.strip() for part in meaning.split(",")], (text, meaning, reading)
