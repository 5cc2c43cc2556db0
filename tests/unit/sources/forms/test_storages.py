"""Storages as sources: whole, by name, out of reach, locked, and what is said of them."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.storages import InMemoryStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from tests.unit.sources.forms.past_studies import failed, name_metrics, read_one, study, trial

from headstart.errors import InputError
from headstart.sources.forms import storages
from headstart.sources.forms.storages import without_password
from headstart.sources.past import Sources, read_sources

pytestmark = pytest.mark.usefixtures("quiet_optuna")


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A database of three studies, of which two can be learnt from."""
    url = f"sqlite:///{tmp_path / 'past.db'}"
    study("lgbm-iris", storage=url)
    study("lgbm-wine", storage=url, y=(3.0,))
    failed("svm-iris", url)
    return url


@pytest.mark.parametrize("kind", ["url", "rdb", "cached", "journal", "memory"])
def test_every_storage_is_a_source(kind: str, tmp_path: Path) -> None:
    """Alone it is all its usable studies, with a name or a summary the one of that name."""
    address = f"sqlite:///{tmp_path / 'past.db'}"
    storage: Any = {
        "url": lambda: address,
        "rdb": lambda: RDBStorage(address),
        "cached": lambda: optuna.storages.get_storage(address),
        "journal": lambda: JournalStorage(JournalFileBackend(str(tmp_path / "past.log"))),
        "memory": InMemoryStorage,
    }[kind]()
    study("b", storage=storage)
    assert read_one(storage).name == "b"
    study("a", storage=storage, y=(5.0,))
    failed("c", storage)
    every = read_sources([storage])
    assert [task.name for task in every] == ["a", "b"]
    assert len(every.skipped) == 1
    assert "study 'c' has no finished trial to learn from (1 failed)" in every.skipped[0]
    summaries = {summary.study_name: summary for summary in optuna.get_all_study_summaries(storage)}
    for which in ("a", summaries["a"]):
        assert read_one((storage, which)).y.tolist() == [5.0]


def test_a_summary_alone_does_not_say_where_the_trials_are() -> None:
    """The message says what to give instead."""
    storage = InMemoryStorage()
    study("past", storage=storage)
    (summary,) = optuna.get_all_study_summaries(storage)
    with pytest.raises(InputError, match=r"summary of study 'past' .* give a pair \(storage, summary\)"):
        read_sources([summary])


def test_only_the_trials_of_studies_that_are_taken_are_loaded(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database is opened once for all its sources, and other studies' trials stay where they are."""
    opened, loaded = [], []
    init, get = RDBStorage.__init__, RDBStorage._get_trials

    def note_opening(self: RDBStorage, *arguments: Any, **options: Any) -> None:
        opened.append(arguments)
        init(self, *arguments, **options)

    def note_loading(self: RDBStorage, study_id: int, **options: Any) -> Any:
        loaded.append(self.get_study_name_from_id(study_id))
        return get(self, study_id, **options)

    monkeypatch.setattr(RDBStorage, "__init__", note_opening)
    monkeypatch.setattr(RDBStorage, "_get_trials", note_loading)
    read_sources([(url, "lgbm-wine"), (url, "lgbm-iris")])
    Sources.from_storage(url, include="lgbm-w*")
    assert len(opened) == 2
    assert loaded == ["lgbm-wine", "lgbm-iris", "lgbm-wine"]


def test_what_is_out_of_reach_is_told_and_the_rest_goes_on(url: str, tmp_path: Path) -> None:
    """No file (none is made), no database, not Optuna's (nothing is written), no such study, no server."""
    text, foreign = tmp_path / "text.db", tmp_path / "foreign.db"
    text.write_text("no database at all, but long enough to look like one" * 20)
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE mine (x)")
    connection.close()
    gone = study("gone", storage=(storage := InMemoryStorage()))
    optuna.delete_study(study_name="gone", storage=storage)
    wrong: list[Any] = [
        (f"sqlite:///{tmp_path / 'none.db'}", "past"),
        (f"sqlite:///{text}", "past"),
        (f"sqlite:///{foreign}", "past"),
        (url, "lgbm-wien"),
        ("nosuchdatabase://me@there/db", "past"),
        gone,
        tmp_path / "none.csv",
    ]
    sources = read_sources([*wrong, (url, "lgbm-wine")])
    assert [task.name for task in sources] == ["lgbm-wine"]
    said = {
        "none.db: there is no file": "Check the path",
        "text.db cannot be read: file is not a database": "",
        "foreign.db cannot be read: no such table": "Is it a database that Optuna made?",
        "there is no study 'lgbm-wien'. It has 'lgbm-wine', 'lgbm-iris', 'svm-iris'.": "",
        "nosuchdatabase://me@there/db cannot be read": "driver",
        "Study 'gone': it is not in its storage any more": "Leave it out",
        "none.csv: there is no such file": "spelling",
    }
    assert len(sources.skipped) == len(said)
    for what, remedy in said.items():
        (line,) = [line for line in sources.skipped if what in line]
        assert remedy in line
        assert "\n" not in line
    assert not (tmp_path / "none.db").exists()
    with sqlite3.connect(foreign) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("mine",)]
    connection.close()


def test_without_any_usable_source_every_reason_is_given(url: str, tmp_path: Path) -> None:
    """One error, a line per source; an empty list is no mistake, and a start from scratch."""
    with pytest.raises(InputError) as caught:
        read_sources([(url, "svm-iris"), (f"sqlite:///{tmp_path / 'none.db'}", "past")])
    first, second, third = str(caught.value).splitlines()
    assert first == "There is nothing to start from: no source can be used."
    assert "svm-iris" in second + third
    assert "none.db" in second + third
    assert len(read_sources([])) == 0
    assert read_sources([]).skipped == ()


@pytest.mark.parametrize(("patience", "own"), [(1, ""), (60, "?timeout=1")])
def test_a_locked_database_is_waited_for_once_and_not_for_long(
    patience: float, own: str, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An exclusive lock costs some seconds, or what the URL says, however many studies are asked for."""
    monkeypatch.setattr(storages, "PATIENCE", patience)
    study("free", storage=(other := InMemoryStorage()))
    holder = sqlite3.connect(tmp_path / "past.db")
    try:
        holder.execute("BEGIN EXCLUSIVE")
        start = time.monotonic()
        sources = read_sources([(url + own, "lgbm-iris"), (url + own, "lgbm-wine"), url + own, (other, "free")])
        assert time.monotonic() - start < 2.5  # not once a source
    finally:
        holder.rollback()
        holder.close()
    assert [task.name for task in sources] == ["free"]
    assert len(sources.skipped) == 3
    assert all("database is locked. Another program is writing to it" in line for line in sources.skipped)


def test_a_server_that_does_not_answer_is_named_without_its_password() -> None:
    """The rest goes on, and nobody reads the password in a log."""
    pytest.importorskip("psycopg2")
    address = "postgresql+psycopg2://me:secret@127.0.0.1:1/db"
    sources = read_sources([(address, "past"), address, study("other")])
    assert [task.name for task in sources] == ["other"]
    for line in sources.skipped:
        assert "postgresql+psycopg2://me:***@127.0.0.1:1/db cannot be read" in line
        assert "Check the URL, that the server runs" in line
        assert "secret" not in line
    with pytest.raises(InputError, match=r"me:[*]{3}@127.*an @ in its password: write %40") as caught:  # half of it is
        read_sources([address.replace("secret", "se@cret")])  # taken for the name of the server, and said
    assert "cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("mysql://me:secret@host/db", "mysql://me:***@host/db"),
        ("mysql://me:se:cr@t@host/db", "mysql://me:***@host/db"),
        ("postgresql://host/db?user=me&password=secret&x=1", "postgresql://host/db?user=me&password=***&x=1"),
        ("sqlite:///past.db", "sqlite:///past.db"),
    ],
)
def test_passwords_are_stars(url: str, shown: str) -> None:
    """Wherever a URL may have one."""
    assert without_password(url) == shown


def test_names_of_studies_are_listed_the_nearest_first(tmp_path: Path) -> None:
    """Of many studies, those that look like the one that was asked for."""
    url = f"sqlite:///{tmp_path / 'past.db'}"
    for i in range(12):
        study(f"a{i}", storage=url)
    study("xgboost", storage=url)
    with pytest.raises(InputError, match=r"there is no study 'xgbost'\. It has 'xgboost', .* and 3 more\."):
        read_sources([(url, "xgbost")])


# ── every study of a database ─────────────────────────────────────────────────────────────────────────────────────


def test_a_whole_database_is_taken(url: str) -> None:
    """Every study that can be learnt from, a line for each other one."""
    sources = Sources.from_storage(url)
    assert [task.name for task in sources] == ["lgbm-iris", "lgbm-wine"]
    assert len(sources.skipped) == 1
    assert "svm-iris" in sources.skipped[0]
    assert [task.name for task in Sources.from_storage(RDBStorage(url))] == ["lgbm-iris", "lgbm-wine"]


@pytest.mark.parametrize(
    ("include", "exclude", "taken"),
    [
        ("lgbm-*", None, ["lgbm-iris", "lgbm-wine"]),
        (["lgbm-wine", "svm*"], None, ["lgbm-wine"]),
        (None, "*-iris", ["lgbm-wine"]),
        ("*iris*", ["svm-*"], ["lgbm-iris"]),
        (None, "not there yet", ["lgbm-iris", "lgbm-wine"]),
    ],
)
def test_studies_are_chosen_by_name_and_pattern(url: str, include: Any, exclude: Any, taken: list[str]) -> None:
    """``include`` and ``exclude`` are names, patterns or lists of both."""
    assert [task.name for task in Sources.from_storage(url, include=include, exclude=exclude)] == taken


def test_how_many_studies_were_not_asked_for_is_said(url: str) -> None:
    """One line for all of them, and one for a name that no study has."""
    sources = Sources.from_storage(url, include=["lgbm-wine", "lgbm-wien"])
    assert any("2 of 3 studies are not asked for" in line for line in sources.skipped)
    assert any("no study is called 'lgbm-wien'. It has 'lgbm-wine'" in line for line in sources.skipped)


def test_brackets_in_a_name_are_part_of_it(tmp_path: Path) -> None:
    """A study is found by its name even where that is a pattern which does not fit itself."""
    url = f"sqlite:///{tmp_path / 'past.db'}"
    study("lgbm [v2]", storage=url)
    assert [task.name for task in Sources.from_storage(url, include="lgbm [v2]")] == ["lgbm [v2]"]


def test_a_database_that_gives_nothing_is_an_error(url: str, tmp_path: Path) -> None:
    """Nothing fits, nothing is left, there is no database, or that is none."""
    with pytest.raises(InputError, match=r"no study is called 'xgb\*'\. It has"):
        Sources.from_storage(url, include="xgb*")
    with pytest.raises(InputError, match="3 of 3 studies are not asked for"):
        Sources.from_storage(url, exclude="*")
    with pytest.raises(InputError, match="there is no file"):
        Sources.from_storage(f"sqlite:///{tmp_path / 'none.db'}")
    with pytest.raises(InputError, match="no study in it"):
        Sources.from_storage(InMemoryStorage())
    with pytest.raises(InputError, match=r"URL as 'sqlite:///past.db' is, but this is 'past.db'"):
        Sources.from_storage("past.db")
    with pytest.raises(InputError, match="include must be a name"):
        Sources.from_storage(url, include=3)  # type: ignore[arg-type]


def test_of_a_database_only_studies_with_the_objective_are_taken(tmp_path: Path) -> None:
    """Others get a line; a study that was named must have it."""
    url = f"sqlite:///{tmp_path / 'past.db'}"
    both = optuna.create_study(study_name="both", storage=url, directions=["minimize", "maximize"])
    name_metrics(both, "loss", "accuracy")
    both.add_trial(trial(0.5, 1.0, 2.0))
    study("empty", storage=url, y=())
    study("one", storage=url)
    sources = Sources.from_storage(url, objective="f1")
    assert [task.name for task in sources] == ["one"]
    assert "study 'both' has no objective 'f1'. There are 'loss', 'accuracy'" in sources.skipped[0]
    assert "'empty' has no finished trial" in Sources.from_storage(url).skipped[0]
    with pytest.raises(InputError, match="has no objective 'f1'"):
        read_sources([(url, "both"), (url, "one")], objective="f1")


def test_reading_leaves_no_connection_behind(url: str, tmp_path: Path) -> None:
    """The database can be removed, also where open files cannot, and other programs are not in its way."""
    before = open_files(tmp_path / "past.db")  # of those who made it
    read_sources([url])
    Sources.from_storage(url)
    assert open_files(tmp_path / "past.db") <= before  # theirs may be closed meanwhile


def open_files(path: Path) -> int:
    """How often this process has the file open; 0 where the system does not say."""
    return sum(link.readlink() == path for link in Path("/proc/self/fd").glob("*") if link.is_symlink())


def test_sources_print_on_few_lines(url: str) -> None:
    """What is used and what is not; a slice is a tuple of tasks, and ``Sources`` are a source themselves."""
    sources = Sources.from_storage(url)
    assert str(sources).splitlines()[0] == "lgbm-iris: 2 rows of x"
    assert "not used: " in str(sources).splitlines()[-1]
    shown = sources._repr_html_()
    assert shown.count("<tr>") == 1 + len(sources)
    assert "not used: " in shown
    assert repr(sources) == "Sources(2 tasks, 1 skipped)"
    assert str(Sources()) == "no sources"
    assert sources[1:] == (sources[1],)
    for again in (read_sources(sources), read_sources([sources])):
        assert again.tasks == sources.tasks
        assert again.skipped == sources.skipped
