"""Atomic writes, and one process at a time in a folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from headstart import InputError
from headstart.sources.files.safe import LOCK, alone_in, write_whole

HOLD = """
import sys, time
from pathlib import Path
from headstart.sources.files.safe import alone_in
with alone_in(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    """The new content is there, the mode is the old one, and nothing else is left in the folder."""
    path = tmp_path / "a.csv"
    path.write_bytes(b"old")
    path.chmod(0o640)
    write_whole(path, b"new", instead_of=b"old")
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o640
    assert [p.name for p in tmp_path.iterdir()] == ["a.csv"]


def test_a_reader_sees_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    """Whoever has opened it goes on reading what it held, and no byte of it changes under his hands."""
    path = tmp_path / "a.csv"
    path.write_bytes(b"old content")
    with path.open("rb", buffering=0) as reader:
        assert reader.read(3) == b"old"
        write_whole(path, b"new")
        assert reader.read() == b" content"
    assert path.read_bytes() == b"new"


def test_a_file_that_somebody_changed_is_left_alone(tmp_path: Path) -> None:
    """A spreadsheet program that saved in the meantime wins."""
    path = tmp_path / "a.csv"
    path.write_bytes(b"theirs")
    with pytest.raises(InputError, match="was changed by another program"):
        write_whole(path, b"new", instead_of=b"old")
    assert path.read_bytes() == b"theirs"
    assert [p.name for p in tmp_path.iterdir()] == ["a.csv"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    """Its target is what is written."""
    (tmp_path / "real.csv").write_bytes(b"old")
    (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
    write_whole(tmp_path / "link.csv", b"new")
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_bytes() == b"new"


def test_a_folder_that_is_not_there_cannot_be_written_to(tmp_path: Path) -> None:
    """Neither by a write nor by a lock."""
    with pytest.raises(InputError, match="cannot be written"):
        write_whole(tmp_path / "no" / "a.csv", b"")
    with pytest.raises(InputError, match="cannot be written to"), alone_in(tmp_path / "no"):
        pass


def test_a_living_process_keeps_others_out_and_a_dead_one_does_not(tmp_path: Path) -> None:
    """The message names the process; after a SIGKILL the lock file is still there and locks nobody out."""
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    with holder, holder.stdout:
        assert holder.stdout.readline() == "held\n"
        message = rf"another headstart is working in this folder \(process {holder.pid}\)\. Wait"
        with pytest.raises(InputError, match=message), alone_in(tmp_path):
            pass
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    assert (tmp_path / LOCK).exists()
    with alone_in(tmp_path):
        assert (tmp_path / LOCK).exists()
    assert list(tmp_path.iterdir()) == []


def test_the_lock_is_dropped_when_the_work_fails(tmp_path: Path) -> None:
    """And its file is gone."""
    with pytest.raises(ZeroDivisionError), alone_in(tmp_path):
        _ = 1 / 0
    assert list(tmp_path.iterdir()) == []
    with alone_in(tmp_path):
        pass


def test_what_a_killed_writer_left_behind_is_removed_by_the_next(tmp_path: Path) -> None:
    """If it is old: somebody else may be writing at the moment."""
    old, new = tmp_path / ".a.csv.0123abcd.tmp", tmp_path / ".a.csv.4567abcd.tmp"
    for left in (old, new):
        left.write_bytes(b"half")
    os.utime(old, (0, 0))
    write_whole(tmp_path / "a.csv", b"whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == [new.name, "a.csv"]
