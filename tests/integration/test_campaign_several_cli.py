"""A folder with several results, rules and lists, as the page on it says, and with all that can go wrong."""

from __future__ import annotations

import csv
import re
import runpy
import shlex
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.integration.command import assert_refused, invoke
from tests.unit.campaign.campaigns import fingerprint
from tests.unit.campaign.several import HEADER, make_several, some_rows

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "folder-more.md").read_text(encoding="utf-8")
RESULTS = ("strength_MPa", "strength_sd", "shrinkage_percent", "cost")


def _fill_in(folder: Path, draw: Random) -> list[dict[str, str]]:
    """What the laboratory does: results for the rows that have none; all rows."""
    blend: dict[str, Any] = runpy.run_path(str(folder / "blend.py"))
    path = folder / "current.csv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        if not row["cost"]:
            numbers = [float(row[name]) for name in ("resin", "hardener", "filler", "oven_C")]
            found = blend["measured"](draw, "new", *numbers, row["catalyst"])
            row.update(zip(RESULTS, map(str, found), strict=True))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return rows


@pytest.mark.slow
def test_the_page_is_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its commands run, its toml lines are written, and what they draw is what it says."""
    folder = tmp_path / "blend"
    shutil.copytree(ROOT / "examples" / "blend", folder)
    monkeypatch.chdir(folder)
    (console,) = re.findall(r"```console\n(.*?)```", PAGE, flags=re.DOTALL)
    for line in console.splitlines():
        program, *arguments = shlex.split(line[2:])
        if program == "headstart":
            given = [str(p) for a in arguments for p in (sorted(Path().glob(a)) if "*.csv" in a else [a])]
            result = invoke(*given)
            assert result.exit_code == 0, result.output
    written = (folder / "headstart.toml").read_text(encoding="utf-8").splitlines()
    for block in re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL):
        assert [line for line in block.splitlines() if line and line not in written] == []
    rows = _fill_in(folder, Random(1))
    assert len(rows) == 4
    for row in rows:
        assert sum(round(10_000 * float(row[name])) for name in ("resin", "hardener", "filler")) == 10_000
        assert not (float(row["oven_C"]) > 110 and row["catalyst"] == "none")
    result = invoke("status")
    assert result.exit_code == 0, result.output
    assert "shrinkage [%] at most 0.5: 4 finished" in result.stdout
    assert re.search(r"The front: \d results? that no other beats in everything", result.stdout)
    assert "too early to say with 4 of at least 8 results" in result.stdout
    result = invoke("plot")
    assert result.exit_code == 0, result.output
    assert {"front.png", "slices-cost.png", "progress.png"} <= {path.name for path in (folder / "plots").iterdir()}
    result = invoke("check")
    assert result.exit_code == 0, result.output
    for name in ("strength_MPa", "cost", "shrinkage_percent"):
        assert f"The past campaigns after 4 results of this one: {name}" in result.stdout


def test_candidates_are_printed_and_written_with_all_their_columns(tmp_path: Path) -> None:
    """Whoever goes to the shelf needs the place; init gives the new table that column."""
    make_several(tmp_path)
    (tmp_path / "headstart.toml").unlink()
    (tmp_path / "current.csv").unlink()
    (tmp_path / "shelf.csv").write_text("well,a,b,s\nA1,0.5,0.3,u\nA2,1.2,0.3,u\nB1,0.1,0.9,v\n")
    folder = ["--folder", str(tmp_path)]
    files = [tmp_path / "old.csv", tmp_path / "older.csv"]
    listed = ["--candidates", tmp_path / "shelf.csv", "--ignore", "y_sd", "--ignore", "cost"]
    result = invoke("init", *files, "--objective", "y:maximize", "--limit", "dirt<=2", *listed, *folder)
    assert result.exit_code == 0, result.output
    assert (tmp_path / "current.csv").read_text().startswith("well,a,b,s,y,dirt")
    result = invoke("suggest", "-n", "2", *folder)
    assert result.exit_code == 0, result.output
    with (tmp_path / "current.csv").open() as file:
        wells = [row["well"] for row in csv.DictReader(file)]
    assert len(set(wells)) == 2
    for well in wells:
        assert re.search(rf"^ *\d +{well} ", result.stdout, flags=re.MULTILINE)
    result = invoke("suggest", "-n", "2", *folder)
    assert_refused(result, "fewer than 2 settings are left", "ask for fewer", "(-n")


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["--objective", "y"], ["'y'", "--maximize or --minimize", "--objective 'y:maximize'"]),
        (["--objective", "y:up"], ["'y:up'"]),
        (["--objective", "y:maximize", "--limit", "dirt=2"], ["'dirt' is no objective, so it cannot have a target"]),
        (["--objective", "y:maximize", "--limit", "dirt<=x"], ["--limit: 'dirt<=x' says nothing about a result"]),
        (["--objective", "y:maximize", "--limit", "mud<=2"], ["there is no column 'mud'"]),
        (["--objective", "y:maximize", "--limit", "y<=2"], ["'y<=2': 'y' is maximised", "written 'y >= …'"]),
        (
            ["--objective", "y:maximize", "--limit", "dirt<=baseline"],
            ["relative to a baseline, but no baseline has a result 'dirt'"],
        ),
        (
            ["--objective", "y:maximize", "--limit", "dirt<=baseline", "--baseline", "old.csv:99"],
            ["baseline: 'old.csv:99' is no row of a past file", "The files are old.csv, older.csv"],
        ),
        (["--objective", "y:maximize", "--objective", "y:minimize"], ["'y'", "twice"]),
        (
            ["--objective", "y:maximize", "--error", "sd"],
            ["error names 'sd', but no file has such a column", "(--error)"],
        ),
        (["--objective", "y:maximize", "--error", "z=y_sd"], ["error names 'z', which is no result", "(--error)"]),
        (["--objective", "y:maximize", "--rule", "a + q <= 1"], ["rules: rule 'a + q <= 1'", "no parameter 'q'"]),
        (["--objective", "y:maximize", "--rule", "a + b >= 9"], ["rules: No setting of the space keeps the rule"]),
        (["--objective", "y:maximize", "--rule", "a plus b"], ["rules: rule 'a plus b', character 3"]),
        (["--objective", "y:maximize", "--candidates", "no.csv"], ["no.csv: there is no such file"]),
    ],
)
def test_options_that_do_not_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], parts: list[str]
) -> None:
    """One line that says what came and what would be right; nothing is written."""
    make_several(tmp_path)
    (tmp_path / "headstart.toml").unlink()
    monkeypatch.chdir(tmp_path)
    before = fingerprint(tmp_path)
    assert_refused(invoke("init", "old.csv", "older.csv", *arguments), *parts)
    assert fingerprint(tmp_path) == before


def test_thresholds_targets_ranges_and_baselines_are_written_as_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What stands in the row of a past file is what a limit is relative to; a value may be told instead."""
    make_several(tmp_path)
    (tmp_path / "headstart.toml").unlink()
    monkeypatch.chdir(tmp_path)
    with Path("old.csv").open() as file:
        dirt = float(list(csv.DictReader(file))[3]["dirt"])  # row 5, as a spreadsheet program counts
    wishes = ["--limit", "Y >= 3", "--limit", "0.1 <= dirt <= 2 * baseline", "--objective", "cost = 7"]
    told = {"old.csv:5": 2 * dirt, "dirt=1,5": 3.0}
    for baseline, at_most in told.items():
        options = ["--objective", "y:maximize", *wishes, "--baseline", baseline, "--force"]
        result = invoke("init", "old.csv", "older.csv", *options)
        assert result.exit_code == 0, result.output
        written = tomllib.loads(Path("headstart.toml").read_text())
        assert written["limits"]["dirt"]["at_most"] == pytest.approx(at_most)
        assert written["limits"]["dirt"]["at_least"] == 0.1
        assert written["objectives"]["y"]["threshold"] == 3
        assert written["objectives"]["cost"]["target"] == 7


@pytest.mark.parametrize(
    ("relation", "written"),
    [*((sign, "at_most") for sign in ("<=", "≤", "<")), *((sign, "at_least") for sign in (">=", "≥", ">"))],
)
def test_a_limit_has_the_side_that_its_sign_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, relation: str, written: str
) -> None:
    """In headstart.toml."""
    make_several(tmp_path)
    (tmp_path / "headstart.toml").unlink()
    monkeypatch.chdir(tmp_path)
    result = invoke("init", "old.csv", "older.csv", "--objective", "y:maximize", "--limit", f"dirt{relation}2,5")
    assert result.exit_code == 0, result.output
    assert tomllib.loads((tmp_path / "headstart.toml").read_text())["limits"]["dirt"][written] == 2.5


def _written(name: str, content: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / name).write_text(content, encoding="utf-8")

    return change


def _replaced(old: str, new: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        text = (folder / "headstart.toml").read_text(encoding="utf-8")
        assert old in text
        (folder / "headstart.toml").write_text(text.replace(old, new, 1), encoding="utf-8")

    return change


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        (_replaced("a + b <= 1", "a + b >= 3"), ["headstart.toml: No setting of the space keeps the rule"]),
        (_replaced("a + b <= 1", "a + q <= 1"), ["headstart.toml, line 29", "no parameter 'q'"]),
        (_replaced("[limits.dirt]", "[limits.y]"), ["line 12", "'y' is an objective and has a limit too"]),
        (_replaced("[limits.dirt]", "[limits.mud]"), ["current.csv: there is no column 'mud'"]),
        (_written("current.csv", HEADER + "0.1,0.2,u,3,0,2,1\n"), ["current.csv, row 2, column 'y_sd'", "above 0"]),
        (_replaced("past =", 'candidates = "no.csv"\npast ='), ["no.csv: there is no such file"]),
    ],
    ids=lambda value: value[0][:44] if isinstance(value, list) else None,
)
@pytest.mark.parametrize("command", ["suggest", "status"])
def test_a_folder_that_cannot_be_used(
    tmp_path: Path, change: Callable[[Path], None], parts: list[str], command: str
) -> None:
    """One line with file, row or line, and remedy; exit code 2; nothing is written."""
    change(make_several(tmp_path))
    before = fingerprint(tmp_path)
    assert_refused(invoke(command, "--folder", tmp_path), *parts)
    assert fingerprint(tmp_path) == before


def test_results_outside_the_limits_are_said(tmp_path: Path) -> None:
    """One objective and a limit that no result keeps yet."""
    make_several(tmp_path, some_rows([(0.9, 0.05, "u")]))
    text = (tmp_path / "headstart.toml").read_text()
    (tmp_path / "headstart.toml").write_text(text.replace('[objectives.cost]\ndirection = "minimize"\n', ""))
    result = invoke("status", "--folder", tmp_path)
    assert result.exit_code == 0, result.output
    assert "No result is within the limits yet (dirt at most 2)." in result.stdout
    assert "No result is known to be within the limits yet: go on." in result.stdout


def test_a_limit_that_was_not_measured_is_unknown(tmp_path: Path) -> None:
    """Neither a row nor a past campaign is called good that has no result for the limit."""
    make_several(tmp_path, HEADER + "0.6,0.3,u,99,0.5,1,n/a\n")
    text = (tmp_path / "headstart.toml").read_text()
    (tmp_path / "headstart.toml").write_text(text.replace('[objectives.cost]\ndirection = "minimize"\n', ""))
    for name in ("old", "older"):
        rows = (tmp_path / f"{name}.csv").read_text().splitlines()
        (tmp_path / f"{name}.csv").write_text("\n".join(row.rpartition(",")[0] for row in rows))
    told = invoke("status", "--folder", tmp_path).stdout
    assert "No result is known to be within the limits yet (dirt at most 2): dirt was not measured in row 2." in told
    assert len(re.findall(r"\(limits not measured\)", told)) == 3  # both past campaigns, and this one
    assert "dirt not measured then" in invoke("suggest", "--folder", tmp_path).stdout
    (tmp_path / "current.csv").write_text(HEADER + "0.6,0.3,u,99,0.5,1,n/a\n0.1,0.3,u,40,0.5,1,0.1\n")
    told = invoke("status", "--folder", tmp_path).stdout
    assert "Best so far within the limits: 40 %, dirt 0.1 in row 3" in told
    assert "Better, but not known to be within them: dirt was not measured in row 2." in told
