"""Sheets of workbooks: read as tables, and appended to, with all that they hold kept."""

from __future__ import annotations

import datetime
from pathlib import Path
from zipfile import ZipFile

import pytest
from openpyxl import Workbook, load_workbook
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont
from openpyxl.comments import Comment
from openpyxl.formatting.rule import CellIsRule
from openpyxl.styles import PatternFill
from openpyxl.worksheet.datavalidation import DataValidation
from openpyxl.worksheet.table import Table as ExcelTable
from tests.integration.odd_files import ods_bytes

from headstart import InputError
from headstart.sources.files.sheet_rows import new_workbook
from headstart.sources.files.tables import edited, read_table

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
    assert table.lost == "what only .ods files hold"


def test_a_document_type_is_refused(tmp_path: Path) -> None:
    """It can be made to explode."""
    with ZipFile(tmp_path / "a.ods", "w") as archive:
        archive.writestr("content.xml", '<!DOCTYPE x [<!ENTITY a "aaaa">]><x>&a;</x>')
    with pytest.raises(InputError, match="document type"):
        read_table(tmp_path / "a.ods")


def _furnished(path: Path) -> None:
    """A laboratory's workbook: comments, formats, widths, validations, a formula, a table, words in bold."""
    book = load_workbook(path)
    sheet = book["Sheet"]
    sheet["D1"], sheet["D2"] = "double", "=C2*2"
    sheet["A3"].number_format = "0.00"
    sheet["A2"].comment = Comment("hot", "lab")
    sheet["E1"] = CellRichText("in ", TextBlock(InlineFont(b=True), "bold"))
    sheet.column_dimensions["B"].width = 33
    sheet.freeze_panes = "A2"
    red = PatternFill("solid", bgColor="FFAAAA")
    sheet.conditional_formatting.add("C2:C9", CellIsRule(operator="lessThan", formula=["1"], fill=red))
    allowed = DataValidation(type="list", formula1='"DMF,THF"')
    sheet.add_data_validation(allowed)
    allowed.add("B2:B99")
    book["Second"].add_table(ExcelTable(displayName="T1", ref="A1:B2"))
    book.save(path)


def test_appended_rows_leave_what_a_laboratory_has_in_its_workbook(tmp_path: Path) -> None:
    """Comments, formats, widths, validations, conditional formats, formulas, tables and other sheets."""
    path = _book(tmp_path)
    _furnished(path)
    table = read_table(path)
    assert table.lost == ""
    assert table.formulas == {3}
    rows: list[dict[str, str | float]] = [
        {"T [°C]": 80.5, "solvent": "a <b> & c"},
        {"T [°C]": 90, "solvent": "=DMF"},
    ]
    path.write_bytes(edited(table, {}, ".", more=rows))
    again = read_table(path)
    assert [row[:2] for row in again.rows[2:]] == [("80.5", "a <b> & c"), ("90", "=DMF")]
    assert again.numbers == (2, 3, 4, 5)
    assert again.lost == ""
    book = load_workbook(path, rich_text=True)
    sheet = book["Sheet"]
    assert sheet["D2"].value == "=C2*2"
    assert sheet["B5"].data_type == "s"
    assert [sheet[f"A{row}"].number_format for row in (3, 4, 5)] == ["0.00"] * 3
    assert sheet["A2"].comment is not None
    assert sheet["A2"].comment.text == "hot"
    assert isinstance(sheet["E1"].value, CellRichText)
    assert sheet.column_dimensions["B"].width == 33
    assert sheet.freeze_panes == "A2"
    assert [str(own.sqref) for own in sheet.conditional_formatting] == ["C2:C9"]
    assert [str(own.sqref) for own in sheet.data_validations.dataValidation] == ["B2:B99"]
    assert list(book["Second"].tables) == ["T1"]


def _part(path: Path, name: str) -> None:
    with ZipFile(path, "a") as archive:
        archive.writestr(name, b"x")


@pytest.mark.parametrize(
    ("part", "lost"),
    [
        ("xl/media/image1.png", "pictures"),
        ("xl/pivotTables/pivotTable1.xml", "pivot tables"),
        ("xl/vbaProject.bin", "macros"),
        ("xl/slicers/slicer1.xml", "xl/slicers/slicer1.xml"),
        ("xl/printerSettings/printerSettings1.bin", ""),
        ("xl/persons/person.xml", ""),
    ],
)
def test_what_writing_would_lose_is_found(tmp_path: Path, part: str, lost: str) -> None:
    """By the parts of the workbook; settings of a printer and lists of people are nobody's loss."""
    path = _book(tmp_path)
    _part(path, part)
    assert read_table(path).lost == lost
    assert read_table(_book(tmp_path, name="a.xlsm")).lost == "what only .xlsm files hold"


def test_what_openpyxl_does_not_know_would_be_lost(tmp_path: Path) -> None:
    """Such as sparklines and conditional formats of newer kinds, which stand in the sheet itself."""
    path = _book(tmp_path)
    with ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    more = b'<extLst><ext uri="{05C60535-1F16-4fd2-B633-F4F36F0B64E0}"/></extLst></worksheet>'
    parts["xl/worksheets/sheet1.xml"] = parts["xl/worksheets/sheet1.xml"].replace(b"</worksheet>", more)
    with ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    assert read_table(path).lost == "Sparkline Group extension"


def test_a_merged_cell_is_not_written(tmp_path: Path) -> None:
    """It would be hidden behind the other one."""
    path = _book(tmp_path)
    book = load_workbook(path)
    book["Sheet"].merge_cells("A4:B4")
    book.save(path)
    with pytest.raises(InputError, match="The cell B4 of the sheet 'Sheet' is part of a merged one"):
        edited(read_table(path), {}, ".", more=[{"T [°C]": 80, "solvent": "DMF"}])


def test_a_format_in_percent_does_not_change_what_is_appended(tmp_path: Path) -> None:
    """8 among percent formats is written as 0.08, which is shown and read as 8 %."""
    path = _book(tmp_path, [["x", "y"], [0.05, 1]])
    book = load_workbook(path)
    book["Sheet"]["A2"].number_format = "0%"
    book.save(path)
    path.write_bytes(edited(read_table(path), {}, ".", more=[{"x": 8.0}]))
    assert read_table(path).rows == (("5 %", "1"), ("8 %", ""))


def test_rows_that_are_formatted_in_advance_are_filled(tmp_path: Path) -> None:
    """Empty rows with a format below the table are where the next ones go."""
    path = _book(tmp_path)
    book = load_workbook(path)
    for row in range(4, 8):
        book["Sheet"].cell(row, 1).number_format = "0.0"
        book["Sheet"].cell(row, 4).number_format = "0.0"
    book.save(path)
    path.write_bytes(edited(read_table(path), {}, ".", more=[{"T [°C]": 80}, {"T [°C]": 81}]))
    assert read_table(path).numbers == (2, 3, 4, 5)
    assert load_workbook(path)["Sheet"]["D4"].number_format == "0.0"


def test_a_new_workbook_takes_rows(tmp_path: Path) -> None:
    """From its header on."""
    path = tmp_path / "current.xlsx"
    path.write_bytes(new_workbook(["T", "y"]))
    path.write_bytes(edited(read_table(path), {}, ",", more=[{"T": 1.5}]))
    assert read_table(path).rows == (("1.5", ""),)


def test_a_damaged_workbook_is_named_and_nothing_else_breaks(tmp_path: Path) -> None:
    """Wherever a byte is wrong: in the packed cells, in the list of the parts, in a header of the archive."""
    whole = _book(tmp_path).read_bytes()
    told = []
    for at in range(0, len(whole), 41):
        path = tmp_path / "damaged.xlsx"
        path.write_bytes(whole[:at] + bytes(255 - byte for byte in whole[at : at + 12]) + whole[at + 12 :])
        try:
            read_table(path)
        except InputError as error:
            told.append(str(error))
    assert len(told) > 20
    assert all("damaged.xlsx" in one for one in told)
