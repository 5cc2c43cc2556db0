"""A table gets typed columns in one pass."""

from __future__ import annotations

from pathlib import Path

from headstart.errors import Message, Setting
from headstart.sources.columns import TableUse, typed
from headstart.sources.files.cells import CellRules
from headstart.sources.files.tables import Table, read_table


def _clean(
    folder: Path, content: str, rename: dict[str, str] | None = None, rules: CellRules | None = None, **use: object
) -> Table:
    path = folder / "a.csv"
    path.write_text(content, encoding="utf-8")
    table = read_table(path, rules=rules).renamed(rename or {})
    settings: dict[str, object] = {"results": ("y",), "numbers": ("T", "t_min"), **use}
    return typed(table, TableUse(**settings))  # type: ignore[arg-type]


def test_every_problem_is_found_at_once(tmp_path: Path) -> None:
    """With row, column and remedy; cells of rows without a result may hold anything."""
    found = _clean(tmp_path, "T,t_min,y\n1,2,3\nhot,5 g,4\n3,5-7,good\n4,warm,5\nx,y,n/a\n")
    assert [problem.split("a.csv, ")[1][:30] for problem in found.problems] == [
        "row 4, column 'y': 'good' is n",
        "row 3, column 'T': 'hot' is no",
        "row 3, column 't_min': a value",
        "row 5, column 't_min': 'warm' ",
    ]


def test_odd_cells_become_plain_and_are_told(tmp_path: Path) -> None:
    """The unit of the column counts, and a row without an input is left out."""
    found = _clean(tmp_path, "T,t_min,y\n~60,1 h,3\n70,90,<1\n80,n.d.,5\n")
    assert found.problems == ()
    assert found.rows == (("60", "60", "3"), ("70", "90", "0.5"))
    assert found.numbers == (2, 3)
    remarks = "\n".join(found.remarks)
    assert "column 'T' (row 2: '~60') is read without the '~'" in remarks
    assert "column 't_min' (row 2: '1 h') is converted from h to min" in remarks
    assert "column 'y' (row 3: '<1') counts as half of its limit" in remarks
    assert "column 't_min' (row 4: 'n.d.') is no value: the row is left out" in remarks


def test_renaming_converts_and_never_relabels(tmp_path: Path) -> None:
    """Kelvin become degrees; grams do not become percent."""
    rename = {"T [K]": "T_C"}
    found = _clean(tmp_path, "T [K],y\n333.15,3\n343.15,4\n", rename, numbers=("T_C",))
    assert found.cells("T_C") == ["60", "70"]
    assert "2 values are converted from K to °C" in found.remarks[-1]
    found = _clean(tmp_path, "m [g],y\n1,3\n2,4\n", {"m [g]": "m [%]"}, numbers=("m [%]",))
    assert "its values are in g, which cannot be converted to %" in found.problems[0]


def test_categories_are_spelled_as_they_are_known(tmp_path: Path) -> None:
    """Case and the composition of umlauts do not matter; an exact choice stays."""
    found = _clean(
        tmp_path, "s,y\ndmf,1\nO\u0308l,2\nThf,3\nthf,4\n", numbers=(), texts={"s": ("DMF", "Öl", "THF", "thf")}
    )
    assert found.cells("s") == ["DMF", "Öl", "THF", "thf"]
    assert "(row 2: 'dmf') is taken for 'DMF': case does not matter" in "".join(found.remarks)


def test_thousands_among_whole_numbers_are_asked_about(tmp_path: Path) -> None:
    """'1.200' beside 800 and 950 is hardly 1.2, though other columns have decimal points."""
    text = "T,t_min,y\n800,1,3.5\n950,2,4.5\n1.200,3,5.5\n"
    assert "row 4, column 'T': '1.200' can be read as 1200" in _clean(tmp_path, text).problems[0]
    told = CellRules.of({"1.200": 1200})
    assert _clean(tmp_path, text, rules=told).cells("T") == ["800", "950", "1200"]
    assert _clean(tmp_path, "T,t_min,y\n0.8,1,3.5\n1.200,3,5.5\n").problems == ()


def test_shares_among_percentages_are_asked_about(tmp_path: Path) -> None:
    """Where some cells have a % and the header does not tell."""
    found = _clean(tmp_path, "T,y\n1,88 %\n2,0.9\n3,91\n", numbers=("T",))
    assert [problem.split("a.csv, ")[1][:40] for problem in found.problems] == [
        "row 3, column 'y': '0.9' has no %, but o"
    ]


def test_a_current_table_keeps_its_rows(tmp_path: Path) -> None:
    """What lacks an input is somebody else's to refuse."""
    assert len(_clean(tmp_path, "T,t_min,y\n1,2,3\n,2,3\n", past=False).rows) == 2


def test_one_cell_in_another_unit_does_not_turn_the_column(tmp_path: Path) -> None:
    """It is converted where the header tells the unit, else it is asked about; one in the others' range tells it."""
    found = _clean(tmp_path, "T [°C],y\n60,1\n353.15 K,2\n90,3\n", numbers=("T [°C]",))
    assert found.cells("T [°C]") == ["60", "80", "90"]
    found = _clean(tmp_path, "T,y\n60,1\n353.15 K,2\n90,3\n", numbers=("T",))
    assert "row 3, column 'T': '353.15 K' is in K, but other cells" in found.problems[0]
    renamed = _clean(tmp_path, "T,y\n60,1\n353.15 K,2\n90,3\n", {"T": "T [°C]"}, numbers=("T [°C]",))
    assert renamed.cells("T [°C]") == ["60", "80", "90"]
    assert _clean(tmp_path, "T,y\n60,1\n80 °C,2\n90,3\n", numbers=("T",)).problems == ()


def test_cells_that_could_be_two_numbers_are_one_question(tmp_path: Path) -> None:
    """However many there are in a column, with the way to leave it out."""
    rows = "".join(f"12.{301 + i};{i},5\n" for i in range(25))
    (problem,) = _clean(tmp_path, f"T;y\n{rows}", numbers=("T",)).problems
    assert "row 2, column 'T': '12.301' can be read as" in problem
    assert "It is so in 24 more cells of the column (rows 3, 4, 5 …)." in problem
    assert isinstance(problem, Message)
    assert Setting("ignore", "T") in problem.settings
