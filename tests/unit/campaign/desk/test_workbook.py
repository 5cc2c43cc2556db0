"""A workbook as the file of experiments: cells are written, and everything else in it stays."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from openpyxl import Workbook, load_workbook
from openpyxl.chart import BarChart, Reference
from openpyxl.styles import Font
from tests.unit.campaign.campaigns import fingerprint, make

from headstart.campaign.campaign import append_experiments, open_campaign
from headstart.campaign.desk.changes import add_row, add_suggestions, remove_row, save_results
from headstart.campaign.desk.contents import contents_of
from headstart.campaign.desk.history import digest, undo_step
from headstart.errors import InputError


def _book(folder: Path, *, named: str = "current.xlsx") -> Path:
    """A workbook with a format, a formula, a note, and a second sheet."""
    make(folder)
    toml = folder / "headstart.toml"
    toml.write_text(f'current = "{named}"\n' + toml.read_text())
    (folder / "current.csv").unlink()
    book = Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.title = "runs"
    for row in (
        ["x", "s", "y", "twice", "note"],
        [0.1, "u", 1.5, "=C2*2", "calm"],
        [0.2, "v"],
        [0.3, "u", None, None, "!"],
    ):
        sheet.append(row)
    sheet["C2"].font = Font(bold=True)
    sheet["A3"].number_format = "0.000"
    other = book.create_sheet("plans")
    other.append(["more", "to", "do"])
    path = folder / "current.xlsx"
    book.save(path)
    return path


def _seen(path: Path) -> str:
    return str(digest(path.read_bytes()))


@pytest.mark.parametrize("named", ["current.xlsx", "current.xlsx#runs"])
def test_results_and_settings_are_written_and_all_else_stays(tmp_path: Path, named: str) -> None:
    """Formats, formulas, notes and other sheets; and undoing puts every byte back."""
    path = _book(tmp_path, named=named)
    before, key = path.read_bytes(), contents_of(tmp_path).key
    step = save_results(tmp_path, _seen(path), {(3, "y"): "2,5", (3, "x"): "0.25", (2, "y"): "1.75"}, failed=[4])
    assert step is not None
    assert contents_of(tmp_path).key != key
    sheet = load_workbook(path)["runs"]
    rows = [[cell.value for cell in row[:3]] for row in sheet.iter_rows(min_row=2)]
    assert rows == [[0.1, "u", 1.75], [0.25, "v", 2.5], [0.3, "u", "failed"]]
    assert sheet["C2"].font.bold
    assert sheet["A3"].number_format == "0.000"
    assert sheet["D2"].value == "=C2*2"
    assert sheet["E4"].value == "!"
    assert [[cell.value for cell in row] for row in load_workbook(path)["plans"]] == [["more", "to", "do"]]
    assert [e.state.value for e in open_campaign(tmp_path).experiments] == ["finished", "finished", "failed"]
    undo_step(tmp_path, step.number)
    assert path.read_bytes() == before


def test_rows_are_added_and_emptied(tmp_path: Path) -> None:
    """A row that is taken out leaves its place, so that whatever refers to others stays right."""
    path = _book(tmp_path)
    add_row(tmp_path, _seen(path), {"x": "0,9", "s": "u", "y": "3"})
    assert add_suggestions(tmp_path, _seen(path), [{"x": 0.5, "s": "v"}]) == (6,)
    remove_row(tmp_path, _seen(path), 4)
    found = {e.number: (e.values["x"], e.results) for e in open_campaign(tmp_path).experiments}
    assert found == {2: (0.1, {"y": 1.5}), 3: (0.2, {}), 5: (0.9, {"y": 3.0}), 6: (0.5, {})}


def test_a_cell_in_percent_shows_the_number_that_was_typed(tmp_path: Path) -> None:
    """8 % is 0.08 in the workbook, and neither 8 nor 800 %."""
    path = _book(tmp_path)
    book = load_workbook(path)
    book["runs"]["C3"].number_format = "0.0%"
    book.save(path)
    save_results(tmp_path, _seen(path), {(3, "y"): "8.84"})
    assert load_workbook(path)["runs"]["C3"].value == pytest.approx(0.0884)
    assert load_workbook(path)["runs"]["C3"].number_format == "0.0%"
    assert open_campaign(tmp_path).experiments[1].results == {"y": 8.84}


def test_an_open_workbook_is_left_alone(tmp_path: Path) -> None:
    """In words, with nothing changed."""
    path = _book(tmp_path)
    lock = tmp_path / "~$current.xlsx"
    lock.write_text("")
    before = fingerprint(tmp_path)
    with pytest.raises(InputError, match="open in a spreadsheet program"):
        save_results(tmp_path, _seen(path), {(4, "y"): "2"})
    assert {k: v for k, v in fingerprint(tmp_path).items() if not k.startswith(".headstart")} == before


def _with_chart(book: Workbook) -> None:
    chart = BarChart()
    chart.add_data(Reference(book["runs"], min_col=3, min_row=1, max_row=3))
    book["runs"].add_chart(chart, "H2")


def _with_formula(book: Workbook) -> None:
    book["runs"]["C3"] = "=1+1"


@pytest.mark.parametrize(
    ("spoil", "lost"),
    [(_with_chart, "charts"), (_with_formula, "the values of the formulas in column 'y'")],
)
def test_a_workbook_that_would_lose_something_is_only_read(
    tmp_path: Path, spoil: Callable[[Workbook], None], lost: str
) -> None:
    """Suggestions are written to a CSV file beside it, with the columns of the sheet; it says so."""
    path = _book(tmp_path)
    book = load_workbook(path)
    spoil(book)
    book.save(path)
    toml = tmp_path / "headstart.toml"
    toml.write_text(toml.read_text() + '\n[cells]\n"=1+1" = "missing"\n')
    before, beside = path.read_bytes(), tmp_path / "current-next.csv"
    with pytest.raises(InputError, match=f"is only read, for writing into it would lose {lost}"):
        save_results(tmp_path, _seen(path), {(3, "y"): "2"})
    campaign = open_campaign(tmp_path)
    assert f"{path} is only read, for writing into it would lose {lost}. Suggestions are written to {beside}" in str(
        campaign.remarks
    )
    assert add_suggestions(tmp_path, _seen(path), [{"x": 0.5, "s": "v"}]) == ()
    assert beside.read_text("utf-8-sig").splitlines() == ["x,s,y,twice,note", "0.5,v,,,"]
    assert append_experiments(campaign, [{"x": 0.25, "s": "u"}]) == beside
    assert beside.read_text("utf-8-sig").splitlines()[1:] == ["0.25,u,,,"]
    assert path.read_bytes() == before


def test_values_of_formulas_that_are_gone_do_not_matter_to_the_campaign(tmp_path: Path) -> None:
    """Writing keeps a formula without its value: rows are read as before, and equal ones are still seen."""
    path = _book(tmp_path)
    book = load_workbook(path)
    for number in (5, 6):
        for place, value in enumerate((0.7, "u", 2.0, f"=C{number}*2"), start=1):
            book["runs"].cell(number, place, value)
    book.save(path)
    before = open_campaign(tmp_path)
    add_suggestions(tmp_path, _seen(path), [{"x": 0.5, "s": "v"}])
    after = open_campaign(tmp_path)
    assert after.experiments[:-1] == before.experiments
    assert [e.number for e in after.experiments] == [2, 3, 4, 5, 7]
    assert "equal in every cell are rows 5 and 6" in str(after.remarks)
    assert load_workbook(path)["runs"]["D6"].value == "=C6*2"
