"""What the command line says of itself can be read: on one screen, whole sentences, in the order of use."""

from __future__ import annotations

import re

import pytest
from tests.integration.command import invoke
from typer.main import get_command

from headstart.cli.main import app

COMMANDS = dict(get_command(app).commands)  # type: ignore[attr-defined]


@pytest.fixture(autouse=True)
def _eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def test_the_help_fits_a_screen_and_shows_every_command_with_a_whole_sentence() -> None:
    """At most 24 lines of 80 letters; the commands come in the order in which a campaign needs them."""
    lines = invoke("--help").stdout.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    told = dict(re.findall(r"^  (\w+) +([A-Z].*)$", "\n".join(lines), re.MULTILINE))
    assert list(told) == list(COMMANDS)
    assert all(sentence.endswith(".") and "..." not in sentence for sentence in told.values())
    assert [name for name in told if name in ("check", "init", "suggest", "status")] == [
        *("check", "init", "suggest", "status")
    ]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_says_what_every_option_is(name: str) -> None:
    """Lines are short, and every argument and option has a name in capitals for its value and a sentence."""
    shown = invoke(name, "--help").stdout
    assert max(map(len, shown.splitlines())) <= 80
    assert not re.search(r"<\w+", shown)  # a type of Python is no name for what people write
    for parameter in COMMANDS[name].params:
        assert (parameter.help or "").endswith("."), parameter.name
        assert (parameter.metavar if parameter.param_type_name == "argument" else parameter.opts[-1]) in shown
