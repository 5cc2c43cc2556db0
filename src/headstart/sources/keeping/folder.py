"""``FolderNotebook``: what was learnt, in a folder that any number of processes share; one of them learns each thing.

An entry is one file, written whole or not at all (sources.keeping.entries). What cannot be read is learnt anew, and
what cannot be written is not kept: a full or read-only folder costs time and nothing else, and is spoken of once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from headstart.errors import UnwritableError
from headstart.models.learning.notebook import Notebook
from headstart.models.learning.numbers import Numbers
from headstart.models.learning.progress import in_words
from headstart.sources.files.safe import make_folder, write_whole
from headstart.sources.keeping.claims import Claims
from headstart.sources.keeping.entries import DamagedEntryError, decoded, encoded

PATIENCE = 600.0  # seconds without any news from those who learn what we need
_POLL = 0.1


class FolderNotebook(Notebook):
    """Entries in a folder; ``say`` is told what is wrong with it."""

    def __init__(self, folder: Path, say: Callable[[str], None], *, patience: float = PATIENCE) -> None:
        self.folder = make_folder(folder)
        self._say = say
        self._said: set[str] = set()
        self._patience = patience
        self._claims = Claims(folder)

    def look_up(self, key: str) -> Numbers | None:
        """What is known under the key."""
        path = self._path(key)
        try:
            return decoded(key, path.read_bytes())
        except FileNotFoundError:
            return None
        except DamagedEntryError as error:
            self._tell("damaged", f"{path} {error}: what is in it is learnt anew, and it is replaced.")
        except OSError as error:
            self._tell("unreadable", f"{path} cannot be read ({error.strerror}): what is in it is learnt anew.")
        return None

    def reject(self, key: str) -> None:
        """What was found under the key does not fit what it is for."""
        self._tell("damaged", f"{self._path(key)} does not fit its source: it is learnt anew, and replaced.")

    def claim(self, keys: Sequence[str]) -> list[str]:
        """Those of the keys that nobody is learning."""
        ours = []
        for key in dict.fromkeys(keys):
            try:
                if self._claims.take(key):
                    ours.append(key)
            except OSError as error:
                self._tell_unwritable(error.strerror or str(error))
                ours.append(key)
        return ours

    def note(self, key: str, numbers: Numbers) -> None:
        """Keep what was learnt."""
        try:
            write_whole(self._path(key), encoded(key, numbers))
        except (UnwritableError, OSError) as error:
            self._tell_unwritable(str(error))
        finally:
            self._claims.drop(key)

    def give_up(self, keys: Sequence[str]) -> None:
        """Let others learn it."""
        for key in keys:
            self._claims.drop(key)

    def wait(self, seconds: float) -> bool:
        """Wait a moment, unless it has been too long."""
        if seconds < self._patience:
            time.sleep(_POLL)
            return True
        self._tell(
            "waited",
            f"{self.folder}: another process has been learning from the same sources for {in_words(seconds)} and is "
            "not done. They are learnt here as well.",
        )
        return False

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.numbers"

    def _tell_unwritable(self, reason: str) -> None:
        self._tell("unwritable", f"What is learnt is not kept in {self.folder}, and every process learns it: {reason}")

    def _tell(self, kind: str, text: str) -> None:
        if kind not in self._said:
            self._said.add(kind)
            self._say(text)

    def __getstate__(self) -> dict[str, Any]:
        """The folder: claims are of this process."""
        return {"folder": self.folder, "_say": self._say, "_patience": self._patience}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """In another process, with claims of its own."""
        vars(self).update(state, _said=set(), _claims=Claims(state["folder"]))
