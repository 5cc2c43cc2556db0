"""A campaign folder: what its rows are, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.unit.campaign.campaigns import fingerprint, make

from headstart import InputError
from headstart.campaign.campaign import append_experiments, open_campaign, repeat_spread, require_closed
from headstart.campaign.experiments import State


def test_rows_are_finished_pending_or_failed(tmp_path: Path) -> None:
    """By their result; rows of remarks and empty ones are none, and foreign columns do not matter."""
    current = "note,s,y,x\n,u,5.5,0.2\n,u,,0.4\nbroke,v,failed,0.9\nmonday,,,\n,,,\nown,v,2,0.5\n"
    campaign = open_campaign(make(tmp_path, current=current))
    found = [(e.number, e.state, e.values["x"]) for e in campaign.experiments]
    assert found == [
        (2, State.FINISHED, 0.2),
        (3, State.PENDING, 0.4),
        (4, State.FAILED, 0.9),
        (7, State.FINISHED, 0.5),
    ]
    assert campaign.best is not None
    assert campaign.best.number == 2


def test_the_best_is_the_lowest_where_it_is_to_be_low(tmp_path: Path) -> None:
    """The direction is the file's."""
    campaign = open_campaign(make(tmp_path, direction="minimize", current="x,s,y\n0.1,u,5\n0.2,u,3\n"))
    assert campaign.best is not None
    assert campaign.best.results == {"y": 3.0}


def test_past_files_are_read_in_their_own_manner(tmp_path: Path) -> None:
    """One has decimal points, the other decimal commas; equal inputs are equal."""
    past = open_campaign(make(tmp_path)).past
    assert [task.name for task in past] == ["a", "b"]
    assert past[0].rows["x"].tolist() == past[1].rows["x"].tolist()
    assert [list(task.rows.columns) for task in past] == [["x", "s"], ["x", "s"]]


@pytest.mark.parametrize(
    ("current", "message"),
    [
        ("x,s,y\n0.1,u,5\n,u,3\n", "current.csv, row 3, column 'x': an empty cell is not a value. Fill it in"),
        ("x,s,y\n0.1,u,5\nn/a,u,3\n", "row 3, column 'x': 'n/a' is not a value"),
        ("x,s,y\n0.1,,5\n", "row 2, column 's': an empty cell is not a value"),
        ("x,s,y\nwarm,u,5\n", "row 2, column 'x': 'warm' is not a number"),
        ("x,s,y\n0.1,u,hardly 5\n", "row 2, column 'y': 'hardly 5' is not a number. Write the number alone"),
        ("x,s,y\n0.1,uu,5\n", "row 2, column 's': 'uu' is none of the choices. Did you mean 'u'?"),
        ("x,s\n0.1,u\n", "current.csv: there is no column 'y'"),
        ("s,y\nu,1\n", "current.csv: there is no column 'x'. Its columns are 's', 'y'. Add it to the header"),
        ("", "current.csv is empty"),
    ],
)
def test_cells_that_cannot_be_used_are_named(tmp_path: Path, current: str, message: str) -> None:
    """Row and column as the spreadsheet program shows them, and the remedy."""
    with pytest.raises(InputError) as caught:
        open_campaign(make(tmp_path, current=current))
    assert message in str(caught.value)


def test_a_decimal_comma_in_one_cell_is_read(tmp_path: Path) -> None:
    """A spreadsheet program quotes it in a file separated by commas."""
    campaign = open_campaign(make(tmp_path, current='x,s,y\n0.1,u,"12,5"\n'))
    assert campaign.experiments[0].results == {"y": 12.5}


def test_a_value_outside_the_range_counts_with_a_remark(tmp_path: Path) -> None:
    """It may be a slip, and it may be meant."""
    campaign = open_campaign(make(tmp_path, current="x,s,y\n1.5,u,5\n"))
    assert campaign.experiments[0].values["x"] == 1.5
    assert "current.csv, row 2, column 'x': 1.5 lies outside 0 … 1" in campaign.remarks[0]


def test_long_past_files_are_thinned_and_it_is_said(tmp_path: Path) -> None:
    """The same rows every time, the best among them."""
    make(tmp_path)
    toml = tmp_path / "headstart.toml"
    whole = open_campaign(tmp_path).past[0].y.tolist()
    toml.write_text("max_rows = 11\n" + toml.read_text())
    first, again = open_campaign(tmp_path), open_campaign(tmp_path)
    assert len(first.past[0].y) == 11
    assert set(first.past[0].y.tolist()) <= set(whole)
    assert first.past[0].y.max() == max(whole)  # which is to be maximised
    assert first.past[0].y.tolist() == again.past[0].y.tolist()
    assert "11 of its 12 results are used, the best tenth" in first.remarks[0]


def test_columns_that_the_file_does_not_name_are_remarked_on(tmp_path: Path) -> None:
    """Somebody deleted the parameter's table, or added a column to a past file."""
    make(tmp_path)
    toml = tmp_path / "headstart.toml"
    toml.write_text(toml.read_text().replace('ignore = ["run"]', ""))
    assert "a.csv: the column 'run' is neither a parameter nor in ignore" in open_campaign(tmp_path).remarks[0]


def test_past_files_with_text_among_numbers_are_refused(tmp_path: Path) -> None:
    """Even if most of the column is text: the campaign's file says that it holds numbers."""
    make(tmp_path)
    (tmp_path / "a.csv").write_text("run,x,s,y\n1,low,u,1\n2,high,u,2\n")
    with pytest.raises(InputError, match=r"a\.csv, row 2, column 'x': 'low' is not a number"):
        open_campaign(tmp_path)


def test_new_rows_leave_the_old_ones_as_they_are(tmp_path: Path) -> None:
    """Byte by byte, with the decimal mark of the past files where the file shows none."""
    current = "\ufeffy;note;x;s\r\n;;;\r\n"
    campaign = open_campaign(make(tmp_path, current=current))
    append_experiments(campaign, [{"x": 0.25, "s": "u"}])
    assert (tmp_path / "current.csv").read_bytes().decode() == current + ";;0,25;u\r\n"


def test_a_file_that_changed_since_it_was_read_is_not_written(tmp_path: Path) -> None:
    """Results typed in meanwhile are not lost."""
    campaign = open_campaign(make(tmp_path))
    (tmp_path / "current.csv").write_text("x,s,y\n0.1,u,5\n")
    before = fingerprint(tmp_path)
    with pytest.raises(InputError, match="was changed by another program"):
        append_experiments(campaign, [{"x": 0.25, "s": "u"}])
    assert fingerprint(tmp_path) == before


@pytest.mark.parametrize("lock", ["~$current.csv", ".~lock.current.csv#"])
def test_an_open_spreadsheet_is_noticed(tmp_path: Path, lock: str) -> None:
    """Its next save would undo what is appended."""
    campaign = open_campaign(make(tmp_path))
    require_closed(campaign)
    (tmp_path / lock).touch()
    with pytest.raises(InputError, match=r"current\.csv is open in a spreadsheet program"):
        require_closed(campaign)


def test_repeats_show_the_scatter() -> None:
    """√(Σ (y − ȳ)² / Σ (n − 1)), each task for itself; no repeats, no scatter."""
    rows = pd.DataFrame({"x": [1, 1, 2], "s": ["u", "u", "u"]})
    assert repeat_spread([(rows, np.array([1.0, 3.0, 9.0])), (rows, np.array([5.0, 5.0, 2.0]))]) == (1.0, 2)
    assert repeat_spread([(rows[1:], np.array([1.0, 2.0])), (rows[1:], np.array([3.0, 4.0]))]) is None
    assert repeat_spread([(rows[:0], np.array([]))]) is None
