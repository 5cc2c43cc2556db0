"""``headstart demo`` from the command line to the picture."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import optuna
import pytest
from tests.integration.command import INTERRUPTIBLE
from typer.testing import CliRunner

import headstart
from headstart.cli.main import app

TINY = ["demo", "--data", "wine", "--runs", "1", "--trials", "3"]


def test_the_demo_prints_a_comparison_and_saves_a_picture(tmp_path: Path) -> None:
    """A tiny run says what is tuned and what is known, and gives the table, the verdict and the picture's path."""
    out = tmp_path / "tiny.png"
    result = CliRunner().invoke(app, [*TINY, "--model", "shgp", "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert "on scikit-learn's wine (which of 3 growers): 3 trials, one run of either kind" in result.stderr
    assert "60 past trials on each of cancer, digits, iris." in result.stderr
    assert result.stderr.count("trial 3 of 3") == 2
    assert "head start (SHGP)" in result.stderr
    assert "new study" not in result.stderr
    for line in ("after 1 trial ", "after 3 trials", "trials to what scratch reached", "one run; lower is better"):
        assert line in result.stdout
    assert "Best of all: " in result.stdout
    assert f"Picture: {out}\n" in result.stdout
    assert out.read_bytes().startswith(b"\x89PNG")


def test_warnings_come_after_the_live_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each once, with how often it came; none breaks into the lines, and only what a sampler explains is left out."""
    ask = optuna.Study.ask

    def warn(study: optuna.Study, *arguments: Any, **options: Any) -> optuna.Trial:
        logging.getLogger("headstart.sampler.adviser").warning("a result lies %s", "far away")
        logging.getLogger("headstart.sampler.adviser").warning("a result counts less (see sampler.explain())")
        optuna.logging.get_logger("optuna.study").warning("a storage is slow")
        return ask(study, *arguments, **options)

    monkeypatch.setattr(optuna.Study, "ask", warn)
    result = CliRunner().invoke(app, [*TINY, "--model", "shgp", "--out", str(tmp_path / "tiny.png")])
    assert result.exit_code == 0, result.output
    *_, live, far, slow = result.stderr.strip().splitlines()
    assert "trial 3 of 3" in live
    assert far == "a result lies far away (6 times)"
    assert slow == "a storage is slow (6 times)"
    assert result.stderr.count("far away") == 1
    assert "counts less" not in result.stderr
    assert logging.getLogger("headstart").handlers == []


@pytest.mark.slow
def test_an_interrupted_demo_shows_what_it_has(tmp_path: Path) -> None:
    """Ctrl-C ends it with exit code 130, a line and, if every run has a trial, the table; there is no traceback."""
    out = tmp_path / "part.png"
    command = [sys.executable, "-c", INTERRUPTIBLE]
    process = subprocess.Popen(
        [*command, *TINY[:-1], "1000", "--model", "shgp", "--out", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        process.stderr.readline()  # the introduction: the demo begins
        time.sleep(2)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "Traceback" not in stderr
    assert "Interrupted. " in stderr
    assert out.exists() == ("of 1000 trials of every run are above" in stderr) == ("Picture: " in stdout)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (["--data", "titanic"], "There is no data set 'titanic'. The demo has: cancer, digits, iris, wine."),
        (["--model", "XGP"], "There is no model 'XGP'. Did you mean 'hgp'?"),
        (["--model", "gpbo"], "The model 'gpbo' uses no past data"),
        (["--trials", "0"], "trials must be at least 1, but it is 0."),
        (["--runs", "-2"], "runs must be at least 1, but it is -2."),
        (["--seed", "-1"], "seed must not be negative, but it is -1."),
        (["--out", "no/such/folder/a.png"], "there is no folder no/such/folder. Create it first."),
        (["--out", "picture.xyz"], "picture.xyz must end in the name of a picture format: "),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_bad_input_gives_one_line_and_exit_code_2(wrong: list[str], message: str) -> None:
    """The line says what came and what was expected; there is no traceback and nothing was run."""
    result = CliRunner().invoke(app, [*TINY, *wrong])
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.startswith("headstart: ")
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


def test_a_folder_in_the_place_of_the_picture_is_refused(tmp_path: Path) -> None:
    """Before the run, and the folder is left alone."""
    out = tmp_path / "a.png"
    out.mkdir()
    result = CliRunner().invoke(app, [*TINY, "--out", str(out)])
    assert result.exit_code == 2
    assert result.stderr == f"headstart: {out} cannot be written: Is a directory.\n"
    assert out.is_dir()


def test_a_word_in_the_place_of_a_number_is_refused() -> None:
    """The option is named."""
    result = CliRunner().invoke(app, ["demo", "--trials", "many"])
    assert result.exit_code == 2
    assert "Invalid value for '--trials'" in result.stderr


def test_a_command_in_another_spelling_is_refused() -> None:
    """The one that is meant is asked for, in one line."""
    result = CliRunner().invoke(app, ["sugest"])
    assert result.exit_code == 2
    assert result.stderr == ("headstart: No such command 'sugest'. Did you mean 'suggest'? See 'headstart --help'.\n")


def test_the_version_is_printed() -> None:
    """``headstart --version``."""
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.stdout) == (0, f"headstart {headstart.__version__}\n")


def test_without_a_command_the_commands_are_shown() -> None:
    """And the exit code says that nothing was done."""
    result = CliRunner().invoke(app, [])
    assert result.exit_code == 2
    assert result.stdout.lstrip().startswith("Usage: ")
    assert " suggest " in result.stdout
    assert result.stderr == ""
