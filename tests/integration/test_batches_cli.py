"""A campaign over two days: real files with dates, from ``headstart init`` to the data that models get."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path
from random import Random

import pytest
from openpyxl import Workbook, load_workbook
from tests.integration.command import invoke

from headstart.campaign.campaign import append_experiments, open_campaign
from headstart.campaign.fitted import Fitted, fit_campaign
from headstart.campaign.suggestions import next_experiments

FIRST, SECOND = date(2026, 11, 3), date(2026, 11, 4)


def _yield(T: float, t: float) -> float:
    return 80 * math.exp(-(((T - 85) / 25) ** 2) - ((t - 40) / 30) ** 2)


def _rows(first: date, draw: Random) -> list[tuple[date, int, int, float]]:
    """Three days of four experiments, with a shift of every day."""
    rows = []
    for k in range(3):
        shift = draw.gauss(0, 8)
        for _ in range(4):
            T, t = draw.randrange(50, 121, 5), draw.randrange(10, 91, 5)
            rows.append((first + timedelta(k), T, t, round(_yield(T, t) + shift + draw.gauss(0, 1), 1)))
    return rows


def _past(folder: Path) -> list[Path]:
    """A German CSV file, and a workbook with dates in cells of their own."""
    draw, german, book = Random(3), folder / "2024.csv", Workbook()
    rows = [f"{d:%d.%m.%Y};{T};{t};{str(y).replace('.', ',')}" for d, T, t, y in _rows(date(2024, 3, 4), draw)]
    german.write_bytes("\r\n".join(["Datum;T [°C];t [min];Ausbeute [%]", *rows, ""]).encode("utf-8-sig"))
    sheet = book.active
    assert sheet is not None
    for row in [("Datum", "T [°C]", "t [min]", "Ausbeute [%]"), *_rows(date(2025, 6, 10), draw)]:
        sheet.append(row)
    book.save(folder / "2025.xlsx")
    return [german, folder / "2025.xlsx"]


def _begun(folder: Path, *options: str) -> str:
    result = invoke("init", *_past(folder), "--objective", "Ausbeute", "--maximize", "--folder", folder, *options)
    assert result.exit_code == 0, result.output
    return result.output


def _suggested(folder: Path, today: date) -> Fitted:
    """Two suggestions of that day, written into the table; the models that they come from."""
    fitted = fit_campaign(open_campaign(folder, today=today))
    append_experiments(fitted.campaign, [one.values for one in next_experiments(fitted, 2)])
    return fitted


def _batches(fitted: Fitted) -> tuple[Sequence[float], float]:
    target = fitted.first.target
    assert target.batch is not None
    assert target.present is not None
    return target.batch.tolist(), float(target.present)


def test_two_days_in_a_table_of_text(tmp_path: Path) -> None:
    """The day is proposed, new rows have it as the past file writes days, and every day is a batch of the data."""
    output = _begun(tmp_path)
    assert "Batch: Datum (6 days in 2 files, 4 rows each). Results of one batch may be shifted together." in output
    assert "--batch none" in output
    assert 'batch = "Datum"  # 6 days in 2 files, 4 rows each' in (tmp_path / "headstart.toml").read_text("utf-8")
    table = tmp_path / "current.csv"
    assert table.read_text("utf-8-sig") == "Datum;T [°C];t [min];Ausbeute [%]\n"
    fitted = _suggested(tmp_path, FIRST)
    assert [one.data.batch.tolist() for one in fitted.first.past if one.data.batch is not None] == [
        [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]
    ] * 2
    header, *rows = table.read_text("utf-8-sig").splitlines()
    assert [row.split(";")[0] for row in rows] == ["03.11.2026"] * 2
    measured = [f"{row}{value}" for row, value in zip(rows, ("71,5", "68,9"), strict=True)]
    table.write_bytes("\n".join([header, *measured, ""]).encode("utf-8-sig"))
    assert _batches(fit_campaign(open_campaign(tmp_path, today=FIRST))) == ([0, 0], 0)
    fitted = _suggested(tmp_path, SECOND)
    assert _batches(fitted) == ([0, 0], 1)
    assert fitted.first.target.has_shifts
    rows = table.read_text("utf-8-sig").splitlines()
    assert [row.split(";")[0] for row in rows[3:]] == ["04.11.2026"] * 2
    table.write_bytes("\n".join([*rows[:3], f"{rows[3]}75,2", rows[4], ""]).encode("utf-8-sig"))
    assert _batches(fit_campaign(open_campaign(tmp_path, today=SECOND))) == ([0, 0, 1], 1)


def test_two_days_in_a_workbook(tmp_path: Path) -> None:
    """New rows have dates that the spreadsheet program knows as such; so it is if somebody types the next ones."""
    _begun(tmp_path, "--current", "current.xlsx")
    _suggested(tmp_path, FIRST)
    path = tmp_path / "current.xlsx"
    book = load_workbook(path)
    sheet = book.active
    assert sheet is not None
    assert [cell.value.date() for (cell,) in sheet["A2:A3"]] == [FIRST, FIRST]
    assert sheet["A2"].is_date
    for row, result in ((2, 71.5), (3, 68.9)):
        sheet.cell(row, 4).value = result
    sheet.append([SECOND, 85, 40, 75.2])
    book.save(path)
    fitted = _suggested(tmp_path, SECOND)
    assert _batches(fitted) == ([0, 0, 1], 1)
    sheet = load_workbook(path).active
    assert sheet is not None
    assert [cell.value.date() for (cell,) in sheet["A5:A6"]] == [SECOND, SECOND]


def test_the_commands_name_the_batch(tmp_path: Path) -> None:
    """suggest has a column for it, and suggest, status and check say how many there are and which is the present."""
    _begun(tmp_path)
    today = date.today()
    told = (
        "Batch: Datum. 6 in the past files, 0 with results in this campaign. What is expected is a result in the "
        f"present one, {today}, which has no result yet."
    )
    for command in (["suggest", "-n", 1], ["status"], ["check"]):
        result = invoke(*command, "--folder", tmp_path)
        assert result.exit_code == 0, result.output
        assert result.output.count(told) == 1
        assert (f"{today:%d.%m.%Y}" in result.output) == (command[0] == "suggest")
    assert (tmp_path / "current.csv").read_text("utf-8-sig").splitlines()[-1].startswith(f"{today:%d.%m.%Y};")


@pytest.mark.parametrize("option", [["--batch", "none"], ["--ignore", "Datum"]])
def test_somebody_may_say_that_there_is_no_batch(tmp_path: Path, option: list[str]) -> None:
    """The campaign is then what it is without such columns, and check says nothing of batches."""
    assert "Batch" not in _begun(tmp_path, *option)
    assert "batch" not in (tmp_path / "headstart.toml").read_text("utf-8")
    fitted = fit_campaign(open_campaign(tmp_path))
    assert [one.data.batch for one in fitted.first.past] == [None, None]
    result = invoke("check", *sorted(tmp_path.glob("202*")), "--objective", "Ausbeute", *option, "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert "Batch" not in result.output


def test_a_batch_that_no_file_has_is_refused(tmp_path: Path) -> None:
    """With the name that may be meant, and so is one that is a result."""
    result = invoke("init", *_past(tmp_path), "--objective", "Ausbeute", "--maximize", "--batch", "Datm")
    assert result.exit_code == 2
    assert "batch names 'Datm', but no file has such a column. Did you mean 'Datum'?" in result.output
    result = invoke("init", *_past(tmp_path), "--objective", "Ausbeute", "--maximize", "--batch", "Ausbeute [%]")
    assert result.exit_code == 2
    assert "batch names 'Ausbeute [%]', which is a result, a parameter or ignored." in result.output


def test_a_model_that_knows_no_shifts_is_proposed_no_batch(tmp_path: Path) -> None:
    """So that the campaign that init writes can be learnt."""
    assert "Batch" not in _begun(tmp_path, "--model", "hgp")
