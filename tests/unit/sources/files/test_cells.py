"""Cells of spreadsheets: numbers in either convention, dates, and nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headstart.sources.files.cells import (
    decimal_mark,
    is_ambiguous,
    is_date,
    is_failure,
    is_missing,
    number,
    number_text,
)


@pytest.mark.parametrize(
    ("text", "mark", "value"),
    [
        ("12.5", ".", 12.5),
        ("12,5", ",", 12.5),
        ("12,5", ".", 12.5),  # it can only be a decimal comma
        ("12.5", ",", 12.5),
        (" 7 ", ".", 7.0),
        ("+1e-3", ".", 0.001),
        ("1,5E+03", ",", 1500.0),
        ("\u22124", ".", -4.0),  # a typographic minus
        (".5", ".", 0.5),
        ("5.", ".", 5.0),
        ("1.234", ".", 1.234),
        ("1,234", ",", 1.234),
        ("0,123", ".", 0.123),  # no group of three begins with 0
        ("1.234,5", ".", 1234.5),
        ("1,234.5", ",", 1234.5),
        ("1.234.567", ",", 1234567.0),
        ("1 234,5", ",", 1234.5),
        ("1\u202f234", ".", 1234.0),
        ("12'345.6", ".", 12345.6),
    ],
)
def test_a_number_is_read_in_either_convention(text: str, mark: str, value: float) -> None:
    """Whatever the file's decimal mark is, a cell that can only mean one number means that number."""
    assert number(text, mark) == value


@pytest.mark.parametrize(
    "text", ["", "n/a", "12 °C", "50%", "<0.1", "1,2,3", "1.2.3", "inf", "nan", "1e999", "--5", "1_000"]
)
def test_what_is_not_a_number_is_none(text: str) -> None:
    """Units, signs of comparison, infinities and Python's own spellings are not numbers in a spreadsheet."""
    assert number(text) is None


def test_a_number_that_could_be_two_is_none() -> None:
    """'1,234' with decimal points around it, and '1.234' with decimal commas, are left to the user."""
    for text, mark in (("1,234", "."), ("1.234", ","), ("-12.500", ",")):
        assert is_ambiguous(text, mark)
        assert number(text, mark) is None
    assert not is_ambiguous("1234", ".")
    assert not is_ambiguous("0,500", ".")


@pytest.mark.parametrize(
    "text",
    [
        "2024-03-01",
        "2024-03-01 12:30",
        "2024-03-01T12:30:00Z",
        "1.3.2024",
        "01/03/24",
        "12:30",
        "9:05 pm",
        "3. Mai",
        "Mar-24",
        "3 March 2024",
        "12-Okt",
        "Sep 5, 2024",
    ],
)
def test_dates_are_recognised(text: str) -> None:
    """In the spellings that spreadsheet programs write, also when they made a date of a number."""
    assert is_date(text)
    assert number(text) is None


@pytest.mark.parametrize("text", ["12.5", "1.234.567", "DMF", "may", "12-3", "marble 3", "2024"])
def test_other_cells_are_no_dates(text: str) -> None:
    """Numbers and names are none."""
    assert not is_date(text)


def test_missing_cells_depend_on_the_column() -> None:
    """'none' and '-' are missing numbers, but they may name a category."""
    assert is_missing("", numeric=False)
    assert is_missing("N/A", numeric=False)
    assert is_missing("-", numeric=True)
    assert not is_missing("none", numeric=False)
    assert not is_missing("0", numeric=True)


def test_a_failed_result_is_not_an_awaited_one() -> None:
    """'n/a' and 'failed' are for good; an empty cell is still to be filled in."""
    assert is_failure("n/a")
    assert is_failure("Failed")
    assert not is_failure("")
    assert not is_failure("12")


@pytest.mark.parametrize(
    ("cells", "delimiter", "mark"),
    [
        (["12,5", "3"], ";", ","),
        (["12.5", "3"], ";", "."),
        (["1,234"], ";", ","),  # semicolons are written where the comma is the decimal mark
        (["1,234"], "\t", None),
        (["1.234"], ",", "."),
        (["1,234", "0.5"], ",", "."),
        (["1.234,5"], ";", ","),
        (["12", "DMF", ""], ";", None),
    ],
)
def test_the_decimal_mark_of_a_file(cells: list[str], delimiter: str, mark: str | None) -> None:
    """Cells that can only be read in one way decide; without any the delimiter does, or nobody."""
    assert decimal_mark(cells, delimiter) == mark


@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from([".", ","]))
def test_a_written_number_is_read_again(value: float, mark: str) -> None:
    """``number`` undoes ``number_text`` exactly, in either convention."""
    assert number(number_text(value, mark), mark) == value


def test_whole_numbers_are_written_without_a_decimal_mark() -> None:
    """5, not 5.0; and no thousands separator that could be taken for a decimal mark."""
    assert number_text(5.0, ",") == "5"
    assert number_text(12345.5, ",") == "12345,5"
