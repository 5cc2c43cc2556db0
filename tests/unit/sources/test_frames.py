"""Files as DataFrames."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headstart import InputError
from headstart.sources.columns import read_frame


def _file(folder: Path, content: str) -> Path:
    path = folder / "past.csv"
    path.write_text(content, encoding="utf-8")
    return path


def test_numbers_are_numbers_and_text_is_text(tmp_path: Path) -> None:
    """Each column is what most of its cells are; what is missing is NaN or None."""
    frame = read_frame(_file(tmp_path, "T;solvent;y\n20,5;DMF;50\n30;;n/a\n"), measured=["y"])
    assert frame["T"].tolist() == [20.5, 30.0]
    assert frame["solvent"].tolist() == ["DMF", None]
    assert frame["y"].iloc[0] == 50.0
    assert np.isnan(frame["y"].iloc[1])


def test_cells_mean_what_they_mean_in_any_file(tmp_path: Path) -> None:
    """A unit, thousands, a decimal comma and a limit are numbers; a result that failed is none; all is remarked on."""
    path = _file(tmp_path, "T [°C];n;c;y\n60 °C;1 200;<0,1;50\n333,15 K;900;0,5;failed\n70;1000;0,7;~ 60,5\n")
    frame = read_frame(path, measured=["y", "z"])
    np.testing.assert_allclose(frame["T [°C]"], [60, 60, 70])
    assert frame["n"].tolist() == [1200, 900, 1000]
    assert frame["c"].tolist() == [0.05, 0.5, 0.7]
    np.testing.assert_array_equal(frame["y"], [50, np.nan, 60.5])
    told = " ".join(frame.attrs["remarks"])
    assert "(row 2: '60 °C') is read without its unit °C" in told
    assert "(row 3: '333,15 K') is converted from K to °C" in told


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("T,c,y\n1,2,3\n4,warm,6\n7,8,9\n", "row 3, column 'c': 'warm' is not a number. Write the number alone"),
        ("T,c,y\n1,2,3\n4,5 apples,6\n7,8,9\n", "row 3, column 'c': '5 apples' is not a number"),
        ("T,c,y\n1,2,3\n4,5. Mai,6\n7,8,9\n", "row 3, column 'c': '5. Mai' is a date, not a number. If a spreadsheet"),
        ("T,c,y\n1,2,3\n4,1.200,6\n", "row 3, column 'c': '1.200' can be read as 1200 or as 1.200"),
        ("T,c,y\n1,2,warm\n", "row 2, column 'y': 'warm' is not a number. Write the number alone"),
        ("T,c,y\n", "has a header but no rows"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, content: str, message: str) -> None:
    """File, row and column."""
    with pytest.raises(InputError) as caught:
        read_frame(_file(tmp_path, content), measured=["y"])
    assert "past.csv" in str(caught.value)
    assert message in str(caught.value)


def test_dates_are_text(tmp_path: Path) -> None:
    """Nobody said what they are for, and they stay as they were written."""
    frame = read_frame(_file(tmp_path, "T,day,y\n1,2024-03-01,3\n2,2024-03-02,\n"))
    assert frame["day"].tolist() == ["2024-03-01", "2024-03-02"]


def test_remarks_travel_with_the_frame(tmp_path: Path) -> None:
    """Such as that on an old encoding."""
    path = tmp_path / "past.csv"
    path.write_bytes("T [°C],y\n1,2\n".encode("cp1252"))
    assert "read as cp1252" in read_frame(path).attrs["remarks"][0]
