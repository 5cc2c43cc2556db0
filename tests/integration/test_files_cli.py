"""Files as laboratories have them, from the command line: the three messy ones, workbooks, and the space by hand."""

from __future__ import annotations

import datetime
import shutil
from pathlib import Path

import pytest
from openpyxl import Workbook, load_workbook
from tests.integration.command import assert_refused, invoke
from tests.integration.odd_files import ods_bytes
from tests.unit.campaign.campaigns import fingerprint, make

from headstart.campaign.campaign import open_campaign
from headstart.sources.files.tables import read_table

MESSY = Path(__file__).parent / "messy"
INIT = ["--objective", "y", "--maximize"]


def test_numbers_that_are_only_names_are_a_category(tmp_path: Path) -> None:
    """Where --category says so; a range without it."""
    path = tmp_path / "past.csv"
    path.write_text("x,reactor,y\n" + "".join(f"{i / 10},{i % 3 + 1},{i % 7}\n" for i in range(12)))
    assert invoke("init", path, *INIT, "--category", "reactor", "--folder", tmp_path).exit_code == 0
    assert open_campaign(tmp_path).file.parameters[1].choices == ("1", "2", "3")
    assert invoke("init", path, *INIT, "--force", "--folder", tmp_path).exit_code == 0
    assert not open_campaign(tmp_path).file.parameters[1].is_text


def test_three_messy_files_reach_a_suggestion_in_two_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Titles, units in cells, kelvin, hours, other spellings, people, dates and a workbook are understood, and told."""
    folder = tmp_path / "lab"
    shutil.copytree(MESSY, folder)
    monkeypatch.chdir(folder)
    files = sorted(path.name for path in folder.iterdir())
    before = fingerprint(folder)
    first = invoke("init", *files, "--objective", "Ausbeute", "--maximize")
    assert first.exit_code == 0, first.output
    second = invoke("suggest", "-n", "2")
    assert second.exit_code == 0, second.output
    assert {name: content for name, content in fingerprint(folder).items() if name in before} == before
    campaign = open_campaign(folder)
    assert [p.name for p in campaign.file.parameters] == [
        "Temperatur [°C]", "Zeit [min]", "Konz. [mol/L]", "Lösungsmittel"
    ]  # fmt: skip
    assert {"Datum", "Reinheit [%]", "Bearbeiter", "Bemerkung", "operator", "remarks", "Notizen", "Nr"} == set(
        campaign.file.ignore
    )
    ranges = {p.name: (p.low, p.high, p.step) for p in campaign.file.parameters if not p.is_text}
    assert ranges == {
        "Temperatur [°C]": (40, 120, 10),
        "Zeit [min]": (15, 120, 15),
        "Konz. [mol/L]": (0.05, 0.4, 0.05),
    }
    assert campaign.file.parameters[3].choices == ("DMF", "MeCN", "THF")
    results = {task.name: (len(task.y), float(task.y.min()), float(task.y.max())) for task in campaign.past}
    assert {name: n for name, (n, _, _) in results.items()} == {"2023 Amid A": 14, "series_b": 12, "Kampagne C": 13}
    assert all(0 < low <= high <= 100 for _, low, high in results.values())
    for told in (
        "row 1 ('Series B - exported 2024-05-02') is above the header in row 2 and left out",
        "13 values are converted from K to °C",
        "'temperatur [K]' is taken for 'Temperatur [°C]'",
        "is read without its unit °C",
        "(row 6: '<1') counts as half of its limit",
        "(row 13: 'n/a') is no value: the row is left out",
        "counts as failed",
        "the sheet 'Versuche' is read",
    ):
        assert told in first.stderr, told
    assert "Not a parameter: Reinheit [%] (by its name it is measured, not set). (--parameter" in first.stdout


def test_all_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    """In every file, each in a line of its own, and nothing is written."""
    (tmp_path / "a.csv").write_text("x,z,y\n1,warm,3\n2,3,good\n3,1,4\n4,2,5\n")
    (tmp_path / "b.csv").write_text("x,z,y\n1,5-7,3\n2,3,4\n3,2,4\n")
    before = fingerprint(tmp_path)
    result = invoke("init", tmp_path / "a.csv", tmp_path / "b.csv", *INIT, "--folder", tmp_path)
    assert result.exit_code == 2
    lines = result.stderr.splitlines()
    assert [line.split(", row")[0].rpartition("/")[2] for line in lines] == ["a.csv", "a.csv", "b.csv"]
    assert all(line.startswith("headstart: ") for line in lines)
    assert fingerprint(tmp_path) == before
    (tmp_path / "c.csv").write_text("")
    result = invoke("init", tmp_path / "c.csv", tmp_path / "d.csv", *INIT, "--folder", tmp_path)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 2


def test_cells_are_said_once_and_for_all(tmp_path: Path) -> None:
    """``--cell`` answers what was asked, and is written into headstart.toml."""
    (tmp_path / "a.csv").write_text("x;z;y\n1.200;5;3\n1.500;6;4\n900;7;5\n1.000;8;n.d.\n")
    command = ["init", tmp_path / "a.csv", *INIT, "--folder", tmp_path]
    result = invoke(*command)
    assert result.exit_code == 2
    assert "'1.200' can be read as 1200 or as 1.200" in result.stderr
    result = invoke(*command, "--cell", "decimal_mark=,", "--cell", "n.d.=6.5")
    assert result.exit_code == 0, result.output
    campaign = open_campaign(tmp_path)
    assert campaign.past[0].rows["x"].tolist() == [1200.0, 1500.0, 900.0, 1000.0]
    assert campaign.past[0].y.tolist() == [3.0, 4.0, 5.0, 6.5]
    assert campaign.file.cells == {"decimal_mark": ",", "n.d.": 6.5}
    assert_refused(invoke(*command, "--cell", "n.d."), "--cell must be TEXT=MEANING")
    assert_refused(invoke(*command, "--cell", "n.d.=gone"), "'n.d.' gets 'gone'")


def test_a_slip_of_the_decimal_mark_is_asked_about(tmp_path: Path) -> None:
    """In a past file and in the current one; what was said to be right is used, and a 1e9 is no slip."""
    folder = make(tmp_path, current="x,s,y\n0.3,u,3.4\n0.5,u,884\n")
    before = fingerprint(folder)
    result = invoke("suggest", "--folder", folder)
    assert_refused(result, "current.csv, row 3, column 'y': 884 is", "(8.84?)", '"884" = 884 in [cells]')
    assert fingerprint(folder) == before
    toml = folder / "headstart.toml"
    toml.write_text(toml.read_text() + '\n[cells]\n"884" = 884\n')
    assert invoke("suggest", "--folder", folder).exit_code == 0
    toml.write_text(toml.read_text().replace('"884" = 884', '"884" = 8.84'))
    assert open_campaign(folder).experiments[1].results == {"y": 8.84}
    (folder / "current.csv").write_text("x,s,y\n0.3,u,3.4\n0.5,u,1e9\n")
    assert invoke("suggest", "--folder", folder).exit_code == 0
    toml.write_text(toml.read_text().replace("= 8.84", '= "gone"'))
    assert_refused(invoke("suggest", "--folder", folder), "headstart.toml, line", "'884' gets 'gone'")


@pytest.mark.parametrize(
    ("first", "second", "parts"),
    [
        (
            "m [g],x,y\n1,1,2\n2,2,3\n",
            "m [%],x,y\n1,1,2\n2,2,3\n",
            ["'m [%]' and 'm [g]'", "% cannot be converted to g"],
        ),
        ("x,y_g\n1,2\n2,3\n", "x,y [%]\n1,2\n3,3\n", ["'y [%]' and 'y_g'", "% cannot be converted to g"]),
    ],
)
def test_units_are_never_renamed_into_each_other(tmp_path: Path, first: str, second: str, parts: list[str]) -> None:
    """Neither of parameters nor of results."""
    (tmp_path / "a.csv").write_text(first)
    (tmp_path / "b.csv").write_text(second)
    result = invoke("init", tmp_path / "a.csv", tmp_path / "b.csv", *INIT, "--folder", tmp_path)
    assert_refused(result, *parts)


def test_a_new_name_converts(tmp_path: Path) -> None:
    """``--rename "T [K]=temperature_C"`` is no relabelling, and later commands convert too."""
    (tmp_path / "a.csv").write_text("temperature_C,y\n20,2\n45,3\n70,4\n")
    (tmp_path / "b.csv").write_text("T [K],y\n303.15,2\n333.15,3\n")
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    result = invoke("init", *paths, *INIT, "--rename", "t [k]=temperature_C", "--folder", tmp_path)
    assert result.exit_code == 0, result.output
    assert "2 values are converted from K to °C" in result.stderr
    campaign = open_campaign(tmp_path)
    assert campaign.past[1].rows["temperature_C"].tolist() == [30.0, 60.0]
    assert campaign.file.parameters[0].high == 70


def test_a_campaign_by_hand_in_a_workbook(tmp_path: Path) -> None:
    """Without past files the suggestions are spread out in the user's units; results are read from the workbook."""
    told = ["T [°C]=20..120", "n=1..9 int", "c=0.001..1 log", "t=10..60 step 5", "solvent=DMF|THF"]
    options = [word for text in told for word in ("--parameter", text)]
    command = ["init", "--objective", "yield [%]", "--maximize", "--folder", tmp_path, "--current", "current.xlsx"]
    result = invoke(*command, *options)
    assert result.exit_code == 0, result.output
    assert "'yield [%]' is a percentage: no result below 0 or above 100 will be taken" in result.stderr
    outcome = open_campaign(tmp_path).file.results[0].outcome
    assert (outcome.low, outcome.high) == (0, 100)
    result = invoke("suggest", "-n", "4", "--folder", tmp_path)
    assert result.exit_code == 0, result.output
    assert result.stdout.count("not known yet   nothing yet") == 4
    table = read_table(tmp_path / "current.xlsx")
    rows = list(zip(*([c.value for c in table.parsed(name)] for name in ("T [°C]", "n", "c", "t")), strict=True))
    for T, n, c, t in rows:
        assert T is not None and 20 <= T <= 120  # noqa: PT018
        assert n in range(1, 10)
        assert c is not None and 0.001 <= c <= 1  # noqa: PT018
        assert t in range(10, 61, 5)
    assert max(r[0] or 0 for r in rows) - min(r[0] or 0 for r in rows) > 40
    book = load_workbook(tmp_path / "current.xlsx")
    sheet = book.active
    assert sheet is not None
    for row in (2, 3):
        sheet.cell(row, 6).value = 10.5 * row
    sheet.cell(4, 6).value = "failed"
    book.save(tmp_path / "current.xlsx")
    result = invoke("suggest", "--folder", tmp_path)
    assert result.exit_code == 0, result.output
    campaign = open_campaign(tmp_path)
    assert [str(e.state) for e in campaign.experiments] == ["finished", "finished", "failed", "pending", "pending"]
    (tmp_path / "~$current.xlsx").touch()
    before = fingerprint(tmp_path)
    assert_refused(invoke("suggest", "--folder", tmp_path), "current.xlsx is open in a spreadsheet program")
    assert fingerprint(tmp_path) == before


@pytest.mark.parametrize(
    ("told", "part"),
    [
        ("T=120..20", "120 is not below 20"),
        ("T=20..", "is no range and no list"),
        ("c=0..1 log", "A log scale needs a lower end above 0"),
        ("n=1.5..9 int", "Whole numbers need whole ends"),
        ("T=1.200..5.000", "is not understood"),
        ("T=20..120 fast", "is not understood"),
        ("s=DMF|dmf", "every category needs a name of its own"),
        ("T=20..30 step 50", "A step must be positive"),
        ("T=", "parameter must be NAME=LOW..HIGH"),
    ],
)
def test_a_parameter_by_hand_that_is_none(tmp_path: Path, told: str, part: str) -> None:
    """What is wrong, and how it is written."""
    result = invoke("init", *INIT, "--folder", tmp_path, "--parameter", told)
    assert_refused(result, part)
    assert list(tmp_path.iterdir()) == []


def test_neither_files_nor_parameters_is_nothing(tmp_path: Path) -> None:
    """It says what would do."""
    assert_refused(invoke("init", *INIT, "--folder", tmp_path), "No past file was given", "--parameter 'T=20..120'")


def test_the_sheet_of_all_workbooks_is_said_once(tmp_path: Path) -> None:
    """Other files are read as they are; a sheet that is not there, or of no workbook, is refused."""
    make(tmp_path)
    book = Workbook()
    assert book.active is not None
    book.active.append(["nothing", "here"])
    sheet = book.create_sheet("Runs 2024")
    for row in [["x", "s", "y"], *([i / 10, "uv"[i % 2], float(i)] for i in range(8))]:
        sheet.append(row)
    book.save(tmp_path / "c.xlsx")
    (tmp_path / "headstart.toml").unlink()
    folder = ["--folder", tmp_path]
    files = [tmp_path / name for name in ("a.csv", "c.xlsx")]
    result = invoke("init", *files, *INIT, "--sheet", "runs 2024", *folder)
    assert result.exit_code == 0, result.output
    assert [len(task.y) for task in open_campaign(tmp_path).past] == [12, 8]
    before = fingerprint(tmp_path)
    refused = invoke("init", *files, *INIT, "--sheet", "Run", "--force", *folder)
    assert_refused(refused, "c.xlsx: there is no sheet 'Run'. Its sheets are 'Sheet', 'Runs 2024'")
    assert_refused(
        invoke("check", files[0], "--objective", "y", "--sheet", "Run"),
        "--sheet names 'Run', but no file is a workbook",
    )
    assert_refused(invoke("check", "--sheet", "Run", *folder), "--sheet go with past files")
    assert fingerprint(tmp_path) == before


def test_a_current_table_that_cannot_be_written_is_only_read(tmp_path: Path) -> None:
    """Suggestions go to a CSV file beside it, and it is said what to do with them."""
    make(tmp_path)
    (tmp_path / "current.ods").write_bytes(ods_bytes([["x", "s", "y"], ["0.5", "u", "9"]]))
    toml = tmp_path / "headstart.toml"
    toml.write_text('current = "current.ods"\n' + toml.read_text())
    before = (tmp_path / "current.ods").read_bytes()
    result = invoke("suggest", "-n", "2", "--folder", tmp_path)
    assert result.exit_code == 0, result.output
    assert "current.ods is only read, for writing into it would lose what only .ods files hold." in result.stderr
    assert "current-next.csv. Copy its rows into" in result.stdout
    assert len(read_table(tmp_path / "current-next.csv").rows) == 2
    assert (tmp_path / "current.ods").read_bytes() == before
    result = invoke("status", "--folder", tmp_path)
    assert result.exit_code == 0, result.output
    assert "1 finished" in result.stdout


def test_dates_of_a_list_stay_dates(tmp_path: Path) -> None:
    """As they are printed, and as they are written into the new table."""
    make(tmp_path, current="made,x,s,y\n")
    book = Workbook()
    assert book.active is not None
    for row in [
        ["made", "x", "s"],
        [datetime.datetime(2024, 3, 1), 0.5, "u"],
        [datetime.datetime(2024, 3, 2), 0.7, "v"],
    ]:
        book.active.append(row)
        book.active.cell(book.active.max_row, 1).number_format = "DD.MM.YYYY"
    book.save(tmp_path / "shelf.xlsx")
    toml = tmp_path / "headstart.toml"
    toml.write_text('candidates = "shelf.xlsx"\n' + toml.read_text())
    result = invoke("suggest", "-n", "2", "--folder", tmp_path)
    assert result.exit_code == 0, result.output
    for text in (result.stdout, (tmp_path / "current.csv").read_text()):
        assert "2024-03-01" in text
        assert "2024-03-02" in text
        assert "00:00" not in text
