"""Days as cells have them."""

from __future__ import annotations

from datetime import date

import pytest

from headstart.sources.files.dates import DayFormat, is_day

DAY = date(2026, 11, 3)


@pytest.mark.parametrize(
    "text",
    [
        *("2026-11-03", "2026-11-03 14:30", "2026-11-03T14:30:00Z", "2026/11/3", "3.11.2026", "03.11.26"),
        *("03.11.2026 14:30", "3. November 2026", "3 Nov 2026", "03-Nov-26", "Nov 3, 2026", "03/11/2026"),
    ],
)
def test_a_day_is_read_in_any_spelling(text: str) -> None:
    """With a time of day, too; where nothing shows what stands first, it is the day."""
    assert is_day(text)
    assert DayFormat.of([text]).day(text) == DAY


@pytest.mark.parametrize("text", ["14:30", "Mar-24", "3. Mai", "may 2024", "12.5", "LOT-12", "", "2026"])
def test_other_cells_are_no_days(text: str) -> None:
    """A time of day, a month or a day without its year is none."""
    assert not is_day(text)


def test_other_cells_show_whether_the_month_stands_first() -> None:
    """Those of the column, or of other files where it shows nothing itself; a point needs nobody to show it."""
    assert DayFormat.of(["11/03/2026", "11/25/2026"]).day("11/03/2026") == DAY
    assert DayFormat.of(["03/11/2026", "25/11/2026"]).day("03/11/2026") == DAY
    assert DayFormat.of(["11/03/2026"], ["11/25/2026"]).day("11/03/2026") == DAY
    assert DayFormat.of(["03.11.2026", "11/25/2026"]).day("03.11.2026") == DAY


def test_a_column_that_shows_both_orders_has_no_day_where_it_can_be_two() -> None:
    """What can only be one day is that one."""
    both = DayFormat.of(["13/11/2026", "11/13/2026", "03/11/2026"])
    assert [both.day(text) for text in ("13/11/2026", "11/13/2026")] == [date(2026, 11, 13)] * 2
    assert both.day("03/11/2026") is None


def test_a_day_that_no_order_makes_clear_is_undecided() -> None:
    """But not where both numbers are equal."""
    assert DayFormat.of(["03/11/2026"]).undecided("03/11/2026")
    assert not DayFormat.of(["03/11/2026", "25/11/2026"]).undecided("03/11/2026")
    assert not DayFormat().undecided("03.11.2026")
    assert not DayFormat().undecided("11/11/2026")


@pytest.mark.parametrize("text", ["31.02.2026", "2026-13-01", "00.01.2026"])
def test_the_calendar_has_the_last_word(text: str) -> None:
    """It looks like a day, and is none."""
    assert is_day(text)
    with pytest.raises(ValueError, match=r"month|day"):
        DayFormat().day(text)


@pytest.mark.parametrize(
    ("cells", "written"),
    [
        (["02.11.2026"], "03.11.2026"),
        (["2.11.26"], "3.11.26"),
        (["2026/11/02"], "2026/11/03"),
        (["11/25/2026"], "11/03/2026"),
        (["25/11/2026", "2/11/2026"], "3/11/2026"),
        (["01/02/2026"], "2026-11-03"),
        (["2 Nov 2026"], "2026-11-03"),
        ([], "2026-11-03"),
    ],
)
def test_a_day_is_written_as_the_column_has_days(cells: list[str], written: str) -> None:
    """As the last one in it; as 2026-11-03 where the column does not show the order, or is in words."""
    found = DayFormat.of(cells)
    assert found.text(DAY) == written
    assert found.day(written) == DAY
