"""The command in this process, and what it says where it refuses."""

from __future__ import annotations

from typer.testing import CliRunner, Result

from headstart.cli.main import app

# ``headstart`` in a process of its own that Ctrl-C stops, also where the tests run in the background and ignore it
INTERRUPTIBLE = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from headstart.cli.main import app; app()"
)


def invoke(*arguments: object) -> Result:
    """``headstart`` with these arguments."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def assert_refused(result: Result, *parts: str) -> None:
    """One line on the standard error that has all the parts, nothing else, and exit code 2."""
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("headstart: ")
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""
    for part in parts:
        assert part in result.stderr
