"""The column that says which batch a row belongs to."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from headstart.errors import InputError
from headstart.sources.batch_column import batch_labels, has_days
from headstart.sources.column_guess import Proposal, propose
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


def _proposed(folder: Path, columns: dict[str, list[Any]], **options: Any) -> Proposal:
    """Of a file with two settings and a result beside the columns."""
    n = len(next(iter(columns.values())))
    every: dict[str, list[Any]] = {
        **columns,
        "T": [20 + 7 * i % 60 for i in range(n)],
        "t": [3 * i % 10 for i in range(n)],
    }
    every["y"] = [50.5 + i for i in range(n)]
    rows = zip(*every.values(), strict=True)
    path = folder / "a.csv"
    path.write_text("\n".join(",".join(map(str, row)) for row in (tuple(every), *rows)) + "\n", encoding="utf-8")
    return propose([read_table(path)], ["y"], **options)


DAYS: list[Any] = [f"2026-03-{1 + i // 4:02d}" for i in range(12)]


@pytest.mark.parametrize(
    ("name", "cells", "why"),
    [
        ("Datum", DAYS, "3 days in a.csv, 4 rows each"),
        ("started", [f"{day} 0{i % 9}:15" for i, day in enumerate(DAYS)], "3 days in a.csv, 4 rows each"),
        ("Charge", ["L7", "L7", "L7", "L8", "L8"] * 2 + ["L8", "L8"], "2 batches in a.csv, 6 rows each"),
        ("plate no", [1] * 5 + [2] * 7, "2 batches in a.csv, 5 to 7 rows each"),
        ("Bearbeiter", ["Kim", "Ole", "Ole"] * 4, "2 names in a.csv, 4 to 8 rows each"),
        ("day", [*DAYS[:1], "", "", *DAYS[3:]], "3 days in a.csv, 4 rows each"),
    ],
)
def test_a_column_of_days_lots_or_people_is_proposed(tmp_path: Path, name: str, cells: list[object], why: str) -> None:
    """With the number of its batches; it is no parameter, and not left out either."""
    proposal = _proposed(tmp_path, {name: cells})
    assert proposal.batch is not None
    assert (proposal.batch.name, proposal.batch.why) == (name, why)
    assert [g.parameter.name for g in proposal.guesses] == ["T", "t"]
    assert name not in proposal.ignored


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("Datum", [f"2026-03-{1 + i:02d}" for i in range(12)]),  # every row has its own
        ("Datum", ["2026-03-01"] * 2 + [f"2026-03-{2 + i:02d}" for i in range(10)]),  # hardly any shares its
        ("Datum", ["2026-03-01"] * 12),  # one batch
        ("Datum", [*DAYS[:4], *[""] * 8]),  # merged cells would look so too, but most rows have none
        ("Datum", ["31.02.2026", *DAYS[1:]]),  # no day of the calendar
        ("Uhrzeit", ["9:15", "14:30"] * 6),  # no day
        ("Charge [kg]", [5, 7] * 6),  # an amount
        ("note", ["ok", "again"] * 6),
        ("run", list(range(1, 13))),
    ],
)
def test_what_tells_no_batches_is_not_proposed(tmp_path: Path, name: str, cells: list[object]) -> None:
    """Files with such columns are taken as before."""
    proposal = _proposed(tmp_path, {name: cells})
    assert proposal.batch is None
    assert name in [*proposal.ignored, *(guess.parameter.name for guess in proposal.guesses)]


def test_numbers_of_settings_are_no_batches(tmp_path: Path) -> None:
    """All rows of a recipe have the same settings, so that its shift is what they do."""
    path = tmp_path / "a.csv"
    rows = [f"R{i // 3},{20 + 10 * (i // 3)},{50.5 + i}" for i in range(12)]
    path.write_text("\n".join(["recipe no,T,y", *rows]) + "\n")
    assert propose([read_table(path)], ["y"]).batch is None


def test_a_column_that_most_rows_of_all_files_lack_is_not_proposed(tmp_path: Path) -> None:
    """It would leave most of the past without batches, and new rows are to have it."""
    proposal, longer = _proposed(tmp_path, {"day": DAYS}), tmp_path / "longer.csv"
    assert proposal.batch is not None
    longer.write_text("T,t,y\n" + "".join(f"{20 + 7 * i % 60},{i % 10},{50 + i}\n" for i in range(14)))
    assert propose([read_table(tmp_path / "a.csv"), read_table(longer)], ["y"]).batch is None


def test_one_column_is_proposed_and_lots_come_before_days_and_days_before_people(tmp_path: Path) -> None:
    """What is not taken is left out as before, and a category stays a parameter."""
    names: list[Any] = ["Kim", "Ole", "Ole"] * 4
    lots: list[Any] = ["L7"] * 5 + ["L8"] * 7
    proposal = _proposed(tmp_path, {"operator": names, "day": DAYS, "lot": lots, "catalyst": lots})
    assert proposal.batch is not None
    assert proposal.batch.name == "lot"
    assert set(proposal.ignored) == {"operator", "day"}
    assert "catalyst" in [guess.parameter.name for guess in proposal.guesses]
    proposal = _proposed(tmp_path, {"operator": names, "day": DAYS})
    assert proposal.batch is not None
    assert proposal.batch.name == "day"


def test_somebody_may_say_what_the_batch_is_or_that_there_is_none(tmp_path: Path) -> None:
    """A column of any kind, which is then no parameter."""
    columns: dict[str, list[Any]] = {"day": DAYS, "catalyst": ["A", "B", "B"] * 4}
    proposal = _proposed(tmp_path, columns, batch="catalyst")
    assert proposal.batch is not None
    assert proposal.batch.why == "as told: 2 batches in a.csv, 4 to 8 rows each"
    assert [guess.parameter.name for guess in proposal.guesses] == ["T", "t"]
    assert "dates" in proposal.ignored["day"]
    proposal = _proposed(tmp_path, columns, batch=None)
    assert proposal.batch is None
    assert "dates" in proposal.ignored["day"]
    assert _proposed(tmp_path, columns, ignore=["day"]).batch is None


def test_days_of_another_name_in_another_file_are_the_same(tmp_path: Path) -> None:
    """Where no file has both."""
    tables = []
    for name in ("Datum", "day"):
        path = tmp_path / f"{name}.csv"
        rows = [f"{day},{20 + 7 * i % 60},{50.5 + i}" for i, day in enumerate(DAYS)]
        path.write_text("\n".join([f"{name},T,y", *rows]) + "\n")
        tables.append(read_table(path))
    found = propose(tables, ["y"])
    assert found.batch is not None
    assert (found.batch.name, found.batch.also) == ("Datum", {"day": "Datum"})
    assert found.batch.why == "6 days in 2 files, 4 rows each; also called 'day'"
    assert found.ignored == {}
