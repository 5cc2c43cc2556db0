"""Experiments on the page: what is shown, what is typed, and what happens when it cannot be used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.campaign.campaigns import fingerprint, make
from tests.unit.campaign.several import HEADER, make_several
from tests.unit.web.pages import SAME, Visitor, field, visiting, words

from headstart.sources.files.safe import alone_in

ROWS = "x,s,y\n0.1,u,1.5\n0.2,v,\n0.3,u,\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make(tmp_path, current=ROWS)


def _current(folder: Path) -> str:
    return (folder / "current.csv").read_text()


def test_the_table_shows_what_is_pending_with_what_is_expected_and_what_it_rests_on(folder: Path) -> None:
    """While it is learnt there is a progress bar, and then numbers with intervals."""
    with visiting(folder, learning=True) as visitor:
        first = visitor.get("/experiments").text
        assert "<progress" in first
        page = words(visitor.settled("/experiments"))
        assert "expected y" in page
        assert "rests on" in page
        assert " … " in page[page.index("To do") : page.index("Done")]
        assert "finished best" in page


def test_asking_appends_rows_and_says_which(folder: Path) -> None:
    """The status page goes on by itself; the rows are in the file, in the history, and have expectations at once."""
    with visiting(folder, learning=True) as visitor:
        visitor.settled("/experiments")
        answer = visitor.post("/experiments/ask", {"n": "2"}, of="/experiments")
        path = answer.url.path
        if path.startswith("/job/"):
            assert 'http-equiv="refresh"' in answer.text
            page = visitor.settled(path)
        else:
            page = answer.text
        assert "New: rows 5, 6." in page
        assert len(_current(folder).splitlines()) == 6
        assert "data-work" not in page  # rows without a result teach nothing: nothing is learnt anew
        assert words(page).count(" … ") >= 4
        page = visitor.post("/experiments/undo", {"step": "1"}, of="/experiments").text
        assert "Undone: 2 suggestions were added" in page
        assert _current(folder) == ROWS


@pytest.mark.parametrize("n", ["0", "101", "-1", "two", "", "1e3", "٣"])
def test_a_number_of_experiments_that_is_none_is_refused(folder: Path, n: str) -> None:
    """Beside what was asked, and nothing is changed."""
    before = fingerprint(folder)
    with visiting(folder) as visitor:
        answer = visitor.post("/experiments/ask", {"n": n})
        assert answer.status_code == 422
        assert "between 1 and 100" in answer.text
    assert fingerprint(folder) == before


def test_results_are_typed_edited_failed_and_undone(folder: Path) -> None:
    """A decimal comma is fine; only what was changed is written."""
    with visiting(folder) as visitor:
        answer = visitor.post("/experiments/save", {"r3.0": "2,5", "r2.0": "1.5", "o2.0": "1.5", "r4.0": ""})
        assert "Saved: results were written into row 3." in answer.text
        assert _current(folder) == "x,s,y\n0.1,u,1.5\n0.2,v,2.5\n0.3,u,\n"
        visitor.post("/experiments/save", {"r2.0": "1,75", "o2.0": "1.5", "failed": "4"})
        assert _current(folder) == "x,s,y\n0.1,u,1.75\n0.2,v,2.5\n0.3,u,failed\n"
        assert "Nothing was new." in visitor.post("/experiments/save", {"r2.0": "1.75", "o2.0": "1.75"}).text
        page = visitor.post("/experiments/undo", {"step": "2"}).text
        assert "Undone" in page
        assert _current(folder) == "x,s,y\n0.1,u,1.5\n0.2,v,2.5\n0.3,u,\n"
        note = json.loads((folder / ".headstart" / "history" / "0002" / "step.json").read_text())
        assert note["undone"]
        assert "changed" not in visitor.post("/experiments/save", {"remove": "4"}).text
        assert _current(folder) == "x,s,y\n0.1,u,1.5\n0.2,v,2.5\n"
        assert visitor.post("/experiments/save", {"remove": "2"}).status_code == 422


def test_what_cannot_be_used_is_said_beside_its_cell_and_kept(folder: Path) -> None:
    """All cells at once, escaped, with nothing written."""
    before = fingerprint(folder)
    with visiting(folder) as visitor:
        answer = visitor.post(
            "/experiments/save", {"r3.0": "<b>about 3</b>", "r4.0": "1,234", "r2.0": "2", "o2.0": "1.5"}
        )
        assert answer.status_code == 422
        assert field(answer.text, "r3.0") == "<b>about 3</b>"
        assert "<b>about" not in answer.text
        assert field(answer.text, "r4.0") == "1,234"
        assert field(answer.text, "r2.0") == "2"
        assert answer.text.count('aria-invalid="true"') == 2
        assert 'id="er3.0"' in answer.text
        assert "1234 or as 1.234" in answer.text
    assert fingerprint(folder) == before


def test_who_comes_second_is_told_and_overwrites_nothing(folder: Path) -> None:
    """What they typed is kept beside what somebody else wrote, and saving again works."""
    with visiting(folder) as visitor:
        mine = visitor.get("/experiments").text
        visitor.post("/experiments/save", {"r3.0": "9"})
        hidden = {"token": str(field(mine, "token")), "seen": str(field(mine, "seen"))}
        answer = visitor.client.post("/experiments/save", data={**hidden, "r3.0": "8", "r4.0": "7"}, headers=SAME)
        assert answer.status_code == 409
        assert "Somebody else was faster" in answer.text
        assert field(answer.text, "r3.0") == "8"
        assert field(answer.text, "r4.0") == "7"
        assert "somebody else wrote 9 here" in answer.text
        assert _current(folder).endswith("0.2,v,9\n0.3,u,\n")
        own = visitor.client.post("/experiments/add", data={**hidden, "p0": "0.7", "p1": "v"}, headers=SAME)
        assert own.status_code == 409
        assert field(own.text, "p0") == "0.7"
        again = {"token": str(field(answer.text, "token")), "seen": str(field(answer.text, "seen"))}
        visitor.client.post("/experiments/save", data={**again, "r3.0": "8", "o3.0": "9", "r4.0": "7"}, headers=SAME)
        assert _current(folder).endswith("0.2,v,8\n0.3,u,7\n")
        late = visitor.post("/experiments/undo", {"step": "1"})
        assert late.status_code == 422
        assert "not the last one" in words(late.text)


def test_a_form_that_is_older_than_the_server_is_shown_again_with_what_was_typed(folder: Path) -> None:
    """Nothing is written, nothing is lost."""
    with visiting(folder) as visitor:
        old = visitor.get("/experiments").text
    hidden = {"token": str(field(old, "token")), "seen": str(field(old, "seen"))}
    before = fingerprint(folder)
    with visiting(folder) as visitor:
        answer = visitor.client.post("/experiments/save", data={**hidden, "r3.0": "8,5"}, headers=SAME)
        assert answer.status_code == 409
        assert "started anew" in answer.text
        assert field(answer.text, "r3.0") == "8,5"
        assert visitor.client.post("/experiments/undo", data=hidden, headers=SAME).status_code == 409
        assert visitor.get("/job/gone").status_code == 404
        assert visitor.get("/job/gone/state").json()["error"]
    assert fingerprint(folder) == before


def test_while_another_headstart_works_in_the_folder_nothing_is_written(folder: Path) -> None:
    """The folder's lock holds for the page too."""
    before = _current(folder)
    with visiting(folder) as visitor, alone_in(folder):
        answer = visitor.post("/experiments/save", {"r3.0": "8"})
        assert answer.status_code == 422
        assert "another headstart is working" in answer.text
    assert _current(folder) == before


def test_own_experiments_are_added_or_explained(folder: Path) -> None:
    """Errors stand beside their fields, with what was typed."""
    with visiting(folder) as visitor:
        assert "Saved: an own experiment was added." in visitor.post("/experiments/add", {"p0": "0,5", "p1": "v"}).text
        assert _current(folder).endswith("0.5,v,\n")
        wrong = visitor.post("/experiments/add", {"p0": "half", "p1": "w", "m0": "1"})
        assert wrong.status_code == 422
        assert field(wrong.text, "p0") == "half"
        assert "is not a number" in wrong.text
        assert "none of the choices" in words(wrong.text)


def test_several_outcomes_have_cells_limits_and_errors(tmp_path: Path) -> None:
    """Every outcome and standard error has a cell, and how probably limits hold is there."""
    make_several(tmp_path, HEADER + "0.5,0.2,u,,,,\n")
    with visiting(tmp_path, learning=True) as visitor:
        page = visitor.settled("/experiments")
        assert "limits hold" in page
        assert all(f'name="r2.{i}"' in page for i in range(4))
        answer = visitor.post("/experiments/save", {"r2.0": "40", "r2.1": "-1", "r2.2": "20", "r2.3": "1"})
        assert answer.status_code == 422
        assert "above 0" in answer.text
        visitor.post("/experiments/save", {"r2.0": "40", "r2.1": "0,5", "r2.2": "20", "r2.3": "1"})
        assert _current(tmp_path).endswith("0.5,0.2,u,40,0.5,20,1\n")


def test_files_that_cannot_be_used_are_a_page_with_the_reason(folder: Path) -> None:
    """As the command line says it: file, row, column, remedy."""
    (folder / "current.csv").write_text("x,s,y\n0.1,u,abc\n")
    with visiting(folder) as visitor:
        answer = visitor.get("/experiments")
        assert answer.status_code == 422
        assert "current.csv, row 2, column 'y': 'abc' is not a number" in words(answer.text)
        (folder / "headstart.toml").write_text("objective = ")
        for path in ("/experiments", "/pictures", "/past", "/report"):
            assert visitor.get(path).status_code == 422
        (folder / "headstart.toml").unlink()
        assert visitor.get("/").url.path == "/begin"


def test_work_that_goes_wrong_is_said_and_can_be_tried_again(folder: Path) -> None:
    """It is not begun anew by every look at it."""
    toml = folder / "headstart.toml"
    toml.write_text('model = "nonsense"\n' + toml.read_text())
    with visiting(folder, learning=True) as visitor:
        page = _failed(visitor)
        assert "nonsense" in page
        assert "Try again" in visitor.get("/pictures").text
        ident = str(field(visitor.get("/pictures").text, "work"))
        assert "nonsense" in visitor.get(f"/job/{ident}/state").json()["error"]
        token = str(field(page, "token"))
        again = visitor.client.post("/job/again", data={"token": token, "work": ident, "back": "/past"}, headers=SAME)
        assert again.url.path == "/past"
        away = {"token": token, "work": "", "back": "//evil.example"}
        assert visitor.client.post("/job/again", data=away, headers=SAME).url.host == "127.0.0.1"


def _failed(visitor: Visitor) -> str:
    import time

    for _ in range(200):
        page = visitor.get("/experiments").text
        if "nonsense" in page:
            return page
        time.sleep(0.05)
    raise AssertionError("it never failed")


def test_a_setting_that_is_none_of_the_list_is_asked_about(folder: Path) -> None:
    """In a row of the file and in one of one's own: yes keeps it, no puts the nearest of the list there."""
    toml = folder / "headstart.toml"
    text = toml.read_text(encoding="utf-8").replace("low = 0.0\nhigh = 1.0", "values = [0.1, 0.2, 0.4, 0.8]")
    toml.write_text(text, encoding="utf-8")
    with visiting(folder) as visitor:
        page = words(visitor.get("/experiments").text)
        assert "0.1, 0.2, 0.4, 0.8" in page
        own = {"p0": "0.5", "p1": "v"}
        asked = visitor.post("/experiments/add", own)
        assert asked.status_code == 422
        assert "0.5 is none of the values 0.1, 0.2, 0.4, 0.8. Is it right?" in words(asked.text)
        assert "No, it is 0.4" in asked.text
        assert _current(folder) == ROWS
        visitor.post("/experiments/add", {**own, "meant": "p0 0.4"})
        assert _current(folder).endswith("0.4,v,\n")
        visitor.post("/experiments/add", {**own, "right": "p0 0.5"})
        assert _current(folder).endswith("0.5,v,\n")
        row = {"s3.0": "0.3", "os3.0": "0.2", "s3.1": "v", "os3.1": "v"}
        asked = visitor.post("/experiments/save", row)
        assert "0.3 is none of the values" in words(asked.text)
        visitor.post("/experiments/save", {**row, "right": "s3.0 0.3"})
        assert "0.3,v,\n" in _current(folder)
        remark = words(visitor.get("/experiments").text)
        assert "0.5 is none of the values 0.1, 0.2, 0.4, 0.8. It counts, but look whether it is a slip" in remark
