"""Who is learning what: a lock file for every entry that is being learnt.

The operating system holds a lock and drops it with the process, however that ends. On file systems that know no locks
the file itself is the lock: whoever made it touches it every few seconds, and one that nobody has touched for a while,
by the watch of whoever looks, belongs to nobody.
"""

from __future__ import annotations

import errno
import os
import threading
import time
from contextlib import suppress
from pathlib import Path

from headstart.sources.files.safe import lock_handle

STALE = 30.0  # seconds without a touch
_TOUCH = 5.0
_TAKEN = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES, errno.EDEADLK)


class Claims:
    """The lock files of this process in a folder. Threads may share it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[str, int] = {}  # the handle of a lock; −1 where the file itself is the lock
        self._watched: dict[str, tuple[int, float]] = {}  # when others' files were last touched, and when we saw it
        self._lock = threading.Lock()
        self._stop: threading.Event | None = None

    def take(self, key: str) -> bool:
        """Whether the claim is ours now; an ``OSError`` where no lock file can be made."""
        with self._lock:
            if key in self._held:
                return True
            path = self._path(key)
            for _ in range(8):  # whoever had it may remove the file between our opening and our locking
                handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
                try:
                    lock_handle(handle)
                except OSError as error:
                    os.close(handle)
                    if error.errno in _TAKEN:
                        return False
                    return self._take_by_touch(key, path)
                if _is_at(path, handle):
                    self._held[key] = handle
                    return True
                os.close(handle)
            return False

    def drop(self, key: str) -> None:
        """Let others have it."""
        with self._lock:
            handle = self._held.pop(key, None)
            if handle is None:
                return
            with suppress(OSError):
                self._path(key).unlink()
            if handle >= 0:
                os.close(handle)
            if self._stop is not None and -1 not in self._held.values():
                self._stop.set()
                self._stop = None

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}.lock"

    def _take_by_touch(self, key: str, path: Path) -> bool:
        """Without locks: an empty file is free, one with a number in it is somebody's as long as it is touched."""
        found = path.stat()
        if found.st_size:
            touched, seen = self._watched.get(key, (-1, 0.0))
            if touched != found.st_mtime_ns:
                self._watched[key] = (found.st_mtime_ns, time.monotonic())
                return False
            if time.monotonic() - seen < STALE:
                return False
        # two that come at the same moment both learn it, which costs time and nothing else
        path.write_text(f"{os.getpid()}\n")
        self._held[key] = -1
        if self._stop is None:
            self._stop = threading.Event()
            threading.Thread(target=self._touch, args=(self._stop,), daemon=True, name="headstart claims").start()
        return True

    def _touch(self, stop: threading.Event) -> None:
        while not stop.wait(_TOUCH):
            for key in [key for key, handle in list(self._held.items()) if handle < 0]:
                with suppress(OSError):
                    os.utime(self._path(key))


def _is_at(path: Path, handle: int) -> bool:
    try:
        return path.stat().st_ino == os.fstat(handle).st_ino
    except FileNotFoundError:
        return False
