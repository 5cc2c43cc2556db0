"""What a desk does with a folder: cells, rows, the beginning, the history and the way back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.campaign.campaigns import fingerprint, make

from headstart.campaign.campaign import open_campaign
from headstart.campaign.desk.beginning import add_past, begin, past_files, remove_past, with_parameters
from headstart.campaign.desk.changes import add_row, add_suggestions, remove_row, save_results, save_rules, say_right
from headstart.campaign.desk.contents import PastKept, contents_of, evidence_of
from headstart.campaign.desk.history import HISTORY, digest, last_step, make_step, steps_of, undo_step
from headstart.campaign.experiments import State
from headstart.campaign.init import CampaignPlan, look_at
from headstart.campaign.toml.reading import read_campaign_file
from headstart.data.outcomes import Goal
from headstart.errors import ChangedMeanwhileError, InputError, UnusableCellsError, UnwritableError
from headstart.sources.files.safe import alone_in
from headstart.sources.files.tables import edited, read_table
from headstart.sources.parameters import Kind, Parameter

ROWS = "x,s,y\n0.1,u,1.5\n0.2,v,\n0.3,u,\n"


def _seen(folder: Path) -> str:
    return str(digest((folder / "current.csv").read_bytes()))


def _current(folder: Path) -> str:
    return (folder / "current.csv").read_bytes().decode()


@pytest.mark.parametrize(
    ("raw", "cells", "expected"),
    [
        (b"a,y\n1,2\n3,4", {(3, "y"): 5.5}, b"a,y\n1,2\n3,5.5"),
        (b"a;y\r\n1,5;2\r\n3,5;\r\n", {(3, "y"): 5.5}, b"a;y\r\n1,5;2\r\n3,5;5,5\r\n"),
        (b'note,a,y\n"two\nlines",1,\n"x, y",2,\n', {(3, "y"): 7.0}, b'note,a,y\n"two\nlines",1,\n"x, y",2,7\n'),
        (b"sep=;\na;y\n1;2\n\n 3;4\n", {(4, "y"): "failed"}, b"sep=;\na;y\n1;2\n\n3;failed\n"),
        (b"a,y,\n1\n2,3,\n", {(2, "y"): 9.0}, b"a,y,\n1,9,\n2,3,\n"),
        (b"a,y\n1,\n", {(2, "y"): 1.234}, b"a,y\n1,1.234\n"),
        (b"a;y\n1;\n", {(2, "y"): 1.234}, b"a;y\n1;1.2340\n"),  # 1.234 alone could be 1234
        ("µ,y\n1,\n".encode("utf-16"), {(2, "y"): 1.0}, "µ,y\n1,1\n".encode("utf-16")),
    ],
)
def test_a_cell_is_written_and_every_other_row_stays_byte_by_byte(
    tmp_path: Path, raw: bytes, cells: dict[tuple[int, str], str | float], expected: bytes
) -> None:
    """Delimiter, decimal mark, line ends, quotation marks and encoding are the file's own."""
    path = tmp_path / "c.csv"
    path.write_bytes(raw)
    assert edited(read_table(path), cells, ".") == expected
    assert edited(read_table(path), {}, ".") == raw


def test_results_are_written_with_either_decimal_mark_and_can_be_undone(tmp_path: Path) -> None:
    """A comma is fine, a failure is a word, the history says what happened, and undoing goes back step by step."""
    make(tmp_path, current=ROWS)
    save_results(tmp_path, _seen(tmp_path), {(3, "y"): "2,25", (4, "y"): ""})
    assert _current(tmp_path) == "x,s,y\n0.1,u,1.5\n0.2,v,2.25\n0.3,u,\n"
    save_results(tmp_path, _seen(tmp_path), {(2, "y"): " 1.75 "}, failed=[4])
    assert _current(tmp_path) == "x,s,y\n0.1,u,1.75\n0.2,v,2.25\n0.3,u,failed\n"
    assert open_campaign(tmp_path).those(State.FAILED)[0].number == 4
    assert [step.what for step in steps_of(tmp_path)] == [
        "results were written into row 3",
        "results were written into row 2; marked as failed: row 4",
    ]
    undo_step(tmp_path, 2)
    assert _current(tmp_path) == "x,s,y\n0.1,u,1.5\n0.2,v,2.25\n0.3,u,\n"
    undo_step(tmp_path, 1)
    assert _current(tmp_path) == ROWS
    with pytest.raises(InputError, match="no step to undo"):
        undo_step(tmp_path, 1)


def test_a_result_that_is_there_already_is_no_step(tmp_path: Path) -> None:
    """1,50 is 1.5."""
    make(tmp_path, current=ROWS)
    assert save_results(tmp_path, _seen(tmp_path), {(2, "y"): "1,50", (3, "y"): ""}) is None
    assert steps_of(tmp_path) == ()
    assert _current(tmp_path) == ROWS


def test_cells_that_cannot_be_used_are_named_all_at_once_and_nothing_is_written(tmp_path: Path) -> None:
    """Text, a number that could be two, a row or column that is not there."""
    make(tmp_path, current=ROWS)
    before = fingerprint(tmp_path)
    typed = {(2, "y"): "2.5", (3, "y"): "about 3", (4, "y"): "1,234", (9, "y"): "1", (2, "z"): "0.5"}
    with pytest.raises(UnusableCellsError) as caught:
        save_results(tmp_path, _seen(tmp_path), typed)
    assert set(caught.value.cells) == {(3, "y"), (4, "y"), (9, "y"), (2, "z")}
    assert "1234 or as 1.234" in caught.value.cells[4, "y"]
    assert fingerprint(tmp_path) == before


def test_who_comes_second_writes_nothing(tmp_path: Path) -> None:
    """The digest of what somebody looked at must still be that of the file."""
    make(tmp_path, current=ROWS)
    old = _seen(tmp_path)
    save_results(tmp_path, old, {(3, "y"): "2"})
    now = _current(tmp_path)
    for late in (
        lambda: save_results(tmp_path, old, {(4, "y"): "3"}),
        lambda: add_row(tmp_path, old, {"x": "0.5", "s": "u"}),
        lambda: remove_row(tmp_path, old, 4),
        lambda: add_suggestions(tmp_path, old, [{"x": 0.5, "s": "u"}]),
    ):
        with pytest.raises(ChangedMeanwhileError, match="somebody else"):
            late()
    assert _current(tmp_path) == now


def test_nothing_is_changed_while_another_process_works_in_the_folder(tmp_path: Path) -> None:
    """Every change takes the lock, and so does the way back."""
    make(tmp_path, current=ROWS)
    save_results(tmp_path, _seen(tmp_path), {(3, "y"): "2"})
    seen, now = _seen(tmp_path), _current(tmp_path)
    toml = str(digest((tmp_path / "headstart.toml").read_bytes()))
    looked = look_at([tmp_path / "a.csv"], tmp_path, CampaignPlan((Goal("y", maximize=True),)))
    changes: list[Callable[[], object]] = [
        lambda: save_results(tmp_path, seen, {(4, "y"): "3"}),
        lambda: add_row(tmp_path, seen, {"x": "0.5", "s": "u"}),
        lambda: remove_row(tmp_path, seen, 4),
        lambda: add_suggestions(tmp_path, seen, [{"x": 0.5, "s": "u"}]),
        lambda: say_right(tmp_path, {"88": 88.0}),
        lambda: save_rules(tmp_path, toml, ["x <= 0.9"]),
        lambda: add_past(tmp_path, [("new.csv", b"x,y\n1,2\n")]),
        lambda: remove_past(tmp_path, "a.csv"),
        lambda: begin(tmp_path, looked, seen=toml),
        lambda: undo_step(tmp_path, 1),
    ]
    with alone_in(tmp_path):
        for change in changes:
            with pytest.raises(InputError, match="another headstart is working in this folder"):
                change()
    assert _current(tmp_path) == now
    assert len(steps_of(tmp_path)) == 1


def test_own_rows_are_added_and_checked_like_rows_of_the_file(tmp_path: Path) -> None:
    """Settings are needed, choices known, results may be there."""
    make(tmp_path, current=ROWS)
    add_row(tmp_path, _seen(tmp_path), {"x": "0,55", "s": "v", "y": "7,5"})
    assert _current(tmp_path).endswith("0.3,u,\n0.55,v,7.5\n")
    with pytest.raises(UnusableCellsError) as caught:
        add_row(tmp_path, _seen(tmp_path), {"x": "", "s": "w", "y": "n"})
    told = caught.value.cells
    assert set(told) == {(0, "x"), (0, "s"), (0, "y")}
    assert "none of the choices" in told[0, "s"]
    assert "current.csv" not in told[0, "s"]


def test_only_rows_without_a_result_can_be_taken_out(tmp_path: Path) -> None:
    """What was measured stays."""
    make(tmp_path, current=ROWS)
    remove_row(tmp_path, _seen(tmp_path), 3)
    assert _current(tmp_path) == "x,s,y\n0.1,u,1.5\n0.3,u,\n"
    with pytest.raises(InputError, match="only a row without any result"):
        remove_row(tmp_path, _seen(tmp_path), 2)


def test_a_table_that_is_open_in_a_spreadsheet_program_is_not_written(tmp_path: Path) -> None:
    """Neither results nor the way back."""
    make(tmp_path, current=ROWS)
    save_results(tmp_path, _seen(tmp_path), {(3, "y"): "2"})
    (tmp_path / ".~lock.current.csv#").touch()
    with pytest.raises(InputError, match="open in a spreadsheet program"):
        save_results(tmp_path, _seen(tmp_path), {(4, "y"): "2"})
    with pytest.raises(InputError, match="open in a spreadsheet program"):
        undo_step(tmp_path, 1)


def test_undoing_never_undoes_what_another_program_did(tmp_path: Path) -> None:
    """A file that was changed since is left alone."""
    make(tmp_path, current=ROWS)
    save_results(tmp_path, _seen(tmp_path), {(3, "y"): "2"})
    (tmp_path / "current.csv").write_text(_current(tmp_path) + "0.9,u,3\n")
    with pytest.raises(ChangedMeanwhileError, match="changed since by another program"):
        undo_step(tmp_path, 1)
    assert _current(tmp_path).endswith("0.9,u,3\n")
    with pytest.raises(ChangedMeanwhileError, match="not the last one"):
        undo_step(tmp_path, 7)


def test_a_step_that_was_noted_and_never_done_is_taken_back_without_a_change(tmp_path: Path) -> None:
    """As after a cut of the power between the note and the file."""
    make(tmp_path, current=ROWS)
    save_results(tmp_path, _seen(tmp_path), {(3, "y"): "2"})
    (tmp_path / "current.csv").write_text(ROWS)
    undo_step(tmp_path, 1)
    assert _current(tmp_path) == ROWS
    assert last_step(tmp_path) is None


def test_a_step_is_done_whole_or_not_at_all(tmp_path: Path) -> None:
    """Where the second file is not what was expected, the first one is put back and nothing is noted."""
    (tmp_path / "a").write_bytes(b"1")
    (tmp_path / "b").write_bytes(b"other")
    with pytest.raises(UnwritableError):
        make_step(tmp_path, "both", {"a": (b"1", b"2"), "b": (b"1", b"2")})
    assert (tmp_path / "a").read_bytes() == b"1"
    assert steps_of(tmp_path) == ()
    assert list((tmp_path / HISTORY).iterdir()) == []


def test_past_files_are_put_in_and_taken_out(tmp_path: Path) -> None:
    """The same file again is no step; another one of the same name, or the same one under another, is refused."""
    table = b"x,s,y\n1,u,2\n2,v,3\n3,u,5\n"
    add_past(tmp_path, [("C:\\data\\old one.csv", table)])
    assert [p.name for p in past_files(tmp_path)] == ["old one.csv"]
    assert add_past(tmp_path, [("old one.csv", table)]) is None
    with pytest.raises(InputError, match="with other content"):
        add_past(tmp_path, [("old one.csv", table + b"4,u,6\n")])
    with pytest.raises(InputError, match="the same file as old one"):
        add_past(tmp_path, [("other.csv", table)])
    with pytest.raises(InputError, match="is empty"):
        add_past(tmp_path, [("none.csv", b"\n")])
    remove_past(tmp_path, "old one.csv")
    assert past_files(tmp_path) == ()
    undo_step(tmp_path, 2)
    assert (tmp_path / "past" / "old one.csv").read_bytes() == table
    with pytest.raises(InputError, match="no such past file"):
        remove_past(tmp_path, "../headstart.toml")


@pytest.mark.parametrize("name", ["../../x.csv", "x.exe", ".hidden.csv", "a..csv", "a\x00.csv", "x" * 120 + ".csv", ""])
def test_a_name_leads_nowhere_but_into_past(tmp_path: Path, name: str) -> None:
    """Only the last part of a name counts, and only if it is plain."""
    folder = tmp_path / "f"
    folder.mkdir()
    try:
        add_past(folder, [(name, b"x,y\n1,2\n")])
    except UnwritableError:
        raise
    except ValueError:
        assert past_files(folder) == ()
    assert {p.name for p in tmp_path.iterdir()} == {"f"}
    assert all(p.parent == folder / "past" for p in past_files(folder))


def test_a_link_out_of_the_folder_is_no_past_file(tmp_path: Path) -> None:
    """Whatever stands in past, nothing outside is read."""
    (tmp_path / "secret.csv").write_text("x,y\n1,2\n")
    (tmp_path / "f" / "past").mkdir(parents=True)
    (tmp_path / "f" / "past" / "in.csv").symlink_to(tmp_path / "secret.csv")
    assert past_files(tmp_path / "f") == ()


def test_columns_are_corrected_before_the_campaign_is_written(tmp_path: Path) -> None:
    """A step, a fixed value, a range: what was set by hand is what the file says, and undoing removes it."""
    rows = "".join(f"{i},{i / 10},{'uv'[i % 2]},{i % 4}\n" for i in range(1, 12))
    add_past(tmp_path, [("a.csv", f"t,p,s,y\n{rows}".encode())])
    plan = CampaignPlan((Goal("y", maximize=True),))
    own = {
        "t": Parameter("t", Kind.FLOAT, low=0, high=20, step=0.5, unit="min"),
        "p": Parameter("p", Kind.FIXED, value=0.5, unit="bar"),
    }
    looked = with_parameters(look_at(past_files(tmp_path), tmp_path, plan), own)
    begin(tmp_path, looked, seen=None)
    file = read_campaign_file(tmp_path / "headstart.toml")
    assert {p.name: p for p in file.parameters} | own == {p.name: p for p in file.parameters}
    assert _current(tmp_path) == "t,p,s,y\n"
    with pytest.raises(ChangedMeanwhileError):
        begin(tmp_path, looked, seen=None)
    undo_step(tmp_path, 2)
    assert not (tmp_path / "headstart.toml").exists()


def test_what_a_model_learns_from_changes_with_results_and_not_with_plans(tmp_path: Path) -> None:
    """So that nothing is learnt anew when rows without a result come or go."""
    make(tmp_path, current=ROWS)
    first = contents_of(tmp_path)
    kept = PastKept()
    campaign = kept.opened(tmp_path)
    evidence = evidence_of(campaign, first.besides)
    add_row(tmp_path, _seen(tmp_path), {"x": "0.9", "s": "u"})
    second, again = contents_of(tmp_path), kept.opened(tmp_path)
    assert second.key != first.key
    assert second.besides == first.besides
    fresh = open_campaign(tmp_path)
    assert (again.table, again.experiments, again.remarks) == (fresh.table, fresh.experiments, fresh.remarks)
    assert evidence_of(again, second.besides) == evidence
    save_results(tmp_path, _seen(tmp_path), {(3, "y"): "2"}, opening=kept.opened)
    assert evidence_of(open_campaign(tmp_path), contents_of(tmp_path).besides) != evidence
    (tmp_path / "a.csv").write_text((tmp_path / "a.csv").read_text() + "13,0.5,u,1\n")
    assert contents_of(tmp_path).besides != first.besides
