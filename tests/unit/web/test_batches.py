"""The column that tells batches, on the page: proposed, told otherwise, written, and taken out."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest
from tests.unit.campaign.campaigns import make, value
from tests.unit.web.pages import Visitor, field, visiting, words
from tests.unit.web.test_begin import drop, fields_of, place

from headstart.campaign.file import CampaignFile
from headstart.campaign.toml.reading import read_campaign_file


def days(month: int, header: str = "date,who,x,s,y") -> bytes:
    """A past file with three days of four experiments, of which two people did some."""
    rows = []
    for i in range(12):
        x, s = (i + 0.5) / 12, "uv"[i % 2]
        rows.append(f"2026-{month:02d}-{i // 4 + 2:02d},{'AB'[i // 2 % 2]},{x:.3f},{s},{value(x, s)}")
    return "\n".join([header, *rows, ""]).encode()


def dropped(visitor: Visitor, *files: tuple[str, bytes]) -> dict[str, str]:
    return fields_of(drop(visitor, *(files or (("a.csv", days(3)), ("b.csv", days(6))))))


def sent(visitor: Visitor, fields: dict[str, str], **roles: str) -> str:
    """The page that looks again with other roles of some columns."""
    told = {f"role{place(fields, column)}": role for column, role in roles.items()}
    return visitor.post("/begin/columns", {**fields, **told, "do": "look"}, of="/begin").text


def written(visitor: Visitor, folder: Path, fields: dict[str, str]) -> CampaignFile:
    done = visitor.post("/begin/columns", {**fields, "do": "write"}, of="/begin")
    assert done.url.path == "/experiments", words(done.text)
    return read_campaign_file(folder / "headstart.toml")


def roles(fields: dict[str, str], *columns: str) -> list[str]:
    return [fields[f"role{place(fields, column)}"] for column in columns]


def test_days_are_proposed_as_the_batch_and_stay_a_proposal(tmp_path: Path) -> None:
    """In sight, with what was understood; other columns are corrected, and another file changes it."""
    with visiting(tmp_path) as visitor:
        page = drop(visitor, ("a.csv", days(3)), ("b.csv", days(6)))
        assert "batch: 6 days in 2 files, 4 rows each; results of one batch may be shifted together" in words(page)
        assert "1 column left out: who" in words(page)
        fields = fields_of(sent(visitor, fields_of(page), y="minimise"))
        assert roles(fields, "date", "who", "y") == ["batch", "ignore", "minimise"]
        fields = fields_of(sent(visitor, {**fields, f"step{place(fields, 'x')}": "0.1"}))
        assert '"told": {}' in fields[f"k{place(fields, 'date')}"]
        assert written(visitor, tmp_path, fields).batch == "date"
        assert 'batch = "date"  # 6 days in 2 files, 4 rows each' in (tmp_path / "headstart.toml").read_text()
        assert (tmp_path / "current.csv").read_text() == "date,x,s,y\n"


def test_a_batch_that_is_not_used_leaves_none(tmp_path: Path) -> None:
    """Not even the next likely one, through as many looks as there are; a parameter may be one, too."""
    with visiting(tmp_path) as visitor:
        fields = dropped(visitor)
        for _ in range(2):
            fields = fields_of(sent(visitor, fields, date="ignore"))
            assert roles(fields, "date", "who") == ["ignore", "ignore"]
        file = written(visitor, tmp_path, fields)
        assert (file.batch, file.ignore) == ("", ("date", "who"))
        fields = fields_of(sent(visitor, fields_of(visitor.get("/begin?anew").text), date="ignore", who="parameter"))
        assert roles(fields, "date", "who") == ["ignore", "parameter"]
        again = fields_of(sent(visitor, fields, date="batch"))
        assert roles(again, "date", "who") == ["batch", "parameter"]


def test_another_column_is_the_batch(tmp_path: Path) -> None:
    """It takes the place of the one that is proposed; two that are told are one too many."""
    with visiting(tmp_path) as visitor:
        fields = fields_of(page := sent(visitor, dropped(visitor), who="batch"))
        assert roles(fields, "date", "who") == ["ignore", "batch"]
        assert "batch: 4 batches in 2 files, 6 rows each; results of one batch may be shifted together" in words(page)
        both = sent(visitor, fields, date="batch")
        assert "date and who cannot both be the batch. Choose one." in words(both)
        assert roles(fields_of(both), "date", "who", "x", "s", "y") == [
            "batch", "batch", "parameter", "parameter", "maximise"
        ]  # fmt: skip
        file = written(visitor, tmp_path, fields)
        assert (file.batch, file.ignore) == ("who", ("date",))


def test_a_column_that_would_count_may_be_the_batch(tmp_path: Path) -> None:
    """Then the next likely one is proposed to count."""
    header, *rows = days(3, "date,who,x,s,yield").decode().splitlines()
    lines = [f"{header},purity", *(f"{row},{90 + i * i % 7}.5" for i, row in enumerate(rows)), ""]
    with visiting(tmp_path) as visitor:
        fields = dropped(visitor, ("a.csv", "\n".join(lines).encode()))
        assert roles(fields, "yield", "purity") == ["maximise", "ignore"]
        page = sent(visitor, fields, **{"yield": "batch"})
        assert "Say which column is the result" in words(page)
        assert roles(fields_of(page), "yield", "purity") == ["batch", "maximise"]


def test_days_that_a_file_calls_otherwise_stand_beside_the_others(tmp_path: Path) -> None:
    """And can be told to be something else."""
    files = ("a.csv", days(3)), ("b.csv", days(6, "started,who,x,s,y"))
    with visiting(tmp_path) as visitor:
        fields = dropped(visitor, *files)
        assert fields[f"same{place(fields, 'started')}"] == "date"
        apart = fields_of(sent(visitor, {**fields, f"same{place(fields, 'started')}": "-"}))
        assert roles(apart, "date", "started") == ["batch", "ignore"]
        assert dict(written(visitor, tmp_path, fields).rename) == {"started": "date"}


def test_a_lot_may_be_a_setting(tmp_path: Path) -> None:
    """It is marked as doubtful, with a button; the days are the batch then."""
    header = "date,lot,x,s,y"
    with visiting(tmp_path) as visitor:
        page = drop(visitor, ("a.csv", days(3, header)), ("b.csv", days(6, header)))
        fields = fields_of(page)
        assert roles(fields, "date", "lot") == ["ignore", "batch"]
        button = f'<button name="set" value="role{place(fields, "lot")}=parameter" class="small">it is a setting'
        assert button in page
        one = {**fields, "set": f"role{place(fields, 'lot')}=parameter"}
        fields = fields_of(visitor.post("/begin/columns", one, of="/begin").text)
        assert roles(fields, "date", "lot") == ["batch", "parameter"]


ROWS = "day,x,s,y\n03.03.2026,0.1,u,1.5\n04.03.2026,0.2,v,2.5\n,0.3,u,\n05.03.2026,0.2,v,\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return with_batch(make(tmp_path, current=ROWS))


def with_batch(folder: Path, told: str = 'batch = "day"  # days in the notebook') -> Path:
    toml = folder / "headstart.toml"
    toml.write_text(f"# mine\n{told}\n{toml.read_text()}")
    return folder


def _current(folder: Path) -> str:
    return (folder / "current.csv").read_text()


def test_every_row_shows_its_day_and_a_control_is_marked(folder: Path) -> None:
    """An empty cell has the day above; of two repetitions the one on another day is a control."""
    with (folder / "current.csv").open("a") as file:
        file.write("04.03.2026,0.2,v,\n")
    with visiting(folder) as visitor:
        page = visitor.get("/experiments").text
        shown = re.findall(r'data-k="day"><span>([^<]*)</span>', page)
        assert shown == ["04.03.2026", "05.03.2026", "04.03.2026", "04.03.2026", "03.03.2026"]
        assert re.findall(r"\d <span class=\"quiet\">\(control\)", page) == ['5 <span class="quiet">(control)']
        assert "A control repeats a setting" in words(page)
        assert "Batch: day. 0 in the past files, 2 with results in this campaign." in words(page)
        download = visitor.get("/experiments/table.csv").text.splitlines()
        assert download[0].startswith("\ufeffrow,state,day,x,s,y,")
        assert [line.split(",")[2][:2] for line in download[1:]] == ["03", "04", "04", "05", "04"]


def test_the_day_of_a_row_is_corrected_where_its_settings_are(folder: Path) -> None:
    """What is no day is told, with what was typed, and nothing is written."""
    with visiting(folder) as visitor:
        page = visitor.post("/experiments/save", {"edit": "5"}).text
        there = {name: str(field(page, name)) for name in ("s5.0", "os5.0", "s5.1", "os5.1", "os5.2")}
        assert there["s5.0"] == there["os5.0"] == "05.03.2026"
        sent = {**there, "s5.2": there["os5.2"]}
        wrong = visitor.post("/experiments/save", {**sent, "s5.0": "31.02.2026", "r5.0": "2"})
        assert wrong.status_code == 422
        assert "'31.02.2026' is no day of the calendar" in words(wrong.text)
        assert (field(wrong.text, "s5.0"), field(wrong.text, "r5.0")) == ("31.02.2026", "2")
        assert _current(folder) == ROWS
        done = visitor.post("/experiments/save", {**sent, "s5.0": "06.03.2026", "r5.0": "2"})
        assert "settings were corrected in row 5" in done.text
        assert _current(folder) == ROWS.replace("05.03.2026,0.2,v,", "06.03.2026,0.2,v,2")


def test_an_own_experiment_is_of_today_or_of_the_day_that_is_typed(folder: Path) -> None:
    """Its field says which it is if it is left empty."""
    today = f"{date.today():%d.%m.%Y}"
    with visiting(folder) as visitor:
        assert f"{today} if it is left empty" in visitor.get("/experiments").text
        visitor.post("/experiments/add", {"p1": "0.5", "p2": "v"})
        visitor.post("/experiments/add", {"p0": "07.03.2026", "p1": "0.6", "p2": "u", "m0": "3"})
    assert _current(folder) == f"{ROWS}{today},0.5,v,\n07.03.2026,0.6,u,3\n"


def test_without_a_column_for_it_no_row_has_a_field_for_a_batch(tmp_path: Path) -> None:
    """A remark says that all results of such a file count as one batch."""
    rows = "date,who,x,s,y\n" + "".join(f"2026-03-0{i % 3 + 1},A,0.{i},u,{i}\n" for i in range(1, 8))
    with_batch(make(tmp_path, current="x,s,y\n0.1,u,1.5\n"), 'batch = "date"')
    (tmp_path / "a.csv").write_text(rows)
    with visiting(tmp_path) as visitor:
        page = visitor.get("/experiments").text
        assert 'data-k="date"' not in page
        assert "Without a column 'date' all results of a file count as one batch" in words(page)
        visitor.post("/experiments/add", {"p0": "0.5", "p1": "v"})
    assert _current(tmp_path).endswith("0.5,v,\n")


def test_suggestions_are_of_the_last_lot_and_the_past_says_how_far_lots_are_shifted(tmp_path: Path) -> None:
    """In the words of headstart check."""
    (tmp_path / "old.csv").write_bytes(days(3, "lot,who,x,s,y"))
    current = "lot,x,s,y\nL1,0.1,u,1.5\nL1,0.7,u,8\nL2,0.2,v,3.5\n"
    with_batch(make(tmp_path, current=current), 'batch = "lot"')
    toml = tmp_path / "headstart.toml"
    toml.write_text(toml.read_text().replace('["a.csv", "b.csv"]', '["old.csv"]').replace('["run"]', '["who"]'))
    with visiting(tmp_path, learning=True) as visitor:
        path = visitor.post("/experiments/ask", {"n": "1"}, of="/experiments").url.path
        visitor.settled(path if path.startswith("/job/") else "/experiments")
        assert _current(tmp_path).startswith(f"{current}L2,")
        page = words(visitor.settled("/past"))
    assert "Batch: lot. 3 in the past files, 2 with results in this campaign." in page
    told = page[page.index("How far are batches shifted?") : page.index("A weight of 1 takes over")]
    assert "this campaign: Results may differ by up to ±" in told
    assert "old: shifts from one lot to another are not clearly larger than the noise" in told


def test_a_campaign_is_told_that_its_results_are_not_shifted(folder: Path) -> None:
    """The batch and its drift leave the file, in which all else stays; the column is ignored, and it can be undone."""
    toml = folder / "headstart.toml"
    toml.write_text(
        toml.read_text().replace("notebook\n", "notebook\ndrift = 30\n").replace('["run"]', '[\n    "run",\n]')
    )
    before = toml.read_bytes()
    with visiting(folder) as visitor:
        page = words(visitor.get("/begin").text)
        assert "Batch: day. 0 in the past files, 2 with results in this campaign." in page
        assert "and shifts stay alike over some 30." in page
        assert visitor.post("/begin/ranges", {"batch": "", "seen": "other"}).status_code == 409
        visitor.post("/begin/ranges", {"low0": "0.05"})
        assert b"drift = 30" in toml.read_bytes()
        visitor.post("/experiments/undo", {"step": "1"})
        assert toml.read_bytes() == before
        done = visitor.post("/begin/ranges", {"batch": ""})
        assert "Saved: day is no batch any more." in words(done.text)
        assert "They are not shifted" not in done.text
        lines = before.decode().replace('batch = "day"  # days in the notebook\ndrift = 30\n', "")
        assert toml.read_text() == lines.replace("ignore = [\n", 'ignore = [\n    "day",\n')
        assert read_campaign_file(toml).ignore == ("day", "run")
        assert 'data-k="day"' not in visitor.get("/experiments").text
        visitor.post("/experiments/undo", {"step": "2"})
        assert toml.read_bytes() == before
