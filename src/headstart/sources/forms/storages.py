"""Optuna's storages: opened once, read and never written to, waited for only so long, closed in the end.

Whatever is wrong with one is an ``UnusableSourceError``, so that other sources can go on; only the missing driver of a
server that an extra is for ends the reading. No message shows a password, and neither files nor tables are made.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headstart.errors import MissingExtraError, UnusableSourceError
from headstart.sources.optuna_api import backend_of

if TYPE_CHECKING:
    from optuna import Study
    from optuna.storages import BaseStorage, RDBStorage

PATIENCE = 5  # seconds for a lock to be released, or for a server to answer
_MOST_NAMES = 10  # of the studies that a message lists
_SQLITE_FILE = re.compile(r"sqlite(?:\+\w+)?:///(?!:memory:)(?!file:)([^?]+)(?:\?.*)?")
# What the drivers call the seconds that they wait for a connection
_WAITING = {
    "timeout": re.compile(r"sqlite(\+pysqlite)?:"),
    "connect_timeout": re.compile(r"(postgres(ql)?(\+psycopg2?)?|(mysql|mariadb)(\+(pymysql|mysqldb))?):"),
}


def is_url(text: str) -> bool:
    """Whether the text is the URL of a storage, as sqlite:///past.db is."""
    return "://" in text


def without_password(text: str) -> str:
    """The text with stars for the password of every URL in it."""
    text = re.sub(r"(://[^:/@\s]*):\S*@", r"\1:***@", text)  # up to the last @: a password may have one
    return re.sub(r"((?:password|passwd|pwd)=)[^&\s]*", r"\1***", text, flags=re.IGNORECASE)


@contextmanager
def reading(origin: str) -> Iterator[None]:
    """Whatever a storage answers but the data is an ``UnusableSourceError``: every database has errors of its own."""
    try:
        yield
    except MissingExtraError:
        raise
    except Exception as error:
        raise UnusableSourceError(f"{origin}: {_reason(error)}") from error


class Storages(ExitStack):
    """The storages of one reading. A URL is opened when it is first asked for, and only once.

    What a URL could not be opened for is remembered too: five studies of a locked database are waited for once.
    """

    def __init__(self) -> None:
        super().__init__()
        self._opened: dict[str, RDBStorage | UnusableSourceError] = {}

    def open(self, storage: str | BaseStorage) -> BaseStorage:
        """The storage of a URL, or the storage itself."""
        if not isinstance(storage, str):
            return storage
        if storage not in self._opened:
            try:
                made = self._opened[storage] = _opened(storage)
                self.callback(made.engine.dispose)
                self.callback(made.remove_session)
            except UnusableSourceError as error:
                self._opened[storage] = error
        found = self._opened[storage]
        if isinstance(found, UnusableSourceError):
            raise found
        return found

    def names(self, storage: str | BaseStorage) -> list[str]:
        """The names of all studies, sorted; no trial is loaded."""
        import optuna

        backend = self.open(storage)
        with reading(shown(storage)):
            return sorted(optuna.get_all_study_names(backend))

    def study(self, storage: str | BaseStorage, name: str) -> Study:
        """The study of that name; its trials are not loaded yet."""
        import optuna

        backend = self.open(storage)
        with reading(shown(storage)):
            try:
                return optuna.load_study(study_name=name, storage=backend)
            except KeyError:
                pass
        raise UnusableSourceError(f"{shown(storage)}: there is no study {name!r}. {listed(self.names(storage), name)}")


def shown(storage: str | BaseStorage) -> str:
    """How messages call a storage."""
    url = storage if isinstance(storage, str) else getattr(backend_of(storage), "url", None)
    return without_password(url) if isinstance(url, str) else type(storage).__name__


def _opened(url: str) -> RDBStorage:
    from optuna.storages import RDBStorage

    if re.search(r"://[^/\s]*@[^/\s]*@", url):  # half of it would be taken for the server's name, and be said
        raise UnusableSourceError(f"The storage {shown(url)} has an @ in its password: write %40 instead.")
    file = _SQLITE_FILE.fullmatch(url)
    if file and not Path(file[1]).is_file():  # SQLite would make an empty one
        raise UnusableSourceError(
            f"{shown(url)}: there is no file {file[1]!r}. Check the path; /// is followed by a relative one."
        )
    waiting = {
        name: PATIENCE for name, urls in _WAITING.items() if urls.match(url) and f"{name}=" not in url.partition("?")[2]
    }
    with reading(f"The storage {shown(url)} cannot be read"):
        # Without table creation, for a database that is not Optuna's is none of our business
        try:
            options = {"connect_args": waiting} if waiting else None
            return RDBStorage(url, engine_kwargs=options, skip_table_creation=True)
        except ImportError as error:
            if not url.startswith("postgres"):
                raise
            raise MissingExtraError(
                f"The storage {shown(url)} needs psycopg2. Install it with pip install 'headstart[postgresql]', and "
                "begin the URL with postgresql+psycopg2://."
            ) from error


def listed(names: Sequence[str], near: str) -> str:
    """What there is, the names that look most like this one first."""
    if not names:
        return "There is none in it."
    ranked = sorted(names, key=lambda name: -difflib.SequenceMatcher(None, near.lower(), name.lower()).ratio())
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"It has {', '.join(map(repr, ranked[:_MOST_NAMES]))}{more}."


def _reason(error: BaseException) -> str:
    """One sentence: what the database said, and what can be done about it."""
    own: Any = error
    while True:  # Optuna and SQLAlchemy wrap what the database said
        inner = getattr(own, "orig", None) or own.__cause__
        if not isinstance(inner, Exception):
            break
        own = inner
    if isinstance(own, KeyError):
        return "it is not in its storage any more. Leave it out."
    text = (without_password(str(own)).strip().splitlines() or [type(own).__name__])[0].strip()
    text = text if text.endswith((".", "?", "!")) else f"{text}."
    if "no such table" in text or "does not exist" in text or "doesn't exist" in text:
        return f"{text} Is it a database that Optuna made?"
    if "locked" in text:
        return f"{text} Another program is writing to it: wait for it to finish, or stop it."
    return f"{text} Check the URL, that the server runs, and that its driver is installed."
