"""Files that are whole or not there: atomic writes, and one process at a time in a folder."""

from __future__ import annotations

import glob
import os
import secrets
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from headstart.errors import InputError, UnwritableError

LOCK = ".headstart.lock"
_LEFT_BEHIND = 60  # seconds


def make_folder(folder: Path) -> Path:
    """The folder, made where it is not there; an ``InputError`` where it cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnwritableError(f"{folder}: the folder cannot be made: {error.strerror}.") from error
    return folder


def write_whole(path: Path, content: bytes, *, instead_of: bytes | None = None) -> None:
    """Put the content at the path, all of it or nothing: readers see the old file or the new one.

    ``instead_of`` is what the file held when it was read; if somebody changed it since, nothing is written.
    """
    path = path.resolve()  # a link stays a link
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    _without_leftovers(path)
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            temporary.chmod(path.stat().st_mode & 0o7777)
        if instead_of is not None and path.read_bytes() != instead_of:
            raise UnwritableError(
                f"{path} was changed by another program meanwhile; nothing was written. Run it again."
            )
        temporary.replace(path)
    except OSError as error:
        raise UnwritableError(
            f"{path} cannot be written: {error.strerror}. Look at the folder, and close the file in other programs."
        ) from error
    finally:
        with suppress(OSError):
            temporary.unlink()
    with suppress(OSError):  # a rename is on the disk when its folder is; not every system can do that
        handle = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _without_leftovers(path: Path) -> None:
    """Remove what writers of this file left behind that were killed: nobody writes for as long as that."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > _LEFT_BEHIND:
                left.unlink()


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """No other headstart works in the folder meanwhile; an ``InputError`` names the process that does.

    The operating system holds the lock and drops it with the process, however that ends: a lock file left behind
    by a dead process locks nobody out. The file only carries the number of the process.
    """
    path = folder / LOCK
    handle = _locked(path)
    try:
        os.ftruncate(handle, 0)
        os.write(handle, f"{os.getpid()}\n".encode())
        yield
    finally:
        with suppress(OSError):
            path.unlink()
        os.close(handle)


def _locked(path: Path) -> int:
    """A handle of the locked file at that path."""
    while True:
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise UnwritableError(f"{path.parent} cannot be written to: {error.strerror}.") from error
        try:
            lock_handle(handle)
            # whoever held it before may have removed it between our opening and our locking: then it locks nothing
            if path.exists() and path.stat().st_ino == os.fstat(handle).st_ino:
                return handle
            os.close(handle)
        except OSError as error:
            owner = os.pread(handle, 20, 0).decode(errors="replace").strip() if hasattr(os, "pread") else ""
            os.close(handle)
            raise InputError(
                f"{path.parent}: another headstart is working in this folder"
                f"{f' (process {owner})' if owner.isdigit() else ''}. Wait until it is done, then run this again."
            ) from error


def lock_handle(handle: int) -> None:
    """Lock an open file for this process, without waiting; an ``OSError`` where another one has it."""
    if sys.platform == "win32":  # pragma: no cover
        import msvcrt

        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
