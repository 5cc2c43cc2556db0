"""The history of a folder, in plain files, and the way back.

    .headstart/history/0007/step.json         when, what, and which files it changed
    .headstart/history/0007/0-current.csv     what the first of them held before

A step is noted before it is done, and done whole or not at all. Undoing puts back what the files held; a file that
somebody changed since is left alone, and so is everything else.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path

from headstart.campaign.campaign import require_no_program
from headstart.errors import ChangedMeanwhileError, InputError, UnwritableError
from headstart.sources.files.safe import alone_in, make_folder, write_whole

HISTORY = Path(".headstart", "history")
_STEP = "step.json"


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file that a step changed: ``before`` is the copy in the step's folder, ``after`` a digest; None: not there."""

    path: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class Step:
    """One change of the folder. ``undone`` is when it was taken back, "" if it was not."""

    number: int
    when: str
    what: str
    files: tuple[ChangedFile, ...]
    undone: str = ""


def digest(content: bytes | None) -> str | None:
    """What tells one content from another; None for a file that is not there."""
    return None if content is None else hashlib.sha256(content).hexdigest()


def steps_of(folder: Path) -> tuple[Step, ...]:
    """All steps, the oldest first. A step whose note cannot be read is left out."""
    found = []
    for note in sorted((folder / HISTORY).glob(f"[0-9]*/{_STEP}")):
        with suppress(OSError, ValueError, KeyError, TypeError):
            data = json.loads(note.read_text(encoding="utf-8"))
            files = tuple(ChangedFile(**file) for file in data["files"])
            found.append(Step(int(note.parent.name), data["when"], data["what"], files, data["undone"]))
    return tuple(found)


def last_step(folder: Path) -> Step | None:
    """The last step that was not taken back."""
    return next((step for step in reversed(steps_of(folder)) if not step.undone), None)


def make_step(folder: Path, what: str, changes: Mapping[str, tuple[bytes | None, bytes | None]]) -> Step:
    """Change files of the folder, from what they hold to what they shall hold (None: not there), and note it.

    Whoever calls it holds the folder's lock. Where one file cannot be written, the others are put back.
    """
    number = max((step.number for step in steps_of(folder)), default=0) + 1
    own = make_folder(folder / HISTORY / f"{number:04d}")
    files = []
    for i, (path, (before, after)) in enumerate(changes.items()):
        copy = f"{i}-{Path(path).name}"
        if before is not None:
            write_whole(own / copy, before)
        files.append(ChangedFile(path, None if before is None else copy, digest(after)))
    step = Step(number, _now(), what, tuple(files))
    _note(folder, step)
    done: list[str] = []
    try:
        for path, (before, after) in changes.items():
            _put(folder / path, before, after)
            done.append(path)
    except BaseException:
        for path in reversed(done):
            with suppress(UnwritableError):
                _put(folder / path, changes[path][1], changes[path][0])
        shutil.rmtree(own, ignore_errors=True)
        raise
    return step


def undo_step(folder: Path, number: int) -> Step:
    """Take back the last step, which must be this one; an ``InputError`` where that would undo anything else."""
    with alone_in(folder):
        step = last_step(folder)
        if step is None:
            raise InputError(f"{folder}: there is no step to undo.")
        if step.number != number:
            raise ChangedMeanwhileError(
                f"{folder}: step {number} is not the last one any more, which is: {step.what}. Look at it first."
            )
        now = {file.path: _content(folder / file.path) for file in step.files}
        before = {file.path: _before(folder, step, file) for file in step.files}
        if any(digest(now[path]) != digest(old) for path, old in before.items()):  # else it never came to be
            for file in step.files:
                if digest(now[file.path]) != file.after:
                    raise ChangedMeanwhileError(
                        f"{folder / file.path} was changed since by another program, which undoing would undo too. "
                        f"What it held before is in {folder / HISTORY / f'{number:04d}'}."
                    )
                require_no_program(folder / file.path)
            for path, old in before.items():
                _put(folder / path, now[path], old)
        undone = replace(step, undone=_now())
        _note(folder, undone)
    return undone


def _before(folder: Path, step: Step, file: ChangedFile) -> bytes | None:
    if file.before is None:
        return None
    path = folder / HISTORY / f"{step.number:04d}" / Path(file.before).name
    content = _content(path)
    if content is None:
        raise InputError(f"{path}: there is no such file, so step {step.number} cannot be undone.")
    return content


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def _put(path: Path, before: bytes | None, after: bytes | None) -> None:
    if after is None:
        if _content(path) != before:
            raise UnwritableError(f"{path} was changed by another program meanwhile; nothing was written.")
        path.unlink(missing_ok=True)
        return
    if before is None and path.exists():
        raise UnwritableError(f"{path} is there already; nothing was written.")
    make_folder(path.parent)
    write_whole(path, after, instead_of=before)


def _note(folder: Path, step: Step) -> None:
    text = json.dumps(asdict(step), ensure_ascii=False, indent=1)
    write_whole(folder / HISTORY / f"{step.number:04d}" / _STEP, text.encode())


def _now() -> str:
    return datetime.now().astimezone().isoformat(timespec="seconds")
