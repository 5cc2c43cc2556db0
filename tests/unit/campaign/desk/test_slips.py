"""A result far outside anything seen is asked about before it is kept, and settings are corrected in their rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.campaign.campaigns import fingerprint, make

from headstart.campaign.campaign import open_campaign
from headstart.campaign.desk.changes import add_row, save_results, say_right
from headstart.campaign.desk.contents import PastKept
from headstart.campaign.desk.history import digest, undo_step
from headstart.campaign.measured import SlippedResultsError
from headstart.campaign.toml.reading import campaign_file_in, read_campaign_file
from headstart.campaign.toml.writing import with_ranges, with_rules, with_told_cells
from headstart.errors import InputError, UnusableCellsError

ROWS = "x,s,y\n0.1,u,1.5\n0.2,v,\n0.3,u,\n"


def _seen(folder: Path) -> str:
    return str(digest((folder / "current.csv").read_bytes()))


def test_a_slip_is_a_question_and_yes_is_kept_in_the_file(tmp_path: Path) -> None:
    """Nothing is written before it is answered; the answer can be undone with the result."""
    make(tmp_path, current=ROWS)
    before = fingerprint(tmp_path)
    kept = PastKept()
    with pytest.raises(SlippedResultsError) as asked:
        save_results(tmp_path, _seen(tmp_path), {(3, "y"): "884", (4, "y"): "9"}, opening=kept.opened)
    (slip,) = asked.value.slips
    assert (slip.row, slip.column, slip.cell, slip.value, slip.meant) == (3, "y", "884", 884.0, 8.84)
    assert fingerprint(tmp_path) == before
    typed = {(3, "y"): "884", (4, "y"): "9"}
    with pytest.raises(SlippedResultsError):
        save_results(tmp_path, _seen(tmp_path), typed, right=[(4, "y")], opening=kept.opened)
    step = save_results(tmp_path, _seen(tmp_path), typed, right=[(3, "y")], opening=kept.opened)
    assert step is not None
    assert open_campaign(tmp_path).experiments[1].results == {"y": 884.0}
    assert read_campaign_file(tmp_path / "headstart.toml").cells == {"884": 884.0}
    # whoever read the past before sees what whoever reads everything anew does
    assert kept.opened(tmp_path).experiments == open_campaign(tmp_path).experiments
    undo_step(tmp_path, step.number)
    assert (tmp_path / "current.csv").read_text() == ROWS
    assert read_campaign_file(tmp_path / "headstart.toml").cells == {}


def test_a_slip_in_an_own_experiment_has_the_number_of_a_row_that_is_not_there_yet(tmp_path: Path) -> None:
    """So that the question stands beside the field."""
    make(tmp_path, current=ROWS)
    row = {"x": "0.5", "s": "u", "y": "8840"}
    with pytest.raises(SlippedResultsError) as asked:
        add_row(tmp_path, _seen(tmp_path), row)
    assert [(slip.row, slip.meant) for slip in asked.value.slips] == [(0, 8.84)]
    add_row(tmp_path, _seen(tmp_path), row, right=["y"])
    assert open_campaign(tmp_path).experiments[-1].results == {"y": 8840.0}


def test_a_slip_that_another_program_wrote_can_be_said_to_be_right(tmp_path: Path) -> None:
    """The folder cannot be opened before that, and can afterwards."""
    make(tmp_path, current=ROWS.replace("1.5", "8840"))
    with pytest.raises(SlippedResultsError) as asked:
        open_campaign(tmp_path)
    say_right(tmp_path, {slip.cell: slip.value for slip in asked.value.slips})
    assert open_campaign(tmp_path).experiments[0].results == {"y": 8840.0}


def test_settings_are_corrected_in_their_row(tmp_path: Path) -> None:
    """What was really run counts; a value that cannot be is said, with nothing written."""
    make(tmp_path, current=ROWS)
    step = save_results(tmp_path, _seen(tmp_path), {(3, "x"): "0,25", (3, "s"): "u", (3, "y"): "2"})
    assert step is not None
    assert step.what == "results were written into row 3; settings were corrected in row 3"
    assert (tmp_path / "current.csv").read_text() == "x,s,y\n0.1,u,1.5\n0.25,u,2\n0.3,u,\n"
    before = fingerprint(tmp_path)
    with pytest.raises(UnusableCellsError) as wrong:
        save_results(tmp_path, _seen(tmp_path), {(3, "x"): "", (3, "s"): "w", (4, "x"): "much", (9, "x"): "1"})
    assert sorted(wrong.value.cells) == [(3, "s"), (3, "x"), (4, "x"), (9, "x")]
    assert "none of the choices" in wrong.value.cells[3, "s"]
    assert fingerprint(tmp_path) == before


@pytest.mark.parametrize(
    "table", ["", '\n[cells]  # as they are\n"n.d." = "failed"\n', '\n[cells]\n\n[rename]\nA = "x"\n']
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_cells_are_told_in_their_table_and_every_other_line_stays(tmp_path: Path, table: str, newline: str) -> None:
    """Whether there is such a table already or not."""
    path = make(tmp_path) / "headstart.toml"
    old = (path.read_text() + table).replace("\n", newline).encode()
    new = with_told_cells(old, path, {'8"8': 88.0})
    lines = [line for line in new.decode().split(newline) if line not in ('"8\\"8" = 88.0', "[cells]", "")]
    assert lines == [line for line in old.decode().split(newline) if line not in ("[cells]", "")]
    path.write_bytes(new)
    assert read_campaign_file(path).cells['8"8'] == 88.0


def test_what_cannot_be_changed_line_by_line_is_left_alone(tmp_path: Path) -> None:
    """A table can be written in many ways."""
    path = make(tmp_path) / "headstart.toml"
    with pytest.raises(InputError, match="Edit the file itself"):
        with_told_cells(b'cells = { "n.d." = "failed" }\n' + path.read_bytes(), path, {"8840": 8840.0})
    odd = path.read_bytes() + b"[[rules]]\nrule = '''x <= 0.5'''\n"
    with pytest.raises(InputError, match="Edit the file itself"):
        with_rules(odd, path, ["x <= 0.25"])


def test_rules_are_changed_taken_out_and_added(tmp_path: Path) -> None:
    """Comments stay where they are."""
    path = make(tmp_path) / "headstart.toml"
    raw = path.read_bytes() + b'[[rules]]\nrule = "x <= 0.5"  # the pump\n\n[[rules]]\nrule = "x >= 0.1"\n'
    new = with_rules(raw, path, ["x <= 0.75", "", 'not (s = "v" and x > 0.5)']).decode()
    assert 'rule = "x <= 0.75"  # the pump' in new
    path.write_text(new)
    assert read_campaign_file(path).rules == ("x <= 0.75", 'not (s = "v" and x > 0.5)')
    assert with_rules(raw, path, ["x <= 0.5", "x >= 0.1"]) == raw


def test_ranges_are_changed_in_their_lines(tmp_path: Path) -> None:
    """Comments stay, a step is added and taken out, a list of choices may have a stroke or a sign in it."""
    path = make(tmp_path) / "headstart.toml"
    text = (
        path.read_text().replace("low = 0.0\n", "low = 0.0  # the pump\n").replace('["u", "v"]', '["u", "v"]  # "#1"')
    )
    raw = text.encode()
    x, s = campaign_file_in(text, path).parameters
    new = with_ranges(
        raw, path, [replace(x, low=0.125, step=0.125), replace(s, choices=("v", "w #2"), withdrawn=("u",))]
    )
    assert "low = 0.125  # the pump" in new.decode()
    assert 'choices = ["v", "w #2"]  # "#1"' in new.decode()
    x, s = campaign_file_in(new.decode(), path).parameters
    assert (x.low, x.step, s.choices, s.withdrawn) == (0.125, 0.125, ("v", "w #2"), ("u",))
    again = with_ranges(new, path, [replace(x, step=None), replace(s, choices=("u", "v"), withdrawn=())]).decode()
    assert "step" not in again
    assert "withdrawn" not in again
    assert with_ranges(raw, path, campaign_file_in(text, path).parameters) == raw
    odd = text.replace('["u", "v"]', '[\n"u",\n"v"]').encode()
    with pytest.raises(InputError, match="Edit the file itself"):
        with_ranges(odd, path, [x, replace(s, choices=("v", "w"))])
