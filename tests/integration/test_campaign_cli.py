"""``headstart init | suggest | status | plot`` in a folder, as the page on it says, and with all that can go wrong."""

from __future__ import annotations

import csv
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from random import Random
from typing import Any

import pytest
from rich.console import Console
from tests.integration.command import assert_refused, invoke
from tests.unit.campaign.campaigns import fingerprint, make

from headstart.campaign.desk.words import with_interval
from headstart.cli.main import app
from headstart.cli.output import working
from headstart.models.learning import LearningProgress

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "folder.md").read_text(encoding="utf-8")
INIT = ["--objective", "y", "--maximize"]


# ── the page, from beginning to end ───────────────────────────────────────────────────────────────────────────────


def _fill_in(folder: Path, draw: Random) -> None:
    """What the laboratory does between two suggestions: results for the rows that have none."""
    reaction: dict[str, Any] = runpy.run_path(str(folder / "reaction.py"))
    path = folder / "current.csv"
    with path.open(encoding="utf-8-sig", newline="") as file:
        header, *rows = csv.reader(file)
    column = {name: i for i, name in enumerate(header)}
    for row in rows:
        if row[column["yield_percent"]] == "":
            settings = [row[column[name]] for name in ("temperature_C", "time_min", "concentration_M", "solvent")]
            numbers = [float(text) for text in settings[:3]]
            row[column["yield_percent"]] = str(reaction["measured_yield"](draw, "amide-d", *numbers, settings[3]))
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file, lineterminator="\r\n").writerows([header, *rows])


def _commands(block: str) -> list[list[str]]:
    return [shlex.split(line[2:]) for line in block.splitlines() if line.startswith("$ ")]


@pytest.mark.slow
def test_the_page_on_the_folder_is_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its commands run one after the other, its toml lines are written, and 8 experiments beat 22 random ones."""
    folder = tmp_path / "examples"
    shutil.copytree(ROOT / "examples", folder)
    monkeypatch.chdir(folder)
    draw = Random(1)
    blocks = re.findall(r"```(console|toml)\n(.*?)```", PAGE, flags=re.DOTALL)
    ran = []
    for kind, block in blocks:
        if kind == "toml":
            written = (folder / "headstart.toml").read_text(encoding="utf-8").splitlines()
            assert [line for line in block.splitlines() if line and line not in written] == []
            continue
        for program, *arguments in _commands(block):
            if program == "cd":
                continue
            assert program == "headstart"
            if arguments[0] == "suggest":
                _fill_in(folder, draw)
            given = [str(p) for a in arguments for p in (sorted(Path().glob(a)) if "*" in a else [a])]
            result = invoke(*given)
            assert result.exit_code == 0, result.output
            ran.append(arguments[0])
    assert ran == ["init", "suggest", "suggest", "status", "plot", "check"]
    campaign = ["importance.png", "predicted.png", "progress.png", "slices.png", "sources.png"]
    pictures = ["agreement.png", *campaign, "verdicts.png"]
    assert [path.name for path in sorted((folder / "plots").iterdir())] == pictures
    _fill_in(folder, draw)
    with (folder / "current.csv").open(encoding="utf-8-sig", newline="") as file:
        results = [float(row["yield_percent"]) for row in csv.DictReader(file)]
    assert len(results) == 8
    assert max(results) > 67.5  # the median of the best of 22 random runs; the optimum is 86.6


def test_what_suggest_and_status_print(tmp_path: Path) -> None:
    """The rows by their numbers in the spreadsheet, the expected result with its interval, and what it rests on."""
    folder = make(tmp_path, current="x,s,y\n0.3,u,3.4\n0.3,u,3.1\n")
    result = invoke("suggest", "-n", "2", "--folder", folder)
    assert result.exit_code == 0, result.output
    assert "2 experiments to try" in result.stdout
    number = r"-?\d+(?:\.\d+)?"
    assert re.search(
        rf"^ *4 .* {number} \({number} … {number}\) .* a \d+ %, b \d+ %, this campaign \d+ %",
        result.stdout,
        flags=re.MULTILINE,
    )
    assert re.search(rf"^ *5 .* {number} \({number} … {number}\) ", result.stdout, flags=re.MULTILINE)
    assert "In brackets is a 95 % range: 19 of 20 results should lie in it." in result.stdout
    past = result.stdout[result.stdout.index("The best past settings") :]
    assert re.search(rf"^a +0\.542 +u +9\.992 +{number} \({number} … {number}\)", past, flags=re.MULTILINE)
    result = invoke("status", "--folder", folder)
    assert result.exit_code == 0, result.output
    assert "y, to be maximised: 2 finished, 2 pending\n" in result.stdout
    assert "Best so far: 3.4 in row 2: x 0.3, s u\n" in result.stdout
    assert "Repeated experiments scatter by 0.21 (standard deviation, 1 repeat)." in result.stdout
    assert re.search(r"^this campaign +2 +3\.4 +\d+ %", result.stdout, flags=re.MULTILINE)


def test_without_past_and_results_no_number_is_made_up(tmp_path: Path) -> None:
    """Tables say that nothing is known yet."""
    folder = make(tmp_path)
    toml = folder / "headstart.toml"
    toml.write_text(toml.read_text().replace('["a.csv", "b.csv"]', "[]"))
    result = invoke("suggest", "-n", "2", "--folder", folder)
    assert result.exit_code == 0, result.output
    assert result.stdout.count("not known yet   nothing yet") == 2
    assert "Nothing is known about results yet" in result.stdout
    assert "95 %" not in result.stdout
    result = invoke("status", "--folder", folder)
    assert result.exit_code == 0, result.output
    assert result.stdout.count("not known yet") == 2
    assert "scatter" not in result.stdout


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ((82.31, 70.9, 90.2), "82 (71 … 90)"),
        ((82.31, 79.9, 85.2), "82.3 (79.9 … 85.2)"),
        ((-0.02, -0.4, 0.3), "-0.02 (-0.40 … 0.30)"),
        ((0.001, -30.0, 40.0), "0 (-30 … 40)"),
        ((3.0, 3.0, 3.0), "3.000 (3.000 … 3.000)"),
        ((1.5e9, 1e9, 2e9), "1.5e+09 (1e+09 … 2e+09)"),
        ((1.5e-9, 1e-9, 2e-9), "1.5e-09 (1e-09 … 2e-09)"),
        ((float("nan"),) * 3, "not known yet"),
    ],
)
def test_numbers_have_as_many_digits_as_their_interval_tells(numbers: tuple[float, float, float], text: str) -> None:
    """Two of its width."""
    assert with_interval(*numbers) == text


def test_equal_folders_get_equal_suggestions(tmp_path: Path) -> None:
    """Whatever the clock says; and a second batch differs from the first, which is pending by then."""
    contents = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        assert invoke("suggest", "-n", "2", "--folder", make(tmp_path / name)).exit_code == 0
        contents.append((tmp_path / name / "current.csv").read_text())
    assert contents[0] == contents[1]
    assert invoke("suggest", "-n", "2", "--folder", tmp_path / "one").exit_code == 0
    rows = (tmp_path / "one" / "current.csv").read_text().splitlines()[1:]
    assert len(set(rows)) == 4


def test_another_seed_gives_other_suggestions(tmp_path: Path) -> None:
    """Where nothing is known yet they are laid out by it."""
    found = []
    for seed in ("1", "1", "2"):
        make(tmp_path)
        toml = tmp_path / "headstart.toml"
        toml.write_text(toml.read_text().replace('["a.csv", "b.csv"]', "[]"))
        assert invoke("suggest", "-n", "2", "--folder", tmp_path, "--seed", seed).exit_code == 0
        found.append((tmp_path / "current.csv").read_text())
    assert found[0] == found[1] != found[2]


@pytest.mark.parametrize("command", ["suggest", "status", "plot"])
def test_a_model_of_the_command_line_takes_the_place_of_that_of_the_file(tmp_path: Path, command: str) -> None:
    """So its name has to be one."""
    make(tmp_path)
    assert_refused(invoke(command, "--folder", tmp_path, "--model", "shpg"), "no model 'shpg'", "Did you mean 'shgp'")


def test_a_campaign_can_begin_in_another_folder(tmp_path: Path) -> None:
    """Past files are found by relative paths, in the layout of the first one; lock files are left out."""
    make(tmp_path)
    (tmp_path / "~$a.csv").touch()
    lab = tmp_path / "lab"
    lab.mkdir()
    result = invoke("init", tmp_path / "b.csv", tmp_path / "a.csv", tmp_path / "~$a.csv", *INIT, "--folder", lab)
    assert result.exit_code == 0, result.output
    assert "~$a.csv is the lock file of a spreadsheet program" in result.stderr
    toml = (lab / "headstart.toml").read_text()
    assert '    "../b.csv",\n    "../a.csv",\n' in toml
    assert (lab / "current.csv").read_bytes() == b"\xef\xbb\xbfx;s;y\n"
    assert sorted(path.name for path in lab.iterdir()) == ["current.csv", "headstart.toml"]
    result = invoke("suggest", "--folder", lab)
    assert result.exit_code == 0, result.output
    assert re.search(r"\n0,\d+;u;\n$", (lab / "current.csv").read_text("utf-8-sig"))


def test_beginning_anew_keeps_the_results(tmp_path: Path) -> None:
    """``--force`` writes headstart.toml, never a current.csv that has rows."""
    folder = make(tmp_path, current="x,s,y\n0.3,u,3.4\n")
    arguments: tuple[str | Path, ...] = ("init", folder / "a.csv", *INIT, "--folder", folder)
    assert_refused(invoke(*arguments), "headstart.toml is there already", "--force")
    before = fingerprint(folder)
    result = invoke(*arguments, "--force")
    assert result.exit_code == 0, result.output
    assert "current.csv, which has 1 row\n" in result.stdout
    after = fingerprint(folder)
    assert {name for name in after if after[name] != before[name]} == {"headstart.toml"}


# ── bad input ─────────────────────────────────────────────────────────────────────────────────────────────────────

GOOD = "x,z,y\n1,2,3\n2,3,4\n4,1,5\n"


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        (b"x z y\n1 2 3\n", ["past.csv, row 1: only one column was found", "separated by a comma, a semicolon, a tab"]),
        (b"x,z,y\n1,5,2,3\n", ["past.csv, row 2: it has 4 cells", "12,5", "another delimiter"]),
        (b'x,z,y\n1.5,2,"1,234"\n', ["past.csv, row 2, column 'y': '1,234' can be read as 1234 or as 1.234"]),
        (b"\xff\xfe\x00", ["past.csv is not UTF-16-LE text", "Save it as CSV (UTF-8)"]),
        (b"x,z\n1,2\n", ["past.csv: there is no column 'y'", "'x', 'z'", "--rename"]),
        (b"x,z,y\n1,2,3\n2,hot,4\n3,3,5\n", ["past.csv, row 3, column 'z': 'hot' is not a number", "Write the number"]),
        (
            b"x,z,y\n1,2,3\n2,5-7,4\n3,3,5\n",
            ["past.csv, row 3, column 'z': '5-7' is a range, not a number", "Write one number"],
        ),
        (b"x,z,y\n1,2,good\n2,3,4\n", ["past.csv, row 2, column 'y': 'good' is not a number"]),
        (b"", ["past.csv is empty"]),
        (b"x,z,y\n", ["past.csv has a header but no rows"]),
        (b"x,z,y\n" + b"1,2,3\n" * 1_000_001, ["past.csv has about 1,000,002 rows", "random sample"]),
        (b"x,z,y\n1,1.200,3\n2,900,4\n", ["past.csv, row 2, column 'z'", "1200 or as 1.200", "decimal_mark"]),
        (b"x,z,y\n1,2,3\n2,3. Mai,4\n3,3,5\n", ["past.csv, row 3, column 'z': '3. Mai' is a date", "as a number"]),
        (b"1,2,3\n4,5,6\n", ["past.csv, row 1: the first row must name the columns"]),
        (b"PK\x03\x04", ["past.csv is an Excel or LibreOffice workbook", "save the sheet as CSV"]),
        (b"x,z,y\n1,1,3\n1,1,4\n", ["past.csv: no column besides 'y' varies"]),
    ],
    ids=lambda value: None if isinstance(value, bytes) else value[0].removeprefix("past.csv")[:40],
)
def test_a_past_file_that_cannot_be_used(tmp_path: Path, content: bytes, parts: list[str]) -> None:
    """One line with file, row, column and remedy; exit code 2; nothing is written."""
    (tmp_path / "past.csv").write_bytes(content)
    before = fingerprint(tmp_path)
    assert_refused(invoke("init", tmp_path / "past.csv", *INIT, "--folder", tmp_path), *parts)
    assert fingerprint(tmp_path) == before


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["--objective", "y"], ["'y'", "--maximize or --minimize"]),
        ([*INIT, "--rename", "z"], ["--rename must be OLD=NEW", "'z'"]),
        ([*INIT, "--rename", "zz=a"], ["rename names 'zz', but no file has such a column", "(--rename)"]),
        ([*INIT, "--rename", "x=z"], ["'x' and 'z' would both be called 'z'"]),
        ([*INIT, "--ignore", "zeta"], ["ignore names 'zeta', but no file has such a column", "(--ignore)"]),
        ([*INIT, "--folder", "nowhere"], ["nowhere: there is no such folder"]),
        ([*INIT, "no.csv"], ["no.csv: there is no such file"]),
        ([*INIT, "past.csv"], ["past.csv is named twice"]),
        ([*INIT, "other.csv"], ["has no parameter in common with the other files", "--rename"]),
    ],
    ids=lambda value: None if isinstance(value[0], str) and value[0].startswith("-") else value[0][:40],
)
def test_options_that_do_not_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], parts: list[str]
) -> None:
    """One line that says what came and what would be right; nothing is written."""
    monkeypatch.chdir(tmp_path)
    Path("past.csv").write_text(GOOD)
    Path("other.csv").write_text("u,v,y\n1,2,3\n2,3,4\n")
    before = fingerprint(tmp_path)
    assert_refused(invoke("init", "past.csv", *arguments), *parts)
    assert fingerprint(tmp_path) == before


def _replace(name: str, old: str, new: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        text = (folder / name).read_text(encoding="utf-8")
        assert old in text
        (folder / name).write_text(text.replace(old, new, 1), encoding="utf-8")

    return change


def _write(name: str, content: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / name).write_text(content, encoding="utf-8")

    return change


def _remove(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        (_replace("headstart.toml", "high", "hihg"), ["headstart.toml, line 11", "'hihg'", "Did you mean 'high'?"]),
        (
            _replace("headstart.toml", "high = 1.0", "high = -1.0"),
            ["low in [parameters.x]: 0 is not below -1. Swap them"],
        ),
        (_replace("headstart.toml", "= 1.0", "= 1,0"), ["headstart.toml is not valid TOML", "line 11"]),
        (_replace("headstart.toml", "past", 'model = "shpg"\npast'), ["no model 'shpg'", "Did you mean 'shgp'"]),
        (_remove("headstart.toml"), ["headstart.toml: there is no such file", "headstart init"]),
        (_remove("a.csv"), ["a.csv: there is no such file"]),
        (_remove("current.csv"), ["current.csv: there is no such file", "first row is x,s,y"]),
        (_write("a.csv", "q,r,y\n1,2,3\n2,3,4\n"), ["a.csv has nothing in common", "q"]),
        (_write("a.csv", "x,s,z\n0.1,u,3\n"), ["a.csv: there is no column 'y'", "[rename]"]),
        (_write("a.csv", "x,s,y\n0.1,u,3\nhot,u,3\n0.3,u,1\n"), ["a.csv, row 3, column 'x': 'hot' is not a number"]),
        (_write("a.csv", "x,s,y\n0.1,u,3\n0.2,u,3 kg\n1 g,u,8 bar\n"), ["a.csv, row 4, column 'y'", "bar", "kg"]),
        (_write("current.csv", "x,s,y\n0.1,u,n.d. yet\n"), ["current.csv, row 2, column 'y': 'n.d. yet'", "n/a"]),
        (_write("current.csv", "x,s,y\n,u,5\n"), ["current.csv, row 2, column 'x': an empty cell"]),
        (_write("current.csv", "x;s;y\n0,5;w;5\n"), ["current.csv, row 2, column 's': 'w' is none of the choices"]),
        (_write("current.csv", "x,y\n0.5,5\n"), ["current.csv: there is no column 's'", "'x', 'y'"]),
        (_write("current.csv", "x,s,y\n2024-03-01,u,5\n"), ["row 2, column 'x': '2024-03-01' is a date"]),
        (_write("current.csv", ""), ["current.csv is empty"]),
        (_write("~$current.csv", ""), ["current.csv is open in a spreadsheet program"]),
    ],
    ids=lambda value: value[0][:44] if isinstance(value, list) else None,
)
def test_a_folder_that_cannot_be_used(tmp_path: Path, change: Callable[[Path], None], parts: list[str]) -> None:
    """One line with file, row or line, column or key, and remedy; exit code 2; nothing is written."""
    change(make(tmp_path))
    before = fingerprint(tmp_path)
    assert_refused(invoke("suggest", "--folder", tmp_path), *parts)
    assert fingerprint(tmp_path) == before


@pytest.mark.parametrize(
    "rows", ["", "0.6,v,\n", "0.6,v,2\n", "0.6,v,failed\n"], ids=["none", "pending", "one", "failed"]
)
def test_neither_past_nor_results_is_no_error(tmp_path: Path, rows: str) -> None:
    """A campaign that begins with nothing has a status and one picture, of its progress."""
    make(tmp_path, current=f"x,s,y\n{rows}")
    toml = tmp_path / "headstart.toml"
    toml.write_text(toml.read_text().replace('["a.csv", "b.csv"]', "[]"))
    told, drawn = invoke("status", "--folder", tmp_path), invoke("plot", "--folder", tmp_path)
    assert (told.exit_code, drawn.exit_code) == (0, 0), told.output + drawn.output
    assert drawn.stdout == f"Picture: {tmp_path / 'plots' / 'progress.png'}\n"
    assert [path.name for path in (tmp_path / "plots").iterdir()] == ["progress.png"]


@pytest.mark.parametrize("command", ["suggest", "status", "plot"])
def test_without_a_campaign_the_beginning_is_explained(tmp_path: Path, command: str) -> None:
    """Both in an empty folder and where there is none."""
    assert_refused(invoke(command, "--folder", tmp_path), "headstart.toml: there is no such file", "headstart init")
    assert_refused(invoke(command, "--folder", tmp_path / "no"), "there is no such folder")


@pytest.mark.parametrize("arguments", [["-n", "0"], ["-n", "101"], ["--seed", "-1"]])
def test_numbers_out_of_range_areassert_refused(tmp_path: Path, arguments: list[str]) -> None:
    """The option is named."""
    before = fingerprint(make(tmp_path))
    assert_refused(invoke("suggest", "--folder", tmp_path, *arguments), arguments[0].lstrip("-"))
    assert fingerprint(tmp_path) == before


def test_when_everything_was_tried_it_is_said(tmp_path: Path) -> None:
    """A space of two points that are both pending has nothing left."""
    make(tmp_path, current="s,y\nu,\nv,\n")
    toml = tmp_path / "headstart.toml"
    toml.write_text(re.sub(r"\[parameters\.x\].*?\n\n", "", toml.read_text(), flags=re.DOTALL))
    before = fingerprint(tmp_path)
    result = invoke("suggest", "--folder", tmp_path)
    assert result.exit_code == 2
    assert "headstart: " in result.stderr
    assert fingerprint(tmp_path) == before


def test_a_second_process_is_told_to_wait(tmp_path: Path) -> None:
    """With the number of the first one."""
    make(tmp_path)
    program = (
        "import sys, pathlib, headstart.sources.files.safe as files\n"
        "with files.alone_in(pathlib.Path(sys.argv[1])):\n"
        "    print('held', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        before = fingerprint(tmp_path)
        result = invoke("suggest", "--folder", tmp_path)
        assert_refused(result, f"another headstart is working in this folder (process {other.pid}). Wait")
        assert fingerprint(tmp_path) == before


def test_asking_for_help_loads_nothing_heavy() -> None:
    """Nor does beginning a campaign load torch."""
    program = (
        "import sys\n"
        "from typer.testing import CliRunner\n"
        "from headstart.cli.main import app\n"
        "for command in ([], ['init'], ['suggest'], ['status'], ['plot'], ['check'], ['demo']):\n"
        "    assert CliRunner().invoke(app, [*command, '--help']).exit_code == 0\n"
        "assert not {'torch', 'matplotlib', 'pandas', 'optuna'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["suggest", "--nonsense"], "No such option: --nonsense"),
        (["frob"], "No such command 'frob'. See 'headstart --help'."),
        (["suggest", "-n", "many"], "Invalid value for '-n'"),
        (["init", "a.csv", "--objective", "y", "--maximize", "--minimize"], "contradict each other"),
    ],
)
def test_calls_that_cannot_be_are_said_in_one_line(
    arguments: list[str], part: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As all other errors are."""
    monkeypatch.setattr(sys, "argv", ["headstart", *arguments])
    with pytest.raises(SystemExit) as end:
        app(prog_name="headstart")
    said = capsys.readouterr().err
    assert end.value.code == 2
    assert said.startswith("headstart: ")
    assert said.count("\n") == 1
    assert part in said


def test_what_nobody_can_read_is_not_appended(tmp_path: Path) -> None:
    """Into a full disk, or a pipe that is closed, nothing is said and nothing changed."""
    if not Path("/dev/full").exists():
        pytest.skip("there is no disk that is always full")
    folder = make(tmp_path)
    before = fingerprint(folder)
    code = "import sys; from headstart.cli.main import app; app()"
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", code, "suggest", "--folder", str(folder)], stdout=full, stderr=subprocess.PIPE
        )
    assert done.returncode == 2
    assert b"No space left" in done.stderr
    assert fingerprint(folder) == before


# ── how far it is ─────────────────────────────────────────────────────────────────────────────────────────────────


def _shown(now: LearningProgress, *, quiet: bool = False, terminal: bool = True) -> str:
    console = Console(file=StringIO(), force_terminal=terminal, width=100)
    with working("learning …", quiet=quiet, console=console) as tell:
        tell(now)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_a_terminal_shows_how_far_it_is_where_that_takes_long() -> None:
    """With what is done and the time left; nothing is shown with --quiet, and where nobody looks."""
    long = LearningProgress("Learning from 30 sources (3000 rows)", 0.25, 3.0, 9.0)
    text = _shown(long)
    assert "Learning from 30 sources (3000 rows) …" in text
    assert "about 9 s left" in text
    short = _shown(LearningProgress("Learning from 1 source (9 rows)", 0.0, 0.1, 0.1))
    assert "learning …" in short
    assert "left" not in short
    assert _shown(long, quiet=True) == ""
    assert _shown(long, terminal=False).strip() == ""


def test_processes_and_devices_are_said_in_the_file_or_on_the_command_line(tmp_path: Path) -> None:
    """They change no suggestion; a wrong number names where it stands, and a GPU that is not there is none."""
    make(tmp_path)
    before = invoke("suggest", "--folder", tmp_path, "--quiet").stdout.splitlines()[:4]
    (tmp_path / "current.csv").write_text((tmp_path / "current.csv").read_text().rsplit("\n", 2)[0] + "\n")
    again = invoke("suggest", "--folder", tmp_path, "--jobs", "2")
    assert again.exit_code == 0, again.output
    assert again.stdout.splitlines()[:4] == before
    assert_refused(invoke("status", "--folder", tmp_path, "--jobs", "0"), "jobs is how many processes")
    assert_refused(invoke("status", "--folder", tmp_path, "--device", "gpu"), "device must be")
    toml = tmp_path / "headstart.toml"
    toml.write_text("jobs = -3\n" + toml.read_text())
    assert_refused(invoke("status", "--folder", tmp_path), "headstart.toml: jobs is how many processes", "-3")
