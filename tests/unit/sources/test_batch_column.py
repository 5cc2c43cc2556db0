"""The column that says which batch a row belongs to."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from headstart.errors import InputError
from headstart.sources.batch_column import batch_labels, has_days
from headstart.sources.columns import TableUse, typed
from headstart.sources.files.tables import Table, read_table


def _table(folder: Path, text: str, *, name: str = "a.csv", past: bool = True) -> Table:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return typed(read_table(path), TableUse(("y",), ("x",), batch="b", past=past))


def test_days_lots_and_numbers_are_labels(tmp_path: Path) -> None:
    """Days as days, numbers as numbers only where it counts how far they lie apart."""
    days = _table(tmp_path, "b;x;y\n03.11.2026;1;2\n04.11.2026 9:30;1;2\n")
    assert batch_labels("b", days) == [date(2026, 11, 3), date(2026, 11, 4)]
    lots = _table(tmp_path, "b;x;y\n7;1;2\n12,5;1;2\n")
    assert batch_labels("b", lots) == ["7", "12,5"]
    assert batch_labels("b", lots, numbers=True) == [7.0, 12.5]


def test_an_empty_cell_is_of_the_batch_above(tmp_path: Path) -> None:
    """Also where the row above is left out for an input that is missing; results above any batch have none."""
    table = _table(tmp_path, "b,x,y\n,1,1\nA,,2\n,2,3\nn/a,3,4\nB,4,5\n")
    assert batch_labels("b", table) == [None, "A", "A", "B"]
    told = [remark for remark in table.remarks if "batch" in remark]
    assert told == [f"{tmp_path / 'a.csv'}, column 'b' (row 4: '', row 5: 'n/a') counts as the batch of the row above."]


def test_the_order_of_day_and_month_may_be_shown_by_other_files(tmp_path: Path) -> None:
    """03/11 is in March where the other file has 11/25."""
    table = _table(tmp_path, "b,x,y\n03/11/2026,1,1\n")
    other = _table(tmp_path, "b,x,y\n11/25/2026,1,1\n", name="b.csv")
    assert batch_labels("b", table, [other]) == [date(2026, 3, 11)]
    assert batch_labels("b", table) == [date(2026, 11, 3)]


def test_a_day_that_the_calendar_does_not_have_is_refused(tmp_path: Path) -> None:
    """With its row."""
    table = _table(tmp_path, "b,x,y\n31.02.2026,1,1\n")
    with pytest.raises(InputError, match=r"row 2, column 'b': '31.02.2026' is no day of the calendar. Correct it"):
        batch_labels("b", table)


def test_lots_with_numbers_like_days_are_no_days(tmp_path: Path) -> None:
    """By their name; a column of another name with such cells has days."""
    table = _table(tmp_path, "b,lot no,x,y\n12-10-23,12-10-23,1,1\n")
    assert has_days("b", [table])
    assert not has_days("lot no", [table])
