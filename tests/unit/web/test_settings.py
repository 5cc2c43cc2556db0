"""What is asked about, what is changed in a row, rules, and workbooks: on the page."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from openpyxl import load_workbook
from tests.unit.campaign.campaigns import fingerprint, make
from tests.unit.campaign.several import HEADER, make_several
from tests.unit.web.pages import SAME, field, visiting, words
from tests.unit.web.test_begin import drop, fields_of, place, table

import headstart
from headstart.campaign.campaign import open_campaign
from headstart.campaign.toml.reading import read_campaign_file
from headstart.errors import Message, Setting
from headstart.web.problems import for_the_page

ROWS = "x,s,y\n0.1,u,1.5\n0.2,v,\n0.3,u,\n"
BOUNDED = '\n[objectives.y]\ndirection = "maximize"\nlow = -5\nhigh = 10\n'
SOURCE = Path(headstart.__file__).parent


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make(tmp_path, current=ROWS)


def _current(folder: Path) -> str:
    return (folder / "current.csv").read_text()


def test_a_result_far_outside_is_asked_about_beside_its_cell(folder: Path) -> None:
    """What was typed stays, one click says that it is right, another what was meant; nothing is written before."""
    before = fingerprint(folder)
    with visiting(folder) as visitor:
        answer = visitor.post("/experiments/save", {"r3.0": "884", "r4.0": "7,5"})
        assert answer.status_code == 422
        assert fingerprint(folder) == before
        assert "884 is 88 times the largest of all other results. Is it right" in words(answer.text)
        assert field(answer.text, "r3.0") == "884"
        assert field(answer.text, "r4.0") == "7,5"
        assert 'aria-describedby="er3.0"' in answer.text
        assert '<button name="right" value="r3.0 884"' in answer.text
        assert '<button name="meant" value="r3.0 8.84"' in answer.text
        # an answer to another number than the one that stands there is none
        other = visitor.post("/experiments/save", {"r3.0": "995", "right": "r3.0 884"})
        assert other.status_code == 422
        visitor.post("/experiments/save", {"r3.0": "884", "r4.0": "7,5", "meant": "r3.0 8.84"})
        assert _current(folder).endswith("0.2,v,8.84\n0.3,u,7.5\n")
        visitor.post("/experiments/undo", {"step": "1"})
        done = visitor.post("/experiments/save", {"r3.0": "884", "r4.0": "7,5", "right": "r3.0 884"})
        assert "Saved: results were written into rows 3, 4." in done.text
    assert _current(folder).endswith("0.2,v,884\n0.3,u,7.5\n")
    assert open_campaign(folder).experiments[1].results == {"y": 884.0}


def test_two_that_are_far_outside_are_answered_one_by_one(folder: Path) -> None:
    """The first answer is kept while the second is asked for."""
    with visiting(folder) as visitor:
        first = visitor.post("/experiments/save", {"r3.0": "884", "r4.0": "912", "right": "r3.0 884"})
        assert first.status_code == 422
        assert '<input type="hidden" name="right" value="r3.0 884">' in first.text
        assert first.text.count('<button name="right"') == 1
        visitor.post("/experiments/save", {"r3.0": "884", "r4.0": "912", "right": ["r3.0 884", "r4.0 912"]})
        assert _current(folder).endswith("0.2,v,884\n0.3,u,912\n")


def test_an_own_result_far_outside_is_asked_about(folder: Path) -> None:
    """Beside its field, with everything that was typed."""
    own = {"p0": "0,5", "p1": "v", "m0": "8840"}
    with visiting(folder) as visitor:
        answer = visitor.post("/experiments/add", own)
        assert answer.status_code == 422
        assert field(answer.text, "p0") == "0,5"
        assert '<button name="right" value="m0 8840"' in answer.text
        assert _current(folder) == ROWS
        visitor.post("/experiments/add", {**own, "right": "m0 8840"})
        assert _current(folder).endswith("0.5,v,8840\n")


def test_a_folder_with_a_slip_asks_instead_of_failing(folder: Path) -> None:
    """One click, and it is usable; a cell that nobody asks about is refused."""
    (folder / "current.csv").write_text(ROWS.replace("1.5", "8840"))
    with visiting(folder) as visitor:
        page = visitor.get("/experiments")
        assert page.status_code == 422
        assert "row 2, y: 8840 is 885 times" in words(page.text)
        token = str(field(page.text, "token"))
        form = {"token": token, "cell": "17"}
        assert visitor.client.post("/experiments/right", data=form, headers=SAME).status_code == 422
        done = visitor.client.post("/experiments/right", data={"token": token, "cell": "8840"}, headers=SAME)
        assert done.status_code == 200
        assert "8840 was said to be right" in done.text
        assert visitor.post("/experiments/undo", {"step": "1"}).status_code == 422  # and it is asked again


def test_the_settings_of_a_row_can_be_changed(folder: Path) -> None:
    """One click opens them with what was typed elsewhere kept; what cannot be stands beside the cell."""
    with visiting(folder) as visitor:
        page = visitor.post("/experiments/save", {"edit": "3", "r4.0": "7"}).text
        assert field(page, "s3.0") == "0.2"
        assert field(page, "r4.0") == "7"
        assert 'name="s2.0"' not in page
        assert _current(folder) == ROWS
        sent = {"os3.0": "0.2", "os3.1": "v"}
        wrong = visitor.post("/experiments/save", {**sent, "s3.0": "warm", "s3.1": "v", "r3.0": "2"})
        assert wrong.status_code == 422
        assert field(wrong.text, "s3.0") == "warm"
        assert 'id="es3.0"' in wrong.text
        done = visitor.post("/experiments/save", {**sent, "s3.0": "0,25", "s3.1": "u", "r3.0": "2"})
        assert "settings were corrected in row 3" in done.text
        assert _current(folder) == "x,s,y\n0.1,u,1.5\n0.25,u,2\n0.3,u,\n"


def test_a_workbook_is_edited_on_the_page(folder: Path) -> None:
    """Results, own experiments, undo; and somebody who edits it meanwhile is not overwritten."""
    path = folder / "current.xlsx"
    toml = folder / "headstart.toml"
    toml.write_text('current = "current.xlsx"\n' + toml.read_text())
    from openpyxl import Workbook

    book = Workbook()
    assert book.active is not None
    for row in (["x", "s", "y"], [0.1, "u", 1.5], [0.2, "v"]):
        book.active.append(row)
    book.save(path)
    with visiting(folder) as visitor:
        assert "Saved" in visitor.post("/experiments/save", {"r3.0": "2,5"}).text
        visitor.post("/experiments/add", {"p0": "0,5", "p1": "v"})
        sheet = load_workbook(path).active
        assert sheet is not None
        assert [list(row) for row in sheet.values][1:] == [[0.1, "u", 1.5], [0.2, "v", 2.5], [0.5, "v", None]]
        old = visitor.get("/experiments").text
        book.active["C3"] = 3.5
        book.save(path)
        late = {"token": str(field(old, "token")), "seen": str(field(old, "seen")), "r3.0": "9", "o3.0": "2.5"}
        answer = visitor.client.post("/experiments/save", data=late, headers=SAME)
        assert answer.status_code == 409
        assert "somebody else wrote 3.5 here" in answer.text


def test_rules_are_changed_beside_what_was_understood(folder: Path) -> None:
    """A rule that cannot be is told beside its field, and nothing is written; else it is, and can be undone."""
    before = fingerprint(folder)
    with visiting(folder) as visitor:
        page = visitor.get("/begin")
        assert "y is to be maximised" in words(page.text)
        wrong = visitor.post("/begin/rules", {"rule": ["x <= 0.5", "z > 3", "<b>"]})
        assert wrong.status_code == 422
        assert 'id="e-rule1"' in wrong.text
        assert 'id="e-rule0"' not in wrong.text
        assert "<b>" not in wrong.text
        assert visitor.post("/begin/rules", {"rule": ["x <= 0.2", "x >= 0.4"]}).status_code == 422
        assert {k: v for k, v in fingerprint(folder).items() if not k.startswith(".headstart")} == before
        visitor.post("/begin/rules", {"rule": ["x <= 0.5", ""]})
        assert read_campaign_file(folder / "headstart.toml").rules == ("x <= 0.5",)
        assert "Nothing was new" in visitor.post("/begin/rules", {"rule": ["x <= 0.5", ""]}).text
        stale = visitor.post("/begin/rules", {"rule": ["x <= 0.9"], "seen": "other"})
        assert stale.status_code == 409


def test_ranges_of_a_running_campaign_are_changed_on_the_page(folder: Path) -> None:
    """Ends, step and choices; what cannot be is told beside its field; what was run stays, and a step can be undone."""
    toml = folder / "headstart.toml"
    with visiting(folder) as visitor:
        before = toml.read_bytes()
        page = visitor.get("/begin").text
        assert field(page, "choices1") == "u, v"
        ends = {"low0": str(field(page, "low0")), "high0": str(field(page, "high0")), "step0": "", "choices1": "u, v"}
        assert "Nothing was new" in visitor.post("/begin/ranges", ends).text
        wrong = visitor.post("/begin/ranges", {**ends, "low0": "much", "choices1": "v"})
        assert wrong.status_code == 422
        assert field(wrong.text, "low0") == "much"
        assert 'id="e-low0"' in wrong.text
        assert 'id="e-choices1"' in wrong.text
        assert visitor.post("/begin/ranges", {**ends, "low0": "7", "high0": "3"}).status_code == 422
        assert toml.read_bytes() == before
        saved = visitor.post("/begin/ranges", {**ends, "low0": "0,25", "step0": "0.25", "choices1": "V, w"})
        assert "Saved: ranges were changed: x, s." in words(saved.text)
        x, s = read_campaign_file(toml).parameters
        assert (x.low, x.step, s.choices, s.withdrawn) == (0.25, 0.25, ("v", "w"), ("u",))
        assert len(open_campaign(folder).experiments) == 3  # those at 0.1 and with u, too
        assert "no more: u" in words(visitor.get("/begin").text)
        stale = visitor.post("/begin/ranges", {**ends, "low0": "0.3", "seen": "other"})
        assert stale.status_code == 409
        assert field(stale.text, "low0") == "0.3"
        visitor.post("/begin/rules", {"rule": ["x >= 0.5"]})
        none = visitor.post("/begin/ranges", {**ends, "low0": "0.25", "high0": "0.45"})
        assert none.status_code == 422  # no setting keeps the rule
        assert field(none.text, "high0") == "0.45"
        visitor.post("/experiments/undo", {"step": "2"})
        visitor.post("/experiments/undo", {"step": "1"})
        assert toml.read_bytes() == before


def test_values_that_exist_are_changed_on_the_page(tmp_path: Path) -> None:
    """In a running campaign: a list stays one, and an empty field is asked about."""
    folder = make(tmp_path, current=ROWS)
    toml = folder / "headstart.toml"
    lines = toml.read_text().splitlines()
    ends = [i for i, line in enumerate(lines) if line.startswith(("low", "high"))]
    toml.write_text("\n".join([*lines[: ends[0]], "values = [0.1, 0.2, 0.5, 1.0]", *lines[ends[1] + 1 :], ""]))
    with visiting(folder) as visitor:
        assert field(visitor.get("/begin").text, "values0") == "0.1; 0.2; 0.5; 1"
        assert visitor.post("/begin/ranges", {"values0": "", "choices1": "u, v"}).status_code == 422
        assert visitor.post("/begin/ranges", {"values0": "0.5; 0.2", "choices1": "u, v"}).status_code == 422
        saved = visitor.post("/begin/ranges", {"values0": "0.1; 0.2; 0,4; 1", "choices1": "u, v"})
        assert "Saved: ranges were changed: x." in words(saved.text)
        assert read_campaign_file(toml).parameters[0].values == (0.1, 0.2, 0.4, 1.0)
        assert len(open_campaign(folder).experiments) == 3


def test_begin_takes_rules_cells_standard_errors_and_a_workbook(tmp_path: Path) -> None:
    """What is wrong stands beside its field; what is written is what was typed."""
    one = table(-0.05).replace(b"run,date", b"y sd,date")
    with visiting(tmp_path) as visitor:
        fields = fields_of(drop(visitor, ("a.csv", one), ("b.csv", table(0.05).replace(b"run,date", b"y sd,date"))))
        fields |= {f"role{place(fields, 'y sd')}": "error", "current": "current.xlsx", "mark": "."}
        wrong = visitor.post(
            "/begin/columns", {**fields, "rules": "z > 1", "cells": "n.d.", "do": "write"}, of="/begin"
        )
        assert wrong.status_code == 422
        assert "is not understood: write the cell" in wrong.text
        wrong = visitor.post("/begin/columns", {**fields, "rules": "z > 1", "do": "write"}, of="/begin")
        assert wrong.status_code == 422
        assert 'id="e-rules"' in wrong.text
        assert not (tmp_path / "headstart.toml").exists()
        told = {**fields, "rules": "x <= 0.9\n\n", "cells": "n.d. = failed\n99 = missing", "do": "write"}
        assert visitor.post("/begin/columns", told, of="/begin").url.path == "/experiments"
        file = read_campaign_file(tmp_path / "headstart.toml")
        assert file.rules == ("x <= 0.9",)
        assert dict(file.cells) == {"decimal_mark": ".", "n.d.": "failed", "99": "missing"}
        assert file.results[0].error == "y sd"
        assert file.current == "current.xlsx"
        assert load_workbook(tmp_path / "current.xlsx").active is not None
        again = visitor.get("/begin?anew").text  # what was said is not lost when it is written anew
        assert "x &lt;= 0.9" in again
        assert "n.d. = failed" in again
        assert "<option selected>current.xlsx" in again


def test_every_result_has_its_own_standard_error(tmp_path: Path) -> None:
    """Two for one result are refused, and one that could belong to either is asked about."""
    lines = ["y_sd,e,x,s,y,z", *(f"0.1,0.2,{i / 12:.3f},{'uv'[i % 2]},{i},{2 * i + 1}" for i in range(12)), ""]
    with visiting(tmp_path) as visitor:
        fields = fields_of(drop(visitor, ("a.csv", "\n".join(lines).encode())))
        y, z, sd, e = (place(fields, name) for name in ("y", "z", "y_sd", "e"))
        fields |= {f"role{y}": "maximise", f"role{z}": "at most", f"limit{z}": "9", f"role{sd}": "error"}
        fields |= {f"role{e}": "error"}
        page = visitor.post("/begin/columns", {**fields, "do": "write"}, of="/begin")
        assert "e: say which result it is the standard error of" in page.text
        page = visitor.post("/begin/columns", {**fields, f"of{e}": "y", "do": "write"}, of="/begin")
        assert "cannot both be the standard error of y" in page.text
        visitor.post("/begin/columns", {**fields, f"of{e}": "z", "do": "write"}, of="/begin")
        file = read_campaign_file(tmp_path / "headstart.toml")
        assert {column.name: column.error for column in file.results} == {"y": "y_sd", "z": "e"}


def test_a_slip_in_a_past_file_is_asked_about_on_begin(tmp_path: Path) -> None:
    """One click, and the campaign can be written."""
    slipped = table(-0.05).splitlines()
    slipped[3] = slipped[3].rsplit(b",", 1)[0] + b",8840"
    with visiting(tmp_path) as visitor:
        page = drop(visitor, ("a.csv", b"\n".join(slipped)), ("b.csv", table(0.05)))
        assert "a.csv, row 4, y: 8840 is" in words(page)
        fields = fields_of(page)
        assert visitor.post("/begin/columns", {**fields, "do": "write"}, of="/begin").status_code == 422
        page = visitor.post("/begin/columns", {**fields, "right": "8840"}, of="/begin").text
        assert fields_of(page)["cells"] == "8840 = 8840"
        done = visitor.post("/begin/columns", {**fields_of(page), "do": "write"}, of="/begin")
        assert done.url.path == "/experiments"
        assert dict(read_campaign_file(tmp_path / "headstart.toml").cells) == {"8840": 8840.0}


def test_standard_errors_have_cells_of_their_own(tmp_path: Path) -> None:
    """With a name that says whose they are."""
    make_several(tmp_path, HEADER + "0.5,0.2,u,,,,\n")
    with visiting(tmp_path) as visitor:
        page = visitor.get("/experiments").text
        assert len(re.findall(r'aria-label="standard error of [^"]+ of row 2"', page)) >= 1


@pytest.mark.parametrize(
    "path", ["/experiments/save", "/experiments/add", "/begin/rules", "/begin/ranges", "/begin/columns"]
)
def test_a_page_that_answered_a_form_can_be_loaded_again(folder: Path, path: str) -> None:
    """By whoever reloads it, and by the script that waits for what is learnt."""
    with visiting(folder) as visitor:
        answer = visitor.get(path)
        assert answer.status_code == 200
        assert answer.url.path == path.rsplit("/", 1)[0]


def test_a_result_beyond_its_bounds_may_be_a_slip(folder: Path) -> None:
    """What it is with the mark where it may belong is said with the refusal."""
    toml = folder / "headstart.toml"
    toml.write_text(toml.read_text().replace('[objectives.y]\ndirection = "maximize"\n', "") + BOUNDED)
    with visiting(folder) as visitor:
        answer = visitor.post("/experiments/save", {"r3.0": "884"})
        assert answer.status_code == 422
        assert "884 lies above high = 10 in headstart.toml, so it cannot be. Has the decimal mark" in words(answer.text)


def test_no_room_below_the_page_names_an_option_of_the_command_line() -> None:
    """Messages name settings; the command line and the page each say how to change one."""
    found = []
    for room in ("campaign", "sources", "data"):
        for path in sorted((SOURCE / room).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
                if re.search(r"(?<![\w-])--[a-z]", text) and "\n" not in text:
                    found.append((path.name, text))
    assert not found


def test_every_setting_of_a_message_has_a_remedy_on_the_page() -> None:
    """Whatever a message in a room below names."""
    names = set()
    for room in ("campaign", "sources"):
        for path in (SOURCE / room).rglob("*.py"):
            names |= set(re.findall(r'Setting\("(\w+)"', path.read_text(encoding="utf-8")))
    assert names
    assert all(for_the_page(Message("x.", Setting(name))).startswith("x. (") for name in names)


def test_a_remark_says_what_to_choose() -> None:
    """As in the remark on a column that is measured rather than set."""
    told = Message("it is measured", Setting("parameter", "a b"), Setting("limit", "a b>=VALUE"))
    assert for_the_page(told) == "it is measured (choose otherwise beside it)"
