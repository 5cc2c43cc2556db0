"""The column that tells batches, on the page: proposed, told otherwise, written, and taken out."""

from __future__ import annotations

from pathlib import Path

from tests.unit.campaign.campaigns import value
from tests.unit.web.pages import Visitor, visiting, words
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
