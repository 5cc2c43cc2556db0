"""Rows with several results: what they count for, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.unit.campaign.several import HEADER, TOML, make_several

from headstart import InputError
from headstart.campaign.campaign import open_campaign
from headstart.campaign.experiments import State
from headstart.data.outcomes import Standing

ROWS = (
    "0.1,0.2,u,30,0.5,20,0.1\n"  # 2: finished
    "0.2,0.2,u,35,,,0.2\n"  # 3: the cost is awaited, the error is not known
    "0.3,0.2,u,40,1,n/a,3\n"  # 4: the cost is not to be had; too dirty
    "0.4,0.2,u,failed,,failed,failed\n"  # 5: failed
    "0.5,0.2,u,,,,\n"  # 6: pending
    ",,,,,,\n"
    "0.6,0.2,v,36,0.5,15,0.1\n"  # 8: finished
    "0.7,0.2,v,33,0.5,30,\n"  # 9: the dirt is awaited
)


def test_a_row_counts_for_every_result_it_has(tmp_path: Path) -> None:
    """It is finished when nothing more is awaited of it."""
    campaign = open_campaign(make_several(tmp_path, HEADER + ROWS))
    states = {e.number: e.state for e in campaign.experiments}
    finished, pending, failed = State.FINISHED, State.PENDING, State.FAILED
    assert states == {2: finished, 3: pending, 4: finished, 5: failed, 6: pending, 8: finished, 9: pending}
    assert [e.number for e in campaign.measured("y")] == [2, 3, 4, 8, 9]
    assert [e.number for e in campaign.measured("cost")] == [2, 8, 9]
    assert [e.number for e in campaign.measured("dirt")] == [2, 3, 4, 8]
    assert {e.number: dict(e.errors) for e in campaign.measured("y")} == {
        2: {"y": 0.5}, 3: {}, 4: {"y": 1.0}, 8: {"y": 0.5}, 9: {"y": 0.5},
    }  # fmt: skip


def test_the_front_has_what_no_other_beats_within_the_limits(tmp_path: Path) -> None:
    """Row 2 is beaten by row 8 in both; row 9 is more costly and lower."""
    campaign = open_campaign(make_several(tmp_path, HEADER + ROWS))
    assert [e.number for e in campaign.front] == [8]
    more = "0.1,0.3,u,50,0.5,40,0.1\n0.1,0.4,u,60,0.5,5,9\n0.1,0.5,u,45,0.5,16,1\n"
    campaign = open_campaign(make_several(tmp_path, HEADER + ROWS + more))
    assert [e.number for e in campaign.front] == [8, 10, 12]
    assert campaign.best is not None
    assert campaign.best.number == 12  # nearest to the best of both
    assert campaign.standing(campaign.experiments[-2]) is Standing.BEYOND


def test_a_row_whose_limit_was_not_measured_is_not_the_best(tmp_path: Path) -> None:
    """Whether it is within the limits is unknown: neither on the front nor the best, and why is said with its row."""
    unmeasured = "0.1,0.3,u,90,0.5,1,n/a\n"
    campaign = open_campaign(make_several(tmp_path, HEADER + unmeasured))
    assert campaign.standing(campaign.experiments[0]) is Standing.UNKNOWN
    assert (campaign.front, campaign.best) == ((), None)
    assert campaign.why_no_best == (
        "No result is known to be within the limits yet (dirt at most 2): dirt was not measured in row 2."
    )
    campaign = open_campaign(make_several(tmp_path, HEADER + unmeasured + "0.1,0.4,u,60,0.5,5,9\n"))
    assert "dirt was not measured in row 2." in campaign.why_no_best
    campaign = open_campaign(make_several(tmp_path, HEADER + unmeasured + ROWS))
    assert [e.number for e in campaign.front] == [9]
    assert campaign.why_no_best == ""


def test_past_files_have_the_outcomes_that_they_know(tmp_path: Path) -> None:
    """One of them lacks the cost, and errors."""
    campaign = open_campaign(make_several(tmp_path))
    old, older = campaign.past
    assert list(old.objectives) == ["y", "cost", "dirt"]
    assert list(older.objectives) == ["y", "dirt"]
    error = old.objectives["y"].error
    assert error is not None
    assert np.all(error == 0.5)
    assert older.objectives["y"].error is None
    assert campaign.remarks == ()


def test_an_outcome_that_no_past_file_knows_is_said(tmp_path: Path) -> None:
    """It is learnt from the campaign alone."""
    toml = TOML.replace("[limits.dirt]", "[limits.smell]")
    campaign = open_campaign(make_several(tmp_path, HEADER.replace("dirt", "smell"), toml))
    assert any("No past file knows 'smell': it is learnt from this campaign alone" in r for r in campaign.remarks)


def test_a_file_without_any_of_the_results_is_refused(tmp_path: Path) -> None:
    """With its name and the remedy."""
    make_several(tmp_path)
    (tmp_path / "older.csv").write_text("a,b,s,z\n0.1,0.2,u,3\n")
    with pytest.raises(InputError, match=r"older\.csv: no row has a result in column 'y', 'cost', 'dirt'"):
        open_campaign(tmp_path)


@pytest.mark.parametrize("where", ["current.csv", "old.csv"])
@pytest.mark.parametrize(("error", "message"), [("0", "above 0, but it is 0"), ("-1", "above 0, but it is -1")])
def test_an_error_that_is_none_is_refused(tmp_path: Path, where: str, error: str, message: str) -> None:
    """Nothing has an error of 0; an empty cell is one that is not known."""
    make_several(tmp_path, HEADER)
    (tmp_path / where).write_text(HEADER + f"0.1,0.2,u,30,{error},20,0.1\n")
    with pytest.raises(InputError) as caught:
        open_campaign(tmp_path)
    assert f"{where}, row 2, column 'y_sd': the standard error of y must be {message}" in str(caught.value)
    (tmp_path / where).write_text(HEADER + "0.1,0.2,u,30,small,20,0.1\n")
    with pytest.raises(InputError, match=r"row 2, column 'y_sd': 'small' is not a number\. The standard error of y is"):
        open_campaign(tmp_path)


@pytest.mark.parametrize("where", ["current.csv", "old.csv"])
def test_a_row_that_is_there_twice_is_asked_about(tmp_path: Path, where: str) -> None:
    """It counts once, until somebody says that it is a repeat. Another cell of the row tells repeats apart."""
    row, header = "0.1,0.2,u,30,0.5,20,0.1", HEADER.strip() + ",note\n"
    make_several(tmp_path, header)
    content = header + f"{row},\n0.3,0.2,u,31,0.5,20,0.1,\n{row},\n{row},again\n"
    (tmp_path / where).write_text(content)

    def count() -> int:
        campaign = open_campaign(tmp_path)
        return len(campaign.measured("y") if where == "current.csv" else campaign.past[0].y)

    assert count() == 3
    (remark,) = (r for r in open_campaign(tmp_path).remarks if "equal in every cell" in r)
    assert f"{where}: equal in every cell are rows 2 and 4. They count once" in remark
    assert 'equal_rows = "repeats"' in remark
    (tmp_path / "headstart.toml").write_text('equal_rows = "repeats"\n' + TOML)
    assert count() == 4
    assert not any("equal in every cell" in r for r in open_campaign(tmp_path).remarks)


def test_a_result_beyond_its_bounds_is_refused(tmp_path: Path) -> None:
    """With the row, and what may be wrong."""
    toml = TOML.replace('unit = "%"', 'unit = "%"\nlow = -99\nhigh = 100')
    make_several(tmp_path, HEADER + "0.1,0.2,u,130,0.5,20,0.1\n", toml)
    with pytest.raises(InputError, match=r"current\.csv, row 2, column 'y': 130 lies above high = 100 in headstart"):
        open_campaign(tmp_path)
    make_several(tmp_path, HEADER + "0.1,0.2,u,-100,0.5,20,0.1\n", toml)
    with pytest.raises(InputError, match=r"row 2, column 'y': -100 lies below low = -99 in headstart\.toml"):
        open_campaign(tmp_path)
