"""CSV files as they come: delimiters, encodings, leftovers, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from headstart import InputError
from headstart.sources.files import text
from headstart.sources.files.tables import Table, edited, is_lock_file, read_table

ROWS = [["T", "solvent", "yield"], ["20.5", "DMF", "50"], ["30", "MeCN, dry", "61.5"]]


def _file(folder: Path, content: str | bytes, encoding: str = "utf-8") -> Path:
    path = folder / "a.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode(encoding))
    return path


def _read(folder: Path, content: str | bytes, encoding: str = "utf-8") -> Table:
    return read_table(_file(folder, content, encoding))


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_the_same_table_in_every_layout(tmp_path: Path, delimiter: str, newline: str, encoding: str) -> None:
    """Delimiter, line ends and byte-order mark change nothing about what is read."""
    text = newline.join(delimiter.join(f'"{c}"' for c in row) for row in ROWS) + newline
    table = _read(tmp_path, text, encoding)
    assert table.columns == tuple(ROWS[0])
    assert [list(row) for row in table.rows] == ROWS[1:]
    assert table.numbers == (2, 3)
    assert table.layout.delimiter == delimiter
    assert table.remarks == ()


def test_decimal_commas_do_not_pass_for_delimiters(tmp_path: Path) -> None:
    """Every row of such a file has commas, and the semicolon still separates the columns."""
    table = _read(tmp_path, "T;c;y\n20,5;0,1;50,1\n21,5;0,2;51,2\n")
    assert table.columns == ("T", "c", "y")
    assert table.layout.mark == ","
    assert [cell.value for cell in table.parsed("T")] == [20.5, 21.5]


def test_leftovers_of_a_spreadsheet_are_left_out(tmp_path: Path) -> None:
    """Empty rows, empty columns and short rows; the row numbers stay those of the spreadsheet."""
    table = _read(tmp_path, "T,y,,\n1,2,,\n,,,\n\n3\n,,,\n")
    assert table.columns == ("T", "y")
    assert table.rows == (("1", "2"), ("3", ""))
    assert table.numbers == (2, 5)


def test_cells_stay_below_their_names_beside_an_empty_column(tmp_path: Path) -> None:
    """Between two columns as well as before them."""
    table = _read(tmp_path, ",T,,y\n,1,,2\n,3,,4\n")
    assert table.columns == ("T", "y")
    assert table.rows == (("1", "2"), ("3", "4"))


def test_titles_above_the_header_are_left_out(tmp_path: Path) -> None:
    """With a remark; the row numbers stay those of the spreadsheet."""
    table = _read(tmp_path, "Series B; May 2024;;\n;;;\nT;c;solvent;y\n1,5;2;DMF;3\n2,5;3;THF;4\n")
    assert table.columns == ("T", "c", "solvent", "y")
    assert table.numbers == (4, 5)
    assert "row 1 ('Series B') is above the header in row 3 and left out" in table.remarks[0]


def test_a_row_of_units_belongs_to_the_header(tmp_path: Path) -> None:
    """Below names and above numbers; a category may be called M."""
    table = _read(tmp_path, "T,time,s,y\n[°C],min,-,%\n60,5,DMF,70\n")
    assert table.columns == ("T [°C]", "time [min]", "s", "y [%]")
    assert table.numbers == (3,)
    assert _read(tmp_path, "size,y\nM,\nL,\n").rows == (("M", ""), ("L", ""))


def test_decomposed_umlauts_are_composed(tmp_path: Path) -> None:
    """In names and cells."""
    table = _read(tmp_path, "Lo\u0308sung,y\nO\u0308l,2\n")
    assert table.columns[0] == "Lösung"
    assert table.rows[0][0] == "Öl"


def test_excels_own_delimiter_line_is_understood(tmp_path: Path) -> None:
    """``sep=;`` is not the header."""
    table = _read(tmp_path, "sep=;\nT;y\n1;2\n")
    assert table.columns == ("T", "y")
    assert table.numbers == (2,)


def test_an_old_encoding_is_read_with_a_remark(tmp_path: Path) -> None:
    """The remark names the file and the row where it shows."""
    table = _read(tmp_path, "T [°C],y\n1,2\n", "cp1252")
    assert table.columns == ("T [°C]", "y")
    assert "a.csv, row 1: the file is not UTF-8 and was read as cp1252" in table.remarks[0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "a.csv is empty"),
        (b"\n \n", "a.csv is empty"),
        (b"\xef\xbb\xbf", "a.csv is empty"),
        (b"T y\n1 2\n", "row 1: only one column was found, 'T y'. Columns must be separated by a comma"),
        (b"1,2\n3,4\n", "row 1: the first row must name the columns, but it holds numbers"),
        (b"T,T\n1,2\n", "row 1: two columns are called 'T'"),
        (b"T,y\n1,5,3\n", "row 2: it has 3 cells, but the header names 2 columns"),
        (b"T,,y\n1,5,3\n", "row 2: '5' stands in column 2, which has no name"),
        (b'T,y\n"1,2\n3,4\n', "a quotation mark is opened and never closed"),
        (b"PK\x03\x04rest", "is an Excel or LibreOffice workbook, not a CSV file"),
        (b"T,y\n1,\x00\n", "is not a text file"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    """One message with the file, the row where there is one, and what to do."""
    with pytest.raises(InputError) as caught:
        _read(tmp_path, content)
    assert "a.csv" in str(caught.value)
    assert message in str(caught.value)


def test_files_that_are_not_there_or_not_files(tmp_path: Path) -> None:
    """A missing file and a folder are told apart."""
    with pytest.raises(InputError, match=r"b\.csv: there is no such file"):
        read_table(tmp_path / "b.csv")
    with pytest.raises(InputError, match="is a folder"):
        read_table(tmp_path)


def test_huge_files_are_refused_with_a_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many bytes are refused before anything is read, too many rows before anything is parsed."""
    path = _file(tmp_path, "T,y\n" + "1,2\n" * 5000)
    monkeypatch.setattr(text, "MOST_ROWS", 1000)
    with pytest.raises(InputError, match=r"about 5,001 rows.*random sample of about 500, or every 10th row"):
        read_table(path)
    with path.open("r+b") as file:
        file.truncate(text.MOST_BYTES + 1)  # sparse: it takes no space
    with pytest.raises(InputError, match="has 200 MB; at most 200 MB are read"):
        read_table(path)


def test_an_ambiguous_number_says_what_it_could_be(tmp_path: Path) -> None:
    """Among decimal points a quoted '1,234' may be either number."""
    table = _read(tmp_path, 'T,y\n1.5,"1,234"\n')
    (cell,) = table.parsed("y")
    assert cell.value is None
    assert "'1,234' can be read as 1234 or as 1.234." in cell.problem


def test_columns_can_be_renamed_but_not_into_one(tmp_path: Path) -> None:
    """A name that is not there is no error, two columns of one name are."""
    table = _read(tmp_path, "T,Temp,y\n1,2,3\n")
    assert table.renamed({"T": "t", "other": "z"}).columns == ("t", "Temp", "y")
    with pytest.raises(InputError, match="'T' and 'Temp' would both be called 'Temp'"):
        table.renamed({"T": "Temp"})


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("T,y\n1,2\n", "T,y\n1,2\n3.5,\n"),
        ("T,y\n1,2", "T,y\n1,2\n3.5,\n"),  # no line end at the end
        ("T;note;y\r\n1,5;ok;2\r\n", "T;note;y\r\n1,5;ok;2\r\n3,5;;\r\n"),
        ("\ufeffy\tT\n2\t1\n", "\ufeffy\tT\n2\t1\n\t3.5\n"),
        ("sep=;\nT;y\n1,5;2\n", "sep=;\nT;y\n1,5;2\n3,5;\n"),
    ],
)
def test_rows_are_appended_in_the_files_own_manner(tmp_path: Path, content: str, expected: str) -> None:
    """Delimiter, decimal mark, line ends, byte-order mark, column order and foreign columns are kept."""
    table = _read(tmp_path, content)
    assert edited(table, {}, ".", more=[{"T": 3.5}]).decode() == expected


def test_a_utf16_file_stays_one(tmp_path: Path) -> None:
    """What was appended is read back with the rest."""
    path = _file(tmp_path, "T\ty\r\n1\t2\r\n", "utf-16")
    path.write_bytes(edited(read_table(path), {}, ".", more=[{"T": 3.5}]))
    assert read_table(path).rows == (("1", "2"), ("3.5", ""))


def test_an_empty_table_takes_the_decimal_mark_it_is_given(tmp_path: Path) -> None:
    """A header shows none; a comma among commas is quoted."""
    table = _read(tmp_path, "T,y\n")
    assert edited(table, {}, ",", more=[{"T": 3.5}]).decode() == 'T,y\n"3,5",\n'


def test_lock_files_of_spreadsheet_programs_are_known() -> None:
    """Excel's and LibreOffice's."""
    assert is_lock_file(Path("past/~$a.csv"))
    assert is_lock_file(Path("past/.~lock.a.csv#"))
    assert not is_lock_file(Path("past/a.csv"))


def test_a_comma_in_a_header_and_in_decimals_does_not_split_two_columns(tmp_path: Path) -> None:
    """Where semicolons fit as well."""
    path = tmp_path / "a.csv"
    path.write_text("T;yield, %\n60;50,5\n70;61,5\n", encoding="utf-8")
    table = read_table(path)
    assert table.columns == ("T", "yield, %")
    assert [cell.value for cell in table.parsed("yield, %")] == [50.5, 61.5]
