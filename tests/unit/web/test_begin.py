"""Begin on the page: files are dropped, columns corrected, past campaigns compared, the campaign written."""

from __future__ import annotations

import io
import re
from html import unescape
from pathlib import Path
from zipfile import ZipFile

import pandas as pd
import pytest
from tests.unit.campaign.campaigns import fingerprint, value
from tests.unit.sources.laboratory import SETS
from tests.unit.web.pages import Visitor, field, visiting, words

from headstart.campaign.toml.reading import read_campaign_file
from headstart.sources.files.tables import Table, read_table
from headstart.sources.parameters import Kind


def table(shift: float, header: str = "run,date,x,s,y") -> bytes:
    rows = [
        f"{i + 1},2024-03-{i + 1:02d},{(i + 0.5) / 12:.3f},{'uv'[i % 2]},{value((i + 0.5) / 12, 'uv'[i % 2], shift)}"
        for i in range(12)
    ]
    return "\n".join([header, *rows, ""]).encode()


def drop(visitor: Visitor, *files: tuple[str, bytes]) -> str:
    sent = [("files", (name, content, "text/csv")) for name, content in files]
    return visitor.post("/begin/files", of="/begin", files=sent).text


def fields_of(page: str) -> dict[str, str]:
    """Every field of the columns' form as a browser would send it."""
    form = page[page.index('id="columns-form"') :]
    found = {}
    for tag in re.findall(r"<input[^>]*>", form):
        name, value_ = re.search(r'name="([^"]+)"', tag), re.search(r'value="([^"]*)"', tag)
        if name and ("checkbox" not in tag or " checked" in tag):
            found[name[1]] = unescape(value_[1]) if value_ else "on"
    for name, options in re.findall(r'<select name="([^"]+)".*?>(.*?)</select>', form, re.DOTALL):
        chosen = re.search(r'<option(?: value="([^"]*)")? selected>([^<]*)', options)
        found[name] = "" if not chosen else unescape(chosen[1] if chosen[1] is not None else chosen[2])
    for name, text in re.findall(r'<textarea[^>]*name="([^"]+)"[^>]*>(.*?)</textarea>', form, re.DOTALL):
        found[name] = unescape(text)
    return found


def place(fields: dict[str, str], column: str) -> str:
    return next(name[1:] for name, value_ in fields.items() if re.fullmatch(r"c\d+", name) and value_ == column)


def test_from_files_to_a_campaign_in_three_forms(tmp_path: Path) -> None:
    """Dates and counters are proposed as not used, the last number as the result; then it is written, and undone."""
    with visiting(tmp_path) as visitor:
        page = drop(visitor, ("a.csv", table(-0.05)), ("b.csv", table(0.05)))
        assert (tmp_path / "past" / "a.csv").read_bytes() == table(-0.05)
        fields = fields_of(page)
        roles = {c: fields[f"role{place(fields, c)}"] for c in ("run", "date", "x", "s", "y")}
        assert roles == {"run": "ignore", "date": "ignore", "x": "parameter", "s": "parameter", "y": "maximise"}
        fields |= {
            f"low{place(fields, 'x')}": "0,1",
            f"unit{place(fields, 'x')}": "mL",
            f"role{place(fields, 'y')}": "minimise",
        }
        page = visitor.post("/begin/columns", {**fields, "do": "look"}, of="/begin").text
        assert field(page, f"low{place(fields, 'x')}") == "0.1"
        assert not (tmp_path / "headstart.toml").exists()
        done = visitor.post("/begin/columns", {**fields_of(page), "do": "write"}, of="/begin")
        assert done.url.path == "/experiments"
        file = read_campaign_file(tmp_path / "headstart.toml")
        x = next(p for p in file.parameters if p.name == "x")
        assert (x.low, x.high, x.unit) == (0.1, 1.0, "mL")
        assert file.results[0].aim == "minimised"
        assert file.past == ("past/a.csv", "past/b.csv")
        assert "[parameters.x]" in words(visitor.get("/begin").text)
        assert visitor.post("/experiments/undo", {"step": "2"}, of="/begin").url.path == "/begin"
        assert not (tmp_path / "headstart.toml").exists()


def test_kinds_limits_fixed_values_and_the_same_column_under_two_names(tmp_path: Path) -> None:
    """What is clicked is what is written."""
    with visiting(tmp_path) as visitor:
        other = table(0.05).replace(b"run,date,x", b"run,date,X value")
        page = drop(visitor, ("a.csv", table(-0.05)), ("b.csv", other))
        fields = fields_of(page)
        run = place(fields, "run")
        fields |= {f"same{place(fields, 'X value')}": "x", f"role{run}": "at most", f"limit{run}": "10,5"}
        fields |= {f"role{place(fields, 'y')}": "maximise", f"limit{place(fields, 'y')}": "0.25"}
        fields |= {
            f"kind{place(fields, 's')}": "fixed",
            f"value{place(fields, 's')}": "u",
            f"step{place(fields, 'x')}": "0.1",
        }
        page = visitor.post("/begin/columns", {**fields, "do": "write"}, of="/begin").text
        file = read_campaign_file(tmp_path / "headstart.toml")
        assert file.rename == {"X value": "x"}
        assert [(c.name, c.aim) for c in file.limits] == [("run", "at most 10.5")]
        assert [c.aim for c in file.goals] == ["maximised, at least 0.25"]
        kinds = {p.name: p for p in file.parameters}
        assert (kinds["s"].kind, kinds["s"].value) == (Kind.FIXED, "u")
        assert kinds["x"].step == 0.1


@pytest.mark.parametrize(
    ("column", "wrong", "told"),
    [
        ("x", {"low": "abc"}, "'abc' is not a number"),
        ("x", {"low": "3", "high": "2"}, "3 is not below 2"),
        ("x", {"low": "0", "log": "on"}, "log scale needs a lower end above 0"),
        ("x", {"step": "50"}, "within the range"),
        ("x", {"kind": "int", "low": "0.5"}, "whole ends"),
        ("s", {"kind": "float"}, "texts, so it cannot be a number"),
        ("s", {"choices": "u"}, "two choices at least"),
        ("s", {"kind": "fixed", "value": ""}, "Which value is it fixed at"),
        ("y", {"role": "parameter"}, "Say which column is the result"),
        ("y", {"role": "at most", "limit": ""}, "say which value"),
        ("s", {"role": "maximise"}, "is not a number"),
        ("x", {"role": "sorcery"}, "nothing that a column can be for"),
        ("x", {"role": "at least", "limit": "many"}, "x: 'many' is no value"),
        ("x", {"role": "between", "limit": "3"}, "say from which to which value"),
        ("x", {"role": "near", "limit": ""}, "say which value it is to be near"),
        ("y", {"role": "maximise", "limit": "<= 3"}, "y: '<= 3' is no value"),
    ],
)
def test_a_correction_that_cannot_be_is_said_and_kept_and_nothing_is_written(
    tmp_path: Path, column: str, wrong: dict[str, str], told: str
) -> None:
    """Beside its field, or above where it concerns the whole."""
    with visiting(tmp_path) as visitor:
        fields = fields_of(drop(visitor, ("a.csv", table(-0.05))))
        before = fingerprint(tmp_path)
        typed = {f"{name}{place(fields, column)}": text for name, text in wrong.items()}
        answer = visitor.post("/begin/columns", {**fields, **typed, "do": "write"}, of="/begin")
        assert answer.status_code == 422
        assert told in words(answer.text)
        name = next((n for n in typed if not n.startswith(("kind", "role", "log"))), None)
        if name:
            assert field(answer.text, name) == next(text for n, text in typed.items() if n == name)
        assert fingerprint(tmp_path) == before


def test_what_cannot_be_leaves_the_other_columns_as_they_are_proposed(tmp_path: Path) -> None:
    """Sent back as they are shown they are proposals still."""
    with visiting(tmp_path) as visitor:
        fields = fields_of(drop(visitor, ("a.csv", table(-0.05))))
        x = place(fields, "x")
        answer = visitor.post("/begin/columns", {**fields, f"role{x}": "between", f"limit{x}": "3"}, of="/begin")
        assert answer.status_code == 422
        found = fields_of(answer.text)
        roles = {c: found[f"role{place(found, c)}"] for c in ("run", "date", "x", "s", "y")}
        assert roles == {"run": "ignore", "date": "ignore", "x": "between", "s": "parameter", "y": "maximise"}
        done = visitor.post("/begin/columns", {**found, f"role{x}": "parameter", "do": "write"}, of="/begin")
        assert done.url.path == "/experiments"
        assert read_campaign_file(tmp_path / "headstart.toml").ignore == ("run", "date")


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("a.exe", b"x,y\n1,2\n", "no table that can be read"),
        ("a.csv", b"", "is empty"),
        ("<script>.csv", b"x,y\n1,2\n", "no name for a file"),
    ],
)
def test_files_that_cannot_be_used_are_refused_by_name(tmp_path: Path, name: str, content: bytes, told: str) -> None:
    """And none of those that came with them is added."""
    with visiting(tmp_path) as visitor:
        page = drop(visitor, ("good.csv", table(0.0)), (name, content))
        assert told in words(page)
        assert "<script>.csv" not in page
        assert not (tmp_path / "past").exists() or not list((tmp_path / "past").iterdir())
        assert "No file was chosen" in visitor.post("/begin/files", of="/begin").text


def test_a_file_that_cannot_be_read_is_named_and_can_be_taken_out(tmp_path: Path) -> None:
    """The others wait until it is gone."""
    with visiting(tmp_path) as visitor:
        page = drop(visitor, ("a.csv", table(0.0)), ("twice.csv", b"x,x,y\n1,2,3\n"))
        assert "two columns are called 'x'" in words(page)
        assert "columns-form" not in page
        page = visitor.post("/begin/remove", {"file": "twice.csv"}, of="/begin").text
        assert "columns-form" in page
        assert visitor.post("/begin/remove", {"file": "../a.csv"}, of="/begin").status_code == 422


def test_names_and_cells_of_files_are_text_and_never_markup(tmp_path: Path) -> None:
    """Whatever stands in a header or a cell."""
    evil = table(0.0).replace(b"run,date", b"<img src=x onerror=alert(1)>,date").replace(b",u,", b",<b>u</b>,")
    with visiting(tmp_path) as visitor:
        page = drop(visitor, ("a.csv", evil))
        assert "<img src=x" not in page
        assert "<b>u</b>" not in page
        visitor.post("/begin/columns", {**fields_of(page), "do": "write"}, of="/begin")
        assert "<b>u</b>" not in visitor.get("/experiments").text
        assert "<b>u</b>" in words(visitor.get("/experiments").text)
        assert read_campaign_file(tmp_path / "headstart.toml").parameters[-1].choices == ("<b>u</b>", "v")


def test_somebody_who_began_meanwhile_is_not_written_over(tmp_path: Path) -> None:
    """The form knows which headstart.toml it was made beside: none."""
    with visiting(tmp_path) as visitor:
        fields = fields_of(drop(visitor, ("a.csv", table(0.0))))
        (tmp_path / "headstart.toml").write_text("# somebody else's")
        answer = visitor.post("/begin/columns", {**fields, "do": "write"}, of="/begin?anew")
        assert answer.status_code == 409
        assert (tmp_path / "headstart.toml").read_text() == "# somebody else's"


def test_past_campaigns_are_compared_before_anything_is_written(tmp_path: Path) -> None:
    """A table with verdicts, a picture, and what to look at where one is upside down."""
    rows = table(0.0).decode().splitlines()
    turned = "\n".join([rows[0], *(f"{r.rsplit(',', 1)[0]},{-float(r.rsplit(',', 1)[1])}" for r in rows[1:]), ""])
    with visiting(tmp_path, learning=True) as visitor:
        page = drop(visitor, ("a.csv", table(-0.03)), ("b.csv", table(0.03)), ("turned.csv", turned.encode()))
        page = visitor.post("/begin/columns", {**fields_of(page), "do": "compare"}, of="/begin").text
        address = re.search(r"/begin/agreement/[\w-]+", page)
        assert address
        found = words(visitor.settled(address[0]))
        assert "turned" in found
        assert "the other way round" in found
        picture = visitor.get(f"{address[0]}/0.svg")
        assert picture.headers["content-type"].startswith("image/svg+xml")
        assert "script" not in picture.headers["content-security-policy"]
        assert visitor.get(f"{address[0]}/7.svg").status_code == 404
        assert visitor.get("/begin/agreement/none").status_code == 404
        assert not (tmp_path / "headstart.toml").exists()


def test_a_workbook_is_a_past_file_too(tmp_path: Path) -> None:
    """Its first sheet, understood as a CSV file is; and the campaign begins with it."""
    frame = pd.read_csv(io.BytesIO(table(0.0)))
    content = io.BytesIO()
    frame.to_excel(content, index=False)
    with visiting(tmp_path) as visitor:
        page = drop(visitor, ("a.csv", table(-0.05)), ("b.xlsx", content.getvalue()))
        fields = fields_of(page)
        assert fields[f"role{place(fields, 'x')}"] == "parameter"
        done = visitor.post("/begin/columns", {**fields, "do": "write"}, of="/begin")
        assert done.url.path == "/experiments"
        assert read_campaign_file(tmp_path / "headstart.toml").past == ("past/a.csv", "past/b.xlsx")


def damaged_workbook() -> bytes:
    """A workbook with wrong bytes in the packed cells of its sheet."""
    content = io.BytesIO()
    pd.read_csv(io.BytesIO(table(0.0))).to_excel(content, index=False)
    raw = content.getvalue()
    with ZipFile(io.BytesIO(raw)) as archive:
        at = archive.getinfo("xl/worksheets/sheet1.xml").header_offset + 80
    return raw[:at] + bytes(255 - byte for byte in raw[at : at + 20]) + raw[at + 20 :]


@pytest.mark.parametrize("begun", [False, True])
def test_a_damaged_past_file_can_be_taken_out(tmp_path: Path, begun: bool) -> None:
    """After a restart too, and also where a campaign was begun with it: the page names the file."""
    with visiting(tmp_path) as visitor:
        page = drop(visitor, ("a.csv", table(-0.05)), ("b.xlsx", damaged_workbook()))
        assert "b.xlsx: the file is damaged" in words(page)
    if begun:
        toml = '[objectives.y]\ndirection = "maximize"\n[parameters.x]\nkind = "float"\nlow = 0\nhigh = 1\n'
        (tmp_path / "headstart.toml").write_text(f'past = ["past/a.csv", "past/b.xlsx"]\n{toml}')
        (tmp_path / "current.csv").write_text("x,y\n")
    with visiting(tmp_path) as visitor:
        again = visitor.get("/begin")
        assert again.status_code == 200
        assert "b.xlsx: the file is damaged" in words(again.text)
        assert begun == ('href="/begin?anew"' in again.text)
        after = visitor.post("/begin/remove", {"file": "b.xlsx"}, of="/begin?anew")
        assert "columns-form" in after.text
        assert "the past file b.xlsx was taken out" in words(after.text)


def test_a_file_that_breaks_the_reading_itself_can_be_taken_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever goes wrong inside, the page stays."""

    def broken(path: Path) -> Table:
        if path.name == "b.csv":
            raise RecursionError("too deep")
        return read_table(path)

    monkeypatch.setattr("headstart.web.desk.read_table", broken)
    with visiting(tmp_path) as visitor:
        page = drop(visitor, ("a.csv", table(-0.05)), ("b.csv", table(0.05)))
        assert "b.csv cannot be read: This went wrong inside headstart: RecursionError: too deep" in words(page)
        assert "columns-form" in visitor.post("/begin/remove", {"file": "b.csv"}, of="/begin").text


STEPS = "T [°C];key;x;yield\n" + "\n".join(f"{40 + 5 * (i % 9)};{12 + i}.301;0,{i}3;{50 + i},5" for i in range(9))


def test_what_nobody_could_see_is_not_taken_for_emptied(tmp_path: Path) -> None:
    """Where the first look has a problem, steps and units are those that the command line keeps."""
    with visiting(tmp_path) as visitor:
        page = drop(visitor, ("a.csv", STEPS.encode()))
        assert "can be read as" in words(page)
        fields = fields_of(page)
        fields |= {f"role{place(fields, 'key')}": "ignore"}
        page = visitor.post("/begin/columns", {**fields, "do": "look"}, of="/begin").text
        visitor.post("/begin/columns", {**fields_of(page), "do": "write"}, of="/begin")
    (t,) = (p for p in read_campaign_file(tmp_path / "headstart.toml").parameters if p.name == "T [°C]")
    assert (t.step, t.unit, t.low, t.high) == (5, "°C", 40, 80)


def test_a_range_that_was_shown_is_guessed_anew_when_more_rows_count(tmp_path: Path) -> None:
    """Only what somebody changed is kept, through as many looks as there are."""
    other = table(0.05).replace(b"run,date,x", b"run,date,width").replace(b",0.042,", b",1.542,")
    with visiting(tmp_path) as visitor:
        fields = fields_of(drop(visitor, ("a.csv", table(-0.05)), ("b.csv", other)))
        fields |= {f"step{place(fields, 'x')}": "0.1", f"same{place(fields, 'width')}": "x"}
        for _ in range(2):
            fields = fields_of(visitor.post("/begin/columns", {**fields, "do": "look"}, of="/begin").text)
        visitor.post("/begin/columns", {**fields, "do": "write"}, of="/begin")
    (x, _) = read_campaign_file(tmp_path / "headstart.toml").parameters
    assert (x.high, x.step) == (1.6, 0.1)


def lab(visitor: Visitor, folder: Path, name: str) -> str:
    folder.mkdir()
    own = next(one for one in SETS if one.name == name)
    return drop(visitor, *((path.name, path.read_bytes()) for path in own.write(folder)))


def test_three_messy_files_are_proposed_as_one_table_and_begin_in_one_form(tmp_path: Path) -> None:
    """Columns of three files stand in one row, a lot is left out in sight, and one click takes a proposal back."""
    home = tmp_path / "home"
    home.mkdir()
    with visiting(home) as visitor:
        page = lab(visitor, tmp_path / "files", "suzuki")
        fields = fields_of(page)
        assert fields[f"same{place(fields, 'T / °C')}"] == "Temperature [°C]"
        assert "it looks like the number of a lot" in words(page)
        assert "40 … 120 °C, steps of 5" in words(page)
        one = {**fields, "set": f"same{place(fields, 'T / °C')}=-"}
        page = visitor.post("/begin/columns", one, of="/begin").text
        assert fields_of(page)[f"same{place(fields, 'T / °C')}"] == "-"
        one = {**fields_of(page), "set": f"role{place(fields, 'Charge')}=parameter"}
        answer = visitor.post("/begin/columns", one, of="/begin")
        assert "'12.301'" not in words(answer.text) or answer.status_code == 422
        visitor.post("/begin/columns", {**fields, "do": "write"}, of="/begin")
        file = read_campaign_file(home / "headstart.toml")
        assert [p.name for p in file.parameters] == [
            "Temperature [°C]", "Time [h]", "Concentration [mol/L]", "Solvent", "Base", "Cat. loading [mol%]"
        ]  # fmt: skip
        assert (file.results[0].name, file.results[0].aim) == ("Yield [%]", "maximised")


def test_proposals_are_shown_where_a_cell_cannot_be_read(tmp_path: Path) -> None:
    """What is the same and what counts does not wait for the cell, and a loss is not proposed to be high."""
    home = tmp_path / "home"
    home.mkdir()
    with visiting(home) as visitor:
        page = drop(visitor, ("a.csv", b"lr,val_loss\n0.1,2.5\n0.2,warm\n0.3,1.5\n"), ("b.csv", b"lr,loss val\n1,2\n"))
        assert "'warm' is not a number" in words(page)
        fields = fields_of(page)
        assert fields[f"role{place(fields, 'val_loss')}"] == "minimise"
        assert fields[f"same{place(fields, 'loss val')}"] == "val_loss"


def test_a_second_result_does_not_take_the_place_of_the_one_that_is_proposed(tmp_path: Path) -> None:
    """Both count."""
    home = tmp_path / "home"
    home.mkdir()
    with visiting(home) as visitor:
        fields = fields_of(lab(visitor, tmp_path / "files", "suzuki"))
        fields |= {f"role{place(fields, 'Conversion [%]')}": "maximise"}
        visitor.post("/begin/columns", {**fields, "do": "write"}, of="/begin")
        file = read_campaign_file(home / "headstart.toml")
        assert {column.name for column in file.goals} == {"Yield [%]", "Conversion [%]"}


def test_a_campaign_begins_without_past_files(tmp_path: Path) -> None:
    """What is typed stays where it cannot be used."""
    with visiting(tmp_path) as visitor:
        wrong = visitor.post(
            "/begin/own", {"space": "T = 120..20", "goal": "yield [%]", "way": "maximise"}, of="/begin"
        )
        assert wrong.status_code == 422
        assert "120 is not below 20" in words(wrong.text)
        assert "T = 120..20" in wrong.text
        assert visitor.post("/begin/own", {"space": "T", "goal": "y"}, of="/begin").status_code == 422
        own = {"space": "T [°C] = 20..120 step 5\nsolvent = DMF|THF", "goal": "yield [%]", "way": "maximise"}
        assert visitor.post("/begin/own", own, of="/begin").url.path == "/experiments"
    file = read_campaign_file(tmp_path / "headstart.toml")
    assert [(p.name, p.step) for p in file.parameters] == [("T [°C]", 5), ("solvent", None)]


def turning(rows: int = 30) -> bytes:
    """A past file in which the nose radius was one of four sizes."""
    lines = [f"{(0.2, 0.4, 0.8, 1.6)[i % 4]},{0.05 + 0.01 * (7 * i % 31):.2f},{1 + i % 5}.{i % 7}" for i in range(rows)]
    return "\n".join(["Nose radius [mm],Feed [mm/rev],Roughness [µm]", *lines, ""]).encode()


def test_sizes_are_proposed_and_undone_with_one_click(tmp_path: Path) -> None:
    """The list stands in its field with the reason; then a range, a list of one's own, and what is no list."""
    with visiting(tmp_path) as visitor:
        page = drop(visitor, ("a.csv", turning()), ("b.csv", turning(40)))
        fields = fields_of(page)
        radius = place(fields, "Nose radius [mm]")
        assert fields[f"values{radius}"] == "0.2; 0.4; 0.8; 1.6"
        assert (fields[f"low{radius}"], fields[f"values{place(fields, 'Feed [mm/rev]')}"]) == ("", "")
        assert "seems to exist in sizes" in words(page)
        assert "0.2, 0.4, 0.8, 1.6 mm, log" in words(page)
        assert f'<button name="set" value="values{radius}=" class="small">values between too' in page

        page = visitor.post("/begin/columns", {**fields, "set": f"values{radius}="}, of="/begin").text
        fields = fields_of(page)
        assert (fields[f"values{radius}"], fields[f"low{radius}"], fields[f"high{radius}"]) == ("", "0.2", "1.6")

        page = visitor.post("/begin/columns", {**fields, f"values{radius}": "0,4 ; 0,8; 1,2"}, of="/begin").text
        fields = fields_of(page)
        assert (fields[f"values{radius}"], f"log{radius}" in fields) == ("0.4; 0.8; 1.2", False)
        page = visitor.post("/begin/columns", {**fields, f"values{radius}": "0,4,0,8", "do": "write"}, of="/begin").text
        assert "'0,4,0,8' is not understood: write the values from the lowest on" in words(page)
        done = visitor.post("/begin/columns", {**fields, "do": "write"}, of="/begin")
        assert done.url.path == "/experiments"
        (p, *_) = read_campaign_file(tmp_path / "headstart.toml").parameters
        assert (p.values, p.log, p.unit) == ((0.4, 0.8, 1.2), False, "mm")


def test_a_range_that_is_typed_takes_the_place_of_a_proposed_list(tmp_path: Path) -> None:
    """Whoever fills in an end means a range."""
    with visiting(tmp_path) as visitor:
        fields = fields_of(drop(visitor, ("a.csv", turning())))
        radius = place(fields, "Nose radius [mm]")
        page = visitor.post("/begin/columns", {**fields, f"high{radius}": "2.4"}, of="/begin").text
        found = fields_of(page)
        assert [found[f"{one}{radius}"] for one in ("values", "low", "high")] == ["", "0.2", "2.4"]
