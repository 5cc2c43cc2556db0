"""CSV files as DataFrames."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headstart import InputError
from headstart.sources.files.frames import read_csv


def _file(folder: Path, content: str) -> Path:
    path = folder / "past.csv"
    path.write_text(content, encoding="utf-8")
    return path


def test_numbers_are_numbers_and_text_is_text(tmp_path: Path) -> None:
    """Each column is what most of its cells are; what is missing is NaN or None."""
    frame = read_csv(_file(tmp_path, "T;solvent;y\n20,5;DMF;50\n30;;n/a\n"))
    assert frame["T"].tolist() == [20.5, 30.0]
    assert frame["solvent"].tolist() == ["DMF", None]
    assert frame["y"].iloc[0] == 50.0
    assert np.isnan(frame["y"].iloc[1])


def test_rows_without_a_result_need_no_inputs_and_others_do(tmp_path: Path) -> None:
    """The message names row and column, and says how many more there are."""
    path = _file(tmp_path, "T,c,y\n1,2,3\n,2,\nx,2,failed\nn/a,2,3\n,2,3\n")
    with pytest.raises(
        InputError, match=r"past\.csv, row 5, column 'T': 'n/a' is not a value \(1 more rows lack one\)"
    ):
        read_csv(path, objective="y")
    path = _file(tmp_path, "T,c,y\n1,2,3\n2,1,3\n,2,\nx,2,failed\n")
    assert read_csv(path, objective="y")["y"].isna().tolist() == [False, False, True, True]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("T,c,y\n1,2,3\n4,warm,6\n7,8,9\n", "row 3, column 'c': 'warm' is not a number"),
        ("T,c,y\n1,2,3\n4,5 mg,6\n7,8,9\n", "row 3, column 'c': '5 mg' is not a number"),
        ("T,c,y\n1,2,3\n4,5. Mai,6\n7,8,9\n", "row 3, column 'c': '5. Mai' is a date, not a number. If a spreadsheet"),
        ("T,day,y\n1,2024-03-01,3\n2,2024-03-02,3\n", "row 2, column 'day': '2024-03-01' is a date, which is no para"),
        ("T,c,y\n1,2,ca. 5\n", "row 2, column 'y': 'ca. 5' is not a number. Write the number alone"),
        ("T,c,z\n1,2,3\n", "there is no column 'y'. Its columns are 'T', 'c', 'z'"),
        ("T,c,y\n", "has a header but no rows"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, content: str, message: str) -> None:
    """File, row and column."""
    with pytest.raises(InputError) as caught:
        read_csv(_file(tmp_path, content), objective="y")
    assert "past.csv" in str(caught.value)
    assert message in str(caught.value)


def test_without_an_objective_dates_are_text(tmp_path: Path) -> None:
    """Nobody said that the column is needed."""
    frame = read_csv(_file(tmp_path, "T,day,y\n1,2024-03-01,3\n2,2024-03-02,\n"))
    assert frame["day"].tolist() == ["2024-03-01", "2024-03-02"]


def test_columns_are_renamed_ignored_and_taken_as_categories(tmp_path: Path) -> None:
    """In this order; what is ignored is not looked at."""
    path = _file(tmp_path, "Temp,cat,day,y\n1,1,2024-03-01,3\n2,2,x,4\n")
    frame = read_csv(path, objective="y", rename={"Temp": "T"}, ignore=["day"], categories=["cat"])
    assert list(frame.columns) == ["T", "cat", "y"]
    assert frame["cat"].tolist() == ["1", "2"]


def test_remarks_travel_with_the_frame(tmp_path: Path) -> None:
    """Such as that on an old encoding."""
    path = tmp_path / "past.csv"
    path.write_bytes("T [°C],y\n1,2\n".encode("cp1252"))
    assert "read as cp1252" in read_csv(path).attrs["remarks"][0]
