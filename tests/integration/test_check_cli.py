"""``headstart check`` of past files and in a folder, as the page on it says, and with all that can go wrong."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from tests.integration.command import assert_refused, invoke
from tests.integration.pages import ROOT, blocks, execute, text_of
from tests.unit.campaign.campaigns import fingerprint, make, value

from headstart.cli.output import say
from headstart.errors import Message, Setting

PAGE = text_of("docs/safety.md")
SOME = "x,s,y\n" + "".join(f"{x},{s},{value(x, s)}\n" for x, s in ((0.3, "u"), (0.5, "v"), (0.9, "u"), (0.7, "v")))


@pytest.mark.slow
def test_the_commands_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the table that it shows is printed, up to the numbers."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path / "examples")
    printed = ""
    for block in re.findall(r"```console\n(.*?)```", PAGE, flags=re.DOTALL):
        for line in block.splitlines():
            program, *arguments = shlex.split(line.removeprefix("$ "))
            if program == "headstart":
                given = [str(p) for a in arguments for p in (sorted(Path().glob(a)) if "*" in a else [a])]
                result = invoke(*given)
                assert result.exit_code == 0, result.output
                printed += result.stdout
    shown = [line.strip() for line in PAGE.splitlines() if re.match(r"    20\d\d-amide", line)]
    assert len(shown) == 3
    lines = [line.strip() for line in printed.splitlines()]
    for line in shown:
        pattern = re.sub(r"\\\+\d\\\.\d\d", r"[+]\\d\\.\\d\\d", re.escape(line))
        pattern = re.sub(r"±\\ \d\\\.\d\d", r"±\\ \\d\\.\\d\\d", pattern)
        assert any(re.fullmatch(pattern, found) for found in lines), line
    assert sorted(path.name for path in Path("plots").iterdir()) == ["agreement.png", "verdicts.png"]


def test_the_python_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """The reversed source is found out, and noise is ignored."""
    (block,) = blocks("docs/safety.md")
    execute(block, "docs/safety.md")
    first, *lines = capsys.readouterr().out.splitlines()
    assert first == "((), ('reverse',))"
    assert [line.split(".")[0] for line in lines[:3]] == ["alike: related", "reverse: upside down", "noise: ignored"]
    assert lines[3] == "is the direction right? reverse"
    assert re.fullmatch(r"believed after 10 observations: kin \d+%, star \d+%, pooled \d+%, plain \d+%", lines[4])
    assert re.fullmatch(r"rests on: (\w+ \d+%(, )?)+", lines[5])


def _spoil(folder: Path) -> None:
    """Beside a and b: one that is turned round, one of a single row, and one that never changes."""
    rows = [(x / 12, "uv"[x % 2]) for x in range(12)]
    (folder / "turned.csv").write_text("x,s,y\n" + "".join(f"{x},{s},{-value(x, s)}\n" for x, s in rows))
    (folder / "single.csv").write_text("x,s,y\n0.4,u,3\n")
    (folder / "flat.csv").write_text("x,s,y\n" + "".join(f"{x},{s},7\n" for x, s in rows))


def test_past_files_are_judged(tmp_path: Path) -> None:
    """A row per file with what it is and whom it agrees with; nothing but the picture is written."""
    _spoil(make(tmp_path))
    before = fingerprint(tmp_path)
    files = [tmp_path / f"{name}.csv" for name in ("a", "b", "turned", "single", "flat")]
    result = invoke("check", *files, "--objective", "y", "--folder", tmp_path, "--out", tmp_path / "pictures")
    assert result.exit_code == 0, result.output
    rows = {line.split()[0]: line for line in result.stdout.splitlines() if line.strip()}
    assert re.search(r"^a +12 +\+\d\.\d\d ± \d\.\d\d +b +turned +not tested yet", result.stdout, flags=re.MULTILINE)
    assert re.search(r"^turned +12 .* – +a, b +not tested yet", result.stdout, flags=re.MULTILINE)
    assert re.search(r"^single +1 +too few rows +– +– +ignored", result.stdout, flags=re.MULTILINE)
    assert re.search(r"^flat +12 +constant +– +– +ignored", result.stdout, flags=re.MULTILINE)
    assert "It shows the reverse of a, b: look whether its result counts the other way round" in result.stdout
    assert "single is ignored. It has 1 row: too few" in result.stdout
    assert "Not a parameter: run (it only counts the rows)." in result.stdout
    assert rows["Picture:"].endswith("agreement.png")
    after = fingerprint(tmp_path)
    assert {name: after[name] for name in before} == before
    assert set(after) - set(before) == {"pictures", "pictures/agreement.png"}


def test_one_file_can_be_looked_at(tmp_path: Path) -> None:
    """There is nobody to agree with, so the table does not speak of it."""
    result = invoke("check", make(tmp_path) / "a.csv", "--objective", "y", "--folder", tmp_path)
    assert result.exit_code == 0, result.output
    assert re.search(r"^a +12 +\+\d\.\d\d ± \d\.\d\d +not tested yet", result.stdout, flags=re.MULTILINE)
    assert "agrees with" not in result.stdout
    assert (tmp_path / "plots" / "agreement.png").is_file()


@pytest.mark.parametrize("current", ["x,s,y\n", SOME], ids=["no results yet", "four results"])
def test_a_folder_is_judged(tmp_path: Path, current: str) -> None:
    """A verdict per past file and, once there are results, what it was worth; then the candidates; the files stay."""
    before = fingerprint(make(tmp_path, current=current))
    result = invoke("check", "--folder", tmp_path)
    assert result.exit_code == 0, result.output
    number = r"[+-]\d+\.\d\d"
    gain = r"\d+ % +\d+ % +\d+ % +[+-]\S+, [+-]\d+ rows" if current == SOME else " +".join("––––")
    verdicts = "(related|unrelated|upside down|not known yet|not tested yet)"
    for name in ("a", "b"):
        row = rf"^{name} +12 +\+\d\.\d\d ± \d\.\d\d +{gain} +{number} ± \d\.\d\d +{verdicts}"
        assert re.search(row, result.stdout, flags=re.MULTILINE), result.stdout
        assert re.search(rf"^{name} is {verdicts}\. [A-Z]", result.stdout, flags=re.MULTILINE)
    shares = dict(re.findall(r"^(kin|star|pooled|plain) .* (\d+) %", result.stdout, flags=re.MULTILINE))
    assert list(shares) == ["kin", "star", "pooled", "plain"]
    assert 98 <= sum(int(share) for share in shares.values()) <= 102
    after = fingerprint(tmp_path)
    assert {name: after[name] for name in before} == before
    assert set(after) - set(before) == {"plots", "plots/agreement.png", "plots/verdicts.png"}


def _in_lots(folder: Path, *, past: bool) -> Path:
    """A campaign in lots, of which one lies 20 above the others, with a past in lots that do not differ, or none."""
    rows = [(i / 20, "uv"[i % 2], i // 4) for i in range(20)]
    lines = [f"{x},{s},{value(x, s) + (20 if lot == 3 else 0):.3f},L{lot}\n" for x, s, lot in rows]
    make(folder, current="".join(["x,s,y,lot\n", *lines]))
    (folder / "a.csv").write_text("".join(["x,s,y,lot\n", *(f"{x},{s},{value(x, s)},P{lot}\n" for x, s, lot in rows)]))
    toml = folder / "headstart.toml"
    text = toml.read_text().replace("past =", 'batch = "lot"\npast =')
    toml.write_text(text if past else text.replace('["a.csv", "b.csv"]', "[]"))
    return folder


@pytest.mark.parametrize("past", [True, False])
def test_check_and_status_say_how_large_shifts_are_and_which_batch_is_odd(tmp_path: Path, past: bool) -> None:
    """A line for the campaign, one for its past, and with --all a row for every batch; also where there is no past."""
    result = invoke("check", "--folder", _in_lots(tmp_path, past=past), "--all")
    assert result.exit_code == 0, result.output
    said = r"Results differ by ± \S+ from one lot to another .*"
    odd = r"Lot L3 is odd: its results lie (1[7-9]|2\d) \(± \S+\) above those of the others\."
    assert re.search(rf"^this campaign: {said} {odd}$", result.stdout, flags=re.MULTILINE)
    assert re.search(r"^this campaign +L3 +\+1[5-7] ± \S+ +below 1 %: odd$", result.stdout, flags=re.MULTILINE)
    assert ("a: shifts from one lot to another are not clearly larger than the noise" in result.stdout) is past
    assert bool(re.search(r"^a +P0 ", result.stdout, flags=re.MULTILINE)) is past
    assert "Shifts between batches" not in invoke("check", "--folder", tmp_path).stdout
    status = invoke("status", "--folder", tmp_path).stdout
    assert re.search(rf"^{said}$", status, flags=re.MULTILINE)
    assert re.search(rf"^{odd}$", status, flags=re.MULTILINE)


def test_what_is_ignored_is_said_below_the_suggestions(tmp_path: Path) -> None:
    """With its reason; what is simply used is not mentioned."""
    _spoil(make(tmp_path))
    toml = tmp_path / "headstart.toml"
    toml.write_text(toml.read_text().replace('"b.csv"', '"flat.csv"'))
    result = invoke("suggest", "--folder", tmp_path)
    assert result.exit_code == 0, result.output
    assert "flat is ignored. All its results are the same" in result.stdout
    assert "a is not" not in result.stdout
    assert re.search(r"^ *2 .* a \d+ %", result.stdout, flags=re.MULTILINE)


def test_with_nothing_to_learn_from_suggestions_rest_on_nothing(tmp_path: Path) -> None:
    """And it is said so."""
    _spoil(make(tmp_path))
    toml = tmp_path / "headstart.toml"
    toml.write_text(toml.read_text().replace('["a.csv", "b.csv"]', '["flat.csv", "single.csv"]'))
    result = invoke("suggest", "--folder", tmp_path)
    assert result.exit_code == 0, result.output
    assert re.search(r"^ *2 .* nothing yet", result.stdout, flags=re.MULTILINE)


def test_another_model_is_judged_by_auto(tmp_path: Path) -> None:
    """Which is said."""
    toml = make(tmp_path) / "headstart.toml"
    toml.write_text(toml.read_text().replace("past =", 'model = "shgp"\npast ='))
    result = invoke("check", "--folder", tmp_path)
    assert result.exit_code == 0, result.output
    assert "The campaign's model is 'shgp'. This is what 'auto'" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["a.csv"], ["Say which column", "--objective"]),
        (["--objective", "y"], ["--objective", "go with past files"]),
        (["--rename", "x=z"], ["go with past files"]),
        (["a.csv", "--objective", "yeild"], ["a.csv: there is no column 'yeild'", "--rename"]),
        (["a.csv", "--objective", "y", "--rename", "q=z"], ["rename names 'q'"]),
        (["a.csv", "--objective", "y", "--ignore", "q"], ["ignore names 'q'"]),
        (["a.csv", "a.csv", "--objective", "y"], ["a.csv is named twice"]),
        (["no.csv", "--objective", "y"], ["no.csv: there is no such file"]),
        (["single.csv", "--objective", "y"], ["single.csv: no column besides 'y' varies"]),
        (["a.csv", "--objective", "y", "--seed", "-1"], ["seed must not be negative"]),
        (["a.csv", "--objective", "y", "--out", "a.csv"], ["a.csv: the folder cannot be made"]),
        (["--folder", "nowhere"], ["nowhere: there is no such folder"]),
        (
            ["--folder", "empty"],
            ["headstart.toml: there is no such file", "headstart check PAST.csv", "headstart init"],
        ),
        (["--folder", "alone"], ["no past files"]),
    ],
    ids=lambda value: value[0][:40] if " " in value[0] else None,
)
def test_what_cannot_be_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], parts: list[str]
) -> None:
    """One line that says what came and what would be right; nothing is written."""
    monkeypatch.chdir(tmp_path)
    _spoil(make(tmp_path))
    Path("headstart.toml").unlink()
    Path("empty").mkdir()
    Path("alone").mkdir()
    toml = make(Path("alone")) / "headstart.toml"
    toml.write_text(toml.read_text().replace('["a.csv", "b.csv"]', "[]"))
    before = fingerprint(tmp_path)
    assert_refused(invoke("check", *arguments), *parts)
    assert fingerprint(tmp_path) == before


def test_remarks_that_somebody_can_answer_come_first(capsys: pytest.CaptureFixture[str]) -> None:
    """All of them; of the others a few, unless all are asked for."""
    asked = Message("'a' and 'b' never occur together.", Setting("rename", "b=a"))
    lines = [*(f"remark {i}" for i in range(9)), asked]
    say(lines)
    told = capsys.readouterr().err.splitlines()
    assert told[0] == "'a' and 'b' never occur together. (--rename 'b=a')"
    assert told[1:5] == ["remark 0", "remark 1", "remark 2", "remark 3"]
    assert told[5] == "… and 5 more remarks: 'headstart check --all' lists them."
    say(["one remark"])
    assert capsys.readouterr().err == "one remark\n"
    say(lines, every=True)
    assert len(capsys.readouterr().err.splitlines()) == 10
