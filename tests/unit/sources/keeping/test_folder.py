"""What was learnt, in a folder: numbers that nobody can run, claims that end with their process, and bad folders."""

from __future__ import annotations

import errno
import io
import json
import os
import pickle
import signal
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headstart.errors import InputError
from headstart.sources.keeping import claims as claims_module
from headstart.sources.keeping.claims import Claims
from headstart.sources.keeping.entries import FORMAT, DamagedEntryError, decoded, encoded
from headstart.sources.keeping.folder import FolderNotebook

NUMBERS = {"a": np.arange(3.0), "flags": np.array([True, False]), "n": np.asarray(7)}


def book(folder: Path, said: list[str] | None = None, **options: Any) -> FolderNotebook:
    return FolderNotebook(folder, ([] if said is None else said).append, **options)


def test_numbers_come_back_as_they_were(tmp_path: Path) -> None:
    """Values, shapes and types; another notebook on the same folder sees them."""
    book(tmp_path).note("k", NUMBERS)
    found = book(tmp_path).look_up("k")
    assert found is not None
    assert {name: (v.tolist(), v.dtype) for name, v in found.items()} == {
        name: (v.tolist(), v.dtype) for name, v in NUMBERS.items()
    }
    assert book(tmp_path).look_up("other") is None
    assert [path.name for path in tmp_path.iterdir()] == ["k.numbers"]


RAN: list[str] = []


def run_me() -> None:
    RAN.append("it ran")


class Running:
    """What a pickle may do when it is read."""

    def __reduce__(self) -> Any:
        return (run_me, ())


def _entry(payload: bytes, key: str = "k") -> bytes:
    about = {"key": key, "sha256": sha256(payload).hexdigest(), "headstart": "0"}
    return b"\n".join([FORMAT, json.dumps(about).encode(), payload])


def _npz(**arrays: Any) -> bytes:
    payload = io.BytesIO()
    np.savez(payload, **arrays)
    return payload.getvalue()


def test_no_entry_can_run_code() -> None:
    """An array of objects, a pickle, a kind nobody writes: whoever signed it, it is refused unread."""
    objects = _npz(a=np.array([Running()], dtype=object))
    pickle.loads(pickle.dumps(Running()))
    assert RAN.pop() == "it ran"
    assert b"run_me" in objects
    pickled, odd = pickle.dumps(Running()), _npz(a=np.array(["2026-11-16"], dtype="datetime64"))
    for content in (_entry(objects), _entry(pickled), pickled, _entry(odd)):
        with pytest.raises(DamagedEntryError):
            decoded("k", content)
    assert RAN == []


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is no entry"),
        (b"headstart prior 4\nabc\n", "is no entry"),
        (b"headstart numbers 2\n{}\nx", "another version"),
        (FORMAT + b"\nno json\nx", "is damaged"),
        (FORMAT + b"\n[]\nx", "is damaged"),
        (_entry(_npz(a=np.ones(2)), key="other"), "is damaged"),
        (_entry(b"no archive"), "is damaged"),
        (encoded("k", NUMBERS)[:-1], "is damaged"),
    ],
)
def test_what_is_no_entry_is_learnt_anew_and_said_once(content: bytes, why: str, tmp_path: Path) -> None:
    """With the file's name and the reason; what is learnt then replaces it."""
    said: list[str] = []
    (tmp_path / "k.numbers").write_bytes(content)
    one = book(tmp_path, said)
    assert one.look_up("k") is None
    assert one.look_up("k") is None
    assert len(said) == 1
    assert why in said[0]
    assert "k.numbers" in said[0]
    one.note("k", NUMBERS)
    assert one.look_up("k") is not None


def test_an_entry_cannot_fill_the_memory() -> None:
    """An archive of gigabytes of zeros is small on disk; it is not unpacked."""
    payload = io.BytesIO()
    np.savez_compressed(payload, a=np.zeros(1 << 24))
    with pytest.raises(DamagedEntryError, match="too large"):
        decoded("k", _entry(payload.getvalue()))


@pytest.mark.parametrize("reason", [errno.EROFS, errno.ENOSPC, errno.EACCES])
def test_a_folder_that_cannot_be_written_is_said_once(
    reason: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Full or read-only: everything is ours to learn, nothing is kept, and what is there is still read."""
    book(tmp_path).note("there", NUMBERS)
    said: list[str] = []
    one = book(tmp_path, said)
    open_ = os.open

    def refusing(path: Any, flags: int, *more: Any, **options: Any) -> int:
        if flags & os.O_CREAT and str(path).startswith(str(tmp_path)):
            raise OSError(reason, os.strerror(reason), str(path))
        return open_(path, flags, *more, **options)

    monkeypatch.setattr(os, "open", refusing)
    assert one.claim(["k", "l"]) == ["k", "l"]
    one.note("k", NUMBERS)
    one.give_up(["l"])
    assert one.look_up("k") is None
    assert one.look_up("there") is not None
    assert len(said) == 1
    assert os.strerror(reason) in said[0]


def test_a_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    """That is somebody's mistake, and is said before anything is learnt."""
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be made"):
        book(tmp_path / "file" / "cache")


# ── claims ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_only_one_has_a_claim(tmp_path: Path) -> None:
    """Until it is noted or given up; then it is free, and no file is left of it."""
    one, two = book(tmp_path), book(tmp_path)
    assert one.claim(["a", "b", "a"]) == ["a", "b"]
    assert two.claim(["a", "b", "c"]) == ["c"]
    one.note("a", NUMBERS)
    one.give_up(["b"])
    assert two.claim(["b"]) == ["b"]
    assert two.look_up("a") is not None
    two.give_up(["b", "c"])
    assert not list(tmp_path.glob("*.lock"))


def test_a_notebook_survives_pickling(tmp_path: Path) -> None:
    """In the other process it has no claims yet."""
    one = FolderNotebook(tmp_path, print)
    one.claim(["a"])
    copy = pickle.loads(pickle.dumps(one))
    assert copy.claim(["a"]) == []
    one.give_up(["a"])
    assert copy.claim(["a"]) == ["a"]


HOLDER = """
import sys, time
from pathlib import Path
from headstart.sources.keeping.claims import Claims
claims = Claims(Path(sys.argv[1]))
print(claims.take("a"), flush=True)
time.sleep(600)
"""


def _holder(folder: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(folder)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline().strip() == "True"
    return process


def test_the_claim_of_a_killed_process_is_free(tmp_path: Path) -> None:
    """At once: the operating system drops its lock, although the file is still there."""
    claims = Claims(tmp_path)
    process = _holder(tmp_path)
    try:
        assert not claims.take("a")
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert (tmp_path / "a.lock").exists()
    assert claims.take("a")
    claims.drop("a")


def test_without_locks_an_untouched_claim_is_free_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is touched is not, however old; time is that of whoever looks, not that of the file."""

    def unsupported(handle: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(claims_module, "lock_handle", unsupported)
    monkeypatch.setattr(claims_module, "_TOUCH", 0.05)
    now = [0.0]
    monkeypatch.setattr(claims_module, "time", type("Clock", (), {"monotonic": staticmethod(lambda: now[0])}))
    one, two = Claims(tmp_path), Claims(tmp_path)
    assert one.take("a")
    assert not two.take("a")
    now[0] += 2 * claims_module.STALE
    time.sleep(0.3)
    assert not two.take("a")  # it was touched meanwhile
    one.drop("a")
    assert two.take("a")
    two.drop("a")
    (tmp_path / "b.lock").write_text("1234\n")  # of a process that is no more
    os.utime(tmp_path / "b.lock", (2e9, 2e9))  # by a clock that is wrong
    assert not two.take("b")
    now[0] += claims_module.STALE / 2
    assert not two.take("b")
    now[0] += claims_module.STALE
    assert two.take("b")
    two.drop("b")


def test_waiting_is_bounded(tmp_path: Path) -> None:
    """After that many seconds without news it is said, once, and one learns by oneself."""
    said: list[str] = []
    one = book(tmp_path, said, patience=5.0)
    assert one.wait(4.9)
    assert not one.wait(5.1)
    assert not one.wait(6.0)
    assert len(said) == 1
    assert "learnt here as well" in said[0]
