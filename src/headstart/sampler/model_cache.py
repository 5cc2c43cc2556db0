"""What was learnt from the sources, kept in memory and, if wished, on disk: nothing is learnt twice.

The key is the content: the aligned data, the model with all its options, and the versions of the programs. A changed
row, option or version is another key, so an entry is never out of date. On disk an entry is one file, written whole or
not at all, and opens with the SHA-256 of the rest; one that does not match is learnt anew and replaced. Any number of
processes may share the folder. Entries are pickles: use a folder that only people you trust can write to.
"""

from __future__ import annotations

import hashlib
import pickle
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import optuna
import torch

import headstart
from headstart.data.dataset import Dataset
from headstart.errors import InputError, UnwritableError
from headstart.models.model import Prior, TransferModel
from headstart.sampler.words import LOGGER
from headstart.sources.files.safe import write_whole

__all__ = ["ModelCache", "content_key"]

_logger = optuna.logging.get_logger(LOGGER)

_FORMAT = b"headstart prior 4\n"
_IN_MEMORY = 8


def content_key(sources: Sequence[Dataset], model: TransferModel) -> str:
    """The SHA-256 of everything that learning depends on."""
    digest = hashlib.sha256(_FORMAT)
    digest.update(repr((headstart.__version__, torch.__version__, model)).encode())
    for source in sources:
        errors = () if source.error_var is None else (source.error_var,)
        about = (source.name, tuple(source.X.shape), source.unseen, source.categories, len(errors))
        digest.update(repr(about).encode())
        for tensor in (source.X, source.y, *errors):
            digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


class ModelCache:
    """Priors by the content they were learnt from: the latest few in memory, all of them in ``folder`` if given."""

    def __init__(self, folder: Path | None = None) -> None:
        self._kept: OrderedDict[str, Prior] = OrderedDict()
        self._folder = folder
        if folder is not None:
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise InputError(f"The cache folder {folder} cannot be made: {error.strerror}.") from error

    def learn(self, model: TransferModel, sources: Sequence[Dataset]) -> Prior:
        """What the model learns from the sources: known already, or learnt now. Every process learns the same."""
        key = content_key(sources, model)
        prior = self._kept.get(key) or self._read(key)
        if prior is None:
            prior = model.learn(sources, seed=0)
            self._write(key, prior)
        self._kept[key] = prior
        self._kept.move_to_end(key)
        while len(self._kept) > _IN_MEMORY:
            self._kept.popitem(last=False)
        return prior

    def __getstate__(self) -> dict[str, Any]:
        """Without what is kept in memory, which may be large and can be learnt again."""
        return {"_folder": self._folder, "_kept": OrderedDict()}

    def _path(self, key: str) -> Path | None:
        return None if self._folder is None else self._folder / f"{key}.prior"

    def _read(self, key: str) -> Prior | None:
        path = self._path(key)
        if path is None or not path.is_file():
            return None
        try:
            head, _, payload = path.read_bytes().removeprefix(_FORMAT).partition(b"\n")
            if hashlib.sha256(payload).hexdigest().encode() != head:
                _logger.warning("%s is damaged: the sources are learnt anew, and it is replaced.", path)
                return None
            prior = pickle.loads(payload)
        except Exception as error:  # an unpickling may raise anything
            _logger.warning("%s cannot be read (%s): the sources are learnt anew, and it is replaced.", path, error)
            return None
        return prior if isinstance(prior, Prior) else None

    def _write(self, key: str, prior: Prior) -> None:
        path = self._path(key)
        if path is None:
            return
        try:
            payload = pickle.dumps(prior)
            write_whole(path, _FORMAT + hashlib.sha256(payload).hexdigest().encode() + b"\n" + payload)
        except (UnwritableError, OSError, pickle.PicklingError) as error:
            _logger.warning("What was learnt is not kept on disk: %s", error)
