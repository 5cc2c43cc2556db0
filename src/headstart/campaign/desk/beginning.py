"""The beginning of a campaign at a desk: past files are put into the folder, columns are corrected, files are written.

It is what ``headstart init`` does, in steps that can be looked at, and undone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from headstart.campaign.desk.history import Step, digest, make_step
from headstart.campaign.file import TOML
from headstart.campaign.init import Looked, first_files
from headstart.errors import ChangedMeanwhileError, InputError
from headstart.sources.column_guess import Guess
from headstart.sources.files.safe import alone_in
from headstart.sources.files.tables import is_lock_file
from headstart.sources.files.workbooks import workbook_file
from headstart.sources.parameters import Parameter

PAST = "past"
SUFFIXES = (".csv", ".tsv", ".txt", ".xlsx", ".xlsm", ".ods")
MOST_FILES = 100
_LONGEST = 100
_NAME = re.compile(r"[^\W_][\w .,()+\[\]°%#=&-]*", re.UNICODE)


def past_files(folder: Path) -> tuple[Path, ...]:
    """The tables in the folder's ``past``, by name; nothing that leads out of the folder."""
    inside = (folder / PAST).resolve()
    found = [p for p in sorted((folder / PAST).glob("*")) if p.suffix.lower() in SUFFIXES and not is_lock_file(p)]
    return tuple(p for p in found if p.is_file() and p.resolve().parent == inside and not p.name.startswith("."))


def add_past(folder: Path, files: Sequence[tuple[str, bytes]]) -> Step | None:
    """Put files (names and contents) into ``past``; one that is there with another content is refused."""
    with alone_in(folder):
        there = {path.name: path.read_bytes() for path in past_files(folder)}
        new: dict[str, tuple[bytes | None, bytes | None]] = {}
        for told, content in files:
            name = _safe_name(told)
            if name in there and there[name] != content:
                raise InputError(
                    f"{PAST}/{name} is there already, with other content. Take it out first, or rename one."
                )
            if name not in there:
                same = next((n for n, old in there.items() if old == content), None)
                if same is not None:
                    raise InputError(f"{name} is the same file as {same}, byte by byte. Leave one of them out.")
                if not content.strip():
                    raise InputError(f"{name} is empty. Its first row must name the columns.")
                there[name] = content
                new[f"{PAST}/{name}"] = (None, content)
        if len(there) > MOST_FILES:
            raise InputError(f"{len(there)} past files are too many: at most {MOST_FILES}. Leave the oldest ones out.")
        if not new:
            return None
        return make_step(folder, f"past files were added: {', '.join(Path(p).name for p in new)}", new)


def remove_past(folder: Path, name: str) -> Step:
    """Take a file out of ``past``; the history keeps it."""
    with alone_in(folder):
        path = next((p for p in past_files(folder) if p.name == name), None)
        if path is None:
            raise InputError(f"{PAST}/{name}: there is no such past file.")
        return make_step(folder, f"the past file {name} was taken out", {f"{PAST}/{name}": (path.read_bytes(), None)})


def _safe_name(name: str) -> str:
    """The name of a file that may be written into the folder, or an ``InputError``."""
    bare = name.replace("\\", "/").rsplit("/", 1)[-1].strip()
    if Path(bare).suffix.lower() not in SUFFIXES:
        raise InputError(
            f"{bare or 'A file'} is no table that can be read here: {', '.join(SUFFIXES)}. Save it as CSV or .xlsx."
        )
    if len(bare) > _LONGEST or not _NAME.fullmatch(bare) or ".." in bare:
        known = "- _ . , ( ) [ ] + = & # % °"
        raise InputError(f"{bare[:60]!r} is no name for a file here: letters, digits, spaces and {known} alone.")
    return bare


def with_parameters(looked: Looked, changes: Mapping[str, Parameter]) -> Looked:
    """What the campaign would be with the parameters as somebody corrected them. Nothing is written."""
    guesses = tuple(
        Guess(own, {**guess.reasons, "kind": "set by hand"})
        if (own := changes.get(guess.parameter.name, guess.parameter)) != guess.parameter
        else guess
        for guess in looked.proposal.guesses
    )
    parameters = tuple(guess.parameter for guess in guesses)
    return replace(
        looked,
        file=replace(looked.file, parameters=parameters),
        proposal=replace(looked.proposal, guesses=guesses),
    )


def begin(folder: Path, looked: Looked, *, seen: str | None) -> Step:
    """Write ``headstart.toml`` and, where it has no rows yet, the file of the experiments.

    ``seen`` is the digest of the ``headstart.toml`` that is written over, None where there was none.
    """
    toml, told = folder / TOML, folder / looked.file.current
    current = workbook_file(told)
    with alone_in(folder):
        text, header, _ = first_files(folder, looked)
        old, kept = (path.read_bytes() if path.exists() else None for path in (toml, current))
        if digest(old) != seen:
            raise ChangedMeanwhileError(f"{toml} was changed by somebody else meanwhile; nothing was written.")
        changes: dict[str, tuple[bytes | None, bytes | None]] = {TOML: (old, text)}
        if header is not None:
            changes[current.relative_to(folder).as_posix()] = (kept, header)
        return make_step(folder, f"{TOML} was written", changes)
