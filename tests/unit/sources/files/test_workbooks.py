"""Sheets of workbooks: read as tables, and appended to without touching anything else."""

from __future__ import annotations

import datetime
import io
import warnings
from pathlib import Path
from zipfile import ZipFile

import pytest
from openpyxl import Workbook, load_workbook
from openpyxl.chart import BarChart, Reference
from tests.integration.odd_files import ods_bytes

from headstart import InputError
from headstart.sources.files.sheet_rows import new_workbook
from headstart.sources.files.tables import appended, read_table

ROWS: list[list[object]] = [["T [°C]", "solvent", "yield"], [60, "DMF", 50.5], [70.125, "Öl & <x>", None]]


def _book(folder: Path, rows: list[list[object]] = ROWS, name: str = "a.xlsx") -> Path:
    book = Workbook()
    sheet = book.active
    assert sheet is not None
    for row in rows:
        sheet.append(row)
    other = book.create_sheet("Second")
    other.append(["x", "y"])
    other.append([1, 2])
    book.save(folder / name)
    return folder / name


def test_a_sheet_is_a_table(tmp_path: Path) -> None:
    """The first one, or the one that is named, whatever its case; numbers are numbers."""
    path = _book(tmp_path)
    table = read_table(path)
    assert table.columns == ("T [°C]", "solvent", "yield")
    assert table.rows == (("60", "DMF", "50.5"), ("70.1250", "Öl & <x>", ""))
    assert table.parsed("T [°C]")[1].value == 70.125
    assert "the sheet 'Sheet' is read. For another one ('Second') write" in table.remarks[0]
    assert read_table(f"{path}#second").columns == ("x", "y")
    with pytest.raises(InputError, match=r"there is no sheet 'Third'\. Its sheets are 'Sheet', 'Second'"):
        read_table(f"{path}#Third")


def test_cells_are_read_as_they_are_shown(tmp_path: Path) -> None:
    """Percent formats, dates, truth values, and texts that could be two numbers."""
    path = _book(tmp_path, [["a", "b", "c", "d"], [0.885, datetime.date(2024, 3, 1), True, "1.200"]])
    book = load_workbook(path)
    book["Sheet"]["A2"].number_format = "0.0%"
    book.save(path)
    table = read_table(path)
    assert table.rows == (("88.5 %", "2024-03-01", "TRUE", "1.200"),)
    assert "can be read as 1200 or as" in table.parsed("d")[0].problem


def test_a_date_is_the_date_that_was_written(tmp_path: Path) -> None:
    """With a time of day only where the cell shows one; so it is printed, and copied from a list of candidates."""
    moments: list[object] = [
        datetime.datetime(2024, 3, 1),
        datetime.datetime(2024, 3, 1),
        datetime.datetime(2024, 3, 1, 14, 30),
    ]
    path = _book(tmp_path, [["a", "b", "c"], moments])
    book = load_workbook(path)
    for cell, shown in (("A2", "DD.MM.YYYY"), ("B2", "yyyy-mm-dd hh:mm"), ("C2", "yyyy-mm-dd")):
        book["Sheet"][cell].number_format = shown
    book.save(path)
    assert read_table(path).rows == (("2024-03-01", "2024-03-01 00:00", "2024-03-01 14:30"),)


def test_a_formula_without_a_value_is_no_number(tmp_path: Path) -> None:
    """Nobody guesses what it would be."""
    table = read_table(_book(tmp_path, [["a", "b"], [1, "=A2*2"]]))
    assert table.rows == (("1", "=A2*2"),)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"no workbook", b"PK\x05\x06" + b"\x00" * 18])
@pytest.mark.parametrize("name", ["a.xlsx", "a.ods"])
def test_what_is_no_workbook_is_refused(tmp_path: Path, content: bytes, name: str) -> None:
    """With its name."""
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=name.replace(".", r"\.")):
        read_table(tmp_path / name)


def test_opendocument_is_read(tmp_path: Path) -> None:
    """Repeated empty rows and columns are none."""
    (tmp_path / "a.ods").write_bytes(ods_bytes([["T", "y"], ["1", "2,5"], ["", ""], ["3", "4,5"]]))
    table = read_table(tmp_path / "a.ods")
    assert (table.columns, table.rows, table.numbers) == (("T", "y"), (("1", "2,5"), ("3", "4,5")), (2, 4))
    with pytest.raises(InputError, match=r"rows are added to \.xlsx and \.csv files alone"):
        appended(table, [{"T": 1.0}], ".")


def test_a_document_type_is_refused(tmp_path: Path) -> None:
    """It can be made to explode."""
    with ZipFile(tmp_path / "a.ods", "w") as archive:
        archive.writestr("content.xml", '<!DOCTYPE x [<!ENTITY a "aaaa">]><x>&a;</x>')
    with pytest.raises(InputError, match="document type"):
        read_table(tmp_path / "a.ods")


def _parts(content: bytes) -> dict[str, bytes]:
    with ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_appended_rows_leave_the_rest_of_the_workbook_as_it_is(tmp_path: Path) -> None:
    """Formulas, a chart, other sheets, formats: every part but the sheet's own is equal byte by byte."""
    path = _book(tmp_path)
    book = load_workbook(path)
    sheet = book["Sheet"]
    sheet["D1"], sheet["D2"] = "double", "=C2*2"
    sheet["A3"].number_format = "0.00"
    chart = BarChart()
    chart.add_data(Reference(sheet, min_col=3, min_row=1, max_row=3))
    sheet.add_chart(chart, "H2")
    book.save(path)
    table = read_table(path)
    content = appended(table, [{"T [°C]": 80.5, "solvent": "a <b> & c"}, {"T [°C]": 90, "solvent": "DMF"}], ".")
    before, after = _parts(path.read_bytes()), _parts(content)
    assert set(before) == set(after)
    assert [name for name in before if before[name] != after[name]] == ["xl/worksheets/sheet1.xml"]
    path.write_bytes(content)
    assert read_table(path).rows[2:] == (("80.5", "a <b> & c", "", ""), ("90", "DMF", "", ""))
    assert read_table(path).numbers == (2, 3, 4, 5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = load_workbook(path)["Sheet"]
    assert again["D2"].value == "=C2*2"
    assert again["A4"].number_format == "0.00"
    assert again.dimensions == "A1:D5"


def test_a_format_in_percent_does_not_change_what_is_appended(tmp_path: Path) -> None:
    """8 in a column of percent formats would be read as 800 %."""
    path = _book(tmp_path, [["x", "y"], [0.05, 1]])
    book = load_workbook(path)
    book["Sheet"]["A2"].number_format = "0%"
    book.save(path)
    path.write_bytes(appended(read_table(path), [{"x": 8.0}], "."))
    assert read_table(path).rows == (("5 %", "1"), ("8", ""))


def test_rows_that_are_formatted_in_advance_are_filled(tmp_path: Path) -> None:
    """Empty rows with a format below the table are where the next ones go."""
    path = _book(tmp_path)
    book = load_workbook(path)
    for row in range(4, 8):
        book["Sheet"].cell(row, 1).number_format = "0.0"
        book["Sheet"].cell(row, 4).number_format = "0.0"
    book.save(path)
    path.write_bytes(appended(read_table(path), [{"T [°C]": 80}, {"T [°C]": 81}], "."))
    assert read_table(path).numbers == (2, 3, 4, 5)
    assert load_workbook(path)["Sheet"]["D4"].number_format == "0.0"


def test_a_new_workbook_takes_rows(tmp_path: Path) -> None:
    """From its header on."""
    path = tmp_path / "current.xlsx"
    path.write_bytes(new_workbook(["T", "y"]))
    path.write_bytes(appended(read_table(path), [{"T": 1.5}], ","))
    assert read_table(path).rows == (("1.5", ""),)
