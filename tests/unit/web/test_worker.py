"""The worker: a process of its own that reports, fails in words, dies and is started again; and the command."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from headstart.cli.main import app
from headstart.errors import InputError
from headstart.web.worker import DeskWork, Report, Worker, WorkerMemory


@dataclass(frozen=True)
class Task:
    """A job for tests."""

    what: str

    def __call__(self, report: Report, memory: WorkerMemory) -> object:
        report(0.5, "half of it")
        memory["n"] = memory.get("n", 0) + 1
        if self.what == "wrong":
            raise InputError("it cannot be")
        if self.what == "gone":
            raise FileNotFoundError(2, "No such file", "there.csv")
        if self.what == "bug":
            raise KeyError("x")
        if self.what == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        return os.getpid(), memory["n"]


def _done(worker: Worker, what: str) -> DeskWork:
    work = DeskWork(what, what, what, Task(what))
    worker.submit(work, lambda _: None)
    end = time.monotonic() + 60
    while not work.done:
        assert time.monotonic() < end
        time.sleep(0.02)
    return work


def test_a_process_of_its_own_works_fails_dies_and_goes_on() -> None:
    """What it remembers is lost with it; what it says is in words."""
    worker = Worker()
    try:
        first, second = _done(worker, "fine"), _done(worker, "fine")
        assert (first.error, second.error) == ("", "")
        assert first.result[0] == second.result[0] != os.getpid()
        assert (second.result[1], second.share, second.doing) == (2, 0.5, "half of it")
        assert _done(worker, "wrong").error == "it cannot be"
        assert "there.csv" in _done(worker, "gone").error
        assert "inside headstart" in _done(worker, "bug").error
        died = _done(worker, "die")
        assert "has ended" in died.error
        again = _done(worker, "fine")
        assert again.result[0] != first.result[0]
        assert again.result[1] == 1
    finally:
        worker.stop()
    time.sleep(0.1)
    with pytest.raises(ProcessLookupError):
        os.kill(again.result[0], 0)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nowhere"], "there is no such folder"),
        ([".", "--port", "99999"], "--port must be between"),
        ([".", "--token", "short"], "--token must have"),
        ([".", "--host", "203.0.113.7"], "cannot be listened on"),
    ],
)
def test_the_command_refuses_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], told: str
) -> None:
    """With exit code 2 and no traceback."""
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["serve", *arguments])
    assert done.exit_code == 2
    assert told in done.output


def test_beyond_this_machine_the_command_prints_a_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A random one; on this machine there is none."""
    import uvicorn

    seen = []
    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: seen.append(self.config.app))
    everywhere = CliRunner().invoke(app, ["serve", str(tmp_path), "--host", "0.0.0.0", "--port", "0"])
    assert "?token=" in everywhere.output
    here = CliRunner().invoke(app, ["serve", str(tmp_path), "--port", "0"])
    assert "token" not in here.output
    guards = [next(m for m in each.user_middleware if m.cls.__name__ == "Guard") for each in seen]
    assert [bool(guard.kwargs["token"]) for guard in guards] == [True, False]
