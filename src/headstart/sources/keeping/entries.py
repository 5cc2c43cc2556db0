"""An entry of the folder: arrays of numbers in a file that is read and never run.

    line 1    headstart numbers 1                         the format
    line 2    {"key": …, "sha256": …, "headstart": …}     what it is, and the SHA-256 of the rest
    the rest  NumPy's .npz                                read with ``allow_pickle=False``

Whoever can write to the folder can have wrong numbers learnt from; that is all they can do.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from typing import Any

import numpy as np

import headstart
from headstart.models.learning.numbers import Numbers

FORMAT = b"headstart numbers 1"
_LARGEST = 1 << 26  # bytes, unpacked: hyperparameters take some thousand
_KINDS = "fiubU"  # numbers, truths, and a line of text


class DamagedEntryError(Exception):
    """A file that is no entry, in words."""


def encoded(key: str, numbers: Numbers) -> bytes:
    """The file of an entry."""
    payload = io.BytesIO()
    arrays: dict[str, Any] = {name: np.asarray(value) for name, value in numbers.items()}
    np.savez(payload, **arrays)
    content = payload.getvalue()
    about = {"key": key, "sha256": hashlib.sha256(content).hexdigest(), "headstart": headstart.__version__}
    return b"\n".join([FORMAT, json.dumps(about).encode(), content])


def decoded(key: str, content: bytes) -> Numbers:
    """The numbers of an entry; a ``DamagedEntryError`` where the file is not that entry, whole and of this format."""
    first, _, rest = content.partition(b"\n")
    if first != FORMAT:
        another = first.startswith(FORMAT.rpartition(b" ")[0])
        raise DamagedEntryError("was written by another version of headstart" if another else "is no entry")
    line, _, payload = rest.partition(b"\n")
    try:
        about = json.loads(line)
        whole = about["sha256"] == hashlib.sha256(payload).hexdigest() and about["key"] == key
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedEntryError("is damaged") from error
    if not whole:
        raise DamagedEntryError("is damaged")
    try:
        with zipfile.ZipFile(io.BytesIO(payload)) as archive:
            if sum(file.file_size for file in archive.infolist()) > _LARGEST:
                raise DamagedEntryError("is too large to be an entry")
        with np.load(io.BytesIO(payload), allow_pickle=False) as arrays:
            found = {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, NotImplementedError) as error:
        raise DamagedEntryError("is damaged") from error
    if any(not isinstance(array, np.ndarray) or array.dtype.kind not in _KINDS for array in found.values()):
        raise DamagedEntryError("holds something other than numbers and text")
    return found
